//! Columns as the caller holds them: one entry per memory, borrowed, in one or more segments.

use super::query::RankError;
use super::settings::Recency;
use crate::kernel::{Dtype, Rows};
use std::fmt;
use std::num::NonZeroUsize;

/// One segment of memories: embeddings, inverse norms, last accesses (or recencies) and importances, row by row.
///
/// Several segments are ranked as one: their rows are numbered on from segment to segment. All have
/// one dimension; their element types may differ.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    pub(super) dim: NonZeroUsize,
    pub(super) rows: Rows<'a>,
    pub(super) inv_norms: &'a [f32],
    pub(super) signals: Signals<'a>,
}

/// What is scored beside the embedding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals<'a> {
    pub(crate) recency: RecencyColumn<'a>,
    pub(crate) importance: &'a [f32],
}

/// What recency is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecencyColumn<'a> {
    /// Ticks of the caller's clock.
    LastAccess(&'a [i64]),
    /// Raw recencies, for [`Recency::Given`].
    Given(&'a [f64]),
}

impl<'a> Columns<'a> {
    /// Columns of as many memories as `inv_norms` has entries.
    ///
    /// - `rows`: `dim` elements per memory.
    /// - `inv_norms`: 1 / length of each row, from [`inv_norms`](crate::kernel::inv_norms); 0 says
    ///   that the memory has no vector and is never a candidate (its elements are then ignored).
    /// - `last_access`: ticks of the caller's clock.
    /// - `importance`: any finite numbers.
    ///
    /// Values are checked when they are scored: a bad one is then an error that names its row.
    ///
    /// # Errors
    /// If the lengths do not fit together.
    pub fn new(
        dim: NonZeroUsize,
        rows: Rows<'a>,
        inv_norms: &'a [f32],
        last_access: &'a [i64],
        importance: &'a [f32],
    ) -> Result<Columns<'a>, ColumnsError> {
        let recency = RecencyColumn::LastAccess(last_access);
        Columns::with_signals(dim, rows, inv_norms, recency, importance)
    }

    /// Columns with the raw recency of each memory in place of its last access, for [`Recency::Given`]: numbers
    /// in [0, 1]. All else is as in [`new`](Columns::new).
    ///
    /// # Errors
    /// If the lengths do not fit together.
    pub fn with_recency(
        dim: NonZeroUsize,
        rows: Rows<'a>,
        inv_norms: &'a [f32],
        recency: &'a [f64],
        importance: &'a [f32],
    ) -> Result<Columns<'a>, ColumnsError> {
        let recency = RecencyColumn::Given(recency);
        Columns::with_signals(dim, rows, inv_norms, recency, importance)
    }

    fn with_signals(
        dim: NonZeroUsize,
        rows: Rows<'a>,
        inv_norms: &'a [f32],
        recency: RecencyColumn<'a>,
        importance: &'a [f32],
    ) -> Result<Columns<'a>, ColumnsError> {
        let n = inv_norms.len();
        if rows.count(dim) != Some(n) {
            return Err(ColumnsError::Elements {
                found: rows.elements(),
                rows: n,
                dim: dim.get(),
                dtype: rows.dtype(),
            });
        }
        let signals = Signals::new(n, recency, importance)?;
        Ok(Columns {
            dim,
            rows,
            inv_norms,
            signals,
        })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.inv_norms.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.inv_norms.is_empty()
    }

    /// Elements per row.
    pub fn dim(&self) -> NonZeroUsize {
        self.dim
    }

    /// Last accesses, row by row. `None` for columns [with recencies](Columns::with_recency).
    pub fn last_access(&self) -> Option<&'a [i64]> {
        match self.signals.recency {
            RecencyColumn::LastAccess(column) => Some(column),
            RecencyColumn::Given(_) => None,
        }
    }

    /// Importances, row by row.
    pub fn importance(&self) -> &'a [f32] {
        self.signals.importance
    }

    pub(crate) fn rows(&self) -> Rows<'a> {
        self.rows
    }

    pub(crate) fn inv_norms(&self) -> &'a [f32] {
        self.inv_norms
    }

    pub(crate) fn signals(&self) -> Signals<'a> {
        self.signals
    }
}

/// One segment of memories whose relevance is already known, for callers who compute it themselves
/// (or store embeddings in a layout of their own).
#[derive(Clone, Copy, Debug)]
pub struct Components<'a> {
    pub(super) relevance: &'a [f32],
    pub(super) signals: Signals<'a>,
}

impl<'a> Components<'a> {
    /// `relevance` has one cosine per memory, NaN for one that has no vector.
    ///
    /// # Errors
    /// If the lengths differ.
    pub fn new(
        relevance: &'a [f32],
        last_access: &'a [i64],
        importance: &'a [f32],
    ) -> Result<Components<'a>, ColumnsError> {
        let recency = RecencyColumn::LastAccess(last_access);
        let signals = Signals::new(relevance.len(), recency, importance)?;
        Ok(Components { relevance, signals })
    }

    /// With the raw recency of each memory, in [0, 1], in place of its last access, for [`Recency::Given`]: a
    /// recency of the caller's own, such as one that decays in steps.
    ///
    /// ```
    /// use memorank::Par;
    /// use memorank::scoring::{Components, Preset, Query, Ranking, Recency, Workspace, rank_components};
    ///
    /// // Two of equal relevance and importance; the second was in use today.
    /// let components = [Components::with_recency(&[0.8, 0.8], &[0.25, 1.0], &[5.0, 5.0])?];
    /// let mut scoring = Preset::paper().scoring;
    /// scoring.recency = Recency::Given;
    /// let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
    /// let query = Query::new(&[], 0, 1);
    /// rank_components(&components, &query, &scoring, Par::Serial, &mut workspace, &mut ranking)?;
    /// assert_eq!((ranking.hits[0].row, ranking.hits[0].recency.raw), (1, 1.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the lengths differ.
    pub fn with_recency(
        relevance: &'a [f32],
        recency: &'a [f64],
        importance: &'a [f32],
    ) -> Result<Components<'a>, ColumnsError> {
        let signals = Signals::new(relevance.len(), RecencyColumn::Given(recency), importance)?;
        Ok(Components { relevance, signals })
    }

    pub(crate) fn relevance(&self) -> &'a [f32] {
        self.relevance
    }

    pub(crate) fn signals(&self) -> Signals<'a> {
        self.signals
    }
}

impl<'a> Signals<'a> {
    fn new(
        rows: usize,
        recency: RecencyColumn<'a>,
        importance: &'a [f32],
    ) -> Result<Signals<'a>, ColumnsError> {
        let of_recency = match recency {
            RecencyColumn::LastAccess(column) => ("last_access", column.len()),
            RecencyColumn::Given(column) => ("recency", column.len()),
        };
        for (column, found) in [of_recency, ("importance", importance.len())] {
            if found != rows {
                return Err(ColumnsError::Length {
                    column,
                    found,
                    rows,
                });
            }
        }
        Ok(Signals {
            recency,
            importance,
        })
    }

    /// The column of recency as whole numbers that order as its entries do: last accesses, or the bits of
    /// recencies. Numbers that are not negative order as their bits; -0 and those below 0 become negative.
    #[inline(always)]
    pub(crate) fn stamps(&self) -> &'a [i64] {
        match self.recency {
            RecencyColumn::LastAccess(column) => column,
            RecencyColumn::Given(column) => bytemuck::cast_slice(column),
        }
    }

    /// Whether a recency can be made of the column of segment number `segment`.
    pub(super) fn check(&self, segment: usize, recency: Recency) -> Result<(), RankError> {
        match (recency, self.recency) {
            (Recency::Age { .. }, RecencyColumn::LastAccess(_))
            | (Recency::Given, RecencyColumn::Given(_))
            | (Recency::Position { .. }, _) => Ok(()),
            (Recency::Age { .. }, RecencyColumn::Given(_)) => {
                Err(RankError::NoLastAccess { segment })
            }
            (Recency::Given, RecencyColumn::LastAccess(_)) => Err(RankError::NoRecency { segment }),
        }
    }
}

/// The stamp of a recency.
#[inline(always)]
pub(super) fn stamp_of(recency: f64) -> i64 {
    recency.to_bits().cast_signed()
}

/// The recency of a stamp.
#[inline(always)]
pub(super) fn recency_of(stamp: i64) -> f64 {
    f64::from_bits(stamp.cast_unsigned())
}

/// Columns that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnsError {
    /// The embeddings are not one row per memory.
    Elements {
        /// Elements found.
        found: usize,
        /// Memories.
        rows: usize,
        /// Elements per row.
        dim: usize,
        /// Their type.
        dtype: Dtype,
    },
    /// A column has another length than the first.
    Length {
        /// Which.
        column: &'static str,
        /// Its entries.
        found: usize,
        /// Memories.
        rows: usize,
    },
}

impl fmt::Display for ColumnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnsError::Elements {
                found,
                rows,
                dim,
                dtype,
            } => {
                write!(f, "{found} {dtype} elements are not {rows} rows of {dim}")
            }
            ColumnsError::Length {
                column,
                found,
                rows,
            } => {
                write!(f, "{column} has {found} entries for {rows} rows")
            }
        }
    }
}

impl std::error::Error for ColumnsError {}
