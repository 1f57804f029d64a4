//! The way into the kernels: one choice of instruction set per scan, never per row.

use super::isa::{Isa, IsaError};
use super::lanes::{self, Element};
use super::portable::Portable;
use super::queries::Queries;
use super::rows::Rows;
use super::scalar;
#[cfg(target_arch = "x86_64")]
use super::x86;
use std::ops::Range;

/// An instruction set that this machine is known to have. The value is the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernel(Isa);

/// Which rows of a column to take, in which order.
#[derive(Clone, Debug)]
pub enum Picks<'a> {
    /// A run of rows.
    Range(Range<usize>),
    /// `rows[i] - base` for each `i`, in any order.
    List {
        /// Row numbers, each at least `base`.
        rows: &'a [u32],
        /// The number of the column's first row.
        base: u32,
    },
}

/// A loop in plain code that the compiler makes vector code of, as wide as the registers of the
/// instruction set that [`Kernel::run`] compiles it for.
pub(crate) trait Loop {
    type Output;

    /// `inline(always)` in every implementation, and so is what it calls: only what ends up inside the
    /// caller is compiled for its instruction set.
    fn run(self) -> Self::Output;
}

impl Picks<'_> {
    /// The number of rows taken.
    pub fn len(&self) -> usize {
        match self {
            Picks::Range(range) => range.len(),
            Picks::List { rows, .. } => rows.len(),
        }
    }

    /// Whether no row is taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row that is taken as number `pick`.
    #[inline(always)]
    pub(super) fn row(&self, pick: usize) -> usize {
        match self {
            Picks::Range(range) => range.start + pick,
            Picks::List { rows, base } => (rows[pick] - base) as usize,
        }
    }

    /// Whether all rows taken lie among the first `rows`.
    fn lie_within(&self, rows: usize) -> bool {
        match self {
            Picks::Range(range) => range.is_empty() || range.end <= rows,
            Picks::List { rows: list, base } => list.iter().fold(true, |all, row| {
                all & row
                    .checked_sub(*base)
                    .is_some_and(|row| (row as usize) < rows)
            }),
        }
    }
}

impl Kernel {
    /// The kernel for `isa`.
    ///
    /// # Errors
    /// If this machine lacks it. There is no fallback.
    pub fn new(isa: Isa) -> Result<Kernel, IsaError> {
        if isa.is_available() {
            Ok(Kernel(isa))
        } else {
            Err(IsaError::Missing(isa))
        }
    }

    /// The fastest kernel this machine can run.
    pub fn best() -> Kernel {
        Kernel(Isa::best())
    }

    /// Its instruction set.
    pub fn isa(self) -> Isa {
        self.0
    }

    /// Dot products of picked rows with every query, query after query:
    /// `out[q * picks.len() + i]` is that of the `i`-th picked row with query `q`.
    ///
    /// # Panics
    /// If a picked row lies outside `rows`, or `out` has another length than
    /// `picks.len() * queries.len()`.
    ///
    /// ```
    /// use memorank::kernel::{Kernel, Picks, Queries, Rows};
    /// let mut queries = Queries::new(2.try_into().unwrap());
    /// queries.push(&[10.0, 1.0])?;
    /// let mut out = [0.0; 2];
    /// Kernel::best().dots(Rows::F32(&[1.0, 2.0, 3.0, 4.0]), Picks::Range(0..2), &queries, &mut out);
    /// assert_eq!(out, [12.0, 34.0]);
    /// # Ok::<(), memorank::kernel::QueryError>(())
    /// ```
    pub fn dots(self, rows: Rows<'_>, picks: Picks<'_>, queries: &Queries, out: &mut [f32]) {
        let stride = picks.len();
        assert_eq!(
            out.len(),
            stride * queries.len(),
            "one output per picked row and query"
        );
        let rows_held = rows.elements() / queries.dim();
        assert!(
            picks.lie_within(rows_held),
            "a picked row lies beyond the {rows_held} there are"
        );
        match rows {
            Rows::F32(rows) => self.scan(rows, &picks, queries, out, stride),
            Rows::F16(rows) => self.scan(rows, &picks, queries, out, stride),
        }
    }

    /// Asks for the listed values of a column, which may lie anywhere; of a run of rows the hardware's
    /// prefetchers take care.
    ///
    /// # Panics
    /// If a listed row lies outside `column`.
    pub(crate) fn prefetch<T>(self, column: &[T], picks: &Picks<'_>) {
        #[cfg(target_arch = "x86_64")]
        if let (Picks::List { rows, base }, Isa::Avx2 | Isa::Avx512) = (picks, self.0) {
            for row in *rows {
                x86::prefetch((&raw const column[(row - base) as usize]).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (column, picks);
    }

    /// Runs a loop compiled for the instruction set. The bits are those of the code as written: the
    /// compiler may not reorder or fuse floating-point operations.
    pub(crate) fn run<L: Loop>(self, work: L) -> L::Output {
        match self.0 {
            Isa::Scalar | Isa::Portable => work.run(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::run_avx2(self, work),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => x86::run_avx512(self, work),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => work.run(),
        }
    }

    fn scan<E: Element>(
        self,
        rows: &[E],
        picks: &Picks<'_>,
        queries: &Queries,
        out: &mut [f32],
        stride: usize,
    ) {
        match self.0 {
            Isa::Scalar => scalar::scan(rows, picks, queries, out, stride),
            Isa::Portable => lanes::scan::<Portable, E>(rows, picks, queries, out, stride),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::scan_avx2(self, rows, picks, queries, out, stride),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => x86::scan_avx512(self, rows, picks, queries, out, stride),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => {
                unreachable!("no kernel of an x86 instruction set is made on another architecture")
            }
        }
    }
}
