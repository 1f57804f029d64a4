//! Damage in a store's files.

use crate::kernel::RowProblem;
use std::path::PathBuf;
use thiserror::Error;

/// Damage in a store's files: where, and what.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{}: byte {offset}: {problem}", .path.display())]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The first byte concerned, from the start of the file.
    pub offset: u64,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a file of a store.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// A column file that the manifest names is not there.
    #[error("the file is missing")]
    Missing,
    /// A column file cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    /// A column file is shorter than the manifest says.
    #[error("the file was cut: {expected} bytes expected, {found} found")]
    Cut {
        /// Bytes the manifest commits.
        expected: u64,
        /// Bytes in the file.
        found: u64,
    },
    /// A block has not the checksum it was written with.
    #[error("checksum of {bytes} bytes is {found:016x}, {expected:016x} expected")]
    Checksum {
        /// Bytes in the block.
        bytes: u64,
        /// The checksum in the manifest.
        expected: u64,
        /// The checksum of the bytes.
        found: u64,
    },
    /// The span of a row in a column of bytes is out of order or beyond the bytes.
    #[error("row {row} spans bytes {start} to {end} of {bytes}")]
    Span {
        /// The row.
        row: usize,
        /// Its first byte.
        start: u64,
        /// One past its last byte.
        end: u64,
        /// Bytes in the column.
        bytes: u64,
    },
    /// A row in the column of deleted ones that does not exist, or not after the one before.
    #[error("deleted row {row} is out of order, or beyond the {rows} there are")]
    DeletedRow {
        /// The row.
        row: usize,
        /// Rows of the columns.
        rows: usize,
    },
    /// A row in the column of touches that does not exist.
    #[error("touched row {row} is beyond the {rows} there are")]
    TouchedRow {
        /// The row.
        row: usize,
        /// Rows of the columns.
        rows: usize,
    },
    /// A row in the column of agents' own importances that does not exist, or not after the one before.
    #[error(
        "row {row} of an agent's own importance is out of order, or beyond the {rows} there are"
    )]
    OverrideRow {
        /// The row.
        row: usize,
        /// Rows of the columns.
        rows: usize,
    },
    /// A vector in the column of those that came later that cannot be the row's.
    #[error("the vector that row {row} was given later: {what}")]
    LateVector {
        /// The row.
        row: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An entry in the column of what was corrected that cannot be: a row that does not exist, or not after the one
    /// before, or an id that is not of a later memory.
    #[error(
        "row {row} is superseded by id {by}: out of order, beyond the {rows} there are, or by no later memory"
    )]
    SupersededRow {
        /// The row.
        row: usize,
        /// The id of what corrects it.
        by: u64,
        /// Rows of the columns.
        rows: usize,
    },
    /// Text that is no UTF-8.
    #[error("row {row} is not UTF-8")]
    Utf8 {
        /// The row.
        row: usize,
    },
    /// A kind that is not in the manifest's table.
    #[error("row {row} has kind {kind} of {kinds}")]
    Kind {
        /// The row.
        row: usize,
        /// Its index into the table of kinds.
        kind: u16,
        /// Kinds in the table.
        kinds: usize,
    },
    /// Evidence that cannot be decoded.
    #[error("evidence of row {row}: {what}")]
    Evidence {
        /// The row.
        row: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An inverse norm that is not the one of the stored elements.
    #[error("row {row} has inverse norm {stored:e}, its elements give {computed:e}")]
    InvNorm {
        /// The row.
        row: usize,
        /// In the column.
        stored: f32,
        /// From the stored elements; 0 if they are all zeros.
        computed: f32,
    },
    /// Elements that should never have been stored.
    #[error("row {row} cannot be scored: {problem}")]
    Elements {
        /// The row.
        row: usize,
        /// What is wrong with it.
        problem: RowProblem,
    },
    /// An importance that is not finite.
    #[error("row {row} has importance {value}")]
    Importance {
        /// The row.
        row: usize,
        /// The value.
        value: f32,
    },
    /// An id that is not above the one before, or not below the next one to be given.
    #[error("row {row} has id {id} after {previous:?}; the next new id is {next_id}")]
    Id {
        /// The row.
        row: usize,
        /// Its id.
        id: u64,
        /// The id of the row before.
        previous: Option<u64>,
        /// The manifest's next id.
        next_id: u64,
    },
    /// Two rows with one key.
    #[error("row {row} has the key of row {first}")]
    DuplicateKey {
        /// The later row.
        row: usize,
        /// The earlier row.
        first: usize,
    },
    /// A segment of the journal that cannot be read.
    #[error("the segment {what}")]
    Segment {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A segment of the journal that a later version of this crate wrote.
    #[error("the segment has version {found}; use a newer memorank")]
    NewerSegment {
        /// Its version.
        found: u32,
    },
    /// A segment of the journal under another's name.
    #[error("the header is that of segment {found}, the name is that of {number}")]
    SegmentNumber {
        /// In its name.
        number: u64,
        /// In its header.
        found: u64,
    },
    /// A segment of the journal that leaves records out, or holds some again.
    #[error("the segment starts with record {found}; the next is {next}")]
    SegmentStart {
        /// The record that was to come.
        next: u64,
        /// The record it starts with.
        found: u64,
    },
    /// A segment of the journal that continues another one than was found.
    #[error("the segment continues one of {found} bytes; the one before it holds {bytes}")]
    SegmentBefore {
        /// Bytes found in the segment before it.
        bytes: u64,
        /// Bytes that it says it has.
        found: u64,
    },
    /// A record of the journal that nothing says was durable, and that was not written whole.
    #[error("record {sequence} {what}")]
    Record {
        /// Its sequence number.
        sequence: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A record of the journal that was durable and cannot be read any more.
    #[error("record {sequence} {what}, but was durable: {because}")]
    DurableRecord {
        /// Its sequence number.
        sequence: u64,
        /// What is wrong with it.
        what: &'static str,
        /// Who says that it was durable.
        because: String,
    },
    /// A record of the journal that is as it was written, and says what cannot be.
    #[error("record {sequence}: {what}")]
    RecordBody {
        /// Its sequence number.
        sequence: u64,
        /// What is wrong with it.
        what: &'static str,
    },
}
