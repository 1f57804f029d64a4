//! Faults that people met elsewhere, by their number.

use crate::example::*;
use memorank::import::{self, NoticeKind, Options, TimeUnit};
use memorank::kernel::Dtype;
use memorank::store::{Agent, AppendError, Kind, MemoryProblem, Reference, Snapshot, Store};

const NOW: i64 = 1_676_246_400_000_000;
const HOUR: i64 = 3_600_000_000;

/// Set G, and a reflection on the last and the second of it.
fn g(folder: &Folder) -> Store {
    let of = |text, embedding: [f32; 2], hours: i64, importance| Owned {
        last_access: NOW - hours * HOUR,
        created: NOW - 200 * HOUR,
        importance,
        ..plain(text, Some(&embedding))
    };
    let store = folder.create("store", 2, Dtype::F32);
    append(
        &store,
        &[
            of("zero", [1.0, 0.0], 10, 2.0),
            of("one", [0.6, 0.8], 0, 8.0),
            of("two", [0.0, 1.0], 100, 5.0),
            of("three", [0.5, 0.5], 50, 1.0),
        ],
    );
    let reflection = Owned {
        kind: Kind::REFLECTION,
        evidence: vec![Reference::Id(3), Reference::Id(1)],
        depth: 1,
        ..of("a reflection", [0.7, 0.1], 1, 9.5)
    };
    append(&store, &[reflection]);
    store
}

fn ids(snapshot: &Snapshot) -> Vec<u64> {
    rows(snapshot).map(|row| snapshot.id(row)).collect()
}

fn evidence(snapshot: &Snapshot, id: u64) -> Vec<Reference> {
    let row = snapshot.row_of_id(id).unwrap();
    snapshot.memory(row).unwrap().evidence
}

#[test]
fn b95_g_and_a_reflection_come_back() {
    let folder = Folder::new();
    let store = g(&folder);
    store.touch(Agent::OWN, &[0, 4], NOW + 1).unwrap();
    let first = store.snapshot();
    folder.export(&first, "first");
    assert_eq!(folder.import("first", "imported").unwrap().memories, 5);
    let imported = folder.open("imported");
    assert_same(&first, &imported);
    folder.export(&imported, "second");
    assert_eq!(files(&folder.path("first")), files(&folder.path("second")));
}

#[test]
fn b83_a_reflection_keeps_its_sources_in_order_at_each_step() {
    let folder = Folder::new();
    let expected = [Reference::Id(3), Reference::Id(1)];
    let store = g(&folder);
    assert_eq!(evidence(&store.snapshot(), 4), expected);
    store.close().unwrap();
    let reopened = folder.open("store");
    assert_eq!(evidence(&reopened, 4), expected);
    folder.export(&reopened, "first");
    let [_, jsonl, _] = files(&folder.path("first"));
    let jsonl = String::from_utf8(jsonl).unwrap();
    assert!(jsonl.contains("\"evidence\":[3,1]"), "{jsonl}");
    folder.import("first", "imported").unwrap();
    assert_eq!(evidence(&folder.open("imported"), 4), expected);
}

#[test]
fn b82_ids_are_kept_and_not_used_again() {
    let folder = Folder::new();
    let store = g(&folder);
    store.delete(&[2, 4]).unwrap();
    folder.export(&store.snapshot(), "first");
    folder.import("first", "imported").unwrap();
    let imported = Store::open(folder.path("imported")).unwrap();
    assert_eq!(ids(&imported.snapshot()), [0, 1, 3]);
    assert_eq!(append(&imported, &[plain("five", None)]), 5..6);
    imported.close().unwrap();
    let imported = folder.open("imported");
    assert_eq!(ids(&imported), [0, 1, 3, 5]);
    for deleted in [2, 4] {
        assert_eq!(imported.row_of_id(deleted), None);
    }
    folder.export(&imported, "second");
    folder.import("second", "again").unwrap();
    assert_eq!(ids(&folder.open("again")), [0, 1, 3, 5]);
}

#[test]
fn b82_a_key_comes_back_as_the_key_of_one_memory() {
    let folder = Folder::new();
    let store = folder.create("store", 1, Dtype::F32);
    let keyed = |text: &str| Owned {
        key: Some("k".into()),
        ..plain(text, None)
    };
    append(&store, &[keyed("old")]);
    store.delete(&[0]).unwrap();
    append(&store, &[keyed("new")]);
    folder.export(&store.snapshot(), "first");
    folder.import("first", "imported").unwrap();
    let imported = Store::open(folder.path("imported")).unwrap();
    assert_eq!(imported.snapshot().row_of_key("k").unwrap(), Some(0));
    let again = imported.append(&[keyed("again").borrowed()]);
    assert!(
        matches!(
            again,
            Err(AppendError::Refused {
                problem: MemoryProblem::DuplicateKey { id: 1, .. },
                ..
            })
        ),
        "{again:?}"
    );
}

#[test]
fn a_plain_import_reads_the_matrix_and_the_memories_of_an_export() {
    let folder = Folder::new();
    let store = g(&folder);
    let (payload, key) = (b"{\"a\": 1}".to_vec(), Some("node_5".to_owned()));
    append(
        &store,
        &[
            Owned {
                key,
                payload,
                ..plain("five", None)
            },
            Owned {
                payload: b"\xff".to_vec(),
                importance: 0.1,
                ..plain("six", None)
            },
        ],
    );
    let first = store.snapshot();
    folder.export(&first, "first");
    let read = |store: &str, time_unit| {
        let from = folder.path("first");
        let options = Options {
            time_unit,
            ..Options::default()
        };
        import::npy(
            &from.join("embeddings.npy"),
            &from.join("memories.jsonl"),
            &folder.path(store),
            &options,
            &mut |_, _| (),
        )
    };
    let report = read("second", None).unwrap();
    // Two without a vector, and nothing else that is not as expected.
    let names: Vec<_> = report.notices.iter().map(|n| (n.name, n.count)).collect();
    assert_eq!(names, [(NoticeKind::VectorMissing, 2)]);
    let second = folder.open("second");
    for row in 0..first.rows() {
        let [a, b] = [&first, &second].map(|snapshot| snapshot.memory(row).unwrap());
        // What has no key gets its id.
        assert_eq!(b.key, Some(a.key.unwrap_or(&row.to_string())));
        assert_eq!(memorank::store::Memory { key: a.key, ..b }, a, "row {row}");
        assert_eq!(first.embedding(row), second.embedding(row));
    }
    // Times that only a number can tell need their unit.
    let far = Owned {
        created: i64::MAX,
        ..plain("far", None)
    };
    append(&store, &[far]);
    std::fs::remove_dir_all(folder.path("first")).unwrap();
    folder.export(&store.snapshot(), "first");
    assert!(read("third", None).is_err());
    read("third", Some(TimeUnit::Microseconds)).unwrap();
    assert_eq!(folder.open("third").created(7), i64::MAX);
}
