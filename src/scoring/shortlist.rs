//! Candidates that may be among the best, as columns: their exact totals are computed side by side.
//!
//! Columns are worked on in whole groups of 16: the last candidate is repeated up to the next multiple.

use super::score::Raw;
use super::slots::BLOCK;

/// Up to [`BLOCK`] candidates.
#[derive(Debug)]
pub(super) struct Shortlist {
    len: usize,
    rows: [u32; BLOCK],
    relevance: [f32; BLOCK],
    stamps: [i64; BLOCK],
    importance: [f32; BLOCK],
    positions: [u32; BLOCK],
    recency: [f64; BLOCK],
    raw_recency: [f64; BLOCK],
    totals: [f64; BLOCK],
    /// Scratch of a selection.
    selected: [f64; BLOCK],
}

/// Candidates that are worked on together.
const GROUP: usize = 16;

/// The columns of a shortlist, of one length.
pub(super) struct Listed<'a> {
    pub(super) relevance: &'a [f32],
    pub(super) stamps: &'a [i64],
    pub(super) importance: &'a [f32],
    pub(super) positions: &'a [u32],
    /// Normalised recency, to be filled.
    pub(super) recency: &'a mut [f64],
    /// Raw recency, to be filled.
    pub(super) raw_recency: &'a mut [f64],
    /// To be filled.
    pub(super) totals: &'a mut [f64],
}

impl Default for Shortlist {
    fn default() -> Shortlist {
        Shortlist {
            len: 0,
            rows: [0; BLOCK],
            relevance: [0.0; BLOCK],
            stamps: [0; BLOCK],
            importance: [0.0; BLOCK],
            positions: [0; BLOCK],
            recency: [0.0; BLOCK],
            raw_recency: [0.0; BLOCK],
            totals: [0.0; BLOCK],
            selected: [0.0; BLOCK],
        }
    }
}

impl Shortlist {
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// # Panics
    /// If there are [`BLOCK`] already.
    #[inline(always)]
    pub(super) fn push(&mut self, row: u32, raw: &Raw) {
        let i = self.len;
        assert!(i < BLOCK, "a block is the most that is listed");
        self.rows[i] = row;
        self.relevance[i] = raw.relevance;
        self.stamps[i] = raw.stamp;
        self.importance[i] = raw.importance;
        self.positions[i] = raw.position;
        self.len += 1;
    }

    /// The columns, filled up.
    pub(super) fn listed(&mut self) -> Listed<'_> {
        let len = self.len.next_multiple_of(GROUP);
        if let Some(last) = self.len.checked_sub(1) {
            let rest = last..len;
            let raw = self.raw(last);
            self.relevance[rest.clone()].fill(raw.relevance);
            self.stamps[rest.clone()].fill(raw.stamp);
            self.importance[rest.clone()].fill(raw.importance);
            self.positions[rest].fill(raw.position);
        }
        Listed {
            relevance: &self.relevance[..len],
            stamps: &self.stamps[..len],
            importance: &self.importance[..len],
            positions: &self.positions[..len],
            recency: &mut self.recency[..len],
            raw_recency: &mut self.raw_recency[..len],
            totals: &mut self.totals[..len],
        }
    }

    pub(super) fn totals(&self) -> &[f64] {
        &self.totals[..self.len]
    }

    /// The k-th largest total, or minus infinity if there are fewer.
    pub(super) fn kth_total(&mut self, k: usize) -> f64 {
        let Some(index) = k.checked_sub(1).filter(|&index| index < self.len) else {
            return f64::NEG_INFINITY;
        };
        let selected = &mut self.selected[..self.len];
        selected.copy_from_slice(&self.totals[..self.len]);
        *selected
            .select_nth_unstable_by(index, |a, b| b.total_cmp(a))
            .1
    }

    pub(super) fn row(&self, i: usize) -> u32 {
        self.rows[i]
    }

    /// Recency, raw and normalised.
    pub(super) fn recency(&self, i: usize) -> [f64; 2] {
        [self.raw_recency[i], self.recency[i]]
    }

    pub(super) fn raw(&self, i: usize) -> Raw {
        Raw {
            relevance: self.relevance[i],
            stamp: self.stamps[i],
            importance: self.importance[i],
            position: self.positions[i],
        }
    }
}
