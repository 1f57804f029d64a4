//! Small k of many rows, with numbers at the ends of their ranges. Most rows are then left out after a
//! bound of their total, and none that belongs among the best may be.

mod common;
mod ranking;

use common::{Random, say};
use memorank::scoring::{
    Candidates, Components, Normalization, Query, Recency, Scoring, Since, Ties, Weights,
};
use ranking::reference::assert_ranks_like_the_reference;
use ranking::*;
use std::num::NonZeroU64;

const WEIGHTS: [f64; 9] = [0.0, 5e-324, 1e-308, 1e-300, 1e-9, 1.0, 3.0, 1e300, 5e307];

const DECAYS: [f64; 9] = [
    0.0,
    5e-324,
    1e-300,
    1e-5,
    0.5,
    0.995,
    1.0 - 1e-12,
    1.0 - f64::EPSILON / 2.0,
    1.0,
];

const TINY: f32 = f32::from_bits(1);

const NUMBERS: [f32; 11] = [
    f32::MAX,
    f32::MIN,
    0.0,
    -0.0,
    TINY,
    -TINY,
    f32::MIN_POSITIVE,
    1.0,
    10.0,
    -3.0,
    1e-20,
];

/// `1.2e-38` is just above the smallest that is allowed.
const DIVISORS: [f64; 6] = [
    f32::MIN_POSITIVE as f64,
    1.2e-38,
    1e-20,
    10.0,
    1e38,
    f64::MAX,
];

/// In ticks: from one to all there are.
const SPANS: [u64; 7] = [
    1,
    2,
    300,
    HOUR as u64,
    1_000_000 * HOUR as u64,
    1 << 63,
    u64::MAX,
];

fn pick<X: Copy>(random: &mut Random, from: &[X]) -> X {
    from[random.below(from.len() as u64) as usize]
}

fn numbers(random: &mut Random, n: usize) -> Vec<f32> {
    let two = [pick(random, &NUMBERS), pick(random, &NUMBERS)];
    let mode = random.below(6);
    let number = |_| match mode {
        0 => random.signed(),
        1 => pick(random, &NUMBERS),
        2 => pick(random, &two),
        3 => random.signed() * f32::MAX,
        4 => f32::from_bits(random.below(4) as u32).copysign(random.signed()),
        // Neighbours.
        _ => f32::from_bits(1.0f32.to_bits() + random.below(4) as u32),
    };
    let mut numbers: Vec<f32> = (0..n).map(number).collect();
    sort(random, &mut numbers, f32::total_cmp);
    numbers
}

/// Often ascending, so that the best comes last.
fn sort<X: Copy>(random: &mut Random, values: &mut [X], order: fn(&X, &X) -> std::cmp::Ordering) {
    match random.below(4) {
        0 | 1 => values.sort_by(order),
        2 => values.sort_by(|a, b| order(b, a)),
        _ => {}
    }
}

fn accesses(random: &mut Random, n: usize) -> Vec<i64> {
    let span = pick(random, &SPANS);
    // All of i64, for the longest.
    let newest = if span >= 1 << 63 { i64::MAX } else { T };
    let access = |_| {
        let age = match span.checked_add(1) {
            Some(ages) => random.below(ages),
            None => random.next(),
        };
        newest.wrapping_sub_unsigned(age)
    };
    let mut accesses: Vec<i64> = (0..n).map(access).collect();
    sort(random, &mut accesses, i64::cmp);
    accesses
}

fn scoring(random: &mut Random) -> Scoring {
    let decay = pick(random, &DECAYS);
    let ticks = [1, 1000, HOUR as u64, u64::MAX];
    Scoring {
        weights: Weights {
            relevance: pick(random, &WEIGHTS),
            recency: pick(random, &WEIGHTS),
            importance: pick(random, &WEIGHTS),
        },
        recency: match random.below(4) {
            0 => Recency::Position { decay },
            _ => Recency::Age {
                decay,
                ticks_per_unit: NonZeroU64::new(pick(random, &ticks)).unwrap(),
                since: pick(random, &[Since::Now, Since::NewestAccess]),
            },
        },
        normalization: match random.below(3) {
            0 => Normalization::None {
                importance_divisor: pick(random, &DIVISORS),
            },
            _ => Normalization::MinMax {
                constant: pick(random, &[0.0, 0.5, 1.0]),
            },
        },
    }
}

/// The fewest rows for which recency is bounded by a table of ages, and some more.
const WITH_TABLE: usize = 2048;

fn assert_random_extremes(seeds: std::ops::Range<u64>, rows: impl Fn(&mut Random) -> usize) {
    let mut ranked = 0;
    let mut wrong = Vec::new();
    for seed in seeds.clone() {
        let random = &mut Random(seed);
        let n = rows(random);
        let (relevance, importance) = (numbers(random, n), numbers(random, n));
        let accesses = accesses(random, n);
        let components = Components::new(&relevance, &accesses, &importance).unwrap();
        let listed: Vec<u32> = (0..n as u32).rev().collect();
        let query = Query {
            ties: pick(random, &[Ties::Row, Ties::Listed]),
            candidates: pick(random, &[Candidates::All, Candidates::Rows(&listed)]),
            ..Query::new(
                &[],
                pick(random, &[T, i64::MAX, i64::MIN]),
                pick(random, &[1, 2, 3, 10, 40]),
            )
        };
        let scoring = scoring(random);
        let done = std::panic::catch_unwind(|| {
            assert_ranks_like_the_reference(&components, &query, &scoring).is_ok()
        });
        match done {
            Ok(done) => ranked += usize::from(done),
            Err(_) => wrong.push(format!("seed {seed}: {n} rows, k {}, {scoring:?}", query.k)),
        }
    }
    say(format_args!(
        "{ranked} rankings of {seeds:?}, the rest refused"
    ));
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(ranked > seeds.count() / 2, "too few rankings: {ranked}");
}

#[test]
fn no_extreme_loses_one_of_the_best_of_hundreds() {
    assert_random_extremes(0..10_000, |random| 65 + random.below(236) as usize);
}

#[test]
fn no_extreme_loses_one_of_the_best_of_thousands() {
    assert_random_extremes(10_000..10_300, |random| {
        WITH_TABLE + random.below(3000) as usize
    });
}

/// k = 1, and the best row is the last.
fn assert_best_last(relevance: &[f32], importance: &[f32], scoring: &Scoring) {
    let n = relevance.len();
    let accesses = vec![T; n];
    let components = Components::new(relevance, &accesses, importance).unwrap();
    let query = Query::new(&[], T, 1);
    let ranking = assert_ranks_like_the_reference(&components, &query, scoring).unwrap();
    assert_eq!(rows(&ranking), [n - 1]);
}

#[test]
fn a_tiny_weight_over_a_huge_range_still_tells_the_best() {
    // 1e-300 per 6.8e38 is less than the smallest number.
    let n = 200;
    let importance: Vec<f32> = (0..n)
        .map(|i| {
            f32::MIN
                + (i as f32 / (n - 1) as f32) * f32::MAX
                + (i as f32 / (n - 1) as f32) * f32::MAX
        })
        .collect();
    assert_eq!((importance[0], importance[n - 1]), (f32::MIN, f32::MAX));
    for weight in [1e-300, 1e-308, 5e-324] {
        let scoring = weighted(0.0, 0.0, weight);
        // The smallest weight gives a few totals only, and the first of the equal ones is best.
        if weight > 5e-324 {
            assert_best_last(&vec![0.5; n], &importance, &scoring);
            assert_best_last(&importance, &vec![0.5; n], &weighted(weight, 0.0, 0.0));
        }
        let accesses = vec![T; n];
        let relevance = vec![0.5; n];
        let components = Components::new(&relevance, &accesses, &importance).unwrap();
        let query = Query::new(&[], T, 1);
        assert_ranks_like_the_reference(&components, &query, &scoring).unwrap();
    }
}

#[test]
fn a_huge_weight_over_a_tiny_divisor_still_tells_the_best() {
    // 1e308 / 1.2e-38 is more than the largest number, and times -1.4e-45 minus infinity.
    let n = 200;
    let relevance: Vec<f32> = (0..n).map(|i| i as f32 / n as f32).collect();
    let scoring = Scoring {
        weights: weighted(1e305, 0.0, 1e308).weights,
        normalization: Normalization::None {
            importance_divisor: 1.2e-38,
        },
        ..paper()
    };
    for importance in [-TINY, TINY, 0.0, -0.0] {
        assert_best_last(&relevance, &vec![importance; n], &scoring);
    }
    // All but the best count for less, by importance alone.
    let mut importance = vec![-2.0 * TINY; n];
    importance[n - 1] = -TINY;
    assert_best_last(&vec![0.5; n], &importance, &scoring);
}

#[test]
fn ages_a_tick_apart_still_tell_the_best_of_thousands() {
    let n = 2 * WITH_TABLE;
    let relevance = vec![0.5; n];
    for step in [1, HOUR, i64::MAX / n as i64] {
        let accesses: Vec<i64> = (0..n as i64).map(|i| i * step).collect();
        for decay in DECAYS {
            let scoring = recency_only(decay, Since::NewestAccess);
            let components = Components::new(&relevance, &accesses, &relevance).unwrap();
            for k in [1, 10] {
                let query = Query::new(&[], i64::MAX, k);
                assert_ranks_like_the_reference(&components, &query, &scoring).unwrap();
            }
        }
    }
}
