//! The file of memories: one JSON object a line.

use super::{ExportError, Moment, Out};
use crate::store::{Memory, Reference, Snapshot};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

/// The longest line, its end included: 1 GiB. So a reader knows when to stop.
pub(crate) const LINE_MAX: u64 = 1 << 30;

#[derive(Serialize)]
struct Line<'a> {
    id: u64,
    key: Option<&'a str>,
    kind: &'a str,
    text: &'a str,
    created: Moment,
    last_access: Moment,
    expiry: Option<Moment>,
    /// As an f64 that every reader of JSON takes exactly.
    importance: f64,
    depth: u32,
    evidence: Vec<Cited<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<u64>,
    has_embedding: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_hex: Option<String>,
}

/// A reference in a list of evidence.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cited<'a> {
    Id(u64),
    Missing(Missing<'a>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Missing<'a> {
    missing: Cow<'a, str>,
}

impl<'a> From<&'a Reference> for Cited<'a> {
    fn from(reference: &'a Reference) -> Cited<'a> {
        match reference {
            &Reference::Id(id) => Cited::Id(id),
            Reference::Missing(text) => Cited::Missing(Missing {
                missing: text.into(),
            }),
        }
    }
}

impl From<Cited<'_>> for Reference {
    fn from(cited: Cited<'_>) -> Reference {
        match cited {
            Cited::Id(id) => Reference::Id(id),
            Cited::Missing(Missing { missing }) => Reference::Missing(missing.into_owned()),
        }
    }
}

impl<'a> Line<'a> {
    fn new(memory: &'a Memory<'_>, last_access: i64, importance: f32) -> Line<'a> {
        let payload = plain(memory.payload);
        let hex = payload.is_none() && !memory.payload.is_empty();
        Line {
            id: memory.id,
            key: memory.key,
            kind: memory.kind.as_str(),
            text: memory.text,
            created: Moment(memory.created),
            last_access: Moment(last_access),
            expiry: memory.expiry.map(Moment),
            importance: importance.into(),
            depth: memory.depth,
            evidence: memory.evidence.iter().map(Cited::from).collect(),
            superseded_by: memory.superseded_by,
            has_embedding: memory.has_embedding,
            payload,
            payload_hex: hex.then(|| hexadecimal(memory.payload)),
        }
    }
}

/// A payload that can stand in a line as it is, and that every reader takes.
fn plain(payload: &[u8]) -> Option<&RawValue> {
    let at_ends = [payload.first()?, payload.last()?];
    let spaced = at_ends.contains(&&b' ') || payload.iter().any(u8::is_ascii_control);
    // For many readers null is no value.
    if spaced || payload == b"null" {
        return None;
    }
    // It understands everything; what is raw is only looked through.
    serde_json::from_slice::<Value>(payload).ok()?;
    serde_json::from_slice(payload).ok()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("text can be written to");
    }
    text
}

/// Writes a line for each memory, and gives the number of those with a vector.
pub(super) fn write_all(
    snapshot: &Snapshot,
    path: &Path,
    out: &mut Out,
) -> Result<u64, ExportError> {
    let (mut line, mut with_vector) = (Vec::new(), 0);
    for row in (0..snapshot.rows()).filter(|&row| snapshot.is_live(row)) {
        let memory = snapshot.memory(row)?;
        let (id, value) = (memory.id, snapshot.importance(row));
        if !value.is_finite() {
            return Err(ExportError::Importance { id, value });
        }
        line.clear();
        serde_json::to_writer(
            &mut line,
            &Line::new(&memory, snapshot.last_access_at_append(row), value),
        )
        .expect("finite numbers, strings and string keys only");
        line.push(b'\n');
        let bytes = line.len() as u64;
        if bytes > LINE_MAX {
            return Err(ExportError::TooLong { id, bytes });
        }
        (out.write_all(&line)).map_err(ExportError::io("writing", path))?;
        with_vector += u64::from(memory.has_embedding);
    }
    Ok(with_vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_plain_if_every_reader_takes_it_as_it_is() {
        let deep = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
        for payload in [
            &b"0"[..],
            b"\"\"",
            b"{\"b\": [1.50, -0], \"a\": \"\\ud83d\\ude00\", \"a\": null}",
            "\"\u{2028}\u{85}☕\"".as_bytes(),
            b"123456789012345678901234567890",
            &deep(127),
        ] {
            let shown = String::from_utf8_lossy(payload);
            let raw = plain(payload).unwrap_or_else(|| panic!("{shown}"));
            assert_eq!(raw.get().as_bytes(), payload, "{shown}");
        }
        for payload in [
            &b""[..],
            b"null",
            b" 1",
            b"1 ",
            b"1\n",
            b"[1,\n2]",
            b"[1,\r2]",
            b"[1,\t2]",
            b"\"\x7f\"",
            b"1 2",
            b"{",
            b"nan",
            b"1e400",
            b"\"\\ud83d\"",
            b"\"\\ude00\\ud83d\"",
            b"\"\xff\"",
            b"\xff",
            b"\xef\xbb\xbf1",
            &deep(128),
        ] {
            assert!(
                plain(payload).is_none(),
                "{}",
                String::from_utf8_lossy(payload)
            );
        }
    }

    #[test]
    fn bytes_are_two_digits_each() {
        assert_eq!(hexadecimal(&[0, 0x9f, 0xff]), "009fff");
    }
}
