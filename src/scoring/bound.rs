//! An upper bound of a candidate's total, for a few multiplications.
//!
//! Once the k best are known so far, most candidates cannot join them whatever their exact total is. The
//! bound spares them three divisions and two exponentials. It never decides what a total is, only which
//! need not be computed.

use super::recency::{AgeScale, age};

/// What a total is at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) relevance: Slope,
    pub(super) importance: Slope,
    pub(super) recency: RecencyBound,
    /// More than all roundings, of the total and of this bound, can add up to.
    pub(super) margin: f64,
}

/// What weighted recency is at most.
#[derive(Clone, Copy, Debug)]
pub(super) enum RecencyBound {
    /// The same for all.
    Flat(f64),
    /// The weight, times the chords at the last access.
    Age(f64, Chords),
    /// A line in the recency given.
    Given(Slope),
}

/// A weighted component as a line: `(x - zero) * slope + offset`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slope {
    zero: f64,
    slope: f64,
    offset: f64,
}

impl Slope {
    /// `(x - zero) * slope + offset`, which is `most` at most. A slope that under- or overflows says
    /// nothing: then the bound is `most` everywhere.
    pub(super) fn new(zero: f64, slope: f64, offset: f64, most: f64) -> Slope {
        if slope.is_normal() {
            Slope {
                zero,
                slope,
                offset,
            }
        } else {
            Slope {
                zero: 0.0,
                slope: 0.0,
                offset: most,
            }
        }
    }

    #[inline(always)]
    pub(super) fn at(&self, x: f64) -> f64 {
        (x - self.zero) * self.slope + self.offset
    }
}

/// Normalised recency falls with age and is convex, so between two ages it lies below the chord, and
/// the highest of all chords is the one over the age. Three of them are close enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chords {
    since: i64,
    youngest: u64,
    /// `[slope, offset]` in the age beyond the youngest.
    chords: [[f64; 2]; 3],
}

impl Chords {
    /// At most 1 at any age.
    pub(super) const FLAT: Chords = Chords {
        since: i64::MIN,
        youngest: 0,
        chords: [[0.0, 1.0]; 3],
    };

    pub(super) fn new(since: i64, scale: &AgeScale) -> Chords {
        let AgeScale::Anchored {
            rate,
            youngest,
            span,
            ..
        } = *scale
        else {
            return Chords::FLAT;
        };
        // Raw recency is about a half and a tenth of the youngest's at the two in between.
        let between = |times: f64| ((times / rate) as u64).clamp(1, span);
        let ages = [0, between(-0.7), between(-2.3), span];
        let chord = |i: usize| {
            // Ends that are one point make way for the longest chord, which lies above all others.
            let (from, to) = match ages[i] < ages[i + 1] {
                true => (ages[i], ages[i + 1]),
                false => (0, span),
            };
            let [low, high] = [to, from].map(|u| scale.normalized(youngest + u));
            let slope = (low - high) / (to - from) as f64;
            [slope, high - slope * from as f64]
        };
        Chords {
            since,
            youngest,
            chords: [chord(0), chord(1), chord(2)],
        }
    }

    #[inline(always)]
    pub(super) fn at_most(&self, last_access: i64) -> f64 {
        // Of a row without a vector this may wrap: it is no candidate.
        let age = age(self.since, last_access).wrapping_sub(self.youngest) as f64;
        let mut highest = f64::NEG_INFINITY;
        for [slope, offset] in self.chords {
            let at = slope * age + offset;
            highest = if at > highest { at } else { highest };
        }
        highest
    }
}

impl Bound {
    /// At least the total of a candidate with these values, whose weighted recency is at most `recency`. NaN
    /// for NaN.
    #[inline(always)]
    pub(super) fn at_most(&self, relevance: f32, recency: f64, importance: f32) -> f64 {
        self.relevance.at(f64::from(relevance))
            + recency
            + self.importance.at(f64::from(importance))
            + self.margin
    }
}
