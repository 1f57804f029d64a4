//! A segment of the journal: its file's name, its header, and one that takes over from others.

use super::record::{self, Place, Record};
use crate::store::damage::Problem;
use xxhash_rust::xxh3::xxh3_64;

/// Before the first record.
pub(in crate::store) const HEADER_BYTES: usize = 64;

/// What a segment starts with.
const MAGIC: &[u8; 16] = b"memorank journal";

/// The version of segments this crate reads and writes.
const VERSION: u32 = 1;

/// The flag of a segment that holds anew what others held.
const TAKEOVER: u32 = 1;

/// What the header's own checksum covers.
const SUMMED_BYTES: usize = 56;

/// Before the number, in a file's name.
const PREFIX: &str = "journal.";

/// The name of a segment's file.
pub(in crate::store) fn file_name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// The number of the segment with this file name, or `None` if it is no segment's.
pub(in crate::store) fn number_in(file: &str) -> Option<u64> {
    let number = file.strip_prefix(PREFIX)?.parse().ok()?;
    (number > 0 && file_name(number) == file).then_some(number)
}

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Header {
    pub(in crate::store) number: u64,
    /// Of its first record, from 1.
    pub(in crate::store) first_sequence: u64,
    pub(in crate::store) origin: Origin,
    /// Any number that nobody can foresee: the seed of its records' checksums.
    pub(in crate::store) salt: u64,
}

/// Where a segment's records come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Origin {
    /// It goes on after the segment with the number before, which has this length, all of it durable.
    Continues { previous_bytes: u64 },
    /// It holds anew all that the segments before it held and the columns do not. It counts only once a manifest
    /// names it.
    Takeover,
}

/// Why a header cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Flaw {
    /// It is not what was written: cut, overwritten, or never synced.
    Broken(&'static str),
    /// It is what was written, and not what this segment should say.
    Wrong(Problem),
}

impl Header {
    pub(in crate::store) fn render(&self) -> [u8; HEADER_BYTES] {
        let (flags, previous_bytes) = match self.origin {
            Origin::Continues { previous_bytes } => (0, previous_bytes),
            Origin::Takeover => (TAKEOVER, 0),
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
        bytes[20..24].copy_from_slice(&u32::to_le_bytes(flags));
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[40..48].copy_from_slice(&u64::to_le_bytes(previous_bytes));
        bytes[48..56].copy_from_slice(&self.salt.to_le_bytes());
        let sum = xxh3_64(&bytes[..SUMMED_BYTES]);
        bytes[SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The header at the start of segment `number`.
    pub(super) fn parse(bytes: &[u8], number: u64) -> Result<Header, Flaw> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Flaw::Broken("ends inside its header"));
        };
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if !bytes.starts_with(MAGIC) {
            return Err(Flaw::Broken("does not start as a segment does"));
        }
        if xxh3_64(&bytes[..SUMMED_BYTES]) != u64_at(SUMMED_BYTES) {
            return Err(Flaw::Broken("has not the checksum its header gives"));
        }
        let found = u32_at(16);
        if found > VERSION {
            return Err(Flaw::Wrong(Problem::NewerSegment { found }));
        }
        let found = u64_at(24);
        if found != number {
            return Err(Flaw::Wrong(Problem::SegmentNumber { number, found }));
        }
        let header = Header {
            number,
            first_sequence: u64_at(32),
            origin: match u32_at(20) {
                TAKEOVER => Origin::Takeover,
                _ => Origin::Continues {
                    previous_bytes: u64_at(40),
                },
            },
            salt: u64_at(48),
        };
        // What this version would not have written: an unknown flag, a number where there is none.
        if header.first_sequence == 0 || header.render() != *bytes {
            let what = "has a header that contradicts itself";
            return Err(Flaw::Wrong(Problem::Segment { what }));
        }
        Ok(header)
    }
}

impl Header {
    /// What stands where a header has the salt, whether the header is whole or not.
    pub(super) fn salt_in(bytes: &[u8]) -> Option<u64> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        Some(u64::from_le_bytes(std::array::from_fn(|i| header[48 + i])))
    }
}

/// A segment that holds anew the records of others, made one record at a time.
pub(in crate::store) struct Takeover {
    salt: u64,
    next_sequence: u64,
}

impl Takeover {
    /// Starts segment `number`, and appends its header to `out`. `first_sequence` is one more than the last that
    /// the columns hold.
    pub(in crate::store) fn start(
        number: u64,
        first_sequence: u64,
        salt: u64,
        out: &mut Vec<u8>,
    ) -> Takeover {
        let header = Header {
            number,
            first_sequence,
            origin: Origin::Takeover,
            salt,
        };
        out.extend(header.render());
        Takeover {
            salt,
            next_sequence: first_sequence,
        }
    }

    /// Appends a record to `out`, as one of this segment: nothing of it is durable yet.
    ///
    /// # Panics
    /// If it is not the next record.
    pub(in crate::store) fn push(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        assert_eq!(record.sequence, self.next_sequence, "a record was left out");
        self.next_sequence += 1;
        let start = out.len();
        out.extend_from_slice(record.bytes);
        let place = Place {
            salt: self.salt,
            sequence: record.sequence,
            durable: 0,
        };
        record::seal(&mut out[start..], &place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_read_back_and_no_others() {
        for number in [1, 9, 10, u64::MAX] {
            assert_eq!(number_in(&file_name(number)), Some(number));
        }
        for other in [
            "journal.0",
            "journal.01",
            "journal.+1",
            "journal.-1",
            "journal. 1",
            "journal.1 ",
            "journal.1.tmp",
            "journal.",
            "journal",
            "Journal.1",
            "journal.18446744073709551616",
            "",
        ] {
            assert_eq!(number_in(other), None, "{other}");
        }
    }

    fn examples() -> [Header; 2] {
        let header = |origin| Header {
            number: 7,
            first_sequence: 12,
            origin,
            salt: 99,
        };
        let previous_bytes = 4711;
        [
            header(Origin::Takeover),
            header(Origin::Continues { previous_bytes }),
        ]
    }

    #[test]
    fn headers_come_back_and_are_laid_out_as_described() {
        for header in examples() {
            assert_eq!(Header::parse(&header.render(), 7), Ok(header));
        }
        let bytes = examples()[1].render();
        assert_eq!(bytes[..24], *b"memorank journal\x01\0\0\0\0\0\0\0");
        let numbers = bytes[24..56].chunks_exact(8);
        let numbers: Vec<u64> = numbers
            .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
            .collect();
        assert_eq!(numbers, [7, 12, 4711, 99]);
        assert_eq!(examples()[0].render()[20..24], [1, 0, 0, 0]);
    }

    #[test]
    fn no_cut_or_flipped_header_is_taken() {
        for header in examples() {
            let bytes = header.render();
            for cut in 0..bytes.len() {
                let parsed = Header::parse(&bytes[..cut], 7);
                assert!(matches!(parsed, Err(Flaw::Broken(_))), "cut to {cut}");
            }
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes;
                bytes[bit / 8] ^= 1 << (bit % 8);
                let parsed = Header::parse(&bytes, 7);
                assert!(matches!(parsed, Err(Flaw::Broken(_))), "bit {bit}");
            }
        }
    }

    #[test]
    fn headers_with_a_right_sum_and_wrong_contents_are_told_apart() {
        let parsed = |number: u64, change: fn(&mut [u8; HEADER_BYTES])| {
            let mut bytes = examples()[0].render();
            change(&mut bytes);
            let sum = xxh3_64(&bytes[..SUMMED_BYTES]);
            bytes[SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
            Header::parse(&bytes, number)
        };
        let newer = Problem::NewerSegment { found: 2 };
        assert_eq!(parsed(7, |b| b[16] = 2), Err(Flaw::Wrong(newer)));
        let (number, found) = (8, 7);
        let copied = Problem::SegmentNumber { number, found };
        assert_eq!(parsed(8, |_| ()), Err(Flaw::Wrong(copied)));
        let contradictions: [fn(&mut [u8; HEADER_BYTES]); 4] = [
            |b| b[16] = 0,  // no version
            |b| b[20] = 3,  // an unknown flag
            |b| b[32] = 0,  // no first sequence
            |b| b[40] = 64, // a takeover that continues
        ];
        for change in contradictions {
            let what = "has a header that contradicts itself";
            let expected = Err(Flaw::Wrong(Problem::Segment { what }));
            assert_eq!(parsed(7, change), expected);
        }
    }
}
