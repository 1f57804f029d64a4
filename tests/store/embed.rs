//! Vectors that come after their memories.

use crate::example::*;
use crate::in_memory::*;
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Ranking, Workspace};
use memorank::store::{
    Agent, EmbedError, MemoryProblem, Problem, Snapshot, Store, WriteError, verify, verify_on,
};
use memorank::stream::{Ask, Filter, rank};

fn without_vector(i: u64) -> Owned {
    Owned {
        embedding: None,
        ..varied(i, 3)
    }
}

/// The vector that a memory gets late, or has at once.
fn vector(id: u64) -> Vec<f32> {
    (0..3)
        .map(|j| ((id * 5 + j * 3) % 11) as f32 / 8.0 + 0.25)
        .collect()
}

fn embed(store: &Store, ids: &[u64]) -> Result<usize, EmbedError> {
    let vectors: Vec<_> = ids.iter().map(|&id| (id, vector(id))).collect();
    let vectors: Vec<_> = vectors.iter().map(|(id, v)| (*id, &v[..])).collect();
    store.embed(&vectors)
}

fn ranked(snapshot: &Snapshot) -> Ranking {
    let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
    let preset = Preset::paper();
    let filter = Filter {
        future: true,
        ..Filter::default()
    };
    let ask = Ask {
        filter: &filter,
        ..Ask::new(&[0.5, -1.0, 0.25], 1_000_000, &preset)
    };
    rank(snapshot, &ask, Par::Serial, &mut workspace, &mut ranking).unwrap();
    ranking
}

#[test]
fn a_late_vector_ranks_as_one_that_was_there_at_once_wherever_its_row_lies() {
    for dtype in [Dtype::F32, Dtype::F16] {
        let late = |id: u64| id.is_multiple_of(3) || (20..25).contains(&id);
        let (_a, _, expected) = new_store(3, dtype);
        let (_b, path, store) = new_store(3, dtype);
        for i in 0..40 {
            let embedding = Some(vector(i));
            append(
                &expected,
                &[Owned {
                    embedding,
                    ..without_vector(i)
                }],
            );
            let embedding = (!late(i)).then(|| vector(i));
            append(
                &store,
                &[Owned {
                    embedding,
                    ..without_vector(i)
                }],
            );
            if i == 30 {
                store.checkpoint().unwrap();
            }
        }
        let before = store.snapshot();
        assert_eq!(before.len(), 40);
        let ids: Vec<u64> = (0..40).filter(|&id| late(id)).rev().collect();
        assert_eq!(embed(&store, &ids[..5]).unwrap(), 5);
        assert_eq!(embed(&store, &ids[5..]).unwrap(), ids.len() - 5);
        let expected = (contents(&expected.snapshot()), ranked(&expected.snapshot()));
        let check = |snapshot: &Snapshot| {
            assert_eq!(contents(snapshot), expected.0);
            assert_eq!(ranked(snapshot), expected.1);
        };
        let look = |store: &Store| {
            check(&store.snapshot());
            check(&Store::open_read_only(&path).unwrap().snapshot());
            let report = verify(&path).unwrap();
            assert_eq!(report.damages, []);
        };
        look(&store);
        store.checkpoint().unwrap();
        look(&store);
        assert_eq!(verify(&path).unwrap().without_vector, 0);
        store.checkpoint().unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        look(&store);
        store.compact().unwrap();
        look(&store);
        assert_eq!(store.snapshot().segments(Agent::OWN).count(), 1);
        // What was looked at before has not changed.
        assert!((0..40).all(|row| before.has_embedding(row) != late(row as u64)));
    }
}

#[test]
fn a_checkpoint_writes_only_the_vectors_that_are_new() {
    let (files, store) = new_in_memory(3, Dtype::F32);
    append(&store, &(0..9).map(without_vector).collect::<Vec<_>>());
    store.checkpoint().unwrap();
    let entry = 8 + 3 * 4;
    let bytes = || {
        use memorank::store::files::Files;
        let path = std::path::Path::new(STORE).join("vectors.bytes");
        files.open(&path).unwrap().bytes().unwrap()
    };
    for (at, id) in [(1, 7), (2, 3)] {
        embed(&store, &[id]).unwrap();
        // One in the tail is no change of the columns.
        append(&store, &[without_vector(20 + at)]);
        embed(&store, &[8 + at]).unwrap();
        store.checkpoint().unwrap();
        assert_eq!(bytes(), at * entry);
    }
    let report = verify_on(&files, STORE).unwrap();
    assert_eq!((report.damages, report.without_vector), (vec![], 7));
}

#[test]
fn a_vector_that_only_the_journal_holds_outlives_a_bulk_append_and_a_checkpoint() {
    let (files, store) = new_in_memory(3, Dtype::F16);
    append(&store, &[without_vector(0)]);
    store.checkpoint().unwrap();
    embed(&store, &[0]).unwrap();
    // With nothing in the tail, it leaves the journal as it is.
    let mut bulk = store.bulk().unwrap();
    bulk.push(&without_vector(1).borrowed()).unwrap();
    bulk.commit().unwrap();
    assert_eq!(read(&files).embedding(0), Some(vector(0)));
    store.checkpoint().unwrap();
    for snapshot in [store.snapshot(), read(&files)] {
        assert_eq!(snapshot.embedding(0), Some(vector(0)));
    }
}

#[test]
fn what_cannot_be_given_is_refused_whole_and_changes_no_byte() {
    let (_dir, path, store) = new_store(3, Dtype::F16);
    append(&store, &(0..6).map(without_vector).collect::<Vec<_>>());
    append(&store, &[plain(&[1.0, 2.0, 3.0])]);
    store.delete(&[5]).unwrap();
    let refused = |store: &Store| {
        let (bytes, before) = (bytes_of(&path), contents(&store.snapshot()));
        let fails = |vectors: &[(u64, &[f32])]| {
            let first: (u64, &[f32]) = (0, &[1.0; 3]);
            store.embed(&[&[first][..], vectors].concat()).unwrap_err()
        };
        let error = fails(&[(7, &[1.0; 3])]);
        assert!(
            matches!(error, EmbedError::NoId { id: 7, next: 7 }),
            "{error}"
        );
        let error = fails(&[(6, &[1.0; 3])]);
        assert!(
            matches!(error, EmbedError::HasEmbedding { id: 6 }),
            "{error}"
        );
        let told = error.to_string();
        assert!(told.starts_with("id 6 has an embedding"), "{told}");
        let error = fails(&[(0, &[1.0; 3])]);
        assert!(matches!(error, EmbedError::Twice { id: 0 }), "{error}");
        for (vector, is_problem) in [
            (&[1.0; 2][..], "embedding of 2 elements"),
            (&[1.0, f32::NAN, 1.0], "element 1 is NaN"),
            (&[1.0, 65520.0, 1.0], "beyond f16"),
            (&[0.0; 3], "length 0e0"),
        ] {
            let error = fails(&[(2, vector)]);
            let EmbedError::Refused { id: 2, problem } = &error else {
                panic!("{error}");
            };
            assert!(problem.to_string().contains(is_problem), "{error}");
            assert!(!matches!(problem, MemoryProblem::Importance { .. }));
        }
        // A deleted one is passed over, and nothing is left to be written.
        assert_eq!(store.embed(&[(5, &[1.0; 3])]).unwrap(), 0);
        assert_eq!(store.embed(&[]).unwrap(), 0);
        assert_eq!(contents(&store.snapshot()), before);
        bytes == bytes_of(&path)
    };
    assert!(refused(&store));
    store.close().unwrap();
    refused(&Store::open(&path).unwrap());
    let reader = Store::open_read_only(&path).unwrap();
    let error = reader.embed(&[(0, &[1.0; 3])]).unwrap_err();
    assert!(
        matches!(error, EmbedError::Write(WriteError::ReadOnly { .. })),
        "{error}"
    );
}

#[test]
fn an_embed_waits_for_its_turn_and_says_so_to_whom_it_would_wait_for() {
    let (_dir, _path, store) = new_store(3, Dtype::F32);
    append(&store, &[without_vector(0)]);
    let bulk = store.bulk().unwrap();
    let error = embed(&store, &[0]).unwrap_err();
    assert!(
        matches!(error, EmbedError::Write(WriteError::Busy { .. })),
        "{error}"
    );
    drop(bulk);
    assert_eq!(embed(&store, &[0]).unwrap(), 1);
}

#[test]
fn deletes_and_readers_go_on_beside_embeds_and_compactions() {
    let (_dir, path, store) = new_store(3, Dtype::F32);
    let ids = 0..300_u64;
    append(&store, &ids.clone().map(without_vector).collect::<Vec<_>>());
    store.checkpoint().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for chunk in ids.clone().collect::<Vec<_>>().chunks(7) {
                embed(&store, chunk).unwrap();
            }
        });
        scope.spawn(|| {
            ids.clone().step_by(5).for_each(|id| {
                store.delete(&[id]).unwrap();
            })
        });
        for _ in 0..6 {
            store.compact().unwrap();
            let snapshot = store.snapshot();
            for row in (0..snapshot.rows()).filter(|&row| snapshot.is_live(row)) {
                let found = snapshot.embedding(row);
                assert!(found.is_none_or(|found| found == vector(snapshot.id(row))));
            }
        }
    });
    store.checkpoint().unwrap();
    for store in [&store, &Store::open_read_only(&path).unwrap()] {
        let snapshot = store.snapshot();
        assert_eq!(snapshot.len(), 240);
        for id in ids.clone().filter(|id| id % 5 != 0) {
            let row = snapshot.row_of_id(id).unwrap();
            assert_eq!(snapshot.embedding(row), Some(vector(id)));
        }
    }
    assert_eq!(verify(&path).unwrap().damages, []);
}

/// What is found wrong with a column of late vectors that has these bytes and the right checksum.
fn found(bytes: &[u8]) -> Vec<Problem> {
    use memorank::store::files::Files;
    let (files, store) = new_in_memory(3, Dtype::F32);
    append(
        &store,
        &[without_vector(0), plain(&[1.0; 3]), without_vector(2)],
    );
    store.close().unwrap();
    let path = std::path::Path::new(STORE);
    let file = files.open_to_write(&path.join("vectors.bytes")).unwrap();
    assert_eq!(file.write_at(0, bytes).unwrap(), bytes.len());
    let manifest = files.open_to_write(&path.join("manifest")).unwrap();
    let mut text = vec![0; manifest.bytes().unwrap() as usize];
    manifest.read_at(0, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (_, body) = text.split_once('\n').unwrap();
    let named = |bytes: usize, sums: &str| {
        format!(r#""vectors":{{"file":"vectors.bytes","bytes":{bytes},"sums":[{sums}]}}"#)
    };
    let sum = format!("\"{:016x}\"", xxhash_rust::xxh3::xxh3_64(bytes));
    assert!(body.contains(&named(0, "")));
    let body = body.replace(&named(0, ""), &named(bytes.len(), &sum));
    let sum = xxhash_rust::xxh3::xxh3_64(body.as_bytes());
    let text = format!("memorank store 1 {sum:016x} {}\n{body}", body.len());
    manifest.write_at(0, text.as_bytes()).unwrap();
    let damages = verify_on(&files, STORE).unwrap().damages;
    let opened = Store::open_on(
        std::sync::Arc::new(files),
        STORE,
        &memorank::store::OpenOptions::default(),
    );
    let problems: Vec<_> = damages.into_iter().map(|damage| damage.problem).collect();
    let stops = |problem: &Problem| match problem {
        Problem::LateVector { what, .. } => !what.starts_with("it was stored"),
        _ => false,
    };
    assert_eq!(opened.is_err(), problems.iter().any(stops), "{problems:?}");
    problems
}

#[test]
fn a_late_vector_that_cannot_be_its_rows_is_damage() {
    let entry = |row: u32, inv_norm: f32, elements: [f32; 3]| {
        let fields = [inv_norm, elements[0], elements[1], elements[2]];
        [&row.to_le_bytes()[..], bytemuck::cast_slice(&fields)].concat()
    };
    let sound = |row| entry(row, 0.5, [0.0, 2.0, 0.0]);
    assert_eq!(found(&[sound(2), sound(0)].concat()), []);
    let late = |row, what| vec![Problem::LateVector { row, what }];
    assert_eq!(found(&sound(3)), late(3, "there is no such row"));
    assert_eq!(found(&sound(1)), late(1, "it was stored with another"));
    let twice = [sound(2), sound(2)].concat();
    assert_eq!(found(&twice), late(2, "it was given another before"));
    assert_eq!(found(&sound(2)[..19]), late(3, "it is cut"));
    for inv_norm in [0.0, -0.5, f32::NAN, f32::INFINITY] {
        let bytes = entry(2, inv_norm, [0.0, 2.0, 0.0]);
        let what = "its inverse norm is not finite and above 0";
        assert_eq!(found(&bytes), late(2, what));
    }
    let (row, stored, computed) = (2, 0.25, 0.5);
    let expected = Problem::InvNorm {
        row,
        stored,
        computed,
    };
    assert_eq!(found(&entry(2, stored, [0.0, 2.0, 0.0])), [expected]);
    let problems = found(&entry(2, 0.5, [0.0, f32::NAN, 0.0]));
    assert!(
        matches!(problems[..], [Problem::Elements { row: 2, .. }]),
        "{problems:?}"
    );
}
