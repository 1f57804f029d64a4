//! What an append refuses, and that nothing of it stays.

use crate::example::*;
use memorank::kernel::{Dtype, f16};
use memorank::store::{AppendError, Kind, MemoryProblem, Reference, Store, verify};
use std::path::Path;

/// Appending `bad` last in a batch is refused, in one call and pushed one by one, and changes nothing.
fn refused(store: &Store, path: &Path, bad: Owned) -> MemoryProblem {
    // A bulk append does so anyway.
    store.checkpoint().unwrap();
    let before = (
        store.snapshot().len(),
        store.snapshot().next_id(),
        store.snapshot().kinds().len(),
        columns_of(path),
    );
    let dim = store.snapshot().dim().get();
    let good = plain(&vec![1.0; dim]);
    let batch = [good.borrowed(), bad.borrowed()];
    let problem = match store.append(&batch) {
        Err(AppendError::Refused { index: 1, problem }) => problem,
        other => panic!("{other:?}"),
    };
    let mut bulk = store.bulk().unwrap();
    bulk.push(&batch[0]).unwrap();
    match bulk.push(&batch[1]) {
        Err(AppendError::Refused {
            index: 1,
            problem: p,
        }) => {
            assert_eq!(p.to_string(), problem.to_string());
        }
        other => panic!("{other:?}"),
    }
    drop(bulk);
    let after = (
        store.snapshot().len(),
        store.snapshot().next_id(),
        store.snapshot().kinds().len(),
        columns_of(path),
    );
    assert!(before == after, "{problem}");
    problem
}

// B08
#[test]
fn non_finite_elements_are_named_and_refused() {
    for dtype in [Dtype::F32, Dtype::F16] {
        let (_dir, path, store) = new_store(37, dtype);
        let half = |bits| f16::from_bits(bits).to_f32();
        for value in [
            f32::NAN,
            f32::INFINITY,
            -f32::INFINITY,
            half(0x7e00),
            half(0x7c00),
        ] {
            for element in [0, 1, 15, 16, 32, 36] {
                let mut vector = vec![0.5; 37];
                vector[element] = value;
                match refused(&store, &path, plain(&vector)) {
                    MemoryProblem::NonFinite {
                        element: e,
                        value: v,
                    } => {
                        assert_eq!((e, v.to_bits()), (element, value.to_bits()));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

// B69
#[test]
fn what_rounds_to_infinity_in_f16_is_refused() {
    let (_dir, path, store) = new_store(2, Dtype::F16);
    for value in [70000.0, 65520.0, -65520.0, f32::MAX] {
        let problem = refused(&store, &path, plain(&[1.0, value]));
        assert_eq!(problem, MemoryProblem::F16Overflow { element: 1, value });
    }
    append(&store, &[plain(&[65519.9, -65504.0])]);
    store.checkpoint().unwrap();
    let file = std::fs::read(path.join("embedding.f16")).unwrap();
    assert_eq!(file, [0xff, 0x7b, 0xff, 0xfb]);
    // f32 has room for it.
    let (_dir, _path, store) = new_store(2, Dtype::F32);
    append(&store, &[plain(&[70000.0, 1.0])]);
}

// B06, B20
#[test]
fn lengths_without_a_direction_are_refused_as_stored() {
    let (_dir, path, store) = new_store(2, Dtype::F16);
    // 1e-9 is 0 in f16.
    for vector in [[0.0, 0.0], [-0.0, 0.0], [1e-9, 1e-9]] {
        let problem = refused(&store, &path, plain(&vector));
        assert_eq!(problem, MemoryProblem::Length { length: 0.0 });
    }
    let (_dir, path, store) = new_store(2, Dtype::F32);
    for vector in [[1e-30, 0.0], [1e30, 0.0], [0.0, f32::from_bits(1)]] {
        let problem = refused(&store, &path, plain(&vector));
        assert!(matches!(problem, MemoryProblem::Length { .. }), "{problem}");
    }
    append(&store, &[plain(&[1e-9, 1e-9]), plain(&[3e19, 4e19])]);
    let mut without = plain(&[]);
    without.embedding = None;
    append(&store, &[without]);
    assert!(!store.snapshot().has_embedding(2));
}

// B87
#[test]
fn an_empty_or_short_embedding_is_not_none() {
    let (_dir, path, store) = new_store(3, Dtype::F32);
    for found in [0, 1, 2, 4, 6] {
        let problem = refused(&store, &path, plain(&vec![1.0; found]));
        assert_eq!(problem, MemoryProblem::Dimension { expected: 3, found });
    }
    let mut without = plain(&[]);
    without.embedding = None;
    append(&store, &[without, plain(&[1.0, 0.0, 0.0])]);
    assert_eq!(store.info().without_vector, 1);
    assert!(!store.snapshot().memory(0).unwrap().has_embedding);
}

#[test]
fn importance_is_finite_and_never_minus_zero() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    for value in [f32::NAN, f32::INFINITY, -f32::INFINITY] {
        let mut memory = plain(&[1.0]);
        memory.importance = value;
        let problem = refused(&store, &path, memory);
        assert!(
            matches!(problem, MemoryProblem::Importance { .. }),
            "{problem}"
        );
    }
    let mut memory = plain(&[1.0]);
    memory.importance = -0.0;
    append(&store, &[memory]);
    assert_eq!(store.snapshot().importance(0).to_bits(), 0);
}

#[test]
fn an_expiry_that_would_read_back_as_none_is_refused() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    let expiring = |expiry| Owned {
        expiry: Some(expiry),
        ..plain(&[1.0])
    };
    let problem = refused(&store, &path, expiring(i64::MAX));
    assert_eq!(problem, MemoryProblem::Expiry);
    assert!(problem.to_string().contains("give None"), "{problem}");
    let kept = [expiring(i64::MAX - 1), expiring(i64::MIN)];
    append(&store, &kept);
    for (row, memory) in kept.iter().enumerate() {
        assert_row(&store.snapshot(), row, row as u64, memory);
    }
}

#[test]
fn a_key_is_given_once() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    let keyed = |key: &str| Owned {
        key: Some(key.into()),
        ..plain(&[1.0])
    };
    let taken = |key: &str, id| MemoryProblem::DuplicateKey {
        key: key.into(),
        id,
    };
    assert_eq!(refused(&store, &path, keyed("")), MemoryProblem::EmptyKey);
    append(&store, &[keyed("a"), plain(&[1.0]), keyed("b")]);
    assert_eq!(refused(&store, &path, keyed("b")), taken("b", 2));
    // Within one batch, and one bulk append whose first keys are only staged.
    for first_key in ["c", "much longer than the others"] {
        let first = keyed(first_key);
        let batch = [first.borrowed(), first.borrowed()];
        let in_batch = store.append(&batch);
        let Err(AppendError::Refused { index: 1, problem }) = in_batch else {
            panic!("{in_batch:?}");
        };
        assert_eq!(problem, taken(first_key, 3));
    }
    let mut bulk = store.bulk().unwrap();
    for key in ["c", "dd", "eee"] {
        bulk.push(&keyed(key).borrowed()).unwrap();
    }
    for (key, id) in [("c", 3), ("dd", 4), ("eee", 5), ("a", 0)] {
        match bulk.push(&keyed(key).borrowed()) {
            Err(AppendError::Refused { index: 3, problem }) => assert_eq!(problem, taken(key, id)),
            other => panic!("{other:?}"),
        }
    }
    bulk.push(&keyed("f").borrowed()).unwrap();
    assert_eq!(bulk.commit().unwrap(), 3..7);
    let snapshot = store.snapshot();
    assert_eq!(snapshot.row_of_key("eee").unwrap(), Some(5));
    assert_eq!(snapshot.row_of_key("f").unwrap(), Some(6));
    // Not taken by an append that was dropped.
    let mut bulk = store.bulk().unwrap();
    bulk.push(&keyed("g").borrowed()).unwrap();
    drop(bulk);
    append(&store, &[keyed("g")]);
    assert_eq!(verify(&path).unwrap().damages, []);
}

#[test]
fn a_kind_has_a_name() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    let memory = Owned {
        kind: Kind::named(""),
        ..plain(&[1.0])
    };
    assert_eq!(refused(&store, &path, memory), MemoryProblem::EmptyKind);
}

// B81: what the store sees to. An importer may cite what is not there yet, and twice.
#[test]
fn evidence_is_older_than_what_cites_it_and_cited_once_unless_imported() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    append(&store, &[plain(&[1.0])]);
    let citing = |id| Owned {
        evidence: vec![Reference::Id(0), Reference::Id(id)],
        ..plain(&[1.0])
    };
    // The refused one would have id 2.
    for id in [2, 3, 999, u64::MAX] {
        let problem = refused(&store, &path, citing(id));
        let expected = MemoryProblem::ForwardEvidence {
            position: 1,
            id,
            own: 2,
        };
        assert_eq!(problem, expected);
    }
    let problem = refused(&store, &path, citing(0));
    let twice = MemoryProblem::DuplicateEvidence {
        position: 1,
        id: 0,
        first: 0,
    };
    assert_eq!(problem, twice);
    let mut bulk = store.bulk().unwrap();
    bulk.allow_any_evidence();
    bulk.push(&citing(2).borrowed()).unwrap();
    bulk.push(&citing(0).borrowed()).unwrap();
    bulk.commit().unwrap();
    let evidence = |row| store.snapshot().memory(row).unwrap().evidence;
    assert_eq!(evidence(1), [Reference::Id(0), Reference::Id(2)]);
    assert_eq!(evidence(2), [Reference::Id(0), Reference::Id(0)]);
    // Many, in order; a reference to nothing is no id, and an observation may have none at all.
    append(&store, &vec![plain(&[1.0]); 10_000]);
    let mut many: Vec<_> = (0..10_000).rev().map(Reference::Id).collect();
    many.extend(vec![Reference::Missing("gone".into()); 2]);
    append(
        &store,
        &[Owned {
            evidence: many.clone(),
            ..plain(&[1.0])
        }],
    );
    assert_eq!(evidence(10_003), many);
    many.push(Reference::Id(5));
    let again = Owned {
        evidence: many,
        ..plain(&[1.0])
    };
    let twice = MemoryProblem::DuplicateEvidence {
        position: 10_002,
        id: 5,
        first: 9994,
    };
    assert_eq!(refused(&store, &path, again), twice);
}

// B33
#[test]
fn a_batch_is_stored_whole_or_not_at_all() {
    let (_dir, path, store) = new_store(3, Dtype::F32);
    let mut batch: Vec<_> = (0..10).map(|i| varied(i, 3)).collect();
    batch[7].embedding = Some(vec![1.0, f32::NAN, 0.0]);
    let before = bytes_of(&path);
    let news: Vec<_> = batch.iter().map(Owned::borrowed).collect();
    let error = store.append(&news).unwrap_err();
    assert_eq!(
        error.to_string(),
        "memory 7: element 1 is NaN; embeddings must be finite"
    );
    let snapshot = store.snapshot();
    assert_eq!((snapshot.rows(), snapshot.next_id()), (0, 0));
    assert!(bytes_of(&path) == before);
    batch[7] = varied(7, 3);
    assert_eq!(append(&store, &batch), 0..10);
    // Nor does a journal that is written to already get anything of it.
    let before = bytes_of(&path);
    for embedding in [vec![1.0, f32::NAN, 0.0], vec![1.0], vec![]] {
        assert!(store.append(&[plain(&embedding).borrowed()]).is_err());
        assert!(bytes_of(&path) == before);
    }
    assert_eq!(append(&store, &[varied(10, 3)]), 10..11);
    batch.push(varied(10, 3));
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    for (row, memory) in batch.iter().enumerate() {
        assert_row(&store.snapshot(), row, row as u64, memory);
    }
}
