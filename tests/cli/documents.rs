//! The documents of `--json`, and what the README says of them.

use crate::stage::{Stage, T_TEXT, copy, overwrite, run};
use memorank::store::{Agent, NewTouch, Store};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Every command's documents, such that every field occurs.
fn documents() -> Vec<Value> {
    let stage = Stage::new();
    let line = |key: &str| json!({"key": key, "text": key, "created": T_TEXT, "importance": 1});
    let mut first = line("a");
    first["payload"] = json!({"inside": 1});
    first["expiry"] = "2024-01-01T00:00:00Z".into();
    let mut second = line("b");
    // A range that is hardly one.
    second["importance"] = 1.0625.into();
    second["evidence"] = json!(["a", "gone"]);
    second["payload_hex"] = "ff00".into();
    let source = stage.matrix("m", &[[1.0, 0.0], [0.6, 0.8]], &[first, second]);
    let store = stage.at("S");
    let mut all = vec![run(["import", "npy", &source, &store, "--json"]).json()];

    std::fs::create_dir(stage.path("archive")).unwrap();
    let node = json!({"node_1": {
        "node_count": 1, "type_count": 1, "type": "event", "depth": 0, "created": "2023-02-13 00:00:00",
        "expiration": null, "subject": "s", "predicate": "p", "object": "o", "description": "c",
        "embedding_key": "c", "poignancy": 3, "keywords": [], "filling": null, "unknown": 1,
    }});
    stage.write("archive/nodes.json", node.to_string());
    stage.write("archive/embeddings.json", "{\"c\": [1, 0]}");
    let archive = stage.at("archive");
    all.push(run(["import", "reverie", &archive, &stage.at("R"), "--json"]).json());

    let made = stage.at("C");
    for args in [
        &["create", &made, "--json"][..],
        &["add", &made, "a text", "--key", "a", "--json"],
        &["touch", &made, "a", "--json"],
        &["add", &made, "another", "--no-vector", "--json"],
        &["embed", &made, "--json"],
    ] {
        all.push(run(args).json());
    }
    let third = stage.at("D");
    run(["import", "npy", &source, &third]).ok();
    let query = stage.write("q.json", "[1, 0]");
    let questions = stage.write("questions.jsonl", "{\"like\": \"a\"}\n");
    let judged = "{\"vector\": [1, 0], \"relevant\": [\"a\"], \"category\": 1}\n";
    let judged = stage.write("judged.jsonl", judged.repeat(5));
    let scoring = stage.at("scoring.json");
    let text = stage.at("text");
    run(["create", &text]).ok();
    run(["add", &text, "a text"]).ok();
    for args in [
        &["evidence", &third, "a", "--json"][..],
        &["evidence", &third, "b", "--json"],
        &["delete", &third, "a", "--dry-run", "--json"],
        &["delete", &third, "a", "--policy", "keep", "--json"],
        &["evidence", &third, "b", "--json"],
        &["show", &third, "b", "--json"],
        &["checkpoint", &third, "--json"],
        &["compact", &third, "--json"],
        &["query", &store, "--like", "a", "--json"],
        &[
            "query",
            &store,
            "--like",
            "a",
            "--explain",
            "--budget",
            "1",
            "--json",
        ],
        &["query", &store, "--vector", &query, "--json"],
        &["query", &store, "--queries", &questions, "--json"],
        &["explain", &store, "b", "--like", "a", "-k", "1", "--json"],
        &[
            "explain", &store, "b", "--vector", &query, "--only", "a", "--json",
        ],
        &["explain", &text, "0", "--text", "a", "--json"],
        &["query", &text, "--text", "a", "--json"],
        &["list", &store, "--json"],
        &["importance", &third, "b", "--set", "3", "--json"],
        &["export", &store, &stage.at("plain"), "--json"],
        &["show", &store, "a", "--json"],
        &["show", &store, "b", "--json"],
        &["info", &store, "--json"],
        &["eval", &store, &judged, "--json"],
        &["tune", &store, &judged, "--out", &scoring, "--json"],
        &["sweep", &store, &judged, "--scoring", &scoring, "--json"],
        &[
            "query",
            &store,
            "--like",
            "a",
            "--scoring",
            &scoring,
            "--json",
        ],
        &[
            "explain",
            &store,
            "a",
            "--like",
            "a",
            "--scoring",
            &scoring,
            "--json",
        ],
        &["bench", &store, "--rounds", "1", "--json"],
        &["demo", "--memories", "20", "--dim", "2", "--json"],
    ] {
        all.push(run(args).json());
    }
    let faults = run(["integrity", &third, "--json"]);
    all.push(serde_json::from_str(&faults.out).unwrap());
    faults.fails(3);
    let replies = json!([
        "Why?",
        "1. Because (because of 1)\n2. So (because of 1)",
        "7",
        "7"
    ]);
    let replies = stage.write("replies.json", replies.to_string());
    let args = [
        "--threshold",
        "0",
        "--questions",
        "1",
        "--replies",
        &replies,
    ];
    all.push(run([&["reflect", &text, "--json"], &args[..]].concat()).json());
    // What is later, seen from above, is told once.
    all.push(run(["evidence", &text, "1", "--json"]).json());
    all.push(with_unknown_evidence(&stage));
    all.extend(histories(&stage, &source));
    for (name, damaged) in [("lost", "text.bytes"), ("reduced", "key.bytes")] {
        let path = stage.path(name);
        copy(&stage.path("S"), &path);
        overwrite(&path.join(damaged), 0, b"x");
        overwrite(&path.join("journal.1"), 20, b"x");
        let new = format!("{}-new", stage.at(name));
        let repaired = run(["repair", &stage.at(name), &new, "--json"]);
        all.push(serde_json::from_str(&repaired.out).unwrap());
        repaired.fails(3);
    }
    let journal = std::fs::read(stage.path("S/journal.1")).unwrap();
    stage.write("S/journal.1", [&journal[..], b"half"].concat());
    overwrite(&stage.path("S/id.u64"), 0, b"x");
    let damaged = run(["verify", &store, "--json"]);
    all.push(serde_json::from_str(&damaged.out).unwrap());
    damaged.fails(3);
    all
}

/// The evidence of a memory that cites one that never was, and one twice.
fn with_unknown_evidence(stage: &Stage) -> Value {
    let path = stage.path("E");
    let options = memorank::store::CreateOptions {
        dim: 1.try_into().unwrap(),
        dtype: memorank::kernel::Dtype::F32,
        model: None,
    };
    let store = Store::create(&path, &options).unwrap();
    let mut bulk = store.bulk().unwrap();
    bulk.allow_any_evidence();
    let evidence = [9, 0, 0].map(memorank::store::Reference::Id);
    for evidence in [&[][..], &evidence] {
        let memory = memorank::store::NewMemory {
            key: None,
            kind: memorank::store::Kind::REFLECTION,
            text: "",
            embedding: None,
            created: 0,
            last_access: 0,
            expiry: None,
            importance: 1.0,
            evidence,
            depth: 0,
            supersedes: None,
            payload: b"",
        };
        bulk.push(&memory).unwrap();
    }
    bulk.commit().unwrap();
    store.close().unwrap();
    run(["evidence", &stage.at("E"), "1", "--json"]).json()
}

/// What `history` and `replay` say, such that every field of an answer occurs.
fn histories(stage: &Stage, source: &str) -> Vec<Value> {
    let (vectors, texts, query) = (stage.at("H"), stage.at("text"), stage.at("q.json"));
    let scoring = stage.at("scoring.json");
    run(["import", "npy", source, &vectors]).ok();
    let mut all = Vec::new();
    for args in [
        &[&vectors, "--like", "a", "--explain", "--budget", "1"][..],
        &[&vectors, "--vector", &query, "--scoring", &scoring],
        &[&texts, "--text", "a"],
    ] {
        let (store, asked) = (args[0], &args[1..]);
        run(["history", store, "--keep", "all"]).ok();
        let document = run([&["query", store, "--touch", "--json"], asked].concat()).json();
        let sequence = document["sequence"].to_string();
        all.push(run([&["replay", store, &sequence, "--json"], asked].concat()).json());
    }
    run(["touch", &vectors, "b"]).ok();
    let store = Store::open(&vectors).unwrap();
    let touch = NewTouch {
        agent: Agent::OWN,
        ids: &[0],
        now: 0,
        note: b"\xff",
        seen: None,
    };
    assert!(store.touch_with(&touch).unwrap().is_some());
    store.close().unwrap();
    all.push(run(["history", &vectors, "--json"]).json());
    all
}

/// The names of all fields. What is inside of these is not ours, or is told at the type's docs.
fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| fields(item, into)),
        Value::Object(object) => {
            for (name, value) in object {
                into.insert(name.clone());
                let hex = name == "payload" && value.get("hex").is_some();
                // Answers are documents of their own.
                if ![
                    "payload", "settings", "scoring", "kinds", "filter", "answers", "attempts",
                    "counts",
                ]
                .contains(&name.as_str())
                    || hex
                {
                    fields(value, into);
                }
            }
        }
        _ => {}
    }
}

/// The README's table: a schema's name, and every name in its row; that of another schema stands for the names there.
fn told() -> BTreeMap<String, BTreeSet<String>> {
    let readme = include_str!("../../README.md");
    let rows = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `memorank."));
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let (name, row) = row.split_once('`').unwrap();
        let mut names = BTreeSet::from(["schema".to_owned()]);
        for named in row.split('`').skip(1).step_by(2) {
            match told.get(named) {
                Some(above) => names.extend(above.iter().cloned()),
                None => drop(names.insert(named.to_owned())),
            }
        }
        told.insert(format!("memorank.{name}"), names);
    }
    told
}

#[test]
fn the_fields_are_those_that_the_readme_lists() {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for document in documents() {
        let schema = document["schema"].as_str().unwrap().to_owned();
        fields(&document, found.entry(schema).or_default());
    }
    let told = told();
    assert!(found.keys().eq(told.keys()), "{found:?} {told:?}");
    for (schema, found) in &found {
        let told = &told[schema];
        let missing: Vec<_> = found.difference(told).collect();
        let invented: Vec<_> = told.difference(found).collect();
        assert!(
            missing.is_empty(),
            "{schema}: the README does not tell of {missing:?}"
        );
        assert!(
            invented.is_empty(),
            "{schema}: the README tells of {invented:?}"
        );
    }
}

#[test]
fn each_command_has_its_schema() {
    let schemas: BTreeSet<_> = documents()
        .iter()
        .map(|d| d["schema"].to_string())
        .collect();
    let expected = [
        "add",
        "bench",
        "checkpoint",
        "compact",
        "create",
        "delete",
        "demo",
        "embed",
        "eval",
        "evidence",
        "explain",
        "export",
        "history",
        "import",
        "importance",
        "info",
        "integrity",
        "list",
        "queries",
        "query",
        "reflect",
        "repair",
        "replay",
        "show",
        "sweep",
        "touch",
        "tune",
        "verify",
    ];
    assert!(
        schemas
            .iter()
            .eq(&expected.map(|name| format!("\"memorank.{name}/1\""))),
        "{schemas:?}"
    );
}

// B93
#[test]
fn no_number_is_null() {
    fn numbers(value: &Value, name: &str, seen: &mut usize) {
        match value {
            Value::Object(object) => object
                .iter()
                .for_each(|(name, value)| numbers(value, name, seen)),
            Value::Array(items) => items.iter().for_each(|item| numbers(item, name, seen)),
            Value::Number(_) => *seen += 1,
            Value::Null => {
                // Texts and things that may be absent. With `reverie`, recency has no ages. What brings nothing in is
                // no number.
                let absent = [
                    "least_importance",
                    "oldest_last_access",
                    "relevance_weight",
                    "recency_weight",
                    "importance_weight",
                    "ages",
                    "key",
                    "sequence",
                    "note",
                    "model",
                    "expiry",
                    "expiry_us",
                    "supersedes",
                    "superseded_by",
                    "payload",
                    "before",
                    "authors_depth",
                    "failure",
                    "depth_in_file",
                ];
                assert!(absent.contains(&name), "{name} is null");
            }
            _ => {}
        }
    }
    let mut seen = 0;
    documents()
        .iter()
        .for_each(|document| numbers(document, "", &mut seen));
    assert!(seen > 100);

    let stage = Stage::new();
    let line = json!({"text": "alone", "created": T_TEXT, "importance": 1});
    stage.import("one", &[[1.0, 0.0]], &[line]);
    for preset in memorank::scoring::Preset::NAMES {
        let args = [
            "--like",
            "0",
            "--json",
            "--preset",
            preset,
            "--decay",
            "0",
            "--now",
            "9000-01-01T00:00:00Z",
        ];
        numbers(&stage.query("one", &args).json(), "", &mut seen);
    }
}
