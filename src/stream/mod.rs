//! Where the store and scoring meet: memories are ranked, retrieved and touched.
//!
//! - [`rank`] reads: it changes nothing.
//! - [`retrieve`] is what agents call: it ranks, adds what is pinned, cuts what a token budget does not allow, and
//!   then touches what is left, where the preset says so: each one's last access becomes `max(old, now)`. Being a
//!   maximum, a touch can be repeated and reordered.
//! - [`retrieve_many`] asks one store several questions with one read of its embeddings, [`retrieve_each`] many
//!   stores one each. Both give the same bits as one call after another.
//! - [`replay`] asks again what was asked before, of the store as it was.
//!
//! Which memories compete is a [`Filter`]. Deleted ones, and those without a vector, never do.
//!
//! [`reflection`] has what agents conclude from their memories, and [`evidence`] what was concluded from what.
//!
//! # History
//!
//! The touches of a store are its access log: every retrieval that touches something adds a record to it, with a
//! number, [`Retrieved::sequence`]. As long as the store [keeps](crate::store::Store::keep_history) the journal back to that
//! record, [`replay`] gives the same question the same answer, bit for bit, whatever was appended, touched, deleted,
//! embedded or rated since, by whichever thread or process: the record says which state was ranked, also where others
//! changed the store before the touch was made, or where the question saw the touches of others in
//! [`retrieve_many`]. What is needed and gone is a [`ReplayError`] that says what: never another answer.

mod budget;
mod candidates;
mod decay;
mod draft;
mod embedder;
pub mod evidence;
mod explain;
mod filter;
mod many;
mod mask;
mod model;
pub mod rating;
pub mod reflection;
mod remember;
mod replay;
mod retrieve;
mod steps;
#[cfg(feature = "tiktoken")]
mod tiktoken;

use crate::Par;
use crate::kernel::QueryError;
use crate::scoring::{
    Candidates, Columns, ColumnsError, Preset, Query, RankError, Ranking, ResultOrder, Workspace,
    rank_into,
};
use crate::store::{Agent, ReadError, Snapshot};
use candidates::CandidateSet;
use thiserror::Error;

pub(crate) use candidates::candidate_rows;

pub use budget::{Budget, BytesPerFour, CountTokens, Overflow};
pub use decay::{Decays, DecaysError, KindDecay};
pub use draft::{Draft, Embedding, Importance};
pub use embedder::{HashingEmbedder, NoWord};
pub use explain::{
    BringsIn, Explanation, NoCandidate, Standing, Thresholds, Warning, explain, warnings,
};
pub use filter::{Barrier, Contains, Filter, Period};
pub use many::{BatchError, Order, retrieve_each, retrieve_many};
pub use model::OtherModel;
pub use remember::{BoxError, Embed, Rate, RememberError, remember};
pub use replay::{ReplayError, Replayed, replay, replay_from};
pub use retrieve::{Cut, Retrieve, Retrieved, Returned, retrieve};
pub use steps::{AnswerError, BeginError, FillIn, FinishError, Need, Remember, Step};
#[cfg(feature = "tiktoken")]
pub use tiktoken::Tiktoken;

/// What is asked of a stream.
///
/// [`Ask::new`] is the plain question; the rest is added by name:
///
/// ```
/// use memorank::scoring::Preset;
/// use memorank::store::Agent;
/// use memorank::stream::{Ask, Filter};
///
/// # let (embedding, now) = ([1.0, 0.0], 0);
/// let preset = Preset::paper();
/// let filter = Filter { unexpired: true, ..Filter::default() };
/// let ask = Ask { agent: Agent(7), filter: &filter, ..Ask::new(&embedding, now, &preset) };
/// # let _ = ask;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Who asks: its last accesses count, and are refreshed. [`Agent::OWN`] where a store belongs to one.
    pub agent: Agent,
    /// The query's embedding, `dim` elements.
    pub embedding: &'a [f32],
    /// The name of the model that made it. If the store has the name of another, the answer is
    /// [`StreamError::Model`]: vectors of two models do not compare. `None`, or a store without a name: not checked.
    pub model: Option<&'a str>,
    /// The moment of asking, in microseconds since the Unix epoch.
    pub now: i64,
    /// How memories are chosen, scored, ordered and touched.
    pub preset: &'a Preset,
    /// Which memories compete.
    pub filter: &'a Filter<'a>,
    /// How each kind of memory fades, in place of the one decay of the preset, whose recency must go by age from
    /// now.
    pub decays: Option<&'a Decays>,
}

impl<'a> Ask<'a> {
    /// The store's own agent asks of every memory created by `now`, in microseconds since the Unix epoch. The
    /// embedding's model is not checked.
    pub fn new(embedding: &'a [f32], now: i64, preset: &'a Preset) -> Ask<'a> {
        Ask {
            agent: Agent::OWN,
            embedding,
            model: None,
            now,
            preset,
            filter: &Filter::PAST,
            decays: None,
        }
    }

    /// Refuses the vectors of another model, and of another dimension, even where there is nothing to compare them
    /// with.
    pub(crate) fn check_embedding(&self, snapshot: &Snapshot) -> Result<(), StreamError> {
        OtherModel::check(snapshot.model(), self.model)?;
        let (found, expected) = (self.embedding.len(), snapshot.dim().get());
        match found == expected {
            true => Ok(()),
            false => Err(RankError::from(QueryError::Dimension { found, expected }).into()),
        }
    }

    fn query<'q>(&self, candidates: Candidates<'q>) -> Query<'q>
    where
        'a: 'q,
    {
        Query {
            embedding: self.embedding,
            now: self.now,
            k: self.preset.k,
            candidates,
            ties: self.preset.ties,
        }
    }

    /// Sorts what has rows, and is ranked, into the preset's result order.
    fn sort<T>(&self, snapshot: &Snapshot, ranked: &mut [T], row: impl Fn(&T) -> usize) {
        // Stable: equal times stay as ranked.
        match self.preset.result_order {
            ResultOrder::Score => {}
            ResultOrder::Created => ranked.sort_by_key(|of| snapshot.created(row(of))),
            ResultOrder::LastAccess => {
                ranked.sort_by_key(|of| snapshot.last_access(self.agent, row(of)));
            }
        }
    }
}

/// Why a ranking or retrieval failed. Nothing was touched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The query's embedding is by another model than the store's.
    #[error(transparent)]
    Model(#[from] OtherModel),
    /// No memory ever had the id of one that is pinned.
    #[error("there is no memory {id} to pin, the next will be {next}")]
    NoId {
        /// The id.
        id: u64,
        /// The id of the next memory.
        next: u64,
    },
    /// The query, the filter's mask, the scoring or a stored value cannot be used.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// The store's columns do not fit together.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    /// A memory could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The decays by kind cannot be used.
    #[error(transparent)]
    Decays(#[from] DecaysError),
}

/// A snapshot's rows as one agent sees them, for [`scoring`](crate::scoring).
///
/// # Errors
/// None for a store that opened: its columns were found to fit.
pub fn columns(snapshot: &Snapshot, agent: Agent) -> Result<Vec<Columns<'_>>, ColumnsError> {
    let segments = snapshot.segments(agent);
    let columns = segments.map(|segment| {
        Columns::new(
            snapshot.dim(),
            segment.embeddings,
            segment.inv_norms,
            segment.last_access,
            segment.importance,
        )
    });
    columns.collect()
}

/// Ranks the memories of a snapshot into `ranking`, in the preset's result order. Changes no state.
///
/// # Errors
/// A query, filter or scoring out of range, another model, or a memory that cannot be read or scored, named. The
/// ranking is then empty.
pub fn rank(
    snapshot: &Snapshot,
    ask: &Ask<'_>,
    par: Par,
    workspace: &mut Workspace,
    ranking: &mut Ranking,
) -> Result<(), StreamError> {
    ranking.clear();
    ask.check_embedding(snapshot)?;
    let candidates = CandidateSet::new(snapshot, ask)?;
    let query = ask.query(candidates.borrowed());
    let recencies = decay::recencies(snapshot, ask)?;
    let columns = decay::columns(snapshot, ask.agent, recencies.as_deref())?;
    let scoring = decay::scoring(ask);
    rank_into(&columns, &query, &scoring, par, workspace, ranking)?;
    ask.sort(snapshot, &mut ranking.hits, |hit| hit.row);
    Ok(())
}
