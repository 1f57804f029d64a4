//! `memorank query`: stores' memories, ranked.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::output::Output;
use crate::question::{Asked, Put};
use crate::threads::on_threads;
use crate::values::Age;
use crate::wanted::{Terms, Wanted};
use crate::{opened, queries};
use memorank::Par;
use memorank::kernel::{Isa, Kernel};
use memorank::scoring::{Preset, Touch, Workspace};
use memorank::store::Store;
use memorank::stream::{
    Filter, Order, Retrieve, Retrieved, retrieve, retrieve_each, retrieve_many,
};
use serde::Serialize;
use std::collections::HashSet;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder; or those of several stores, each asked the same.
    #[arg(required = true, value_name = "STORE")]
    stores: Vec<PathBuf>,
    /// Several questions to one store with one read of its embeddings, as --text or --like given again: a file with a JSON
    /// object in each line, of "text", "like" or "vector", and "now" and "agent" if they are not those of the flags.
    #[arg(
        long,
        value_name = "FILE",
        group = "Sources",
        conflicts_with_all = ["exclude_self", "vector_index"]
    )]
    queries: Option<PathBuf>,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    touching: Touching,
}

/// Without these, no byte of a store changes.
#[derive(clap::Args)]
#[command(next_help_heading = "What is written")]
struct Touching {
    /// Refresh the last access of what is returned. The record notes what was asked with: see `history` and `replay`.
    #[arg(long)]
    touch: bool,
    /// Refresh it only of what was last retrieved longer ago than this: 90m, 24h, 7d.
    #[arg(long, value_name = "AGE", conflicts_with = "touch")]
    touch_if_older: Option<Age>,
    /// Of several questions, each sees what those before it touched.
    #[arg(long, conflicts_with = "snapshot")]
    sequential: bool,
    /// Of several questions, all see the store as it was before the first.
    #[arg(long)]
    snapshot: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    /// What the questions saw of each other's touches.
    order: &'static str,
    answers: Vec<Answer<'a>>,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let wanted = &args.wanted;
    let preset = wanted.preset(args.touching.touch())?;
    let kernel = Kernel::new(Isa::from_env()?)?;
    let asked = match &args.queries {
        Some(file) => queries::read(file)?,
        None => wanted.question.asked()?,
    };
    let order = args.order(asked.len())?;
    let open = match args.touching.touches() {
        true => opened::to_write,
        false => opened::to_read,
    };
    let stores = args.stores.iter().map(|path| open(path));
    let stores: Vec<Store> = stores.collect::<Result<_, _>>()?;
    let posed = stores.iter().map(|store| args.pose(&asked, store, &preset));
    let posed: Vec<(Terms<'_>, Vec<Put<'_>>)> = posed.collect::<Result<_, _>>()?;

    // Store by store, and question by question.
    let all = || {
        posed
            .iter()
            .flat_map(|(terms, put)| put.iter().map(move |put| (terms, put)))
    };
    let filters: Vec<Filter<'_>> = all()
        .map(|(terms, put)| wanted.filter(terms, put))
        .collect();
    let notes: Vec<String> = all().map(|(_, put)| put.note()).collect();
    let asks = all().zip(filters.iter().zip(&notes));
    let asks = asks.map(|((terms, put), (filter, note))| Retrieve {
        note: note.as_bytes(),
        ..wanted.retrieve(terms, put, &preset, filter)
    });
    let asks: Vec<Retrieve<'_>> = asks.collect();
    let mut workspace = Workspace::with_kernel(kernel);
    let mut retrieved = on_threads(wanted.question.asking.threads, |par| {
        answer(&stores, &asks, order, par, &mut workspace)
    })??;
    let (touched, touch) = args.touching.touched(&stores, &asks, &mut retrieved);

    let told = all().zip(retrieved.iter().zip(&touched));
    let answers = told.map(|((terms, put), (retrieved, touched))| {
        let head = wanted.head(terms, put, &preset, kernel);
        wanted.answer(head, put, retrieved, touched)
    });
    let document = Document {
        schema: "memorank.queries/1",
        order: match order {
            Order::Sequential => "sequential",
            Order::Snapshot => "snapshot",
        },
        answers: answers.collect::<Result<_, Failure>>()?,
    };
    let told = document.tell(args.is_one(asked.len()), out);
    let told = told.and_then(|()| out.flush());
    touch.and(told)
}

/// The answers to all questions of all stores.
fn answer(
    stores: &[Store],
    asks: &[Retrieve<'_>],
    order: Order,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Vec<Retrieved>, Failure> {
    match (stores, asks) {
        ([store], [one]) => Ok(vec![retrieve(store, one, par, workspace)?]),
        ([store], several) => retrieve_many(store, several, order, par, workspace)
            .map_err(|e| Failure::from(e.error).about(format!("question {}", e.index + 1))),
        (stores, each) => {
            let asks: Vec<_> = stores.iter().zip(each.iter().copied()).collect();
            retrieve_each(&asks, par, workspace).map_err(|e| {
                Failure::from(e.error).about(stores[e.index].path().display().to_string())
            })
        }
    }
}

impl Args {
    /// Whether there is one question to one store, whatever a file of questions could hold.
    fn is_one(&self, questions: usize) -> bool {
        self.stores.len() == 1 && questions == 1 && self.queries.is_none()
    }

    /// What so many questions see of each other. Where it makes a difference it must be said, and nowhere else.
    fn order(&self, questions: usize) -> Result<Order, Failure> {
        let usage = |told: &str| Err(Failure::Usage(told.to_owned()));
        let Touching {
            sequential,
            snapshot,
            ..
        } = self.touching;
        if self.stores.len() > 1 && questions > 1 {
            return usage("several stores take one question, several questions one store");
        }
        let differs = self.touching.touches() && !self.is_one(questions) && self.stores.len() == 1;
        match (differs, sequential, snapshot) {
            (true, true, _) => Ok(Order::Sequential),
            (true, false, true) | (false, false, false) => Ok(Order::Snapshot),
            (true, false, false) => usage(
                "several questions that touch: say --sequential (each sees the touches of those before it) or \
                 --snapshot (none does)",
            ),
            (false, ..) => usage(
                "--sequential and --snapshot are for several questions to one store, with --touch or \
                 --touch-if-older",
            ),
        }
    }

    /// What is asked of a store, in its terms.
    fn pose<'a>(
        &'a self,
        asked: &'a [Asked],
        store: &Store,
        preset: &Preset,
    ) -> Result<(Terms<'a>, Vec<Put<'a>>), Failure> {
        let (wanted, snapshot) = (&self.wanted, &store.snapshot());
        let store = store.path().display().to_string();
        let pose = || {
            let terms = wanted.terms(store.clone(), snapshot, preset)?;
            let put = (asked.iter()).map(|asked| wanted.put(asked, snapshot, &terms));
            let put = put.collect::<Result<_, _>>()?;
            Ok((terms, put))
        };
        pose().map_err(|failure: Failure| match self.stores.len() {
            1 => failure,
            _ => failure.about(store),
        })
    }
}

impl Touching {
    fn touches(&self) -> bool {
        self.touch || self.touch_if_older.is_some()
    }

    fn touch(&self) -> Touch {
        match self.touch_if_older {
            Some(Age(age)) => Touch::IfOlder { age },
            None if self.touch => Touch::Returned,
            None => Touch::None,
        }
    }

    /// The ids whose last access was refreshed, of each answer, and what went wrong. Answers are shown also if it could
    /// not be noted what was in them: without a touch, then, and its record.
    fn touched(
        &self,
        stores: &[Store],
        asks: &[Retrieve<'_>],
        retrieved: &mut [Retrieved],
    ) -> (Vec<HashSet<u64>>, Result<(), Failure>) {
        let (mut all, mut result) = (Vec::new(), Ok(()));
        let questions = asks.len() / stores.len();
        let answers = retrieved.chunks_mut(questions).zip(asks.chunks(questions));
        for (store, (retrieved, asks)) in stores.iter().zip(answers) {
            let synced = match self.touches() {
                true => store.sync(),
                false => Ok(()),
            };
            for (retrieved, wanted) in retrieved.iter_mut().zip(asks) {
                let touch = std::mem::replace(&mut retrieved.touch, Ok(()));
                let ids = retrieved.to_touch(&wanted.ask).map(|memory| memory.id);
                let ids = ids.collect();
                all.push(match synced.is_ok() && touch.is_ok() {
                    true => ids,
                    false => {
                        retrieved.sequence = None;
                        HashSet::new()
                    }
                });
                result = result.and(touch.map_err(Failure::from));
            }
            result = result.and(synced.map_err(Failure::from));
        }
        (all, result)
    }
}

impl Document<'_> {
    fn tell(&self, one: bool, out: &mut Output) -> Result<(), Failure> {
        match (&self.answers[..], out.is_json()) {
            ([answer], true) if one => out.document(answer),
            ([answer], false) if one => answer.print(out),
            (_, true) => out.document(self),
            (answers, false) => answers.iter().try_for_each(|answer| {
                out.heading(answer.title())?;
                answer.print(out)
            }),
        }
    }
}
