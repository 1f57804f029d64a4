//! What is wanted of a store: the flags that `query` and `replay` share, and the answer to them.

use crate::answer::{Answer, Outcome};
use crate::budget::Budget;
use crate::failure::Failure;
use crate::filters::Narrowed;
use crate::head::Head;
use crate::keys;
use crate::question::{Asked, Put, Question};
use clap::ValueEnum;
use memorank::kernel::Kernel;
use memorank::scoring::{Preset, ResultOrder, Touch};
use memorank::store::Snapshot;
use memorank::stream::{Decays, Filter, Retrieve, Retrieved};
use std::collections::HashSet;

#[derive(clap::Args)]
pub struct Wanted {
    /// Tell where each score comes from, how far it is above the last of the k best, and what to beware of.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    pub question: Question,
    #[command(flatten)]
    returning: Returning,
    #[command(flatten)]
    budget: Budget,
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

/// What is wanted, in the terms of one snapshot of a store.
pub struct Terms<'a> {
    store: String,
    narrowed: Narrowed<'a>,
    decays: Option<Decays>,
    pinned: Vec<u64>,
}

impl Wanted {
    /// The preset with what the flags change of it.
    pub fn preset(&self, touch: Touch) -> Result<Preset, Failure> {
        let mut preset = self.question.settings.preset()?;
        preset.touch = touch;
        match self.returning.order {
            None => {}
            Some(OrderBy::Score) => preset.result_order = ResultOrder::Score,
            Some(OrderBy::Created) => preset.result_order = ResultOrder::Created,
            Some(OrderBy::LastAccess) => preset.result_order = ResultOrder::LastAccess,
        }
        Ok(preset)
    }

    /// The flags in the terms of a store's snapshot.
    pub fn terms(
        &self,
        store: String,
        snapshot: &Snapshot,
        preset: &Preset,
    ) -> Result<Terms<'_>, Failure> {
        let Question {
            competing,
            settings,
            ..
        } = &self.question;
        Ok(Terms {
            store,
            narrowed: competing.filters.narrowed(snapshot)?,
            decays: settings.decays_in(preset, snapshot)?,
            pinned: keys::ids(snapshot, &self.returning.pin)?,
        })
    }

    /// A question in these terms.
    pub fn put<'a>(
        &self,
        asked: &'a Asked,
        snapshot: &Snapshot,
        terms: &Terms<'_>,
    ) -> Result<Put<'a>, Failure> {
        self.question.put(asked, snapshot, &terms.narrowed)
    }

    /// Which memories compete for a question.
    pub fn filter<'a>(&self, terms: &'a Terms<'_>, put: &'a Put<'_>) -> Filter<'a> {
        put.filter(&self.question, &terms.narrowed)
    }

    /// What is to be retrieved for a question, without a note.
    pub fn retrieve<'a>(
        &'a self,
        terms: &'a Terms<'_>,
        put: &'a Put<'_>,
        preset: &'a Preset,
        filter: &'a Filter<'a>,
    ) -> Retrieve<'a> {
        let ask = (self.question).ask(put, preset, filter, terms.decays.as_ref());
        Retrieve {
            pinned: &terms.pinned,
            budget: self.budget.budget(),
            ..Retrieve::new(ask)
        }
    }

    /// What its answer begins with.
    pub fn head<'a>(
        &'a self,
        terms: &'a Terms<'_>,
        put: &'a Put<'_>,
        preset: &'a Preset,
        kernel: Kernel,
    ) -> Head<'a> {
        let decays = terms.decays.as_ref();
        Head::new(&terms.store, &self.question, put, preset, decays, kernel)
    }

    /// Its answer. `touched`: the ids whose last access was refreshed.
    pub fn answer<'a>(
        &'a self,
        head: Head<'a>,
        put: &Put<'_>,
        retrieved: &'a Retrieved,
        touched: &'a HashSet<u64>,
    ) -> Result<Answer<'a>, Failure> {
        let outcome = Outcome {
            retrieved,
            touched,
            budget: self.budget.spent(retrieved)?,
            explain: self.explain,
        };
        Answer::new(head, put, &self.returning.pin, outcome)
    }
}
