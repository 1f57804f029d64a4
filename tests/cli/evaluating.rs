//! `docs/evaluating.md` shows what the program prints and draws.

use crate::common::shared_data;
use crate::stage::program;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const NUMBERS: [&str; 6] = ["26", "30", "41", "42", "49", "50"];

#[test]
fn the_page_shows_what_is_printed_and_drawn() {
    let Some(shared) = shared_data() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    symlink(shared.join("data/locomo"), dir.path().join("locomo")).unwrap();
    let ran = |args: &[String]| {
        let mut program = program();
        let output = program.args(args).current_dir(dir.path()).output().unwrap();
        let (out, err) = (output.stdout, String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{args:?}: {err}");
        String::from_utf8(out).unwrap()
    };
    let mut pairs = Vec::new();
    for number in NUMBERS {
        let (store, folder) = (format!("conv-{number}"), format!("locomo/conv-{number}"));
        let matrix = format!("{folder}/memories.npy");
        ran(&["import", "npy", &matrix, &store].map(str::to_owned));
        pairs.extend([store, format!("{folder}/questions.jsonl")]);
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let page = fs::read_to_string(docs.join("evaluating.md")).unwrap();
    let blocks = page.split("```text\n").skip(1);
    let mut blocks = blocks.map(|after| after.split_once("```").unwrap().0);
    for (command, flags) in [
        ("eval", &["--svg", "eval.svg"][..]),
        ("tune", &["--out", "scoring.json", "--svg", "tune.svg"]),
        ("sweep", &["--svg", "sweep.svg"]),
    ] {
        let told = format!("memorank {command} $pairs {}\n", flags.join(" "));
        assert!(page.contains(&told), "{told}");
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        let args = std::iter::once(command.to_owned()).chain(pairs.iter().cloned());
        let out = ran(&args.chain(flags).collect::<Vec<_>>());
        assert_eq!(
            blocks.next(),
            Some(&*out),
            "{command}: the page is out of date"
        );
        let chart = format!("{command}.svg");
        let drawn = fs::read_to_string(dir.path().join(&chart)).unwrap();
        let shown = fs::read_to_string(docs.join("evaluating").join(&chart)).unwrap();
        assert_eq!(drawn, shown, "{chart}: the page's is out of date");
    }
    let found = ran(&[
        "query",
        "conv-26",
        "--like",
        "D1:3",
        "--scoring",
        "scoring.json",
    ]
    .map(str::to_owned));
    assert!(found.contains("D1:3"), "{found}");
}
