//! From a filter and a preset's rule about memories to rows.

use super::mask::Mask;
use super::{Ask, StreamError};
use crate::scoring::{CandidateRule, Candidates};
use crate::store::{Kind, Memory, ReadError, Snapshot};
use std::borrow::Cow;

/// Rows that compete.
pub(super) enum CandidateSet<'s> {
    All,
    Live(&'s [u64]),
    Mask(Mask),
    List(Vec<u32>),
}

impl<'s> CandidateSet<'s> {
    pub(super) fn new(
        snapshot: &'s Snapshot,
        ask: &Ask<'_>,
    ) -> Result<CandidateSet<'s>, StreamError> {
        let mask = ask.filter.passing(snapshot, ask)?;
        match ask.preset.candidates {
            CandidateRule::All => Ok(match (mask, snapshot.live()) {
                (Some(mask), _) => CandidateSet::Mask(mask),
                (None, Some(live)) => CandidateSet::Live(live),
                (None, None) => CandidateSet::All,
            }),
            CandidateRule::Reverie => {
                let rows = snapshot.rows();
                let live = || snapshot.live().map_or_else(|| Mask::all(rows), Mask::of);
                let mask = mask.unwrap_or_else(live);
                Ok(CandidateSet::List(reverie(snapshot, ask, &mask)?))
            }
        }
    }

    pub(super) fn borrowed(&self) -> Candidates<'_> {
        match self {
            CandidateSet::All => Candidates::All,
            CandidateSet::Live(words) => Candidates::Mask(words),
            CandidateSet::Mask(mask) => Candidates::Mask(mask.words()),
            CandidateSet::List(rows) => Candidates::Rows(rows),
        }
    }
}

/// The rows that compete, as the preset's rule lists them. Some may have no vector.
pub(crate) fn candidate_rows(snapshot: &Snapshot, ask: &Ask<'_>) -> Result<Vec<u32>, StreamError> {
    let masked = |words: &[u64]| {
        let mut rows: Vec<u32> = Mask::of(words).descending().map(|row| row as u32).collect();
        rows.reverse();
        rows
    };
    Ok(match CandidateSet::new(snapshot, ask)? {
        CandidateSet::All => (0..snapshot.rows() as u32).collect(),
        CandidateSet::Live(words) => masked(words),
        CandidateSet::Mask(mask) => masked(mask.words()),
        CandidateSet::List(rows) => rows,
    })
}

/// Whether a preset's rule takes the memory in a row.
pub(super) fn follows(
    rule: CandidateRule,
    snapshot: &Snapshot,
    row: usize,
) -> Result<bool, ReadError> {
    match rule {
        CandidateRule::All => Ok(true),
        CandidateRule::Reverie => Ok(reverie_list(&snapshot.memory(row)?).is_some()),
    }
}

/// Observations and reflections that are not idle, in the order of the authors' list: they join
/// their two lists, each with the memory stored last first, and sort by last access (a stable sort).
/// Every memory of the mask is read, so that a damaged one is told and not passed over.
fn reverie(snapshot: &Snapshot, ask: &Ask<'_>, mask: &Mask) -> Result<Vec<u32>, ReadError> {
    let mut lists = [Vec::new(), Vec::new()];
    for row in mask.descending() {
        if let Some(list) = reverie_list(&snapshot.memory(row)?) {
            lists[list].push(row as u32);
        }
    }
    let mut rows = lists.concat();
    rows.sort_by_key(|&row| snapshot.last_access(ask.agent, row as usize));
    Ok(rows)
}

/// Which of the authors' two lists a memory is in, if it is in one.
fn reverie_list(memory: &Memory<'_>) -> Option<usize> {
    let list = [Kind::OBSERVATION, Kind::REFLECTION]
        .iter()
        .position(|kind| kind == memory.kind)?;
    (!embedding_key(memory).contains("idle")).then_some(list)
}

/// What was embedded: the payload's `embedding_key`, which imported archives have, or else the text.
fn embedding_key<'m>(memory: &Memory<'m>) -> Cow<'m, str> {
    #[derive(serde::Deserialize)]
    struct Payload<'p> {
        #[serde(borrow)]
        embedding_key: Cow<'p, str>,
    }
    serde_json::from_slice::<Payload<'m>>(memory.payload)
        .map_or(Cow::Borrowed(memory.text), |payload| payload.embedding_key)
}
