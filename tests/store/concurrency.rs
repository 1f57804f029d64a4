//! Threads that share a handle.

use crate::example::*;
use crate::in_memory::*;
use crate::setting::setting;
use memorank::Par;
use memorank::kernel::{Dtype, Rows, inv_norms};
use memorank::scoring::{self, Candidates, Columns, Preset, Query, Ranking, Workspace};
use memorank::store::{
    Agent, Durability, OpenError, OpenOptions, Promise, Snapshot, Store, verify,
};
use memorank::stream::{Ask, Retrieve, rank, retrieve};
use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

const DIM: usize = 8;

/// Once, or as often as the time allows that is set.
fn repeatedly(name: &str, round: fn()) {
    let time = Duration::from_secs(setting("MEMORANK_CONCURRENCY_SECONDS", 0) as u64);
    let (start, mut rounds) = (Instant::now(), 0);
    while rounds == 0 || start.elapsed() < time {
        round();
        rounds += 1;
    }
    println!("{name}: {rounds} times");
}

/// A vector that depends on `i`.
fn vector(i: u64) -> [f32; DIM] {
    let mut random = Random(i);
    std::array::from_fn(|_| random.below(2_001) as f32 / 1_000.0 - 1.0)
}

fn memory(i: u64) -> Owned {
    Owned {
        text: format!("memory {i}"),
        importance: (i % 10) as f32,
        last_access: i as i64,
        ..plain(&vector(i))
    }
}

fn ask<'a>(embedding: &'a [f32], now: i64, preset: &'a Preset) -> Ask<'a> {
    Ask::new(embedding, now, preset)
}

// B31
#[test]
fn sixteen_threads_retrieve_and_touch_beside_a_bulk_append() {
    repeatedly(
        "16 threads retrieved beside a bulk append",
        retrieve_and_touch_beside_a_bulk_append,
    );
}

fn retrieve_and_touch_beside_a_bulk_append() {
    const ROWS: u64 = 300;
    let (_dir, path, store) = new_store(DIM, Dtype::F32);
    append(&store, &(0..ROWS).map(memory).collect::<Vec<_>>());
    let mut preset = Preset {
        k: 5,
        ..Preset::paper()
    };
    // So that each query finds others.
    preset.scoring.weights.relevance = 10.0;
    let clock = AtomicI64::new(1_000_000);
    let (started, done) = (Barrier::new(17), AtomicBool::new(false));
    let (largest, pushed) = std::thread::scope(|scope| {
        let (store, started, done) = (&store, &started, &done);
        let (clock, preset) = (&clock, &preset);
        // It is there from before the first retrieval until after the last: none waits for it.
        let appender = scope.spawn(move || {
            let mut bulk = store.bulk().unwrap();
            started.wait();
            while !done.load(Ordering::Relaxed) {
                let id = ROWS + bulk.len() as u64;
                bulk.push(&memory(id).borrowed()).unwrap();
                std::thread::sleep(Duration::from_micros(100));
            }
            bulk.commit().unwrap()
        });
        let readers: Vec<_> = (0..16_u64)
            .map(|thread| {
                scope.spawn(move || {
                    started.wait();
                    let mut workspace = Workspace::default();
                    let mut largest: HashMap<u64, i64> = HashMap::new();
                    for i in 0..200 {
                        let now = clock.fetch_add(1, Ordering::Relaxed);
                        let (query, par) = (vector(thread * 1_000 + i), Par::Serial);
                        let wanted = Retrieve::new(ask(&query, now, preset));
                        let retrieved = retrieve(store, &wanted, par, &mut workspace).unwrap();
                        retrieved.touch.unwrap();
                        assert_eq!(retrieved.snapshot.rows() as u64, ROWS);
                        for memory in &retrieved.memories {
                            let last = largest.entry(memory.id);
                            let last = last.or_insert(now);
                            *last = now.max(*last);
                        }
                    }
                    largest
                })
            })
            .collect();
        let mut largest: HashMap<u64, i64> = HashMap::new();
        for (id, now) in readers
            .into_iter()
            .flat_map(|reader| reader.join().unwrap())
        {
            let last = largest.entry(id).or_insert(now);
            *last = now.max(*last);
        }
        done.store(true, Ordering::Relaxed);
        (largest, appender.join().unwrap())
    });
    assert!(largest.len() > 100, "{}", largest.len());
    let check = |snapshot: &Snapshot| {
        assert_eq!(snapshot.rows() as u64, pushed.end);
        for id in 0..pushed.end {
            let row = snapshot.row_of_id(id).unwrap();
            let expected = largest.get(&id).copied().unwrap_or(id as i64);
            assert_eq!(snapshot.last_access(Agent::OWN, row), expected, "id {id}");
        }
    };
    check(&store.snapshot());
    check(&Store::open_read_only(&path).unwrap().snapshot());
    drop(store);
    check(&Store::open(&path).unwrap().snapshot());
}

// B51
#[test]
fn no_append_touch_or_delete_of_many_threads_is_lost() {
    repeatedly(
        "8 threads appended, touched and deleted beside folds",
        append_touch_and_delete,
    );
}

fn append_touch_and_delete() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 25;
    let (files, store) = new_in_memory(DIM, Dtype::F16);
    let done = AtomicBool::new(false);
    // What each thread made of which memory: its text, its last access by the thread, whether it is live.
    type Made = (u64, String, i64, bool);
    let made: Vec<Made> = std::thread::scope(|scope| {
        let (store, files, done) = (&store, &files, &done);
        // At least once: on a busy machine the others may be done before it comes to it.
        let folder = scope.spawn(move || {
            for folds in 0.. {
                match folds % 3 {
                    2 => store.compact().unwrap(),
                    _ => store.checkpoint().unwrap(),
                }
                let second = open(files);
                assert!(matches!(second, Err(OpenError::Locked { .. })));
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let agent = Agent(thread as u32);
                    let mut made: Vec<Made> = Vec::new();
                    for round in 0..ROUNDS {
                        let texts: Vec<_> = (0..1 + round % 3)
                            .map(|i| format!("{thread} {round} {i}"))
                            .collect();
                        let new: Vec<_> = texts
                            .iter()
                            .map(|text| Owned {
                                text: text.clone(),
                                key: Some(text.clone()),
                                ..memory(round)
                            })
                            .collect();
                        let ids = append(store, &new);
                        made.extend(
                            ids.zip(texts)
                                .map(|(id, text)| (id, text, round as i64, true)),
                        );
                        let at = (round * 7) as usize % made.len();
                        let (id, _, last, live) = &mut made[at];
                        let now = 1_000 + (round * 31 % 17) as i64;
                        store.touch(agent, &[*id], now).unwrap();
                        if *live {
                            *last = now.max(*last);
                        }
                        if round % 5 == 4 {
                            assert_eq!(store.delete(&[*id]).unwrap(), usize::from(*live));
                            *live = false;
                        }
                        // What was acknowledged is seen at once.
                        let snapshot = store.snapshot();
                        for (id, _, last, live) in &made {
                            let row = snapshot.row_of_id(*id);
                            assert_eq!(row.is_some(), *live);
                            let seen = row.map(|row| snapshot.last_access(agent, row));
                            assert!(seen.is_none_or(|seen| seen == *last));
                        }
                    }
                    made.into_iter()
                        .map(move |(id, text, last, live)| {
                            (id, format!("{thread}/{text}"), last, live)
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let made = writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap());
        let made = made.collect();
        done.store(true, Ordering::Relaxed);
        folder.join().unwrap();
        made
    });
    let mut ids: Vec<_> = made.iter().map(|(id, ..)| *id).collect();
    ids.sort_unstable();
    assert_eq!(ids, Vec::from_iter(0..made.len() as u64));
    let check = |snapshot: &Snapshot| {
        let live = made.iter().filter(|(.., live)| *live);
        assert_eq!(snapshot.len(), live.count());
        for (id, text, last, live) in &made {
            let (thread, text) = text.split_once('/').unwrap();
            let row = snapshot.row_of_id(*id);
            assert_eq!(row.is_some(), *live);
            assert_eq!(snapshot.row_of_key(text).unwrap(), row);
            if let Some(row) = row {
                assert_eq!(snapshot.memory(row).unwrap().text, text);
                let agent = Agent(thread.parse().unwrap());
                assert_eq!(snapshot.last_access(agent, row), *last);
            }
        }
    };
    check(&store.snapshot());
    store.close().unwrap();
    check(&open(&files).unwrap().snapshot());
    check(&read(&files));
}

/// The ranking of a copy of all that a snapshot has, in arrays of its own.
fn ranked_alone(snapshot: &Snapshot, ask: &Ask<'_>) -> Ranking {
    let rows = 0..snapshot.rows();
    let mut live = vec![0; rows.len().div_ceil(64)];
    let (mut elements, mut norms) = (Vec::new(), Vec::new());
    for row in rows.clone() {
        live[row / 64] |= u64::from(snapshot.is_live(row)) << (row % 64);
        let vector = snapshot.embedding(row).unwrap_or(vec![0.0; DIM]);
        let mut norm = [0.0];
        if snapshot.is_live(row) {
            inv_norms(snapshot.dim(), Rows::F32(&vector), &mut norm).unwrap();
        }
        elements.extend(vector);
        norms.extend(norm);
    }
    let last_access = last_access(snapshot);
    let importance: Vec<_> = rows.map(|row| snapshot.importance(row)).collect();
    let elements = Rows::F32(&elements);
    let columns = Columns::new(snapshot.dim(), elements, &norms, &last_access, &importance);
    let query = Query {
        embedding: ask.embedding,
        now: ask.now,
        k: ask.preset.k,
        candidates: Candidates::Mask(&live),
        ties: ask.preset.ties,
    };
    scoring::rank(&[columns.unwrap()], &query, &ask.preset.scoring).unwrap()
}

fn ranked(snapshot: &Snapshot, ask: &Ask<'_>) -> Ranking {
    let (mut workspace, mut ranking) = (Workspace::default(), Ranking::default());
    rank(snapshot, ask, Par::Serial, &mut workspace, &mut ranking).unwrap();
    ranking
}

// B52
#[test]
fn a_ranking_is_that_of_its_snapshot_while_ten_thousand_rows_come_in() {
    repeatedly(
        "rankings while 10,000 rows came in",
        rank_while_rows_come_in,
    );
}

fn rank_while_rows_come_in() {
    const ROWS: u64 = 10_000;
    let (_dir, path, store) = new_store(DIM, Dtype::F32);
    append(&store, &(0..100).map(memory).collect::<Vec<_>>());
    drop(store);
    let options = OpenOptions {
        checkpoint_bytes: 100_000,
        durability: Durability {
            appends: Promise::Written,
            touches: Promise::Written,
        },
        ..OpenOptions::default()
    };
    let store = Store::open_with(&path, &options).unwrap();
    let preset = Preset {
        k: 10,
        ..Preset::paper()
    };
    let done = AtomicBool::new(false);
    let mut kept = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for first in (100..ROWS).step_by(50) {
                append(&store, &(first..first + 50).map(memory).collect::<Vec<_>>());
                store
                    .touch(Agent::OWN, &[first, first / 2], 5_000 + first as i64)
                    .unwrap();
                store.delete(&[first / 3]).unwrap();
                if first % 2_500 == 0 {
                    store.compact().unwrap();
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut rows = 0;
        for i in 0.. {
            let last = done.load(Ordering::Relaxed);
            let snapshot = store.snapshot();
            let query = vector(i);
            let ask = ask(&query, 1_000_000, &preset);
            let ranking = ranked(&snapshot, &ask);
            assert_eq!(ranking, ranked_alone(&snapshot, &ask));
            assert_eq!(ranking.candidates, snapshot.len());
            assert!(
                ranking
                    .hits
                    .iter()
                    .all(|hit| snapshot.id(hit.row) < snapshot.next_id())
            );
            // Snapshots follow one another.
            assert!(rows <= snapshot.next_id());
            rows = snapshot.next_id();
            if kept.len() < 20 {
                kept.push((snapshot, i, ranking));
            }
            if last {
                assert!(i > 0 && rows == ROWS);
                break;
            }
        }
    });
    store.close().unwrap();
    for (snapshot, i, ranking) in kept {
        let query = vector(i);
        assert_eq!(ranked(&snapshot, &ask(&query, 1_000_000, &preset)), ranking);
    }
    assert_eq!(verify(&path).unwrap().damages, []);
}
