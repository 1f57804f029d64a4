//! Memories to store, and stores to try things on.

#[path = "../common/owned.rs"]
mod owned;

pub use owned::Owned;

use memorank::kernel::{Dtype, f16};
use memorank::store::{Agent, CreateOptions, Kind, Reference, Snapshot, Store};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The plainest memory with this embedding.
pub fn plain(embedding: &[f32]) -> Owned {
    Owned {
        key: None,
        kind: Kind::OBSERVATION,
        text: "plain".into(),
        embedding: Some(embedding.to_vec()),
        created: 5,
        last_access: 5,
        expiry: None,
        importance: 1.0,
        evidence: vec![],
        depth: 0,
        supersedes: None,
        payload: vec![],
    }
}

/// A memory in which every field depends on `i`, every third without a vector.
pub fn varied(i: u64, dim: usize) -> Owned {
    let element = |j: usize| ((i as usize * 31 + j * 7) % 23) as f32 / 16.0 - 0.6;
    let vector = || (0..dim).map(element).collect();
    let kinds = [
        Kind::OBSERVATION,
        Kind::REFLECTION,
        Kind::CHAT,
        Kind::PLAN,
        Kind::named("schedule"),
    ];
    let text = ["", "Klaus paints", "コーヒー ☕", "a\0b\nc"][i as usize % 4];
    Owned {
        key: i.is_multiple_of(2).then(|| format!("node_{i}")),
        kind: kinds[i as usize % 5].clone(),
        text: format!("{text}{}", "x".repeat(i as usize % 7)),
        embedding: (i % 3 != 1).then(vector),
        created: i as i64 * 1_000 - 5_000,
        last_access: i as i64 * 2_000 - 9_000,
        expiry: i.is_multiple_of(4).then_some(i as i64 - 2),
        importance: i as f32 * 0.5 - 3.0,
        evidence: match i % 3 {
            2 => vec![
                Reference::Id(i - 1),
                Reference::Missing("gone".into()),
                Reference::Id(i - 2),
            ],
            _ => vec![],
        },
        depth: i as u32 % 3,
        supersedes: None,
        payload: (0..i % 5).map(|b| (b * 101 + i) as u8).collect(),
    }
}

pub fn options(dim: usize, dtype: Dtype) -> CreateOptions {
    CreateOptions {
        dim: dim.try_into().unwrap(),
        dtype,
        model: Some("a model".into()),
    }
}

/// A new store in a directory that goes with the first part.
pub fn new_store(dim: usize, dtype: Dtype) -> (tempfile::TempDir, PathBuf, Store) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, &options(dim, dtype)).unwrap();
    (dir, path, store)
}

/// Varied memories, the sixth of which corrects the fourth.
pub fn all_varied(rows: u64, dim: usize) -> Vec<Owned> {
    let corrects = |i| (i == 5).then_some(3);
    let each = (0..rows).map(|i| Owned {
        supersedes: corrects(i),
        ..varied(i, dim)
    });
    each.collect()
}

/// A closed store of `rows` varied memories.
pub fn filled(rows: u64, dim: usize, dtype: Dtype) -> (tempfile::TempDir, PathBuf) {
    let (dir, path, store) = new_store(dim, dtype);
    append(&store, &all_varied(rows, dim));
    store.close().unwrap();
    (dir, path)
}

/// A closed store of `rows` varied memories, to which everything was done that a column tells: none is empty.
pub fn worn(rows: u64, dim: usize, dtype: Dtype) -> (tempfile::TempDir, PathBuf) {
    let (dir, path) = filled(rows, dim, dtype);
    let store = Store::open(&path).unwrap();
    wear(&store);
    store.close().unwrap();
    (dir, path)
}

/// Touches, deletes, embeds and rates a memory each, of six or more varied ones that are in the columns.
pub fn wear(store: &Store) {
    let (rows, dim) = (store.snapshot().next_id(), store.snapshot().dim().get());
    store.touch(Agent::OWN, &[rows - 1], 1_000_000).unwrap();
    assert_eq!(store.delete(&[rows - 2]).unwrap(), 1);
    assert_eq!(store.embed(&[(1, &vec![0.75; dim])]).unwrap(), 1);
    assert_eq!(store.set_importance(OTHER, &[2], Some(8.5)).unwrap(), 1);
}

pub fn append(store: &Store, memories: &[Owned]) -> std::ops::Range<u64> {
    let memories: Vec<_> = memories.iter().map(Owned::borrowed).collect();
    store.append(&memories).unwrap()
}

/// The own agent's last access of each row.
pub fn last_access(snapshot: &Snapshot) -> Vec<i64> {
    let rows = 0..snapshot.rows();
    rows.map(|row| snapshot.last_access(Agent::OWN, row))
        .collect()
}

/// Row `row` reads back as `expected`, bit for bit.
pub fn assert_row(snapshot: &Snapshot, row: usize, id: u64, expected: &Owned) {
    let memory = snapshot.memory(row).unwrap();
    assert_eq!(memory.id, id);
    assert_eq!(memory.key, expected.key.as_deref());
    assert_eq!(memory.kind, &expected.kind);
    assert_eq!(memory.text, expected.text);
    assert_eq!(memory.created, expected.created);
    assert_eq!(memory.last_access, expected.last_access);
    assert_eq!(memory.expiry, expected.expiry);
    assert_eq!(
        memory.importance.to_bits(),
        (expected.importance + 0.0).to_bits()
    );
    assert_eq!(memory.evidence, expected.evidence);
    assert_eq!(memory.depth, expected.depth);
    assert_eq!(memory.payload, expected.payload);
    assert_eq!(memory.has_embedding, expected.embedding.is_some());
    let stored = expected
        .embedding
        .as_ref()
        .map(|embedding| match snapshot.dtype() {
            Dtype::F32 => embedding.clone(),
            Dtype::F16 => embedding
                .iter()
                .map(|&x| f16::from_f32(x).to_f32())
                .collect(),
        });
    assert_eq!(snapshot.embedding(row), stored);
}

/// An agent beside the store's own.
pub const OTHER: Agent = Agent(7);

/// All that a store's memories are, in order, wherever their rows and bytes lie.
pub fn contents(snapshot: &Snapshot) -> String {
    let mut text = format!("next id {}\n", snapshot.next_id());
    for row in (0..snapshot.rows()).filter(|&row| snapshot.is_live(row)) {
        let memory = snapshot.memory(row).unwrap();
        let (vector, other) = (snapshot.embedding(row), snapshot.last_access(OTHER, row));
        let importance = snapshot.importance_of(OTHER, row);
        text += &format!("{memory:?} {vector:?} {other} {importance}\n");
    }
    text
}

/// All files of a directory.
pub fn bytes_of(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(|e| e.unwrap());
    let read = |e: std::fs::DirEntry| {
        let name = e.file_name().into_string().unwrap();
        (name, fs::read(e.path()).unwrap())
    };
    entries.map(read).collect()
}

/// All files of a store but its manifest and its journal, which every writer writes anew.
pub fn columns_of(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = bytes_of(path);
    files.retain(|name, _| name != "manifest" && !name.starts_with("journal."));
    files
}

/// Copies a store's files to a new directory: what is there is what a killed process would leave.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for (name, bytes) in bytes_of(from) {
        fs::write(to.join(name), bytes).unwrap();
    }
}

/// Flips a bit of a file in place.
pub fn flip(path: &Path, bit: usize) {
    let mut file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(bit as u64 / 8)).unwrap();
    file.read_exact(&mut byte).unwrap();
    byte[0] ^= 1 << (bit % 8);
    file.seek(SeekFrom::Start(bit as u64 / 8)).unwrap();
    file.write_all(&byte).unwrap();
}

/// A seeded generator, good enough to choose bytes to damage.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }
}
