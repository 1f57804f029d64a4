//! Memories by their keys, or else their ids.

use crate::failure::Failure;
use memorank::store::{ReadError, Snapshot};

/// The row of the memory with this key, or else this id.
pub fn row(snapshot: &Snapshot, key: &str) -> Result<usize, Failure> {
    find(snapshot, key)?.ok_or_else(|| {
        let told = match deleted(snapshot, key) {
            Some(id) => {
                format!("no memory has the key {key:?}, and the memory with id {id} was deleted")
            }
            None => format!("no memory has the key or id {key:?}"),
        };
        Failure::Error(told.into())
    })
}

/// The rows of the memories with these keys, or else ids: in their order, or as a set.
pub fn rows<C: FromIterator<usize>>(snapshot: &Snapshot, keys: &[String]) -> Result<C, Failure> {
    keys.iter().map(|key| row(snapshot, key)).collect()
}

/// The ids of the memories with these keys, or else ids.
pub fn ids(snapshot: &Snapshot, keys: &[String]) -> Result<Vec<u64>, Failure> {
    let rows: Vec<usize> = rows(snapshot, keys)?;
    Ok(rows.into_iter().map(|row| snapshot.id(row)).collect())
}

/// The id of the memory with this key, or else this id, also if it was deleted.
pub fn id(snapshot: &Snapshot, key: &str) -> Result<u64, Failure> {
    match (find(snapshot, key)?, deleted(snapshot, key)) {
        (None, Some(id)) => Ok(id),
        (Some(_), _) | (None, None) => row(snapshot, key).map(|row| snapshot.id(row)),
    }
}

/// What a memory is called: its key, or else its id.
pub fn name(snapshot: &Snapshot, id: u64) -> Result<String, ReadError> {
    let row = snapshot.row_of_id(id);
    let memory = row.map(|row| snapshot.memory(row)).transpose()?;
    let key = memory.and_then(|memory| memory.key);
    Ok(key.map_or_else(|| format!("id {id}"), str::to_owned))
}

/// The row of the memory with this key, or else this id, if there is one.
pub fn find(snapshot: &Snapshot, key: &str) -> Result<Option<usize>, ReadError> {
    let of_id = || snapshot.row_of_id(key.parse().ok()?);
    Ok(snapshot.row_of_key(key)?.or_else(of_id))
}

/// The id, if it is one that a memory had.
fn deleted(snapshot: &Snapshot, id: &str) -> Option<u64> {
    let id = id.parse().ok()?;
    let is_there = snapshot.row_of_id(id).is_some();
    (id < snapshot.next_id() && !is_there).then_some(id)
}
