//! Ranking: a pure read, whose answer is that of the oracle, wherever rows lie.

use super::*;
use crate::presets::of_kind;
use memorank::kernel::QueryError;
use memorank::oracle;
use memorank::scoring::Query;

#[test]
fn a_ranking_changes_nothing() {
    let (_dir, path) = g();
    let before = bytes_of(&path);
    let store = Store::open(&path).unwrap();
    let snapshot = store.snapshot();
    let accesses = last_access(&snapshot);
    for name in Preset::NAMES {
        let preset = Preset::named(name).unwrap();
        let first = ranked(&snapshot, &ask(&preset, T + HOUR)).unwrap();
        let second = ranked(&snapshot, &ask(&preset, T + HOUR)).unwrap();
        assert_eq!(second, first);
    }
    assert_eq!(last_access(&store.snapshot()), accesses);
    store.close().unwrap();
    assert_eq!(bytes_of(&path), before);
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
        let found = ranked(&store, &ask(&preset, T)).unwrap();
        let query = Query::new(&[1.0, 0.0], T, preset.k);
        let columns = columns(&store, Agent::OWN).unwrap();
        assert_eq!(columns.len(), 1, "a closed store");
        let expected = oracle::rank(&columns, &query, &preset.scoring).unwrap();
        for (found, expected) in found.hits.iter().zip(&expected.hits) {
            assert!((found.score - expected.score).abs() < 1e-5, "{name}");
        }
    }
}

// B39
#[test]
fn nothing_to_rank_is_an_empty_ranking() {
    let (_dir, path) = stored(&[]);
    let store = Store::open(&path).unwrap();
    for name in Preset::NAMES {
        let preset = Preset::named(name).unwrap();
        let ranking = touched(&store, &ask(&preset, T));
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
    let ranking = touched(&store, &ask(&Preset::reverie(), T));
    assert_eq!(ranking, Ranking::default());
    let (_dir, path) = stored(&[Owned {
        embedding: None,
        ..plain(&[])
    }]);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    let ranking = ranked(&store, &ask(&Preset::paper(), T)).unwrap();
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
            ..ask(&preset, T + HOUR)
        };
        let refused = retrieved(&store, &ask).unwrap_err();
        let query = matches!(refused, StreamError::Rank(RankError::Query(_)));
        assert!(query, "{embedding:?}: {refused:?}");
    }
    let mut wrong = Preset::paper();
    wrong.scoring.weights.relevance = -1.0;
    let refused = retrieved(&store, &ask(&wrong, T + HOUR)).unwrap_err();
    assert!(matches!(refused, StreamError::Rank(RankError::Scoring(_))));
    assert_eq!(last_access(&store.snapshot()), before);
}

// B88: nothing is there to compare it with, and it is refused all the same.
#[test]
fn a_query_of_another_dimension_is_refused_by_an_empty_store() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    let preset = Preset::paper();
    for embedding in [&[][..], &[1.0], &[1.0, 0.0, 0.0]] {
        let ask = Ask {
            embedding,
            ..ask(&preset, T)
        };
        let expected = RankError::Query(QueryError::Dimension {
            found: embedding.len(),
            expected: 2,
        });
        let refused = retrieved(&store, &ask).unwrap_err();
        assert!(matches!(refused, StreamError::Rank(error) if error == expected));
    }
    assert!(touched(&store, &ask(&preset, T)).hits.is_empty());
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
                        filter: &without(&[8, 2_000]),
                        ..ask(&preset, T)
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
    let expected = ranked(&snapshot, &ask(&preset, T)).unwrap();
    touched(&store, &ask(&preset, T + HOUR));
    append(&store, &[memory(&[1.0, 0.0], 0, 9.0)]);
    store.delete(&[1]).unwrap();
    store.compact().unwrap();
    store.close().unwrap();
    assert_same_bits(&ranked(&snapshot, &ask(&preset, T)).unwrap(), &expected);
}
