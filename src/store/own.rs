//! What an agent has of its own of each memory, its last access say: the values given at append, and over them
//! those that were changed for it.
//!
//! Rows lie in pages. A page in which nothing was changed is not there: its values are the ones given at
//! append, the *base*, which lives elsewhere and never changes. A changed page is the agent's own copy, shared
//! between clones until one of them changes it. It ends at the last row there was when it was made or
//! changed past its end; rows after that are unchanged. So an append has nothing to do here.

use super::live::Kept;
use bytemuck::Pod;
use std::ops::Range;
use std::sync::Arc;

/// Whose retrievals are meant. Agents that share a store share its memories and touch them apart: each
/// has last accesses of its own, and may have importances of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Agent(pub u32);

impl Agent {
    /// The store's own: the one agent of a store that belongs to one.
    pub const OWN: Agent = Agent(0);
}

/// Rows of a page: as many as the kernel takes in one run, so that pages do not cut its runs.
pub(super) const PAGE_ROWS: usize = 16_384;

/// One agent's values where they differ from the base. Values are the same if their bytes are: a NaN that damage
/// made of a value of the base is no difference.
#[derive(Clone, Debug)]
pub(super) struct Own<T> {
    page_rows: usize,
    /// Shared like the pages, so that the clone of a store's state is cheap however many agents it has.
    pages: Arc<Vec<Option<Arc<Vec<T>>>>>,
}

impl<T: Pod> Own<T> {
    /// Nothing changed.
    pub(super) fn new(page_rows: usize) -> Own<T> {
        Own {
            page_rows,
            pages: Arc::default(),
        }
    }

    /// Gives a row this value, and says whether it had another. `rows` is how many there are, `row` one of them.
    pub(super) fn set(
        &mut self,
        row: usize,
        value: T,
        rows: usize,
        base: impl Fn(usize) -> T,
    ) -> bool {
        assert!(row < rows, "row {row} of {rows}");
        // What changes nothing copies nothing.
        if !differ(value, self.own(row).unwrap_or_else(|| base(row))) {
            return false;
        }
        let page = row / self.page_rows;
        let start = page * self.page_rows;
        let pages = Arc::make_mut(&mut self.pages);
        if pages.len() <= page {
            pages.resize(page + 1, None);
        }
        let own = Arc::make_mut(pages[page].get_or_insert_default());
        if own.len() <= row - start {
            let end = rows.min(start + self.page_rows);
            own.extend((start + own.len()..end).map(base));
        }
        own[row - start] = value;
        true
    }

    /// Leaves the first `rows` rows.
    pub(super) fn truncate(&mut self, rows: usize) {
        if self.pages.len() * self.page_rows <= rows {
            return;
        }
        let pages = Arc::make_mut(&mut self.pages);
        pages.truncate(rows.div_ceil(self.page_rows));
        if let (Some(Some(last)), used @ 1..) = (pages.last_mut(), rows % self.page_rows) {
            Arc::make_mut(last).truncate(used);
        }
    }

    /// The value of a row in a changed page.
    pub(super) fn own(&self, row: usize) -> Option<T> {
        let page = self.pages.get(row / self.page_rows)?.as_ref()?;
        page.get(row % self.page_rows).copied()
    }

    /// The longest piece of `rows` from its start on that lies in one changed page, with its values, or
    /// in none: where it ends, and the values.
    pub(super) fn piece(&self, rows: Range<usize>) -> (usize, Option<&[T]>) {
        let page_of = |row: usize| self.pages.get(row / self.page_rows)?.as_ref();
        let first = rows.start % self.page_rows;
        if let Some(own) = page_of(rows.start)
            && first < own.len()
        {
            let own = &own[first..];
            let own = &own[..own.len().min(rows.len())];
            return (rows.start + own.len(), Some(own));
        }
        let mut end = rows.start - first + self.page_rows;
        while end < rows.end && page_of(end).is_none() {
            end += self.page_rows;
        }
        (end.min(rows.end), None)
    }

    /// Rows whose value is not the base's, ascending, and the value.
    pub(super) fn differences<'a>(
        &'a self,
        base: impl Fn(usize) -> T + 'a,
    ) -> impl Iterator<Item = (usize, T)> + 'a {
        let starts = (0..).step_by(self.page_rows);
        let own = starts
            .zip(self.pages.iter())
            .filter_map(|(start, page)| Some((start, page.as_ref()?)));
        let all = own.flat_map(|(start, page)| (start..).zip(page.iter().copied()));
        all.filter(move |&(row, value)| differ(value, base(row)))
    }

    /// These differences over the base of `rows` rows.
    pub(super) fn load(
        page_rows: usize,
        differences: impl IntoIterator<Item = (usize, T)>,
        rows: usize,
        base: impl Fn(usize) -> T,
    ) -> Own<T> {
        let mut own = Own::new(page_rows);
        for (row, value) in differences {
            own.set(row, value, rows, &base);
        }
        own
    }

    /// What a compaction makes of this: the same values, of the rows that stay. `base` is the one
    /// before it, `new_base` the one after, of `rows` rows.
    pub(super) fn renumbered(
        &self,
        kept: &Kept,
        base: impl Fn(usize) -> T,
        rows: usize,
        new_base: impl Fn(usize) -> T,
    ) -> Own<T> {
        let differences = self.differences(base);
        let renumbered = differences.filter_map(|(row, value)| Some((kept.new_row(row)?, value)));
        Own::load(self.page_rows, renumbered, rows, new_base)
    }
}

impl Own<i64> {
    /// Makes the time of a row the later of `now` and what it was, and says whether that changed it.
    pub(super) fn touch(
        &mut self,
        row: usize,
        now: i64,
        rows: usize,
        base: impl Fn(usize) -> i64,
    ) -> bool {
        assert!(row < rows, "row {row} of {rows}");
        now > self.own(row).unwrap_or_else(|| base(row)) && self.set(row, now, rows, base)
    }
}

fn differ<T: Pod>(one: T, other: T) -> bool {
    bytemuck::bytes_of(&one) != bytemuck::bytes_of(&other)
}

#[cfg(test)]
mod tests {
    use super::super::live::Live;
    use super::*;

    const PAGE: usize = 4;

    /// Ten times as many microseconds as its number.
    fn base(row: usize) -> i64 {
        row as i64 * 10
    }

    fn pieces(access: &Own<i64>, rows: usize) -> Vec<(usize, Option<Vec<i64>>)> {
        let (mut at, mut pieces) = (0, Vec::new());
        while at < rows {
            let (end, own) = access.piece(at..rows);
            assert!(at < end && end <= rows && own.is_none_or(|own| own.len() == end - at));
            pieces.push((end, own.map(<[i64]>::to_vec)));
            at = end;
        }
        pieces
    }

    #[test]
    fn a_touch_is_a_maximum_and_copies_its_page_only() {
        let mut access = Own::new(PAGE);
        assert!(!access.touch(5, 50, 14, base));
        assert!(access.pages.is_empty());
        assert!(access.touch(5, 51, 14, base));
        assert!(!access.touch(5, 51, 14, base));
        assert!(!access.touch(5, i64::MIN, 14, base));
        assert!(access.touch(13, i64::MAX, 14, base));
        assert_eq!(
            [4, 5, 8].map(|row| access.own(row)),
            [Some(40), Some(51), None]
        );
        let found: Vec<_> = access.differences(base).collect();
        assert_eq!(found, [(5, 51), (13, i64::MAX)]);
        assert_eq!(
            pieces(&access, 14),
            [
                (4, None),
                (8, Some(vec![40, 51, 60, 70])),
                (12, None),
                (14, Some(vec![120, i64::MAX])),
            ]
        );
    }

    #[test]
    fn neighbouring_untouched_pages_are_one_piece() {
        let mut access = Own::new(PAGE);
        assert_eq!(pieces(&access, 30), [(30, None)]);
        access.touch(17, 1_000, 30, base);
        let ends: Vec<_> = pieces(&access, 30).into_iter().map(|p| p.0).collect();
        assert_eq!(ends, [16, 20, 30]);
        assert_eq!(access.piece(18..19), (19, Some(&[180][..])));
        assert_eq!(access.piece(3..7), (7, None));
    }

    #[test]
    fn rows_added_to_a_touched_page_are_untouched_until_they_are_touched() {
        let mut access = Own::new(PAGE);
        access.touch(1, 11, 2, base);
        assert_eq!(pieces(&access, 2), [(2, Some(vec![0, 11]))]);
        assert_eq!(pieces(&access, 7), [(2, Some(vec![0, 11])), (7, None)]);
        assert_eq!(access.own(2), None);
        let before = access.clone();
        access.touch(2, 21, 7, base);
        assert_eq!(
            pieces(&access, 7),
            [(4, Some(vec![0, 11, 21, 30])), (7, None)]
        );
        assert_eq!(pieces(&before, 2), [(2, Some(vec![0, 11]))]);
    }

    #[test]
    fn what_is_cut_off_is_unchanged_when_it_comes_again() {
        for rows in 0..=14 {
            let mut access = Own::new(PAGE);
            for row in [1, 5, 13] {
                access.touch(row, 1_000, 14, base);
            }
            let before = access.clone();
            access.truncate(rows);
            let left: Vec<_> = access.differences(base).map(|(row, _)| row).collect();
            let touched = [1, 5, 13].into_iter().filter(|&row| row < rows);
            assert_eq!(left, touched.collect::<Vec<_>>());
            let pieces = pieces(&access, 14);
            assert_eq!(pieces.last().unwrap().0, 14);
            assert_eq!(before.differences(base).count(), 3);
        }
    }

    #[test]
    fn clones_share_the_pages_that_neither_touched() {
        let mut access = Own::new(PAGE);
        access.touch(0, 5, 8, base);
        access.touch(4, 45, 8, base);
        let before = access.clone();
        access.touch(4, 46, 8, base);
        access.touch(0, 4, 8, base);
        assert_eq!((before.own(4), access.own(4)), (Some(45), Some(46)));
        let same = |page: usize| {
            let pages = [&before, &access].map(|a| a.pages[page].as_ref().unwrap());
            Arc::ptr_eq(pages[0], pages[1])
        };
        assert_eq!((same(0), same(1)), (true, false));
    }

    #[test]
    fn differences_are_loaded_and_renumbered() {
        let mut access = Own::new(PAGE);
        for (row, time) in [(0, 1), (3, 100), (9, 91), (11, 111)] {
            access.touch(row, time, 12, base);
        }
        let differences: Vec<_> = access.differences(base).collect();
        let loaded = Own::load(PAGE, differences.iter().copied(), 12, base);
        assert_eq!(pieces(&loaded, 12), pieces(&access, 12));

        let live = Live::without(12, [1, 2, 4, 5, 6, 7, 9]);
        let kept = Kept::new(&live);
        let old: Vec<usize> = kept.old_rows().collect();
        let renumbered = access.renumbered(&kept, base, 5, |row| base(old[row]));
        let found: Vec<_> = renumbered.differences(|row| base(old[row])).collect();
        assert_eq!(found, [(0, 1), (1, 100), (4, 111)]);
        assert_eq!(
            pieces(&renumbered, 5),
            [(4, Some(vec![1, 100, 80, 100])), (5, Some(vec![111]))]
        );
    }

    #[test]
    fn a_value_of_the_base_is_no_difference_whatever_its_bits() {
        let base = |row: usize| if row == 2 { f32::NAN } else { row as f32 };
        let mut own = Own::new(PAGE);
        assert!(!own.set(2, f32::NAN, 6, base));
        assert!(own.set(3, -1.5, 6, base));
        let found: Vec<_> = own.differences(base).collect();
        assert_eq!(found, [(3, -1.5)]);
        assert!(own.set(3, 3.0, 6, base));
        assert!(!own.set(3, 3.0, 6, base));
        assert_eq!(own.differences(base).count(), 0);
    }
}
