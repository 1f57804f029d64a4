//! Stores that a writer left with a journal: what it holds is there, and what it left out is told.

use crate::stage::{HOUR, Stage, T, append, copy, files, ids, run, state, time};
use memorank::store::{Agent, Store};
use serde_json::json;
use std::fs;

/// [`Stage::g`] with a copy `J` of `G`, made while a writer was at work: `g1` was deleted, `g2` touched an hour
/// after [`T`], and `g3`, the same as `g0` but for its key, appended.
pub fn unfolded() -> Stage {
    let stage = Stage::g();
    let store = Store::open(stage.path("G")).unwrap();
    store.delete(&[1]).unwrap();
    store.touch(Agent::OWN, &[2], T + HOUR).unwrap();
    append(&store, "g3", &[1.0, 0.0]);
    copy(&stage.path("G"), &stage.path("J"));
    stage
}

#[test]
fn what_is_only_in_the_journal_is_ranked_and_shown() {
    let stage = unfolded();
    let before = state(&stage.path("J"));
    let store = stage.at("J");
    let document = stage.query("J", &["--like", "g3", "--json"]).json();
    assert_eq!(document["now"], time(T + HOUR));
    assert_eq!(
        (&document["memories"], &document["candidates"]),
        (&3.into(), &3.into())
    );
    let mut found = ids(&document);
    found.sort();
    assert_eq!(found, [0, 2, 3]);
    let document = stage.query("J", &["--like", "g3", "--json", "--exclude-self"]);
    assert_eq!(document.json()["candidates"], 2);

    let shown = run(["show", &store, "g3", "--json"]).json();
    assert_eq!(
        (&shown["id"], &shown["embedding"]),
        (&3.into(), &json!([1.0, 0.0]))
    );
    assert_eq!(
        run(["show", &store, "g2", "--json"]).json()["last_access_us"],
        T + HOUR
    );
    let info = run(["info", &store, "--json"]).json();
    for (name, value) in [
        ("memories", json!(3)),
        ("deleted", json!(1)),
        ("in_journal", json!(1)),
        ("next_id", json!(4)),
        ("kinds", json!({"observation": 3})),
        ("newest_access", json!(time(T + HOUR))),
    ] {
        assert_eq!(info[name], value, "{name}");
    }
    let verified = run(["verify", &store, "--json"]).json();
    for (name, value) in [
        ("sound", json!(true)),
        ("rows", json!(3)),
        ("records", json!(3)),
        ("dropped", json!([])),
    ] {
        assert_eq!(verified[name], value, "{name}");
    }
    let text = run(["verify", &store]).ok();
    assert!(text.contains("3 records in the journal"), "{text}");
    let text = run(["info", &store]).ok();
    assert!(text.contains("\n  in the journal    1\n"), "{text}");

    let measured = run(["bench", &store, "--rounds", "1", "--json"]).json();
    assert_eq!(measured["memories"], 3);
    assert_eq!(measured["queries"], json!([0, 2, 3]));
    assert_eq!(measured["growth"][0]["memories"], 3);
    assert_eq!(state(&stage.path("J")), before);
}

/// Writes to the end of a file.
fn extend(stage: &Stage, name: &str, bytes: &[u8]) {
    let whole = fs::read(stage.path(name)).unwrap();
    stage.write(name, [&whole, bytes].concat());
}

#[test]
fn what_a_writer_left_half_is_a_note_and_no_damage() {
    let stage = unfolded();
    let journal = fs::metadata(stage.path("J/journal.2")).unwrap().len();
    extend(&stage, "J/journal.2", &[7; 1000]);
    let before = state(&stage.path("J"));
    let (store, query) = (stage.at("J"), stage.at("q.json"));
    let place = format!("{store}/journal.2: byte {journal}: ");

    let text = run(["verify", &store]).ok();
    let note = text.lines().find(|line| line.starts_with("note: "));
    let note = note.unwrap_or_else(|| panic!("{text}"));
    assert!(
        note.contains(&place) && note.ends_with("; 1000 bytes are left out"),
        "{note}"
    );
    assert!(text.ends_with("\nsound\n"), "{text}");
    let verified = run(["verify", &store, "--json"]).json();
    assert_eq!(
        (&verified["sound"], &verified["records"]),
        (&true.into(), &3.into())
    );
    let dropped = &verified["dropped"][0];
    assert_eq!(dropped["file"], format!("{store}/journal.2"));
    assert_eq!(
        (&dropped["offset_bytes"], &dropped["bytes"]),
        (&journal.into(), &1000.into())
    );

    let whole = stage.query("G", &["--vector", &query]).ok();
    for args in [
        &["info", &store][..],
        &["info", &store, "--json"],
        &["show", &store, "g3"],
        &["query", &store, "--vector", &query],
        &["bench", &store, "--rounds", "1"],
        &["query", &store, "--vector", &query, "--touch", "-k", "1"],
    ] {
        if args.contains(&"--touch") {
            assert_eq!(state(&stage.path("J")), before);
        }
        let ran = run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{args:?}: {}", ran.err);
        let told = ran.err.starts_with("memorank: note: ")
            && ran.err.contains(&place)
            && ran.err.ends_with("; 1000 bytes are left out\n");
        assert!(told, "{args:?}: {}", ran.err);
        if args == ["query", &store, "--vector", &query] {
            assert_eq!(ran.out, whole);
        }
    }
    // The writer left nothing of it.
    let verified = run(["verify", &store, "--json"]).json();
    assert_eq!(
        (&verified["dropped"], &verified["records"]),
        (&json!([]), &0.into())
    );
    stage.query("J", &["--vector", &query]).ok();
}

#[test]
fn what_was_durable_and_is_not_there_is_damage() {
    let stage = unfolded();
    let journal = fs::read(stage.path("J/journal.2")).unwrap();
    let store = stage.at("J");
    // The first record: the one after it says that it was durable.
    let mut broken = journal.clone();
    broken[64 + 40] ^= 1;
    for content in [&broken, &journal[..30], &[]] {
        stage.write("J/journal.2", content);
        let before = state(&stage.path("J"));
        for args in [
            &["info", &store][..],
            &["show", &store, "g0"],
            &["query", &store, "--like", "g0"],
            &["query", &store, "--like", "g0", "--touch"],
            &["bench", &store],
            &["verify", &store],
        ] {
            let ran = run(args);
            let told = format!("{}{}", ran.out, ran.err);
            assert!(told.contains("journal.2"), "{args:?}: {told}");
            ran.fails(3);
        }
        assert_eq!(state(&stage.path("J")), before);
    }
}

// No byte can be written to any file: the disk is full, say.
#[test]
fn a_ranking_is_returned_also_if_it_could_not_be_noted() {
    let stage = Stage::g();
    let full = |args: &[&str]| -> crate::stage::Ran {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]);
        shell.args([env!("CARGO_BIN_EXE_memorank"), "query", &stage.at("G")]);
        let args = ["--like", "g0", "--now", "2023-03-01T00:00:00Z"]
            .iter()
            .chain(args);
        shell
            .args(args)
            .env_remove("MEMORANK_ISA")
            .env_remove("NO_COLOR");
        shell.output().unwrap().into()
    };
    let before = files(&stage.path("G"));
    let expected = full(&["--json"]).json();
    for form in [&["--touch"][..], &["--touch", "--json"]] {
        let ran = full(form);
        match serde_json::from_str::<serde_json::Value>(&ran.out) {
            Ok(document) => {
                assert_eq!(document["hits"], expected["hits"]);
                assert_eq!(document["touched"], 0);
                assert_eq!(document["sequence"], serde_json::Value::Null);
            }
            Err(_) => {
                assert_eq!(form, ["--touch"], "{}", ran.out);
                assert_eq!(ran.out, full(&[]).ok());
            }
        }
        let err = ran.fails(1);
        assert!(
            err.contains("writing") && err.contains("journal.2"),
            "{err}"
        );
    }
    assert_eq!(files(&stage.path("G")), before);
    // Where there is room, it is noted.
    let touched = stage.ask_g(&["--touch"]);
    assert_eq!(touched["touched"], 3);
}
