//! Repairs while a disk cannot give some bytes, or somebody writes.

use super::stored::{AGENTS, NEW, OLD, Stored, options, push, read, with_memory};
use memorank::kernel::Dtype;
use memorank::store::files::{File, FileLock, Files, InMemory, What};
use memorank::store::{
    OpenError, OpenOptions, Problem, RepairError, RepairOptions, RepairReport, Store, repair_on,
};
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A file system that cannot read some bytes of one file.
struct Unreadable {
    files: InMemory,
    path: PathBuf,
    bytes: Range<u64>,
    /// Done when the new store's directory is made.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

/// The old store is being written, and no file of touches can be made.
const FULL: &str = "full";

impl std::fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {:?}", self.bytes, self.path)
    }
}

#[derive(Debug)]
struct Worn(Box<dyn File>, Range<u64>);

impl File for Worn {
    fn bytes(&self) -> io::Result<u64> {
        self.0.bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset < self.1.end && self.1.start < offset + buffer.len() as u64 {
            return Err(io::Error::other("the disk is worn"));
        }
        self.0.read_at(offset, buffer)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<usize> {
        panic!("the damaged store is written to")
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        panic!("the damaged store is cut")
    }

    fn sync(&self) -> io::Result<()> {
        panic!("the damaged store is synced")
    }
}

impl Unreadable {
    fn guard(&self, path: &Path) {
        let full = self.path == Path::new(FULL);
        assert!(full || !path.starts_with(OLD), "{path:?}");
    }
}

impl Files for Unreadable {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = self.files.open(path)?;
        Ok(match path == self.path {
            true => Box::new(Worn(file, self.bytes.clone())),
            false => file,
        })
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.guard(path);
        self.files.open_to_write(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let name = path.file_name().unwrap().to_str().unwrap();
        if self.path == Path::new(FULL) && name.starts_with("access.") && name != "access.0.bytes" {
            return Err(io::Error::other("the disk is full"));
        }
        self.files.create_new(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if let Some(meanwhile) = self.meanwhile.lock().unwrap().take() {
            meanwhile();
        }
        self.files.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.files.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.remove_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.files.list(dir)
    }

    fn what(&self, path: &Path) -> io::Result<What> {
        self.files.what(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.files.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        self.guard(path);
        self.files.lock(path)
    }
}

#[test]
fn bytes_that_a_disk_cannot_give_cost_what_damaged_ones_do() {
    let stored = Stored::with_journal(40, 200, Dtype::F16);
    let worn = |path: &Path, bytes: Range<u64>| {
        let files = Arc::new(Unreadable {
            files: InMemory::clone(&stored.files),
            path: path.to_owned(),
            bytes,
            meanwhile: Mutex::new(None),
        });
        let repaired = repair_on(files, OLD, NEW, &RepairOptions::default());
        if repaired.is_ok() {
            stored.files.remove_dir_all(Path::new(NEW)).unwrap();
        }
        repaired
    };
    for path in stored.column_files() {
        let report = worn(&path, 0..1).unwrap();
        stored.flip(&path, 0, 1);
        let (flipped, _) = stored.check();
        stored.flip(&path, 0, 1);
        let costs = |report: &RepairReport| {
            let reduced = report.reduced.iter();
            let parts: Vec<_> = reduced.map(|reduced| (reduced.row, reduced.part)).collect();
            let rows: Vec<_> = report.lost.iter().map(|lost| lost.row).collect();
            (rows, parts, report.changes.len())
        };
        assert_eq!(costs(&report), costs(&flipped));
    }
    let journal = stored.path("journal.");
    assert!(stored.files.open(&journal).unwrap().bytes().unwrap() > 20_000);
    let report = worn(&journal, 8_192..8_193).unwrap();
    assert!(report.kept > stored.original.len() - 40, "{report}");
    assert!(report.changes.len() > 1 && report.lost.is_empty());
    let manifest = Path::new("old/manifest");
    assert!(matches!(
        worn(manifest, 9..10),
        Err(RepairError::NoDim { .. })
    ));
}

#[test]
fn a_store_that_is_written_to_meanwhile_is_left_alone() {
    let files = Arc::new(InMemory::new());
    let store = Store::create_on(files.clone(), OLD, &options(Dtype::F32)).unwrap();
    push(&store, 0..3, 0);
    store.delete(&[0]).unwrap();
    let busy = Arc::new(Unreadable {
        files: InMemory::clone(&files),
        path: PathBuf::new(),
        bytes: 0..0,
        meanwhile: Mutex::new(Some(Box::new(move || store.checkpoint().unwrap()))),
    });
    let error = repair_on(busy.clone(), OLD, NEW, &RepairOptions::default()).unwrap_err();
    assert!(matches!(error, RepairError::Changed { .. }), "{error}");
    assert_eq!(files.list(Path::new("")).unwrap(), [OLD]);
    let report = repair_on(busy, OLD, NEW, &RepairOptions::default()).unwrap();
    assert!(report.is_whole() && report.kept == 2, "{report}");
}

#[test]
fn a_journal_of_several_segments_is_salvaged_from_those_that_are_there() {
    let files = Arc::new(Unreadable {
        files: InMemory::new(),
        path: PathBuf::from(FULL),
        bytes: 0..0,
        meanwhile: Mutex::new(None),
    });
    let store = Store::create_on(files.clone(), OLD, &options(Dtype::F32)).unwrap();
    push(&store, 0..10, 0);
    let append = |i: u64| {
        with_memory(i, 0, |memory| store.append(std::slice::from_ref(memory))).unwrap();
    };
    (10..13).for_each(append);
    store.delete(&[1, 11]).unwrap();
    // It has ended a segment by then.
    store.checkpoint().unwrap_err();
    (13..16).for_each(append);
    store.checkpoint().unwrap_err();
    store.touch(AGENTS[1], &[13, 2], 9_999).unwrap();
    store.delete(&[0]).unwrap();
    let stored = Stored::of(&store, &files.files);
    let (report, _) = stored.check();
    assert!(report.is_whole(), "{report}");

    let mut segments: Vec<PathBuf> = (stored.files.list(Path::new(OLD)).unwrap().into_iter())
        .filter(|name| name.to_str().unwrap().starts_with("journal."))
        .map(|name| Path::new(OLD).join(name))
        .collect();
    segments.sort();
    let [first, second, third] = &segments[..] else {
        panic!("{segments:?}");
    };
    // Live ids after 9, whether the last delete is known, and what is listed.
    let salvaged = || {
        let (report, new) = stored.repaired(&RepairOptions::default()).unwrap();
        assert!(
            report.lost.is_empty() && report.reduced.is_empty(),
            "{report}"
        );
        assert!(new.next_id() >= 16 || !report.is_whole(), "{report}");
        let ids = (0..new.rows()).map(|row| new.id(row)).filter(|&id| id > 9);
        let listed = report.changes.into_iter();
        let listed = listed.map(|lost| (lost.path, lost.offset, lost.problem));
        (
            ids.collect::<Vec<_>>(),
            new.row_of_id(0).is_none(),
            listed.collect::<Vec<_>>(),
        )
    };
    let gone = |path: &Path| (path.to_owned(), 0, Problem::Missing);
    for (path, ids, deleted, listed) in [
        (first, &[13, 14, 15][..], true, vec![gone(first)]),
        (second, &[10, 12], true, vec![gone(second)]),
        // It cannot be told from one that never was.
        (third, &[10, 12, 13, 14, 15], false, vec![]),
    ] {
        let whole = read(&*stored.files, path);
        stored.files.remove_file(path).unwrap();
        let options = OpenOptions {
            read_only: true,
            ..OpenOptions::default()
        };
        let opened = Store::open_on(stored.files.clone(), OLD, &options);
        match opened.map(|_| ()) {
            Err(OpenError::ColumnMissing { path: missing }) => assert_eq!(&missing, path),
            opened => assert!(path == third, "{opened:?}"),
        }
        assert_eq!(salvaged(), (ids.to_vec(), deleted, listed), "{path:?}");
        let file = stored.files.create_new(path).unwrap();
        file.write_at(0, &whole).unwrap();
        // A salt that is whole still finds the records.
        stored.flip(path, 3, 1);
        let (ids, deleted, listed) = salvaged();
        assert_eq!((ids, deleted), (vec![10, 12, 13, 14, 15], true), "{path:?}");
        assert_eq!(listed.len(), 1, "{listed:?}");
        stored.flip(path, 3, 1);
    }
    let len = stored.files.open(second).unwrap().bytes().unwrap();
    (stored.files.open_to_write(second).unwrap().set_len(len - 1)).unwrap();
    let (ids, deleted, listed) = salvaged();
    assert_eq!((ids, deleted), (vec![10, 12, 13, 14], true));
    assert!(listed.contains(&(
        second.clone(),
        len - 1,
        Problem::Cut {
            expected: len,
            found: len - 1
        }
    )));
    assert_eq!(listed.len(), 2, "{listed:?}");
}
