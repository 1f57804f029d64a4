//! Writes and syncs that fail, and what a handle does then.

use crate::example::*;
use crate::in_memory::*;
use crate::life::{LIFE, states};
use crate::watched::{Change, watched};
use memorank::kernel::Dtype;
use memorank::store::files::InMemory;
use memorank::store::{Agent, AppendError, OpenOptions, Store, TouchError, WriteError};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Opens a store of which some changes of one sort fail, counted from the opening on. Tells how many there
/// were.
fn failing(
    files: &InMemory,
    sort: fn(Change) -> bool,
    fail: Range<usize>,
    kind: io::ErrorKind,
) -> (Store, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let watched = watched(files, move |change, _| {
        match sort(change) && fail.contains(&counted.fetch_add(1, Ordering::Relaxed)) {
            true => Err(kind.into()),
            false => Ok(()),
        }
    });
    (
        Store::open_on(watched, STORE, &OpenOptions::default()).unwrap(),
        count,
    )
}

fn empty() -> InMemory {
    let (files, store) = new_in_memory(2, Dtype::F32);
    drop(store);
    killed(&files)
}

/// What came of a life in which something failed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// No operation did.
    Unnoticed,
    /// Operations did, and the handle went on.
    Failed,
    /// An operation did, and the handle wrote no more.
    Poisoned,
    /// Closing did.
    NotClosed,
}

/// Lives a life in which `fail` of the changes of a sort fail. `None` if there were not so many.
fn live(
    states: &[String],
    sort: fn(Change) -> bool,
    fail: Range<usize>,
    kind: io::ErrorKind,
) -> Option<Outcome> {
    let files = empty();
    let (store, count) = failing(&files, sort, fail.clone(), kind);
    let (mut outcome, mut done) = (Outcome::Unnoticed, 0);
    'life: for step in LIFE {
        while let Err(error) = step(&store) {
            let told = error.to_string();
            assert!(count.load(Ordering::Relaxed) > fail.start, "{told}");
            let now = contents(&store.snapshot());
            if is_poisoned(store.sync()) {
                outcome = Outcome::Poisoned;
                assert!(states[done..done + 2].contains(&now), "{told}: {now}");
                break 'life;
            }
            outcome = Outcome::Failed;
            assert_eq!(now, states[done], "{told}");
            assert_eq!(contents(&read(&files)), now, "{told}");
        }
        done += 1;
        assert_eq!(contents(&store.snapshot()), states[done]);
    }
    if outcome == Outcome::Poisoned {
        let appended = store.append(&[varied(0, 2).borrowed()]);
        assert!(matches!(
            appended,
            Err(AppendError::Write(WriteError::Poisoned { .. }))
        ));
        assert!(is_poisoned(store.checkpoint()) && is_poisoned(store.compact()));
        // Reads go on.
        assert!(states[done..done + 2].contains(&contents(&store.snapshot())));
        assert!(is_poisoned(store.close()));
    } else if store.close().is_err() {
        outcome = Outcome::NotClosed;
    }
    if count.load(Ordering::Relaxed) <= fail.start {
        assert_eq!(outcome, Outcome::Unnoticed);
        return None;
    }
    // Opened again, all that was acknowledged is there, and what failed is there whole or not at all.
    let unknown = usize::from(outcome == Outcome::Poisoned);
    let store = open(&files).unwrap();
    let found = contents(&store.snapshot());
    assert!(states[done..=done + unknown].contains(&found), "{found}");
    // The next writer sweeps what is left.
    let next = store.snapshot().next_id();
    append(&store, &[plain(&[1.0, 1.0])]);
    store.close().unwrap();
    assert_eq!(read(&files).next_id(), next + 1);
    assert_eq!(names(&files).len(), 22 + 3, "{:?}", names(&files));
    Some(outcome)
}

fn is_poisoned(done: Result<(), WriteError>) -> bool {
    matches!(done, Err(WriteError::Poisoned { .. }))
}

/// The outcomes of all lives in which so many changes of a sort fail, the first of them each in its turn.
fn outcomes(sort: fn(Change) -> bool, times: usize, kind: io::ErrorKind) -> Vec<Outcome> {
    let states = states();
    let all = (0..).step_by(times.div_ceil(6));
    let outcomes = all.map_while(|at| live(&states, sort, at..at + times, kind));
    outcomes.collect()
}

fn number(outcomes: &[Outcome], outcome: Outcome) -> usize {
    outcomes.iter().filter(|&&other| other == outcome).count()
}

// B40
#[test]
fn a_write_that_fails_changes_nothing_and_the_handle_goes_on() {
    let sort = |change| matches!(change, Change::Write | Change::Create);
    // Once, and for a while.
    for times in [1, 40] {
        let outcomes = outcomes(sort, times, io::ErrorKind::StorageFull);
        assert!(
            number(&outcomes, Outcome::Failed) > 40,
            "{}",
            outcomes.len()
        );
        assert_eq!(number(&outcomes, Outcome::Poisoned), 0);
        assert_eq!(number(&outcomes, Outcome::Unnoticed), 0);
    }
}

#[test]
fn a_sync_that_fails_ends_writing_and_the_store_can_be_opened_again() {
    let sort = |change| matches!(change, Change::Sync | Change::SyncDir);
    let outcomes = outcomes(sort, 1, io::ErrorKind::Other);
    assert!(
        number(&outcomes, Outcome::Poisoned) > 50,
        "{}",
        outcomes.len()
    );
    assert_eq!(number(&outcomes, Outcome::Failed), 0);
    assert_eq!(number(&outcomes, Outcome::Unnoticed), 0);
}

#[test]
fn a_failed_rename_cut_or_removal_harms_nothing() {
    let sort = |change| matches!(change, Change::Rename | Change::SetLen | Change::Remove);
    for times in [1, 5] {
        let outcomes = outcomes(sort, times, io::ErrorKind::PermissionDenied);
        assert!(outcomes.len() > 20, "{outcomes:?}");
    }
}

#[test]
fn the_failed_sync_is_named() {
    let files = empty();
    let (store, _) = failing(
        &files,
        |change| change == Change::Sync,
        3..4,
        io::ErrorKind::Other,
    );
    append(&store, &[varied(0, 2)]);
    let error = store.append(&[varied(1, 2).borrowed()]).unwrap_err();
    let journal = path(&only(&files, "journal."));
    match &error {
        AppendError::Write(WriteError::Io {
            doing: "syncing",
            path,
            ..
        }) if *path == journal => {}
        other => panic!("{other}"),
    }
    let told = error.to_string();
    assert!(told.starts_with("syncing store/journal."), "{told}");
    let touched = store.touch(Agent::OWN, &[0], 70_000).unwrap_err();
    assert!(
        matches!(touched, TouchError::Write(WriteError::Poisoned { .. })),
        "{touched}"
    );
    assert_row(&store.snapshot(), 0, 0, &varied(0, 2));
}

#[test]
fn a_directory_that_may_not_be_read_can_hold_a_store_to_write_to() {
    let files = empty();
    let hook = |change, at: &Path| match change == Change::SyncDir && at != Path::new(STORE) {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    };
    let options = OpenOptions::default();
    let store = Store::open_on(watched(&files, hook), STORE, &options).unwrap();
    append(&store, &[varied(0, 2)]);
    store.close().unwrap();
    assert_row(&read(&files), 0, 0, &varied(0, 2));
}

#[test]
fn a_full_disk_is_not_for_ever() {
    let files = empty();
    let full = Arc::new(AtomicBool::new(false));
    let is_full = full.clone();
    let hook = move |change, _: &Path| {
        let takes_room = matches!(change, Change::Write | Change::Create);
        match takes_room && is_full.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    };
    let options = OpenOptions {
        checkpoint_bytes: 4000,
        ..OpenOptions::default()
    };
    let store = Store::open_on(watched(&files, hook), STORE, &options).unwrap();
    for round in 0..6 {
        let next = store.snapshot().next_id();
        append(&store, &[varied(next, 2), varied(next + 1, 2)]);
        full.store(true, Ordering::Relaxed);
        let before = contents(&store.snapshot());
        for _ in 0..3 {
            let error = store.append(&[varied(next + 2, 2).borrowed()]).unwrap_err();
            assert!(
                matches!(error, AppendError::Write(WriteError::Io { .. })),
                "{error}"
            );
            assert!(store.touch(OTHER, &[next], 70_000 + round).is_err());
            assert!(store.delete(&[next]).is_err());
            assert!(store.checkpoint().is_err());
            assert!(store.compact().is_err());
        }
        assert_eq!(contents(&store.snapshot()), before);
        assert_eq!(contents(&read(&files)), before);
        full.store(false, Ordering::Relaxed);
        store.touch(OTHER, &[next], 70_000 + round).unwrap();
        assert_eq!(
            contents(&read(&killed(&files))),
            contents(&store.snapshot())
        );
        assert_eq!(append(&store, &[varied(next + 2, 2)]), next + 2..next + 3);
    }
    store.close().unwrap();
    let snapshot = read(&files);
    assert_eq!(snapshot.len(), 18);
    for id in 0..18 {
        assert_row(&snapshot, id as usize, id, &varied(id, 2));
    }
}
