//! Which memories are meant: the flags that `list`, `query` and `explain` share.

use crate::stage::{HOUR, Stage, T, ids, run, time};
use serde_json::{Value, json};

/// The ids that `list` gives.
pub fn listed(stage: &Stage, args: &[&str]) -> Vec<u64> {
    let document = run([&["list", &stage.at("town"), "--json"], args].concat()).json();
    let listed = document["listed"].as_array().unwrap();
    assert_eq!(document["memories"], 6);
    listed.iter().map(|m| m["id"].as_u64().unwrap()).collect()
}

/// `memorank explain town KEY --vector q.json --now T --json ...`
pub fn explained(stage: &Stage, key: u64, args: &[&str]) -> Value {
    let (store, query, now) = (stage.at("town"), stage.at("q.json"), time(T));
    let key = key.to_string();
    let args = [
        &[
            "explain", &store, &key, "--vector", &query, "--now", &now, "--json",
        ],
        args,
    ];
    run(args.concat()).json()
}

// B99: each flag leaves out what it names, in all three commands, and `explain` says that it was this flag. B39: if
// that is everything, the answer is empty and no error.
#[test]
fn every_filter_means_the_same_to_list_query_and_explain() {
    let stage = Stage::town();
    let mask = stage.write("mask", [1, 0, 255, 0, 0, 1]);
    let store = stage.at("town");
    let (from, until) = (time(T - 40 * HOUR), time(T - 20 * HOUR));
    let (just_now, long_ago) = (time(T - 5 * HOUR), time(T - 30 * HOUR));
    for (args, expected, barrier) in [
        (&[][..], &[0, 1, 2, 3, 4, 5][..], ""),
        (&["--kind", "chat"], &[1], "kind"),
        (&["--kind", "chat", "--kind", "diary"], &[1, 5], "kind"),
        (&["--created-from", &from], &[1, 2, 3, 4], "created"),
        (&["--created-until", &from], &[0, 5], "created"),
        (
            &["--created-from", &from, "--created-until", &until],
            &[1, 2],
            "created",
        ),
        (&["--accessed-from", &just_now], &[1, 3, 4], "last-access"),
        (&["--accessed-until", &long_ago], &[5], "last-access"),
        (
            &["--unexpired", "--now", &time(T)],
            &[0, 2, 3, 4, 5],
            "expired",
        ),
        (
            &["--unexpired", "--now", &time(T + HOUR)],
            &[0, 3, 4, 5],
            "expired",
        ),
        (&["--contains", "party"], &[1], "text"),
        (&["--contains", "party", "--ignore-case"], &[0, 1], "text"),
        (&["--contains", "dear"], &[5], "text"),
        (&["--contains", "nothing"], &[], "text"),
        (&["--only", "c"], &[2], "ids"),
        (
            &["--only", "3", "--only", "a", "--only", "f"],
            &[0, 3, 5],
            "ids",
        ),
        (&["--exclude", "a"], &[1, 2, 3, 4, 5], "excluded"),
        (
            &["--exclude", "0", "--exclude", "d"],
            &[1, 2, 4, 5],
            "excluded",
        ),
        (&["--mask", &mask], &[0, 2, 5], "mask"),
    ] {
        assert_eq!(listed(&stage, args), expected, "{args:?}");
        // Of the rest, all but the one without a vector compete.
        let vector = stage.at("q.json");
        let now = ["--now", &time(T)];
        let now = if args.contains(&"--now") {
            &[][..]
        } else {
            &now
        };
        let asked = [args, now, &["--vector", &vector, "--future", "--json"]].concat();
        let document = stage.query("town", &asked).json();
        let mut found = ids(&document);
        let ranked = found.clone();
        found.sort_unstable();
        let competing: Vec<u64> = expected.iter().copied().filter(|&id| id != 5).collect();
        assert_eq!(found, competing, "{args:?}");
        assert_eq!(document["candidates"], competing.len());
        for id in 0..6 {
            let key = id.to_string();
            let args = [&["explain", &store, &key], &asked[..]].concat();
            let explained = run(args).json();
            let place = ranked.iter().position(|&ranked| ranked == id);
            match place {
                Some(place) => {
                    let standing = &explained["standing"];
                    assert_eq!(standing["place"], place + 1);
                    let hit = &document["hits"][place];
                    for field in ["score", "relevance", "recency", "importance"] {
                        assert_eq!(standing[field], hit[field]);
                    }
                    assert_eq!(explained["no_candidate"], json!(null));
                }
                // A missing vector is told before anything else.
                None if id == 5 => assert_eq!(explained["no_candidate"], "no-embedding"),
                None => {
                    assert_eq!(explained["no_candidate"], json!({"filtered": barrier}));
                    assert_eq!(explained["standing"], json!(null));
                }
            }
            for field in ["candidates", "ranges", "filter", "settings", "now_us"] {
                assert_eq!(explained[field], document[field], "{field}");
            }
        }
    }
}

#[test]
fn filters_are_combined_and_told() {
    let stage = Stage::town();
    let args = ["--contains", "cafe", "--kind", "reflection", "--unexpired"];
    let document = stage.ask_town(&args);
    assert_eq!(ids(&document), [3]);
    assert_eq!(
        document["filter"],
        json!({"contains": "cafe", "kind": ["reflection"], "unexpired": true})
    );
    assert_eq!(stage.ask_town(&[])["filter"], json!({}));
}

#[test]
fn memories_made_after_now_compete_only_when_asked_for() {
    let stage = Stage::town();
    assert_eq!(ids(&stage.ask_town(&[])).len(), 4);
    let with = stage.ask_town(&["--future"]);
    assert!(ids(&with).contains(&4));
    assert_eq!(with["candidates"], 5);
    let why = explained(&stage, 4, &[]);
    assert_eq!(why["no_candidate"], json!({"filtered": "future"}));
    // What is listed is what there is.
    assert!(listed(&stage, &[]).contains(&4));
    // By default it is never before the newest last access, which was a moment of this store.
    let query = stage.at("q.json");
    let now = stage.query("town", &["--vector", &query, "--json"]).json();
    assert_eq!(
        (&now["now"], ids(&now).len()),
        (&json!(time(T + 5 * HOUR)), 5)
    );
}

// B39, B34: what was deleted is not listed, not ranked, and takes no place.
#[test]
fn a_deleted_memory_is_in_no_answer_and_explained_as_deleted() {
    let stage = Stage::town();
    let store = stage.at("town");
    run(["delete", &store, "b"]).ok();
    let document = run(["list", &store, "--json"]).json();
    assert_eq!(
        (&document["memories"], &document["matching"]),
        (&json!(5), &json!(5))
    );
    assert!(!document.to_string().contains("at the cafe"));
    assert_eq!(ids(&stage.ask_town(&["-k", "3"])).len(), 3);
    let why = explained(&stage, 1, &[]);
    assert_eq!(why["no_candidate"], "deleted");
    assert_eq!((&why["key"], &why["text"]), (&Value::Null, &Value::Null));
    for command in ["--only", "--exclude", "--pin"] {
        let query = stage.at("q.json");
        let err = stage
            .query("town", &["--vector", &query, command, "1"])
            .fails(1);
        assert!(err.contains("the memory with id 1 was deleted"), "{err}");
    }
    // The mask is of rows, which stay until a compaction.
    let mask = stage.write("mask", [1, 1, 1, 0, 0, 0]);
    assert_eq!(
        ids(&stage.ask_town(&["--mask", &mask, "--order", "created"])),
        [0, 2]
    );
    run(["compact", &store]).ok();
    let err = run(["list", &store, "--mask", &mask]).fails(1);
    assert!(
        err.contains("the store's 5 rows; this file has more"),
        "{err}"
    );
}

#[test]
fn what_a_store_does_not_have_is_an_error_that_says_what_it_has() {
    let stage = Stage::town();
    let (store, query) = (stage.at("town"), stage.at("q.json"));
    let short = stage.write("short", [1, 1]);
    let none = stage.at("none");
    for (args, told) in [
        (
            ["--kind", "dreams"],
            r#"no kind "dreams"; it has "observation", "chat", "plan", "reflection", "diary""#,
        ),
        (["--kind", "Chat"], "no kind \"Chat\""),
        (["--only", "g"], "no memory has the key or id \"g\""),
        (["--exclude", "99"], "no memory has the key or id \"99\""),
        (["--mask", &short], "the store's 6 rows; this file has 2"),
        (
            ["--mask", "/dev/zero"],
            "the store's 6 rows; this file has more",
        ),
        (["--mask", &none], "none: "),
        (["--mask", "/"], "/: "),
    ] {
        for command in [
            &["list", &store][..],
            &["query", &store, "--vector", &query],
            &["explain", &store, "a", "--vector", &query],
        ] {
            let err = run([command, &args].concat()).fails(1);
            assert!(err.contains(told), "{args:?}: {err}");
        }
    }
    for args in [["--decay", "dreams=0.5"], ["--pin", "g"]] {
        let err = stage.query("town", &[&args[..], &["--vector", &query]].concat());
        let err = err.fails(1);
        assert!(err.contains("\"dreams\"") || err.contains("\"g\""), "{err}");
    }
    let empty = stage.at("empty");
    run(["create", &empty]).ok();
    let err = run(["list", &empty, "--kind", "chat"]).fails(1);
    assert!(err.contains("it has none yet"), "{err}");
}
