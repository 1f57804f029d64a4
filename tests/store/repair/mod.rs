//! Damaged stores, and what a repair makes of them.

mod stored;
mod worn;

use crate::example::Random;
use memorank::kernel::Dtype;
use memorank::store::files::{Files, InMemory};
use memorank::store::{
    Changes, NewMemory, OpenError, Part, Problem, RepairError, RepairOptions, Store, repair_on,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stored::{AGENTS, BLOCK, DIM, NEW, OLD, Stored, contents, options, push, read, with_memory};

#[test]
fn of_a_sound_store_nothing_is_lost() {
    for dtype in [Dtype::F16, Dtype::F32] {
        for stored in [
            Stored::folded(0, 0, dtype),
            Stored::folded(40, 0, dtype),
            Stored::with_journal(40, 0, dtype),
            Stored::with_journal(40, 20, dtype),
        ] {
            let (report, new) = stored.check();
            assert!(report.is_whole(), "{report}");
            assert_eq!(report.notes, [""; 0]);
            assert_eq!(new.next_id(), stored.original.next_id());
            assert_eq!(new.kinds(), stored.original.kinds());
        }
    }
}

#[test]
fn a_flip_in_any_block_of_any_column_costs_what_is_listed() {
    // Two blocks in columns of 8 bytes.
    let stored = Stored::folded(140_000, 0, Dtype::F16);
    let mut lost = BTreeMap::new();
    for path in stored.column_files() {
        let bytes = stored.files.open(&path).unwrap().bytes().unwrap();
        for block in 0..bytes.div_ceil(BLOCK) {
            let offset = (block * BLOCK + 4711).min(bytes - 1);
            stored.flip(&path, offset, 0x10);
            let (report, _) = stored.check();
            stored.flip(&path, offset, 0x10);
            let causes = report.lost.iter().map(|lost| &lost.cause);
            let causes = causes.chain(report.reduced.iter().map(|reduced| &reduced.cause));
            for cause in causes {
                assert_eq!((&cause.path, cause.offset), (&path, block * BLOCK));
                assert!(matches!(cause.problem, Problem::Checksum { .. }));
            }
            for changes in &report.changes {
                assert_eq!((&changes.path, changes.offset), (&path, block * BLOCK));
            }
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let column = name.split('.').take(2).collect::<Vec<_>>().join(".");
            let whole = report.is_whole();
            assert_eq!(
                whole,
                column == "inv_norm.f32" || column == "id.u64",
                "{name}: {report}"
            );
            let lost: &mut usize = lost.entry(column).or_default();
            *lost += report.lost.len();
        }
    }
    // What is no text costs no memory.
    for (column, lost) in lost {
        assert_eq!(lost > 0, column.starts_with("text."), "{column}");
    }
}

#[test]
fn a_flip_in_any_block_of_long_columns_costs_the_rows_in_it() {
    let stored = Stored::folded(60, 80_000, Dtype::F32);
    for start in ["text.bytes", "payload.bytes", "evidence.bytes"] {
        let path = stored.path(start);
        let bytes = stored.files.open(&path).unwrap().bytes().unwrap();
        assert!(bytes > 2 * BLOCK, "{start}");
        for block in 0..bytes.div_ceil(BLOCK) {
            stored.flip(&path, (block * BLOCK + 99).min(bytes - 1), 1);
            let (report, _) = stored.check();
            stored.flip(&path, (block * BLOCK + 99).min(bytes - 1), 1);
            let cost = report.lost.len() + report.reduced.len();
            assert!((1..40).contains(&cost), "{report}");
        }
    }
}

#[test]
fn a_missing_or_cut_file_costs_what_is_listed() {
    for stored in [
        Stored::folded(40, 0, Dtype::F32),
        Stored::with_journal(40, 20, Dtype::F16),
    ] {
        for path in stored.column_files() {
            let whole = read(&*stored.files, &path);
            for len in [0, 1, whole.len() / 2, whole.len().saturating_sub(1)] {
                let file = stored.files.open_to_write(&path).unwrap();
                file.set_len(len as u64).unwrap();
                stored.check();
                file.write_at(0, &whole).unwrap();
            }
            stored.files.remove_file(&path).unwrap();
            let (report, _) = stored.check();
            let name = path.to_str().unwrap();
            if name.contains("text.") {
                assert_eq!(
                    report.lost.len(),
                    stored.original.rows() - report.deleted - report.kept
                );
                assert!(
                    report
                        .lost
                        .iter()
                        .all(|lost| lost.cause.problem == Problem::Missing)
                );
            }
            stored
                .files
                .create_new(&path)
                .unwrap()
                .write_at(0, &whole)
                .unwrap();
        }
        stored.files.remove_file(Path::new("old/lock")).unwrap();
        assert!(stored.check().0.is_whole());
    }
}

#[test]
fn a_flip_in_the_journal_costs_the_record_that_it_is_in() {
    let stored = Stored::with_journal(12, 6, Dtype::F32);
    let path = stored.path("journal.");
    let bytes = read(&*stored.files, &path);
    let (mut after, mut most) = (0, 0);
    for offset in 0..bytes.len() as u64 {
        stored.flip(&path, offset, 0x40);
        let (report, new) = stored.repaired(&RepairOptions::default()).unwrap();
        stored.flip(&path, offset, 0x40);
        assert!(!report.is_whole() || !report.notes.is_empty(), "{offset}");
        // What is there is as it was; what a lost append held is known to nobody.
        assert_eq!(report.reduced, []);
        let old = &stored.original;
        let mut missing = 0;
        for row in (0..old.rows()).filter(|&row| old.is_live(row)) {
            let memory = old.memory(row).unwrap();
            let Some(new_row) = new.row_of_id(memory.id) else {
                missing += 1;
                continue;
            };
            let mut found = new.memory(new_row).unwrap();
            assert!(found.last_access <= memory.last_access);
            found.last_access = memory.last_access;
            // What came in a record of its own is lost with that.
            let given = old.importance(row);
            assert!([memory.importance, given].contains(&found.importance));
            found.importance = memory.importance;
            if found.has_embedding {
                assert_eq!(new.embedding(new_row), old.embedding(row));
            }
            found.has_embedding = memory.has_embedding;
            assert_eq!(found, memory);
        }
        assert!(report.lost.is_empty());
        assert!(new.next_id() >= old.next_id() || report.changes.is_empty());
        if offset >= 64
            && report
                .changes
                .iter()
                .any(|c| c.offset + c.bytes < bytes.len() as u64)
        {
            assert!(missing <= 1, "{offset}: {report}");
            after += 1;
        }
        most = most.max(missing);
    }
    assert!(after > bytes.len() / 2, "{after} of {}", bytes.len());
    assert!(most <= 6);
}

#[test]
fn every_cut_of_the_journal_leaves_what_is_before_it() {
    let stored = Stored::with_journal(12, 6, Dtype::F16);
    let path = stored.path("journal.");
    let whole = read(&*stored.files, &path);
    let file = stored.files.open_to_write(&path).unwrap();
    let mut kept = 0;
    for len in 0..whole.len() {
        file.set_len(len as u64).unwrap();
        let (report, new) = stored.repaired(&RepairOptions::default()).unwrap();
        file.write_at(0, &whole).unwrap();
        assert!(new.len() >= kept || new.len() + 2 >= kept, "{report}");
        kept = new.len();
        assert!(report.lost.is_empty() && report.reduced.is_empty());
    }
    stored.files.remove_file(&path).unwrap();
    let (report, _) = stored.repaired(&RepairOptions::default()).unwrap();
    let [changes] = &report.changes[..] else {
        panic!("{report}");
    };
    assert_eq!(
        (&changes.path, &changes.problem),
        (&path, &Problem::Missing)
    );
    assert_eq!(changes.changes, Changes::Journal);
}

#[test]
fn without_a_manifest_the_dimension_is_asked_for_and_all_that_is_in_order_is_kept() {
    for (stored, dtype) in [
        (Stored::folded(40, 0, Dtype::F32), Dtype::F32),
        (Stored::with_journal(40, 20, Dtype::F16), Dtype::F16),
    ] {
        let manifest = read(&*stored.files, Path::new("old/manifest"));
        let with_dim = RepairOptions {
            dim: Some(DIM.try_into().unwrap()),
            dtype: None,
        };
        let check = || {
            match stored.repaired(&RepairOptions::default()) {
                Err(RepairError::NoDim { suggested, .. }) => assert_eq!(suggested, Some(DIM)),
                other => panic!("{other:?}"),
            }
            let (report, new) = stored.repaired(&with_dim).unwrap();
            assert!(report.manifest.is_some() && !report.is_whole());
            assert_eq!((&report.lost[..], &report.reduced[..]), (&[][..], &[][..]));
            assert_eq!(new.len(), stored.original.len());
            assert_eq!((new.dtype(), new.model()), (dtype, None));
            for row in 0..new.rows() {
                let found = new.memory(row).unwrap();
                let old_row = stored.original.row_of_id(found.id).unwrap();
                let expected = stored.original.memory(old_row).unwrap();
                let with = memorank::store::Memory {
                    kind: found.kind,
                    ..expected
                };
                assert_eq!(found, with);
                assert_eq!(new.embedding(row), stored.original.embedding(old_row));
                for agent in AGENTS {
                    let expected = stored.original.last_access(agent, old_row);
                    assert_eq!(new.last_access(agent, row), expected);
                }
            }
        };
        stored.files.remove_file(Path::new("old/manifest")).unwrap();
        check();
        let file = stored.files.create_new(Path::new("old/manifest")).unwrap();
        for len in [0, 1, 40, manifest.len() - 1] {
            file.set_len(0).unwrap();
            file.write_at(0, &manifest[..len]).unwrap();
            check();
        }
        file.write_at(0, &manifest).unwrap();
        let mut newer = 0;
        for offset in 0..manifest.len() as u64 {
            stored.flip(Path::new("old/manifest"), offset, 1 << (offset % 8));
            match stored.repaired(&with_dim) {
                Err(RepairError::Open(OpenError::Newer { .. })) => newer += 1,
                Err(error) => panic!("{offset}: {error}"),
                Ok((report, new)) => {
                    assert!(report.manifest.is_some());
                    assert_eq!(new.len(), stored.original.len());
                }
            }
            stored.flip(Path::new("old/manifest"), offset, 1 << (offset % 8));
        }
        assert!(newer <= 1, "{newer}");
        assert!(stored.check().0.is_whole());
        let wrong = RepairOptions {
            dim: Some(9.try_into().unwrap()),
            dtype: None,
        };
        stored.files.remove_file(Path::new("old/manifest")).unwrap();
        let (report, new) = stored.repaired(&wrong).unwrap();
        assert!(report.notes[0].contains("speak for"), "{report}");
        assert!((0..new.rows()).all(|row| !new.has_embedding(row)) || dtype == Dtype::F16);
    }
}

#[test]
fn ids_are_told_by_their_neighbours_or_given_anew() {
    let stored = Stored::folded(40, 0, Dtype::F32);
    stored.flip(&stored.path("id."), 77, 2);
    let (report, new) = stored.check();
    assert!(report.is_whole());
    assert_eq!(report.notes.len(), 1, "{report}");
    assert_eq!(new.id(1), 1);
    // Compacted: ids have gaps, so which they were cannot be told.
    let stored = Stored::with_journal(40, 20, Dtype::F32);
    stored.flip(&stored.path("id."), 77, 2);
    let (report, new) = stored.check();
    let rows = stored.original.rows() - 20;
    // One of them was deleted in the journal, by its id, and is there again.
    assert_eq!(
        report.reduced.iter().filter(|r| r.part == Part::Id).count(),
        rows - 1
    );
    assert_eq!(
        new.id(new.rows() - 1),
        stored.original.next_id() + rows as u64 - 2
    );
}

#[test]
fn a_key_that_two_memories_have_is_the_later_ones() {
    let files = Arc::new(InMemory::new());
    let store = Store::create_on(files.clone(), OLD, &options(Dtype::F32)).unwrap();
    push(&store, 0..3, 0);
    for _ in 0..2 {
        let (id, next) = (
            store.snapshot().row_of_key("key 0").unwrap().unwrap() as u64,
            store.snapshot().next_id(),
        );
        store.delete(&[id]).unwrap();
        let text = format!("again {next}");
        with_memory(0, 0, |memory| {
            store.append(&[NewMemory {
                text: &text,
                ..memory.clone()
            }])
        })
        .unwrap();
        if next == 3 {
            store.checkpoint().unwrap();
        }
    }
    let stored = Stored::of(&store, &files);
    let path = stored.path("deleted.");
    stored.flip(&path, 0, 1);
    let (report, new) = stored.repaired(&RepairOptions::default()).unwrap();
    let [changes] = &report.changes[..] else {
        panic!("{report}");
    };
    assert_eq!((changes.changes, changes.bytes), (Changes::Deletes, 4));
    let [reduced] = &report.reduced[..] else {
        panic!("{report}");
    };
    assert_eq!((reduced.row, reduced.part), (0, Part::Key));
    assert_eq!(report.deleted, 1);
    let row = new.row_of_key("key 0").unwrap().unwrap();
    assert_eq!(new.memory(row).unwrap().text, "again 4");
}

#[test]
fn what_is_in_the_way_is_refused() {
    let stored = Stored::folded(3, 0, Dtype::F32);
    let refused = |from: &str, to: &str| {
        let before = contents(&*stored.files);
        let error =
            repair_on(stored.files.clone(), from, to, &RepairOptions::default()).unwrap_err();
        assert!(contents(&*stored.files) == before);
        error.to_string()
    };
    assert!(refused(OLD, OLD).contains("not an empty directory"));
    assert!(refused(OLD, "old/new").contains("choose another path"));
    assert!(refused(OLD, "old/manifest").contains("choose another path"));
    assert!(refused("nothing", NEW).contains("does not exist"));
    assert!(refused("old/manifest", NEW).contains("not a directory"));
    stored.files.create_dir(Path::new("empty")).unwrap();
    assert!(refused("empty", NEW).contains("no manifest"));
    repair_on(
        stored.files.clone(),
        OLD,
        "empty",
        &RepairOptions::default(),
    )
    .unwrap();
}

#[test]
fn no_damage_panics() {
    let times = match std::env::var("MEMORANK_TEST_FULL") {
        Ok(_) => 20_000,
        Err(_) => 2_000,
    };
    let mut random = Random(1);
    let stores = [
        Stored::folded(30, 70_000, Dtype::F16),
        Stored::with_journal(40, 20, Dtype::F32),
        Stored::with_journal(10, 5, Dtype::F16),
    ];
    let with_dim = RepairOptions {
        dim: Some(DIM.try_into().unwrap()),
        dtype: None,
    };
    let (mut kept, mut lost) = (0, 0);
    for n in 0..times {
        // The first is large.
        let stored = &stores[if n % 20 == 0 { 0 } else { 1 + n % 2 }];
        let mut files: Vec<PathBuf> = stored.column_files();
        files.push(stored.path("journal."));
        if random.below(4) == 0 {
            files = vec![Path::new(OLD).join("manifest")];
        }
        let mut undo = Vec::new();
        for _ in 0..1 + random.below(3) {
            let path = &files[random.below(files.len())];
            let whole = read(&*stored.files, path);
            if whole.is_empty() {
                continue;
            }
            let offset = random.below(whole.len()) as u64;
            if random.below(10) == 0 {
                stored
                    .files
                    .open_to_write(path)
                    .unwrap()
                    .set_len(offset)
                    .unwrap();
            } else {
                stored.flip(path, offset, 1 << random.below(8));
            }
            undo.push((path.clone(), whole));
        }
        if random.below(3) == 0 {
            let path = Path::new(OLD).join("manifest");
            undo.push((path.clone(), read(&*stored.files, &path)));
            stored
                .files
                .open_to_write(&path)
                .unwrap()
                .set_len(0)
                .unwrap();
        }
        match stored.repaired(&with_dim) {
            Ok((report, _)) => {
                kept += report.kept;
                lost += report.lost.len();
            }
            Err(RepairError::Open(OpenError::Newer { .. })) => {}
            Err(other) => panic!("{other}"),
        }
        for (path, whole) in undo.into_iter().rev() {
            let file = stored.files.open_to_write(&path).unwrap();
            file.set_len(0).unwrap();
            file.write_at(0, &whole).unwrap();
        }
    }
    println!("{times} times damaged: {kept} memories kept, {lost} lost");
    assert!(kept > lost);
}
