//! `memorank demo`.

use crate::stage::{Ran, Stage, program};
use serde_json::Value;

fn demo(stage: &Stage, args: &[&str]) -> Ran {
    let temporary = stage.path("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut program = program();
    program.arg("demo").args(args).env("TMPDIR", &temporary);
    let ran = program.output().unwrap().into();
    let left = std::fs::read_dir(&temporary).unwrap();
    assert_eq!(left.count(), 0, "a demo leaves nothing");
    ran
}

#[test]
fn a_demo_agrees_with_the_oracle_and_leaves_nothing() {
    let stage = Stage::new();
    let args = ["--memories", "2000", "--dim", "33", "--dtype", "f32"];
    let document = demo(&stage, &[&args[..], &["--json"]].concat()).json();
    assert_eq!(document["schema"], "memorank.demo/1");
    assert_eq!(document["oracle"]["agrees"], true, "{}", document["oracle"]);
    assert_eq!(document["oracle"]["same_order"], true);
    let length = |name: &str| document[name].as_array().unwrap().len();
    assert_eq!((length("before_touch"), length("after_touch")), (10, 10));
    // Embeddings and inverse norms are read, and each signal at least once.
    assert!(document["bytes"].as_u64().unwrap() >= 2000 * (33 + 1) * 4);
    // What was touched has the best recency in the second ranking.
    for hit in document["after_touch"].as_array().unwrap() {
        if !hit["before"].is_null() {
            assert_eq!(hit["recency"]["normalized"], 1.0);
        }
    }
    let text = demo(&stage, &args).ok();
    assert!(text.contains("f64 oracle       AGREES"), "{text}");
}

#[test]
fn small_demos_work() {
    let stage = Stage::new();
    for memories in ["0", "1", "2", "11"] {
        for (dim, dtype) in [("1", "f16"), ("1", "f32"), ("2", "f16"), ("17", "f32")] {
            let args = ["--memories", memories, "--dim", dim, "--dtype", dtype];
            let document = demo(&stage, &[&args[..], &["--json"]].concat()).json();
            assert_eq!(document["oracle"]["agrees"], true, "{args:?}");
            let shown = document["before_touch"].as_array().unwrap().len();
            assert_eq!(shown, memories.parse::<usize>().unwrap().min(10));
            demo(&stage, &args).ok();
        }
    }
}

#[test]
fn a_seed_gives_the_same_demo_on_any_threads() {
    let stage = Stage::new();
    let hits = |seed: &str, threads: &str| -> Value {
        let args = [
            "--memories",
            "300",
            "--dim",
            "20",
            "--json",
            "--seed",
            seed,
            "--threads",
            threads,
        ];
        let document = demo(&stage, &args).json();
        assert_eq!(document["threads"].to_string(), threads);
        document["after_touch"].clone()
    };
    let first = hits("1", "1");
    assert_eq!(hits("1", "3"), first);
    assert_ne!(hits("2", "1"), first);
}
