//! `memorank repair`: what is whole of a damaged store, in a new one.

use crate::failure::Failure;
use crate::import::DtypeName;
use crate::output::{Output, escaped};
use memorank::kernel::Dtype;
use memorank::store::{self, RepairError, RepairOptions, RepairReport};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The damaged store's folder. No byte of it changes; it should have no writer meanwhile.
    store: PathBuf,
    /// The new store's folder. It must not exist, or be empty.
    new_store: PathBuf,
    /// Elements per embedding, if the manifest cannot say it any more.
    #[arg(long, value_name = "N")]
    dim: Option<NonZeroUsize>,
    /// How embeddings are stored, if neither the manifest nor a file's name can say it any more.
    #[arg(long, value_enum)]
    dtype: Option<DtypeName>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    new_store: String,
    /// Nothing was lost.
    whole: bool,
    /// The manifest could be used, and checksums were compared.
    checked: bool,
    kept: usize,
    deleted: usize,
    lost: Vec<Lost>,
    reduced: Vec<Reduced>,
    changes: Vec<Changes>,
    notes: Vec<&'a str>,
}

#[derive(Serialize)]
struct Lost {
    row: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    file: String,
    offset_bytes: u64,
    problem: String,
}

#[derive(Serialize)]
struct Reduced {
    row: usize,
    id: u64,
    without: &'static str,
    file: String,
    offset_bytes: u64,
    problem: String,
}

#[derive(Serialize)]
struct Changes {
    of: &'static str,
    file: String,
    offset_bytes: u64,
    bytes: u64,
    problem: String,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let options = RepairOptions {
        dim: args.dim,
        dtype: args.dtype.map(Dtype::from),
    };
    let report = store::repair_with(&args.store, &args.new_store, &options)?;
    let told = match out.is_json() {
        true => out.document(&document(args, &report)),
        false => print(args, &report, out),
    };
    match (report.is_whole(), told.and_then(|()| out.flush())) {
        // The exit code tells of losses also to those who did not read on.
        (false, Ok(()) | Err(Failure::ClosedPipe)) => Err(Failure::DamageTold),
        (_, told) => told,
    }
}

fn document<'a>(args: &Args, report: &'a RepairReport) -> Document<'a> {
    let lost = report.lost.iter().map(|lost| Lost {
        row: lost.row,
        id: lost.id,
        file: lost.cause.path.display().to_string(),
        offset_bytes: lost.cause.offset,
        problem: lost.cause.problem.to_string(),
    });
    let reduced = report.reduced.iter().map(|reduced| Reduced {
        row: reduced.row,
        id: reduced.id,
        without: reduced.part.name(),
        file: reduced.cause.path.display().to_string(),
        offset_bytes: reduced.cause.offset,
        problem: reduced.cause.problem.to_string(),
    });
    let changes = report.changes.iter().map(|lost| Changes {
        of: lost.changes.name(),
        file: lost.path.display().to_string(),
        offset_bytes: lost.offset,
        bytes: lost.bytes,
        problem: lost.problem.to_string(),
    });
    Document {
        schema: "memorank.repair/1",
        store: args.store.display().to_string(),
        new_store: args.new_store.display().to_string(),
        whole: report.is_whole(),
        checked: report.manifest.is_none(),
        kept: report.kept,
        deleted: report.deleted,
        lost: lost.collect(),
        reduced: reduced.collect(),
        changes: changes.collect(),
        notes: (report.manifest.iter().chain(&report.notes))
            .map(String::as_str)
            .collect(),
    }
}

fn print(args: &Args, report: &RepairReport, out: &mut Output) -> Result<(), Failure> {
    let new_store = escaped(&args.new_store.display().to_string());
    let mut lines = report.lines().into_iter().map(|line| escaped(&line));
    let first = lines.next().unwrap_or_default();
    out.line(format_args!("{new_store}: {first}"))?;
    for line in lines {
        out.line(line)?;
    }
    out.line(match report.is_whole() {
        true => "nothing was lost",
        false => "NOT ALL of it is there",
    })
}

impl From<RepairError> for Failure {
    fn from(e: RepairError) -> Failure {
        match e {
            RepairError::Open(e) => e.into(),
            RepairError::NoDim { .. } => Failure::Damage(format!("{e} (--dim N)").into()),
            RepairError::NoDtype { .. } => {
                Failure::Damage(format!("{e} (--dtype f16 or f32)").into())
            }
            _ => Failure::Error(e.into()),
        }
    }
}
