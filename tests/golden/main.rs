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
mod folder;
mod genagents;
mod json;
mod numbers;
mod paper;
mod reverie;

use compare::Report;
use std::path::Path;

#[test]
fn paper_goldens_are_reproduced() {
    folder::each("paper", |golden, archives, report| {
        paper::case(golden, archives).run(report);
    });
}

#[test]
fn reverie_goldens_are_reproduced() {
    folder::each("reverie", |golden, archives, report| {
        match reverie::case(golden, archives) {
            Some(case) => case.run(report),
            None => common::say(format_args!("no ranking: {}", golden["case"])),
        }
    });
}

#[test]
fn genagents_goldens_are_reproduced() {
    folder::each("genagents", |golden, archives, report| {
        genagents::case(golden, archives).run(report);
    });
}

#[test]
fn golden_numbers_are_reproduced() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/data");
    let mut report = Report::new(common::kernels());
    let files = folder::json_files(&folder);
    for file in &files {
        let cases = numbers::cases(&json::read(file));
        assert!(!cases.is_empty(), "{}", file.display());
        cases.iter().for_each(|case| case.run(&mut report));
    }
    report.finish("numbers", files.len());
}
