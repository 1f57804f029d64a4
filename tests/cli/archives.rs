//! Real archives (needs MEMORANK_TEST_DATA).

use crate::import_common::data;
use crate::stage::{Stage, ids, run, scores};
use memorank::scoring::{Candidates, Components, Preset, Query, Workspace, relevance_into};
use memorank::store::{Agent, Store};
use memorank::{Par, oracle, stream};
use std::path::Path;

fn import(stage: &Stage, data: &Path, name: &str) -> String {
    let source = data.join("data/reverie").join(name);
    let store = stage.at(name);
    run(["import", "reverie", source.to_str().unwrap(), &store]).ok();
    store
}

#[test]
fn the_query_of_the_readme_ranks_as_the_oracle_does() {
    let Some(data) = data() else { return };
    let stage = Stage::new();
    let path = import(&stage, &data, "july1_s12_maria");
    let asked = [
        "--like",
        "node_219",
        "--preset",
        "paper",
        "--now",
        "2023-02-13T15:17:40Z",
    ];
    let document = stage
        .query("july1_s12_maria", &[&asked[..], &["--json"]].concat())
        .json();

    let snapshot = Store::open_read_only(&path).unwrap().snapshot();
    let row = snapshot.row_of_key("node_219").unwrap().unwrap();
    let embedding = snapshot.embedding(row).unwrap();
    let columns = stream::columns(&snapshot, Agent::OWN).unwrap();
    assert_eq!(columns.len(), 1);
    let preset = Preset::paper();
    let query = Query::new(&embedding, document["now_us"].as_i64().unwrap(), preset.k);
    // Given our cosines, the oracle has the same order and totals.
    let mut cosines = vec![0.0; snapshot.len()];
    let mut workspace = Workspace::new();
    let candidates = Candidates::All;
    relevance_into(
        &columns,
        &[&embedding],
        candidates,
        Par::Serial,
        &mut workspace,
        &mut cosines,
    )
    .unwrap();
    let (last_access, importance) = (columns[0].last_access().unwrap(), columns[0].importance());
    let fed = Components::new(&cosines, last_access, importance).unwrap();
    let expected = oracle::rank_components(&[fed], &query, &preset.scoring).unwrap();
    let expected_ids: Vec<_> = expected
        .hits
        .iter()
        .map(|hit| snapshot.id(hit.row))
        .collect();
    assert_eq!(ids(&document), expected_ids);
    for (found, hit) in scores(&document).into_iter().zip(&expected.hits) {
        assert!((found - hit.score).abs() <= 1e-12);
    }
    // And with its own, within what f32 cosines do to a min-max.
    let exact = oracle::rank(&columns, &query, &preset.scoring).unwrap();
    for (found, hit) in scores(&document).into_iter().zip(&exact.hits) {
        assert!((found - hit.score).abs() <= 1e-5);
    }

    let text = stage.query("july1_s12_maria", &asked).ok();
    assert!(
        text.starts_with("267 candidates of 267 memories, preset paper"),
        "{text}"
    );
    let first = &document["hits"][0];
    for field in ["key", "text"] {
        assert!(
            text.lines()
                .nth(3)
                .unwrap()
                .contains(first[field].as_str().unwrap()),
            "{text}"
        );
    }
    assert_eq!(text.lines().count(), 3 + 30);
}

#[test]
fn chinese_texts_are_aligned_by_columns() {
    use unicode_width::UnicodeWidthStr;
    let Some(data) = data() else { return };
    let stage = Stage::new();
    import(&stage, &data, "zh25_ayesha");
    let text = stage
        .query("zh25_ayesha", &["--like", "node_20", "-k", "226"])
        .ok();
    let header = text.lines().nth(2).unwrap();
    let column = header.find("memory").unwrap();
    let mut cut = 0;
    for line in text.lines().skip(3) {
        let at = line.find("node_").unwrap();
        assert_eq!(line[..at].width(), column, "{line}");
        let memory = line[at..].split_once("  ").unwrap().1.trim_start();
        assert!(memory.width() <= 60, "{line}");
        cut += usize::from(memory.ends_with('…'));
    }
    assert!(cut > 0);
}

// B39
#[test]
fn the_empty_archive_is_an_empty_store() {
    let Some(data) = data() else { return };
    let stage = Stage::new();
    let store = import(&stage, &data, "base_empty_isabella");
    let zeros = vec!["1"; 1536].join(",");
    let vector = stage.write("q.json", format!("[{zeros}]"));
    let document = stage
        .query("base_empty_isabella", &["--vector", &vector, "--json"])
        .json();
    assert_eq!(
        (ids(&document), &document["candidates"]),
        (vec![], &0.into())
    );
    assert_eq!(run(["info", &store, "--json"]).json()["memories"], 0);
    run(["verify", &store]).ok();
}

#[test]
fn every_archive_is_imported_asked_and_sound() {
    let Some(data) = data() else { return };
    let stage = Stage::new();
    let folders = std::fs::read_dir(data.join("data/reverie"))
        .unwrap()
        .map(|e| e.unwrap());
    for folder in folders.filter(|e| e.path().is_dir()) {
        let name = folder.file_name().into_string().unwrap();
        let store = import(&stage, &data, &name);
        assert_eq!(run(["verify", &store, "--json"]).json()["sound"], true);
        if name == "base_empty_isabella" {
            continue;
        }
        for preset in Preset::NAMES {
            let document = stage
                .query(&name, &["--like", "node_2", "--preset", preset, "--json"])
                .json();
            assert!(scores(&document).iter().all(|score| score.is_finite()));
            stage
                .query(&name, &["--like", "node_2", "--preset", preset])
                .ok();
        }
        run(["show", &store, "node_2"]).ok();
    }
    let agent = data.join("data/genagents");
    let store = stage.at("agent");
    run(["import", "genagents", agent.to_str().unwrap(), &store]).ok();
    let document = stage
        .query("agent", &["--like", "5", "--preset", "genagents", "--json"])
        .json();
    assert_eq!(document["candidates"], 116);
    assert_eq!(ids(&document).len(), 116);
}
