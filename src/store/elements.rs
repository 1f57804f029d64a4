//! Embeddings in the store's element type, checked as they come; their norms are computed some at a time.

use super::error::MemoryProblem;
use crate::kernel::{Dtype, RowError, Rows, f16, inv_norms, is_surely_sound, to_f16};
use std::num::NonZeroUsize;
use std::ops::Range;

/// Rows whose norms are computed together: [`inv_norms`] takes a third of the time for each then.
const TOGETHER: usize = 8;

/// Whether an embedding can be stored in a store of this shape.
pub(crate) fn check_embedding(
    dim: NonZeroUsize,
    dtype: Dtype,
    embedding: &[f32],
) -> Result<(), MemoryProblem> {
    Elements::new(dim, dtype).set(embedding)
}

/// One embedding to be checked, after those whose norms are still to be computed.
pub(super) struct Elements {
    dim: NonZeroUsize,
    stored: Stored,
    /// Kept.
    rows: usize,
}

enum Stored {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

impl Elements {
    pub(super) fn new(dim: NonZeroUsize, dtype: Dtype) -> Elements {
        let room = TOGETHER * dim.get();
        let stored = match dtype {
            Dtype::F32 => Stored::F32(vec![0.0; room]),
            Dtype::F16 => Stored::F16(vec![f16::ZERO; room]),
        };
        Elements {
            dim,
            stored,
            rows: 0,
        }
    }

    /// Checks an embedding and puts it after those that were kept.
    pub(super) fn set(&mut self, embedding: &[f32]) -> Result<(), MemoryProblem> {
        let (expected, found) = (self.dim.get(), embedding.len());
        if found != expected {
            return Err(MemoryProblem::Dimension { expected, found });
        }
        let refused = |error: RowError| MemoryProblem::of_row(error.problem, expected);
        let at = self.elements(self.rows..self.rows + 1);
        match &mut self.stored {
            // What is not finite shows in the length.
            Stored::F32(stored) => stored[at].copy_from_slice(embedding),
            Stored::F16(stored) => {
                to_f16(self.dim, embedding, &mut stored[at]).map_err(refused)?;
            }
        }
        let row = self.rows(self.rows..self.rows + 1);
        match is_surely_sound(row) {
            true => Ok(()),
            false => inv_norms(self.dim, row, &mut [0.0]).map_err(refused),
        }
    }

    /// Keeps what was set until its norm is taken, and gives it as it is stored.
    pub(super) fn keep(&mut self) -> &[u8] {
        self.rows += 1;
        let at = self.elements(self.rows - 1..self.rows);
        match &self.stored {
            Stored::F32(stored) => bytemuck::cast_slice(&stored[at]),
            Stored::F16(stored) => bytemuck::cast_slice(&stored[at]),
        }
    }

    /// Whether there is room for no more.
    pub(super) fn is_full(&self) -> bool {
        self.rows == TOGETHER
    }

    /// The inverse norms of what was kept since they were taken last.
    pub(super) fn take_inv_norms(&mut self) -> impl Iterator<Item = f32> {
        let mut norms = [0.0; TOGETHER];
        let rows = std::mem::take(&mut self.rows);
        inv_norms(self.dim, self.rows(0..rows), &mut norms[..rows]).expect("each was checked");
        norms.into_iter().take(rows)
    }

    fn rows(&self, rows: Range<usize>) -> Rows<'_> {
        let at = self.elements(rows);
        match &self.stored {
            Stored::F32(stored) => Rows::F32(&stored[at]),
            Stored::F16(stored) => Rows::F16(&stored[at]),
        }
    }

    fn elements(&self, rows: Range<usize>) -> Range<usize> {
        rows.start * self.dim.get()..rows.end * self.dim.get()
    }
}
