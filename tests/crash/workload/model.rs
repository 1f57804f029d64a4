//! What a store should hold after some operations, as naive as can be.

use crate::driver::AGENTS;
use crate::owned::Owned;
use crate::random::Random;
use memorank::kernel::Dtype;
use memorank::store::{Durability, Kind, Promise, Reference};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The kind of store that a seed chooses.
#[derive(Clone, Debug)]
pub struct Setup {
    pub dim: NonZeroUsize,
    pub dtype: Dtype,
    pub in_memory: bool,
    pub durability: Durability,
    pub checkpoint_bytes: u64,
    pub history_bytes: u64,
}

impl Setup {
    pub fn new(random: &mut Random) -> Setup {
        Setup {
            dim: NonZeroUsize::new(1 + random.below(5)).expect("it is at least 1"),
            dtype: random.pick(&[Dtype::F16, Dtype::F32]),
            in_memory: random.chance(30),
            durability: Durability {
                appends: random.pick(&[Promise::OnDisk, Promise::OnDisk, Promise::Written]),
                touches: random.pick(&[Promise::Written, Promise::Written, Promise::OnDisk]),
            },
            checkpoint_bytes: random.pick(&[u64::MAX, u64::MAX, 4000, 300]),
            history_bytes: random.pick(&[0, 0, 2000, u64::MAX]),
        }
    }
}

impl Owned {
    /// The `serial`th memory of a workload, given to a store with the ids below `next_id`.
    pub fn new(random: &mut Random, setup: &Setup, serial: u64, next_id: u64) -> Owned {
        // Long ones cross the boundaries at which writes are torn.
        let mut length = || match random.below(20) {
            0 => random.below(6000),
            1..4 => 0,
            _ => random.below(90),
        };
        let (text, payload) = (length(), length());
        let embedding = random.chance(80).then(|| {
            let element = |_| (random.below(15) as f32 - 7.0) / 8.0;
            let mut all: Vec<f32> = (0..setup.dim.get()).map(element).collect();
            // Not all of them zero.
            all[0] = 1.0;
            all
        });
        let cited = BTreeSet::from_iter((0..random.below(3)).map(|_| random.next()));
        let mut evidence: Vec<_> = (cited.into_iter().filter(|_| next_id > 0))
            .map(|id| id % next_id)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .map(Reference::Id)
            .collect();
        if random.chance(10) {
            evidence.push(Reference::Missing(format!("node_{serial}")));
        }
        let created = 1_000_000 + serial as i64;
        Owned {
            key: random.chance(60).then(|| format!("key {serial}")),
            kind: match random.below(8) {
                0 => Kind::named(format!("kind {}", serial % 5)),
                1 | 2 => Kind::REFLECTION,
                _ => Kind::OBSERVATION,
            },
            text: words(text, serial),
            embedding,
            created,
            last_access: created + random.below(50) as i64,
            expiry: random.chance(20).then_some(created * 2),
            importance: random.below(10) as f32,
            depth: evidence.len() as u32,
            supersedes: None,
            evidence,
            payload: words(payload, !serial).into_bytes(),
        }
    }
}

/// `bytes` bytes that no other place of the file has.
fn words(bytes: usize, serial: u64) -> String {
    let mut text = String::new();
    let mut word = 0_u64;
    while text.len() < bytes {
        text += &format!(
            "{:x}.{word} ",
            serial.wrapping_mul(0x9e37_79b9) & 0xffff_ffff
        );
        word += 1;
    }
    text.truncate(bytes);
    text
}

#[derive(Clone, Debug)]
pub enum Op {
    Create,
    Append(Vec<Owned>),
    Bulk {
        memories: Vec<Owned>,
        commit: bool,
    },
    Touch {
        agent: u32,
        ids: Vec<u64>,
        now: i64,
    },
    Importance {
        agent: u32,
        ids: Vec<u64>,
        importance: Option<f32>,
    },
    /// Of memories without a vector.
    Embed(Vec<(u64, Vec<f32>)>),
    Delete(Vec<u64>),
    Sync,
    Checkpoint,
    Compact,
    /// Closed and opened.
    Reopen,
    /// The process is killed, another one opens the store.
    Kill,
    /// A look at the store after something failed.
    Look,
}

impl Op {
    pub fn name(&self) -> &'static str {
        match self {
            Op::Create => "create",
            Op::Append(_) => "append",
            Op::Bulk { .. } => "bulk append",
            Op::Touch { .. } => "touch",
            Op::Importance { .. } => "importance",
            Op::Embed(_) => "embed",
            Op::Delete(_) => "delete",
            Op::Sync => "sync",
            Op::Checkpoint => "checkpoint",
            Op::Compact => "compact",
            Op::Reopen => "reopen",
            Op::Kill => "kill",
            Op::Look => "look",
        }
    }

    /// Its name, and what it is about.
    pub fn describe(&self) -> String {
        let name = self.name();
        match self {
            Op::Append(memories) => format!("{name} {}", memories.len()),
            Op::Bulk { memories, commit } => format!("{name} {}, {commit}", memories.len()),
            Op::Touch { agent, ids, now } => format!("{name} {ids:?} by {agent} at {now}"),
            Op::Importance {
                agent,
                ids,
                importance,
            } => format!("{name} {importance:?} of {ids:?} for {agent}"),
            Op::Embed(vectors) => {
                let ids: Vec<_> = vectors.iter().map(|(id, _)| id).collect();
                format!("{name} {ids:?}")
            }
            Op::Delete(ids) => format!("{name} {ids:?}"),
            _ => name.into(),
        }
    }
}

/// What a store holds.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// By id, without those that were deleted.
    pub rows: BTreeMap<u64, Row>,
    pub next_id: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// With a last access of 0, and superseding nothing: what is superseded says by what.
    pub given: Arc<Owned>,
    /// Of each agent.
    pub last_access: Vec<i64>,
    /// Of each agent, where it is not the one given.
    pub importance: Vec<Option<f32>>,
    pub superseded_by: Option<u64>,
}

impl State {
    pub const EMPTY: State = State {
        rows: BTreeMap::new(),
        next_id: 0,
    };

    /// What it is after an operation that succeeds.
    pub fn after(&self, op: &Op) -> State {
        let mut state = self.clone();
        match op {
            Op::Append(memories)
            | Op::Bulk {
                memories,
                commit: true,
            } => {
                for memory in memories {
                    let last_access = vec![memory.last_access; AGENTS.len()];
                    let given = Arc::new(Owned {
                        last_access: 0,
                        supersedes: None,
                        ..memory.clone()
                    });
                    if let Some(older) = memory.supersedes {
                        let older = state.rows.get_mut(&older).expect("it was there");
                        older.superseded_by = Some(state.next_id);
                    }
                    let row = Row {
                        given,
                        last_access,
                        importance: vec![None; AGENTS.len()],
                        superseded_by: None,
                    };
                    state.rows.insert(state.next_id, row);
                    state.next_id += 1;
                }
            }
            Op::Importance {
                agent,
                ids,
                importance,
            } => {
                let agent = place_of(*agent);
                for id in ids {
                    if let Some(row) = state.rows.get_mut(id) {
                        let given = row.given.importance;
                        row.importance[agent] = importance.filter(|&value| value != given);
                    }
                }
            }
            Op::Embed(vectors) => {
                for (id, vector) in vectors {
                    if let Some(row) = state.rows.get_mut(id) {
                        Arc::make_mut(&mut row.given).embedding = Some(vector.clone());
                    }
                }
            }
            Op::Touch { agent, ids, now } => {
                let agent = place_of(*agent);
                for id in ids {
                    if let Some(row) = state.rows.get_mut(id) {
                        row.last_access[agent] = row.last_access[agent].max(*now);
                    }
                }
            }
            Op::Delete(ids) => ids.iter().for_each(|id| {
                state.rows.remove(id);
            }),
            Op::Bulk { commit: false, .. }
            | Op::Create
            | Op::Sync
            | Op::Checkpoint
            | Op::Compact
            | Op::Reopen
            | Op::Kill
            | Op::Look => {}
        }
        state
    }

    /// How it differs from another, for a reader.
    pub fn difference(&self, other: &State) -> String {
        let ids: BTreeSet<_> = self.rows.keys().chain(other.rows.keys()).collect();
        let differs = |id: &&&u64| self.rows.get(id) != other.rows.get(id);
        let mut text = format!("next id {} against {}", self.next_id, other.next_id);
        for id in ids.iter().filter(differs).take(3) {
            let of = |state: &State| match state.rows.get(id) {
                Some(row) => format!("{:.500}", format!("{row:?}")),
                None => "nothing".into(),
            };
            text += &format!("\n  id {id}: {} against {}", of(self), of(other));
        }
        text
    }
}

/// The place of one of the agents among them.
fn place_of(agent: u32) -> usize {
    let place = AGENTS.iter().position(|&other| other == agent);
    place.expect("it is one of them")
}

/// The next operation of a workload on a store that is in one of `states`.
pub fn next_op(random: &mut Random, setup: &Setup, states: &[&State], serial: &mut u64) -> Op {
    let next_id = states.iter().map(|s| s.next_id).min().unwrap_or(0);
    let mut memories = |random: &mut Random, most: usize| -> Vec<Owned> {
        let count = 1 + random.below(most);
        let mut new: Vec<Owned> = Vec::new();
        for _ in 0..count {
            *serial += 1;
            let mut given = Owned::new(random, setup, *serial, next_id);
            if random.chance(30) {
                // Perhaps one that is free again.
                let key = Some(format!("key {}", 1 + random.below(*serial as usize)));
                let stored = states.iter().flat_map(|state| state.rows.values());
                let mut taken = stored
                    .map(|row| &row.given.key)
                    .chain(new.iter().map(|g| &g.key));
                if taken.all(|other| *other != key) {
                    given.key = key;
                }
            }
            let older = random.below(next_id.max(1) as usize) as u64;
            let is_free = |state: &&State| {
                let row = state.rows.get(&older);
                row.is_some_and(|row| row.superseded_by.is_none())
            };
            let mut others = new.iter().filter_map(|other| other.supersedes);
            if random.chance(30) && states.iter().all(is_free) && others.all(|other| other != older)
            {
                given.supersedes = Some(older);
            }
            new.push(given);
        }
        new
    };
    // Of the last 20 more often.
    let ids = |random: &mut Random| -> Vec<u64> {
        let from = match random.chance(70) {
            true => next_id.saturating_sub(20),
            false => 0,
        };
        let range = (next_id - from).max(1) as usize;
        let ids = (0..1 + random.below(4)).map(|_| from + random.below(range) as u64);
        ids.collect()
    };
    let rows = next_id > 0;
    match random.below(100) {
        0..12 => Op::Bulk {
            memories: memories(random, 10),
            commit: random.chance(80),
        },
        12..40 if rows => Op::Touch {
            agent: random.pick(AGENTS),
            ids: ids(random),
            now: 1_000_000 + random.below(1000) as i64,
        },
        40..50 if rows => Op::Delete(ids(random)),
        50..55 => Op::Sync,
        84..88 if rows => Op::Importance {
            agent: random.pick(AGENTS),
            ids: ids(random),
            importance: random.chance(80).then(|| random.below(10) as f32),
        },
        88..96 if rows => {
            // None that has one: not even if what failed did happen after all.
            let has_one = |id: u64| {
                let row = |state: &&State| state.rows.get(&id).map(|row| row.given.clone());
                let mut given = states.iter().filter_map(row);
                given.any(|given| given.embedding.is_some())
            };
            let ids: BTreeSet<u64> = (ids(random).into_iter())
                .filter(|&id| !has_one(id))
                .collect();
            let vector = |id| vec![1.0 + (id % 8) as f32 / 8.0; setup.dim.get()];
            Op::Embed(ids.into_iter().map(|id| (id, vector(id))).collect())
        }
        55..62 => Op::Checkpoint,
        62..67 => Op::Compact,
        67..73 => Op::Reopen,
        73..77 => Op::Kill,
        _ => Op::Append(memories(random, 3)),
    }
}
