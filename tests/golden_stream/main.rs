//! The goldens through everything a user goes through: the saved archive is imported into a store, and
//! `stream` ranks, retrieves and touches with the named preset.
//!
//! What is expected is read by the modules of `tests/golden`. Columns, candidates, their order, positions
//! and touches are the importer's, the store's and the stream's. Reads the folder that
//! `MEMORANK_TEST_DATA` names: unset, the tests say that they were skipped.
//!
//! For every candidate of every question, in raw and normalised components and scores:
//!
//! - an f32 store is within 1e-5 of the golden, in its order (see `compare`), with the same bits on every
//!   kernel and threaded; last accesses are those of the golden before, between and after the
//!   questions, and after the store was closed and opened again; questions that see the touches of those
//!   before them have the same answers, bit for bit, in one call;
//! - an f16 store is within 2e-3 of the golden, and within 1e-5 of the oracle on the stored values.

#[path = "../golden/archive.rs"]
mod archive;
mod ask;
#[path = "../golden/case.rs"]
#[allow(dead_code)] // `tests/golden` runs the cases on columns
mod case;
#[path = "../golden/compare.rs"]
mod compare;
#[path = "../golden/folder.rs"]
mod folder;
#[path = "../golden/genagents.rs"]
mod genagents;
#[path = "../import_common/mod.rs"]
mod import_common;
#[path = "../golden/json.rs"]
mod json;
mod load;
#[path = "../golden/paper.rs"]
mod paper;
#[path = "../golden/reverie.rs"]
mod reverie;
mod source;

use case::Case;
use compare::Report;
use import_common::{affected, common};
use memorank::import::NoticeKind;
use memorank::kernel::Dtype;
use memorank::scoring::MICROSECONDS_PER_HOUR;
use serde_json::Value;
use source::{Imported, Source};

const DTYPES: [Dtype; 2] = [Dtype::F32, Dtype::F16];

#[test]
fn paper_goldens_are_reproduced_from_imported_archives() {
    folder::each("paper", |golden, archives, report| {
        let case = paper::case(golden, archives);
        let source = Source::paper(golden, &case, archives);
        run(&case, &source, golden, report);
    });
}

#[test]
fn reverie_goldens_are_reproduced_from_imported_archives() {
    folder::each("reverie", |golden, archives, report| {
        let Some(case) = reverie::case(golden, archives) else {
            return load::check(golden, archives);
        };
        let source = Source::reverie(golden, &case, archives);
        run(&case, &source, golden, report);
    });
}

#[test]
fn genagents_goldens_are_reproduced_from_imported_archives() {
    folder::each("genagents", |golden, archives, report| {
        let mut case = genagents::case(golden, archives);
        in_hours(&mut case);
        let source = Source::genagents(golden, archives);
        run(&case, &source, golden, report);
    });
}

fn run(case: &Case, source: &Source, golden: &Value, report: &mut Report) {
    for dtype in DTYPES {
        report.at(format!("{}, {dtype}", case.name));
        let imported = source
            .import(dtype)
            .unwrap_or_else(|e| panic!("{}: {e}", case.name));
        check_import(case, source, &imported, report);
        let kind = json::text(golden, "kind");
        ask::run(case, kind, source.filter.as_deref(), imported, report);
    }
}

/// The store holds the golden's memories in the golden's rows, and the import told what it could not keep.
fn check_import(case: &Case, source: &Source, imported: &Imported, report: &mut Report) {
    let Imported {
        store,
        report: told,
        ..
    } = imported;
    let store = store.snapshot();
    let memories = &case.memories;
    let rows = 0..store.rows();
    let created = rows.clone().map(|row| store.created(row));
    report.expect(created.eq(memories.created.iter().copied()), || {
        "the creation times differ".into()
    });
    let importance = rows.map(|row| store.importance(row));
    report.expect(importance.eq(memories.importance.iter().copied()), || {
        "the importances differ".into()
    });
    let keys: Vec<_> = (0..store.len())
        .map(|row| store.memory(row).expect("a memory").key.map(str::to_owned))
        .collect();
    report.expect(
        keys.iter().flatten().eq(&source.keys) && keys.len() == source.keys.len(),
        || "the keys differ".into(),
    );
    for row in 0..store.len() {
        let expected = !memories.vectorless.contains(&row);
        report.expect(store.embedding(row).is_some() == expected, || {
            format!("row {row} should have a vector: {expected}")
        });
    }
    let zeros = affected(told, NoticeKind::VectorZero);
    let named = |row: &usize| {
        zeros
            .iter()
            .any(|line| line.starts_with(&format!("{}:", source.keys[*row])))
    };
    report.expect(
        zeros.len() == memories.vectorless.len() && memories.vectorless.iter().all(named),
        || format!("vectors of zeros: told of {zeros:?}"),
    );
    let kinds = affected(told, NoticeKind::UnknownType);
    match case.name.as_str() {
        "load__unknown_type" => {
            report.expect(kinds == ["node_50: plan"], || format!("{kinds:?}"));
            let kind = store.memory(49).expect("a memory").kind;
            report.expect(kind.as_str() == "plan", || format!("{kind}"));
        }
        _ => report.expect(kinds.is_empty(), || format!("unknown types: {kinds:?}")),
    }
}

/// Steps are hours in a store.
fn in_hours(case: &mut Case) {
    let hour = MICROSECONDS_PER_HOUR.get() as i64;
    let scale = |times: &mut [i64]| times.iter_mut().for_each(|time| *time *= hour);
    scale(&mut case.memories.created);
    scale(&mut case.memories.last_access);
    scale(case.last_access_after.as_deref_mut().unwrap_or_default());
    for question in &mut case.questions {
        question.now *= hour;
        if let case::Expected::Scores(scores) = &mut question.expected {
            scale(&mut scores.last_access);
        }
    }
}
