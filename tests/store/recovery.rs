//! What opening finds in a journal, and what becomes of it.

use crate::example::*;
use crate::in_memory::*;
use memorank::kernel::Dtype;
use memorank::store::files::InMemory;
use memorank::store::{Agent, Dropped, OpenOptions, Store, verify, verify_on};
use std::path::PathBuf;

/// Where something was dropped, and how much.
fn places(dropped: &[Dropped]) -> Vec<(PathBuf, u64, u64)> {
    let place = |d: &Dropped| (d.path.clone(), d.offset, d.bytes);
    dropped.iter().map(place).collect()
}

// B41
#[test]
fn a_record_cut_at_any_byte_is_dropped_and_told_and_no_later_one_is_lost() {
    let torn: [fn(&Store); 3] = [
        |store| assert_eq!(append(store, &[varied(1, 2)]), 1..2),
        |store| store.touch(OTHER, &[0], 70_000).unwrap(),
        |store| assert_eq!(store.delete(&[0]).unwrap(), 1),
    ];
    for torn in torn {
        let (files, store) = new_in_memory(2, Dtype::F16);
        append(&store, &[varied(0, 2)]);
        let journal = only(&files, "journal.");
        let (start, before) = (get(&files, &journal).len(), contents(&store.snapshot()));
        torn(&store);
        let (whole, after) = (get(&files, &journal), contents(&store.snapshot()));
        for cut in start..=whole.len() {
            let files = killed(&files);
            put(&files, &journal, &whole[..cut]);
            let (is_whole, bytes) = (cut == whole.len(), (cut - start) as u64);
            let expected = match bytes {
                0 => vec![],
                _ if is_whole => vec![],
                _ => vec![(path(&journal), start as u64, bytes)],
            };
            let report = verify_on(&files, STORE).unwrap();
            assert_eq!(
                (report.damages, places(&report.dropped)),
                (vec![], expected.clone())
            );
            let reader = open_read_only(&files).unwrap();
            let store = open(&files).unwrap();
            for store in [&reader, &store] {
                assert_eq!(places(&store.recovery().dropped), expected);
                assert_eq!(store.recovery().records, 1 + u64::from(is_whole));
                let expected = if is_whole { &after } else { &before };
                assert_eq!(&contents(&store.snapshot()), expected);
            }
            for dropped in &store.recovery().dropped {
                let told = dropped.to_string();
                assert!(told.contains("record 2 ends inside its "), "{told}");
                assert!(
                    told.ends_with(&format!("{bytes} bytes are left out")),
                    "{told}"
                );
            }

            let first = store.snapshot().next_id();
            for id in [first, first + 1] {
                assert_eq!(append(&store, &[varied(id, 2)]), id..id + 1);
            }
            let files = killed(&files);
            let again = open(&files).unwrap();
            assert_eq!(again.recovery().dropped, []);
            assert_eq!(contents(&again.snapshot()), contents(&store.snapshot()));
            let ids: Vec<_> = (0..first + 2)
                .map(|row| again.snapshot().id(row as usize))
                .collect();
            assert_eq!(ids, Vec::from_iter(0..first + 2));
            for id in [first, first + 1] {
                assert_row(&again.snapshot(), id as usize, id, &varied(id, 2));
            }
        }
    }
}

// B43
#[test]
fn room_given_ahead_and_garbage_after_the_journal_are_dropped_and_told() {
    let (files, store) = new_in_memory(2, Dtype::F16);
    append(&store, &[varied(0, 2)]);
    store.touch(Agent::OWN, &[0], 70_000).unwrap();
    let journal = only(&files, "journal.");
    let whole = get(&files, &journal);
    let mut random = Random(3);
    let mut garbage = vec![0; 5_000];
    garbage.fill_with(|| random.below(256) as u8);
    for tail in [vec![0; 1 << 20], garbage, whole.clone(), b"MRJ1".to_vec()] {
        let files = killed(&files);
        put(&files, &journal, &[&whole[..], &tail].concat());
        let again = open(&files).unwrap();
        let expected = (path(&journal), whole.len() as u64, tail.len() as u64);
        assert_eq!(places(&again.recovery().dropped), [expected]);
        assert_eq!(contents(&again.snapshot()), contents(&store.snapshot()));
        again.delete(&[0]).unwrap();
        assert_eq!(open_read_only(&files).unwrap().recovery().dropped, []);
    }
}

// B48
#[test]
fn vectors_in_the_journal_are_read_wherever_texts_of_any_length_put_them() {
    for dtype in [Dtype::F16, Dtype::F32] {
        let (files, store) = new_in_memory(3, dtype);
        let memories: Vec<_> = (0..40)
            .map(|i: u64| Owned {
                text: "x".repeat(i as usize % 9),
                payload: vec![7; i as usize % 4],
                ..plain(&[1.0, i as f32, -0.5])
            })
            .collect();
        // Together and one by one.
        append(&store, &memories[..20]);
        for memory in &memories[20..] {
            append(&store, std::slice::from_ref(memory));
        }
        let killed = killed(&files);
        for snapshot in [
            store.snapshot(),
            read(&killed),
            open(&killed).unwrap().snapshot(),
        ] {
            assert_eq!(snapshot.len(), 40);
            for (row, memory) in memories.iter().enumerate() {
                assert_row(&snapshot, row, row as u64, memory);
            }
        }
    }
}

#[test]
fn handles_in_turn_take_over_what_those_before_left() {
    let (mut files, store) = new_in_memory(2, Dtype::F32);
    drop(store);
    let number = |files: &InMemory| -> Option<u64> {
        let segments = names(files).into_iter();
        let mut numbers = segments.filter_map(|name| name.strip_prefix("journal.")?.parse().ok());
        let number = numbers.next();
        assert_eq!(numbers.next(), None);
        number
    };
    let mut records = 0;
    for round in 0..15 {
        let before = number(&files);
        let store = open(&files).unwrap();
        assert_eq!(store.recovery().records, records);
        assert_eq!(store.recovery().dropped, []);
        assert_eq!(append(&store, &[varied(round, 2)]), round..round + 1);
        store
            .touch(OTHER, &[round, round / 2], 100_000 + round as i64)
            .unwrap();
        records += 2;
        if round % 3 == 2 {
            assert_eq!(store.delete(&[round - 1]).unwrap(), 1);
            records += 1;
        }
        if round == 9 {
            store.checkpoint().unwrap();
            records = 0;
        }
        assert!(number(&files) > before, "{before:?}");
        // The first is killed, and the next finds what it left.
        files = killed(&files);
    }
    let snapshot = read(&files);
    assert_eq!((snapshot.rows(), snapshot.len()), (15, 10));
    for row in 0..15 {
        let deleted = row % 3 == 1;
        assert_eq!(snapshot.is_live(row), !deleted);
        if !deleted {
            assert_row(&snapshot, row, row as u64, &varied(row as u64, 2));
            let last = if row < 7 { 2 * row + 1 } else { row };
            let last = if row == 7 { 14 } else { last };
            assert_eq!(snapshot.last_access(OTHER, row), 100_000 + last as i64);
        }
    }
    open(&files).unwrap().close().unwrap();
    assert_eq!(open(&files).unwrap().recovery().records, 0);
    assert_eq!(contents(&read(&files)), contents(&snapshot));
}

#[test]
fn a_reader_sees_the_journal_of_a_writer_at_work_and_changes_no_byte() {
    let (_dir, path, store) = new_store(3, Dtype::F16);
    append(&store, &(0..4).map(|i| varied(i, 3)).collect::<Vec<_>>());
    store.checkpoint().unwrap();
    append(&store, &[varied(4, 3)]);
    store.touch(Agent::OWN, &[0], 70_000).unwrap();
    store.touch(OTHER, &[4], 80_000).unwrap();
    store.delete(&[2]).unwrap();
    let before = bytes_of(&path);
    for (in_memory, verify) in [(false, false), (true, false), (false, true)] {
        let options = OpenOptions {
            read_only: true,
            in_memory,
            verify,
            ..OpenOptions::default()
        };
        let reader = Store::open_with(&path, &options).unwrap();
        assert_eq!(contents(&reader.snapshot()), contents(&store.snapshot()));
        assert_eq!(reader.recovery().records, 4);
        let info = reader.info();
        assert_eq!((info.memories, info.deleted, info.in_journal), (4, 1, 1));
        reader.close().unwrap();
    }
    let report = verify(&path).unwrap();
    assert_eq!(
        (report.damages, report.records, report.rows),
        (vec![], 4, 4)
    );
    assert!(bytes_of(&path) == before);
}

#[test]
fn opening_to_write_changes_no_byte_before_the_first_write() {
    let (_dir, path, store) = new_store(3, Dtype::F16);
    append(&store, &[varied(0, 3), varied(1, 3)]);
    let other = path.with_file_name("killed");
    copy(&path, &other);
    // What a writer sweeps.
    std::fs::write(other.join("manifest.1.9.tmp"), "half").unwrap();
    let before = bytes_of(&other);
    let store = Store::open(&other).unwrap();
    assert_eq!((store.snapshot().len(), store.info().in_journal), (2, 2));
    assert!(store.recovery().dropped.is_empty());
    assert!(bytes_of(&other) == before);
    store.touch(Agent::OWN, &[1], 70_000).unwrap();
    let after = bytes_of(&other);
    assert!(!after.contains_key("manifest.1.9.tmp"));
    assert!(after["manifest"] != before["manifest"]);
    // What was left was not folded for it.
    assert_eq!(store.info().in_journal, 2);
    assert!(after["id.u64"].is_empty());
}
