//! `memorank query`: stores' memories, ranked.

use crate::answer::{Answer, Outcome};
use crate::budget::Budget;
use crate::failure::Failure;
use crate::filters::Narrowed;
use crate::head::Head;
use crate::output::Output;
use crate::question::{Asked, Put, Question};
use crate::threads::on_threads;
use crate::values::Age;
use crate::{keys, opened, queries};
use clap::ValueEnum;
use memorank::Par;
use memorank::kernel::{Isa, Kernel};
use memorank::scoring::{Preset, ResultOrder, Touch, Workspace};
use memorank::store::Store;
use memorank::stream::{
    Decays, Filter, Order, Retrieve, Retrieved, retrieve, retrieve_each, retrieve_many,
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
    /// Tell where each score comes from, how far it is above the last of the k best, and what to beware of.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    returning: Returning,
    #[command(flatten)]
    budget: Budget,
    #[command(flatten)]
    touching: Touching,
}

#[derive(clap::Args)]
#[command(next_help_heading = "What is returned")]
struct Returning {
    /// Return this memory (its key or id) whatever it scores, beside the k best; given several times, these.
    #[arg(long, value_name = "KEY")]
    pin: Vec<String>,
    /// The order of the result, instead of the preset's.
    #[arg(long, value_enum)]
    order: Option<OrderBy>,
}

#[derive(Clone, Copy, ValueEnum)]
enum OrderBy {
    /// Best first.
    Score,
    /// First created first.
    Created,
    /// Retrieved longest ago first.
    LastAccess,
}

/// Without these, no byte of a store changes.
#[derive(clap::Args)]
#[command(next_help_heading = "What is written")]
struct Touching {
    /// Refresh the last access of what is returned.
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

/// The questions to one store, in the terms of its snapshot.
struct Posed<'a> {
    store: String,
    narrowed: Narrowed<'a>,
    decays: Option<Decays>,
    pinned: Vec<u64>,
    put: Vec<Put<'a>>,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let preset = args.preset()?;
    let kernel = Kernel::new(Isa::from_env()?)?;
    let asked = match &args.queries {
        Some(file) => queries::read(file)?,
        None => args.question.asked()?,
    };
    let order = args.order(asked.len())?;
    let open = match args.touching.touches() {
        true => opened::to_write,
        false => opened::to_read,
    };
    let stores = args.stores.iter().map(|path| open(path));
    let stores: Vec<Store> = stores.collect::<Result<_, _>>()?;
    let posed = stores.iter().map(|store| args.pose(&asked, store, &preset));
    let posed: Vec<Posed<'_>> = posed.collect::<Result<_, _>>()?;

    // Store by store, and question by question.
    let all = || {
        posed
            .iter()
            .flat_map(|to| to.put.iter().map(move |put| (to, put)))
    };
    let filters: Vec<Filter<'_>> = all()
        .map(|(to, put)| put.filter(&args.question, &to.narrowed))
        .collect();
    let asks = all().zip(&filters).map(|((to, put), filter)| Retrieve {
        ask: args.question.ask(put, &preset, filter, to.decays.as_ref()),
        pinned: &to.pinned,
        budget: args.budget.budget(),
        note: b"",
    });
    let asks: Vec<Retrieve<'_>> = asks.collect();
    let mut workspace = Workspace::with_kernel(kernel);
    let mut retrieved = on_threads(args.question.threads, |par| {
        answer(&stores, &asks, order, par, &mut workspace)
    })??;
    let (touched, touch) = args.touching.touched(&stores, &asks, &mut retrieved);

    let told = all().zip(&retrieved).zip(&touched);
    let answers = told.map(|(((to, put), retrieved), touched)| {
        let decays = to.decays.as_ref();
        let head = Head::new(&to.store, &args.question, put, &preset, decays, kernel);
        let outcome = Outcome {
            retrieved,
            touched,
            budget: args.budget.spent(retrieved)?,
            explain: args.explain,
        };
        Answer::new(head, put, &args.returning.pin, outcome)
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
    fn preset(&self) -> Result<Preset, Failure> {
        let mut preset = self.question.settings.preset()?;
        preset.touch = self.touching.touch();
        match self.returning.order {
            None => {}
            Some(OrderBy::Score) => preset.result_order = ResultOrder::Score,
            Some(OrderBy::Created) => preset.result_order = ResultOrder::Created,
            Some(OrderBy::LastAccess) => preset.result_order = ResultOrder::LastAccess,
        }
        Ok(preset)
    }

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

    /// The questions in the terms of a store.
    fn pose<'a>(
        &'a self,
        asked: &'a [Asked],
        store: &Store,
        preset: &Preset,
    ) -> Result<Posed<'a>, Failure> {
        let (snapshot, question) = (&store.snapshot(), &self.question);
        let store = store.path().display().to_string();
        let pose = || {
            let narrowed = question.competing.filters.narrowed(snapshot)?;
            let put = (asked.iter()).map(|asked| question.put(asked, snapshot, &narrowed));
            Ok(Posed {
                put: put.collect::<Result<_, _>>()?,
                decays: question.settings.decays_in(preset, snapshot)?,
                pinned: keys::ids(snapshot, &self.returning.pin)?,
                store: store.clone(),
                narrowed,
            })
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
    /// not be noted what was in them: without a touch, then.
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
                all.push(match synced.is_ok() && touch.is_ok() {
                    true => ids.collect(),
                    false => HashSet::new(),
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
