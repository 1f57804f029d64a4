//! B99: every flag of `--help` is accepted and changes what it names.

use crate::stage::{Stage, ids, run};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The long flags that a command's help lists.
fn listed(command: &[&str]) -> BTreeSet<String> {
    let help = run([command, &["--help"]].concat()).ok();
    let lines = help
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'));
    let flags = lines.filter_map(|line| line.split("--").nth(1));
    flags
        .map(|flag| flag.split([' ', ',']).next().unwrap().to_owned())
        .filter(|flag| flag != "help")
        .collect()
}

/// The flags in `tried` are all there are.
#[track_caller]
fn complete(command: &[&str], tried: &[&str]) {
    let tried: BTreeSet<_> = tried.iter().map(|flag| flag.to_string()).collect();
    assert_eq!(listed(command), tried, "{command:?}");
}

#[test]
fn flags_of_query() {
    let stage = Stage::g();
    let vectors = stage.write("two.json", "[[1, 0], [0, 1]]");
    let base = stage.ask_g(&[]);
    let changed = |args: &[&str], at: &str, expected: Value| {
        let document = stage.ask_g(args);
        assert_eq!(document.pointer(at), Some(&expected), "{args:?}");
        assert_ne!(base.pointer(at), Some(&expected), "{args:?}");
    };
    changed(&["--preset", "genagents"], "/settings/k", json!(120));
    changed(
        &["--relevance", "2"],
        "/settings/scoring/weights/relevance",
        json!(2.0),
    );
    changed(
        &["--recency", "0"],
        "/settings/scoring/weights/recency",
        json!(0.0),
    );
    changed(
        &["--importance", "1e-3"],
        "/settings/scoring/weights/importance",
        json!(1e-3),
    );
    changed(
        &["--decay", "0.5"],
        "/settings/scoring/recency/age/decay",
        json!(0.5),
    );
    changed(&["--decay", "1"], "/ranges/recency/min", json!(1.0));
    changed(&["--k", "2"], "/settings/k", json!(2));
    assert_eq!(ids(&stage.ask_g(&["-k", "2"])), [1, 0]);
    changed(
        &["--now", "2023-03-01T00:00:00Z"],
        "/now",
        json!("2023-03-01T00:00:00Z"),
    );
    changed(&["--touch"], "/touched", json!(3));
    let reverie = stage.ask_g(&["--preset", "reverie", "--decay", "0.5"]);
    assert_eq!(
        reverie["settings"]["scoring"]["recency"],
        json!({"position": {"decay": 0.5}})
    );

    let ask = |args: &[&str]| stage.query("G", &[args, &["--json"]].concat()).json();
    let of = |args: &[&str]| ids(&ask(args));
    assert_eq!(of(&["--vector", &vectors]), [1, 0, 2]);
    assert_eq!(of(&["--vector", &vectors, "--relevance", "9"]), [0, 1, 2]);
    assert_eq!(
        of(&[
            "--vector",
            &vectors,
            "--relevance",
            "9",
            "--vector-index",
            "1"
        ]),
        [2, 1, 0]
    );
    assert_eq!(of(&["--like", "g2", "--relevance", "9"]), [2, 1, 0]);
    assert_eq!(of(&["--like", "g2", "--exclude-self"]), [1, 0]);
    assert_eq!(
        ask(&["--like", "g0", "--threads", "2"]),
        ask(&["--like", "g0"])
    );
    let (source, store) = (stage.at("G-source.npy"), stage.at("M"));
    run(["import", "npy", &source, &store, "--model", "a"]).ok();
    stage.query("M", &["--like", "g0", "--model", "a"]).ok();
    stage.query("M", &["--like", "g0", "--model", "b"]).fails(1);
    // Filters, agents, questions, budgets and replays have files of their own.
    let written = ["queries", "touch", "sequential", "snapshot"];
    complete(&["query"], &[FILTERS, QUESTION, WANTED, &written].concat());
    complete(&["replay"], &[FILTERS, QUESTION, WANTED].concat());
    complete(&["history"], &["keep", "limit", "agent", "json"]);
    complete(&["explain"], &[FILTERS, QUESTION].concat());
    let list = ["order", "reverse", "limit", "agent", "now", "json"];
    complete(&["list"], &[FILTERS, &list].concat());
}

const FILTERS: &[&str] = &[
    "kind",
    "created-from",
    "created-until",
    "accessed-from",
    "accessed-until",
    "unexpired",
    "contains",
    "ignore-case",
    "only",
    "exclude",
    "mask",
];

const WANTED: &[&str] = &[
    "pin",
    "order",
    "budget",
    "count",
    "overflow",
    "explain",
    "touch-if-older",
];

const QUESTION: &[&str] = &[
    "vector",
    "like",
    "text",
    "exclude-self",
    "vector-index",
    "model",
    "preset",
    "scoring",
    "relevance",
    "recency",
    "importance",
    "decay",
    "k",
    "now",
    "agent",
    "future",
    "superseded",
    "threads",
    "json",
];

#[test]
fn the_readme_tells_of_every_flag_of_query() {
    let readme = include_str!("../../README.md");
    let (_, table) = readme.split_once("| of `query` | flags |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let flag = |text: &str| {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '-');
        text[..text.len() - rest.len()].to_owned()
    };
    let told: BTreeSet<_> = table.split("`--").skip(1).map(flag).collect();
    let mut flags = listed(&["query"]);
    // Beside the table.
    for other in [
        "vector",
        "vector-index",
        "exclude-self",
        "model",
        "k",
        "threads",
        "json",
    ] {
        assert!(flags.remove(other), "{other}");
    }
    assert_eq!(told, flags);
}

#[test]
fn flags_of_import() {
    let stage = Stage::g();
    let source = stage.at("G-source.npy");
    let mut n = 0;
    let mut import = |args: &[&str]| -> (Value, Value) {
        n += 1;
        let store = stage.at(&format!("imported{n}"));
        let report = run([&["import"], args, &[&store, "--json"]].concat()).json();
        (report, run(["info", &store, "--json"]).json())
    };
    let npy = ["npy", &source];
    let (report, info) = import(&npy);
    assert_eq!(
        (&report["dtype"], &info["model"]),
        (&json!("f32"), &Value::Null)
    );
    let (report, info) = import(&[
        "npy", &source, "--dtype", "f16", "--model", "m", "--dim", "2",
    ]);
    assert_eq!(
        (&report["dtype"], &info["dtype"]),
        (&json!("f16"), &json!("f16"))
    );
    assert_eq!((&info["model"], &info["dim"]), (&json!("m"), &json!(2)));
    run(["import", "npy", &source, &stage.at("x"), "--dim", "3"]).fails(1);

    let lines = stage.write(
        "other.jsonl",
        "{\"text\": \"other\", \"created\": 1676300400}\n".repeat(3),
    );
    let other = ["npy", &source, "--jsonl", &lines, "--time-unit"];
    for (unit, year) in [
        ("s", "2023-02-13T15:00:00Z"),
        ("ms", "1970-01-20"),
        ("us", "1970-01-01"),
    ] {
        let (report, _) = import(&[&other[..], &[unit]].concat());
        let created = report["first_created"].as_str().unwrap();
        assert!(created.starts_with(year), "{unit}: {created}");
        // B24: a unit that cannot be right is told.
        let told = report["notices"].to_string().contains("time-suspicious");
        assert_eq!(told, unit != "s");
    }

    std::fs::create_dir(stage.path("archive")).unwrap();
    let archive = stage.at("archive");
    stage.write("archive/other.json", "{\"c\": [1, 0, 0]}");
    stage.write("archive/embeddings.json", "{\"c\": [1, 0]}");
    stage.write(
        "archive/nodes.json",
        json!({"node_1": {
            "node_count": 1, "type_count": 1, "type": "event", "depth": 0, "created": "2023-02-13 00:00:00",
            "expiration": null, "subject": "s", "predicate": "p", "object": "o", "description": "c",
            "embedding_key": "c", "poignancy": 3, "keywords": [], "filling": [],
        }})
        .to_string(),
    );
    assert_eq!(import(&["reverie", &archive]).0["dim"], 2);
    let other = [
        "reverie",
        &archive,
        "--embeddings",
        "other.json",
        "--dtype",
        "f16",
        "--model",
        "m",
    ];
    let (report, info) = import(&other);
    assert_eq!(
        (&report["dim"], &report["dtype"], &info["model"]),
        (&json!(3), &json!("f16"), &json!("m"))
    );
    let err = run([
        "import",
        "reverie",
        &archive,
        &stage.at("x"),
        "--embeddings",
        "none.json",
    ])
    .fails(1);
    assert!(err.contains("none.json"), "{err}");
    std::fs::remove_file(stage.path("archive/embeddings.json")).unwrap();
    assert_eq!(import(&["reverie", &archive]).0["dim"], 1536);
    assert_eq!(import(&["reverie", &archive, "--dim", "7"]).0["dim"], 7);

    let node = json!([{
        "node_id": 0, "node_type": "observation", "content": "c", "importance": 85,
        "created": 2, "last_retrieved": 2, "pointer_id": null,
    }]);
    stage.write("archive/nodes.json", node.to_string());
    stage.write("archive/embeddings.json", "{\"c\": [1, 0]}");
    let created = |report: &Value| report["first_created"].clone();
    assert_eq!(
        created(&import(&["genagents", &archive]).0),
        "1970-01-01T02:00:00Z"
    );
    let since = [
        "genagents",
        &archive,
        "--step-zero",
        "2023-02-13T00:00:00Z",
        "--dtype",
        "f16",
    ];
    let (report, info) = import(&[&since[..], &["--model", "m", "--dim", "2"]].concat());
    assert_eq!(
        (created(&report), &info["model"]),
        (json!("2023-02-13T02:00:00Z"), &json!("m"))
    );
    run([
        "import",
        "genagents",
        &archive,
        &stage.at("x"),
        "--step-zero",
        "2023-02-13",
    ])
    .fails(2);

    complete(
        &["import", "npy"],
        &["jsonl", "time-unit", "dtype", "model", "dim", "json"],
    );
    complete(
        &["import", "reverie"],
        &["embeddings", "dtype", "model", "dim", "json"],
    );
    complete(
        &["import", "genagents"],
        &["step-zero", "dtype", "model", "dim", "json"],
    );
}

#[test]
fn flags_of_the_others() {
    let demo = |args: &[&str]| {
        run([&["demo", "--json", "--memories", "20", "--dim", "4"], args].concat()).json()
    };
    let document = demo(&[]);
    assert_eq!(
        (&document["memories"], &document["dim"]),
        (&json!(20), &json!(4))
    );
    assert_eq!(
        (&document["dtype"], &document["seed"]),
        (&json!("f16"), &json!(1))
    );
    let document = demo(&["--dtype", "f32", "--seed", "9", "--threads", "3"]);
    assert_eq!(
        (&document["dtype"], &document["seed"]),
        (&json!("f32"), &json!(9))
    );
    assert_eq!(document["threads"], 3);
    complete(
        &["demo"],
        &["memories", "dim", "dtype", "seed", "threads", "json"],
    );
    complete(&["repair"], &["dim", "dtype", "json"]);
    // Each is given in `add`.
    complete(&["create"], &["model", "dim", "dtype", "json"]);
    complete(
        &["add"],
        &[
            "key",
            "kind",
            "importance",
            "rating",
            "vectors",
            "model",
            "no-vector",
            "created",
            "expiry",
            "evidence",
            "supersedes",
            "json",
        ],
    );
    complete(&["embed"], &["vectors", "model", "json"]);
    complete(&["touch"], &["now", "agent", "json"]);
    complete(&["importance"], &["set", "reset", "agent", "json"]);
    complete(&["show"], &["agent", "json"]);
    complete(&["bench"], &["k", "rounds", "svg", "json"]);
    for command in ["info", "verify", "checkpoint", "compact"] {
        complete(&[command], &["json"]);
    }
    // Each is given in `evidence`.
    complete(&["delete"], &["policy", "dry-run", "json"]);
    let pictures = ["dependants", "limit", "dot", "mermaid", "json"];
    complete(&["evidence"], &pictures);
    complete(
        &["integrity"],
        &["conclusions", "may-cite", "cited", "json"],
    );
    // Each is given in `reflect`.
    let when = ["now", "agent", "threshold", "counted", "force"];
    let models = [
        "chat-command",
        "chat-model",
        "replies",
        "url",
        "embedding-model",
        "check-command",
        "key-env",
    ];
    let how = [
        "newest",
        "questions",
        "insights",
        "least",
        "attempts",
        "shown",
        "similarity",
        "refuse-unchecked",
        "expiry",
        "no-touch",
    ];
    let computed = [
        "preset",
        "scoring",
        "relevance",
        "recency",
        "importance",
        "decay",
        "k",
    ];
    complete(
        &["reflect"],
        &[&when[..], &models, &how, &computed, &["json"]].concat(),
    );
    // Each is given in `eval`, `tune` and `sweep`, and those of questions in `filters` and `agents`.
    let asked = [
        "model",
        "now",
        "agent",
        "threads",
        "future",
        "superseded",
        "json",
    ];
    let drawn = ["resamples", "seed", "svg"];
    complete(
        &["eval"],
        &[FILTERS, &asked, &drawn, &["compare", "measure"]].concat(),
    );
    let tried = [
        "folds",
        "measure",
        "recency",
        "importance",
        "decay",
        "half-life",
        "out",
    ];
    complete(&["tune"], &[FILTERS, &asked, &drawn, &tried].concat());
    complete(
        &["sweep"],
        &[FILTERS, &asked, &computed, &["factors", "svg"]].concat(),
    );
    complete(&[], &["json", "version"]);

    // --json also before the command.
    let stage = Stage::g();
    let store = stage.at("G");
    assert_eq!(
        run(["--json", "info", &store]).json(),
        run(["info", &store, "--json"]).json()
    );
}
