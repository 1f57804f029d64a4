//! Why a memory is among the best, or why not, and what would bring it in.
//!
//! [`explain`] takes any memory of a store and one question. It tells the memory's place among all candidates
//! with the score that it has there, how far it is from the last one returned, and, if it is beyond that, the
//! least change of its importance, of its last access or of one weight that would bring it in. Nothing is
//! estimated: each change is ranked again, over ranges that it changes too, before it is told.

mod brings_in;
mod contest;

use super::{Ask, Barrier, StreamError};
use crate::Par;
use crate::scoring::{Hit, Located, Normalization, Ranges, Recency, Scoring, Workspace};
use crate::store::Snapshot;
use contest::Contest;
use std::fmt;

/// What there is to say of one memory and one question.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Explanation {
    /// The memory.
    pub id: u64,
    /// Its row in the snapshot; `None` if it was deleted.
    pub row: Option<usize>,
    /// Where it stands, or why it does not compete.
    pub candidate: Result<Standing, NoCandidate>,
    /// The ranges of the raw values over all candidates; `None` if there are none.
    pub ranges: Option<Ranges>,
    /// How many memories competed.
    pub candidates: usize,
    /// What to beware of in these ranges, by [`Thresholds::default`].
    pub warnings: Vec<Warning>,
}

/// Why a memory does not compete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum NoCandidate {
    /// It was deleted.
    Deleted,
    /// It has no embedding.
    NoEmbedding,
    /// The question leaves it out: the first part of its filter that does.
    Filtered(Barrier),
}

impl fmt::Display for NoCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCandidate::Deleted => f.write_str("it was deleted"),
            NoCandidate::NoEmbedding => f.write_str("it has no embedding"),
            NoCandidate::Filtered(barrier) => barrier.fmt(f),
        }
    }
}

/// Where a candidate stands.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Standing {
    /// Its place among all candidates by score, counted from 1.
    pub place: usize,
    /// Its score, with all components.
    pub hit: Hit,
    /// Its score minus that of the last one returned, which has place k or is the last of fewer; below 0 or a
    /// lost tie for one that is not returned. `None` if k is 0.
    pub gap: Option<f64>,
    /// What would bring it in. Nothing for one that is in.
    pub brings_in: BringsIn,
}

/// Single changes, each of which alone would put a memory among the k best. `None` where none does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BringsIn {
    /// The least importance.
    pub importance: Option<f32>,
    /// The least recent last access not after `now`, in microseconds since the Unix epoch. `None` too where
    /// recency does not go by age, or ties are in an order that the last access decides.
    pub last_access: Option<i64>,
    /// For each of relevance, recency and importance the weight nearest to its present one, to a relative 1e-9.
    pub weights: [Option<f64>; 3],
}

/// Something to beware of in a ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Warning {
    /// The candidates hardly differ in a component, and min-max stretches what little there is to the full
    /// range from 0 to 1.
    Stretched {
        /// "relevance", "recency" or "importance".
        component: &'static str,
        /// The largest raw value minus the smallest.
        span: f64,
        /// The span below which this is said.
        threshold: f64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Stretched {
                component,
                span,
                threshold,
            } => write!(
                f,
                "{component} spans {span:.2e} over all candidates, less than {threshold}, and is stretched to 0 to 1"
            ),
        }
    }
}

/// The spans of raw values below which a component counts as [stretched](Warning::Stretched).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Thresholds {
    /// Of cosines.
    pub relevance: f64,
    /// Of raw recencies.
    pub recency: f64,
    /// Of importances.
    pub importance: f64,
}

impl Default for Thresholds {
    /// 1e-3 for relevance, 0.01 for recency, 0.1 for importance.
    fn default() -> Thresholds {
        Thresholds {
            relevance: 1e-3,
            recency: 0.01,
            importance: 0.1,
        }
    }
}

/// What to beware of in the ranges of a ranking with this scoring: components that min-max stretches. One that
/// is constant is not stretched, nor is one that has no weight warned of.
pub fn warnings(ranges: &Ranges, scoring: &Scoring, thresholds: &Thresholds) -> Vec<Warning> {
    match scoring.normalization {
        Normalization::MinMax { .. } => {}
        Normalization::None { .. } => return Vec::new(),
    }
    // Old recencies underflow to one value, and their ages tell them apart.
    let ages_differ = match (scoring.recency, ranges.ages) {
        (Recency::Age { decay, .. }, Some(ages)) => {
            decay > 0.0 && decay < 1.0 && ages.youngest != ages.oldest
        }
        (Recency::Age { .. } | Recency::Position { .. } | Recency::Given, _) => false,
    };
    let weights = scoring.weights;
    let components = [
        (
            "relevance",
            weights.relevance,
            ranges.relevance,
            thresholds.relevance,
            false,
        ),
        (
            "recency",
            weights.recency,
            ranges.recency,
            thresholds.recency,
            ages_differ,
        ),
        (
            "importance",
            weights.importance,
            ranges.importance,
            thresholds.importance,
            false,
        ),
    ];
    let stretched =
        components
            .into_iter()
            .filter_map(|(component, weight, range, threshold, differs)| {
                let span = range.max - range.min;
                let stretched = span < threshold && (span > 0.0 || differs) && weight > 0.0;
                stretched.then_some(Warning::Stretched {
                    component,
                    span,
                    threshold,
                })
            });
    stretched.collect()
}

/// Explains how any memory fares in a ranking. The embeddings are read once; each change that is tried is
/// another pass over the other signals, and for a memory that is not returned there are up to some 300.
///
/// ```
/// use memorank::Par;
/// use memorank::kernel::Dtype;
/// use memorank::scoring::{Preset, Workspace};
/// use memorank::store::{CreateOptions, Kind, NewMemory, Store, files::InMemory};
/// use memorank::stream::{Ask, explain};
///
/// let dim = 2.try_into()?;
/// let options = CreateOptions { dim, dtype: Dtype::F32, model: None };
/// let store = Store::create_on(std::sync::Arc::new(InMemory::new()), "store", &options)?;
/// let memory = |embedding, importance| NewMemory {
///     key: None,
///     kind: Kind::OBSERVATION,
///     text: "Klaus paints",
///     embedding: Some(embedding),
///     created: 0,
///     last_access: 0,
///     expiry: None,
///     importance,
///     evidence: &[],
///     depth: 0,
///     supersedes: None,
///     payload: b"",
/// };
/// store.append(&[memory(&[1.0, 0.0], 2.0), memory(&[0.6, 0.8], 1.0), memory(&[0.0, 1.0], 3.0)])?;
/// let preset = Preset { k: 1, ..Preset::paper() };
/// let ask = Ask::new(&[1.0, 0.0], 0, &preset);
/// let snapshot = store.snapshot();
/// let said = explain(&snapshot, &ask, 2, Par::Serial, &mut Workspace::new())?;
/// // Relevance 0, recency a constant 0.5, importance 1: below the first memory's 1, 0.5 and 0.5.
/// let standing = said.candidate.expect("it competes");
/// assert_eq!((standing.place, standing.gap), (2, Some(-0.5)));
/// // It has all that importance can give; that would have to weigh a little more than twice as much.
/// assert_eq!(standing.brings_in.importance, None);
/// assert!(standing.brings_in.weights[2].is_some_and(|weight| (weight - 2.0).abs() < 1e-8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`rank`](super::rank), and for an id that no memory ever had.
pub fn explain(
    snapshot: &Snapshot,
    ask: &Ask<'_>,
    id: u64,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Explanation, StreamError> {
    ask.check_embedding(snapshot)?;
    let (row, next) = (snapshot.row_of_id(id), snapshot.next_id());
    if row.is_none() && id >= next {
        return Err(StreamError::NoId { id, next });
    }
    let candidates = super::CandidateSet::new(snapshot, ask)?;
    let mut contest = Contest::new(snapshot, ask, &candidates, par, workspace)?;
    let overview = contest.overview()?;
    let candidate = match row {
        None => Err(NoCandidate::Deleted),
        Some(row) if !snapshot.has_embedding(row) => Err(NoCandidate::NoEmbedding),
        Some(row) => match ask.filter.why_not(snapshot, ask, row)? {
            Some(barrier) => Err(NoCandidate::Filtered(barrier)),
            None => match contest.locate(row)? {
                None => Err(NoCandidate::NoEmbedding),
                Some(located) => Ok(standing(&mut contest, located)?),
            },
        },
    };
    let thresholds = Thresholds::default();
    let warnings = (overview.ranges).map_or_else(Vec::new, |ranges| {
        warnings(&ranges, contest.scoring(), &thresholds)
    });
    Ok(Explanation {
        id,
        row,
        candidate,
        ranges: overview.ranges,
        candidates: overview.candidates,
        warnings,
    })
}

fn standing(contest: &mut Contest<'_>, located: Located) -> Result<Standing, StreamError> {
    let Located { place, hit, kth } = located;
    let brings_in = match kth {
        Some(_) if place > contest.k() => brings_in::find(contest, &hit)?,
        Some(_) | None => BringsIn::default(),
    };
    Ok(Standing {
        place,
        hit,
        gap: kth.map(|kth| hit.score - kth.score),
        brings_in,
    })
}
