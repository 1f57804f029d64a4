//! Memories in mapped files: a store, made for one size and deleted with it.

use crate::machine::{available_memory, free_disk};
use memorank::kernel::{Dtype, Rows};
use memorank::scoring::Columns;
use memorank::store::{Agent, CreateOptions, Kind, NewMemory, Segment, Snapshot, Store};
use memorank_data_gen::{Block, Config, Memory, Stream};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Bytes of a row beside its embedding, in all columns.
const OTHER_BYTES: usize = 80;

/// A store on disk. The rows are those of data-gen, made and appended a block at a time: 1.2 us per row
/// of 384 elements and 4.5 us of 1536, less than it takes to write them, so that no cheaper generator is
/// needed. Texts are empty.
pub struct Data {
    folder: TempDir,
    stream: Stream,
}

impl Data {
    pub fn make(rows: usize, dim: usize, dtype: Dtype) -> Data {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stream = stream(rows, dim);
        let data = Data { folder, stream };
        let store = create(&data.path(), dim, dtype);
        let mut bulk = store.bulk().expect("no other writer");
        for block in data.stream.blocks() {
            for memory in block.memories() {
                bulk.push(&new_memory(&memory, ""))
                    .expect("generated memories are sound");
            }
        }
        bulk.commit().expect("the disk has room");
        store.close().expect("the disk has room");
        data
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub fn open(&self) -> Snapshot {
        let store = Store::open_read_only(self.path()).expect("the store was just made");
        store.snapshot()
    }

    pub fn open_to_write(&self) -> Store {
        Store::open(self.path()).expect("the store was just made")
    }

    pub fn query(&self, index: usize) -> Vec<f32> {
        self.stream.query(index as u64)
    }

    /// When the rows are looked at, in microseconds since the Unix epoch.
    pub fn now(&self) -> i64 {
        self.stream.now()
    }

    /// Takes the files out of the page cache, as far as the system likes. No store may have them mapped.
    pub fn drop_cache(&self) {
        for entry in std::fs::read_dir(self.path()).expect("the store is there") {
            let file = File::open(entry.expect("the store is there").path());
            let file = file.expect("the store's files can be read");
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                .expect("an advice on a regular file");
        }
    }
}

pub fn stream(memories: usize, dim: usize) -> Stream {
    Stream::new(Config {
        memories,
        dim,
        seed: 1,
    })
    .expect("the configuration is in range")
}

/// One block of memories, for work that uses the same ones again and again.
pub fn block(dim: usize) -> Block {
    stream(memorank_data_gen::BLOCK_ROWS, dim).block(0)
}

pub fn create(path: &Path, dim: usize, dtype: Dtype) -> Store {
    let options = CreateOptions {
        dim: dim.try_into().expect("not 0"),
        dtype,
        model: None,
    };
    Store::create(path, &options).expect("a new folder")
}

/// Without key and evidence: `memory` may be stored more than once.
pub fn new_memory<'a>(memory: &Memory<'a>, text: &'a str) -> NewMemory<'a> {
    NewMemory {
        key: None,
        kind: Kind::named(memory.kind.as_str()),
        text,
        embedding: Some(memory.embedding),
        created: memory.created,
        last_access: memory.last_access,
        expiry: None,
        importance: memory.importance,
        evidence: &[],
        depth: memory.depth,
        supersedes: None,
        payload: b"",
    }
}

/// Whether a store of this size fits on the disk and, read again and again, in memory. If not: why.
pub fn fits(rows: usize, dim: usize, dtype: Dtype) -> Result<(), String> {
    let bytes = (rows * (dim * dtype.size_bytes() + OTHER_BYTES)) as u64;
    // Files and scratch, and what others need meanwhile.
    let needed = bytes + (2 << 30);
    let (disk, memory) = (free_disk(&std::env::temp_dir()), available_memory());
    for (what, found) in [("disk", disk), ("memory", memory)] {
        if found < needed {
            let gb = |bytes: u64| bytes as f64 / 1e9;
            return Err(format!(
                "{rows} x {dim} {dtype} needs {:.1} GB of {what}, {:.1} are free",
                gb(needed),
                gb(found)
            ));
        }
    }
    Ok(())
}

/// The first rows of a store: all of them, if it was closed.
fn files(store: &Snapshot) -> Segment<'_> {
    let first = store.segments(Agent::OWN).next();
    first.expect("the store is not empty")
}

/// Some rows of a store's files as columns of their own.
pub fn columns(store: &Snapshot, rows: Range<usize>) -> Columns<'_> {
    let (files, dim) = (files(store), store.dim());
    let elements = rows.start * dim.get()..rows.end * dim.get();
    let embeddings = match files.embeddings {
        Rows::F32(all) => Rows::F32(&all[elements]),
        Rows::F16(all) => Rows::F16(&all[elements]),
    };
    Columns::new(
        dim,
        embeddings,
        &files.inv_norms[rows.clone()],
        &files.last_access[rows.clone()],
        &files.importance[rows],
    )
    .expect("equal lengths")
}

/// All embeddings of a store that was closed.
pub fn embeddings(store: &Snapshot) -> Rows<'_> {
    let files = files(store);
    assert_eq!(files.rows(), 0..store.rows(), "all in the files");
    files.embeddings
}

/// All embeddings of a store that was closed, as they lie in the file.
pub fn embedding_bytes(store: &Snapshot) -> &[u8] {
    match embeddings(store) {
        Rows::F32(elements) => bytemuck::cast_slice(elements),
        Rows::F16(elements) => bytemuck::cast_slice(elements),
    }
}
