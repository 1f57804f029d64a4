//! Known outputs on real archives, in full precision, against the library on every kernel.
//!
//! `numbers` runs the few cases in `tests/golden/data` and needs nothing else. The others read the
//! folder that `MEMORANK_TEST_DATA` names: unset, they say that they were skipped; set, anything
//! missing is a failure.
//!
//! For every candidate of every question, in raw and normalised components and scores:
//!
//! - f32 columns are within 1e-5 of the golden, with the same bits on every kernel and threaded;
//! - f16 columns are within 1e-5 of the oracle on the stored values, and within 2e-3 of the golden;
//! - the oracle is within 1e-9 of the golden.
//!
//! Two candidates stand in another order than in the golden only if their golden scores differ, and
//! by less than 2e-5. The k best are a prefix of the whole order.

mod archive;
mod case;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod genagents;
mod json;
mod numbers;
mod paper;
mod reverie;

use archive::Archives;
use case::Case;
use compare::Report;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[test]
fn paper_goldens_are_reproduced() {
    folder("paper", |golden, archives| {
        Some(paper::case(golden, archives))
    });
}

#[test]
fn reverie_goldens_are_reproduced() {
    folder("reverie", reverie::case);
}

#[test]
fn genagents_goldens_are_reproduced() {
    folder("genagents", |golden, archives| {
        Some(genagents::case(golden, archives))
    });
}

#[test]
fn golden_numbers_are_reproduced() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/data");
    let mut report = Report::new(common::kernels());
    let files = json_files(&folder);
    for file in &files {
        let cases = numbers::cases(&json::read(file));
        assert!(!cases.is_empty(), "{}", file.display());
        cases.iter().for_each(|case| case.run(&mut report));
    }
    report.finish("numbers", files.len());
}

/// Runs every file of a folder of goldens. `read` gives no case for a file that is not about ranking.
fn folder(kind: &str, read: impl Fn(&Value, &mut Archives) -> Option<Case>) {
    let Some(shared) = common::shared_data() else {
        return;
    };
    let mut archives = Archives::new(shared.join("data"));
    let mut report = Report::new(common::kernels());
    let files = json_files(&shared.join("golden").join(kind));
    for file in &files {
        let golden = json::read(file);
        assert_eq!(json::text(&golden, "kind"), kind, "{}", file.display());
        match read(&golden, &mut archives) {
            Some(case) => case.run(&mut report),
            None => common::say(format_args!("{kind}: not about ranking: {}", file.display())),
        }
    }
    report.finish(kind, files.len());
}

/// The JSON files of a folder that has nothing else, at least one.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no goldens in {}", folder.display());
    for file in &files {
        assert!(
            file.extension().is_some_and(|e| e == "json"),
            "{} is not a golden",
            file.display()
        );
    }
    files
}
