//! Operations in any order against a list of memories.

use crate::example::*;
use crate::in_memory::*;
use memorank::kernel::Dtype;
use memorank::store::files::{Disk, Files, InMemory};
use memorank::store::{Agent, OpenOptions, ReadError, Snapshot, Store, verify_on};
use proptest::prelude::*;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Op {
    Append(usize),
    Bulk {
        rows: usize,
        commit: bool,
    },
    Refused,
    Touch {
        other: bool,
        ids: Vec<u64>,
        now: i64,
    },
    Importance {
        other: bool,
        ids: Vec<u64>,
        importance: Option<i8>,
    },
    /// `fitting`: those that would be refused are left out.
    Embed {
        fitting: bool,
        ids: Vec<u64>,
    },
    Delete(Vec<u64>),
    Sync,
    Checkpoint,
    Compact,
    Snapshot,
    Reopen {
        killed: bool,
        in_memory: bool,
        checkpoint_bytes: u64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let ids = || prop::collection::vec(0..30_u64, 0..4);
    prop_oneof![
        4 => (0..5_usize).prop_map(Op::Append),
        2 => (0..9_usize, any::<bool>()).prop_map(|(rows, commit)| Op::Bulk { rows, commit }),
        1 => Just(Op::Refused),
        4 => (any::<bool>(), ids(), -20_000..60_000_i64)
            .prop_map(|(other, ids, now)| Op::Touch { other, ids, now }),
        3 => (any::<bool>(), ids(), prop::option::of(any::<i8>()))
            .prop_map(|(other, ids, importance)| Op::Importance { other, ids, importance }),
        6 => (prop::bool::weighted(0.8), ids())
            .prop_map(|(fitting, ids)| Op::Embed { fitting, ids }),
        3 => ids().prop_map(Op::Delete),
        1 => Just(Op::Sync),
        2 => Just(Op::Checkpoint),
        2 => Just(Op::Compact),
        1 => Just(Op::Snapshot),
        3 => (any::<bool>(), any::<bool>(), prop_oneof![Just(300_u64), Just(64 << 20)]).prop_map(
            |(killed, in_memory, checkpoint_bytes)| Op::Reopen { killed, in_memory, checkpoint_bytes }
        ),
    ]
}

/// What a store should hold.
#[derive(Clone, Default)]
struct Model {
    rows: Vec<Row>,
    next_id: u64,
}

#[derive(Clone)]
struct Row {
    id: u64,
    /// With the own agent's last access and importance.
    memory: Owned,
    others: i64,
    others_importance: f32,
    importance_at_append: f32,
    superseded_by: Option<u64>,
    live: bool,
}

fn key(i: u64) -> String {
    format!("key {}", i % 5)
}

impl Model {
    /// The next memories, whose keys are free.
    fn new_memories(&self, rows: usize, dim: usize) -> Vec<Owned> {
        let live = self.rows.iter().filter(|row| row.live);
        let mut keys: HashSet<_> = live.filter_map(|row| row.memory.key.clone()).collect();
        let ids = self.next_id..self.next_id + rows as u64;
        let mut free = self
            .rows
            .iter()
            .filter(|row| row.live && row.superseded_by.is_none());
        ids.map(|i| Owned {
            key: keys.insert(key(i)).then(|| key(i)),
            supersedes: free.next().filter(|_| i % 3 == 0).map(|row| row.id),
            ..varied(i, dim)
        })
        .collect()
    }

    fn extend(&mut self, memories: Vec<Owned>) {
        for memory in memories {
            if let Some(older) = memory.supersedes {
                let older = self.rows.iter_mut().find(|row| row.id == older).unwrap();
                older.superseded_by = Some(self.next_id);
            }
            self.rows.push(Row {
                id: self.next_id,
                others: memory.last_access,
                others_importance: memory.importance,
                importance_at_append: memory.importance,
                superseded_by: None,
                memory,
                live: true,
            });
            self.next_id += 1;
        }
    }

    /// The live rows among these ids, or `None` if one was never given.
    fn live(&mut self, ids: &[u64]) -> Option<impl Iterator<Item = &mut Row>> {
        let given = ids.iter().all(|&id| id < self.next_id);
        let rows = self.rows.iter_mut();
        given.then(|| rows.filter(|row| row.live && ids.contains(&row.id)))
    }

    fn assert_is(&self, snapshot: &Snapshot) {
        let live = self.rows.iter().filter(|row| row.live);
        assert_eq!(
            (snapshot.rows(), snapshot.len()),
            (self.rows.len(), live.count())
        );
        assert_eq!(snapshot.next_id(), self.next_id);
        for (at, row) in self.rows.iter().enumerate() {
            if row.live {
                assert_row(snapshot, at, row.id, &row.memory);
                assert_eq!(snapshot.row_of_id(row.id), Some(at));
            } else {
                assert_eq!(snapshot.memory(at), Err(ReadError::Deleted { row: at }));
                assert_eq!(snapshot.embedding(at), None);
                assert_eq!(snapshot.row_of_id(row.id), None);
            }
            assert_eq!(snapshot.superseded_by(at), row.superseded_by);
            let older = row.memory.supersedes.filter(|&older| {
                let older = self.rows.iter().find(|row| row.id == older);
                older.is_some_and(|row| row.live)
            });
            assert_eq!(snapshot.supersedes(at), older);
            assert_eq!(snapshot.last_access(OTHER, at), row.others);
            assert_eq!(snapshot.importance_of(OTHER, at), row.others_importance);
            let importance = snapshot.importance(at);
            assert_eq!(importance, row.importance_at_append);
        }
        for i in 0..5 {
            let has = |row: &Row| row.live && row.memory.key.as_ref() == Some(&key(i));
            let row = self.rows.iter().position(has);
            assert_eq!(snapshot.row_of_key(&key(i)).unwrap(), row);
        }
    }
}

/// Where a store is.
pub enum Place {
    Memory(InMemory),
    Disk(tempfile::TempDir, PathBuf),
}

impl Place {
    pub fn files(&self) -> Arc<dyn Files> {
        match self {
            Place::Memory(files) => Arc::new(files.clone()),
            Place::Disk(..) => Arc::new(Disk),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Place::Memory(_) => Path::new(STORE),
            Place::Disk(_, path) => path,
        }
    }

    /// What a process that was killed now would leave, from now on.
    pub fn kill(&mut self) {
        match self {
            Place::Memory(files) => *files = killed(files),
            Place::Disk(dir, path) => {
                let new = tempfile::tempdir().unwrap();
                let other = new.path().join("store");
                copy(path, &other);
                (*dir, *path) = (new, other);
            }
        }
    }

    pub fn open(&self, options: &OpenOptions) -> Store {
        Store::open_on(self.files(), self.path(), options).unwrap()
    }
}

fn run(mut place: Place, mut store: Store, ops: Vec<Op>) {
    let dim = store.snapshot().dim().get();
    let mut model = Model::default();
    let mut snapshots = Vec::new();
    for op in ops {
        match op {
            Op::Append(rows) => {
                let new = model.new_memories(rows, dim);
                append(&store, &new);
                model.extend(new);
            }
            Op::Bulk { rows, commit } => {
                let new = model.new_memories(rows, dim);
                let mut bulk = store.bulk().unwrap();
                for memory in &new {
                    bulk.push(&memory.borrowed()).unwrap();
                }
                if commit {
                    bulk.commit().unwrap();
                    model.extend(new);
                }
            }
            Op::Refused => {
                let (good, bad) = (plain(&vec![1.0; dim]), plain(&vec![f32::NAN; dim]));
                let refused = store.append(&[good.borrowed(), bad.borrowed()]);
                assert!(refused.is_err());
            }
            Op::Touch { other, ids, now } => {
                let agent = if other { OTHER } else { Agent::OWN };
                let touched = store.touch(agent, &ids, now);
                let rows = model.live(&ids);
                assert_eq!(touched.is_ok(), rows.is_some());
                for row in rows.into_iter().flatten() {
                    let time = match other {
                        true => &mut row.others,
                        false => &mut row.memory.last_access,
                    };
                    *time = now.max(*time);
                }
            }
            Op::Importance {
                other,
                ids,
                importance,
            } => {
                let agent = if other { OTHER } else { Agent::OWN };
                let importance = importance.map(f32::from);
                let changed = store.set_importance(agent, &ids, importance).ok();
                let rows = model.live(&ids);
                let rows = rows.map(|rows| {
                    rows.map(|row| {
                        let new = importance.unwrap_or(row.importance_at_append);
                        let own = match other {
                            true => &mut row.others_importance,
                            false => &mut row.memory.importance,
                        };
                        std::mem::replace(own, new) != new
                    })
                    .filter(|&changed| changed)
                    .count()
                });
                assert_eq!(changed, rows);
            }
            Op::Embed { fitting, mut ids } => {
                if fitting {
                    let mut named = HashSet::new();
                    ids.retain(|&id| {
                        let has_none = |row: &Row| row.id != id || row.memory.embedding.is_none();
                        let can_be_given = model.rows.iter().all(has_none);
                        id < model.next_id && can_be_given && named.insert(id)
                    });
                }
                let vector = |id: u64| vec![0.5 + id as f32; dim];
                let vectors: Vec<_> = ids.iter().map(|&id| (id, vector(id))).collect();
                let given: Vec<_> = vectors.iter().map(|(id, v)| (*id, &v[..])).collect();
                let embedded = store.embed(&given).ok();
                let distinct: HashSet<_> = ids.iter().collect();
                let rows = model.live(&ids).map(|rows| rows.collect::<Vec<_>>());
                let rows = rows.filter(|rows| {
                    let without = rows.iter().all(|row| row.memory.embedding.is_none());
                    without && distinct.len() == ids.len()
                });
                assert_eq!(embedded, rows.as_ref().map(Vec::len));
                for row in rows.into_iter().flatten() {
                    row.memory.embedding = Some(vector(row.id));
                }
            }
            Op::Delete(ids) => {
                let deleted = store.delete(&ids).ok();
                let rows = model.live(&ids);
                let rows = rows.map(|rows| rows.map(|row| row.live = false).count());
                assert_eq!(deleted, rows);
            }
            Op::Sync => store.sync().unwrap(),
            Op::Checkpoint => store.checkpoint().unwrap(),
            Op::Compact => {
                store.compact().unwrap();
                model.rows.retain(|row| row.live);
            }
            Op::Snapshot => snapshots.push((store.snapshot(), model.clone())),
            Op::Reopen {
                killed,
                in_memory,
                checkpoint_bytes,
            } => {
                if killed {
                    place.kill();
                }
                // If it was killed, it closes what it left behind.
                drop(store);
                store = place.open(&OpenOptions {
                    in_memory,
                    checkpoint_bytes,
                    verify: true,
                    ..OpenOptions::default()
                });
            }
        }
        model.assert_is(&store.snapshot());
    }
    drop(store);
    let store = place.open(&OpenOptions {
        read_only: true,
        ..OpenOptions::default()
    });
    model.assert_is(&store.snapshot());
    let report = verify_on(&*place.files(), place.path()).unwrap();
    assert_eq!((report.damages, report.uncommitted_bytes), (vec![], 0));
    assert_eq!((report.records, report.dropped), (0, vec![]));
    for (snapshot, model) in snapshots {
        model.assert_is(&snapshot);
    }
}

fn dtype(f16: bool) -> Dtype {
    if f16 { Dtype::F16 } else { Dtype::F32 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_memory_does_what_a_list_does(
        ops in prop::collection::vec(op(), 1..40),
        f16 in any::<bool>(),
        dim in 1..6_usize,
    ) {
        let (files, store) = new_in_memory(dim, dtype(f16));
        run(Place::Memory(files), store, ops);
    }
}

proptest! {
    // Every sync takes its time.
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_on_disk_does_what_a_list_does(
        ops in prop::collection::vec(op(), 1..25),
        f16 in any::<bool>(),
        dim in 1..6_usize,
    ) {
        let (dir, path, store) = new_store(dim, dtype(f16));
        run(Place::Disk(dir, path), store, ops);
    }
}
