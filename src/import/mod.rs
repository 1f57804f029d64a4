//! Readers for memories saved by other systems: [`reverie`] and [`genagents`] (the generative agents'
//! two public archive formats) and [`npy`] (a matrix with a `.jsonl` file beside it); for the
//! [`export`](crate::export) of a store, [`memorank`](memorank()); and for the query vectors of a file,
//! [`read_vectors`].
//!
//! An import reports instead of guessing. What can be kept is kept and named in the [`Report`]; what
//! cannot be understood is an [`ImportError`] that says where it stands. The store is built in a
//! temporary folder beside the destination (`.<name>.<pid>.<n>.tmp`) and renamed at the end: an import
//! either commits whole or leaves no store. (A killed process can leave the temporary folder. On Linux the
//! next import to the same destination removes it.)
//!
//! # Progress
//! Each importer calls its `progress` with the memories done and their total: with 0 when the source
//! is open and the store begun, then every 4096 memories, and after the last. The commit that makes the
//! store durable comes after that. For no progress, pass `&mut |_, _| ()`.
//!
//! # Ids
//! Ids are dense in the order of import, from 0; the source's own names become the keys. (An export's ids and
//! keys stay.)
//! Each function's docs say which field goes where.

mod archive;
mod destination;
mod error;
mod evidence;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod genagents;
mod json;
mod memorank;
mod npy;
mod query;
mod report;
mod reverie;
pub mod timestamp;
mod vectors;

pub use error::{ImportError, Place, VectorProblem};
pub use genagents::genagents;
pub use memorank::memorank;
pub use npy::{HeaderError, npy};
pub use query::read_vectors;
pub use report::{Affected, EvidenceForm, LISTED_MAX, Notice, NoticeKind, Report, Trace};
pub use reverie::reverie;

use crate::kernel::Dtype;
use crate::store::{CreateOptions, NewMemory};
use report::Notices;
use std::num::NonZeroUsize;

/// What a number means where a time is expected. There is no default: a number without a declared
/// unit is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds since the Unix epoch.
    Seconds,
    /// Milliseconds since the Unix epoch.
    Milliseconds,
    /// Microseconds since the Unix epoch.
    Microseconds,
}

impl TimeUnit {
    const fn us(self) -> i64 {
        match self {
            TimeUnit::Seconds => 1_000_000,
            TimeUnit::Milliseconds => 1000,
            TimeUnit::Microseconds => 1,
        }
    }
}

/// Choices of an import. `Options::default()` leaves them to the source.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The column type. `None`: f16 for a `.npy` file of f16, else f32; values that are no exact f32
    /// are rounded and reported. Numbers of 64 bits go into either type with one rounding to nearest.
    pub dtype: Option<Dtype>,
    /// The embedding model's name, kept in the store.
    pub model: Option<String>,
    /// The dimension, for an archive without any vector; with vectors, they must have it. `None`:
    /// that of the vectors, and without any 1536, that of the archives' authors, which is reported.
    pub dim: Option<NonZeroUsize>,
    /// JSON archives: the file of vectors in the folder, which must then be there. `None`:
    /// `embeddings.json`; if it is absent, every memory is stored without a vector, which is reported.
    pub embeddings: Option<String>,
    /// npy: the unit of times that are numbers.
    pub time_unit: Option<TimeUnit>,
    /// genagents: the moment of step 0, in microseconds since the Unix epoch. The default is the epoch.
    pub step_zero: i64,
}

/// What the store must be like.
#[derive(Clone, Debug)]
struct Plan {
    dim: NonZeroUsize,
    dtype: Dtype,
    dtype_reason: String,
    model: Option<String>,
}

impl Plan {
    fn store(&self) -> CreateOptions {
        CreateOptions {
            dim: self.dim,
            dtype: self.dtype,
            model: self.model.clone(),
        }
    }
}

/// Something to import: it knows what store it needs, and then gives its memories one by one.
trait Source {
    fn plan(&self) -> &Plan;

    /// How many it will give.
    fn memories(&self) -> u64;

    fn feed(self, sink: &mut dyn Sink) -> Result<Report, ImportError>;
}

/// Where memories go.
trait Sink {
    fn push(&mut self, place: &Place, memory: &NewMemory<'_>) -> Result<(), ImportError>;
}

/// Reports a time before 1970.
fn note_time(notices: &mut Notices, key: &str, field: &str, us: i64) {
    if us < 0 {
        let when = format!("{field} {}", timestamp::format_us(us));
        notices.detail(NoticeKind::TimeBefore1970, key, when);
    }
}

/// Reports elements that are not what the file says: rounded to f32 when read, to f16 when stored.
fn note_rounding(notices: &mut Notices, key: &str, to_f32: usize, to_f16: usize, dim: usize) {
    let mut parts = Vec::new();
    for (n, name) in [(to_f32, "f32"), (to_f16, "f16")] {
        if n > 0 {
            parts.push(format!("{n} of {dim} elements to {name}"));
        }
    }
    if !parts.is_empty() {
        notices.detail(NoticeKind::ValuesRounded, key, parts.join(", "));
    }
}
