//! Which rows were corrected, and by what. Clones share it until one of them changes.

use super::live::Kept;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub(super) struct Superseded(Arc<Both>);

/// The same, from both ends.
#[derive(Clone, Debug, Default)]
struct Both {
    /// The id of what corrects each row.
    by: BTreeMap<usize, u64>,
    /// The row that each id corrects.
    rows: BTreeMap<u64, usize>,
}

impl Superseded {
    /// Takes note that the memory with the id `by` corrects a row, unless another does.
    pub(super) fn insert(&mut self, row: usize, by: u64) {
        if self.by(row).is_none() {
            let both = Arc::make_mut(&mut self.0);
            both.by.insert(row, by);
            both.rows.insert(by, row);
        }
    }

    /// The id of what corrects a row.
    pub(super) fn by(&self, row: usize) -> Option<u64> {
        self.0.by.get(&row).copied()
    }

    /// The row that the memory with an id corrects.
    pub(super) fn row_of(&self, by: u64) -> Option<usize> {
        self.0.rows.get(&by).copied()
    }

    /// Rows and what corrects them, ascending by row.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.by.iter().map(|(&row, &by)| (row, by))
    }

    /// With the numbers that rows have after a compaction.
    pub(super) fn renumbered(&self, kept: &Kept) -> Superseded {
        let renumbered = self.iter();
        renumbered
            .filter_map(|(row, by)| Some((kept.new_row(row)?, by)))
            .collect()
    }

    /// What there was before the memory with the id `next_id` was appended.
    pub(super) fn truncate(&mut self, next_id: u64) {
        if self.0.rows.range(next_id..).next().is_some() {
            *self = self.iter().filter(|&(_, by)| by < next_id).collect();
        }
    }
}

impl FromIterator<(usize, u64)> for Superseded {
    fn from_iter<I: IntoIterator<Item = (usize, u64)>>(entries: I) -> Superseded {
        let mut both = Both::default();
        for (row, by) in entries {
            both.by.insert(row, by);
            both.rows.insert(by, row);
        }
        Superseded(Arc::new(both))
    }
}
