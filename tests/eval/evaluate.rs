//! Places are those of `stream::rank`.

use crate::common::{Random, kernels};
use crate::{Asked, cosine, judged, measure, questions, town, weighted};
use memorank::Par;
use memorank::eval::{Collection, Places, evaluate};
use memorank::scoring::{Normalization, Preset, Ranking, Ties, Workspace};
use memorank::store::{Kind, Snapshot};
use memorank::stream::{Ask, Filter, rank};
use std::collections::BTreeSet;

/// The places by ranking everything.
fn places(snapshot: &Snapshot, asked: &Asked, filter: &Filter<'_>, preset: &Preset) -> Places {
    let preset = Preset {
        k: usize::MAX,
        result_order: memorank::scoring::ResultOrder::Score,
        ..*preset
    };
    let ask = Ask {
        agent: asked.agent,
        filter,
        ..Ask::new(&asked.embedding, asked.now, &preset)
    };
    let mut ranking = Ranking::default();
    rank(
        snapshot,
        &ask,
        Par::Serial,
        &mut Workspace::new(),
        &mut ranking,
    )
    .unwrap();
    let relevant: BTreeSet<u64> = asked.relevant.iter().copied().collect();
    let places = (1..).zip(&ranking.hits);
    let found = places.filter(|(_, hit)| relevant.contains(&snapshot.id(hit.row)));
    Places {
        relevant: relevant.len(),
        found: found.map(|(place, _)| place).collect(),
    }
}

fn presets() -> Vec<Preset> {
    let mut presets = vec![cosine(), weighted(0.0, 0.0, 0.0), weighted(1.0, 0.3, 0.7)];
    presets.extend(Preset::NAMES.map(|name| Preset::named(name).unwrap()));
    // Listed by the rule, but equal scores by row; and the other way round.
    presets.push(Preset {
        ties: Ties::Row,
        ..Preset::reverie()
    });
    presets.push(Preset {
        ties: Ties::Listed,
        ..weighted(0.0, 1.0, 0.0)
    });
    let mut level = weighted(1.0, 1.0, 1.0);
    level.scoring.normalization = Normalization::MinMax { constant: 0.0 };
    presets.push(level);
    presets
}

#[test]
fn they_are_those_of_the_ranking_of_everything() {
    let mut random = Random(1);
    let presets = presets();
    for memories in [1, 2, 40, 300] {
        let (_dir, store) = town(&mut random, memories);
        let snapshot = store.snapshot();
        let mut mask = [0x5555_5555_5555_5555; 5];
        mask[4] >>= 64 - 300 % 64;
        for filter in [
            Filter::default(),
            Filter {
                future: true,
                kinds: Some(&[Kind::OBSERVATION, Kind::CHAT]),
                ..Filter::default()
            },
            Filter {
                mask: (memories == 300).then_some(&mask),
                ..Filter::default()
            },
            // No candidates at all.
            Filter {
                kinds: Some(&[]),
                ..Filter::default()
            },
        ] {
            let asked = questions(&mut random, memories, 12);
            let judged = judged(&asked, &filter);
            let collections = [Collection {
                snapshot: &snapshot,
                questions: &judged,
            }];
            let mut workspace = Workspace::new();
            let found = evaluate(&collections, &presets, Par::Serial, &mut workspace).unwrap();
            for (preset, found) in presets.iter().zip(&found.places) {
                for (asked, found) in asked.iter().zip(found) {
                    assert_eq!(
                        *found,
                        places(&snapshot, asked, &filter, preset),
                        "{preset:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn they_do_not_depend_on_threads_kernels_or_who_is_asked_beside() {
    let mut random = Random(2);
    let (_a, first) = town(&mut random, 150);
    let (_b, second) = town(&mut random, 90);
    let (first, second) = (first.snapshot(), second.snapshot());
    let asked = [
        questions(&mut random, 150, 37),
        questions(&mut random, 90, 1),
    ];
    let filter = Filter::default();
    let judged = asked.each_ref().map(|asked| judged(asked, &filter));
    let collections = [
        Collection {
            snapshot: &first,
            questions: &judged[0],
        },
        Collection {
            snapshot: &second,
            questions: &[],
        },
        Collection {
            snapshot: &second,
            questions: &judged[1],
        },
    ];
    let presets = presets();
    let mut workspace = Workspace::new();
    let serial = evaluate(&collections, &presets, Par::Serial, &mut workspace).unwrap();
    for kernel in kernels() {
        let mut workspace = Workspace::with_kernel(kernel);
        for threads in [1, 2, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let many = pool
                .unwrap()
                .install(|| evaluate(&collections, &presets, parallel(), &mut workspace).unwrap());
            assert_eq!(many, serial);
        }
    }
    // Alone, a question has the same places.
    for (at, judged) in judged[0].iter().enumerate() {
        let alone = [Collection {
            snapshot: &first,
            questions: std::slice::from_ref(judged),
        }];
        let alone = evaluate(&alone, &presets, Par::Serial, &mut workspace).unwrap();
        for (alone, all) in alone.places.iter().zip(&serial.places) {
            assert_eq!(alone[0], all[at]);
        }
    }
}

/// On rayon where it is built.
fn parallel() -> Par {
    #[cfg(feature = "rayon")]
    return Par::Rayon;
    #[cfg(not(feature = "rayon"))]
    Par::Serial
}

#[test]
fn values_are_the_measure_of_each_question() {
    let mut random = Random(3);
    let (_dir, store) = town(&mut random, 60);
    let snapshot = store.snapshot();
    let asked = questions(&mut random, 60, 9);
    let filter = Filter::default();
    let judged = judged(&asked, &filter);
    let collections = [Collection {
        snapshot: &snapshot,
        questions: &judged,
    }];
    let mut workspace = Workspace::new();
    let found = evaluate(&collections, &[cosine()], Par::Serial, &mut workspace).unwrap();
    let recall = measure("recall@5");
    let expected: Vec<f64> = found.places[0].iter().map(|of| recall.of(of)).collect();
    assert_eq!(found.values(0, recall), expected);
}

#[test]
fn nothing_is_touched() {
    let mut random = Random(4);
    let (_dir, store) = town(&mut random, 50);
    let before = store.snapshot();
    let asked = questions(&mut random, 50, 20);
    let filter = Filter::default();
    let judged = judged(&asked, &filter);
    let collections = [Collection {
        snapshot: &before,
        questions: &judged,
    }];
    evaluate(&collections, &presets(), Par::Serial, &mut Workspace::new()).unwrap();
    let after = store.snapshot();
    for agent in [memorank::store::Agent::OWN, memorank::store::Agent(3)] {
        assert!(after.touched(agent).eq(before.touched(agent)));
    }
}
