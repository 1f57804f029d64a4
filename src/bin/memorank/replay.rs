//! `memorank replay`: a store's memories as a retrieval ranked them then.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::history::Then;
use crate::output::{Output, one_line};
use crate::threads::on_threads;
use crate::values::{Age, Moment};
use crate::wanted::Wanted;
use crate::{keys, opened};
use memorank::kernel::{Isa, Kernel};
use memorank::scoring::{Touch, Workspace};
use memorank::store::{ReadError, Snapshot};
use memorank::stream::replay_from;
use serde::Serialize;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(
    mut_arg("now", |now| now.help("The moment of asking (RFC 3339); by default that of the record")),
    mut_arg("agent", |agent| agent.help("Who asks; by default the agent of the record"))
)]
pub struct Args {
    /// The store's folder. No byte of it changes.
    store: PathBuf,
    /// The number of the touch's record, as `query` and `history` tell it.
    sequence: u64,
    /// The touch was only of what was last retrieved longer ago than this: 90m, 24h, 7d.
    #[arg(long, value_name = "AGE")]
    touch_if_older: Option<Age>,
    #[command(flatten)]
    wanted: Wanted,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    answer: Answer<'a>,
    then: Then<'a>,
    /// Whether this retrieval would make the same touch.
    is_same: bool,
}

/// What this retrieval would touch, and what was touched then.
struct Compared {
    only_now: Vec<String>,
    only_then: Vec<String>,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let (wanted, question) = (&args.wanted, &args.wanted.question);
    let preset = wanted.preset(match args.touch_if_older {
        Some(Age(age)) => Touch::IfOlder { age },
        None => Touch::Returned,
    })?;
    let kernel = Kernel::new(Isa::from_env()?)?;
    let mut asked = question.only("retrieval is replayed")?;
    let (snapshot, touched) = opened::to_read(&args.store)?.before(args.sequence)?;
    asked.agent = question.asking.agent.or(Some(touched.agent.0));
    asked.now = question.asking.now.or(Some(Moment(touched.now)));

    // Keys, kinds and rows are those of then, too.
    let store = args.store.display().to_string();
    let terms = wanted.terms(store, &snapshot, &preset)?;
    let put = wanted.put(&asked, &snapshot, &terms)?;
    let filter = wanted.filter(&terms, &put);
    let again = wanted.retrieve(&terms, &put, &preset, &filter);
    let mut workspace = Workspace::with_kernel(kernel);
    let before = (snapshot.clone(), touched);
    let mut replayed = on_threads(question.asking.threads, |par| {
        replay_from(before, &again, par, &mut workspace)
    })??;
    replayed.retrieved.sequence = Some(args.sequence);

    let ids = replayed
        .retrieved
        .to_touch(&again.ask)
        .map(|memory| memory.id);
    let compared = Compared::new(&snapshot, ids.collect(), &replayed.touched.ids)?;
    let head = wanted.head(&terms, &put, &preset, kernel);
    let untouched = HashSet::new();
    let mut answer = wanted.answer(head, &put, &replayed.retrieved, &untouched)?;
    answer.schema = "memorank.replay/1";
    let document = Document {
        answer,
        then: Then::new(&replayed.touched),
        is_same: replayed.is_same,
    };
    match out.is_json() {
        true => out.document(&document),
        false => document.print(args.sequence, &compared, out),
    }
}

impl Compared {
    fn new(snapshot: &Snapshot, now: BTreeSet<u64>, then: &[u64]) -> Result<Compared, ReadError> {
        let then: BTreeSet<u64> = then.iter().copied().collect();
        let names = |ids: &BTreeSet<u64>, others: &BTreeSet<u64>| -> Result<Vec<_>, ReadError> {
            let only = ids.difference(others);
            only.map(|&id| keys::name(snapshot, id)).collect()
        };
        Ok(Compared {
            only_now: names(&now, &then)?,
            only_then: names(&then, &now)?,
        })
    }
}

impl Document<'_> {
    fn print(&self, sequence: u64, compared: &Compared, out: &mut Output) -> Result<(), Failure> {
        self.answer.print(out)?;
        self.then.print(sequence, out)?;
        let Compared {
            only_now,
            only_then,
        } = compared;
        if only_now.is_empty() && only_then.is_empty() {
            return out.line(match self.is_same {
                true => "the same memories as then",
                false => "the same memories as then, for another agent or moment",
            });
        }
        let sides = [
            ("not touched then", only_now),
            ("touched only then", only_then),
        ];
        for (what, names) in sides.iter().filter(|(_, names)| !names.is_empty()) {
            let names = one_line(&names.join(", "), 60);
            out.line(format_args!("{what}: {names}"))?;
        }
        Ok(())
    }
}
