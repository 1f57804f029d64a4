//! Vectors in memory, one after another, as the kernel takes them.

use super::journal::Vector;
use super::tail::roomy;
use crate::kernel::{Dtype, Rows, f16};
use std::num::NonZeroUsize;
use std::ops::Range;

/// Vectors of a store's type and dimension. One of zeros, with an inverse norm of 0, is none.
pub(super) struct Vectors {
    elements: Elements,
    pub(super) inv_norms: Vec<f32>,
}

impl Vectors {
    pub(super) fn new(dtype: Dtype) -> Vectors {
        Vectors {
            elements: match dtype {
                Dtype::F32 => Elements::F32(Vec::new()),
                Dtype::F16 => Elements::F16(Vec::new()),
            },
            inv_norms: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.inv_norms.len()
    }

    pub(super) fn dtype(&self) -> Dtype {
        match self.elements {
            Elements::F32(_) => Dtype::F32,
            Elements::F16(_) => Dtype::F16,
        }
    }

    /// Adds one, whose elements are bytes at any address.
    pub(super) fn push(&mut self, vector: Vector<'_>) {
        self.inv_norms.push(vector.inv_norm);
        self.elements.extend(vector.elements);
    }

    /// Puts another in the place of one.
    ///
    /// # Panics
    /// If there is none at `at`, or they differ in length.
    pub(super) fn set(&mut self, at: usize, vector: Vector<'_>) {
        self.inv_norms[at] = vector.inv_norm;
        let bytes = self.elements.bytes_mut();
        let len = vector.elements.len();
        bytes[at * len..(at + 1) * len].copy_from_slice(vector.elements);
    }

    /// # Panics
    /// If the other's are of another type.
    pub(super) fn append(&mut self, other: &Vectors) {
        self.inv_norms.extend_from_slice(&other.inv_norms);
        self.elements.append(&other.elements);
    }

    /// The elements of some of them.
    pub(super) fn rows(&self, dim: NonZeroUsize, rows: Range<usize>) -> Rows<'_> {
        let elements = rows.start * dim.get()..rows.end * dim.get();
        match &self.elements {
            Elements::F32(all) => Rows::F32(&all[elements]),
            Elements::F16(all) => Rows::F16(&all[elements]),
        }
    }

    pub(super) fn get(&self, dim: NonZeroUsize, at: usize) -> Vector<'_> {
        Vector {
            inv_norm: self.inv_norms[at],
            elements: match self.rows(dim, at..at + 1) {
                Rows::F32(one) => bytemuck::cast_slice(one),
                Rows::F16(one) => bytemuck::cast_slice(one),
            },
        }
    }
}

enum Elements {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

impl Elements {
    /// Adds whole elements from bytes at any address.
    fn extend(&mut self, bytes: &[u8]) {
        fn extend<T: bytemuck::Pod>(all: &mut Vec<T>, bytes: &[u8]) {
            let first = all.len();
            all.resize(first + bytes.len() / size_of::<T>(), T::zeroed());
            bytemuck::cast_slice_mut(&mut all[first..]).copy_from_slice(bytes);
        }
        match self {
            Elements::F32(all) => extend(all, bytes),
            Elements::F16(all) => extend(all, bytes),
        }
    }

    fn append(&mut self, other: &Elements) {
        match (self, other) {
            (Elements::F32(all), Elements::F32(more)) => all.extend_from_slice(more),
            (Elements::F16(all), Elements::F16(more)) => all.extend_from_slice(more),
            (Elements::F32(_), Elements::F16(_)) | (Elements::F16(_), Elements::F32(_)) => {
                unreachable!("a store's vectors are of one type")
            }
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Elements::F32(all) => bytemuck::cast_slice_mut(all),
            Elements::F16(all) => bytemuck::cast_slice_mut(all),
        }
    }
}

/// With as much room as the original has, as they are copied in order to be pushed to.
impl Clone for Vectors {
    fn clone(&self) -> Vectors {
        Vectors {
            elements: match &self.elements {
                Elements::F32(all) => Elements::F32(roomy(all)),
                Elements::F16(all) => Elements::F16(roomy(all)),
            },
            inv_norms: roomy(&self.inv_norms),
        }
    }
}
