//! Several questions in one call, and several stores.

use crate::stage::{HOUR, Ran, Stage, T, copy, ids, run, state, time};
use serde_json::{Value, json};

/// A stage with a store that each call may change: `copies` of the town.
fn towns(copies: &[&str]) -> Stage {
    let stage = Stage::town();
    for name in copies {
        copy(&stage.path("town"), &stage.path(name));
    }
    stage
}

/// `memorank query STORE --now T+1h --json ...`, and what it says but for the store's name and record.
fn ask(stage: &Stage, store: &str, args: &[&str]) -> Value {
    let now = time(T + HOUR);
    let mut document = stage
        .query(store, &[&["--now", &now, "--json"], args].concat())
        .json();
    forget_place(&mut document);
    document
}

fn forget_place(document: &mut Value) {
    for name in ["store", "sequence"] {
        if let Some(place) = document.get_mut(name) {
            *place = Value::Null;
        }
    }
    let answers = document.get_mut("answers").and_then(Value::as_array_mut);
    answers.into_iter().flatten().for_each(forget_place);
}

const TOUCH: [&str; 3] = ["-k", "2", "--touch"];

// B30: what one question sees of the other's touches is said, and is what single calls in that order see.
#[test]
fn questions_in_sequence_are_single_calls_in_that_order() {
    let stage = towns(&["together", "single", "snapshot"]);
    // The first touches what the second would find older.
    let keys = ["c", "a", "b", "c"];
    let like: Vec<&str> = keys.iter().flat_map(|key| ["--like", key]).collect();
    let together = ask(
        &stage,
        "together",
        &[&like[..], &TOUCH, &["--sequential"]].concat(),
    );
    assert_eq!(together["schema"], "memorank.queries/1");
    assert_eq!(together["order"], "sequential");
    let single = keys.map(|key| ask(&stage, "single", &[&["--like", key], &TOUCH[..]].concat()));
    assert_eq!(together["answers"], json!(single));
    // The last one sees what the first touched.
    assert_ne!(single[0]["hits"], single[3]["hits"]);

    let at_once = ask(
        &stage,
        "snapshot",
        &[&like[..], &TOUCH, &["--snapshot"]].concat(),
    );
    assert_eq!(at_once["order"], "snapshot");
    assert_ne!(at_once["answers"], together["answers"]);
    for (key, answer) in keys.iter().zip(at_once["answers"].as_array().unwrap()) {
        let mut alone = ask(&stage, "town", &["--like", key, "-k", "2"]);
        let mut answer = answer.clone();
        assert_eq!(answer["touched"], 2);
        for document in [&mut alone, &mut answer] {
            document["touched"] = Value::Null;
            document["settings"]["touch"] = Value::Null;
            for hit in document["hits"].as_array_mut().unwrap() {
                hit["last_access"] = Value::Null;
            }
        }
        assert_eq!(answer, alone);
    }
    // Both leave the same last accesses where the same was returned.
    let listed = |store: &str| {
        let mut document = run(["list", &stage.at(store), "--json"]).json();
        forget_place(&mut document);
        document
    };
    assert_eq!(listed("together"), listed("single"));
}

#[test]
fn questions_that_touch_nothing_change_no_byte_and_see_one_state() {
    let stage = Stage::town();
    let before = state(&stage.path("town"));
    let document = ask(&stage, "town", &["--like", "a", "--like", "b"]);
    assert_eq!(document["order"], "snapshot");
    let single = ["a", "b"].map(|key| ask(&stage, "town", &["--like", key]));
    assert_eq!(document["answers"], json!(single));
    assert_eq!(state(&stage.path("town")), before);
    // Each leaves out its own.
    let others = ask(
        &stage,
        "town",
        &["--like", "a", "--like", "b", "--exclude-self"],
    );
    let mut others = others["answers"].as_array().unwrap().iter().map(ids);
    let mut sorted = || {
        let mut ids = others.next().unwrap();
        ids.sort_unstable();
        ids
    };
    assert_eq!([sorted(), sorted()], [[1, 2, 3], [0, 2, 3]]);
}

#[test]
fn a_file_of_questions_holds_texts_keys_vectors_agents_and_moments() {
    let stage = Stage::new();
    let store = stage.at("S");
    run(["create", &store, "--dim", "4"]).ok();
    let at = time(T);
    for text in ["a party at the cafe", "Klaus reads", "the cafe is busy"] {
        run(["add", &store, text, "--created", &at]).ok();
    }
    let later = time(T + 9 * HOUR);
    let lines = [
        json!({"text": "cafe"}),
        json!({"like": "1", "agent": 7}),
        json!({"vector": [0.5, 0, 0, 1], "now": later}),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n\n");
    let file = stage.write("questions.jsonl", lines);
    let document = ask(&stage, "S", &["--queries", &file, "-k", "2"]);
    let vector = stage.write("v.json", "[0.5, 0, 0, 1]");
    let mut third = stage
        .query(
            "S",
            &["--vector", &vector, "--now", &later, "-k", "2", "--json"],
        )
        .json();
    forget_place(&mut third);
    third["query"] = json!({"vector": {"file": file, "index": 2}});
    let single = [
        ask(&stage, "S", &["--text", "cafe", "-k", "2"]),
        ask(&stage, "S", &["--like", "1", "--agent", "7", "-k", "2"]),
        third,
    ];
    assert_eq!(document["answers"], json!(single));

    // Of one line it is still several answers.
    let file = stage.write("one.jsonl", "{\"text\": \"cafe\"}");
    let document = ask(
        &stage,
        "S",
        &["--queries", &file, "--touch", "--sequential"],
    );
    assert_eq!(document["answers"].as_array().unwrap().len(), 1);
    assert_eq!(document["answers"][0]["touched"], 3);
}

// B93, B08
#[test]
fn a_line_that_is_no_question_is_an_error_that_names_it() {
    let stage = Stage::town();
    let good = "{\"like\": \"a\"}\n";
    for (line, told) in [
        ("", "no question"),
        ("\n \n", "no question"),
        ("{}", "line 1: one of"),
        ("{\"text\": \"a\", \"like\": \"a\"}", "line 1: one of"),
        ("{\"like\": \"a\", \"k\": 3}", "unknown field `k`"),
        ("[1, 0]", "line 1: "),
        ("x", "line 1: "),
        ("{\"vector\": [null, 1]}", "line 1: "),
        ("{\"vector\": [1e400, 1]}", "line 1: "),
        ("{\"vector\": [NaN, 1]}", "line 1: "),
        ("{\"vector\": [1, 2, 3]}", "question 1: "),
        ("{\"vector\": [0, 0]}", "question 1: "),
        ("{\"vector\": [1e39, 0]}", "question 1: "),
        (
            "{\"like\": \"a\", \"now\": \"soon\"}",
            "\"soon\" is not an RFC 3339 time",
        ),
        ("{\"like\": \"a\", \"agent\": -1}", "line 1: "),
        ("{\"like\": \"g\"}", "no memory has the key or id \"g\""),
        ("{\"like\": \"f\"}", "\"f\" has no embedding"),
        ("{\"text\": \"party\"}", "by which model"),
    ] {
        let file = stage.write("bad.jsonl", [line, "\n"].concat());
        let err = stage.query("town", &["--queries", &file]).fails(1);
        // One question is not numbered: there is no other.
        let told = told.trim_start_matches("question 1: ");
        assert!(err.contains(told), "{line}: {err}");
        if !line.trim().is_empty() {
            let file = stage.write("bad.jsonl", [good, line].concat());
            let ran = stage.query("town", &["--queries", &file, "--touch", "--snapshot"]);
            ran.fails(1);
        }
    }
    let file = stage.write("bad.jsonl", [good, "{\"vector\": [1, 2, 3]}"].concat());
    let err = stage.query("town", &["--queries", &file]).fails(1);
    assert!(err.contains("question 2: "), "{err}");
    for path in ["/", "/nonexistent"] {
        let err = stage.query("town", &["--queries", path]).fails(1);
        assert!(err.contains(path), "{err}");
    }
}

#[test]
fn several_stores_are_each_asked_as_if_alone() {
    let stage = towns(&["isabella", "klaus"]);
    let (isabella, klaus) = (stage.at("isabella"), stage.at("klaus"));
    run(["delete", &klaus, "b"]).ok();
    let (vector, now) = (stage.at("q.json"), time(T));
    let ask = |stores: &[&str], more: &[&str]| -> Ran {
        let args = ["--vector", &vector, "--now", &now];
        run([&["query"], stores, &args, more].concat())
    };
    let single = [&isabella, &klaus].map(|store| ask(&[store], &["--json"]).json());
    assert_ne!(ids(&single[0]), ids(&single[1]));
    let document = ask(&[&isabella, &klaus], &["--json"]).json();
    assert_eq!(document["answers"], json!(single));
    let text = ask(&[&isabella, &klaus], &[]).ok();
    for store in [&isabella, &klaus] {
        assert!(
            text.contains(&format!("{store}: vector 0 of {vector}\n")),
            "{text}"
        );
    }

    let touched = ask(&[&isabella, &klaus], &["--touch", "-k", "1", "--json"]).json();
    for (store, answer) in [&isabella, &klaus]
        .into_iter()
        .zip(touched["answers"].as_array().unwrap())
    {
        assert_eq!(answer["touched"], 1);
        let id = ids(answer)[0].to_string();
        let shown = run(["show", store, &id, "--json"]).json();
        assert_eq!(shown["last_access"], now.as_str());
    }

    // What one store lacks is told with its name.
    let err = ask(&[&isabella, &klaus], &["--pin", "b"]).fails(1);
    assert!(
        err.contains(&format!("{klaus}: no memory has the key or id \"b\"")),
        "{err}"
    );
    let small = stage.at("small");
    run(["create", &small, "--dim", "3"]).ok();
    run(["add", &small, "a text"]).ok();
    let err = ask(&[&isabella, &small], &[]).fails(1);
    assert!(err.contains(&format!("{small}: ")), "{err}");
}

#[test]
fn answers_are_told_one_after_another() {
    let stage = Stage::town();
    let text = stage
        .query("town", &["--like", "a", "--like", "b", "-k", "1"])
        .ok();
    let store = stage.at("town");
    let titles: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with(&store))
        .collect();
    assert_eq!(
        titles,
        [
            format!("{store}: like \"a\""),
            format!("{store}: like \"b\"")
        ]
    );
}
