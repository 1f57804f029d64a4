//! Rows that are not in the column files yet: appended, in the journal, and read from memory.
//!
//! They lie in chunks, whose fields are vectors, so that a scan takes a chunk as it takes the columns.
//! Clones of a tail share its chunks. Only the last one grows, and is copied first if it is shared: a
//! push after a snapshot costs a copy of at most one chunk, a push after a push none. Full ones of one
//! length are [joined](Tail::join), up to what a scan takes in one run, as it takes many short ones slower: 75,000 x
//! 384 f16 in chunks of 1,024 took up to 1.4 times as long as in the columns. So each row is copied four times more.

use super::journal::Vector;
use super::keys::KeyIndex;
use super::vectors::Vectors;
use crate::kernel::{Dtype, Rows};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a chunk that grows, at most.
pub(super) const CHUNK_ROWS: usize = 1024;

/// Chunks that are joined to one, at most: a power of two.
const JOINED: usize = 16;

/// One memory as it is stored, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StoredRow<'a> {
    /// `dim` elements of the store's type, at any address; zeros if there is no embedding.
    pub(super) elements: &'a [u8],
    pub(super) inv_norm: f32,
    pub(super) id: u64,
    pub(super) created: i64,
    pub(super) last_access: i64,
    /// `NO_EXPIRY`: none.
    pub(super) expiry: i64,
    pub(super) importance: f32,
    pub(super) kind: u16,
    pub(super) depth: u32,
    pub(super) key: Option<&'a str>,
    pub(super) text: &'a str,
    pub(super) payload: &'a [u8],
    /// As `evidence` encodes it; whoever pushes it has decoded or encoded it.
    pub(super) evidence: &'a [u8],
}

#[derive(Clone)]
pub(super) struct Tail {
    dim: NonZeroUsize,
    chunk_rows: usize,
    /// Without rows and keys: what every chunk starts as.
    empty: TailChunk,
    /// None empty, all but the last one full, no two that could be joined once that is done. Each with the rows before it, those that were dropped among them.
    chunks: Vec<(usize, Arc<TailChunk>)>,
    /// Rows of the first chunk that are in the columns by now.
    dropped: usize,
    rows: usize,
}

impl Tail {
    /// Without rows.
    pub(super) fn new(dim: NonZeroUsize, dtype: Dtype, chunk_rows: usize) -> Tail {
        Tail {
            dim,
            chunk_rows,
            empty: TailChunk::new(dtype),
            chunks: Vec::new(),
            dropped: 0,
            rows: 0,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row, the first one with its key that is live. Its id is above all others.
    pub(super) fn push(&mut self, row: &StoredRow<'_>) {
        let elements = row.elements.len();
        let expected = self.dim.get() * self.empty.vectors.dtype().size_bytes();
        assert_eq!(elements, expected, "bytes of {} elements", self.dim);
        debug_assert!(super::evidence::decode(row.evidence).is_ok());
        if (self.chunks.last()).is_none_or(|(_, last)| last.rows() >= self.chunk_rows) {
            let before = self.dropped + self.rows;
            self.chunks.push((before, Arc::new(self.empty.clone())));
        }
        let (_, last) = self.chunks.last_mut().expect("there is one by now");
        Arc::make_mut(last).push(row);
        self.rows += 1;
    }

    /// Whether there is something to [join](Tail::join).
    pub(super) fn is_joinable(&self) -> bool {
        (self.chunks.windows(2)).any(|pair| self.are_joinable(&pair[0].1, &pair[1].1))
    }

    fn are_joinable(&self, one: &TailChunk, other: &TailChunk) -> bool {
        let rows = one.rows();
        rows == other.rows() && rows >= self.chunk_rows && rows < JOINED * self.chunk_rows
    }

    /// Joins neighbours that are full and of one length, and what comes of it. It copies up to all but the longest
    /// chunks, which is for who pushes to wait for, and for nobody else.
    pub(super) fn join(&mut self) {
        let mut joined: Vec<(usize, Arc<TailChunk>)> = Vec::with_capacity(self.chunks.len());
        for chunk in std::mem::take(&mut self.chunks) {
            joined.push(chunk);
            while let [.., (_, one), (_, other)] = &mut joined[..]
                && self.are_joinable(one, other)
            {
                Arc::make_mut(one).append(other);
                joined.pop();
            }
        }
        self.chunks = joined;
    }

    /// Gives a row without an embedding one.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn embed(&mut self, row: usize, vector: Vector<'_>) {
        let at = row + self.dropped;
        let chunk = self.chunk_of(at);
        let (before, chunk) = &mut self.chunks[chunk];
        let (chunk, at) = (Arc::make_mut(chunk), at - *before);
        chunk.vectors.set(at, vector);
    }

    /// The chunk that holds a row, counted with those that were dropped.
    fn chunk_of(&self, at: usize) -> usize {
        self.chunks.partition_point(|(before, _)| *before <= at) - 1
    }

    /// The chunk of a row, and the row in it.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn place(&self, row: usize) -> (&TailChunk, usize) {
        let at = row + self.dropped;
        let (before, chunk) = &self.chunks[self.chunk_of(at)];
        (chunk, at - before)
    }

    /// The longest piece of the tail that starts at a row and lies in one chunk: the chunk, and the
    /// piece in it.
    pub(super) fn piece(&self, row: usize) -> (&TailChunk, Range<usize>) {
        let (chunk, first) = self.place(row);
        (chunk, first..chunk.rows())
    }

    /// How many rows have an id below this one.
    pub(super) fn rows_below(&self, id: u64) -> usize {
        let chunk = (self.chunks).partition_point(|(_, chunk)| chunk.ids[0] < id);
        let Some((before, chunk)) = chunk.checked_sub(1).map(|chunk| &self.chunks[chunk]) else {
            return 0;
        };
        let rows = before + chunk.ids.partition_point(|&other| other < id);
        rows.saturating_sub(self.dropped)
    }

    /// Leaves the first `n` rows.
    ///
    /// # Panics
    /// If there are fewer.
    pub(super) fn truncate(&mut self, n: usize) {
        assert!(n <= self.rows, "{n} of {} rows", self.rows);
        self.rows = n;
        let end = self.dropped + n;
        let whole = (self.chunks).partition_point(|(before, chunk)| before + chunk.rows() <= end);
        let cut = self.chunks.drain(whole..).next();
        if let Some((before, chunk)) = cut.filter(|(before, _)| *before < end) {
            // Pushed anew: of two rows with one key the index has the later, which may be gone.
            let mut left = self.empty.clone();
            (0..end - before).for_each(|at| left.push(&chunk.row(self.dim, at)));
            self.chunks.push((before, Arc::new(left)));
        }
        if self.chunks.is_empty() {
            self.dropped = 0;
        }
    }

    /// The newest creation time in its chunks, in which rows may be that are in the columns by now.
    pub(super) fn newest_created(&self) -> Option<i64> {
        let chunks = self.chunks.iter();
        chunks.filter_map(|(_, chunk)| chunk.newest_created).max()
    }

    /// The row with this id.
    pub(super) fn row_of_id(&self, id: u64) -> Option<usize> {
        let chunk = (self.chunks).partition_point(|(_, chunk)| chunk.ids[0] <= id);
        let (before, chunk) = &self.chunks[chunk.checked_sub(1)?];
        let at = chunk.ids.binary_search(&id).ok()?;
        (before + at).checked_sub(self.dropped)
    }

    /// The live row with this key.
    pub(super) fn row_of_key(&self, key: &str, is_live: impl Fn(usize) -> bool) -> Option<usize> {
        // Hashed once for all chunks: their indexes are clones of one.
        let hash = self.empty.index.hash(key);
        let chunks = self.chunks.iter().rev();
        let mut rows = chunks.filter_map(|(before, chunk)| {
            let at = chunk.with_key(hash, key)?;
            (before + at).checked_sub(self.dropped)
        });
        rows.find(|&row| is_live(row))
    }

    /// Takes the first `n` rows away: they are in the columns.
    ///
    /// # Panics
    /// If there are fewer.
    pub(super) fn drop_first(&mut self, n: usize) {
        assert!(n <= self.rows, "{n} of {} rows", self.rows);
        self.rows -= n;
        self.dropped += n;
        let whole =
            (self.chunks).partition_point(|(before, chunk)| before + chunk.rows() <= self.dropped);
        self.chunks.drain(..whole);
        let gone = (self.chunks.first()).map_or(self.dropped, |(before, _)| *before);
        self.dropped -= gone;
        (self.chunks.iter_mut()).for_each(|(before, _)| *before -= gone);
    }
}

/// Rows, field by field.
pub(super) struct TailChunk {
    vectors: Vectors,
    pub(super) ids: Vec<u64>,
    pub(super) created: Vec<i64>,
    /// The newest of them.
    newest_created: Option<i64>,
    /// As given at append.
    pub(super) last_access: Vec<i64>,
    pub(super) expiry: Vec<i64>,
    pub(super) importance: Vec<f32>,
    pub(super) kinds: Vec<u16>,
    pub(super) depths: Vec<u32>,
    keys: Spans,
    texts: Spans,
    payloads: Spans,
    evidence: Spans,
    /// Of two rows with one key, the later: it was pushed, so the earlier one was deleted.
    index: KeyIndex,
}

impl TailChunk {
    fn new(dtype: Dtype) -> TailChunk {
        TailChunk {
            vectors: Vectors::new(dtype),
            ids: Vec::new(),
            created: Vec::new(),
            newest_created: None,
            last_access: Vec::new(),
            expiry: Vec::new(),
            importance: Vec::new(),
            kinds: Vec::new(),
            depths: Vec::new(),
            keys: Spans::default(),
            texts: Spans::default(),
            payloads: Spans::default(),
            evidence: Spans::default(),
            index: KeyIndex::default(),
        }
    }

    fn rows(&self) -> usize {
        self.ids.len()
    }

    fn push(&mut self, row: &StoredRow<'_>) {
        let at = self.rows();
        if let Some(key) = row.key {
            let (slot, _) = self.slot(self.index.hash(key), key);
            self.index.insert(slot, at as u32);
        }
        self.vectors.push(Vector {
            inv_norm: row.inv_norm,
            elements: row.elements,
        });
        self.ids.push(row.id);
        self.created.push(row.created);
        self.newest_created = self.newest_created.max(Some(row.created));
        self.last_access.push(row.last_access);
        self.expiry.push(row.expiry);
        self.importance.push(row.importance);
        self.kinds.push(row.kind);
        self.depths.push(row.depth);
        self.keys.push(row.key.unwrap_or("").as_bytes());
        self.texts.push(row.text.as_bytes());
        self.payloads.push(row.payload);
        self.evidence.push(row.evidence);
    }

    /// Adds the rows of another chunk.
    fn append(&mut self, other: &TailChunk) {
        let first = self.rows();
        self.vectors.append(&other.vectors);
        self.ids.extend_from_slice(&other.ids);
        self.created.extend_from_slice(&other.created);
        self.newest_created = self.newest_created.max(other.newest_created);
        self.last_access.extend_from_slice(&other.last_access);
        self.expiry.extend_from_slice(&other.expiry);
        self.importance.extend_from_slice(&other.importance);
        self.kinds.extend_from_slice(&other.kinds);
        self.depths.extend_from_slice(&other.depths);
        self.keys.append(&other.keys);
        self.texts.append(&other.texts);
        self.payloads.append(&other.payloads);
        self.evidence.append(&other.evidence);
        for row in 0..other.rows() {
            if let Some(key) = other.key(row) {
                let (slot, _) = self.slot(self.index.hash(key), key);
                self.index.insert(slot, (first + row) as u32);
            }
        }
    }

    fn slot(&self, hash: u64, key: &str) -> (u64, Option<u32>) {
        let has_key = |row| Ok(self.keys.get(row as usize) == key.as_bytes());
        let Ok(slot) = (self.index).slot_of::<std::convert::Infallible>(hash, has_key);
        slot
    }

    fn with_key(&self, hash: u64, key: &str) -> Option<usize> {
        self.slot(hash, key).1.map(|row| row as usize)
    }

    /// Embeddings of some of its rows.
    pub(super) fn embeddings(&self, dim: NonZeroUsize, rows: Range<usize>) -> Rows<'_> {
        self.vectors.rows(dim, rows)
    }

    /// The inverse norms of its rows.
    pub(super) fn inv_norms(&self) -> &[f32] {
        &self.vectors.inv_norms
    }

    pub(super) fn key(&self, row: usize) -> Option<&str> {
        let key = self.keys.str(row);
        (!key.is_empty()).then_some(key)
    }

    pub(super) fn text(&self, row: usize) -> &str {
        self.texts.str(row)
    }

    pub(super) fn payload(&self, row: usize) -> &[u8] {
        self.payloads.get(row)
    }

    pub(super) fn evidence(&self, row: usize) -> &[u8] {
        self.evidence.get(row)
    }

    /// A row as it was pushed.
    pub(super) fn row(&self, dim: NonZeroUsize, row: usize) -> StoredRow<'_> {
        let vector = self.vectors.get(dim, row);
        StoredRow {
            elements: vector.elements,
            inv_norm: vector.inv_norm,
            id: self.ids[row],
            created: self.created[row],
            last_access: self.last_access[row],
            expiry: self.expiry[row],
            importance: self.importance[row],
            kind: self.kinds[row],
            depth: self.depths[row],
            key: self.key(row),
            text: self.text(row),
            payload: self.payload(row),
            evidence: self.evidence(row),
        }
    }
}

/// With as much room as the original has, as a chunk is copied in order to be pushed to.
impl Clone for TailChunk {
    fn clone(&self) -> TailChunk {
        TailChunk {
            vectors: self.vectors.clone(),
            ids: roomy(&self.ids),
            created: roomy(&self.created),
            newest_created: self.newest_created,
            last_access: roomy(&self.last_access),
            expiry: roomy(&self.expiry),
            importance: roomy(&self.importance),
            kinds: roomy(&self.kinds),
            depths: roomy(&self.depths),
            keys: self.keys.clone(),
            texts: self.texts.clone(),
            payloads: self.payloads.clone(),
            evidence: self.evidence.clone(),
            index: self.index.clone(),
        }
    }
}

/// A copy that can be pushed to without being moved at once.
pub(super) fn roomy<T: Copy>(all: &Vec<T>) -> Vec<T> {
    let room = match all.capacity() {
        full if full == all.len() => 2 * full,
        room => room,
    };
    let mut copy = Vec::with_capacity(room);
    copy.extend_from_slice(all);
    copy
}

/// Strings of bytes, one after another.
#[derive(Default)]
struct Spans {
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Spans {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    fn append(&mut self, other: &Spans) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| before + end));
    }

    fn get(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }

    fn str(&self, row: usize) -> &str {
        std::str::from_utf8(self.get(row)).expect("keys and texts are pushed as str")
    }
}

impl Clone for Spans {
    fn clone(&self) -> Spans {
        Spans {
            ends: roomy(&self.ends),
            bytes: roomy(&self.bytes),
        }
    }
}

#[cfg(test)]
mod tests;
