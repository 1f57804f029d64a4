//! The integrity of every archive of the shared data is what its files and README say.

use crate::common::shared_data;
use memorank::import::{Options, genagents, reverie};
use memorank::kernel::Dtype;
use memorank::store::{Kind, Store};
use memorank::stream::evidence::{Citation, Graph, Integrity, Rules};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn archives(data: &Path) -> Vec<PathBuf> {
    let folders = ["data/reverie", "data/reverie_nodes_only"]
        .into_iter()
        .flat_map(|folder| {
            let entries = fs::read_dir(data.join(folder)).unwrap();
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.is_dir())
        });
    let mut folders: Vec<_> = folders.collect();
    folders.sort();
    folders
}

fn imported(folder: &Path) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    reverie(folder, &path, &Options::default(), &mut |_, _| ()).unwrap();
    let store = Store::open_read_only(&path).unwrap();
    (dir, store)
}

/// What the facts of the README say of an archive: text in place of a list is a broken citation, null and an empty
/// list are none, a chat's utterances are no evidence, and events that cite are of the wrong kind.
fn predicted(nodes: &Map<String, Value>) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    let mut count = |name, n| {
        if n > 0 {
            *counts.entry(name).or_insert(0) += n;
        }
    };
    for node in nodes.values().filter(|node| node["type"] != "chat") {
        let cited = match &node["filling"] {
            Value::String(_) => {
                count("dangling", 1);
                1
            }
            Value::Array(cited) => {
                let dangling = |id: &&Value| !nodes.contains_key(id.as_str().unwrap());
                count("dangling", cited.iter().filter(dangling).count());
                cited.len()
            }
            Value::Null => 0,
            other => panic!("{other}"),
        };
        match node["type"].as_str().unwrap() {
            "thought" => count("empty", usize::from(cited == 0)),
            "event" => count("wrong-kind", usize::from(cited > 0)),
            other => panic!("{other}"),
        }
    }
    counts
}

fn integrity(store: &Store, rules: &Rules) -> Integrity {
    Graph::of(&store.snapshot())
        .unwrap()
        .integrity(rules)
        .unwrap()
}

#[test]
fn an_imported_archive_has_the_faults_that_its_file_shows_and_no_others() {
    let Some(data) = shared_data() else { return };
    let (mut dangling, mut deepest) = (0, 0);
    let archives = archives(&data);
    for folder in &archives {
        let nodes = json(&folder.join("nodes.json"));
        let nodes = nodes.as_object().unwrap();
        let (_dir, store) = imported(folder);
        let snapshot = store.snapshot();
        let found = integrity(&store, &Rules::default());
        assert_eq!(found.memories, nodes.len());
        let counts = found.counts();
        assert_eq!(counts, predicted(nodes), "{folder:?}");
        dangling += counts.get("dangling").copied().unwrap_or(0);

        let mut events_may = counts;
        events_may.remove("wrong-kind");
        let rules = Rules {
            may_cite: vec![Kind::OBSERVATION],
            ..Rules::default()
        };
        assert_eq!(integrity(&store, &rules).counts(), events_may, "{folder:?}");

        // Depths are those of the files, and none is a mismatch.
        for row in 0..snapshot.rows() {
            let memory = snapshot.memory(row).unwrap();
            assert_eq!(
                nodes[memory.key.unwrap()]["depth"],
                memory.depth,
                "{folder:?} {:?}",
                memory.key
            );
            deepest = deepest.max(memory.depth);
        }
    }
    assert_eq!((archives.len(), deepest), (16, 10));
    // 14 texts in the small archives, 127 in the large ones.
    assert_eq!(dangling, 141);
}

#[test]
fn the_graph_of_an_archive_has_the_references_of_its_file_in_order_both_ways() {
    let Some(data) = shared_data() else { return };
    for folder in archives(&data) {
        let nodes = json(&folder.join("nodes.json"));
        let nodes = nodes.as_object().unwrap();
        let (_dir, store) = imported(&folder);
        let snapshot = store.snapshot();
        let graph = Graph::of(&snapshot).unwrap();
        let id_of = |key: &str| {
            snapshot
                .row_of_key(key)
                .unwrap()
                .map(|row| snapshot.id(row))
        };
        let mut cited_by: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for row in 0..snapshot.rows() {
            let id = snapshot.id(row);
            let memory = snapshot.memory(row).unwrap();
            let node = &nodes[memory.key.unwrap()];
            let expected: Vec<Citation<'_>> = match &node["filling"] {
                Value::String(text) => vec![Citation::Missing(text)],
                Value::Array(cited) if node["type"] != "chat" => {
                    let live = |key: &Value| Citation::Live(id_of(key.as_str().unwrap()).unwrap());
                    cited.iter().map(live).collect()
                }
                _ => vec![],
            };
            assert_eq!(graph.cites(id).collect::<Vec<_>>(), expected);
            for citation in expected {
                if let Citation::Live(cited) = citation {
                    let citing = cited_by.entry(cited).or_default();
                    if citing.last() != Some(&id) {
                        citing.push(id);
                    }
                }
            }
        }
        for id in 0..snapshot.next_id() {
            let expected = cited_by.remove(&id).unwrap_or_default();
            assert_eq!(graph.cited_by(id).collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn depths_are_those_of_the_authors_loader() {
    let Some(data) = shared_data() else { return };
    let mut archives = 0;
    for entry in fs::read_dir(data.join("golden/loader")).unwrap() {
        let golden = json(&entry.unwrap().path());
        let Some(nodes) = golden["nodes"].as_array() else {
            continue; // the dangling case, below
        };
        archives += 1;
        let (_dir, store) = imported(&data.join("data").join(golden["archive"].as_str().unwrap()));
        let counts = integrity(&store, &Rules::default()).counts();
        assert_eq!(counts.get("depth-mismatch"), None);
        let snapshot = store.snapshot();
        for node in nodes {
            let row = snapshot
                .row_of_key(node["id"].as_str().unwrap())
                .unwrap()
                .unwrap();
            assert_eq!(node["depth"], snapshot.depth(row));
        }
    }
    assert_eq!(archives, 10);
}

/// The loader would fall back to 1 there; here the rest of the evidence gives the depth.
#[test]
fn a_broken_reference_is_told_and_leaves_the_depth_as_the_rest_gives_it() {
    let Some(data) = shared_data() else { return };
    let golden = json(&data.join("golden/loader/july1_dangling.json"));
    let edited = golden["edited_node"].as_str().unwrap();
    let from = data.join("data").join(golden["archive"].as_str().unwrap());
    let mut nodes = json(&from.join("nodes.json"));
    nodes[edited]["filling"]
        .as_array_mut()
        .unwrap()
        .push("node_9999".into());
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("nodes.json"), nodes.to_string()).unwrap();
    let (_dir, store) = imported(folder.path());
    let counts = integrity(&store, &Rules::default()).counts();
    let expected = predicted(nodes.as_object().unwrap());
    assert_eq!((&counts, counts["dangling"]), (&expected, 1));
    let snapshot = store.snapshot();
    for row in 0..snapshot.rows() {
        let key = snapshot.memory(row).unwrap().key.unwrap();
        assert_eq!(nodes[key]["depth"], snapshot.depth(row), "{key}");
    }
}

#[test]
fn an_archive_of_the_later_code_has_no_fault_but_reflections_without_evidence() {
    let Some(data) = shared_data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let folder = data.join("data/genagents");
    genagents(&folder, &path, &Options::default(), &mut |_, _| ()).unwrap();
    let store = Store::open_read_only(&path).unwrap();
    let nodes = json(&folder.join("nodes.json"));
    let empty = nodes.as_array().unwrap().iter().filter(|node| {
        let cited = &node["pointer_id"];
        node["node_type"] == "reflection"
            && (cited.is_null() || cited.as_array().is_some_and(Vec::is_empty))
    });
    let expected = match empty.count() {
        0 => BTreeMap::new(),
        empty => BTreeMap::from([("empty", empty)]),
    };
    assert_eq!(store.snapshot().dtype(), Dtype::F32);
    assert_eq!(integrity(&store, &Rules::default()).counts(), expected);
}
