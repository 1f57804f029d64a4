//! `memorank import`: it commits whole or leaves nothing.

use crate::import_common::f32_npy;
use crate::stage::{Ran, Stage, T_TEXT, program, run, state};
use serde_json::{Value, json};
use std::fs;

/// Everything in a stage's folder, hidden folders included.
fn listed(stage: &Stage) -> Vec<String> {
    let entries = fs::read_dir(stage.path("")).unwrap();
    let mut names: Vec<_> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_existing_path_is_left_untouched() {
    let stage = Stage::g();
    let source = stage.at("G-source.npy");
    fs::create_dir(stage.path("empty")).unwrap();
    stage.write("file", "text");
    std::os::unix::fs::symlink("nowhere", stage.path("link")).unwrap();
    let (before, names) = (state(&stage.path("G")), listed(&stage));
    for name in ["G", "empty", "file", "link", "G/", "."] {
        let err = run(["import", "npy", &source, &stage.at(name)]).fails(1);
        assert!(err.contains("already exists"), "{name}: {err}");
    }
    assert_eq!((state(&stage.path("G")), listed(&stage)), (before, names));
    assert_eq!(fs::read(stage.path("file")).unwrap(), b"text");
}

// B33, B96
#[test]
fn a_failing_import_leaves_nothing() {
    let stage = Stage::new();
    let line = |text: &str| json!({"text": text, "created": T_TEXT, "importance": 1});
    let good = [line("a"), line("b")];
    let rows = [[1.0, 0.0], [0.0, 1.0]];
    let mut no_time = good.clone();
    no_time[1].as_object_mut().unwrap().remove("created");
    let mut number = good.clone();
    number[1]["created"] = 1_676_300_400.into();
    let mut without_zone = good.clone();
    without_zone[1]["created"] = "2023-02-13T15:00:00".into();
    let mut importance = good.clone();
    importance[1]["importance"] = "8/10".into();
    for (at, (lines, told)) in [
        (&no_time[..], "line 2: `created`"),
        (&number, "line 2: `created`"),
        (&without_zone, "line 2: `created`"),
        (&importance, "line 2: `importance`"),
        (&good[..1], "1"),
    ]
    .into_iter()
    .enumerate()
    {
        let source = stage.matrix(&format!("m{at}"), &rows, lines);
        let before = listed(&stage);
        let err = run(["import", "npy", &source, &stage.at("S")]).fails(1);
        assert!(err.contains(told), "{err}");
        assert_eq!(listed(&stage), before);
    }
    // B08: in the last row, when the store is already begun.
    stage.matrix("nan", &rows, &good);
    let source = stage.write("nan.npy", f32_npy(2, &[1.0, 0.0, 0.0, f32::NAN]));
    let cut = stage.write("cut.npy", &f32_npy(2, &[1.0, 0.0, 0.0, 1.0])[..140]);
    stage.matrix("big", &[[1.0, 0.0], [70000.0, 1.0]], &good);
    let big = stage.at("big.npy");
    let lines = stage.at("nan.jsonl");
    let before = listed(&stage);
    for (args, told) in [
        (&[&*source][..], "row 1"),
        (&[&cut, "--jsonl", &lines], "cut.npy"),
        (&[&big, "--dtype", "f16"], "70000"),
        (&[&stage.at("none.npy"), "--jsonl", &lines], "none.npy"),
        (
            &[&stage.at("big.npy"), "--jsonl", &stage.at("none.jsonl")],
            "none.jsonl",
        ),
    ] {
        let store = stage.at("S");
        let err = run([&["import", "npy"], args, &[&store]].concat()).fails(1);
        assert!(err.contains(told), "{told}: {err}");
        assert_eq!(listed(&stage), before);
    }
    // No folder is made for the store to be in.
    let source = stage.matrix("good", &rows, &good);
    let before = listed(&stage);
    let err = run(["import", "npy", &source, &stage.at("none/S")]).fails(1);
    assert!(err.contains("the folder it lies in must exist"), "{err}");
    assert_eq!(listed(&stage), before);
    run(["import", "npy", &source, &stage.at("S")]).ok();
}

#[test]
fn archives_that_are_none_are_named_and_leave_nothing() {
    let stage = Stage::new();
    fs::create_dir(stage.path("archive")).unwrap();
    for (nodes, told) in [
        ("", "nodes.json"),
        ("{\"node_1\": 5}", "node_1"),
        ("[1]", "nodes.json"),
        (
            "{\"node_1\": {\"type\": \"event\", \"created\": \"yesterday\"}}",
            "node_1",
        ),
    ] {
        stage.write("archive/nodes.json", nodes);
        stage.write("archive/embeddings.json", "{}");
        for format in ["reverie", "genagents"] {
            let err = run(["import", format, &stage.at("archive"), &stage.at("S")]).fails(1);
            assert!(err.contains(told) || format == "genagents", "{err}");
            assert_eq!(listed(&stage), ["archive"]);
        }
    }
}

// B40: the disk, or what a process may write, is full.
#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let stage = Stage::new();
    let rows: Vec<[f32; 64]> = (0..2000).map(|i| [i as f32 + 1.0; 64]).collect();
    let line = json!({"text": "a", "created": T_TEXT, "importance": 1});
    let source = stage.matrix("m", &rows, &vec![line; 2000]);
    let before = listed(&stage);
    // Without the signal, writing past the limit is an error as on a full disk. 200 blocks of 512 bytes
    // or 1 KiB; the embeddings take 500 KiB.
    let script = "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"";
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", script, env!("CARGO_BIN_EXE_memorank")]);
    limited.args(["import", "npy", &source, &stage.at("S")]);
    let ran: Ran = limited.output().unwrap().into();
    let err = ran.fails(1);
    assert!(err.contains("File too large"), "{err}");
    assert_eq!(listed(&stage), before);
}

#[test]
fn a_report_tells_what_was_not_as_expected() {
    let stage = Stage::new();
    let line = json!({"text": "a", "created": "1960-01-01T00:00:00Z", "surprise": 1, "evidence": ["gone"]});
    let source = stage.matrix("m", &[[0.0, 0.0]], &[line]);
    let text = run(["import", "npy", &source, &stage.at("S")]).ok();
    for told in [
        "0 with, 1 without",
        "time-before-1970",
        "unknown-field",
        "evidence",
        "stored in ",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let document = run(["import", "npy", &source, &stage.at("S2"), "--json"]).json();
    let notices = document["notices"].as_array().unwrap();
    let named: Vec<_> = notices
        .iter()
        .map(|notice| notice["name"].as_str().unwrap())
        .collect();
    assert!(named.contains(&"time-before-1970"), "{named:?}");
    let shown = run(["show", &stage.at("S2"), "0", "--json"]).json();
    assert_eq!(shown["evidence"], json!([{"missing": "gone"}]));
    assert_eq!(shown["embedding"], Value::Null);
    assert_eq!(shown["created_us"], -315_619_200_000_000_i64);
}

#[test]
fn paths_may_hold_anything() {
    let stage = Stage::g();
    let source = stage.at("G-source.npy");
    for name in [
        "with space",
        "neue Öl-Straße",
        "记忆",
        "line\nbreak",
        "-k",
        "a'b\"c$d",
        "\x1b[31m",
    ] {
        let mut import = program();
        import
            .current_dir(stage.path(""))
            .args(["import", "npy", &source, "--", name]);
        let text = Ran::from(import.output().unwrap()).ok();
        assert!(!text.contains('\x1b'));
        let store = stage.at(name);
        run(["query", &store, "--like", "g0"]).ok();
        run(["query", &store, "--like", "g0", "--touch"]).ok();
        assert_eq!(run(["verify", &store, "--json"]).json()["store"], *store);
        let text = run(["info", &store]).ok();
        assert!(
            text.lines().next().unwrap().contains("3 memories"),
            "{text}"
        );
    }
}
