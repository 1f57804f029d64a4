//! Ids that are left out, and kinds that are named ahead.

use crate::example::*;
use memorank::kernel::Dtype;
use memorank::store::{AppendError, Kind, MemoryProblem, Store, verify};

#[test]
fn ids_that_are_left_out_are_never_given() {
    let folder = Folder::new();
    let store = folder.create("store", 1, Dtype::F32);
    append(&store, &[plain("zero", None)]);
    let one = plain("x", Some(&[1.0]));
    let mut bulk = store.bulk().unwrap();
    assert_eq!(bulk.push(&one.borrowed()).unwrap(), 1);
    bulk.skip_ids_to(2).unwrap().skip_ids_to(5).unwrap();
    assert_eq!(bulk.push(&one.borrowed()).unwrap(), 5);
    bulk.skip_ids_to(9).unwrap();
    assert_eq!(bulk.commit().unwrap(), 1..9);
    assert_eq!(append(&store, &[one.clone(), one]), 9..11);
    assert_eq!(store.delete(&[2, 3, 7]).unwrap(), 0);
    store.close().unwrap();
    let store = Store::open(folder.path("store")).unwrap();
    let snapshot = store.snapshot();
    let ids: Vec<u64> = (0..snapshot.rows()).map(|row| snapshot.id(row)).collect();
    assert_eq!((ids, snapshot.next_id()), (vec![0, 1, 5, 9, 10], 11));
    assert_eq!(snapshot.row_of_id(5), Some(2));
    assert_eq!(snapshot.row_of_id(4), None);
    drop(store);
    assert_eq!(verify(folder.path("store")).unwrap().damages, []);
}

#[test]
fn ids_do_not_go_back() {
    let folder = Folder::new();
    let store = folder.create("store", 1, Dtype::F32);
    let mut bulk = store.bulk().unwrap();
    bulk.skip_ids_to(4).unwrap();
    bulk.push(&plain("x", None).borrowed()).unwrap();
    for id in [0, 3, 4] {
        let refused = bulk.skip_ids_to(id).map(|_| ());
        assert!(
            matches!(refused, Err(AppendError::IdsGoBack { id: asked, next: 5 }) if asked == id),
            "{refused:?}"
        );
    }
    assert_eq!(bulk.push(&plain("y", None).borrowed()).unwrap(), 5);
    assert_eq!(bulk.commit().unwrap(), 0..6);
}

#[test]
fn a_commit_without_memories_leaves_ids_out_and_names_kinds() {
    let folder = Folder::new();
    let store = folder.create("store", 1, Dtype::F32);
    let kinds = ["b", "a"].map(Kind::named);
    let mut bulk = store.bulk().unwrap();
    bulk.name_kinds(&kinds).unwrap();
    bulk.skip_ids_to(u64::MAX - 1).unwrap();
    assert_eq!(bulk.commit().unwrap(), 0..u64::MAX - 1);
    store.close().unwrap();
    let store = Store::open(folder.path("store")).unwrap();
    let named = plain("x", None);
    assert_eq!(
        append(&store, std::slice::from_ref(&named)),
        u64::MAX - 1..u64::MAX
    );
    let full = store.append(&[named.borrowed()]);
    assert!(matches!(full, Err(AppendError::Full)), "{full:?}");
    let kinds = ["b", "a", "observation"].map(Kind::named);
    assert_eq!(store.snapshot().kinds(), kinds);
    store.close().unwrap();
    assert_eq!(verify(folder.path("store")).unwrap().damages, []);
}

#[test]
fn a_key_that_is_taken_is_told_with_the_id_that_has_it() {
    let folder = Folder::new();
    let store = folder.create("store", 1, Dtype::F32);
    let keyed = Owned {
        key: Some("k".into()),
        kind: Kind::CHAT,
        ..plain("x", None)
    };
    let mut bulk = store.bulk().unwrap();
    bulk.skip_ids_to(7).unwrap();
    bulk.push(&keyed.borrowed()).unwrap();
    bulk.skip_ids_to(20).unwrap();
    // What is refused names no kind either.
    let again = Owned {
        kind: Kind::PLAN,
        ..keyed.clone()
    };
    let Err(AppendError::Refused { problem, .. }) = bulk.push(&again.borrowed()) else {
        panic!("it is taken");
    };
    let key = "k".to_owned();
    assert_eq!(problem, MemoryProblem::DuplicateKey { key, id: 7 });
    bulk.commit().unwrap();
    assert_eq!(store.snapshot().kinds(), [Kind::CHAT]);
    let refused = store.bulk().unwrap().push(&again.borrowed());
    assert!(
        matches!(
            refused,
            Err(AppendError::Refused {
                problem: MemoryProblem::DuplicateKey { id: 7, .. },
                ..
            })
        ),
        "{refused:?}"
    );
}
