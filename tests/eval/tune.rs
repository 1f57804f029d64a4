//! Cross-validation, beside the same done by hand.

use crate::common::Random;
use crate::example::{Owned, append, new_store, plain};
use crate::{Asked, HOUR, T, cosine, judged, measure, questions, town, weighted};
use memorank::Par;
use memorank::eval::{
    Bootstrap, Collection, Grid, Tuned, Tuning, evaluate, folds_at_random, mean, tune,
};
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Scoring, Workspace};
use memorank::store::{Agent, Store};
use memorank::stream::Filter;
use std::num::NonZeroUsize;

fn small_grid() -> Vec<Scoring> {
    let grid = Grid {
        recency: vec![0.1, 1.0],
        importance: vec![0.5],
        decays: vec![0.5, 0.99],
    };
    grid.settings()
}

fn bootstrap() -> Bootstrap {
    Bootstrap {
        resamples: 500.try_into().unwrap(),
        seed: 1,
    }
}

/// Under these settings, by recall@3.
fn tuned(store: &Store, asked: &[Asked], settings: &[Scoring], folds: &[usize]) -> Tuned {
    let filter = Filter::default();
    let judged = judged(asked, &filter);
    let collections = [Collection {
        snapshot: &store.snapshot(),
        questions: &judged,
    }];
    let tuning = Tuning {
        settings,
        measure: measure("recall@3"),
        folds,
        bootstrap: bootstrap(),
    };
    tune(&collections, &tuning, Par::Serial, &mut Workspace::new()).unwrap()
}

#[test]
fn it_is_the_cross_validation_of_what_evaluate_measures() {
    let mut random = Random(8);
    let (_dir, store) = town(&mut random, 120);
    let asked = questions(&mut random, 120, 60);
    let filter = Filter::default();
    let judged = judged(&asked, &filter);
    let collections = [Collection {
        snapshot: &store.snapshot(),
        questions: &judged,
    }];
    let settings = small_grid();
    let presets: Vec<Preset> = (settings.iter())
        .map(|&scoring| Preset {
            scoring,
            ..Preset::paper()
        })
        .collect();
    let mut workspace = Workspace::new();
    let found = evaluate(&collections, &presets, Par::Serial, &mut workspace).unwrap();
    // Numbers of folds need not follow each other.
    let folds: Vec<usize> = (0..60).map(|i| [7, 2, 40][i % 3]).collect();
    for name in ["recall@3", "precision@5", "mrr", "mrr@4", "ndcg", "ndcg@10"] {
        let measure = measure(name);
        let tuning = Tuning {
            settings: &settings,
            measure,
            folds: &folds,
            bootstrap: bootstrap(),
        };
        let tuned = tune(&collections, &tuning, Par::Serial, &mut workspace).unwrap();
        let values: Vec<Vec<f64>> = (0..settings.len())
            .map(|setting| found.values(setting, measure))
            .collect();
        for (of, values) in tuned.means.iter().zip(&values) {
            assert!((of - mean(values)).abs() < 1e-12);
        }
        let numbers: Vec<usize> = tuned.folds.iter().map(|fold| fold.fold).collect();
        assert_eq!(numbers, [2, 7, 40]);
        let mut held_out = vec![f64::NAN; 60];
        for fold in &tuned.folds {
            let part = |setting: usize, inside: bool| {
                let of = (0..60).filter(|&i| (folds[i] == fold.fold) == inside);
                mean(&of.map(|i| values[setting][i]).collect::<Vec<_>>())
            };
            let best = (0..settings.len())
                .map(|setting| part(setting, false))
                .fold(0.0, f64::max);
            assert!((fold.trained - best).abs() < 1e-12);
            assert!((part(fold.setting, false) - best).abs() < 1e-12);
            assert!((part(fold.setting, true) - fold.held_out).abs() < 1e-12);
            assert!((part(0, true) - fold.first).abs() < 1e-12);
            assert_eq!(fold.questions, 20);
            for i in (0..60).filter(|&i| folds[i] == fold.fold) {
                held_out[i] = values[fold.setting][i];
            }
        }
        assert_eq!(tuned.gain, bootstrap().gain(&held_out, &values[0]));
        let most = tuned.means.iter().copied().fold(0.0, f64::max);
        assert_eq!(tuned.means[tuned.best], most);
        assert!(tuned.near.contains(&tuned.best));
        assert_eq!(
            tuned.chosen,
            if tuned.gain.low > 0.0 { tuned.best } else { 0 }
        );
    }
}

/// Memories of all ages that a question cannot tell apart but by their age: `recent` says which it asks for.
fn by_age(
    random: &mut Random,
    n: usize,
    recent: impl Fn(i64) -> bool,
) -> (tempfile::TempDir, Store, Vec<Asked>) {
    let (dir, _, store) = new_store(3, Dtype::F32);
    let ages: Vec<i64> = (0..200).map(|_| random.below(1_000) as i64).collect();
    let memories: Vec<Owned> = (ages.iter())
        .map(|age| Owned {
            created: T - age * HOUR,
            last_access: T - age * HOUR,
            embedding: Some(random.vector(3)),
            ..plain(&[])
        })
        .collect();
    append(&store, &memories);
    let right: Vec<u64> = (0..200).filter(|&i| recent(ages[i as usize])).collect();
    let asked = (0..n).map(|_| Asked {
        embedding: random.vector(3),
        now: T,
        agent: Agent::OWN,
        relevant: vec![right[random.below(right.len() as u64) as usize]],
    });
    let asked = asked.collect();
    (dir, store, asked)
}

#[test]
fn it_finds_recency_where_answers_are_recent() {
    let mut random = Random(9);
    let (_dir, store, asked) = by_age(&mut random, 120, |age| age < 30);
    let folds = folds_at_random(120, NonZeroUsize::new(4).unwrap(), 1);
    let tuned = tuned(&store, &asked, &small_grid(), &folds);
    assert!(tuned.gain.is_sure() && tuned.gain.mean > 0.1, "{tuned:?}");
    assert_eq!(tuned.chosen, tuned.best);
    assert!(small_grid()[tuned.best].weights.recency > 0.0);
}

#[test]
fn it_says_that_nothing_beats_cosine_where_answers_are_old() {
    let mut random = Random(10);
    let (_dir, store, asked) = by_age(&mut random, 120, |age| age > 900);
    let folds = folds_at_random(120, NonZeroUsize::new(4).unwrap(), 1);
    let tuned = tuned(&store, &asked, &small_grid(), &folds);
    assert_eq!(tuned.chosen, 0);
    assert!(!tuned.gain.is_sure());
}

/// Where settings differ by chance alone, choosing the best of them gains nothing on held-out questions.
#[test]
fn chance_is_seldom_taken_for_a_gain() {
    let mut random = Random(11);
    let mut sure = 0;
    let runs = 60;
    for seed in 0..runs {
        let (_dir, store, asked) = by_age(&mut random, 60, |_| true);
        let folds = folds_at_random(60, NonZeroUsize::new(3).unwrap(), seed);
        let tuned = tuned(&store, &asked, &small_grid(), &folds);
        assert_eq!(tuned.chosen != 0, tuned.gain.low > 0.0);
        // What was best on all questions is no gain by itself.
        assert!(tuned.means[tuned.best] >= tuned.means[0]);
        sure += u32::from(tuned.gain.is_sure());
    }
    assert!(sure <= 6, "{sure} of {runs}");
}

#[test]
fn few_questions_choose_nothing() {
    let mut random = Random(19);
    let (_dir, store, asked) = by_age(&mut random, 60, |age| age < 10);
    let with = |n: usize| {
        let folds: Vec<usize> = (0..n).map(|i| i % 2).collect();
        let settings = [cosine().scoring, weighted(1.0, 10.0, 0.0).scoring];
        tuned(&store, &asked[..n], &settings, &folds)
    };
    let few = with(Tuned::FEWEST_QUESTIONS - 1);
    assert!(few.gain.is_sure() && few.best > 0, "{few:?}");
    assert_eq!(few.chosen, 0);
    let enough = with(60);
    assert_eq!(enough.chosen, enough.best);
}

#[test]
fn right_answers_that_do_not_compete_are_counted() {
    let mut random = Random(21);
    let (_dir, store, mut asked) = by_age(&mut random, 20, |_| true);
    asked[0].relevant = vec![0, 1, 1_000];
    // Before all of them.
    asked[1].now = 0;
    let folds: Vec<usize> = (0..20).map(|i| i % 2).collect();
    assert_eq!(tuned(&store, &asked, &small_grid(), &folds).out_of_reach, 2);
}

#[test]
fn of_equal_settings_the_first_is_taken() {
    let mut random = Random(12);
    let (_dir, store) = town(&mut random, 80);
    let asked = questions(&mut random, 80, 20);
    let folds: Vec<usize> = (0..20).map(|i| i % 2).collect();
    let settings = [cosine().scoring; 5];
    let tuned = tuned(&store, &asked, &settings, &folds);
    assert_eq!((tuned.best, tuned.chosen), (0, 0));
    assert!(tuned.folds.iter().all(|fold| fold.setting == 0));
    assert_eq!(tuned.near, [0, 1, 2, 3, 4]);
    assert_eq!(tuned.gain.mean, 0.0);
}

#[test]
fn it_does_not_depend_on_threads() {
    let mut random = Random(13);
    let (_dir, store) = town(&mut random, 150);
    let asked = questions(&mut random, 150, 50);
    let filter = Filter::default();
    let judged = judged(&asked, &filter);
    let collections = [Collection {
        snapshot: &store.snapshot(),
        questions: &judged,
    }];
    let (settings, folds) = (
        small_grid(),
        folds_at_random(50, NonZeroUsize::new(5).unwrap(), 3),
    );
    let tuning = Tuning {
        settings: &settings,
        measure: measure("ndcg@5"),
        folds: &folds,
        bootstrap: bootstrap(),
    };
    let mut workspace = Workspace::new();
    let serial = tune(&collections, &tuning, Par::Serial, &mut workspace).unwrap();
    #[cfg(feature = "rayon")]
    for threads in [1, 2, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let tuned = pool
            .unwrap()
            .install(|| tune(&collections, &tuning, Par::Rayon, &mut workspace).unwrap());
        assert_eq!(tuned, serial);
    }
    assert_eq!(serial.means.len(), settings.len());
}

#[test]
fn folds_at_random_are_even_and_depend_on_the_seed_alone() {
    for (questions, folds) in [(1, 1), (5, 5), (17, 3), (100, 7)] {
        let folds = NonZeroUsize::new(folds).unwrap();
        let drawn = folds_at_random(questions, folds, 1);
        assert_eq!(drawn, folds_at_random(questions, folds, 1));
        let sizes: Vec<usize> = (0..folds.get())
            .map(|fold| drawn.iter().filter(|&&of| of == fold).count())
            .collect();
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(*least >= 1 && most - least <= 1, "{sizes:?}");
    }
    let five = NonZeroUsize::new(5).unwrap();
    assert_ne!(folds_at_random(100, five, 1), folds_at_random(100, five, 2));
}
