//! Sets of rows, as [`Candidates::Mask`](crate::scoring::Candidates::Mask) takes them.

use std::ops::Range;

/// Bit `row % 64` of word `row / 64` is set where the row is in.
pub(super) struct Mask {
    words: Vec<u64>,
}

impl Mask {
    /// No row of so many.
    pub(super) fn none(rows: usize) -> Mask {
        let words = vec![0; rows.div_ceil(64)];
        Mask { words }
    }

    /// All rows of so many.
    pub(super) fn all(rows: usize) -> Mask {
        let mut words = vec![u64::MAX; rows.div_ceil(64)];
        if let (Some(last), used @ 1..) = (words.last_mut(), rows % 64) {
            *last = (1 << used) - 1;
        }
        Mask { words }
    }

    /// The rows of these words.
    pub(super) fn of(words: &[u64]) -> Mask {
        let words = words.to_vec();
        Mask { words }
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn insert(&mut self, row: usize) {
        self.words[row / 64] |= 1 << (row % 64);
    }

    pub(super) fn remove(&mut self, row: usize) {
        self.words[row / 64] &= !(1 << (row % 64));
    }

    /// Takes out what is not in the other.
    pub(super) fn intersect(&mut self, other: &[u64]) {
        let words = self.words.iter_mut().zip(other);
        words.for_each(|(word, other)| *word &= other);
    }

    /// Takes in what is in the other.
    pub(super) fn unite(&mut self, other: &[u64]) {
        let words = self.words.iter_mut().zip(other);
        words.for_each(|(word, other)| *word |= other);
    }

    /// Takes out those of `rows` that are in and that `keep` does not want, until it fails.
    pub(super) fn retain<E>(
        &mut self,
        rows: Range<usize>,
        mut keep: impl FnMut(usize) -> Result<bool, E>,
    ) -> Result<(), E> {
        for index in rows.start / 64..rows.end.div_ceil(64) {
            let first = index * 64;
            let mut left = self.words[index];
            while left != 0 {
                let row = first + left.trailing_zeros() as usize;
                if rows.contains(&row) && !keep(row)? {
                    self.remove(row);
                }
                left &= left - 1;
            }
        }
        Ok(())
    }

    /// The rows that are in, from the last to the first.
    pub(super) fn descending(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self.words.iter().enumerate().rev();
        words.flat_map(|(index, &word)| {
            let bits = (0..64).rev().filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| index * 64 + bit)
        })
    }
}
