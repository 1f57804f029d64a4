//! What a ranking gives back: hits with their components, and the ranges behind them.

/// The result of a query. Reusable: ranking into it keeps its memory.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Ranking {
    /// The best candidates, best first: `min(k, candidates)` of them.
    pub hits: Vec<Hit>,
    /// The ranges of the raw values over ALL candidates; `None` if there are none.
    pub ranges: Option<Ranges>,
    /// How many rows competed.
    pub candidates: usize,
}

impl Ranking {
    /// Nothing, with the memory kept.
    pub(crate) fn clear(&mut self) {
        self.hits.clear();
        self.ranges = None;
        self.candidates = 0;
    }
}

/// One row of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Hit {
    /// Its number, counted through all segments.
    pub row: usize,
    /// `(relevance.weighted + recency.weighted) + importance.weighted`.
    pub score: f64,
    /// The cosine.
    pub relevance: Component,
    /// The decayed age or position, or the recency given.
    pub recency: Component,
    /// The stored importance.
    pub importance: Component,
}

/// What one signal contributes to a hit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Component {
    /// As measured or stored.
    pub raw: f64,
    /// After normalisation.
    pub normalized: f64,
    /// Weight times `normalized`.
    pub weighted: f64,
}

/// The smallest and largest raw value of each signal among the candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Ranges {
    /// Of the cosines.
    pub relevance: Range,
    /// Of the plain raw recencies. Old ones underflow to 0; the ages tell them apart.
    pub recency: Range,
    /// Of the importances.
    pub importance: Range,
    /// The ages behind the recencies, in ticks; `None` where recency goes by position or is given.
    pub ages: Option<AgeRange>,
}

/// A closed range of raw values.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Range {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// A closed range of ages, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AgeRange {
    /// The age of the candidate accessed last.
    pub youngest: u64,
    /// The age of the candidate accessed longest ago.
    pub oldest: u64,
}
