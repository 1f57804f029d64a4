//! One JSON object per memory and line, in the order of the rows.
//!
//! Times are RFC 3339 in UTC with microseconds. `evidence`, a list of keys, and `depth` are left
//! out where there is none.

use anyhow::Result;
use memorank_data_gen::{Block, key};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::StaticFormatDescription;
use time::macros::format_description;

const RFC_3339: StaticFormatDescription =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

#[derive(Serialize)]
struct Line {
    key: String,
    kind: &'static str,
    text: String,
    created: String,
    last_access: String,
    importance: u8,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    depth: u32,
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

/// The lines of a block.
pub fn encode(block: &Block) -> Result<Vec<u8>> {
    let mut lines = Vec::with_capacity(block.len() * 256);
    for memory in block.memories() {
        let line = Line {
            key: memory.key(),
            kind: memory.kind.as_str(),
            text: memory.text(),
            created: date(memory.created)?,
            last_access: date(memory.last_access)?,
            importance: memory.importance as u8,
            evidence: memory.evidence.iter().map(|&row| key(row)).collect(),
            depth: memory.depth,
        };
        serde_json::to_writer(&mut lines, &line)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Microseconds since the Unix epoch as a date.
pub fn date(micros: i64) -> Result<String> {
    Ok(OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000)?.format(RFC_3339)?)
}
