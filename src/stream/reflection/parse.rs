//! Gate 1: from a model's reply to insights with the numbers that they cite.
//!
//! [`parse`] has the rules. Each of them is tested for all of its kind, and replies as models write them are in
//! `tests/reflection/replies.json`.

mod citation;
mod items;
mod json;
mod marker;
mod questions;

use std::cmp::Ordering;
use std::ops::Range;
use thiserror::Error;

pub use questions::{Questions, parse_questions};

/// What a reply says. Lines are the reply's, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Parsed {
    /// What was accepted, in the order of the reply.
    pub insights: Vec<Insight>,
    /// What was refused, in the order of the reply.
    pub problems: Vec<Problem>,
    /// Lines that belong to no insight: greetings, headings and the like. Blank ones and fences are not listed.
    pub prose: Vec<usize>,
    /// How many insights were asked for.
    pub asked: usize,
}

/// A conclusion, and the numbers that it cites.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Insight {
    /// What it says.
    pub text: String,
    /// The numbers as cited, in order and as often: [`resolve`](super::resolve) says what they name.
    pub citations: Vec<u32>,
    /// The line where it starts.
    pub line: usize,
}

/// Something that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[error("line {line}: {kind}; ask again")]
pub struct Problem {
    /// The line where it starts.
    pub line: usize,
    /// All of it: the item without its marker, or the JSON.
    pub text: String,
    /// What is wrong with it.
    pub kind: ProblemKind,
}

/// Why an item was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ProblemKind {
    /// It does not end in a citation.
    #[error("no citation")]
    NoCitation,
    /// A citation without an index.
    #[error("the citation is empty")]
    EmptyCitation,
    /// An index with a minus.
    #[error("{found:?} is a negative index")]
    NegativeIndex {
        /// As it was written.
        found: String,
    },
    /// Something that is no whole number.
    #[error("{found:?} is no index")]
    NotAnIndex {
        /// As it was written.
        found: String,
    },
    /// An index above the largest.
    #[error("index {found} is above {}", u32::MAX)]
    TooLarge {
        /// As it was written.
        found: String,
    },
    /// A range whose end comes before its start.
    #[error("the range {found:?} goes backward")]
    BackwardRange {
        /// As it was written.
        found: String,
    },
    /// A range of more indices than anybody was shown.
    #[error("the range {found:?} has more than {LONGEST_RANGE} indices")]
    LongRange {
        /// As it was written.
        found: String,
    },
    /// A citation without an insight.
    #[error("a citation without text")]
    NoText,
    /// JSON that is broken, or is not insights.
    #[error("{what}")]
    Json {
        /// What is wrong, and where.
        what: String,
    },
}

/// The most indices of a range.
const LONGEST_RANGE: u32 = 1000;

/// The insights of a reply beside those that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Count {
    /// As many as were asked for.
    AsAsked,
    /// Fewer.
    Fewer,
    /// More. All of them were accepted.
    More,
}

impl Parsed {
    /// Whether there are as many accepted insights as were asked for.
    pub fn count(&self) -> Count {
        match self.insights.len().cmp(&self.asked) {
            Ordering::Equal => Count::AsAsked,
            Ordering::Less => Count::Fewer,
            Ordering::Greater => Count::More,
        }
    }

    /// Takes what came of the item that starts in a line: its text and citations, or why not.
    fn add(&mut self, line: usize, item: &str, outcome: Result<(String, Vec<u32>), ProblemKind>) {
        match outcome {
            Ok((text, citations)) => self.insights.push(Insight {
                text,
                citations,
                line,
            }),
            Err(kind) => self.problems.push(Problem {
                line,
                text: item.to_owned(),
                kind,
            }),
        }
    }

    fn empty(asked: usize) -> Parsed {
        Parsed {
            insights: Vec::new(),
            problems: Vec::new(),
            prose: Vec::new(),
            asked,
        }
    }
}

/// Reads a reply to "what `asked` insights can you infer from these statements?", however strange it is.
///
/// It is read as JSON or as a list of items. Each insight of JSON, and each item of a list, is accepted whole or
/// refused with one [`Problem`], the first that is met in it: no index is rounded, clamped or left out. More or fewer
/// insights than asked for are no problem of that sort: see [`Parsed::count`].
///
/// **JSON** is a reply that starts like it, is in a fenced block, or comes after words that are no items: an array
/// of objects, an object with one array of them under any key, or one such object. Each has `insight`, a text, and
/// `evidence`, an array of whole numbers; other fields are passed over. Several of these are read one after
/// another. What is broken or of another shape is one [`ProblemKind::Json`], and nothing is read from its lines.
///
/// **Items** begin with a list marker: `1.`, `1)`, `(1)` before text, `-`, `*`, `•`, `Insight 1:`, any of them
/// bold or, but for bullets, in a heading, and a bullet before a number. Their numbers are not checked. Lines up to
/// the next marker, blank line, fence or rule (`---`) continue an item. A line without a marker, outside any item,
/// is an item of its own if it ends in a citation, and prose if not.
///
/// **The citation** is the group, or run of groups, at the end of an item; full stops, commas, colons, `**` and
/// quotes may follow.
///
/// | at the end of an item | what it cites |
/// |---|---|
/// | `(because of 1, 5, 3)`, `(Because of statements 1 and 3)`, `(1; 5)`, `[1][5]`, `(1) & (5)`, `(#1, #5)` | these |
/// | `(because of 1-3, 7)`, `[1–3]` | 1, 2, 3 (and 7) |
/// | `()`, `(because of )`, `[1][]` | [`EmptyCitation`](ProblemKind::EmptyCitation) |
/// | `(-1)`, `(1, -5)`, `(1-)`: a minus that is not between two numbers | [`NegativeIndex`](ProblemKind::NegativeIndex) |
/// | `(1.5)`, `(+1)`, `(1-3-5)`, `(because of node_1)`, `(because of his letters)` | [`NotAnIndex`](ProblemKind::NotAnIndex) |
/// | `(because of 4294967296)` | [`TooLarge`](ProblemKind::TooLarge) |
/// | `(3-1)` | [`BackwardRange`](ProblemKind::BackwardRange) |
/// | `(1-1001)`: more than 1,000 numbers | [`LongRange`](ProblemKind::LongRange) |
/// | `(because of 1) again`, `(a cafe)`, `(because of 1`, nothing | [`NoCitation`](ProblemKind::NoCitation) |
///
/// A group that says "because of", in any case of ASCII letters, is a citation whatever it holds; another one only
/// if it holds nothing but digits, `,` `;` `&` `#` `.` `+`, dashes, spaces and the word "and". Numbers may be called
/// statements, memories, insights or numbers; any other word is no index.
///
/// **The text** is the rest of the item, without marker and without `**` or quotes around it. Its punctuation stays.
/// If there is none, that is [`NoText`](ProblemKind::NoText). The same text twice is two insights.
///
/// It takes time and memory in proportion to the reply's length, up to a thousandfold where that has ranges.
///
/// ```
/// use memorank::stream::reflection::{Count, ProblemKind, parse};
///
/// let reply = "Here are three insights:\n\
///     1. Klaus is dedicated to his research (because of 1, 5, 3)\n\
///     2. Klaus likes Maria (because of 2-4).\n\
///     3. Klaus sleeps well";
/// let parsed = parse(reply, 3);
/// assert_eq!(parsed.insights[0].text, "Klaus is dedicated to his research");
/// assert_eq!(parsed.insights[0].citations, [1, 5, 3]);
/// assert_eq!(parsed.insights[1].citations, [2, 3, 4]);
/// assert_eq!((parsed.problems[0].line, &parsed.problems[0].kind), (4, &ProblemKind::NoCitation));
/// assert_eq!(parsed.prose, [1]);
/// assert_eq!(parsed.count(), Count::Fewer);
/// ```
pub fn parse(reply: &str, asked: usize) -> Parsed {
    let reply = Reply::new(reply);
    let mut parsed = Parsed::empty(asked);
    match json::find(&reply) {
        Some(parts) => json::read(&reply, &parts, &mut parsed),
        None => items::read(&reply, 0..reply.lines.len(), &mut parsed),
    }
    parsed
}

/// A reply and its lines.
struct Reply<'r> {
    text: &'r str,
    /// Where each lies in the text, without its line break.
    lines: Vec<Range<usize>>,
}

impl<'r> Reply<'r> {
    fn new(text: &'r str) -> Reply<'r> {
        // Some programs put it before every text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut end = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            let start = end;
            end += line.len();
            start..start + line.trim_end_matches(['\r', '\n']).len()
        });
        let lines = lines.collect();
        Reply { text, lines }
    }

    /// What an index of `lines` holds, without white space around it.
    fn line(&self, index: usize) -> &'r str {
        self.text[self.lines[index].clone()].trim()
    }

    /// The index of the line with the byte at an offset.
    fn line_at(&self, offset: usize) -> usize {
        let begun = self.lines.partition_point(|line| line.start <= offset);
        begun.saturating_sub(1)
    }

    /// Where a piece of the text starts in it.
    fn offset_of(&self, piece: &str) -> usize {
        piece.as_ptr().addr() - self.text.as_ptr().addr()
    }
}

/// The tag of a line that opens a fenced block; empty if it has none, or closes one.
fn fence(line: &str) -> Option<&str> {
    let tag = line.strip_prefix("```")?.trim();
    (!tag.contains(|c: char| c.is_whitespace() || c == '`')).then_some(tag)
}
