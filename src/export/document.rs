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

/// An agent's own importance of a memory.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Importance {
    pub(crate) agent: u32,
    pub(crate) id: u64,
    /// As an f64 that every reader of JSON takes exactly.
    pub(crate) importance: f64,
}

/// What the lists in it hold.
pub(super) struct Counts {
    pub(super) touches: u64,
    pub(super) importances: u64,
}

/// Writes it.
pub(super) fn write(
    snapshot: &Snapshot,
    embeddings: u64,
    memories: u64,
    out: &mut impl Write,
) -> io::Result<Counts> {
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
    let touches = snapshot.agents().flat_map(|agent| {
        let touched = snapshot.touched(agent);
        touched.map(move |(row, time)| Touch {
            agent: agent.0,
            id: snapshot.id(row),
            last_access: Moment(time),
        })
    });
    let touches = list(&mut out, "touches", touches)?;
    let importances = snapshot.own_importances();
    let importances = importances.map(|(agent, row, importance)| Importance {
        agent: agent.0,
        id: snapshot.id(row),
        importance: importance.into(),
    });
    let importances = list(&mut out, "importances", importances)?;
    let end = end(out.sum());
    out.write_all(end.as_bytes())?;
    Ok(Counts {
        touches,
        importances,
    })
}

/// Writes a list, an item a line, and gives how many there are.
fn list(
    out: &mut impl Write,
    name: &str,
    items: impl Iterator<Item = impl Serialize>,
) -> io::Result<u64> {
    write!(out, "  {name:?}: [")?;
    let mut count = 0;
    for item in items {
        write!(out, "{}\n    ", if count == 0 { "" } else { "," })?;
        serde_json::to_writer(&mut *out, &item)?;
        count += 1;
    }
    writeln!(out, "{}],", if count == 0 { "" } else { "\n  " })?;
    Ok(count)
}

/// Its last two lines.
pub(crate) fn end(sum: u64) -> String {
    format!("  \"xxh3\": \"{sum:016x}\"\n}}\n")
}
