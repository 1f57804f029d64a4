//! Completions and manual pages say what `--help` says.

use crate::stage::{Stage, run};
use std::collections::BTreeSet;
use std::fs;

/// The commands that `--help` lists.
fn commands() -> BTreeSet<String> {
    let help = run(["--help"]).ok();
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn completions_name_every_command_in_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(["completions", shell]).ok();
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command}");
        }
    }
    run(["completions", "cobol"]).fails(2);
    run(["completions", "bash", "--json"]).fails(2);
}

#[test]
fn every_command_has_a_page() {
    let page = run(["man"]).ok();
    assert!(page.contains(".TH memorank"), "{page}");

    let stage = Stage::new();
    let dir = stage.at("man");
    let err = run(["man", &dir]).fails(1);
    assert!(err.contains(&dir), "{err}");
    fs::create_dir(&dir).unwrap();
    run(["man", &dir]).ok();
    let names = fs::read_dir(&dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.collect();
    for command in commands() {
        let name = format!("memorank-{command}.1");
        assert!(names.contains(&name), "{name}");
        let page = fs::read_to_string(stage.path("man").join(name)).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    run(["man", "--json"]).fails(2);
}
