//! Citations at the end of items, and the indices in them.

use super::{LONGEST_RANGE, ProblemKind};
use std::ops::Range;

/// An item in two.
pub(super) struct Split<'i> {
    before: &'i str,
    /// In their order, without brackets and "because of".
    groups: Vec<&'i str>,
    /// What followed them.
    closing: &'i str,
}

/// What a quote or bold text is between.
const PAIRS: [(&str, &str); 4] = [("**", "**"), ("\"", "\""), ("“", "”"), ("'", "'")];

/// What may follow a citation, beside white space.
const CLOSING: &str = ".,;:*\"”'’";

/// An item that ends in a citation.
pub(super) fn split(item: &str) -> Option<Split<'_>> {
    let end = item.trim_end_matches(|c: char| c.is_whitespace() || CLOSING.contains(c));
    let (mut before, last) = last_group(end)?;
    let mut groups = vec![last];
    while let Some((start, group)) = last_group(between_groups(before)) {
        before = start;
        groups.push(group);
    }
    groups.reverse();
    let closing = &item[end.len()..];
    Some(Split {
        before,
        groups,
        closing,
    })
}

impl Split<'_> {
    /// What the item says.
    pub(super) fn text(&self) -> &str {
        let mut text = self.before.trim();
        for (open, close) in PAIRS {
            // It opens before the text and closes behind the citation.
            let opens = || text.matches(open).count();
            let is_open = || match open == close {
                true => opens() % 2 == 1,
                false => opens() > text.matches(close).count(),
            };
            if let Some(rest) = text.strip_prefix(open)
                && self.closing.contains(close)
                && is_open()
            {
                text = rest.trim_start();
            }
        }
        while let Some(inner) = unquoted(text) {
            text = inner;
        }
        text
    }

    /// What the item cites.
    pub(super) fn indices(&self) -> Result<Vec<u32>, ProblemKind> {
        let mut indices = Vec::new();
        for group in &self.groups {
            let before = indices.len();
            read(group, &mut indices)?;
            if indices.len() == before {
                return Err(ProblemKind::EmptyCitation);
            }
        }
        Ok(indices)
    }
}

/// What is between quotes, or bold, if all of it is.
fn unquoted(text: &str) -> Option<&str> {
    PAIRS.iter().find_map(|(open, close)| {
        let inner = text.strip_prefix(open)?.strip_suffix(close)?;
        (!inner.contains(open) && !inner.contains(close)).then(|| inner.trim())
    })
}

/// What comes before the citation that ends a text, and what that holds.
fn last_group(text: &str) -> Option<(&str, &str)> {
    let (open, close) = match text.chars().next_back()? {
        ')' => ('(', ')'),
        ']' => ('[', ']'),
        _ => return None,
    };
    let mut depth = 0_usize;
    let start = text
        .rmatch_indices([open, close])
        .find_map(|(at, bracket)| {
            match bracket.starts_with(close) {
                true => depth += 1,
                false => depth -= 1,
            }
            (depth == 0).then_some(at)
        })?;
    let inside = &text[start + 1..text.len() - 1];
    let held = match after_because_of(inside) {
        Some(rest) => rest,
        None if holds_only_indices(inside) => inside,
        None => return None,
    };
    Some((&text[..start], held))
}

/// A text without the separators at its end, if a group may come before them.
fn between_groups(text: &str) -> &str {
    let separators = |c: char| c.is_whitespace() || ",;&".contains(c);
    let trimmed = text.trim_end_matches(separators);
    match trimmed.len().checked_sub(AND.len()) {
        Some(at) if trimmed.get(at..).is_some_and(is_and) => {
            trimmed[..at].trim_end_matches(separators)
        }
        _ => trimmed,
    }
}

const AND: &str = "and";

fn is_and(word: &str) -> bool {
    word.eq_ignore_ascii_case(AND)
}

fn after_because_of(inside: &str) -> Option<&str> {
    const BECAUSE_OF: &str = "because of";
    let inside = inside.trim_start();
    let (start, rest) = inside.split_at_checked(BECAUSE_OF.len())?;
    let ends = !rest.starts_with(char::is_alphanumeric);
    (ends && start.eq_ignore_ascii_case(BECAUSE_OF)).then_some(rest)
}

fn holds_only_indices(inside: &str) -> bool {
    let mut words = inside.split(|c: char| {
        c.is_ascii_digit() || c.is_whitespace() || is_minus(c) || ",;&#.+".contains(c)
    });
    words.all(|word| word.is_empty() || is_and(word))
}

/// Hyphens, dashes and the minus: models write all of them.
fn is_minus(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}')
}

/// What numbers may be called.
const WORDS: [&str; 11] = [
    "statement",
    "statements",
    "memory",
    "memories",
    "insight",
    "insights",
    "number",
    "numbers",
    "no",
    "no.",
    "nos.",
];

/// What a piece of a group is, and where.
type Token = (Piece, Range<usize>);

#[derive(Clone, Copy)]
enum Piece {
    Number,
    Minus,
    Separator,
    Other,
}

/// Adds the indices of a group.
fn read(group: &str, indices: &mut Vec<u32>) -> Result<(), ProblemKind> {
    use Piece::{Minus, Number, Other, Separator};

    // A sentence may end inside the group.
    let group = group.trim_end();
    let group = group.strip_suffix('.').unwrap_or(group);
    let found = |first: &Range<usize>, last: &Range<usize>| group[first.start..last.end].to_owned();
    let number = |at: &Range<usize>| index(group[at.clone()].trim_start_matches('#'));
    let tokens: Vec<Token> = tokens(group).collect();
    let mut rest = &tokens[..];
    loop {
        rest = match rest {
            [] => return Ok(()),
            [(Separator, _), rest @ ..] => rest,
            [(Number, first), (Minus, _), (Number, _), (Minus, last), ..] => {
                let found = found(first, last);
                return Err(ProblemKind::NotAnIndex { found });
            }
            [(Number, first), (Minus, _), (Number, last), rest @ ..] => {
                let (from, to) = (number(first)?, number(last)?);
                let found = || found(first, last);
                match to.checked_sub(from) {
                    None => return Err(ProblemKind::BackwardRange { found: found() }),
                    Some(LONGEST_RANGE..) => return Err(ProblemKind::LongRange { found: found() }),
                    Some(_) => indices.extend(from..=to),
                }
                rest
            }
            [(Number, first), (Minus, last), ..]
            | [(Minus, first), (Number, last), ..]
            | [(Minus, first @ last), ..] => {
                let found = found(first, last);
                return Err(ProblemKind::NegativeIndex { found });
            }
            [(Number, at), rest @ ..] => {
                indices.push(number(at)?);
                rest
            }
            [(Other, at), ..] => {
                let found = found(at, at);
                return Err(ProblemKind::NotAnIndex { found });
            }
        };
    }
}

/// The index that these digits are.
pub(super) fn index(digits: &str) -> Result<u32, ProblemKind> {
    digits.parse().map_err(|_| ProblemKind::TooLarge {
        found: digits.to_owned(),
    })
}

/// The pieces of a group, but for what its numbers are called.
fn tokens(group: &str) -> impl Iterator<Item = Token> {
    let mut end = 0;
    let pieces = std::iter::from_fn(move || {
        let rest = group[end..].trim_start();
        let start = group.len() - rest.len();
        let first = rest.chars().next()?;
        // A word may have a hyphen, a number has none.
        let numeric = first == '#' || first.is_ascii_digit();
        let ends = |c: char| c.is_whitespace() || is_separator(c) || numeric && is_minus(c);
        let (piece, bytes) = if is_minus(first) {
            (Some(Piece::Minus), first.len_utf8())
        } else if is_separator(first) {
            (Some(Piece::Separator), first.len_utf8())
        } else {
            let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
            (piece(word), word.len())
        };
        end = start + bytes;
        Some(piece.map(|piece| (piece, start..end)))
    });
    pieces.flatten()
}

/// What a word is; `None` if it only says what numbers are called.
fn piece(word: &str) -> Option<Piece> {
    let digits = word.strip_prefix('#').unwrap_or(word);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        Some(Piece::Number)
    } else if is_and(word) {
        Some(Piece::Separator)
    } else if WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)) {
        None
    } else {
        Some(Piece::Other)
    }
}

/// Brackets too: `(because of [1], [5])`.
fn is_separator(c: char) -> bool {
    ",;&:()[]".contains(c)
}
