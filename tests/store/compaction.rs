//! Columns that are written anew without the deleted rows.

use crate::example::*;
use crate::in_memory::*;
use crate::watched::{Change, Pause, watched};
use memorank::kernel::Dtype;
use memorank::store::{Agent, OpenOptions, ReadError, Store, verify};
use std::path::Path;

/// `rows` varied memories, half of them in the columns, every third of them deleted, and some touched.
fn fill(store: &Store, rows: u64) {
    let half = rows / 2;
    append(store, &(0..half).map(|i| varied(i, 2)).collect::<Vec<_>>());
    store.checkpoint().unwrap();
    append(
        store,
        &(half..rows).map(|i| varied(i, 2)).collect::<Vec<_>>(),
    );
    store.touch(OTHER, &[1, half, rows - 1], 70_000).unwrap();
    store.touch(Agent::OWN, &[0, 2, half], 80_000).unwrap();
    let third: Vec<_> = (0..rows).step_by(3).collect();
    assert_eq!(store.delete(&third).unwrap(), third.len());
}

#[test]
fn ids_stay_and_rows_are_numbered_anew() {
    for in_memory in [false, true] {
        let (files, store) = new_in_memory(2, Dtype::F16);
        fill(&store, 20);
        drop(store);
        let options = OpenOptions {
            in_memory,
            ..OpenOptions::default()
        };
        let store = Store::open_on(std::sync::Arc::new(files.clone()), STORE, &options).unwrap();
        let (old, before) = (store.snapshot(), contents(&store.snapshot()));
        assert_eq!((old.rows(), old.len()), (20, 13));
        store.compact().unwrap();
        let now = store.snapshot();
        assert_eq!((now.rows(), now.len(), now.live()), (13, 13, None));
        let ids: Vec<_> = (0..13).map(|row| now.id(row)).collect();
        assert_eq!(ids, Vec::from_iter((0..20).filter(|id| id % 3 != 0)));
        for (row, &id) in ids.iter().enumerate() {
            assert_eq!(
                (now.row_of_id(id), old.row_of_id(id)),
                (Some(row), Some(id as usize))
            );
            let key = varied(id, 2).key;
            let found = key.map(|key| now.row_of_key(&key).unwrap());
            assert!(found.is_none_or(|found| found == Some(row)));
        }
        assert_eq!(now.row_of_id(0), None);
        assert_eq!(now.row_of_key("node_0").unwrap(), None);
        for snapshot in [
            &now,
            &read(&files),
            &open(&killed(&files)).unwrap().snapshot(),
        ] {
            assert_eq!(contents(snapshot), before);
        }
        // What was looked at before is as it was.
        assert_eq!(contents(&old), before);
        assert_eq!(old.memory(3), Err(ReadError::Deleted { row: 3 }));
        // Again, where nothing is to do.
        store.compact().unwrap();
        assert_eq!(contents(&store.snapshot()), before);
        assert_eq!(append(&store, &[varied(20, 2)]), 20..21);
    }
}

#[test]
fn old_files_are_gone_and_mapped_ones_stay_readable() {
    let (_dir, path, store) = new_store(2, Dtype::F16);
    fill(&store, 20);
    store.checkpoint().unwrap();
    let (old, before) = (store.snapshot(), contents(&store.snapshot()));
    let reader = Store::open_read_only(&path).unwrap();
    let old_files = columns_of(&path);
    for _ in 0..3 {
        store.compact().unwrap();
        assert_eq!(bytes_of(&path).len(), 22 + 3);
        assert_eq!(contents(&store.snapshot()), before);
    }
    let new_files = columns_of(&path);
    let stayed = new_files
        .keys()
        .filter(|name| old_files.contains_key(*name));
    assert_eq!(Vec::from_iter(stayed), ["lock"]);
    let bytes = |name: &str| {
        let mut named = new_files.iter().filter(|(file, _)| file.starts_with(name));
        named.next().unwrap().1.len()
    };
    assert_eq!(
        (bytes("embedding."), bytes("id."), bytes("deleted.")),
        (13 * 4, 13 * 8, 0)
    );
    assert_eq!(verify(&path).unwrap().damages, []);
    for snapshot in [&old, &reader.snapshot()] {
        assert_eq!(contents(snapshot), before);
    }
    // Columns that were written anew can be appended to.
    append(&store, &[varied(20, 2)]);
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    assert_row(&store.snapshot(), 13, 20, &varied(20, 2));
    assert_eq!(verify(&path).unwrap().damages, []);
}

#[test]
fn a_store_without_memories_can_be_compacted() {
    let (files, store) = new_in_memory(2, Dtype::F32);
    store.compact().unwrap();
    append(&store, &[varied(0, 2), varied(1, 2)]);
    store.delete(&[0, 1]).unwrap();
    store.compact().unwrap();
    assert_eq!(
        (store.snapshot().rows(), store.snapshot().next_id()),
        (0, 2)
    );
    assert_eq!(append(&store, &[varied(2, 2)]), 2..3);
    store.compact().unwrap();
    assert_row(&store.snapshot(), 0, 2, &varied(2, 2));
    drop(store);
    assert_row(&read(&files), 0, 2, &varied(2, 2));
}

#[test]
fn touches_and_deletes_while_a_compaction_runs_are_kept() {
    // Before the new columns are whole, before they are named, and when they are.
    let moments: [fn(Change, &Path) -> bool; 3] = [
        |change, path| change == Change::Sync && path.to_str().unwrap().contains("text."),
        |change, path| change == Change::Rename && path.ends_with("manifest"),
        |change, path| change == Change::Remove && path.to_str().unwrap().contains("embedding."),
    ];
    for moment in moments {
        let (files, store) = new_in_memory(2, Dtype::F16);
        fill(&store, 20);
        let before_all = store.snapshot();
        drop(store);
        let pause = Pause::before(moment);
        let options = OpenOptions::default();
        let store = Store::open_on(watched(&files, pause.hook()), STORE, &options).unwrap();
        store.touch(OTHER, &[2], 60_000).unwrap();
        pause.arm();
        std::thread::scope(|scope| {
            let compaction = scope.spawn(|| store.compact());
            let paused = pause.wait();
            store.touch(OTHER, &[1, 5, 19], 90_000).unwrap();
            assert_eq!(store.delete(&[5, 7, 19, 3]).unwrap(), 3);
            store.touch(Agent::OWN, &[2, 7], 100_000).unwrap();
            let (now, old) = (contents(&store.snapshot()), store.snapshot());
            assert_eq!(contents(&read(&files)), now);
            drop(paused);
            compaction.join().unwrap().unwrap();
            assert_eq!(contents(&store.snapshot()), now);
            assert_eq!(contents(&read(&files)), now);
            assert_eq!(contents(&old), now);
            // Those that were deleted meanwhile have rows until the next one.
            assert_eq!((store.snapshot().rows(), store.snapshot().len()), (13, 10));
            let killed = killed(&files);
            for store in [&store, &open(&killed).unwrap()] {
                store.compact().unwrap();
                assert_eq!((store.snapshot().rows(), store.snapshot().len()), (10, 10));
                assert_eq!(contents(&store.snapshot()), now);
            }
        });
        assert_eq!(names(&files).len(), 22 + 3);
        assert_eq!(before_all.len(), 13);
    }
}
