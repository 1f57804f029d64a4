//! `memorank history`: the access log, which is the touches that the journal holds.

use crate::failure::Failure;
use crate::output::{Output, escaped, grouped, hex, one_line};
use crate::table::print_columns;
use crate::values::{Bytes, whole};
use crate::{keys, opened};
use memorank::import::timestamp::format_us;
use memorank::store::{ReadError, Snapshot, Touched};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder. Without --keep, no byte of it changes.
    store: PathBuf,
    /// Keep so much of the journal when it is folded, as 64M, `all` or `none`: from now on, by whoever writes. What is
    /// gone stays gone.
    #[arg(long, value_name = "BYTES")]
    keep: Option<Bytes>,
    /// How many at most, the newest.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Only those of this agent.
    #[arg(long, value_name = "N")]
    agent: Option<u32>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    /// The bound of what is kept when the journal is folded.
    keep_bytes: u64,
    /// The newest first.
    touches: Vec<Listed<'a>>,
}

#[derive(Serialize)]
struct Listed<'a> {
    sequence: u64,
    #[serde(flatten)]
    then: Then<'a>,
}

/// A touch, as its record says it.
#[derive(Serialize)]
pub struct Then<'a> {
    now: String,
    now_us: i64,
    agent: u32,
    ids: &'a [u64],
    note: Note<'a>,
}

/// Text as it is, other bytes in hexadecimal.
#[derive(Serialize)]
#[serde(untagged)]
enum Note<'a> {
    None,
    Text(&'a str),
    Hex { hex: String },
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    if let Some(Bytes(bytes)) = args.keep {
        let store = opened::to_write(&args.store)?;
        store.keep_history(bytes)?;
        // What is too much is gone then, and is not listed.
        store.close()?;
    }
    let store = opened::to_read(&args.store)?;
    let mut touches = store.touches()?;
    touches.reverse();
    if let Some(agent) = args.agent {
        touches.retain(|(_, touched)| touched.agent.0 == agent);
    }
    touches.truncate(args.limit.unwrap_or(usize::MAX));
    let listed = touches.iter().map(|(sequence, touched)| Listed {
        sequence: *sequence,
        then: Then::new(touched),
    });
    let document = Document {
        schema: "memorank.history/1",
        store: args.store.display().to_string(),
        keep_bytes: store.history_bytes(),
        touches: listed.collect(),
    };
    match out.is_json() {
        true => out.document(&document),
        false => document.print(&store.snapshot(), out),
    }
}

impl Document<'_> {
    fn print(&self, snapshot: &Snapshot, out: &mut Output) -> Result<(), Failure> {
        let lines = self.touches.iter().map(|Listed { sequence, then }| {
            Ok([
                sequence.to_string(),
                then.now.clone(),
                then.agent.to_string(),
                one_line(&then.noted(), 40),
                one_line(&then.memories(snapshot)?, 60),
            ])
        });
        let lines: Vec<_> = lines.collect::<Result<_, ReadError>>()?;
        let names = ["sequence", "time", "agent", "note", "memories"];
        print_columns(names, lines.into_iter(), out)?;
        let kept = match self.keep_bytes {
            0 => "no more than the journal that is not folded yet is kept".to_owned(),
            u64::MAX => "all of the journal is kept".to_owned(),
            bytes => format!("{bytes} bytes of the folded journal are kept"),
        };
        out.line(format_args!(
            "{}: {} touches listed; {kept}",
            escaped(&self.store),
            grouped(self.touches.len())
        ))
    }
}

impl<'a> Then<'a> {
    pub fn new(touched: &'a Touched) -> Then<'a> {
        Then {
            now: format_us(touched.now),
            now_us: touched.now,
            agent: touched.agent.0,
            ids: &touched.ids,
            note: match std::str::from_utf8(&touched.note) {
                Ok("") => Note::None,
                Ok(text) => Note::Text(text),
                Err(_) => Note::Hex {
                    hex: hex(&touched.note),
                },
            },
        }
    }

    /// How many, and what they are called.
    fn memories(&self, snapshot: &Snapshot) -> Result<String, ReadError> {
        // More are not shown.
        let names = self.ids.iter().take(60).map(|&id| keys::name(snapshot, id));
        let names: Vec<_> = names.collect::<Result<_, _>>()?;
        Ok(format!("{}: {}", self.ids.len(), names.join(", ")))
    }

    /// The note, on one line.
    fn noted(&self) -> String {
        match &self.note {
            Note::None => "-".to_owned(),
            Note::Text(text) => escaped(text),
            Note::Hex { hex } => format!("0x{hex}"),
        }
    }

    pub fn print(&self, sequence: u64, out: &mut Output) -> Result<(), Failure> {
        let Then { now, agent, .. } = self;
        out.line(format_args!(
            "record {sequence}: {now}, agent {agent}, {} memories, {}",
            grouped(self.ids.len()),
            one_line(&self.noted(), 60)
        ))
    }
}
