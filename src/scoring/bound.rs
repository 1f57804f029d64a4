//! An upper bound of a candidate's total, for a few multiplications.
//!
//! Once the k best are known so far, most candidates cannot join them whatever their exact total is. The
//! bound spares them three divisions and two exponentials. It never decides what a total is, only which
//! need not be computed.

/// What a total is at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) relevance: Slope,
    pub(super) importance: Slope,
    /// The weight of recency, and more than all roundings, of the total and of this bound, can add up to.
    pub(super) rest: f64,
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
    fn at(&self, x: f32) -> f64 {
        (f64::from(x) - self.zero) * self.slope + self.offset
    }
}

impl Bound {
    /// At least the total of a candidate with these values, accessed whenever. NaN for NaN.
    #[inline(always)]
    pub(super) fn at_most(&self, relevance: f32, importance: f32) -> f64 {
        self.relevance.at(relevance) + self.importance.at(importance) + self.rest
    }
}
