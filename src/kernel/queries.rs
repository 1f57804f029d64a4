//! Query vectors, made ready for the kernels: padded with zeros to whole groups of 16 lanes.

use super::dispatch::{Kernel, Loop};
use super::lanes::LANES;
use super::norm::square_sum;
use std::fmt;
use std::num::NonZeroUsize;

/// Why a query embedding cannot be used.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum QueryError {
    /// It has another dimension than the rows.
    Dimension {
        /// Elements found.
        found: usize,
        /// Elements per row.
        expected: usize,
    },
    /// An element is NaN or infinite.
    NonFinite {
        /// Index of the element.
        element: usize,
        /// Its value.
        value: f32,
    },
    /// All elements are zero: there is no direction to compare with.
    Zero,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Dimension { found, expected } => {
                write!(
                    f,
                    "the query has {found} elements, the rows have {expected}"
                )
            }
            QueryError::NonFinite { element, value } => {
                write!(
                    f,
                    "query element {element} is {value}; embeddings must be finite"
                )
            }
            QueryError::Zero => f.write_str("the query is all zeros and has no direction"),
        }
    }
}

impl std::error::Error for QueryError {}

/// A set of query vectors of one dimension. Reusable: [`clear`](Queries::clear) keeps the memory.
#[derive(Clone, Debug)]
pub struct Queries {
    dim: NonZeroUsize,
    /// Query after query, each padded to a multiple of [`LANES`].
    padded: Vec<f32>,
}

impl Queries {
    /// An empty set of queries of `dim` elements each.
    pub fn new(dim: NonZeroUsize) -> Queries {
        Queries {
            dim,
            padded: Vec::new(),
        }
    }

    /// Empties the set and sets the dimension of what comes next.
    pub fn clear(&mut self, dim: NonZeroUsize) {
        self.dim = dim;
        self.padded.clear();
    }

    /// Adds a vector as it is.
    ///
    /// # Errors
    /// Another dimension, or a non-finite element. Nothing is added then.
    pub fn push(&mut self, vector: &[f32]) -> Result<(), QueryError> {
        self.check_dimension(vector)?;
        check_finite(vector)?;
        self.extend(vector.iter().copied());
        Ok(())
    }

    /// Adds a vector divided by its length: the norm in f64 (sequential square sum, no FMA), each
    /// element divided in f64 and rounded to f32.
    ///
    /// # Errors
    /// Another dimension, a non-finite element, or a vector of zeros. Nothing is added then.
    pub fn push_unit(&mut self, vector: &[f32]) -> Result<(), QueryError> {
        self.check_dimension(vector)?;
        let length = square_sum(vector.iter().copied()).sqrt();
        if !length.is_finite() {
            check_finite(vector)?;
        }
        if length == 0.0 {
            return Err(QueryError::Zero);
        }
        let start = self.padded.len();
        self.padded.resize(start + self.stride(), 0.0);
        let unit = &mut self.padded[start..][..vector.len()];
        Kernel::best().run(Divide {
            vector,
            length,
            unit,
        });
        Ok(())
    }

    /// Elements per query.
    pub fn dim(&self) -> NonZeroUsize {
        self.dim
    }

    /// The number of queries.
    pub fn len(&self) -> usize {
        self.padded.len() / self.stride()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.padded.is_empty()
    }

    /// Query `index`, padded to a multiple of 16 elements.
    pub(super) fn padded(&self, index: usize) -> &[f32] {
        &self.padded[index * self.stride()..(index + 1) * self.stride()]
    }

    fn stride(&self) -> usize {
        self.dim.get().next_multiple_of(LANES)
    }

    fn check_dimension(&self, vector: &[f32]) -> Result<(), QueryError> {
        if vector.len() == self.dim.get() {
            Ok(())
        } else {
            Err(QueryError::Dimension {
                found: vector.len(),
                expected: self.dim.get(),
            })
        }
    }

    fn extend(&mut self, elements: impl Iterator<Item = f32>) {
        let end = self.padded.len() + self.stride();
        self.padded.extend(elements);
        self.padded.resize(end, 0.0);
    }
}

/// `unit = vector / length`, in f64.
struct Divide<'a> {
    vector: &'a [f32],
    length: f64,
    unit: &'a mut [f32],
}

impl Loop for Divide<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (unit, &x) in self.unit.iter_mut().zip(self.vector) {
            *unit = (f64::from(x) / self.length) as f32;
        }
    }
}

fn check_finite(vector: &[f32]) -> Result<(), QueryError> {
    match vector.iter().position(|x| !x.is_finite()) {
        Some(element) => Err(QueryError::NonFinite {
            element,
            value: vector[element],
        }),
        None => Ok(()),
    }
}
