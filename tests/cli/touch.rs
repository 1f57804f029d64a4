//! Ranking reads; only `--touch` writes, and only last access.

use crate::stage::{HOUR, Stage, T, ids, run, state, time};
use serde_json::Value;

// B28
#[test]
fn only_a_touch_changes_a_byte() {
    let stage = Stage::g();
    let store = stage.at("G");
    let before = state(&stage.path("G"));
    for preset in memorank::scoring::Preset::NAMES {
        stage.ask_g(&["--preset", preset, "--now", &time(T + HOUR)]);
    }
    stage.query("G", &["--like", "g0"]).ok();
    run(["show", &store, "g0"]).ok();
    run(["info", &store]).ok();
    run(["verify", &store]).ok();
    assert_eq!(state(&stage.path("G")), before);

    stage.ask_g(&["--touch", "--now", &time(T + HOUR), "-k", "1"]);
    let after = state(&stage.path("G"));
    let changed = after.iter().filter(|(name, bytes, _)| {
        !before
            .iter()
            .any(|(was, were, _)| (was, were) == (name, bytes))
    });
    let changed: Vec<_> = changed.map(|(name, ..)| name.as_str()).collect();
    // The columns of rows stay as they are.
    assert_eq!(
        changed,
        ["access.4.bytes", "deleted.4.u32", "journal.3", "manifest"]
    );
    assert_eq!(run(["verify", &store, "--json"]).json()["sound"], true);
}

// B91: what is shown is what is stored, and moves by the retrieval alone.
#[test]
fn show_tells_importance_and_the_touched_last_access() {
    let stage = Stage::g();
    let shown = |key: &str| run(["show", &stage.at("G"), key, "--json"]).json();
    let (before, other) = (shown("g1"), shown("g2"));
    assert_eq!(
        (&before["importance"], &before["last_access_us"]),
        (&8.0.into(), &T.into())
    );
    let later = time(T + 5 * HOUR);
    let document = stage.ask_g(&["-k", "2", "--touch", "--now", &later]);
    assert_eq!(
        (ids(&document), &document["touched"]),
        (vec![1, 0], &2.into())
    );
    for hit in document["hits"].as_array().unwrap() {
        assert_eq!(hit["last_access"], later.as_str());
    }
    let mut expected = before;
    expected["last_access"] = later.as_str().into();
    expected["last_access_us"] = (T + 5 * HOUR).into();
    assert_eq!(shown("g1"), expected);
    assert_eq!(shown("g2"), other);
    let text = run(["show", &stage.at("G"), "g1"]).ok();
    assert!(text.contains(&format!("last access  {later}")), "{text}");
    assert!(text.contains("importance   8"), "{text}");
    let text = stage
        .query("G", &["--like", "g1", "-k", "2", "--touch"])
        .ok();
    assert!(text.ends_with("touched 2 memories\n"), "{text}");
}

// A touch is a maximum: asking about the past does not move last access back.
#[test]
fn a_touch_does_not_go_back() {
    let stage = Stage::g();
    let document = stage.ask_g(&["--touch", "--now", &time(T - 20 * HOUR)]);
    let accesses = document["hits"].as_array().unwrap().iter();
    let mut accesses: Vec<_> = accesses
        .map(|hit| (&hit["id"], &hit["last_access"]))
        .collect();
    accesses.sort_by_key(|(id, _)| id.as_u64());
    let expected = [T - 10 * HOUR, T, T - 20 * HOUR].map(|us| Value::from(time(us)));
    assert!(
        accesses.iter().map(|(_, at)| *at).eq(&expected),
        "{accesses:?}"
    );
}

// `--touch` decides, not the preset: genagents' authors do not touch, reverie's always do.
#[test]
fn touch_is_the_callers_choice_with_every_preset() {
    for preset in memorank::scoring::Preset::NAMES {
        let stage = Stage::g();
        let later = time(T + HOUR);
        let args = ["--preset", preset, "--now", &later, "-k", "1"];
        let document = stage.ask_g(&args);
        assert_eq!(
            (&document["touched"], &document["settings"]["touch"]),
            (&0.into(), &"none".into())
        );
        let document = stage.ask_g(&[&args[..], &["--touch"]].concat());
        assert_eq!(document["touched"], 1);
        let id = ids(&document)[0].to_string();
        let shown = run(["show", &stage.at("G"), &id, "--json"]).json();
        assert_eq!(shown["last_access"], later.as_str());
    }
}

#[test]
fn a_store_that_is_being_written_to_can_be_read_and_not_touched() {
    let stage = Stage::g();
    let writer = memorank::store::Store::open(stage.path("G")).unwrap();
    stage.ask_g(&[]);
    let err = stage.query("G", &["--like", "g0", "--touch"]).fails(1);
    assert!(err.contains("open for writing elsewhere"), "{err}");
    drop(writer);
    stage.ask_g(&["--touch"]);
}
