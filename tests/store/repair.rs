//! Damaged stores, and what a repair makes of them.

use memorank::kernel::Dtype;
use memorank::store::files::{File, FileLock, Files, InMemory, What};
use memorank::store::{
    Agent, Changes, CreateOptions, Kind, NewMemory, OpenError, OpenOptions, Part, Problem,
    Reference, RepairError, RepairOptions, RepairReport, Snapshot, Store, repair_on, verify_on,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const DIM: usize = 3;
const BLOCK: u64 = 1 << 20;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A store in a file system of its own.
struct Stored {
    files: Arc<InMemory>,
    /// As it was before anything was damaged.
    original: Snapshot,
    /// All rows, deleted ones among them.
    rows: usize,
    /// The live ones.
    by_text: HashMap<String, usize>,
}

const OLD: &str = "old";
const NEW: &str = "new";
const AGENTS: [Agent; 2] = [Agent::OWN, Agent(7)];

fn options(dtype: Dtype) -> CreateOptions {
    CreateOptions {
        dim: DIM.try_into().unwrap(),
        dtype,
        model: Some("model A".into()),
    }
}

/// The `i`th of many memories, no two of which are alike.
fn with_memory<T>(i: u64, long: usize, then: impl FnOnce(&NewMemory<'_>) -> T) -> T {
    let mut random = Random(i);
    let key = format!("key {i}");
    let mut text = format!("memory {i} ");
    text.extend(std::iter::repeat_n('ä', long / 2));
    let mut payload = i.to_le_bytes().repeat(1 + long / 8);
    payload.truncate(random.below(3) as usize * payload.len() / 2);
    let x = |n: u64| 1.0 + (n % 17) as f32 / 16.0;
    let embedding = [x(i), -x(i / 17), x(i / 289)];
    let mut evidence = Vec::new();
    if i % 3 == 2 {
        evidence = vec![
            Reference::Id(i - 1),
            Reference::Missing("node \"x\"".into()),
        ];
        evidence.extend((0..long / 8).map(|_| Reference::Missing("more of it".into())));
    }
    let kinds = [Kind::OBSERVATION, Kind::REFLECTION, Kind::named("dream")];
    then(&NewMemory {
        key: (i % 4 != 1).then_some(&key),
        kind: kinds[(i % 3) as usize].clone(),
        text: &text,
        embedding: (i % 5 != 4).then_some(&embedding),
        created: 1_000 + i as i64,
        last_access: 2_000 + i as i64,
        expiry: (i % 6 == 0).then_some(9_000 + i as i64),
        importance: 1.0 + (i % 9) as f32,
        evidence: &evidence,
        depth: (i % 4) as u32,
        payload: &payload,
    })
}

fn push(store: &Store, memories: Range<u64>, long: usize) {
    let mut bulk = store.bulk().unwrap();
    for i in memories {
        with_memory(i, long, |memory| bulk.push(memory)).unwrap();
    }
    bulk.commit().unwrap();
}

/// Copies a directory while its store is open: what a crash would leave.
fn copy(from: &dyn Files, to: &dyn Files, dir: &str) {
    to.create_dir(Path::new(dir)).unwrap();
    for name in from.list(Path::new(dir)).unwrap() {
        let path = Path::new(dir).join(name);
        to.create_new(&path)
            .unwrap()
            .write_at(0, &read(from, &path))
            .unwrap();
    }
}

impl Stored {
    /// What is in a store now, as it stands in its files.
    fn of(store: &Store, files: &InMemory) -> Stored {
        let copied = Arc::new(InMemory::new());
        copy(files, &*copied, OLD);
        let original = store.snapshot();
        Stored {
            rows: original.rows(),
            by_text: (0..original.rows())
                .filter_map(|row| Some((original.memory(row).ok()?.text.to_owned(), row)))
                .collect(),
            files: copied,
            original,
        }
    }

    /// `rows` in the columns, some touched, some deleted, and nothing in the journal.
    fn folded(rows: u64, long: usize, dtype: Dtype) -> Stored {
        let files = Arc::new(InMemory::new());
        let store = Store::create_on(files.clone(), OLD, &options(dtype)).unwrap();
        push(&store, 0..rows, long);
        touch_and_delete(&store, 0, rows);
        store.checkpoint().unwrap();
        Stored::of(&store, &files)
    }

    /// As [`folded`](Stored::folded), and then a compaction, and `more` in the journal, touched and deleted.
    fn with_journal(rows: u64, more: u64, dtype: Dtype) -> Stored {
        let files = Arc::new(InMemory::new());
        let store = Store::create_on(files.clone(), OLD, &options(dtype)).unwrap();
        push(&store, 0..rows, 0);
        touch_and_delete(&store, 0, rows);
        store.compact().unwrap();
        store.touch(Agent(7), &[0, 2], 7_777).unwrap();
        store.delete(&[rows - 1]).unwrap();
        store.checkpoint().unwrap();
        for i in rows..rows + more {
            with_memory(i, 0, |memory| store.append(std::slice::from_ref(memory))).unwrap();
            store
                .touch(AGENTS[i as usize % 2], &[i - 1, i], 5_000 + i as i64)
                .unwrap();
        }
        let deleted = [2, rows + 1];
        (store.delete(&deleted[..1 + usize::from(more > 1)])).unwrap();
        Stored::of(&store, &files)
    }

    fn column_files(&self) -> Vec<PathBuf> {
        let files = self.files.list(Path::new(OLD)).unwrap().into_iter();
        let mut files: Vec<PathBuf> = files
            .filter(|name| {
                let name = name.to_str().unwrap();
                name != "manifest" && name != "lock" && !name.starts_with("journal.")
            })
            .map(|name| Path::new(OLD).join(name))
            .collect();
        files.sort();
        files
    }

    fn path(&self, start: &str) -> PathBuf {
        let names = self.files.list(Path::new(OLD)).unwrap();
        let name = names
            .into_iter()
            .find(|name| name.to_str().unwrap().starts_with(start));
        Path::new(OLD).join(name.unwrap_or_else(|| panic!("no {start}")))
    }

    fn flip(&self, path: &Path, offset: u64, mask: u8) {
        let file = self.files.open_to_write(path).unwrap();
        let mut byte = [0];
        file.read_at(offset, &mut byte).unwrap();
        file.write_at(offset, &[byte[0] ^ mask]).unwrap();
    }

    /// Repairs, and checks all that holds whatever is damaged.
    fn repaired(&self, options: &RepairOptions) -> Result<(RepairReport, Snapshot), RepairError> {
        let before = contents(&*self.files);
        let repaired = repair_on(self.files.clone(), OLD, NEW, options);
        let after = contents(&*self.files);
        let old = |all: &BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<PathBuf, Vec<u8>> {
            let all = all.clone().into_iter();
            all.filter(|(path, _)| path.starts_with(OLD)).collect()
        };
        assert!(old(&before) == old(&after), "the damaged store was changed");
        let report = match repaired {
            Ok(report) => report,
            Err(error) => {
                assert!(before == after, "{error}: something was left");
                return Err(error);
            }
        };
        let sound = verify_on(&*self.files, NEW).unwrap();
        assert_eq!(sound.damages, []);
        assert_eq!(sound.rows, report.kept);
        let options = OpenOptions {
            read_only: true,
            in_memory: true,
            ..OpenOptions::default()
        };
        let new = Store::open_on(self.files.clone(), NEW, &options)
            .unwrap()
            .snapshot();
        assert_eq!(new.len(), report.kept);
        assert!(
            report
                .to_string()
                .starts_with(&format!("{} memories kept", report.kept))
        );
        self.files.remove_dir_all(Path::new(NEW)).unwrap();
        Ok((report, new))
    }

    /// What was kept is as it was, but for what the report says; all else is listed. `lost_changes`: touches and
    /// deletes may have been lost.
    fn compare(&self, report: &RepairReport, new: &Snapshot, lost_changes: bool) {
        let old = &self.original;
        assert_eq!(report.kept + report.lost.len() + report.deleted, self.rows);
        let new_ids = report
            .reduced
            .iter()
            .any(|reduced| reduced.part == Part::Id);
        if !lost_changes && !new_ids {
            assert_eq!(report.deleted, old.rows() - old.len());
        }
        let mut without: HashMap<u64, Vec<Part>> = HashMap::new();
        for reduced in &report.reduced {
            without.entry(reduced.id).or_default().push(reduced.part);
        }
        let mut ids: BTreeSet<u64> = (0..new.rows()).map(|row| new.id(row)).collect();
        // Of many, some.
        for row in (0..new.rows()).step_by(1 + new.rows() / 5_000) {
            let found = new.memory(row).unwrap();
            let Some(&old_row) = self.by_text.get(found.text) else {
                assert!(lost_changes || new_ids, "{}", found.text);
                continue;
            };
            let expected = old.memory(old_row).unwrap();
            let without = without.get(&found.id).map_or(&[][..], Vec::as_slice);
            let is = |part: Part, same: bool| {
                let listed = without.contains(&part);
                assert!(same || listed, "{found:?}: {part:?} was {expected:?}");
            };
            is(Part::Id, found.id == expected.id);
            is(Part::Key, found.key == expected.key);
            is(Part::Kind, found.kind == expected.kind);
            is(
                Part::Embedding,
                new.embedding(row) == old.embedding(old_row),
            );
            is(Part::Created, found.created == expected.created);
            is(Part::Expiry, found.expiry == expected.expiry);
            is(Part::Importance, found.importance == expected.importance);
            is(Part::Evidence, found.evidence == expected.evidence);
            is(Part::Depth, found.depth == expected.depth);
            is(Part::Payload, found.payload == expected.payload);
            for agent in AGENTS.into_iter().chain([Agent(1)]) {
                let found = new.last_access(agent, row);
                let expected = old.last_access(agent, old_row);
                // A new id has no touches in the journal.
                is(
                    Part::LastAccess,
                    found == expected || lost_changes || without.contains(&Part::Id),
                );
                assert!(found <= expected || without.contains(&Part::Created));
            }
            if !without.contains(&Part::Importance) {
                assert!(found.importance >= 1.0);
            }
        }
        let lost: BTreeSet<u64> = report.lost.iter().filter_map(|lost| lost.id).collect();
        assert!(ids.is_disjoint(&lost) || lost_changes);
        if report.lost.iter().all(|lost| lost.id.is_some()) && !lost_changes && !new_ids {
            ids.extend(lost);
            let all = (0..old.rows())
                .filter(|&row| old.is_live(row))
                .map(|row| old.id(row));
            assert_eq!(ids, all.collect());
        }
    }

    fn check(&self) -> (RepairReport, Snapshot) {
        let (report, new) = self.repaired(&RepairOptions::default()).unwrap();
        let lost_changes = !report.changes.is_empty();
        self.compare(&report, &new, lost_changes);
        assert!(new.next_id() >= self.original.next_id() || lost_changes);
        assert_eq!(new.model(), Some("model A"));
        (report, new)
    }
}

fn touch_and_delete(store: &Store, from: u64, to: u64) {
    let some: Vec<u64> = (from..to).step_by(3).collect();
    store.touch(Agent::OWN, &some, 4_000).unwrap();
    let some: Vec<u64> = (from..to).step_by(5).collect();
    store.touch(Agent(7), &some, 4_001).unwrap();
    let some: Vec<u64> = (from..to).skip(3).step_by(7).collect();
    store.delete(&some).unwrap();
}

fn read(files: &dyn Files, path: &Path) -> Vec<u8> {
    let file = files.open(path).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// All files, however deep.
fn contents(files: &dyn Files) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(files: &dyn Files, dir: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for name in files.list(dir).unwrap() {
            let path = dir.join(name);
            match files.what(&path).unwrap() {
                What::Directory => add(files, &path, all),
                _ => {
                    all.insert(path.clone(), read(files, &path));
                }
            }
        }
    }
    let mut all = BTreeMap::new();
    add(files, Path::new(""), &mut all);
    all
}

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
        for reduced in &report.reduced {
            panic!("{reduced:?}");
        }
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
            assert_eq!(found, memory);
            assert_eq!(new.embedding(new_row), old.embedding(row));
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

/// A file system that cannot read some bytes of one file.
struct Unreadable {
    files: InMemory,
    path: PathBuf,
    bytes: Range<u64>,
    /// Done when the new store's directory is made.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {:?}", self.bytes, self.path)
    }
}

#[derive(Debug)]
struct Worn(Box<dyn File>, Range<u64>);

impl File for Worn {
    fn bytes(&self) -> io::Result<u64> {
        self.0.bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset < self.1.end && self.1.start < offset + buffer.len() as u64 {
            return Err(io::Error::other("the disk is worn"));
        }
        self.0.read_at(offset, buffer)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<usize> {
        panic!("the damaged store is written to")
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        panic!("the damaged store is cut")
    }

    fn sync(&self) -> io::Result<()> {
        panic!("the damaged store is synced")
    }
}

impl Files for Unreadable {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = self.files.open(path)?;
        Ok(match path == self.path {
            true => Box::new(Worn(file, self.bytes.clone())),
            false => file,
        })
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
        assert!(!path.starts_with(OLD), "{path:?}");
        self.files.open_to_write(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.files.create_new(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if let Some(meanwhile) = self.meanwhile.lock().unwrap().take() {
            meanwhile();
        }
        self.files.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.files.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.remove_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.files.list(dir)
    }

    fn what(&self, path: &Path) -> io::Result<What> {
        self.files.what(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.files.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        assert!(!path.starts_with(OLD), "{path:?}");
        self.files.lock(path)
    }
}

#[test]
fn bytes_that_a_disk_cannot_give_cost_what_damaged_ones_do() {
    let stored = Stored::with_journal(40, 200, Dtype::F16);
    let worn = |path: &Path, bytes: Range<u64>| {
        let files = Arc::new(Unreadable {
            files: InMemory::clone(&stored.files),
            path: path.to_owned(),
            bytes,
            meanwhile: Mutex::new(None),
        });
        let repaired = repair_on(files, OLD, NEW, &RepairOptions::default());
        if repaired.is_ok() {
            stored.files.remove_dir_all(Path::new(NEW)).unwrap();
        }
        repaired
    };
    for path in stored.column_files() {
        let report = worn(&path, 0..1).unwrap();
        stored.flip(&path, 0, 1);
        let (flipped, _) = stored.check();
        stored.flip(&path, 0, 1);
        let costs = |report: &RepairReport| {
            let reduced = report.reduced.iter();
            let parts: Vec<_> = reduced.map(|reduced| (reduced.row, reduced.part)).collect();
            let rows: Vec<_> = report.lost.iter().map(|lost| lost.row).collect();
            (rows, parts, report.changes.len())
        };
        assert_eq!(costs(&report), costs(&flipped));
    }
    let journal = stored.path("journal.");
    assert!(stored.files.open(&journal).unwrap().bytes().unwrap() > 20_000);
    let report = worn(&journal, 8_192..8_193).unwrap();
    assert!(report.kept > stored.original.len() - 40, "{report}");
    assert!(report.changes.len() > 1 && report.lost.is_empty());
    let manifest = Path::new("old/manifest");
    assert!(matches!(
        worn(manifest, 9..10),
        Err(RepairError::NoDim { .. })
    ));
}

#[test]
fn a_store_that_is_written_to_meanwhile_is_left_alone() {
    let files = Arc::new(InMemory::new());
    let store = Store::create_on(files.clone(), OLD, &options(Dtype::F32)).unwrap();
    push(&store, 0..3, 0);
    store.delete(&[0]).unwrap();
    let busy = Arc::new(Unreadable {
        files: InMemory::clone(&files),
        path: PathBuf::new(),
        bytes: 0..0,
        meanwhile: Mutex::new(Some(Box::new(move || store.checkpoint().unwrap()))),
    });
    let error = repair_on(busy.clone(), OLD, NEW, &RepairOptions::default()).unwrap_err();
    assert!(matches!(error, RepairError::Changed { .. }), "{error}");
    assert_eq!(files.list(Path::new("")).unwrap(), [OLD]);
    let report = repair_on(busy, OLD, NEW, &RepairOptions::default()).unwrap();
    assert!(report.is_whole() && report.kept == 2, "{report}");
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
            let path = &files[random.below(files.len() as u64) as usize];
            let whole = read(&*stored.files, path);
            let Some(offset) = random.next().checked_rem(whole.len() as u64) else {
                continue;
            };
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
