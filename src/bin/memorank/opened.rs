//! Opening a store, and what several commands ask of one.

use crate::failure::Failure;
use crate::output::escaped;
use memorank::store::{Agent, Info, Snapshot, Store};
use std::io::{self, Write};
use std::path::Path;

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

/// The bytes of a store's columns.
pub fn bytes(info: &Info) -> u64 {
    info.files.iter().map(|file| file.bytes).sum()
}

/// The newest last access of all memories.
pub fn newest_access(snapshot: &Snapshot) -> Option<i64> {
    let segments = snapshot.segments(Agent::OWN);
    let accesses = segments.flat_map(|segment| segment.rows().zip(segment.last_access));
    let live = accesses.filter(|&(row, _)| snapshot.is_live(row));
    live.map(|(_, &at)| at).max()
}
