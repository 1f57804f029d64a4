//! The answer to a question, as a document and as text.

use crate::budget::Spent;
use crate::failure::Failure;
use crate::output::{Output, escaped, grouped};
use crate::question::{Competing, Put, Source};
use crate::settings::Told;
use crate::table::{Line, decayed, print_hits, print_ranges};
use memorank::import::timestamp::format_us;
use memorank::scoring::{self, Component, Ranges};
use memorank::store::ReadError;
use memorank::stream::{Retrieved, Returned, Thresholds, Warning, warnings};
use serde::Serialize;

/// What an answer is told of.
pub struct Asking<'a> {
    pub store: &'a str,
    pub put: &'a Put<'a>,
    pub preset: &'a str,
    pub settings: Told<'a>,
    pub competing: &'a Competing,
    pub pinned: &'a [String],
    pub isa: &'static str,
    /// Whether to tell more of each score.
    pub explain: bool,
}

#[derive(Serialize)]
pub struct Answer<'a> {
    schema: &'static str,
    store: &'a str,
    query: &'a Source,
    preset: &'a str,
    settings: Told<'a>,
    filter: &'a Competing,
    pinned: &'a [String],
    agent: u32,
    now: String,
    now_us: i64,
    #[serde(skip)]
    whence: &'static str,
    isa: &'static str,
    memories: usize,
    candidates: usize,
    ranges: Option<Ranges>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Warning>>,
    touched: usize,
    hits: Vec<Hit<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Spent<'a>>,
}

#[derive(Serialize)]
struct Hit<'a> {
    id: u64,
    key: Option<&'a str>,
    kind: &'a str,
    text: &'a str,
    created: String,
    /// After the touch, if there was one.
    last_access: String,
    pinned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<usize>,
    /// Not of one that is pinned and did not compete.
    #[serde(flatten)]
    scored: Option<Scored>,
}

#[derive(Serialize)]
struct Scored {
    score: f64,
    relevance: Component,
    recency: Component,
    importance: Component,
    /// The score minus that of the last of the k best.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<f64>,
    #[serde(skip)]
    hit: scoring::Hit,
}

impl<'a> Answer<'a> {
    /// `touched`: the ids whose last access was refreshed. `budget`: what became of one.
    pub fn new(
        asking: Asking<'a>,
        retrieved: &'a Retrieved,
        touched: &[u64],
        budget: Option<Spent<'a>>,
    ) -> Result<Answer<'a>, Failure> {
        let Asking { put, settings, .. } = asking;
        let (snapshot, preset) = (&retrieved.snapshot, settings.preset);
        let last = match asking.explain {
            true => last_score(retrieved, preset.k),
            false => None,
        };
        let hit = |returned: &Returned| {
            let memory = snapshot.memory(returned.row)?;
            let before = snapshot.last_access(put.agent, returned.row);
            let last_access = match touched.contains(&returned.id) {
                true => before.max(put.now),
                false => before,
            };
            Ok(Hit {
                id: memory.id,
                key: memory.key,
                kind: memory.kind.as_str(),
                text: memory.text,
                created: format_us(memory.created),
                last_access: format_us(last_access),
                pinned: returned.pinned,
                tokens: budget.is_some().then_some(returned.tokens),
                scored: returned.hit.map(|hit| Scored {
                    score: hit.score,
                    relevance: hit.relevance,
                    recency: hit.recency,
                    importance: hit.importance,
                    gap: last.map(|last| hit.score - last),
                    hit,
                }),
            })
        };
        let hits = retrieved.memories.iter().map(hit);
        let hits = hits.collect::<Result<_, ReadError>>()?;
        let warned = || {
            let of = |ranges| warnings(&ranges, &preset.scoring, &Thresholds::default());
            retrieved.ranges.map_or_else(Vec::new, of)
        };
        Ok(Answer {
            schema: "memorank.query/1",
            store: asking.store,
            query: put.source,
            preset: asking.preset,
            settings,
            filter: asking.competing,
            pinned: asking.pinned,
            agent: put.agent.0,
            now: format_us(put.now),
            now_us: put.now,
            whence: put.whence,
            isa: asking.isa,
            memories: snapshot.len(),
            candidates: retrieved.candidates,
            ranges: retrieved.ranges,
            warnings: asking.explain.then(warned),
            touched: touched.len(),
            hits,
            budget,
        })
    }

    /// Which question of which store this answers.
    pub fn title(&self) -> String {
        escaped(&format!("{}: {}", self.store, self.query))
    }

    pub fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let Answer { now, whence, .. } = self;
        out.line(format_args!(
            "{} candidates of {} memories, preset {}, now {now}{whence}",
            grouped(self.candidates),
            grouped(self.memories),
            self.preset,
        ))?;
        print_ranges(self.ranges.as_ref(), out)?;
        for warning in self.warnings.iter().flatten() {
            out.line(format_args!("warning: {}", told(warning)))?;
        }
        let lines = self.hits.iter().map(|hit| Line {
            key: (hit.key).map_or_else(|| format!("id {}", hit.id), str::to_owned),
            note: if hit.pinned { " (pinned)" } else { "" }.to_owned(),
            text: hit.text,
            hit: hit.scored.as_ref().map(|scored| scored.hit),
            detail: hit.scored.as_ref().and_then(Scored::detail),
        });
        print_hits(lines, out)?;
        if let Some(budget) = &self.budget {
            budget.print(out)?;
        }
        match self.touched {
            0 => Ok(()),
            touched => out.line(format_args!("touched {touched} memories")),
        }
    }
}

impl Scored {
    /// Where the score comes from, if that was asked for.
    fn detail(&self) -> Option<String> {
        let gap = self.gap?;
        let [relevance, recency, importance] =
            [self.relevance, self.recency, self.importance].map(|c| (c.raw, c.weighted));
        Some(format!(
            "relevance {:.4} gives {:.4}, recency {} gives {:.4}, importance {} gives {:.4}; {} the last",
            relevance.0,
            relevance.1,
            decayed(recency.0),
            recency.1,
            importance.0,
            importance.1,
            distance(gap),
        ))
    }
}

/// The score of the last of the k best, whether it is returned or cut.
fn last_score(retrieved: &Retrieved, k: usize) -> Option<f64> {
    // Pinned memories may be among them or not; the best k of all that is known are the best k there are.
    let returned = retrieved.memories.iter().filter_map(|memory| memory.hit);
    let hits = returned.chain(retrieved.cut.iter().map(|cut| cut.hit));
    let mut scores: Vec<f64> = hits.map(|hit| hit.score).collect();
    scores.sort_unstable_by(|a, b| b.total_cmp(a));
    scores.truncate(k);
    scores.last().copied()
}

/// How far a score is above another, or below.
pub fn distance(gap: f64) -> String {
    let side = if gap < 0.0 { "below" } else { "above" };
    format!("{:.4} {side}", gap.abs())
}

/// A warning as a sentence.
pub fn told(warning: &Warning) -> String {
    match warning {
        Warning::Stretched {
            component,
            span,
            threshold,
        } => format!(
            "{component} spans {span:.2e} over all candidates, less than {threshold}, and is stretched to 0 to 1"
        ),
        // More may come to be warned of.
        _ => format!("{warning:?}"),
    }
}
