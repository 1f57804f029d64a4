//! Dot products and cosines over plain slices, with the same bits on every instruction set.

mod norm;
mod rows;

pub use half::f16;
pub use norm::{LENGTH_MAX, LENGTH_MIN, RowError, RowProblem, inv_norms};
pub use rows::{Dtype, Rows};
