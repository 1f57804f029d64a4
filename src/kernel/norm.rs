//! Lengths of rows and queries, in f64.
//!
//! The square sum is sequential over ascending elements with one multiplication and one addition
//! each (no FMA), then one square root: the same bits wherever IEEE f64 is. A row keeps the f32
//! `1 / length` computed once from its STORED elements; a query is divided element by element in
//! f64 and rounded to f32.

use super::lanes::Element;
use super::rows::Rows;
use std::fmt;
use std::num::NonZeroUsize;

/// The shortest length a row may have: 2^-96. Below it (and at 0) the row is refused.
pub const LENGTH_MIN: f64 = f64::from_bits((1023 - 96) << 52);

/// The longest length a row may have: 2^96.
pub const LENGTH_MAX: f64 = f64::from_bits((1023 + 96) << 52);

/// Why a row of embeddings cannot be scored.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RowProblem {
    /// An element is NaN or infinite.
    NonFinite {
        /// Index of the element within its row.
        element: usize,
        /// Its value.
        value: f32,
    },
    /// The length is 0 or outside [[`LENGTH_MIN`], [`LENGTH_MAX`]].
    Length {
        /// The length of the stored elements, in f64.
        length: f64,
    },
    /// The slice ends inside a row, or has another number of rows than the output.
    Shape {
        /// Elements found.
        elements: usize,
        /// Elements per row.
        dim: usize,
        /// Rows expected.
        rows: usize,
    },
}

/// A row that cannot be scored, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowError {
    /// Index of the row (0 for [`RowProblem::Shape`]).
    pub row: usize,
    /// What is wrong with it.
    pub problem: RowProblem,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.row;
        match self.problem {
            RowProblem::NonFinite { element, value } => {
                write!(
                    f,
                    "row {row}: element {element} is {value}; embeddings must be finite"
                )
            }
            RowProblem::Length { length: 0.0 } => write!(
                f,
                "row {row}: the vector is all zeros and has no direction; store it without a vector"
            ),
            RowProblem::Length { length } => write!(
                f,
                "row {row}: length {length:e} is outside [2^-96, 2^96]; rescale the vector"
            ),
            RowProblem::Shape {
                elements,
                dim,
                rows,
            } => write!(
                f,
                "{elements} elements are not {rows} rows of {dim} elements"
            ),
        }
    }
}

impl std::error::Error for RowError {}

/// The inverse length of every row, as ranking wants it: `out[i] = 1 / |row i|` in f64, rounded to f32.
///
/// # Errors
/// The first row that holds a non-finite element, or whose length is 0 or outside
/// [[`LENGTH_MIN`], [`LENGTH_MAX`]]; or a shape that does not fit. `out` is then unspecified. A caller
/// that keeps rows without a vector gives them an inverse norm of 0 itself.
///
/// ```
/// use memorank::kernel::{Rows, inv_norms};
/// let mut inv = [0.0];
/// inv_norms(2.try_into().unwrap(), Rows::F32(&[3.0, 4.0]), &mut inv)?;
/// assert_eq!(inv, [0.2]);
/// # Ok::<(), memorank::kernel::RowError>(())
/// ```
pub fn inv_norms(dim: NonZeroUsize, rows: Rows<'_>, out: &mut [f32]) -> Result<(), RowError> {
    if rows.count(dim) != Some(out.len()) {
        let problem = RowProblem::Shape {
            elements: rows.elements(),
            dim: dim.get(),
            rows: out.len(),
        };
        return Err(RowError { row: 0, problem });
    }
    match rows {
        Rows::F32(s) => each(dim, s, out),
        Rows::F16(s) => each(dim, s, out),
    }
}

fn each<E: Element>(dim: NonZeroUsize, elements: &[E], out: &mut [f32]) -> Result<(), RowError> {
    for (row, (elements, out)) in elements.chunks_exact(dim.get()).zip(out).enumerate() {
        let length = square_sum(elements.iter().map(|&x| x.widen())).sqrt();
        if !length.is_finite()
            && let Some(element) = elements.iter().position(|&x| !x.widen().is_finite())
        {
            let value = elements[element].widen();
            return Err(RowError {
                row,
                problem: RowProblem::NonFinite { element, value },
            });
        }
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&length) {
            return Err(RowError {
                row,
                problem: RowProblem::Length { length },
            });
        }
        *out = (1.0 / length) as f32;
    }
    Ok(())
}

/// Sum of squares in f64, in ascending order. Finite for finite f32 elements up to any length that
/// fits in memory, and non-finite if any element is.
pub(crate) fn square_sum(elements: impl Iterator<Item = f32>) -> f64 {
    elements.map(f64::from).fold(0.0, |sum, x| sum + x * x)
}
