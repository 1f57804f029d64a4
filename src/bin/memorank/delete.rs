//! `memorank delete`: memories that are no candidates any more.

use crate::failure::Failure;
use crate::output::{Output, escaped, grouped, one_line, short_key};
use crate::{keys, opened};
use memorank::store::ReadError;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
    /// Each memory's key; or its id, if no memory has that key. If one is not there, none is deleted.
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    deleted: Vec<Deleted<'a>>,
    /// That are left.
    memories: usize,
}

#[derive(Serialize)]
struct Deleted<'a> {
    id: u64,
    key: Option<&'a str>,
    #[serde(skip)]
    text: &'a str,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let store = opened::to_write(&args.store)?;
    let snapshot = store.snapshot();
    // All are looked up before one is deleted: that would free its key, and an id may then be meant.
    let rows: BTreeSet<usize> = keys::rows(&snapshot, &args.keys)?;
    let deleted = rows.iter().map(|&row| {
        let memory = snapshot.memory(row)?;
        Ok(Deleted {
            id: memory.id,
            key: memory.key,
            text: memory.text,
        })
    });
    let deleted = deleted.collect::<Result<Vec<_>, ReadError>>()?;
    let ids: Vec<u64> = deleted.iter().map(|memory| memory.id).collect();
    store.delete(&ids)?;
    let document = Document {
        schema: "memorank.delete/1",
        store: args.store.display().to_string(),
        deleted,
        memories: store.snapshot().len(),
    };
    if out.is_json() {
        return out.document(&document);
    }
    for Deleted { id, key, text } in &document.deleted {
        let key = short_key(*key);
        let text = one_line(text, 60);
        out.line(format_args!("deleted {key} (id {id})  {text}"))?;
    }
    out.line(format_args!(
        "{}: {} memories left",
        escaped(&document.store),
        grouped(document.memories)
    ))
}
