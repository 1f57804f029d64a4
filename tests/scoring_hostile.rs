//! Input that no one should give: an error or a sound ranking, never a panic, a NaN or an infinity.

mod common;
mod ranking;

use common::{Random, best_kernel, kernels, say};
use half::f16;
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{
    Candidates, Components, Normalization, Query, RankError, Ranking, Recency, Scoring, Since,
    Ties, Weights, Workspace, rank_components,
};
use ranking::reference::assert_ranks_like_the_reference;
use ranking::*;
use std::num::NonZeroU64;

const FINITE: [f32; 13] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    1e38,
    65504.0,
    1e-8,
];

/// Those, and what is not finite.
const FLOATS: [f32; 16] = {
    let mut floats = [f32::NAN; 16];
    let (finite, rest) = floats.split_at_mut(FINITE.len());
    finite.copy_from_slice(&FINITE);
    rest.copy_from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
    floats
};

const TIMES: [i64; 8] = [i64::MIN, i64::MIN + 1, -1, 0, 1, T, i64::MAX - 1, i64::MAX];

const WEIGHTS: [f64; 9] = [0.0, -0.0, 1.0, 0.5, 1e-300, 5e-324, 1e300, 5e307, f64::MAX];

const DECAYS: [f64; 9] = [
    0.0,
    -0.0,
    5e-324,
    1e-300,
    0.5,
    0.995,
    1.0 - f64::EPSILON / 2.0,
    1.0,
    1.0 + f64::EPSILON,
];

fn pick<X: Copy>(random: &mut Random, from: &[X]) -> X {
    from[random.below(from.len() as u64) as usize]
}

/// Mostly a value of `usual`, sometimes any of `from`.
fn mostly<X: Copy>(random: &mut Random, percent: u64, usual: X, from: &[X]) -> X {
    if random.below(100) < percent {
        usual
    } else {
        pick(random, from)
    }
}

fn scoring(random: &mut Random) -> Scoring {
    let decay = pick(random, &DECAYS);
    let ticks = [1, 2, HOUR as u64, u64::MAX];
    Scoring {
        weights: Weights {
            relevance: pick(random, &WEIGHTS),
            recency: pick(random, &WEIGHTS),
            importance: pick(random, &WEIGHTS),
        },
        recency: match random.below(3) {
            0 => Recency::Position { decay },
            _ => Recency::Age {
                decay,
                ticks_per_unit: NonZeroU64::new(pick(random, &ticks)).unwrap(),
                since: pick(random, &[Since::Now, Since::NewestAccess]),
            },
        },
        normalization: match random.below(2) {
            0 => Normalization::MinMax {
                constant: pick(random, &[0.0, -0.0, 0.5, 1.0, 5e-324]),
            },
            _ => Normalization::None {
                importance_divisor: pick(
                    random,
                    &[10.0, f64::from(f32::MIN_POSITIVE), f64::MAX, 0.0],
                ),
            },
        },
    }
}

/// Selection first cuts when it has 64 rows, so that most counts are beyond.
fn row_count(random: &mut Random) -> usize {
    match random.below(4) {
        0 => random.below(40) as usize,
        _ => random.below(300) as usize,
    }
}

/// A ranking of anything is sound, the reference's, and the same for every kernel and number of threads; or an error
/// of which that is true too.
fn try_everywhere(memories: &Memories, query: &Query<'_>, scoring: &Scoring) -> bool {
    let columns = [memories.columns()];
    let serial = rank_with(&columns, query, scoring, Par::Serial, best_kernel());
    if let Ok(ranking) = &serial {
        assert_sound(ranking, query);
        let relevance = memories.cosines(best_kernel(), query.embedding);
        let components =
            Components::new(&relevance, &memories.last_access, &memories.importance).unwrap();
        let fed = assert_ranks_like_the_reference(&components, query, scoring);
        assert_eq!(bits(&fed.unwrap()), bits(ranking));
    }
    let say = |result: &Result<Ranking, RankError>| match result {
        Ok(ranking) => format!("{:?}", bits(ranking)),
        Err(error) => format!("{error:?} {error}"),
    };
    let expected = say(&serial);
    for kernel in kernels() {
        let found = rank_with(&columns, query, scoring, Par::Serial, kernel);
        assert_eq!(say(&found), expected);
    }
    #[cfg(feature = "rayon")]
    pools()[2].install(|| {
        let found = rank_with(&columns, query, scoring, Par::Rayon, best_kernel());
        assert_eq!(say(&found), expected);
    });
    serial.is_ok()
}

#[test]
fn columns_of_any_bits_are_ranked_or_refused() {
    let mut sound = 0;
    for seed in 0..3000 {
        let random = &mut Random(seed);
        let dim = pick(random, &[1, 2, 3, 16, 17, 33]);
        let n = row_count(random);
        // From tame to wild; of many rows one would always be refused.
        let percent = match n {
            0..40 => pick(random, &[100, 99, 90, 0]),
            _ => 100,
        };
        let dtype = pick(random, &DTYPES);
        let elements: Vec<f32> = (0..n * dim)
            .map(|_| {
                let usual = random.signed();
                mostly(random, percent, usual, &FLOATS)
            })
            .collect();
        let mut columns = |usual: f32| -> Vec<f32> {
            (0..n)
                .map(|_| mostly(random, percent, usual, &FLOATS))
                .collect()
        };
        // Inverse norms that belong to no row at all.
        let inv_norms = columns(0.5);
        let mut importance = columns(3.0);
        if n >= 40 {
            importance.fill_with(|| pick(random, &FINITE));
        }
        let memories = Memories {
            dim: dim.try_into().unwrap(),
            elements: match dtype {
                Dtype::F32 => Elements::F32(elements),
                Dtype::F16 => Elements::F16(elements.iter().map(|&x| f16::from_f32(x)).collect()),
            },
            inv_norms,
            importance,
            last_access: (0..n).map(|_| pick(random, &TIMES)).collect(),
        };
        let embedding: Vec<f32> = (0..dim)
            .map(|_| mostly(random, 99, 0.25, &FLOATS))
            .collect();
        let list: Vec<u32> = (0..n as u32).rev().collect();
        let set = pick(random, &[Candidates::All, Candidates::Rows(&list)]);
        let query = Query {
            ties: pick(random, &[Ties::Row, Ties::Listed]),
            now: pick(random, &TIMES),
            ..Query::new(&embedding, 0, pick(random, &[0, 1, 5, usize::MAX])).of(set)
        };
        let scoring = scoring(random);
        let done = std::panic::catch_unwind(|| try_everywhere(&memories, &query, &scoring));
        sound += usize::from(done.unwrap_or_else(|_| panic!("seed {seed}: {scoring:?}")));
    }
    say(format_args!("{sound} rankings, the rest refused"));
    assert!(sound > 1000, "too few rankings to mean anything: {sound}");
}

#[test]
fn components_of_any_bits_are_ranked_or_refused() {
    let mut sound = 0;
    for seed in 0..20_000 {
        let random = &mut Random(seed);
        let n = match random.below(10) {
            0 => row_count(random),
            _ => random.below(12) as usize,
        };
        let percent = match n {
            0..12 => pick(random, &[100, 90, 50]),
            _ => 100,
        };
        let mut column = || -> Vec<f32> {
            let usual: Vec<f32> = (0..n).map(|_| pick(random, &FINITE)).collect();
            usual
                .into_iter()
                .map(|x| mostly(random, percent, x, &FLOATS))
                .collect()
        };
        let (relevance, importance) = (column(), column());
        let accesses: Vec<i64> = (0..n).map(|_| pick(random, &TIMES)).collect();
        let components = Components::new(&relevance, &accesses, &importance).unwrap();
        let query = Query::new(&[], pick(random, &TIMES), pick(random, &[1, 3, usize::MAX]));
        let scoring = scoring(random);
        let done = std::panic::catch_unwind(|| {
            assert_ranks_like_the_reference(&components, &query, &scoring).is_ok()
        });
        sound += usize::from(done.unwrap_or_else(|_| panic!("seed {seed}: {scoring:?}")));
    }
    say(format_args!("{sound} rankings, the rest refused"));
    assert!(sound > 2000, "too few rankings to mean anything: {sound}");
}

#[test]
fn inverse_norms_that_are_wrong_stay_within_the_clamp() {
    for dtype in DTYPES {
        let g = set_g(dtype);
        for factor in [0.5, 2.0, 1e30, 1e-30, 1e-45] {
            let mut wrong = set_g(dtype);
            wrong.inv_norms.iter_mut().for_each(|x| *x *= factor);
            wrong.inv_norms[0] = wrong.inv_norms[0].max(f32::from_bits(1));
            let query = Query::new(&G_QUERY, T, 3);
            let ranking = wrong.rank(&query, &paper());
            assert_sound(&ranking, &query);
            for hit in &ranking.hits {
                assert!((-1.0..=1.0).contains(&hit.relevance.raw));
            }
        }
        for value in [-1.0, -1e-45, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for row in 0..3 {
                let mut wrong = set_g(dtype);
                wrong.inv_norms[row] = value;
                for kernel in kernels() {
                    let query = Query::new(&G_QUERY, T, 3);
                    match rank_with(&[wrong.columns()], &query, &paper(), Par::Serial, kernel) {
                        Err(RankError::InverseNorm { row: r, value: v }) => {
                            assert_eq!((r, v.to_bits()), (row, value.to_bits()));
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        // Minus zero is no vector either.
        let mut without = set_g(dtype);
        without.inv_norms[1] = -0.0;
        let ranking = without.rank(&Query::new(&G_QUERY, T, 3), &paper());
        assert_eq!((ranking.candidates, rows(&ranking)), (2, vec![0, 2]));
        assert_eq!(g.len(), 3);
    }
}

#[test]
fn huge_k_and_many_threads_cost_no_more_than_the_candidates() {
    let n = 3000;
    let memories = Memories::of_accesses(&(0..n).map(|i| T - i).collect::<Vec<i64>>());
    on_all_threads(|par| {
        for k in [usize::MAX, usize::MAX - 1, usize::MAX / 2, 1 << 40] {
            let query = Query::new(&[1.0], T, k);
            let columns = [memories.columns()];
            let ranking = rank_with(&columns, &query, &paper(), par, best_kernel()).unwrap();
            assert_sound(&ranking, &query);
            assert_eq!(rows(&ranking), (0..n as usize).collect::<Vec<_>>());
        }
    });
}

#[test]
fn masks_far_too_long_are_refused() {
    let mask = vec![u64::MAX; 1 << 20];
    let query = Query::new(&G_QUERY, T, 3).of(Candidates::Mask(&mask));
    assert_eq!(
        set_g(Dtype::F32).try_rank(&query, &paper()),
        Err(RankError::MaskLength {
            found: 1 << 20,
            expected: 1
        })
    );
    let list = vec![0; 1 << 20];
    let query = Query::new(&G_QUERY, T, 3).of(Candidates::Rows(&list));
    assert_eq!(
        set_g(Dtype::F32).try_rank(&query, &paper()),
        Err(RankError::ListedTwice { row: 0 })
    );
}

#[test]
fn very_long_vectors_are_vectors() {
    let mut random = Random(100);
    for dim in [65_536, 100_000, 100_001] {
        for dtype in DTYPES {
            let elements = random.vector(3 * dim);
            let memories = Memories::new(dtype, dim, &elements, &[T; 3], &[1.0; 3]);
            let embedding = &elements[dim..2 * dim];
            let exact = memorank::oracle::cosines(&[memories.columns()], embedding).unwrap();
            let mut seen = None;
            for kernel in kernels() {
                let cosines = memories.cosines(kernel, embedding);
                for (found, exact) in cosines.iter().zip(&exact) {
                    assert!((f64::from(*found) - exact).abs() < 1e-5);
                }
                let bits: Vec<u32> = cosines.iter().map(|x| x.to_bits()).collect();
                assert_eq!(seen.get_or_insert_with(|| bits.clone()), &bits);
            }
        }
    }
}

#[test]
fn relevances_that_are_no_cosines_do_not_overflow_unseen() {
    // Callers with a similarity of their own may have any finite one.
    let relevance = [f32::MAX, f32::MIN, 0.5];
    let components = [Components::new(&relevance, &[T; 3], &[1.0; 3]).unwrap()];
    let query = Query::new(&[], T, 3);
    let mut ranking = Ranking::default();
    let mut rank = |scoring| {
        rank_components(
            &components,
            &query,
            &scoring,
            Par::Serial,
            &mut Workspace::new(),
            &mut ranking,
        )
        .map(|()| ranking.clone())
    };
    let heavy = Scoring {
        weights: weighted(1e300, 1.0, 1.0).weights,
        ..unnormalized()
    };
    assert!(matches!(rank(heavy), Err(RankError::Overflow { .. })));
    for scoring in [paper(), unnormalized(), weighted(1e300, 1.0, 1.0)] {
        let ranking = rank(scoring).unwrap();
        assert_eq!(rows(&ranking), [0, 2, 1]);
        assert_sound(&ranking, &query);
    }
}
