//! `memorank info`: what a store holds and where its bytes are.

use crate::failure::Failure;
use crate::opened;
use crate::output::{Output, escaped, grouped, one_line, padded};
use memorank::import::timestamp::format_us;
use memorank::store::Agent;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    memories: usize,
    deleted: usize,
    in_journal: usize,
    without_vector: usize,
    next_id: u64,
    dim: usize,
    dtype: &'static str,
    model: Option<&'a str>,
    kinds: BTreeMap<&'a str, usize>,
    first_created: Option<String>,
    last_created: Option<String>,
    newest_access: Option<String>,
    bytes: u64,
    files: Vec<File>,
}

#[derive(Serialize)]
struct File {
    name: String,
    element: &'static str,
    bytes: u64,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let store = opened::to_read(&args.store)?;
    let (info, snapshot) = (store.info(), store.snapshot());
    let live = || (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
    let mut kinds = BTreeMap::new();
    for row in live() {
        let kind = match snapshot.kinds().get(usize::from(snapshot.kind_index(row))) {
            Some(kind) => kind,
            // Reading the memory tells what is damaged.
            None => snapshot.memory(row)?.kind,
        };
        *kinds.entry(kind.as_str()).or_default() += 1;
    }
    let created = || live().map(|row| snapshot.created(row));
    let files = info.files.iter().map(|file| File {
        name: file
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        element: file.element,
        bytes: file.bytes,
    });
    let time = |us: Option<i64>| us.map(format_us);
    let document = Document {
        schema: "memorank.info/1",
        store: args.store.display().to_string(),
        memories: info.memories,
        deleted: info.deleted,
        in_journal: info.in_journal,
        without_vector: info.without_vector,
        next_id: info.next_id,
        dim: info.dim.get(),
        dtype: info.dtype.name(),
        model: info.model.as_deref(),
        kinds,
        first_created: time(created().min()),
        last_created: time(created().max()),
        newest_access: time(opened::newest_access(&snapshot, Agent::OWN)),
        bytes: opened::bytes(&info),
        files: files.collect(),
    };
    if out.is_json() {
        return out.document(&document);
    }
    out.heading(format_args!(
        "{}: {} memories x {} {}",
        escaped(&document.store),
        grouped(document.memories),
        document.dim,
        document.dtype
    ))?;
    for (name, n) in [
        ("without a vector", document.without_vector),
        ("deleted", document.deleted),
        ("in the journal", document.in_journal),
    ] {
        out.line(format_args!("  {name:<16}  {}", grouped(n)))?;
    }
    out.line(format_args!("  next id           {}", document.next_id))?;
    out.line(format_args!(
        "  embedding model   {}",
        document.model.map_or("not named".into(), escaped)
    ))?;
    for (name, time) in [
        ("first created", &document.first_created),
        ("last created", &document.last_created),
        ("newest access", &document.newest_access),
    ] {
        out.line(format_args!(
            "  {name:<16}  {}",
            time.as_deref().unwrap_or("-")
        ))?;
    }
    for (kind, n) in &document.kinds {
        out.line(format_args!(
            "  {}  {}",
            padded(&one_line(kind, 16), 16),
            grouped(*n)
        ))?;
    }
    for file in &document.files {
        out.line(format_args!(
            "  {:<24} {:>6} {:>16} bytes",
            file.name,
            file.element,
            grouped(file.bytes as usize)
        ))?;
    }
    Ok(())
}
