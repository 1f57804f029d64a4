//! What a query returns beside the best, what a budget cuts, in which order it comes, and what is touched of it.

use crate::stage::{HOUR, Stage, T, ids, run, time};
use serde_json::{Value, json};

fn field<'a>(document: &'a Value, id: u64, name: &str) -> &'a Value {
    let hits = document["hits"].as_array().unwrap();
    let hit = hits.iter().find(|hit| hit["id"] == id);
    &hit.unwrap_or_else(|| panic!("{id} in {document}"))[name]
}

#[test]
fn a_pinned_memory_is_returned_beside_the_best_whatever_it_scores() {
    let stage = Stage::town();
    let best = stage.ask_town(&["-k", "2"]);
    assert_eq!(ids(&best), [1, 3]);
    // One that is last, one without a vector, one to come, one that is among the best.
    let document = stage.ask_town(&[
        "-k", "2", "--pin", "c", "--pin", "f", "--pin", "4", "--pin", "d",
    ]);
    assert_eq!(ids(&document), [2, 5, 4, 3, 1]);
    let pinned = [2, 5, 4, 3].map(|id| field(&document, id, "pinned").clone());
    assert_eq!(pinned, [true, true, true, true]);
    assert_eq!(field(&document, 1, "pinned"), false);
    for id in [5, 4] {
        assert_eq!(field(&document, id, "score"), &Value::Null);
    }
    assert!(field(&document, 2, "score").is_f64());
    assert_eq!(document["ranges"], best["ranges"]);
    // A filter does not keep it out.
    let document = stage.ask_town(&["--pin", "c", "--kind", "chat"]);
    assert_eq!(ids(&document), [2, 1]);
    let vector = stage.at("q.json");
    let text = stage
        .query("town", &["--vector", &vector, "--pin", "f"])
        .ok();
    assert!(text.contains("f (pinned)"), "{text}");
}

// B66
#[test]
fn the_order_of_the_result_is_by_score_creation_or_last_access() {
    let stage = Stage::town();
    assert_eq!(ids(&stage.ask_town(&["-k", "3"])), [1, 3, 0]);
    for (order, expected) in [
        ("score", [1, 3, 0]),
        ("created", [0, 1, 3]),
        ("last-access", [0, 3, 1]),
    ] {
        let document = stage.ask_town(&["-k", "3", "--order", order]);
        assert_eq!(ids(&document), expected, "{order}");
        assert_eq!(document["settings"]["result_order"], order);
        // Pinned memories are where their time is.
        if order != "score" {
            let pinned = stage.ask_town(&["-k", "3", "--order", order, "--pin", "c"]);
            let at = ids(&pinned).iter().position(|&id| id == 2);
            assert_eq!(at, Some(if order == "created" { 2 } else { 0 }));
        }
    }
    let created = stage.ask_town(&["--preset", "genagents", "-k", "3"]);
    let scored = stage.ask_town(&["--preset", "genagents", "-k", "3", "--order", "score"]);
    assert_ne!(ids(&created), ids(&scored));
}

// The texts of the three best have 5, 4 and 6 tokens.
#[test]
fn a_budget_says_what_it_cut_and_how() {
    let stage = Stage::town();
    let ask = |args: &[&str]| stage.ask_town(&[&["-k", "3"], args].concat());
    let cut = |document: &Value| -> Vec<u64> {
        let cut = document["budget"]["cut"].as_array().unwrap().iter();
        cut.map(|cut| cut["id"].as_u64().unwrap()).collect()
    };
    for (budget, overflow, kept, left_out) in [
        ("15", "keep-prefix", &[1, 3, 0][..], &[][..]),
        ("14", "keep-prefix", &[1, 3], &[0]),
        ("8", "keep-prefix", &[1], &[3, 0]),
        ("4", "keep-prefix", &[], &[1, 3, 0]),
        ("4", "skip-oversized", &[3], &[1, 0]),
        ("0", "skip-oversized", &[], &[1, 3, 0]),
        ("18446744073709551615", "skip-oversized", &[1, 3, 0], &[]),
    ] {
        let document = ask(&["--budget", budget, "--overflow", overflow]);
        assert_eq!(ids(&document), kept, "{budget} {overflow}");
        assert_eq!(cut(&document), left_out, "{budget} {overflow}");
        let tokens = kept
            .iter()
            .map(|&id| field(&document, id, "tokens").as_u64().unwrap());
        assert_eq!(document["budget"]["spent"], tokens.sum::<u64>());
        assert_eq!(document["budget"]["overflow"], overflow);
        assert_eq!(document["budget"]["excess"], 0);
    }
    assert_eq!(
        ask(&["--budget", "9", "--count", "bytes"])["budget"]["cut"],
        json!([{"id": 0, "key": "a", "text": "Isabella plans a PARTY", "tokens": 6,
            "score": field(&ask(&[]), 0, "score")}])
    );
    assert_eq!(ask(&[])["budget"], Value::Null);
    assert_eq!(ask(&["--budget", "9"])["budget"]["count"], "bytes");

    // What is pinned counts first and is never cut.
    let document = ask(&["--budget", "2", "--pin", "c", "--pin", "f"]);
    assert_eq!(ids(&document), [2, 5]);
    assert_eq!(
        (&document["budget"]["spent"], &document["budget"]["excess"]),
        (&json!(6), &json!(4))
    );
    let (query, now) = (stage.at("q.json"), time(T));
    let args = [
        "--vector", &query, "--now", &now, "--budget", "2", "--pin", "c", "-k", "1",
    ];
    let text = stage.query("town", &args).ok();
    assert!(text.contains("3 of 2 tokens, 1 memories cut\n"), "{text}");
    assert!(
        text.contains("the pinned memories alone are 1 tokens too many\n"),
        "{text}"
    );
    assert!(
        text.contains("5 tokens  b  a party at the cafe\n"),
        "{text}"
    );
}

#[cfg(feature = "tiktoken")]
#[test]
fn tokens_are_counted_as_openai_counts_them() {
    use memorank::stream::{CountTokens, Tiktoken};
    let stage = Stage::town();
    for (name, counter) in [("cl100k", Tiktoken::Cl100k), ("o200k", Tiktoken::O200k)] {
        let document = stage.ask_town(&["--budget", "100", "--count", name]);
        assert_eq!(document["budget"]["count"], name);
        for hit in document["hits"].as_array().unwrap() {
            assert_eq!(hit["tokens"], counter.count(hit["text"].as_str().unwrap()));
        }
    }
}

#[cfg(not(feature = "tiktoken"))]
#[test]
fn a_count_that_was_not_built_in_is_a_usage_error() {
    let stage = Stage::town();
    for name in ["cl100k", "o200k"] {
        let args = ["--like", "a", "--budget", "1", "--count", name];
        assert!(stage.query("town", &args).fails(2).contains("bytes"));
    }
}

// A budget comes before the touch: only what the caller receives is touched, pinned memories too.
#[test]
fn only_what_is_returned_is_touched() {
    let stage = Stage::town();
    let later = time(T + HOUR);
    let args = ["-k", "3", "--budget", "8", "--pin", "c", "--touch"];
    let document = stage.ask_town(&args);
    assert_eq!(
        (ids(&document), &document["touched"]),
        (vec![2, 1], &json!(2))
    );
    let listed = || {
        let document = run(["list", &stage.at("town"), "--json"]).json();
        let listed = document["listed"].as_array().unwrap().iter();
        listed
            .map(|m| m["last_access"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let mut expected = [-10, 0, 0, -5, 5, -60].map(|hours| time(T + hours * HOUR));
    assert_eq!(listed(), expected);

    // Only of what was last retrieved longer ago.
    let query = stage.at("q.json");
    let touch = |age: &str| {
        let args = ["--vector", &query, "--now", &later, "-k", "4", "--json"];
        stage
            .query("town", &[&args[..], &["--touch-if-older", age]].concat())
            .json()
    };
    let document = touch("6h");
    assert_eq!(document["touched"], 1);
    assert_eq!(
        document["settings"]["touch"],
        json!({"if-older": {"age": 6 * HOUR}})
    );
    assert_eq!(field(&document, 0, "last_access"), later.as_str());
    assert_eq!(field(&document, 3, "last_access"), expected[3].as_str());
    expected[0] = later.clone();
    assert_eq!(listed(), expected);
    // Exactly so long ago is not longer ago.
    assert_eq!(touch("60m")["touched"], 1);
    expected[3] = later.clone();
    assert_eq!(listed(), expected);
    assert_eq!(touch("0s")["touched"], 2);
    assert_eq!(touch("0s")["touched"], 0);
}

// B67: decays by kind, with and without a floor.
#[test]
fn kinds_fade_as_they_are_told_to() {
    let stage = Stage::town();
    let raw = |args: &[&str]| {
        let document = stage.ask_town(args);
        let hits = [0, 1, 2, 3].map(|id| field(&document, id, "recency")["raw"].as_f64().unwrap());
        (hits, document["settings"]["decays"].clone())
    };
    let ages = [10.0, 0.0, 30.0, 5.0];
    let close = |found: [f64; 4], decays: [f64; 4], floors: [f64; 4]| {
        for i in 0..4 {
            let expected = decays[i].powf(ages[i]).max(floors[i]);
            assert!((found[i] - expected).abs() < 1e-12, "{i}: {found:?}");
        }
    };
    let (found, decays) = raw(&[]);
    close(found, [0.995; 4], [0.0; 4]);
    assert_eq!(decays, Value::Null);
    let (found, decays) = raw(&["--decay", "plan=0.5:0.25"]);
    close(found, [0.995, 0.995, 0.5, 0.995], [0.0, 0.0, 0.25, 0.0]);
    assert_eq!(
        decays,
        json!({"default": {"decay": 0.995, "floor": 0.0}, "kinds": {"plan": {"decay": 0.5, "floor": 0.25}}})
    );
    let (found, _) = raw(&[
        "--decay",
        "0.9:0.5",
        "--decay",
        "plan=0.99",
        "--decay",
        "chat=0",
    ]);
    close(found, [0.9, 0.0, 0.99, 0.9], [0.5, 0.0, 0.0, 0.5]);
    // Of one decay without a floor, scores are as ever.
    let one = stage.ask_town(&["--decay", "0.9"]);
    assert_eq!(one["settings"]["decays"], Value::Null);
    assert!(one["ranges"]["ages"].is_object());
}

#[test]
fn a_query_explains_its_scores() {
    let stage = Stage::town();
    let plain = stage.ask_town(&["-k", "3"]);
    assert_eq!(
        (&plain["warnings"], field(&plain, 1, "gap")),
        (&Value::Null, &Value::Null)
    );
    let document = stage.ask_town(&["-k", "3", "--explain", "--budget", "12", "--pin", "c"]);
    let score = |id| field(&stage.ask_town(&[]), id, "score").as_f64().unwrap();
    // The last of the three best was cut, and is still the last of them; the pinned one is below it.
    for id in [1, 3, 2] {
        let explained = crate::filters::explained(&stage, id, &["-k", "3"]);
        let gap = field(&document, id, "gap");
        assert_eq!(gap, &explained["standing"]["gap"]);
        assert_eq!(gap.as_f64(), Some(score(id) - score(0)));
    }
    assert_eq!(document["warnings"], json!([]));
    let narrow = stage.ask_town(&[
        "--explain",
        "--accessed-from",
        &time(T - HOUR),
        "--pin",
        "c",
    ]);
    assert_eq!(narrow["warnings"], json!([]));

    let (query, now) = (stage.at("q.json"), time(T));
    let args = [
        "--vector",
        &query,
        "--now",
        &now,
        "-k",
        "2",
        "--explain",
        "--pin",
        "c",
    ];
    let text = stage.query("town", &args).ok();
    assert!(text.contains("importance 8 gives 1.0000; "), "{text}");
    assert!(text.contains("; 0.0000 above the last\n"), "{text}");
    assert!(text.contains(" below the last\n"), "{text}");
}

// B01: a range that is hardly one is warned of.
#[test]
fn a_stretched_range_is_warned_of() {
    let stage = Stage::new();
    let line = |importance: f64| json!({"text": "t", "created": time(T), "importance": importance});
    stage.import("S", &[[1.0, 0.0], [0.9, 0.1]], &[line(3.0), line(3.0625)]);
    let expected =
        json!([{"stretched": {"component": "importance", "span": 0.0625, "threshold": 0.1}}]);
    let document = stage
        .query("S", &["--like", "0", "--explain", "--json"])
        .json();
    assert_eq!(document["warnings"], expected);
    let store = stage.at("S");
    let explained = run(["explain", &store, "1", "--like", "0", "--json"]).json();
    assert_eq!(explained["warnings"], expected);
    for text in [
        stage.query("S", &["--like", "0", "--explain"]).ok(),
        run(["explain", &store, "1", "--like", "0"]).ok(),
    ] {
        assert!(
            text.contains("warning: importance spans 6.25e-2 over all candidates"),
            "{text}"
        );
    }
}
