//! Decay by kind: some kinds of memory fade faster than others, and none below its floor.
//!
//! The raw recency of a memory is `max(floor, decay ^ age)` with the numbers of its kind; age is counted as
//! [`Recency::Age`] counts it, in the same units and with the same bits. It is then scored as
//! [`Recency::Given`]: min-max is the plain one, since what is divided out for one decay cannot be for
//! several.

use super::Ask;
use crate::scoring::{
    Columns, ColumnsError, Components, Decay, Recency, Scoring, ScoringError, Since, age,
};
use crate::store::{Agent, Kind, Snapshot};
use std::num::NonZeroU64;
use thiserror::Error;

/// How each kind of memory fades.
///
/// ```
/// use memorank::store::Kind;
/// use memorank::stream::{Decays, KindDecay};
///
/// // Conversations fade within days, plans never below a half; all else as in the paper.
/// let decays = Decays {
///     default: KindDecay { decay: 0.995, floor: 0.0 },
///     kinds: vec![
///         (Kind::CHAT, KindDecay { decay: 0.95, floor: 0.0 }),
///         (Kind::PLAN, KindDecay { decay: 0.99, floor: 0.5 }),
///     ],
/// };
/// decays.check()?;
/// # Ok::<(), memorank::stream::DecaysError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Decays {
    /// Of every kind that is not listed.
    pub default: KindDecay,
    /// Of these kinds, each at most once. A kind that the store does not have is passed over.
    pub kinds: Vec<(Kind, KindDecay)>,
}

/// How one kind of memory fades.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KindDecay {
    /// What remains after one unit of decay, an hour in the presets: in [0, 1].
    pub decay: f64,
    /// The least recency: in [0, 1], 0 for none.
    pub floor: f64,
}

/// Why decays by kind were refused.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum DecaysError {
    /// A decay lies outside [0, 1].
    #[error("{of}: {error}")]
    Decay {
        /// The kind, or "the default".
        of: String,
        /// What is wrong with it.
        error: ScoringError,
    },
    /// A floor lies outside [0, 1].
    #[error("{of}: the floor is {floor}; it must lie in [0, 1]")]
    Floor {
        /// The kind, or "the default".
        of: String,
        /// The floor.
        floor: f64,
    },
    /// A kind is listed twice.
    #[error("the kind {kind} has two decays; give it one")]
    Twice {
        /// The kind.
        kind: Kind,
    },
    /// The preset's recency does not go by age from the query's `now`.
    #[error("decays by kind need a preset whose recency goes by age, measured from now")]
    NotByAge,
}

impl Decays {
    /// Checks every number.
    ///
    /// # Errors
    /// The first that is out of its range; a kind that is listed twice.
    pub fn check(&self) -> Result<(), DecaysError> {
        self.default.ready("the default", NonZeroU64::MIN)?;
        for (i, (kind, decay)) in self.kinds.iter().enumerate() {
            decay.ready(kind.as_str(), NonZeroU64::MIN)?;
            if self.kinds[..i].iter().any(|(other, _)| other == kind) {
                return Err(DecaysError::Twice { kind: kind.clone() });
            }
        }
        Ok(())
    }
}

impl KindDecay {
    fn ready(self, of: &str, ticks_per_unit: NonZeroU64) -> Result<Ready, DecaysError> {
        let of = || of.to_owned();
        let decay = Decay::new(self.decay, ticks_per_unit)
            .map_err(|error| DecaysError::Decay { of: of(), error })?;
        let floor = self.floor;
        if !(0.0..=1.0).contains(&floor) {
            return Err(DecaysError::Floor { of: of(), floor });
        }
        Ok(Ready { decay, floor })
    }
}

/// A checked [`KindDecay`] for a clock.
#[derive(Clone, Copy)]
struct Ready {
    decay: Decay,
    floor: f64,
}

/// The decays of an [`Ask`], for the rows of one snapshot.
pub(super) struct ByKind<'a> {
    snapshot: &'a Snapshot,
    now: i64,
    default: Ready,
    /// By kind index.
    kinds: Vec<Ready>,
}

impl<'a> ByKind<'a> {
    /// `None` if decays were not asked for.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        ask: &Ask<'_>,
    ) -> Result<Option<ByKind<'a>>, DecaysError> {
        let Some(decays) = ask.decays else {
            return Ok(None);
        };
        let Recency::Age {
            ticks_per_unit,
            since: Since::Now,
            ..
        } = ask.preset.scoring.recency
        else {
            return Err(DecaysError::NotByAge);
        };
        decays.check()?;
        let default = decays.default.ready("the default", ticks_per_unit)?;
        let of_kind = |kind: &Kind| {
            let listed = decays.kinds.iter().find(|(other, _)| other == kind);
            listed.map_or(Ok(default), |(kind, decay)| {
                decay.ready(kind.as_str(), ticks_per_unit)
            })
        };
        Ok(Some(ByKind {
            snapshot,
            now: ask.now,
            default,
            kinds: snapshot
                .kinds()
                .iter()
                .map(of_kind)
                .collect::<Result<_, _>>()?,
        }))
    }

    /// The raw recency of a row with this last access.
    pub(super) fn recency(&self, row: usize, last_access: i64) -> f64 {
        // In a damaged store a kind may not exist.
        let kind = usize::from(self.snapshot.kind_index(row));
        let Ready { decay, floor } = *self.kinds.get(kind).unwrap_or(&self.default);
        // + 0.0, because a floor of -0 is 0.
        decay.raw(age(self.now, last_access)).max(floor) + 0.0
    }

    /// The raw recencies of all rows for an agent.
    pub(super) fn recencies(&self, agent: Agent) -> Vec<f64> {
        let mut recencies = Vec::with_capacity(self.snapshot.rows());
        for segment in self.snapshot.segments(agent) {
            let rows = segment.rows().zip(segment.last_access);
            recencies.extend(rows.map(|(row, &access)| self.recency(row, access)));
        }
        recencies
    }
}

/// The preset's scoring, which takes the recencies of [`ByKind`] if decays were asked for.
pub(super) fn scoring(ask: &Ask<'_>) -> Scoring {
    let scoring = ask.preset.scoring;
    match ask.decays {
        None => scoring,
        Some(_) => Scoring {
            recency: Recency::Given,
            ..scoring
        },
    }
}

/// The raw recencies of all rows for the agent that asks, if decays by kind were asked for.
pub(super) fn recencies(
    snapshot: &Snapshot,
    ask: &Ask<'_>,
) -> Result<Option<Vec<f64>>, DecaysError> {
    let by_kind = ByKind::new(snapshot, ask)?;
    Ok(by_kind.map(|by_kind| by_kind.recencies(ask.agent)))
}

/// A snapshot's rows as one agent sees them, with recencies in place of last accesses if there are any.
pub(super) fn columns<'s>(
    snapshot: &'s Snapshot,
    agent: Agent,
    recencies: Option<&'s [f64]>,
) -> Result<Vec<Columns<'s>>, ColumnsError> {
    let Some(recencies) = recencies else {
        return super::columns(snapshot, agent);
    };
    let columns = snapshot.segments(agent).map(|segment| {
        Columns::with_recency(
            snapshot.dim(),
            segment.embeddings,
            segment.inv_norms,
            &recencies[segment.rows()],
            segment.importance,
        )
    });
    columns.collect()
}

/// [`columns`] where the relevance of each row is known.
pub(super) fn components<'s>(
    snapshot: &'s Snapshot,
    agent: Agent,
    relevance: &'s [f32],
    recencies: Option<&'s [f64]>,
) -> Result<Vec<Components<'s>>, ColumnsError> {
    let components = snapshot.segments(agent).map(|segment| {
        let (relevance, importance) = (&relevance[segment.rows()], segment.importance);
        match recencies {
            None => Components::new(relevance, segment.last_access, importance),
            Some(recencies) => {
                Components::with_recency(relevance, &recencies[segment.rows()], importance)
            }
        }
    });
    components.collect()
}
