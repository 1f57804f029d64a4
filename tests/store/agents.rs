//! Agents that share a store: each has last accesses of its own.

use crate::example::*;
use crate::in_memory::*;
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Ranking, Workspace};
use memorank::store::{Agent, Snapshot, Store};
use memorank::stream::{Ask, Retrieve, rank, retrieve};
use std::collections::BTreeMap;

const HOUR: i64 = 3_600_000_000;

#[test]
fn last_accesses_of_every_agent_survive_whatever_happens_to_the_store() {
    let agents = [Agent::OWN, Agent(1), OTHER, Agent(u32::MAX)];
    let (mut files, mut store) = new_in_memory(2, Dtype::F32);
    let mut expected: BTreeMap<(Agent, u64), i64> = BTreeMap::new();
    let mut random = Random(5);
    let mut deleted = Vec::new();
    for round in 0..24_u64 {
        append(&store, &[varied(round, 2)]);
        for agent in agents {
            let ids = [random.below(round as usize + 1) as u64, round / 2];
            let now = random.below(100_000) as i64;
            store.touch(agent, &ids, now).unwrap();
            for id in ids {
                let time = expected
                    .entry((agent, id))
                    .or_insert(varied(id, 2).last_access);
                *time = now.max(*time);
            }
        }
        if round % 5 == 4 {
            let id = random.below(round as usize) as u64;
            store.delete(&[id]).unwrap();
            deleted.push(id);
        }
        match round % 6 {
            1 => store.checkpoint().unwrap(),
            2 => store.compact().unwrap(),
            3 => {
                store.close().unwrap();
                store = open(&files).unwrap();
            }
            4 => {
                files = killed(&files);
                store = open(&files).unwrap();
            }
            _ => {}
        }
        let check = |snapshot: &Snapshot| {
            for id in (0..=round).filter(|id| !deleted.contains(id)) {
                let row = snapshot.row_of_id(id).unwrap();
                for agent in agents.into_iter().chain([Agent(99)]) {
                    let given = varied(id, 2).last_access;
                    let time = expected.get(&(agent, id)).copied().unwrap_or(given);
                    assert_eq!(snapshot.last_access(agent, row), time, "{agent:?}, id {id}");
                    let segments = snapshot.segments(agent);
                    let mut times = segments.flat_map(|s| s.last_access.to_vec());
                    assert_eq!(times.nth(row), Some(time));
                }
            }
        };
        check(&store.snapshot());
        check(&read(&files));
    }
}

fn ask(agent: Agent, now: i64, preset: &Preset) -> Ask<'_> {
    Ask {
        agent,
        ..Ask::new(&[1.0, 0.25], now, preset)
    }
}

fn ranked(store: &Store, agent: Agent, now: i64, touch: bool) -> Ranking {
    let preset = Preset {
        k: 4,
        ..Preset::paper()
    };
    let ask = ask(agent, now, &preset);
    let (mut workspace, mut ranking) = (Workspace::default(), Ranking::default());
    if touch {
        let wanted = Retrieve::new(ask);
        let retrieved = retrieve(store, &wanted, Par::Serial, &mut workspace).unwrap();
        retrieved.touch.unwrap();
        let hits = retrieved.memories.iter().filter_map(|of| of.hit);
        ranking = Ranking {
            hits: hits.collect(),
            ranges: retrieved.ranges,
            candidates: retrieved.candidates,
        };
    } else {
        let snapshot = store.snapshot();
        rank(&snapshot, &ask, Par::Serial, &mut workspace, &mut ranking).unwrap();
    }
    ranking
}

#[test]
fn a_retrieval_touches_for_the_agent_that_asked_and_no_other() {
    let (_dir, _path, store) = new_store(2, Dtype::F32);
    let times = (0..10).map(|i| i * HOUR);
    let memories = times.map(|time| Owned {
        last_access: time,
        ..plain(&[1.0, time as f32 / HOUR as f32])
    });
    append(&store, &memories.collect::<Vec<_>>());
    let now = 100 * HOUR;
    let before = ranked(&store, Agent::OWN, now, false);
    let own = last_access(&store.snapshot());
    let hits = ranked(&store, OTHER, now, true);
    assert_eq!(hits, before);
    assert_eq!(last_access(&store.snapshot()), own);
    assert_eq!(ranked(&store, Agent::OWN, now, false), before);
    let snapshot = store.snapshot();
    for (row, &own) in own.iter().enumerate() {
        let touched = hits.hits.iter().any(|hit| hit.row == row);
        let expected = if touched { now } else { own };
        assert_eq!(snapshot.last_access(OTHER, row), expected);
    }
    assert_ne!(ranked(&store, OTHER, now, false), before);
}

// B13
#[test]
fn scores_after_reopening_are_those_of_a_handle_that_never_closed() {
    let stores = [(); 3].map(|()| new_store(2, Dtype::F16));
    let [(_a, _, first), (_b, closed, other), (_c, compacted, third)] = stores;
    for store in [&first, &other, &third] {
        append(store, &(0..40).map(|i| varied(i, 2)).collect::<Vec<_>>());
        store.delete(&[3, 30]).unwrap();
        for (at, agent) in [(1, OTHER), (2, Agent::OWN), (5, OTHER), (9, Agent::OWN)] {
            ranked(store, agent, at * HOUR, true);
        }
    }
    other.close().unwrap();
    third.compact().unwrap();
    drop(third);
    let ids = |store: &Store, ranking: &Ranking| {
        let snapshot = store.snapshot();
        let hits = ranking.hits.iter();
        Vec::from_iter(hits.map(|hit| (snapshot.id(hit.row), hit.score.to_bits())))
    };
    for agent in [Agent::OWN, OTHER] {
        let expected = ranked(&first, agent, 10 * HOUR, false);
        let reopened = Store::open(&closed).unwrap();
        assert_eq!(ranked(&reopened, agent, 10 * HOUR, false), expected);
        let renumbered = Store::open(&compacted).unwrap();
        let found = ranked(&renumbered, agent, 10 * HOUR, false);
        assert_eq!(ids(&renumbered, &found), ids(&first, &expected));
    }
}
