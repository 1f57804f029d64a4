//! Stores in a file system of their own, to be damaged, and what holds of every repair.

use crate::example::Random;
use memorank::kernel::Dtype;
use memorank::store::files::{Files, InMemory, What};
use memorank::store::{
    Agent, CreateOptions, Kind, NewMemory, OpenOptions, Part, Reference, RepairError,
    RepairOptions, RepairReport, Snapshot, Store, repair_on, verify_on,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const DIM: usize = 3;
pub const BLOCK: u64 = 1 << 20;

/// A store in a file system of its own.
pub struct Stored {
    pub files: Arc<InMemory>,
    /// As it was before anything was damaged.
    pub original: Snapshot,
    /// All rows, deleted ones among them.
    pub rows: usize,
    /// The live ones.
    pub by_text: HashMap<String, usize>,
}

pub const OLD: &str = "old";
pub const NEW: &str = "new";
pub const AGENTS: [Agent; 2] = [Agent::OWN, Agent(7)];

pub fn options(dtype: Dtype) -> CreateOptions {
    CreateOptions {
        dim: DIM.try_into().unwrap(),
        dtype,
        model: Some("model A".into()),
    }
}

/// The `i`th of many memories, no two of which are alike.
pub fn with_memory<T>(i: u64, long: usize, then: impl FnOnce(&NewMemory<'_>) -> T) -> T {
    let mut random = Random(i);
    let key = format!("key {i}");
    let mut text = format!("memory {i} ");
    text.extend(std::iter::repeat_n('ä', long / 2));
    let mut payload = i.to_le_bytes().repeat(1 + long / 8);
    payload.truncate(random.below(3) * payload.len() / 2);
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
        expiry: i.is_multiple_of(6).then_some(9_000 + i as i64),
        importance: 1.0 + (i % 9) as f32,
        evidence: &evidence,
        depth: (i % 4) as u32,
        supersedes: None,
        payload: &payload,
    })
}

pub fn push(store: &Store, memories: Range<u64>, long: usize) {
    let mut bulk = store.bulk().unwrap();
    for i in memories {
        with_memory(i, long, |memory| bulk.push(memory)).unwrap();
    }
    bulk.commit().unwrap();
}

/// Copies a directory while its store is open: what a crash would leave.
pub fn copy(from: &dyn Files, to: &dyn Files, dir: &str) {
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
    pub fn of(store: &Store, files: &InMemory) -> Stored {
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

    /// `rows` in the columns, some changed in all ways there are, and nothing in the journal.
    pub fn folded(rows: u64, long: usize, dtype: Dtype) -> Stored {
        let files = Arc::new(InMemory::new());
        let store = Store::create_on(files.clone(), OLD, &options(dtype)).unwrap();
        push(&store, 0..rows, long);
        touch_and_delete(&store, 0, rows);
        embed_and_rate(&store, 0, rows);
        store.checkpoint().unwrap();
        Stored::of(&store, &files)
    }

    /// As [`folded`](Stored::folded), and then a compaction, and `more` in the journal, changed in all ways.
    pub fn with_journal(rows: u64, more: u64, dtype: Dtype) -> Stored {
        let files = Arc::new(InMemory::new());
        let store = Store::create_on(files.clone(), OLD, &options(dtype)).unwrap();
        push(&store, 0..rows, 0);
        touch_and_delete(&store, 0, rows);
        embed_and_rate(&store, 0, rows / 2);
        store.compact().unwrap();
        embed_and_rate(&store, rows / 2, rows);
        store.touch(Agent(7), &[0, 2], 7_777).unwrap();
        store.delete(&[rows - 1]).unwrap();
        store.checkpoint().unwrap();
        for i in rows..rows + more {
            with_memory(i, 0, |memory| store.append(std::slice::from_ref(memory))).unwrap();
            store
                .touch(AGENTS[i as usize % 2], &[i - 1, i], 5_000 + i as i64)
                .unwrap();
        }
        embed_and_rate(&store, rows, rows + more);
        store.set_importance(Agent(7), &[1], None).unwrap();
        let deleted = [2, rows + 1];
        (store.delete(&deleted[..1 + usize::from(more > 1)])).unwrap();
        Stored::of(&store, &files)
    }

    pub fn column_files(&self) -> Vec<PathBuf> {
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

    pub fn path(&self, start: &str) -> PathBuf {
        let names = self.files.list(Path::new(OLD)).unwrap();
        let name = names
            .into_iter()
            .find(|name| name.to_str().unwrap().starts_with(start));
        Path::new(OLD).join(name.unwrap_or_else(|| panic!("no {start}")))
    }

    pub fn flip(&self, path: &Path, offset: u64, mask: u8) {
        let file = self.files.open_to_write(path).unwrap();
        let mut byte = [0];
        file.read_at(offset, &mut byte).unwrap();
        file.write_at(offset, &[byte[0] ^ mask]).unwrap();
    }

    /// Repairs, and checks all that holds whatever is damaged.
    pub fn repaired(
        &self,
        options: &RepairOptions,
    ) -> Result<(RepairReport, Snapshot), RepairError> {
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
    pub fn compare(&self, report: &RepairReport, new: &Snapshot, lost_changes: bool) {
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
            let (vector, expected_vector) = (new.embedding(row), old.embedding(old_row));
            // One that came later may be among the changes that are lost, or have come to another id.
            let without_late = vector.is_none() && (lost_changes || without.contains(&Part::Id));
            is(Part::Embedding, vector == expected_vector || without_late);
            is(Part::Created, found.created == expected.created);
            is(Part::Expiry, found.expiry == expected.expiry);
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
                let found = new.importance_of(agent, row);
                let expected = old.importance_of(agent, old_row);
                is(
                    Part::Importance,
                    found == expected || lost_changes || without.contains(&Part::Id),
                );
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

    pub fn check(&self) -> (RepairReport, Snapshot) {
        let (report, new) = self.repaired(&RepairOptions::default()).unwrap();
        let lost_changes = !report.changes.is_empty();
        self.compare(&report, &new, lost_changes);
        assert!(new.next_id() >= self.original.next_id() || lost_changes);
        assert_eq!(new.model(), Some("model A"));
        (report, new)
    }
}

pub fn touch_and_delete(store: &Store, from: u64, to: u64) {
    let some: Vec<u64> = (from..to).step_by(3).collect();
    store.touch(Agent::OWN, &some, 4_000).unwrap();
    let some: Vec<u64> = (from..to).step_by(5).collect();
    store.touch(Agent(7), &some, 4_001).unwrap();
    let some: Vec<u64> = (from..to).skip(3).step_by(7).collect();
    store.delete(&some).unwrap();
}

/// Gives some of those without a vector one, and some of all an importance of an agent's own.
pub fn embed_and_rate(store: &Store, from: u64, to: u64) {
    let snapshot = store.snapshot();
    let without = (from..to).filter(|&id| {
        (snapshot.row_of_id(id)).is_some_and(|row| id % 2 == 0 && !snapshot.has_embedding(row))
    });
    let vectors: Vec<_> = without
        .map(|id| (id, [1.5, (id % 97) as f32, -0.5]))
        .collect();
    let vectors: Vec<_> = vectors.iter().map(|(id, v)| (*id, &v[..])).collect();
    store.embed(&vectors).unwrap();
    for (agent, step) in AGENTS.into_iter().zip([3, 4]) {
        let some: Vec<u64> = (from..to).skip(1).step_by(step).collect();
        store
            .set_importance(agent, &some, Some(step as f32))
            .unwrap();
    }
}

pub fn read(files: &dyn Files, path: &Path) -> Vec<u8> {
    let file = files.open(path).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// All files, however deep.
pub fn contents(files: &dyn Files) -> BTreeMap<PathBuf, Vec<u8>> {
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
