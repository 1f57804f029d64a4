//! The answer to a question, as a document and as text.

use crate::budget::Spent;
use crate::failure::Failure;
use crate::head::{Head, Scored, distance};
use crate::output::{Output, escaped};
use crate::question::Put;
use crate::table::{Line, decayed, print_hits};
use memorank::import::timestamp::format_us;
use memorank::store::ReadError;
use memorank::stream::{Retrieved, Returned, Thresholds, Warning, warnings};
use serde::Serialize;
use std::collections::HashSet;

#[derive(Serialize)]
pub struct Answer<'a> {
    /// `memorank.query/1`, unless it is another's.
    pub schema: &'static str,
    #[serde(flatten)]
    head: Head<'a>,
    pinned: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Warning>>,
    touched: usize,
    /// The number of the touch's record.
    sequence: Option<u64>,
    hits: Vec<Returns<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Spent<'a>>,
}

/// A memory that is returned.
#[derive(Serialize)]
struct Returns<'a> {
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

/// What became of a retrieval.
pub struct Outcome<'a> {
    pub retrieved: &'a Retrieved,
    /// The ids whose last access was refreshed.
    pub touched: &'a HashSet<u64>,
    pub budget: Option<Spent<'a>>,
    /// Whether to tell more of each score.
    pub explain: bool,
}

impl<'a> Answer<'a> {
    pub fn new(
        head: Head<'a>,
        put: &Put<'_>,
        pinned: &'a [String],
        outcome: Outcome<'a>,
    ) -> Result<Answer<'a>, Failure> {
        let Outcome {
            retrieved,
            touched,
            budget,
            explain,
        } = outcome;
        let (snapshot, preset) = (&retrieved.snapshot, head.settings.preset);
        let last = match explain {
            true => last_score(retrieved, preset.k),
            false => None,
        };
        let returns = |returned: &Returned| {
            let memory = snapshot.memory(returned.row)?;
            let before = snapshot.last_access(put.agent, returned.row);
            let last_access = match touched.contains(&returned.id) {
                true => before.max(put.now),
                false => before,
            };
            let gap = |score: f64| last.map(|last| score - last);
            Ok(Returns {
                id: memory.id,
                key: memory.key,
                kind: memory.kind.as_str(),
                text: memory.text,
                created: format_us(memory.created),
                last_access: format_us(last_access),
                pinned: returned.pinned,
                tokens: budget.is_some().then_some(returned.tokens),
                scored: (returned.hit).map(|hit| Scored::new(hit, gap(hit.score))),
            })
        };
        let hits = retrieved.memories.iter().map(returns);
        let hits = hits.collect::<Result<_, ReadError>>()?;
        let warned = || {
            let of = |ranges| warnings(&ranges, &preset.scoring, &Thresholds::default());
            retrieved.ranges.map_or_else(Vec::new, of)
        };
        Ok(Answer {
            schema: "memorank.query/1",
            head: head.found(snapshot, retrieved.candidates, retrieved.ranges),
            pinned,
            warnings: explain.then(warned),
            touched: touched.len(),
            sequence: retrieved.sequence,
            hits,
            budget,
        })
    }

    /// Which question of which store this answers.
    pub fn title(&self) -> String {
        escaped(&format!("{}: {}", self.head.store, self.head.query))
    }

    pub fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let warnings = self.warnings.as_deref();
        self.head.print(warnings.unwrap_or_default(), out)?;
        let lines = self.hits.iter().map(|hit| Line {
            key: (hit.key).map_or_else(|| format!("id {}", hit.id), str::to_owned),
            note: if hit.pinned { " (pinned)" } else { "" }.to_owned(),
            text: hit.text,
            hit: hit.scored.as_ref().map(|scored| scored.hit),
            detail: hit.scored.as_ref().and_then(detail),
        });
        print_hits(lines, out)?;
        if let Some(budget) = &self.budget {
            budget.print(out)?;
        }
        match (self.touched, self.sequence) {
            (0, _) => Ok(()),
            (touched, Some(sequence)) => out.line(format_args!(
                "touched {touched} memories: record {sequence}"
            )),
            (touched, None) => out.line(format_args!("touched {touched} memories")),
        }
    }
}

/// Where a score comes from, if that was asked for.
fn detail(scored: &Scored) -> Option<String> {
    let (hit, gap) = (&scored.hit, distance(scored.gap?));
    Some(format!(
        "relevance {:.4} gives {:.4}, recency {} gives {:.4}, importance {} gives {:.4}; {gap} the last",
        hit.relevance.raw,
        hit.relevance.weighted,
        decayed(hit.recency.raw),
        hit.recency.weighted,
        hit.importance.raw,
        hit.importance.weighted,
    ))
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
