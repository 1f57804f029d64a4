//! What is on the disk when an operation returns, in which order it gets there, and who waits for whom.

use crate::example::*;
use crate::in_memory::*;
use crate::watched::{Change, watched};
use memorank::kernel::Dtype;
use memorank::store::files::InMemory;
use memorank::store::{Agent, AppendError, Durability, OpenOptions, Promise, Store, WriteError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};

/// Changes in the order they were made.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Change, PathBuf)>>>);

impl Log {
    fn open(&self, files: &InMemory, durability: Durability) -> Store {
        let log = self.clone();
        let watched = watched(files, move |change, path| {
            log.changes().push((change, path.to_owned()));
            Ok(())
        });
        let options = OpenOptions {
            durability,
            ..OpenOptions::default()
        };
        Store::open_on(watched, STORE, &options).unwrap()
    }

    fn changes(&self) -> MutexGuard<'_, Vec<(Change, PathBuf)>> {
        self.0.lock().unwrap()
    }

    /// How many syncs there were of segments of the journal since it was last asked.
    fn syncs(&self) -> usize {
        let changes = std::mem::take(&mut *self.changes());
        let of_journal = |path: &Path| path.to_str().unwrap().contains("journal.");
        let syncs = changes
            .iter()
            .filter(|(change, path)| *change == Change::Sync && of_journal(path));
        syncs.count()
    }
}

#[test]
fn an_operation_syncs_the_journal_as_it_was_asked_to() {
    use Promise::{OnDisk, Written};
    for appends in [Written, OnDisk] {
        for touches in [Written, OnDisk] {
            let (files, store) = new_in_memory(2, Dtype::F32);
            append(&store, &[varied(0, 2)]);
            drop(store);
            let log = Log::default();
            let store = log.open(&files, Durability { appends, touches });
            // It takes over.
            store.touch(Agent::OWN, &[0], 70_000).unwrap();
            assert_eq!(log.syncs(), 1 + usize::from(touches == OnDisk));
            for i in 1..4 {
                append(&store, &[varied(i, 2)]);
                assert_eq!(log.syncs(), usize::from(appends == OnDisk));
                store.touch(Agent::OWN, &[i], 80_000).unwrap();
                assert_eq!(log.syncs(), usize::from(touches == OnDisk));
                store.delete(&[i]).unwrap();
                assert_eq!(log.syncs(), usize::from(appends == OnDisk));
            }
            let unsynced = appends == Written;
            store.sync().unwrap();
            assert_eq!(log.syncs(), usize::from(unsynced));
            store.sync().unwrap();
            assert_eq!(log.syncs(), 0);
            // Nothing to touch, nothing to sync.
            store.touch(Agent::OWN, &[1, 2], 90_000).unwrap();
            assert_eq!(log.syncs(), 0);
        }
    }
    let default = Durability::default();
    assert_eq!((default.appends, default.touches), (OnDisk, Written));
}

#[test]
fn whatever_was_promised_a_killed_process_leaves_what_was_done() {
    let (files, store) = new_in_memory(2, Dtype::F32);
    drop(store);
    let written = Durability {
        appends: Promise::Written,
        touches: Promise::Written,
    };
    let store = Log::default().open(&files, written);
    append(&store, &[varied(0, 2), varied(1, 2)]);
    store.touch(OTHER, &[1], 70_000).unwrap();
    store.delete(&[0]).unwrap();
    assert_eq!(
        contents(&read(&killed(&files))),
        contents(&store.snapshot())
    );
}

// B53
#[test]
fn a_manifest_gets_its_name_when_all_that_it_names_is_durable() {
    let (files, store) = new_in_memory(2, Dtype::F32);
    drop(store);
    let log = Log::default();
    let store = log.open(&files, Durability::default());
    for step in crate::life::LIFE {
        step(&store).unwrap();
    }
    store.close().unwrap();
    let (mut dirty, mut unnamed, mut manifests) = (BTreeSet::new(), false, 0);
    for (change, path) in &*log.changes() {
        let is_manifest = path.ends_with("manifest");
        match change {
            Change::Write | Change::SetLen => drop(dirty.insert(path.clone())),
            Change::Sync => drop(dirty.remove(path)),
            Change::Create => unnamed = true,
            Change::SyncDir => unnamed = false,
            Change::Rename => {
                // What has a journal's name holds whole records.
                assert!(
                    dirty.is_empty() && (!unnamed || !is_manifest),
                    "{path:?}: {dirty:?}"
                );
                unnamed = true;
                manifests += usize::from(is_manifest);
            }
            // Nothing is removed before it is sure that it is not named any more.
            Change::Remove => assert!(!unnamed, "{path:?}"),
        }
    }
    assert!(manifests >= 8, "{manifests}");
}

#[test]
fn a_thread_that_holds_a_bulk_append_is_told_that_it_would_wait_for_itself() {
    let (_files, store) = new_in_memory(2, Dtype::F32);
    append(&store, &[varied(0, 2)]);
    let mut bulk = store.bulk().unwrap();
    bulk.push(&varied(1, 2).borrowed()).unwrap();
    let busy = |error: WriteError| {
        let told = error.to_string();
        assert!(matches!(error, WriteError::Busy { .. }), "{told}");
        assert!(told.contains("finish or drop"), "{told}");
    };
    for error in [
        store.append(&[varied(1, 2).borrowed()]).unwrap_err(),
        store.bulk().err().unwrap(),
    ] {
        match error {
            AppendError::Write(error) => busy(error),
            other => panic!("{other}"),
        }
    }
    busy(store.checkpoint().unwrap_err());
    busy(store.compact().unwrap_err());
    // What needs no turn goes on.
    store.touch(Agent::OWN, &[0], 70_000).unwrap();
    assert_eq!(store.delete(&[0]).unwrap(), 1);
    store.sync().unwrap();
    assert_eq!(bulk.commit().unwrap(), 1..2);
    assert_eq!(append(&store, &[varied(2, 2)]), 2..3);
    store.checkpoint().unwrap();
    assert_eq!(store.snapshot().len(), 2);
}

#[test]
fn other_threads_wait_for_a_bulk_append_and_readers_touches_and_deletes_do_not() {
    let (_files, store) = new_in_memory(2, Dtype::F32);
    append(&store, &(0..4).map(|i| varied(i, 2)).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        let mut bulk = store.bulk().unwrap();
        let (done, finished) = mpsc::channel();
        let appended = done.clone();
        let store = &store;
        scope.spawn(move || {
            append(store, &[varied(5, 2)]);
            appended.send("append").unwrap();
        });
        let others = scope.spawn(move || {
            store.touch(OTHER, &[0, 1], 70_000).unwrap();
            assert_eq!(store.delete(&[2]).unwrap(), 1);
            assert_eq!(store.snapshot().len(), 3);
            done.send("others").unwrap();
        });
        others.join().unwrap();
        assert_eq!(bulk.push(&varied(4, 2).borrowed()).unwrap(), 4);
        assert_eq!(finished.recv().unwrap(), "others");
        bulk.commit().unwrap();
        assert_eq!(finished.recv().unwrap(), "append");
    });
    let snapshot = store.snapshot();
    assert_row(&snapshot, 4, 4, &varied(4, 2));
    assert_row(&snapshot, 5, 5, &varied(5, 2));
    assert_eq!(snapshot.last_access(OTHER, 1), 70_000);
}

#[test]
fn a_bulk_append_that_was_forgotten_keeps_no_store_from_closing() {
    for close in [true, false] {
        let (files, store) = new_in_memory(2, Dtype::F32);
        append(&store, &[varied(0, 2)]);
        std::thread::scope(|scope| {
            scope.spawn(|| std::mem::forget(store.bulk().unwrap()));
        });
        store.touch(OTHER, &[0], 70_000).unwrap();
        let before = contents(&store.snapshot());
        match close {
            true => assert!(matches!(store.close(), Err(WriteError::Busy { .. }))),
            false => drop(store),
        }
        // What was done is in the journal.
        let store = open(&files).unwrap();
        assert_eq!(
            (store.recovery().records, contents(&store.snapshot())),
            (1, before)
        );
        store.close().unwrap();
    }
}
