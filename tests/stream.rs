//! `stream`: ranking reads, retrieval touches what it returns.

#![cfg(feature = "store")]

#[path = "store/example.rs"]
#[allow(dead_code)]
mod example;

use example::{Owned, append, bytes_of, last_access, new_store, plain};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{CandidateRule, Preset, RankError, Ranking, ResultOrder, Touch, Workspace};
use memorank::store::{Agent, Kind, Snapshot, Store, TouchError, WriteError};
use memorank::stream::{Ask, Retrieved, StreamError, columns, rank, retrieve};
use memorank::{oracle, scoring::Query};
use std::path::PathBuf;

const HOUR: i64 = 3_600_000_000;
const T: i64 = 1_676_300_400_000_000;

fn memory(embedding: &[f32], hours: i64, importance: f32) -> Owned {
    Owned {
        created: T - 200 * HOUR,
        last_access: T - hours * HOUR,
        importance,
        ..plain(embedding)
    }
}

/// A closed store of these memories.
fn stored(memories: &[Owned]) -> (tempfile::TempDir, PathBuf) {
    let (dir, path, store) = new_store(2, Dtype::F32);
    append(&store, memories);
    store.close().unwrap();
    (dir, path)
}

/// Set G of the trials.
fn g() -> (tempfile::TempDir, PathBuf) {
    stored(&[
        memory(&[1.0, 0.0], 10, 2.0),
        memory(&[0.6, 0.8], 0, 8.0),
        memory(&[0.0, 1.0], 100, 5.0),
    ])
}

fn ask<'a>(preset: &'a Preset, now: i64, exclude: &'a [u32]) -> Ask<'a> {
    Ask {
        agent: Agent::OWN,
        embedding: &[1.0, 0.0],
        now,
        preset,
        exclude,
        decays: None,
    }
}

fn ranked(snapshot: &Snapshot, ask: &Ask<'_>) -> Result<Ranking, StreamError> {
    let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
    rank(snapshot, ask, Par::Serial, &mut workspace, &mut ranking)?;
    Ok(ranking)
}

fn retrieved(store: &Store, ask: &Ask<'_>) -> Result<(Ranking, Retrieved), StreamError> {
    let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
    let retrieved = retrieve(store, ask, Par::Serial, &mut workspace, &mut ranking)?;
    Ok((ranking, retrieved))
}

/// A retrieval where nothing goes wrong.
fn touched(store: &Store, ask: &Ask<'_>) -> Ranking {
    let (ranking, retrieved) = retrieved(store, ask).unwrap();
    retrieved.touch.unwrap();
    ranking
}

fn rows(ranking: &Ranking) -> Vec<usize> {
    ranking.hits.iter().map(|hit| hit.row).collect()
}

fn assert_same_bits(found: &Ranking, expected: &Ranking) {
    assert_eq!(found, expected);
    for (found, expected) in found.hits.iter().zip(&expected.hits) {
        assert_eq!(found.score.to_bits(), expected.score.to_bits());
    }
}

fn paper(k: usize) -> Preset {
    Preset {
        k,
        ..Preset::paper()
    }
}

#[test]
fn a_ranking_changes_nothing() {
    let (_dir, path) = g();
    let before = bytes_of(&path);
    let store = Store::open(&path).unwrap();
    let snapshot = store.snapshot();
    let accesses = last_access(&snapshot);
    for name in Preset::NAMES {
        let preset = Preset::named(name).unwrap();
        let first = ranked(&snapshot, &ask(&preset, T + HOUR, &[])).unwrap();
        let second = ranked(&snapshot, &ask(&preset, T + HOUR, &[])).unwrap();
        assert_eq!(second, first);
    }
    assert_eq!(last_access(&store.snapshot()), accesses);
    store.close().unwrap();
    assert_eq!(bytes_of(&path), before);
}

#[test]
fn a_retrieval_touches_exactly_what_it_returns() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let now = || last_access(&store.snapshot());
    let before = now();
    let preset = paper(2);
    let (ranking, retrieved) = retrieved(&store, &ask(&preset, T + HOUR, &[])).unwrap();
    retrieved.touch.unwrap();
    assert_eq!(rows(&ranking), [1, 0]);
    assert_eq!(now(), [T + HOUR, T + HOUR, T - 100 * HOUR]);
    assert_eq!(last_access(&retrieved.snapshot), before, "what was ranked");
    // The later of old and now.
    let all = paper(usize::MAX);
    let ranking = touched(&store, &ask(&all, T - 50 * HOUR, &[]));
    assert_eq!(ranking.hits.len(), 3);
    assert_eq!(
        now(),
        [T + HOUR, T + HOUR, T - 50 * HOUR],
        "a touch does not go back"
    );
    // k = 0 returns nothing and touches nothing.
    let ranking = touched(&store, &ask(&paper(0), T + 9 * HOUR, &[]));
    assert_eq!((ranking.hits.len(), ranking.candidates), (0, 3));
    assert!(now().iter().all(|&at| at < T + 9 * HOUR));
}

// B30: retrievals one after another. The second sees what the first touched, as if it had always been so.
#[test]
fn a_retrieval_is_scored_with_the_touches_of_the_one_before() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let one = paper(1);
    let first = Ask {
        embedding: &[0.0, 1.0],
        ..ask(&one, T + HOUR, &[])
    };
    let touched_row = rows(&touched(&store, &first))[0];
    assert_eq!(touched_row, 1);
    let all = paper(3);
    let second = ask(&all, T + 2 * HOUR, &[]);
    let found = touched(&store, &second);

    let last_access = |row, hours: i64| if row == touched_row { -1 } else { hours };
    let (_dir, path) = stored(&[
        memory(&[1.0, 0.0], last_access(0, 10), 2.0),
        memory(&[0.6, 0.8], last_access(1, 0), 8.0),
        memory(&[0.0, 1.0], last_access(2, 100), 5.0),
    ]);
    let expected = ranked(&Store::open(&path).unwrap().snapshot(), &second).unwrap();
    assert_same_bits(&found, &expected);
    // On the state at the start it would have been another.
    let (_dir, path) = g();
    let apart = ranked(&Store::open(&path).unwrap().snapshot(), &second).unwrap();
    assert_ne!(found, apart);
}

// B36
#[test]
fn a_retrieval_of_more_than_there_are_touches_each_once() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let ten = paper(10);
    assert_eq!(rows(&touched(&store, &ask(&ten, T + HOUR, &[]))), [1, 0, 2]);
    assert_eq!(last_access(&store.snapshot()), [T + HOUR; 3]);
    let reader = Store::open_read_only(&path).unwrap();
    assert_eq!(reader.recovery().records, 1);
    assert_eq!(last_access(&reader.snapshot()), [T + HOUR; 3]);
}

#[test]
fn a_preset_decides_whether_it_touches() {
    for name in Preset::NAMES {
        let (_dir, path) = g();
        let store = Store::open(&path).unwrap();
        let preset = Preset::named(name).unwrap();
        let ranking = touched(&store, &ask(&preset, T + HOUR, &[]));
        assert_eq!(ranking.hits.len(), 3);
        let accesses = last_access(&store.snapshot());
        let touched = accesses.iter().all(|&at| at == T + HOUR);
        assert_eq!(touched, preset.touch == Touch::Returned, "{name}");
        assert_eq!(touched, name != "genagents");
    }
}

// B28
#[test]
fn a_read_only_store_gives_the_ranking_and_says_that_it_did_not_touch() {
    let (_dir, path) = g();
    let before = bytes_of(&path);
    let store = Store::open_read_only(&path).unwrap();
    assert!(store.is_read_only());
    let preset = Preset::paper();
    let expected = ranked(&store.snapshot(), &ask(&preset, T, &[])).unwrap();
    let (ranking, beside) = retrieved(&store, &ask(&preset, T, &[])).unwrap();
    let refused = matches!(
        beside.touch,
        Err(TouchError::Write(WriteError::ReadOnly { .. }))
    );
    assert!(refused, "{:?}", beside.touch);
    assert_eq!(ranking, expected);
    assert_eq!(rows(&ranking), [1, 0, 2]);
    for snapshot in [&beside.snapshot, &store.snapshot()] {
        assert_eq!(
            last_access(snapshot),
            [T - 10 * HOUR, T, T - 100 * HOUR],
            "nothing was touched in memory either"
        );
    }
    // A preset that does not touch is no matter.
    touched(&store, &ask(&Preset::genagents(), T, &[]));
    drop(store);
    assert_eq!(bytes_of(&path), before);
}

// B13
#[test]
fn a_touch_survives_closing_and_scores_are_the_same_to_the_bit() {
    let preset = paper(1);
    let all = Preset::paper();
    let ((_a, stays), (_b, closes)) = (g(), g());
    let open = Store::open(&stays).unwrap();
    touched(&open, &ask(&preset, T, &[]));
    let open = open.snapshot();
    let expected = ranked(&open, &ask(&all, T + HOUR, &[])).unwrap();

    let store = Store::open(&closes).unwrap();
    touched(&store, &ask(&preset, T, &[]));
    store.close().unwrap();
    let read = || Store::open_read_only(&closes).unwrap().snapshot();
    let snapshot = read();
    assert_eq!(last_access(&snapshot), last_access(&open));
    let found = ranked(&snapshot, &ask(&all, T + HOUR, &[])).unwrap();
    assert_same_bits(&found, &expected);
    // Also a handle that was only dropped, and while it stays open.
    let store = Store::open(&closes).unwrap();
    touched(&store, &ask(&all, T + 2 * HOUR, &[]));
    assert_eq!(last_access(&read()), [T + 2 * HOUR; 3]);
    touched(&store, &ask(&all, T + 3 * HOUR, &[]));
    drop(store);
    assert_eq!(last_access(&read()), [T + 3 * HOUR; 3]);
}

#[test]
fn what_is_excluded_does_not_compete() {
    let memories: Vec<_> = (0..130)
        .map(|i| memory(&[1.0, i as f32 * 0.1], i, (i % 7) as f32))
        .collect();
    let (_dir, path) = stored(&memories);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    for name in Preset::NAMES {
        let preset = Preset {
            k: usize::MAX,
            ..Preset::named(name).unwrap()
        };
        for exclude in [&[0][..], &[129], &[63, 64, 127, 128], &[5, 3, 100]] {
            let ranking = ranked(&store, &ask(&preset, T, exclude)).unwrap();
            let mut found = rows(&ranking);
            found.sort();
            let expected: Vec<_> = (0..130)
                .filter(|row| !exclude.contains(&(*row as u32)))
                .collect();
            assert_eq!(found, expected, "{name} {exclude:?}");
            assert_eq!(ranking.candidates, expected.len());
        }
        let none: Vec<u32> = (0..130).collect();
        let ranking = ranked(&store, &ask(&preset, T, &none)).unwrap();
        assert_eq!((ranking.hits, ranking.ranges), (vec![], None));
        let refused = ranked(&store, &ask(&preset, T, &[130])).unwrap_err();
        let expected = RankError::NoSuchRow {
            row: 130,
            rows: 130,
        };
        assert!(
            matches!(refused, StreamError::Rank(e) if e == expected),
            "{name}"
        );
    }
    // Ranges are those of the others: without the best and the worst, they are narrower.
    let all = ranked(&store, &ask(&Preset::paper(), T, &[])).unwrap();
    let some = ranked(&store, &ask(&Preset::paper(), T, &[0])).unwrap();
    assert_eq!(all.ranges.unwrap().relevance.max, 1.0);
    assert!(some.ranges.unwrap().relevance.max < 1.0);
}

// B74
#[test]
fn a_ranking_is_that_of_the_oracle() {
    let memories: Vec<_> = (0..200)
        .map(|i| {
            memory(
                &[1.0, (i * 37 % 200) as f32 * 0.01],
                i * 31 % 200,
                (i % 11) as f32,
            )
        })
        .collect();
    let (_dir, path) = stored(&memories);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    for name in ["paper", "unnormalized"] {
        let preset = Preset::named(name).unwrap();
        let found = ranked(&store, &ask(&preset, T, &[])).unwrap();
        let query = Query::new(&[1.0, 0.0], T, preset.k);
        let columns = columns(&store, Agent::OWN).unwrap();
        assert_eq!(columns.len(), 1, "a closed store");
        let expected = oracle::rank(&columns, &query, &preset.scoring).unwrap();
        for (found, expected) in found.hits.iter().zip(&expected.hits) {
            assert!((found.score - expected.score).abs() < 1e-5, "{name}");
        }
    }
}

/// With this kind, text and payload.
fn of_kind(kind: Kind, text: &str, payload: &str) -> Owned {
    Owned {
        kind,
        text: text.to_owned(),
        payload: payload.as_bytes().to_vec(),
        ..memory(&[1.0, 0.0], 1, 1.0)
    }
}

#[test]
fn reverie_leaves_out_what_was_embedded_as_idle_and_what_is_neither_event_nor_thought() {
    let kinds = [Kind::OBSERVATION, Kind::REFLECTION];
    let mut memories = Vec::new();
    for kind in kinds.clone() {
        memories.extend([
            of_kind(kind.clone(), "the desk is idle", ""),
            of_kind(
                kind.clone(),
                "the desk is idle",
                r#"{"embedding_key": "desk in use"}"#,
            ),
            of_kind(
                kind.clone(),
                "the desk is used",
                r#"{"embedding_key": "desk is idle"}"#,
            ),
            of_kind(
                kind.clone(),
                "the desk is used",
                r#"{"embedding_key": "\u0069dle"}"#,
            ),
            of_kind(kind.clone(), "an idler", "no json"),
            of_kind(kind.clone(), "the desk is used", r#"{"other": "idle"}"#),
            of_kind(kind.clone(), "Idle", "idle"),
        ]);
    }
    memories.push(of_kind(Kind::CHAT, "a chat", ""));
    memories.push(of_kind(Kind::PLAN, "a plan", ""));
    memories.push(Owned {
        embedding: None,
        ..of_kind(Kind::OBSERVATION, "no vector", "")
    });
    let (_dir, path) = stored(&memories);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    let preset = Preset::reverie();
    assert_eq!(preset.candidates, CandidateRule::Reverie);
    let mut found = rows(&ranked(&store, &ask(&preset, T, &[])).unwrap());
    found.sort();
    assert_eq!(found, [1, 5, 6, 8, 12, 13]);
    // Every other preset takes all that have a vector.
    let all = ranked(&store, &ask(&Preset::paper(), T, &[])).unwrap();
    assert_eq!(all.candidates, memories.len() - 1);
}

// All scores are equal but for the position: the authors' list is by last access, then events before
// thoughts, then newest first; the first position has the most recency.
#[test]
fn reverie_lists_by_last_access_then_events_then_newest() {
    let at = |kind, hours| Owned {
        kind,
        ..memory(&[1.0, 0.0], hours, 1.0)
    };
    let (_dir, path) = stored(&[
        at(Kind::REFLECTION, 5),
        at(Kind::OBSERVATION, 5),
        at(Kind::OBSERVATION, 1),
        at(Kind::REFLECTION, 9),
        at(Kind::OBSERVATION, 5),
        at(Kind::REFLECTION, 5),
    ]);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    let ranking = ranked(&store, &ask(&Preset::reverie(), T, &[])).unwrap();
    assert_eq!(rows(&ranking), [3, 4, 1, 5, 0, 2]);
    let raw: Vec<_> = ranking.hits.iter().map(|hit| hit.recency.raw).collect();
    for (position, raw) in (1..).zip(raw) {
        assert!((raw - 0.99_f64.powi(position)).abs() < 1e-15);
    }
    // With recency out of it, ties keep that order.
    let mut flat = Preset::reverie();
    flat.scoring.weights.recency = 0.0;
    let ranking = ranked(&store, &ask(&flat, T, &[])).unwrap();
    assert_eq!(rows(&ranking), [3, 4, 1, 5, 0, 2]);
}

#[test]
fn genagents_gives_the_best_in_the_order_of_their_creation() {
    let created = |hours: i64, x: f32| Owned {
        created: T - hours * HOUR,
        ..memory(&[1.0, x], 0, 1.0)
    };
    let (_dir, path) = stored(&[
        created(1, 0.1),
        created(9, 0.2),
        created(5, 0.0),
        created(5, 0.3),
        created(7, 9.0),
        created(0, 9.5),
    ]);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    let preset = Preset {
        k: 4,
        ..Preset::genagents()
    };
    assert_eq!(preset.result_order, ResultOrder::Created);
    let ranking = ranked(&store, &ask(&preset, T, &[])).unwrap();
    // The four best are rows 0 to 3; what was created together stays as ranked.
    assert_eq!(rows(&ranking), [1, 2, 3, 0]);
}

// B39
#[test]
fn nothing_to_rank_is_an_empty_ranking() {
    let (_dir, path) = stored(&[]);
    let store = Store::open(&path).unwrap();
    for name in Preset::NAMES {
        let preset = Preset::named(name).unwrap();
        let ranking = touched(&store, &ask(&preset, T, &[]));
        assert_eq!(ranking, Ranking::default(), "{name}");
    }
    // All idle, all chats, none with a vector.
    append(
        &store,
        &[
            of_kind(Kind::OBSERVATION, "idle", ""),
            of_kind(Kind::CHAT, "a chat", ""),
        ],
    );
    let ranking = touched(&store, &ask(&Preset::reverie(), T, &[]));
    assert_eq!(ranking, Ranking::default());
    let (_dir, path) = stored(&[Owned {
        embedding: None,
        ..plain(&[])
    }]);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    let ranking = ranked(&store, &ask(&Preset::paper(), T, &[])).unwrap();
    assert_eq!(ranking, Ranking::default());
}

#[test]
fn a_query_that_cannot_be_used_is_an_error_and_touches_nothing() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let before = last_access(&store.snapshot());
    let preset = Preset::paper();
    for embedding in [&[0.0, 0.0][..], &[f32::NAN, 1.0], &[1.0], &[1.0, 0.0, 0.0]] {
        let ask = Ask {
            embedding,
            ..ask(&preset, T + HOUR, &[])
        };
        let refused = retrieved(&store, &ask).unwrap_err();
        let query = matches!(refused, StreamError::Rank(RankError::Query(_)));
        assert!(query, "{embedding:?}: {refused:?}");
    }
    let mut wrong = Preset::paper();
    wrong.scoring.weights.relevance = -1.0;
    let refused = retrieved(&store, &ask(&wrong, T + HOUR, &[])).unwrap_err();
    assert!(matches!(refused, StreamError::Rank(RankError::Scoring(_))));
    assert_eq!(last_access(&store.snapshot()), before);
}

/// Every agent's last accesses, as the columns of its rankings have them.
fn accesses(snapshot: &Snapshot, agent: Agent) -> Vec<i64> {
    let columns = columns(snapshot, agent).unwrap();
    let parts = columns.iter().map(|columns| columns.last_access().unwrap());
    parts.collect::<Vec<_>>().concat()
}

#[test]
fn agents_have_their_own_last_accesses() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let (klaus, maria) = (Agent(1), Agent(u32::MAX));
    let stored = [T - 10 * HOUR, T, T - 100 * HOUR];
    // The best of each: with recency alone, what the agent itself saw last.
    let mut preset = paper(1);
    preset.scoring.weights.relevance = 0.0;
    preset.scoring.weights.importance = 0.0;
    let asks = |agent, now, exclude| Ask {
        agent,
        ..ask(&preset, now, exclude)
    };
    let ranking = touched(&store, &asks(klaus, T + 5 * HOUR, &[0, 1]));
    assert_eq!(rows(&ranking), [2]);
    let ranking = touched(&store, &asks(maria, T + 6 * HOUR, &[1, 2]));
    assert_eq!(rows(&ranking), [0]);
    let seen = |snapshot: &Snapshot| {
        assert_eq!(accesses(snapshot, Agent::OWN), stored);
        assert_eq!(
            accesses(snapshot, Agent(7)),
            stored,
            "of one who never asked"
        );
        assert_eq!(
            accesses(snapshot, klaus),
            [stored[0], stored[1], T + 5 * HOUR]
        );
        assert_eq!(
            accesses(snapshot, maria),
            [T + 6 * HOUR, stored[1], stored[2]]
        );
        let best = [(Agent::OWN, 1), (klaus, 2), (maria, 0)];
        for (agent, best) in best {
            let ranking = ranked(snapshot, &asks(agent, T + 7 * HOUR, &[])).unwrap();
            assert_eq!(rows(&ranking), [best], "{agent:?}");
        }
    };
    seen(&store.snapshot());
    store.checkpoint().unwrap();
    seen(&store.snapshot());
    store.close().unwrap();
    seen(&Store::open_read_only(&path).unwrap().snapshot());
}

#[test]
fn deleted_memories_are_no_candidates() {
    let memories: Vec<_> = (0..130)
        .map(|i| memory(&[1.0, i as f32 * 0.1], i, (i % 7) as f32))
        .collect();
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(&store, &memories[..100]);
    store.checkpoint().unwrap();
    append(&store, &memories[100..]);
    let before = store.snapshot();
    let deleted = [0, 1, 2, 63, 64, 65, 99, 100, 129];
    assert_eq!(store.delete(&deleted).unwrap(), deleted.len());
    let live = |row: &usize| !deleted.contains(&(*row as u64));
    let none_deleted = |store: &Snapshot| {
        for name in Preset::NAMES {
            let preset = Preset {
                k: usize::MAX,
                ..Preset::named(name).unwrap()
            };
            // As if they were excluded, and together with what is.
            for exclude in [&[][..], &[5], &[5, 0, 128, 127]] {
                let both: Vec<u32> = (0..130)
                    .filter(|row| exclude.contains(row) || !live(&(*row as usize)))
                    .collect();
                let found = ranked(store, &ask(&preset, T, exclude)).unwrap();
                let expected = ranked(&before, &ask(&preset, T, &both)).unwrap();
                assert_same_bits(&found, &expected);
                assert_eq!(found.candidates, 130 - both.len());
            }
        }
    };
    none_deleted(&store.snapshot());
    store.checkpoint().unwrap();
    none_deleted(&store.snapshot());
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    none_deleted(&store.snapshot());

    // Without their rows, the same memories by id.
    let whole = store.snapshot();
    store.compact().unwrap();
    let compact = store.snapshot();
    assert_eq!((compact.rows(), compact.live()), (121, None));
    for name in Preset::NAMES {
        let preset = Preset::named(name).unwrap();
        let found = ranked(&compact, &ask(&preset, T, &[])).unwrap();
        let expected = ranked(&whole, &ask(&preset, T, &[])).unwrap();
        let ids = |of: &Snapshot, ranking: &Ranking| {
            let hits = ranking.hits.iter();
            hits.map(|hit| (of.id(hit.row), hit.score.to_bits()))
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&compact, &found), ids(&whole, &expected), "{name}");
    }

    // What was deleted while a retrieval ran is not touched, which is no error.
    let preset = paper(usize::MAX);
    let all: Vec<u64> = (0..130).collect();
    let ranking = touched(&store, &ask(&preset, T + HOUR, &[]));
    assert_eq!(ranking.hits.len(), 121);
    store.delete(&all).unwrap();
    store.touch(Agent::OWN, &all, T + 2 * HOUR).unwrap();
    let ranking = touched(&store, &ask(&preset, T + 3 * HOUR, &[]));
    assert_eq!(ranking, Ranking::default());
}

/// Memories appended and touched piece by piece, so that the columns of a ranking are many.
#[test]
fn a_ranking_over_columns_and_tail_is_that_after_a_checkpoint_to_the_bit() {
    const DIM: usize = 24;
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
        (random >> 33) % below
    };
    let memories: Vec<Owned> = (0..3_000)
        .map(|i| {
            let vector: Vec<f32> = (0..DIM).map(|_| next(2_001) as f32 / 1e3 - 1.0).collect();
            let kinds = [Kind::OBSERVATION, Kind::REFLECTION, Kind::CHAT];
            Owned {
                kind: kinds[i % 3].clone(),
                embedding: (i % 17 != 3).then_some(vector),
                text: (if i % 11 == 5 { "idle" } else { "busy" }).to_owned(),
                ..memory(&[], next(500) as i64, next(10) as f32)
            }
        })
        .collect();
    let query: Vec<f32> = (0..DIM).map(|_| next(2_001) as f32 / 1e3 - 1.0).collect();
    for dtype in [Dtype::F32, Dtype::F16] {
        let (_dir, path, store) = new_store(DIM, dtype);
        append(&store, &memories[..700]);
        store.checkpoint().unwrap();
        for batch in memories[700..].chunks(450) {
            append(&store, batch);
            let ids: Vec<u64> = (0..store.snapshot().next_id()).step_by(97).collect();
            store.touch(Agent(3), &ids, T - 3 * HOUR).unwrap();
        }
        store.delete(&[3, 4, 5, 699, 700, 2_999]).unwrap();
        let tail = store.snapshot();
        assert_eq!(store.info().in_journal, 2_300);
        let parts = columns(&tail, Agent(3)).unwrap().len();
        assert!(parts > 3, "{parts} segments");
        store.checkpoint().unwrap();
        let checkpointed = store.snapshot();
        assert_eq!(columns(&checkpointed, Agent::OWN).unwrap().len(), 1);
        store.close().unwrap();
        let reopened = Store::open_read_only(&path).unwrap().snapshot();
        for name in Preset::NAMES {
            for k in [1, 30, usize::MAX] {
                for agent in [Agent::OWN, Agent(3)] {
                    let preset = Preset {
                        k,
                        ..Preset::named(name).unwrap()
                    };
                    let ask = Ask {
                        agent,
                        embedding: &query,
                        ..ask(&preset, T, &[8, 2_000])
                    };
                    let expected = ranked(&tail, &ask).unwrap();
                    assert!(!expected.hits.is_empty());
                    for other in [&checkpointed, &reopened] {
                        assert_same_bits(&ranked(other, &ask).unwrap(), &expected);
                    }
                }
            }
        }
    }
}

#[test]
fn a_snapshot_is_ranked_as_it_was() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let snapshot = store.snapshot();
    let preset = paper(usize::MAX);
    let expected = ranked(&snapshot, &ask(&preset, T, &[])).unwrap();
    touched(&store, &ask(&preset, T + HOUR, &[]));
    append(&store, &[memory(&[1.0, 0.0], 0, 9.0)]);
    store.delete(&[1]).unwrap();
    store.compact().unwrap();
    store.close().unwrap();
    assert_same_bits(
        &ranked(&snapshot, &ask(&preset, T, &[])).unwrap(),
        &expected,
    );
}
