//! What cannot be measured is an error that says where.

use crate::common::Random;
use crate::{cosine, measure, town};
use memorank::Par;
use memorank::eval::{
    Bootstrap, Collection, EvalError, Judged, Sweep, Tuning, evaluate, sweep, tune,
};
use memorank::scoring::{Preset, Recency, Scoring, Workspace};
use memorank::store::Snapshot;
use memorank::stream::{Filter, StreamError};

fn on<'a>(snapshot: &'a Snapshot, questions: &'a [Judged<'a>]) -> [Collection<'a>; 2] {
    let first = Collection {
        snapshot,
        questions: &[],
    };
    [
        first,
        Collection {
            snapshot,
            questions,
        },
    ]
}

fn evaluated(collections: &[Collection<'_>], presets: &[Preset]) -> Result<(), EvalError> {
    evaluate(collections, presets, Par::Serial, &mut Workspace::new()).map(|_| ())
}

#[test]
fn questions_that_cannot_be_asked_are_named() {
    let (_dir, store) = town(&mut Random(16), 30);
    let snapshot = store.snapshot();
    let good = Judged::new(&[1.0, 0.0, 0.0], 0, &[1]);
    let words = [u64::MAX];
    let wrong_mask = Filter {
        mask: Some(&words),
        ..Filter::default()
    };
    for (bad, told) in [
        (
            Judged {
                embedding: &[1.0],
                ..good
            },
            "elements",
        ),
        (
            Judged {
                embedding: &[0.0; 3],
                ..good
            },
            "zero",
        ),
        (
            Judged {
                embedding: &[1.0, f32::NAN, 0.0],
                ..good
            },
            "NaN",
        ),
        (
            Judged {
                model: Some("another"),
                ..good
            },
            "another",
        ),
        (
            Judged {
                filter: &wrong_mask,
                ..good
            },
            "row",
        ),
    ] {
        let questions = [good, good, bad, good];
        match evaluated(&on(&snapshot, &questions), &[cosine()]) {
            Err(EvalError::Question {
                collection: 1,
                question: 2,
                error,
            }) => {
                let error = error.to_string();
                assert!(error.contains(told), "{error}");
            }
            other => panic!("{told}: {other:?}"),
        }
    }
    let questions = [
        good,
        Judged {
            relevant: &[],
            ..good
        },
    ];
    assert!(matches!(
        evaluated(&on(&snapshot, &questions), &[cosine()]),
        Err(EvalError::NothingRelevant {
            collection: 1,
            question: 1
        })
    ));
    for nothing in [&on(&snapshot, &[])[..], &[]] {
        assert!(matches!(
            evaluated(nothing, &[cosine()]),
            Err(EvalError::NoQuestions)
        ));
        let preset = cosine();
        let wanted = Sweep {
            preset: &preset,
            factors: &[1.0],
        };
        let swept = sweep(nothing, &wanted, Par::Serial, &mut Workspace::new());
        assert!(matches!(swept, Err(EvalError::NoQuestions)));
    }
}

#[test]
fn settings_out_of_range_are_refused_before_anything_is_ranked() {
    let (_dir, store) = town(&mut Random(17), 30);
    let snapshot = store.snapshot();
    // It could not be asked.
    let questions = [Judged::new(&[], 0, &[1])];
    let mut bad = cosine();
    bad.scoring.weights.recency = f64::NAN;
    let collections = on(&snapshot, &questions);
    assert!(matches!(
        evaluated(&collections, &[cosine(), bad]),
        Err(EvalError::Setting { setting: 1, .. })
    ));
    let preset = cosine();
    for factor in [-1.0, f64::NAN, f64::INFINITY] {
        let wanted = Sweep {
            preset: &preset,
            factors: &[1.0, factor],
        };
        let swept = sweep(&collections, &wanted, Par::Serial, &mut Workspace::new());
        assert!(matches!(swept, Err(EvalError::Setting { .. })), "{factor}");
    }
}

#[test]
fn folds_and_settings_of_a_tuning_are_checked() {
    let (_dir, store) = town(&mut Random(18), 30);
    let snapshot = store.snapshot();
    let questions = [Judged::new(&[1.0, 0.0, 0.0], 0, &[1]); 3];
    let collections = on(&snapshot, &questions);
    let tuned = |settings: &[Scoring], folds: &[usize]| {
        let tuning = Tuning {
            settings,
            measure: measure("recall@3"),
            folds,
            bootstrap: Bootstrap::default(),
        };
        tune(&collections, &tuning, Par::Serial, &mut Workspace::new())
    };
    let good = [cosine().scoring];
    tuned(&good, &[0, 1, 1]).unwrap();
    assert!(matches!(tuned(&good, &[5, 5, 5]), Err(EvalError::OneFold)));
    assert!(matches!(
        tuned(&good, &[0, 1]),
        Err(EvalError::FoldsMismatch {
            found: 2,
            questions: 3
        })
    ));
    assert!(matches!(tuned(&[], &[0, 1, 1]), Err(EvalError::NoSettings)));
    let by_position = Preset::reverie().scoring;
    assert!(matches!(
        tuned(&[good[0], by_position], &[0, 1, 1]),
        Err(EvalError::NotByAge { setting: 1 })
    ));
    let given = Scoring {
        recency: Recency::Given,
        ..good[0]
    };
    assert!(matches!(
        tuned(&[given], &[0, 1, 1]),
        Err(EvalError::NotByAge { setting: 0 })
    ));
    let worse = good[0].with_decay(2.0);
    assert!(matches!(
        tuned(&[worse], &[0, 1, 1]),
        Err(EvalError::Setting { setting: 0, .. })
    ));
}

#[test]
fn an_error_tells_its_place_and_its_reason() {
    let error = EvalError::Question {
        collection: 1,
        question: 2,
        error: StreamError::NoId { id: 9, next: 3 },
    };
    assert!(
        error
            .to_string()
            .starts_with("question 2 of collection 1: there is no memory 9")
    );
    assert!(std::error::Error::source(&error).is_some());
}
