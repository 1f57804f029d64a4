//! The functions that rank: one query, many queries, many agents, and the two seams.

use super::query::{Candidates, Query, RankError};
use super::ranking::Ranking;
use super::relevance::Relevance;
use super::scan::Scan;
use super::settings::Scoring;
use super::slots::Slots;
use super::workspace::Workspace;
use super::{Columns, Components};
use crate::kernel::{Queries, QueryError};
use crate::parallel::Par;
use std::fmt;
use std::num::NonZeroUsize;

/// Ranks the rows of `columns` (segments of one dimension, rows numbered on) for one query.
///
/// Runs on rayon's current pool where the `rayon` feature is on, in whichever crate it was turned on: do
/// not hold a lock across the call that other tasks of the pool take (see [`Par`]). [`rank_into`] chooses
/// where to run, and reuses memory.
///
/// # Errors
/// A scoring or query out of range, candidates that do not exist, or a row whose values are not
/// finite, named. Nothing is scored then.
pub fn rank(
    columns: &[Columns<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
) -> Result<Ranking, RankError> {
    #[cfg(feature = "rayon")]
    let par = Par::Rayon;
    #[cfg(not(feature = "rayon"))]
    let par = Par::Serial;
    let mut ranking = Ranking::default();
    rank_into(
        columns,
        query,
        scoring,
        par,
        &mut Workspace::new(),
        &mut ranking,
    )?;
    Ok(ranking)
}

/// [`rank`] into memory of the caller's. With [`Par::Serial`] and a workspace and ranking that have
/// seen this size before, nothing is allocated.
///
/// # Errors
/// As [`rank`]; the ranking is then empty.
pub fn rank_into(
    columns: &[Columns<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    ranking: &mut Ranking,
) -> Result<(), RankError> {
    let (queries, out) = (std::slice::from_ref(query), std::slice::from_mut(ranking));
    rank_batch(columns, queries, scoring, par, workspace, out).map_err(|e| e.error)
}

/// Ranks several queries: `rankings[i]` is that of `queries[i]`, with the same bits as one at a time.
///
/// Neighbouring queries with the same candidates (the same borrowed mask or list, or all rows) share
/// one read of the embeddings. They need 4 bytes of scratch per query and row together; beyond
/// [`Workspace::set_scratch_limit`] there is a read for each part that fits.
///
/// # Errors
/// As [`rank`], with the index of the query; all rankings are then empty.
pub fn rank_many_into(
    columns: &[Columns<'_>],
    queries: &[Query<'_>],
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    rankings: &mut Vec<Ranking>,
) -> Result<(), BatchError> {
    rankings.resize_with(queries.len(), Ranking::default);
    rank_batch(columns, queries, scoring, par, workspace, rankings)
}

/// One ranking of many: some columns, and what is asked of them.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Segments of one dimension.
    pub columns: &'a [Columns<'a>],
    /// The query.
    pub query: Query<'a>,
}

/// Ranks many small sets of columns, each for its own query: a tick of many agents. `rankings[i]` is
/// that of `jobs[i]`. The jobs are spread over threads, each runs on one.
///
/// # Errors
/// As [`rank`], with the index of the first job that fails; all rankings are then empty.
pub fn rank_each_into(
    jobs: &[Job<'_>],
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    rankings: &mut Vec<Ranking>,
) -> Result<(), BatchError> {
    rankings.resize_with(jobs.len(), Ranking::default);
    let size = jobs.len().div_ceil(par.parts()).max(1);
    let children = workspace.children(jobs.len().div_ceil(size));
    let first = std::sync::Mutex::new(None::<BatchError>);
    par.for_each_chunk(children, rankings, size, |part, workspace, rankings| {
        for (i, ranking) in rankings.iter_mut().enumerate() {
            let index = part * size + i;
            let Job { columns, query } = &jobs[index];
            if let Err(error) = rank_into(columns, query, scoring, Par::Serial, workspace, ranking)
            {
                let mut first = first.lock().unwrap_or_else(|e| e.into_inner());
                if first.as_ref().is_none_or(|known| index < known.index) {
                    *first = Some(BatchError { index, error });
                }
                return;
            }
        }
    });
    match first.into_inner().unwrap_or_else(|e| e.into_inner()) {
        None => Ok(()),
        Some(error) => {
            rankings.iter_mut().for_each(Ranking::clear);
            Err(error)
        }
    }
}

/// The first seam: relevance only. `out[q * rows + row]` becomes the cosine of a candidate row with
/// the `q`-th embedding, and NaN for every other row.
///
/// # Errors
/// As [`rank`], with the index of the embedding.
///
/// # Panics
/// If `out` has not one place per embedding and row of all segments.
pub fn relevance_into(
    columns: &[Columns<'_>],
    embeddings: &[&[f32]],
    candidates: Candidates<'_>,
    par: Par,
    workspace: &mut Workspace,
    out: &mut [f32],
) -> Result<(), BatchError> {
    let rows: usize = columns.iter().map(Columns::len).sum();
    assert_eq!(
        out.len(),
        rows * embeddings.len(),
        "one place per embedding and row"
    );
    let slots = Slots::new(columns, candidates, &mut workspace.seen)
        .map_err(|error| BatchError { index: 0, error })?;
    out.fill(f32::NAN);
    let at_once = workspace.queries_at_once(slots.len());
    for (chunk, embeddings) in embeddings.chunks(at_once).enumerate() {
        let first = chunk * at_once;
        let out = &mut out[first * rows..][..embeddings.len() * rows];
        relevance_together(slots, embeddings, par, workspace, out).map_err(|e| e.after(first))?;
    }
    Ok(())
}

/// The relevance of some embeddings, with one read of the rows.
fn relevance_together(
    slots: Slots<'_, Columns<'_>>,
    embeddings: &[&[f32]],
    par: Par,
    workspace: &mut Workspace,
    out: &mut [f32],
) -> Result<(), BatchError> {
    let rows = out.len() / embeddings.len();
    let embeddings = embeddings.iter().copied();
    first_pass(slots, embeddings, par, workspace, |scan| {
        scan.for_each_relevance(|query, row, relevance| out[query * rows + row] = relevance);
        Ok(())
    })
}

/// The second seam: everything after relevance, for callers who know it already. `query.embedding` is
/// not looked at.
///
/// # Errors
/// As [`rank`].
pub fn rank_components(
    components: &[Components<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    ranking: &mut Ranking,
) -> Result<(), RankError> {
    ranking.clear();
    check(components, scoring)?;
    let slots = Slots::new(components, query.candidates, &mut workspace.seen)?;
    let done = Scan::new(slots, 1, par, workspace)
        .and_then(|mut scan| scan.rank(0, query, scoring, ranking));
    if done.is_err() {
        ranking.clear();
    }
    done
}

/// Whether the scoring is in its ranges and fits the columns.
pub(super) fn check<S: Relevance>(segments: &[S], scoring: &Scoring) -> Result<(), RankError> {
    scoring.check()?;
    let mut segments = segments.iter().enumerate();
    segments.try_for_each(|(index, segment)| segment.signals().check(index, scoring.recency))
}

/// Why a batch was refused, and which of its members is to blame.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchError {
    /// Index of the query, job or embedding: the first of those that fail together.
    pub index: usize,
    /// What is wrong with it.
    pub error: RankError,
}

impl BatchError {
    /// Of the same member in a batch that has `before` members before this one's.
    fn after(self, before: usize) -> BatchError {
        BatchError {
            index: before + self.index,
            ..self
        }
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {} of the batch: {}", self.index, self.error)
    }
}

impl std::error::Error for BatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

fn rank_batch(
    columns: &[Columns<'_>],
    queries: &[Query<'_>],
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    rankings: &mut [Ranking],
) -> Result<(), BatchError> {
    rankings.iter_mut().for_each(Ranking::clear);
    let result = rank_groups(columns, queries, scoring, par, workspace, rankings);
    if result.is_err() {
        rankings.iter_mut().for_each(Ranking::clear);
    }
    result
}

/// Neighbours with the same candidates form a group, which takes the first pass together as far as the
/// scratch limit allows.
fn rank_groups(
    columns: &[Columns<'_>],
    queries: &[Query<'_>],
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    rankings: &mut [Ranking],
) -> Result<(), BatchError> {
    check(columns, scoring).map_err(|error| BatchError { index: 0, error })?;
    let mut first = 0;
    for group in queries.chunk_by(|a, b| a.candidates.is_same(&b.candidates)) {
        let slots =
            Slots::new(columns, group[0].candidates, &mut workspace.seen).map_err(|error| {
                BatchError {
                    index: first,
                    error,
                }
            })?;
        for queries in group.chunks(workspace.queries_at_once(slots.len())) {
            let rankings = &mut rankings[first..][..queries.len()];
            rank_together(slots, queries, scoring, par, workspace, rankings)
                .map_err(|e| e.after(first))?;
            first += queries.len();
        }
    }
    Ok(())
}

/// Queries with the same candidates, with one read of the embeddings.
fn rank_together(
    slots: Slots<'_, Columns<'_>>,
    queries: &[Query<'_>],
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    rankings: &mut [Ranking],
) -> Result<(), BatchError> {
    let embeddings = queries.iter().map(|q| q.embedding);
    first_pass(slots, embeddings, par, workspace, |mut scan| {
        for (index, (query, ranking)) in queries.iter().zip(rankings).enumerate() {
            scan.rank(index, query, scoring, ranking)
                .map_err(|error| BatchError { index, error })?;
        }
        Ok(())
    })
}

/// Takes the first pass for some embeddings, and hands it to `then`.
fn first_pass<'q>(
    slots: Slots<'_, Columns<'_>>,
    embeddings: impl Iterator<Item = &'q [f32]> + Clone,
    par: Par,
    workspace: &mut Workspace,
    then: impl FnOnce(Scan<'_, '_, Columns<'_>>) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    take_queries(slots.segments, embeddings.clone(), &mut workspace.queries)?;
    match Scan::new(slots, workspace.queries.len(), par, workspace) {
        Ok(scan) => then(scan),
        Err(error) => Err(first_to_fail(slots, embeddings, error, par, workspace)),
    }
}

/// The first embedding whose pass fails alone too, after that of all together has failed with `error`: a
/// cosine may be infinite for one query and not for another.
#[cold]
fn first_to_fail<'q>(
    slots: Slots<'_, Columns<'_>>,
    embeddings: impl Iterator<Item = &'q [f32]>,
    error: RankError,
    par: Par,
    workspace: &mut Workspace,
) -> BatchError {
    let mut alone = embeddings.enumerate().filter_map(|(index, embedding)| {
        let embedding = std::iter::once(embedding);
        let error = match take_queries(slots.segments, embedding, &mut workspace.queries) {
            Ok(()) => Scan::new(slots, 1, par, workspace).err()?,
            Err(e) => e.error,
        };
        Some(BatchError { index, error })
    });
    alone.next().unwrap_or(BatchError { index: 0, error })
}

/// Divides the embeddings by their norms. The dimension is the segments'; without any, a query's own.
fn take_queries<'q>(
    columns: &[Columns<'_>],
    embeddings: impl Iterator<Item = &'q [f32]> + Clone,
    queries: &mut Queries,
) -> Result<(), BatchError> {
    let first = columns.first().map(Columns::dim);
    for (segment, found) in columns.iter().map(Columns::dim).enumerate() {
        if let Some(expected) = first
            && found != expected
        {
            let (found, expected) = (found.get(), expected.get());
            let error = RankError::SegmentDimension {
                segment,
                found,
                expected,
            };
            return Err(BatchError { index: 0, error });
        }
    }
    let own = || {
        embeddings
            .clone()
            .next()
            .and_then(|e| NonZeroUsize::new(e.len()))
    };
    queries.clear(first.or_else(own).unwrap_or(NonZeroUsize::MIN));
    for (index, embedding) in embeddings.enumerate() {
        queries
            .push_unit(embedding)
            .map_err(|e: QueryError| BatchError {
                index,
                error: e.into(),
            })?;
    }
    Ok(())
}
