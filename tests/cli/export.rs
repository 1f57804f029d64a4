//! `memorank export` and `memorank import memorank`.

use crate::stage::{Stage, files, overwrite, run, state};
use serde_json::Value;
use std::fs;

// B95
#[test]
fn an_export_is_imported_and_exported_as_the_same_files() {
    let stage = Stage::g();
    let at = |name: &str| stage.at(name);
    run(["delete", &at("G"), "g2"]).ok();
    stage.ask_g(&["--touch", "-k", "1", "--now", "2023-02-14T00:00:00Z"]);
    let before = state(&stage.path("G"));
    let document = run(["export", &at("G"), &at("first"), "--json"]).json();
    assert_eq!(state(&stage.path("G")), before);
    let names: Vec<_> = files(&stage.path("first"))
        .into_iter()
        .map(|(name, bytes)| (name, bytes.len() as u64))
        .collect();
    let bytes: u64 = names.iter().map(|(_, bytes)| bytes).sum();
    let names: Vec<_> = names.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["embeddings.npy", "memories.jsonl", "store.json"]);
    for (name, value) in [
        ("store", Value::from(at("G"))),
        ("dir", at("first").into()),
        ("memories", 2.into()),
        ("with_vector", 2.into()),
        ("without_vector", 0.into()),
        ("dim", 2.into()),
        ("dtype", "f32".into()),
        ("touches", 1.into()),
        ("bytes", bytes.into()),
    ] {
        assert_eq!(document[name], value, "{name}");
    }

    let document = run(["import", "memorank", &at("first"), &at("S"), "--json"]).json();
    assert_eq!(
        (&document["format"], &document["memories"]),
        (&"memorank".into(), &2.into())
    );
    let text = run(["export", &at("S"), &at("second")]).ok();
    let expected = format!(
        "{}: 2 memories, 2 of them with a vector, 1 touches, {bytes} bytes\n",
        at("second")
    );
    assert_eq!(text, expected);
    assert_eq!(files(&stage.path("first")), files(&stage.path("second")));
    // The same answers, and the same next id.
    let ask = |store: &str| {
        let mut answer = stage
            .query(store, &["--vector", &at("q.json"), "--json"])
            .json();
        answer["store"].take();
        answer
    };
    assert_eq!(ask("G"), ask("S"));
    assert_eq!(run(["info", &at("S"), "--json"]).json()["next_id"], 3);
    // The tolerant import reads it as well.
    let matrix = at("first/embeddings.npy");
    let lines = at("first/memories.jsonl");
    run(["import", "npy", &matrix, &at("N"), "--jsonl", &lines]).ok();
}

#[test]
fn damage_and_what_is_there_are_not_written_over() {
    let stage = Stage::g();
    let (store, dir) = (stage.at("G"), stage.at("plain"));
    run(["export", &store, &dir]).ok();
    let before = state(&stage.path("plain"));
    for name in ["plain", "G", "q.json"] {
        let err = run(["export", &store, &stage.at(name)]).fails(1);
        assert!(err.contains("already exists"), "{err}");
    }
    assert_eq!(state(&stage.path("plain")), before);

    overwrite(&stage.path("plain/memories.jsonl"), 9, b"x");
    let err = run(["import", "memorank", &dir, &stage.at("S")]).fails(1);
    assert!(err.contains("memories.jsonl, line 1"), "{err}");
    overwrite(&stage.path("G/embedding.f32"), 0, b"x");
    let err = run(["export", &store, &stage.at("S")]).fails(3);
    assert!(err.contains("embedding.f32: byte 0: checksum"), "{err}");
    assert!(!fs::exists(stage.path("S")).unwrap());
}
