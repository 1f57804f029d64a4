//! A retrieval again, on the store as it was.

use super::retrieve::answer;
use super::{Retrieve, Retrieved, StreamError};
use crate::Par;
use crate::scoring::Workspace;
use crate::store::{HistoryError, Snapshot, Store, Touched};
use thiserror::Error;

/// What a replay gives.
#[derive(Debug)]
pub struct Replayed {
    /// What the retrieval gives on the store as it was when the touch's retrieval ranked it. Nothing was touched.
    pub retrieved: Retrieved,
    /// The touch, as it was recorded.
    pub touched: Touched,
    /// Whether it is the touch that this retrieval would make: of the same agent and memories at the same time. If
    /// not, another question was asked then.
    pub is_same: bool,
}

/// Why a retrieval was not replayed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The store cannot go back so far.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The question cannot be answered.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// Retrieves from what the store held when the retrieval was made whose touch has this record: asked the same, it gives
/// the same memories and scores, to the bit ([`Retrieved::sequence`] tells the number, [`Store::touches`] all of them).
/// After a [compaction](Store::compact) the rows have other numbers. Changes nothing, and works on a read-only store.
///
/// The record keeps the agent, the time, the ids and the [note](Retrieve::note), but not the question. Another one can be
/// asked as well: what would have been found then?
///
/// ```
/// use memorank::Par;
/// use memorank::scoring::Workspace;
/// use memorank::store::Store;
/// use memorank::stream::{Retrieve, replay, retrieve};
///
/// # fn example(store: &Store, wanted: &Retrieve<'_>) -> Result<(), Box<dyn std::error::Error>> {
/// let workspace = &mut Workspace::new();
/// let then = retrieve(store, wanted, Par::Serial, workspace)?;
/// if let Some(sequence) = then.sequence {
///     // Whatever happened to the store meanwhile.
///     let again = replay(store, sequence, wanted, Par::Serial, workspace)?;
///     assert!(again.is_same);
///     assert_eq!(again.retrieved.memories, then.memories);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Store::before`] or [`retrieve`](super::retrieve).
pub fn replay(
    store: &Store,
    sequence: u64,
    wanted: &Retrieve<'_>,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Replayed, ReplayError> {
    let mut replayed = replay_from(store.before(sequence)?, wanted, par, workspace)?;
    replayed.retrieved.sequence = Some(sequence);
    Ok(replayed)
}

/// [`replay`] from what [`Store::before`] gave, for who needs it to put the question: to look up a key as it was, or
/// to ask at the recorded moment. [`Retrieved::sequence`] is `None`.
///
/// # Errors
/// As [`retrieve`](super::retrieve).
pub fn replay_from(
    before: (Snapshot, Touched),
    wanted: &Retrieve<'_>,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Replayed, StreamError> {
    let (snapshot, touched) = before;
    let retrieved = answer(snapshot, wanted, None, par, workspace)?;
    let mut ids: Vec<u64> = (retrieved.to_touch(&wanted.ask))
        .map(|memory| memory.id)
        .collect();
    ids.sort_unstable();
    let asked = (wanted.ask.agent, wanted.ask.now, &ids);
    let is_same = asked == (touched.agent, touched.now, &touched.ids);
    Ok(Replayed {
        retrieved,
        touched,
        is_same,
    })
}
