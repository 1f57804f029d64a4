//! `stream::explain`: where any memory stands, and what would bring it in.

#![cfg(feature = "store")]

mod common;
#[path = "store/example.rs"]
#[allow(dead_code)]
mod example;
#[path = "common/on_panic.rs"]
mod on_panic;

use common::Random;
use example::{Owned, append, options, plain};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{Hit, Preset, Ranking, ResultOrder, Workspace};
use memorank::store::files::InMemory;
use memorank::store::{Kind, Snapshot, Store};
use memorank::stream::{
    Ask, Barrier, BringsIn, Decays, Explanation, Filter, KindDecay, NoCandidate, Standing,
    StreamError, Thresholds, Warning, explain, rank, warnings,
};
use on_panic::OnPanic;
use std::sync::Arc;

const HOUR: i64 = 3_600_000_000;
const T: i64 = 1_676_300_400_000_000;

/// Stores that are explained.
const SEEDS: u64 = 400;

/// Memories, some of them deleted, and a question. A copy with a change is a store of its own.
#[derive(Clone)]
struct Case {
    memories: Vec<Owned>,
    deleted: Vec<u64>,
    exclude: Vec<u64>,
    embedding: Vec<f32>,
    preset: Preset,
    decays: Option<Decays>,
}

impl Case {
    fn new(seed: u64) -> Case {
        let random = &mut Random(seed);
        let n = 1 + random.below(20);
        // Few different values: many ties.
        let few = [2, 4, 1000][random.below(3) as usize];
        let kinds = [Kind::OBSERVATION, Kind::REFLECTION, Kind::CHAT];
        let memories = (0..n).map(|_| {
            let hours = random.below(few) as i64 * [1, 7, 300][random.below(3) as usize];
            let angle = random.below(few) as f32 / few as f32 * 3.0;
            let vector = [angle.cos(), angle.sin()];
            Owned {
                kind: kinds[random.below(3) as usize].clone(),
                text: ["idle", "paints"][usize::from(random.below(6) > 0)].into(),
                embedding: (random.below(8) > 0).then(|| vector.to_vec()),
                created: T - 5000 * HOUR,
                last_access: T - (hours - 1) * HOUR,
                importance: random.below(few) as f32 - 1.0,
                ..plain(&vector)
            }
        });
        let memories = memories.collect();
        let some = |random: &mut Random| (0..n).filter(|_| random.below(9) == 0).collect();
        let (deleted, exclude): (Vec<u64>, Vec<u64>) = (some(random), some(random));
        let mut preset = Preset::named(Preset::NAMES[random.below(4) as usize]).unwrap();
        preset.k = [1, 2, 3, 5, 0, usize::MAX][random.below(6) as usize];
        preset.result_order = ResultOrder::Score;
        if random.below(2) == 0 {
            let weights = [0.0, 0.3, 1.0, 2.0];
            let mut weight = || weights[random.below(4) as usize];
            preset.scoring.weights.relevance = weight();
            preset.scoring.weights.recency = weight();
            preset.scoring.weights.importance = weight();
        }
        let by_name = [Preset::paper(), Preset::unnormalized()];
        let from_now = by_name
            .iter()
            .any(|p| p.scoring.recency == preset.scoring.recency);
        let kind_decay = |random: &mut Random| KindDecay {
            decay: [0.9, 0.995, 1.0, 0.0][random.below(4) as usize],
            floor: [0.0, 0.2, 1.0][random.below(3) as usize],
        };
        let decays = (from_now && random.below(2) == 0).then(|| Decays {
            default: kind_decay(random),
            kinds: vec![(Kind::CHAT, kind_decay(random))],
        });
        Case {
            memories,
            deleted,
            exclude,
            embedding: vec![1.0, 0.25],
            preset,
            decays,
        }
    }

    fn store(&self) -> Store {
        let files = Arc::new(InMemory::new());
        let store = Store::create_on(files, "store", &options(2, Dtype::F32)).unwrap();
        append(&store, &self.memories);
        store.delete(&self.deleted).unwrap();
        store
    }

    fn filter(&self) -> Filter<'_> {
        Filter {
            exclude: &self.exclude,
            ..Filter::default()
        }
    }

    fn ask<'a>(&'a self, filter: &'a Filter<'a>) -> Ask<'a> {
        Ask {
            filter,
            decays: self.decays.as_ref(),
            ..Ask::new(&self.embedding, T, &self.preset)
        }
    }

    fn explain(&self, id: u64) -> Result<Explanation, StreamError> {
        let snapshot = self.store().snapshot();
        explain(
            &snapshot,
            &self.ask(&self.filter()),
            id,
            Par::Serial,
            &mut Workspace::new(),
        )
    }

    /// Whether a row is among the k best.
    fn is_in(&self, row: usize) -> bool {
        let ranking = ranked(&self.store().snapshot(), &self.ask(&self.filter()));
        ranking.hits.iter().any(|hit| hit.row == row)
    }

    fn with_importance(&self, row: usize, importance: f32) -> Case {
        let mut copy = self.clone();
        copy.memories[row].importance = importance;
        copy
    }

    fn with_access(&self, row: usize, access: i64) -> Case {
        let mut copy = self.clone();
        copy.memories[row].last_access = access;
        copy
    }

    fn with_weight(&self, component: usize, weight: f64) -> Case {
        let mut copy = self.clone();
        let weights = &mut copy.preset.scoring.weights;
        *match component {
            0 => &mut weights.relevance,
            1 => &mut weights.recency,
            _ => &mut weights.importance,
        } = weight;
        copy
    }
}

fn ranked(snapshot: &Snapshot, ask: &Ask<'_>) -> Ranking {
    let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
    rank(snapshot, ask, Par::Serial, &mut workspace, &mut ranking).unwrap();
    ranking
}

fn hit_bits(hit: &Hit) -> Vec<u64> {
    let parts = [hit.relevance, hit.recency, hit.importance];
    let parts = parts.iter().flat_map(|c| [c.raw, c.normalized, c.weighted]);
    let numbers = parts.chain([hit.score, hit.row as f64]);
    numbers.map(f64::to_bits).collect()
}

/// What is told to bring a memory in does, and a little less does not. How much was told.
fn assert_brings_in(case: &Case, row: usize, told: &BringsIn) -> [usize; 3] {
    let memory = &case.memories[row];
    match told.importance {
        Some(importance) => {
            assert!(importance > memory.importance);
            assert!(case.with_importance(row, importance).is_in(row));
            let less = case.with_importance(row, importance.next_down());
            assert!(!less.is_in(row), "{importance}");
        }
        None => assert!(!case.with_importance(row, f32::MAX).is_in(row)),
    }
    let listed_by_access = case.preset.candidates == Preset::reverie().candidates;
    match told.last_access {
        Some(access) => {
            assert!(access > memory.last_access && access <= T && !listed_by_access);
            assert!(case.with_access(row, access).is_in(row));
            assert!(!case.with_access(row, access - 1).is_in(row), "{access}");
        }
        None if listed_by_access || memory.last_access >= T => {}
        None => assert!(!case.with_access(row, T).is_in(row)),
    }
    let weights = case.preset.scoring.weights;
    let weights = [weights.relevance, weights.recency, weights.importance];
    for (component, (told, old)) in told.weights.into_iter().zip(weights).enumerate() {
        let is_in = |weight: f64| case.with_weight(component, weight).is_in(row);
        match told {
            Some(weight) => {
                assert!(weight >= 0.0 && weight != old);
                assert!(is_in(weight), "weight {component} of {weight:e}");
                // One step at least, which of a subnormal number is more.
                let nearer = match weight > old {
                    true => (weight * (1.0 - 1e-6)).min(weight.next_down()).max(old),
                    false => (weight * (1.0 + 1e-6)).max(weight.next_up()).min(old),
                };
                assert!(
                    !is_in(nearer),
                    "weight {component} of {nearer:e}: {weight:e}"
                );
                // Nor any nearer on the other side.
                let across = old + (old - weight) * 0.999;
                assert!(
                    across < 0.0 || !is_in(across),
                    "weight {component} of {across}"
                );
                let between = old.midpoint(nearer);
                assert!(!is_in(between), "weight {component} of {between}");
            }
            None => {
                for weight in [0.0, 0.1, 0.7, 1.5, 3.0, 20.0, 1e4] {
                    assert!(!is_in(weight), "weight {component} of {weight}");
                }
            }
        }
    }
    let told_weights = told.weights.iter().flatten().count();
    [
        told.importance.iter().count(),
        told.last_access.iter().count(),
        told_weights,
    ]
}

#[test]
fn every_memory_stands_where_the_ranking_of_all_has_it_and_what_is_told_brings_it_in() {
    let (mut told, mut refused) = ([0; 3], [0; 3]);
    for seed in 0..SEEDS {
        let case = Case::new(seed);
        let store = case.store();
        let snapshot = store.snapshot();
        let mut everything = case.clone();
        everything.preset.k = usize::MAX;
        let all = ranked(&snapshot, &everything.ask(&everything.filter()));
        let last = case.preset.k.min(all.hits.len()).checked_sub(1);
        for (row, memory) in case.memories.iter().enumerate() {
            let id = row as u64;
            let said = || format!("seed {seed} id {id} of {:?}", case.preset);
            let _on_panic = OnPanic(said);
            let explanation = case.explain(id).unwrap();
            assert_eq!(explanation.id, id);
            assert_eq!(explanation.ranges, all.ranges);
            assert_eq!(explanation.candidates, all.candidates);
            let deleted = case.deleted.contains(&id);
            assert_eq!(explanation.row, (!deleted).then_some(row));
            let place = all.hits.iter().position(|hit| hit.row == row);
            let Standing {
                place: found,
                hit,
                gap,
                brings_in,
            } = match explanation.candidate {
                Ok(standing) => standing,
                Err(why) => {
                    assert_eq!(place, None);
                    let (expected, count) = match (deleted, &memory.embedding) {
                        (true, _) => (NoCandidate::Deleted, 0),
                        (false, None) => (NoCandidate::NoEmbedding, 1),
                        (false, Some(_)) => {
                            let barrier = match case.exclude.contains(&(row as u64)) {
                                true => Barrier::Excluded,
                                false => Barrier::Rule,
                            };
                            (NoCandidate::Filtered(barrier), 2)
                        }
                    };
                    assert_eq!(why, expected);
                    refused[count] += 1;
                    continue;
                }
            };
            assert_eq!(Some(found), place.map(|place| place + 1));
            assert_eq!(hit_bits(&hit), hit_bits(&all.hits[found - 1]));
            assert_eq!(gap, last.map(|last| hit.score - all.hits[last].score));
            if found <= case.preset.k || case.preset.k == 0 {
                assert_eq!(brings_in, BringsIn::default());
                continue;
            }
            assert!(!case.is_in(row));
            let counts = assert_brings_in(&case, row, &brings_in);
            told = [0, 1, 2].map(|i| told[i] + counts[i]);
        }
    }
    assert!(told.iter().all(|&n| n > 80), "told: {told:?}");
    assert!(refused.iter().all(|&n| n > 20), "refused: {refused:?}");
}

#[test]
fn an_id_that_no_memory_had_is_refused_and_a_compacted_one_was_deleted() {
    let mut case = Case::new(5);
    let next_id = case.memories.len() as u64;
    for id in [next_id, u64::MAX] {
        let refused = case.explain(id).unwrap_err();
        let expected = (id, next_id);
        let found = match refused {
            StreamError::NoId { id, next } => (id, next),
            other => panic!("{other}"),
        };
        assert_eq!(found, expected);
    }
    case.deleted = vec![0];
    let store = case.store();
    store.compact().unwrap();
    let snapshot = store.snapshot();
    let mut workspace = Workspace::new();
    let gone = explain(
        &snapshot,
        &case.ask(&case.filter()),
        0,
        Par::Serial,
        &mut workspace,
    )
    .unwrap();
    assert_eq!(
        (gone.row, gone.candidate),
        (None, Err(NoCandidate::Deleted))
    );
}

#[test]
fn a_question_that_cannot_be_ranked_cannot_be_explained() {
    let mut case = Case::new(1);
    case.embedding = vec![0.0, 0.0];
    assert!(matches!(case.explain(0), Err(StreamError::Rank(_))));
    let mut case = Case::new(1);
    case.preset.scoring.weights.relevance = f64::NAN;
    assert!(matches!(case.explain(0), Err(StreamError::Rank(_))));
}

#[test]
fn a_store_without_candidates_has_no_ranges_to_warn_of() {
    let mut case = Case::new(1);
    case.memories
        .iter_mut()
        .for_each(|memory| memory.embedding = None);
    case.deleted.clear();
    let explanation = case.explain(0).unwrap();
    assert_eq!((explanation.ranges, explanation.candidates), (None, 0));
    assert_eq!(explanation.candidate, Err(NoCandidate::NoEmbedding));
    assert_eq!(explanation.warnings, []);
}

// B01: what min-max makes of next to nothing is told.
#[test]
fn a_component_that_min_max_stretches_is_warned_of_and_a_constant_one_is_not() {
    let memory = |x: f32, hours: i64, importance: f32| Owned {
        created: T - 1_000_000 * HOUR,
        last_access: T - hours * HOUR,
        importance,
        ..plain(&[1.0, x])
    };
    let case = |memories: &[Owned]| Case {
        memories: memories.to_vec(),
        deleted: vec![],
        exclude: vec![],
        embedding: vec![1.0, 0.0],
        preset: Preset::paper(),
        decays: None,
    };
    let warned = |case: &Case| -> Vec<&str> {
        let warnings = case.explain(0).unwrap().warnings;
        let component = |warning: &Warning| match *warning {
            Warning::Stretched {
                component,
                span,
                threshold,
            } => {
                assert!(span < threshold);
                component
            }
            _ => unreachable!("the one warning there is"),
        };
        warnings.iter().map(component).collect()
    };
    let all = ["relevance", "recency", "importance"];
    let close = case(&[memory(0.0, 1, 5.0), memory(0.01, 2, 5.05)]);
    assert_eq!(warned(&close), all);
    assert_eq!(
        warned(&case(&[memory(0.0, 1, 5.0), memory(0.0, 1, 5.0)])),
        [] as [&str; 0]
    );
    assert_eq!(
        warned(&case(&[memory(0.0, 1, 5.0), memory(1.0, 9, 6.0)])),
        [] as [&str; 0]
    );
    // B26: recencies that underflow to one value still differ.
    let ancient = case(&[memory(0.0, 300_000, 5.0), memory(1.0, 400_000, 6.0)]);
    assert_eq!(warned(&ancient), ["recency"]);
    // What is not stretched, or has no weight.
    let mut plain = close.clone();
    plain.preset = Preset::unnormalized();
    assert_eq!(warned(&plain), [] as [&str; 0]);
    let mut weightless = close.clone();
    weightless.preset.scoring.weights.recency = 0.0;
    assert_eq!(warned(&weightless), ["relevance", "importance"]);
    // With thresholds of one's own.
    let ranges = close.explain(0).unwrap().ranges.unwrap();
    let none = Thresholds {
        relevance: 0.0,
        recency: 0.0,
        importance: 0.0,
    };
    assert_eq!(warnings(&ranges, &close.preset.scoring, &none), []);
    let wide = Thresholds {
        relevance: 3.0,
        recency: 3.0,
        importance: 3.0,
    };
    assert_eq!(warnings(&ranges, &close.preset.scoring, &wide).len(), 3);
}
