//! A record of the journal: a head of 32 bytes and a body.

use crate::store::format::{NO_EXPIRY, SUPERSEDES_NOTHING};
use crate::store::memory::NewMemory;
use bytemuck::Pod;
use std::marker::PhantomData;
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

/// What a record starts with.
pub(super) const MARKER: [u8; 4] = *b"MRJ1";

/// Before a record's body.
pub(super) const HEAD_BYTES: usize = 32;

/// Where the sum of the rest stands in the head.
const SUM_AT: usize = 24;

pub(super) const APPEND: u8 = 1;
pub(super) const TOUCH: u8 = 2;
pub(super) const DELETE: u8 = 3;
pub(super) const EMBED: u8 = 4;
pub(super) const IMPORTANCE: u8 = 5;

/// A record that was read and can be trusted.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store) struct Record<'a> {
    /// Its place in the order of all records, from 1.
    pub(in crate::store) sequence: u64,
    /// How much of its segment was known to be durable when it was written.
    pub(in crate::store) durable: u64,
    pub(in crate::store) body: Body<'a>,
    /// All of it, as written.
    pub(super) bytes: &'a [u8],
}

impl Record<'_> {
    /// How long it is.
    pub(in crate::store) fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store) enum Body<'a> {
    /// Memories were appended, all of them or none. They have the ids from `first_id` on; ids that were
    /// left out before it are never given.
    Append { first_id: u64, rows: Vec<Row<'a>> },
    /// Memories were retrieved.
    Touch(Touch<'a>),
    /// Memories were deleted.
    Delete { ids: Ids<'a> },
    /// Memories that were stored without a vector were given one.
    Embed { vectors: Vec<(u64, Vector<'a>)> },
    /// Memories have this importance for `agent`; `None`: the one they were stored with.
    Importance {
        agent: u32,
        importance: Option<f32>,
        ids: Ids<'a>,
        /// What each was for the agent before; NaN: the one it was stored with.
        before: Numbers<'a, f32>,
    },
}

/// Memories that were retrieved by `agent` at `now`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::store) struct Touch<'a> {
    pub(in crate::store) agent: u32,
    pub(in crate::store) now: i64,
    pub(in crate::store) seen: Seen,
    pub(in crate::store) ids: Ids<'a>,
    /// The agent's last access of each before; [`NOT_TOUCHED`] of one that was deleted.
    pub(in crate::store) before: Numbers<'a, i64>,
    /// The caller's.
    pub(in crate::store) note: &'a [u8],
}

/// Stands for the last access of a memory that a touch names and that was deleted by then: no touch is later.
pub(in crate::store) const NOT_TOUCHED: i64 = i64::MAX;

impl Touch<'_> {
    /// The memories whose last access it altered, and what that was before.
    pub(in crate::store) fn altered(&self) -> impl Iterator<Item = (u64, i64)> {
        let all = self.ids.iter().zip(self.before.iter());
        all.filter(|&(_, before)| before < self.now)
    }
}

/// What a retrieval saw that a touch is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Seen {
    /// The last record that it saw the effect of.
    pub(in crate::store) sequence: u64,
    /// The id of the next memory: an append past the journal has no record.
    pub(in crate::store) next_id: u64,
    /// The record of a touch after that one. It saw what that touch's retrieval saw, and the touch.
    pub(in crate::store) touch: Option<u64>,
}

/// A memory as a record holds it. Its id follows from its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::store) struct Row<'a> {
    pub(in crate::store) key: Option<&'a str>,
    pub(in crate::store) kind: &'a str,
    pub(in crate::store) text: &'a str,
    pub(in crate::store) vector: Option<Vector<'a>>,
    pub(in crate::store) created: i64,
    pub(in crate::store) last_access: i64,
    pub(in crate::store) expiry: Option<i64>,
    pub(in crate::store) importance: f32,
    /// As in its column.
    pub(in crate::store) evidence: &'a [u8],
    pub(in crate::store) depth: u32,
    pub(in crate::store) supersedes: Option<u64>,
    pub(in crate::store) payload: &'a [u8],
}

/// An embedding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::store) struct Vector<'a> {
    /// Above 0.
    pub(in crate::store) inv_norm: f32,
    /// As in its column. Not aligned when it was read.
    pub(in crate::store) elements: &'a [u8],
}

impl<'a> Row<'a> {
    /// A memory that was checked, with what was made of its embedding and evidence.
    pub(in crate::store) fn new(
        memory: &'a NewMemory<'_>,
        vector: Option<Vector<'a>>,
        evidence: &'a [u8],
    ) -> Row<'a> {
        Row {
            key: memory.key,
            kind: memory.kind.as_str(),
            text: memory.text,
            vector,
            created: memory.created,
            last_access: memory.last_access,
            expiry: memory.expiry,
            // No -0: least and greatest must not depend on the order.
            importance: memory.importance + 0.0,
            evidence,
            depth: memory.depth,
            supersedes: memory.supersedes,
            payload: memory.payload,
        }
    }
}

/// Numbers, as little-endian bytes that need not be aligned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::store) struct Numbers<'a, T>(&'a [u8], PhantomData<T>);

pub(in crate::store) type Ids<'a> = Numbers<'a, u64>;

impl<'a, T> Numbers<'a, T> {
    /// The numbers that these bytes are.
    pub(super) const fn of(bytes: &'a [u8]) -> Numbers<'a, T> {
        Numbers(bytes, PhantomData)
    }
}

impl<'a, T: Pod> Numbers<'a, T> {
    pub(in crate::store) fn new(numbers: &'a [T]) -> Numbers<'a, T> {
        Numbers::of(bytemuck::cast_slice(numbers))
    }

    pub(in crate::store) fn len(self) -> usize {
        self.0.len() / size_of::<T>()
    }

    pub(in crate::store) fn iter(self) -> impl ExactSizeIterator<Item = T> + 'a {
        let numbers = self.0.chunks_exact(size_of::<T>());
        numbers.map(bytemuck::pod_read_unaligned)
    }
}

/// Where a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Place {
    /// The segment's.
    pub(in crate::store) salt: u64,
    pub(in crate::store) sequence: u64,
    /// How much of the segment is known to be durable.
    pub(in crate::store) durable: u64,
}

/// A body that is longer than a record can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{bytes} bytes in one record of the journal, at most {} are possible",
    u32::MAX
)]
pub(in crate::store) struct TooLong {
    pub(in crate::store) bytes: u64,
}

/// Appends a record to `out`, whole but for its place, which [`seal`] gives it. After an error `out` is as
/// it was.
pub(in crate::store) fn encode(body: &Body<'_>, out: &mut Vec<u8>) -> Result<(), TooLong> {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    let at = out.len();
    put_body(body, out);
    // Each count and length in the body is less than the body is long: if that fits, all do.
    let bytes = (out.len() - at) as u64;
    let Ok(body_bytes) = u32::try_from(bytes) else {
        out.truncate(start);
        return Err(TooLong { bytes });
    };
    out[start..start + 4].copy_from_slice(&MARKER);
    out[start + 4..start + 8].copy_from_slice(&body_bytes.to_le_bytes());
    Ok(())
}

/// Gives an encoded record its place. A record can be given another later.
pub(in crate::store) fn seal(record: &mut [u8], place: &Place) {
    record[8..16].copy_from_slice(&place.sequence.to_le_bytes());
    record[16..24].copy_from_slice(&place.durable.to_le_bytes());
    let sum = sum(record, place.salt);
    record[SUM_AT..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
}

/// The checksum of a record of the segment with this salt: a record that another segment held is none of this
/// one, and no memory's bytes can look like one.
fn sum(record: &[u8], salt: u64) -> u64 {
    let mut sum = Xxh3::with_seed(salt);
    sum.update(&record[..SUM_AT]);
    sum.update(&record[HEAD_BYTES..]);
    sum.digest()
}

fn put_body(body: &Body<'_>, out: &mut Vec<u8>) {
    match body {
        Body::Append { first_id, rows } => {
            out.push(APPEND);
            out.extend(first_id.to_le_bytes());
            out.extend((rows.len() as u32).to_le_bytes());
            rows.iter().for_each(|row| put_row(row, out));
        }
        Body::Touch(touch) => {
            out.push(TOUCH);
            out.extend(touch.agent.to_le_bytes());
            out.extend(touch.now.to_le_bytes());
            out.extend(touch.seen.sequence.to_le_bytes());
            out.extend(touch.seen.next_id.to_le_bytes());
            out.extend(touch.seen.touch.unwrap_or(0).to_le_bytes());
            put_ids(touch.ids, out);
            out.extend_from_slice(touch.before.0);
            put_span(touch.note, out);
        }
        Body::Delete { ids } => {
            out.push(DELETE);
            put_ids(*ids, out);
        }
        Body::Embed { vectors } => {
            out.push(EMBED);
            out.extend((vectors.len() as u32).to_le_bytes());
            for (id, vector) in vectors {
                out.extend(id.to_le_bytes());
                out.extend(vector.inv_norm.to_le_bytes());
                out.extend_from_slice(vector.elements);
            }
        }
        Body::Importance {
            agent,
            importance,
            ids,
            before,
        } => {
            out.push(IMPORTANCE);
            out.extend(agent.to_le_bytes());
            out.push(importance.is_some().into());
            out.extend(importance.iter().flat_map(|value| value.to_le_bytes()));
            put_ids(*ids, out);
            out.extend_from_slice(before.0);
        }
    }
}

fn put_ids(ids: Ids<'_>, out: &mut Vec<u8>) {
    out.extend((ids.len() as u32).to_le_bytes());
    out.extend_from_slice(ids.0);
}

fn put_span(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_row(row: &Row<'_>, out: &mut Vec<u8>) {
    out.extend(row.created.to_le_bytes());
    out.extend(row.last_access.to_le_bytes());
    out.extend(row.expiry.unwrap_or(NO_EXPIRY).to_le_bytes());
    out.extend(row.importance.to_le_bytes());
    out.extend(row.depth.to_le_bytes());
    let supersedes = row.supersedes.unwrap_or(SUPERSEDES_NOTHING);
    out.extend(supersedes.to_le_bytes());
    let inv_norm = row.vector.map_or(0.0, |vector| vector.inv_norm);
    out.extend(inv_norm.to_le_bytes());
    out.push(row.vector.is_some().into());
    for bytes in [
        row.kind.as_bytes(),
        row.key.unwrap_or("").as_bytes(),
        row.text.as_bytes(),
        row.payload,
        row.evidence,
    ] {
        put_span(bytes, out);
    }
    if let Some(vector) = row.vector {
        out.extend_from_slice(vector.elements);
    }
}

/// The fixed part of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    body_bytes: u32,
    pub(super) sequence: u64,
    pub(super) durable: u64,
    sum: u64,
}

impl Head {
    /// The head at the start of `bytes`, or why there is none.
    pub(super) fn read(bytes: &[u8]) -> Result<Head, &'static str> {
        let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
            return Err("ends inside its head");
        };
        if head[..4] != MARKER {
            return Err(match head[..4] {
                [0, 0, 0, 0] => "is zeros",
                _ => "does not start as a record does",
            });
        }
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        Ok(Head {
            body_bytes: u32::from_le_bytes([head[4], head[5], head[6], head[7]]),
            sequence: u64_at(8),
            durable: u64_at(16),
            sum: u64_at(SUM_AT),
        })
    }

    /// The whole record that this is the head of, at the start of `bytes`, unsummed.
    pub(super) fn record<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], &'static str> {
        let whole = usize::try_from(u64::from(self.body_bytes) + HEAD_BYTES as u64).ok();
        let record = whole.and_then(|whole| bytes.get(..whole));
        record.ok_or("ends inside its body")
    }

    /// Whether `record`, which has this head, is what was written to the segment with this salt.
    pub(super) fn sums(&self, record: &[u8], salt: u64) -> bool {
        sum(record, salt) == self.sum
    }
}

#[cfg(test)]
mod tests;
