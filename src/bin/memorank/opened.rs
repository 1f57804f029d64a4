//! Opening a store, and what several commands ask of one.

use crate::failure::Failure;
use crate::output::escaped;
use memorank::store::{Agent, Info, Snapshot, Store};
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// A store to read.
pub fn to_read(path: &Path) -> Result<Store, Failure> {
    Ok(noted(Store::open_read_only(path)?))
}

/// A store to write to.
pub fn to_write(path: &Path) -> Result<Store, Failure> {
    Ok(noted(Store::open(path)?))
}

/// Says what was left out of the journal. It is no damage, and the command goes on.
fn noted(store: Store) -> Store {
    for dropped in &store.recovery().dropped {
        // Whoever does not hear it gets the same answer.
        let note = escaped(&dropped.to_string());
        let _ = writeln!(io::stderr(), "memorank: note: {note}");
    }
    store
}

/// The moment it is. (The library reads no clock.)
pub fn clock() -> Result<i64, Failure> {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let us = since_1970
        .ok()
        .and_then(|d| i64::try_from(d.as_micros()).ok());
    us.ok_or_else(|| Failure::Error("the system's clock is wrong: give the time".into()))
}

/// The store's embeddings are by the model that was asked for, if one was and the store names its own.
pub fn check_model(snapshot: &Snapshot, asked: Option<&str>) -> Result<(), Failure> {
    match (asked, snapshot.model()) {
        (Some(asked), Some(stored)) if asked != stored => Err(Failure::Error(
            format!("the store's embeddings are by {stored:?}, these by {asked:?}").into(),
        )),
        _ => Ok(()),
    }
}

/// The importance that the memory in a row has for an agent. It was checked when it was stored: what is not finite
/// now is damage.
pub fn importance(snapshot: &Snapshot, agent: Agent, row: usize) -> Result<f32, Failure> {
    let importance = snapshot.importance_of(agent, row);
    match importance.is_finite() {
        true => Ok(importance),
        false => Err(Failure::damaged(format!(
            "the store is damaged: memory {} has importance {importance}",
            snapshot.id(row)
        ))),
    }
}

/// The bytes of a store's columns.
pub fn bytes(info: &Info) -> u64 {
    info.files.iter().map(|file| file.bytes).sum()
}

/// An agent's newest last access of all memories.
pub fn newest_access(snapshot: &Snapshot, agent: Agent) -> Option<i64> {
    let segments = snapshot.segments(agent);
    let accesses = segments.flat_map(|segment| segment.rows().zip(segment.last_access));
    let live = accesses.filter(|&(row, _)| snapshot.is_live(row));
    live.map(|(_, &at)| at).max()
}
