//! From raw values and ranges to a total: the one place where a score is put together.

use super::bound::{Bound, Chords, RecencyBound};
use super::columns::recency_of;
use super::query::RankError;
use super::ranking::{AgeRange, Component, Hit, Range, Ranges};
use super::recency::{AgeScale, Decay, age};
use super::relevance::Extent;
use super::scale::{RecencyScale, Scale};
use super::settings::{Normalization, Recency, Scoring, Since, Weights};
use super::shortlist::{Listed, Shortlist};
use super::slots::BLOCK;
use super::top::Entry;
use crate::kernel::{Kernel, Loop};
use std::num::NonZeroU64;

/// A scoring whose ranges are known.
pub(super) struct Scorer {
    formula: Formula,
    recency: RecencyScale,
    bound: Bound,
    ranges: Ranges,
    candidates: usize,
}

/// The candidate values a score is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    pub(super) relevance: f32,
    /// The last access, or the bits of the recency given: see [`Signals::stamps`](super::columns::Signals::stamps).
    pub(super) stamp: i64,
    pub(super) importance: f32,
    /// Counted from 1 over the candidates as listed.
    pub(super) position: u32,
}

/// A score, once recency is normalised.
#[derive(Clone, Copy)]
struct Formula {
    relevance: Scale,
    importance: Scale,
    weights: Weights,
}

impl Formula {
    /// Relevance, recency, importance.
    #[inline(always)]
    fn normalized(self, relevance: f32, recency: f64, importance: f32) -> [f64; 3] {
        [
            self.relevance.apply(f64::from(relevance)),
            recency,
            self.importance.apply(f64::from(importance + 0.0)),
        ]
    }

    #[inline(always)]
    fn weighted(self, [relevance, recency, importance]: [f64; 3]) -> [f64; 3] {
        [
            weigh(self.weights.relevance, relevance),
            weigh(self.weights.recency, recency),
            weigh(self.weights.importance, importance),
        ]
    }
}

/// `weight * normalized`, + 0.0 so that no total is -0, which would sort behind 0.
#[inline(always)]
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
        let (recency, recency_range, ages) = match scoring.recency {
            Recency::Age {
                decay,
                ticks_per_unit,
                since,
            } => {
                let [oldest, newest] = extent.stamps;
                let since = match since {
                    Since::Now => now,
                    Since::NewestAccess => newest,
                };
                let decay = Decay::new(decay, ticks_per_unit)?;
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
                let decay = Decay::new(decay, NonZeroU64::MIN)?;
                let last = extent.candidates as u64;
                let range = Range {
                    min: decay.raw(last),
                    max: decay.raw(1),
                };
                let scale = Scale::new(scoring.normalization, 1.0, range);
                (RecencyScale::Position { decay, scale }, range, None)
            }
            Recency::Given => {
                let [min, max] = extent.stamps.map(recency_of);
                let range = Range { min, max };
                let scale = Scale::new(scoring.normalization, 1.0, range);
                (RecencyScale::Given { scale }, range, None)
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
            recency: match &recency {
                // Fewer are all scored before the bound is asked.
                RecencyScale::Age {
                    since,
                    scale: Some(scale),
                    ..
                } if extent.candidates > BLOCK => {
                    RecencyBound::Age(weights.recency, Chords::new(*since, scale))
                }
                RecencyScale::Age { .. } | RecencyScale::Position { .. } => {
                    RecencyBound::Flat(weights.recency)
                }
                RecencyScale::Given { scale } => {
                    RecencyBound::Given(scale.weighted(weights.recency, recency_range).0)
                }
            },
            margin: 1e-9 * (relevance_most + weights.recency + importance_most) + f64::MIN_POSITIVE,
        };
        Ok(Scorer {
            formula: Formula {
                relevance: relevance_scale,
                importance: importance_scale,
                weights: scoring.weights,
            },
            recency,
            bound,
            ranges: Ranges {
                relevance,
                recency: recency_range,
                importance,
                ages,
            },
            candidates: extent.candidates,
        })
    }

    pub(super) fn ranges(&self) -> Ranges {
        self.ranges
    }

    pub(super) fn candidates(&self) -> usize {
        self.candidates
    }

    /// Calls `f(i)`, in order, for every candidate of a block that could reach `floor`, and for every
    /// row without a vector.
    #[inline(always)]
    pub(super) fn for_each_within_reach(
        &self,
        kernel: Kernel,
        relevance: &[f32],
        stamps: &[i64],
        importance: &[f32],
        floor: f64,
        mut f: impl FnMut(usize),
    ) {
        if floor == f64::NEG_INFINITY {
            return (0..relevance.len()).for_each(f);
        }
        // Marked first and visited then: the marking becomes vector code.
        let mut marks = [0u8; BLOCK];
        kernel.run(Mark {
            bound: &self.bound,
            relevance,
            stamps,
            importance,
            floor,
            marks: &mut marks,
        });
        for (group, marks) in marks.as_chunks::<8>().0.iter().enumerate() {
            let mut marks = u64::from_le_bytes(*marks);
            while marks != 0 {
                f(group * 8 + marks.trailing_zeros() as usize / 8);
                marks &= marks - 1;
            }
        }
    }

    /// The totals of a shortlist.
    pub(super) fn total(&self, kernel: Kernel, shortlist: &mut Shortlist) {
        kernel.run(Total {
            scorer: self,
            listed: shortlist.listed(),
        });
    }

    /// Appends entries with all their components.
    pub(super) fn hits(
        &self,
        kernel: Kernel,
        entries: &[Entry],
        shortlist: &mut Shortlist,
        out: &mut Vec<Hit>,
    ) {
        for entries in entries.chunks(BLOCK) {
            shortlist.clear();
            entries.iter().for_each(|e| shortlist.push(e.row, &e.raw));
            self.total(kernel, shortlist);
            self.listed_hits(kernel, shortlist, out);
        }
    }

    /// Appends a shortlist that has its totals, with all components.
    pub(super) fn listed_hits(
        &self,
        kernel: Kernel,
        shortlist: &mut Shortlist,
        out: &mut Vec<Hit>,
    ) {
        kernel.run(RawRecency {
            recency: &self.recency,
            listed: shortlist.listed(),
        });
        let listed = 0..shortlist.totals().len();
        out.extend(listed.map(|i| {
            let (row, raw) = (shortlist.row(i), shortlist.raw(i));
            self.hit(row, raw, shortlist.recency(i))
        }));
    }

    /// `recency` is the raw and the normalised one.
    fn hit(&self, row: u32, raw: Raw, recency: [f64; 2]) -> Hit {
        let formula = self.formula;
        let normalized = formula.normalized(raw.relevance, recency[1], raw.importance);
        let weighted = formula.weighted(normalized);
        let component = |i: usize, raw: f64| Component {
            raw,
            normalized: normalized[i],
            weighted: weighted[i],
        };
        Hit {
            row: row as usize,
            score: sum(weighted),
            relevance: component(0, f64::from(raw.relevance)),
            recency: component(1, recency[0]),
            importance: component(2, f64::from(raw.importance + 0.0)),
        }
    }
}

/// Marks the candidates that could reach a floor, and those without a vector.
struct Mark<'a> {
    bound: &'a Bound,
    relevance: &'a [f32],
    stamps: &'a [i64],
    importance: &'a [f32],
    floor: f64,
    marks: &'a mut [u8; BLOCK],
}

impl Loop for Mark<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.bound.recency {
            RecencyBound::Flat(most) => self.mark(|_| most),
            RecencyBound::Age(weight, chords) => self.mark(|stamp| weight * chords.at_most(stamp)),
            RecencyBound::Given(slope) => self.mark(|stamp| slope.at(recency_of(stamp))),
        }
    }
}

impl Mark<'_> {
    /// `recency` gives what that of a stamp is at most, weighted.
    #[inline(always)]
    fn mark(self, recency: impl Fn(i64) -> f64) {
        // Copied: a loop that reads it through the reference is no vector code.
        let bound = *self.bound;
        let signals = self.relevance.iter().zip(self.stamps);
        let signals = signals.zip(self.importance);
        for (mark, ((&relevance, &stamp), &importance)) in self.marks.iter_mut().zip(signals) {
            let at_most = bound.at_most(relevance, recency(stamp), importance);
            *mark = u8::from((at_most >= self.floor) | at_most.is_nan());
        }
    }
}

/// Computes the totals of a shortlist.
struct Total<'a> {
    scorer: &'a Scorer,
    listed: Listed<'a>,
}

impl Loop for Total<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Total { scorer, listed } = self;
        // Copied: a loop that reads it through the reference is no vector code.
        let formula = scorer.formula;
        let recency = &scorer.recency;
        recency.normalize(listed.stamps, listed.positions, listed.recency);
        let signals = listed.relevance.iter().zip(&*listed.recency);
        let signals = signals.zip(listed.importance);
        for (total, ((&relevance, &recency), &importance)) in listed.totals.iter_mut().zip(signals)
        {
            let normalized = formula.normalized(relevance, recency, importance);
            *total = sum(formula.weighted(normalized));
        }
    }
}

/// Computes the raw recencies of a shortlist.
struct RawRecency<'a> {
    recency: &'a RecencyScale,
    listed: Listed<'a>,
}

impl Loop for RawRecency<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Listed {
            stamps,
            positions,
            raw_recency,
            ..
        } = self.listed;
        self.recency.raw(stamps, positions, raw_recency);
    }
}

/// The one order in which a total is added up.
#[inline(always)]
fn sum([relevance, recency, importance]: [f64; 3]) -> f64 {
    (relevance + recency) + importance
}
