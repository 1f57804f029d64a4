//! From a preset's rule about memories to rows.

use super::StreamError;
use crate::scoring::{CandidateRule, Candidates, RankError};
use crate::store::{Kind, Memory, Store};
use std::borrow::Cow;
use std::collections::HashSet;

/// Rows that compete, owned.
pub(super) enum CandidateSet {
    All,
    Mask(Vec<u64>),
    List(Vec<u32>),
}

impl CandidateSet {
    pub(super) fn new(
        store: &Store,
        rule: CandidateRule,
        exclude: &[u32],
    ) -> Result<CandidateSet, StreamError> {
        let rows = store.len();
        if let Some(&row) = exclude.iter().find(|&&row| row as usize >= rows) {
            return Err(RankError::NoSuchRow {
                row: row as usize,
                rows,
            }
            .into());
        }
        match rule {
            CandidateRule::All if exclude.is_empty() => Ok(CandidateSet::All),
            CandidateRule::All => {
                let mut mask = vec![u64::MAX; rows.div_ceil(64)];
                if let (Some(last), used @ 1..) = (mask.last_mut(), rows % 64) {
                    *last = (1 << used) - 1;
                }
                for &row in exclude {
                    mask[row as usize / 64] &= !(1 << (row % 64));
                }
                Ok(CandidateSet::Mask(mask))
            }
            CandidateRule::Reverie => {
                let mut list = reverie(store)?;
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

/// Observations and reflections that are not idle, in the order of the authors' list: they join
/// their two lists, each with the memory stored last first, and sort by last access (a stable sort).
/// Every row is read, so that a damaged one is told and not passed over.
fn reverie(store: &Store) -> Result<Vec<u32>, StreamError> {
    let mut rows = Vec::new();
    for kind in [Kind::OBSERVATION, Kind::REFLECTION] {
        for row in (0..store.len()).rev() {
            let memory = store.memory(row)?;
            if *memory.kind == kind && !embedding_key(&memory).contains("idle") {
                rows.push(row as u32);
            }
        }
    }
    rows.sort_by_key(|&row| store.last_access()[row as usize]);
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
