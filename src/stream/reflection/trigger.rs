//! When to reflect.

use crate::store::{Agent, Kind, ReadError, Snapshot};
use crate::stream::filter::KindTable;
use std::slice;
use thiserror::Error;

/// When to reflect: as soon as the observations since the last reflection matter enough, taken together.
///
/// All of it is in the store: there is no counter that a restart would lose, and that a reflection which failed
/// would have reset. Only one that was stored starts the sum anew, and to delete it takes that back.
///
/// The default is the paper's: observations whose importances add up to 150 or more.
///
/// ```
/// # use memorank::kernel::Dtype;
/// # use memorank::store::{CreateOptions, NewMemory, Store};
/// use memorank::store::{Agent, Kind};
/// use memorank::stream::reflection::Trigger;
///
/// # let dir = tempfile::tempdir()?;
/// # let (dim, dtype, model) = (2.try_into()?, Dtype::F32, None);
/// # let store = Store::create(dir.path().join("klaus"), &CreateOptions { dim, dtype, model })?;
/// let trigger = Trigger {
///     threshold: 20.0,
///     kinds: vec![Kind::OBSERVATION, Kind::CHAT],
///     ..Trigger::default()
/// };
/// assert!(!trigger.is_due(&store.snapshot(), Agent::OWN)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// The sum of importances from which on it is time.
    pub threshold: f64,
    /// The kinds that count. One that the store does not have is passed over.
    pub kinds: Vec<Kind>,
    /// The kind of what a reflection stores.
    pub reflections: Kind,
}

impl Default for Trigger {
    fn default() -> Trigger {
        Trigger {
            threshold: 150.0,
            kinds: vec![Kind::OBSERVATION],
            reflections: Kind::REFLECTION,
        }
    }
}

/// Why a sum of importances could not be taken.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TriggerError {
    /// A stored importance is infinite or NaN.
    #[error("memory {id} has importance {value}; `verify` lists all damage")]
    Importance {
        /// The memory.
        id: u64,
        /// The value found.
        value: f32,
    },
    /// A memory could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Trigger {
    /// The sum of the importances, as an agent has them, of the memories of [`kinds`](Trigger::kinds) with ids above
    /// the last reflection's. Deleted memories are no part of it, those without a vector are. No text is read, and
    /// no more rows than came since.
    ///
    /// # Errors
    /// A memory of these whose kind or importance is damaged.
    pub fn importance_since(&self, snapshot: &Snapshot, agent: Agent) -> Result<f64, TriggerError> {
        let counted = KindTable::new(snapshot, &self.kinds);
        let reflections = KindTable::new(snapshot, slice::from_ref(&self.reflections));
        let mut rows = Vec::new();
        for row in (0..snapshot.rows())
            .rev()
            .filter(|&row| snapshot.is_live(row))
        {
            if reflections.has(snapshot, row)? {
                break;
            }
            if counted.has(snapshot, row)? {
                rows.push(row);
            }
        }
        let mut sum = 0.0;
        for &row in rows.iter().rev() {
            let value = snapshot.importance_of(agent, row);
            if !value.is_finite() {
                let id = snapshot.id(row);
                return Err(TriggerError::Importance { id, value });
            }
            sum += f64::from(value);
        }
        Ok(sum)
    }

    /// Whether that sum reaches the threshold.
    ///
    /// # Errors
    /// As [`importance_since`](Trigger::importance_since).
    pub fn is_due(&self, snapshot: &Snapshot, agent: Agent) -> Result<bool, TriggerError> {
        Ok(self.importance_since(snapshot, agent)? >= self.threshold)
    }
}
