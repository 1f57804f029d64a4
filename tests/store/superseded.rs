//! Corrections: `NewMemory::supersedes`.

use crate::example::*;
use crate::in_memory::new_in_memory;
use memorank::kernel::Dtype;
use memorank::store::{
    Agent, AppendError, BulkAppend, Changes, MemoryProblem, NewMemory, Problem, Snapshot, Store,
    repair, verify,
};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

fn correction(of: u64) -> Owned {
    Owned {
        supersedes: Some(of),
        ..plain(&[0.5, 1.0])
    }
}

/// Of each row what corrects it and what it corrects.
fn links(snapshot: &Snapshot) -> Vec<(Option<u64>, Option<u64>)> {
    let rows = (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
    rows.map(|row| {
        let memory = snapshot.memory(row).unwrap();
        assert_eq!(memory.supersedes, snapshot.supersedes(row));
        assert_eq!(memory.superseded_by, snapshot.superseded_by(row));
        (memory.superseded_by, memory.supersedes)
    })
    .collect()
}

#[test]
fn a_correction_keeps_the_old_memory_and_links_it_wherever_the_rows_lie() {
    let (_dir, path, store) = new_store(2, Dtype::F16);
    append(&store, &[varied(0, 2), varied(1, 2), varied(2, 2)]);
    let before = store.snapshot().memory(1).unwrap().text.to_owned();
    append(&store, &[correction(1)]);
    store.checkpoint().unwrap();
    append(&store, &[correction(3)]);
    let expected = [
        (None, None),
        (Some(3), None),
        (None, None),
        (Some(4), Some(1)),
        (None, Some(3)),
    ];
    let look = |store: &Store| {
        for store in [store, &Store::open_read_only(&path).unwrap()] {
            let snapshot = store.snapshot();
            assert_eq!(links(&snapshot), expected);
            assert_eq!(snapshot.text(1).unwrap(), before);
            assert!(snapshot.superseded().eq([(1, 3), (3, 4)]));
        }
        assert_eq!(verify(&path).unwrap().damages, []);
    };
    look(&store);
    store.checkpoint().unwrap();
    look(&store);
    store.compact().unwrap();
    look(&store);
    drop(store);
    look(&Store::open(&path).unwrap());
}

#[test]
fn to_forget_a_correction_does_not_bring_back_what_it_corrected() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(
        &store,
        &[plain(&[1.0, 0.0]), plain(&[0.0, 1.0]), correction(1)],
    );
    store.delete(&[0, 2]).unwrap();
    assert_eq!(links(&store.snapshot()), [(Some(2), None)]);
    store.compact().unwrap();
    assert_eq!(links(&store.snapshot()), [(Some(2), None)]);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(links(&store.snapshot()), [(Some(2), None)]);
    assert!(store.snapshot().superseded().eq([(0, 2)]));
    // Of a memory that was deleted nothing is left, but for its number.
    store.delete(&[1]).unwrap();
    store.compact().unwrap();
    assert_eq!(store.snapshot().superseded().count(), 0);
    assert_eq!(verify(&path).unwrap().damages, []);
}

#[test]
fn a_memory_is_corrected_once_and_only_if_it_is_there() {
    let (_files, store) = new_in_memory(2, Dtype::F32);
    append(
        &store,
        &[plain(&[1.0, 0.0]), plain(&[0.0, 1.0]), correction(0)],
    );
    store.delete(&[1]).unwrap();
    let contents_before = contents(&store.snapshot());
    let nothing = |id| MemoryProblem::NothingToSupersede { id };
    let before = |id, by| MemoryProblem::SupersededBefore { id, by };
    let cases: [(&[u64], usize, MemoryProblem); 7] = [
        (&[0], 0, before(0, 2)),
        (&[1], 0, nothing(1)),
        (&[3], 0, nothing(3)),
        (&[9], 0, nothing(9)),
        (&[u64::MAX], 0, nothing(u64::MAX)),
        (&[2, 2], 1, before(2, 3)),
        (&[2, 3, 3], 2, before(3, 4)),
    ];
    for (corrected, refused, problem) in cases {
        let memories: Vec<_> = corrected.iter().map(|&of| correction(of)).collect();
        let memories: Vec<NewMemory<'_>> = memories.iter().map(Owned::borrowed).collect();
        let is_refused = |error: AppendError, with: &MemoryProblem| {
            let AppendError::Refused { index, problem } = error else {
                panic!("{error}");
            };
            assert_eq!((index, &problem), (refused, with));
        };
        is_refused(store.append(&memories).unwrap_err(), &problem);
        let mut bulk = store.bulk().unwrap();
        let (last, first) = memories.split_last().unwrap();
        first.iter().for_each(|memory| {
            bulk.push(memory).unwrap();
        });
        is_refused(bulk.push(last).unwrap_err(), &problem);
        drop(bulk);
        assert_eq!(contents(&store.snapshot()), contents_before);
    }
}

#[test]
fn a_bulk_append_corrects_what_is_there_and_what_it_brings_over_gaps() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(&store, &[plain(&[1.0, 0.0]), plain(&[0.0, 1.0])]);
    let mut bulk = store.bulk().unwrap();
    bulk.push(&correction(1).borrowed()).unwrap();
    bulk.push(&plain(&[1.0, 1.0]).borrowed()).unwrap();
    bulk.skip_ids_to(10).unwrap();
    bulk.push(&correction(3).borrowed()).unwrap();
    let gap = bulk.push(&correction(5).borrowed());
    assert!(matches!(gap, Err(AppendError::Refused { index: 3, .. })));
    // As of an export whose correction was deleted.
    bulk.skip_ids_to(20).unwrap();
    bulk.supersede(10, 15).unwrap();
    let refused = |id, by, bulk: &mut BulkAppend<'_>| {
        let Err(AppendError::Refused { problem, .. }) = bulk.supersede(id, by).map(|_| ()) else {
            panic!("memory {id} is corrected by {by}");
        };
        problem
    };
    let by_none = |id, by| MemoryProblem::SupersededByNone { id, by };
    assert_eq!(refused(0, 20, &mut bulk), by_none(0, 20));
    assert_eq!(refused(0, 0, &mut bulk), by_none(0, 0));
    assert_eq!(
        refused(10, 16, &mut bulk),
        MemoryProblem::SupersededBefore { id: 10, by: 15 }
    );
    assert_eq!(
        refused(7, 9, &mut bulk),
        MemoryProblem::NothingToSupersede { id: 7 }
    );
    assert_eq!(bulk.commit().unwrap(), 2..20);
    let expected = [
        (None, None),
        (Some(2), None),
        (None, Some(1)),
        (Some(10), None),
        (Some(15), Some(3)),
    ];
    assert_eq!(links(&store.snapshot()), expected);
    store.touch(Agent::OWN, &[0], 9).unwrap();
    store.checkpoint().unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(links(&store.snapshot()), expected);
    let report = verify(&path).unwrap();
    assert_eq!((report.damages, report.uncommitted_bytes), (vec![], 0));
}

/// Writes other bytes to the column, and the manifest that commits them.
fn write_column(path: &Path, file: &str, bytes: &[u8]) {
    std::fs::write(path.join(file), bytes).unwrap();
    let text = std::fs::read_to_string(path.join("manifest")).unwrap();
    let (_, body) = text.split_once('\n').unwrap();
    let mut body: serde_json::Value = serde_json::from_str(body.trim_end_matches('\0')).unwrap();
    let entry = &mut body["columns"]["superseded"];
    entry["bytes"] = bytes.len().into();
    entry["sums"] = vec![format!("{:016x}", xxh3_64(bytes))].into();
    let body = body.to_string();
    let sum = xxh3_64(body.as_bytes());
    let text = format!("memorank store 1 {sum:016x} {}\n{body}", body.len());
    std::fs::write(path.join("manifest"), text).unwrap();
}

#[test]
fn an_entry_that_cannot_be_is_damage() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(&store, &[plain(&[1.0, 0.0]), plain(&[0.0, 1.0])]);
    append(&store, &[correction(0), correction(1)]);
    drop(store);
    let file = columns_of(&path)
        .into_keys()
        .find(|name| name.starts_with("superseded."))
        .unwrap();
    let whole = std::fs::read(path.join(&file)).unwrap();
    assert!(Store::open(&path).is_ok());
    let entry = |row: u32, by: u64| [&row.to_le_bytes()[..], &by.to_le_bytes()].concat();
    assert_eq!(whole, [entry(0, 2), entry(1, 3)].concat());
    for (bytes, row) in [
        ([entry(0, 2), entry(4, 5)].concat(), 4),
        ([entry(1, 3), entry(0, 2)].concat(), 0),
        ([entry(0, 2), entry(0, 2)].concat(), 0),
        ([entry(0, 0), entry(1, 3)].concat(), 0),
        ([entry(0, 2), entry(1, 4)].concat(), 1),
    ] {
        write_column(&path, &file, &bytes);
        let opened = Store::open(&path).map(|_| ()).unwrap_err().to_string();
        let damages = verify(&path).unwrap().damages;
        assert!(
            matches!(damages[..], [ref damage] if matches!(damage.problem, Problem::SupersededRow { row: found, .. } if found == row)),
            "{damages:?}"
        );
        assert!(opened.contains(&damages[0].to_string()), "{opened}");
    }
}

#[test]
fn a_repair_keeps_what_was_corrected_and_says_what_it_lost() {
    let (dir, path, store) = new_store(2, Dtype::F32);
    append(
        &store,
        &[plain(&[1.0, 0.0]), plain(&[0.0, 1.0]), plain(&[1.0, 1.0])],
    );
    append(&store, &[correction(0), correction(1)]);
    store.delete(&[3]).unwrap();
    store.checkpoint().unwrap();
    // In the journal, one of what is there too.
    append(&store, &[correction(2), correction(5)]);
    let expected = [
        (Some(3), None),
        (Some(4), None),
        (Some(5), None),
        (None, Some(1)),
        (Some(6), Some(2)),
        (None, Some(5)),
    ];
    assert_eq!(links(&store.snapshot()), expected);
    let worn = dir.path().join("worn");
    copy(&path, &worn);
    let whole = dir.path().join("whole");
    let report = repair(&worn, &whole).unwrap();
    assert!(report.changes.is_empty(), "{report}");
    assert_eq!(links(&Store::open(&whole).unwrap().snapshot()), expected);
    assert_eq!(verify(&whole).unwrap().damages, []);

    let file = bytes_of(&worn)
        .into_keys()
        .find(|name| name.starts_with("superseded."))
        .unwrap();
    flip(&worn.join(&file), 3);
    let salvaged = dir.path().join("salvaged");
    let report = repair(&worn, &salvaged).unwrap();
    let lost: Vec<_> = report
        .changes
        .iter()
        .map(|lost| (lost.changes, lost.bytes))
        .collect();
    assert_eq!(lost, [(Changes::Corrections, 24)]);
    assert!(
        report
            .to_string()
            .contains("up to 2 corrected memories may be candidates again"),
        "{report}"
    );
    let left = [
        (None, None),
        (None, None),
        (Some(5), None),
        (None, None),
        (Some(6), Some(2)),
        (None, Some(5)),
    ];
    assert_eq!(links(&Store::open(&salvaged).unwrap().snapshot()), left);
    assert_eq!(verify(&salvaged).unwrap().damages, []);
}
