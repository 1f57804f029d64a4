//! A matrix of vectors (`.npy`) with a `.jsonl` file beside it, one JSON object per row.

mod header;
mod lines;
mod memories;

pub use header::HeaderError;

use super::report::{Report, Tally};
use super::vectors::{Fit, fit};
use super::{
    ImportError, NoticeKind, Options, Place, Plan, Sink, Source, VectorProblem, destination,
    note_rounding,
};
use crate::kernel::{Dtype, f16};
use crate::store::NewMemory;
use half::slice::HalfFloatSliceExt;
use header::{Element, Header};
use lines::Index;
use memories::Memories;
use std::fs::File;
use std::io::{BufReader, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Imports the rows of `npy` with the memories of `jsonl` into a new store at `destination`.
///
/// The matrix is two-dimensional, little-endian (`<f2`, `<f4` or `<f8`) and in C order. It is read row
/// by row, so it may be larger than memory.
///
/// | field of a line | type | becomes |
/// |---|---|---|
/// | `created` | time | creation time; the only field that must be there |
/// | `key` | text | key |
/// | `id` | text or number | the key, where there is no `key`; or, as a number, what evidence means by that number |
/// | `kind` | text | kind (observation if absent) |
/// | `text` | text | text (empty if absent) |
/// | `last_access` or `last_accessed` | time | last access; absent: the creation time, reported |
/// | `expiry` | time | expiry |
/// | `importance` | number | importance; absent: 1, reported |
/// | `evidence` | list | of keys, ids (positions from 0, if no line has a numeric `id`) and `{"missing": text}` |
/// | `depth` | number | depth; absent: 0, or for a reflection 1 + the deepest memory it cites among those before it |
/// | `payload` | any JSON | payload, byte for byte |
/// | `payload_hex` | text | payload, for bytes that are no JSON |
/// | any other | any | payload: an object of such fields by name, then `payload` if there is one; reported |
///
/// null is the same as absent. A time is RFC 3339 text with a zone, or a number if [`Options::time_unit`]
/// declares its unit. A row of zeros is stored without a vector, and reported.
///
/// # Errors
/// Whatever cannot be understood, naming the file and the line or row; then there is no store.
pub fn npy(
    npy: &Path,
    jsonl: &Path,
    destination: &Path,
    options: &Options,
) -> Result<Report, ImportError> {
    destination::check(destination)?;
    destination::build(destination, Rows::open(npy, jsonl, options)?)
}

struct Rows {
    plan: Plan,
    path: PathBuf,
    file: BufReader<File>,
    header: Header,
    memories: Memories,
}

impl Rows {
    fn open(npy: &Path, jsonl: &Path, options: &Options) -> Result<Rows, ImportError> {
        let failed = |source| ImportError::Npy {
            path: npy.to_owned(),
            source,
        };
        let file = File::open(npy).map_err(|source| ImportError::Io {
            path: npy.to_owned(),
            remedy: "",
            source,
        })?;
        let file_bytes = file.metadata().map_err(|e| failed(e.into()))?.len();
        let mut file = BufReader::with_capacity(1 << 20, file);
        let header = Header::read(&mut file, file_bytes).map_err(failed)?;
        let dim = usize::try_from(header.dim).ok().and_then(NonZeroUsize::new);
        let dim = dim.ok_or_else(|| failed(HeaderError::Shape(vec![header.rows, header.dim])))?;
        if let Some(expected) = options.dim.filter(|&expected| expected != dim) {
            return Err(ImportError::Vector {
                place: Place {
                    path: npy.to_owned(),
                    item: "every row".to_owned(),
                },
                problem: VectorProblem::Dimension {
                    found: dim.get(),
                    expected: expected.get(),
                    first: "the dimension asked for".to_owned(),
                },
            });
        }
        let index = Index::read(jsonl)?;
        if index.lines != header.rows {
            return Err(ImportError::Counts {
                npy: npy.to_owned(),
                rows: header.rows,
                jsonl: jsonl.to_owned(),
                lines: index.lines,
            });
        }
        let (dtype, dtype_reason) = match (options.dtype, header.element) {
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
            path: npy.to_owned(),
            file,
            header,
            memories: Memories::open(jsonl, index, options.time_unit)?,
        })
    }

    fn place(&self, row: u64) -> Place {
        Place {
            path: self.path.clone(),
            item: format!("row {row}"),
        }
    }

    /// Decodes a row into `values`, and gives the number of elements that f32 had to round.
    fn decode(&self, bytes: &[u8], values: &mut [f32]) -> Result<usize, VectorProblem> {
        match self.header.element {
            Element::F16 => {
                // A row at a time: converting one by one costs most of the reading.
                let chunks = bytes.as_chunks().0.iter();
                let halves: Vec<f16> = chunks.map(|&b| f16::from_le_bytes(b)).collect();
                halves.convert_to_f32_slice(values);
            }
            Element::F32 => {
                for (value, b) in values.iter_mut().zip(bytes.as_chunks().0) {
                    *value = f32::from_le_bytes(*b);
                }
            }
            Element::F64 => {
                let mut rounded = 0;
                for (element, (value, b)) in values.iter_mut().zip(bytes.as_chunks().0).enumerate()
                {
                    let wide = f64::from_le_bytes(*b);
                    *value = wide as f32;
                    if wide.is_finite() && !value.is_finite() {
                        let found = format!("{wide:e} is beyond f32");
                        return Err(VectorProblem::Element { element, found });
                    }
                    rounded += usize::from(f64::from(*value) != wide);
                }
                return Ok(rounded);
            }
        }
        Ok(0)
    }
}

impl Source for Rows {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn feed(mut self, sink: &mut dyn Sink) -> Result<Report, ImportError> {
        let dim = self.plan.dim.get();
        let mut tally = Tally::default();
        // A row lies in the file, so its size is real; without rows the dimension is only a claim.
        let elements = if self.header.rows == 0 { 0 } else { dim };
        let mut values = vec![0.0; elements];
        let mut bytes = vec![0; elements * self.header.element.size_bytes()];
        let mut row = 0;
        while let Some(line) = self.memories.next(&mut tally.notices)? {
            self.file
                .read_exact(&mut bytes)
                .map_err(|source| ImportError::Io {
                    path: self.path.clone(),
                    remedy: "the file changed while it was read",
                    source,
                })?;
            let fitted = self
                .decode(&bytes, &mut values)
                .and_then(|rounded| Ok((rounded, fit(self.plan.dtype, &values)?)));
            let (to_f32, fit) = fitted.map_err(|problem| ImportError::Vector {
                place: self.place(row),
                problem,
            })?;
            let embedding = match fit {
                Fit::Zero => {
                    tally.notices.add(NoticeKind::VectorZero, &line.name);
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
                payload: &line.payload,
            };
            sink.push(&line.place, &memory)?;
            tally.count(&memory);
            row += 1;
        }
        if row != self.header.rows {
            return Err(ImportError::Counts {
                npy: self.path,
                rows: self.header.rows,
                jsonl: self.memories.path().to_owned(),
                lines: row,
            });
        }
        Ok(tally.report("npy", &self.path, Vec::new(), &self.plan))
    }
}
