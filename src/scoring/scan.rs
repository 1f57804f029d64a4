//! The two passes over the candidates of a batch of queries.

use super::columns::Signals;
use super::query::{Query, RankError, Ties};
use super::ranking::Ranking;
use super::relevance::{Extent, Relevance};
use super::score::{Raw, Scorer};
use super::settings::Scoring;
use super::shortlist::Shortlist;
use super::slots::{BLOCK, Run, Slots};
use super::top::{Entry, Top};
use super::workspace::{Part, Workspace};
use crate::kernel::{Kernel, Picks};
use crate::parallel::Par;

/// Blocks of the smallest part: fewer cost less than the way to another thread.
const PART_BLOCKS: usize = 2;

/// The first pass, done: the relevance of every candidate for every query lies in scratch, the ranges
/// in the parts.
pub(super) struct Scan<'w, 's, S> {
    pub(super) slots: Slots<'s, S>,
    queries: usize,
    pub(super) par: Par,
    /// Slots per part.
    size: usize,
    pub(super) workspace: &'w mut Workspace,
}

impl<'w, 's, S: Relevance> Scan<'w, 's, S> {
    /// Takes the first pass for the first `queries` of the workspace's queries.
    pub(super) fn new(
        slots: Slots<'s, S>,
        queries: usize,
        par: Par,
        workspace: &'w mut Workspace,
    ) -> Result<Scan<'w, 's, S>, RankError> {
        let blocks = slots.len().div_ceil(BLOCK).max(1);
        let size = blocks.div_ceil(par.parts()).max(PART_BLOCKS) * BLOCK;
        let places = slots.len() * queries;
        // Grown, not shrunk: the tail of a longer earlier ranking is never read.
        if workspace.relevance.len() < places {
            workspace.relevance.resize(places, 0.0);
        }
        workspace
            .parts
            .resize_with(slots.len().div_ceil(size), Part::default);
        // Without queries no part is visited: none may keep the error of an earlier ranking.
        workspace
            .parts
            .iter_mut()
            .for_each(|part| part.error = None);
        let (kernel, unit) = (workspace.kernel, &workspace.queries);
        let scratch = &mut workspace.relevance[..places];
        let chunk = size * queries.max(1);
        par.for_each_chunk(
            &mut workspace.parts,
            scratch,
            chunk,
            |index, part, scratch| {
                part.extents.clear();
                part.extents.resize(queries, Extent::EMPTY);
                let start = index * size;
                let end = (start + size).min(slots.len());
                let done = slots.runs(start..end, |run| {
                    let segment = &slots.segments[run.segment];
                    let (from, len) = ((run.slot - start) * queries, run.len());
                    let out = &mut scratch[from..from + len * queries];
                    segment.relevance(kernel, run, unit, out)?;
                    for (extent, relevance) in part.extents.iter_mut().zip(out.chunks_exact(len)) {
                        extent.add(kernel, run, relevance, segment.signals())?;
                    }
                    Ok(())
                });
                part.error = done.err();
            },
        );
        match workspace.parts.iter().find_map(|part| part.error) {
            Some(error) => Err(error),
            None => Ok(Scan {
                slots,
                queries,
                par,
                size,
                workspace,
            }),
        }
    }

    /// Calls `f(query, row, relevance)` for every candidate and query.
    pub(super) fn for_each_relevance(&self, mut f: impl FnMut(usize, usize, f32)) {
        for part in 0..self.workspace.parts.len() {
            self.runs(part, |run| {
                for query in 0..self.queries {
                    let relevance = self.relevance(query, run.slot, run.len());
                    run.for_each_row(|i, row| f(query, run.base + row, relevance[i]));
                }
            });
        }
    }

    /// The second pass: ranks the batch's query number `index`, which is `query`.
    pub(super) fn rank(
        &mut self,
        index: usize,
        query: &Query<'_>,
        scoring: &Scoring,
        ranking: &mut Ranking,
    ) -> Result<(), RankError> {
        let mut parts = std::mem::take(&mut self.workspace.parts);
        let done = self.rank_parts(&mut parts, index, query, scoring, ranking);
        self.workspace.parts = parts;
        done
    }

    fn rank_parts(
        &self,
        parts: &mut [Part],
        index: usize,
        query: &Query<'_>,
        scoring: &Scoring,
        ranking: &mut Ranking,
    ) -> Result<(), RankError> {
        let Some(scorer) = self.scorer(parts, index, query, scoring)? else {
            return Ok(());
        };
        ranking.candidates = scorer.candidates();
        ranking.ranges = Some(scorer.ranges());
        if let Some((entries, shortlist)) = self.best(parts, index, query, &scorer) {
            let kernel = self.workspace.kernel;
            scorer.hits(kernel, entries, shortlist, &mut ranking.hits);
        }
        Ok(())
    }

    /// The scorer over the ranges of all parts, which also learn how many candidates are before them. `None`
    /// if there are none at all.
    pub(super) fn scorer(
        &self,
        parts: &mut [Part],
        index: usize,
        query: &Query<'_>,
        scoring: &Scoring,
    ) -> Result<Option<Scorer>, RankError> {
        let mut extent = Extent::EMPTY;
        for part in parts {
            part.before = extent.candidates;
            extent.merge(&part.extents[index]);
        }
        match extent.candidates {
            0 => Ok(None),
            _ => Scorer::new(scoring, query.now, &extent).map(Some),
        }
    }

    /// The k best, best first, and a shortlist that is free.
    pub(super) fn best<'p>(
        &self,
        parts: &'p mut [Part],
        index: usize,
        query: &Query<'_>,
        scorer: &Scorer,
    ) -> Option<(&'p [Entry], &'p mut Shortlist)> {
        self.par.for_each(parts, |i, part| {
            part.top.start(query.k);
            let floor = part.top.floor();
            self.blocks(i, part, index, scorer, floor, |shortlist, part_top| {
                push_best(shortlist, query.ties, part_top);
                part_top.floor()
            });
        });
        let (best, others) = parts.split_first_mut()?;
        for other in others {
            best.top.append(&mut other.top);
        }
        let Part { top, shortlist, .. } = best;
        Some((top.finish(), shortlist))
    }

    /// Calls `take` with the candidates of a part that could reach a floor, with their totals, a block at a time,
    /// in the order of their slots. `take` is also given the part's best so far, and gives the floor of the
    /// next block.
    pub(super) fn blocks(
        &self,
        i: usize,
        part: &mut Part,
        index: usize,
        scorer: &Scorer,
        mut floor: f64,
        mut take: impl FnMut(&mut Shortlist, &mut Top) -> f64,
    ) {
        let kernel = self.workspace.kernel;
        let mut before = part.before;
        self.runs(i, |run| {
            let signals = self.slots.segments[run.segment].signals();
            let relevance = self.relevance(index, run.slot, run.len());
            let mut start = 0;
            while start < run.len() {
                // All of the first block's totals are computed: a short one soon gives a floor.
                let size = match floor {
                    f64::NEG_INFINITY => BLOCK / 4,
                    _ => BLOCK,
                };
                let block = run.part(start..(start + size).min(run.len()));
                let relevance = &relevance[start..][..block.len()];
                start += block.len();

                let shortlist = &mut part.shortlist;
                before += list_reachable(
                    &block, relevance, signals, before, scorer, kernel, floor, shortlist,
                );
                scorer.total(kernel, shortlist);
                floor = take(shortlist, &mut part.top);
            }
        });
    }

    /// The relevances of a run for one query: scratch is laid out run by run, and query by query within.
    pub(super) fn relevance(&self, query: usize, slot: usize, len: usize) -> &[f32] {
        &self.workspace.relevance[slot * self.queries + query * len..][..len]
    }

    /// Calls `f` with every run of a part: the runs of the first pass.
    pub(super) fn runs(&self, part: usize, mut f: impl FnMut(&Run<'_>)) {
        let start = part * self.size;
        let end = (start + self.size).min(self.slots.len());
        let done = self.slots.runs(start..end, |run| {
            f(run);
            Ok::<(), std::convert::Infallible>(())
        });
        match done {
            Ok(()) => {}
        }
    }
}

/// Lists the candidates of a block that could reach `floor`. `before` is the number of candidates before
/// the block; gives that of the block's own.
#[allow(
    clippy::too_many_arguments,
    reason = "the one step between a block's columns and its shortlist"
)]
fn list_reachable(
    block: &Run<'_>,
    relevance: &[f32],
    signals: Signals<'_>,
    before: usize,
    scorer: &Scorer,
    kernel: Kernel,
    floor: f64,
    shortlist: &mut Shortlist,
) -> usize {
    let gathered: ([i64; BLOCK], [f32; BLOCK]);
    let (stamps, importance) = match &block.picks {
        Picks::Range(rows) => (
            &signals.stamps()[rows.clone()],
            &signals.importance[rows.clone()],
        ),
        Picks::List { .. } => {
            gathered = (
                gather(block, signals.stamps()),
                gather(block, signals.importance),
            );
            (&gathered.0[..block.len()], &gathered.1[..block.len()])
        }
    };
    shortlist.clear();
    // Rows without a vector so far: they are no candidates and have no position.
    let mut without = 0;
    scorer.for_each_within_reach(kernel, relevance, stamps, importance, floor, |i| {
        if relevance[i].is_nan() {
            without += 1;
            return;
        }
        let raw = Raw {
            relevance: relevance[i],
            stamp: stamps[i],
            importance: importance[i],
            position: (before + i - without + 1) as u32,
        };
        shortlist.push((block.base + block.row(i)) as u32, &raw);
    });
    block.len() - without
}

/// Pushes what is among the k best of a shortlist with totals, and of all before it.
fn push_best(shortlist: &mut Shortlist, ties: Ties, top: &mut Top) {
    top.raise_floor(shortlist.kth_total(top.k()));
    for (i, &total) in shortlist.totals().iter().enumerate() {
        if total >= top.floor() {
            top.push(Entry::new(total, ties, shortlist.row(i), shortlist.raw(i)));
        }
    }
}

/// The values of a run's candidates.
fn gather<T: Copy + Default>(run: &Run<'_>, column: &[T]) -> [T; BLOCK] {
    let mut values = [T::default(); BLOCK];
    run.for_each_row(|i, row| values[i] = column[row]);
    values
}
