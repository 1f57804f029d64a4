//! The three signals, their normalisation and the ranking, over columns that the caller owns.
//!
//! # What is computed
//!
//! | component | raw value |
//! |---|---|
//! | relevance | cosine of the memory's and the query's embedding |
//! | recency | `decay ^ age`, `age = max(0, now - last access)`, or as [`Recency`] says |
//! | importance | the stored number |
//!
//! `score = w_rel * n(relevance) + w_rec * n(recency) + w_imp * n(importance)`, where `n` is min-max
//! over the candidates of the query: `(x - min) / (max - min)`, and a declared constant where all
//! candidates have the same value (Park et al., *Generative Agents*, UIST 2023, section 4.1).
//! Candidates are the rows with a vector that pass the query's filter, whatever `k` is. Hits are
//! ordered by score, then by ascending row (or as [`Ties`] says), so the top 10 are a prefix of the
//! top 1000.
//!
//! # How
//!
//! A ranking reads the embeddings once and the signals twice:
//!
//! 1. `relevance` writes one f32 cosine per candidate into scratch, and finds the ranges of all
//!    three signals on the way, block by block;
//! 2. with the ranges known, `score` makes totals and `top` keeps the k best totals.
//!
//! All arithmetic after the cosine is f64 with `+ - * /` and integers only, in one written order, so
//! that results have the same bits on every instruction set, number of threads and batch size. This
//! module knows no files and no clock.

mod bound;
mod columns;
mod locate;
mod math;
mod preset;
mod query;
mod rank;
mod ranking;
mod recency;
mod relevance;
mod scale;
mod scan;
mod score;
mod settings;
mod shortlist;
mod slots;
mod top;
mod workspace;

pub use columns::{Columns, ColumnsError, Components};
pub(crate) use columns::{RecencyColumn, Signals};
pub use locate::{Located, locate};
#[cfg(feature = "store")]
pub(crate) use locate::{for_each_hit, places};
pub use preset::{CandidateRule, Preset, ResultOrder, Touch};
pub use query::{Candidates, Query, RankError, Ties};
pub use rank::{
    BatchError, Job, rank, rank_components, rank_each_into, rank_into, rank_many_into,
    relevance_into,
};
pub use ranking::{AgeRange, Component, Hit, Range, Ranges, Ranking};
pub use recency::{Decay, age};
pub use settings::{
    MICROSECONDS_PER_HOUR, Normalization, Recency, Scoring, ScoringError, Since, Weights,
};
#[cfg(feature = "store")]
pub(crate) use slots::check_mask;
pub use workspace::Workspace;
