//! `eval`: what is measured is what `stream` ranks, and what is told of it is so.

#[path = "../common/mod.rs"]
mod common;
#[path = "../store/example.rs"]
#[allow(dead_code)]
mod example;

mod evaluate;
mod intervals;
mod locomo;
mod measures;
mod refused;
mod sweep;
mod tune;

use common::Random;
use example::{Owned, append, new_store, plain};
use memorank::eval::Judged;
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Scoring, Weights};
use memorank::store::{Agent, Kind, Store};
use memorank::stream::Filter;

const HOUR: i64 = 3_600_000_000;
const T: i64 = 1_676_300_400_000_000;
const DIM: usize = 3;

/// A store in which much is equal: few directions, times and importances, so that ties are common. Some memories have
/// no vector, some are deleted, some lie in the columns and some in the tail, and agent 3 has last accesses of its own.
fn town(random: &mut Random, memories: i64) -> (tempfile::TempDir, Store) {
    const KINDS: [Kind; 3] = [Kind::OBSERVATION, Kind::REFLECTION, Kind::CHAT];
    let mut memory = |i: i64| Owned {
        kind: KINDS[random.below(3) as usize].clone(),
        text: ["Klaus paints", "the desk is idle", "Isabella sings"][random.below(3) as usize]
            .into(),
        embedding: (random.below(9) > 0).then(|| {
            let mut element = || random.below(4) as f32 * 0.5 + 0.1;
            vec![element(), element(), element()]
        }),
        created: T + (i - memories) * HOUR,
        last_access: T - random.below(30) as i64 * 7 * HOUR,
        importance: random.below(4) as f32,
        ..plain(&[])
    };
    let all: Vec<Owned> = (0..memories).map(&mut memory).collect();
    let (dir, _, store) = new_store(DIM, Dtype::F32);
    append(&store, &all[..all.len() / 2]);
    store.checkpoint().unwrap();
    append(&store, &all[all.len() / 2..]);
    let ids: Vec<u64> = (0..memories as u64).collect();
    let some = |n: usize| -> Vec<u64> { ids.iter().copied().step_by(n).collect() };
    store.touch(Agent(3), &some(5), T - HOUR).unwrap();
    store.delete(&some(11)).unwrap();
    (dir, store)
}

/// A question, without what it borrows.
struct Asked {
    embedding: Vec<f32>,
    now: i64,
    agent: Agent,
    relevant: Vec<u64>,
}

/// Questions of some moments and agents, each with one to nine right answers. Some of these are deleted, have no vector
/// or are still to come.
fn questions(random: &mut Random, memories: i64, n: usize) -> Vec<Asked> {
    let mut question = || {
        // Few are counted for, many sorted.
        let relevant = [1, 2, 3, 9][random.below(4) as usize];
        Asked {
            embedding: random.vector(DIM),
            now: T - random.below(3) as i64 * 20 * HOUR,
            agent: [Agent::OWN, Agent(3)][random.below(2) as usize],
            relevant: (0..relevant)
                .map(|_| random.below(memories as u64 + 3))
                .collect(),
        }
    };
    (0..n).map(|_| question()).collect()
}

fn judged<'a>(asked: &'a [Asked], filter: &'a Filter<'a>) -> Vec<Judged<'a>> {
    let judged = asked.iter().map(|of| Judged {
        agent: of.agent,
        filter,
        ..Judged::new(&of.embedding, of.now, &of.relevant)
    });
    judged.collect()
}

/// Cosine alone.
fn cosine() -> Preset {
    weighted(1.0, 0.0, 0.0)
}

fn weighted(relevance: f64, recency: f64, importance: f64) -> Preset {
    let paper = Preset::paper();
    Preset {
        scoring: Scoring {
            weights: Weights {
                relevance,
                recency,
                importance,
            },
            ..paper.scoring
        },
        ..paper
    }
}

fn measure(name: &str) -> memorank::eval::Measure {
    name.parse().unwrap()
}
