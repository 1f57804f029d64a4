//! What `explain` says is so.

use crate::filters::explained;
use crate::stage::{Stage, T, ids, run, state, time};
use serde_json::{Value, json};

/// Whether a query with these flags returns the memory.
fn is_in(stage: &Stage, id: u64, args: &[&str]) -> bool {
    ids(&stage.ask_town(&[&["-k", "1"], args].concat())).contains(&id)
}

#[test]
fn what_would_bring_a_memory_in_does() {
    let stage = Stage::town();
    assert_eq!(ids(&stage.ask_town(&[])), [1, 3, 0, 2]);
    let told = |id| explained(&stage, id, &["-k", "1"])["standing"].clone();
    let best = told(1);
    assert_eq!(
        (&best["place"], &best["returned"], &best["gap"]),
        (&json!(1), &json!(true), &json!(0.0))
    );
    let all_null = |changes: &Value| changes.as_object().unwrap().values().all(Value::is_null);
    assert!(all_null(&best["brings_in"]));

    let mut tried = 0;
    for (place, id) in [(2, 3), (3, 0), (4, 2)] {
        let standing = told(id);
        assert_eq!(
            (&standing["place"], &standing["returned"]),
            (&json!(place), &json!(false))
        );
        assert!(standing["gap"].as_f64().unwrap() < 0.0);
        assert!(!is_in(&stage, id, &[]));
        let changes = &standing["brings_in"];
        for component in ["relevance", "recency", "importance"] {
            if let Some(weight) = changes[format!("{component}_weight")].as_f64() {
                let flag = format!("--{component}");
                assert!(
                    is_in(&stage, id, &[&flag, &weight.to_string()]),
                    "{id} {component}"
                );
                tried += 1;
            }
        }
        // An agent for each change, so that one does not hide another.
        let (store, key) = (stage.at("town"), id.to_string());
        let agents = [2 * id + 100, 2 * id + 101].map(|agent| agent.to_string());
        if let Some(least) = changes["least_importance"].as_f64() {
            run([
                "importance",
                &store,
                &key,
                "--set",
                &least.to_string(),
                "--agent",
                &agents[0],
            ])
            .ok();
            assert!(is_in(&stage, id, &["--agent", &agents[0]]), "{id} {least}");
            tried += 1;
        }
        if let Some(oldest) = changes["oldest_last_access"].as_str() {
            run([
                "touch", &store, &key, "--now", oldest, "--agent", &agents[1],
            ])
            .ok();
            assert!(is_in(&stage, id, &["--agent", &agents[1]]), "{id} {oldest}");
            tried += 1;
        }
    }
    assert!(tried >= 3, "{tried}");
}

#[test]
fn a_memory_is_explained_in_words() {
    let stage = Stage::town();
    let (store, query, now) = (stage.at("town"), stage.at("q.json"), time(T));
    let say = |key: &str, args: &[&str]| {
        let asked = ["--vector", &query, "--now", &now];
        run([&["explain", &store, key], &asked[..], args].concat()).ok()
    };
    let text = say("d", &["-k", "1"]);
    let standing = &explained(&stage, 3, &["-k", "1"])["standing"];
    assert!(
        text.starts_with("d  id 3  reflection\n  the cafe is busy\n"),
        "{text}"
    );
    assert!(text.contains("place 2, not returned: score "), "{text}");
    assert!(text.contains(" below the last that is\n"), "{text}");
    assert!(
        text.contains("each of these alone would bring it in:\n"),
        "{text}"
    );
    let importance = &standing["brings_in"]["least_importance"];
    match importance.as_f64() {
        Some(least) => assert!(text.contains(&format!("{least} (now 4)")), "{text}"),
        None => assert!(!text.contains("(now 4)"), "{text}"),
    }
    assert!(say("b", &[]).contains("place 1, returned: score "));
    assert!(say("b", &["-k", "0"]).contains("no single change would bring it in\n"));
    assert!(say("f", &[]).ends_with("no candidate: it has no embedding\n"));
    let text = say("b", &["--unexpired"]);
    assert!(text.ends_with("no candidate: it expired\n"), "{text}");
    let text = say("b", &["--only", "b"]);
    assert!(text.contains("place 1, returned"), "{text}");
    let text = say("e", &[]);
    assert!(
        text.ends_with("no candidate: it was created after the moment of asking\n"),
        "{text}"
    );
}

// B28
#[test]
fn an_explanation_changes_no_byte_and_has_the_same_bits_on_any_number_of_threads() {
    let stage = Stage::town();
    let before = state(&stage.path("town"));
    let one = explained(&stage, 2, &["--threads", "1"]);
    for threads in ["2", "3", "0"] {
        assert_eq!(explained(&stage, 2, &["--threads", threads]), one);
    }
    assert_eq!(state(&stage.path("town")), before);
}

// B88
#[test]
fn another_model_explains_nothing() {
    let stage = Stage::new();
    let store = stage.at("S");
    run(["create", &store]).ok();
    run(["add", &store, "a text"]).ok();
    let ask = |model| run(["explain", &store, "0", "--text", "text", "--model", model]);
    ask(memorank::stream::HashingEmbedder::MODEL).ok();
    let err = ask("ada-002").fails(1);
    assert!(
        err.contains("\"ada-002\"") && err.contains("memorank-hash-words-1"),
        "{err}"
    );
}
