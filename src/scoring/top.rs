//! The k best candidates of a stream of them.
//!
//! Candidates are collected up to twice k and then cut back to the k best by selection: linear in
//! the number seen, for any k, with memory for at most twice the candidates kept. The order is total
//! (score, then a tie key that no two candidates share), so parts can be selected apart and merged.

use super::query::Ties;
use super::score::Raw;
use std::cmp::Ordering;

/// A candidate that may be among the best.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) total: f64,
    /// Orders equal totals, ascending. Unique.
    pub(super) tie: u32,
    pub(super) row: u32,
    pub(super) raw: Raw,
}

impl Entry {
    pub(super) fn new(total: f64, ties: Ties, row: u32, raw: Raw) -> Entry {
        let tie = match ties {
            Ties::Row => row,
            Ties::Listed => raw.position,
        };
        Entry {
            total,
            tie,
            row,
            raw,
        }
    }

    /// Best first. Totals are never NaN or -0.
    pub(super) fn order(&self, other: &Entry) -> Ordering {
        other
            .total
            .total_cmp(&self.total)
            .then(self.tie.cmp(&other.tie))
    }
}

/// The best entries so far. Reusable: [`start`](Top::start) keeps the memory.
#[derive(Debug, Default)]
pub(super) struct Top {
    k: usize,
    entries: Vec<Entry>,
    floor: f64,
}

impl Top {
    pub(super) fn start(&mut self, k: usize) {
        self.k = k;
        self.entries.clear();
        self.floor = if k == 0 {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        };
    }

    pub(super) fn k(&self) -> usize {
        self.k
    }

    /// Totals below this cannot be among the k best.
    pub(super) fn floor(&self) -> f64 {
        self.floor
    }

    /// Takes note that k totals of at least `floor` have been or will be pushed.
    pub(super) fn raise_floor(&mut self, floor: f64) {
        self.floor = self.floor.max(floor);
    }

    pub(super) fn push(&mut self, entry: Entry) {
        if self.k == 0 {
            return;
        }
        self.entries.push(entry);
        // Small k are cut less often than every k-th time.
        if self.entries.len() >= self.k.saturating_mul(2).max(64) {
            self.cut();
        }
    }

    /// Takes over what another part found.
    pub(super) fn append(&mut self, other: &mut Top) {
        self.entries.append(&mut other.entries);
        self.cut();
    }

    /// The k best, best first.
    pub(super) fn finish(&mut self) -> &[Entry] {
        self.cut();
        self.entries.sort_unstable_by(Entry::order);
        &self.entries
    }

    fn cut(&mut self) {
        if self.k > 0 && self.entries.len() > self.k {
            let (_, last, _) = self
                .entries
                .select_nth_unstable_by(self.k - 1, Entry::order);
            self.floor = self.floor.max(last.total);
            self.entries.truncate(self.k);
        }
    }
}
