//! Retrieval: a ranking, what is pinned, a budget, and a touch of what is left.

use super::budget::Spending;
use super::candidates::CandidateSet;
use super::{Ask, Budget, StreamError, columns, decay};
use crate::Par;
use crate::scoring::{
    self, Candidates, Columns, Hit, Ranges, Ranking, Touch, Workspace, for_each_hit,
    rank_components, rank_into, relevance_into,
};
use crate::store::{NewTouch, Snapshot, Store, TouchError};
use std::collections::{HashMap, HashSet};

/// What is to be retrieved.
#[derive(Clone, Copy, Debug)]
pub struct Retrieve<'a> {
    /// The question. Its `k` counts the best, not what is pinned beside them.
    pub ask: Ask<'a>,
    /// Ids of memories that are returned whatever they score, whether they compete or not. One that is among the
    /// k best as well is there once.
    pub pinned: &'a [u64],
    /// The tokens that the texts may have together; `None`: any number.
    pub budget: Option<Budget<'a>>,
    /// Bytes of the caller's, 65,536 at most, that the record of the touch keeps: the question, say, so that it can
    /// be [replayed](super::replay) by who was not there.
    pub note: &'a [u8],
}

impl<'a> Retrieve<'a> {
    /// The k best, nothing pinned, without a budget or a note.
    pub fn new(ask: Ask<'a>) -> Retrieve<'a> {
        Retrieve {
            ask,
            pinned: &[],
            budget: None,
            note: b"",
        }
    }
}

/// What a retrieval gives.
#[derive(Debug)]
#[must_use = "the touch may have failed"]
pub struct Retrieved {
    /// What was asked: rows are its rows, and last accesses in it are as they were before the touch.
    pub snapshot: Snapshot,
    /// What is returned, in the preset's result order. By score, pinned memories are first, in the order they were
    /// pinned in; by a time, they are where theirs is.
    pub memories: Vec<Returned>,
    /// Those of the k best that the budget cut, best first.
    pub cut: Vec<Cut>,
    /// Pinned ids whose memories were deleted: they cannot be returned.
    pub missing: Vec<u64>,
    /// The tokens of what is returned; 0 without a budget.
    pub tokens: usize,
    /// By how many tokens the pinned memories alone exceed the budget.
    pub excess: usize,
    /// The ranges of the raw values over all that competed; `None` if none did.
    pub ranges: Option<Ranges>,
    /// How many memories competed.
    pub candidates: usize,
    /// The number of the touch's record, by which the retrieval can be [replayed](super::replay). `None`: there is
    /// none, as nothing was to be touched, or (in a store that keeps no
    /// [history](crate::store::Store::keep_history)) the touch altered nothing.
    pub sequence: Option<u64>,
    /// Whether the touch was recorded. If not, the answer is right all the same.
    pub touch: Result<(), TouchError>,
}

/// A memory that is returned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Returned {
    /// Its row in the snapshot.
    pub row: usize,
    /// Its id.
    pub id: u64,
    /// How it scored. `None`: it is pinned and did not compete.
    pub hit: Option<Hit>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// The tokens of its text; 0 without a budget.
    pub tokens: usize,
}

/// A memory that a budget cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// Its row in the snapshot.
    pub row: usize,
    /// Its id.
    pub id: u64,
    /// The tokens of its text.
    pub tokens: usize,
    /// How it scored.
    pub hit: Hit,
}

/// Retrieves from what the store holds now: ranks, adds what is pinned, cuts what the budget does not allow, and
/// then, where the preset touches, refreshes the asking agent's last access of every memory returned.
///
/// ```
/// use memorank::Par;
/// use memorank::kernel::Dtype;
/// use memorank::scoring::{Preset, Workspace};
/// use memorank::store::{CreateOptions, Kind, NewMemory, Store};
/// use memorank::stream::{Ask, Retrieve, retrieve};
///
/// let dir = tempfile::tempdir()?;
/// let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F16, model: None };
/// let store = Store::create(dir.path().join("isabella"), &options)?;
/// let memory = |text, embedding, importance| NewMemory {
///     key: None,
///     kind: Kind::OBSERVATION,
///     text,
///     embedding: Some(embedding),
///     created: 0,
///     last_access: 0,
///     expiry: None,
///     importance,
///     evidence: &[],
///     depth: 0,
///     supersedes: None,
///     payload: b"",
/// };
/// store.append(&[
///     memory("the desk is idle", &[0.0, 1.0], 1.0),
///     memory("Klaus is writing a paper", &[0.8, 0.6], 4.0),
/// ])?;
///
/// let preset = Preset { k: 1, ..Preset::paper() };
/// let wanted = Retrieve::new(Ask::new(&[1.0, 0.0], 3_600_000_000, &preset));
/// let retrieved = retrieve(&store, &wanted, Par::Serial, &mut Workspace::new())?;
/// retrieved.touch?;
/// for memory in &retrieved.memories {
///     assert_eq!(retrieved.snapshot.text(memory.row)?, "Klaus is writing a paper");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`rank`](super::rank), or an id that is pinned and no memory ever had. A touch that fails is no error of the
/// retrieval: it is beside the memories, in [`Retrieved::touch`].
pub fn retrieve(
    store: &Store,
    wanted: &Retrieve<'_>,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Retrieved, StreamError> {
    let mut retrieved = answer(store.snapshot(), wanted, None, par, workspace)?;
    retrieved.record_touch(store, wanted);
    Ok(retrieved)
}

/// What a retrieval gives, before its touch. `relevance`, where it is known, is that of every row that competes.
pub(super) fn answer(
    snapshot: Snapshot,
    wanted: &Retrieve<'_>,
    relevance: Option<&[f32]>,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Retrieved, StreamError> {
    let ask = &wanted.ask;
    ask.check_embedding(&snapshot)?;
    let pinned = Pinned::new(&snapshot, wanted.pinned)?;
    let set = CandidateSet::new(&snapshot, ask)?;
    let query = ask.query(set.borrowed());
    let computed;
    let relevance = match relevance {
        // One pass more, for what a ranking does not tell: the scores of memories that are not among the best.
        None if !pinned.rows.is_empty() => {
            let (columns, asked) = (columns(&snapshot, ask.agent)?, [ask.embedding]);
            computed = relevance_of(&columns, &asked, query.candidates, par, workspace)
                .map_err(|e| e.error)?;
            Some(&computed[..])
        }
        known => known,
    };
    let recencies = decay::recencies(&snapshot, ask)?;
    let scoring = &decay::scoring(ask);
    let mut ranking = Ranking::default();
    let mut hits = Vec::new();
    match relevance {
        None => {
            let columns = decay::columns(&snapshot, ask.agent, recencies.as_deref())?;
            rank_into(&columns, &query, scoring, par, workspace, &mut ranking)?;
        }
        Some(relevance) => {
            let components =
                decay::components(&snapshot, ask.agent, relevance, recencies.as_deref())?;
            rank_components(&components, &query, scoring, par, workspace, &mut ranking)?;
            if !pinned.rows.is_empty() {
                let pinned: HashSet<usize> = pinned.rows.iter().map(|&row| row as usize).collect();
                for_each_hit(&components, &query, scoring, par, workspace, |hit| {
                    if pinned.contains(&hit.row) {
                        hits.push(*hit);
                    }
                })?;
            }
        }
    }
    drop(set);
    select(snapshot, wanted, ranking, pinned, &hits)
}

/// The relevance of every candidate of some columns for every embedding, embedding after embedding, and NaN
/// where a row is no candidate.
pub(super) fn relevance_of(
    columns: &[Columns<'_>],
    embeddings: &[&[f32]],
    candidates: Candidates<'_>,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Vec<f32>, scoring::BatchError> {
    let rows: usize = columns.iter().map(Columns::len).sum();
    let mut relevance = vec![0.0; rows * embeddings.len()];
    relevance_into(
        columns,
        embeddings,
        candidates,
        par,
        workspace,
        &mut relevance,
    )?;
    Ok(relevance)
}

/// Pinned memories that are there, each once and in order, and the ids of those that were deleted.
struct Pinned {
    rows: Vec<u32>,
    missing: Vec<u64>,
}

impl Pinned {
    fn new(snapshot: &Snapshot, ids: &[u64]) -> Result<Pinned, StreamError> {
        let next = snapshot.next_id();
        let (mut rows, mut missing) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for &id in ids.iter().filter(|&&id| seen.insert(id)) {
            match snapshot.row_of_id(id) {
                Some(row) => rows.push(row as u32),
                None if id < next => missing.push(id),
                None => return Err(StreamError::NoId { id, next }),
            }
        }
        Ok(Pinned { rows, missing })
    }
}

/// What is pinned (`hits` are theirs), and what the budget leaves of the ranking, in the result order.
fn select(
    snapshot: Snapshot,
    wanted: &Retrieve<'_>,
    ranking: Ranking,
    pinned: Pinned,
    hits: &[Hit],
) -> Result<Retrieved, StreamError> {
    let mut spending = Spending::of(wanted.budget);
    let hits: HashMap<usize, Hit> = hits.iter().map(|hit| (hit.row, *hit)).collect();
    let (mut memories, mut cut) = (Vec::new(), Vec::new());
    for row in pinned.rows.iter().map(|&row| row as usize) {
        let tokens = spending.count(|| snapshot.text(row))?;
        spending.spend(tokens);
        memories.push(Returned {
            row,
            id: snapshot.id(row),
            hit: hits.get(&row).copied(),
            pinned: true,
            tokens,
        });
    }
    let excess = spending.excess();
    for hit in ranking.hits {
        let row = hit.row;
        if hits.contains_key(&row) {
            continue;
        }
        let (id, tokens) = (snapshot.id(row), spending.count(|| snapshot.text(row))?);
        if spending.take(tokens) {
            memories.push(Returned {
                row,
                id,
                hit: Some(hit),
                pinned: false,
                tokens,
            });
        } else {
            cut.push(Cut {
                row,
                id,
                tokens,
                hit,
            });
        }
    }
    wanted.ask.sort(&snapshot, &mut memories, |of| of.row);
    Ok(Retrieved {
        memories,
        cut,
        missing: pinned.missing,
        tokens: spending.spent(),
        excess,
        ranges: ranking.ranges,
        candidates: ranking.candidates,
        sequence: None,
        touch: Ok(()),
        snapshot,
    })
}

impl Retrieved {
    /// The memories whose last access was to be refreshed, where `ask` is the question that this answers.
    pub fn to_touch(&self, ask: &Ask<'_>) -> impl Iterator<Item = &Returned> {
        let touched = move |memory: &&Returned| match ask.preset.touch {
            Touch::None => false,
            Touch::Returned => true,
            Touch::IfOlder { age } => {
                let before = self.snapshot.last_access(ask.agent, memory.row);
                before < ask.now && ask.now.abs_diff(before) > age
            }
        };
        self.memories.iter().filter(touched)
    }

    /// The same, as it was before its touch.
    pub(super) fn before_touch(&self) -> Retrieved {
        Retrieved {
            snapshot: self.snapshot.clone(),
            memories: self.memories.clone(),
            cut: self.cut.clone(),
            missing: self.missing.clone(),
            tokens: self.tokens,
            excess: self.excess,
            ranges: self.ranges,
            candidates: self.candidates,
            sequence: None,
            touch: Ok(()),
        }
    }

    /// Touches them in the store, as the snapshot was asked for them.
    pub(super) fn record_touch(&mut self, store: &Store, wanted: &Retrieve<'_>) {
        self.record(|touch| store.touch_with(touch), wanted);
    }

    /// Touches them by `record`, if there are any.
    pub(super) fn record(
        &mut self,
        record: impl FnOnce(&NewTouch<'_>) -> Result<Option<u64>, TouchError>,
        wanted: &Retrieve<'_>,
    ) {
        let ask = &wanted.ask;
        let ids: Vec<u64> = self.to_touch(ask).map(|memory| memory.id).collect();
        if ids.is_empty() {
            return;
        }
        let recorded = record(&NewTouch {
            agent: ask.agent,
            ids: &ids,
            now: ask.now,
            note: wanted.note,
            seen: Some(&self.snapshot),
        });
        match recorded {
            Ok(sequence) => self.sequence = sequence,
            Err(error) => self.touch = Err(error),
        }
    }
}
