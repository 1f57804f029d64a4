//! Lists of items, line by line.

use super::{Parsed, ProblemKind, Reply, citation, fence, marker};
use std::ops::Range;

/// An item as far as it was read.
struct Item {
    /// Its first line, from 1.
    line: usize,
    body: String,
}

/// Reads some lines of a reply.
pub(super) fn read(reply: &Reply<'_>, lines: Range<usize>, parsed: &mut Parsed) {
    let mut open: Option<Item> = None;
    for index in lines {
        let (line, number) = (reply.line(index), index + 1);
        if line.is_empty() || fence(line).is_some() {
            close(&mut open, parsed);
        } else if is_rule(line) {
            close(&mut open, parsed);
            parsed.prose.push(number);
        } else if let Some(item) = &mut open
            && closes_parenthesis(&item.body, line)
        {
            item.join(line);
        } else if let Some(body) = marker::strip(line, "insight") {
            close(&mut open, parsed);
            let line = number;
            open = Some(Item { line, body });
        } else if let Some(item) = &mut open {
            item.join(line);
        } else if citation::split(line).is_some() {
            parsed.add(number, line, outcome(line));
        } else {
            parsed.prose.push(number);
        }
    }
    close(&mut open, parsed);
}

impl Item {
    fn join(&mut self, line: &str) {
        if !self.body.is_empty() {
            self.body.push(' ');
        }
        self.body.push_str(line);
    }
}

fn close(open: &mut Option<Item>, parsed: &mut Parsed) {
    if let Some(Item { line, body }) = open.take() {
        parsed.add(line, &body, outcome(&body));
    }
}

/// What an item says and cites.
fn outcome(item: &str) -> Result<(String, Vec<u32>), ProblemKind> {
    let split = citation::split(item).ok_or(ProblemKind::NoCitation)?;
    let text = split.text();
    let says_nothing = |c: char| c.is_whitespace() || c.is_ascii_punctuation();
    if text.chars().all(says_nothing) {
        return Err(ProblemKind::NoText);
    }
    Ok((text.to_owned(), split.indices()?))
}

/// Whether a line is a rule between paragraphs.
fn is_rule(line: &str) -> bool {
    line.len() >= 3 && line.bytes().all(|byte| b"-*_=".contains(&byte))
}

/// Whether a line that looks like a marker, `5)`, is the end of a citation that was broken over two lines.
fn closes_parenthesis(body: &str, line: &str) -> bool {
    let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_open = || {
        body.rfind(['(', ')'])
            .is_some_and(|at| body[at..].starts_with('('))
    };
    after.len() < line.len() && after.starts_with(')') && is_open()
}
