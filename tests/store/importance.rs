//! Importances of agents' own.

use crate::example::*;
use memorank::kernel::Dtype;
use memorank::store::{Agent, ImportanceError, Snapshot, Store, WriteError, verify};

/// What each of the first rows has for an agent.
fn importances(snapshot: &Snapshot, agent: Agent) -> Vec<f32> {
    let rows = 0..snapshot.rows();
    let each: Vec<_> = rows.map(|row| snapshot.importance_of(agent, row)).collect();
    let segments = snapshot.segments(agent);
    let in_segments: Vec<_> = segments.flat_map(|s| s.importance.to_vec()).collect();
    assert_eq!(each, in_segments);
    each
}

#[test]
fn an_importance_is_an_agents_own_wherever_the_row_lies_and_can_be_taken_away() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    let memories: Vec<_> = (0..4)
        .map(|i| Owned {
            importance: 5.0,
            ..varied(i, 2)
        })
        .collect();
    append(&store, &memories[..2]);
    store.checkpoint().unwrap();
    append(&store, &memories[2..]);
    assert_eq!(
        store.set_importance(OTHER, &[0, 3, 3], Some(9.0)).unwrap(),
        2
    );
    assert_eq!(store.set_importance(OTHER, &[0, 1], Some(9.0)).unwrap(), 1);
    assert_eq!(
        store.set_importance(Agent::OWN, &[2], Some(-0.0)).unwrap(),
        1
    );
    assert_eq!(store.set_importance(Agent(3), &[2], Some(5.0)).unwrap(), 0);
    assert_eq!(store.set_importance(Agent(3), &[2], None).unwrap(), 0);
    let look = |store: &Store| {
        for snapshot in [
            store.snapshot(),
            Store::open_read_only(&path).unwrap().snapshot(),
        ] {
            assert_eq!(importances(&snapshot, OTHER), [9.0, 9.0, 5.0, 9.0]);
            assert_eq!(importances(&snapshot, Agent::OWN), [5.0, 5.0, 0.0, 5.0]);
            assert_eq!(importances(&snapshot, Agent(3)), [5.0; 4]);
            assert_eq!(snapshot.memory(2).unwrap().importance.to_bits(), 0);
            assert!((0..4).all(|row| snapshot.importance(row) == 5.0));
            let own: Vec<_> = snapshot.own_importances().collect();
            let expected = [
                (Agent::OWN, 2, 0.0),
                (OTHER, 0, 9.0),
                (OTHER, 1, 9.0),
                (OTHER, 3, 9.0),
            ];
            assert_eq!(own, expected);
        }
        assert_eq!(verify(&path).unwrap().damages, []);
    };
    look(&store);
    store.checkpoint().unwrap();
    look(&store);
    store.compact().unwrap();
    look(&store);
    drop(store);
    let store = Store::open(&path).unwrap();
    look(&store);
    let before = store.snapshot();
    assert_eq!(store.set_importance(OTHER, &[0, 1, 2], None).unwrap(), 2);
    store.delete(&[3]).unwrap();
    store.close().unwrap();
    let snapshot = Store::open_read_only(&path).unwrap().snapshot();
    let own: Vec<_> = snapshot.own_importances().collect();
    assert_eq!(own, [(Agent::OWN, 2, 0.0)]);
    assert_eq!(importances(&before, OTHER), [9.0, 9.0, 5.0, 9.0]);
}

#[test]
fn a_checkpoint_that_changes_no_importance_leaves_their_file() {
    let (_dir, path) = worn(9, 2, Dtype::F16);
    let file = || {
        let names = bytes_of(&path).into_keys();
        let mut named = names.filter(|name| name.starts_with("override."));
        (named.next().unwrap(), named.next())
    };
    let before = file();
    let store = Store::open(&path).unwrap();
    append(&store, &[varied(9, 2)]);
    store.checkpoint().unwrap();
    assert_eq!(file(), before);
    store.set_importance(OTHER, &[2], None).unwrap();
    store.checkpoint().unwrap();
    let after = file();
    assert!(after.0 != before.0 && after.1.is_none(), "{after:?}");
    assert!(bytes_of(&path)[&after.0].is_empty());
}

// B89
#[test]
fn what_is_no_importance_or_of_no_memory_is_refused_and_changes_no_byte() {
    let (_dir, path) = worn(9, 2, Dtype::F32);
    let store = Store::open(&path).unwrap();
    let before = bytes_of(&path);
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = store.set_importance(OTHER, &[0], Some(value)).unwrap_err();
        assert!(
            matches!(error, ImportanceError::NotFinite { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("must be finite"));
    }
    for id in [9, u64::MAX] {
        let error = store
            .set_importance(OTHER, &[0, id], Some(1.0))
            .unwrap_err();
        assert!(
            matches!(error, ImportanceError::NoId { next: 9, .. }),
            "{error}"
        );
    }
    assert!(bytes_of(&path) == before);
    // Of a deleted memory nothing is recorded.
    assert_eq!(store.set_importance(OTHER, &[7], Some(1.0)).unwrap(), 0);
    store.close().unwrap();
    let reader = Store::open_read_only(&path).unwrap();
    let error = reader.set_importance(OTHER, &[0], Some(1.0)).unwrap_err();
    assert!(
        matches!(error, ImportanceError::Write(WriteError::ReadOnly { .. })),
        "{error}"
    );
}
