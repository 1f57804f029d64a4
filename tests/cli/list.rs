//! What `list` shows.

use crate::filters::listed;
use crate::stage::{HOUR, Stage, T, run, time};
use serde_json::json;

// B91: what was given is what is listed, and a retrieval moves the last access alone.
#[test]
fn every_field_is_listed_as_it_was_given_and_touched() {
    let stage = Stage::town();
    let store = stage.at("town");
    let list = || run(["list", &store, "--json"]).json();
    let before = list();
    assert_eq!(
        before["listed"][1],
        json!({
            "id": 1, "key": "b", "kind": "chat", "text": "a party at the cafe", "created": time(T - 40 * HOUR),
            "last_access": time(T), "expiry": time(T - HOUR), "importance": 8.0, "embedded": true,
        })
    );
    assert_eq!(before["listed"][5]["embedded"], false);
    let later = time(T + HOUR);
    let query = stage.at("q.json");
    stage
        .query(
            "town",
            &["--vector", &query, "--touch", "-k", "1", "--now", &later],
        )
        .ok();
    let mut expected = before;
    expected["listed"][1]["last_access"] = later.into();
    assert_eq!(list(), expected);
    let text = run(["list", &store, "--only", "b"]).ok();
    assert!(text.contains("  2023-02-13T16:00:00Z  chat  8 "), "{text}");
}

#[test]
fn a_list_is_ordered_reversed_and_limited() {
    let stage = Stage::town();
    for (args, expected) in [
        (&["--order", "id"][..], &[0, 1, 2, 3, 4, 5][..]),
        (&["--order", "created"], &[5, 0, 1, 2, 3, 4]),
        (&["--order", "last-access"], &[5, 2, 0, 3, 1, 4]),
        (&["--reverse"], &[5, 4, 3, 2, 1, 0]),
        (
            &["--order", "created", "--reverse", "--limit", "2"],
            &[4, 3],
        ),
        (&["--limit", "0"], &[]),
        (&["--limit", "18446744073709551615"], &[0, 1, 2, 3, 4, 5]),
    ] {
        assert_eq!(listed(&stage, args), expected, "{args:?}");
    }
    let document = run([
        "list",
        &stage.at("town"),
        "--limit",
        "2",
        "--contains",
        "a",
        "--json",
    ])
    .json();
    assert_eq!(document["matching"], 5);
    assert_eq!(document["listed"].as_array().unwrap().len(), 2);
}

#[test]
fn a_line_is_a_memory() {
    let stage = Stage::town();
    let store = stage.at("town");
    let text = run(["list", &store, "--kind", "chat"]).ok();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "id  created               last access           kind  importance  key  text"
    );
    assert_eq!(
        lines[1],
        "1   2023-02-11T23:00:00Z  2023-02-13T15:00:00Z  chat  8           b    a party at the cafe"
    );
    assert_eq!(
        lines[2],
        format!("{store}: 1 listed of 1 that match, 6 memories")
    );
    assert_eq!(lines.len(), 3);
    let text = run(["list", &store, "--contains", "nothing"]).ok();
    assert_eq!(
        text,
        format!("{store}: 0 listed of 0 that match, 6 memories\n")
    );
}

#[test]
fn a_list_changes_no_byte() {
    let stage = Stage::town();
    let before = crate::stage::state(&stage.path("town"));
    listed(&stage, &["--unexpired", "--order", "last-access"]);
    run(["list", &stage.at("town"), "--agent", "7"]).ok();
    assert_eq!(crate::stage::state(&stage.path("town")), before);
}
