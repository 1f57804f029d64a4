//! The one loop of every kernel, generic over 16 lanes of f32.
//!
//! An instruction set supplies [`Lanes`]: load, multiply-add, reduce. The loop takes one row at a
//! time, in memory order, and several queries per turn, so that a row is loaded and widened once for
//! all of them.
//!
//! Tried and lost: several rows per turn, to overlap the one chain of additions that the contract
//! allows per row and lane. Within the caches 4 rows took 0.75 of the time (`cargo bench --bench kernels`,
//! 1,000 x 384 f16), but beyond them one row was as fast or faster: rows side by side are several streams,
//! and the prefetchers follow one better.

#![allow(
    clippy::needless_range_loop,
    reason = "closures of iterators would not inherit the callers' target features"
)]

use super::dispatch::Picks;
use super::queries::Queries;
use half::f16;

/// Lanes of the contract.
pub(super) const LANES: usize = 16;

/// 16 lanes of f32, in the registers of some instruction set.
pub(super) trait Lanes: Copy {
    /// Queries per turn: as many sums as the registers hold beside a row and a query.
    const QUERIES: usize;

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

/// How far ahead of the element being read the memory is asked for, in bytes, into the second-level
/// cache. 1 to 4 KiB ahead gained nothing over asking for none, nor did the first-level cache at any
/// distance (`cargo bench --bench kernels`, 200,000 x 384 f16, one query).
const PREFETCH_BYTES: usize = 8192;

/// `out[q * stride + i] = dot(picked row i, query q)`.
///
/// # Panics
/// If a picked row lies outside `rows`, or `out` is too short.
#[inline(always)]
pub(super) fn scan<L: Lanes, E: Element>(
    rows: &[E],
    picks: &Picks<'_>,
    queries: &Queries,
    out: &mut [f32],
    stride: usize,
) {
    let mut q = 0;
    while q < queries.len() {
        q += match (L::QUERIES, queries.len() - q) {
            (8, 8..) => turn::<L, E, 8>(rows, picks, queries, q, out, stride),
            (_, 4..) => turn::<L, E, 4>(rows, picks, queries, q, out, stride),
            (_, _) => turn::<L, E, 1>(rows, picks, queries, q, out, stride),
        };
    }
}

/// All picked rows against queries `first..first + Q`. Returns `Q`.
#[inline(always)]
fn turn<L: Lanes, E: Element, const Q: usize>(
    rows: &[E],
    picks: &Picks<'_>,
    queries: &Queries,
    first: usize,
    out: &mut [f32],
    stride: usize,
) -> usize {
    let dim = queries.dim().get();
    let mut query: [&[[f32; LANES]]; Q] = [&[]; Q];
    for i in 0..Q {
        query[i] = queries.padded(first + i).as_chunks().0;
    }
    for pick in 0..picks.len() {
        let start = picks.row(pick) * dim;
        let dots = dots::<L, E, Q>(&rows[start..start + dim], query);
        for i in 0..Q {
            out[(first + i) * stride + pick] = dots[i];
        }
    }
    Q
}

/// The contract, for one row and `Q` queries.
#[inline(always)]
fn dots<L: Lanes, E: Element, const Q: usize>(
    row: &[E],
    queries: [&[[f32; LANES]]; Q],
) -> [f32; Q] {
    let (groups, tail) = row.as_chunks::<LANES>();
    // Slices of the row's length, so that the loop needs no bounds checks.
    let mut whole: [&[[f32; LANES]]; Q] = [&[]; Q];
    for i in 0..Q {
        whole[i] = &queries[i][..groups.len()];
    }

    let mut sums = [L::zero(); Q];
    for group in 0..groups.len() {
        let elements = &groups[group];
        L::prefetch(elements.as_ptr().cast::<u8>().wrapping_add(PREFETCH_BYTES));
        let elements = E::load::<L>(elements);
        for i in 0..Q {
            sums[i] = sums[i].mul_acc(elements, L::load_f32(&whole[i][group]));
        }
    }

    if !tail.is_empty() {
        let mut padded = [E::ZERO; LANES];
        padded[..tail.len()].copy_from_slice(tail);
        let elements = E::load::<L>(&padded);
        for i in 0..Q {
            sums[i] = sums[i].mul_acc(elements, L::load_f32(&queries[i][groups.len()]));
        }
    }

    let mut out = [0.0; Q];
    for i in 0..Q {
        out[i] = sums[i].reduce();
    }
    out
}
