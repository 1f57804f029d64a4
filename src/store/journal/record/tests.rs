use super::super::decode::{Undecodable, decode};
use super::*;
use crate::store::evidence;
use crate::store::memory::{Kind, Reference};
use proptest::collection::vec;
use proptest::prelude::*;

const EMBEDDING_BYTES: usize = 6;

const PLACE: Place = Place {
    salt: 5,
    sequence: 17,
    durable: 4711,
};

fn encoded(body: &Body<'_>) -> Vec<u8> {
    let mut record = Vec::new();
    encode(body, &mut record).unwrap();
    seal(&mut record, &PLACE);
    record
}

/// What a record is read as, once its sum was found right.
fn decoded(record: &[u8]) -> Result<Record<'_>, Undecodable> {
    let head = Head::read(record).unwrap();
    assert_eq!(head.record(record), Ok(record));
    assert!(head.sums(record, PLACE.salt));
    decode(&head, record, EMBEDDING_BYTES)
}

/// What a body of these bytes is read as.
fn decoded_body(body: &[u8]) -> Result<(), Undecodable> {
    let mut record = vec![0; HEAD_BYTES];
    record[..4].copy_from_slice(&MARKER);
    record[4..8].copy_from_slice(&(body.len() as u32).to_le_bytes());
    record.extend(body);
    seal(&mut record, &PLACE);
    decoded(&record).map(|_| ())
}

/// A row that owns its parts.
#[derive(Clone, Debug)]
struct Owned {
    texts: [String; 3],
    times: (i64, i64, Option<i64>),
    importance: f32,
    depth: u32,
    supersedes: Option<u64>,
    vector: Option<(f32, [u8; EMBEDDING_BYTES])>,
    payload: Vec<u8>,
    evidence: Vec<u8>,
}

impl Owned {
    fn row(&self) -> Row<'_> {
        let [key, kind, text] = &self.texts;
        let vector = self.vector.as_ref();
        Row {
            key: (!key.is_empty()).then_some(key),
            kind,
            text,
            vector: vector.map(|(inv_norm, elements)| Vector {
                inv_norm: *inv_norm,
                elements,
            }),
            created: self.times.0,
            last_access: self.times.1,
            expiry: self.times.2.filter(|&expiry| expiry != NO_EXPIRY),
            importance: self.importance,
            evidence: &self.evidence,
            depth: self.depth,
            supersedes: self.supersedes.filter(|&id| id != SUPERSEDES_NOTHING),
            payload: &self.payload,
        }
    }
}

fn owned() -> impl Strategy<Value = Owned> {
    let finite = any::<f32>().prop_filter("finite", |x| x.is_finite());
    let reference = prop_oneof![
        any::<u64>().prop_map(Reference::Id),
        any::<String>().prop_map(Reference::Missing),
    ];
    let texts = (any::<String>(), "\\PC{1,9}", any::<String>());
    let vector = (f32::MIN_POSITIVE..f32::MAX, any::<[u8; EMBEDDING_BYTES]>());
    let bytes = (vec(any::<u8>(), 0..50), vec(reference, 0..4));
    (
        texts,
        any::<(i64, i64, Option<i64>)>(),
        finite,
        any::<(u32, Option<u64>)>(),
        proptest::option::of(vector),
        bytes,
    )
        .prop_map(
            |(texts, times, importance, (depth, supersedes), vector, bytes)| {
                let mut evidence = Vec::new();
                evidence::encode(&bytes.1, &mut evidence);
                Owned {
                    texts: texts.into(),
                    times,
                    importance: importance + 0.0,
                    depth,
                    supersedes,
                    vector,
                    payload: bytes.0,
                    evidence,
                }
            },
        )
}

fn comes_back(body: Body<'_>) -> Result<(), TestCaseError> {
    let record = encoded(&body);
    let expected = Record {
        sequence: PLACE.sequence,
        durable: PLACE.durable,
        body,
        bytes: &record,
    };
    prop_assert_eq!(decoded(&record), Ok(expected));
    Ok(())
}

proptest! {
    #[test]
    fn appends_come_back(rows in vec(owned(), 0..4), first_id in 0..u64::MAX - 4) {
        let rows = rows.iter().map(Owned::row).collect();
        comes_back(Body::Append { first_id, rows })?;
    }

    #[test]
    fn touches_and_deletes_come_back(
        agent: u32,
        now: i64,
        touched in vec(any::<(u64, i64)>(), 0..9),
        seen in (0..PLACE.sequence, any::<u64>()),
        later in proptest::option::of(1..PLACE.sequence),
        note in vec(any::<u8>(), 0..9),
    ) {
        let (ids, before): (Vec<u64>, Vec<i64>) = touched.iter().copied().unzip();
        let read = Ids::new(&ids);
        prop_assert_eq!(read.len(), ids.len());
        prop_assert!(read.iter().eq(ids.iter().copied()));
        let touch = Touch {
            agent,
            now,
            seen: Seen {
                sequence: seen.0,
                next_id: seen.1,
                touch: later.filter(|&later| later > seen.0),
            },
            ids: read,
            before: Numbers::new(&before),
            note: &note,
        };
        let altered = touched.into_iter().filter(|&(_, before)| before < now);
        prop_assert!(touch.altered().eq(altered));
        comes_back(Body::Touch(touch))?;
        comes_back(Body::Delete { ids: read })?;
    }

    #[test]
    fn embeds_and_importances_come_back(
        agent: u32,
        ids in vec((any::<u64>(), proptest::option::of(-9.0..9.0_f32)), 0..9),
        vectors in vec((any::<u64>(), f32::MIN_POSITIVE..f32::MAX, any::<[u8; EMBEDDING_BYTES]>()), 0..5),
        importance in proptest::option::of(-9.0..9.0_f32),
    ) {
        let importance = importance.map(|value| value + 0.0);
        let (ids, before): (Vec<u64>, Vec<_>) = ids.into_iter().unzip();
        let before: Vec<f32> = (before.into_iter())
            .map(|before| before.map_or(f32::NAN, |value| value + 0.0))
            .collect();
        comes_back(Body::Importance {
            agent,
            importance,
            ids: Ids::new(&ids),
            before: Numbers::new(&before),
        })?;
        let vectors = vectors.iter().map(|(id, inv_norm, elements)| {
            (*id, Vector { inv_norm: *inv_norm, elements })
        });
        comes_back(Body::Embed { vectors: vectors.collect() })?;
    }

    #[test]
    fn no_body_panics(kind in 0_u8..7, mut body in vec(any::<u8>(), 0..200)) {
        body.insert(0, kind);
        let _ = decoded_body(&body);
    }

    #[test]
    fn no_changed_body_panics(
        row in owned(),
        at in any::<prop::sample::Index>(),
        to: u8,
        cut in any::<prop::sample::Index>(),
    ) {
        let (first_id, rows) = (3, vec![row.row()]);
        let record = encoded(&Body::Append { first_id, rows });
        let body = &record[HEAD_BYTES..];
        prop_assert!(decoded_body(&body[..cut.index(body.len())]).is_err());
        let mut body = body.to_vec();
        body.push(0);
        prop_assert!(decoded_body(&body).is_err());
        body.pop();
        let at = at.index(body.len());
        body[at] = to;
        let _ = decoded_body(&body);
    }
}

#[test]
fn records_are_laid_out_as_described() {
    let agent = 1;
    let record = encoded(&Body::Touch(Touch {
        agent,
        now: -2,
        seen: Seen {
            sequence: 12,
            next_id: 10,
            touch: Some(14),
        },
        ids: Ids::new(&[3, 0x0102030405060708]),
        before: Numbers::new(&[-3, NOT_TOUCHED]),
        note: b"why",
    }));
    let sum =
        xxhash_rust::xxh3::xxh3_64_with_seed(&[&record[..24], &record[32..]].concat(), PLACE.salt);
    let expected = [
        &b"MRJ1"[..],
        &[80, 0, 0, 0],
        &[17, 0, 0, 0, 0, 0, 0, 0],
        &[0x67, 0x12, 0, 0, 0, 0, 0, 0],
        &sum.to_le_bytes(),
        &[2, 1, 0, 0, 0],
        &[0xfe, 255, 255, 255, 255, 255, 255, 255],
        &[12, 0, 0, 0, 0, 0, 0, 0],
        &[10, 0, 0, 0, 0, 0, 0, 0],
        &[14, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1],
        &[0xfd, 255, 255, 255, 255, 255, 255, 255],
        &[255, 255, 255, 255, 255, 255, 255, 127],
        b"\x03\0\0\0why",
    ];
    assert_eq!(record, expected.concat());
    assert_eq!(record[..4], 0x314a_524d_u32.to_le_bytes());

    let delete = encoded(&Body::Delete {
        ids: Ids::new(&[9]),
    });
    let expected = [3, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(delete[HEAD_BYTES..], expected);

    let vector = Vector {
        inv_norm: 0.5,
        elements: b"vector",
    };
    let embed = encoded(&Body::Embed {
        vectors: vec![(9, vector)],
    });
    let expected = [
        &[4, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0][..],
        &[0, 0, 0, 0x3f],
        b"vector",
    ];
    assert_eq!(embed[HEAD_BYTES..], expected.concat());

    let importance = |importance, before| {
        encoded(&Body::Importance {
            agent,
            importance,
            ids: Ids::new(&[9]),
            before: Numbers::new(&[before]),
        })
    };
    let id = [1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let expected = [
        &[5, 1, 0, 0, 0, 1, 0, 0, 0x40, 0x40][..],
        &id,
        &[0, 0, 0xc0, 0x7f],
    ];
    assert_eq!(
        importance(Some(3.0), f32::NAN)[HEAD_BYTES..],
        expected.concat()
    );
    let expected = [&[5, 1, 0, 0, 0, 0][..], &id, &[0, 0, 0x40, 0x40]];
    assert_eq!(importance(None, 3.0)[HEAD_BYTES..], expected.concat());

    let append = encoded(&an_append());
    let expected = [
        &[1, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0][..],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 0, 0, 0, 0],
        &[255, 255, 255, 255, 255, 255, 255, 127],
        &[0, 0, 0x40, 0x40],
        &[4, 0, 0, 0],
        &[6, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0x3f, 1],
        b"\x04\0\0\0chat",
        b"\x03\0\0\0key",
        b"\x04\0\0\0text",
        b"\x02\0\0\0\xff\xfe",
        b"\x09\0\0\0\0\x05\0\0\0\0\0\0\0",
        b"vector",
    ];
    assert_eq!(append[HEAD_BYTES..], expected.concat());
}

static MEMORY: NewMemory<'static> = NewMemory {
    key: Some("key"),
    kind: Kind::CHAT,
    text: "text",
    embedding: None,
    created: 1,
    last_access: 2,
    expiry: None,
    importance: 3.0,
    evidence: &[],
    depth: 4,
    supersedes: Some(6),
    payload: b"\xff\xfe",
};

fn an_append() -> Body<'static> {
    let vector = Vector {
        inv_norm: 0.5,
        elements: b"vector",
    };
    let evidence = b"\0\x05\0\0\0\0\0\0\0";
    Body::Append {
        first_id: 7,
        rows: vec![Row::new(&MEMORY, Some(vector), evidence)],
    }
}

// B48: a text before it moves a vector, and a record before it the whole record, to any address.
#[test]
fn records_are_read_at_any_address() {
    let vector = Vector {
        inv_norm: 0.5,
        elements: b"vector",
    };
    for len in 0..9 {
        let texts = "x".repeat(len);
        let memory = NewMemory {
            text: &texts,
            ..MEMORY.clone()
        };
        let rows = vec![Row::new(&memory, Some(vector), &[]); 2];
        let ids = [1, 2, 3];
        for body in [
            Body::Append { first_id: 7, rows },
            Body::Delete {
                ids: Ids::new(&ids),
            },
        ] {
            let record = encoded(&body);
            for offset in 0..8 {
                let bytes = [&b"before.."[..offset], &record].concat();
                let read = decoded(&bytes[offset..]).unwrap();
                assert_eq!(read.body, body);
                if let Body::Delete { ids: read } = read.body {
                    assert!(read.iter().eq(ids));
                }
            }
        }
    }
}

#[test]
fn minus_zero_is_not_written() {
    let memory = NewMemory {
        importance: -0.0,
        ..MEMORY.clone()
    };
    assert_eq!(Row::new(&memory, None, &[]).importance.to_bits(), 0);
}

// Where the parts of the body of `an_append` stand.
const IMPORTANCE: usize = 13 + 24;
const INV_NORM: usize = IMPORTANCE + 16;
const KIND: usize = INV_NORM + 5;
const EVIDENCE: usize = KIND + 8 + 7 + 8 + 6;

#[test]
fn what_a_column_may_not_hold_is_refused_with_its_place() {
    let record = encoded(&an_append());
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut body = record[HEAD_BYTES..].to_vec();
        change(&mut body);
        let flaw = decoded_body(&body).unwrap_err();
        (flaw.at - HEAD_BYTES, flaw.what)
    };
    let importance = "an importance in it is not finite, or -0";
    let inv_norm = "an inverse norm in it is not finite, or negative";
    let vector = "an embedding in it contradicts its inverse norm";
    let text = "a text in it is not UTF-8";
    let evidence = "evidence in it cannot be decoded";
    let set = |at: usize, value: f32| {
        refused(&|body| body[at..at + 4].copy_from_slice(&value.to_le_bytes()))
    };
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0] {
        assert_eq!(set(IMPORTANCE, value), (IMPORTANCE, importance), "{value}");
    }
    for value in [f32::NAN, -f32::NAN, f32::INFINITY, -1.0, -0.0] {
        assert_eq!(set(INV_NORM, value), (INV_NORM, inv_norm), "{value}");
    }
    assert_eq!(set(INV_NORM, 0.0), (INV_NORM + 4, vector));
    for flag in [0, 2, 255] {
        let found = refused(&|body| body[INV_NORM + 4] = flag);
        assert_eq!(found, (INV_NORM + 4, vector));
    }
    let nameless = refused(&|body| {
        body.drain(KIND + 4..KIND + 8);
        body[KIND] = 0;
    });
    assert_eq!(nameless, (KIND, "a kind in it has no name"));
    for at in [KIND + 5, KIND + 13, KIND + 21] {
        assert_eq!(refused(&|body| body[at] = 0xff), (at, text));
    }
    let at = EVIDENCE + 4;
    assert_eq!(refused(&|body| body[at] = 7), (at, evidence));
    assert_eq!(
        refused(&|body| body[0] = 0),
        (0, "it is of an unknown kind")
    );
    let ids = "its ids are more than there are";
    assert_eq!(refused(&|body| body[1..9].fill(255)), (1, ids));
    let end = record.len() - HEAD_BYTES;
    assert_eq!(refused(&|b| b.push(0)), (end, "something follows it"));
}

#[test]
fn an_importance_or_a_vector_that_no_column_may_hold_is_refused_with_its_place() {
    let ids = Ids::new(&[9]);
    let vector = Vector {
        inv_norm: 0.5,
        elements: b"vector",
    };
    let importance = Body::Importance {
        agent: 0,
        importance: Some(1.0),
        ids,
        before: Numbers::new(&[2.0]),
    };
    let embed = Body::Embed {
        vectors: vec![(9, vector)],
    };
    let set = |body: &Body<'_>, at: usize, value: &[u8]| {
        let mut bytes = encoded(body)[HEAD_BYTES..].to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        let flaw = decoded_body(&bytes).unwrap_err();
        (flaw.at - HEAD_BYTES, flaw.what)
    };
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0] {
        let found = set(&importance, 6, &value.to_le_bytes());
        assert_eq!(found, (6, "an importance in it is not finite, or -0"));
    }
    let infinite = [f32::INFINITY, f32::NEG_INFINITY, -0.0, -f32::NAN];
    for value in infinite.into_iter().chain([f32::from_bits(0x7fc0_0001)]) {
        let found = set(&importance, 22, &value.to_le_bytes());
        let what = "an importance in it is neither finite nor none, or -0";
        assert_eq!(found, (22, what), "{value}");
    }
    for flag in [2, 255] {
        let found = set(&importance, 5, &[flag]);
        assert_eq!(found, (5, "neither an importance nor none is in it"));
    }
    for value in [f32::NAN, f32::INFINITY, -1.0, 0.0, -0.0] {
        let found = set(&embed, 13, &value.to_le_bytes());
        let what = "an inverse norm in it is not finite and above 0";
        assert_eq!(found, (13, what), "{value}");
    }
}

#[test]
fn a_touch_that_saw_what_came_after_it_is_refused_with_its_place() {
    let body = Body::Touch(A_TOUCH);
    let flaw = |sequence: u64, touch: u64| {
        let mut bytes = encoded(&body)[HEAD_BYTES..].to_vec();
        bytes[13..21].copy_from_slice(&sequence.to_le_bytes());
        bytes[29..37].copy_from_slice(&touch.to_le_bytes());
        decoded_body(&bytes).map_err(|flaw| (flaw.at - HEAD_BYTES, flaw.what))
    };
    let what = "it saw what came after it";
    for sequence in [0, 1, PLACE.sequence - 1] {
        assert_eq!(flaw(sequence, 0), Ok(()));
    }
    for sequence in [PLACE.sequence, u64::MAX] {
        assert_eq!(flaw(sequence, 0), Err((13, what)));
    }
    for touch in [4, PLACE.sequence - 1] {
        assert_eq!(flaw(3, touch), Ok(()));
    }
    for touch in [1, 3, PLACE.sequence, u64::MAX] {
        assert_eq!(flaw(3, touch), Err((29, what)));
    }
}

const A_TOUCH: Touch<'static> = Touch {
    agent: 0,
    now: 0,
    seen: Seen {
        sequence: 0,
        next_id: 0,
        touch: None,
    },
    ids: Ids::of(&[0; 16]),
    before: Numbers::of(&[0; 16]),
    note: b"why",
};

#[test]
fn hostile_counts_and_lengths_are_refused_without_allocating() {
    let short = "it is shorter than it says";
    let huge = u32::MAX.to_le_bytes();
    let append = encoded(&an_append());
    let spans = [KIND, KIND + 8, KIND + 15, KIND + 23, EVIDENCE];
    // The count, and the length of each span.
    for at in [9].into_iter().chain(spans) {
        let mut body = append[HEAD_BYTES..].to_vec();
        body[at..at + 4].copy_from_slice(&huge);
        let flaw = decoded_body(&body).unwrap_err();
        assert_eq!(flaw.what, short, "at {at}");
    }
    let ids = Ids::new(&[1, 2]);
    let vector = Vector {
        inv_norm: 0.5,
        elements: b"vector",
    };
    let bodies = [
        Body::Touch(A_TOUCH),
        Body::Delete { ids },
        Body::Importance {
            agent: 0,
            importance: Some(1.0),
            ids,
            before: Numbers::new(&[1.0, 2.0]),
        },
        Body::Embed {
            vectors: vec![(1, vector), (2, vector)],
        },
    ];
    for (body, at) in bodies.iter().zip([37, 1, 10, 1]) {
        for count in [3, u32::MAX, 1 << 29, 1 << 31] {
            let mut body = encoded(body)[HEAD_BYTES..].to_vec();
            body[at..at + 4].copy_from_slice(&u32::to_le_bytes(count));
            assert_eq!(decoded_body(&body).unwrap_err().what, short);
        }
        // Fewer than there are: what follows is something else, or too much.
        let mut body = encoded(body)[HEAD_BYTES..].to_vec();
        body[at] = 1;
        assert!(decoded_body(&body).is_err());
    }
    let mut note = encoded(&Body::Touch(A_TOUCH))[HEAD_BYTES..].to_vec();
    let length = note.len() - 7;
    for (bytes, what) in [(4, short), (u32::MAX, short), (2, "something follows it")] {
        note[length..length + 4].copy_from_slice(&u32::to_le_bytes(bytes));
        assert_eq!(decoded_body(&note).unwrap_err().what, what);
    }
    // An embedding of another length than the store's.
    let mut record = append.clone();
    record.pop();
    assert_eq!(decoded_body(&record[HEAD_BYTES..]).unwrap_err().what, short);
    assert_eq!(decoded_body(&[]).unwrap_err().what, short);
    // A body beyond the end.
    let mut head = append;
    head[4..8].copy_from_slice(&huge);
    let read = Head::read(&head).unwrap();
    assert_eq!(read.record(&head), Err("ends inside its body"));
}

#[test]
fn another_segment_or_place_has_another_sum() {
    let record = encoded(&an_append());
    let head = Head::read(&record).unwrap();
    assert!(head.sums(&record, 5));
    assert!(!head.sums(&record, 6));
    for bit in 0..record.len() * 8 {
        let mut record = record.clone();
        record[bit / 8] ^= 1 << (bit % 8);
        let sound = Head::read(&record)
            .is_ok_and(|head| (head.record(&record)).is_ok_and(|whole| head.sums(whole, 5)));
        assert!(!sound, "bit {bit}");
    }
}
