//! The named settings: what the paper says, and what published code does.

use super::query::Ties;
use super::settings::{MICROSECONDS_PER_HOUR, Normalization, Recency, Scoring, Since, Weights};

/// A scoring with everything around it: how many, from which memories, in which order, touched or not.
///
/// The rule, the order of the result and the touch concern memories, not rows: whoever knows kinds,
/// texts and creation times applies them (in this crate, `stream`).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Preset {
    /// How memories are scored.
    pub scoring: Scoring,
    /// How many are returned.
    pub k: usize,
    /// Which memories are candidates.
    pub candidates: CandidateRule,
    /// What orders equal totals.
    pub ties: Ties,
    /// The order of the result.
    pub result_order: ResultOrder,
    /// Whether retrieval refreshes the last access of what it returns.
    pub touch: Touch,
}

/// Which memories a preset takes as candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum CandidateRule {
    /// All that have a vector.
    All,
    /// Observations and reflections whose embedding key does not contain "idle", listed by ascending
    /// last access, observations before reflections, newest first.
    Reverie,
}

/// The order of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum ResultOrder {
    /// As ranked: by descending score.
    Score,
    /// By ascending creation time, equal ones as ranked.
    Created,
    /// By ascending last access, as it was before a touch, equal ones as ranked.
    LastAccess,
}

/// Whether retrieval refreshes the last access of what it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Touch {
    /// Of every memory returned.
    Returned,
    /// Of every memory returned that was last retrieved more than `age` before, so that memories retrieved again
    /// and again are not written each time. With an age of 0 it is [`Returned`](Touch::Returned).
    IfOlder {
        /// In ticks: in a store, microseconds.
        age: u64,
    },
    /// Of none.
    None,
}

impl Preset {
    /// The names of the presets, for [`Preset::named`].
    pub const NAMES: [&'static str; 4] = ["paper", "reverie", "genagents", "unnormalized"];

    /// The paper's text: relevance, recency (0.995 per hour since the last retrieval) and importance,
    /// min-max normalised over all memories, weights 1 (Park et al. 2023, section 4.1).
    pub const fn paper() -> Preset {
        Preset {
            scoring: Scoring {
                weights: Weights {
                    relevance: 1.0,
                    recency: 1.0,
                    importance: 1.0,
                },
                recency: Recency::Age {
                    decay: 0.995,
                    ticks_per_unit: MICROSECONDS_PER_HOUR,
                    since: Since::Now,
                },
                normalization: Normalization::MinMax { constant: 0.5 },
            },
            k: 30,
            candidates: CandidateRule::All,
            ties: Ties::Row,
            result_order: ResultOrder::Score,
            touch: Touch::Returned,
        }
    }

    /// The authors' public snapshot (repository `generative_agents`, `retrieve.py`): recency is
    /// 0.99 ^ position in the list sorted by ASCENDING last access, so the memory accessed longest ago
    /// gets most; weights 3, 0.5 and 2.
    pub const fn reverie() -> Preset {
        Preset {
            scoring: Scoring {
                weights: Weights {
                    relevance: 3.0,
                    recency: 0.5,
                    importance: 2.0,
                },
                recency: Recency::Position { decay: 0.99 },
                normalization: Normalization::MinMax { constant: 0.5 },
            },
            k: 30,
            candidates: CandidateRule::Reverie,
            ties: Ties::Listed,
            result_order: ResultOrder::Score,
            touch: Touch::Returned,
        }
    }

    /// The authors' later code (repository `genagents`): 0.99 per step before the newest last access
    /// among the candidates, with weights 1, 0 and 0.5, importance from 0 to 100, the result sorted by
    /// creation. It does not touch.
    pub const fn genagents() -> Preset {
        Preset {
            scoring: Scoring {
                weights: Weights {
                    relevance: 1.0,
                    recency: 0.0,
                    importance: 0.5,
                },
                recency: Recency::Age {
                    decay: 0.99,
                    ticks_per_unit: MICROSECONDS_PER_HOUR,
                    since: Since::NewestAccess,
                },
                normalization: Normalization::MinMax { constant: 0.5 },
            },
            k: 120,
            candidates: CandidateRule::All,
            ties: Ties::Row,
            result_order: ResultOrder::Created,
            touch: Touch::None,
        }
    }

    /// The formula as it is often taught: no min-max, the cosine and `0.995 ^ hours` as they are,
    /// importance / 10.
    pub const fn unnormalized() -> Preset {
        let mut preset = Preset::paper();
        preset.scoring.normalization = Normalization::None {
            importance_divisor: 10.0,
        };
        preset
    }

    /// The preset called `name`, one of [`Preset::NAMES`].
    pub fn named(name: &str) -> Option<Preset> {
        match name {
            "paper" => Some(Preset::paper()),
            "reverie" => Some(Preset::reverie()),
            "genagents" => Some(Preset::genagents()),
            "unnormalized" => Some(Preset::unnormalized()),
            _ => None,
        }
    }
}
