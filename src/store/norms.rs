//! Inverse norms of vectors that were stored, from the bytes of their elements.

use crate::kernel::{Dtype, RowProblem, Rows, f16, inv_norms};
use std::num::NonZeroUsize;

/// Computes inverse norms of elements as they are stored.
pub(super) struct Norms {
    dim: NonZeroUsize,
    aligned: Aligned,
}

enum Aligned {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

impl Norms {
    pub(super) fn new(dim: NonZeroUsize, dtype: Dtype) -> Norms {
        let aligned = match dtype {
            Dtype::F32 => Aligned::F32(vec![0.0; dim.get()]),
            Dtype::F16 => Aligned::F16(vec![f16::ZERO; dim.get()]),
        };
        Norms { dim, aligned }
    }

    /// The inverse norm of `dim` elements at any address; 0 if they are what a row without a vector holds.
    pub(super) fn of(&mut self, elements: &[u8]) -> Result<f32, RowProblem> {
        if elements.iter().all(|&byte| byte == 0) {
            return Ok(0.0);
        }
        let row = match &mut self.aligned {
            Aligned::F32(row) => {
                bytemuck::cast_slice_mut(row).copy_from_slice(elements);
                Rows::F32(row)
            }
            Aligned::F16(row) => {
                bytemuck::cast_slice_mut(row).copy_from_slice(elements);
                Rows::F16(row)
            }
        };
        let mut inv_norm = [0.0];
        inv_norms(self.dim, row, &mut inv_norm).map_err(|error| error.problem)?;
        Ok(inv_norm[0])
    }
}
