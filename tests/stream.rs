//! `stream`: ranking reads, retrieval touches what it returns.

#![cfg(feature = "store")]

#[path = "store/example.rs"]
#[allow(dead_code)]
mod example;

use example::{Owned, append, bytes_of, new_store, plain};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{CandidateRule, Preset, RankError, Ranking, ResultOrder, Touch, Workspace};
use memorank::store::{Kind, Store, TouchError, WriteError};
use memorank::stream::{Ask, StreamError, columns, rank, retrieve};
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
    let (dir, path, mut store) = new_store(2, Dtype::F32);
    append(&mut store, memories);
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
        embedding: &[1.0, 0.0],
        now,
        preset,
        exclude,
    }
}

fn ranked(store: &Store, ask: &Ask<'_>) -> Result<Ranking, StreamError> {
    let mut ranking = Ranking::default();
    rank(store, ask, Par::Serial, &mut Workspace::new(), &mut ranking)?;
    Ok(ranking)
}

fn retrieved(store: &mut Store, ask: &Ask<'_>) -> (Ranking, Result<(), StreamError>) {
    let mut ranking = Ranking::default();
    let done = retrieve(store, ask, Par::Serial, &mut Workspace::new(), &mut ranking);
    (ranking, done)
}

fn rows(ranking: &Ranking) -> Vec<usize> {
    ranking.hits.iter().map(|hit| hit.row).collect()
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
    let accesses = store.last_access().to_vec();
    for name in Preset::NAMES {
        let preset = Preset::named(name).unwrap();
        let first = ranked(&store, &ask(&preset, T + HOUR, &[])).unwrap();
        assert_eq!(ranked(&store, &ask(&preset, T + HOUR, &[])).unwrap(), first);
    }
    assert_eq!(store.last_access(), accesses);
    store.close().unwrap();
    assert_eq!(bytes_of(&path), before);
}

#[test]
fn a_retrieval_touches_exactly_what_it_returns() {
    let (_dir, path) = g();
    let mut store = Store::open(&path).unwrap();
    let preset = paper(2);
    let (ranking, done) = retrieved(&mut store, &ask(&preset, T + HOUR, &[]));
    done.unwrap();
    assert_eq!(rows(&ranking), [1, 0]);
    assert_eq!(store.last_access(), [T + HOUR, T + HOUR, T - 100 * HOUR]);
    // The later of old and now.
    let all = paper(usize::MAX);
    let (ranking, done) = retrieved(&mut store, &ask(&all, T - 50 * HOUR, &[]));
    done.unwrap();
    assert_eq!(ranking.hits.len(), 3);
    assert_eq!(
        store.last_access(),
        [T + HOUR, T + HOUR, T - 50 * HOUR],
        "a touch does not go back"
    );
    // k = 0 returns nothing and touches nothing.
    let (ranking, done) = retrieved(&mut store, &ask(&paper(0), T + 9 * HOUR, &[]));
    done.unwrap();
    assert_eq!((ranking.hits.len(), ranking.candidates), (0, 3));
    assert!(store.last_access().iter().all(|&at| at < T + 9 * HOUR));
}

#[test]
fn a_preset_decides_whether_it_touches() {
    for name in Preset::NAMES {
        let (_dir, path) = g();
        let mut store = Store::open(&path).unwrap();
        let preset = Preset::named(name).unwrap();
        let (ranking, done) = retrieved(&mut store, &ask(&preset, T + HOUR, &[]));
        done.unwrap();
        assert_eq!(ranking.hits.len(), 3);
        let touched = store.last_access().iter().all(|&at| at == T + HOUR);
        assert_eq!(touched, preset.touch == Touch::Returned, "{name}");
        assert_eq!(touched, name != "genagents");
    }
}

// B28
#[test]
fn a_read_only_store_gives_the_ranking_and_says_that_it_did_not_touch() {
    let (_dir, path) = g();
    let before = bytes_of(&path);
    let mut store = Store::open_read_only(&path).unwrap();
    assert!(store.is_read_only());
    let preset = Preset::paper();
    let expected = ranked(&store, &ask(&preset, T, &[])).unwrap();
    let (ranking, done) = retrieved(&mut store, &ask(&preset, T, &[]));
    let refused = matches!(
        done,
        Err(StreamError::Touch(TouchError::Write(
            WriteError::ReadOnly { .. }
        )))
    );
    assert!(refused, "{done:?}");
    assert_eq!(ranking, expected);
    assert_eq!(rows(&ranking), [1, 0, 2]);
    assert_eq!(
        store.last_access(),
        [T - 10 * HOUR, T, T - 100 * HOUR],
        "nothing was touched in memory either"
    );
    // A preset that does not touch is no matter.
    let (_, done) = retrieved(&mut store, &ask(&Preset::genagents(), T, &[]));
    done.unwrap();
    drop(store);
    assert_eq!(bytes_of(&path), before);
}

// B13
#[test]
fn a_touch_survives_closing_and_scores_are_the_same_to_the_bit() {
    let preset = paper(1);
    let all = Preset::paper();
    let ((_a, stays), (_b, closes)) = (g(), g());
    let mut open = Store::open(&stays).unwrap();
    retrieved(&mut open, &ask(&preset, T, &[])).1.unwrap();
    let expected = ranked(&open, &ask(&all, T + HOUR, &[])).unwrap();

    let mut store = Store::open(&closes).unwrap();
    retrieved(&mut store, &ask(&preset, T, &[])).1.unwrap();
    store.close().unwrap();
    let store = Store::open_read_only(&closes).unwrap();
    assert_eq!(store.last_access(), open.last_access());
    let found = ranked(&store, &ask(&all, T + HOUR, &[])).unwrap();
    assert_eq!(found, expected);
    for (found, expected) in found.hits.iter().zip(&expected.hits) {
        assert_eq!(found.score.to_bits(), expected.score.to_bits());
    }
    // Also a handle that was only dropped, and a sync while it stays open.
    let mut store = Store::open(&closes).unwrap();
    retrieved(&mut store, &ask(&all, T + 2 * HOUR, &[]))
        .1
        .unwrap();
    store.sync().unwrap();
    let reader = Store::open_read_only(&closes).unwrap();
    assert_eq!(reader.last_access(), [T + 2 * HOUR; 3]);
    retrieved(&mut store, &ask(&all, T + 3 * HOUR, &[]))
        .1
        .unwrap();
    drop(store);
    let reader = Store::open_read_only(&closes).unwrap();
    assert_eq!(reader.last_access(), [T + 3 * HOUR; 3]);
}

#[test]
fn what_is_excluded_does_not_compete() {
    let memories: Vec<_> = (0..130)
        .map(|i| memory(&[1.0, i as f32 * 0.1], i, (i % 7) as f32))
        .collect();
    let (_dir, path) = stored(&memories);
    let store = Store::open_read_only(&path).unwrap();
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
    let store = Store::open_read_only(&path).unwrap();
    for name in ["paper", "unnormalized"] {
        let preset = Preset::named(name).unwrap();
        let found = ranked(&store, &ask(&preset, T, &[])).unwrap();
        let query = Query::new(&[1.0, 0.0], T, preset.k);
        let expected = oracle::rank(&[columns(&store).unwrap()], &query, &preset.scoring).unwrap();
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
    let store = Store::open_read_only(&path).unwrap();
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
    let store = Store::open_read_only(&path).unwrap();
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
    let store = Store::open_read_only(&path).unwrap();
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
    let mut store = Store::open(&path).unwrap();
    for name in Preset::NAMES {
        let preset = Preset::named(name).unwrap();
        let (ranking, done) = retrieved(&mut store, &ask(&preset, T, &[]));
        done.unwrap();
        assert_eq!(ranking, Ranking::default(), "{name}");
    }
    // All idle, all chats, none with a vector.
    append(
        &mut store,
        &[
            of_kind(Kind::OBSERVATION, "idle", ""),
            of_kind(Kind::CHAT, "a chat", ""),
        ],
    );
    let (ranking, done) = retrieved(&mut store, &ask(&Preset::reverie(), T, &[]));
    done.unwrap();
    assert_eq!(ranking, Ranking::default());
    let (_dir, path) = stored(&[Owned {
        embedding: None,
        ..plain(&[])
    }]);
    let store = Store::open_read_only(&path).unwrap();
    let ranking = ranked(&store, &ask(&Preset::paper(), T, &[])).unwrap();
    assert_eq!(ranking, Ranking::default());
}

#[test]
fn a_query_that_cannot_be_used_is_an_error_and_touches_nothing() {
    let (_dir, path) = g();
    let mut store = Store::open(&path).unwrap();
    let before = store.last_access().to_vec();
    let preset = Preset::paper();
    for embedding in [&[0.0, 0.0][..], &[f32::NAN, 1.0], &[1.0], &[1.0, 0.0, 0.0]] {
        let ask = Ask {
            embedding,
            ..ask(&preset, T + HOUR, &[])
        };
        let (_, done) = retrieved(&mut store, &ask);
        let refused = matches!(done, Err(StreamError::Rank(RankError::Query(_))));
        assert!(refused, "{embedding:?}");
    }
    let mut wrong = Preset::paper();
    wrong.scoring.weights.relevance = -1.0;
    let (_, done) = retrieved(&mut store, &ask(&wrong, T + HOUR, &[]));
    assert!(matches!(
        done,
        Err(StreamError::Rank(RankError::Scoring(_)))
    ));
    assert_eq!(store.last_access(), before);
}
