//! Replies in JSON.

use super::{Parsed, ProblemKind, Reply, citation, fence, items};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

/// The JSON of a reply.
pub(super) struct Part {
    bytes: Range<usize>,
    /// Whether it has a fenced block for itself. Else words may follow it.
    fenced: bool,
}

impl Part {
    /// Where it is in the reply.
    pub(super) fn bytes(&self) -> Range<usize> {
        self.bytes.clone()
    }
}

/// Where the JSON of a reply is, if it has any.
pub(super) fn find(reply: &Reply<'_>) -> Option<Vec<Part>> {
    let all = reply.text;
    let rest_of_reply = |start| {
        let bytes = start..all.len();
        vec![Part {
            bytes,
            fenced: false,
        }]
    };
    if starts_like_json(all) {
        return Some(rest_of_reply(0));
    }
    let fenced = fenced(reply);
    if !fenced.is_empty() {
        return Some(fenced);
    }
    let start_of = |index: usize| reply.lines[index].start;
    let begins =
        |&index: &usize| !reply.line(index).is_empty() && starts_like_json(&all[start_of(index)..]);
    let first = (0..reply.lines.len()).find(begins)?;
    // Behind a list it is part of that.
    let mut before = Parsed::empty(0);
    items::read(reply, 0..first, &mut before);
    let is_prose = before.insights.is_empty() && before.problems.is_empty();
    is_prose.then(|| rest_of_reply(start_of(first)))
}

/// Whether a text can be nothing but JSON, or an attempt at it. `[1]` is a citation.
fn starts_like_json(text: &str) -> bool {
    let text = text.trim_start();
    let array = (text.strip_prefix('[')).map(|rest| rest.trim_start_matches([' ', '\t', '\r']));
    match array {
        Some(rest) => rest.is_empty() || rest.starts_with(['\n', '{', '[', ']', '"', '\'']),
        None => text.starts_with('{'),
    }
}

/// What is in the fenced blocks that hold JSON, or say so. A block that is not closed ends with the reply.
fn fenced(reply: &Reply<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut open: Option<(usize, &str)> = None;
    let mut close = |open: &mut Option<(usize, &str)>, end: usize| {
        if let Some((start, tag)) = open.take() {
            let bytes = start.min(end)..end;
            if tag.eq_ignore_ascii_case("json") || starts_like_json(&reply.text[bytes.clone()]) {
                parts.push(Part {
                    bytes,
                    fenced: true,
                });
            }
        }
    };
    for (index, line) in reply.lines.iter().enumerate() {
        match fence(reply.line(index)) {
            Some("") if open.is_some() => close(&mut open, line.start),
            Some(tag) if open.is_none() => {
                let next = reply.lines.get(index + 1);
                open = Some((next.map_or(reply.text.len(), |next| next.start), tag));
            }
            _ => {}
        }
    }
    close(&mut open, reply.text.len());
    parts
}

/// Reads the parts of a reply that are JSON. The rest is prose.
pub(super) fn read(reply: &Reply<'_>, parts: &[Part], parsed: &mut Parsed) {
    let mut read_to = 0;
    for part in parts {
        prose(reply, read_to..part.bytes.start, parsed);
        read_to = values(reply, part, parsed);
    }
    prose(reply, read_to..reply.text.len(), parsed);
}

/// Takes the lines that start in a range of bytes as prose.
fn prose(reply: &Reply<'_>, bytes: Range<usize>, parsed: &mut Parsed) {
    let first = (reply.lines).partition_point(|line| line.start < bytes.start);
    let lines =
        (first..reply.lines.len()).take_while(|&index| reply.lines[index].start < bytes.end);
    for index in lines {
        let line = reply.line(index);
        if !line.is_empty() && fence(line).is_none() {
            parsed.prose.push(index + 1);
        }
    }
}

/// Reads the values of a part, of which there should be one, and gives the byte where they end.
fn values(reply: &Reply<'_>, part: &Part, parsed: &mut Parsed) -> usize {
    let mut start = part.bytes.start;
    let end = start + reply.text[part.bytes.clone()].trim_end().len();
    loop {
        let text = reply.text[start..end].trim_start();
        let begin = end - text.len();
        match first_value(reply, begin, text) {
            Ok(raw) => {
                value(reply, raw, parsed);
                start = begin + raw.len();
            }
            Err(what) => {
                let line = reply.line_at(begin.min(end.saturating_sub(1))) + 1;
                parsed.add(line, text, Err(ProblemKind::Json { what }));
                return end;
            }
        }
        if start == end || !part.fenced && starts_with_words(&reply.text[start..end]) {
            return start;
        }
    }
}

/// The array or object that a text begins with.
fn first_value<'r>(reply: &Reply<'_>, begin: usize, text: &'r str) -> Result<&'r str, String> {
    if !starts_like_json(text) {
        let line = reply.line_at(begin) + 1;
        return Err(format!("no array and no object starts in line {line}"));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let raw = <&RawValue>::deserialize(&mut deserializer);
    raw.map(RawValue::get)
        .map_err(|error| message(reply, begin, &error))
}

/// Whether what follows a value is no piece of JSON, on lines of its own.
fn starts_with_words(rest: &str) -> bool {
    let text = rest.trim_start();
    let blank = &rest[..rest.len() - text.len()];
    blank.contains('\n') && !starts_like_json(text) && !text.starts_with([',', ':', '}', ']', '"'])
}

/// Reads an array of insights, an object that has one, or one insight.
fn value(reply: &Reply<'_>, value: &str, parsed: &mut Parsed) {
    let elements = match elements(reply, value) {
        Ok(elements) => elements,
        Err(what) => {
            let line = reply.line_at(reply.offset_of(value)) + 1;
            return parsed.add(line, value, Err(ProblemKind::Json { what }));
        }
    };
    for raw in elements {
        let line = reply.line_at(reply.offset_of(raw)) + 1;
        parsed.add(line, raw, insight(reply, raw));
    }
}

/// The insights of a JSON value, each as it was written.
fn elements<'r>(reply: &Reply<'r>, value: &'r str) -> Result<Vec<&'r str>, String> {
    let mut array = value;
    if value.starts_with('{') {
        let fields = decode::<Fields<'r>>(reply, value)?;
        if fields.get(INSIGHT).is_some() || fields.get(EVIDENCE).is_some() {
            return Ok(vec![value]);
        }
        let mut arrays = (fields.0.iter()).filter(|(_, raw)| raw.starts_with('['));
        array = match (arrays.next(), arrays.next()) {
            (Some((_, array)), None) => array,
            (None, _) => return Err("the object has no array of insights".to_owned()),
            (Some((one, _)), Some((other, _))) => {
                return Err(format!("the object has two arrays, {one:?} and {other:?}"));
            }
        };
    }
    let elements = decode::<Vec<&RawValue>>(reply, array)?;
    Ok(elements.into_iter().map(RawValue::get).collect())
}

const INSIGHT: &str = "insight";
const EVIDENCE: &str = "evidence";

/// What an object says and cites.
fn insight(reply: &Reply<'_>, object: &str) -> Result<(String, Vec<u32>), ProblemKind> {
    let json = |what| ProblemKind::Json { what };
    if !object.starts_with('{') {
        return Err(json(format!(
            "this is no object with {INSIGHT:?} and {EVIDENCE:?}"
        )));
    }
    let fields = decode::<Fields<'_>>(reply, object).map_err(json)?;
    let evidence = match fields.get(EVIDENCE) {
        None | Some("null") => return Err(ProblemKind::NoCitation),
        Some(array) if array.starts_with('[') => {
            decode::<Vec<&RawValue>>(reply, array).map_err(json)?
        }
        Some(other) => return Err(json(format!("{EVIDENCE:?} is {other}, no array"))),
    };
    let text = match fields.get(INSIGHT) {
        None | Some("null") => return Err(ProblemKind::NoText),
        Some(text) if text.starts_with('"') => decode::<String>(reply, text).map_err(json)?,
        Some(other) => return Err(json(format!("{INSIGHT:?} is {other}, no text"))),
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(ProblemKind::NoText);
    }
    if evidence.is_empty() {
        return Err(ProblemKind::EmptyCitation);
    }
    let indices = evidence.into_iter().map(|raw| index(raw.get()));
    Ok((text.to_owned(), indices.collect::<Result<_, _>>()?))
}

/// The index that a JSON value is.
fn index(value: &str) -> Result<u32, ProblemKind> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    match (whole, value.starts_with('-')) {
        (true, false) => citation::index(digits),
        (true, true) => Err(ProblemKind::NegativeIndex {
            found: value.to_owned(),
        }),
        (false, _) => Err(ProblemKind::NotAnIndex {
            found: value.to_owned(),
        }),
    }
}

/// What a piece of a reply, which is JSON, says.
fn decode<'r, T: Deserialize<'r>>(reply: &Reply<'_>, piece: &'r str) -> Result<T, String> {
    serde_json::from_str(piece).map_err(|error| message(reply, reply.offset_of(piece), &error))
}

/// An error in a piece of a reply that starts at an offset, with the line of the reply.
fn message(reply: &Reply<'_>, start: usize, error: &serde_json::Error) -> String {
    let text = error.to_string();
    let (what, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
    let line = reply.line_at(start) + error.line().max(1);
    format!("{what} in line {line}")
}

/// The fields of an object as they were written. A name that occurs twice is an error.
struct Fields<'r>(Vec<(String, &'r str)>);

impl<'r> Fields<'r> {
    fn get(&self, name: &str) -> Option<&'r str> {
        let mut fields = self.0.iter();
        fields.find(|(key, _)| key == name).map(|&(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut seen = HashSet::new();
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if !seen.insert(name.clone()) {
                        return Err(A::Error::custom(format!(
                            "{name:?} occurs twice in one object"
                        )));
                    }
                    fields.push((name, value.get()));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}
