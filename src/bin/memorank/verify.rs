//! `memorank verify`: every byte of a store against its checksums.

use crate::failure::Failure;
use crate::output::{Output, grouped};
use memorank::store;
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
    sound: bool,
    memories: usize,
    without_vector: usize,
    files: usize,
    blocks: usize,
    bytes: u64,
    uncommitted_bytes: u64,
    damages: Vec<Damage>,
}

#[derive(Serialize)]
struct Damage {
    file: String,
    offset_bytes: u64,
    problem: String,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let report = store::verify(&args.store)?;
    let damages = report.damages.iter().map(|damage| Damage {
        file: damage.path.display().to_string(),
        offset_bytes: damage.offset,
        problem: damage.problem.to_string(),
    });
    let document = Document {
        schema: "memorank.verify/1",
        store: args.store.display().to_string(),
        sound: report.is_sound(),
        memories: report.rows,
        without_vector: report.without_vector,
        files: report.files,
        blocks: report.blocks,
        bytes: report.bytes,
        uncommitted_bytes: report.uncommitted_bytes,
        damages: damages.collect(),
    };
    if out.is_json() {
        out.document(&document)?;
    } else {
        out.line(format_args!(
            "{}: {} memories, {} files, {} blocks, {} bytes checked",
            document.store,
            grouped(document.memories),
            document.files,
            grouped(document.blocks),
            grouped(document.bytes as usize)
        ))?;
        if document.uncommitted_bytes > 0 {
            let bytes = grouped(document.uncommitted_bytes as usize);
            out.line(format_args!(
                "{bytes} bytes of an append that was not committed"
            ))?;
        }
        for damage in &report.damages {
            out.line(format_args!("damage: {damage}"))?;
        }
        out.line(if document.sound {
            "sound"
        } else {
            "DAMAGED; restore it from a copy"
        })?;
    }
    if document.sound {
        Ok(())
    } else {
        out.flush().and(Err(Failure::DamageTold))
    }
}
