//! Where the store and scoring meet: memories are ranked, retrieved and touched.
//!
//! [`rank`] reads: it changes nothing. [`retrieve`] is `rank` and then a touch of what it returns, where
//! the preset says so: each one's last access becomes `max(old, now)`. Being a maximum, a touch can be
//! repeated and reordered.

mod budget;
mod candidates;
mod decay;
mod draft;
mod embedder;
mod explain;
pub mod rating;
mod remember;
mod steps;
#[cfg(feature = "tiktoken")]
mod tiktoken;

use crate::Par;
use crate::scoring::{
    Columns, ColumnsError, Preset, Query, RankError, Ranking, ResultOrder, Touch, Workspace,
    rank_into,
};
use crate::store::{Agent, ReadError, Snapshot, Store, TouchError};
use candidates::CandidateSet;
use decay::ByKind;
use thiserror::Error;

pub use budget::CountTokens;
pub use decay::{Decays, DecaysError, KindDecay};
pub use draft::{Draft, Embedding, Importance};
pub use embedder::{HashingEmbedder, NoWord};
pub use explain::{
    BringsIn, Explanation, NoCandidate, Standing, Thresholds, Warning, explain, warnings,
};
pub use remember::{BoxError, Embed, Rate, RememberError, remember};
pub use steps::{AnswerError, BeginError, FillIn, FinishError, Need, OtherModel, Remember, Step};
#[cfg(feature = "tiktoken")]
pub use tiktoken::Tiktoken;

/// What is asked of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Who asks: its last accesses count, and are refreshed. [`Agent::OWN`] where a store belongs to one.
    pub agent: Agent,
    /// The query's embedding, `dim` elements.
    pub embedding: &'a [f32],
    /// The moment of asking, in microseconds since the Unix epoch.
    pub now: i64,
    /// How memories are chosen, scored, ordered and touched.
    pub preset: &'a Preset,
    /// Rows that do not compete, each at most once, in any order.
    pub exclude: &'a [u32],
    /// How each kind of memory fades, in place of the one decay of the preset, whose recency must go by age from
    /// now.
    pub decays: Option<&'a Decays>,
}

/// Why a ranking or retrieval failed. Nothing was touched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The query, the scoring or a stored value cannot be used.
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
    /// No memory ever had this id.
    #[error("there never was a memory {id}; the next one will be {next_id}")]
    NoSuchId {
        /// The id asked for.
        id: u64,
        /// The id of the next memory.
        next_id: u64,
    },
}

/// What a retrieval did beside the ranking.
#[derive(Debug)]
#[must_use = "the touch may have failed"]
pub struct Retrieved {
    /// What was ranked: the rows of the ranking are its rows, their last accesses as they were before the touch.
    pub snapshot: Snapshot,
    /// Whether the touch was recorded. If not, the ranking is right all the same.
    pub touch: Result<(), TouchError>,
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
/// A query or scoring out of range, or a memory that cannot be read or scored, named.
pub fn rank(
    snapshot: &Snapshot,
    ask: &Ask<'_>,
    par: Par,
    workspace: &mut Workspace,
    ranking: &mut Ranking,
) -> Result<(), StreamError> {
    let candidates = CandidateSet::new(snapshot, ask)?;
    let query = Query {
        embedding: ask.embedding,
        now: ask.now,
        k: ask.preset.k,
        candidates: candidates.borrowed(),
        ties: ask.preset.ties,
    };
    let recencies = ByKind::new(snapshot, ask)?.map(|by_kind| by_kind.recencies(ask.agent));
    let columns = match &recencies {
        None => columns(snapshot, ask.agent)?,
        Some(recencies) => decay::columns(snapshot, ask.agent, recencies)?,
    };
    let scoring = decay::scoring(ask);
    rank_into(&columns, &query, &scoring, par, workspace, ranking)?;
    match ask.preset.result_order {
        ResultOrder::Score => {}
        // Stable: what was created together stays as ranked.
        ResultOrder::Created => ranking.hits.sort_by_key(|hit| snapshot.created(hit.row)),
    }
    Ok(())
}

/// Ranks what the store holds now and then, where the preset touches, refreshes the asking agent's last access
/// of every hit.
///
/// # Errors
/// As [`rank`]. A touch that fails is no error of the retrieval: it is beside the ranking, in
/// [`Retrieved::touch`].
pub fn retrieve(
    store: &Store,
    ask: &Ask<'_>,
    par: Par,
    workspace: &mut Workspace,
    ranking: &mut Ranking,
) -> Result<Retrieved, StreamError> {
    let snapshot = store.snapshot();
    rank(&snapshot, ask, par, workspace, ranking)?;
    let touch = match ask.preset.touch {
        Touch::None => Ok(()),
        Touch::Returned => {
            let hits = ranking.hits.iter();
            let ids: Vec<u64> = hits.map(|hit| snapshot.id(hit.row)).collect();
            store.touch(ask.agent, &ids, ask.now)
        }
    };
    Ok(Retrieved { snapshot, touch })
}
