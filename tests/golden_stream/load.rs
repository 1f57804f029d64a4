//! Archives that the authors' loader does not load, and what the importer makes of them.

use crate::archive::Archives;
use crate::import_common::affected;
use crate::json;
use crate::source::{Imported, Source};
use memorank::Par;
use memorank::import::{ImportError, NoticeKind};
use memorank::kernel::Dtype;
use memorank::scoring::{Hit, Preset, Ranking, Workspace};
use memorank::store::Snapshot;
use memorank::stream::{self, Ask, Filter};
use serde_json::{Value, json};

pub fn check(golden: &Value, archives: &Archives) {
    let archive = json::text(golden, "archive");
    assert_eq!(archive, "reverie/july1_s12_maria");
    let exception = json::field(golden, "exception");
    match json::text(golden, "case") {
        "load__bad_time" => bad_time(archive, exception, archives),
        "load__gap" => gap(archive, archives),
        "load__missing_embedding" => missing_embedding(archive, exception, archives),
        other => panic!("{other}: an outcome of its own"),
    }
}

fn bad_time(archive: &str, exception: &Value, archives: &Archives) {
    let message = json::text(exception, "message");
    let time = message.split('\'').nth(1).expect("a time in quotes");
    let source = Source::changed(archive, archives, |nodes, _| {
        nodes["node_50"]["created"] = json!(time);
    });
    // `import` checks that no store is left.
    match source.import(Dtype::F32).map(|_| ()) {
        Err(e @ ImportError::Time { .. }) => {
            let text = e.to_string();
            assert!(text.contains("nodes.json, node_50: `created`"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// A memory that is missing is as one that does not compete.
fn gap(archive: &str, archives: &Archives) {
    let whole = whole(archive, archives);
    let source = Source::changed(archive, archives, |nodes, _| {
        nodes.remove("node_100").expect("a node");
    });
    let gap = source.import(Dtype::F32).expect("an import");
    let told = affected(&gap.report, NoticeKind::NumberingGap);
    assert_eq!(told, ["node_100"]);
    let (gap, whole) = (gap.store.snapshot(), whole.store.snapshot());
    assert_eq!(gap.len() + 1, whole.len());
    for number in 1..=whole.len() {
        let key = format!("node_{number}");
        let row = gap.row_of_key(&key).expect("keys");
        let expected = match number {
            100 => None,
            1..100 => Some(number - 1),
            _ => Some(number - 2),
        };
        assert_eq!(row, expected, "{key}");
    }
    for preset in [Preset::paper(), Preset::reverie()] {
        let (hits, _) = ranked(&gap, &preset, &[], archives);
        assert_eq!(hits, ranked(&whole, &preset, &[99], archives).0);
    }
}

/// A memory without a vector is stored and never competes. The text of this one is idle, so the
/// authors would not have looked at its vector.
fn missing_embedding(archive: &str, exception: &Value, archives: &Archives) {
    let whole = whole(archive, archives).store.snapshot();
    let text = json::text(exception, "message").trim_matches('\'');
    let source = Source::changed(archive, archives, |_, vectors| {
        vectors.remove(text).expect("a vector");
    });
    let imported = source.import(Dtype::F32).expect("an import");
    let store = &imported.store.snapshot();
    assert_eq!(store.len(), whole.len());
    let without: Vec<u32> = (0..store.len() as u32)
        .filter(|&row| !store.memory(row as usize).expect("a memory").has_embedding)
        .collect();
    let told = affected(&imported.report, NoticeKind::VectorMissing);
    let expected: Vec<String> = without
        .iter()
        .map(|row| format!("node_{}: {text}", row + 1))
        .collect();
    assert_eq!(told, expected);
    assert!(without.contains(&49));
    for &row in &without {
        let memory = store.memory(row as usize).expect("a memory");
        assert_eq!((memory.text, store.embedding(row as usize)), (text, None));
    }
    // An imported memory's id is its row.
    let ids: Vec<u64> = without.iter().map(|&row| u64::from(row)).collect();
    for preset in [Preset::paper(), Preset::reverie()] {
        let (hits, candidates) = ranked(store, &preset, &[], archives);
        assert_eq!((hits, candidates), ranked(&whole, &preset, &ids, archives));
    }
    let (_, candidates) = ranked(store, &Preset::paper(), &[], archives);
    assert_eq!(candidates + without.len(), store.len());
}

fn whole(archive: &str, archives: &Archives) -> Imported {
    let whole = Source::changed(archive, archives, |_, _| ());
    whole.import(Dtype::F32).expect("an import")
}

/// A golden question's hits by key, and the number of candidates.
fn ranked(
    store: &Snapshot,
    preset: &Preset,
    exclude: &[u64],
    archives: &Archives,
) -> (Vec<(String, Hit)>, usize) {
    let golden = archives.folder("../golden/reverie/july1_s12_maria__one.json");
    let golden = json::read(&golden);
    let embedding = json::each(&golden["queries"][0], "vector", json::single);
    let preset = Preset {
        k: usize::MAX,
        ..*preset
    };
    let filter = Filter {
        exclude,
        ..Filter::default()
    };
    let request = Ask {
        filter: &filter,
        ..Ask::new(
            &embedding,
            json::micros(json::text(&golden, "curr_time")),
            &preset,
        )
    };
    let mut workspace = Workspace::with_kernel(crate::common::best_kernel());
    let mut ranking = Ranking::default();
    stream::rank(store, &request, Par::Serial, &mut workspace, &mut ranking).expect("a ranking");
    let key = |hit: &Hit| {
        let key = store.memory(hit.row).expect("a memory").key;
        (key.expect("a key").to_owned(), Hit { row: 0, ..*hit })
    };
    assert_eq!(ranking.hits.len(), ranking.candidates);
    (ranking.hits.iter().map(key).collect(), ranking.candidates)
}
