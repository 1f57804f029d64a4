//! Lengths of rows and queries, in f64.
//!
//! The square sum is sequential over ascending elements with one multiplication and one addition
//! each (no FMA), then one square root: the same bits wherever IEEE f64 is. A row keeps the f32
//! `1 / length` computed once from its STORED elements; a query is divided element by element in
//! f64 and rounded to f32.

use super::dispatch::{Kernel, Loop};
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
    /// An element would be infinite as f16: 65520 or more, either sign.
    F16Overflow {
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

impl RowError {
    pub(super) fn shape(elements: usize, dim: NonZeroUsize, rows: usize) -> RowError {
        let problem = RowProblem::Shape {
            elements,
            dim: dim.get(),
            rows,
        };
        RowError { row: 0, problem }
    }
}

impl fmt::Display for RowProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowProblem::NonFinite { element, value } => {
                write!(f, "element {element} is {value}; embeddings must be finite")
            }
            RowProblem::F16Overflow { element, value } => write!(
                f,
                "element {element} is {value}, beyond f16; scale the embeddings or store f32"
            ),
            RowProblem::Length { length: 0.0 } => f.write_str(
                "the vector is all zeros and has no direction; store it without a vector",
            ),
            RowProblem::Length { length } => write!(
                f,
                "length {length:e} is outside [2^-96, 2^96]; rescale the vector"
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

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            RowProblem::Shape { .. } => self.problem.fmt(f),
            _ => write!(f, "row {}: {}", self.row, self.problem),
        }
    }
}

impl std::error::Error for RowError {}

/// The inverse length of every row, as ranking wants it: `out[i] = 1 / |row i|` in f64, rounded to f32.
///
/// # Errors
/// The first row that holds a non-finite element, or whose length is 0 or outside
/// [[`LENGTH_MIN`], [`LENGTH_MAX`]]; or a shape that does not fit. `out` is unchanged then. A caller
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
        return Err(RowError::shape(rows.elements(), dim, out.len()));
    }
    match rows {
        Rows::F32(s) => each(dim, s, out),
        Rows::F16(s) => each(dim, s, out),
    }
}

/// Into memory of its own first (4 bytes a row): a row that is refused leaves `out` as it was.
fn each<E: Element>(dim: NonZeroUsize, elements: &[E], out: &mut [f32]) -> Result<(), RowError> {
    let mut inverse = Vec::with_capacity(out.len());
    let (dim, kernel) = (dim.get(), Kernel::best());
    let mut groups = elements.chunks_exact(SIDE_BY_SIDE * dim);
    for group in groups.by_ref() {
        for sum in square_sums::<E, SIDE_BY_SIDE>(kernel, group) {
            let row = inverse.len();
            inverse.push(inverse_of(sum, row, &elements[row * dim..][..dim])?);
        }
    }
    for elements in groups.remainder().chunks_exact(dim) {
        let [sum] = square_sums(kernel, elements);
        inverse.push(inverse_of(sum, inverse.len(), elements)?);
    }
    out.copy_from_slice(&inverse);
    Ok(())
}

/// `1 / length` of row number `row`, whose elements' squares add to `sum`.
fn inverse_of<E: Element>(sum: f64, row: usize, elements: &[E]) -> Result<f32, RowError> {
    let length = sum.sqrt();
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
    Ok((1.0 / length) as f32)
}

/// Rows whose squares are added side by side: a sum waits four cycles for each addition, and other
/// rows' additions fit in between.
const SIDE_BY_SIDE: usize = 8;

/// Elements of a row that are squared before they are added.
const SLICE: usize = 64;

/// The sum of squares of each of `R` rows, which are all of `elements`.
fn square_sums<E: Element, const R: usize>(kernel: Kernel, elements: &[E]) -> [f64; R] {
    let dim = elements.len() / R;
    let mut sums = [0.0; R];
    let mut squares = [[0.0; SLICE]; R];
    for start in (0..dim).step_by(SLICE) {
        let len = SLICE.min(dim - start);
        for (row, squares) in squares.iter_mut().enumerate() {
            let elements = &elements[row * dim + start..][..len];
            kernel.run(Square(elements, &mut squares[..len]));
        }
        // Here and not in the kernel's loop: with wide registers the compiler would gather each step's
        // squares into one, which takes longer than adding them.
        for j in 0..len {
            for (sum, squares) in sums.iter_mut().zip(&squares) {
                *sum += squares[j];
            }
        }
    }
    sums
}

/// The squares of elements, as many.
struct Square<'a, E>(&'a [E], &'a mut [f64]);

impl<E: Element> Loop for Square<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (square, &x) in self.1.iter_mut().zip(self.0) {
            *square = x.square();
        }
    }
}

/// Whether a row surely has a length that [`inv_norms`] takes: if not, `inv_norms` decides. A length is
/// at least the largest element and at most so many times it as the square root of the dimension.
#[cfg(feature = "store")]
pub(crate) fn is_surely_sound(row: Rows<'_>) -> bool {
    const DIM_MAX: f64 = (1_u64 << 40) as f64;
    let largest = match row {
        Rows::F32(s) => f64::from(largest(s)),
        // What is not finite is an infinity here.
        Rows::F16(s) => f64::from(largest(s)),
    };
    (2.0 * LENGTH_MIN..LENGTH_MAX / DIM_MAX.sqrt()).contains(&largest)
}

/// The largest magnitude among elements, or what is not finite, if anything is.
pub(super) fn largest<E: Element>(elements: &[E]) -> f32 {
    E::of_magnitude(Kernel::best().run(Largest(elements)))
}

/// The largest magnitude, as bits: they ascend with it.
struct Largest<'a, E>(&'a [E]);

impl<E: Element> Loop for Largest<'_, E> {
    type Output = E::Bits;

    #[inline(always)]
    fn run(self) -> E::Bits {
        let mut largest = E::Bits::default();
        for &x in self.0 {
            largest = largest.max(x.magnitude());
        }
        largest
    }
}

/// Sum of squares in f64, in ascending order. Finite for finite f32 elements up to any length that
/// fits in memory, and non-finite if any element is.
pub(crate) fn square_sum(elements: impl Iterator<Item = f32>) -> f64 {
    elements.map(f64::from).fold(0.0, |sum, x| sum + x * x)
}
