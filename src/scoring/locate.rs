//! Where one row stands among all candidates, without a hit for every row: the ranges are found as for a
//! ranking, and then the candidates ahead of the row are counted.

use super::Components;
use super::query::{Query, RankError};
use super::ranking::Hit;
use super::relevance::Relevance;
use super::scan::Scan;
use super::score::{Raw, Scorer};
use super::settings::Scoring;
use super::slots::Slots;
use super::top::Entry;
use super::workspace::{Part, Workspace};
use crate::parallel::Par;
use std::cmp::Ordering;

/// Where a row stands.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Located {
    /// Its place in the ranking of all candidates, counted from 1.
    pub place: usize,
    /// The row's score, with all components.
    pub hit: Hit,
    /// The hit in place k, or the last one where there are fewer candidates; `None` if k is 0.
    pub kth: Option<Hit>,
}

/// Finds where a row stands among the candidates: its place and score are those it has in the ranking of all
/// of them, to the bit, whatever k is. `None` if the row is no candidate. `query.embedding` is not looked at.
///
/// ```
/// use memorank::Par;
/// use memorank::scoring::{Components, Preset, Query, Workspace, locate};
///
/// let components = [Components::new(&[0.9, 0.1, f32::NAN, 0.8], &[0; 4], &[1.0, 2.0, 9.0, 3.0])?];
/// let (query, scoring) = (Query::new(&[], 0, 1), Preset::paper().scoring);
/// let mut workspace = Workspace::new();
/// let mut place = |row| locate(&components, &query, &scoring, Par::Serial, &mut workspace, row);
/// let first = place(0)?.expect("a candidate");
/// assert_eq!((first.place, first.kth.map(|hit| hit.row)), (2, Some(3)));
/// assert_eq!(place(2)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`rank_components`](super::rank_components), and if there is no such row.
pub fn locate(
    components: &[Components<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    row: usize,
) -> Result<Option<Located>, RankError> {
    let rows = components.iter().map(|c| c.relevance.len()).sum();
    if row >= rows {
        return Err(RankError::NoSuchRow { row, rows });
    }
    let located = scored(
        components,
        query,
        scoring,
        par,
        workspace,
        |scan, parts, scorer| {
            let entry = scan.entry(parts, query, scorer, row)?;
            let kernel = scan.workspace.kernel;
            let mut hits = Vec::with_capacity(2);
            let place = scan.place(parts, query, scorer, &entry);
            if let Some((best, shortlist)) = scan.best(parts, 0, query, scorer) {
                let kth = best.last().copied();
                let entries = std::iter::once(entry).chain(kth);
                entries.for_each(|entry| scorer.hits(kernel, &[entry], shortlist, &mut hits));
            }
            Some(Located {
                place,
                hit: *hits.first()?,
                kth: hits.get(1).copied(),
            })
        },
    )?;
    Ok(located.flatten())
}

/// The places of [`locate`] alone, of rows that exist, in their order.
#[cfg(feature = "store")]
pub(crate) fn places(
    components: &[Components<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    rows: &[usize],
) -> Result<Vec<Option<usize>>, RankError> {
    let places = scored(
        components,
        query,
        scoring,
        par,
        workspace,
        |scan, parts, scorer| {
            let places = rows.iter().map(|&row| {
                let entry = scan.entry(parts, query, scorer, row)?;
                Some(scan.place(parts, query, scorer, &entry))
            });
            places.collect()
        },
    )?;
    Ok(places.unwrap_or_else(|| vec![None; rows.len()]))
}

/// Calls `f` with every candidate, in the order they are listed.
#[cfg(feature = "store")]
pub(crate) fn for_each_hit(
    components: &[Components<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    mut f: impl FnMut(&Hit),
) -> Result<(), RankError> {
    scored(
        components,
        query,
        scoring,
        par,
        workspace,
        |scan, parts, scorer| {
            let (kernel, all) = (scan.workspace.kernel, f64::NEG_INFINITY);
            let mut hits = Vec::new();
            for (i, part) in parts.iter_mut().enumerate() {
                scan.blocks(i, part, 0, scorer, all, |shortlist, _| {
                    hits.clear();
                    scorer.listed_hits(kernel, shortlist, &mut hits);
                    hits.iter().for_each(&mut f);
                    all
                });
            }
        },
    )?;
    Ok(())
}

/// Takes the first pass and hands it to `then`, with the scorer over its ranges. `None` if there are no candidates.
fn scored<T>(
    components: &[Components<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
    then: impl FnOnce(&Scan<'_, '_, Components<'_>>, &mut [Part], &Scorer) -> T,
) -> Result<Option<T>, RankError> {
    super::rank::check(components, scoring)?;
    let slots = Slots::new(components, query.candidates, &mut workspace.seen)?;
    let scan = Scan::new(slots, 1, par, workspace)?;
    let mut parts = std::mem::take(&mut scan.workspace.parts);
    let scorer = scan.scorer(&mut parts, 0, query, scoring);
    let done = scorer.map(|scorer| scorer.map(|scorer| then(&scan, &mut parts, &scorer)));
    scan.workspace.parts = parts;
    done
}

impl<S: Relevance> Scan<'_, '_, S> {
    /// What the ranking of the first query has for a row, if that is a candidate.
    fn entry(
        &self,
        parts: &mut [Part],
        query: &Query<'_>,
        scorer: &Scorer,
        row: usize,
    ) -> Option<Entry> {
        let (mut position, mut found) = (0, None);
        for part in 0..parts.len() {
            self.runs(part, |run| {
                let signals = self.slots.segments[run.segment].signals();
                let (stamps, relevance) =
                    (signals.stamps(), self.relevance(0, run.slot, run.len()));
                run.for_each_row(|i, local| {
                    if relevance[i].is_nan() {
                        return;
                    }
                    position += 1;
                    if run.base + local == row {
                        found = Some(Raw {
                            relevance: relevance[i],
                            stamp: stamps[local],
                            importance: signals.importance[local],
                            position,
                        });
                    }
                });
            });
        }
        let (raw, row) = (found?, row as u32);
        let shortlist = &mut parts.first_mut()?.shortlist;
        shortlist.clear();
        shortlist.push(row, &raw);
        scorer.total(self.workspace.kernel, shortlist);
        Some(Entry::new(shortlist.totals()[0], query.ties, row, raw))
    }

    /// 1 and as many as are ahead.
    fn place(
        &self,
        parts: &mut [Part],
        query: &Query<'_>,
        scorer: &Scorer,
        entry: &Entry,
    ) -> usize {
        self.par.for_each(parts, |i, part| {
            let mut ahead = 0;
            self.blocks(i, part, 0, scorer, entry.total, |shortlist, _| {
                for (i, &total) in shortlist.totals().iter().enumerate() {
                    let (row, raw) = (shortlist.row(i), shortlist.raw(i));
                    let other = Entry::new(total, query.ties, row, raw);
                    ahead += usize::from(other.order(entry) == Ordering::Less);
                }
                entry.total
            });
            part.ahead = ahead;
        });
        1 + parts.iter().map(|part| part.ahead).sum::<usize>()
    }
}
