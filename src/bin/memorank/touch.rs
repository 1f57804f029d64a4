//! `memorank touch`: says that memories were retrieved, by other means than a query.

use crate::failure::Failure;
use crate::output::{Output, escaped, short_key};
use crate::values::Moment;
use crate::{keys, opened};
use memorank::import::timestamp::format_us;
use memorank::store::Agent;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
    /// Each memory's key; or its id, if no memory has that key. If one is not there, none is touched.
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// When they were retrieved (RFC 3339); by default now. A last access is never moved back.
    #[arg(long, value_name = "TIME")]
    now: Option<Moment>,
    /// Whose retrieval it was: agents that share a store have last accesses of their own.
    #[arg(long, default_value_t = Agent::OWN.0)]
    agent: u32,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    agent: u32,
    now: String,
    now_us: i64,
    touched: Vec<Touched<'a>>,
}

#[derive(Serialize)]
struct Touched<'a> {
    id: u64,
    key: Option<&'a str>,
    /// After the touch.
    last_access: String,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let now = args.now.map_or_else(opened::clock, |now| Ok(now.0))?;
    let agent = Agent(args.agent);
    let store = opened::to_write(&args.store)?;
    let snapshot = store.snapshot();
    let rows: BTreeSet<usize> = keys::rows(&snapshot, &args.keys)?;
    let ids: Vec<u64> = rows.iter().map(|&row| snapshot.id(row)).collect();
    store.touch(agent, &ids, now)?;
    // Rows keep their numbers.
    let after = store.snapshot();
    let touched = rows.iter().map(|&row| {
        Ok(Touched {
            id: snapshot.id(row),
            key: snapshot.memory(row)?.key,
            last_access: format_us(after.last_access(agent, row)),
        })
    });
    let document = Document {
        schema: "memorank.touch/1",
        store: args.store.display().to_string(),
        agent: agent.0,
        now: format_us(now),
        now_us: now,
        touched: touched.collect::<Result<_, Failure>>()?,
    };
    store.close()?;
    if out.is_json() {
        return out.document(&document);
    }
    for Touched {
        id,
        key,
        last_access,
    } in &document.touched
    {
        let key = short_key(*key);
        out.line(format_args!(
            "touched {key} (id {id})  last access {last_access}"
        ))?;
    }
    let (store, touched) = (escaped(&document.store), document.touched.len());
    out.line(format_args!("{store}: {touched} memories"))
}
