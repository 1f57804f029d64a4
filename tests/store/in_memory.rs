//! Stores in a file system in memory.

use crate::example::{append, options, varied};
use memorank::kernel::Dtype;
use memorank::store::files::{Files, InMemory};
use memorank::store::{Agent, OpenError, OpenOptions, Store};
use std::path::Path;
use std::sync::Arc;

/// The directory of a store in a file system in memory.
pub const STORE: &str = "store";

/// A new store in a file system in memory.
pub fn new_in_memory(dim: usize, dtype: Dtype) -> (InMemory, Store) {
    let files = InMemory::new();
    let store = Store::create_on(Arc::new(files.clone()), STORE, &options(dim, dtype)).unwrap();
    (files, store)
}

/// As [`worn`], in memory.
pub fn worn_in_memory(rows: u64, dim: usize, dtype: Dtype) -> InMemory {
    let (files, store) = new_in_memory(dim, dtype);
    append(
        &store,
        &(0..rows).map(|i| varied(i, dim)).collect::<Vec<_>>(),
    );
    store.touch(Agent::OWN, &[rows - 1], 1_000_000).unwrap();
    assert_eq!(store.delete(&[rows - 2]).unwrap(), 1);
    store.close().unwrap();
    files
}

/// Opens the store for writing.
pub fn open(files: &InMemory) -> Result<Store, OpenError> {
    Store::open_on(Arc::new(files.clone()), STORE, &OpenOptions::default())
}

pub fn open_read_only(files: &InMemory) -> Result<Store, OpenError> {
    let options = OpenOptions {
        read_only: true,
        verify: true,
        ..OpenOptions::default()
    };
    Store::open_on(Arc::new(files.clone()), STORE, &options)
}

/// Flips a bit of a file in place.
pub fn flip_in(files: &InMemory, path: &Path, bit: usize) {
    let file = files.open_to_write(path).unwrap();
    let (at, mut byte) = (bit as u64 / 8, [0]);
    assert_eq!(file.read_at(at, &mut byte).unwrap(), 1);
    byte[0] ^= 1 << (bit % 8);
    assert_eq!(file.write_at(at, &byte).unwrap(), 1);
}
