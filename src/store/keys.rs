//! Rows by key. Only hashes and rows are kept in memory; a hit is checked against the bytes of its key.

use super::column::Columns;
use super::damage::Damage;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Rows by the hash of their key. Keys with one hash take the slots after it, so a search ends at the
/// first free slot. (That is why no row can be taken out: a deleted row stays until a row with its key
/// takes its slot, and whoever searches asks whether what was found is live.)
#[derive(Clone, Default)]
pub(super) struct KeyIndex {
    hasher: RandomState,
    rows: HashMap<u64, u32>,
}

/// Where a key is, or where it would go.
pub(super) enum Found {
    Row(u32),
    Free(u64),
}

impl KeyIndex {
    /// The hash under which `key` is looked for.
    pub(super) fn hash(&self, key: &str) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Searches for `key`; `has_key` says whether a row has it.
    pub(super) fn find<E>(
        &self,
        key: &str,
        has_key: impl FnMut(u32) -> Result<bool, E>,
    ) -> Result<Found, E> {
        let (slot, row) = self.slot_of(self.hash(key), has_key)?;
        Ok(row.map_or(Found::Free(slot), Found::Row))
    }

    /// The slot of the key with this hash, and the row in it if it is taken.
    pub(super) fn slot_of<E>(
        &self,
        hash: u64,
        mut has_key: impl FnMut(u32) -> Result<bool, E>,
    ) -> Result<(u64, Option<u32>), E> {
        let mut slot = hash;
        while let Some(&row) = self.rows.get(&slot) {
            if has_key(row)? {
                return Ok((slot, Some(row)));
            }
            slot = slot.wrapping_add(1);
        }
        Ok((slot, None))
    }

    /// Puts a row into the slot that a search for its key gave.
    pub(super) fn insert(&mut self, slot: u64, row: u32) {
        self.rows.insert(slot, row);
    }

    pub(super) fn find_in(&self, columns: &Columns, key: &str) -> Result<Found, Damage> {
        self.find(key, |row| columns.has_key(row as usize, key))
    }

    /// Takes in the keys of the live rows from `first` on. Of two live rows with one key the first is
    /// kept.
    pub(super) fn extend(
        &mut self,
        columns: &Columns,
        first: usize,
        is_live: impl Fn(usize) -> bool,
    ) -> Result<(), Damage> {
        for row in (first..columns.rows).filter(|&row| is_live(row)) {
            let Some(key) = columns.key(row)? else {
                continue;
            };
            let hash = self.hash(key);
            let (slot, taken) = self.slot_of(hash, |row| columns.has_key(row as usize, key))?;
            if taken.is_none_or(|earlier| !is_live(earlier as usize)) {
                self.insert(slot, row as u32);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_one_hash_are_told_apart_by_their_bytes() {
        let mut index = KeyIndex::default();
        let keys = ["a", "b", "c"];
        let start = index.hasher.hash_one("a");
        // "b" where "a" belongs: as if their hashes were equal.
        index.insert(start, 1);
        let has = |key: &'static str| move |row: u32| Ok::<bool, ()>(keys[row as usize] == key);
        let Ok(Found::Free(slot)) = index.find("a", has("a")) else {
            panic!("found what was never inserted");
        };
        assert_eq!(slot, start.wrapping_add(1));
        index.insert(slot, 0);
        assert!(matches!(index.find("a", has("a")), Ok(Found::Row(0))));
        assert!(matches!(index.find("c", has("c")), Ok(Found::Free(_))));
    }
}
