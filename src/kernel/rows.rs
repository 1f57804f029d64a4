//! Rows of embeddings as the caller holds them: one contiguous row-major slice, f32 or f16.

use half::f16;
use std::num::NonZeroUsize;

/// The element type of a column of embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Dtype {
    /// IEEE binary32.
    F32,
    /// IEEE binary16. Widened exactly before every product.
    F16,
}

impl Dtype {
    /// Bytes of one element: 4 or 2.
    pub const fn size_bytes(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 => 2,
        }
    }

    /// `"f32"` or `"f16"`.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
        }
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Embeddings, row after row: element `j` of row `i` is at `i * dim + j`.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// Rows of IEEE binary32.
    F32(&'a [f32]),
    /// Rows of IEEE binary16.
    F16(&'a [f16]),
}

impl<'a> Rows<'a> {
    /// The number of elements (not rows).
    pub fn elements(&self) -> usize {
        match self {
            Rows::F32(s) => s.len(),
            Rows::F16(s) => s.len(),
        }
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        match self {
            Rows::F32(_) => Dtype::F32,
            Rows::F16(_) => Dtype::F16,
        }
    }

    /// The number of whole rows of `dim` elements, or `None` if the slice ends inside a row.
    pub fn count(&self, dim: NonZeroUsize) -> Option<usize> {
        let n = self.elements();
        n.is_multiple_of(dim.get()).then(|| n / dim.get())
    }

    /// Row `row` widened to f32 (exact for both types).
    ///
    /// # Panics
    /// If the row does not lie inside the slice.
    pub fn widen(&self, dim: NonZeroUsize, row: usize) -> Vec<f32> {
        let start = row
            .checked_mul(dim.get())
            .expect("the row lies inside the slice");
        match self {
            Rows::F32(s) => s[start..][..dim.get()].to_vec(),
            Rows::F16(s) => s[start..][..dim.get()].iter().map(|x| x.to_f32()).collect(),
        }
    }
}
