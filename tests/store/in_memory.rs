//! Stores in a file system in memory.

use crate::example::{all_varied, append, options, wear};
use memorank::kernel::Dtype;
use memorank::store::files::{Files, InMemory};
use memorank::store::{OpenError, OpenOptions, Snapshot, Store};
use std::path::{Path, PathBuf};
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
    append(&store, &all_varied(rows, dim));
    store.checkpoint().unwrap();
    wear(&store);
    store.close().unwrap();
    files
}

/// Opens the store for writing.
pub fn open(files: &InMemory) -> Result<Store, OpenError> {
    Store::open_on(Arc::new(files.clone()), STORE, &OpenOptions::default())
}

/// Opens the store for reading, and checks all of it.
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

/// The store as a reader finds it.
pub fn read(files: &InMemory) -> Snapshot {
    open_read_only(files).unwrap().snapshot()
}

/// A file of the store.
pub fn path(name: &str) -> PathBuf {
    Path::new(STORE).join(name)
}

/// The names of the store's files, in order.
pub fn names(files: &InMemory) -> Vec<String> {
    let names = files.list(Path::new(STORE)).unwrap().into_iter();
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// The one file of the store whose name starts so.
pub fn only(files: &InMemory, prefix: &str) -> String {
    let mut found = names(files);
    found.retain(|name| name.starts_with(prefix));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// All bytes of a file of the store.
pub fn get(files: &InMemory, name: &str) -> Vec<u8> {
    let file = files.open(&path(name)).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// Gives a file of the store these bytes.
pub fn put(files: &InMemory, name: &str, bytes: &[u8]) {
    let created = files.create_new(&path(name));
    let file = created.unwrap_or_else(|_| files.open_to_write(&path(name)).unwrap());
    file.set_len(0).unwrap();
    assert_eq!(file.write_at(0, bytes).unwrap(), bytes.len());
}

/// The files of the store in a file system of their own: what a process that was killed now would leave.
pub fn killed(files: &InMemory) -> InMemory {
    let copy = InMemory::new();
    copy.create_dir(Path::new(STORE)).unwrap();
    for name in names(files) {
        put(&copy, &name, &get(files, &name));
    }
    copy
}
