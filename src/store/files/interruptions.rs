//! The loops over short and interrupted calls, and a store whose files have many of them, or are not on
//! the disk.

use super::contract::{fails, list, put};
use super::*;
use crate::kernel::Dtype;
use crate::store::{
    Agent, CreateError, CreateOptions, Kind, NewMemory, OpenError, OpenOptions, Store, verify_on,
};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Interrupts every second call and moves few bytes in the others.
#[derive(Debug)]
struct Fitful<F> {
    inner: F,
    calls: AtomicUsize,
    most_bytes: usize,
}

impl<F> Fitful<F> {
    fn new(inner: F, most_bytes: usize) -> Fitful<F> {
        let calls = AtomicUsize::new(0);
        Fitful {
            inner,
            calls,
            most_bytes,
        }
    }

    /// How many of `bytes` bytes are moved in this call.
    fn moved(&self, bytes: usize) -> io::Result<usize> {
        match self.calls.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Err(ErrorKind::Interrupted.into()),
            _ => Ok(bytes.min(self.most_bytes)),
        }
    }
}

impl File for Fitful<Box<dyn File>> {
    fn bytes(&self) -> io::Result<u64> {
        self.inner.bytes()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let moved = self.moved(buffer.len())?;
        self.inner.read_at(offset, &mut buffer[..moved])
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let moved = self.moved(bytes.len())?;
        self.inner.write_at(offset, &bytes[..moved])
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.inner.set_len(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

impl<F: Files> Fitful<F> {
    fn wrap(&self, file: Box<dyn File>) -> Box<dyn File> {
        Box::new(Fitful::new(file, self.most_bytes))
    }
}

impl<F: Files> Files for Fitful<F> {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.inner.open(path).map(|file| self.wrap(file))
    }
    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.inner.open_to_write(path).map(|file| self.wrap(file))
    }
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.inner.create_new(path).map(|file| self.wrap(file))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_file(path)
    }
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir_all(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.inner.list(dir)
    }
    fn what(&self, path: &Path) -> io::Result<What> {
        self.inner.what(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        self.inner.lock(path)
    }
}

#[test]
fn the_loops_go_on_after_short_and_interrupted_calls() {
    let bytes: Vec<u8> = (0..100).collect();
    for most_bytes in [1, 7, 99, 100, 1000] {
        let file = InMemory::new().create_new(Path::new("a")).unwrap();
        let file = Fitful::new(file, most_bytes);
        write_all_at(&file, 3, &bytes).unwrap();
        let mut read = vec![0; 100];
        read_exact_at(&file, 3, &mut read).unwrap();
        assert_eq!(read, bytes);
        assert_eq!(Bytes::read(&file, 103).unwrap().as_slice()[3..], bytes);
        assert_eq!(file.map(5).unwrap().as_slice(), [0, 0, 0, 0, 1]);
        let past = read_exact_at(&file, 4, &mut read);
        fails(past, ErrorKind::UnexpectedEof);
        read_exact_at(&file, 999, &mut []).unwrap();
        write_all_at(&file, 999, &[]).unwrap();
        assert_eq!(file.bytes().unwrap(), 103);
    }
    // One that takes no byte at all does not hold the writer for ever, and other errors end a loop.
    let file = InMemory::new().create_new(Path::new("a")).unwrap();
    let file = Fitful::new(file, 0);
    fails(write_all_at(&file, 0, b"a"), ErrorKind::WriteZero);
    let files = InMemory::new();
    put(&files, Path::new("a"), b"a");
    let read_only = files.open(Path::new("a")).unwrap();
    let written = write_all_at(&*read_only, 0, b"b");
    fails(written, ErrorKind::PermissionDenied);
}

fn last_access(store: &Store) -> Vec<i64> {
    let state = store.snapshot();
    let rows = 0..state.rows();
    rows.map(|row| state.last_access(Agent::OWN, row)).collect()
}

/// A store in the directory `root`, from its creation to its last reader.
fn lives(files: Arc<dyn Files>, root: &Path) {
    let path = root.join("store");
    let large = vec![7; 3 << 19];
    let memory = |key, payload| NewMemory {
        key: Some(key),
        kind: Kind::OBSERVATION,
        text: "the coffee is ready",
        embedding: Some(&[0.6, 0.8]),
        created: 1,
        last_access: 1,
        expiry: None,
        importance: 3.0,
        evidence: &[],
        depth: 0,
        supersedes: None,
        payload,
    };
    let open = |read_only, in_memory| {
        let options = OpenOptions {
            read_only,
            in_memory,
            verify: true,
            ..OpenOptions::default()
        };
        Store::open_on(files.clone(), &path, &options)
    };
    assert!(matches!(open(true, false), Err(OpenError::Missing { .. })));
    files.create_dir(&path).unwrap();
    assert!(matches!(
        open(false, false),
        Err(OpenError::NotAStore { .. })
    ));

    // Onto the empty directory.
    let options = CreateOptions {
        dim: 2.try_into().unwrap(),
        dtype: Dtype::F32,
        model: None,
    };
    let store = Store::create_on(files.clone(), &path, &options).unwrap();
    let again = Store::create_on(files.clone(), &path, &options);
    assert!(matches!(again, Err(CreateError::Exists { .. })));
    assert!(matches!(open(false, false), Err(OpenError::Locked { .. })));
    let first = [memory("a", b"".as_slice()), memory("b", &large)];
    assert_eq!(store.append(&first).unwrap(), 0..2);
    let old = open(true, false).unwrap();
    store.touch(Agent::OWN, &[1], 5).unwrap();
    store.sync().unwrap();
    store.touch(Agent::OWN, &[1, 0], 9).unwrap();
    store.close().unwrap();
    // Some of its files are gone, and it still has what it saw.
    assert_eq!(last_access(&old), [1, 1]);

    let store = open(false, true).unwrap();
    assert_eq!(last_access(&store), [9, 9]);
    assert_eq!(store.append(&[memory("c", b"c")]).unwrap(), 2..3);
    assert!(store.append(&[memory("b", b"")]).is_err());
    let mut bulk = store.bulk().unwrap();
    bulk.push(&memory("d", &large)).unwrap();
    assert!(bulk.push(&memory("d", b"")).is_err());
    drop(bulk);
    drop(store);

    for in_memory in [false, true] {
        let store = open(true, in_memory).unwrap();
        assert_eq!(last_access(&store), [9, 9, 1]);
        let store = store.snapshot();
        assert_eq!(store.memory(1).unwrap().payload, large);
        assert_eq!(store.row_of_key("c").unwrap(), Some(2));
        assert_eq!(store.embedding(2), Some(vec![0.6, 0.8]));
    }
    let old = old.snapshot();
    assert_eq!(old.memory(1).unwrap().payload, large);
    let report = verify_on(&*files, &path).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.rows, report.uncommitted_bytes), (3, 0));
    // Nothing beside the store, and nothing in it but its columns, its manifest, its lock and a segment of
    // its journal.
    assert_eq!(list(&*files, root), ["store"]);
    assert_eq!(list(&*files, &path).len(), report.files + 3);

    // What was appended and not committed is cut by the next writer, and reported before.
    let column = path.join("text.bytes");
    let file = files.open_to_write(&column).unwrap();
    let committed = file.bytes().unwrap();
    write_all_at(&*file, committed, b"garbage").unwrap();
    let report = verify_on(&*files, &path).unwrap();
    assert_eq!((report.is_sound(), report.uncommitted_bytes), (true, 7));
    drop(open(false, false).unwrap());
    assert_eq!(file.bytes().unwrap(), committed + 7);
    let store = open(false, false).unwrap();
    store.touch(Agent::OWN, &[0], 10).unwrap();
    drop(store);
    assert_eq!(file.bytes().unwrap(), committed);
    // Damage is found, and a lost lock.
    let store = open(false, false).unwrap();
    files.remove_file(&path.join("lock")).unwrap();
    assert!(store.append(&[memory("e", b"")]).is_err());
    drop((store, old));
    write_all_at(&*file, 0, b"T").unwrap();
    assert!(matches!(open(true, false), Err(OpenError::Damaged { .. })));
}

#[test]
fn a_store_lives_in_memory() {
    let files = InMemory::new();
    lives(Arc::new(files.clone()), Path::new("/"));
    lives(Arc::new(InMemory::new()), Path::new(""));
    // All that is left is the store: every handle gave back what it held.
    assert_eq!(list(&files, Path::new("")), ["store"]);
}

#[test]
fn a_store_lives_on_files_that_are_interrupted() {
    lives(Arc::new(Fitful::new(InMemory::new(), 4097)), Path::new("/"));
    let dir = tempfile::tempdir().unwrap();
    lives(Arc::new(Fitful::new(Disk, 4097)), dir.path());
}

#[test]
fn a_store_lives_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    lives(Arc::new(Disk), dir.path());
}
