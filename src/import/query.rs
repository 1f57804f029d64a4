//! Query vectors from a file: `.npy` or JSON.

use super::error::{ImportError, Place, VectorProblem};
use super::npy::{MAGIC, Matrix};
use super::vectors::{elements, finite};
use crate::kernel::Dtype;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// More is no file of queries: a device without an end, say.
const LIMIT_BYTES: u64 = 1 << 30;

/// The query vectors of a file: at least one, all of one length, all elements finite.
///
/// A file that begins with numpy's magic bytes, whatever its name, is read as `.npy`: a little-endian
/// (`<f2`, `<f4` or `<f8`) matrix in C order, whose rows are the vectors, or an array of one dimension,
/// which is one vector. Any other file is read as JSON: one list of numbers, or a list of such lists.
///
/// Numbers that are no exact f32 are rounded to the nearest (those in JSON by way of f64). A vector of
/// zeros is given as it is.
///
/// The file is read once, so it may be a pipe, and it is held in memory while its vectors are made: at
/// most 1 GiB.
///
/// # Errors
/// A file that cannot be read or is neither of these; one without a vector, or with an empty one; vectors
/// of different lengths; an element that is no finite number within f32 (`null`, `1e400`, NaN). They name
/// the file and, where there is one, the vector and the element, counted from 0.
///
/// # Examples
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("queries.json");
/// std::fs::write(&path, "[[0.5, 2], [1, 0.25]]")?;
/// let queries = memorank::import::read_vectors(&path)?;
/// assert_eq!(queries, [[0.5, 2.0], [1.0, 0.25]]);
///
/// std::fs::write(&path, "[0.5, null]")?;
/// let error = memorank::import::read_vectors(&path).unwrap_err().to_string();
/// assert!(error.contains("queries.json, vector 0: element 1: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_vectors(path: &Path) -> Result<Vec<Vec<f32>>, ImportError> {
    let failed = |source| ImportError::Io {
        path: path.to_owned(),
        remedy: "",
        source,
    };
    let mut content = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LIMIT_BYTES + 1).read_to_end(&mut content))
        .map_err(failed)?;
    if content.len() as u64 > LIMIT_BYTES {
        let told = "more than 1 GiB of query vectors";
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, told)));
    }
    let vectors = if content.starts_with(MAGIC) {
        from_npy(path, &content)?
    } else {
        from_json(path, &content)?
    };
    if vectors.is_empty() {
        let path = path.to_owned();
        return Err(ImportError::NoVectors { path });
    }
    Ok(vectors)
}

fn from_npy(path: &Path, content: &[u8]) -> Result<Vec<Vec<f32>>, ImportError> {
    let mut matrix = Matrix::of_vectors(path, content)?;
    let mut vectors = Vec::new();
    for row in 0..matrix.rows() {
        let mut values = matrix.row_buffer();
        matrix.next_row(Dtype::F32, &mut values)?;
        finite(&values).map_err(|problem| ImportError::Vector {
            place: matrix.place(row),
            problem,
        })?;
        vectors.push(values);
    }
    Ok(vectors)
}

fn from_json(path: &Path, content: &[u8]) -> Result<Vec<Vec<f32>>, ImportError> {
    let wrong = |vector: usize, problem| ImportError::Vector {
        place: Place {
            path: path.to_owned(),
            item: format!("vector {vector}"),
        },
        problem,
    };
    // One list begins with anything but another list. (An empty one is read as a list of no lists.)
    let inside = content.trim_ascii_start().strip_prefix(b"[");
    let one = inside
        .is_some_and(|inside| !matches!(inside.trim_ascii_start().first(), Some(b'[' | b']')));
    let mut lists = Lists::default();
    let mut json = serde_json::Deserializer::from_slice(content);
    let read = match one {
        true => List(&mut lists).deserialize(&mut json),
        false => json.deserialize_seq(&mut lists),
    };
    if let Err(source) = read.and_then(|()| json.end()) {
        return Err(match lists.element {
            Some(element) => {
                let found = source.to_string();
                wrong(
                    lists.vectors.len(),
                    VectorProblem::Element { element, found },
                )
            }
            None => ImportError::Json {
                path: path.to_owned(),
                source,
            },
        });
    }
    let expected = lists.vectors.first().map_or(0, Vec::len);
    for (at, vector) in lists.vectors.iter().enumerate() {
        let found = vector.len();
        if found == 0 {
            return Err(wrong(at, VectorProblem::Empty));
        }
        if found != expected {
            let first = "vector 0".to_owned();
            let problem = VectorProblem::Dimension {
                found,
                expected,
                first,
            };
            return Err(wrong(at, problem));
        }
    }
    Ok(lists.vectors)
}

/// The vectors read so far: where an error stands is known from here.
#[derive(Default)]
struct Lists {
    vectors: Vec<Vec<f32>>,
    /// The element being read, within a vector.
    element: Option<usize>,
}

impl<'de> Visitor<'de> for &mut Lists {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers, or a list of such lists")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        loop {
            match seq.next_element_seed(List(self)) {
                Ok(Some(())) => {}
                Ok(None) => return Ok(()),
                Err(e) if self.element.is_some() => return Err(e),
                Err(e) => {
                    let at = self.vectors.len();
                    return Err(A::Error::custom(format!("vector {at}: {e}")));
                }
            }
        }
    }
}

/// Reads one vector more.
struct List<'a>(&'a mut Lists);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        let Lists { vectors, element } = self.0;
        let vector = elements(seq, element.insert(0), Dtype::F32)?;
        *element = None;
        vectors.push(vector.values);
        Ok(())
    }
}
