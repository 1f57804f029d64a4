//! Recency: ages, decays and their edges.

mod common;
mod ranking;

use approx::{assert_abs_diff_eq, assert_relative_eq};
use common::best_kernel;
use memorank::kernel::Dtype;
use memorank::scoring::{
    Candidates, Query, RankError, Ranking, Recency, Scoring, ScoringError, Since,
};
use ranking::*;
use std::num::NonZeroU64;

/// Ranks rows that differ in last access only, by recency alone.
fn by_recency(last_access: &[i64], now: i64, scoring: &Scoring) -> Ranking {
    let memories = Memories::of_accesses(last_access);
    let query = Query::new(&[1.0], now, usize::MAX);
    let ranking = memories.rank(&query, scoring);
    assert_sound(&ranking, &query);
    ranking
}

fn hours_ago<const N: usize>(hours: [i64; N]) -> [i64; N] {
    hours.map(|h| T - h * HOUR)
}

fn raw_and_normalized(ranking: &Ranking, row: usize) -> (f64, f64) {
    let recency = hit(ranking, row).recency;
    (recency.raw, recency.normalized)
}

fn ticks(scoring: Scoring, ticks_per_unit: u64) -> Scoring {
    let Recency::Age { decay, since, .. } = scoring.recency else {
        panic!("recency by age")
    };
    Scoring {
        recency: Recency::Age {
            decay,
            since,
            ticks_per_unit: NonZeroU64::new(ticks_per_unit).unwrap(),
        },
        ..scoring
    }
}

#[test]
fn a_future_access_has_age_0() {
    // B10.
    let mut g = set_g(Dtype::F32);
    g.last_access[2] = T + 24 * HOUR;
    let ranking = g.rank(&Query::new(&G_QUERY, T, 3), &paper());
    assert_eq!(raw_and_normalized(&ranking, 2), (1.0, 1.0));
    assert_eq!(raw_and_normalized(&ranking, 1), (1.0, 1.0));
    assert_eq!(raw_and_normalized(&ranking, 0).1, 0.0);
    // All in the future: all equal.
    let ranking = by_recency(&[T + 1, T + 5, i64::MAX], T, &weighted(0.0, 1.0, 0.0));
    assert_eq!(rows(&ranking), [0, 1, 2]);
    assert_eq!(scores(&ranking), [0.5; 3]);
}

#[test]
fn recency_goes_by_hours_not_by_rank() {
    // B12.
    let ranking = by_recency(&hours_ago([0, 1, 1000]), T, &weighted(0.0, 1.0, 0.0));
    assert_eq!(rows(&ranking), [0, 1, 2]);
    for (score, expected) in scores(&ranking).iter().zip([1.0, 0.994967, 0.0]) {
        assert_abs_diff_eq!(*score, expected, epsilon = 5e-7);
    }
}

#[test]
fn parts_of_an_hour_count() {
    // B23.
    let accesses = [60, 59, 30, 1, 24 * 60].map(|minutes| T - minutes * MINUTE);
    let ranking = by_recency(&accesses, T, &unnormalized());
    let expected = [
        0.995,
        0.995_083_128,
        0.997_496_867,
        0.999_916_461,
        0.886_653_511,
    ];
    for (row, expected) in expected.into_iter().enumerate() {
        assert_abs_diff_eq!(
            raw_and_normalized(&ranking, row).0,
            expected,
            epsilon = 5e-10
        );
    }
    assert_eq!(rows(&ranking), [3, 2, 1, 0, 4]);
    // A second, and a microsecond, are told apart under min-max.
    for step in [1_000_000, 1] {
        let ranking = by_recency(&[T - 2 * step, T, T - step], T, &weighted(0.0, 1.0, 0.0));
        assert_eq!(rows(&ranking), [1, 2, 0]);
        assert_abs_diff_eq!(scores(&ranking)[1], 0.5, epsilon = 1e-6);
    }
}

#[test]
fn ages_beyond_underflow_are_told_apart() {
    // B26.
    for hours in [[25_000, 30_000], [200_000, 300_000]] {
        let ranking = by_recency(&hours_ago(hours), T, &weighted(0.0, 1.0, 0.0));
        assert_eq!(rows(&ranking), [0, 1]);
        assert_eq!(scores(&ranking), [1.0, 0.0]);
        let ages = ranking.ranges.unwrap().ages.unwrap();
        assert_eq!(
            (ages.youngest, ages.oldest),
            ((hours[0] * HOUR) as u64, (hours[1] * HOUR) as u64)
        );
    }
    // The reported raw value is the plain one, underflow and all.
    let ranking = by_recency(&hours_ago([200_000]), T, &paper());
    assert_eq!(hit(&ranking, 0).recency.raw, 0.0);
    // Min-max is that of the plain formula where the plain formula can be computed.
    let ranking = by_recency(
        &hours_ago([100, 250, 333, 1000]),
        T,
        &weighted(0.0, 1.0, 0.0),
    );
    let plain = |hours: i32| 0.995f64.powi(hours);
    for (row, hours) in [100, 250, 333, 1000].into_iter().enumerate() {
        let expected = (plain(hours) - plain(1000)) / (plain(100) - plain(1000));
        let found = hit(&ranking, row).recency.normalized;
        assert_abs_diff_eq!(found, expected, epsilon = 1e-14);
    }
}

#[test]
fn a_decay_of_1_is_flat_and_of_0_keeps_only_the_present() {
    // B67.
    let accesses = [T, T - 1, T + HOUR, T - 9 * HOUR];
    let flat = by_recency(&accesses, T, &recency_only(1.0, Since::Now));
    assert_eq!(rows(&flat), [0, 1, 2, 3]);
    assert_eq!(scores(&flat), [0.5; 4]);
    assert!(flat.hits.iter().all(|hit| hit.recency.raw == 1.0));

    for zero in [0.0, -0.0] {
        let step = by_recency(&accesses, T, &recency_only(zero, Since::Now));
        assert_eq!(rows(&step), [0, 2, 1, 3]);
        assert_eq!(scores(&step), [1.0, 1.0, 0.0, 0.0]);
        // Nothing is left of anyone a moment later: all equal.
        let gone = by_recency(&accesses, T + 2 * HOUR, &recency_only(zero, Since::Now));
        assert_eq!(rows(&gone), [0, 1, 2, 3]);
        assert_eq!(scores(&gone), [0.5; 4]);
        assert!(gone.hits.iter().all(|hit| hit.recency.raw == 0.0));
        // Alone in the present.
        let alone = by_recency(&[T], T, &recency_only(zero, Since::Now));
        assert_eq!((scores(&alone)[0], hit(&alone, 0).recency.raw), (0.5, 1.0));
        // Measured from the newest access, someone is always in the present.
        let newest = by_recency(&accesses, T, &recency_only(zero, Since::NewestAccess));
        assert_eq!(scores(&newest), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(rows(&newest), [2, 0, 1, 3]);
    }
}

#[test]
fn a_decay_out_of_range_is_refused() {
    // B67.
    let memories = Memories::of_accesses(&[T]);
    for bad in [1.5, -0.1, f64::NAN, f64::INFINITY, 1.0 + f64::EPSILON] {
        let by_position = Scoring {
            recency: Recency::Position { decay: bad },
            ..paper()
        };
        for scoring in [recency_only(bad, Since::Now), by_position] {
            match memories.try_rank(&Query::new(&[1.0], T, 1), &scoring) {
                Err(RankError::Scoring(ScoringError::Decay(x))) => {
                    assert_eq!(x.to_bits(), bad.to_bits());
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn decays_next_to_the_edges_are_like_others() {
    let nearly_1 = 1.0 - f64::EPSILON / 2.0;
    let accesses = hours_ago([0, 1, 2, 4]);
    // So slow that it is a straight line.
    let ranking = by_recency(&accesses, T, &recency_only(nearly_1, Since::Now));
    for (score, expected) in scores(&ranking).iter().zip([1.0, 0.75, 0.5, 0.0]) {
        assert_abs_diff_eq!(*score, expected, epsilon = 1e-12);
    }
    // So fast that only the youngest keeps anything.
    for tiny in [1e-300, f64::MIN_POSITIVE, f64::from_bits(1)] {
        let ranking = by_recency(&accesses, T, &recency_only(tiny, Since::Now));
        assert_eq!(rows(&ranking), [0, 1, 2, 3]);
        let first = scores(&ranking)[1];
        // A subnormal logarithm is exact to a few bits of the decay only.
        assert_relative_eq!(first, tiny, max_relative = 1e-9);
        assert_eq!(scores(&ranking)[3], 0.0);
    }
}

#[test]
fn recency_can_be_measured_from_the_newest_access() {
    let accesses = hours_ago([500, 510, 600]);
    let scoring = recency_only(0.99, Since::NewestAccess);
    let ranking = by_recency(&accesses, T, &scoring);
    assert_eq!(rows(&ranking), [0, 1, 2]);
    assert_eq!(hit(&ranking, 0).recency.raw, 1.0);
    assert_abs_diff_eq!(
        hit(&ranking, 1).recency.raw,
        0.99f64.powi(10),
        epsilon = 1e-15
    );
    // `now` plays no part, and the newest access is that of the candidates.
    for now in [i64::MIN, 0, i64::MAX] {
        assert_eq!(bits(&by_recency(&accesses, now, &scoring)), bits(&ranking));
    }
    let memories = Memories::of_accesses(&accesses);
    let two = Query::new(&[1.0], T, 9).of(Candidates::Rows(&[1, 2]));
    let ranking = memories.rank(&two, &scoring);
    assert_eq!(hit(&ranking, 1).recency.raw, 1.0);
}

#[test]
fn recency_by_position_counts_candidates_as_listed() {
    let scoring = Scoring {
        recency: Recency::Position { decay: 0.99 },
        ..weighted(0.0, 1.0, 0.0)
    };
    let mut memories = Memories::of_accesses(&[T, T - 1, T - 2, T - 3, T - 4]);
    memories.inv_norms[1] = 0.0;
    let raw = |ranking: &Ranking, row| hit(ranking, row).recency.raw;
    // A row without a vector is no candidate and takes no position.
    let all = memories.rank(&Query::new(&[1.0], T, 9), &scoring);
    assert_eq!(rows(&all), [0, 2, 3, 4]);
    assert_abs_diff_eq!(raw(&all, 0), 0.99, epsilon = 1e-15);
    assert_abs_diff_eq!(raw(&all, 2), 0.9801, epsilon = 1e-15);
    assert_abs_diff_eq!(raw(&all, 4), 0.99f64.powi(4), epsilon = 1e-15);
    assert_eq!(all.ranges.unwrap().ages, None);
    let listed = Query::new(&[1.0], T, 9).of(Candidates::Rows(&[4, 1, 0, 3]));
    let listed = memories.rank(&listed, &scoring);
    assert_eq!(rows(&listed), [4, 0, 3]);
    assert_abs_diff_eq!(raw(&listed, 3), 0.970299, epsilon = 1e-15);
    for (decay, expected) in [(1.0, 0.5), (0.0, 0.5)] {
        let flat = Scoring {
            recency: Recency::Position { decay },
            ..scoring
        };
        let ranking = memories.rank(&Query::new(&[1.0], T, 9), &flat);
        assert_eq!(scores(&ranking), [expected; 4]);
    }
}

#[test]
fn a_position_counts_across_blocks_and_threads() {
    let n = 5000;
    let memories = Memories::of_accesses(&vec![T; n]);
    let scoring = Scoring {
        recency: Recency::Position { decay: 0.999 },
        ..weighted(0.0, 1.0, 0.0)
    };
    let list: Vec<u32> = (0..n as u32).rev().collect();
    let query = Query::new(&[1.0], T, n).of(Candidates::Rows(&list));
    on_all_threads(|par| {
        let columns = [memories.part(0..777), memories.part(777..n)];
        let kernel = best_kernel();
        let ranking = rank_with(&columns, &query, &scoring, par, kernel).unwrap();
        for (position, hit) in (1..).zip(&ranking.hits) {
            assert_eq!(hit.row, n - position as usize);
            assert_relative_eq!(
                hit.recency.raw,
                0.999f64.powi(position),
                max_relative = 1e-12
            );
        }
    });
}

#[test]
fn extreme_times_and_units_stay_in_range() {
    let accesses = [i64::MIN, i64::MAX, 0, -1, 1, i64::MIN + 1];
    for decay in [0.0, 1e-300, 0.5, 0.995, 1.0 - f64::EPSILON / 2.0, 1.0] {
        for since in [Since::Now, Since::NewestAccess] {
            for unit in [1, HOUR as u64, u64::MAX] {
                for now in [i64::MIN, -1, 0, 1, i64::MAX] {
                    let scoring = ticks(recency_only(decay, since), unit);
                    let ranking = by_recency(&accesses, now, &scoring);
                    let ages = ranking.ranges.unwrap().ages.unwrap();
                    if now == i64::MAX {
                        assert_eq!((ages.youngest, ages.oldest), (0, u64::MAX));
                    }
                    let raw = ticks(Scoring { ..unnormalized() }, unit);
                    by_recency(&accesses, now, &raw);
                }
            }
        }
    }
    // Everyone is in the future of the first moment.
    let ranking = by_recency(&accesses, i64::MIN, &weighted(0.0, 1.0, 0.0));
    assert_eq!(scores(&ranking), [0.5; 6]);
    // The whole of time in one unit: from 1 to the half-way value to 0.
    let ranking = by_recency(
        &[i64::MIN, 0, i64::MAX],
        i64::MAX,
        &ticks(recency_only(0.25, Since::Now), u64::MAX),
    );
    assert_eq!(rows(&ranking), [2, 1, 0]);
    assert_abs_diff_eq!(scores(&ranking)[1], (0.5 - 0.25) / 0.75, epsilon = 1e-12);
}
