//! Which rows are live. There is a bitmap only once a row was deleted; clones share it until one of
//! them changes.

use std::sync::Arc;

/// Which of a number of rows are live.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    rows: usize,
    deleted: usize,
    /// Bit `row % 64` of word `row / 64` is set where the row is live: one word for every 64 rows
    /// begun, the bits beyond the last row 0. None: all rows are live.
    words: Option<Arc<Vec<u64>>>,
}

impl Live {
    /// That many rows, all live.
    pub(super) fn new(rows: usize) -> Live {
        Live {
            rows,
            deleted: 0,
            words: None,
        }
    }

    /// That many rows, all live but these. Each is below `rows`.
    pub(super) fn without(rows: usize, deleted: impl IntoIterator<Item = usize>) -> Live {
        let mut live = Live::new(rows);
        for row in deleted {
            live.delete(row);
        }
        live
    }

    /// Rows, deleted ones among them.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Live rows.
    pub(super) fn count(&self) -> usize {
        self.rows - self.deleted
    }

    /// Whether the row exists and was not deleted.
    pub(super) fn is_live(&self, row: usize) -> bool {
        row < self.rows
            && match &self.words {
                None => true,
                Some(words) => words[row / 64] >> (row % 64) & 1 == 1,
            }
    }

    /// As a mask of candidates takes it; None: all rows are live.
    pub(super) fn words(&self) -> Option<&[u64]> {
        self.words.as_ref().map(|words| words.as_slice())
    }

    /// Adds live rows until there are `rows`.
    pub(super) fn grow(&mut self, rows: usize) {
        if let Some(words) = &mut self.words {
            let words = Arc::make_mut(words);
            words.resize(rows.div_ceil(64), 0);
            for row in self.rows..rows {
                words[row / 64] |= 1 << (row % 64);
            }
        }
        self.rows = self.rows.max(rows);
    }

    /// Deletes a row, and says whether it was live.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn delete(&mut self, row: usize) -> bool {
        let rows = self.rows;
        assert!(row < rows, "row {row} of {rows}");
        if !self.is_live(row) {
            return false;
        }
        let words = self.words.get_or_insert_with(|| Arc::new(all_set(rows)));
        Arc::make_mut(words)[row / 64] &= !(1 << (row % 64));
        self.deleted += 1;
        true
    }

    /// Makes a deleted row live again.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn revive(&mut self, row: usize) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        if !self.is_live(row)
            && let Some(words) = &mut self.words
        {
            Arc::make_mut(words)[row / 64] |= 1 << (row % 64);
            self.deleted -= 1;
        }
    }

    /// Leaves the first `rows` rows.
    pub(super) fn truncate(&mut self, rows: usize) {
        if rows < self.rows {
            *self = Live::without(rows, self.deleted().take_while(|&row| row < rows));
        }
    }

    /// The deleted rows, ascending.
    pub(super) fn deleted(&self) -> impl Iterator<Item = usize> + '_ {
        let rows = if self.deleted == 0 { 0 } else { self.rows };
        (0..rows).filter(|&row| !self.is_live(row))
    }

    /// What a compaction that keeps the live rows makes of this: some of them may have been deleted
    /// since it chose, and rows have been added.
    pub(super) fn renumbered(&self, kept: &Kept) -> Live {
        let rows = kept.count() + (self.rows - kept.rows());
        Live::without(rows, self.deleted().filter_map(|row| kept.new_row(row)))
    }
}

fn all_set(rows: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX; rows.div_ceil(64)];
    if let (Some(last), used @ 1..) = (words.last_mut(), rows % 64) {
        *last = (1 << used) - 1;
    }
    words
}

/// The rows that a compaction keeps: those that were live when it began. They are numbered anew, in
/// their old order, and rows that were added since come after them.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    live: Live,
    /// Kept rows before each word of `live`.
    before: Vec<usize>,
}

impl Kept {
    pub(super) fn new(live: &Live) -> Kept {
        let words = live.words().unwrap_or(&[]);
        let before = words.iter().scan(0, |sum, word| {
            let before = *sum;
            *sum += word.count_ones() as usize;
            Some(before)
        });
        Kept {
            before: before.collect(),
            live: live.clone(),
        }
    }

    /// The rows it chose from.
    pub(super) fn rows(&self) -> usize {
        self.live.rows()
    }

    /// The rows it keeps.
    pub(super) fn count(&self) -> usize {
        self.live.count()
    }

    /// The old numbers of the kept rows, ascending.
    pub(super) fn old_rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows()).filter(|&row| self.live.is_live(row))
    }

    /// The new number of an old row, if it is kept.
    pub(super) fn new_row(&self, row: usize) -> Option<usize> {
        if row >= self.rows() {
            return Some(self.count() + (row - self.rows()));
        }
        let Some(words) = self.live.words() else {
            return Some(row);
        };
        let word = words[row / 64];
        let below = word & ((1 << (row % 64)) - 1);
        let new = self.before[row / 64] + below.count_ones() as usize;
        (word >> (row % 64) & 1 == 1).then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(live: &Live) -> Vec<usize> {
        live.deleted().collect()
    }

    #[test]
    fn there_is_no_bitmap_before_the_first_delete() {
        let mut live = Live::new(3);
        live.grow(200);
        assert_eq!((live.words(), live.count(), live.rows()), (None, 200, 200));
        assert!(live.is_live(199) && !live.is_live(200));
        assert!(deleted(&live).is_empty());
        assert!(live.delete(7));
        assert!(!live.delete(7));
        assert!(live.words().is_some());
        assert_eq!((live.count(), deleted(&live)), (199, vec![7]));
    }

    #[test]
    fn a_mask_has_a_word_for_every_64_rows_begun_and_no_bit_beyond_them() {
        for first in [1, 2, 63, 64, 65, 127, 128, 129] {
            for rows in first..260 {
                let mut live = Live::without(first, [first - 1]);
                live.grow(rows);
                let words = live.words().unwrap();
                assert_eq!(words.len(), rows.div_ceil(64));
                let set: usize = words.iter().map(|w| w.count_ones() as usize).sum();
                assert_eq!((set, live.count()), (rows - 1, rows - 1));
                assert!((0..rows).all(|row| live.is_live(row) == (row != first - 1)));
                let all: u64 = words.iter().fold(0, |all, word| all | word);
                assert!(rows >= 64 || all >> rows == 0);
            }
        }
    }

    #[test]
    fn what_was_cloned_does_not_change() {
        let mut live = Live::without(100, [5]);
        let before = live.clone();
        live.delete(6);
        live.grow(101);
        assert_eq!((before.rows(), deleted(&before)), (100, vec![5]));
        assert_eq!((live.rows(), deleted(&live)), (101, vec![5, 6]));
    }

    #[test]
    fn a_row_is_live_again_and_one_that_was_cut_off_is_not_there() {
        let mut live = Live::without(150, [0, 63, 64, 149]);
        let before = live.clone();
        live.revive(63);
        live.revive(63);
        live.revive(1);
        assert_eq!((live.count(), deleted(&live)), (147, vec![0, 64, 149]));
        for rows in 0..=151 {
            let mut cut = live.clone();
            cut.truncate(rows);
            let left: Vec<_> = [0, 64, 149].into_iter().filter(|&row| row < rows).collect();
            assert_eq!(cut.rows(), rows.min(150));
            assert_eq!(cut.count(), cut.rows() - left.len());
            assert_eq!(deleted(&cut), left);
            assert!(!cut.is_live(rows));
        }
        assert_eq!(deleted(&before), [0, 63, 64, 149]);
    }

    #[test]
    fn kept_rows_are_numbered_on_and_what_was_deleted_since_stays_deleted() {
        let all = Kept::new(&Live::new(70));
        assert!((0..80).all(|row| all.new_row(row) == Some(row)));
        assert_eq!(all.old_rows().count(), 70);

        let mut live = Live::without(150, [0, 63, 64, 149]);
        let kept = Kept::new(&live);
        assert_eq!((kept.rows(), kept.count()), (150, 146));
        for (new, old) in kept.old_rows().enumerate() {
            assert_eq!(kept.new_row(old), Some(new));
        }
        assert_eq!([0, 63, 64, 149].map(|row| kept.new_row(row)), [None; 4]);
        assert_eq!(
            [150, 152].map(|row| kept.new_row(row)),
            [Some(146), Some(148)]
        );

        assert!(live.renumbered(&kept).words().is_none());
        live.delete(65);
        live.grow(153);
        live.delete(151);
        let live = live.renumbered(&kept);
        assert_eq!((live.rows(), deleted(&live)), (149, vec![62, 147]));
    }
}
