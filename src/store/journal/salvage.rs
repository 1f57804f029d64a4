//! What of a damaged segment is valid by itself.

use super::decode::decode;
use super::record::{HEAD_BYTES, Head, Record};
use super::replay::{Dropped, SUMMED_PER_BYTE, Segment, find_marker};
use super::segment::{Flaw, HEADER_BYTES, Header, Origin};
use crate::store::damage::Problem;

/// A segment's valid records, wherever they stand, and the bytes between them.
pub(in crate::store) struct Salvaged<'a> {
    /// If it is whole.
    pub(in crate::store) header: Option<Header>,
    /// Where each record stands.
    pub(in crate::store) records: Vec<(usize, Record<'a>)>,
    pub(in crate::store) gaps: Vec<Dropped>,
}

/// The header of a segment, if it is whole.
pub(in crate::store) fn header_of(segment: &Segment<'_>) -> Option<Header> {
    Header::parse(segment.bytes, segment.number).ok()
}

/// Whether a segment surely goes on after the one with the number before.
pub(in crate::store) fn is_continuation(segment: &Segment<'_>) -> bool {
    let origin = header_of(segment).map(|header| header.origin);
    matches!(origin, Some(Origin::Continues { .. }))
}

/// Finds the records in a segment that have the right sum and can be decoded. Their sequence numbers, and
/// what they say was durable, are not compared with anything.
///
/// A header that is broken is a gap. Records are still found if the salt in it is whole: no sum is right with
/// another.
pub(in crate::store) fn salvage<'a>(segment: &Segment<'a>, embedding_bytes: usize) -> Salvaged<'a> {
    let bytes = segment.bytes;
    let mut found = Salvaged {
        header: None,
        records: Vec::new(),
        gaps: Vec::new(),
    };
    let gap = |from: usize, to: usize, problem| Dropped {
        path: segment.path.to_owned(),
        offset: from as u64,
        bytes: (to - from) as u64,
        problem,
    };
    let salt = match Header::parse(bytes, segment.number) {
        Ok(header) => {
            found.header = Some(header);
            header.salt
        }
        Err(Flaw::Wrong(problem @ Problem::NewerSegment { .. })) => {
            found.gaps.push(gap(0, bytes.len(), problem));
            return found;
        }
        Err(flaw) => {
            let problem = match flaw {
                Flaw::Wrong(problem) => problem,
                Flaw::Broken(what) => Problem::Segment { what },
            };
            let header = bytes.len().min(HEADER_BYTES);
            found.gaps.push(gap(0, header, problem));
            match Header::salt_in(bytes) {
                Some(salt) => salt,
                None => return found,
            }
        }
    };
    // As a search for what says that damage was durable does: heads in a memory must not make it take for ever.
    let mut summable = bytes.len().saturating_mul(SUMMED_PER_BYTE);
    let (mut at, mut last) = (HEADER_BYTES, 0);
    while at < bytes.len() {
        let problem = match summed(&bytes[at..], salt) {
            Ok((head, record)) => {
                last = head.sequence;
                let start = at;
                at += record.len();
                match decode(&head, record, embedding_bytes) {
                    Ok(record) => found.records.push((start, record)),
                    Err(flaw) => {
                        let (sequence, what) = (head.sequence, flaw.what);
                        let problem = Problem::RecordBody { sequence, what };
                        found.gaps.push(gap(start, at, problem));
                    }
                }
                continue;
            }
            Err(what) => Problem::Record {
                sequence: last.saturating_add(1),
                what,
            },
        };
        let start = at;
        at = next(bytes, at + 1, salt, &mut summable).unwrap_or(bytes.len());
        found.gaps.push(gap(start, at, problem));
    }
    found
}

/// The record at the start of `bytes`, if its sum is right.
fn summed(bytes: &[u8], salt: u64) -> Result<(Head, &[u8]), &'static str> {
    let head = Head::read(bytes)?;
    let record = head.record(bytes)?;
    match head.sums(record, salt) {
        true => Ok((head, record)),
        false => Err("has not the checksum its head gives"),
    }
}

/// Where the next record with a right sum starts, from `at` on.
fn next(bytes: &[u8], mut at: usize, salt: u64, summable: &mut usize) -> Option<usize> {
    while let Some(found) = find_marker(bytes.get(at..)?) {
        at += found;
        if let Ok(head) = Head::read(&bytes[at..])
            && let Ok(record) = head.record(&bytes[at..])
        {
            *summable = summable.checked_sub(record.len().max(HEAD_BYTES))?;
            if head.sums(record, salt) {
                return Some(at);
            }
        }
        at += 1;
    }
    None
}
