//! Stores and queries of many kinds, each from a seed: constant columns, ties, large and tiny vectors,
//! near-parallel ones, ancient and future times.

use crate::common::Random;
use crate::ranking::*;
use memorank::kernel::{Dtype, LENGTH_MIN};
use memorank::scoring::{
    Candidates, MICROSECONDS_PER_HOUR, Normalization, Preset, Query, Recency, Scoring, Since, Ties,
    Weights,
};
use std::num::NonZeroU64;

fn pick<X: Copy>(random: &mut Random, from: &[X]) -> X {
    from[random.below(from.len() as u64) as usize]
}

/// Vectors of many shapes: `n` rows of `dim`, some of them all zero (no vector).
fn vectors(random: &mut Random, dtype: Dtype, dim: usize, n: usize) -> Vec<f32> {
    let base = random.vector(dim);
    let sizes: &[f32] = match dtype {
        Dtype::F32 => &[1.0, 1e-4, 1e-25, 3e-28, 1e-9, 1e20, 1e26],
        Dtype::F16 => &[1.0, 1e-2, 1e-4, 1e-6, 100.0, 6e4],
    };
    let style = random.below(8);
    let size = pick(random, sizes);
    let mut rows = Vec::with_capacity(n * dim);
    for _ in 0..n {
        let row: Vec<f32> = match style {
            0 | 1 => random.vector(dim).iter().map(|x| x * size).collect(),
            // All the same, with and without a little noise.
            2 => base.clone(),
            3 => base.iter().map(|x| x + 1e-4 * random.signed()).collect(),
            4 => base
                .iter()
                .map(|x| x * pick(random, &[1.0, -1.0]))
                .collect(),
            // One element, of either sign.
            5 => {
                let at = random.below(dim as u64) as usize;
                (0..dim)
                    .map(|j| {
                        if j == at {
                            pick(random, &[1.0, -1.0])
                        } else {
                            0.0
                        }
                    })
                    .collect()
            }
            // Few different values: many ties.
            6 => (0..dim).map(|_| (random.signed() * 1.5).round()).collect(),
            // Every row another size.
            _ => {
                let size = pick(random, sizes);
                random.vector(dim).iter().map(|x| x * size).collect()
            }
        };
        // Too short to have a direction, or without a vector by choice.
        let too_short = row.iter().all(|x| x.abs() < 2.0 * LENGTH_MIN as f32);
        let without = too_short || random.below(20) == 0;
        rows.extend(row.iter().map(|&x| if without { 0.0 } else { x }));
    }
    rows
}

pub fn accesses(random: &mut Random, n: usize) -> Vec<i64> {
    let style = random.below(8);
    (0..n)
        .map(|_| match style {
            0 => T,
            // The last months; the last seconds; a few moments only.
            1 | 2 => T - random.below(1 << 43) as i64,
            3 => T - random.below(3_000_000) as i64,
            4 => T - random.below(3) as i64 * HOUR,
            // Past and future; long past; all of time.
            5 => T + (random.below(1 << 41) as i64 - (1 << 40)),
            6 => T - (20_000 + random.below(400_000) as i64) * HOUR,
            _ => pick(
                random,
                &[i64::MIN, -1, 0, T, T + 1, i64::MAX, T - 7, i64::MIN / 2],
            ),
        })
        .collect()
}

pub fn importances(random: &mut Random, n: usize) -> Vec<f32> {
    let style = random.below(6);
    (0..n)
        .map(|_| match style {
            0 => 5.0,
            1 | 2 => (1 + random.below(10)) as f32,
            3 => random.signed(),
            4 => pick(random, &[0.0, -0.0, 1e-45, -1e-45, 1e-38]),
            _ => pick(random, &[f32::MAX, f32::MIN, 0.0, 1.0]),
        })
        .collect()
}

fn scoring(random: &mut Random) -> Scoring {
    if random.below(3) == 0 {
        let name = pick(random, &Preset::NAMES);
        return Preset::named(name).unwrap().scoring;
    }
    let weights = [0.0, 1.0, 1.0, 0.5, 3.0];
    let decays = [0.0, 1.0, 0.995, 0.99, 0.5, 1e-300, 1.0 - f64::EPSILON / 2.0];
    let decay = pick(random, &decays);
    let ticks = [
        MICROSECONDS_PER_HOUR.get(),
        MICROSECONDS_PER_HOUR.get(),
        1,
        1 << 30,
        u64::MAX,
    ];
    Scoring {
        weights: Weights {
            relevance: pick(random, &weights),
            recency: pick(random, &weights),
            importance: pick(random, &weights),
        },
        recency: if random.below(4) == 0 {
            Recency::Position { decay }
        } else {
            Recency::Age {
                decay,
                ticks_per_unit: NonZeroU64::new(pick(random, &ticks)).unwrap(),
                since: pick(random, &[Since::Now, Since::NewestAccess]),
            }
        },
        normalization: if random.below(4) == 0 {
            Normalization::None {
                importance_divisor: pick(random, &[1.0, 10.0, 100.0]),
            }
        } else {
            Normalization::MinMax {
                constant: pick(random, &[0.0, 0.5, 1.0]),
            }
        },
    }
}

fn shuffled(random: &mut Random, n: usize) -> Vec<u32> {
    let mut list: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        list.swap(i, random.below(i as u64 + 1) as usize);
    }
    list
}

/// A store and a query.
pub struct Case {
    pub memories: Memories,
    pub embedding: Vec<f32>,
    pub now: i64,
    pub k: usize,
    pub ties: Ties,
    pub scoring: Scoring,
    pub list: Vec<u32>,
    pub mask: Vec<u64>,
    pub set: u64,
    pub cut: usize,
}

impl Case {
    pub fn new(seed: u64) -> Case {
        let random = &mut Random(seed);
        let dim = pick(
            random,
            &[1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 65, 129, 387, 1537],
        );
        let most = if dim > 200 { 40 } else { 400 };
        let n = pick(random, &[0, 1, 2, 3, 20, most]);
        let n = n + random.below(1 + n as u64 / 2) as usize;
        let dtype = pick(random, &DTYPES);
        let elements = vectors(random, dtype, dim, n);
        let memories = Memories::new(
            dtype,
            dim,
            &elements,
            &accesses(random, n),
            &importances(random, n),
        );
        // A stranger, or one of the rows.
        let mut embedding = random.vector(dim);
        let row = random.below(n.max(1) as u64) as usize;
        if n > 0 && random.below(3) == 0 && memories.inv_norms[row] != 0.0 {
            embedding = elements[row * dim..(row + 1) * dim].to_vec();
        }
        let mut list = shuffled(random, n);
        list.truncate(random.below(n as u64 + 1) as usize);
        let mut mask = vec![0u64; n.div_ceil(64)];
        list.iter()
            .for_each(|&row| mask[row as usize / 64] |= 1 << (row % 64));
        Case {
            memories,
            embedding,
            now: pick(random, &[T, T, T, T - HOUR, 0, i64::MIN, i64::MAX]),
            k: pick(random, &[0, 1, 3, 10, n, usize::MAX]),
            ties: pick(random, &[Ties::Row, Ties::Listed]),
            scoring: scoring(random),
            list,
            mask,
            set: random.below(3),
            cut: random.below(n as u64 + 1) as usize,
        }
    }

    pub fn query(&self) -> Query<'_> {
        let set = match self.set {
            0 => Candidates::All,
            1 => Candidates::Mask(&self.mask),
            _ => Candidates::Rows(&self.list),
        };
        Query {
            ties: self.ties,
            ..Query::new(&self.embedding, self.now, self.k).of(set)
        }
    }
}
