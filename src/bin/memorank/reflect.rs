//! `memorank reflect`: conclusions that a language model draws, checked and stored with their evidence.

use crate::cited::Cited;
use crate::failure::Failure;
use crate::models::Models;
use crate::opened;
use crate::output::{Output, escaped, grouped, one_line};
use crate::settings::Settings;
use crate::values::{Moment, whole};
use memorank::import::timestamp::format_us;
use memorank::scoring::Touch;
use memorank::store::{Agent, Kind, ReadError, Reference, Snapshot, Store};
use memorank::stream::reflection::{
    self, Attempt, Checking, Origin, Reflect, ReflectAnswerError, ReflectError, Reflected,
    Similarity, Trigger,
};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
    /// The moment of reflecting (RFC 3339); by default now.
    #[arg(long, value_name = "TIME")]
    now: Option<Moment>,
    /// Whose last accesses and importances are meant.
    #[arg(long, value_name = "N", default_value_t = Agent::OWN.0)]
    agent: u32,
    #[command(flatten)]
    when: When,
    #[command(flatten)]
    models: Models,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    settings: Settings,
}

/// When it is time.
#[derive(clap::Args)]
#[command(next_help_heading = "When")]
struct When {
    /// The sum of importances of what was observed since the last reflection from which on it is time.
    #[arg(
        long,
        value_name = "SUM",
        default_value_t = 150.0,
        allow_negative_numbers = true
    )]
    threshold: f64,
    /// A kind of memories that count; given several times, these.
    #[arg(long, value_name = "KIND", default_value = Kind::OBSERVATION.as_str())]
    counted: Vec<String>,
    /// Reflect whether it is time or not.
    #[arg(long)]
    force: bool,
}

#[derive(clap::Args)]
#[command(next_help_heading = "How it reflects")]
struct How {
    /// How many of the newest memories the model is shown to find questions.
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole, allow_negative_numbers = true)]
    newest: usize,
    /// How many questions it is asked for.
    #[arg(long, value_name = "N", default_value = "3", value_parser = whole, allow_negative_numbers = true)]
    questions: usize,
    /// How many insights it is asked for, for each question.
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole, allow_negative_numbers = true)]
    insights: usize,
    /// The least number of insights that must pass for a reply to be taken.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole, allow_negative_numbers = true)]
    least: usize,
    /// How often the same is asked before nothing is stored at all.
    #[arg(long, value_name = "N", default_value = "3", value_parser = whole, allow_negative_numbers = true)]
    attempts: usize,
    /// Only memories of this kind are shown, and so can be cited; given several times, of these.
    #[arg(long, value_name = "KIND")]
    shown: Vec<String>,
    /// The least similarity of an insight and its evidence, a cosine; without it, and without --check-command, nobody
    /// checks whether that carries it, and it is stored as unchecked.
    #[arg(long, value_name = "COSINE", allow_negative_numbers = true)]
    similarity: Option<f32>,
    /// Refuse insights that nobody could check.
    #[arg(long)]
    refuse_unchecked: bool,
    /// When the insights stop being valid (RFC 3339).
    #[arg(long, value_name = "TIME")]
    expiry: Option<Moment>,
    /// Do not touch the memories that are retrieved for the questions.
    #[arg(long)]
    no_touch: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    now: String,
    now_us: i64,
    agent: u32,
    importance_since: f64,
    threshold: f64,
    /// Whether it was time, or --force given.
    reflected: bool,
    questions: &'a [String],
    stored: Vec<Stored<'a>>,
    /// Every reply, and what became of it.
    attempts: &'a [Attempt],
    /// Why nothing was stored, if nothing was.
    failure: Option<String>,
}

#[derive(Serialize)]
struct Stored<'a> {
    #[serde(flatten)]
    memory: Cited<'a>,
    evidence: Vec<u64>,
    question: String,
    support: &'static str,
    importance: f32,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let now = args.now.map_or_else(opened::clock, |now| Ok(now.0))?;
    let settings = args.settings(now)?;
    let trigger = args.trigger();
    let store = opened::to_write(&args.store)?;
    let agent = Agent(args.agent);
    let since = trigger.importance_since(&store.snapshot(), agent);
    let importance_since = since.map_err(|e| Failure::Error(e.into()))?;
    let mut document = Document {
        schema: "memorank.reflect/1",
        store: args.store.display().to_string(),
        now: format_us(now),
        now_us: now,
        agent: agent.0,
        importance_since,
        threshold: trigger.threshold,
        reflected: args.when.force || importance_since >= trigger.threshold,
        questions: &[],
        stored: Vec::new(),
        attempts: &[],
        failure: None,
    };
    if !document.reflected {
        return document.tell(out);
    }
    let outcome = args.reflect(&store, settings, now)?;
    let snapshot = store.snapshot();
    let failed = match &outcome {
        Ok(reflected) => {
            document.questions = &reflected.questions;
            document.attempts = &reflected.attempts;
            let rows = reflected
                .ids
                .clone()
                .filter_map(|id| snapshot.row_of_id(id));
            let stored = rows.map(|row| Stored::new(&snapshot, row));
            document.stored = stored.collect::<Result<_, ReadError>>()?;
            let touched = reflected
                .retrieved
                .iter()
                .find_map(|of| of.touch.as_ref().err());
            touched.map(|e| format!("the insights are stored, and a touch failed: {e}"))
        }
        Err((told, attempts)) => {
            document.attempts = attempts;
            document.failure = Some(told.clone());
            Some(told.clone())
        }
    };
    document.tell(out)?;
    store.close()?;
    match failed {
        None => Ok(()),
        // The exit code tells also those who did not read on.
        Some(told) => out.flush().and(Err(Failure::Error(told.into()))),
    }
}

/// What was stored, or why nothing was, with the replies that came.
type Outcome = Result<Reflected, (String, Vec<Attempt>)>;

impl Args {
    fn settings(&self, now: i64) -> Result<reflection::Settings, Failure> {
        let mut preset = self.settings.preset()?;
        preset.touch = match self.how.no_touch {
            true => Touch::None,
            false => Touch::Returned,
        };
        if self.settings.decays_by_kind() {
            let told = "--decay: reflecting knows one decay for all kinds, without a floor";
            return Err(Failure::Usage(told.to_owned()));
        }
        let expiry = self.how.expiry.map(|at| at.0);
        if expiry.is_some_and(|expiry| expiry <= now) {
            let told = "--expiry: the insights would have expired when they are made";
            return Err(Failure::Usage(told.to_owned()));
        }
        let shown: Vec<Kind> = self.how.shown.iter().map(Kind::named).collect();
        Ok(reflection::Settings {
            agent: Agent(self.agent),
            newest: self.how.newest,
            questions: self.how.questions,
            kinds: (!shown.is_empty()).then_some(shown),
            insights: self.how.insights,
            least: self.how.least,
            attempts: self.how.attempts,
            checking: match (self.models.check(), self.how.similarity) {
                (Some(_), None) => Checking::Caller,
                (None, Some(threshold)) => Checking::Similarity(Similarity { threshold }),
                (None, None) => Checking::Nobody,
                (Some(_), Some(_)) => {
                    let told = "--similarity and --check-command: one of them checks";
                    return Err(Failure::Usage(told.to_owned()));
                }
            },
            refuse_unchecked: self.how.refuse_unchecked,
            expiry,
            ..reflection::Settings::new(preset)
        })
    }

    fn trigger(&self) -> Trigger {
        Trigger {
            threshold: self.when.threshold,
            kinds: self.when.counted.iter().map(Kind::named).collect(),
            ..Trigger::default()
        }
    }

    fn reflect(
        &self,
        store: &Store,
        settings: reflection::Settings,
        now: i64,
    ) -> Result<Outcome, Failure> {
        let mut chat = self.models.chat()?;
        let mut embedder = self.models.embedder(&store.snapshot())?;
        let mut check = self.models.check();
        let begun = Reflect::new(store, settings, Some(embedder.model()), now);
        let mut run = begun.map_err(|e| Failure::Error(e.into()))?;
        let mut models = reflection::Models {
            chat: &mut *chat,
            embedder: &mut *embedder,
            check: check.as_mut().map(|check| &mut **check as _),
        };
        let failed = match run.ask(&mut models) {
            Ok(()) => None,
            Err(ReflectError::Answer(ReflectAnswerError::Exhausted(exhausted))) => {
                return Ok(Err((exhausted.to_string(), exhausted.attempts)));
            }
            Err(e) => Some(e.to_string()),
        };
        let stored = match failed {
            Some(told) => Err(told),
            None => run.append(store).map_err(|e| e.to_string()),
        };
        Ok(stored.map_err(|told| (told, run.attempts().to_vec())))
    }
}

impl<'a> Stored<'a> {
    fn new(snapshot: &'a Snapshot, row: usize) -> Result<Stored<'a>, ReadError> {
        let memory = snapshot.memory(row)?;
        let ids = memory
            .evidence
            .iter()
            .filter_map(|reference| match reference {
                Reference::Id(id) => Some(*id),
                Reference::Missing(_) => None,
            });
        let origin = Origin::of(memory.payload);
        Ok(Stored {
            memory: Cited::new(snapshot, row)?,
            evidence: ids.collect(),
            support: origin.as_ref().map_or("", |origin| origin.support.name()),
            question: origin.map_or_else(String::new, |origin| origin.question),
            importance: memory.importance,
        })
    }
}

impl Document<'_> {
    fn tell(&self, out: &mut Output) -> Result<(), Failure> {
        match out.is_json() {
            true => out.document(self),
            false => self.print(out),
        }
    }

    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let (since, threshold) = (self.importance_since, self.threshold);
        if !self.reflected {
            return out.line(format_args!(
                "{}: not yet: importances since the last reflection add up to {since} of {threshold} (--force)",
                escaped(&self.store)
            ));
        }
        for attempt in self.attempts {
            let taken = if attempt.is_taken { "taken" } else { "REFUSED" };
            let reply = one_line(&attempt.reply, 60);
            out.line(format_args!("{}: {taken}: {reply}", attempt.purpose))?;
            for problem in attempt.problems() {
                out.line(format_args!("  {}", escaped(&problem)))?;
            }
        }
        for stored in &self.stored {
            out.line(format_args!("added {}", stored.memory.line()))?;
            let evidence = stored.evidence.iter().map(u64::to_string);
            let evidence = evidence.collect::<Vec<_>>().join(", ");
            let support = stored.support;
            out.line(format_args!("  because of {evidence}; {support}"))?;
        }
        out.line(format_args!(
            "{}: {} insights stored",
            escaped(&self.store),
            grouped(self.stored.len())
        ))
    }
}
