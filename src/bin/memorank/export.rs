//! `memorank export`: a store as plain files.

use crate::failure::Failure;
use crate::opened;
use crate::output::{Output, escaped, grouped};
use memorank::export::{ExportReport, export};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
    /// The new folder of embeddings.npy, memories.jsonl and store.json; it must not exist.
    dir: PathBuf,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    dir: String,
    #[serde(flatten)]
    report: &'a ExportReport,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let snapshot = opened::to_read(&args.store)?.snapshot();
    let report = export(&snapshot, &args.dir)?;
    let document = Document {
        schema: "memorank.export/1",
        store: args.store.display().to_string(),
        dir: args.dir.display().to_string(),
        report: &report,
    };
    if out.is_json() {
        return out.document(&document);
    }
    out.line(format_args!(
        "{}: {} memories, {} of them with a vector, {} touches, {} bytes",
        escaped(&document.dir),
        grouped(report.memories as usize),
        grouped(report.with_vector as usize),
        grouped(report.touches as usize),
        grouped(report.bytes as usize)
    ))
}
