//! How memories are scored: plain data, checked when it is used.

use std::fmt;
use std::num::NonZeroU64;

/// Microseconds in an hour: the paper's unit of decay, for times in microseconds.
pub const MICROSECONDS_PER_HOUR: NonZeroU64 = NonZeroU64::new(3_600_000_000).unwrap();

/// Weights, recency and normalisation. There is no default: the choice is visible in the caller's
/// code. [`Preset`](super::Preset) has the named ones.
#[cfg_attr(
    feature = "serde",
    doc = r##"
With the feature `serde` it is read and written; `memorank tune` writes one as JSON. What is read is checked when it is
used, or by [`check`](Scoring::check); a field that is not known is refused.

```
use memorank::scoring::Scoring;
let json = r#"{
    "weights": {"relevance": 1, "recency": 0.05, "importance": 0},
    "recency": {"age": {"decay": 0.999, "ticks_per_unit": 3600000000, "since": "now"}},
    "normalization": {"min-max": {"constant": 0.5}}
}"#;
let scoring: Scoring = serde_json::from_str(json)?;
scoring.check()?;
assert_eq!(scoring.decay(), Some(0.999));
# Ok::<(), Box<dyn std::error::Error>>(())
```
"##
)]
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Scoring {
    /// The weight of each normalised component.
    pub weights: Weights,
    /// What recency is.
    pub recency: Recency,
    /// What happens to raw values before they are weighted.
    pub normalization: Normalization,
}

/// The weight of each component: finite and not negative. With all of them 0 every total is 0, and
/// the ties decide.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Weights {
    /// Weight of the cosine.
    pub relevance: f64,
    /// Weight of recency.
    pub recency: f64,
    /// Weight of importance.
    pub importance: f64,
}

/// The raw value of recency.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(rename_all = "kebab-case", deny_unknown_fields)
)]
pub enum Recency {
    /// `decay ^ (age / ticks_per_unit)`. An access after the reference time has age 0.
    Age {
        /// In [0, 1]; 0.995 per hour in the paper.
        decay: f64,
        /// How many ticks of the caller's clock are one unit of decay; [`MICROSECONDS_PER_HOUR`] for
        /// microseconds and hours.
        ticks_per_unit: NonZeroU64,
        /// The time that ages are measured from.
        since: Since,
    },
    /// `decay ^ position`, the position counted from 1 over the candidates in the order they are
    /// listed. The authors' public snapshot does this to a list sorted by ascending last access.
    Position {
        /// In [0, 1].
        decay: f64,
    },
    /// A number in [0, 1] for each row, from columns [with recencies](super::Columns::with_recency). Min-max is
    /// the plain one, `(x - min) / (max - min)`.
    Given,
}

/// The time that ages are measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Since {
    /// The query's `now`.
    Now,
    /// The newest last access among the candidates.
    NewestAccess,
}

/// What happens to raw values before they are weighted.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(rename_all = "kebab-case", deny_unknown_fields)
)]
pub enum Normalization {
    /// Min-max over the candidates: `(x - min) / (max - min)`.
    MinMax {
        /// What a component gives everyone when all candidates have the same value; 0.5 in the
        /// authors' code. In [0, 1], like every other normalised value.
        constant: f64,
    },
    /// Cosine and recency as they are, importance divided.
    None {
        /// Between [`f32::MIN_POSITIVE`] and [`f32::MAX`]; 10 for importances of 1 to 10.
        importance_divisor: f64,
    },
}

impl Scoring {
    /// Checks every number.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub fn check(&self) -> Result<(), ScoringError> {
        let Weights {
            relevance,
            recency,
            importance,
        } = self.weights;
        for (component, weight) in [
            ("relevance", relevance),
            ("recency", recency),
            ("importance", importance),
        ] {
            if !weight.is_finite() || weight < 0.0 {
                return Err(ScoringError::Weight { component, weight });
            }
        }
        if !((relevance + recency) + importance).is_finite() {
            return Err(ScoringError::WeightSum);
        }
        if let Some(decay) = self.decay() {
            check_decay(decay)?;
        }
        match self.normalization {
            Normalization::MinMax { constant } if !(0.0..=1.0).contains(&constant) => {
                Err(ScoringError::Constant(constant))
            }
            Normalization::None {
                importance_divisor: d,
            } if !(f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&d) => {
                Err(ScoringError::ImportanceDivisor(d))
            }
            Normalization::MinMax { .. } | Normalization::None { .. } => Ok(()),
        }
    }

    /// The same scoring for a clock with so many ticks per unit of decay: the presets' decays are per hour
    /// of a clock in microseconds. Recency by position and given recency have no clock.
    ///
    /// ```
    /// use memorank::scoring::Preset;
    /// // A clock in seconds.
    /// let scoring = Preset::paper().scoring.with_ticks_per_unit(3_600.try_into()?);
    /// # Ok::<(), std::num::TryFromIntError>(())
    /// ```
    pub fn with_ticks_per_unit(mut self, ticks: NonZeroU64) -> Scoring {
        if let Recency::Age { ticks_per_unit, .. } = &mut self.recency {
            *ticks_per_unit = ticks;
        }
        self
    }

    /// The same scoring with another decay. Given recency has none and stays.
    pub fn with_decay(mut self, value: f64) -> Scoring {
        match &mut self.recency {
            Recency::Age { decay, .. } | Recency::Position { decay } => *decay = value,
            Recency::Given => {}
        }
        self
    }

    /// The decay, of recency by age or by position.
    pub fn decay(&self) -> Option<f64> {
        match self.recency {
            Recency::Age { decay, .. } | Recency::Position { decay } => Some(decay),
            Recency::Given => None,
        }
    }
}

pub(super) fn check_decay(decay: f64) -> Result<(), ScoringError> {
    if (0.0..=1.0).contains(&decay) {
        Ok(())
    } else {
        Err(ScoringError::Decay(decay))
    }
}

/// A number of a [`Scoring`] that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScoringError {
    /// A weight is negative or not finite.
    Weight {
        /// Of which component.
        component: &'static str,
        /// The weight.
        weight: f64,
    },
    /// The weights are finite but their sum is not.
    WeightSum,
    /// The decay lies outside [0, 1].
    Decay(f64),
    /// The value of constant components lies outside [0, 1].
    Constant(f64),
    /// The divisor of importance lies outside [[`f32::MIN_POSITIVE`], [`f32::MAX`]].
    ImportanceDivisor(f64),
}

impl fmt::Display for ScoringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScoringError::Weight { component, weight } => {
                write!(
                    f,
                    "the weight of {component} is {weight}; weights are finite and at least 0"
                )
            }
            ScoringError::WeightSum => f.write_str("the sum of the weights is not finite"),
            ScoringError::Decay(decay) => write!(
                f,
                "the decay is {decay}; it is what remains after one unit of time, from 0 to 1"
            ),
            ScoringError::Constant(value) => {
                write!(
                    f,
                    "the value of constant components is {value}; it must lie in [0, 1]"
                )
            }
            ScoringError::ImportanceDivisor(value) => {
                write!(
                    f,
                    "the divisor of importance is {value:e}; it must lie between 1.2e-38 and 3.4e38"
                )
            }
        }
    }
}

impl std::error::Error for ScoringError {}
