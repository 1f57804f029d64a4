//! `memorank verify`: every byte of a store against its checksums.

use crate::failure::Failure;
use crate::output::{Output, escaped, grouped};
use memorank::store::{self, VerifyReport};
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
    rows: usize,
    without_vector: usize,
    files: usize,
    blocks: usize,
    bytes: u64,
    uncommitted_bytes: u64,
    records: u64,
    dropped: Vec<Dropped>,
    damages: Vec<Damage>,
}

#[derive(Serialize)]
struct Damage {
    file: String,
    offset_bytes: u64,
    problem: String,
}

/// What the journal's files hold beside whole records: no damage.
#[derive(Serialize)]
struct Dropped {
    file: String,
    offset_bytes: u64,
    bytes: u64,
    problem: String,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let report = store::verify(&args.store)?;
    let damages = report.damages.iter().map(|damage| Damage {
        file: damage.path.display().to_string(),
        offset_bytes: damage.offset,
        problem: damage.problem.to_string(),
    });
    let dropped = report.dropped.iter().map(|dropped| Dropped {
        file: dropped.path.display().to_string(),
        offset_bytes: dropped.offset,
        bytes: dropped.bytes,
        problem: dropped.problem.to_string(),
    });
    let document = Document {
        schema: "memorank.verify/1",
        store: args.store.display().to_string(),
        sound: report.is_sound(),
        rows: report.rows,
        without_vector: report.without_vector,
        files: report.files,
        blocks: report.blocks,
        bytes: report.bytes,
        uncommitted_bytes: report.uncommitted_bytes,
        records: report.records,
        dropped: dropped.collect(),
        damages: damages.collect(),
    };
    let told = match out.is_json() {
        true => out.document(&document),
        false => print(&document, &report, out),
    };
    match (document.sound, told.and_then(|()| out.flush())) {
        // The exit code tells of damage also to those who did not read on.
        (false, Ok(()) | Err(Failure::ClosedPipe)) => Err(Failure::DamageTold),
        (_, told) => told,
    }
}

fn print(document: &Document, report: &VerifyReport, out: &mut Output) -> Result<(), Failure> {
    out.line(format_args!(
        "{}: {} rows, {} files, {} blocks, {} bytes checked",
        escaped(&document.store),
        grouped(document.rows),
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
    if document.records > 0 {
        let records = grouped(document.records as usize);
        out.line(format_args!(
            "{records} records in the journal, not in the columns yet"
        ))?;
    }
    for dropped in &report.dropped {
        out.line(format_args!("note: {}", escaped(&dropped.to_string())))?;
    }
    for damage in &report.damages {
        out.line(format_args!("damage: {}", escaped(&damage.to_string())))?;
    }
    out.line(match document.sound {
        true => "sound",
        false => "DAMAGED; restore it from a copy, or salvage what is whole: `memorank repair`",
    })
}
