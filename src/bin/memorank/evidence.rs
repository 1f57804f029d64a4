//! `memorank evidence`: what a memory rests on, and what rests on it.

use crate::cited::Cited;
use crate::failure::Failure;
use crate::output::{Output, grouped, one_line};
use crate::values::whole;
use crate::{keys, opened};
use memorank::store::{ReadError, Snapshot};
use memorank::stream::evidence::{Branch, Citation, Graph};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder. No byte of it changes.
    store: PathBuf,
    /// The memory's key; or its id, if no memory has that key.
    key: String,
    /// List what rests on the memory, too, directly or by way of others.
    #[arg(long)]
    dependants: bool,
    /// How many lines of the tree at most.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = whole, allow_negative_numbers = true)]
    limit: usize,
    /// Print the memories of the tree (and the dependants) as a graph in Graphviz's language.
    #[arg(long, conflicts_with = "mermaid")]
    dot: bool,
    /// Print them as a flowchart of Mermaid.
    #[arg(long)]
    mermaid: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    #[serde(flatten)]
    memory: Cited<'a>,
    /// From the top down: the memory itself, then its evidence in order, each followed by its own.
    tree: Vec<Told<'a>>,
    /// Whether the limit left some of it out.
    is_cut: bool,
    /// Whether it rests on a memory that was deleted, directly or by way of others.
    rests_on_deleted: bool,
    dependants: Vec<Cited<'a>>,
}

#[derive(Serialize)]
struct Told<'a> {
    level: usize,
    #[serde(flatten)]
    entry: Entry<'a>,
    /// Its evidence is told further up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    seen: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Memory(Cited<'a>),
    Deleted { deleted_id: u64 },
    Unknown { unknown_id: u64 },
    Missing { missing: &'a str },
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let snapshot = opened::to_read(&args.store)?.snapshot();
    let row = keys::row(&snapshot, &args.key)?;
    let id = snapshot.id(row);
    let graph = Graph::of(&snapshot)?;
    let tree = graph.tree(id, args.limit);
    let dependants = graph.dependants(id);
    if args.dot || args.mermaid {
        if out.is_json() {
            let told = "--json prints a document; --dot and --mermaid print a picture";
            return Err(Failure::Usage(told.to_owned()));
        }
        let mut ids: Vec<u64> = live(&tree.branches).collect();
        if args.dependants {
            ids.extend(dependants);
        }
        let picture = match args.dot {
            true => graph.to_dot(&ids)?,
            false => graph.to_mermaid(&ids)?,
        };
        out.bytes(picture.as_bytes())?;
        return match (tree.is_cut, args.dot) {
            (false, _) => Ok(()),
            (true, true) => out.line("// it goes on: --limit"),
            (true, false) => out.line("%% it goes on: --limit"),
        };
    }
    let told = tree.branches.iter().map(|branch| told(&snapshot, branch));
    let rows = dependants.iter().filter_map(|&id| snapshot.row_of_id(id));
    let document = Document {
        schema: "memorank.evidence/1",
        store: args.store.display().to_string(),
        memory: Cited::new(&snapshot, row)?,
        tree: told.collect::<Result<_, _>>()?,
        is_cut: tree.is_cut,
        rests_on_deleted: graph.rests_on_deleted().contains(&id),
        dependants: rows
            .map(|row| Cited::new(&snapshot, row))
            .collect::<Result<_, _>>()?,
    };
    match out.is_json() {
        true => out.document(&document),
        false => document.print(args.dependants, out),
    }
}

/// The memories of a tree that are there.
fn live<'g>(branches: &'g [Branch<'g>]) -> impl Iterator<Item = u64> + 'g {
    branches.iter().filter_map(|branch| match branch.citation {
        Citation::Live(id) => Some(id),
        Citation::Deleted(_) | Citation::Unknown(_) | Citation::Missing(_) => None,
    })
}

fn told<'a>(snapshot: &'a Snapshot, branch: &Branch<'a>) -> Result<Told<'a>, ReadError> {
    let entry = match branch.citation {
        Citation::Live(id) => {
            let row = snapshot.row_of_id(id).expect("it is there");
            Entry::Memory(Cited::new(snapshot, row)?)
        }
        Citation::Deleted(deleted_id) => Entry::Deleted { deleted_id },
        Citation::Unknown(unknown_id) => Entry::Unknown { unknown_id },
        Citation::Missing(missing) => Entry::Missing { missing },
    };
    Ok(Told {
        level: branch.level,
        entry,
        seen: branch.seen,
    })
}

/// Levels of a tree that are indented; what is deeper stands where the last of them does.
const INDENTED: usize = 20;

impl Document<'_> {
    fn print(&self, with_dependants: bool, out: &mut Output) -> Result<(), Failure> {
        for Told { level, entry, seen } in &self.tree {
            let line = match entry {
                Entry::Memory(memory) => memory.line(),
                Entry::Deleted { deleted_id } => format!("id {deleted_id}: DELETED"),
                Entry::Unknown { unknown_id } => {
                    format!("id {unknown_id}: there is no such memory")
                }
                Entry::Missing { missing } => format!("{}: MISSING", one_line(missing, 60)),
            };
            let indent = 2 * level.min(&INDENTED);
            let told = if *seen { "  (as above)" } else { "" };
            let line = format!("{:indent$}{line}{told}", "");
            match level {
                0 => out.heading(line)?,
                _ => out.line(line)?,
            }
        }
        if self.is_cut {
            out.line("... it goes on: --limit")?;
        }
        if self.rests_on_deleted {
            out.line("it rests on a deleted memory")?;
        }
        match self.dependants.len() {
            0 => out.line("nothing rests on it"),
            n => {
                let how = if with_dependants {
                    ":"
                } else {
                    ": --dependants"
                };
                out.line(format_args!("{} memories rest on it{how}", grouped(n)))?;
                let listed = self.dependants.iter().filter(|_| with_dependants);
                for dependant in listed {
                    out.line(format_args!("  {}", dependant.line()))?;
                }
                Ok(())
            }
        }
    }
}
