//! Decay by kind: each kind fades in its own way, and none below its floor.

#![cfg(feature = "store")]

#[path = "store/example.rs"]
#[allow(dead_code)]
mod example;

use example::{Owned, append, options, plain};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Ranking, Recency, ScoringError, Workspace};
use memorank::store::files::InMemory;
use memorank::store::{Agent, Kind, Store};
use memorank::stream::{
    Ask, Decays, DecaysError, KindDecay, Retrieve, StreamError, rank, retrieve,
};
use std::sync::Arc;

const HOUR: i64 = 3_600_000_000;
const T: i64 = 1_676_300_400_000_000;

fn decay(decay: f64, floor: f64) -> KindDecay {
    KindDecay { decay, floor }
}

fn like_the_paper() -> Decays {
    Decays {
        default: decay(0.995, 0.0),
        kinds: vec![],
    }
}

/// Memories of these kinds, accessed so many hours ago, and alike in all else.
fn store(memories: &[(Kind, i64)]) -> Store {
    let files = Arc::new(InMemory::new());
    let store = Store::create_on(files, "store", &options(2, Dtype::F32)).unwrap();
    let memories: Vec<Owned> = memories
        .iter()
        .map(|(kind, hours)| Owned {
            kind: kind.clone(),
            created: T - 1_000_000 * HOUR,
            last_access: T - hours * HOUR,
            ..plain(&[1.0, 0.0])
        })
        .collect();
    append(&store, &memories);
    store
}

fn ask<'a>(preset: &'a Preset, decays: &'a Decays) -> Ask<'a> {
    Ask {
        decays: Some(decays),
        ..Ask::new(&[1.0, 0.0], T, preset)
    }
}

fn ranked(store: &Store, ask: &Ask<'_>) -> Result<Ranking, StreamError> {
    let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
    let snapshot = store.snapshot();
    rank(&snapshot, ask, Par::Serial, &mut workspace, &mut ranking)?;
    Ok(ranking)
}

/// Raw recencies, row by row.
fn recencies(ranking: &Ranking) -> Vec<f64> {
    let mut hits = ranking.hits.clone();
    hits.sort_by_key(|hit| hit.row);
    hits.iter().map(|hit| hit.recency.raw).collect()
}

#[test]
fn each_kind_fades_by_its_own_decay_and_not_below_its_floor() {
    let schedule = || Kind::named("schedule");
    let store = store(&[
        (Kind::OBSERVATION, 1),
        (Kind::CHAT, 1),
        (Kind::CHAT, 2),
        (Kind::PLAN, 2),
        (Kind::PLAN, 500),
        (schedule(), 500),
        (Kind::REFLECTION, -3),
    ]);
    let decays = Decays {
        default: decay(0.995, 0.0),
        kinds: vec![
            (Kind::CHAT, decay(0.5, 0.0)),
            (Kind::PLAN, decay(0.75, 0.5)),
            (schedule(), decay(0.0, -0.0)),
            (Kind::named("nobody's"), decay(0.1, 1.0)),
        ],
    };
    let preset = Preset::paper();
    let ranking = ranked(&store, &ask(&preset, &decays)).unwrap();
    let expected = [0.995, 0.5, 0.25, 0.5625, 0.5, 0.0, 1.0];
    for (found, expected) in recencies(&ranking).iter().zip(expected) {
        assert!((found - expected).abs() < 1e-15, "{found} {expected}");
    }
    let ranges = ranking.ranges.unwrap();
    assert_eq!((ranges.recency.min, ranges.recency.max), (0.0, 1.0));
    assert_eq!(ranges.ages, None);
    let order: Vec<usize> = ranking.hits.iter().map(|hit| hit.row).collect();
    assert_eq!(order, [6, 0, 3, 1, 4, 2, 5]);
}

#[test]
fn one_decay_for_all_kinds_is_the_preset_s_recency_to_the_bit() {
    let kinds = [Kind::OBSERVATION, Kind::CHAT, Kind::PLAN];
    let memories: Vec<(Kind, i64)> = (0..2000i64)
        .map(|i| (kinds[i as usize % 3].clone(), (i * i) % 777 - 5))
        .collect();
    let store = store(&memories);
    // What was touched lies in other pieces.
    store
        .touch(Agent::OWN, &[3, 900, 901], T - HOUR / 2)
        .unwrap();
    // Without min-max: with it, recency by age is computed in its own way.
    let preset = Preset {
        k: usize::MAX,
        ..Preset::unnormalized()
    };
    let decays = like_the_paper();
    let by_kind = ranked(&store, &ask(&preset, &decays)).unwrap();
    let plain = Ask {
        decays: None,
        ..ask(&preset, &decays)
    };
    let by_age = ranked(&store, &plain).unwrap();
    assert_eq!(by_kind.hits, by_age.hits);
}

#[test]
fn a_retrieval_with_decays_touches_what_it_returns() {
    let store = store(&[(Kind::CHAT, 10), (Kind::PLAN, 20)]);
    let decays = Decays {
        kinds: vec![(Kind::PLAN, decay(1.0, 0.0))],
        ..like_the_paper()
    };
    let preset = Preset {
        k: 1,
        ..Preset::paper()
    };
    let wanted = Retrieve::new(ask(&preset, &decays));
    let done = retrieve(&store, &wanted, Par::Serial, &mut Workspace::new()).unwrap();
    done.touch.unwrap();
    assert_eq!(done.memories[0].row, 1);
    let snapshot = store.snapshot();
    let accesses = [0, 1].map(|row| snapshot.last_access(Agent::OWN, row));
    assert_eq!(accesses, [T - 10 * HOUR, T]);
}

// B67, by kind.
#[test]
fn a_decay_or_floor_out_of_range_a_kind_listed_twice_and_another_recency_are_refused() {
    let store = store(&[(Kind::CHAT, 10)]);
    let refused = |preset: &Preset, decays: &Decays| match ranked(&store, &ask(preset, decays)) {
        Err(StreamError::Decays(error)) => error,
        other => panic!("{other:?}"),
    };
    let paper = Preset::paper();
    for bad in [1.5, -0.1, f64::NAN, f64::INFINITY] {
        for in_default in [true, false] {
            let with = |kind_decay| match in_default {
                true => Decays {
                    default: kind_decay,
                    kinds: vec![],
                },
                false => Decays {
                    kinds: vec![(Kind::PLAN, kind_decay)],
                    ..like_the_paper()
                },
            };
            let named = ["plan", "the default"][usize::from(in_default)];
            match refused(&paper, &with(decay(bad, 0.0))) {
                DecaysError::Decay { of, error } => {
                    let ScoringError::Decay(value) = error else {
                        panic!("{error}")
                    };
                    assert_eq!((of.as_str(), value.to_bits()), (named, bad.to_bits()));
                }
                other => panic!("{other}"),
            }
            match refused(&paper, &with(decay(0.5, bad))) {
                DecaysError::Floor { of, floor } => {
                    assert_eq!((of.as_str(), floor.to_bits()), (named, bad.to_bits()));
                }
                other => panic!("{other}"),
            }
        }
    }
    let twice = Decays {
        kinds: vec![(Kind::CHAT, decay(0.5, 0.0)), (Kind::CHAT, decay(0.6, 0.0))],
        ..like_the_paper()
    };
    let kind = Kind::CHAT;
    assert_eq!(refused(&paper, &twice), DecaysError::Twice { kind });
    let mut given = paper;
    given.scoring.recency = Recency::Given;
    for preset in [Preset::reverie(), Preset::genagents(), given] {
        let error = refused(&preset, &like_the_paper());
        assert_eq!(error, DecaysError::NotByAge);
    }
}
