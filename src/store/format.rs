//! The layout of a store, byte for byte. Another program needs no more than this to read one.
//!
//! All numbers are little-endian, and nothing is padded. Times are microseconds since the Unix epoch. A
//! store is a directory:
//!
//! ```text
//! manifest             which bytes of the other files are the store
//! lock                 empty; the writer holds an exclusive lock on it; never deleted
//! journal.<n>          segments of the journal: what the columns do not hold yet, and perhaps what they do
//!
//! column               file, with an element for each row if nothing else is said
//! embedding            embedding.f16 or embedding.f32; dim elements for each row, zeros if it has no vector
//! inv_norm             inv_norm.f32; 1 / length of the stored embedding, 0 = no vector
//! id                   id.u64; strictly ascending, all below the manifest's next_id
//! created              created.i64
//! last_access          last_access.i64; as it was when the memory was appended
//! expiry               expiry.i64; i64::MAX = none
//! importance           importance.f32; finite, not -0
//! kind                 kind.u16; index into the manifest's table of kinds
//! depth                depth.u32
//! key.ends, key        key.ends.u64, key.bytes            } row i is the bytes from ends[i - 1] (0 for the
//!                                                         } first row) up to ends[i]; UTF-8, empty = no key
//! text.ends, text      text.ends.u64, text.bytes          the same; UTF-8
//! payload.ends, payload     payload.ends.u64, payload.bytes    the same; any bytes
//! evidence.ends, evidence   evidence.ends.u64, evidence.bytes  the same; references, see below
//! access               access.<seq>.bytes; what was touched since it was appended, not by rows, see below
//! deleted              deleted.<seq>.u32; the deleted rows, strictly ascending, not by rows
//! override             override.<seq>.bytes; importances of agents' own, not by rows, see below
//! vectors              vectors.bytes; vectors that came after their rows were here, not by rows, see below
//! superseded           superseded.<seq>.bytes; which rows were corrected, and by what, not by rows, see below
//! ```
//!
//! Every column's file is a raw array from byte 0 without a header:
//! `numpy.memmap("embedding.f16", "<f2", "r")[:rows * dim].reshape(rows, dim)`. Row i of every column
//! is the same memory. Rows named in `deleted` are no memories any more: their bytes stay until a
//! compaction writes the columns anew without them, and their keys may be those of other rows.
//!
//! A column's file is the one its manifest names: `<column>.<type>`, or `<column>.<seq>.<type>` when it was
//! written anew (`access`, `deleted`, `override` and `superseded` always were). Bytes past the length in the manifest are not part of
//! the store: an append that did not commit leaves them, and the next writer cuts them.
//!
//! **Evidence** of a row is its references, one after another. Each starts with a tag byte: 0, then the id
//! (u64); or 1, then a length in bytes (u64) and so many bytes of UTF-8, the text of a reference that named
//! no memory. An id whose row was deleted, or is there no more, is of a memory that is missing.
//!
//! **Access** is entries of 16 bytes: an agent (u32), a row (u32) and a time (i64), ascending by agent and
//! row. It is the agent's last access of that memory. Where there is no entry, the agent's last access is
//! the one in `last_access`, which no entry's time is before. Agent 0 is the store's own.
//!
//! **Override** is entries of 12 bytes: an agent (u32), a row (u32) and an importance (f32, finite and not -0),
//! strictly ascending by agent and row. It is the importance that the memory has for that agent. Where there is no
//! entry, that is the one in `importance`.
//!
//! **Vectors** is entries of 8 + dim elements: a row (u32), an inverse norm (f32, finite and above 0) and the
//! elements as in `embedding`, in any order, no row twice. It is the vector of that row, which has none in
//! `embedding` and `inv_norm`: it was stored without one. A compaction puts it there.
//!
//! **Superseded** is entries of 12 bytes: a row (u32) and an id (u64), strictly ascending by row. The memory with that
//! id, which is above the row's own, corrects the memory in that row. It may be there no more.
//!
//! # The manifest
//!
//! It is one line and a body:
//!
//! ```text
//! memorank store 1 <XXH3-64 of the body, 16 lower-case hex digits> <length of the body in bytes>\n
//! {"sequence":4,"rows":2,"dtype":"f16","dim":384,"model":null,"next_id":2,"kinds":["observation"],
//!  "journal_folded":7,"journal_segment":3,"journal_bytes":64,"history_bytes":0,
//!  "block_bytes":1048576,"columns":{"embedding":{"file":"embedding.f16","bytes":1536,"sums":["9f0c..."]}, ...}}
//! ```
//!
//! The number is the format's version. The body is JSON without spaces, and has all of these fields and no
//! others. The file ends with it; zeros after it, as a file system may leave them, are not part of it, and
//! anything else there is damage.
//!
//! ```text
//! sequence         one more than in the manifest before
//! rows             rows of the columns
//! dtype, dim       of embeddings: "f16" or "f32", 1 to 2^20
//! model            the name of the model that made the embeddings, or null
//! next_id          no memory in the columns has this id or one above it; no id is given twice
//! kinds            names, all different
//! journal_folded   the last record of the journal that the columns hold; 0: none
//! journal_segment  the number of the segment that reading the journal starts at; 0: there is no journal
//! journal_bytes    how many bytes of that segment were durable when this manifest was written
//! history_bytes    how many bytes of segments before that one may be kept; 2^64 - 1: all
//! block_bytes      1048576
//! columns          the file of each column, its bytes, and the XXH3-64 (seed 0) of each block_bytes of
//!                  them, the last one of what is left, as 16 lower-case hex digits
//! ```
//!
//! A new manifest is written under a temporary name (`manifest.<pid>.<sequence>.tmp`), synced and renamed
//! over the old one, after everything it names was synced.
//!
//! # The journal
//!
//! It is the segment that the manifest names, then those with the next numbers, while there is one that
//! continues the one before. Numbers start at 1 and have no leading zeros. A segment starts with a header:
//!
//! ```text
//!  0  16 bytes "memorank journal"
//! 16  u32  version, 1
//! 20  u32  flags: 1 = takeover, all else 0
//! 24  u64  number, as in the name
//! 32  u64  sequence number of its first record, from 1
//! 40  u64  bytes of the segment that it continues, all of them durable; 0 for a takeover
//! 48  u64  salt: any number that nobody can foresee
//! 56  u64  XXH3-64 (seed 0) of the 56 bytes before
//! ```
//!
//! A takeover holds anew all records of earlier segments that the columns do not hold, and counts only if the
//! manifest names it: found after another segment, it ends the journal. (A writer takes over before it
//! writes for the first time. It writes `journal.<n>.tmp`, renames it, and then writes a manifest that names
//! it.) Any other segment continues the one with the number before. From byte 64 on come records, one after
//! another:
//!
//! ```text
//!  0  u32  0x314a524d, the bytes "MRJ1"
//!  4  u32  bytes of the body
//!  8  u64  sequence number: one more than the record before has, here or in the segment before
//! 16  u64  bytes of this segment known to be durable when it was written; no more than lie before it
//! 24  u64  XXH3-64 of the 24 bytes before and the body, with the segment's salt as seed
//! 32       the body
//! ```
//!
//! A body is one of these:
//!
//! ```text
//! append      1 (u8), first id (u64), count (u32), so many memories, with ids from the first id on
//! touch       2 (u8), agent (u32), now (i64), what it saw (24 bytes, see below), count (u32), so many ids (u64), so
//!             many last accesses (i64), a length in bytes (u32) and so many bytes of the caller's
//! delete      3 (u8), count (u32), so many ids (u64)
//! embed       4 (u8), count (u32), so many times an id (u64), an inverse norm (f32) and dim elements
//! importance  5 (u8), agent (u32), 1 (u8) and an importance (f32) or 0 (u8), count (u32), so many ids (u64), so
//!             many importances (f32)
//! ```
//!
//! and a memory in it is
//!
//! ```text
//! i64    created
//! i64    last access
//! i64    expiry, i64::MAX = none
//! f32    importance, finite and not -0
//! u32    depth
//! u64    id of the older memory that it corrects, 2^64 - 1 = none
//! f32    inverse norm, above 0 and finite; 0 = no vector
//! u8     1 = there is a vector, 0 = there is none
//! bytes  kind, UTF-8, not empty      } each of these is a length (u32) and so many bytes
//! bytes  key, UTF-8, empty = none    }
//! bytes  text, UTF-8                 }
//! bytes  payload                     }
//! bytes  evidence, as in its column  }
//! dim elements as in the column of embeddings, if there is a vector
//! ```
//!
//! An append's memories are rows after all there were; it holds for all of them or for none, and its first id
//! is at least the next one (ids between are never given). What a memory corrects is superseded by it, unless it is
//! there no more or was superseded before. A touch makes the agent's last access of each of the
//! memories the later of `now` and what it was, which stands beside it; of a memory that was deleted by then that
//! is `i64::MAX`, and nothing is touched. An embed gives vectors to memories that have none; those that have
//! one keep it. An importance is the agent's own for each of the memories, or takes its own away; beside it stands
//! what the agent's own was, or the NaN 0x7fc00000 if it had none. What records but
//! appends are about has an id below the next one, and may be there no more. Records up to `journal_folded` are in the columns already.
//!
//! What the retrieval saw that a touch is of: the sequence number of the last record whose effect it saw (u64), the
//! next id by then (u64), as a long append has no record, and the sequence number of a touch between that record and
//! this one (u64, 0 = none). Then it saw what that touch's retrieval saw, and that touch done.
//!
//! Segments with a number below `journal_segment` are not part of the journal any more: all they hold is in the
//! columns. A writer may keep them, so that what their records did can be undone; the last record of the newest is
//! `journal_folded`, and the last one of each of the others comes before the first one of the next. One that starts with
//! a record after those is a leftover of a takeover.
//!
//! The first place of a segment without a valid record (whole, its sum right, its sequence number the next)
//! ends it. What stands there is what a crash left, and is left out, unless it was durable: if a valid record
//! after it says that more bytes were durable than lie before it, or the next segment continues more, or the
//! manifest names the segment and more of its bytes, or the journal ends there before `journal_folded`, the
//! file is damaged. So is a segment with a broken header, unless it comes after another one, ends with the
//! header and nothing continues it: then a crash left it.
//!
//! # Reading a store
//!
//! Of a store that was closed, or whose journal was folded by a checkpoint, the columns are all there is:
//! the last segment holds nothing but its header. This reads one (`docs/read_store.py`); it checks no
//! checksums and does not read the journal.
//!
//! ```python
#![doc = include_str!("../../docs/read_store.py")]
//! ```
//!
//! A reader takes no lock, so a writer may replace or remove files under it. It reads the manifest, then
//! looks which segments there are, then reads columns and segments, then the manifest again: if its sequence
//! is another now, it starts over. What it opened it can keep.

use crate::kernel::Dtype;
use std::num::NonZeroUsize;

/// The version of the format this crate reads and writes.
pub(super) const VERSION: u64 = 1;

/// What a manifest starts with.
pub(super) const MAGIC: &str = "memorank store ";

/// Bytes under one checksum.
pub(super) const BLOCK_BYTES: usize = 1 << 20;

/// The most rows of a store: a row index is a u32 in rankings and touches.
pub(super) const MAX_ROWS: u64 = u32::MAX as u64;

/// The most elements of an embedding.
pub(crate) const MAX_DIM: usize = 1 << 20;

/// The most kinds of a store: an index into their table is a u16.
pub(super) const MAX_KINDS: usize = u16::MAX as usize;

/// Stands for "corrects nothing" in a record.
pub(super) const SUPERSEDES_NOTHING: u64 = u64::MAX;

/// Stands for "never expires" in the column of expiries.
pub(super) const NO_EXPIRY: i64 = i64::MAX;

pub(super) const MANIFEST: &str = "manifest";
pub(super) const LOCK: &str = "lock";

/// A column. The order is that of [`Column::ALL`] and of every array over the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Embedding,
    InvNorm,
    Id,
    Created,
    LastAccess,
    Expiry,
    Importance,
    Kind,
    Depth,
    KeyEnds,
    KeyBytes,
    TextEnds,
    TextBytes,
    PayloadEnds,
    PayloadBytes,
    EvidenceEnds,
    EvidenceBytes,
    /// What was touched since it was appended.
    Access,
    /// The deleted rows.
    Deleted,
    /// Importances of agents' own.
    Override,
    /// Vectors that came after their rows were here.
    Vectors,
    /// Rows that were corrected, and by what.
    Superseded,
}

impl Column {
    pub(super) const COUNT: usize = 22;

    pub(super) const ALL: [Column; Column::COUNT] = [
        Column::Embedding,
        Column::InvNorm,
        Column::Id,
        Column::Created,
        Column::LastAccess,
        Column::Expiry,
        Column::Importance,
        Column::Kind,
        Column::Depth,
        Column::KeyEnds,
        Column::KeyBytes,
        Column::TextEnds,
        Column::TextBytes,
        Column::PayloadEnds,
        Column::PayloadBytes,
        Column::EvidenceEnds,
        Column::EvidenceBytes,
        Column::Access,
        Column::Deleted,
        Column::Override,
        Column::Vectors,
        Column::Superseded,
    ];

    /// Its name in the manifest and at the start of its file's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Column::Embedding => "embedding",
            Column::InvNorm => "inv_norm",
            Column::Id => "id",
            Column::Created => "created",
            Column::LastAccess => "last_access",
            Column::Expiry => "expiry",
            Column::Importance => "importance",
            Column::Kind => "kind",
            Column::Depth => "depth",
            Column::KeyEnds => "key.ends",
            Column::KeyBytes => "key",
            Column::TextEnds => "text.ends",
            Column::TextBytes => "text",
            Column::PayloadEnds => "payload.ends",
            Column::PayloadBytes => "payload",
            Column::EvidenceEnds => "evidence.ends",
            Column::EvidenceBytes => "evidence",
            Column::Access => "access",
            Column::Deleted => "deleted",
            Column::Override => "override",
            Column::Vectors => "vectors",
            Column::Superseded => "superseded",
        }
    }

    /// The type at the end of its file's name.
    pub(super) fn element(self, dtype: Dtype) -> &'static str {
        match self {
            Column::Embedding => dtype.name(),
            Column::InvNorm | Column::Importance => "f32",
            Column::Created | Column::LastAccess | Column::Expiry => "i64",
            Column::Kind => "u16",
            Column::Depth | Column::Deleted => "u32",
            Column::Id
            | Column::KeyEnds
            | Column::TextEnds
            | Column::PayloadEnds
            | Column::EvidenceEnds => "u64",
            Column::KeyBytes
            | Column::TextBytes
            | Column::PayloadBytes
            | Column::EvidenceBytes
            | Column::Access
            | Column::Override
            | Column::Vectors
            | Column::Superseded => "bytes",
        }
    }

    /// Whether it has a value for each row.
    pub(super) fn is_of_rows(self) -> bool {
        !matches!(
            self,
            Column::Access
                | Column::Deleted
                | Column::Override
                | Column::Vectors
                | Column::Superseded
        )
    }

    /// Whether a checkpoint that changes it writes it anew, and does not append to it.
    pub(super) fn is_written_anew(self) -> bool {
        matches!(
            self,
            Column::Access | Column::Deleted | Column::Override | Column::Superseded
        )
    }

    /// The bytes of `rows` rows, or `None` where they do not follow from their number. `Some(None)`: more than a u64
    /// can say.
    pub(super) fn bytes_of(
        self,
        rows: u64,
        dtype: Dtype,
        dim: NonZeroUsize,
    ) -> Option<Option<u64>> {
        let row = match self.element(dtype) {
            "bytes" => return None,
            _ if !self.is_of_rows() => return None,
            _ if self == Column::Embedding => {
                (dim.get() as u64).checked_mul(dtype.size_bytes() as u64)
            }
            "u16" => Some(2),
            "f32" | "u32" => Some(4),
            _ => Some(8),
        };
        Some(row.and_then(|row| rows.checked_mul(row)))
    }

    /// The file's name: with a sequence number if it is not the column's first file.
    pub(super) fn file(self, dtype: Dtype, sequence: Option<u64>) -> String {
        let (name, element) = (self.name(), self.element(dtype));
        match sequence {
            None => format!("{name}.{element}"),
            Some(sequence) => format!("{name}.{sequence}.{element}"),
        }
    }

    /// The sequence number in `file`, or `None` if it is no name of this column's files.
    pub(super) fn sequence_in(self, dtype: Dtype, file: &str) -> Option<Option<u64>> {
        if file == self.file(dtype, None) {
            return Some(None);
        }
        let number = file.strip_prefix(self.name())?.strip_prefix('.')?;
        let number = number
            .strip_suffix(self.element(dtype))?
            .strip_suffix('.')?;
        let number: u64 = number.parse().ok()?;
        (self.file(dtype, Some(number)) == file).then_some(Some(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // B56
    #[test]
    fn sizes_do_not_wrap() {
        let dim = NonZeroUsize::new(1536).unwrap();
        let bytes = |rows| Column::Embedding.bytes_of(rows, Dtype::F16, dim).unwrap();
        assert_eq!(bytes(3_000_000_000), Some(9_216_000_000_000));
        assert_eq!(bytes(1 << 62), None);
        assert_eq!(Column::TextBytes.bytes_of(1, Dtype::F16, dim), None);
    }

    #[test]
    fn file_names_are_read_back_and_no_others() {
        let named = |file: &str| Column::LastAccess.sequence_in(Dtype::F16, file);
        assert_eq!(named("last_access.17.i64"), Some(Some(17)));
        assert_eq!(named("last_access.i64"), Some(None));
        for other in [
            "last_access.017.i64",
            "last_access.+1.i64",
            "last_access..i64",
            "last_access.1.i32",
            "../last_access.1.i64",
            "last_access.99999999999999999999.i64",
            "",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
        for (at, column) in Column::ALL.into_iter().enumerate() {
            assert_eq!(column as usize, at);
            assert_eq!(
                column.sequence_in(Dtype::F32, &column.file(Dtype::F32, None)),
                Some(None)
            );
            let claimed = Column::ALL.into_iter().filter(|c| {
                c.sequence_in(Dtype::F32, &column.file(Dtype::F32, Some(3)))
                    .is_some()
            });
            assert_eq!(claimed.count(), 1);
        }
    }
}
