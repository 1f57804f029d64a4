//! The one loop of every kernel, generic over 16 lanes of f32.
//!
//! An instruction set supplies [`Lanes`]: load, multiply-add, reduce. The loop takes a tile of rows and
//! queries per turn. The contract allows one chain of additions per row and lane, so rows side by side
//! are what keeps the adders busy; queries side by side share the loading and widening of a row.
//!
//! The rows of a tile are far apart: the picks are cut in as many equal streams as a tile has rows, and
//! a tile takes one row of each. Neighbouring rows side by side are read slower from memory than one at a
//! time, because the hardware's prefetchers see neither one stream nor several; distant streams they
//! follow, each on its own pages. Measured on Zen 4, AVX2, 500,000 x 384 f16 of a mapped file, one
//! thread, as the time of one sequential read over the scan's (`cargo bench --bench kernels` has the
//! scan): one row at a time 0.70, 4 neighbours 0.62, 4 neighbours and prefetches 4 to 8 KiB ahead up
//! to 0.92, 4 streams without a prefetch 0.93 to 1.0, 8 streams 0.73.
//!
//! What is left to wait for is the addresses. A load or a prefetch on a page that is not in the processor's
//! tables holds up what follows until the page is looked up, so pages are asked for ahead, by one line each:
//! the next page of each stream, or those of many listed rows side by side. Of a read by four streams, 1,000,000
//! rows in one run on one thread reach, with it and without: 384 f16 0.88 to 0.96 and 0.84 to 0.89, 768 f16 0.87
//! to 0.93 and 0.76 to 0.91, 384 f32 0.95 to 0.98 and 0.88 to 0.94. All lines 2 or 4 KiB ahead, beside the
//! hardware's own prefetchers: 0.54 to 0.74; every second line 0.73 to 0.85, every fourth 0.88 to 0.91.
//!
//! Also lost: f16 widened by shifts and masks in place of the conversion instruction (1.4 times as long in the
//! caches), and AVX-512 for one query (no faster from memory, 1.2 times as long in the caches).

#![allow(
    clippy::needless_range_loop,
    reason = "closures of iterators would not inherit the callers' target features"
)]

use super::dispatch::Picks;
use super::queries::Queries;
use half::f16;
use std::marker::PhantomData;
use std::ops::Range;

/// Lanes of the contract.
pub(super) const LANES: usize = 16;

/// 16 lanes of f32, in the registers of some instruction set.
pub(super) trait Lanes: Copy {
    /// The tile for one query and the tile for several: as many sums as the registers hold beside a
    /// row's and a query's elements.
    const TILES: Tiles;

    fn zero() -> Self;
    fn load_f32(elements: &[f32; LANES]) -> Self;
    /// Widens exactly.
    fn load_f16(elements: &[f16; LANES]) -> Self;
    /// `self + row * query`, one rounding in each lane.
    fn mul_acc(self, row: Self, query: Self) -> Self;
    /// The sum by halves: 8, 4, 2, 1.
    fn reduce(self) -> f32;
    /// Asks for the cache line at `address`, into the second-level cache.
    fn prefetch(address: *const u8);
}

/// Shapes of tiles.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "the portable kernel takes single rows")
)]
pub(super) enum Tiles {
    /// 4 rows x 1 query, 3 rows x 8 queries: 32 registers, one per value.
    Wide,
    /// 4 rows x 1 query, 2 rows x 3 queries: 16 registers, two per value.
    Narrow,
    /// 1 row x 1 query, 1 row x 4 queries: where values hardly fit in the registers.
    Single,
}

/// An element type of rows.
pub(super) trait Element: Copy {
    /// Unsigned, as wide as the element.
    type Bits: Ord + Copy + Default;
    const ZERO: Self;
    /// Without the sign, as bits: they ascend with the magnitude, infinity and NaN last.
    fn magnitude(self) -> Self::Bits;
    /// The magnitude that has these bits.
    fn of_magnitude(bits: Self::Bits) -> f32;
    /// Exactly.
    fn widen(self) -> f32;
    /// Exactly; infinite where the element is not finite.
    fn square(self) -> f64;
    fn load<L: Lanes>(elements: &[Self; LANES]) -> L;
}

impl Element for f32 {
    type Bits = u32;
    const ZERO: f32 = 0.0;
    #[inline(always)]
    fn magnitude(self) -> u32 {
        self.to_bits() & (u32::MAX >> 1)
    }
    fn of_magnitude(bits: u32) -> f32 {
        f32::from_bits(bits)
    }
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
    #[inline(always)]
    fn square(self) -> f64 {
        let x = f64::from(self);
        x * x
    }
    #[inline(always)]
    fn load<L: Lanes>(elements: &[f32; LANES]) -> L {
        L::load_f32(elements)
    }
}

impl Element for f16 {
    type Bits = u16;
    const ZERO: f16 = f16::ZERO;
    #[inline(always)]
    fn magnitude(self) -> u16 {
        self.to_bits() & (u16::MAX >> 1)
    }
    fn of_magnitude(bits: u16) -> f32 {
        f16::from_bits(bits).to_f32()
    }
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn square(self) -> f64 {
        // In whole registers on every instruction set, as the library's conversion is not: the exponent is
        // right but for its bias, and a square has no sign.
        let bits = u32::from(self.to_bits() & 0x7fff);
        let magnitude = f64::from(f32::from_bits(bits << 13) * f32::from_bits((127 + 112) << 23));
        let square = magnitude * magnitude;
        if bits >= 0x7c00 {
            f64::INFINITY
        } else {
            square
        }
    }
    #[inline(always)]
    fn load<L: Lanes>(elements: &[f16; LANES]) -> L {
        L::load_f16(elements)
    }
}

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
    match (L::TILES, queries.len()) {
        (Tiles::Wide | Tiles::Narrow, 1) => {
            streams::<L, E, 4, 1>(rows, picks, queries, out, stride)
        }
        (Tiles::Wide, _) => streams::<L, E, 3, 8>(rows, picks, queries, out, stride),
        (Tiles::Narrow, _) => streams::<L, E, 2, 3>(rows, picks, queries, out, stride),
        (Tiles::Single, _) => streams::<L, E, 1, 4>(rows, picks, queries, out, stride),
    }
}

/// All picks, in `R` streams of equal length, then the few that are left one by one.
#[inline(always)]
fn streams<L: Lanes, E: Element, const R: usize, const Q: usize>(
    rows: &[E],
    picks: &Picks<'_>,
    queries: &Queries,
    out: &mut [f32],
    stride: usize,
) {
    let length = picks.len() / R;
    let ahead = Ahead::<L, E, R> {
        rows,
        picks,
        queries,
        length,
        lanes: PhantomData,
    };
    ahead.start();
    for first in 0..length {
        ahead.step(first);
        let tile = tile_of::<R>(first, length);
        every_query::<L, E, R, Q>(rows, picks, tile, queries, out, stride);
    }
    for pick in length * R..picks.len() {
        every_query::<L, E, 1, Q>(rows, picks, [pick], queries, out, stride);
    }
}

/// The row of a pick.
#[inline(always)]
fn row<'a, E>(rows: &'a [E], picks: &Picks<'_>, pick: usize, queries: &Queries) -> &'a [E] {
    let dim = queries.dim().get();
    &rows[picks.row(pick) * dim..][..dim]
}

/// The picks of a tile: one of each stream.
#[inline(always)]
fn tile_of<const R: usize>(first: usize, length: usize) -> [usize; R] {
    let mut tile = [0; R];
    for i in 0..R {
        tile[i] = first + i * length;
    }
    tile
}

/// Bytes of a page, at least.
const PAGE: usize = 4096;

/// Tiles between the one that is read and the one whose rows are asked for.
const ROWS_AHEAD: usize = 2;

/// Listed tiles whose pages are asked for at once.
const PAGES_AT_ONCE: usize = 8;

/// Asks for what the tiles to come will read, into the second-level cache.
///
/// - Whole rows where the hardware's prefetchers do not ask: listed rows, which may lie anywhere, and rows
///   that several queries dwell on (16 took 0.9 of the time).
/// - Before that, one line of each page of listed rows. 10,000 of 1,000,000 x 768 f16, scattered, took 2.0 ms on
///   one thread with it, 3.3 ms with whole rows alone, and 5 ms without either.
/// - One line a page ahead in each stream of a run.
struct Ahead<'a, L, E, const R: usize> {
    rows: &'a [E],
    picks: &'a Picks<'a>,
    queries: &'a Queries,
    /// Tiles.
    length: usize,
    lanes: PhantomData<L>,
}

impl<L: Lanes, E: Element, const R: usize> Ahead<'_, L, E, R> {
    /// Before the first tile.
    #[inline(always)]
    fn start(&self) {
        let listed = matches!(self.picks, Picks::List { .. });
        if listed {
            self.pages(0..ROWS_AHEAD);
        }
        if listed || self.queries.len() > 1 {
            self.whole_rows(0..ROWS_AHEAD);
        }
    }

    /// Before tile `first`.
    #[inline(always)]
    fn step(&self, first: usize) {
        let next = first + ROWS_AHEAD;
        match self.picks {
            Picks::Range(_) if self.queries.len() == 1 => self.next_pages(first),
            Picks::Range(_) => self.whole_rows(next..next + 1),
            Picks::List { .. } => {
                if first.is_multiple_of(PAGES_AT_ONCE) {
                    self.pages(next..next + PAGES_AT_ONCE);
                }
                self.whole_rows(next..next + 1);
            }
        }
    }

    /// The rows of some tiles, as far as there are such.
    #[inline(always)]
    fn whole_rows(&self, tiles: Range<usize>) {
        const LINE: usize = 64;
        for first in tiles.start..tiles.end.min(self.length) {
            for pick in tile_of::<R>(first, self.length) {
                for line in self.row(pick).chunks(LINE / size_of::<E>()) {
                    L::prefetch(line.as_ptr().cast());
                }
            }
        }
    }

    /// The pages of some tiles' rows, as far as there are such.
    #[inline(always)]
    fn pages(&self, tiles: Range<usize>) {
        for first in tiles.start..tiles.end.min(self.length) {
            for pick in tile_of::<R>(first, self.length) {
                let row = self.row(pick);
                for page in row.chunks(PAGE / size_of::<E>()) {
                    L::prefetch(page.as_ptr().cast());
                }
                L::prefetch((&raw const row[row.len() - 1]).cast());
            }
        }
    }

    /// A page further than each row of a tile. What lies there, if anything, does not matter.
    #[inline(always)]
    fn next_pages(&self, first: usize) {
        for pick in tile_of::<R>(first, self.length) {
            let row = self.row(pick).as_ptr().cast::<u8>();
            L::prefetch(row.wrapping_add(PAGE));
        }
    }

    #[inline(always)]
    fn row(&self, pick: usize) -> &[E] {
        row(self.rows, self.picks, pick, self.queries)
    }
}

/// The picks of a tile against all queries, `Q` at a time while there are as many.
#[inline(always)]
fn every_query<L: Lanes, E: Element, const R: usize, const Q: usize>(
    rows: &[E],
    picks: &Picks<'_>,
    tile: [usize; R],
    queries: &Queries,
    out: &mut [f32],
    stride: usize,
) {
    let mut picked: [&[E]; R] = [&[]; R];
    for i in 0..R {
        picked[i] = row(rows, picks, tile[i], queries);
    }
    let mut q = 0;
    while q < queries.len() {
        q += match queries.len() - q {
            left if left >= Q => turn::<L, E, R, Q>(picked, tile, queries, q, out, stride),
            4.. => turn::<L, E, R, 4>(picked, tile, queries, q, out, stride),
            2.. => turn::<L, E, R, 2>(picked, tile, queries, q, out, stride),
            _ => turn::<L, E, R, 1>(picked, tile, queries, q, out, stride),
        };
    }
}

/// The picks of a tile against queries `first..first + Q`. Returns `Q`.
#[inline(always)]
fn turn<L: Lanes, E: Element, const R: usize, const Q: usize>(
    picked: [&[E]; R],
    tile: [usize; R],
    queries: &Queries,
    first: usize,
    out: &mut [f32],
    stride: usize,
) -> usize {
    let mut query: [&[[f32; LANES]]; Q] = [&[]; Q];
    for j in 0..Q {
        query[j] = queries.padded(first + j).as_chunks().0;
    }
    let dots = dots::<L, E, R, Q>(picked, query);
    for j in 0..Q {
        for i in 0..R {
            out[(first + j) * stride + tile[i]] = dots[i][j];
        }
    }
    Q
}

/// The contract, for `R` rows and `Q` queries.
#[inline(always)]
fn dots<L: Lanes, E: Element, const R: usize, const Q: usize>(
    rows: [&[E]; R],
    queries: [&[[f32; LANES]]; Q],
) -> [[f32; Q]; R] {
    let whole = rows[0].len() / LANES;
    // Slices of one length, so that the loop needs no bounds checks.
    let mut groups: [&[[E; LANES]]; R] = [&[]; R];
    for i in 0..R {
        groups[i] = &rows[i].as_chunks().0[..whole];
    }
    let mut query_groups: [&[[f32; LANES]]; Q] = [&[]; Q];
    for j in 0..Q {
        query_groups[j] = &queries[j][..whole];
    }

    let mut sums = [[L::zero(); Q]; R];
    for group in 0..whole {
        let mut row = [L::zero(); R];
        for i in 0..R {
            row[i] = E::load::<L>(&groups[i][group]);
        }
        for j in 0..Q {
            let query = L::load_f32(&query_groups[j][group]);
            for i in 0..R {
                sums[i][j] = sums[i][j].mul_acc(row[i], query);
            }
        }
    }

    let tail = rows[0].len() % LANES;
    if tail > 0 {
        for i in 0..R {
            let mut padded = [E::ZERO; LANES];
            padded[..tail].copy_from_slice(&rows[i][whole * LANES..]);
            let row = E::load::<L>(&padded);
            for j in 0..Q {
                sums[i][j] = sums[i][j].mul_acc(row, L::load_f32(&queries[j][whole]));
            }
        }
    }

    let mut out = [[0.0; Q]; R];
    for i in 0..R {
        for j in 0..Q {
            out[i][j] = sums[i][j].reduce();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_of_all_f16_patterns_are_exact() {
        for x in (0..=u16::MAX).map(f16::from_bits) {
            let expected = match x.is_finite() {
                true => x.to_f64() * x.to_f64(),
                false => f64::INFINITY,
            };
            assert_eq!(x.square(), expected, "{:#06x}", x.to_bits());
        }
    }
}
