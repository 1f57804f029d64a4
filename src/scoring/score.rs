//! From raw values and ranges to a total: the one place where a score is put together.

use super::bound::{AgeSteps, Bound, Slope};
use super::query::RankError;
use super::ranking::{AgeRange, Component, Hit, Range, Ranges};
use super::recency::{AgeScale, Decay};
use super::relevance::Extent;
use super::settings::{Normalization, Recency, Scoring, Since, Weights};
use super::slots::BLOCK;

/// A scoring whose ranges are known.
pub(super) struct Scorer {
    scoring: Scoring,
    relevance: Scale,
    importance: Scale,
    recency: RecencyScale,
    bound: Bound,
    ranges: Ranges,
}

/// The candidate values a score is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    pub(super) relevance: f32,
    pub(super) last_access: i64,
    pub(super) importance: f32,
    /// Counted from 1 over the candidates as listed.
    pub(super) position: u32,
}

/// Normalisation of relevance or importance.
enum Scale {
    Constant(f64),
    MinMax { min: f64, span: f64 },
    Divided(f64),
}

impl Scale {
    fn new(normalization: Normalization, divisor: f64, range: Range) -> Scale {
        match normalization {
            Normalization::None { .. } => Scale::Divided(divisor),
            Normalization::MinMax { constant } if range.max == range.min => {
                Scale::Constant(constant)
            }
            Normalization::MinMax { .. } => Scale::MinMax {
                min: range.min,
                span: range.max - range.min,
            },
        }
    }

    fn apply(&self, x: f64) -> f64 {
        match *self {
            Scale::Constant(value) => value,
            Scale::MinMax { min, span } => (x - min) / span,
            Scale::Divided(divisor) => x / divisor,
        }
    }
}

impl Scale {
    /// The component, weighted, as a line; and the largest magnitude it has over its range.
    fn weighted(&self, weight: f64, range: Range) -> (Slope, f64) {
        match *self {
            Scale::Constant(value) => (Slope::flat(weight * value), weight * value),
            Scale::MinMax { min, span } => (Slope::new(min, weight / span, weight), weight),
            Scale::Divided(divisor) => {
                let most = weight * (range.max.abs().max(range.min.abs()) / divisor);
                // At the edge of f64 the line could round to an infinity that the total does not reach.
                let slope = if most < f64::MAX / 2.0 {
                    weight / divisor
                } else {
                    f64::INFINITY
                };
                (Slope::new(0.0, slope, most), most)
            }
        }
    }
}

/// Recency of a candidate, raw and normalised.
enum RecencyScale {
    Age {
        since: i64,
        decay: Decay,
        scale: Option<AgeScale>,
    },
    Position {
        decay: Decay,
        scale: Scale,
    },
}

impl RecencyScale {
    fn raw(&self, raw: &Raw) -> f64 {
        match self {
            RecencyScale::Age { since, decay, .. } => decay.raw(age(*since, raw.last_access)),
            RecencyScale::Position { decay, .. } => decay.raw(u64::from(raw.position)),
        }
    }

    fn normalized(&self, raw: &Raw) -> f64 {
        match self {
            RecencyScale::Age {
                since,
                scale: Some(scale),
                ..
            } => scale.normalized(age(*since, raw.last_access)),
            RecencyScale::Age { scale: None, .. } => self.raw(raw),
            RecencyScale::Position { scale, .. } => scale.apply(self.raw(raw)),
        }
    }
}

/// `max(0, since - last_access)`, exact over all of i64.
fn age(since: i64, last_access: i64) -> u64 {
    if last_access < since {
        since.abs_diff(last_access)
    } else {
        0
    }
}

/// `weight * normalized`, + 0.0 so that no total is -0, which would sort behind 0.
fn weigh(weight: f64, normalized: f64) -> f64 {
    weight * normalized + 0.0
}

impl Scorer {
    /// `extent` is that of at least one candidate. Fails if a total could overflow, which without
    /// min-max a large weight and a large importance can do together.
    pub(super) fn new(scoring: &Scoring, now: i64, extent: &Extent) -> Result<Scorer, RankError> {
        let range = |[min, max]: [f32; 2]| Range {
            min: f64::from(min),
            max: f64::from(max),
        };
        let (relevance, importance) = (range(extent.relevance), range(extent.importance));
        let [oldest, newest] = extent.last_access;
        let (recency, recency_range, ages) = match scoring.recency {
            Recency::Age {
                decay,
                ticks_per_unit,
                since,
            } => {
                let since = match since {
                    Since::Now => now,
                    Since::NewestAccess => newest,
                };
                let decay = Decay::new(decay, ticks_per_unit.get());
                let ages = AgeRange {
                    youngest: age(since, newest),
                    oldest: age(since, oldest),
                };
                let scale = match scoring.normalization {
                    Normalization::MinMax { constant } => {
                        Some(AgeScale::new(decay, ages.youngest, ages.oldest, constant))
                    }
                    Normalization::None { .. } => None,
                };
                let range = Range {
                    min: decay.raw(ages.oldest),
                    max: decay.raw(ages.youngest),
                };
                (
                    RecencyScale::Age {
                        since,
                        decay,
                        scale,
                    },
                    range,
                    Some(ages),
                )
            }
            Recency::Position { decay } => {
                let decay = Decay::new(decay, 1);
                let last = extent.candidates as u64;
                let range = Range {
                    min: decay.raw(last),
                    max: decay.raw(1),
                };
                let scale = Scale::new(scoring.normalization, 1.0, range);
                (RecencyScale::Position { decay, scale }, range, None)
            }
        };
        let importance_divisor = match scoring.normalization {
            Normalization::MinMax { .. } => 1.0,
            Normalization::None { importance_divisor } => {
                let Weights {
                    relevance: relevance_weight,
                    recency,
                    importance: weight,
                } = scoring.weights;
                let largest = |range: Range| range.max.abs().max(range.min.abs());
                // Cosines are within 1; relevances of a caller's own may be any numbers.
                let relevance = relevance_weight * largest(relevance);
                let largest = largest(importance);
                if !((relevance + recency) + weight * (largest / importance_divisor)).is_finite() {
                    return Err(RankError::Overflow {
                        importance: largest,
                    });
                }
                importance_divisor
            }
        };
        let weights = &scoring.weights;
        let relevance_scale = Scale::new(scoring.normalization, 1.0, relevance);
        let importance_scale = Scale::new(scoring.normalization, importance_divisor, importance);
        let (relevance_slope, relevance_most) =
            relevance_scale.weighted(weights.relevance, relevance);
        let (importance_slope, importance_most) =
            importance_scale.weighted(weights.importance, importance);
        let bound = Bound {
            relevance: relevance_slope,
            importance: importance_slope,
            recency: weights.recency,
            ages: match &recency {
                RecencyScale::Age {
                    scale: Some(scale), ..
                } => AgeSteps::new(scale, extent.candidates),
                RecencyScale::Age { scale: None, .. } | RecencyScale::Position { .. } => None,
            },
            margin: 1e-9 * (relevance_most + weights.recency + importance_most) + f64::MIN_POSITIVE,
        };
        Ok(Scorer {
            scoring: *scoring,
            relevance: relevance_scale,
            importance: importance_scale,
            recency,
            bound,
            ranges: Ranges {
                relevance,
                recency: recency_range,
                importance,
                ages,
            },
        })
    }

    pub(super) fn ranges(&self) -> Ranges {
        self.ranges
    }

    /// Calls `f(i)`, in order, for every candidate of a block that could reach `floor` with the best
    /// recency there is, and for every one without a vector.
    #[inline(always)]
    pub(super) fn for_each_within_reach(
        &self,
        relevance: &[f32],
        importance: &[f32],
        floor: f64,
        mut f: impl FnMut(usize),
    ) {
        // Marked first and visited then: the marking becomes vector code.
        let mut marks = [false; BLOCK];
        for ((mark, &relevance), &importance) in marks.iter_mut().zip(relevance).zip(importance) {
            let at_most = self.bound.of_any_age(relevance, importance);
            *mark = at_most >= floor || at_most.is_nan();
        }
        for (i, _) in marks[..relevance.len()]
            .iter()
            .enumerate()
            .filter(|(_, mark)| **mark)
        {
            f(i);
        }
    }

    /// The total of a candidate, or `None` if it lies below `floor`.
    #[inline(always)]
    pub(super) fn total_from(&self, raw: &Raw, floor: f64) -> Option<f64> {
        let at_most = self
            .bound
            .of(raw.relevance, raw.importance, || match self.recency {
                RecencyScale::Age { since, .. } => age(since, raw.last_access),
                RecencyScale::Position { .. } => 0,
            });
        if at_most < floor {
            return None;
        }
        let total = sum(self.weighted(self.normalized(raw)));
        (total >= floor).then_some(total)
    }

    /// Relevance, recency, importance.
    fn normalized(&self, raw: &Raw) -> [f64; 3] {
        [
            self.relevance.apply(f64::from(raw.relevance)),
            self.recency.normalized(raw),
            self.importance.apply(f64::from(raw.importance + 0.0)),
        ]
    }

    fn weighted(&self, [relevance, recency, importance]: [f64; 3]) -> [f64; 3] {
        let weights = &self.scoring.weights;
        [
            weigh(weights.relevance, relevance),
            weigh(weights.recency, recency),
            weigh(weights.importance, importance),
        ]
    }

    /// The candidate with all its components.
    pub(super) fn hit(&self, row: usize, raw: &Raw) -> Hit {
        let normalized = self.normalized(raw);
        let weighted = self.weighted(normalized);
        let component = |i: usize, raw: f64| Component {
            raw,
            normalized: normalized[i],
            weighted: weighted[i],
        };
        Hit {
            row,
            score: sum(weighted),
            relevance: component(0, f64::from(raw.relevance)),
            recency: component(1, self.recency.raw(raw)),
            importance: component(2, f64::from(raw.importance + 0.0)),
        }
    }
}

/// The one order in which a total is added up.
fn sum([relevance, recency, importance]: [f64; 3]) -> f64 {
    (relevance + recency) + importance
}
