use super::*;
use crate::kernel::f16;

const CHUNK: usize = 4;
const DIM: usize = 3;

fn tail(dtype: Dtype) -> Tail {
    let dim = NonZeroUsize::new(DIM).unwrap();
    Tail::new(dim, dtype, CHUNK)
}

/// A row whose fields all follow from its id; every third has a key.
struct Example {
    elements: Vec<u8>,
    key: String,
    text: String,
    evidence: Vec<u8>,
}

impl Example {
    fn new(id: u64, dtype: Dtype) -> Example {
        let values = (0..DIM).map(|j| (id * 10 + j as u64) as f32);
        let mut evidence = Vec::new();
        super::super::evidence::encode(&[super::super::Reference::Id(id)], &mut evidence);
        Example {
            elements: match dtype {
                Dtype::F32 => values.flat_map(f32::to_le_bytes).collect(),
                Dtype::F16 => values
                    .flat_map(|x| f16::from_f32(x).to_le_bytes())
                    .collect(),
            },
            key: format!("key {id}"),
            text: "ä".repeat(id as usize % 5),
            evidence,
        }
    }

    fn row(&self, id: u64) -> StoredRow<'_> {
        StoredRow {
            elements: &self.elements,
            inv_norm: 1.0 / id as f32,
            id,
            created: id as i64 * 100,
            last_access: id as i64 * 101,
            expiry: id as i64 * 102,
            importance: id as f32 / 2.0,
            kind: id as u16 % 7,
            depth: id as u32 % 3,
            key: id.is_multiple_of(3).then_some(&self.key),
            text: &self.text,
            payload: &self.text.as_bytes()[..self.text.len() / 2],
            evidence: &self.evidence,
        }
    }
}

fn push(tail: &mut Tail, dtype: Dtype, ids: Range<u64>) {
    for id in ids {
        tail.push(&Example::new(id, dtype).row(id));
        if tail.is_joinable() {
            tail.join();
        }
        assert!(!tail.is_joinable());
    }
}

/// The tail holds these rows and no others.
fn assert_holds(tail: &Tail, dtype: Dtype, ids: Range<u64>) {
    assert_eq!(tail.rows() as u64, ids.end - ids.start);
    for (row, id) in ids.clone().enumerate() {
        let example = Example::new(id, dtype);
        let (chunk, at) = tail.place(row);
        assert_eq!(chunk.row(tail.dim, at), example.row(id));
        assert_eq!(tail.row_of_id(id), Some(row));
        let key = &example.key;
        let found = tail.row_of_key(key, |_| true);
        assert_eq!(found, id.is_multiple_of(3).then_some(row));
    }
    for id in [
        ids.start - 1,
        ids.end,
        ids.start - CHUNK as u64,
        0,
        u64::MAX,
    ] {
        assert_eq!(tail.row_of_id(id), None);
        let key = format!("key {id}");
        assert_eq!(tail.row_of_key(&key, |_| true), None);
    }
    let mut row = 0;
    while row < tail.rows() {
        let (chunk, piece) = tail.piece(row);
        assert!(!piece.is_empty() && piece.end <= JOINED * CHUNK);
        let embeddings = chunk.embeddings(tail.dim, piece.clone());
        assert_eq!(embeddings.count(tail.dim), Some(piece.len()));
        assert_eq!(
            embeddings.widen(tail.dim, 0)[0],
            (ids.start + row as u64) as f32 * 10.0
        );
        row += piece.len();
    }
    assert_eq!(row, tail.rows());
}

#[test]
fn rows_come_back_as_they_were_pushed() {
    for dtype in [Dtype::F32, Dtype::F16] {
        let mut tail = tail(dtype);
        for id in 10..10 + 3 * CHUNK as u64 + 1 {
            assert_holds(&tail, dtype, 10..id);
            push(&mut tail, dtype, id..id + 1);
        }
    }
}

#[test]
fn elements_are_taken_from_any_address() {
    for dtype in [Dtype::F32, Dtype::F16] {
        for shift in 0..4 {
            let example = Example::new(10, dtype);
            let shifted = [&vec![0; shift][..], &example.elements].concat();
            let mut tail = tail(dtype);
            tail.push(&StoredRow {
                elements: &shifted[shift..],
                ..example.row(10)
            });
            assert_holds(&tail, dtype, 10..11);
        }
    }
}

#[test]
fn a_clone_keeps_its_rows_and_shares_what_is_full() {
    let dtype = Dtype::F16;
    let mut tail = tail(dtype);
    let mut clones = Vec::new();
    for id in 10..23 {
        clones.push((id, tail.clone()));
        push(&mut tail, dtype, id..id + 1);
    }
    for (end, clone) in &clones {
        assert_holds(clone, dtype, 10..*end);
        for ((start, old), (new_start, new)) in clone.chunks.iter().zip(&tail.chunks) {
            let same = (start, old.rows()) == (new_start, new.rows());
            assert_eq!(Arc::ptr_eq(old, new), same);
        }
    }
}

#[test]
fn full_chunks_are_joined_by_their_length() {
    let mut tail = tail(Dtype::F16);
    let lengths = |tail: &Tail| -> Vec<usize> {
        let chunks = tail.chunks.iter();
        chunks.map(|(_, chunk)| chunk.rows() / CHUNK).collect()
    };
    let mut next = 10;
    for (chunks, expected) in [
        (1, &[1, 0][..]),
        (2, &[2, 0]),
        (3, &[2, 1, 0]),
        (7, &[4, 2, 1, 0]),
        (16, &[16, 0]),
        (17, &[16, 1, 0]),
        (45, &[16, 16, 8, 4, 1, 0]),
    ] {
        let end = 10 + (chunks * CHUNK + 1) as u64;
        push(&mut tail, Dtype::F16, next..end);
        next = end;
        assert_eq!(lengths(&tail), expected);
        assert_holds(&tail, Dtype::F16, 10..end);
    }
    let all = next;
    for dropped in [1, 63, 64, 65, 170, 180] {
        let mut tail = tail.clone();
        tail.drop_first(dropped);
        assert_holds(&tail, Dtype::F16, 10 + dropped as u64..all);
        push(&mut tail, Dtype::F16, all..all + 200);
        assert_holds(&tail, Dtype::F16, 10 + dropped as u64..all + 200);
    }
}

#[test]
fn a_push_moves_a_shared_chunk_once_and_others_rarely() {
    let mut tail = Tail::new(DIM.try_into().unwrap(), Dtype::F32, 1024);
    let mut moves = 0;
    let mut at = std::ptr::null();
    for id in 1..=1024 {
        push(&mut tail, Dtype::F32, id..id + 1);
        let now = tail.chunks[0].1.ids.as_ptr();
        moves += usize::from(now != at);
        at = now;
    }
    assert!(moves <= 10, "{moves}");

    let mut tail = self::tail(Dtype::F32);
    push(&mut tail, Dtype::F32, 10..12);
    let snapshot = tail.clone();
    push(&mut tail, Dtype::F32, 12..13);
    let copied = tail.chunks[0].1.ids.as_ptr();
    push(&mut tail, Dtype::F32, 13..14);
    assert_eq!(tail.chunks[0].1.ids.as_ptr(), copied);
    assert_holds(&snapshot, Dtype::F32, 10..12);
}

#[test]
fn the_first_rows_go_when_they_are_in_the_columns() {
    let dtype = Dtype::F32;
    for all in 0..3 * CHUNK as u64 {
        for dropped in 0..=all {
            let mut tail = tail(dtype);
            push(&mut tail, dtype, 10..10 + all);
            let before = tail.clone();
            // In two steps: the second starts inside a chunk.
            tail.drop_first(dropped as usize / 2);
            tail.drop_first((dropped - dropped / 2) as usize);
            assert_holds(&tail, dtype, 10 + dropped..10 + all);
            push(&mut tail, dtype, 10 + all..10 + all + 5);
            assert_holds(&tail, dtype, 10 + dropped..10 + all + 5);
            assert_holds(&before, dtype, 10..10 + all);
        }
    }
}

#[test]
fn a_key_is_found_in_the_row_that_is_live() {
    let dtype = Dtype::F32;
    for between in 0..2 * CHUNK as u64 {
        let mut tail = tail(dtype);
        let example = Example::new(9, dtype);
        let last = 10 + between;
        tail.push(&example.row(9));
        let before = tail.clone();
        push(&mut tail, dtype, 10..last);
        tail.push(&StoredRow {
            id: last,
            ..example.row(9)
        });
        let find = |tail: &Tail, dead: usize| tail.row_of_key("key 9", |row| row != dead);
        assert_eq!(find(&tail, 0), Some(between as usize + 1));
        assert_eq!(find(&before, usize::MAX), Some(0));
        assert_eq!(find(&before, 0), None);
    }
}

#[test]
fn what_is_cut_off_is_gone_and_the_rest_is_as_it_was_pushed() {
    let dtype = Dtype::F32;
    for dropped in [0, 1, 3, 4, 5, 9, 10] {
        for left in 0..=10 - dropped {
            let mut all = tail(dtype);
            push(&mut all, dtype, 1..11);
            // A key that an earlier row has, as after a delete.
            let again = Example::new(3, dtype);
            all.push(&StoredRow {
                id: 11,
                ..again.row(3)
            });
            all.drop_first(dropped);
            let before = all.clone();
            let next_id = (dropped + left) as u64 + 1;
            assert_eq!(all.rows_below(next_id), left);
            all.truncate(left);
            assert_eq!(all.rows(), left);
            for row in 0..left {
                let (chunk, at) = all.place(row);
                let id = (dropped + row) as u64 + 1;
                assert_eq!(chunk.row(all.dim, at), Example::new(id, dtype).row(id));
                assert_eq!(all.row_of_id(id), Some(row));
            }
            assert_eq!((all.row_of_id(next_id), all.row_of_id(11)), (None, None));
            let third = (2_usize.checked_sub(dropped)).filter(|&row| row < left);
            assert_eq!(all.row_of_key("key 3", |_| true), third);
            assert_eq!(before.rows(), 11 - dropped);
            assert_eq!(before.row_of_key("key 3", |_| true), Some(10 - dropped));
            // It grows again.
            push(&mut all, dtype, 20..30);
            assert_eq!((all.rows(), all.row_of_id(29)), (left + 10, Some(left + 9)));
        }
    }
}
