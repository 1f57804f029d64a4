//! Memories by their keys, or else their ids.

use crate::failure::Failure;
use memorank::store::Snapshot;

/// The row of the memory with this key, or else this id.
pub fn row(snapshot: &Snapshot, key: &str) -> Result<usize, Failure> {
    if let Some(row) = snapshot.row_of_key(key)? {
        return Ok(row);
    }
    let id: Option<u64> = key.parse().ok();
    if let Some(row) = id.and_then(|id| snapshot.row_of_id(id)) {
        return Ok(row);
    }
    Err(Failure::Error(
        match id {
            Some(id) if id < snapshot.next_id() => {
                format!("no memory has the key {key:?}, and the memory with id {id} was deleted")
            }
            _ => format!("no memory has the key or id {key:?}"),
        }
        .into(),
    ))
}

/// The ids of the memories with these keys, or else ids.
pub fn ids(snapshot: &Snapshot, keys: &[String]) -> Result<Vec<u64>, Failure> {
    let rows = keys.iter().map(|key| row(snapshot, key));
    rows.map(|row| Ok(snapshot.id(row?))).collect()
}

/// As [`row`], but of a memory that was deleted, too.
pub fn id_once_given(snapshot: &Snapshot, key: &str) -> Result<u64, Failure> {
    let given = key.parse().ok().filter(|&id| id < snapshot.next_id());
    match (row(snapshot, key), given) {
        (Ok(row), _) => Ok(snapshot.id(row)),
        (Err(Failure::Error(_)), Some(id)) => Ok(id),
        (Err(failure), _) => Err(failure),
    }
}
