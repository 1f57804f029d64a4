//! Texts, stores and files that someone else made.

use crate::stage::{HOUR, Stage, T, T_TEXT, copy, ids, run, state, time};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

const HOSTILE: &str =
    "a\x1b]0;owned\x07\x1b[2J\x1b[31mred\r\n  importance   10\t\u{9b}31m\u{7f}\u{202e}b";

/// A store whose every text is hostile.
fn hostile() -> Stage {
    let stage = Stage::new();
    let line = |key: &str| {
        json!({
            "key": format!("{key}{HOSTILE}"), "text": format!("t{HOSTILE}"), "kind": format!("k{HOSTILE}"),
            "created": T_TEXT, "importance": 1, "payload": {"p": HOSTILE}, "evidence": [format!("e{HOSTILE}")],
        })
    };
    let mut second = line("b");
    second["evidence"] = json!([0]);
    second["payload_hex"] = "1b5b33316d0a9b".into();
    second.as_object_mut().unwrap().remove("payload");
    let source = stage.matrix("m", &[[1.0, 0.0], [0.6, 0.8]], &[line("a"), second]);
    let text = run(["import", "npy", &source, &stage.at("S"), "--model", HOSTILE]).ok();
    harmless(&text);
    stage
}

#[track_caller]
fn harmless(text: &str) {
    let found = text
        .chars()
        .find(|&c| c != '\n' && (c.is_control() || c == '\u{202e}'));
    assert_eq!(found, None, "{text:?}");
}

#[test]
fn nothing_that_is_stored_reaches_the_terminal_raw() {
    let stage = hostile();
    let store = stage.at("S");
    for args in [
        &["query", &store, "--like", "0"][..],
        &["query", &store, "--like", "0", "--json"],
        &["query", &store, &store, "--like", "0"],
        &[
            "query",
            &store,
            "--like",
            "0",
            "--pin",
            "1",
            "--budget",
            "1",
            "--explain",
        ],
        &[
            "query",
            &store,
            "--like",
            "0",
            "--like",
            &format!("b{HOSTILE}"),
        ],
        &["explain", &store, "0", "--like", "1"],
        &["explain", &store, "1", "--like", "1", "-k", "1", "--json"],
        &["list", &store],
        &["list", &store, "--json", "--kind", &format!("k{HOSTILE}")],
        &["show", &store, "0"],
        &["show", &store, "1"],
        &["show", &store, "0", "--json"],
        &["show", &store, "1", "--json"],
        &["info", &store],
        &["info", &store, "--json"],
        &["verify", &store],
        &["bench", &store, "--rounds", "1"],
    ] {
        harmless(&run(args).ok());
    }
    for args in [
        &["show", &store, HOSTILE][..],
        &["query", &store, "--like", HOSTILE],
        &[
            "query",
            &store,
            "--like",
            "0",
            "--model",
            HOSTILE,
            "--vector-index",
            "0",
        ],
        &["query", &store, "--like", "0", "--model", "b\x1b[31m"],
        &["info", &format!("{store}\x1b[31m")],
        &["delete", &store, HOSTILE],
        &["list", &store, "--kind", HOSTILE],
        &["list", &store, "--only", HOSTILE],
        &["list", &store, "--mask", "no\x1b[31m"],
        &["explain", &store, HOSTILE, "--like", "0"],
        &["importance", &store, HOSTILE, "--set", "3"],
        &[
            "query",
            &store,
            "--queries",
            &stage.write("hostile", HOSTILE),
        ],
        &["delete", &store, "0", "9\x1b[31m"],
        &["checkpoint", &format!("{store}\x1b[31m")],
        &["compact", &format!("{store}\x1b[31m")],
    ] {
        let ran = run(args);
        assert_ne!(ran.code, Some(0));
        // Usage errors repeat what the user typed.
        if ran.code != Some(2) {
            harmless(&ran.err);
        }
    }
    // JSON says it exactly nevertheless.
    let shown = run(["show", &store, "0", "--json"]).json();
    assert_eq!(shown["text"], format!("t{HOSTILE}"));
    assert_eq!(shown["payload"], json!({"p": HOSTILE}));
    let hit = &stage.query("S", &["--like", "0", "--json"]).json()["hits"][0];
    assert_eq!(hit["key"], format!("a{HOSTILE}"));

    // A hit is one line, and a text cannot pass for a field.
    let text = stage.query("S", &["--like", "0"]).ok();
    assert_eq!(text.lines().count(), 3 + 2, "{text}");
    let text = run(["list", &store]).ok();
    assert_eq!(text.lines().count(), 1 + 2 + 1, "{text}");
    let text = run(["show", &store, "0"]).ok();
    let fields = text.lines().filter(|line| line.starts_with("  importance"));
    assert_eq!(fields.collect::<Vec<_>>(), ["  importance   1"]);

    // Nor does what writers say of it, in a folder of such a name.
    let odd = stage.at(&format!("S{HOSTILE}"));
    fs::rename(&store, &odd).unwrap();
    harmless(&run(["list", &odd]).ok());
    harmless(&run(["query", &odd, &odd, "--like", "0"]).ok());
    for form in [&[][..], &["--json"]] {
        let key = ["1", "0"][form.len()];
        for args in [
            &["importance", &odd, key, "--set", "3"][..],
            &["delete", &odd, key],
            &["checkpoint", &odd],
            &["compact", &odd],
            &["repair", &odd, &format!("{odd}-new{}", form.len())],
        ] {
            let text = run([args, form].concat()).ok();
            harmless(&text);
            assert!(!form.is_empty() || text.lines().count() <= 2, "{text}");
        }
    }
    let err = run(["delete", &odd, "1"]).fails(1);
    harmless(&err);
}

#[test]
fn long_texts_are_kept_and_shown_short() {
    let stage = Stage::new();
    let text = "记忆 ".repeat(1 << 20);
    let line =
        json!({"key": "k".repeat(100_000), "text": text, "created": T_TEXT, "importance": 1});
    stage.import("S", &[[1.0, 0.0]], &[line]);
    let printed = stage.query("S", &["--like", "0"]).ok();
    assert!(printed.lines().all(|line| line.chars().count() < 200));
    assert_eq!(
        stage.query("S", &["--like", "0", "--json"]).json()["hits"][0]["text"],
        *text
    );
    assert!(run(["show", &stage.at("S"), "0"]).ok().contains(&text));
}

#[test]
fn a_store_behind_links_is_read_and_touched() {
    let stage = Stage::g();
    symlink("G", stage.path("link")).unwrap();
    let document = stage.query(
        "link",
        &[
            "--like",
            "g0",
            "--json",
            "--touch",
            "--now",
            &time(T + HOUR),
        ],
    );
    assert_eq!(ids(&document.json()), [1, 0, 2]);
    let shown = run(["show", &stage.at("G"), "g0", "--json"]).json();
    assert_eq!(shown["last_access_us"], T + HOUR);
    // A column file behind a link is the same bytes.
    fs::rename(stage.path("G/embedding.f32"), stage.path("elsewhere")).unwrap();
    symlink("../elsewhere", stage.path("G/embedding.f32")).unwrap();
    stage.query("G", &["--like", "g0"]).ok();
    run(["verify", &stage.at("G")]).ok();
}

#[test]
fn files_that_are_no_files_are_errors() {
    let stage = Stage::g();
    let query = stage.at("q.json");
    for (name, target) in [
        ("manifest", Some("/dev/zero")),
        ("manifest", None),
        ("embedding.f32", Some("/dev/zero")),
        ("embedding.f32", Some("/dev/null")),
        ("embedding.f32", Some("embedding.f32")),
        ("embedding.f32", None),
        ("text.bytes", None),
    ] {
        copy(&stage.path("G"), &stage.path("odd"));
        let file = stage.path("odd").join(name);
        fs::remove_file(&file).unwrap();
        match target {
            Some(target) => symlink(target, &file).unwrap(),
            None => fs::create_dir(&file).unwrap(),
        }
        let store = stage.at("odd");
        for args in [
            &["info", &store][..],
            &["verify", &store],
            &["show", &store, "g0"],
            &["query", &store, "--vector", &query],
            &["query", &store, "--vector", &query, "--touch"],
        ] {
            let ran = run(args);
            assert!(
                matches!(ran.code, Some(1 | 3)),
                "{name} {target:?}: {ran:?}"
            );
            assert!(format!("{}{}", ran.out, ran.err).contains(name), "{ran:?}");
        }
        fs::remove_dir_all(stage.path("odd")).unwrap();
    }
    for path in [".", "/dev/null", "/"] {
        stage.query("G", &["--vector", path]).fails(1);
    }
}

// Leftovers of a writer that was killed: the next writer removes them, readers ignore them.
#[test]
fn leftovers_are_no_part_of_a_store() {
    let stage = Stage::g();
    let expected = stage.ask_g(&[]);
    stage.write("G/manifest.1.5.tmp", "half");
    stage.write("G/last_access.7.i64", "half");
    let mut text = fs::read(stage.path("G/text.bytes")).unwrap();
    text.extend(vec![0; 1 << 20]);
    stage.write("G/text.bytes", text);
    let before = state(&stage.path("G"));
    assert_eq!(stage.ask_g(&[]), expected);
    let verified = run(["verify", &stage.at("G"), "--json"]).json();
    assert_eq!(
        (&verified["sound"], &verified["uncommitted_bytes"]),
        (&true.into(), &(1 << 20).into())
    );
    assert!(
        run(["verify", &stage.at("G")])
            .ok()
            .contains("1,048,576 bytes of an append")
    );
    assert_eq!(state(&stage.path("G")), before);
    stage.ask_g(&["--touch"]);
    assert!(!stage.path("G/manifest.1.5.tmp").exists());
    assert_eq!(
        run(["verify", &stage.at("G"), "--json"]).json()["uncommitted_bytes"],
        0
    );
}

#[test]
fn a_pipe_or_an_endless_device_does_not_hold_up_the_reader() {
    let stage = Stage::g();
    for name in ["manifest", "text.bytes"] {
        copy(&stage.path("G"), &stage.path("odd"));
        let file = stage.path("odd").join(name);
        fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
        let ran = run(["info", &stage.at("odd")]);
        assert!(matches!(ran.code, Some(1 | 3)), "{name}: {ran:?}");
        fs::remove_dir_all(stage.path("odd")).unwrap();
    }
    let err = run(["query", &stage.at("G"), "--vector", "/dev/zero"]).fails(1);
    assert!(err.contains("1 GiB"), "{err}");

    // What importers read is a file, or an error.
    let folder = stage.path("archive");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("nodes.json"), "{}").unwrap();
    symlink("/dev/zero", folder.join("embeddings.json")).unwrap();
    symlink("/dev/zero", stage.path("x.npy")).unwrap();
    fs::write(stage.path("x.jsonl"), "").unwrap();
    for args in [
        ["import", "reverie", &stage.at("archive"), &stage.at("new")],
        ["import", "genagents", "/dev", &stage.at("new")],
        ["import", "npy", &stage.at("x.npy"), &stage.at("new")],
    ] {
        run(args).fails(1);
        assert!(!stage.path("new").exists());
    }
}
