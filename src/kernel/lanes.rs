//! The one loop of every kernel, generic over 16 lanes of f32.
//!
//! An instruction set supplies [`Lanes`]: load, multiply-add, reduce. The loop takes several rows
//! per turn, since the contract allows one chain of additions per row and lane only: rows beside
//! each other keep the adders busy. It takes several queries per turn, so that a row is loaded and
//! widened once for all of them.

#![allow(
    clippy::needless_range_loop,
    reason = "closures of iterators would not inherit the callers' target features"
)]

use super::queries::Queries;
use half::f16;
use std::ops::Range;

/// Lanes of the contract.
pub(super) const LANES: usize = 16;

/// 16 lanes of f32, in the registers of some instruction set.
pub(super) trait Lanes: Copy {
    /// Rows per turn for one query.
    const ROWS: usize;

    fn zero() -> Self;
    fn load_f32(elements: &[f32; LANES]) -> Self;
    /// Widens exactly.
    fn load_f16(elements: &[f16; LANES]) -> Self;
    /// `self + row * query`, one rounding in each lane.
    fn mul_acc(self, row: Self, query: Self) -> Self;
    /// The sum by halves: 8, 4, 2, 1.
    fn reduce(self) -> f32;
    /// Asks for the cache line at `address`, which need not be valid.
    fn prefetch(address: *const u8);
}

/// An element type of rows.
pub(super) trait Element: Copy {
    const ZERO: Self;
    /// Exactly.
    fn widen(self) -> f32;
    fn load<L: Lanes>(elements: &[Self; LANES]) -> L;
}

impl Element for f32 {
    const ZERO: f32 = 0.0;
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
    #[inline(always)]
    fn load<L: Lanes>(elements: &[f32; LANES]) -> L {
        L::load_f32(elements)
    }
}

impl Element for f16 {
    const ZERO: f16 = f16::ZERO;
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn load<L: Lanes>(elements: &[f16; LANES]) -> L {
        L::load_f16(elements)
    }
}

/// Which rows to take.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowSet<'a> {
    Range(&'a Range<usize>),
    /// Row numbers, less `base`.
    List {
        rows: &'a [u32],
        base: u32,
    },
}

impl RowSet<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        match self {
            RowSet::Range(range) => range.len(),
            RowSet::List { rows, .. } => rows.len(),
        }
    }

    #[inline(always)]
    fn row(&self, pick: usize) -> usize {
        match self {
            RowSet::Range(range) => range.start + pick,
            RowSet::List { rows, base } => (rows[pick] - base) as usize,
        }
    }
}

/// Queries per turn when there are several.
const QUERIES: usize = 4;

/// Rows per turn when there are several queries.
const ROWS: usize = 4;

/// How far ahead of the row being read the memory is asked for, in bytes.
const PREFETCH_BYTES: usize = 1024;

/// `out[q * stride + i] = dot(picked row i, query q)`.
///
/// # Panics
/// If a picked row lies outside `rows`, or `out` is too short.
#[inline(always)]
pub(super) fn scan<L: Lanes, E: Element>(
    rows: &[E],
    picks: RowSet<'_>,
    queries: &Queries,
    out: &mut [f32],
    stride: usize,
) {
    let mut q = 0;
    while q + QUERIES <= queries.len() {
        turns::<L, E, ROWS, QUERIES>(rows, picks, queries, q, out, stride);
        q += QUERIES;
    }
    while q < queries.len() {
        match L::ROWS {
            8 => turns::<L, E, 8, 1>(rows, picks, queries, q, out, stride),
            _ => turns::<L, E, 4, 1>(rows, picks, queries, q, out, stride),
        }
        q += 1;
    }
}

/// All picked rows against queries `first..first + Q`: `R` rows per turn, then the rest one by one.
#[inline(always)]
fn turns<L: Lanes, E: Element, const R: usize, const Q: usize>(
    rows: &[E],
    picks: RowSet<'_>,
    queries: &Queries,
    first: usize,
    out: &mut [f32],
    stride: usize,
) {
    let dim = queries.dim().get();
    let mut query: [&[[f32; LANES]]; Q] = [&[]; Q];
    for i in 0..Q {
        query[i] = queries.padded(first + i).as_chunks().0;
    }
    let n = picks.len();
    let mut pick = 0;
    while pick + R <= n {
        let mut tile: [&[E]; R] = [&[]; R];
        for r in 0..R {
            let start = picks.row(pick + r) * dim;
            tile[r] = &rows[start..start + dim];
        }
        let dots = dots::<L, E, R, Q>(tile, query);
        for r in 0..R {
            for i in 0..Q {
                out[(first + i) * stride + pick + r] = dots[r][i];
            }
        }
        pick += R;
    }
    while pick < n {
        let start = picks.row(pick) * dim;
        let [dots] = dots::<L, E, 1, Q>([&rows[start..start + dim]], query);
        for i in 0..Q {
            out[(first + i) * stride + pick] = dots[i];
        }
        pick += 1;
    }
}

/// The contract, for `R` rows and `Q` queries at once.
#[inline(always)]
fn dots<L: Lanes, E: Element, const R: usize, const Q: usize>(
    rows: [&[E]; R],
    queries: [&[[f32; LANES]]; Q],
) -> [[f32; Q]; R] {
    // Slices of one length each, so that the loop needs no bounds checks.
    let full = rows[0].len() / LANES;
    let mut groups: [&[[E; LANES]]; R] = [&[]; R];
    for r in 0..R {
        groups[r] = &rows[r].as_chunks().0[..full];
    }
    let mut unit: [&[[f32; LANES]]; Q] = [&[]; Q];
    for i in 0..Q {
        unit[i] = &queries[i][..full];
    }

    let mut sums = [[L::zero(); Q]; R];
    for group in 0..full {
        let mut query = [L::zero(); Q];
        for i in 0..Q {
            query[i] = L::load_f32(&unit[i][group]);
        }
        for r in 0..R {
            let elements = &groups[r][group];
            L::prefetch(elements.as_ptr().cast::<u8>().wrapping_add(PREFETCH_BYTES));
            let row = E::load::<L>(elements);
            for i in 0..Q {
                sums[r][i] = sums[r][i].mul_acc(row, query[i]);
            }
        }
    }

    let tail = rows[0].len() % LANES;
    if tail > 0 {
        for r in 0..R {
            let mut elements = [E::ZERO; LANES];
            elements[..tail].copy_from_slice(&rows[r][full * LANES..]);
            let row = E::load::<L>(&elements);
            for i in 0..Q {
                sums[r][i] = sums[r][i].mul_acc(row, L::load_f32(&queries[i][full]));
            }
        }
    }

    let mut out = [[0.0; Q]; R];
    for r in 0..R {
        for i in 0..Q {
            out[r][i] = sums[r][i].reduce();
        }
    }
    out
}
