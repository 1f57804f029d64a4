//! `store.json`: what is not of one memory, the checksums of the other files and of itself.

use super::{EMBEDDINGS, MEMORIES, Moment, Summed};
use crate::store::Snapshot;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The file's name.
pub(crate) const STORE: &str = "store.json";

pub(crate) const FORMAT: &str = "memorank export";
pub(crate) const VERSION: u64 = 1;

/// An agent's last access of a memory.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Touch {
    pub(crate) agent: u32,
    pub(crate) id: u64,
    pub(crate) last_access: Moment,
}

/// Writes it, and gives the number of touches.
pub(super) fn write(
    snapshot: &Snapshot,
    embeddings: u64,
    memories: u64,
    out: &mut impl Write,
) -> io::Result<u64> {
    let mut out = Summed::new(out);
    fn field(out: &mut impl Write, name: &str, value: &impl Serialize) -> io::Result<()> {
        write!(out, "  {name:?}: ")?;
        serde_json::to_writer(&mut *out, value)?;
        writeln!(out, ",")
    }
    writeln!(out, "{{")?;
    field(&mut out, "format", &FORMAT)?;
    field(&mut out, "version", &VERSION)?;
    field(&mut out, "dim", &snapshot.dim().get())?;
    field(&mut out, "dtype", &snapshot.dtype().name())?;
    field(&mut out, "model", &snapshot.model())?;
    field(&mut out, "next_id", &snapshot.next_id())?;
    field(&mut out, "memories", &snapshot.len())?;
    let kinds: Vec<&str> = snapshot.kinds().iter().map(|kind| kind.as_str()).collect();
    field(&mut out, "kinds", &kinds)?;
    writeln!(out, "  \"files\": {{")?;
    writeln!(out, "    {EMBEDDINGS:?}: \"{embeddings:016x}\",")?;
    writeln!(out, "    {MEMORIES:?}: \"{memories:016x}\"")?;
    writeln!(out, "  }},")?;
    write!(out, "  \"touches\": [")?;
    let mut touches = 0;
    for agent in snapshot.agents() {
        for (row, time) in snapshot.touched(agent) {
            let touch = Touch {
                agent: agent.0,
                id: snapshot.id(row),
                last_access: Moment(time),
            };
            write!(out, "{}\n    ", if touches == 0 { "" } else { "," })?;
            serde_json::to_writer(&mut out, &touch)?;
            touches += 1;
        }
    }
    writeln!(out, "{}],", if touches == 0 { "" } else { "\n  " })?;
    let end = end(out.sum());
    out.write_all(end.as_bytes())?;
    Ok(touches)
}

/// Its last two lines.
pub(crate) fn end(sum: u64) -> String {
    format!("  \"xxh3\": \"{sum:016x}\"\n}}\n")
}
