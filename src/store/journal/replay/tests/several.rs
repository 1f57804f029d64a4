//! Segments that follow one another.

use super::*;
use crate::store::journal::segment::Takeover;

#[test]
fn every_cut_or_flip_below_what_the_next_segment_continues_is_damage() {
    let written = mixed();
    let mut next = written.continued();
    next.touch(0);
    let all = recover(3, &[&written.bytes, &next.bytes], 10).unwrap();
    assert_eq!((all.records.len(), all.last), (7, 17));
    let damaged = |bytes: &[u8], at: usize| {
        let damage = recover(3, &[bytes, &next.bytes], 10).err().unwrap();
        let start = written.starts.iter().rfind(|&&start| start <= at);
        assert_eq!(damage.offset, start.map_or(0, |&start| start as u64));
        assert_eq!(damage.path, Path::new("store/journal.3"));
    };
    for cut in 0..written.bytes.len() {
        // At the end of a record it is the one after it that is missing.
        let missing = if cut < HEADER_BYTES { 0 } else { cut };
        damaged(&written.bytes[..cut], missing);
    }
    for bit in 0..written.bytes.len() * 8 {
        let mut bytes = written.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        damaged(&bytes, bit / 8);
    }
}

#[test]
fn a_segment_made_before_a_crash_is_dropped_if_nothing_was_in_it() {
    let written = mixed();
    let next = written.continued();
    for len in 0..=HEADER_BYTES {
        let mut bytes = next.bytes[..len].to_vec();
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        let recovered = recover(3, &[&written.bytes, &bytes], 10).unwrap();
        assert_eq!((recovered.last, recovered.ended_at), (16, 4));
        let [dropped] = &recovered.dropped[..] else {
            panic!("nothing was reported");
        };
        assert_eq!(dropped.path, Path::new("store/journal.4"));
        assert_eq!((dropped.offset, dropped.bytes), (0, len as u64));
        // A takeover after it that no manifest names changes nothing.
        let takeover = Written::new(5, 11, Origin::Takeover);
        let segments: [&[u8]; 3] = [&written.bytes, &bytes, &takeover.bytes];
        assert_eq!(recover(3, &segments, 10).unwrap().last, 16);
        // But a segment that continues it does: it had a header then.
        let mut after = next.continued();
        after.touch(0);
        let segments: [&[u8]; 3] = [&written.bytes, &bytes, &after.bytes];
        let damage = recover(3, &segments, 10).err().unwrap();
        assert_eq!(damage.path, Path::new("store/journal.4"));
    }
    // With a byte after it the header was durable.
    let mut bytes = next.bytes.clone();
    bytes[30] ^= 1;
    bytes.push(0);
    let damage = recover(3, &[&written.bytes, &bytes], 10).err().unwrap();
    assert_eq!(damage.path, Path::new("store/journal.4"));
    assert!(matches!(damage.problem, Problem::Segment { .. }));
}

#[test]
fn a_next_segment_must_continue_where_this_one_ends() {
    let written = mixed();
    let end = written.end();
    let read = |first_sequence: u64, previous_bytes: u64| {
        let origin = Origin::Continues { previous_bytes };
        let mut next = Written::new(4, first_sequence, origin);
        next.touch(0);
        recover(3, &[&written.bytes, &next.bytes], 10)
            .map(|recovered| recovered.last)
            .map_err(|damage| (damage.path, damage.problem))
    };
    assert_eq!(read(17, end), Ok(17));
    let four = PathBuf::from("store/journal.4");
    for found in [1, 16, 18, u64::MAX] {
        let start = Problem::SegmentStart { next: 17, found };
        assert_eq!(read(found, end), Err((four.clone(), start)));
    }
    for found in [0, HEADER, end - 1] {
        let before = Problem::SegmentBefore { bytes: end, found };
        assert_eq!(read(17, found), Err((four.clone(), before)));
    }
    let (path, problem) = read(17, end + 1).unwrap_err();
    assert_eq!(path, Path::new("store/journal.3"));
    assert!(matches!(problem, Problem::DurableRecord { .. }));
}

#[test]
fn a_tail_after_what_the_next_segment_continues_is_dropped() {
    let mut written = mixed();
    let mut next = written.continued();
    next.touch(0);
    written.bytes.extend(b"MRJ1 and so on");
    let recovered = recover(3, &[&written.bytes, &next.bytes], 10).unwrap();
    assert_eq!((recovered.records.len(), recovered.last), (7, 17));
    assert_eq!(recovered.dropped.len(), 1);
    assert_eq!(recovered.dropped[0].bytes, 14);
}

#[test]
fn a_takeover_holds_anew_what_the_columns_do_not() {
    let written = mixed();
    let mut next = written.continued();
    next.append(0, "milk");
    next.touch(0);
    let segments: [&[u8]; 2] = [&written.bytes, &next.bytes];
    for folded in 10..=18 {
        let all = recover(3, &segments, folded).unwrap();
        let mut bytes = Vec::new();
        let mut takeover = Takeover::start(9, folded + 1, 9, &mut bytes);
        let mut replay = Replay::new(EMBEDDING_BYTES, folded, HEADER);
        for (number, bytes_of) in (3..).zip(segments) {
            let path = Path::new("journal");
            let segment = Segment {
                path,
                number,
                bytes: bytes_of,
            };
            let after = (number == 3).then_some(segments[1]);
            let push = |record: Record<'_>| {
                takeover.push(&record, &mut bytes);
                Ok(())
            };
            replay.read(&segment, after, push).unwrap();
        }
        let again = recover(9, &[&bytes], folded).unwrap();
        assert_eq!(again.records, all.records);
        assert_eq!(again.dropped, []);
        assert_eq!(again.last, all.last);
        // Found after another segment it was never named, and is no part of the journal.
        let mut unnamed = Vec::new();
        Takeover::start(5, folded + 1, 5, &mut unnamed);
        let segments: [&[u8]; 3] = [segments[0], segments[1], &unnamed];
        let recovered = recover(3, &segments, folded).unwrap();
        assert_eq!(recovered.records, all.records);
        assert_eq!((recovered.dropped, recovered.last), (vec![], 18));
    }
}
