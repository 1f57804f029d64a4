//! From a model's reply to the questions that it asks.

use super::{Reply, fence, json, marker};
use serde::Deserialize;
use std::collections::HashMap;

/// The questions of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Questions {
    /// The first of them, as many as were asked for at most. None: the reply has no question.
    pub taken: Vec<String>,
    /// Those that come after.
    pub left_out: Vec<String>,
    /// Lines that are no question, counted from 1. Blank ones and fences are not listed.
    pub prose: Vec<usize>,
}

/// Reads a reply to "which `asked` questions can be answered with these statements?".
///
/// A question is an item of a list, as [`parse`](super::parse) knows them (and `Question 1:` and `Q1:`); a line that ends
/// in a question mark; or, in JSON, a text in an array of texts, or the `question` of an object in an array, where the
/// array may be in an object of its own. JSON that is broken, or is something else, has no question. Bold and quotes
/// around one go, and so do blanks; the same question twice is two.
///
/// ```
/// use memorank::stream::reflection::parse_questions;
/// let reply = "Sure!\n1. What does Klaus study?\n2) Whom does he like?\nWhy?";
/// let questions = parse_questions(reply, 2);
/// assert_eq!(questions.taken, ["What does Klaus study?", "Whom does he like?"]);
/// assert_eq!(questions.left_out, ["Why?"]);
/// assert_eq!(questions.prose, [1]);
/// ```
pub fn parse_questions(reply: &str, asked: usize) -> Questions {
    let reply = Reply::new(reply);
    let (mut found, prose) = match json::find(&reply) {
        Some(parts) => {
            let texts = parts.iter().map(|part| &reply.text[part.bytes()]);
            (texts.flat_map(in_json).collect(), Vec::new())
        }
        None => in_lines(&reply),
    };
    found.retain(|question| says_something(question));
    let left_out = found.split_off(asked.min(found.len()));
    Questions {
        taken: found,
        left_out,
        prose,
    }
}

/// The shapes of JSON that have questions.
#[derive(Deserialize)]
#[serde(untagged)]
enum Shape {
    List(Vec<Entry>),
    Named(HashMap<String, Vec<Entry>>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Text(String),
    Object { question: String },
}

fn in_json(text: &str) -> Vec<String> {
    // Words may follow.
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let entries = match values.next() {
        Some(Ok(Shape::List(entries))) => entries,
        Some(Ok(Shape::Named(lists))) if lists.len() == 1 => {
            lists.into_values().flatten().collect()
        }
        Some(Ok(Shape::Named(_)) | Err(_)) | None => Vec::new(),
    };
    let texts = entries.into_iter().map(|entry| match entry {
        Entry::Text(text) | Entry::Object { question: text } => text,
    });
    texts.map(|text| bare(&text).to_owned()).collect()
}

/// The questions of a reply that is no JSON, and the lines that are none.
fn in_lines(reply: &Reply<'_>) -> (Vec<String>, Vec<usize>) {
    let (mut found, mut prose): (Vec<String>, _) = (Vec::new(), Vec::new());
    // Whether the last of them may go on.
    let mut open = false;
    for index in 0..reply.lines.len() {
        let line = reply.line(index);
        let item = ["question", "q"]
            .iter()
            .find_map(|name| marker::strip(line, name));
        if line.is_empty() || fence(line).is_some() {
            open = false;
        } else if let Some(item) = item {
            open = !ends_in_a_question_mark(&item);
            found.push(item);
        } else if let Some(last) = found.last_mut().filter(|_| open) {
            last.push(' ');
            last.push_str(line);
            open = !ends_in_a_question_mark(line);
        } else if ends_in_a_question_mark(line) {
            found.push(line.to_owned());
        } else {
            prose.push(index + 1);
        }
    }
    (
        found.iter().map(|item| bare(item).to_owned()).collect(),
        prose,
    )
}

/// A question without what is around it.
fn bare(text: &str) -> &str {
    let around = |c: char| c.is_whitespace() || matches!(c, '*' | '"' | '“' | '”' | '\u{feff}');
    text.trim_matches(around)
}

fn ends_in_a_question_mark(line: &str) -> bool {
    bare(line).ends_with(['?', '？', '؟', '\u{37e}'])
}

fn says_something(question: &str) -> bool {
    question.chars().any(char::is_alphanumeric)
}
