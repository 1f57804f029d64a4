//! Bits that flip in the columns.

use crate::example::*;
use crate::in_memory::*;
use crate::setting::setting;
use memorank::kernel::Dtype;
use memorank::store::{
    OpenError, OpenOptions, Problem, ReadError, Reference, Store, verify, verify_on,
};
use std::fs;
use std::sync::Arc;

#[test]
fn verify_finds_a_flip_of_any_bit_and_a_checked_open_refuses_it() {
    let files = worn_in_memory(40, 5, Dtype::F16);
    let mut random = Random(7);
    let columns = open_read_only(&files).unwrap().info().files;
    let each = setting("MEMORANK_FLIPS", 2_000).div_ceil(columns.len());
    println!(
        "{} flips in {} columns",
        each * columns.len(),
        columns.len()
    );
    for column in columns {
        for _ in 0..each {
            let bit = random.below(column.bytes as usize * 8);
            flip_in(&files, &column.path, bit);
            let report = verify_on(&files, STORE).unwrap();
            let first = &report.damages[0];
            assert_eq!((&first.path, first.offset), (&column.path, 0));
            assert!(matches!(first.problem, Problem::Checksum { .. }), "{first}");
            for in_memory in [false, true] {
                let options = OpenOptions {
                    verify: !in_memory,
                    in_memory,
                    ..OpenOptions::default()
                };
                let opened = Store::open_on(Arc::new(files.clone()), STORE, &options);
                assert!(
                    matches!(opened, Err(OpenError::Damaged { .. })),
                    "{opened:?}"
                );
            }
            flip_in(&files, &column.path, bit);
        }
    }
    assert_eq!(verify_on(&files, STORE).unwrap().damages, []);
}

#[test]
fn no_flip_panics_when_rows_are_read() {
    let files = worn_in_memory(12, 5, Dtype::F32);
    let mut failed = 0;
    let new = Owned {
        key: Some("new".into()),
        evidence: vec![Reference::Id(0)],
        payload: vec![1],
        ..varied(12, 5)
    };
    for column in open_read_only(&files).unwrap().info().files {
        // Every bit of the ends, some of the rest.
        let path = &column.path;
        let step = if path.to_str().unwrap().contains("ends") {
            1
        } else {
            5
        };
        for bit in (0..column.bytes as usize * 8).step_by(step) {
            flip_in(&files, path, bit);
            if let Ok(store) = open(&files) {
                let snapshot = store.snapshot();
                for row in 0..snapshot.rows() {
                    snapshot.embedding(row);
                    match snapshot.memory(row) {
                        Ok(_) => {}
                        Err(ReadError::Deleted { row: 10 }) => {}
                        Err(ReadError::Damaged(damage)) => {
                            failed += 1;
                            assert!(
                                damage.to_string().contains(&format!("row {row}")),
                                "{damage}"
                            );
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                for id in 0..12 {
                    snapshot.row_of_id(id);
                }
                let _ = snapshot.row_of_key("node_2");
                // It would lie in the block of every column, so it never gets there.
                let mut bulk = store.bulk().unwrap();
                let pushed = bulk.push(&new.borrowed());
                let stored = pushed.and_then(|_| bulk.commit());
                assert!(stored.is_err(), "{path:?} {bit}");
            }
            flip_in(&files, path, bit);
        }
    }
    assert!(failed > 1000, "{failed}");
    assert_eq!(verify_on(&files, STORE).unwrap().damages, []);
}

// B43
#[test]
fn rows_that_were_zeroed_are_found() {
    let (_dir, path) = filled(40, 4, Dtype::F32);
    let file = path.join("embedding.f32");
    let mut bytes = fs::read(&file).unwrap();
    let len = bytes.len();
    bytes[len - 8 * 16..].fill(0);
    fs::write(&file, bytes).unwrap();
    let report = verify(&path).unwrap();
    assert!(!report.is_sound());
    assert!(matches!(
        report.damages[0].problem,
        Problem::Checksum { .. }
    ));
    // The rows among them that had a vector: 32, 33, 35, 36, 38, 39.
    let rows: Vec<_> = (report.damages.iter())
        .filter_map(|d| match d.problem {
            Problem::InvNorm {
                row, computed: 0.0, ..
            } => Some(row),
            _ => None,
        })
        .collect();
    assert_eq!(rows, [32, 33, 35, 36, 38, 39]);
}

#[test]
fn verify_goes_on_after_the_first_damage() {
    let (_dir, path) = filled(20, 4, Dtype::F32);
    flip(&path.join("text.bytes"), 3);
    flip(&path.join("inv_norm.f32"), 0);
    flip(&path.join("kind.u16"), 15);
    flip(&path.join("id.u64"), 64 * 4);
    flip(&path.join("importance.f32"), 30);
    fs::remove_file(path.join("depth.u32")).unwrap();
    let cut = fs::File::options()
        .write(true)
        .open(path.join("payload.bytes"))
        .unwrap();
    cut.set_len(3).unwrap();
    let report = verify(&path).unwrap();
    let has = |f: fn(&Problem) -> bool| report.damages.iter().any(|d| f(&d.problem));
    assert_eq!(
        report
            .damages
            .iter()
            .filter(|d| matches!(d.problem, Problem::Checksum { .. }))
            .count(),
        5
    );
    assert!(has(|p| matches!(p, Problem::Missing)));
    assert!(has(|p| matches!(p, Problem::Cut { found: 3, .. })));
    assert!(has(|p| matches!(p, Problem::InvNorm { row: 0, .. })));
    assert!(has(|p| matches!(
        p,
        Problem::Kind {
            row: 0,
            kind: 32768,
            ..
        }
    )));
    assert!(has(|p| matches!(p, Problem::Id { row: 4, id: 5, .. })
        || matches!(p, Problem::Id { row: 5, id: 5, .. })));
    let texts: Vec<_> = report.damages.iter().map(ToString::to_string).collect();
    assert!(
        texts
            .iter()
            .all(|t| t.contains("store/") && t.contains(": byte ")),
        "{texts:?}"
    );
}

#[test]
fn elements_that_cannot_be_scored_are_told_in_words() {
    let (_dir, path) = filled(1, 2, Dtype::F32);
    let infinity = f32::INFINITY.to_le_bytes();
    fs::write(path.join("embedding.f32"), [infinity, infinity].concat()).unwrap();
    let report = verify(&path).unwrap();
    let told = report.damages.last().unwrap().to_string();
    let words = "row 0 cannot be scored: element 0 is inf; embeddings must be finite";
    assert!(told.ends_with(words), "{told}");
}
