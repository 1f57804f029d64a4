//! `memorank checkpoint`: what the journal holds becomes part of the columns.

use crate::failure::Failure;
use crate::opened;
use crate::output::{Output, escaped, grouped};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    store: String,
    /// That the columns did not hold yet.
    records: u64,
    memories: usize,
    deleted: usize,
    bytes: u64,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let store = opened::to_write(&args.store)?;
    store.checkpoint()?;
    let info = store.info();
    let document = Document {
        schema: "memorank.checkpoint/1",
        store: args.store.display().to_string(),
        records: store.recovery().records,
        memories: info.memories,
        deleted: info.deleted,
        bytes: opened::bytes(&info),
    };
    if out.is_json() {
        return out.document(&document);
    }
    out.line(format_args!(
        "{}: {} records of the journal folded into the columns: {} memories, {} deleted, {} bytes",
        escaped(&document.store),
        grouped(document.records as usize),
        grouped(document.memories),
        grouped(document.deleted),
        grouped(document.bytes as usize)
    ))
}
