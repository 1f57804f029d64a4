//! `memorank explain`: where one memory stands for a question, and what would bring it in.

use crate::failure::Failure;
use crate::head::{Head, Scored, distance};
use crate::output::{Output, escaped, grouped, one_line};
use crate::question::Question;
use crate::table::decayed;
use crate::threads::on_threads;
use crate::{keys, opened};
use memorank::import::timestamp::format_us;
use memorank::kernel::{Isa, Kernel};
use memorank::scoring::{Hit, Weights, Workspace};
use memorank::stream::{self, BringsIn, NoCandidate, Standing, Warning};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder. No byte of it changes.
    store: PathBuf,
    /// The memory's key; or its id, if no memory has that key.
    key: String,
    #[command(flatten)]
    question: Question,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    head: Head<'a>,
    warnings: Vec<Warning>,
    id: u64,
    /// Of a memory that is there.
    key: Option<&'a str>,
    kind: Option<&'a str>,
    text: Option<&'a str>,
    /// Why it does not compete.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_candidate: Option<NoCandidate>,
    /// Of one that does.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<Stands>,
}

#[derive(Serialize)]
struct Stands {
    place: usize,
    returned: bool,
    #[serde(flatten)]
    scored: Scored,
    brings_in: Changes,
}

#[derive(Serialize)]
struct Changes {
    least_importance: Option<f32>,
    oldest_last_access: Option<String>,
    relevance_weight: Option<f64>,
    recency_weight: Option<f64>,
    importance_weight: Option<f64>,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let question = &args.question;
    let preset = question.settings.preset()?;
    let kernel = Kernel::new(Isa::from_env()?)?;
    let asked = question.only("memory is explained")?;
    let snapshot = opened::to_read(&args.store)?.snapshot();
    let id = keys::id(&snapshot, &args.key)?;
    let narrowed = question.competing.filters.narrowed(&snapshot)?;
    let decays = question.settings.decays_in(&preset, &snapshot)?;
    let put = question.put(&asked, &snapshot, &narrowed)?;
    let filter = put.filter(question, &narrowed);
    let ask = question.ask(&put, &preset, &filter, decays.as_ref());
    let mut workspace = Workspace::with_kernel(kernel);
    let explanation = on_threads(question.asking.threads, |par| {
        stream::explain(&snapshot, &ask, id, par, &mut workspace)
    })??;

    let memory = explanation
        .row
        .map(|row| snapshot.memory(row))
        .transpose()?;
    let (memory, store) = (memory.as_ref(), args.store.display().to_string());
    let head = Head::new(&store, question, &put, &preset, decays.as_ref(), kernel);
    let document = Document {
        schema: "memorank.explain/1",
        head: head.found(&snapshot, explanation.candidates, explanation.ranges),
        warnings: explanation.warnings,
        id,
        key: memory.and_then(|memory| memory.key),
        kind: memory.map(|memory| memory.kind.as_str()),
        text: memory.map(|memory| memory.text),
        no_candidate: explanation.candidate.err(),
        standing: explanation
            .candidate
            .ok()
            .map(|standing| Stands::new(&standing, preset.k)),
    };
    if out.is_json() {
        return out.document(&document);
    }
    let last_access = explanation
        .row
        .map(|row| snapshot.last_access(put.agent, row));
    document.print(last_access, out)
}

impl Stands {
    fn new(standing: &Standing, k: usize) -> Stands {
        let Standing {
            place,
            hit,
            gap,
            brings_in,
        } = *standing;
        let BringsIn {
            importance: least_importance,
            last_access,
            weights: [relevance_weight, recency_weight, importance_weight],
        } = brings_in;
        Stands {
            place,
            returned: place <= k,
            scored: Scored::new(hit, gap),
            brings_in: Changes {
                least_importance,
                oldest_last_access: last_access.map(format_us),
                relevance_weight,
                recency_weight,
                importance_weight,
            },
        }
    }
}

impl Document<'_> {
    fn print(&self, last_access: Option<i64>, out: &mut Output) -> Result<(), Failure> {
        let key = self.key.map_or("(no key)".into(), escaped);
        let kind = self.kind.map_or(String::new(), escaped);
        out.heading(format_args!("{key}  id {}  {kind}", self.id))?;
        if let Some(text) = self.text {
            out.line(format_args!("  {}", one_line(text, 96)))?;
        }
        self.head.print(&self.warnings, out)?;
        if let Some(why) = self.no_candidate {
            out.line(format_args!("no candidate: {why}"))?;
        }
        match &self.standing {
            Some(standing) => {
                let weights = &self.head.settings.preset.scoring.weights;
                standing.print(weights, last_access, out)
            }
            None => Ok(()),
        }
    }
}

impl Stands {
    fn print(
        &self,
        weights: &Weights,
        last_access: Option<i64>,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let is = if self.returned {
            "returned"
        } else {
            "not returned"
        };
        let Scored { hit, gap, .. } = &self.scored;
        let gap = gap.map_or(String::new(), |gap| {
            format!(", {} the last that is", distance(gap))
        });
        let (place, score) = (grouped(self.place), hit.score);
        out.line(format_args!("place {place}, {is}: score {score:.4}{gap}"))?;
        out.line("              raw   0 to 1   weight    score")?;
        let raw = [
            format!("{:.4}", hit.relevance.raw),
            decayed(hit.recency.raw),
            hit.importance.raw.to_string(),
        ];
        let components = [
            ("relevance", hit.relevance, weights.relevance),
            ("recency", hit.recency, weights.recency),
            ("importance", hit.importance, weights.importance),
        ];
        for (raw, (name, component, weight)) in raw.iter().zip(components) {
            out.line(format_args!(
                "  {name:<10} {raw:>8} {:>8.4} {weight:>8} {:>8.4}",
                component.normalized, component.weighted
            ))?;
        }
        if self.returned {
            return Ok(());
        }
        let changes: Vec<_> = self.brings_in.lines(hit, weights, last_access).collect();
        if changes.is_empty() {
            return out.line("no single change would bring it in");
        }
        out.line("each of these alone would bring it in:")?;
        (changes.iter())
            .try_for_each(|(name, change)| out.line(format_args!("  {name:<20}  {change}")))
    }
}

impl Changes {
    /// Those that would do, and what is now.
    fn lines(
        &self,
        hit: &Hit,
        weights: &Weights,
        last_access: Option<i64>,
    ) -> impl Iterator<Item = (&'static str, String)> {
        let weight = |to: Option<f64>, now: f64| to.map(|to| format!("{to} (now {now})"));
        let last_access = last_access.map(format_us).unwrap_or_default();
        let (importance, access) = (self.least_importance, self.oldest_last_access.as_ref());
        let all = [
            (
                "importance",
                importance.map(|to| format!("{to} (now {})", hit.importance.raw)),
            ),
            (
                "last access",
                access.map(|to| format!("{to} (now {last_access})")),
            ),
            (
                "weight of relevance",
                weight(self.relevance_weight, weights.relevance),
            ),
            (
                "weight of recency",
                weight(self.recency_weight, weights.recency),
            ),
            (
                "weight of importance",
                weight(self.importance_weight, weights.importance),
            ),
        ];
        all.into_iter()
            .filter_map(|(name, change)| Some((name, change?)))
    }
}
