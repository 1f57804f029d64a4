//! What can go wrong, one type per operation.

use super::damage::Damage;
use super::format::{MAX_DIM, MAX_KINDS, MAX_ROWS, VERSION};
use crate::kernel::RowProblem;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What was being done when a sync failed.
pub(super) const SYNCING: &str = "syncing";

/// What was being done when a manifest did not get its name.
pub(super) const REPLACING: &str = "replacing";

/// Why a store was not created. Nothing half made is at the path: there is what was there before, or, if the
/// error came after the store got its name (its directory's sync failed, or the first reading), a
/// whole and empty store, which can be opened but might not outlive a crash of the system.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Something is there already.
    #[error("{} exists and is not an empty directory; open it, or choose another path", .path.display())]
    Exists {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path does not name a directory, as `/` or `..` do not.
    #[error("{} names no new directory", .path.display())]
    NoName {
        /// The path asked for.
        path: PathBuf,
    },
    /// More elements than an embedding may have.
    #[error("{dim} elements per embedding; at most {MAX_DIM} can be stored")]
    Dim {
        /// The dimension asked for.
        dim: usize,
    },
    /// The operating system refused.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why a store was not opened. No byte of it was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is nothing at the path.
    #[error("{} does not exist; create a store first", .path.display())]
    Missing {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path is a file.
    #[error("{} is not a directory; a memorank store is one", .path.display())]
    NotADirectory {
        /// The path asked for.
        path: PathBuf,
    },
    /// The directory has no manifest.
    #[error("{} is not a memorank store: it has no manifest", .path.display())]
    NotAStore {
        /// The path asked for.
        path: PathBuf,
    },
    /// The manifest was written by something else, or its first bytes are damaged.
    #[error("{}: byte 0: not the manifest of a memorank store", .path.display())]
    Foreign {
        /// The manifest.
        path: PathBuf,
    },
    /// The store was written by a later version of this crate.
    #[error("{} has format {found}, this version reads up to {VERSION}; use a newer memorank", .path.display())]
    Newer {
        /// The manifest, or a segment of the journal.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The manifest is shorter than it says.
    #[error("{} was cut: {expected} bytes expected, {found} found; restore it from a copy", .path.display())]
    ManifestCut {
        /// The manifest.
        path: PathBuf,
        /// Bytes expected (at least, if its first line was cut).
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// The manifest has not the checksum it was written with.
    #[error(
        "{}: checksum from byte {offset} on is {found:016x}, {expected:016x} expected; restore it from a copy",
        .path.display()
    )]
    ManifestChecksum {
        /// The manifest.
        path: PathBuf,
        /// Where the checked body starts.
        offset: u64,
        /// The checksum in its first line.
        expected: u64,
        /// The checksum of the body.
        found: u64,
    },
    /// The manifest contradicts itself, or something follows it.
    #[error("{}: byte {offset}: {what}; restore it from a copy", .path.display())]
    ManifestDamaged {
        /// The manifest.
        path: PathBuf,
        /// The first byte concerned, or where the part that contradicts itself begins.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A column file that the manifest names is not there.
    #[error("{} is missing; restore it from a copy", .path.display())]
    ColumnMissing {
        /// The column file.
        path: PathBuf,
    },
    /// A column file is shorter than the manifest says.
    #[error("{} was cut: {expected} bytes expected, {found} found; restore it from a copy", .path.display())]
    ColumnCut {
        /// The column file.
        path: PathBuf,
        /// Bytes the manifest commits.
        expected: u64,
        /// Bytes in the file.
        found: u64,
    },
    /// Bytes that were to be checked are not the bytes that were written.
    #[error("{first} ({count} damages in all); restore it from a copy")]
    Damaged {
        /// The first damage found.
        first: Damage,
        /// How many were found.
        count: usize,
    },
    /// Another handle, here or in another process, has the store open for writing.
    #[error("{} is open for writing elsewhere; open it read-only, or close the other writer", .path.display())]
    Locked {
        /// The store.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{doing} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// Why a row was not read.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such row.
    #[error("row {row} of {rows}")]
    NoRow {
        /// The row asked for.
        row: usize,
        /// Rows of the store.
        rows: usize,
    },
    /// The memory in the row was deleted.
    #[error("row {row} was deleted")]
    Deleted {
        /// The row asked for.
        row: usize,
    },
    /// The row's bytes are damaged.
    #[error("{0}; `verify` lists all damage")]
    Damaged(#[from] Damage),
}

/// Why bytes did not reach the disk.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The handle was opened read-only.
    #[error("{} was opened read-only; open it for writing", .path.display())]
    ReadOnly {
        /// The store.
        path: PathBuf,
    },
    /// An earlier sync of this handle failed, or another step that leaves unknown what is on the disk. Its
    /// snapshots can be read.
    #[error("an earlier write to {} failed; close this handle and open the store again", .path.display())]
    Poisoned {
        /// The store.
        path: PathBuf,
    },
    /// This thread holds a bulk append or the [turn](super::Exclusive) of the store, which excludes other appends,
    /// checkpoints and compactions, so that it would wait for itself.
    #[error("this thread appends to {} already, or holds its turn; finish or drop that first", .path.display())]
    Busy {
        /// The store.
        path: PathBuf,
    },
    /// One record of the journal cannot hold so much.
    #[error("{bytes} bytes at once are too many for the journal of {}; do it in parts", .path.display())]
    TooLong {
        /// The store.
        path: PathBuf,
        /// The bytes of the record.
        bytes: u64,
    },
    /// The store was published as often as its manifest can count.
    #[error("{} was published as often as it can be; copy its memories into a new store", .path.display())]
    Exhausted {
        /// The store.
        path: PathBuf,
    },
    /// The lock file is not the one this handle locked: somebody removed it, and another writer may be
    /// at work. This handle writes no more.
    #[error("{} was removed or replaced; it must stay. What was being written may be lost", .path.display())]
    LockLost {
        /// The lock file.
        path: PathBuf,
    },
    /// Bytes that had to be read before the store could grow are damaged.
    #[error("{0}; nothing was committed, `verify` lists all damage")]
    Damaged(#[from] Damage),
    /// The operating system refused.
    #[error("{doing} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl WriteError {
    /// Whether it leaves unknown what is on the disk: a failed sync may have lost what later ones will not
    /// write again, a failed rename may have happened, and without the lock the files may be another's,
    /// who must not find them cut.
    pub(super) fn poisons(&self) -> bool {
        matches!(
            self,
            WriteError::LockLost { .. }
                | WriteError::Io {
                    doing: SYNCING | REPLACING,
                    ..
                }
        )
    }

    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError {
        move |source| WriteError::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}

impl OpenError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
        move |source| OpenError::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}

/// Why memories were not appended.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AppendError {
    /// A memory cannot be stored as it is. The store is unchanged and the handle usable.
    #[error("memory {index}: {problem}")]
    Refused {
        /// Its place in the batch, or among all that were pushed.
        index: usize,
        /// What is wrong with it.
        problem: MemoryProblem,
    },
    /// The store has as many rows as it can.
    #[error("the store is full at {MAX_ROWS} memories or has given its last id")]
    Full,
    /// Ids that are to be left out were given already, or may have been.
    #[error("the next id is {next}; it cannot go back to {id}, no id is given twice")]
    IdsGoBack {
        /// The id asked for.
        id: u64,
        /// The id that the next memory gets.
        next: u64,
    },
    /// Bytes did not reach the disk.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why a memory cannot be stored.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MemoryProblem {
    /// The embedding has another length than the store's.
    #[error("embedding of {found} elements, the store has {expected}; give None if there is none")]
    Dimension {
        /// The store's.
        expected: usize,
        /// The memory's.
        found: usize,
    },
    /// An element is NaN or infinite.
    #[error("element {element} is {value}; embeddings must be finite")]
    NonFinite {
        /// Its index.
        element: usize,
        /// Its value.
        value: f32,
    },
    /// An element would be infinite as f16.
    #[error("element {element} is {value}, beyond f16; scale the embeddings or store f32")]
    F16Overflow {
        /// Its index.
        element: usize,
        /// Its value.
        value: f32,
    },
    /// The length of the stored elements is 0 or outside [2^-96, 2^96].
    #[error(
        "the stored embedding has length {length:e}, not 2^-96 to 2^96; scale it, or give None if there is none"
    )]
    Length {
        /// The length.
        length: f64,
    },
    /// An importance that is not finite.
    #[error("importance is {value}; it must be finite")]
    Importance {
        /// The value.
        value: f32,
    },
    /// An expiry that stands for none.
    #[error(
        "expiry is {}, which stands for none in the column; give None if it never expires",
        i64::MAX
    )]
    Expiry,
    /// An empty key.
    #[error("the key is empty; give None if there is none")]
    EmptyKey,
    /// A key that another memory has.
    #[error("key {key:?} is taken by the memory with id {id}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The other memory's id (the one it would get, if it is in the same batch).
        id: u64,
    },
    /// A kind without a name.
    #[error("the kind has no name")]
    EmptyKind,
    /// More kinds than a store can name.
    #[error("kind {name:?} would be one more than the {MAX_KINDS} a store can name")]
    TooManyKinds {
        /// The new kind.
        name: String,
    },
    /// A correction of a memory that is not there.
    #[error("there is no older memory {id} to correct")]
    NothingToSupersede {
        /// The id.
        id: u64,
    },
    /// A correction of a memory that was corrected before.
    #[error("memory {id} is superseded by {by}; correct that one")]
    SupersededBefore {
        /// The id.
        id: u64,
        /// The id of what corrects it.
        by: u64,
    },
    /// A memory that is said to be corrected by one that is not later.
    #[error("memory {id} cannot be superseded by {by}, which is no later memory")]
    SupersededByNone {
        /// The id.
        id: u64,
        /// The id of what is to correct it.
        by: u64,
    },
    /// Evidence that is not older than the memory.
    #[error("evidence {position} is id {id}, which is not older than this memory (id {own})")]
    ForwardEvidence {
        /// Its place in the evidence.
        position: usize,
        /// The id cited.
        id: u64,
        /// The id the memory would get.
        own: u64,
    },
    /// Evidence that was cited before.
    #[error("evidence {position} is id {id}, as evidence {first} is; cite it once")]
    DuplicateEvidence {
        /// Its place in the evidence.
        position: usize,
        /// The id cited.
        id: u64,
        /// Where it was cited first.
        first: usize,
    },
}

impl MemoryProblem {
    /// What is wrong with the one row that an embedding is, in a store of `expected` elements.
    pub(super) fn of_row(problem: RowProblem, expected: usize) -> MemoryProblem {
        match problem {
            RowProblem::NonFinite { element, value } => MemoryProblem::NonFinite { element, value },
            RowProblem::F16Overflow { element, value } => {
                MemoryProblem::F16Overflow { element, value }
            }
            RowProblem::Length { length } => MemoryProblem::Length { length },
            RowProblem::Shape { elements, .. } => MemoryProblem::Dimension {
                expected,
                found: elements,
            },
        }
    }
}

/// Why nothing was touched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TouchError {
    /// No memory ever had this id.
    #[error("there is no memory {id}, the next will be {next}; nothing was touched")]
    NoId {
        /// The id.
        id: u64,
        /// The id of the next memory.
        next: u64,
    },
    /// A note that is too long.
    #[error("a note of {bytes} bytes; {most} at most; nothing was touched")]
    Note {
        /// Its length.
        bytes: usize,
        /// The most there may be.
        most: usize,
    },
    /// An earlier touch of the same call was not recorded. What came after it was asked with that touch done, so it
    /// is not touched either.
    #[error("a touch before this one was not recorded; nothing was touched")]
    AfterFailed,
    /// The handle cannot write.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why no memory was given a vector.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// No memory ever had this id.
    #[error("there is no memory {id}, the next will be {next}; no memory was given an embedding")]
    NoId {
        /// The id.
        id: u64,
        /// The id of the next memory.
        next: u64,
    },
    /// An id that was named before.
    #[error("id {id} is there twice; no memory was given an embedding")]
    Twice {
        /// The id.
        id: u64,
    },
    /// The memory has one.
    #[error("id {id} has an embedding, which stays; no memory was given one")]
    HasEmbedding {
        /// The memory's id.
        id: u64,
    },
    /// A vector cannot be stored as it is.
    #[error("id {id}: {problem}; no memory was given an embedding")]
    Refused {
        /// The memory's id.
        id: u64,
        /// What is wrong with the vector.
        problem: MemoryProblem,
    },
    /// The handle cannot write.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why no importance was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportanceError {
    /// No memory ever had this id.
    #[error("there is no memory {id}, the next will be {next}; no importance was changed")]
    NoId {
        /// The id.
        id: u64,
        /// The id of the next memory.
        next: u64,
    },
    /// An importance that is not finite.
    #[error("importance is {value}; it must be finite")]
    NotFinite {
        /// The value.
        value: f32,
    },
    /// The handle cannot write.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why nothing was deleted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeleteError {
    /// No memory ever had this id.
    #[error("there is no memory {id}, the next will be {next}; nothing was deleted")]
    NoId {
        /// The id.
        id: u64,
        /// The id of the next memory.
        next: u64,
    },
    /// The handle cannot write.
    #[error(transparent)]
    Write(#[from] WriteError),
}
