//! How to reflect.

use super::Similarity;
use crate::Par;
use crate::scoring::Preset;
use crate::store::{Agent, Kind};
use crate::stream::rating;
use std::ops::RangeInclusive;
use thiserror::Error;

/// How a [`Reflect`](super::Reflect) goes about it.
///
/// ```
/// use memorank::scoring::Preset;
/// use memorank::stream::reflection::{Checking, Settings, Similarity};
///
/// let settings = Settings {
///     checking: Checking::Similarity(Similarity { threshold: 0.3 }),
///     attempts: 5,
///     ..Settings::new(Preset { k: 30, ..Preset::paper() })
/// };
/// assert_eq!((settings.newest, settings.questions, settings.insights), (100, 3, 5));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Who reflects: its last accesses count, and are refreshed.
    pub agent: Agent,
    /// How many of the newest memories the model is shown to find questions: 100 in the paper.
    pub newest: usize,
    /// How many questions it is asked for: 3 in the paper.
    pub questions: usize,
    /// How memories are chosen for a question; `k` is how many of them the model is shown.
    pub preset: Preset,
    /// The kinds of memories that are shown, and so can be cited. `None`: any.
    pub kinds: Option<Vec<Kind>>,
    /// How many insights it is asked for, for each question: 5 in the paper. More are told, and not stored.
    pub insights: usize,
    /// The least number of insights that must pass all gates for a reply to be taken. What does not pass in a reply that is
    /// taken is told, and not stored.
    pub least: usize,
    /// How often it is asked the same before the run is over, the first time included.
    pub attempts: usize,
    /// Who says whether evidence carries an insight.
    pub checking: Checking,
    /// Whether an insight is refused whose check came to no end, or that could not be compared. If not, it is stored as
    /// [unchecked](super::Support::Unchecked).
    pub refuse_unchecked: bool,
    /// The ratings that a model may give an insight.
    pub ratings: RangeInclusive<u8>,
    /// The kind of what is stored.
    pub kind: Kind,
    /// When it stops being valid, in microseconds since the Unix epoch; `None`: never.
    pub expiry: Option<i64>,
    /// Where memories are ranked.
    pub par: Par,
}

/// Who says whether evidence carries an insight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Checking {
    /// Nobody: every insight is [unchecked](super::Support::Unchecked).
    Nobody,
    /// The caller, one insight after another.
    Caller,
    /// How similar they are. It is not entailment.
    Similarity(Similarity),
}

/// Settings by which nothing could be stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` is {value}; it must be {expected}")]
pub struct SettingsError {
    /// The field.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What it must be.
    pub expected: &'static str,
}

impl Settings {
    /// The paper's numbers, for memories that are chosen as `preset` says, with three attempts, and nobody to check.
    pub fn new(preset: Preset) -> Settings {
        Settings {
            agent: Agent::OWN,
            newest: 100,
            questions: 3,
            preset,
            kinds: None,
            insights: 5,
            least: 1,
            attempts: 3,
            checking: Checking::Nobody,
            refuse_unchecked: false,
            ratings: rating::PAPER,
            kind: Kind::REFLECTION,
            expiry: None,
            par: Par::Serial,
        }
    }

    /// Whether something could be stored at a moment.
    pub(super) fn check(&self, now: i64) -> Result<(), SettingsError> {
        let refused = |name, value: &dyn ToString, expected| SettingsError {
            name,
            value: value.to_string(),
            expected,
        };
        for (name, value) in [
            ("newest", self.newest),
            ("questions", self.questions),
            ("preset.k", self.preset.k),
            ("insights", self.insights),
            ("least", self.least),
            ("attempts", self.attempts),
        ] {
            if value == 0 {
                return Err(refused(name, &value, "1 or more"));
            }
        }
        if self.least > self.insights {
            return Err(refused("least", &self.least, "no more than `insights`"));
        }
        if self.ratings.is_empty() {
            let (from, to) = (self.ratings.start(), self.ratings.end());
            let value = format!("{from} to {to}");
            return Err(refused("ratings", &value, "a range with a rating in it"));
        }
        match self.checking {
            Checking::Similarity(Similarity { threshold }) if threshold.is_nan() => {
                return Err(refused("checking.threshold", &threshold, "a number"));
            }
            Checking::Nobody | Checking::Caller | Checking::Similarity(_) => {}
        }
        if self.refuse_unchecked && self.checking == Checking::Nobody {
            return Err(refused(
                "refuse_unchecked",
                &true,
                "false where nobody checks",
            ));
        }
        match self.expiry {
            Some(expiry) if expiry <= now || expiry == i64::MAX => {
                let expected = "later than now and not the last moment there is, or none";
                Err(refused("expiry", &expiry, expected))
            }
            Some(_) | None => Ok(()),
        }
    }
}
