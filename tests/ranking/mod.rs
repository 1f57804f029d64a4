//! What the ranking tests share: memories that own their columns, every place a ranking can run in,
//! and rankings as bits.
#![allow(dead_code)]

pub mod reference;

use crate::common::best_kernel;
use half::f16;
use memorank::Par;
use memorank::kernel::{Dtype, Kernel, Rows, inv_norms};
use memorank::scoring::{
    Candidates, Columns, Component, Hit, MICROSECONDS_PER_HOUR, Normalization, Preset, Query,
    RankError, Ranking, Recency, Scoring, Since, Weights, Workspace, rank_into, relevance_into,
};
use std::num::NonZeroUsize;
use std::ops::Range;

pub const HOUR: i64 = MICROSECONDS_PER_HOUR.get() as i64;
pub const MINUTE: i64 = HOUR / 60;

/// The moment of asking in most tests.
pub const T: i64 = 1_700_000_000_000_000;

pub const DTYPES: [Dtype; 2] = [Dtype::F32, Dtype::F16];

pub enum Elements {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

impl Elements {
    pub fn new(dtype: Dtype, elements: &[f32]) -> Elements {
        match dtype {
            Dtype::F32 => Elements::F32(elements.to_vec()),
            Dtype::F16 => Elements::F16(elements.iter().map(|&x| f16::from_f32(x)).collect()),
        }
    }

    pub fn rows(&self, elements: Range<usize>) -> Rows<'_> {
        match self {
            Elements::F32(s) => Rows::F32(&s[elements]),
            Elements::F16(s) => Rows::F16(&s[elements]),
        }
    }
}

/// Memories that own their columns. Public, so that a test can spoil them.
pub struct Memories {
    pub dim: NonZeroUsize,
    pub elements: Elements,
    pub inv_norms: Vec<f32>,
    pub last_access: Vec<i64>,
    pub importance: Vec<f32>,
}

impl Memories {
    /// Rows of zeros are memories without a vector.
    pub fn new(
        dtype: Dtype,
        dim: usize,
        elements: &[f32],
        last_access: &[i64],
        importance: &[f32],
    ) -> Memories {
        let width = NonZeroUsize::new(dim).unwrap();
        let elements = Elements::new(dtype, elements);
        let norms = (0..last_access.len()).map(|row| {
            let rows = elements.rows(row * dim..(row + 1) * dim);
            if rows.widen(width, 0).iter().all(|&x| x == 0.0) {
                return 0.0;
            }
            let mut norm = [0.0];
            inv_norms(width, rows, &mut norm).unwrap();
            norm[0]
        });
        Memories {
            dim: width,
            inv_norms: norms.collect(),
            last_access: last_access.to_vec(),
            importance: importance.to_vec(),
            elements,
        }
    }

    /// Memories that differ in their vectors only.
    pub fn of_vectors(dtype: Dtype, vectors: &[impl AsRef<[f32]>]) -> Memories {
        let n = vectors.len();
        let elements: Vec<f32> = vectors.iter().flat_map(|v| v.as_ref()).copied().collect();
        Memories::new(
            dtype,
            elements.len() / n,
            &elements,
            &vec![T; n],
            &vec![1.0; n],
        )
    }

    /// Memories that differ in their last access only.
    pub fn of_accesses(last_access: &[i64]) -> Memories {
        let n = last_access.len();
        Memories::new(Dtype::F32, 1, &vec![1.0; n], last_access, &vec![1.0; n])
    }

    pub fn len(&self) -> usize {
        self.last_access.len()
    }

    pub fn columns(&self) -> Columns<'_> {
        self.part(0..self.len())
    }

    /// Some rows as a segment of their own.
    pub fn part(&self, rows: Range<usize>) -> Columns<'_> {
        let dim = self.dim.get();
        Columns::new(
            self.dim,
            self.elements.rows(rows.start * dim..rows.end * dim),
            &self.inv_norms[rows.clone()],
            &self.last_access[rows.clone()],
            &self.importance[rows],
        )
        .unwrap()
    }

    /// Ranked on one thread with the best kernel.
    pub fn try_rank(&self, query: &Query<'_>, scoring: &Scoring) -> Result<Ranking, RankError> {
        rank_with(
            &[self.columns()],
            query,
            scoring,
            Par::Serial,
            best_kernel(),
        )
    }

    pub fn rank(&self, query: &Query<'_>, scoring: &Scoring) -> Ranking {
        self.try_rank(query, scoring).unwrap()
    }

    /// The cosine of every row with a query; NaN for rows without a vector.
    pub fn cosines(&self, kernel: Kernel, embedding: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.len()];
        relevance_into(
            &[self.columns()],
            &[embedding],
            Candidates::All,
            Par::Serial,
            &mut Workspace::with_kernel(kernel),
            &mut out,
        )
        .unwrap();
        out
    }
}

/// Set G: three memories of two dimensions, asked with [1, 0] at T.
pub fn set_g(dtype: Dtype) -> Memories {
    Memories::new(
        dtype,
        2,
        &[1.0, 0.0, 0.6, 0.8, 0.0, 1.0],
        &[T - 10 * HOUR, T, T - 100 * HOUR],
        &[2.0, 8.0, 5.0],
    )
}

pub const G_QUERY: [f32; 2] = [1.0, 0.0];

pub fn paper() -> Scoring {
    Preset::paper().scoring
}

/// The paper's scoring with other weights.
pub fn weighted(relevance: f64, recency: f64, importance: f64) -> Scoring {
    Scoring {
        weights: Weights {
            relevance,
            recency,
            importance,
        },
        ..paper()
    }
}

/// Recency alone, by age.
pub fn recency_only(decay: f64, since: Since) -> Scoring {
    Scoring {
        recency: Recency::Age {
            decay,
            ticks_per_unit: MICROSECONDS_PER_HOUR,
            since,
        },
        ..weighted(0.0, 1.0, 0.0)
    }
}

pub fn unnormalized() -> Scoring {
    Scoring {
        normalization: Normalization::None {
            importance_divisor: 10.0,
        },
        ..paper()
    }
}

pub fn rank_with(
    columns: &[Columns<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
    par: Par,
    kernel: Kernel,
) -> Result<Ranking, RankError> {
    let mut ranking = Ranking::default();
    let mut workspace = Workspace::with_kernel(kernel);
    rank_into(columns, query, scoring, par, &mut workspace, &mut ranking)?;
    Ok(ranking)
}

pub fn rows(ranking: &Ranking) -> Vec<usize> {
    ranking.hits.iter().map(|hit| hit.row).collect()
}

pub fn scores(ranking: &Ranking) -> Vec<f64> {
    ranking.hits.iter().map(|hit| hit.score).collect()
}

/// The hit of a row.
pub fn hit(ranking: &Ranking, row: usize) -> Hit {
    *ranking.hits.iter().find(|hit| hit.row == row).unwrap()
}

pub fn hit_bits(hit: &Hit) -> Vec<u64> {
    let component = |c: Component| [c.raw, c.normalized, c.weighted];
    let numbers = [hit.relevance, hit.recency, hit.importance].map(component);
    let numbers = numbers.as_flattened().iter().chain([&hit.score]);
    let bits = numbers.map(|x| x.to_bits());
    [hit.row as u64].into_iter().chain(bits).collect()
}

/// Everything in a ranking, to the last bit.
pub fn bits(ranking: &Ranking) -> Vec<u64> {
    let mut bits = vec![ranking.candidates as u64];
    if let Some(ranges) = ranking.ranges {
        for range in [ranges.relevance, ranges.recency, ranges.importance] {
            bits.extend([range.min.to_bits(), range.max.to_bits()]);
        }
        bits.extend(ranges.ages.map_or([1, 0], |a| [a.youngest, a.oldest]));
    }
    bits.extend(ranking.hits.iter().flat_map(hit_bits));
    bits
}

/// Pools of 1, 2, 3 and 8 threads.
#[cfg(feature = "rayon")]
pub fn pools() -> &'static [rayon::ThreadPool] {
    static POOLS: std::sync::OnceLock<Vec<rayon::ThreadPool>> = std::sync::OnceLock::new();
    POOLS.get_or_init(|| {
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap()
        };
        [1, 2, 3, 8].into_iter().map(pool).collect()
    })
}

/// Runs `f` serially and in every pool.
pub fn on_all_threads(f: impl Fn(Par) + Sync) {
    f(Par::Serial);
    #[cfg(feature = "rayon")]
    for pool in pools() {
        pool.install(|| f(Par::Rayon));
    }
}

/// No panic so far; and every number of a ranking is a number.
pub fn assert_sound(ranking: &Ranking, query: &Query<'_>) {
    assert_eq!(ranking.hits.len(), query.k.min(ranking.candidates));
    assert_eq!(ranking.ranges.is_some(), ranking.candidates > 0);
    for hit in &ranking.hits {
        for bits in &hit_bits(hit)[1..] {
            assert!(f64::from_bits(*bits).is_finite(), "{hit:?}");
        }
        assert!((0.0..=1.0).contains(&hit.recency.normalized), "{hit:?}");
        let sum = (hit.relevance.weighted + hit.recency.weighted) + hit.importance.weighted;
        assert_eq!(hit.score, sum, "{hit:?}");
    }
    for pair in ranking.hits.windows(2) {
        assert!(pair[0].score >= pair[1].score, "{pair:?}");
    }
}
