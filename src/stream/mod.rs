//! Where the store and scoring meet: memories are ranked, retrieved and touched.
//!
//! [`rank`] reads: it changes nothing. [`retrieve`] is `rank` and then a touch of what it returns, where
//! the preset says so: each one's last access becomes `max(old, now)`. Being a maximum, a touch can be
//! repeated and reordered.

mod candidates;

use crate::Par;
use crate::scoring::{
    Columns, ColumnsError, Preset, Query, RankError, Ranking, ResultOrder, Touch, Workspace,
    rank_into,
};
use crate::store::{ReadError, Store, TouchError};
use candidates::CandidateSet;
use thiserror::Error;

/// What is asked of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The query's embedding, `dim` elements.
    pub embedding: &'a [f32],
    /// The moment of asking, in microseconds since the Unix epoch.
    pub now: i64,
    /// How memories are chosen, scored, ordered and touched.
    pub preset: &'a Preset,
    /// Rows that do not compete, each at most once, in any order.
    pub exclude: &'a [u32],
}

/// Why a ranking or retrieval failed.
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
    /// The ranking was made, the touch was not.
    #[error(transparent)]
    Touch(#[from] TouchError),
}

/// The columns of a store, for [`scoring`](crate::scoring).
///
/// # Errors
/// None for a store that opened: its columns were found to fit.
pub fn columns(store: &Store) -> Result<Columns<'_>, ColumnsError> {
    Columns::new(
        store.dim(),
        store.embeddings(),
        store.inv_norms(),
        store.last_access(),
        store.importance(),
    )
}

/// Ranks a store's memories into `ranking`, in the preset's result order. Changes no state.
///
/// # Errors
/// A query or scoring out of range, or a memory that cannot be read or scored, named.
pub fn rank(
    store: &Store,
    ask: &Ask<'_>,
    par: Par,
    workspace: &mut Workspace,
    ranking: &mut Ranking,
) -> Result<(), StreamError> {
    let candidates = CandidateSet::new(store, ask.preset.candidates, ask.exclude)?;
    let query = Query {
        embedding: ask.embedding,
        now: ask.now,
        k: ask.preset.k,
        candidates: candidates.borrowed(),
        ties: ask.preset.ties,
    };
    rank_into(
        &[columns(store)?],
        &query,
        &ask.preset.scoring,
        par,
        workspace,
        ranking,
    )?;
    match ask.preset.result_order {
        ResultOrder::Score => {}
        // Stable: what was created together stays as ranked.
        ResultOrder::Created => ranking.hits.sort_by_key(|hit| store.created()[hit.row]),
    }
    Ok(())
}

/// Ranks and then, where the preset touches, refreshes the last access of every hit. The touch is in
/// memory; [`Store::sync`] or [`Store::close`] makes it lasting.
///
/// # Errors
/// As [`rank`]; and [`StreamError::Touch`] if the store is read-only: `ranking` then holds the result.
pub fn retrieve(
    store: &mut Store,
    ask: &Ask<'_>,
    par: Par,
    workspace: &mut Workspace,
    ranking: &mut Ranking,
) -> Result<(), StreamError> {
    rank(store, ask, par, workspace, ranking)?;
    match ask.preset.touch {
        Touch::None => {}
        Touch::Returned => {
            let rows: Vec<u32> = ranking.hits.iter().map(|hit| hit.row as u32).collect();
            store.touch(&rows, ask.now)?;
        }
    }
    Ok(())
}
