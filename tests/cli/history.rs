//! The access log: what it lists, and what is kept of it.

use crate::replay::{assert_replayed, replay};
use crate::stage::{Stage, T, files, overwrite, run, time};
use serde_json::{Value, json};

/// `memorank history NAME ...`
pub fn history(stage: &Stage, name: &str, args: &[&str]) -> Value {
    run([&["history", &stage.at(name), "--json"], args].concat()).json()
}

pub fn keep(stage: &Stage, name: &str, bytes: &str) -> Value {
    history(stage, name, &["--keep", bytes])
}

pub fn sequences(history: &Value) -> Vec<u64> {
    let touches = history["touches"].as_array().unwrap().iter();
    touches
        .map(|touch| touch["sequence"].as_u64().unwrap())
        .collect()
}

#[test]
fn the_log_is_listed_newest_first_with_what_was_asked() {
    let stage = Stage::town();
    let store = stage.at("town");
    assert_eq!(keep(&stage, "town", "64M")["keep_bytes"], 64_000_000);
    let now = time(T);
    run(["touch", &store, "f", "--now", &now]).ok();
    let like = ["--like", "d", "-k", "2", "--now", &now, "--touch", "--json"];
    let first = stage.query("town", &like).json();
    let second = stage
        .query("town", &[&like[..], &["--agent", "7"]].concat())
        .json();
    run(["delete", &store, "d"]).ok();
    run(["checkpoint", &store]).ok();

    let document = history(&stage, "town", &[]);
    assert_eq!(document["keep_bytes"], 64_000_000);
    let [second, first] = [second, first].map(|answer| answer["sequence"].as_u64().unwrap());
    assert_eq!(sequences(&document), [second, first, first - 1]);
    let touches = document["touches"].as_array().unwrap();
    assert_eq!(
        touches[0],
        json!({"sequence": second, "now": now, "now_us": T, "agent": 7, "ids": [1, 3], "note": "like \"d\""})
    );
    assert_eq!(
        (&touches[2]["note"], &touches[2]["ids"]),
        (&Value::Null, &json!([5]))
    );
    assert_eq!(
        sequences(&history(&stage, "town", &["--agent", "0"])),
        [first, first - 1]
    );
    assert_eq!(
        sequences(&history(&stage, "town", &["--limit", "1"])),
        [second]
    );
    assert!(sequences(&history(&stage, "town", &["--limit", "0"])).is_empty());
    let limited = history(&stage, "town", &["--agent", "0", "--limit", "1"]);
    assert_eq!(sequences(&limited), [first]);

    let text = run(["history", &store]).ok();
    assert!(text.contains("like \"d\"  2: b, id 3\n"), "{text}");
    assert!(text.contains("-         1: f\n"), "{text}");
    let told = "3 touches listed; 64000000 bytes of the folded journal are kept\n";
    assert!(text.ends_with(told), "{text}");
}

// What was asked may be long, and anything.
#[test]
fn a_note_is_short_and_steers_no_terminal() {
    let stage = Stage::new();
    let store = stage.at("S");
    run(["create", &store]).ok();
    run(["add", &store, "a party"]).ok();
    keep(&stage, "S", "all");
    for text in [
        &"party ".repeat(100)[..],
        &"party 货架".repeat(50),
        "party \u{1b}[31m\r",
    ] {
        let answer = stage
            .query("S", &["--text", text, "--touch", "--json"])
            .json();
        let replayed = replay(&stage, "S", &answer["sequence"], &["--text", text]);
        assert_replayed(&replayed, &answer);
        let note = replayed["then"]["note"].as_str().unwrap();
        assert!(
            note.len() <= 200 && note.starts_with("text \"party "),
            "{note}"
        );
        let whole = format!("text {text:?}");
        assert_eq!(note.ends_with('…'), whole.len() > 200);
        assert!(whole.starts_with(note.trim_end_matches('…')), "{note}");
        let listed = run(["history", &store]).ok();
        assert!(!listed.contains(['\u{1b}', '\r']), "{listed:?}");
    }
}

// The program says a number only of what is recorded.
#[test]
fn only_a_touch_that_is_recorded_has_a_number() {
    let stage = Stage::town();
    keep(&stage, "town", "all");
    assert_eq!(stage.ask_town(&[])["sequence"], Value::Null);
    let nothing = stage.ask_town(&["--touch", "--contains", "nothing has this"]);
    assert_eq!(
        (&nothing["touched"], &nothing["sequence"]),
        (&json!(0), &Value::Null)
    );
    let first = stage.ask_town(&["--touch"])["sequence"].as_u64().unwrap();
    // It alters nothing, and is a retrieval all the same.
    let second = stage.ask_town(&["--touch"])["sequence"].as_u64().unwrap();
    assert_eq!(second, first + 1);
    assert_eq!(sequences(&history(&stage, "town", &[])), [second, first]);
    let query = stage.at("q.json");
    let args = ["--vector", &query, "-k", "2", "--touch"];
    let text = stage.query("town", &args).ok();
    let told = format!("touched 2 memories: record {}\n", second + 1);
    assert!(text.ends_with(&told), "{text}");
}

#[test]
fn damage_in_the_log_is_damage_to_who_goes_back_alone() {
    let stage = Stage::town();
    keep(&stage, "town", "all");
    let answer = stage.ask_town(&["--touch"]);
    run(["checkpoint", &stage.at("town")]).ok();
    let sequence = answer["sequence"].to_string();
    // Of the one that is written to there is only the header.
    let folded = files(&stage.path("town")).into_iter();
    let folded = folded.filter(|(name, bytes)| name.starts_with("journal.") && bytes.len() > 100);
    let folded: Vec<_> = folded.collect();
    assert!(!folded.is_empty());
    for (name, bytes) in folded {
        let segment = stage.path("town").join(name);
        overwrite(&segment, bytes.len() - 20, b"xxxxxxxx");
    }
    let store = stage.at("town");
    for args in [
        &["history", &store][..],
        &["replay", &store, &sequence, "--like", "d"],
        &["verify", &store],
    ] {
        run(args).fails(3);
    }
    stage.query("town", &["--like", "d"]).ok();
}
