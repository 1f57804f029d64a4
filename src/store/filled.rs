//! Vectors that came after their rows were in the columns, whose bytes stay as they were published: they are read
//! from memory, until a compaction writes the columns anew.
//!
//! Rows next to one another are one run, as far as may be: a scan takes a run as it takes a chunk of the tail.
//! Clones share all of it until one of them is given another vector.

use super::journal::Vector;
use super::vectors::Vectors;
use crate::kernel::{Dtype, Rows};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a run at most: what a scan takes at once.
const RUN_ROWS: usize = 16_384;

/// Rows of a run that a snapshot shares: a longer one is not copied in order to grow.
const SHARED_ROWS: usize = 1024;

#[derive(Clone)]
pub(super) struct Filled {
    dim: NonZeroUsize,
    dtype: Dtype,
    shared: Arc<Runs>,
}

#[derive(Clone, Default)]
struct Runs {
    /// Each with its first row; ascending, and none begins before the one before it ends.
    runs: Vec<(usize, Arc<Vectors>)>,
    /// Rows whose vectors no file holds yet, in the order they came.
    unwritten: Vec<usize>,
}

impl Filled {
    /// None.
    pub(super) fn new(dim: NonZeroUsize, dtype: Dtype) -> Filled {
        Filled {
            dim,
            dtype,
            shared: Arc::default(),
        }
    }

    /// Takes the vector of a row that has none. `is_written`: a file holds it.
    pub(super) fn insert(&mut self, row: usize, vector: Vector<'_>, is_written: bool) {
        debug_assert!(self.get(row).is_none(), "row {row} has a vector");
        let Runs { runs, unwritten } = Arc::make_mut(&mut self.shared);
        if !is_written {
            unwritten.push(row);
        }
        let after = runs.partition_point(|&(first, _)| first <= row);
        if let Some((first, run)) = runs[..after].last_mut()
            && *first + run.len() == row
            && run.len() < RUN_ROWS
            && (run.len() < SHARED_ROWS || Arc::get_mut(run).is_some())
        {
            return Arc::make_mut(run).push(vector);
        }
        let mut run = Vectors::new(self.dtype);
        run.push(vector);
        runs.insert(after, (row, Arc::new(run)));
    }

    /// The vector that a row was given.
    pub(super) fn get(&self, row: usize) -> Option<Vector<'_>> {
        let (run, at) = self.place(row)?;
        Some(self.shared.runs[run].1.get(self.dim, at))
    }

    /// Makes a row one without a vector, wherever it has one. `zeros` are the elements of none.
    pub(super) fn clear(&mut self, row: usize, zeros: &[u8]) {
        let none = Vector {
            inv_norm: 0.0,
            elements: zeros,
        };
        match self.place(row) {
            Some((run, at)) => {
                let (_, run) = &mut Arc::make_mut(&mut self.shared).runs[run];
                Arc::make_mut(run).set(at, none);
            }
            None => self.insert(row, none, true),
        }
    }

    /// The run that a row is in, and where in it.
    fn place(&self, row: usize) -> Option<(usize, usize)> {
        let after = self.shared.runs.partition_point(|&(first, _)| first <= row);
        let (first, run) = &self.shared.runs[after.checked_sub(1)?];
        let at = row - first;
        (at < run.len()).then_some((after - 1, at))
    }

    /// The longest piece of `rows` from its start on that lies in one run, with its elements and inverse norms, or
    /// in none: where it ends, and those.
    pub(super) fn piece(&self, rows: Range<usize>) -> (usize, Option<(Rows<'_>, &[f32])>) {
        let runs = &self.shared.runs;
        let after = runs.partition_point(|&(first, _)| first <= rows.start);
        if let Some((first, run)) = runs[..after].last()
            && rows.start < first + run.len()
        {
            let end = rows.end.min(first + run.len());
            let at = rows.start - first..end - first;
            let vectors = (run.rows(self.dim, at.clone()), &run.inv_norms[at]);
            return (end, Some(vectors));
        }
        let end = runs.get(after).map_or(rows.end, |&(first, _)| first);
        (end.min(rows.end), None)
    }

    /// Rows whose vectors no file holds yet, and those.
    pub(super) fn unwritten(&self) -> impl Iterator<Item = (usize, Vector<'_>)> {
        let rows = self.shared.unwritten.iter();
        rows.filter_map(|&row| Some((row, self.get(row)?)))
    }

    /// A file holds all of them.
    pub(super) fn written(&mut self) {
        if !self.shared.unwritten.is_empty() {
            Arc::make_mut(&mut self.shared).unwritten.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIM: NonZeroUsize = NonZeroUsize::new(2).unwrap();

    fn insert(filled: &mut Filled, row: usize) {
        let elements = [row as f32, 1.0];
        let vector = Vector {
            inv_norm: row as f32 + 0.5,
            elements: bytemuck::cast_slice(&elements),
        };
        filled.insert(row, vector, false);
    }

    /// Where pieces of so many rows end, and whether they are runs.
    fn pieces(filled: &Filled, rows: usize) -> Vec<(usize, bool)> {
        let (mut at, mut pieces) = (0, Vec::new());
        while at < rows {
            let (end, run) = filled.piece(at..rows);
            assert!(at < end && end <= rows);
            if let Some((elements, inv_norms)) = run {
                assert_eq!(elements.count(DIM), Some(end - at));
                for (i, row) in (at..end).enumerate() {
                    assert_eq!(elements.widen(DIM, i), [row as f32, 1.0]);
                    assert_eq!(inv_norms[i], row as f32 + 0.5);
                }
            }
            pieces.push((end, run.is_some()));
            at = end;
        }
        pieces
    }

    #[test]
    fn rows_next_to_one_another_are_one_run_in_whatever_order_they_come() {
        let mut filled = Filled::new(DIM, Dtype::F32);
        assert_eq!(pieces(&filled, 9), [(9, false)]);
        for row in [4, 5, 8, 6, 1] {
            insert(&mut filled, row);
        }
        let expected = [(1, false), (2, true), (4, false), (7, true), (8, false)];
        assert_eq!(pieces(&filled, 8), expected);
        assert_eq!(pieces(&filled, 10)[5..], [(9, true), (10, false)]);
        assert_eq!(filled.piece(5..6).0, 6);
        for row in 0..10 {
            let norm = filled.get(row).map(|vector| vector.inv_norm);
            let is_filled = [1, 4, 5, 6, 8].contains(&row);
            assert_eq!(norm, is_filled.then_some(row as f32 + 0.5));
        }
        let rows: Vec<_> = filled.unwritten().map(|(row, _)| row).collect();
        assert_eq!(rows, [4, 5, 8, 6, 1]);
        filled.written();
        assert_eq!(filled.unwritten().count(), 0);
        assert_eq!(pieces(&filled, 8), expected);
    }

    #[test]
    fn a_row_is_without_a_vector_again_wherever_it_had_one() {
        let mut filled = Filled::new(DIM, Dtype::F32);
        (4..8).for_each(|row| insert(&mut filled, row));
        let before = filled.clone();
        for row in [5, 9] {
            filled.clear(row, &[0; 8]);
            let none = filled.get(row).unwrap();
            assert_eq!((none.inv_norm, none.elements), (0.0, &[0; 8][..]));
        }
        let ends = [(4, false), (8, true), (9, false)];
        assert_eq!(pieces(&before, 9), [(4, false), (8, true), (9, false)]);
        let mut at = 0;
        for (end, is_run) in ends.into_iter().chain([(10, true)]) {
            let (found, run) = filled.piece(at..10);
            assert_eq!((found, run.is_some()), (end, is_run));
            at = end;
        }
    }

    #[test]
    fn what_was_cloned_does_not_change_and_long_runs_are_not_copied() {
        let mut filled = Filled::new(DIM, Dtype::F32);
        (0..SHARED_ROWS).for_each(|row| insert(&mut filled, row));
        let before = filled.clone();
        insert(&mut filled, SHARED_ROWS);
        let rows = SHARED_ROWS + 1;
        assert_eq!(pieces(&before, rows), [(SHARED_ROWS, true), (rows, false)]);
        assert_eq!(pieces(&filled, rows), [(SHARED_ROWS, true), (rows, true)]);
        drop(before);
        (rows..2 * RUN_ROWS).for_each(|row| insert(&mut filled, row));
        assert_eq!(
            pieces(&filled, 2 * RUN_ROWS),
            [
                (SHARED_ROWS, true),
                (SHARED_ROWS + RUN_ROWS, true),
                (2 * RUN_ROWS, true)
            ]
        );
    }
}
