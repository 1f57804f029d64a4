//! Going back to what a touch saw.

mod kept;
mod threads;
mod workload;

use crate::example::*;
use crate::in_memory::*;
use memorank::kernel::Dtype;
use memorank::store::files::{Files, InMemory};
use memorank::store::{
    Agent, HistoryError, NewTouch, OpenOptions, Snapshot, Store, TouchError, verify_on,
};
use std::path::Path;
use std::sync::Arc;

/// A store in memory that keeps its history.
fn new_with_history(dim: usize) -> (InMemory, Store) {
    let (files, store) = new_in_memory(dim, Dtype::F32);
    store.keep_history(u64::MAX).unwrap();
    (files, store)
}

fn touch(ids: &[u64], now: i64) -> NewTouch<'_> {
    NewTouch {
        agent: Agent::OWN,
        ids,
        now,
        note: b"",
        seen: None,
    }
}

/// The number of a touch's record.
fn touched(store: &Store, touch: &NewTouch<'_>) -> u64 {
    store.touch_with(touch).unwrap().expect("it has a record")
}

/// All that can be read of a snapshot but numbers of rows.
fn observed(snapshot: &Snapshot) -> String {
    let mut text = contents(snapshot);
    for row in (0..snapshot.rows()).filter(|&row| snapshot.is_live(row)) {
        let id = snapshot.id(row);
        assert_eq!(snapshot.row_of_id(id), Some(row));
        if let Some(key) = snapshot.memory(row).unwrap().key {
            assert_eq!(snapshot.row_of_key(key).unwrap(), Some(row), "{key}");
        }
    }
    for agent in [Agent::OWN, OTHER] {
        let touched = snapshot.touched(agent);
        let touched: Vec<_> = touched.map(|(row, at)| (snapshot.id(row), at)).collect();
        text += &format!("{agent:?} touched {touched:?}\n");
        for segment in snapshot.segments(agent) {
            for (i, row) in segment.rows().enumerate() {
                if snapshot.is_live(row) {
                    let embedding = segment.embeddings.widen(snapshot.dim(), i);
                    let (norm, last) = (segment.inv_norms[i].to_bits(), segment.last_access[i]);
                    let importance = segment.importance[i].to_bits();
                    text += &format!("{embedding:?} {norm} {last} {importance}\n");
                }
            }
        }
    }
    let own = snapshot.own_importances();
    let own: Vec<_> = own
        .map(|(agent, row, x)| (agent, snapshot.id(row), x))
        .collect();
    text + &format!("{own:?} {}", snapshot.sequence())
}

/// The store goes back to what a touch saw.
fn assert_before(store: &Store, sequence: u64, expected: &str) {
    let (before, _) = store.before(sequence).unwrap();
    assert_eq!(observed(&before), expected, "record {sequence}");
}

#[test]
fn a_touch_by_ids_goes_back_to_the_store_just_before_it() {
    let (files, store) = new_with_history(2);
    append(&store, &[varied(0, 2), varied(1, 2), varied(2, 2)]);
    let before = observed(&store.snapshot());
    let sequence = touched(
        &store,
        &NewTouch {
            agent: OTHER,
            note: b"why not?",
            ..touch(&[2, 0, 2], 70_000)
        },
    );
    assert_eq!(store.snapshot().sequence(), sequence);
    assert_eq!(store.embed(&[(1, &[0.5, 0.5])]).unwrap(), 1);
    store
        .set_importance(Agent::OWN, &[0, 2], Some(9.0))
        .unwrap();
    store.set_importance(Agent::OWN, &[2], None).unwrap();
    store.touch(OTHER, &[0, 1, 2], 80_000).unwrap();
    store.checkpoint().unwrap();
    append(&store, &[varied(3, 2)]);
    store.delete(&[2, 3]).unwrap();
    // The key is free again, and given again.
    append(
        &store,
        &[Owned {
            key: varied(2, 2).key,
            ..varied(6, 2)
        }],
    );
    let check = |store: &Store| {
        assert_before(store, sequence, &before);
        let (snapshot, touched) = store.before(sequence).unwrap();
        assert_eq!(
            (snapshot.rows(), snapshot.len(), snapshot.next_id()),
            (3, 3, 3)
        );
        assert_eq!((touched.agent, touched.now), (OTHER, 70_000));
        assert_eq!(
            (&touched.ids[..], &touched.note[..]),
            (&[0, 2][..], &b"why not?"[..])
        );
        let all: Vec<_> = store.touches().unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], (sequence, touched));
        assert_eq!((&all[1].1.ids[..], all[1].1.now), (&[0, 1, 2][..], 80_000));
    };
    check(&store);
    check(&open_read_only(&files).unwrap());
    store.close().unwrap();
    check(&open_read_only(&files).unwrap());
    check(&open(&files).unwrap());
    check(&open(&files).unwrap());
}

#[test]
fn a_touch_of_a_snapshot_goes_back_to_it_whatever_came_between() {
    let (_, store) = new_with_history(2);
    append(&store, &[varied(0, 2), varied(1, 2), varied(2, 2)]);
    store.delete(&[1]).unwrap();
    let snapshot = store.snapshot();
    let seen = observed(&snapshot);
    store.touch(Agent::OWN, &[0, 2], 90_000).unwrap();
    store.delete(&[2]).unwrap();
    append(&store, &[varied(3, 2)]);
    let mut bulk = store.bulk().unwrap();
    bulk.push(&varied(4, 2).borrowed()).unwrap();
    bulk.commit().unwrap();
    let from_then = NewTouch {
        seen: Some(&snapshot),
        ..touch(&[0, 2], 60_000)
    };
    let sequence = touched(&store, &from_then);
    assert_before(&store, sequence, &seen);
    let (before, touched) = store.before(sequence).unwrap();
    assert_eq!((before.rows(), before.next_id()), (3, 3));
    assert_eq!(touched.ids, [0, 2], "one was deleted by then");
    // A snapshot that was gone back to is as good as the one that was taken.
    let again = NewTouch {
        seen: Some(&before),
        ..touch(&[0], 61_000)
    };
    let sequence = self::touched(&store, &again);
    assert_before(&store, sequence, &seen);
    // By ids it is the store as it is.
    let now = observed(&store.snapshot());
    let sequence = self::touched(&store, &touch(&[4], 50_000));
    assert_before(&store, sequence, &now);
}

// A bulk append has no record: only the ids tell it from what was there.
#[test]
fn what_a_long_append_added_since_is_not_there() {
    let (_, store) = new_with_history(2);
    append(&store, &[varied(0, 2)]);
    let before = observed(&store.snapshot());
    let snapshot = store.snapshot();
    let mut bulk = store.bulk().unwrap();
    bulk.skip_ids_to(7).unwrap();
    for i in 7..40 {
        bulk.push(&varied(i, 2).borrowed()).unwrap();
    }
    bulk.commit().unwrap();
    assert_eq!(store.snapshot().sequence(), snapshot.sequence());
    let late = touched(
        &store,
        &NewTouch {
            seen: Some(&snapshot),
            ..touch(&[0], 60_000)
        },
    );
    let after = observed(&store.snapshot());
    let now = touched(&store, &touch(&[0, 39], 70_000));
    assert_before(&store, late, &before);
    assert_before(&store, now, &after);
    assert_eq!(store.before(now).unwrap().0.rows(), 34);
}

#[test]
fn a_touch_that_alters_nothing_has_a_record_only_where_history_is_kept() {
    let (_, store) = new_with_history(2);
    append(&store, &[varied(0, 2), varied(1, 2)]);
    let first = touched(&store, &touch(&[0], 60_000));
    let again = touched(&store, &touch(&[0], 60_000));
    let earlier = touched(&store, &touch(&[0], 50_000));
    store.delete(&[1]).unwrap();
    let deleted = touched(&store, &touch(&[1], 70_000));
    assert_eq!([again, earlier, deleted], [first + 1, first + 2, first + 4]);
    assert_eq!(store.touch_with(&touch(&[], 70_000)).unwrap(), None);
    assert_eq!(
        store.before(again).unwrap().0.last_access(Agent::OWN, 0),
        60_000
    );
    assert_eq!(store.touches().unwrap().len(), 4);
    store.keep_history(0).unwrap();
    for nothing in [touch(&[0], 60_000), touch(&[1], 80_000), touch(&[], 80_000)] {
        assert_eq!(store.touch_with(&nothing).unwrap(), None);
    }
    let one = touched(&store, &touch(&[0, 1], 60_001));
    assert_eq!(store.before(one).unwrap().1.ids, [0, 1]);
}

// A touch of a deleted memory is none, whether its record was read again or not.
#[test]
fn a_memory_that_comes_back_was_not_touched_after_its_end() {
    let (files, store) = new_with_history(2);
    append(&store, &[varied(0, 2), varied(1, 2)]);
    let before = observed(&store.snapshot());
    let sequence = touched(&store, &touch(&[0], 60_000));
    store.delete(&[1]).unwrap();
    store.touch(Agent::OWN, &[0, 1], 70_000).unwrap();
    assert_before(&store, sequence, &before);
    let killed = killed(&files);
    assert_before(&open(&killed).unwrap(), sequence, &before);
    store.checkpoint().unwrap();
    assert_before(&store, sequence, &before);
}

#[test]
fn a_note_is_kept_up_to_its_limit() {
    let (_, store) = new_with_history(2);
    append(&store, &[varied(0, 2)]);
    let note: Vec<u8> = (0..65_537_u32).map(|i| (i % 251) as u8).collect();
    let with = |len: usize| NewTouch {
        note: &note[..len],
        ..touch(&[0], 60_000)
    };
    let refused = store.touch_with(&with(65_537)).unwrap_err();
    let expected = "a note of 65537 bytes; 65536 at most; nothing was touched";
    assert_eq!(refused.to_string(), expected);
    assert!(matches!(refused, TouchError::Note { .. }));
    assert_eq!(last_access(&store.snapshot()), [-9_000]);
    for len in [0, 1, 65_536] {
        let sequence = touched(&store, &with(len));
        assert_eq!(store.before(sequence).unwrap().1.note, note[..len]);
    }
}

#[test]
#[should_panic(expected = "a snapshot of another store")]
fn a_snapshot_of_another_store_is_the_callers_mistake() {
    let ((_, one), (_, other)) = (new_with_history(2), new_with_history(2));
    append(&one, &[varied(0, 2)]);
    append(&other, &[varied(0, 2)]);
    append(&other, &[varied(1, 2)]);
    let _ = one.touch_with(&NewTouch {
        seen: Some(&other.snapshot()),
        ..touch(&[0], 1)
    });
}

#[test]
fn each_reason_why_there_is_no_way_back_has_its_error() {
    let (files, store) = new_with_history(2);
    append(&store, &[varied(0, 2), varied(1, 2), varied(2, 2)]);
    let first = touched(&store, &touch(&[0], 60_000));
    let last = store.snapshot().sequence();
    for sequence in [0, last + 1, u64::MAX] {
        let error = store.before(sequence).unwrap_err();
        assert!(matches!(error, HistoryError::NoRecord { .. }), "{error}");
        let expected = format!("there is no record {sequence}; the last is {last}");
        assert_eq!(error.to_string(), expected);
    }
    let error = store.before(first - 1).unwrap_err();
    assert!(matches!(error, HistoryError::NotATouch { sequence } if sequence == first - 1));

    store.delete(&[1]).unwrap();
    let without = touched(&store, &touch(&[0], 61_000));
    let expected = observed(&store.snapshot());
    let later = touched(&store, &touch(&[0], 62_000));
    store.compact().unwrap();
    let error = store.before(first).unwrap_err();
    assert!(
        matches!(error, HistoryError::Compacted { id: 1 }),
        "{error}"
    );
    // By then it was deleted.
    assert!(store.before(without).is_ok());
    let (before, _) = store.before(later).unwrap();
    assert_eq!(observed(&before), expected);
    // Of what was appended and deleted since nothing is needed.
    append(&store, &[varied(3, 2)]);
    store.delete(&[3]).unwrap();
    store.compact().unwrap();
    assert!(store.before(without).is_ok());

    store.close().unwrap();
    let store = open(&files).unwrap();
    store.keep_history(0).unwrap();
    let oldest = store.snapshot().sequence() + 1;
    let gone = touched(&store, &touch(&[0], 63_000));
    assert_eq!(gone, oldest);
    let error = store.before(later).unwrap_err();
    assert!(
        matches!(error, HistoryError::NotKept { sequence, needed, oldest: found }
            if (sequence, needed, found) == (later, later, oldest)),
        "{error}"
    );
    assert!(store.before(gone).is_ok());
    assert_eq!(store.touches().unwrap().len(), 1);
    store.checkpoint().unwrap();
    let error = store.before(gone).unwrap_err();
    assert!(
        matches!(error, HistoryError::NotKept { oldest: found, .. } if found == oldest + 1),
        "{error}"
    );
    assert!(store.touches().unwrap().is_empty());
}

// The touch is kept, but not all that came after what it saw.
#[test]
fn a_touch_whose_snapshot_is_older_than_what_is_kept_says_what_it_needs() {
    let (_, store) = new_in_memory(2, Dtype::F32);
    append(&store, &[varied(0, 2)]);
    let snapshot = store.snapshot();
    store.touch(Agent::OWN, &[0], 60_000).unwrap();
    store.checkpoint().unwrap();
    let old = NewTouch {
        seen: Some(&snapshot),
        ..touch(&[0], 70_000)
    };
    let sequence = touched(&store, &old);
    let error = store.before(sequence).unwrap_err();
    let expected = format!(
        "record {sequence} needs the journal from record {} on, which is kept from record {sequence} on; \
         have more kept from now on with `Store::keep_history`",
        sequence - 1
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn going_back_changes_no_byte() {
    let (dir, path) = worn(9, 2, Dtype::F16);
    let store = Store::open(&path).unwrap();
    store.keep_history(u64::MAX).unwrap();
    let sequence = touched(&store, &touch(&[0, 2], 2_000_000));
    store.close().unwrap();
    let bytes = bytes_of(&path);
    let store = Store::open_read_only(&path).unwrap();
    let (before, _) = store.before(sequence).unwrap();
    assert!(before.last_access(Agent::OWN, 0) < 2_000_000);
    assert_eq!(store.touches().unwrap().len(), 1);
    drop(store);
    assert_eq!(bytes_of(&path), bytes);
    drop(dir);
}
