//! From raw values to normalised ones, once the ranges are known.

use super::bound::Slope;
use super::columns::recency_of;
use super::ranking::Range;
use super::recency::{AgeScale, Decay, age};
use super::settings::Normalization;

/// Normalisation of relevance, importance, or recency that is not by age: `(x - min) / span + constant`.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    min: f64,
    span: f64,
    /// The declared value of a component that is constant, otherwise 0.
    constant: f64,
}

impl Scale {
    pub(super) fn new(normalization: Normalization, divisor: f64, range: Range) -> Scale {
        let (min, span, constant) = match normalization {
            Normalization::None { .. } => (0.0, divisor, 0.0),
            Normalization::MinMax { constant } if range.max == range.min => {
                (range.min, 1.0, constant)
            }
            Normalization::MinMax { .. } => (range.min, range.max - range.min, 0.0),
        };
        Scale {
            min,
            span,
            constant,
        }
    }

    #[inline(always)]
    pub(super) fn apply(self, x: f64) -> f64 {
        (x - self.min) / self.span + self.constant
    }

    /// The component, weighted, as a line; and the largest magnitude it has over its range.
    pub(super) fn weighted(self, weight: f64, range: Range) -> (Slope, f64) {
        let largest = |x: f64| (x - self.min).abs() / self.span + self.constant;
        let most = weight * largest(range.min).max(largest(range.max));
        // At the edge of f64 the line could round to an infinity that the total does not reach.
        let slope = if most < f64::MAX / 2.0 {
            weight / self.span
        } else {
            f64::INFINITY
        };
        let slope = Slope::new(self.min, slope, weight * self.constant, most);
        (slope, most)
    }
}

/// Recency of a candidate, raw and normalised.
pub(super) enum RecencyScale {
    Age {
        since: i64,
        decay: Decay,
        scale: Option<AgeScale>,
    },
    Position {
        decay: Decay,
        scale: Scale,
    },
    Given {
        scale: Scale,
    },
}

impl RecencyScale {
    /// The raw recency of many.
    #[inline(always)]
    pub(super) fn raw(&self, stamps: &[i64], positions: &[u32], out: &mut [f64]) {
        match *self {
            RecencyScale::Age { since, decay, .. } => {
                decay.raw_of(stamps.iter().map(|&access| age(since, access)), out);
            }
            RecencyScale::Position { decay, .. } => {
                decay.raw_of(positions.iter().map(|&position| u64::from(position)), out);
            }
            RecencyScale::Given { .. } => {
                for (out, &stamp) in out.iter_mut().zip(stamps) {
                    *out = recency_of(stamp);
                }
            }
        }
    }

    /// The normalised recency of many.
    #[inline(always)]
    pub(super) fn normalize(&self, stamps: &[i64], positions: &[u32], out: &mut [f64]) {
        match *self {
            RecencyScale::Age {
                since,
                scale: Some(scale),
                ..
            } => scale.normalize(stamps.iter().map(|&access| age(since, access)), out),
            RecencyScale::Age { scale: None, .. } => self.raw(stamps, positions, out),
            RecencyScale::Position { scale, .. } | RecencyScale::Given { scale } => {
                self.raw(stamps, positions, out);
                for out in out {
                    *out = scale.apply(*out);
                }
            }
        }
    }
}
