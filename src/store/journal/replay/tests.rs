use super::super::record::{Body, Ids, Numbers, Place, Row, Seen, Touch, Vector, encode, seal};
use super::super::segment::file_name;
use super::*;

mod several;

const EMBEDDING_BYTES: usize = 4;
const HEADER: u64 = HEADER_BYTES as u64;

/// A segment that is being written.
struct Written {
    number: u64,
    next_sequence: u64,
    bytes: Vec<u8>,
    /// Where each record starts.
    starts: Vec<usize>,
    durables: Vec<u64>,
}

impl Written {
    fn new(number: u64, first_sequence: u64, origin: Origin) -> Written {
        let header = Header {
            number,
            first_sequence,
            origin,
            salt: number,
        };
        Written {
            number,
            next_sequence: first_sequence,
            bytes: header.render().to_vec(),
            starts: vec![],
            durables: vec![],
        }
    }

    fn push(&mut self, durable: u64, body: &Body<'_>) {
        let at = self.bytes.len();
        encode(body, &mut self.bytes).unwrap();
        let place = Place {
            salt: self.number,
            sequence: self.next_sequence,
            durable,
        };
        seal(&mut self.bytes[at..], &place);
        self.next_sequence = self.next_sequence.wrapping_add(1);
        self.starts.push(at);
        self.durables.push(durable);
    }

    fn touch(&mut self, durable: u64) {
        let ids = [self.next_sequence, 2];
        let touch = Touch {
            agent: 3,
            now: 4,
            seen: Seen {
                sequence: 0,
                next_id: 2,
                touch: None,
            },
            ids: Ids::new(&ids),
            before: Numbers::new(&[1, 5]),
            note: b"",
        };
        self.push(durable, &Body::Touch(touch));
    }

    fn append(&mut self, durable: u64, text: &str) {
        let vector = Vector {
            inv_norm: 0.5,
            elements: &[1, 2, 3, 4],
        };
        let row = Row {
            key: None,
            kind: "plan",
            text,
            vector: Some(vector),
            created: 1,
            last_access: 2,
            expiry: None,
            importance: 3.0,
            evidence: &[],
            depth: 0,
            supersedes: None,
            payload: &[],
        };
        let (first_id, rows) = (self.next_sequence, vec![row]);
        self.push(durable, &Body::Append { first_id, rows });
    }

    fn end(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn continued(&self) -> Written {
        let previous_bytes = self.end();
        let origin = Origin::Continues { previous_bytes };
        Written::new(self.number + 1, self.next_sequence, origin)
    }
}

/// Six records; some say that others before them were durable.
fn mixed() -> Written {
    let mut written = Written::new(3, 11, Origin::Takeover);
    written.touch(0);
    written.append(HEADER, "coffee");
    written.touch(HEADER);
    let third = written.starts[2] as u64;
    let ids = Ids::new(&[8]);
    written.push(third, &Body::Delete { ids });
    written.append(third, "tea");
    let fifth = written.starts[4] as u64;
    written.touch(fifth);
    written
}

/// A record that was read, as text.
type Read = (u64, String);

struct Recovered {
    records: Vec<Read>,
    dropped: Vec<Dropped>,
    last: u64,
    /// The number of the segment at which it ended.
    ended_at: u64,
}

/// As a store does it: `segments` have the numbers from `first` on.
fn recover(first: u64, segments: &[&[u8]], folded: u64) -> Result<Recovered, Damage> {
    let mut replay = Replay::new(EMBEDDING_BYTES, folded, HEADER);
    let (mut records, mut dropped) = (vec![], vec![]);
    let mut number = first;
    for (at, &bytes) in segments.iter().enumerate() {
        number = first + at as u64;
        let path = Path::new("store").join(file_name(number));
        let segment = Segment {
            path: &path,
            number,
            bytes,
        };
        let next = segments.get(at + 1).copied();
        let outcome = replay.read(&segment, next, |record| {
            records.push((record.sequence, format!("{:?}", record.body)));
            Ok(())
        })?;
        dropped.extend(outcome.dropped);
        if !outcome.more {
            break;
        }
    }
    Ok(Recovered {
        records,
        dropped,
        last: replay.last_sequence(),
        ended_at: number,
    })
}

fn sound(written: &Written) -> Vec<Read> {
    let folded = written.next_sequence - 1 - written.starts.len() as u64;
    let recovered = recover(written.number, &[&written.bytes], folded).unwrap();
    assert_eq!(recovered.dropped, []);
    assert_eq!(recovered.last, written.next_sequence - 1);
    recovered.records
}

/// `bytes`, which are `written` with something wrong in record `broken`, give the records before it, or
/// damage if a later one says that it was durable.
fn check_broken(written: &Written, bytes: &[u8], broken: usize, later_is_left: bool) {
    let start = written.starts[broken];
    let says = |durable: &u64| *durable > start as u64;
    let durable = later_is_left && written.durables[broken + 1..].iter().any(says);
    let all = sound(written);
    match recover(3, &[bytes], 10) {
        Err(damage) => {
            assert!(durable, "{damage}");
            assert_eq!(damage.offset, start as u64);
            assert_eq!(damage.path, Path::new("store/journal.3"));
            let problem = &damage.problem;
            assert!(matches!(problem, Problem::DurableRecord { .. }), "{damage}");
        }
        Ok(recovered) => {
            assert!(!durable, "record {broken} was durable");
            assert_eq!(recovered.records, all[..broken]);
            assert_eq!(recovered.last, 10 + broken as u64);
            let [dropped] = &recovered.dropped[..] else {
                panic!("nothing was reported");
            };
            assert_eq!(dropped.offset, start as u64);
            assert_eq!(dropped.bytes, (bytes.len() - start) as u64);
            assert_eq!(dropped.path, Path::new("store/journal.3"));
        }
    }
}

fn broken_header(segment: &[u8]) {
    let damage = recover(3, &[segment], 10).err().expect("it was taken");
    assert_eq!(damage.offset, 0);
    assert!(matches!(damage.problem, Problem::Segment { .. }));
}

#[test]
fn a_sound_segment_gives_its_records_in_order() {
    let written = mixed();
    let records = sound(&written);
    let sequences: Vec<u64> = records.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(sequences, [11, 12, 13, 14, 15, 16]);
    assert!(records[4].1.contains("tea"), "{records:?}");
    for folded in 10..=16 {
        let recovered = recover(3, &[&written.bytes], folded).unwrap();
        assert_eq!(recovered.records, records[(folded - 10) as usize..]);
        assert_eq!(recovered.last, 16);
    }
    // The columns hold less than where it starts: a segment is missing. Or more than where it ends.
    let gap = recover(3, &[&written.bytes], 9).err().unwrap();
    assert_eq!(
        gap.problem,
        Problem::SegmentStart {
            next: 10,
            found: 11
        }
    );
    let missing = recover(3, &[&written.bytes], 17).err().unwrap();
    assert_eq!(missing.offset, written.end());
    assert!(matches!(
        missing.problem,
        Problem::DurableRecord { sequence: 17, .. }
    ));
}

#[test]
fn every_cut_gives_the_whole_records_before_it() {
    let written = mixed();
    for cut in 0..written.bytes.len() {
        let bytes = &written.bytes[..cut];
        if cut < HEADER_BYTES {
            broken_header(bytes);
        } else if cut == HEADER_BYTES || written.starts.contains(&cut) {
            // Nothing tells that there was more.
            let whole = written.starts.iter().filter(|&&start| start < cut).count();
            let recovered = recover(3, &[bytes], 10).unwrap();
            assert_eq!(recovered.records, sound(&written)[..whole]);
            assert_eq!(recovered.dropped, []);
        } else {
            let broken = written.starts.partition_point(|&start| start < cut) - 1;
            check_broken(&written, bytes, broken, false);
        }
    }
}

#[test]
fn every_flipped_bit_drops_a_tail_or_is_damage() {
    let written = mixed();
    let mut damages = 0;
    for bit in 0..written.bytes.len() * 8 {
        let mut bytes = written.bytes.clone();
        let at = bit / 8;
        bytes[at] ^= 1 << (bit % 8);
        if at < HEADER_BYTES {
            broken_header(&bytes);
        } else {
            let broken = written.starts.partition_point(|&start| start <= at) - 1;
            check_broken(&written, &bytes, broken, true);
            damages += usize::from(recover(3, &[&bytes], 10).is_err());
        }
    }
    // Four records are below what the last says was durable, two are not.
    assert_eq!(damages, (written.starts[4] - HEADER_BYTES) * 8);
}

#[test]
fn what_the_columns_hold_was_durable() {
    let mut written = Written::new(3, 11, Origin::Takeover);
    (0..3).for_each(|_| written.touch(0));
    let at = written.starts[1];
    written.bytes[at + 40] ^= 1;
    for folded in 10..=13 {
        let recovered = recover(3, &[&written.bytes], folded);
        match folded {
            10 | 11 => assert_eq!(recovered.unwrap().last, 11),
            _ => assert_eq!(recovered.err().unwrap().offset, at as u64),
        }
    }
}

#[test]
fn torn_sectors_at_the_end_drop_the_records_they_were_of() {
    const SECTOR: usize = 512;
    let mut written = Written::new(3, 11, Origin::Takeover);
    written.append(0, &"a".repeat(700));
    let durable = written.end();
    for text in ["b", "c", "d"] {
        written.append(durable, &text.repeat(1200));
    }
    let durable = durable as usize;
    let (first, last) = (durable / SECTOR, (written.bytes.len() - 1) / SECTOR);
    for torn in 1_u32..1 << (last - first + 1) {
        let mut bytes = written.bytes.clone();
        let mut broken = usize::MAX;
        for sector in (first..=last).filter(|sector| torn >> (sector - first) & 1 == 1) {
            let from = (sector * SECTOR).max(durable);
            let to = bytes.len().min((sector + 1) * SECTOR);
            bytes[from..to].fill(0);
            broken = broken.min(written.starts.partition_point(|&start| start <= from) - 1);
        }
        check_broken(&written, &bytes, broken, true);
    }
    // Nothing of the tail but its length was written.
    let mut bytes = written.bytes.clone();
    bytes[durable..].fill(0);
    let recovered = recover(3, &[&bytes], 10).unwrap();
    let what = "is zeros";
    let sequence = 12;
    let expected = Problem::Record { sequence, what };
    assert_eq!(recovered.dropped[0].problem, expected);
}

#[test]
fn records_of_another_segment_or_place_are_not_taken() {
    let written = mixed();
    let records = sound(&written);
    // The same records, written to segment 4.
    let mut other = Written::new(4, 11, Origin::Takeover);
    (0..6).for_each(|_| other.touch(0));
    let mut bytes = written.bytes[..HEADER_BYTES].to_vec();
    bytes.extend(&other.bytes[HEADER_BYTES..]);
    let recovered = recover(3, &[&bytes], 10).unwrap();
    assert_eq!((recovered.records.len(), recovered.last), (0, 10));
    assert_eq!(recovered.dropped[0].offset, HEADER);
    // The whole file under another name.
    let copied = recover(4, &[&written.bytes], 10).err().unwrap();
    let (number, found) = (4, 3);
    assert_eq!(copied.problem, Problem::SegmentNumber { number, found });
    // Each record once more at the end, where another sequence number is due.
    for (at, &start) in written.starts.iter().enumerate() {
        let end = (written.starts.get(at + 1)).map_or(written.bytes.len(), |&next| next);
        let mut bytes = written.bytes.clone();
        bytes.extend(&written.bytes[start..end]);
        let recovered = recover(3, &[&bytes], 10).unwrap();
        assert_eq!(recovered.records, records);
        assert_eq!(recovered.dropped[0].offset, written.end());
        let (sequence, what) = (17, "has another sequence number");
        let problem = Problem::Record { sequence, what };
        assert_eq!(recovered.dropped[0].problem, problem);
    }
}

#[test]
fn after_a_broken_record_only_one_that_fits_is_believed() {
    // A broken record 12, then one with a right sum that says more was durable.
    let with = |sequence: u64, durable: u64| {
        let mut written = Written::new(3, 11, Origin::Takeover);
        written.touch(0);
        written.touch(0);
        let at = written.starts[1];
        written.bytes[at + 40] ^= 1;
        written.next_sequence = sequence;
        written.touch(durable);
        recover(3, &[&written.bytes], 10).map(|recovered| recovered.last)
    };
    let mut two = Written::new(3, 11, Origin::Takeover);
    (0..2).for_each(|_| two.touch(0));
    let (broken, own) = (two.starts[1] as u64, two.end());
    assert!(with(13, broken + 1).is_err());
    assert!(with(13, own).is_err());
    // It says nothing of the broken place.
    assert_eq!(with(13, broken), Ok(11));
    // It was written further on, or with other records before it.
    assert_eq!(with(13, own + 1), Ok(11));
    assert_eq!(with(11, own), Ok(11));
    assert_eq!(with(1000, own), Ok(11));
    assert_eq!(with(u64::MAX, own), Ok(11));
}

#[test]
fn a_memory_full_of_heads_is_searched_in_bounded_time() {
    let mut written = Written::new(3, 11, Origin::Takeover);
    written.touch(0);
    let broken = written.end();
    written.bytes.extend([0xff; HEAD_BYTES]);
    let end = written.bytes.len() + (1 << 20);
    // Each would fit if its sum were right, and reaches to the end.
    while written.bytes.len() < end {
        let body_bytes = (end - written.bytes.len() - HEAD_BYTES) as u32;
        written.bytes.extend(MARKER);
        written.bytes.extend(body_bytes.to_le_bytes());
        written.bytes.extend(12_u64.to_le_bytes());
        written.bytes.extend((broken + 1).to_le_bytes());
        written.bytes.extend([0; 8]);
    }
    let damage = recover(3, &[&written.bytes], 10).err().unwrap();
    assert_eq!(damage.offset, broken);
    let text = damage.to_string();
    assert!(text.contains("looks like records"), "{text}");
}

#[test]
fn a_record_that_says_what_cannot_be_is_damage_though_it_is_the_last() {
    let mut written = mixed();
    let end = written.end();
    written.touch(end + 1);
    let damage = recover(3, &[&written.bytes], 10).err().unwrap();
    assert_eq!(damage.offset, end);
    assert!(matches!(
        damage.problem,
        Problem::RecordBody { sequence: 17, .. }
    ));

    let mut written = mixed();
    written.append(0, "text");
    let at = end as usize + HEAD_BYTES;
    written.bytes[at] = 9;
    let place = Place {
        salt: 3,
        sequence: 17,
        durable: 0,
    };
    seal(&mut written.bytes[end as usize..], &place);
    // Also where the columns hold it already.
    for folded in [10, 17] {
        let damage = recover(3, &[&written.bytes], folded).err().unwrap();
        assert_eq!(damage.offset, at as u64);
        assert!(matches!(
            damage.problem,
            Problem::RecordBody { sequence: 17, .. }
        ));
    }
}

#[test]
fn what_the_store_says_of_a_record_is_damage_at_the_record() {
    let written = mixed();
    let segment = Segment {
        path: Path::new("journal.3"),
        number: 3,
        bytes: &written.bytes,
    };
    let problem = Problem::RecordBody {
        sequence: 14,
        what: "it deletes a memory that never was",
    };
    let mut replay = Replay::new(EMBEDDING_BYTES, 10, HEADER);
    let read = replay.read(&segment, None, |record| match record.body {
        Body::Delete { .. } => Err(problem.clone()),
        _ => Ok(()),
    });
    let offset = written.starts[3] as u64;
    let path = "journal.3".into();
    let damage = Damage {
        path,
        offset,
        problem,
    };
    assert_eq!(read, Err(damage));
}

#[test]
fn the_last_sequence_number_is_not_used() {
    let mut written = Written::new(3, u64::MAX - 1, Origin::Takeover);
    written.touch(0);
    let folded = u64::MAX - 2;
    let recovered = recover(3, &[&written.bytes], folded).unwrap();
    assert_eq!(recovered.last, u64::MAX - 1);
    let end = written.end();
    written.touch(0);
    for folded in [folded, u64::MAX] {
        let damage = recover(3, &[&written.bytes], folded).err().unwrap();
        assert_eq!(damage.offset, end);
        let sequence = u64::MAX;
        let what = "none can follow it";
        assert_eq!(damage.problem, Problem::RecordBody { sequence, what });
    }
    let empty = Written::new(3, u64::MAX, Origin::Takeover);
    let recovered = recover(3, &[&empty.bytes], u64::MAX - 1).unwrap();
    assert_eq!(recovered.last, u64::MAX - 1);
    assert!(recover(3, &[&empty.bytes], u64::MAX).is_err());
}
