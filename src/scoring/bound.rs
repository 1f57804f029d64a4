//! An upper bound of a candidate's total, for a few multiplications.
//!
//! Once the k best are known so far, most candidates cannot join them whatever their exact total is. The
//! bound spares them two divisions and, by a table of recency over age, two exponentials. It never
//! decides what a total is, only which need not be computed.

use super::recency::AgeScale;

/// What a total is at most.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) relevance: Slope,
    pub(super) importance: Slope,
    /// Weight of recency.
    pub(super) recency: f64,
    pub(super) ages: Option<AgeSteps>,
    /// More than all roundings, of the total and of this bound, can add up to.
    pub(super) margin: f64,
}

/// A weighted component as a line: `(x - zero) * slope + offset`.
#[derive(Debug)]
pub(super) struct Slope {
    zero: f64,
    slope: f64,
    offset: f64,
}

impl Slope {
    /// `(x - zero) * slope`, which is `most` at most. A slope that under- or overflows says nothing:
    /// then the bound is `most` everywhere.
    pub(super) fn new(zero: f64, slope: f64, most: f64) -> Slope {
        if slope.is_normal() {
            Slope {
                zero,
                slope,
                offset: 0.0,
            }
        } else {
            Slope::flat(most)
        }
    }

    /// The same value everywhere.
    pub(super) fn flat(value: f64) -> Slope {
        Slope {
            zero: 0.0,
            slope: 0.0,
            offset: value,
        }
    }

    #[inline(always)]
    fn at(&self, x: f32) -> f64 {
        (f64::from(x) - self.zero) * self.slope + self.offset
    }
}

impl Bound {
    /// At least the total of a candidate with these values, accessed whenever. NaN for NaN.
    #[inline(always)]
    pub(super) fn of_any_age(&self, relevance: f32, importance: f32) -> f64 {
        self.relevance.at(relevance) + self.importance.at(importance) + (self.recency + self.margin)
    }

    /// At least the total of a candidate with these values.
    #[inline(always)]
    pub(super) fn of(&self, relevance: f32, importance: f32, age: impl FnOnce() -> u64) -> f64 {
        let recency = match &self.ages {
            Some(ages) => ages.at_most(age()),
            None => 1.0,
        };
        self.relevance.at(relevance)
            + self.importance.at(importance)
            + (self.recency * recency + self.margin)
    }
}

/// Normalised recency by steps of age.
#[derive(Debug)]
pub(super) struct AgeSteps {
    youngest: u64,
    /// A step is `2^shift` ticks.
    shift: u32,
    /// The recency at the start of each step, a little raised.
    steps: [f64; STEPS],
}

const STEPS: usize = 256;

impl AgeSteps {
    /// `None` where a table would cost more than it saves, or recency is cheap anyhow.
    pub(super) fn new(scale: &AgeScale, candidates: usize) -> Option<AgeSteps> {
        let AgeScale::Anchored { youngest, span, .. } = *scale else {
            return None;
        };
        if candidates < 8 * STEPS {
            return None;
        }
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(STEPS.ilog2());
        let mut steps = [0.0; STEPS];
        for (step, bound) in steps.iter_mut().enumerate() {
            let u = ((step as u64) << shift).min(span);
            // Recency falls with age, but for roundings far smaller than this.
            *bound = (scale.normalized(youngest + u) + 1e-9).min(1.0);
        }
        Some(AgeSteps {
            youngest,
            shift,
            steps,
        })
    }

    #[inline(always)]
    fn at_most(&self, age: u64) -> f64 {
        self.steps[((age - self.youngest) >> self.shift) as usize % STEPS]
    }
}
