//! When the journal becomes part of the columns, and that nothing else changes by it.

use crate::example::*;
use crate::in_memory::*;
use crate::watched::{Change, Pause, watched};
use memorank::kernel::Dtype;
use memorank::store::files::InMemory;
use memorank::store::{Agent, OpenOptions, Store};
use std::sync::Arc;

/// Columns, manifest, lock and one segment of the journal.
const FILES: usize = 22 + 3;

fn journal_bytes(files: &InMemory) -> usize {
    get(files, &only(files, "journal.")).len()
}

fn open_with(files: &InMemory, checkpoint_bytes: u64) -> Store {
    let options = OpenOptions {
        checkpoint_bytes,
        ..OpenOptions::default()
    };
    Store::open_on(Arc::new(files.clone()), STORE, &options).unwrap()
}

#[test]
fn a_checkpoint_by_hand_moves_the_journal_into_the_columns() {
    let (files, store) = new_in_memory(2, Dtype::F16);
    for round in 0..5 {
        let rows = round as usize * 3;
        append(
            &store,
            &(3 * round..3 * round + 3)
                .map(|i| varied(i, 2))
                .collect::<Vec<_>>(),
        );
        store
            .touch(OTHER, &[0, round], 70_000 + round as i64)
            .unwrap();
        store.delete(&[3 * round + 1]).unwrap();
        let (old, before) = (store.snapshot(), contents(&store.snapshot()));
        assert_eq!(store.info().in_journal, 3);
        assert!(journal_bytes(&files) > 64);
        store.checkpoint().unwrap();
        assert_eq!(store.info().in_journal, 0);
        assert_eq!(journal_bytes(&files), 64);
        assert_eq!(names(&files).len(), FILES);
        for snapshot in [&store.snapshot(), &old, &read(&files)] {
            assert_eq!(contents(snapshot), before);
            assert_eq!(snapshot.rows(), rows + 3);
            assert_eq!(snapshot.row_of_id(3 * round + 2), Some(rows + 2));
        }
        assert_eq!(open_read_only(&files).unwrap().recovery().records, 0);
    }
    // What was touched and deleted, and only that, is in files of their own.
    let bytes = |name: &str| get(&files, &only(&files, name)).len();
    assert_eq!(bytes("access."), 16 * 3);
    assert_eq!(bytes("deleted."), 4 * 5);
}

#[test]
fn a_checkpoint_of_nothing_new_writes_nothing() {
    let (files, store) = new_in_memory(2, Dtype::F16);
    store.checkpoint().unwrap();
    assert_eq!(names(&files).len(), FILES - 1);
    append(&store, &[varied(0, 2)]);
    store.checkpoint().unwrap();
    let manifest = get(&files, "manifest");
    store.checkpoint().unwrap();
    // What changes nothing is no record either.
    store.touch(Agent::OWN, &[0], i64::MIN).unwrap();
    store.touch(Agent::OWN, &[], 70_000).unwrap();
    assert_eq!(store.delete(&[]).unwrap(), 0);
    store.checkpoint().unwrap();
    store.close().unwrap();
    assert_eq!(get(&files, "manifest"), manifest);
    assert_eq!(journal_bytes(&files), 64);
}

#[test]
fn the_journal_is_folded_when_it_exceeds_its_limit() {
    let operations: [fn(&Store, u64); 3] = [
        |store, i| assert_eq!(append(store, &[varied(i, 2)]), i..i + 1),
        |store, i| store.touch(Agent::OWN, &[0], 70_000 + i as i64).unwrap(),
        |store, i| assert!(store.delete(&[i]).unwrap() <= 1),
    ];
    for (at, operation) in operations.into_iter().enumerate() {
        let (files, store) = new_in_memory(2, Dtype::F16);
        append(&store, &(0..60).map(|i| varied(i, 2)).collect::<Vec<_>>());
        drop(store);
        let store = open_with(&files, 1_000);
        let mut folded = 0;
        for i in if at == 0 { 60..120 } else { 0..60 } {
            operation(&store, i);
            let bytes = journal_bytes(&files);
            // A header and less than the limit.
            assert!((64..1_064).contains(&bytes), "{bytes}");
            folded += usize::from(bytes == 64);
            assert_eq!(contents(&read(&files)), contents(&store.snapshot()));
        }
        assert!((2..30).contains(&folded), "{folded}");
        assert_eq!(names(&files).len(), FILES);
    }
}

#[test]
fn a_journal_that_cannot_be_folded_is_tried_again_now_and_then() {
    let (files, store) = new_in_memory(2, Dtype::F16);
    append(&store, &[varied(0, 2)]);
    drop(store);
    // The block that a checkpoint would add to.
    flip_in(&files, &path("importance.f32"), 3);
    let store = open_with(&files, 1_000);
    for i in 1..100 {
        append(&store, &[varied(i, 2)]);
    }
    assert_eq!(store.info().in_journal, 99);
    let segments = names(&files)
        .into_iter()
        .filter(|name| name.starts_with("journal."));
    let segments: Vec<_> = segments.map(|name| get(&files, &name).len()).collect();
    assert!((8..25).contains(&segments.len()), "{segments:?}");
    assert_eq!(
        contents(&open(&killed(&files)).unwrap().snapshot()),
        contents(&store.snapshot())
    );
    // When it can be, it is.
    flip_in(&files, &path("importance.f32"), 3);
    store.checkpoint().unwrap();
    assert_eq!((store.info().in_journal, journal_bytes(&files)), (0, 64));
    for i in 100..120 {
        append(&store, &[varied(i, 2)]);
        assert!(journal_bytes(&files) < 1_064);
    }
    assert_eq!(contents(&read(&files)), contents(&store.snapshot()));
}

#[test]
fn what_a_handle_that_is_gone_left_counts_towards_the_limit() {
    let (files, store) = new_in_memory(2, Dtype::F16);
    append(&store, &(0..20).map(|i| varied(i, 2)).collect::<Vec<_>>());
    let files = killed(&files);
    let store = open_with(&files, 1_000);
    assert_eq!(store.info().in_journal, 20);
    store.touch(Agent::OWN, &[0], 70_000).unwrap();
    assert_eq!(store.info().in_journal, 0);
}

#[test]
fn closing_and_dropping_fold_the_journal() {
    for close in [true, false] {
        let (files, store) = new_in_memory(2, Dtype::F16);
        append(&store, &[varied(0, 2)]);
        store.touch(OTHER, &[0], 70_000).unwrap();
        let before = contents(&store.snapshot());
        match close {
            true => store.close().unwrap(),
            false => drop(store),
        }
        let store = open(&files).unwrap();
        assert_eq!((store.recovery().records, store.info().in_journal), (0, 0));
        assert_eq!(contents(&store.snapshot()), before);
        assert_eq!(names(&files).len(), FILES);
    }
}

#[test]
fn touches_and_deletes_while_a_checkpoint_runs_are_kept() {
    let (files, store) = new_in_memory(2, Dtype::F16);
    append(&store, &(0..6).map(|i| varied(i, 2)).collect::<Vec<_>>());
    store.touch(OTHER, &[1, 2], 70_000).unwrap();
    drop(store);
    let pause =
        Pause::before(|change, path| change == Change::Sync && path.ends_with("text.bytes"));
    let store = Store::open_on(
        watched(&files, pause.hook()),
        STORE,
        &OpenOptions::default(),
    );
    let store = store.unwrap();
    append(&store, &[varied(6, 2), varied(7, 2)]);
    pause.arm();
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| store.checkpoint());
        let paused = pause.wait();
        store.touch(OTHER, &[2, 7], 80_000).unwrap();
        store.touch(Agent::OWN, &[6], 90_000).unwrap();
        assert_eq!(store.delete(&[1, 6]).unwrap(), 2);
        let (now, seen) = (contents(&store.snapshot()), contents(&read(&files)));
        assert_eq!(now, seen);
        drop(paused);
        checkpoint.join().unwrap().unwrap();
        assert_eq!(contents(&store.snapshot()), now);
        assert_eq!(contents(&read(&files)), now);
        assert_eq!(store.info().in_journal, 0);
        // They are in the journal still.
        assert_eq!(open_read_only(&files).unwrap().recovery().records, 3);
        store.checkpoint().unwrap();
        assert_eq!(contents(&read(&files)), now);
        assert_eq!(open_read_only(&files).unwrap().recovery().records, 0);
    });
    assert_eq!(names(&files).len(), FILES);
}
