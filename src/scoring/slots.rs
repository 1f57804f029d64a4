//! The candidates of a query, in order, as runs of rows of one segment.
//!
//! A slot is a place in scratch: one per row for [`Candidates::All`] and [`Candidates::Mask`], one per
//! listed row for [`Candidates::Rows`]. Parts are whole blocks of slots; a part is walked in runs that
//! end at multiples of the longest run, at segment ends and at the end of the part. What is computed
//! does not depend on where parts and runs end. The kernel reads a run in several streams, and short
//! ones start over too often: against a plain read, a ranking of 500,000 x 384 f16 reached 0.73 with runs
//! of 1,024 rows, 0.75 with 4,096, 0.78 with 16,384 and no more with 32,768.

use super::query::{Candidates, RankError};
use super::{Columns, Components};
use crate::kernel::Picks;
use std::ops::Range;

/// Slots per block, the least that a part is made of.
pub(super) const BLOCK: usize = 512;

/// Slots of the longest run.
const RUN: usize = 32 * BLOCK;

/// Slots of the longest run under a mask, whose set rows are listed on the stack.
const MASKED_RUN: usize = 16 * BLOCK;

/// Slots of the longest run of a list: what is asked for beside its rows shall stay in the second-level cache,
/// past the rows themselves. 10,000 inverse norms took 0.04 ms with it and 0.25 with runs of 1,024 x 768 f16.
const LISTED_RUN: usize = BLOCK / 4;

/// Candidates that lie in one segment.
pub(super) struct Run<'a> {
    /// Index of the segment.
    pub(super) segment: usize,
    /// The number of the segment's first row.
    pub(super) base: usize,
    /// Rows of the segment; a list has their numbers through all segments.
    pub(super) picks: Picks<'a>,
    /// The slot of the first candidate; the others follow it without gaps.
    pub(super) slot: usize,
}

impl Run<'_> {
    pub(super) fn len(&self) -> usize {
        self.picks.len()
    }

    /// Some of the candidates, by their index in the run.
    pub(super) fn part(&self, part: Range<usize>) -> Run<'_> {
        let picks = match &self.picks {
            Picks::Range(rows) => Picks::Range(rows.start + part.start..rows.start + part.end),
            Picks::List { rows, base } => Picks::List {
                rows: &rows[part.clone()],
                base: *base,
            },
        };
        Run {
            picks,
            slot: self.slot + part.start,
            ..*self
        }
    }

    /// The row, within the segment, of candidate `i`.
    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> usize {
        match &self.picks {
            Picks::Range(rows) => rows.start + i,
            Picks::List { rows, base } => (rows[i] - base) as usize,
        }
    }

    /// The rows within the segment, in order.
    #[inline(always)]
    pub(super) fn for_each_row(&self, mut f: impl FnMut(usize, usize)) {
        match &self.picks {
            Picks::Range(range) => range.clone().enumerate().for_each(|(i, row)| f(i, row)),
            Picks::List { rows, base } => {
                rows.iter()
                    .enumerate()
                    .for_each(|(i, row)| f(i, (row - base) as usize));
            }
        }
    }
}

/// Something that has rows.
pub(super) trait Segment: Sync {
    fn rows(&self) -> usize;
}

impl Segment for Columns<'_> {
    fn rows(&self) -> usize {
        self.len()
    }
}

impl Segment for Components<'_> {
    fn rows(&self) -> usize {
        self.relevance().len()
    }
}

/// Checked candidates over segments.
#[derive(Clone, Copy)]
pub(super) struct Slots<'a, S> {
    pub(super) segments: &'a [S],
    candidates: Candidates<'a>,
    slots: usize,
}

impl<'a, S: Segment> Slots<'a, S> {
    /// Checks the candidates. `seen` is scratch for lists that do not ascend.
    pub(super) fn new(
        segments: &'a [S],
        candidates: Candidates<'a>,
        seen: &mut Vec<u64>,
    ) -> Result<Slots<'a, S>, RankError> {
        let rows = segments
            .iter()
            .try_fold(0usize, |sum, segment| sum.checked_add(segment.rows()))
            .unwrap_or(usize::MAX);
        if rows > u32::MAX as usize {
            return Err(RankError::TooManyRows { rows });
        }
        let slots = match candidates {
            Candidates::All => rows,
            Candidates::Mask(words) => {
                check_mask(words, rows)?;
                rows
            }
            Candidates::Rows(list) => {
                check_list(list, rows, seen)?;
                list.len()
            }
        };
        Ok(Slots {
            segments,
            candidates,
            slots,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.slots
    }

    /// Calls `f` with every run of the candidates in `slots`, in order, until one fails.
    pub(super) fn runs<E>(
        &self,
        slots: Range<usize>,
        mut f: impl FnMut(&Run<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.candidates {
            Candidates::All => self.row_runs(slots, RUN, |segment, base, rows| {
                let picks = Picks::Range(rows.start - base..rows.end - base);
                f(&Run {
                    segment,
                    base,
                    picks,
                    slot: rows.start,
                })
            }),
            Candidates::Mask(words) => {
                let mut list = [0; MASKED_RUN];
                self.row_runs(slots, MASKED_RUN, |segment, base, rows| {
                    let picked = set_rows(words, &rows, &mut list);
                    if picked.is_empty() {
                        return Ok(());
                    }
                    f(&Run {
                        segment,
                        base,
                        picks: Picks::List {
                            rows: picked,
                            base: base as u32,
                        },
                        slot: rows.start,
                    })
                })
            }
            Candidates::Rows(list) => {
                let mut slot = slots.start;
                while slot < slots.end {
                    let end = run_end(slot, LISTED_RUN, slots.end);
                    let (segment, base) = self.segment_of(list[slot] as usize);
                    let last = base + self.segments[segment].rows();
                    let same = list[slot..end]
                        .iter()
                        .position(|&row| !(base..last).contains(&(row as usize)))
                        .map_or(end, |other| slot + other);
                    let picks = Picks::List {
                        rows: &list[slot..same],
                        base: base as u32,
                    };
                    f(&Run {
                        segment,
                        base,
                        picks,
                        slot,
                    })?;
                    slot = same;
                }
                Ok(())
            }
        }
    }

    /// Calls `f(segment, first row of the segment, rows)` for every run of rows.
    fn row_runs<E>(
        &self,
        rows: Range<usize>,
        longest: usize,
        mut f: impl FnMut(usize, usize, Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut base = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            let end = (base + segment.rows()).min(rows.end);
            let mut row = base.max(rows.start);
            while row < end {
                let stop = run_end(row, longest, end);
                f(index, base, row..stop)?;
                row = stop;
            }
            base += segment.rows();
        }
        Ok(())
    }

    /// The segment that holds a row, and the number of its first row.
    fn segment_of(&self, row: usize) -> (usize, usize) {
        let mut base = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            if row < base + segment.rows() {
                return (index, base);
            }
            base += segment.rows();
        }
        unreachable!("rows are checked when the candidates are taken")
    }
}

fn run_end(slot: usize, longest: usize, end: usize) -> usize {
    ((slot / longest + 1) * longest).min(end)
}

/// The set rows among `rows`, ascending.
fn set_rows<'b>(words: &[u64], rows: &Range<usize>, list: &'b mut [u32; MASKED_RUN]) -> &'b [u32] {
    let mut n = 0;
    let first = rows.start / 64;
    for (index, &word) in words[first..rows.end.div_ceil(64)].iter().enumerate() {
        let mut word = word;
        while word != 0 {
            let row = (first + index) * 64 + word.trailing_zeros() as usize;
            if rows.contains(&row) {
                list[n] = row as u32;
                n += 1;
            }
            word &= word - 1;
        }
    }
    &list[..n]
}

/// Whether a mask has a word for every 64 rows begun, and no bit beyond the last row.
pub(crate) fn check_mask(words: &[u64], rows: usize) -> Result<(), RankError> {
    let expected = rows.div_ceil(64);
    if words.len() != expected {
        return Err(RankError::MaskLength {
            found: words.len(),
            expected,
        });
    }
    let beyond = match (words.last(), rows % 64) {
        (None, _) | (_, 0) => 0,
        (Some(last), used) => last >> used,
    };
    if beyond != 0 {
        return Err(RankError::NoSuchRow {
            row: rows + beyond.trailing_zeros() as usize,
            rows,
        });
    }
    Ok(())
}

fn check_list(list: &[u32], rows: usize, seen: &mut Vec<u64>) -> Result<(), RankError> {
    if let Some(&row) = list.iter().find(|&&row| row as usize >= rows) {
        return Err(RankError::NoSuchRow {
            row: row as usize,
            rows,
        });
    }
    if list.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    seen.clear();
    seen.resize(rows.div_ceil(64), 0);
    for &row in list {
        let (word, bit) = (row as usize / 64, 1 << (row % 64));
        if seen[word] & bit != 0 {
            return Err(RankError::ListedTwice { row: row as usize });
        }
        seen[word] |= bit;
    }
    Ok(())
}
