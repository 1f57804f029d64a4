//! Recency: raw, and under min-max without underflow and cancellation.
//!
//! Under min-max only differences of ages matter. With `u = age - smallest age`, `U` the largest `u`
//! and `L = ln decay` per tick,
//!
//! ```text
//! (d^age - d^oldest) / (d^youngest - d^oldest) = e^(L u) * expm1(L (U - u)) / expm1(L U)
//! ```
//!
//! for 0 < decay < 1: the plain formula with the factor `d^youngest` divided out. So 25,000 and 30,000
//! hours give 1 and 0 though both raw values are close to 0, and spans of seconds keep their digits.

use super::math::{exp, expm1, ln};
use super::settings::{ScoringError, check_decay};
use std::num::NonZeroU64;

/// The raw recency of ages, `decay ^ (age / ticks_per_unit)`: what [`Recency::Age`](super::Recency::Age)
/// computes, to the bit. For callers who make recencies of their own of it.
///
/// ```
/// use memorank::scoring::{Decay, MICROSECONDS_PER_HOUR, age};
/// let decay = Decay::new(0.995, MICROSECONDS_PER_HOUR)?;
/// let hour = 3_600_000_000;
/// assert_eq!(decay.raw(age(hour, 0)), 0.995);
/// assert_eq!(decay.raw(age(0, hour)), 1.0);
/// # Ok::<(), memorank::scoring::ScoringError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Decay {
    decay: f64,
    /// `ln(decay) / ticks_per_unit`; not used for a decay of 0.
    rate: f64,
}

impl Decay {
    /// What remains after one unit of time, which is so many ticks.
    ///
    /// # Errors
    /// A decay outside [0, 1].
    pub fn new(decay: f64, ticks_per_unit: NonZeroU64) -> Result<Decay, ScoringError> {
        check_decay(decay)?;
        let rate = if decay > 0.0 {
            ln(decay) / ticks_per_unit.get() as f64
        } else {
            0.0
        };
        Ok(Decay { decay, rate })
    }

    /// The recency of an age in ticks: in [0, 1], and 1 at age 0.
    #[inline(always)]
    pub fn raw(self, age: u64) -> f64 {
        if self.decay > 0.0 {
            exp(self.rate * age as f64)
        } else if age == 0 {
            1.0
        } else {
            0.0
        }
    }

    /// [`raw`](Decay::raw) of many.
    #[inline(always)]
    pub(super) fn raw_of(self, ages: impl Iterator<Item = u64>, out: &mut [f64]) {
        for (out, age) in out.iter_mut().zip(ages) {
            *out = self.raw(age);
        }
    }
}

/// `max(0, since - last_access)`, exact over all of i64.
#[inline(always)]
pub fn age(since: i64, last_access: i64) -> u64 {
    if last_access < since {
        since.abs_diff(last_access)
    } else {
        0
    }
}

/// Min-max of recency over ages from `youngest` to `oldest`.
#[derive(Clone, Copy, Debug)]
pub(super) enum AgeScale {
    /// All candidates have the same value.
    Constant(f64),
    /// The decay is 0: age 0 gives 1, the rest 0.
    Step,
    /// The formula above.
    Anchored {
        rate: f64,
        youngest: u64,
        span: u64,
        denominator: f64,
    },
}

impl AgeScale {
    pub(super) fn new(decay: Decay, youngest: u64, oldest: u64, constant: f64) -> AgeScale {
        let span = oldest - youngest;
        if span == 0 || decay.decay == 1.0 || (decay.decay == 0.0 && youngest > 0) {
            AgeScale::Constant(constant)
        } else if decay.decay == 0.0 {
            AgeScale::Step
        } else {
            let denominator = expm1(decay.rate * span as f64);
            AgeScale::Anchored {
                rate: decay.rate,
                youngest,
                span,
                denominator,
            }
        }
    }

    /// Normalised recency, in [0, 1], of ages between the two ends.
    #[inline(always)]
    pub(super) fn normalize(&self, ages: impl Iterator<Item = u64>, out: &mut [f64]) {
        let out = out.iter_mut().zip(ages);
        // The fields are copied out first: a loop that reads them through `self` is no vector code.
        match *self {
            AgeScale::Constant(value) => {
                for (out, _) in out {
                    *out = value;
                }
            }
            AgeScale::Step => {
                for (out, age) in out {
                    *out = f64::from(u8::from(age == 0));
                }
            }
            AgeScale::Anchored {
                rate,
                youngest,
                span,
                denominator,
            } => {
                for (out, age) in out {
                    let u = age - youngest;
                    let kept = exp(rate * u as f64);
                    let left = expm1(rate * (span - u) as f64);
                    // At most 1 but for roundings, which must not outrank the youngest. + 0.0 because
                    // the oldest has 0 over a negative number.
                    *out = (kept * left / denominator).min(1.0) + 0.0;
                }
            }
        }
    }

    /// Normalised recency of one age.
    pub(super) fn normalized(&self, age: u64) -> f64 {
        let mut out = [0.0];
        self.normalize(std::iter::once(age), &mut out);
        out[0]
    }
}
