//! Retrievals ranked again as the store was then.

use crate::history::{history, keep, sequences};
use crate::stage::{HOUR, Stage, T, copy, ids, run, state, time};
use serde_json::{Value, json};

/// `memorank replay NAME SEQUENCE ...`
pub fn replay(stage: &Stage, name: &str, sequence: &Value, args: &[&str]) -> Value {
    let (store, sequence) = (stage.at(name), sequence.to_string());
    run([&["replay", &store, &sequence, "--json"], args].concat()).json()
}

/// Takes fields out of a document.
fn without(mut document: Value, names: &[&str]) -> Value {
    for name in names {
        let taken = document.as_object_mut().unwrap().remove(*name);
        assert!(taken.is_some(), "{name} in {document}");
    }
    document
}

/// The answer of a query that touched, but for what the touch made of it.
fn untouched(answer: &Value) -> Value {
    let mut answer = without(answer.clone(), &["schema", "touched"]);
    for hit in answer["hits"].as_array_mut().unwrap() {
        hit.as_object_mut().unwrap().remove("last_access");
    }
    answer
}

/// That a replay gives an answer again, byte for byte, and knows it.
#[track_caller]
pub fn assert_replayed(replayed: &Value, answer: &Value) {
    assert_eq!(replayed["schema"], "memorank.replay/1");
    assert_eq!(replayed["is_same"], true, "{replayed}");
    assert_eq!(replayed["touched"], 0);
    assert_eq!(replayed["then"]["agent"], answer["agent"]);
    assert_eq!(replayed["then"]["now_us"], answer["now_us"]);
    let again = without(untouched(replayed), &["then", "is_same"]);
    assert_eq!(again.to_string(), untouched(answer).to_string());
}

/// Something of every kind that the program can do to the town.
fn change_everything(stage: &Stage, round: usize) {
    let (store, later) = (stage.at("town"), time(T + 200 * HOUR));
    let (vector, key) = (stage.at("q.json"), format!("new{round}"));
    let doomed = ["a", "b", "c"][round % 3];
    let other = stage.write("other.json", "[0.1, 0.9]");
    for args in [
        &[
            "add",
            &store,
            "a new party",
            "--key",
            &key,
            "--vectors",
            &vector,
            "--created",
            &time(T),
        ][..],
        &[
            "add",
            &store,
            "no vector yet",
            "--no-vector",
            "--created",
            &time(T),
        ],
        &["touch", &store, "d", "e", &key, "--now", &later],
        &["touch", &store, "d", "--now", &later, "--agent", "7"],
        &["importance", &store, "d", &key, "--set", "9.5"],
        &["importance", &store, "d", "--set", "-3", "--agent", "7"],
        &["embed", &store, "--vectors", &other],
        &["delete", &store, doomed],
        &["checkpoint", &store],
        // Its key is free for another.
        &[
            "add",
            &store,
            "not the one that was",
            "--key",
            doomed,
            "--vectors",
            &vector,
        ],
        &["importance", &store, "d", "--reset", "--agent", "7"],
    ] {
        // There is one vector for each memory without: the town's own in the first round.
        if args[0] == "embed" && round == 0 {
            let two = stage.write("two.json", "[[0.1, 0.9], [0.9, 0.1]]");
            run(["embed", &store, "--vectors", &two]).ok();
        } else {
            run(args).ok();
        }
    }
}

// B28, B30: what was returned then is returned again, bit for bit, whatever changed since.
#[test]
fn a_replay_is_the_answer_of_then_whatever_was_done_since() {
    let stage = Stage::town();
    keep(&stage, "town", "all");
    let query = stage.at("q.json");
    let decays = ["--decay", "plan=0.5:0.25", "--decay", "0.9"];
    let asked: [&[&str]; 8] = [
        &["--vector", &query],
        &["--like", "d", "--exclude-self", "-k", "2", "--agent", "7"],
        &[
            "--vector", &query, "-k", "2", "--pin", "c", "--pin", "f", "--order", "created",
        ],
        &[
            "--vector",
            &query,
            "--budget",
            "9",
            "--overflow",
            "skip-oversized",
            "--explain",
        ],
        &[
            "--like",
            "a",
            "--contains",
            "the",
            "--exclude",
            "e",
            "--preset",
            "reverie",
        ],
        &[
            "--like",
            "b",
            "--accessed-from",
            &time(T - 20 * HOUR),
            "--preset",
            "genagents",
        ],
        &[&["--like", "c", "--threads", "2"][..], &decays].concat(),
        &[
            "--vector",
            &query,
            "--future",
            "--relevance",
            "9",
            "--order",
            "last-access",
        ],
    ];
    let mut answers = Vec::new();
    for (i, args) in asked.iter().enumerate() {
        let now = time(T + i as i64 * HOUR);
        let ask = |touch: &[&str]| {
            let args = [*args, &["--now", &now, "--json"], touch].concat();
            stage.query("town", &args).json()
        };
        let (before, answer) = (ask(&[]), ask(&["--touch"]));
        assert_eq!(before["sequence"], Value::Null);
        assert_eq!(answer["touched"], ids(&answer).len());
        answers.push((before, answer));
        // Two of them in one state each.
        if i % 3 == 1 {
            change_everything(&stage, i / 3);
        }
    }
    change_everything(&stage, 3);

    let state_before = state(&stage.path("town"));
    for (args, (before, answer)) in asked.iter().zip(&answers) {
        let replayed = replay(&stage, "town", &answer["sequence"], args);
        assert_replayed(&replayed, answer);
        // And last accesses are those before the touch.
        assert_eq!(replayed["hits"].to_string(), before["hits"].to_string());
        let mut touched = ids(answer);
        touched.sort_unstable();
        assert_eq!(replayed["then"]["ids"], json!(touched));
    }
    let listed = history(&stage, "town", &[]);
    let noted = listed["touches"].as_array().unwrap().iter();
    let noted = noted.filter(|touch| touch["note"].is_string());
    assert_eq!(noted.count(), asked.len());
    assert_eq!(state(&stage.path("town")), state_before);
}

#[test]
fn a_touch_of_what_is_older_is_replayed_with_the_same_flag() {
    let stage = Stage::town();
    keep(&stage, "town", "all");
    let answer = stage.ask_town(&["-k", "4", "--touch-if-older", "6h"]);
    assert_eq!(answer["touched"], 2);
    change_everything(&stage, 0);
    let query = stage.at("q.json");
    let args = ["--vector", &query, "-k", "4"];
    let again = |more: &[&str]| {
        let args = [&args, more].concat();
        replay(&stage, "town", &answer["sequence"], &args)
    };
    assert_replayed(&again(&["--touch-if-older", "6h"]), &answer);
    assert_eq!(again(&["--touch-if-older", "11h"])["is_same"], false);
    assert_eq!(again(&[])["is_same"], false);
}

#[test]
fn each_of_several_questions_is_replayed_as_it_was_asked() {
    for order in ["--sequential", "--snapshot"] {
        let stage = Stage::town();
        keep(&stage, "town", "all");
        let keys = ["c", "a", "b", "c"];
        let like = keys.iter().flat_map(|key| ["--like", key]);
        let more = ["-k", "2", "--touch", order, "--json"];
        let args: Vec<_> = like.chain(more).collect();
        let document = stage.query("town", &args).json();
        change_everything(&stage, 0);
        let answers = document["answers"].as_array().unwrap();
        assert_eq!(answers.len(), keys.len());
        for (key, answer) in keys.iter().zip(answers) {
            let args = ["--like", key, "-k", "2"];
            assert_replayed(&replay(&stage, "town", &answer["sequence"], &args), answer);
        }
    }
}

#[test]
fn each_of_several_stores_has_a_record_of_its_own() {
    let stage = Stage::town();
    keep(&stage, "town", "all");
    copy(&stage.path("town"), &stage.path("other"));
    run(["delete", &stage.at("other"), "b"]).ok();
    let (town, other, query) = (stage.at("town"), stage.at("other"), stage.at("q.json"));
    let args = [
        "query", &town, &other, "--vector", &query, "--touch", "--json",
    ];
    let document = run(args).json();
    change_everything(&stage, 0);
    let answers = document["answers"].as_array().unwrap();
    assert_ne!(answers[0]["sequence"], answers[1]["sequence"]);
    for (name, answer) in ["town", "other"].iter().zip(answers) {
        let args = ["--vector", &query];
        assert_replayed(&replay(&stage, name, &answer["sequence"], &args), answer);
    }
}

#[test]
fn another_question_is_answered_and_said_to_be_another() {
    let stage = Stage::town();
    keep(&stage, "town", "all");
    let answer = stage.ask_town(&["-k", "1", "--touch"]);
    assert_eq!(ids(&answer), [1]);
    run(["delete", &stage.at("town"), "b"]).ok();
    let (store, query, sequence) = (
        stage.at("town"),
        stage.at("q.json"),
        answer["sequence"].to_string(),
    );
    let text = |args: &[&str]| {
        let base = ["replay", &store, &sequence, "--vector", &query, "-k", "1"];
        run([&base, args].concat()).ok()
    };
    let same = text(&[]);
    assert!(same.ends_with("the same memories as then\n"), "{same}");
    let record = format!(
        "record {sequence}: {}, agent 0, 1 memories, vector 0 of ",
        time(T)
    );
    assert!(same.contains(&record), "{same}");
    let other = text(&["--kind", "plan"]);
    let told = "not touched then: c\ntouched only then: b\n";
    assert!(other.ends_with(told), "{other}");
    let none = text(&["--contains", "nothing has this"]);
    assert!(none.ends_with("touched only then: b\n"), "{none}");
    assert!(!none.contains("not touched then"), "{none}");
    for args in [["--agent", "7"], ["--now", &time(T + 9 * HOUR)]] {
        let told = "the same memories as then, for another agent or moment\n";
        assert!(text(&args).ends_with(told), "{args:?}");
    }
    let document = replay(&stage, "town", &answer["sequence"], &["--like", "c"]);
    assert_eq!(
        (&document["is_same"], &document["then"]["ids"]),
        (&json!(false), &json!([1]))
    );
    assert_eq!(document["query"], json!({"like": "c"}));
}

#[test]
fn what_cannot_be_gone_back_to_is_an_error() {
    let stage = Stage::town();
    let store = stage.at("town");
    let fails = |sequence: u64, code: i32| {
        let sequence = sequence.to_string();
        run(["replay", &store, &sequence, "--like", "d"]).fails(code)
    };
    // Nothing is kept unless it is wished.
    assert_eq!(history(&stage, "town", &[])["keep_bytes"], 0);
    let lost = stage.ask_town(&["--touch"])["sequence"].as_u64().unwrap();
    run(["checkpoint", &store]).ok();
    assert!(sequences(&history(&stage, "town", &[])).is_empty());
    assert!(fails(lost, 1).contains("kept from record"));

    assert_eq!(keep(&stage, "town", "all")["keep_bytes"], u64::MAX);
    let kept = stage.ask_town(&["--touch"])["sequence"].as_u64().unwrap();
    run(["importance", &store, "d", "--set", "2"]).ok();
    assert!(fails(lost, 1).contains("kept from record"));
    assert!(fails(kept + 1, 1).contains("is not a touch"));
    let past = fails(kept + 2, 1);
    assert!(
        past.contains(&format!("the last is {}", kept + 1)),
        "{past}"
    );
    assert!(fails(0, 1).contains("there is no record 0"));
    assert!(fails(u64::MAX, 1).contains("there is no record"));
    run(["replay", &store, &kept.to_string(), "--like", "d"]).ok();

    // Rows that are gone by a compaction.
    run(["delete", &store, "c"]).ok();
    run(["compact", &store]).ok();
    assert!(fails(kept, 1).contains("gone by a compaction"));
    // Once the bound is lower, so is what is kept.
    let bound = keep(&stage, "town", "none");
    assert_eq!(
        (&bound["keep_bytes"], sequences(&bound)),
        (&json!(0), vec![])
    );
    assert!(fails(kept, 1).contains("kept from record"));
}
