//! From a preset's rule about memories to rows.

use super::{Ask, StreamError};
use crate::scoring::{CandidateRule, Candidates, RankError};
use crate::store::{Kind, Memory, Snapshot};
use std::borrow::Cow;
use std::collections::HashSet;

/// Rows that compete.
pub(super) enum CandidateSet<'s> {
    All,
    Mask(Cow<'s, [u64]>),
    List(Vec<u32>),
}

impl<'s> CandidateSet<'s> {
    pub(super) fn new(
        snapshot: &'s Snapshot,
        ask: &Ask<'_>,
    ) -> Result<CandidateSet<'s>, StreamError> {
        let (rows, exclude) = (snapshot.rows(), ask.exclude);
        if let Some(&row) = exclude.iter().find(|&&row| row as usize >= rows) {
            let row = row as usize;
            return Err(RankError::NoSuchRow { row, rows }.into());
        }
        match ask.preset.candidates {
            CandidateRule::All => Ok(match (snapshot.live(), exclude) {
                (None, []) => CandidateSet::All,
                (Some(live), []) => CandidateSet::Mask(Cow::Borrowed(live)),
                (live, exclude) => {
                    let mut mask = live.map_or_else(|| all(rows), <[u64]>::to_vec);
                    for &row in exclude {
                        mask[row as usize / 64] &= !(1 << (row % 64));
                    }
                    CandidateSet::Mask(Cow::Owned(mask))
                }
            }),
            CandidateRule::Reverie => {
                let mut list = reverie(snapshot, ask)?;
                let exclude: HashSet<u32> = exclude.iter().copied().collect();
                list.retain(|row| !exclude.contains(row));
                Ok(CandidateSet::List(list))
            }
        }
    }

    pub(super) fn borrowed(&self) -> Candidates<'_> {
        match self {
            CandidateSet::All => Candidates::All,
            CandidateSet::Mask(words) => Candidates::Mask(words),
            CandidateSet::List(rows) => Candidates::Rows(rows),
        }
    }
}

/// The mask of all rows.
fn all(rows: usize) -> Vec<u64> {
    let mut mask = vec![u64::MAX; rows.div_ceil(64)];
    if let (Some(last), used @ 1..) = (mask.last_mut(), rows % 64) {
        *last = (1 << used) - 1;
    }
    mask
}

/// Observations and reflections that are not idle, in the order of the authors' list: they join
/// their two lists, each with the memory stored last first, and sort by last access (a stable sort).
/// Every memory is read, so that a damaged one is told and not passed over.
fn reverie(snapshot: &Snapshot, ask: &Ask<'_>) -> Result<Vec<u32>, StreamError> {
    let mut rows = Vec::new();
    for kind in [Kind::OBSERVATION, Kind::REFLECTION] {
        for row in (0..snapshot.rows())
            .rev()
            .filter(|&row| snapshot.is_live(row))
        {
            let memory = snapshot.memory(row)?;
            if *memory.kind == kind && !embedding_key(&memory).contains("idle") {
                rows.push(row as u32);
            }
        }
    }
    rows.sort_by_key(|&row| snapshot.last_access(ask.agent, row as usize));
    Ok(rows)
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
