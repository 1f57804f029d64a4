use crate::example::*;
use memorank::kernel::{Dtype, Rows, inv_norms};
use memorank::store::{Agent, OpenOptions, Reference, Store, verify};

#[test]
fn every_field_survives_closing_for_both_types_and_odd_dims() {
    for dtype in [Dtype::F32, Dtype::F16] {
        for dim in [1, 3, 7, 387, 1536] {
            let memories: Vec<_> = (0..25).map(|i| varied(i, dim)).collect();
            let (_dir, path, store) = new_store(dim, dtype);
            assert_eq!(append(&store, &memories[..10]), 0..10);
            assert_eq!(append(&store, &memories[10..11]), 10..11);
            assert_eq!(append(&store, &memories[11..]), 11..25);
            let check = |store: &Store| {
                let store = &store.snapshot();
                assert_eq!(store.len(), 25);
                assert_eq!((store.dim().get(), store.dtype()), (dim, dtype));
                assert_eq!(store.model(), Some("a model"));
                for (row, memory) in memories.iter().enumerate() {
                    assert_row(store, row, row as u64, memory);
                    assert_eq!(store.row_of_id(row as u64), Some(row));
                    if let Some(key) = &memory.key {
                        assert_eq!(store.row_of_key(key).unwrap(), Some(row));
                    }
                }
                assert_eq!(store.row_of_id(25), None);
                assert_eq!(store.row_of_key("node_1").unwrap(), None);
                assert_eq!(store.row_of_key("").unwrap(), None);
                assert!(store.memory(25).is_err());
                assert_eq!(store.embedding(25), None);
            };
            check(&store);
            store.close().unwrap();
            check(&Store::open(&path).unwrap());
            check(&Store::open_read_only(&path).unwrap());
            let in_memory = OpenOptions {
                verify: true,
                in_memory: true,
                read_only: true,
                ..OpenOptions::default()
            };
            check(&Store::open_with(&path, &in_memory).unwrap());
            let report = verify(&path).unwrap();
            assert_eq!(report.damages, []);
            assert_eq!((report.rows, report.without_vector), (25, 8));
            assert_eq!(report.uncommitted_bytes, 0);
        }
    }
}

#[test]
fn columns_are_plain_slices_in_row_order() {
    let (_dir, path) = filled(10, 7, Dtype::F32);
    let store = Store::open_read_only(&path).unwrap();
    let snapshot = store.snapshot();
    let memories: Vec<_> = (0..10).map(|i| varied(i, 7)).collect();
    let segments: Vec<_> = snapshot.segments(Agent::OWN).collect();
    let [segment] = segments[..] else {
        panic!("{} segments", segments.len());
    };
    assert_eq!(segment.rows(), 0..10);
    let Rows::F32(elements) = segment.embeddings else {
        panic!("not f32");
    };
    for (row, memory) in memories.iter().enumerate() {
        let stored = &elements[row * 7..][..7];
        match &memory.embedding {
            Some(embedding) => {
                let mut inv = [0.0];
                inv_norms(snapshot.dim(), Rows::F32(embedding), &mut inv).unwrap();
                assert_eq!((stored, segment.inv_norms[row]), (&embedding[..], inv[0]));
            }
            None => assert_eq!((stored, segment.inv_norms[row]), (&[0.0; 7][..], 0.0)),
        }
        let kind = &snapshot.kinds()[snapshot.kind_index(row) as usize];
        assert_eq!(kind, &memory.kind);
        assert_eq!(
            (snapshot.id(row), snapshot.expiry(row)),
            (row as u64, memory.expiry)
        );
        assert_eq!(snapshot.depth(row), memory.depth);
        assert_eq!(snapshot.has_embedding(row), memory.embedding.is_some());
    }
    let column = |f: fn(&Owned) -> i64| memories.iter().map(f).collect::<Vec<_>>();
    assert_eq!(segment.created, column(|m| m.created));
    assert_eq!(segment.last_access, column(|m| m.last_access));
    assert_eq!(segment.importance[4], -1.0);
    // The files are what the slices are.
    let file = std::fs::read(path.join("importance.f32")).unwrap();
    assert_eq!(file, bytemuck::cast_slice::<f32, u8>(segment.importance));
    let info = store.info();
    assert_eq!((info.memories, info.deleted, info.in_journal), (10, 0, 0));
    assert_eq!((info.without_vector, info.next_id), (3, 10));
    assert_eq!(info.files.len(), 22);
    for file in info.files {
        assert_eq!(std::fs::metadata(&file.path).unwrap().len(), file.bytes);
        assert!(file.path.to_str().unwrap().ends_with(file.element));
    }
}

// B39, B47
#[test]
fn an_empty_store_is_a_store() {
    for in_memory in [false, true] {
        let (_dir, path, store) = new_store(3, Dtype::F16);
        assert!(store.snapshot().is_empty());
        assert_eq!(store.snapshot().segments(Agent::OWN).count(), 0);
        store.close().unwrap();
        assert_eq!(verify(&path).unwrap().damages, []);
        let options = OpenOptions {
            in_memory,
            ..OpenOptions::default()
        };
        let store = Store::open_with(&path, &options).unwrap();
        let empty = store.snapshot();
        assert_eq!((empty.len(), empty.rows(), empty.next_id()), (0, 0, 0));
        assert!(empty.memory(0).is_err());
        assert_eq!(empty.row_of_key("a").unwrap(), None);
        store.touch(Agent::OWN, &[], 9).unwrap();
        assert_eq!(store.delete(&[]).unwrap(), 0);
        assert_eq!(append(&store, &[varied(0, 3)]), 0..1);
        assert_row(&store.snapshot(), 0, 0, &varied(0, 3));
        assert_eq!(store.snapshot().row_of_key("node_0").unwrap(), Some(0));
        assert_eq!(append(&store, &[]), 1..1);
        store.close().unwrap();
        assert_row(&Store::open(&path).unwrap().snapshot(), 0, 0, &varied(0, 3));
    }
}

// B82
#[test]
fn ids_are_dense_and_go_on_after_closing() {
    let (_dir, path) = filled(5, 2, Dtype::F32);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.snapshot().next_id(), 5);
    assert_eq!(append(&store, &[plain(&[1.0, 0.0])]), 5..6);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(append(&store, &[plain(&[1.0, 0.0])]), 6..7);
    let snapshot = store.snapshot();
    assert!((0..7).all(|row| snapshot.id(row) == row as u64));
}

// B83
#[test]
fn evidence_keeps_its_order() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    let mut memories = vec![plain(&[1.0, 0.0]); 5];
    memories[4].evidence = vec![Reference::Id(3), Reference::Id(1)];
    append(&store, &memories);
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    let evidence = store.snapshot().memory(4).unwrap().evidence;
    assert_eq!(evidence, [Reference::Id(3), Reference::Id(1)]);
}

// B84
#[test]
fn equal_texts_and_equal_vectors_are_rows_of_their_own() {
    let (_dir, _path, store) = new_store(2, Dtype::F32);
    let mut memories = vec![plain(&[1.0, 0.5]); 4];
    memories[1].created = 77;
    memories[2].text = "score 41".into();
    memories[3].text = "score 42".into();
    assert_eq!(append(&store, &memories), 0..4);
    for (row, memory) in memories.iter().enumerate() {
        assert_row(&store.snapshot(), row, row as u64, memory);
    }
}

#[test]
fn keys_of_an_open_handle_grow_with_it() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(&store, &(0..9).map(|i| varied(i, 2)).collect::<Vec<_>>());
    let row_of = |store: &Store, key: &str| store.snapshot().row_of_key(key).unwrap();
    assert_eq!(row_of(&store, "node_8"), Some(8));
    append(&store, &(9..20).map(|i| varied(i, 2)).collect::<Vec<_>>());
    assert_eq!(row_of(&store, "node_18"), Some(18));
    assert_eq!(row_of(&store, "node_8"), Some(8));
    store.close().unwrap();
    let store = Store::open_read_only(&path).unwrap();
    assert_eq!(row_of(&store, "node_18"), Some(18));
}
