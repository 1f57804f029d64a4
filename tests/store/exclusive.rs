//! `Store::exclusive`.

use crate::example::*;
use crate::in_memory::new_in_memory;
use memorank::kernel::Dtype;
use memorank::store::{AppendError, DeleteError, Store, WriteError};
use std::thread;

/// Appends a memory that says how many there are.
fn count_up(store: &Store) {
    let exclusive = store.exclusive().unwrap();
    let rows = exclusive.snapshot().rows();
    thread::yield_now();
    let memory = Owned {
        text: rows.to_string(),
        ..plain(&[1.0, 0.0])
    };
    let ids = exclusive.append(&[memory.borrowed()]).unwrap();
    assert_eq!(ids, rows as u64..rows as u64 + 1);
}

#[test]
fn what_is_decided_by_a_snapshot_holds_when_it_is_done() {
    let (_files, store) = new_in_memory(2, Dtype::F32);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| count_up(&store)));
        }
    });
    let snapshot = store.snapshot();
    for row in 0..200 {
        assert_eq!(snapshot.text(row).unwrap(), row.to_string());
    }
}

#[test]
fn it_deletes_as_a_plain_delete_does() {
    let (_files, store) = new_in_memory(2, Dtype::F32);
    store.append(&[plain(&[1.0, 0.0]).borrowed()]).unwrap();
    let deleted = |ids: &[u64]| store.exclusive().unwrap().delete(ids);
    let refused = deleted(&[0, 7]);
    assert!(matches!(refused, Err(DeleteError::NoId { id: 7, next: 1 })));
    assert!(store.snapshot().is_live(0));
    assert_eq!(deleted(&[0, 0]).unwrap(), 1);
    assert_eq!(deleted(&[0]).unwrap(), 0);
    assert!(!store.snapshot().is_live(0));
}

#[test]
fn a_thread_does_not_wait_for_itself_and_others_can_delete_and_touch() {
    let (_files, store) = new_in_memory(2, Dtype::F32);
    let memory = plain(&[1.0, 0.0]);
    store.append(&[memory.borrowed()]).unwrap();
    let exclusive = store.exclusive().unwrap();
    let again = store.append(&[memory.borrowed()]);
    let is_busy = |error: AppendError| matches!(error, AppendError::Write(WriteError::Busy { .. }));
    assert!(again.is_err_and(is_busy));
    assert!(matches!(store.exclusive(), Err(WriteError::Busy { .. })));
    assert!(matches!(store.checkpoint(), Err(WriteError::Busy { .. })));
    thread::scope(|scope| {
        let other = scope.spawn(|| store.delete(&[0]));
        assert_eq!(other.join().unwrap().unwrap(), 1);
    });
    drop(exclusive);
    store.append(&[memory.borrowed()]).unwrap();
}

#[test]
fn a_fresh_handle_takes_over_before_it_deletes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let options = memorank::store::CreateOptions {
        dim: 2.try_into().unwrap(),
        dtype: Dtype::F32,
        model: None,
    };
    let store = Store::create(&path, &options).unwrap();
    let memories = [plain(&[1.0, 0.0]), plain(&[0.0, 1.0])];
    store
        .append(&memories.each_ref().map(Owned::borrowed))
        .unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    store.exclusive().unwrap().delete(&[1]).unwrap();
    drop(store);
    let snapshot = Store::open(&path).unwrap().snapshot();
    assert_eq!([0, 1].map(|row| snapshot.is_live(row)), [true, false]);
}
