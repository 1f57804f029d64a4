//! A store as plain files that any tool reads, and back: [`export`], and
//! [`import::memorank`](crate::import::memorank()) for the way back.
//!
//! Every field of every memory comes back as it was, byte for byte, under its own id: what is imported has
//! the same rankings, and exported again it is the same files. What is deleted is not exported; its id
//! stays used. Nor is the [history](crate::store#history).
//!
//! # The files
//! An export is a folder of three:
//!
//! **`embeddings.npy`**, as numpy writes and maps it: a matrix of `<f2` or `<f4`, whatever the store holds, one
//! row per memory in the order of ids. Zeros where a memory has no vector.
//!
//! **`memories.jsonl`**: on line i (from 0) the memory of row i, one JSON object. Lines end with `\n`, and no other
//! control character is in them.
//!
//! | field | is |
//! |---|---|
//! | `id` | a number; ascending, with gaps where memories were deleted |
//! | `key` | text, or null: none |
//! | `kind` | text, one of the `kinds` in `store.json` |
//! | `text` | text |
//! | `created`, `last_access` | times; the last access is the one it was stored with |
//! | `expiry` | a time, or null: never |
//! | `importance` | a number: with all the digits that the f32 has as an f64; the one it was stored with |
//! | `depth` | a number |
//! | `evidence` | a list of ids and of `{"missing": text}`, in order |
//! | `superseded_by` | the id of the memory that corrected it, which may be there no more; only where there was one |
//! | `has_embedding` | true or false |
//! | `payload` | the payload, where it is JSON that every reader takes as it is (below) |
//! | `payload_hex` | any other payload that is not empty, in hexadecimal |
//!
//! A time is RFC 3339 text in UTC, with six digits after the second unless they are all zero; outside
//! the years 0 to 9999, which RFC 3339 cannot write, it is a number of microseconds since 1970. Numbers of ids and
//! times have up to 64 bits: a tool that reads all numbers as f64 rounds those beyond 2^53.
//!
//! A payload is written as `payload` if it is JSON other than null, in UTF-8, without spaces around it and without
//! control characters (line ends among them), no more than 127 levels deep, and without escapes of half
//! a surrogate pair and numbers beyond f64, which many readers refuse.
//!
//! **`store.json`**: one object.
//!
//! | field | is |
//! |---|---|
//! | `format`, `version` | `"memorank export"`, 1 |
//! | `dim`, `dtype`, `model` | elements of an embedding; `"f16"` or `"f32"`; the model's name, or null |
//! | `next_id` | the id that the next memory gets |
//! | `memories` | how many there are |
//! | `kinds` | names, in the order they were first used; also those that no memory has any more |
//! | `files` | XXH3-64 of the two other files by name: 16 lower-case hexadecimal digits (`xxhsum -H3` gives them) |
//! | `touches` | a list of `{"agent": number, "id": number, "last_access": time}`, one a line, ascending by agent and id: wherever an agent's last access is not the one that the memory was stored with. Agent 0 is the store's own |
//! | `importances` | a list of `{"agent": number, "id": number, "importance": number}`, likewise: wherever an agent has an importance of its own that is not the one that the memory was stored with |
//! | `xxh3` | the same checksum of all bytes of `store.json` before the line that this field is on, the last but one |
//!
//! The import takes the fields of an object in any order and spacing (but for that last line), so that other
//! programs can write the files; nothing else of them may differ.
//!
//! [`import::npy`](crate::import::npy()) reads the first two files as well, in its own tolerant way: ids
//! are given anew, and touches, importances of agents' own and corrections are not read.

mod document;
mod line;
mod matrix;
mod moment;
mod summed;

pub(crate) use document::{FORMAT, Importance, STORE, Touch, VERSION, end};
pub(crate) use line::{Cited, LINE_MAX};
pub(crate) use matrix::header as npy_header;
pub(crate) use moment::{MOMENT, Moment};
pub(crate) use summed::Summed;

use crate::kernel::Dtype;
use crate::store::files::Disk;
use crate::store::{ReadError, Snapshot, Temporary};
use serde::Serialize;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of embeddings.
pub(crate) const EMBEDDINGS: &str = "embeddings.npy";

/// The file of memories.
pub(crate) const MEMORIES: &str = "memories.jsonl";

/// What an export wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// Memories.
    pub memories: u64,
    /// Those with a vector.
    pub with_vector: u64,
    /// Those without one.
    pub without_vector: u64,
    /// Elements of a vector.
    pub dim: NonZeroUsize,
    /// How vectors are stored.
    #[serde(serialize_with = "dtype_name")]
    pub dtype: Dtype,
    /// Last accesses that are not the ones that memories were stored with, of all agents.
    pub touches: u64,
    /// Importances of agents' own that are not the ones that memories were stored with.
    pub importances: u64,
    /// Bytes of the three files.
    pub bytes: u64,
}

fn dtype_name<S: serde::Serializer>(dtype: &Dtype, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(dtype.name())
}

/// Why nothing was exported. Nothing is left at the destination.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Something is there already. It was not touched.
    #[error("{} already exists; name a new path", path.display())]
    Exists {
        /// The path asked for.
        path: PathBuf,
    },
    /// The store's bytes are damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A number that JSON cannot hold, which no store should.
    #[error("memory {id} has importance {value}; the store is damaged, `verify` lists all damage")]
    Importance {
        /// The memory.
        id: u64,
        /// Its importance.
        value: f32,
    },
    /// More than a line of the memories' file may hold, as JSON.
    #[error("memory {id} takes {bytes} bytes as JSON; {LINE_MAX} are the most an export holds")]
    TooLong {
        /// The memory.
        id: u64,
        /// The length of its line.
        bytes: u64,
    },
    /// The operating system refused.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl ExportError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ExportError {
        move |source| ExportError::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}

/// Writes the memories of a snapshot to the new folder `dir`, in the [files](crate::export#the-files) that
/// [`import::memorank`](crate::import::memorank()) reads.
///
/// The folder is made under a temporary name beside `dir` (`.<name>.<pid>.<n>.tmp`), synced and renamed, so that
/// it is there whole or not at all. (A killed process can leave the temporary one. On Linux the next export
/// to the same `dir` removes it.) The store's bytes are checked against their checksums first.
///
/// # Errors
/// If anything is at `dir`, even an empty folder; if the store is damaged; if the operating system refuses.
///
/// ```
/// use memorank::kernel::Dtype;
/// use memorank::store::{CreateOptions, Kind, NewMemory, Store};
///
/// let temporary = tempfile::tempdir()?;
/// let (store, plain) = (temporary.path().join("isabella"), temporary.path().join("plain"));
/// let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F16, model: None };
/// let store = Store::create(&store, &options)?;
/// store.append(&[NewMemory {
///     key: None,
///     kind: Kind::OBSERVATION,
///     text: "the coffee is ready",
///     embedding: Some(&[0.6, 0.8]),
///     created: 1_676_246_400_000_000,
///     last_access: 1_676_246_400_000_000,
///     expiry: None,
///     importance: 3.0,
///     evidence: &[],
///     depth: 0,
///     supersedes: None,
///     payload: b"",
/// }])?;
/// memorank::export::export(&store.snapshot(), &plain)?;
///
/// let memories = std::fs::read_to_string(plain.join("memories.jsonl"))?;
/// assert_eq!(
///     memories,
///     "{\"id\":0,\"key\":null,\"kind\":\"observation\",\"text\":\"the coffee is ready\",\
///      \"created\":\"2023-02-13T00:00:00Z\",\"last_access\":\"2023-02-13T00:00:00Z\",\"expiry\":null,\
///      \"importance\":3.0,\"depth\":0,\"evidence\":[],\"has_embedding\":true}\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn export(snapshot: &Snapshot, dir: impl AsRef<Path>) -> Result<ExportReport, ExportError> {
    let dir = dir.as_ref();
    let exists = || ExportError::Exists { path: dir.into() };
    match fs::symlink_metadata(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(ExportError::io("examining", dir)(e)),
        Ok(_) => return Err(exists()),
    }
    // Nothing that was damaged gets a new checksum.
    snapshot.check().map_err(ReadError::from)?;
    let temporary = Temporary::beside(Arc::new(Disk), dir)
        .map_err(ExportError::io("making a folder beside", dir))?;
    let inner = temporary.path().join(INNER);
    fs::create_dir(&inner).map_err(ExportError::io("making", &inner))?;
    let report = write(snapshot, &inner)?;
    (fs::File::open(&inner).and_then(|inner| inner.sync_all()))
        .map_err(ExportError::io("syncing", &inner))?;
    (temporary.publish(INNER, dir)).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => exists(),
        _ => ExportError::io("naming", dir)(e),
    })?;
    Ok(report)
}

/// The export's own folder inside the temporary one.
const INNER: &str = "export";

fn write(snapshot: &Snapshot, dir: &Path) -> Result<ExportReport, ExportError> {
    let (npy, _) = write_file(&dir.join(EMBEDDINGS), |path, file| {
        matrix::write(snapshot, file).map_err(ExportError::io("writing", path))
    })?;
    let (jsonl, with_vector) = write_file(&dir.join(MEMORIES), |path, file| {
        line::write_all(snapshot, path, file)
    })?;
    let (json, counts) = write_file(&dir.join(STORE), |path, file| {
        document::write(snapshot, npy.sum, jsonl.sum, file)
            .map_err(ExportError::io("writing", path))
    })?;
    let memories = snapshot.len() as u64;
    Ok(ExportReport {
        memories,
        with_vector,
        without_vector: memories - with_vector,
        dim: snapshot.dim(),
        dtype: snapshot.dtype(),
        touches: counts.touches,
        importances: counts.importances,
        bytes: npy.bytes + jsonl.bytes + json.bytes,
    })
}

/// What is known of a file that was written.
struct Written {
    sum: u64,
    bytes: u64,
}

/// Where a file's bytes go.
type Out = BufWriter<Summed<fs::File>>;

/// A new file, durable when this returns.
fn write_file<T>(
    path: &Path,
    write: impl FnOnce(&Path, &mut Out) -> Result<T, ExportError>,
) -> Result<(Written, T), ExportError> {
    let file = fs::File::create_new(path).map_err(ExportError::io("creating", path))?;
    let mut out = BufWriter::with_capacity(1 << 20, Summed::new(file));
    let value = write(path, &mut out)?;
    out.flush().map_err(ExportError::io("writing", path))?;
    let file = out.get_ref();
    (file.get_ref().sync_all()).map_err(ExportError::io("syncing", path))?;
    let written = Written {
        sum: file.sum(),
        bytes: file.bytes(),
    };
    Ok((written, value))
}
