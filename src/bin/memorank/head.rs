//! What the answers of `query`, `explain` and `replay` begin with: what was asked, of what, and how it was computed.

use crate::failure::Failure;
use crate::output::{Output, escaped, grouped};
use crate::question::{Competing, Put, Question, Source};
use crate::settings::Told;
use crate::table::print_ranges;
use memorank::import::timestamp::format_us;
use memorank::kernel::Kernel;
use memorank::scoring::{Component, Hit, Preset, Ranges};
use memorank::store::Snapshot;
use memorank::stream::{Decays, Warning};
use serde::Serialize;

#[derive(Serialize)]
pub struct Head<'a> {
    pub store: &'a str,
    pub query: &'a Source,
    preset: &'a str,
    /// Where the scoring is from, if it is not the preset's.
    #[serde(skip_serializing_if = "Option::is_none")]
    scoring_file: Option<String>,
    pub settings: Told<'a>,
    filter: &'a Competing,
    agent: u32,
    now: String,
    now_us: i64,
    #[serde(skip)]
    whence: &'static str,
    isa: &'static str,
    memories: usize,
    candidates: usize,
    ranges: Option<Ranges>,
}

impl<'a> Head<'a> {
    /// Before anything is [found](Head::found).
    pub fn new(
        store: &'a str,
        question: &'a Question,
        put: &'a Put<'_>,
        preset: &'a Preset,
        decays: Option<&'a Decays>,
        kernel: Kernel,
    ) -> Head<'a> {
        let scoring = question.settings.scoring.as_ref();
        Head {
            store,
            query: put.source,
            preset: &question.settings.preset,
            scoring_file: scoring.map(|path| path.display().to_string()),
            settings: Told::new(preset, decays),
            filter: &question.competing,
            agent: put.agent.0,
            now: format_us(put.now),
            now_us: put.now,
            whence: put.whence,
            isa: kernel.isa().name(),
            memories: 0,
            candidates: 0,
            ranges: None,
        }
    }

    /// With what competed.
    pub fn found(self, snapshot: &Snapshot, candidates: usize, ranges: Option<Ranges>) -> Self {
        Head {
            memories: snapshot.len(),
            candidates,
            ranges,
            ..self
        }
    }

    pub fn print(&self, warnings: &[Warning], out: &mut Output) -> Result<(), Failure> {
        let Head { now, whence, .. } = self;
        let scoring = match &self.scoring_file {
            Some(file) => format!(" with {}", escaped(file)),
            None => String::new(),
        };
        out.line(format_args!(
            "{} candidates of {} memories, preset {}{scoring}, now {now}{whence}",
            grouped(self.candidates),
            grouped(self.memories),
            self.preset,
        ))?;
        print_ranges(self.ranges.as_ref(), out)?;
        let mut warnings = warnings.iter();
        warnings.try_for_each(|warning| out.line(format_args!("warning: {warning}")))
    }
}

/// How a memory scored.
#[derive(Serialize)]
pub struct Scored {
    score: f64,
    relevance: Component,
    recency: Component,
    importance: Component,
    /// The score minus that of the last of the k best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    #[serde(skip)]
    pub hit: Hit,
}

impl Scored {
    pub fn new(hit: Hit, gap: Option<f64>) -> Scored {
        Scored {
            score: hit.score,
            relevance: hit.relevance,
            recency: hit.recency,
            importance: hit.importance,
            gap,
            hit,
        }
    }
}

/// How far a score is above another, or below.
pub fn distance(gap: f64) -> String {
    let side = if gap < 0.0 { "below" } else { "above" };
    format!("{:.4} {side}", gap.abs())
}
