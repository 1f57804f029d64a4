//! `memorank compact`: a store's columns written anew, without the memories that were deleted.

use crate::failure::Failure;
use crate::opened;
use crate::output::{Output, escaped, grouped};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder. It needs room for the store a second time.
    store: PathBuf,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    store: String,
    /// Rows of deleted memories.
    removed: usize,
    memories: usize,
    bytes_before: u64,
    bytes: u64,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let store = opened::to_write(&args.store)?;
    let before = store.info();
    store.compact()?;
    let after = store.info();
    let document = Document {
        schema: "memorank.compact/1",
        store: args.store.display().to_string(),
        removed: before.deleted - after.deleted,
        memories: after.memories,
        bytes_before: opened::bytes(&before),
        bytes: opened::bytes(&after),
    };
    if out.is_json() {
        return out.document(&document);
    }
    out.line(format_args!(
        "{}: {} deleted memories removed, {} left; {} bytes, {} before",
        escaped(&document.store),
        grouped(document.removed),
        grouped(document.memories),
        grouped(document.bytes as usize),
        grouped(document.bytes_before as usize)
    ))
}
