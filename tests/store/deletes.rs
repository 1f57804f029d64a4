//! What a delete takes away, and what stays.

use crate::example::*;
use crate::in_memory::*;
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Ranking, Workspace};
use memorank::store::{
    Agent, AppendError, DeleteError, MemoryProblem, ReadError, Reference, Snapshot, Store, verify,
};
use memorank::stream::{Ask, Retrieve, rank, retrieve};

/// The three states that a delete can be in: in the journal, in the columns, and with its rows gone. Each
/// is looked at through the handle, and as a reader finds it.
fn at_each_stage(store: Store, check: impl Fn(&Snapshot, bool)) {
    let path = store.path().to_owned();
    let look = |store: &Store, compacted| {
        check(&store.snapshot(), compacted);
        check(&Store::open_read_only(&path).unwrap().snapshot(), compacted);
        assert_eq!(verify(&path).unwrap().damages, []);
    };
    look(&store, false);
    store.checkpoint().unwrap();
    look(&store, false);
    store.compact().unwrap();
    look(&store, true);
    store.close().unwrap();
    look(&Store::open(&path).unwrap(), true);
}

fn ask<'a>(preset: &'a Preset, embedding: &'a [f32]) -> Ask<'a> {
    Ask::new(embedding, 1_000_000, preset)
}

/// The ids of the `k` best.
fn best(snapshot: &Snapshot, k: usize) -> Vec<u64> {
    let preset = Preset {
        k,
        ..Preset::paper()
    };
    let mut ranking = Ranking::default();
    let ask = ask(&preset, &[1.0, 0.0]);
    rank(
        snapshot,
        &ask,
        Par::Serial,
        &mut Workspace::default(),
        &mut ranking,
    )
    .unwrap();
    ranking
        .hits
        .iter()
        .map(|hit| snapshot.id(hit.row))
        .collect()
}

// B34
#[test]
fn deleted_memories_take_no_slots() {
    let (_dir, _path, store) = new_store(2, Dtype::F32);
    let memories: Vec<_> = (0..60)
        .map(|i| Owned {
            importance: (i * 7 % 10) as f32,
            ..plain(&[(i as f32 / 60.0).cos(), (i as f32 / 60.0).sin()])
        })
        .collect();
    append(&store, &memories[..40]);
    store.checkpoint().unwrap();
    append(&store, &memories[40..]);
    let all = best(&store.snapshot(), 60);
    assert_eq!(all.len(), 60);
    assert_eq!(store.delete(&all[..3]).unwrap(), 3);
    at_each_stage(store, |snapshot, _| {
        // The rest are scored among themselves, so their order may be another.
        assert_eq!(snapshot.len(), 57);
        let live = best(snapshot, 60);
        assert_eq!(live.len(), 57);
        assert!(all[..3].iter().all(|id| !live.contains(id)));
        for k in [1, 10] {
            assert_eq!(best(snapshot, k), live[..k]);
        }
    });
}

// B39
#[test]
fn a_store_whose_memories_are_all_deleted_is_empty() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(&store, &vec![plain(&[1.0, 0.5]); 100]);
    store.checkpoint().unwrap();
    append(&store, &[plain(&[1.0, 0.5])]);
    assert_eq!(store.delete(&(0..101).collect::<Vec<_>>()).unwrap(), 101);
    at_each_stage(store, |snapshot, compacted| {
        assert!(snapshot.is_empty());
        assert_eq!(snapshot.rows(), if compacted { 0 } else { 101 });
        assert_eq!((snapshot.len(), snapshot.next_id()), (0, 101));
        assert!(best(snapshot, 10).is_empty());
    });
    let store = Store::open(&path).unwrap();
    assert_eq!(append(&store, &[plain(&[1.0, 0.5])]), 101..102);
    assert_eq!(best(&store.snapshot(), 10), [101]);
}

// B80: evidence that names a deleted memory stays as it is, and tells that the memory is missing.
#[test]
fn evidence_of_a_deleted_memory_is_missing_and_not_shorter() {
    let (_dir, _path, store) = new_store(2, Dtype::F32);
    append(&store, &vec![plain(&[1.0, 0.0]); 3]);
    let cited = [2, 0, 1].map(Reference::Id).to_vec();
    let reflection = Owned {
        evidence: cited.clone(),
        depth: 1,
        ..plain(&[0.0, 1.0])
    };
    append(&store, &[reflection]);
    assert_eq!(store.delete(&[0]).unwrap(), 1);
    at_each_stage(store, |snapshot, _| {
        let row = snapshot.row_of_id(3).unwrap();
        let evidence = snapshot.memory(row).unwrap().evidence;
        assert_eq!(evidence, cited);
        let found = evidence.iter().map(|reference| match reference {
            Reference::Id(id) => snapshot.row_of_id(*id).map(|row| snapshot.id(row)),
            Reference::Missing(_) => unreachable!("none was cited"),
        });
        assert_eq!(found.collect::<Vec<_>>(), [Some(2), None, Some(1)]);
        assert_eq!(best(snapshot, 9).len(), 3);
    });
}

// B82
#[test]
fn ids_stay_and_are_never_given_again() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    append(&store, &vec![plain(&[1.0]); 5]);
    assert_eq!(store.delete(&[2]).unwrap(), 1);
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(append(&store, &[plain(&[1.0])]), 5..6);
    // The last one, so that the next id is not that of any row.
    assert_eq!(store.delete(&[5]).unwrap(), 1);
    store.compact().unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(append(&store, &[plain(&[1.0])]), 6..7);
    at_each_stage(store, |snapshot, _| {
        let ids: Vec<_> = (0..snapshot.rows()).map(|row| snapshot.id(row)).collect();
        assert_eq!(ids, [0, 1, 3, 4, 6]);
        for (row, &id) in ids.iter().enumerate() {
            assert_eq!(snapshot.row_of_id(id), Some(row));
        }
        for gone in [2, 5, 7, u64::MAX] {
            assert_eq!(snapshot.row_of_id(gone), None);
        }
    });
}

#[test]
fn a_deleted_memory_is_told_from_a_row_that_never_was() {
    let (_dir, _path, store) = new_store(3, Dtype::F16);
    append(&store, &(0..6).map(|i| varied(i, 3)).collect::<Vec<_>>());
    assert_eq!(store.delete(&[4, 0, 4]).unwrap(), 2);
    assert_eq!(store.delete(&[4, 5]).unwrap(), 1);
    at_each_stage(store, |snapshot, compacted| {
        assert_eq!((snapshot.len(), snapshot.next_id()), (3, 6));
        for id in [1, 2, 3] {
            let row = snapshot.row_of_id(id).unwrap();
            assert_row(snapshot, row, id, &varied(id, 3));
        }
        let rows = snapshot.rows();
        assert_eq!(
            snapshot.memory(rows),
            Err(ReadError::NoRow { row: rows, rows })
        );
        assert!(!snapshot.is_live(rows));
        if !compacted {
            for row in [0, 4, 5] {
                assert_eq!(snapshot.memory(row), Err(ReadError::Deleted { row }));
                assert_eq!(snapshot.embedding(row), None);
                assert!(!snapshot.is_live(row));
            }
        }
    });
}

#[test]
fn an_id_that_was_never_given_deletes_nothing() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    append(&store, &vec![plain(&[1.0]); 2]);
    let refused = |store: &Store| {
        let before = bytes_of(&path);
        for id in [2, u64::MAX] {
            let error = store.delete(&[0, id]).unwrap_err();
            assert!(matches!(error, DeleteError::NoId { id: i, next: 2 } if i == id));
        }
        assert_eq!(store.snapshot().len(), 2);
        assert!(bytes_of(&path) == before);
    };
    refused(&store);
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    refused(&store);
    assert_eq!(store.delete(&[]).unwrap(), 0);
}

#[test]
fn the_key_of_a_deleted_memory_is_free() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    let keyed = |text: &str| Owned {
        key: Some("the key".into()),
        text: text.into(),
        ..plain(&[1.0])
    };
    append(&store, &[keyed("first")]);
    let taken = |store: &Store, id| {
        let error = store.append(&[keyed("again").borrowed()]).unwrap_err();
        let AppendError::Refused { problem, .. } = error else {
            panic!("{error}");
        };
        let key = "the key".into();
        assert_eq!(problem, MemoryProblem::DuplicateKey { key, id });
    };
    let found = |store: &Store| {
        let snapshot = store.snapshot();
        let row = snapshot.row_of_key("the key").unwrap()?;
        Some(snapshot.memory(row).unwrap().text.to_owned())
    };
    // In the tail, in the columns, and by a bulk append; each time with the keys known and unknown before.
    for round in 0..6 {
        taken(&store, round);
        assert_eq!(store.delete(&[round]).unwrap(), 1);
        if round % 2 == 0 {
            assert_eq!(found(&store), None);
        }
        if round % 3 == 1 {
            store.checkpoint().unwrap();
        }
        let text = format!("round {round}");
        match round % 3 {
            2 => {
                let mut bulk = store.bulk().unwrap();
                bulk.push(&keyed(&text).borrowed()).unwrap();
                bulk.commit().unwrap();
            }
            _ => assert_eq!(append(&store, &[keyed(&text)]).start, round + 1),
        }
        assert_eq!(found(&store), Some(text.clone()));
        assert_eq!(found(&Store::open_read_only(&path).unwrap()), Some(text));
        assert_eq!(verify(&path).unwrap().damages, []);
    }
    store.compact().unwrap();
    assert_eq!(found(&store).as_deref(), Some("round 5"));
    assert_eq!(verify(&path).unwrap().damages, []);
}

#[test]
fn a_key_that_a_bulk_append_took_from_a_deleted_memory_is_found_after_a_crash() {
    let (files, store) = new_in_memory(1, Dtype::F32);
    let keyed = Owned {
        key: Some("the key".into()),
        ..plain(&[1.0])
    };
    append(&store, std::slice::from_ref(&keyed));
    store.checkpoint().unwrap();
    // The delete is in the journal only, and both rows are in the columns.
    store.delete(&[0]).unwrap();
    let mut bulk = store.bulk().unwrap();
    bulk.push(&keyed.borrowed()).unwrap();
    bulk.commit().unwrap();
    let files = killed(&files);
    for snapshot in [read(&files), open(&files).unwrap().snapshot()] {
        assert_eq!((snapshot.rows(), snapshot.len()), (2, 1));
        assert_eq!(snapshot.row_of_key("the key").unwrap(), Some(1));
    }
    let again = open(&files).unwrap().append(&[keyed.borrowed()]);
    assert!(again.is_err());
}

#[test]
fn a_touch_of_a_deleted_memory_has_no_effect_and_is_no_error() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(&store, &vec![plain(&[1.0, 0.5]); 3]);
    // Ranked before it was deleted, touched after.
    let preset = Preset::paper();
    let old = store.snapshot();
    assert_eq!(store.delete(&[1]).unwrap(), 1);
    store.touch(Agent::OWN, &[0, 1], 77).unwrap();
    assert_eq!(best(&old, 9).len(), 3);
    let wanted = Retrieve::new(ask(&preset, &[1.0, 0.0]));
    let retrieved = retrieve(&store, &wanted, Par::Serial, &mut Workspace::default());
    retrieved.unwrap().touch.unwrap();
    drop(store);
    let snapshot = Store::open(&path).unwrap().snapshot();
    assert_eq!(last_access(&snapshot)[0], 1_000_000);
    assert_eq!(last_access(&snapshot)[2], 1_000_000);
    assert_eq!(snapshot.memory(1), Err(ReadError::Deleted { row: 1 }));
}
