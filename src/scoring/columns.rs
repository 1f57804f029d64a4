//! Columns as the caller holds them: one entry per memory, borrowed, in one or more segments.

use crate::kernel::{Dtype, Rows};
use std::fmt;
use std::num::NonZeroUsize;

/// One segment of memories: embeddings, inverse norms, last accesses and importances, row by row.
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
    pub(crate) last_access: &'a [i64],
    pub(crate) importance: &'a [f32],
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
        let n = inv_norms.len();
        if rows.count(dim) != Some(n) {
            return Err(ColumnsError::Elements {
                found: rows.elements(),
                rows: n,
                dim: dim.get(),
                dtype: rows.dtype(),
            });
        }
        let signals = Signals::new(n, last_access, importance)?;
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

    /// Last accesses, row by row.
    pub fn last_access(&self) -> &'a [i64] {
        self.signals.last_access
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
        let signals = Signals::new(relevance.len(), last_access, importance)?;
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
        last_access: &'a [i64],
        importance: &'a [f32],
    ) -> Result<Signals<'a>, ColumnsError> {
        for (column, found) in [
            ("last_access", last_access.len()),
            ("importance", importance.len()),
        ] {
            if found != rows {
                return Err(ColumnsError::Length {
                    column,
                    found,
                    rows,
                });
            }
        }
        Ok(Signals {
            last_access,
            importance,
        })
    }
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
