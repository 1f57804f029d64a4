//! Pipes that close, terminals and what is none.

use crate::stage::{Ran, Stage, T_TEXT, overwrite, program, run};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// A store with more to print than a pipe holds.
fn talkative() -> Stage {
    let stage = Stage::new();
    let rows: Vec<[f32; 2]> = (0..3000).map(|i| [1.0, i as f32]).collect();
    let line = json!({"text": "x".repeat(200), "created": T_TEXT, "importance": 1});
    stage.import("S", &rows, &vec![line; 3000]);
    stage
}

/// Reads one line, closes the pipe, and waits.
fn head(args: &[&str]) -> Ran {
    let mut child = program()
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = String::new();
    let mut pipe = BufReader::new(child.stdout.take().unwrap());
    pipe.read_line(&mut out).unwrap();
    drop(pipe);
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    Ran {
        code: child.wait().unwrap().code(),
        out,
        err,
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let stage = talkative();
    let store = stage.at("S");
    for form in [&[][..], &["--json"]] {
        let args = [&["query", &store, "--like", "0", "-k", "3000"], form].concat();
        assert!(run(&args).ok().len() > 200_000);
        let first = head(&args).ok();
        assert_eq!(first.lines().count(), 1, "{first}");
    }
    for form in [&[][..], &["--json"]] {
        let first = head(&[&["list", &store], form].concat()).ok();
        assert_eq!(first.lines().count(), 1, "{first}");
    }
    // What was asked for is done nevertheless.
    let args = [
        "query",
        &store,
        "--like",
        "0",
        "-k",
        "3000",
        "--touch",
        "--now",
        "2024-01-01T00:00:00Z",
    ];
    head(&args).ok();
    let shown = run(["show", &store, "7", "--json"]).json();
    assert_eq!(shown["last_access"], "2024-01-01T00:00:00Z");
}

#[test]
fn a_closed_pipe_does_not_hide_damage() {
    let stage = talkative();
    // One damage for each of its rows.
    let file = stage.path("S/importance.f32");
    let rows: Vec<u8> = (0..3000).flat_map(|_| f32::NAN.to_le_bytes()).collect();
    overwrite(&file, 0, &rows);
    for form in [&[][..], &["--json"]] {
        let ran = head(&[&["verify", &stage.at("S")], form].concat());
        assert_eq!(ran.fails(3), "");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let stage = Stage::g();
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    for args in [
        &["info", &stage.at("G")][..],
        &["list", &stage.at("G")],
        &["explain", &stage.at("G"), "g0", "--like", "g0"],
        &["query", &stage.at("G"), "--like", "g0", "--json"],
    ] {
        let ran: Ran = program().args(args).stdout(full()).output().unwrap().into();
        assert!(ran.fails(1).contains("No space left"));
    }
    // An error that cannot be told still has its code.
    let none = stage.at("none");
    let ran: Ran = program()
        .args(["info", &none])
        .stderr(full())
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, Some(1));
}

#[test]
fn what_is_no_terminal_gets_no_escape_codes() {
    let stage = Stage::g();
    let store = stage.at("G");
    for args in [
        &["query", &store, "--like", "g0"][..],
        &[
            "query",
            &store,
            "--like",
            "g0",
            "--explain",
            "--budget",
            "9",
        ],
        &["query", &store, &store, "--like", "g0"],
        &["explain", &store, "g0", "--like", "g0"],
        &["list", &store],
        &["importance", &store, "g0", "--set", "3"],
        &["show", &store, "g0"],
        &["info", &store],
        &["verify", &store],
        &["bench", &store, "--rounds", "2"],
        &["import", "npy", &stage.at("G-source.npy"), &stage.at("new")],
        &["demo", "--memories", "5000", "--dim", "8"],
    ] {
        // `ok` also says that stderr, where progress would be, is empty.
        assert!(!run(args).ok().contains('\x1b'), "{args:?}");
    }
}

/// Runs the program on a terminal, or tells that there is none to be had.
fn on_a_terminal(environment: &[(&str, &str)], args: &[&str]) -> Option<String> {
    let quoted = args
        .iter()
        .map(|arg| format!("'{arg}'"))
        .collect::<Vec<_>>()
        .join(" ");
    let command = format!("'{}' {quoted}", env!("CARGO_BIN_EXE_memorank"));
    let mut script = Command::new("script");
    script
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null());
    script
        .env_remove("NO_COLOR")
        .env_remove("MEMORANK_ISA")
        .env("TERM", "xterm");
    script.envs(environment.iter().copied());
    let Ok(output) = script.output() else {
        crate::common::say("skipped: script is not installed");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_terminal_gets_headings_and_progress_unless_colour_is_refused() {
    let stage = Stage::g();
    let store = stage.at("G");
    let args = ["query", &store, "--like", "g0"];
    let Some(plain) = on_a_terminal(&[("NO_COLOR", "1")], &args) else {
        return;
    };
    assert!(!plain.contains('\x1b'), "{plain:?}");
    assert_eq!(plain.replace("\r\n", "\n"), run(args).ok());
    for environment in [&[][..], &[("NO_COLOR", "")]] {
        let styled = on_a_terminal(environment, &args).unwrap();
        assert!(styled.contains("\x1b[1m"), "{styled:?}");
        assert_eq!(styled.replace("\x1b[1m", "").replace("\x1b[0m", ""), plain);
    }
    let json = on_a_terminal(&[], &["query", &store, "--like", "g0", "--json"]).unwrap();
    assert!(!json.contains('\x1b'));
    let demo = on_a_terminal(&[], &["demo", "--memories", "5000", "--dim", "8"]).unwrap();
    assert!(demo.contains("generating"), "{demo:?}");
}
