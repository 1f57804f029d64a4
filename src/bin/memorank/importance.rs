//! `memorank importance`: what memories matter to an agent.

use crate::failure::Failure;
use crate::output::{Output, escaped, short_key};
use crate::values::importance;
use crate::{keys, opened};
use memorank::store::Agent;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
    /// Each memory's key; or its id, if no memory has that key. If one is not there, none is changed.
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    #[command(flatten)]
    change: Change,
    /// Whose importance it is: agents that share a store may have importances of their own. That of the store's own
    /// agent, 0, corrects the stored one for it alone.
    #[arg(long, value_name = "N", default_value_t = Agent::OWN.0)]
    agent: u32,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Change {
    /// Any finite number; 1 to 10 in the paper.
    #[arg(
        long,
        value_name = "IMPORTANCE",
        allow_negative_numbers = true,
        value_parser = importance
    )]
    set: Option<f32>,
    /// Back to what the memory was stored with.
    #[arg(long)]
    reset: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    agent: u32,
    /// Those that had another importance.
    changed: usize,
    memories: Vec<Told<'a>>,
}

#[derive(Serialize)]
struct Told<'a> {
    id: u64,
    key: Option<&'a str>,
    /// As it is now.
    importance: f32,
    /// As it was stored.
    stored: f32,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let agent = Agent(args.agent);
    let store = opened::to_write(&args.store)?;
    let snapshot = store.snapshot();
    let rows: BTreeSet<usize> = keys::rows(&snapshot, &args.keys)?;
    let ids: Vec<u64> = rows.iter().map(|&row| snapshot.id(row)).collect();
    // Without one to set, the agent's own is taken away.
    let changed = store.set_importance(agent, &ids, args.change.set)?;
    // Rows keep their numbers.
    let after = store.snapshot();
    let memories = rows.iter().map(|&row| {
        Ok(Told {
            id: snapshot.id(row),
            key: snapshot.memory(row)?.key,
            importance: opened::importance(&after, agent, row)?,
            stored: snapshot.importance(row),
        })
    });
    let document = Document {
        schema: "memorank.importance/1",
        store: args.store.display().to_string(),
        agent: agent.0,
        changed,
        memories: memories.collect::<Result<_, Failure>>()?,
    };
    store.close()?;
    if out.is_json() {
        return out.document(&document);
    }
    for memory in &document.memories {
        let Told {
            id,
            importance,
            stored,
            ..
        } = memory;
        let key = short_key(memory.key);
        out.line(format_args!(
            "{key} (id {id})  importance {importance}  stored {stored}"
        ))?;
    }
    let (store, changed) = (escaped(&document.store), document.changed);
    out.line(format_args!("{store}: {changed} changed"))
}
