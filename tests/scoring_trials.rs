//! The formula, its normaliser and its weights, on numbers worked out by hand.

mod common;
mod ranking;

use approx::assert_abs_diff_eq;
use common::{Random, kernels};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{
    Normalization, Preset, Query, Range, RankError, Scoring, ScoringError, Weights,
};
use ranking::*;

fn g_query(k: usize) -> Query<'static> {
    Query::new(&G_QUERY, T, k)
}

fn assert_scores(ranking: &memorank::scoring::Ranking, expected: &[(usize, f64)], epsilon: f64) {
    let found: Vec<_> = rows(ranking).into_iter().zip(scores(ranking)).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.0, expected.0, "{ranking:?}");
        assert_abs_diff_eq!(found.1, expected.1, epsilon = epsilon);
    }
}

#[test]
fn set_g_has_its_numbers_on_every_kernel() {
    for dtype in DTYPES {
        // 0.6 and 0.8 are not exact: f16 keeps 3 digits of them.
        let epsilon = if dtype == Dtype::F32 { 5e-7 } else { 5e-4 };
        let g = set_g(dtype);
        for kernel in kernels() {
            let ranking =
                rank_with(&[g.columns()], &g_query(3), &paper(), Par::Serial, kernel).unwrap();
            assert_scores(&ranking, &[(1, 2.6), (0, 1.875986), (2, 0.5)], epsilon);
            let expected = [
                (0, [1.0, 0.875986, 0.0]),
                (1, [0.6, 1.0, 1.0]),
                (2, [0.0, 0.0, 0.5]),
            ];
            for (row, [relevance, recency, importance]) in expected {
                let hit = hit(&ranking, row);
                assert_abs_diff_eq!(hit.relevance.normalized, relevance, epsilon = epsilon);
                assert_abs_diff_eq!(hit.recency.normalized, recency, epsilon = 5e-7);
                assert_abs_diff_eq!(hit.importance.normalized, importance, epsilon = 1e-15);
            }
            assert_eq!(ranking.candidates, 3);
            let ranges = ranking.ranges.unwrap();
            assert_eq!(ranges.importance, Range { min: 2.0, max: 8.0 });
            let ages = ranges.ages.unwrap();
            assert_eq!((ages.youngest, ages.oldest), (0, 100 * HOUR as u64));
            assert_abs_diff_eq!(ranges.recency.min, 0.995f64.powi(100), epsilon = 1e-15);
        }
    }
}

#[test]
fn every_candidate_is_returned_the_lowest_included() {
    // B03: in G the last row has two components of 0; a lone row has nothing but constants.
    let g = set_g(Dtype::F32);
    assert_eq!(rows(&g.rank(&g_query(3), &paper())), [1, 0, 2]);
    let lone = Memories::of_vectors(Dtype::F32, &[[0.0, -1.0]]);
    let ranking = lone.rank(&g_query(1), &paper());
    assert_scores(&ranking, &[(0, 1.5)], 0.0);
    assert_eq!(hit(&ranking, 0).relevance.raw, 0.0);
}

#[test]
fn a_flat_component_gives_everyone_the_constant() {
    // B04, B05: there is no target range but [0, 1], whose middle is 0.5.
    let flat_importance = {
        let mut g = set_g(Dtype::F32);
        g.importance = vec![5.0; 3];
        g.rank(&g_query(3), &paper())
    };
    assert_scores(&flat_importance, &[(0, 2.375986), (1, 2.1), (2, 0.5)], 5e-7);
    let flat_recency = {
        let mut g = set_g(Dtype::F32);
        g.last_access = vec![T; 3];
        g.rank(&g_query(3), &paper())
    };
    assert_scores(&flat_recency, &[(1, 2.1), (0, 1.5), (2, 1.0)], 5e-7);
    let same = Memories::new(
        Dtype::F32,
        2,
        &[0.6, 0.8, 0.6, 0.8, 0.6, 0.8],
        &[T - 10 * HOUR, T, T - 100 * HOUR],
        &[2.0, 8.0, 5.0],
    );
    assert_scores(
        &same.rank(&g_query(3), &paper()),
        &[(1, 2.5), (0, 1.375986), (2, 1.0)],
        5e-7,
    );
    let all_flat = Memories::of_vectors(Dtype::F32, &[[0.6, 0.8]; 3]);
    let ranking = all_flat.rank(&g_query(3), &paper());
    assert_scores(&ranking, &[(0, 1.5), (1, 1.5), (2, 1.5)], 0.0);
    for constant in [0.0, 0.25, 1.0] {
        let scoring = Scoring {
            normalization: Normalization::MinMax { constant },
            ..paper()
        };
        let total = 3.0 * constant;
        let ranking = all_flat.rank(&g_query(3), &scoring);
        assert_scores(&ranking, &[(0, total), (1, total), (2, total)], 0.0);
    }
}

#[test]
fn a_weight_of_zero_is_zero() {
    // B64, and B66 for the library: each weight drives its own column.
    type Normalized = fn(&memorank::scoring::Hit) -> f64;
    let cases: [([f64; 3], [usize; 3], Normalized); 3] = [
        ([0.0, 0.0, 1.0], [1, 2, 0], |hit| hit.importance.normalized),
        ([0.0, 1.0, 0.0], [1, 0, 2], |hit| hit.recency.normalized),
        ([1.0, 0.0, 0.0], [0, 1, 2], |hit| hit.relevance.normalized),
    ];
    let g = set_g(Dtype::F32);
    for ([relevance, recency, importance], order, normalized) in cases {
        let ranking = g.rank(&g_query(3), &weighted(relevance, recency, importance));
        assert_eq!(rows(&ranking), order);
        for hit in &ranking.hits {
            assert_eq!(hit.score.to_bits(), normalized(hit).to_bits());
        }
    }
}

#[test]
fn weights_of_zero_leave_the_order_of_rows() {
    // B65. Minus zero is zero too: it must not order anyone.
    let mut random = Random(65);
    let n = 300;
    let accesses: Vec<i64> = (0..n).map(|_| T - random.below(1 << 40) as i64).collect();
    let importance: Vec<f32> = (0..n).map(|_| random.signed()).collect();
    let memories = Memories::new(Dtype::F32, 3, &random.vector(3 * n), &accesses, &importance);
    let embedding = random.vector(3);
    for zeros in [[0.0; 3], [-0.0; 3], [0.0, -0.0, 0.0], [-0.0, 0.0, -0.0]] {
        for base in [paper(), unnormalized()] {
            let [relevance, recency, importance] = zeros;
            let scoring = Scoring {
                weights: Weights {
                    relevance,
                    recency,
                    importance,
                },
                ..base
            };
            let ranking = memories.rank(&Query::new(&embedding, T, n), &scoring);
            assert_eq!(rows(&ranking), (0..n).collect::<Vec<_>>(), "{scoring:?}");
            assert!(ranking.hits.iter().all(|hit| hit.score.to_bits() == 0));
        }
    }
}

#[test]
fn a_constant_of_minus_zero_orders_no_one() {
    // Only recency varies, and old enough rows all have 0 of it.
    let ages = [0, 400_000, 300_000, 390_000, 400_000];
    let memories = Memories::of_accesses(&ages.map(|hours| T - hours * HOUR));
    let scoring = Scoring {
        normalization: Normalization::MinMax { constant: -0.0 },
        ..paper()
    };
    let ranking = memories.rank(&Query::new(&[1.0], T, 5), &scoring);
    assert_eq!(rows(&ranking), [0, 1, 2, 3, 4]);
}

#[test]
fn the_smallest_of_a_component_is_plus_zero() {
    let ranking = set_g(Dtype::F32).rank(&g_query(3), &paper());
    for bits in ranking.hits.iter().flat_map(hit_bits) {
        assert_ne!(bits, (-0.0f64).to_bits(), "{ranking:?}");
    }
}

#[test]
fn weights_out_of_range_are_refused() {
    // B65.
    let g = set_g(Dtype::F32);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -1e-300] {
        let cases = [
            ("relevance", weighted(bad, 1.0, 1.0)),
            ("recency", weighted(1.0, bad, 1.0)),
            ("importance", weighted(1.0, 1.0, bad)),
        ];
        for (name, scoring) in cases {
            match g.try_rank(&g_query(3), &scoring) {
                Err(RankError::Scoring(ScoringError::Weight { component, weight })) => {
                    assert_eq!(component, name);
                    assert_eq!(weight.to_bits(), bad.to_bits());
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(
        g.try_rank(&g_query(3), &weighted(1e308, 1e308, 1e308)),
        Err(RankError::Scoring(ScoringError::WeightSum))
    );
    let largest = g.rank(&g_query(3), &weighted(5e307, 5e307, 5e307));
    assert_eq!(rows(&largest), [1, 0, 2]);
    assert_sound(&largest, &g_query(3));
}

#[test]
fn other_settings_out_of_range_are_refused() {
    let g = set_g(Dtype::F32);
    for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        let scoring = Scoring {
            normalization: Normalization::MinMax { constant: bad },
            ..paper()
        };
        let error = g.try_rank(&g_query(3), &scoring).unwrap_err();
        assert!(matches!(
            error,
            RankError::Scoring(ScoringError::Constant(x)) if x.to_bits() == bad.to_bits()
        ));
    }
    for bad in [f64::NAN, 0.0, -10.0, f64::INFINITY, 1e-39] {
        let scoring = Scoring {
            normalization: Normalization::None {
                importance_divisor: bad,
            },
            ..paper()
        };
        let error = g.try_rank(&g_query(3), &scoring).unwrap_err();
        assert!(matches!(
            error,
            RankError::Scoring(ScoringError::ImportanceDivisor(x)) if x.to_bits() == bad.to_bits()
        ));
    }
}

#[test]
fn without_min_max_values_count_as_they_are() {
    let ranking = set_g(Dtype::F32).rank(&g_query(3), &unnormalized());
    let expected = [
        (1, 0.6 + 1.0 + 0.8),
        (0, 1.0 + 0.995f64.powi(10) + 0.2),
        (2, 0.995f64.powi(100) + 0.5),
    ];
    assert_scores(&ranking, &expected, 5e-7);
    for hit in &ranking.hits {
        assert_eq!(hit.relevance.raw, hit.relevance.normalized);
        assert_eq!(hit.recency.raw, hit.recency.normalized);
        assert_eq!(hit.importance.raw / 10.0, hit.importance.normalized);
    }
}

#[test]
fn without_min_max_an_overflow_is_refused() {
    let mut g = set_g(Dtype::F32);
    for extreme in [f32::MAX, f32::MIN] {
        g.importance = vec![1.0, extreme, 2.0];
        let scoring = Scoring {
            weights: weighted(1.0, 1.0, 1e300).weights,
            ..unnormalized()
        };
        let importance = f64::from(f32::MAX);
        assert_eq!(
            g.try_rank(&g_query(3), &scoring),
            Err(RankError::Overflow { importance })
        );
        // The same numbers are no trouble within range, or under min-max.
        assert_sound(&g.rank(&g_query(3), &unnormalized()), &g_query(3));
        assert_sound(
            &g.rank(&g_query(3), &weighted(1.0, 1.0, 1e300)),
            &g_query(3),
        );
    }
}

#[test]
fn importances_of_every_size_are_stretched_to_0_and_1() {
    let extremes = [
        [f32::MIN, 0.0, f32::MAX],
        [-f32::from_bits(1), 0.0, f32::from_bits(1)],
        [1e-40, 2e-40, 3e-40],
    ];
    for importance in extremes {
        let mut g = set_g(Dtype::F32);
        g.importance = importance.to_vec();
        let ranking = g.rank(&g_query(3), &weighted(0.0, 0.0, 1.0));
        assert_eq!(rows(&ranking), [2, 1, 0]);
        let normalized = scores(&ranking);
        assert_eq!((normalized[0], normalized[2]), (1.0, 0.0));
        assert_abs_diff_eq!(normalized[1], 0.5, epsilon = 1e-4);
    }
    // Minus zero is zero: flat, and reported without its sign.
    let mut g = set_g(Dtype::F32);
    g.importance = vec![-0.0, 0.0, -0.0];
    let ranking = g.rank(&g_query(3), &weighted(0.0, 0.0, 1.0));
    assert_eq!(rows(&ranking), [0, 1, 2]);
    assert!(ranking.hits.iter().all(|hit| hit.score == 0.5));
    let range = ranking.ranges.unwrap().importance;
    for raw in [hit(&ranking, 0).importance.raw, range.min, range.max] {
        assert_eq!(raw.to_bits(), 0);
    }
}

#[test]
fn presets_are_what_they_are_called() {
    for name in Preset::NAMES {
        let preset = Preset::named(name).unwrap();
        assert_eq!(preset.scoring.check(), Ok(()), "{name}");
        let ranking = set_g(Dtype::F32).rank(&g_query(3), &preset.scoring);
        assert_sound(&ranking, &g_query(3));
    }
    assert_eq!(Preset::named("Paper"), None);
    // Reverie on G as listed: raw recency 0.99, 0.9801, 0.970299; 0.5 * that + 3 * 1, 0.6, 0 + 2 * 0, 1, 0.5.
    let ranking = set_g(Dtype::F32).rank(&g_query(3), &Preset::reverie().scoring);
    let middle = 0.5 * (0.9801 - 0.970299) / (0.99 - 0.970299);
    assert_scores(
        &ranking,
        &[(1, 1.8 + middle + 2.0), (0, 3.5), (2, 1.0)],
        5e-7,
    );
    // genagents on G: relevance + importance / 2.
    let ranking = set_g(Dtype::F32).rank(&g_query(3), &Preset::genagents().scoring);
    assert_scores(&ranking, &[(1, 1.1), (0, 1.0), (2, 0.25)], 5e-7);
}
