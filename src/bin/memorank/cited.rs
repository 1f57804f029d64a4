//! A memory as evidence is printed: who it is, in a line or in a document.

use crate::output::{one_line, short_key};
use memorank::store::{ReadError, Snapshot};
use serde::Serialize;

/// A memory that cites or is cited.
#[derive(Serialize)]
pub struct Cited<'a> {
    pub id: u64,
    key: Option<&'a str>,
    kind: &'a str,
    depth: u32,
    text: &'a str,
    superseded_by: Option<u64>,
}

impl<'a> Cited<'a> {
    pub fn new(snapshot: &'a Snapshot, row: usize) -> Result<Cited<'a>, ReadError> {
        let memory = snapshot.memory(row)?;
        Ok(Cited {
            id: memory.id,
            key: memory.key,
            kind: memory.kind.as_str(),
            depth: memory.depth,
            text: memory.text,
            superseded_by: memory.superseded_by,
        })
    }

    /// `node_7 (id 6)  reflection, depth 1  Klaus is diligent`
    pub fn line(&self) -> String {
        let Cited {
            id,
            key,
            kind,
            depth,
            text,
            superseded_by,
        } = *self;
        let (key, kind, text) = (short_key(key), one_line(kind, 16), one_line(text, 60));
        let corrected = match superseded_by {
            Some(by) => format!("  corrected by id {by}"),
            None => String::new(),
        };
        format!("{key} (id {id})  {kind}, depth {depth}  {text}{corrected}")
    }
}
