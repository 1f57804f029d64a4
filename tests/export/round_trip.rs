//! Export, import, export: the same bytes and the same store, whatever was stored.

use crate::example::*;
use memorank::kernel::Dtype;
use memorank::store::{Agent, Kind, OpenOptions, Reference, Store};
use proptest::prelude::*;
use std::collections::HashSet;

const AGENTS: [u32; 4] = [0, 1, 7, u32::MAX];

/// Texts that a careless writer or reader changes.
const TEXTS: [&str; 12] = [
    "",
    "\0",
    "a\r\nb\tc\u{b}\u{1b}[31m\u{7f}\u{85}\u{9b}",
    r"\ud800 \u0000 \n \\",
    "\"'`{}[],:",
    "\u{feff}\u{2028}\u{2029}\u{202e}",
    "\u{fffd}\u{fffe}\u{10ffff}\u{e000}",
    "コーヒー ☕ 👩‍👩‍👧 e\u{301}",
    "null",
    "NaN",
    "  ",
    "{\"missing\":\"x\"}",
];

const PAYLOADS: [&[u8]; 16] = [
    b"",
    b"null",
    b"0",
    b"{\"a\": [1.50, null], \"a\": \"\\u00e9\"}",
    b" 1",
    b"[1,\n2]",
    b"[1,\r2]",
    b"\"\\ud800\"",
    b"\"\\ud83d\\ude00\"",
    b"1e400",
    b"12345678901234567890123456789",
    b"{\"$serde_json::private::RawValue\":\"1\"}",
    b"\xff\xfe\0",
    b"{",
    b"\"\x7f\"",
    "\"\u{2028}☕\"".as_bytes(),
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(&TEXTS[..]).prop_map(str::to_owned),
        prop::collection::vec(any::<char>(), 0..8).prop_map(|chars| chars.into_iter().collect()),
    ]
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(&PAYLOADS[..]).prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..12),
        text().prop_map(|text| serde_json::to_vec(&text).unwrap()),
    ]
}

fn time() -> impl Strategy<Value = i64> {
    let year = 365 * 24 * 3_600_000_000i64;
    prop_oneof![
        any::<i64>(),
        (-80 * year..80 * year),
        (0..1000i64).prop_map(|second| 1_676_246_400_000_000 + second * 1_000_000),
        prop::sample::select(
            &[
                i64::MIN,
                i64::MAX,
                -1,
                0,
                // The ends of the years that RFC 3339 can write.
                -62_167_219_200_000_001,
                -62_167_219_200_000_000,
                253_402_300_799_999_999,
                253_402_300_800_000_000,
            ][..]
        ),
    ]
}

fn importance() -> impl Strategy<Value = f32> {
    prop_oneof![
        (1..=10u8).prop_map(f32::from),
        prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
        prop::sample::select(&[-0.0, 0.1, f32::MAX, f32::MIN_POSITIVE, 1e-45][..]),
    ]
}

/// Elements of every kind; the first makes sure of a length that can be scored.
fn embedding(dim: usize) -> impl Strategy<Value = Option<Vec<f32>>> {
    let element = prop_oneof![
        -2.0..2.0f32,
        // Subnormal as f16; as f32.
        -6e-5..6e-5f32,
        prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
        prop::sample::select(&[-0.0, 1e-45, 65504.0][..]),
    ];
    let first = prop_oneof![0.5..2.0f32, -2.0..-0.5f32];
    let vector = (first, prop::collection::vec(element, dim - 1));
    prop::option::weighted(
        0.7,
        vector.prop_map(|(first, rest)| [vec![first], rest].concat()),
    )
}

fn reference() -> impl Strategy<Value = Reference> {
    prop_oneof![
        (0..12u64).prop_map(Reference::Id),
        any::<u64>().prop_map(Reference::Id),
        text().prop_map(Reference::Missing),
    ]
}

fn memory(dim: usize) -> impl Strategy<Value = Owned> {
    let kind = prop_oneof![
        Just(Kind::OBSERVATION),
        Just(Kind::REFLECTION),
        text().prop_map(|text| Kind::named(format!("k{text}"))),
    ];
    let key = prop::option::of((0..5u8, text()).prop_map(|(n, text)| format!("{n}{text}")));
    let times = (time(), time(), prop::option::of(time()));
    (
        (key, kind, text(), embedding(dim)),
        times,
        (importance(), any::<u32>(), payload()),
        (
            prop::collection::vec(reference(), 0..4),
            prop::option::of(0..24u64),
        ),
    )
        .prop_map(
            |(
                (key, kind, text, embedding),
                (created, last_access, expiry),
                (importance, depth, payload),
                (evidence, supersedes),
            )| Owned {
                key,
                kind,
                text,
                embedding,
                created,
                last_access,
                // That one stands for none.
                expiry: expiry.filter(|&expiry| expiry != i64::MAX),
                importance,
                evidence,
                depth,
                supersedes,
                payload,
            },
        )
}

#[derive(Clone, Debug)]
enum Op {
    Append(Vec<Owned>),
    Bulk {
        memories: Vec<Owned>,
        skip: u64,
    },
    Touch {
        agent: u32,
        ids: Vec<u64>,
        now: i64,
    },
    Importance {
        agent: u32,
        ids: Vec<u64>,
        importance: Option<f32>,
    },
    Embed(Vec<(u64, f32)>),
    Delete(Vec<u64>),
    Checkpoint,
    Compact,
    Reopen,
}

fn op(dim: usize) -> impl Strategy<Value = Op> {
    let ids = || prop::collection::vec(0..24u64, 0..6);
    let memories = || prop::collection::vec(memory(dim), 0..5);
    prop_oneof![
        4 => memories().prop_map(Op::Append),
        4 => (memories(), 0..4u64).prop_map(|(memories, skip)| Op::Bulk { memories, skip }),
        4 => (prop::sample::select(&AGENTS[..]), ids(), time())
            .prop_map(|(agent, ids, now)| Op::Touch { agent, ids, now }),
        2 => (prop::sample::select(&AGENTS[..]), ids(), prop::option::of(importance()))
            .prop_map(|(agent, ids, importance)| Op::Importance { agent, ids, importance }),
        2 => prop::collection::vec((0..24u64, 0.5..2.0f32), 0..6).prop_map(Op::Embed),
        2 => ids().prop_map(Op::Delete),
        1 => Just(Op::Checkpoint),
        1 => Just(Op::Compact),
        1 => Just(Op::Reopen),
    ]
}

/// Frees what is to be appended of what a store refuses.
fn fitting(store: &Store, memories: Vec<Owned>, any_evidence: bool) -> Vec<Owned> {
    let (snapshot, mut keys) = (store.snapshot(), HashSet::new());
    let mut corrected = HashSet::new();
    let mut memories = memories;
    for (id, memory) in (snapshot.next_id()..).zip(&mut memories) {
        let key = memory.key.take();
        memory.key = key
            .filter(|key| snapshot.row_of_key(key).unwrap().is_none() && keys.insert(key.clone()));
        if !any_evidence {
            let mut cited = HashSet::new();
            memory.evidence.retain(|reference| match reference {
                Reference::Id(cites) => *cites < id && cited.insert(*cites),
                Reference::Missing(_) => true,
            });
        }
        let is_free = |older: &u64| {
            let row = snapshot.row_of_id(*older);
            let in_batch = (snapshot.next_id()..id).contains(older);
            let is_superseded = row.is_some_and(|row| snapshot.superseded_by(row).is_some());
            (row.is_some() || in_batch) && !is_superseded && corrected.insert(*older)
        };
        memory.supersedes = memory.supersedes.filter(is_free);
    }
    memories
}

fn apply(op: Op, folder: &Folder, store: Store) -> Store {
    let next = store.snapshot().next_id();
    let known = |ids: Vec<u64>| -> Vec<u64> { ids.into_iter().filter(|&id| id < next).collect() };
    match op {
        Op::Append(memories) => {
            append(&store, &fitting(&store, memories, false));
        }
        Op::Bulk { memories, skip } => {
            let memories = fitting(&store, memories, true);
            let mut bulk = store.bulk().unwrap();
            bulk.allow_any_evidence();
            for memory in memories {
                bulk.push(&memory.borrowed()).unwrap();
            }
            let after = next + bulk.len() as u64 + skip;
            bulk.skip_ids_to(after).unwrap();
            assert_eq!(bulk.commit().unwrap(), next..after);
        }
        Op::Touch { agent, ids, now } => store.touch(Agent(agent), &known(ids), now).unwrap(),
        Op::Importance {
            agent,
            ids,
            importance,
        } => {
            store
                .set_importance(Agent(agent), &known(ids), importance)
                .unwrap();
        }
        Op::Embed(vectors) => {
            let (snapshot, mut named) = (store.snapshot(), HashSet::new());
            let can_be_given = |id: u64| match snapshot.row_of_id(id) {
                Some(row) => !snapshot.has_embedding(row),
                None => id < next,
            };
            let vectors = vectors.into_iter();
            let vectors = vectors.filter(|&(id, _)| can_be_given(id) && named.insert(id));
            let dim = snapshot.dim().get();
            let vectors: Vec<_> = vectors
                .map(|(id, element)| (id, vec![element; dim]))
                .collect();
            let vectors: Vec<_> = vectors.iter().map(|(id, v)| (*id, &v[..])).collect();
            store.embed(&vectors).unwrap();
        }
        Op::Delete(ids) => {
            store.delete(&known(ids)).unwrap();
        }
        Op::Checkpoint => store.checkpoint().unwrap(),
        Op::Compact => store.compact().unwrap(),
        Op::Reopen => {
            store.close().unwrap();
            let options = OpenOptions {
                verify: true,
                ..OpenOptions::default()
            };
            return Store::open_with(folder.path("store"), &options).unwrap();
        }
    }
    store
}

fn cases() -> u32 {
    match std::env::var("MEMORANK_EXPORT_CASES") {
        Ok(cases) => cases.parse().expect("MEMORANK_EXPORT_CASES is a number"),
        Err(_) => 128,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    // B95
    #[test]
    fn an_exported_store_comes_back_as_it_was(
        (dim, ops) in (1..6usize).prop_flat_map(|dim| {
            (Just(dim), prop::collection::vec(op(dim), 1..14))
        }),
        f16 in any::<bool>(),
    ) {
        let dtype = if f16 { Dtype::F16 } else { Dtype::F32 };
        let folder = Folder::new();
        let mut store = folder.create("store", dim, dtype);
        for op in ops {
            store = apply(op, &folder, store);
        }
        let first = store.snapshot();
        let written = folder.export(&first, "first");
        prop_assert_eq!(written.memories, first.len() as u64);

        let read = folder.import("first", "imported").unwrap();
        prop_assert_eq!(
            (read.memories, read.with_vector, read.without_vector, read.notices),
            (written.memories, written.with_vector, written.without_vector, vec![])
        );
        let imported = folder.open("imported");
        assert_same(&first, &imported);
        prop_assert_eq!(folder.export(&imported, "second"), written.clone());
        let bytes = files(&folder.path("first"));
        prop_assert!(files(&folder.path("second")) == bytes);

        // Wherever its rows lie, a store has one export.
        store.compact().unwrap();
        prop_assert_eq!(folder.export(&store.snapshot(), "compacted"), written);
        prop_assert!(files(&folder.path("compacted")) == bytes);
    }
}

#[test]
fn an_empty_store_comes_back() {
    let folder = Folder::new();
    let store = folder.create("store", 3, Dtype::F16);
    folder.export(&store.snapshot(), "first");
    folder.import("first", "imported").unwrap();
    let imported = folder.open("imported");
    assert_same(&store.snapshot(), &imported);
    folder.export(&imported, "second");
    assert_eq!(files(&folder.path("first")), files(&folder.path("second")));
}

#[test]
fn an_export_is_of_its_snapshot() {
    let folder = Folder::new();
    let store = folder.create("store", 1, Dtype::F32);
    append(&store, &[plain("a", Some(&[1.0])), plain("b", None)]);
    let before = store.snapshot();
    folder.export(&before, "first");
    store.touch(Agent::OWN, &[0], i64::MAX).unwrap();
    store.delete(&[1]).unwrap();
    append(&store, &[plain("c", None)]);
    store.compact().unwrap();
    folder.export(&before, "second");
    assert_eq!(files(&folder.path("first")), files(&folder.path("second")));
}
