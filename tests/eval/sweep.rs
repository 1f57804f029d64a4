//! Overlaps, beside the same counted by hand.

use crate::common::Random;
use crate::{Asked, judged, questions, town, weighted};
use memorank::Par;
use memorank::eval::{Collection, Curve, Signal, Sweep, sweep};
use memorank::scoring::{Preset, Ranking, Workspace};
use memorank::store::{Kind, Snapshot};
use memorank::stream::{Ask, Filter, rank};
use std::collections::BTreeSet;

const FACTORS: [f64; 5] = [0.0, 0.25, 1.0, 3.0, 100.0];

fn swept(snapshot: &Snapshot, asked: &[Asked], filter: &Filter<'_>, preset: &Preset) -> Vec<Curve> {
    let judged = judged(asked, filter);
    let collections = [Collection {
        snapshot,
        questions: &judged,
    }];
    let wanted = Sweep {
        preset,
        factors: &FACTORS,
    };
    sweep(&collections, &wanted, Par::Serial, &mut Workspace::new()).unwrap()
}

fn best(snapshot: &Snapshot, asked: &Asked, preset: &Preset) -> BTreeSet<usize> {
    let ask = Ask {
        agent: asked.agent,
        ..Ask::new(&asked.embedding, asked.now, preset)
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
    ranking.hits.iter().map(|hit| hit.row).collect()
}

#[test]
fn it_is_the_share_of_the_best_that_stays() {
    let mut random = Random(14);
    let (_dir, store) = town(&mut random, 130);
    let snapshot = store.snapshot();
    let asked = questions(&mut random, 130, 25);
    for preset in [
        Preset::reverie(),
        weighted(1.0, 0.5, 0.0),
        weighted(2.0, 0.25, 1.0),
    ] {
        let preset = Preset { k: 7, ..preset };
        let curves = swept(&snapshot, &asked, &Filter::default(), &preset);
        assert_eq!(
            curves.iter().map(|of| of.signal).collect::<Vec<_>>(),
            Signal::ALL
        );
        for curve in &curves {
            for (point, factor) in curve.points.iter().zip(FACTORS) {
                let unit = if curve.weight == 0.0 {
                    1.0
                } else {
                    curve.weight
                };
                assert_eq!(point.weight, unit * factor);
                let mut other = preset;
                let weights = &mut other.scoring.weights;
                *match curve.signal {
                    Signal::Relevance => &mut weights.relevance,
                    Signal::Recency => &mut weights.recency,
                    Signal::Importance => &mut weights.importance,
                } = point.weight;
                let shares = asked.iter().map(|asked| {
                    let base = best(&snapshot, asked, &preset);
                    let kept = best(&snapshot, asked, &other).intersection(&base).count();
                    kept as f64 / base.len() as f64
                });
                let expected = shares.sum::<f64>() / asked.len() as f64;
                assert!((point.overlap - expected).abs() < 1e-12);
                if point.weight == curve.weight {
                    assert_eq!(point.overlap, 1.0);
                }
            }
        }
    }
}

#[test]
fn it_needs_no_right_answers_and_passes_over_questions_without_candidates() {
    let mut random = Random(15);
    let (_dir, store) = town(&mut random, 40);
    let snapshot = store.snapshot();
    let mut asked = questions(&mut random, 40, 5);
    asked.iter_mut().for_each(|asked| asked.relevant.clear());
    let preset = weighted(1.0, 1.0, 1.0);
    let expected = swept(&snapshot, &asked, &Filter::default(), &preset);
    // Before anything was made.
    let mut early = questions(&mut random, 40, 2);
    early.iter_mut().for_each(|asked| asked.now = 0);
    asked.extend(early);
    assert_eq!(
        swept(&snapshot, &asked, &Filter::default(), &preset),
        expected
    );

    let nothing = Filter {
        kinds: Some(&[Kind::PLAN]),
        ..Filter::default()
    };
    let curves = swept(&snapshot, &asked, &nothing, &preset);
    assert!(
        curves
            .iter()
            .flat_map(|of| &of.points)
            .all(|point| point.overlap.is_nan())
    );
}
