//! The two passes over the candidates of a batch of queries.

use super::query::{Query, RankError, Ties};
use super::ranking::Ranking;
use super::relevance::{Extent, Relevance};
use super::score::{Raw, Scorer};
use super::settings::Scoring;
use super::slots::{BLOCK, Run, Slots};
use super::top::{Entry, Top};
use super::workspace::{Part, Workspace};
use crate::kernel::Picks;
use crate::parallel::Par;

/// The first pass, done: the relevance of every candidate for every query lies in scratch, the ranges
/// in the parts.
pub(super) struct Scan<'w, 's, S> {
    slots: Slots<'s, S>,
    queries: usize,
    par: Par,
    /// Slots per part.
    size: usize,
    workspace: &'w mut Workspace,
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
        let size = blocks.div_ceil(par.parts()) * BLOCK;
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
                        extent.add(run, relevance, segment.signals())?;
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
        let mut extent = Extent::EMPTY;
        for part in parts.iter_mut() {
            part.before = extent.candidates;
            extent.merge(&part.extents[index]);
        }
        ranking.candidates = extent.candidates;
        if extent.candidates == 0 {
            return Ok(());
        }
        let scorer = Scorer::new(scoring, query.now, &extent)?;
        ranking.ranges = Some(scorer.ranges());

        self.par.for_each(parts, |i, part| {
            self.top_of_part(i, part, index, query, &scorer)
        });
        if let Some((best, others)) = parts.split_first_mut() {
            for other in others {
                best.top.append(&mut other.top);
            }
            let hits = best.top.finish();
            ranking
                .hits
                .extend(hits.iter().map(|e| scorer.hit(e.row as usize, &e.raw)));
        }
        Ok(())
    }

    fn top_of_part(
        &self,
        i: usize,
        part: &mut Part,
        index: usize,
        query: &Query<'_>,
        scorer: &Scorer,
    ) {
        let top = &mut part.top;
        top.start(query.k);
        let mut before = part.before;
        self.runs(i, |run| {
            let signals = self.slots.segments[run.segment].signals();
            let relevance = self.relevance(index, run.slot, run.len());
            let mut missing = 0;
            let mut take = |top: &mut Top, i: usize, row: usize| {
                if relevance[i].is_nan() {
                    missing += 1;
                    return;
                }
                let position = (before + i - missing + 1) as u32;
                let raw = Raw {
                    relevance: relevance[i],
                    last_access: signals.last_access[row],
                    importance: signals.importance[row],
                    position,
                };
                if let Some(total) = scorer.total_from(&raw, top.floor()) {
                    let row = (run.base + row) as u32;
                    let tie = match query.ties {
                        Ties::Row => row,
                        Ties::Listed => position,
                    };
                    top.push(Entry {
                        total,
                        tie,
                        row,
                        raw,
                    });
                }
            };
            match &run.picks {
                Picks::List { .. } => run.for_each_row(|i, row| take(top, i, row)),
                Picks::Range(rows) => {
                    let importance = &signals.importance[rows.clone()];
                    let blocks = relevance.chunks(BLOCK).zip(importance.chunks(BLOCK));
                    for (block, (relevance, importance)) in blocks.enumerate() {
                        let start = block * BLOCK;
                        scorer.for_each_within_reach(relevance, importance, top.floor(), |i| {
                            take(top, start + i, rows.start + start + i);
                        });
                    }
                }
            }
            before += run.len() - missing;
        });
    }

    /// The relevances of a run for one query: scratch is laid out run by run, and query by query within.
    fn relevance(&self, query: usize, slot: usize, len: usize) -> &[f32] {
        &self.workspace.relevance[slot * self.queries + query * len..][..len]
    }

    /// Calls `f` with every run of a part: the runs of the first pass.
    fn runs(&self, part: usize, mut f: impl FnMut(&Run<'_>)) {
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
