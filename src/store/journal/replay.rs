//! What a journal says that was found: its records in order, what is given up of it, or its damage.
//!
//! A record is valid if it is whole, has the right sum and the next sequence number. Of the first place
//! that holds none, one question decides: was it durable? If a believable record after it says so, or the
//! segment after it, or the columns do (they never hold a record before it is durable), the file is damaged. If nothing
//! does, a crash left it so, nobody was told that it would last, and it is dropped with all after it.

use super::decode::decode;
use super::record::{HEAD_BYTES, Head, MARKER, Record};
use super::segment::{Flaw, HEADER_BYTES, Header, Origin};
use crate::store::damage::{Damage, Problem};
use std::path::{Path, PathBuf};

/// The search after a broken record sums at most so many bytes for each that it searches. Records do not
/// overlap: where there are more, somebody wrote heads into a memory to make the search take for ever.
pub(super) const SUMMED_PER_BYTE: usize = 4;

/// A segment's bytes, and where they came from.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Segment<'a> {
    pub(in crate::store) path: &'a Path,
    pub(in crate::store) number: u64,
    pub(in crate::store) bytes: &'a [u8],
}

/// Bytes that no record is made of, and that nothing says were durable.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Dropped {
    /// The file.
    pub path: PathBuf,
    /// The first of them.
    pub offset: u64,
    /// How many. 0 if a file is empty that should hold a header.
    pub bytes: u64,
    /// What is wrong at the first.
    pub problem: Problem,
}

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Dropped {
            offset,
            bytes,
            problem,
            ..
        } = self;
        let path = self.path.display();
        write!(
            f,
            "{path}: byte {offset}: {problem}; {bytes} bytes are left out"
        )
    }
}

/// How a segment was read.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store) struct Outcome {
    pub(in crate::store) dropped: Option<Dropped>,
    /// Whether the segment with the next number, if there is one, is to be read after it.
    pub(in crate::store) more: bool,
}

/// Reads the segments of a journal, one after another, from the one that the manifest names.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Replay {
    embedding_bytes: usize,
    folded: u64,
    /// Of the first segment.
    named_bytes: u64,
    /// `None` before the first segment.
    before: Option<Before>,
}

/// How far the segments read so far go.
#[derive(Clone, Copy, Debug)]
struct Before {
    last_sequence: u64,
    /// Of the segment read last.
    valid_bytes: u64,
}

impl Replay {
    /// For a store whose embeddings have `embedding_bytes` each, and whose columns hold all records up to `folded`.
    /// `named_bytes` of the first segment were durable when the manifest named it.
    pub(in crate::store) fn new(embedding_bytes: usize, folded: u64, named_bytes: u64) -> Replay {
        Replay {
            embedding_bytes,
            folded,
            named_bytes,
            before: None,
        }
    }

    /// The last record there is, in the journal or in the columns. Of a journal it is below `u64::MAX`.
    pub(in crate::store) fn last_sequence(&self) -> u64 {
        self.before
            .map_or(self.folded, |before| before.last_sequence)
    }

    /// Reads a segment, and gives `apply` each record that the columns do not hold yet. `next` is the start (64
    /// bytes or more) of the file with the next number, if there is one.
    ///
    /// # Errors
    /// If the segment is damaged, or `apply` says that a record is. What was applied till then is of no use.
    pub(in crate::store) fn read<'a>(
        &mut self,
        segment: &Segment<'a>,
        next: Option<&[u8]>,
        mut apply: impl FnMut(Record<'a>) -> Result<(), Problem>,
    ) -> Result<Outcome, Damage> {
        let next = continued_bytes(segment.number, next);
        let header = match Header::parse(segment.bytes, segment.number) {
            Ok(header) => header,
            Err(Flaw::Wrong(problem)) => return Err(segment.damage(0, problem)),
            Err(Flaw::Broken(what)) => {
                let problem = Problem::Segment { what };
                return self.without_header(segment, next, problem);
            }
        };
        if self.before.is_some() && header.origin == Origin::Takeover {
            // Its maker did not come to naming it in a manifest: all it holds was read already.
            let (dropped, more) = (None, false);
            return Ok(Outcome { dropped, more });
        }
        self.check_order(&header)
            .map_err(|problem| segment.damage(0, problem))?;
        let mut at = HEADER_BYTES;
        let mut last = header.first_sequence - 1;
        let broken = loop {
            if at == segment.bytes.len() {
                break None;
            }
            let (head, bytes) = match segment.record(at, last, header.salt) {
                Ok(found) => found,
                Err(what) => break Some(what),
            };
            let record = self.decode(segment, at, &head, bytes)?;
            last = head.sequence;
            if last > self.folded {
                apply(record).map_err(|problem| segment.damage(at, problem))?;
            }
            at += bytes.len();
        };
        let sequence = last + 1;
        let place = (at, last, header.salt);
        if let Some(because) = self.durable(segment, place, next, broken) {
            let what = broken.unwrap_or("is missing");
            let problem = Problem::DurableRecord {
                sequence,
                what,
                because,
            };
            return Err(segment.damage(at, problem));
        }
        self.before = Some(Before {
            last_sequence: last,
            valid_bytes: at as u64,
        });
        let dropped = broken.map(|what| segment.dropped(at, Problem::Record { sequence, what }));
        let more = true;
        Ok(Outcome { dropped, more })
    }

    /// A segment whose header is broken. Records come after the header is durable, and the next segment after them.
    fn without_header(
        &self,
        segment: &Segment<'_>,
        next: Option<u64>,
        problem: Problem,
    ) -> Result<Outcome, Damage> {
        let made_before_a_crash = segment.bytes.len() <= HEADER_BYTES && next.is_none();
        if self.before.is_none() || !made_before_a_crash {
            return Err(segment.damage(0, problem));
        }
        let dropped = Some(segment.dropped(0, problem));
        let more = false;
        Ok(Outcome { dropped, more })
    }

    /// The segment is the one that comes next.
    fn check_order(&self, header: &Header) -> Result<(), Problem> {
        let found = header.first_sequence;
        let next = self.last_sequence().saturating_add(1);
        let Some(before) = self.before else {
            // It may begin with records that the columns hold.
            return match found <= next {
                true => Ok(()),
                false => Err(Problem::SegmentStart { next, found }),
            };
        };
        if found != next {
            return Err(Problem::SegmentStart { next, found });
        }
        match header.origin {
            Origin::Continues { previous_bytes } if previous_bytes != before.valid_bytes => {
                Err(Problem::SegmentBefore {
                    bytes: before.valid_bytes,
                    found: previous_bytes,
                })
            }
            _ => Ok(()),
        }
    }

    fn decode<'a>(
        &self,
        segment: &Segment<'_>,
        at: usize,
        head: &Head,
        bytes: &'a [u8],
    ) -> Result<Record<'a>, Damage> {
        let sequence = head.sequence;
        let impossible = if head.durable > at as u64 {
            Some("it says that it was durable before it was written")
        } else if sequence == u64::MAX {
            // So that "one more than the last" is always a number.
            Some("none can follow it")
        } else {
            None
        };
        if let Some(what) = impossible {
            return Err(segment.damage(at, Problem::RecordBody { sequence, what }));
        }
        decode(head, bytes, self.embedding_bytes).map_err(|flaw| {
            let what = flaw.what;
            segment.damage(at + flaw.at, Problem::RecordBody { sequence, what })
        })
    }

    /// Who says that what was at `at`, after the record `last`, was durable. The third is the segment's salt.
    fn durable(
        &self,
        segment: &Segment<'_>,
        (at, last, salt): (usize, u64, u64),
        next: Option<u64>,
        broken: Option<&str>,
    ) -> Option<String> {
        match next {
            Some(bytes) if bytes > at as u64 => {
                return Some(format!("the next segment continues {bytes} bytes of it"));
            }
            _ if self.before.is_none() && self.named_bytes > at as u64 => {
                let bytes = self.named_bytes;
                return Some(format!("the manifest says that {bytes} bytes were durable"));
            }
            None if last < self.folded => {
                let folded = self.folded;
                return Some(format!("the columns hold the records up to {folded}"));
            }
            _ => {}
        }
        broken.and_then(|_| segment.durable_after(at, last, salt))
    }
}

impl<'a> Segment<'a> {
    fn damage(&self, at: usize, problem: Problem) -> Damage {
        Damage {
            path: self.path.to_owned(),
            offset: at as u64,
            problem,
        }
    }

    fn dropped(&self, at: usize, problem: Problem) -> Dropped {
        Dropped {
            path: self.path.to_owned(),
            offset: at as u64,
            bytes: (self.bytes.len() - at) as u64,
            problem,
        }
    }

    /// The record at `at`, which comes after the record `last`, or what is wrong with it.
    fn record(&self, at: usize, last: u64, salt: u64) -> Result<(Head, &'a [u8]), &'static str> {
        let rest = &self.bytes[at..];
        let head = Head::read(rest)?;
        let record = head.record(rest)?;
        if !head.sums(record, salt) {
            return Err("has not the checksum its head gives");
        }
        if head.sequence != last + 1 {
            return Err("has another sequence number");
        }
        Ok((head, record))
    }

    /// Which record after the broken place `broken` says that this place was durable.
    ///
    /// Bytes of a memory can look like a record. So a record must also fit: in its sequence number, as there is
    /// room for so many records only between it and the record `last`, and in what it says was durable.
    fn durable_after(&self, broken: usize, last: u64, salt: u64) -> Option<String> {
        let mut summable = (self.bytes.len() - broken).saturating_mul(SUMMED_PER_BYTE);
        let mut at = broken + 1;
        while let Some(found) = find_marker(&self.bytes[at..]) {
            at += found;
            let rest = &self.bytes[at..];
            let between = (at - broken) / HEAD_BYTES;
            let fits = |head: &Head| {
                head.sequence > last
                    && head.sequence - last - 1 <= between as u64
                    && head.durable > broken as u64
                    && head.durable <= at as u64
            };
            if let Ok(head) = Head::read(rest)
                && fits(&head)
                && let Ok(record) = head.record(rest)
            {
                let Some(left) = summable.checked_sub(record.len()) else {
                    return Some("more of what follows looks like records than can be".into());
                };
                summable = left;
                if head.sums(record, salt) {
                    let durable = head.durable;
                    return Some(format!(
                        "the record at byte {at} says that {durable} bytes were durable"
                    ));
                }
            }
            at += 1;
        }
        None
    }
}

pub(super) fn find_marker(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARKER.len()).position(|four| four == MARKER)
}

/// How many bytes of segment `number` the segment after it continues, if that does: `next` is its start.
fn continued_bytes(number: u64, next: Option<&[u8]>) -> Option<u64> {
    let header = Header::parse(next?, number.checked_add(1)?).ok()?;
    match header.origin {
        Origin::Continues { previous_bytes } => Some(previous_bytes),
        Origin::Takeover => None,
    }
}

#[cfg(test)]
mod tests;
