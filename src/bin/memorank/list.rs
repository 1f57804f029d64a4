//! `memorank list`: memories, a line each.

use crate::failure::Failure;
use crate::filters::Filters;
use crate::opened;
use crate::output::{Output, escaped, grouped, one_line, short_key};
use crate::table::print_columns;
use crate::values::{Moment, whole};
use clap::ValueEnum;
use memorank::import::timestamp::format_us;
use memorank::scoring::Preset;
use memorank::store::{Agent, ReadError, Snapshot};
use memorank::stream::Ask;
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder. No byte of it changes.
    store: PathBuf,
    /// By what they are sorted, ascending; equal ones by id.
    #[arg(long, value_enum, default_value = "id")]
    order: OrderBy,
    /// The other way round: the last first.
    #[arg(long)]
    reverse: bool,
    /// How many at most.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Whose last accesses and importances are meant.
    #[arg(long, value_name = "N", default_value_t = Agent::OWN.0)]
    agent: u32,
    /// The moment that --unexpired goes by (RFC 3339); by default the newest last access in the store.
    #[arg(long, value_name = "TIME", requires = "unexpired")]
    now: Option<Moment>,
    #[command(flatten)]
    filters: Filters,
}

#[derive(Clone, Copy, ValueEnum)]
enum OrderBy {
    Id,
    Created,
    LastAccess,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    agent: u32,
    filter: &'a Filters,
    /// All that are in the store.
    memories: usize,
    /// Those that the filter lets pass.
    matching: usize,
    listed: Vec<Listed<'a>>,
}

#[derive(Serialize)]
struct Listed<'a> {
    id: u64,
    key: Option<&'a str>,
    kind: &'a str,
    text: &'a str,
    created: String,
    last_access: String,
    expiry: Option<String>,
    importance: f32,
    /// Whether it has an embedding.
    embedded: bool,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let snapshot = opened::to_read(&args.store)?.snapshot();
    let agent = Agent(args.agent);
    let mut rows = args.rows(&snapshot, agent)?;
    let matching = rows.len();
    // Stable, and ids ascend with the rows.
    match args.order {
        OrderBy::Id => {}
        OrderBy::Created => rows.sort_by_key(|&row| snapshot.created(row)),
        OrderBy::LastAccess => rows.sort_by_key(|&row| snapshot.last_access(agent, row)),
    }
    if args.reverse {
        rows.reverse();
    }
    rows.truncate(args.limit.unwrap_or(usize::MAX));
    let listed = rows.iter().map(|&row| {
        let memory = snapshot.memory(row)?;
        Ok(Listed {
            id: memory.id,
            key: memory.key,
            kind: memory.kind.as_str(),
            text: memory.text,
            created: format_us(memory.created),
            last_access: format_us(snapshot.last_access(agent, row)),
            expiry: memory.expiry.map(format_us),
            importance: opened::importance(&snapshot, agent, row)?,
            embedded: memory.has_embedding,
        })
    });
    let document = Document {
        schema: "memorank.list/1",
        store: args.store.display().to_string(),
        agent: agent.0,
        filter: &args.filters,
        memories: snapshot.len(),
        matching,
        listed: listed.collect::<Result<_, Failure>>()?,
    };
    match out.is_json() {
        true => out.document(&document),
        false => document.print(out),
    }
}

impl Args {
    /// The rows of memories that pass the filter, ascending.
    fn rows(&self, snapshot: &Snapshot, agent: Agent) -> Result<Vec<usize>, Failure> {
        let narrowed = self.filters.narrowed(snapshot)?;
        let newest = opened::newest_access(snapshot, agent);
        let now = self.now.map(|now| now.0).or(newest).unwrap_or(0);
        // Of a question only the filter is looked at. What has no vector, or is to come, is listed like all else.
        let preset = Preset::paper();
        let filter = narrowed.without(&narrowed.exclude);
        let ask = Ask {
            agent,
            ..Ask::new(&[], now, &preset)
        };
        let live = (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
        let passing = live.filter_map(|row| match filter.why_not(snapshot, &ask, row) {
            Ok(None) => Some(Ok(row)),
            Ok(Some(_)) => None,
            Err(e) => Some(Err(e)),
        });
        Ok(passing.collect::<Result<_, ReadError>>()?)
    }
}

impl Document<'_> {
    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let lines = self.listed.iter().map(|memory| {
            [
                memory.id.to_string(),
                memory.created.clone(),
                memory.last_access.clone(),
                one_line(memory.kind, 16),
                memory.importance.to_string(),
                short_key(memory.key),
                one_line(memory.text, 60),
            ]
        });
        let names = [
            "id",
            "created",
            "last access",
            "kind",
            "importance",
            "key",
            "text",
        ];
        print_columns(names, lines, out)?;
        out.line(format_args!(
            "{}: {} listed of {} that match, {} memories",
            escaped(&self.store),
            grouped(self.listed.len()),
            grouped(self.matching),
            grouped(self.memories)
        ))
    }
}
