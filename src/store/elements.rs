//! One embedding in the store's element type, checked.

use super::error::MemoryProblem;
use crate::kernel::{Dtype, RowError, Rows, f16, inv_norms, to_f16};
use std::num::NonZeroUsize;

/// Room for one embedding, kept from one memory to the next.
pub(super) enum Elements {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

impl Elements {
    pub(super) fn new(dim: NonZeroUsize, dtype: Dtype) -> Elements {
        match dtype {
            Dtype::F32 => Elements::F32(vec![0.0; dim.get()]),
            Dtype::F16 => Elements::F16(vec![f16::ZERO; dim.get()]),
        }
    }

    fn rows(&self) -> Rows<'_> {
        match self {
            Elements::F32(stored) => Rows::F32(stored),
            Elements::F16(stored) => Rows::F16(stored),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Elements::F32(stored) => bytemuck::cast_slice(stored),
            Elements::F16(stored) => bytemuck::cast_slice(stored),
        }
    }

    /// Takes an embedding (or zeros for none) and gives its inverse norm.
    pub(super) fn set(&mut self, embedding: Option<&[f32]>) -> Result<f32, MemoryProblem> {
        let expected = self.rows().elements();
        let Some(given) = embedding else {
            match self {
                Elements::F32(stored) => stored.fill(0.0),
                Elements::F16(stored) => stored.fill(f16::ZERO),
            }
            return Ok(0.0);
        };
        let found = given.len();
        let Some(dim) = NonZeroUsize::new(found).filter(|dim| dim.get() == expected) else {
            return Err(MemoryProblem::Dimension { expected, found });
        };
        let refused = |error: RowError| MemoryProblem::of_row(error.problem, expected);
        match self {
            // What is not finite shows in the length.
            Elements::F32(stored) => stored.copy_from_slice(given),
            Elements::F16(stored) => to_f16(dim, given, stored).map_err(refused)?,
        }
        let mut inv_norm = [0.0];
        inv_norms(dim, self.rows(), &mut inv_norm).map_err(refused)?;
        Ok(inv_norm[0])
    }
}
