//! What stops an import. Whatever stops it, no store is left behind.

use super::npy::HeaderError;
use super::timestamp::TimestampError;
use crate::kernel::RowProblem;
use crate::store::{AppendError, CreateError, MemoryProblem};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where in a file: `node_5`, `node_id 3`, `line 7`, `row 6`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The node, line or row.
    pub item: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.path.display(), self.item)
    }
}

/// What is wrong with a vector.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum VectorProblem {
    /// An element is not a number that f32 can hold.
    Element {
        /// Index of the element within the vector.
        element: usize,
        /// What stands there, or why it cannot be read.
        found: String,
    },
    /// An element is beyond the largest f16.
    F16Overflow {
        /// Index of the element within the vector.
        element: usize,
        /// Its value.
        value: f32,
    },
    /// Another number of elements than the vectors before it.
    Dimension {
        /// Elements found.
        found: usize,
        /// Elements expected.
        expected: usize,
        /// Which vector has the expected number.
        first: String,
    },
    /// No elements, where a vector must have some.
    Empty,
    /// Its length cannot be scored.
    Length {
        /// The length of the elements as they would be stored, in f64.
        length: f64,
    },
}

impl fmt::Display for VectorProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VectorProblem::Element { element, found } => write!(
                f,
                "element {element}: {found}; every element must be a finite number within f32"
            ),
            VectorProblem::F16Overflow { element, value } => write!(
                f,
                "element {element} is {value}, which overflows f16 (65504 at most); import as f32"
            ),
            VectorProblem::Dimension {
                found,
                expected,
                first,
            } => write!(
                f,
                "{found} elements where {first} has {expected}; a store has one dimension"
            ),
            VectorProblem::Empty => f.write_str("no elements"),
            &VectorProblem::Length { length } => RowProblem::Length { length }.fmt(f),
        }
    }
}

impl From<RowProblem> for VectorProblem {
    fn from(problem: RowProblem) -> VectorProblem {
        match problem {
            RowProblem::NonFinite { element, value } => VectorProblem::Element {
                element,
                found: value.to_string(),
            },
            RowProblem::F16Overflow { element, value } => {
                VectorProblem::F16Overflow { element, value }
            }
            RowProblem::Length { length } => VectorProblem::Length { length },
            RowProblem::Shape { elements, dim, .. } => VectorProblem::Dimension {
                found: elements,
                expected: dim,
                first: "the store".to_owned(),
            },
        }
    }
}

/// What stops an import, or the reading of query vectors. Whatever stops an import, no store is left
/// behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file or folder could not be read or made.
    #[error("{}: {source}{}", path.display(), hint(remedy))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What can be done, or empty.
        remedy: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not the JSON it should be.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and what, with line and column.
        source: serde_json::Error,
    },
    /// A line of a `.jsonl` file is not one JSON object.
    #[error("{place}: {found}; each line must hold one JSON object")]
    Line {
        /// File and line.
        place: Place,
        /// What stands there.
        found: String,
    },
    /// A field has the wrong type, or is missing.
    #[error("{place}: `{field}` is {found}; expected {expected}")]
    Field {
        /// File and node or line.
        place: Place,
        /// The field.
        field: &'static str,
        /// What it holds: "absent", or the JSON itself, shortened.
        found: String,
        /// What it must hold.
        expected: &'static str,
    },
    /// A field holds text that is no moment.
    #[error("{place}: `{field}`: {source}")]
    Time {
        /// File and node or line.
        place: Place,
        /// The field.
        field: &'static str,
        /// What was expected.
        source: TimestampError,
    },
    /// A file of an export is not the one that its `store.json` tells of.
    #[error("{place}: `{field}` is {found}, where store.json says {expected}")]
    Differs {
        /// File and part.
        place: Place,
        /// What differs.
        field: &'static str,
        /// What it is in the file.
        found: String,
        /// What it is in `store.json`.
        expected: String,
    },
    /// Two memories have one key.
    #[error("{place}: {key:?} was already used by {first}; keys must be unique")]
    DuplicateKey {
        /// File and node or line of the second.
        place: Place,
        /// The key.
        key: String,
        /// Where it was used first.
        first: String,
    },
    /// A vector that cannot be stored, or be a query.
    #[error("{place}: {problem}")]
    Vector {
        /// File and node or row.
        place: Place,
        /// What is wrong with it.
        problem: VectorProblem,
    },
    /// A file of query vectors has none.
    #[error("{} holds no vector", path.display())]
    NoVectors {
        /// The file.
        path: PathBuf,
    },
    /// A file is not a `.npy` file that can be read.
    #[error("{}: {source}", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: HeaderError,
    },
    /// The `.npy` file and its `.jsonl` file hold different numbers of memories.
    #[error(
        "{} holds {rows} rows and {} holds {lines} lines; there must be one line per row, in the same order",
        npy.display(), jsonl.display()
    )]
    Counts {
        /// The vectors.
        npy: PathBuf,
        /// Its rows.
        rows: u64,
        /// The memories.
        jsonl: PathBuf,
        /// Its lines.
        lines: u64,
    },
    /// A field that an export does not have.
    #[error("{place}: an unknown field {field:?}")]
    UnknownField {
        /// File and line.
        place: Place,
        /// The field.
        field: String,
    },
    /// A file of an export is not the one that was written.
    #[error(
        "{}: checksum is {found:016x}, {expected:016x} expected; restore it from a copy",
        path.display()
    )]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The checksum in `store.json`.
        expected: u64,
        /// The checksum of its bytes.
        found: u64,
    },
    /// The store does not take a memory.
    #[error("{place}: {problem}")]
    Refused {
        /// File and node or line.
        place: Place,
        /// Why.
        problem: MemoryProblem,
    },
    /// The store could not be created. The paths are those of the temporary folder.
    #[error("the store could not be created: {0}")]
    Create(#[from] CreateError),
    /// The store could not be written. The paths are those of the temporary folder.
    #[error("the store could not be written: {0}")]
    Append(#[from] AppendError),
    /// The destination is already there. It was not touched.
    #[error("{} already exists; name a new path, nothing is imported into it", path.display())]
    DestinationExists {
        /// The destination.
        path: PathBuf,
    },
}

fn hint(remedy: &str) -> String {
    if remedy.is_empty() {
        String::new()
    } else {
        format!("; {remedy}")
    }
}
