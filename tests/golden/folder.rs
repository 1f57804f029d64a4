//! The folders of goldens.

use crate::archive::Archives;
use crate::common;
use crate::compare::Report;
use crate::json;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Runs every file of a kind, if the folder of real data is there.
///
/// # Panics
/// With everything that was not as expected.
pub fn each(kind: &str, mut run: impl FnMut(&Value, &mut Archives, &mut Report)) {
    let Some(shared) = common::shared_data() else {
        return;
    };
    let mut archives = Archives::new(shared.join("data"));
    let mut report = Report::new(common::kernels());
    let files = json_files(&shared.join("golden").join(kind));
    for file in &files {
        let golden = json::read(file);
        assert_eq!(json::text(&golden, "kind"), kind, "{}", file.display());
        run(&golden, &mut archives, &mut report);
    }
    report.finish(kind, files.len());
}

/// The JSON files of a folder that has nothing else, at least one.
pub fn json_files(folder: &Path) -> Vec<PathBuf> {
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
