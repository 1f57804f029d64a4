//! Vectors: the file of embeddings of a JSON archive, and what a vector must be to be stored.

use super::error::{ImportError, Place, VectorProblem};
use crate::kernel::{Dtype, RowError, Rows, f16, inv_norms, to_f16};
use half::slice::HalfFloatSliceExt;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The values of one vector as [`narrow`] gives them, and how many of the file's numbers it rounded for
/// good. Empty where the file holds null or an empty list.
#[derive(Clone, Debug, Default)]
pub(super) struct Vector {
    pub(super) values: Vec<f32>,
    pub(super) rounded: usize,
}

/// What became of a vector that can be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// All zeros as given: no direction, stored without a vector.
    Zero,
    /// Stored, with this many elements rounded by the column type.
    Stored { rounded: usize },
}

/// Refuses NaN and infinities.
pub(super) fn finite(values: &[f32]) -> Result<(), VectorProblem> {
    match values.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(element) => Err(VectorProblem::Element {
            element,
            found: values[element].to_string(),
        }),
    }
}

/// Whether `values` can be a row of a `dtype` column.
pub(super) fn fit(dtype: Dtype, values: &[f32]) -> Result<Fit, VectorProblem> {
    let Some(dim) = NonZeroUsize::new(values.len()).filter(|_| values.iter().any(|&x| x != 0.0))
    else {
        return Ok(Fit::Zero);
    };
    let refused = |error: RowError| VectorProblem::from(error.problem);
    let mut inverse = [0.0];
    let rounded = match dtype {
        Dtype::F32 => {
            inv_norms(dim, Rows::F32(values), &mut inverse).map_err(refused)?;
            0
        }
        Dtype::F16 => {
            let mut stored = vec![f16::ZERO; values.len()];
            to_f16(dim, values, &mut stored).map_err(refused)?;
            inv_norms(dim, Rows::F16(&stored), &mut inverse).map_err(refused)?;
            let mut widened = vec![0.0; values.len()];
            stored.convert_to_f32_slice(&mut widened);
            let pairs = values.iter().zip(&widened);
            pairs.filter(|(given, stored)| given != stored).count()
        }
    };
    Ok(Fit::Stored { rounded })
}

/// A number of a file as f32, on its way into a column of `column`, and whether that rounded it for good.
///
/// To nearest, unless the column is f16: rounding to nearest twice can end on the wrong side of a tie. So
/// there it is rounded to odd (what is no f32 becomes the neighbour whose last bit is 1), which cannot
/// be mistaken for a tie later: f32 has more than the two bits beyond f16 that this takes. Then rounding
/// to f16 is the only one that shows. Beyond f32 the result is infinite.
pub(super) fn narrow(wide: f64, column: Dtype) -> (f32, bool) {
    let nearest = wide as f32;
    let exact = f64::from(nearest);
    match column {
        Dtype::F32 => (nearest, exact != wide),
        Dtype::F16 if exact == wide || !nearest.is_finite() => (nearest, false),
        Dtype::F16 => {
            let towards_zero = nearest.to_bits() - u32::from(exact.abs() > wide.abs());
            (f32::from_bits(towards_zero | 1), false)
        }
    }
}

/// The vectors of a JSON archive, by the text they belong to.
#[derive(Debug, Default)]
pub(super) struct Embeddings {
    path: PathBuf,
    /// Keys in the order of the file.
    pub(super) keys: Vec<String>,
    vectors: HashMap<String, Vector>,
    /// `None` if no entry has elements.
    pub(super) dim: Option<NonZeroUsize>,
}

impl Embeddings {
    /// Reads an object of text -> list of numbers, the `bytes` of the file `path`. `owner` names the first memory that uses a text,
    /// for the error that must name it.
    pub(super) fn parse(
        path: &Path,
        bytes: &[u8],
        column: Dtype,
        owner: impl Fn(&str) -> Option<String>,
    ) -> Result<Embeddings, ImportError> {
        let place = |key: &str| {
            let entry = format!("embedding of {:?}", super::report::shortened(key));
            Place {
                path: path.to_owned(),
                item: owner(key).map_or(entry.clone(), |node| format!("{node}, {entry}")),
            }
        };
        let mut entries = Entries {
            pairs: Vec::new(),
            at: None,
            column,
        };
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let read = entries.deserialize(&mut json).and_then(|()| json.end());
        if let Err(source) = read {
            return Err(match entries.at {
                Some((key, element)) => ImportError::Vector {
                    place: place(&key),
                    problem: VectorProblem::Element {
                        element,
                        found: source.to_string(),
                    },
                },
                None => ImportError::Json {
                    path: path.to_owned(),
                    source,
                },
            });
        }
        let mut first: Option<(&str, NonZeroUsize)> = None;
        for (key, vector) in &entries.pairs {
            let Some(dim) = NonZeroUsize::new(vector.values.len()) else {
                continue;
            };
            let (first, expected) = *first.get_or_insert((key, dim));
            if dim != expected {
                let problem = VectorProblem::Dimension {
                    found: dim.get(),
                    expected: expected.get(),
                    first: place(first).item,
                };
                let place = place(key);
                return Err(ImportError::Vector { place, problem });
            }
        }
        let dim = first.map(|(_, dim)| dim);
        let keys = entries.pairs.iter().map(|(key, _)| key.clone()).collect();
        Ok(Embeddings {
            path: path.to_owned(),
            keys,
            vectors: entries.pairs.into_iter().collect(),
            dim,
        })
    }

    /// The vector of `key`; `None` if it has no entry, or one without elements.
    pub(super) fn get(&self, key: &str) -> Option<&Vector> {
        self.vectors.get(key).filter(|v| !v.values.is_empty())
    }

    /// [`fit`], with an error that names file, memory and text.
    pub(super) fn fit(
        &self,
        dtype: Dtype,
        item: &str,
        vector: &Vector,
    ) -> Result<Fit, ImportError> {
        fit(dtype, &vector.values).map_err(|problem| ImportError::Vector {
            place: Place {
                path: self.path.clone(),
                item: item.to_owned(),
            },
            problem,
        })
    }
}

/// The entries read so far, and the one being read: where an error stands is known from here.
struct Entries {
    pairs: Vec<(String, Vector)>,
    at: Option<(String, usize)>,
    column: Dtype,
}

impl<'de> DeserializeSeed<'de> for &mut Entries {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Entries {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of text -> list of numbers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                let twice = format!("{key:?} occurs twice; one text has one vector");
                return Err(A::Error::custom(twice));
            }
            let (_, element) = self.at.insert((key, 0));
            let vector = map.next_value_seed(Elements(element, self.column))?;
            self.pairs
                .extend(self.at.take().map(|(key, _)| (key, vector)));
        }
        Ok(())
    }
}

/// Reads one vector for a column, counting in the reference.
struct Elements<'a>(&'a mut usize, Dtype);

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = Vector;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vector, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Vector;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers, or null")
    }

    fn visit_unit<E>(self) -> Result<Vector, E> {
        Ok(Vector::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vector, A::Error> {
        elements(seq, self.0, self.1)
    }
}

/// Reads a list of numbers for a column, counting in `at`: after an error, the element it is about.
pub(super) fn elements<'de, A: SeqAccess<'de>>(
    mut seq: A,
    at: &mut usize,
    column: Dtype,
) -> Result<Vector, A::Error> {
    let mut vector = Vector::default();
    while let Some(wide) = seq.next_element::<f64>()? {
        let (value, rounded) = narrow(wide, column);
        if !value.is_finite() {
            return Err(A::Error::custom(format!("{wide:e} is beyond f32")));
        }
        vector.rounded += usize::from(rounded);
        vector.values.push(value);
        *at += 1;
    }
    Ok(vector)
}
