//! Many retrievals in one call: of one store, with one read of its embeddings, or of many stores.

use super::filter::Filter;
use super::mask::Mask;
use super::retrieve::{answer, relevance_of};
use super::{Ask, Retrieve, Retrieved, StreamError, columns};
use crate::Par;
use crate::scoring::{Candidates, Workspace};
use crate::store::{Agent, NewTouch, Snapshot, Store, TouchError};
use thiserror::Error;

/// What the questions of one call see of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each sees the touches of those before it, as if they were asked one after another: so the authors of the paper
    /// do with the focal points of a reflection. (On a read-only store nothing is touched, and so nothing seen.)
    Sequential,
    /// All see the store as it was before the first.
    Snapshot,
}

/// Why a call with many questions failed, and which of them is to blame. Nothing was touched.
#[derive(Debug, Error)]
#[error("number {index} of the batch: {error}")]
pub struct BatchError {
    /// Its index.
    pub index: usize,
    /// What is wrong with it.
    #[source]
    pub error: StreamError,
}

/// Asks one store several questions, of one agent or of several, with one read of the embeddings: the answers have
/// the same bits as those of [`retrieve`](super::retrieve) one after another ([`Order::Sequential`]), or on the
/// store as it was ([`Order::Snapshot`]). What other threads do to the store meanwhile is not seen. When all are
/// answered, all are touched, in their order. ([`Order::Sequential`] stops at a touch that fails.)
///
/// It takes 4 bytes for each question and row together, and reads what any of the questions may need.
///
/// ```
/// # use memorank::Par;
/// # use memorank::scoring::{Preset, Workspace};
/// # use memorank::store::Store;
/// use memorank::stream::{Ask, Order, Retrieve, retrieve_many};
///
/// # fn reflect(store: &Store, focal_points: &[Vec<f32>], now: i64) -> Result<(), Box<dyn std::error::Error>> {
/// let preset = Preset::paper();
/// let asks: Vec<_> = focal_points
///     .iter()
///     .map(|embedding| Retrieve::new(Ask::new(embedding, now, &preset)))
///     .collect();
/// let order = Order::Sequential;
/// for retrieved in retrieve_many(store, &asks, order, Par::Serial, &mut Workspace::new())? {
///     retrieved.touch?;
///     for memory in retrieved.memories {
///         println!("{}", retrieved.snapshot.text(memory.row)?);
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`retrieve`](super::retrieve), with the index of the question; none is answered then.
pub fn retrieve_many(
    store: &Store,
    asks: &[Retrieve<'_>],
    order: Order,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Vec<Retrieved>, BatchError> {
    let order = match order {
        Order::Sequential if store.is_read_only() => Order::Snapshot,
        order => order,
    };
    let mut all = answer_all(store.snapshot(), asks, order, par, workspace)?;
    match order {
        Order::Sequential => touch_in_turn(store, asks, &mut all),
        Order::Snapshot => {
            for (retrieved, wanted) in all.iter_mut().zip(asks) {
                retrieved.record_touch(store, wanted);
            }
        }
    }
    Ok(all)
}

/// What [`retrieve_many`] gives, before its touches: they are done in the snapshots alone.
pub(super) fn answer_all(
    mut snapshot: Snapshot,
    asks: &[Retrieve<'_>],
    order: Order,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Vec<Retrieved>, BatchError> {
    let rows = snapshot.rows();
    let relevance = relevance(&snapshot, asks, par, workspace)?;
    let mut all: Vec<Retrieved> = Vec::with_capacity(asks.len());
    for (index, wanted) in asks.iter().enumerate() {
        let known = &relevance[index * rows..][..rows];
        let retrieved = answer(snapshot.clone(), wanted, Some(known), par, workspace)
            .map_err(|error| BatchError { index, error })?;
        match order {
            Order::Sequential => {
                let Ask { agent, now, .. } = wanted.ask;
                let touched = retrieved.to_touch(&wanted.ask).map(|memory| memory.row);
                snapshot = snapshot.with_touch(agent, touched, now);
            }
            Order::Snapshot => {}
        }
        all.push(retrieved);
    }
    Ok(all)
}

/// Touches what was retrieved by questions each of which saw the touches of those before it, and has the record of each
/// say so. After a touch that fails none is made: what was asked with it done would not be what the store holds.
pub(super) fn touch_in_turn(store: &Store, asks: &[Retrieve<'_>], all: &mut [Retrieved]) {
    let mut before = None;
    let mut failed = false;
    for (retrieved, wanted) in all.iter_mut().zip(asks) {
        retrieved.snapshot = retrieved.snapshot.clone().after_touch(before);
        // Whatever it alters by now: who comes after it saw it done.
        let record = |touch: &NewTouch<'_>| match failed {
            true => Err(TouchError::AfterFailed),
            false => store.record_touch(touch, true),
        };
        retrieved.record(record, wanted);
        failed |= retrieved.touch.is_err();
        before = retrieved.sequence.or(before);
    }
}

/// The relevance for every question of every row that may be a candidate of one of them: those that pass the
/// cheap parts of a filter that no touch alters.
fn relevance(
    snapshot: &Snapshot,
    asks: &[Retrieve<'_>],
    par: Par,
    workspace: &mut Workspace,
) -> Result<Vec<f32>, BatchError> {
    let mut union = Mask::none(snapshot.rows());
    let mut all = false;
    for (index, Retrieve { ask, .. }) in asks.iter().enumerate() {
        let error = |error| BatchError { index, error };
        ask.check_embedding(snapshot).map_err(error)?;
        let filter = Filter {
            text: None,
            last_access: Filter::PAST.last_access,
            ..*ask.filter
        };
        match filter.passing(snapshot, ask).map_err(error)? {
            Some(mask) => union.unite(mask.words()),
            None => all = true,
        }
    }
    let candidates = match (all, snapshot.live()) {
        (false, _) => Candidates::Mask(union.words()),
        (true, Some(live)) => Candidates::Mask(live),
        (true, None) => Candidates::All,
    };
    // Relevance is the same for every agent.
    let columns = columns(snapshot, Agent::OWN).map_err(|error| BatchError {
        index: 0,
        error: error.into(),
    })?;
    let embeddings: Vec<&[f32]> = asks.iter().map(|wanted| wanted.ask.embedding).collect();
    relevance_of(&columns, &embeddings, candidates, par, workspace).map_err(|error| BatchError {
        index: error.index,
        error: error.error.into(),
    })
}

/// Asks each of many stores a question: a tick of many agents, each with memories of its own. The stores are
/// spread over threads, each question runs on one. A store may be named several times, by several agents or by one:
/// each question sees it as it was before the call. When all are answered, all are touched, in their order.
///
/// Agents that share one large store are faster with [`retrieve_many`], which reads it once.
///
/// ```
/// # use memorank::Par;
/// # use memorank::scoring::{Preset, Workspace};
/// # use memorank::store::Store;
/// use memorank::stream::{Ask, Retrieve, retrieve_each};
///
/// # struct Character { memories: Store, perceived: Vec<f32> }
/// # fn tick(town: &[Character], now: i64) -> Result<(), Box<dyn std::error::Error>> {
/// let preset = Preset::paper();
/// let asks: Vec<_> = town
///     .iter()
///     .map(|who| (&who.memories, Retrieve::new(Ask::new(&who.perceived, now, &preset))))
///     .collect();
/// # let par = Par::Serial;
/// let recalled = retrieve_each(&asks, par, &mut Workspace::new())?;
/// for (who, recalled) in town.iter().zip(&recalled) {
///     println!("{:?}: {} memories", who.memories.path(), recalled.memories.len());
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`retrieve`](super::retrieve), with the index of the first question that fails; none is answered then.
pub fn retrieve_each(
    asks: &[(&Store, Retrieve<'_>)],
    par: Par,
    workspace: &mut Workspace,
) -> Result<Vec<Retrieved>, BatchError> {
    // Taken before any is answered.
    let mut answers: Vec<_> = (asks.iter())
        .map(|(store, _)| (store.snapshot(), None))
        .collect();
    let size = asks.len().div_ceil(par.parts()).max(1);
    let children = workspace.children(asks.len().div_ceil(size));
    par.for_each_chunk(children, &mut answers, size, |part, workspace, answers| {
        for (i, (snapshot, out)) in answers.iter_mut().enumerate() {
            let (_, wanted) = &asks[part * size + i];
            *out = Some(answer(
                snapshot.clone(),
                wanted,
                None,
                Par::Serial,
                workspace,
            ));
        }
    });
    let mut all = Vec::with_capacity(asks.len());
    for (index, (_, answer)) in answers.into_iter().enumerate() {
        let answer = answer.expect("every chunk was visited");
        all.push(answer.map_err(|error| BatchError { index, error })?);
    }
    for (retrieved, (store, wanted)) in all.iter_mut().zip(asks) {
        retrieved.record_touch(store, wanted);
    }
    Ok(all)
}
