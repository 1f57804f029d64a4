//! A matrix of vectors (`.npy`) with a `.jsonl` file beside it, one JSON object per row.

mod dictionary;
mod header;
mod lines;
mod matrix;
mod memories;

pub use header::HeaderError;
pub(super) use header::{MAGIC, Shapes};
pub(super) use lines::Lines;
pub(super) use matrix::Matrix;
pub(super) use memories::unhex;

use super::report::{Report, Tally};
use super::vectors::{Fit, fit};
use super::{
    ImportError, NoticeKind, Options, Place, Plan, Sink, Source, VectorProblem, destination,
    note_rounding,
};
use crate::kernel::Dtype;
use crate::store::NewMemory;
use header::Element;
use lines::Index;
use memories::Memories;
use std::io::{BufRead, Read};
use std::path::Path;

/// Imports the rows of `npy` with the memories of `jsonl` into a new store at `destination`.
///
/// The matrix is two-dimensional, little-endian (`<f2`, `<f4` or `<f8`) and in C order. It is read row
/// by row, so it may be larger than memory.
///
/// | field of a line | type | becomes |
/// |---|---|---|
/// | `created` | time | creation time; the only field that must be there |
/// | `key` | text | key |
/// | `id` | text or number | the key, where there is no `key`; a number is also what evidence means by it |
/// | `kind` | text | kind (observation if absent) |
/// | `text` | text | text (empty if absent) |
/// | `last_access` or `last_accessed` | time | last access; absent: the creation time, reported |
/// | `expiry` | time | expiry |
/// | `importance` | number | importance; absent: 1, reported |
/// | `evidence` | list | of keys, ids (positions from 0, if no line has a numeric `id`) and `{"missing": text}` |
/// | `has_embedding` | true or false | whether the memory has a vector; it must say what the row does |
/// | `depth` | number | depth; absent: 0, or for a reflection 1 + the deepest memory it cites among those before it |
/// | `payload` | any JSON | payload, byte for byte |
/// | `payload_hex` | text | payload, for bytes that are no JSON |
/// | any other | any | payload: an object of such fields by name, then `payload` if there is one; reported |
///
/// null is the same as absent. Beside a `key`, `id` must be a number; if it is not the position, it stays in
/// the payload, as the first field of an object like the one of unknown fields. (Only the bytes of
/// `payload_hex` have no room for it: it is reported, as every renumbered id is.) A time is RFC 3339 text
/// with a zone, or a number if [`Options::time_unit`] declares its unit. A row of zeros is stored without
/// a vector, and reported.
///
/// `progress` is first called after the `.jsonl` file was read for its keys; see
/// [progress](crate::import#progress).
///
/// # Errors
/// Whatever cannot be understood, naming the file and the line or row; then there is no store.
pub fn npy(
    npy: &Path,
    jsonl: &Path,
    destination: &Path,
    options: &Options,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, ImportError> {
    destination::check(destination)?;
    let rows = Rows::new(Matrix::open(npy)?, || Lines::open(jsonl), options)?;
    destination::build(destination, rows, progress)
}

fn contradicted(place: Place, found: &str, expected: &'static str) -> ImportError {
    ImportError::Field {
        place,
        field: "has_embedding",
        found: found.to_owned(),
        expected,
    }
}

/// A matrix and its lines, which are read twice.
pub(super) struct Rows<M, L> {
    plan: Plan,
    matrix: Matrix<M>,
    memories: Memories<L>,
}

impl<M: Read, L: BufRead> Rows<M, L> {
    /// `lines` gives them anew from the first.
    pub(super) fn new(
        matrix: Matrix<M>,
        lines: impl Fn() -> Result<Lines<L>, ImportError>,
        options: &Options,
    ) -> Result<Rows<M, L>, ImportError> {
        let dim = matrix.dim();
        if let Some(expected) = options.dim.filter(|&expected| expected != dim) {
            return Err(ImportError::Vector {
                place: Place {
                    path: matrix.path().to_owned(),
                    item: "every row".to_owned(),
                },
                problem: VectorProblem::Dimension {
                    found: dim.get(),
                    expected: expected.get(),
                    first: "the dimension asked for".to_owned(),
                },
            });
        }
        let index = Index::read(lines()?)?;
        let memories = Memories::new(lines()?, index, options.time_unit);
        if memories.lines() != matrix.rows() {
            return Err(ImportError::Counts {
                npy: matrix.path().to_owned(),
                rows: matrix.rows(),
                jsonl: memories.path().to_owned(),
                lines: memories.lines(),
            });
        }
        let (dtype, dtype_reason) = match (options.dtype, matrix.element()) {
            (Some(asked), element) => (asked, format!("asked for; the file holds {element}")),
            (None, Element::F16) => (Dtype::F16, "the file holds <f2".to_owned()),
            (None, Element::F32) => (Dtype::F32, "the file holds <f4".to_owned()),
            (None, Element::F64) => (
                Dtype::F32,
                "the file holds <f8; values that are no exact f32 are rounded".to_owned(),
            ),
        };
        Ok(Rows {
            plan: Plan {
                dim,
                dtype,
                dtype_reason,
                model: options.model.clone(),
            },
            matrix,
            memories,
        })
    }
}

impl<M: Read, L: BufRead> Source for Rows<M, L> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn memories(&self) -> u64 {
        self.matrix.rows()
    }

    fn feed(mut self, sink: &mut dyn Sink) -> Result<Report, ImportError> {
        let dim = self.plan.dim.get();
        let mut tally = Tally::default();
        let mut values = self.matrix.row_buffer();
        let mut row = 0;
        while let Some(line) = self.memories.next(&mut tally.notices)? {
            let to_f32 = self.matrix.next_row(self.plan.dtype, &mut values)?;
            let fit = fit(self.plan.dtype, &values).map_err(|problem| ImportError::Vector {
                place: self.matrix.place(row),
                problem,
            })?;
            let embedding = match fit {
                Fit::Zero if line.has_embedding == Some(true) => {
                    return Err(contradicted(
                        line.place,
                        "true",
                        "false, for its row is all zeros",
                    ));
                }
                Fit::Stored { .. } if line.has_embedding == Some(false) => {
                    return Err(contradicted(
                        line.place,
                        "false",
                        "true, for its row is not all zeros",
                    ));
                }
                Fit::Zero => {
                    let notice = match line.has_embedding {
                        Some(_) => NoticeKind::VectorMissing,
                        None => NoticeKind::VectorZero,
                    };
                    tally.notices.add(notice, &line.name);
                    None
                }
                Fit::Stored { rounded: to_f16 } => {
                    note_rounding(&mut tally.notices, &line.name, to_f32, to_f16, dim);
                    Some(&values[..])
                }
            };
            let memory = NewMemory {
                key: line.key.as_deref(),
                kind: line.kind,
                text: &line.text,
                embedding,
                created: line.created,
                last_access: line.last_access,
                expiry: line.expiry,
                importance: line.importance,
                evidence: &line.evidence,
                depth: line.depth,
                supersedes: None,
                payload: &line.payload,
            };
            sink.push(&line.place, &memory)?;
            tally.count(&memory);
            row += 1;
        }
        if row != self.matrix.rows() {
            return Err(ImportError::Counts {
                npy: self.matrix.path().to_owned(),
                rows: self.matrix.rows(),
                jsonl: self.memories.path().to_owned(),
                lines: row,
            });
        }
        Ok(tally.report("npy", self.matrix.path(), Vec::new(), &self.plan))
    }
}
