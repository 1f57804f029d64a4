//! Operations in any order: every touch goes back to what it saw, however much later.

use super::*;
use crate::model::Place;
use proptest::prelude::*;
use std::collections::HashSet;

#[derive(Clone, Debug)]
enum Op {
    Append(usize),
    Bulk(usize),
    /// `stale`: of a snapshot that was taken by an earlier [`Op::Look`].
    Touch {
        other: bool,
        stale: bool,
        ids: Vec<u64>,
        now: i64,
    },
    Importance {
        other: bool,
        ids: Vec<u64>,
        importance: Option<i8>,
    },
    Embed(Vec<u64>),
    Delete(Vec<u64>),
    Look,
    Checkpoint,
    Compact,
    Reopen {
        killed: bool,
        in_memory: bool,
        checkpoint_bytes: u64,
        history_bytes: u64,
    },
}

/// `loses`: compactions are among them, and handles that keep less than everything.
fn op(loses: bool) -> impl Strategy<Value = Op> {
    let fold = if loses { Op::Compact } else { Op::Checkpoint };
    let ids = || prop::collection::vec(0..30_u64, 0..4);
    let most = if loses { 3_000_u64 } else { u64::MAX };
    let least = if loses { 0 } else { most };
    let history = prop_oneof![Just(u64::MAX), least..=most];
    let sizes = (prop_oneof![Just(300_u64), Just(64 << 20)], history);
    prop_oneof![
        4 => (0..5_usize).prop_map(Op::Append),
        2 => (0..9_usize).prop_map(Op::Bulk),
        8 => (any::<bool>(), any::<bool>(), ids(), -20_000..60_000_i64)
            .prop_map(|(other, stale, ids, now)| Op::Touch { other, stale, ids, now }),
        3 => (any::<bool>(), ids(), prop::option::of(any::<i8>()))
            .prop_map(|(other, ids, importance)| Op::Importance { other, ids, importance }),
        3 => ids().prop_map(Op::Embed),
        3 => ids().prop_map(Op::Delete),
        3 => Just(Op::Look),
        2 => Just(Op::Checkpoint),
        2 => Just(fold),
        2 => (any::<bool>(), any::<bool>(), sizes).prop_map(
            |(killed, in_memory, (checkpoint_bytes, history_bytes))| Op::Reopen {
                killed,
                in_memory,
                checkpoint_bytes,
                history_bytes,
            }
        ),
    ]
}

/// What a touch saw.
struct Saw {
    sequence: u64,
    contents: String,
    rows: usize,
    live: HashSet<u64>,
    touched: Vec<u64>,
    /// Rows were numbered anew since.
    compacted: bool,
    /// Less than everything was kept since.
    cut: bool,
}

struct Run {
    place: Place,
    store: Option<Store>,
    saw: Vec<Saw>,
    /// A snapshot, and whether rows were numbered anew since.
    looked: Option<(Snapshot, bool)>,
    /// The handle keeps less than everything.
    bounded: bool,
    keys: u64,
    found: usize,
}

impl Run {
    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    fn memories(&mut self, count: usize) -> Vec<Owned> {
        let next = self.store().snapshot().next_id();
        let snapshot = self.store().snapshot();
        let mut new: Vec<Owned> = Vec::new();
        for id in next..next + count as u64 {
            self.keys += 1;
            // Often one that a deleted memory had.
            let key = Some(format!("key {}", self.keys % 6));
            let taken = snapshot
                .row_of_key(key.as_ref().unwrap())
                .unwrap()
                .is_some()
                || new.iter().any(|other| other.key == key);
            let mut free = (0..snapshot.rows())
                .filter(|&row| snapshot.is_live(row) && snapshot.superseded_by(row).is_none());
            let is_first = new.is_empty() && self.keys.is_multiple_of(3);
            new.push(Owned {
                key: key.filter(|_| !taken),
                supersedes: free.next().filter(|_| is_first).map(|row| snapshot.id(row)),
                ..varied(id, 2)
            });
        }
        new
    }

    fn run(&mut self, op: Op) {
        let next = self.store().snapshot().next_id();
        let given = |ids: Vec<u64>| ids.into_iter().filter(|&id| id < next).collect::<Vec<_>>();
        let agent = |other| if other { OTHER } else { Agent::OWN };
        match op {
            Op::Append(count) => {
                let new = self.memories(count);
                append(self.store(), &new);
            }
            Op::Bulk(count) => {
                let new = self.memories(count);
                let mut bulk = self.store().bulk().unwrap();
                for memory in &new {
                    bulk.push(&memory.borrowed()).unwrap();
                }
                bulk.commit().unwrap();
            }
            Op::Touch {
                other,
                stale,
                ids,
                now,
            } => {
                let now_seen = self.store().snapshot();
                let looked = self.looked.clone().filter(|_| stale);
                let compacted = looked.as_ref().is_some_and(|&(_, compacted)| compacted);
                let looked = looked.map(|(snapshot, _)| snapshot);
                let seen = looked.as_ref().unwrap_or(&now_seen);
                let mut ids = given(ids);
                let sequence = self.store().touch_with(&NewTouch {
                    agent: agent(other),
                    seen: looked.as_ref(),
                    ..touch(&ids, now)
                });
                ids.sort_unstable();
                ids.dedup();
                if let Some(sequence) = sequence.unwrap() {
                    let rows = (0..seen.rows()).filter(|&row| seen.is_live(row));
                    self.saw.push(Saw {
                        sequence,
                        contents: observed(seen),
                        rows: seen.rows(),
                        live: rows.map(|row| seen.id(row)).collect(),
                        touched: ids,
                        compacted,
                        cut: self.bounded,
                    });
                }
            }
            Op::Importance {
                other,
                ids,
                importance,
            } => {
                let importance = importance.map(f32::from);
                (self
                    .store()
                    .set_importance(agent(other), &given(ids), importance))
                .unwrap();
            }
            Op::Embed(ids) => {
                let vector = [0.5, -0.25];
                for id in given(ids) {
                    // One that has a vector is refused.
                    let _ = self.store().embed(&[(id, &vector)]);
                }
            }
            Op::Delete(ids) => {
                self.store().delete(&given(ids)).unwrap();
            }
            Op::Look => self.looked = Some((self.store().snapshot(), false)),
            Op::Checkpoint => self.store().checkpoint().unwrap(),
            Op::Compact => {
                self.store().compact().unwrap();
                self.saw.iter_mut().for_each(|saw| saw.compacted = true);
                if let Some((_, compacted)) = &mut self.looked {
                    *compacted = true;
                }
            }
            Op::Reopen {
                killed,
                in_memory,
                checkpoint_bytes,
                history_bytes,
            } => {
                if killed {
                    self.place.kill();
                }
                // If it was killed, it closes what it left behind.
                self.store = None;
                self.looked = None;
                self.store = Some(self.place.open(&OpenOptions {
                    in_memory,
                    checkpoint_bytes,
                    verify: true,
                    ..OpenOptions::default()
                }));
                self.store().keep_history(history_bytes).unwrap();
                self.bounded = history_bytes < u64::MAX;
                self.saw.iter_mut().for_each(|saw| saw.cut |= self.bounded);
            }
        }
        if !self.bounded {
            let kept = self.store().touches().unwrap().into_iter();
            let kept: HashSet<u64> = kept.map(|(sequence, _)| sequence).collect();
            let all = self.saw.iter().filter(|saw| !saw.cut);
            assert!(
                all.map(|saw| saw.sequence)
                    .all(|sequence| kept.contains(&sequence))
            );
        }
    }

    fn check(&mut self, store: &Store) {
        let now = store.snapshot();
        for saw in &self.saw {
            match store.before(saw.sequence) {
                Ok((before, touched)) => {
                    assert_eq!(observed(&before), saw.contents, "record {}", saw.sequence);
                    assert!(saw.compacted || before.rows() == saw.rows);
                    assert_eq!(before.len(), saw.live.len());
                    assert_eq!(touched.ids, saw.touched);
                    self.found += 1;
                }
                Err(HistoryError::Compacted { id }) => {
                    assert!(saw.compacted && saw.live.contains(&id), "{id}");
                    assert_eq!(now.row_of_id(id), None);
                }
                Err(HistoryError::NotKept { .. }) => assert!(saw.cut, "record {}", saw.sequence),
                Err(error) => panic!("record {}: {error}", saw.sequence),
            }
        }
        assert_eq!(
            observed(&store.snapshot()),
            observed(&now),
            "nothing changes"
        );
    }
}

/// Gives how many touches there were, and to how many of them there is a way back.
fn run(place: Place, ops: Vec<Op>) -> (usize, usize) {
    let store = place.open(&OpenOptions::default());
    store.keep_history(u64::MAX).unwrap();
    let mut run = Run {
        place,
        store: Some(store),
        saw: Vec::new(),
        looked: None,
        bounded: false,
        keys: 0,
        found: 0,
    };
    let count = ops.len();
    for (at, op) in ops.into_iter().enumerate() {
        run.run(op);
        if at % 9 == 8 && at + 1 < count {
            let store = run.store.take().unwrap();
            run.check(&store);
            run.store = Some(store);
        }
    }
    let store = run.store.take().unwrap();
    run.check(&store);
    store.close().unwrap();
    let reader = run.place.open(&OpenOptions {
        read_only: true,
        ..OpenOptions::default()
    });
    run.found = 0;
    run.check(&reader);
    let report = verify_on(&*run.place.files(), run.place.path()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    (run.saw.len(), run.found)
}

fn in_memory() -> Place {
    let (files, store) = new_in_memory(2, Dtype::F16);
    store.close().unwrap();
    Place::Memory(files)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_touch_goes_back_to_what_it_saw(ops in prop::collection::vec(op(false), 1..50)) {
        let (touches, found) = run(in_memory(), ops);
        prop_assert_eq!(touches, found, "all is kept, and nothing compacted");
    }

    #[test]
    fn what_was_compacted_or_not_kept_is_told_and_the_rest_is_as_it_was(
        ops in prop::collection::vec(op(true), 1..50),
    ) {
        run(in_memory(), ops);
    }
}

proptest! {
    // Every sync takes its time.
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_touch_of_a_store_on_disk_goes_back_to_what_it_saw(
        ops in prop::collection::vec(op(true), 1..25),
    ) {
        let (dir, path, store) = new_store(2, Dtype::F32);
        store.close().unwrap();
        run(Place::Disk(dir, path), ops);
    }
}
