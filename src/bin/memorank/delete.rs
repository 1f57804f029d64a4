//! `memorank delete`: memories that are no candidates any more, and what becomes of those that rest on them.

use crate::cited::Cited;
use crate::failure::Failure;
use crate::output::{Output, escaped, grouped, one_line, short_key};
use crate::{keys, opened};
use clap::ValueEnum;
use memorank::store::{ReadError, Snapshot};
use memorank::stream::evidence::{Deletion, Graph, Policy};
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
    /// What becomes of memories that rest on these.
    #[arg(long, value_enum, default_value = "refuse")]
    policy: Choice,
    /// Say what would be deleted, and delete nothing: no byte of the store changes.
    #[arg(long)]
    dry_run: bool,
}

/// A [`Policy`], for the command line.
#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    /// If there are any, nothing is deleted.
    Refuse,
    /// They stay, and rest on a deleted memory from then on.
    Keep,
    /// They are deleted, too.
    Cascade,
}

impl From<Choice> for Policy {
    fn from(choice: Choice) -> Policy {
        match choice {
            Choice::Refuse => Policy::Refuse,
            Choice::Keep => Policy::Keep,
            Choice::Cascade => Policy::Cascade,
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    policy: Policy,
    dry_run: bool,
    /// What rests on the memories to be deleted.
    dependants: Vec<Dependant<'a>>,
    /// What was deleted, or would be.
    deleted: Vec<Deleted<'a>>,
    /// That are left, or would be.
    memories: usize,
}

#[derive(Serialize)]
struct Dependant<'a> {
    #[serde(flatten)]
    memory: Cited<'a>,
    /// Whether it cites one of them itself.
    is_direct: bool,
}

#[derive(Serialize)]
struct Deleted<'a> {
    id: u64,
    key: Option<&'a str>,
    #[serde(skip)]
    text: &'a str,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let store = match args.dry_run {
        true => opened::to_read(&args.store)?,
        false => opened::to_write(&args.store)?,
    };
    let snapshot = store.snapshot();
    // All are looked up before one is deleted: that would free its key, and an id may then be meant.
    let rows: BTreeSet<usize> = keys::rows(&snapshot, &args.keys)?;
    let ids: Vec<u64> = rows.iter().map(|&row| snapshot.id(row)).collect();
    let deletion = Deletion::plan(&Graph::of(&snapshot)?, &ids, args.policy.into())?;
    // What is told is read before anything is deleted: it may be damaged.
    let document = Document::new(args, &snapshot, &deletion)?;
    if !args.dry_run && !deletion.is_refused() {
        // Nobody else can write to the store meanwhile, so that what was planned still holds.
        store.delete(&deletion.deletes())?;
    }
    if out.is_json() {
        out.document(&document)?;
    } else {
        document.print(out)?;
    }
    match deletion.is_refused() && !args.dry_run {
        // The exit code tells also those who did not read on.
        true => out.flush().and(Err(Failure::Error(
            "other memories rest on these; nothing was deleted: --policy keep, or --policy cascade"
                .into(),
        ))),
        false => Ok(()),
    }
}

impl<'a> Document<'a> {
    fn new(
        args: &Args,
        snapshot: &'a Snapshot,
        plan: &Deletion,
    ) -> Result<Document<'a>, ReadError> {
        let row = |id| snapshot.row_of_id(id).expect("it was there");
        let dependants = plan.dependants.iter().map(|dependant| {
            Ok(Dependant {
                memory: Cited::new(snapshot, row(dependant.id))?,
                is_direct: dependant.is_direct,
            })
        });
        let deletes = plan.deletes();
        let deleted = deletes.iter().map(|&id| {
            let memory = snapshot.memory(row(id))?;
            Ok(Deleted {
                id,
                key: memory.key,
                text: memory.text,
            })
        });
        Ok(Document {
            schema: "memorank.delete/1",
            store: args.store.display().to_string(),
            policy: plan.policy,
            dry_run: args.dry_run,
            dependants: dependants.collect::<Result<_, ReadError>>()?,
            deleted: deleted.collect::<Result<_, ReadError>>()?,
            memories: snapshot.len() - deletes.len(),
        })
    }

    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        for Dependant { memory, is_direct } in &self.dependants {
            let how = if *is_direct {
                "cites them"
            } else {
                "rests on them"
            };
            out.line(format_args!("{how}: {}", memory.line()))?;
        }
        let done = if self.dry_run {
            "would delete"
        } else {
            "deleted"
        };
        for Deleted { id, key, text } in &self.deleted {
            let key = short_key(*key);
            let text = one_line(text, 60);
            out.line(format_args!("{done} {key} (id {id})  {text}"))?;
        }
        if self.deleted.is_empty() && !self.dependants.is_empty() {
            out.line("refused, as others rest on them")?;
        }
        out.line(format_args!(
            "{}: {} memories left",
            escaped(&self.store),
            grouped(self.memories)
        ))
    }
}
