use crate::example::*;
use memorank::kernel::Dtype;
use memorank::store::{Agent, AppendError, OpenOptions, Store, WriteError, verify};

#[test]
fn three_hundred_thousand_rows_stream_into_the_store() {
    let (_dir, path, store) = new_store(8, Dtype::F32);
    let memory = |i: u64| Owned {
        key: i.is_multiple_of(7).then(|| format!("key {i}")),
        text: format!("memory number {i}"),
        created: i as i64,
        ..plain(&[i as f32 + 1.0, 1.0, 0.5, -2.0, 0.25, 3.0, 7.0, -0.125])
    };
    for range in [0..123_457, 123_457..123_458, 123_458..300_000] {
        let mut bulk = store.bulk().unwrap();
        for i in range.clone() {
            assert_eq!(bulk.push(&memory(i).borrowed()).unwrap(), i);
        }
        assert_eq!(bulk.len() as u64, range.end - range.start);
        assert_eq!(bulk.commit().unwrap(), range);
    }
    drop(store);
    let report = verify(&path).unwrap();
    assert_eq!((report.damages, report.rows), (vec![], 300_000));
    // 9.6 MB of embeddings alone are ten blocks.
    assert!(report.blocks > 30, "{}", report.blocks);
    let store = Store::open_read_only(&path).unwrap();
    for i in [0, 1, 123_456, 123_457, 131_071, 131_072, 262_144, 299_999] {
        assert_row(&store.snapshot(), i, i as u64, &memory(i as u64));
    }
    let snapshot = store.snapshot();
    assert_eq!(snapshot.row_of_key("key 299998").unwrap(), None);
    assert_eq!(snapshot.row_of_key("key 299992").unwrap(), Some(299_992));
}

#[test]
fn an_uncommitted_bulk_is_as_if_it_had_never_been() {
    let (_dir, path) = filled(5, 3, Dtype::F16);
    let before = columns_of(&path);
    let store = Store::open(&path).unwrap();
    let mut bulk = store.bulk().unwrap();
    for i in 5..50_000 {
        bulk.push(&varied(i, 3).borrowed()).unwrap();
    }
    drop(bulk);
    assert!(columns_of(&path) == before);
    let snapshot = store.snapshot();
    assert_eq!(
        (snapshot.len(), snapshot.next_id(), snapshot.kinds().len()),
        (5, 5, 5)
    );
    assert_eq!(append(&store, &[varied(5, 3)]), 5..6);
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    for row in 0..6 {
        assert_row(&store.snapshot(), row, row as u64, &varied(row as u64, 3));
    }
    assert_eq!(verify(&path).unwrap().damages, []);
}

#[test]
fn a_bulk_that_was_never_dropped_leaves_bytes_that_are_cut() {
    let (_dir, path) = filled(5, 3, Dtype::F16);
    let committed = bytes_of(&path);
    let store = Store::open(&path).unwrap();
    let mut bulk = store.bulk().unwrap();
    for i in 5..200_000 {
        bulk.push(&varied(i, 3).borrowed()).unwrap();
    }
    // As a crash would.
    std::mem::forget(bulk);
    drop(store);
    assert!(bytes_of(&path)["text.ends.u64"].len() > committed["text.ends.u64"].len());
    assert!(verify(&path).unwrap().uncommitted_bytes > 0);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.snapshot().len(), 5);
    append(&store, &[varied(5, 3)]);
    assert_row(&store.snapshot(), 5, 5, &varied(5, 3));
    store.close().unwrap();
    let report = verify(&path).unwrap();
    assert_eq!((report.damages, report.uncommitted_bytes), (vec![], 0));
}

// B43
#[test]
fn zeros_behind_the_columns_are_no_rows() {
    let (_dir, path) = filled(9, 3, Dtype::F32);
    for file in Store::open_read_only(&path).unwrap().info().files {
        let mut bytes = std::fs::read(&file.path).unwrap();
        bytes.resize(bytes.len() + (1 << 20), 0);
        std::fs::write(&file.path, bytes).unwrap();
    }
    let store = Store::open(&path).unwrap();
    let snapshot = store.snapshot();
    assert_eq!((snapshot.len(), snapshot.next_id()), (9, 9));
    assert_eq!(append(&store, &[varied(9, 3)]), 9..10);
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    for row in 0..10 {
        assert_row(&store.snapshot(), row, row as u64, &varied(row as u64, 3));
    }
    let report = verify(&path).unwrap();
    assert_eq!((report.damages, report.uncommitted_bytes), (vec![], 0));
}

#[test]
fn a_checkpoint_does_not_seal_damage_with_a_new_checksum() {
    let (_dir, path) = filled(9, 3, Dtype::F32);
    flip(&path.join("importance.f32"), 5 * 8);
    let store = Store::open(&path).unwrap();
    for i in 9..12 {
        append(&store, &[varied(i, 3)]);
        let error = store.checkpoint().unwrap_err();
        assert!(matches!(error, WriteError::Damaged(_)), "{error}");
        let error = store.bulk().err().unwrap();
        let damaged = matches!(error, AppendError::Write(WriteError::Damaged(_)));
        assert!(damaged, "{error}");
    }
    // What was appended stays in the journal.
    store.touch(Agent::OWN, &[0], 1).unwrap();
    assert!(store.close().is_err());
    let report = verify(&path).unwrap();
    assert_eq!(report.damages.len(), 1);
    assert_eq!(
        (report.rows, report.uncommitted_bytes, report.records),
        (9, 0, 4)
    );
    let snapshot = Store::open(&path).unwrap().snapshot();
    for row in 2..12 {
        assert_row(&snapshot, row, row as u64, &varied(row as u64, 3));
    }
    assert_eq!(snapshot.last_access(Agent::OWN, 0), 1);
}

#[test]
fn a_store_in_memory_can_be_appended_to() {
    let (_dir, path) = filled(9, 3, Dtype::F16);
    let options = OpenOptions {
        in_memory: true,
        ..OpenOptions::default()
    };
    let store = Store::open_with(&path, &options).unwrap();
    append(&store, &[varied(9, 3)]);
    for row in 0..10 {
        assert_row(&store.snapshot(), row, row as u64, &varied(row as u64, 3));
    }
}

#[test]
fn a_store_kept_elsewhere_and_moved_opens() {
    let (dir, path) = filled(3, 2, Dtype::F32);
    let moved = dir.path().join("elsewhere");
    std::fs::rename(&path, &moved).unwrap();
    assert_row(
        &Store::open(&moved).unwrap().snapshot(),
        2,
        2,
        &varied(2, 2),
    );
}
