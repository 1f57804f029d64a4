//! The scalar reference for the whole pipeline, in plain f64.
//!
//! Same arguments and same result types as [`scoring`](crate::scoring), and the same check of a
//! [`Scoring`]'s numbers, but no shared arithmetic: sums in f64, the system's `exp`, `exp_m1` and `ln`, a
//! sort instead of a selection, one thread. Slow and short on purpose. Tests, `memorank demo` and `memorank bench`
//! compare the fast path with it in two steps: our cosines lie within the kernel's error bound of [`cosines`],
//! and [`rank_components`] FED OUR COSINES gives the same order and totals within 1e-12.

use crate::Par;
use crate::kernel::{QueryError, cosine_error_bound};
use crate::scoring::{
    AgeRange, Candidates, Columns, Component, Components, Hit, Normalization, Query, Range, Ranges,
    RankError, Ranking, Recency, RecencyColumn, Scoring, Signals, Since, Ties, Workspace,
    rank_into, relevance_into,
};

/// The cosine of every row with the query, in f64 from the stored elements; NaN for rows without a
/// vector.
///
/// # Errors
/// A query that is zero, not finite or of another dimension; an inverse norm that is none; a row whose
/// cosine is not finite.
pub fn cosines(columns: &[Columns<'_>], embedding: &[f32]) -> Result<Vec<f64>, RankError> {
    let all: Vec<usize> = (0..columns.iter().map(Columns::len).sum()).collect();
    cosines_of(columns, embedding, &all)
}

/// The cosines of these rows; NaN for every other one.
fn cosines_of(
    columns: &[Columns<'_>],
    embedding: &[f32],
    listed: &[usize],
) -> Result<Vec<f64>, RankError> {
    if let Some(element) = embedding.iter().position(|x| !x.is_finite()) {
        let value = embedding[element];
        return Err(QueryError::NonFinite { element, value }.into());
    }
    if embedding.iter().all(|&x| x == 0.0) {
        return Err(QueryError::Zero.into());
    }
    let mut rows = Vec::new();
    for (index, segment) in columns.iter().enumerate() {
        let (found, expected) = (segment.dim().get(), columns[0].dim().get());
        if found != expected {
            return Err(RankError::SegmentDimension {
                segment: index,
                found,
                expected,
            });
        }
        if embedding.len() != expected {
            return Err(QueryError::Dimension {
                found: embedding.len(),
                expected,
            }
            .into());
        }
        rows.extend((0..segment.len()).map(|row| (segment, row)));
    }
    let mut out = vec![f64::NAN; rows.len()];
    for &row in listed {
        let (segment, local) = rows[row];
        let value = segment.inv_norms()[local];
        if value == 0.0 {
            continue;
        }
        if !(value.is_finite() && value > 0.0) {
            return Err(RankError::InverseNorm { row, value });
        }
        let elements = segment.rows().widen(segment.dim(), local);
        let (mut dot, mut row_square, mut query_square) = (0.0, 0.0, 0.0);
        for (x, q) in elements.into_iter().map(f64::from).zip(embedding) {
            let q = f64::from(*q);
            dot += x * q;
            row_square += x * x;
            query_square += q * q;
        }
        let cosine = dot / (row_square.sqrt() * query_square.sqrt());
        if !cosine.is_finite() {
            return Err(RankError::Cosine { row });
        }
        out[row] = cosine.clamp(-1.0, 1.0);
    }
    Ok(out)
}

/// [`scoring::rank`](crate::scoring::rank), in plain f64.
///
/// # Errors
/// As there. Where a call has several faults, it may name another one.
pub fn rank(
    columns: &[Columns<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
) -> Result<Ranking, RankError> {
    let listed = listed_rows(columns.iter().map(Columns::len).sum(), query.candidates)?;
    let relevance = cosines_of(columns, query.embedding, &listed)?.into_iter();
    let signals = columns.iter().map(Columns::signals);
    rank_rows(&rows(relevance, signals, scoring)?, query, scoring)
}

/// How the fast path and the oracle differ on one query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Between our cosines and the oracle's, over all candidates.
    pub largest_cosine_difference: f64,
    /// [`cosine_error_bound`] of the dimension.
    pub cosine_bound: f64,
    /// Whether the oracle, given our cosines, ranks the same rows in the same order.
    pub same_order: bool,
    /// Between our totals and those of the oracle, given our cosines.
    pub largest_total_difference: f64,
}

impl Comparison {
    /// Whether the cosines lie within their bound, and order and totals are the same within 1e-12.
    pub fn agrees(&self) -> bool {
        self.same_order
            && self.largest_cosine_difference <= self.cosine_bound
            && self.largest_total_difference <= 1e-12
    }
}

/// Ranks the query on the workspace's kernel and in plain f64, and compares.
///
/// # Errors
/// As [`rank`].
pub fn compare(
    columns: &[Columns<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Comparison, RankError> {
    let mut relevance = vec![0.0; columns.iter().map(Columns::len).sum()];
    let embeddings = [query.embedding];
    relevance_into(
        columns,
        &embeddings,
        query.candidates,
        par,
        workspace,
        &mut relevance,
    )
    .map_err(|e| e.error)?;
    let mut ours = Ranking::default();
    rank_into(columns, query, scoring, par, workspace, &mut ours)?;

    let listed = listed_rows(relevance.len(), query.candidates)?;
    let exact = cosines_of(columns, query.embedding, &listed)?;
    let differences = exact
        .iter()
        .zip(&relevance)
        .map(|(a, b)| (a - f64::from(*b)).abs());
    let ours_widened = relevance.iter().copied().map(f64::from);
    let signals = columns.iter().map(Columns::signals);
    let theirs = rank_rows(&rows(ours_widened, signals, scoring)?, query, scoring)?;
    let pairs = || ours.hits.iter().zip(&theirs.hits);
    Ok(Comparison {
        // NaN where there is no vector, which max passes over.
        largest_cosine_difference: differences.fold(0.0, f64::max),
        cosine_bound: columns.first().map_or(0.0, |c| cosine_error_bound(c.dim())),
        same_order: ours.hits.len() == theirs.hits.len() && pairs().all(|(a, b)| a.row == b.row),
        largest_total_difference: pairs()
            .map(|(a, b)| (a.score - b.score).abs())
            .fold(0.0, f64::max),
    })
}

/// [`scoring::rank_components`](crate::scoring::rank_components), in plain f64.
///
/// # Errors
/// As there. Where a call has several faults, it may name another one.
pub fn rank_components(
    components: &[Components<'_>],
    query: &Query<'_>,
    scoring: &Scoring,
) -> Result<Ranking, RankError> {
    let relevance = components
        .iter()
        .flat_map(|c| c.relevance())
        .copied()
        .map(f64::from);
    let signals = components.iter().map(Components::signals);
    rank_rows(&rows(relevance, signals, scoring)?, query, scoring)
}

/// One memory: relevance (NaN: no vector), what its recency is made of, importance.
type Row = (f64, Moment, f32);

#[derive(Clone, Copy)]
enum Moment {
    LastAccess(i64),
    Recency(f64),
}

fn rows<'a>(
    mut relevance: impl Iterator<Item = f64>,
    signals: impl Iterator<Item = Signals<'a>>,
    scoring: &Scoring,
) -> Result<Vec<Row>, RankError> {
    let mut rows = Vec::new();
    for (segment, signals) in signals.enumerate() {
        let moments: Vec<Moment> = match signals.recency {
            RecencyColumn::LastAccess(_) if scoring.recency == Recency::Given => {
                return Err(RankError::NoRecency { segment });
            }
            RecencyColumn::Given(_) if matches!(scoring.recency, Recency::Age { .. }) => {
                return Err(RankError::NoLastAccess { segment });
            }
            RecencyColumn::LastAccess(s) => s.iter().copied().map(Moment::LastAccess).collect(),
            RecencyColumn::Given(s) => s.iter().copied().map(Moment::Recency).collect(),
        };
        let of_segment = relevance.by_ref().zip(moments).zip(signals.importance);
        rows.extend(of_segment.map(|((relevance, moment), &imp)| (relevance, moment, imp)));
    }
    Ok(rows)
}

fn rank_rows(rows: &[Row], query: &Query<'_>, scoring: &Scoring) -> Result<Ranking, RankError> {
    scoring.check()?;
    let mut listed = listed_rows(rows.len(), query.candidates)?;
    listed.retain(|&row| !rows[row].0.is_nan());
    for &row in &listed {
        let (relevance, moment, value) = rows[row];
        if relevance.is_infinite() {
            return Err(RankError::Cosine { row });
        }
        if !value.is_finite() {
            return Err(RankError::Importance { row, value });
        }
        if let Moment::Recency(value) = moment
            && (!(0.0..=1.0).contains(&value) || value == 0.0 && value.is_sign_negative())
        {
            return Err(RankError::Recency { row, value });
        }
    }
    if listed.is_empty() {
        return Ok(Ranking::default());
    }

    let relevance: Vec<f64> = listed.iter().map(|&row| rows[row].0).collect();
    let importance: Vec<f64> = listed.iter().map(|&row| f64::from(rows[row].2)).collect();
    let moments: Vec<Moment> = listed.iter().map(|&row| rows[row].1).collect();
    let (recency, recency_normalized, ages) = recency(&moments, query.now, scoring);
    let (relevance_normalized, importance_normalized) = match scoring.normalization {
        Normalization::MinMax { constant } => (
            min_max(&relevance, constant),
            min_max(&importance, constant),
        ),
        Normalization::None { importance_divisor } => (
            relevance.clone(),
            importance.iter().map(|x| x / importance_divisor).collect(),
        ),
    };

    let weights = scoring.weights;
    let component = |raw, normalized: f64, weight| Component {
        raw,
        normalized,
        weighted: weight * normalized,
    };
    let mut hits: Vec<(usize, Hit)> = (0..listed.len())
        .map(|i| {
            let relevance = component(relevance[i], relevance_normalized[i], weights.relevance);
            let recency = component(recency[i], recency_normalized[i], weights.recency);
            let importance = component(importance[i], importance_normalized[i], weights.importance);
            let score = relevance.weighted + recency.weighted + importance.weighted;
            (
                i,
                Hit {
                    row: listed[i],
                    score,
                    relevance,
                    recency,
                    importance,
                },
            )
        })
        .collect();
    if let Some((_, hit)) = hits.iter().find(|(_, hit)| !hit.score.is_finite()) {
        return Err(RankError::Overflow {
            importance: hit.importance.raw,
        });
    }
    hits.sort_by(|(i, a), (j, b)| {
        let tie = match query.ties {
            Ties::Row => a.row.cmp(&b.row),
            Ties::Listed => i.cmp(j),
        };
        b.score
            .partial_cmp(&a.score)
            .expect("totals are finite")
            .then(tie)
    });
    hits.truncate(query.k);
    Ok(Ranking {
        hits: hits.into_iter().map(|(_, hit)| hit).collect(),
        ranges: Some(Ranges {
            relevance: range(&relevance),
            recency: range(&recency),
            importance: range(&importance),
            ages,
        }),
        candidates: listed.len(),
    })
}

fn listed_rows(n: usize, candidates: Candidates<'_>) -> Result<Vec<usize>, RankError> {
    let listed: Vec<usize> = match candidates {
        Candidates::All => (0..n).collect(),
        Candidates::Mask(words) => {
            if words.len() != n.div_ceil(64) {
                let expected = n.div_ceil(64);
                return Err(RankError::MaskLength {
                    found: words.len(),
                    expected,
                });
            }
            (0..words.len() * 64)
                .filter(|i| words[i / 64] >> (i % 64) & 1 == 1)
                .collect()
        }
        Candidates::Rows(rows) => rows.iter().map(|&row| row as usize).collect(),
    };
    let mut seen = std::collections::HashSet::new();
    for &row in &listed {
        if row >= n {
            return Err(RankError::NoSuchRow { row, rows: n });
        }
        if !seen.insert(row) {
            return Err(RankError::ListedTwice { row });
        }
    }
    Ok(listed)
}

/// Raw and normalised recency of every candidate, and the range of ages.
fn recency(
    moments: &[Moment],
    now: i64,
    scoring: &Scoring,
) -> (Vec<f64>, Vec<f64>, Option<AgeRange>) {
    let plain = |raw: Vec<f64>| {
        let normalized = match scoring.normalization {
            Normalization::MinMax { constant } => min_max(&raw, constant),
            Normalization::None { .. } => raw.clone(),
        };
        (raw, normalized, None)
    };
    match scoring.recency {
        Recency::Position { decay } => {
            plain((1..=moments.len()).map(|p| decay.powf(p as f64)).collect())
        }
        Recency::Given => {
            let given = moments.iter().filter_map(|&moment| match moment {
                Moment::Recency(raw) => Some(raw),
                Moment::LastAccess(_) => None,
            });
            plain(given.collect())
        }
        Recency::Age {
            decay,
            ticks_per_unit,
            since,
        } => {
            let accesses = moments.iter().filter_map(|&moment| match moment {
                Moment::LastAccess(access) => Some(access),
                Moment::Recency(_) => None,
            });
            let accesses: Vec<i64> = accesses.collect();
            let newest = accesses
                .iter()
                .copied()
                .max()
                .expect("there are candidates");
            let since = match since {
                Since::Now => now,
                Since::NewestAccess => newest,
            };
            let ages: Vec<u64> = accesses
                .iter()
                .map(|&access| (i128::from(since) - i128::from(access)).max(0) as u64)
                .collect();
            let units = |ticks: u64| ticks as f64 / ticks_per_unit.get() as f64;
            // 0^0 is 1.
            let raw: Vec<f64> = ages.iter().map(|&age| decay.powf(units(age))).collect();
            let youngest = ages.iter().copied().min().expect("there are candidates");
            let oldest = ages.iter().copied().max().expect("there are candidates");
            let span = oldest - youngest;
            let normalized = match scoring.normalization {
                Normalization::None { .. } => raw.clone(),
                Normalization::MinMax { constant } => {
                    let flat = span == 0 || decay == 1.0 || (decay == 0.0 && youngest > 0);
                    let of = |age: u64| {
                        if flat {
                            constant
                        } else if decay == 0.0 {
                            if age == 0 { 1.0 } else { 0.0 }
                        } else {
                            let u = age - youngest;
                            let l = decay.ln();
                            (l * units(u)).exp() * (l * units(span - u)).exp_m1()
                                / (l * units(span)).exp_m1()
                        }
                    };
                    ages.iter().map(|&age| of(age)).collect()
                }
            };
            (raw, normalized, Some(AgeRange { youngest, oldest }))
        }
    }
}

fn min_max(values: &[f64], constant: f64) -> Vec<f64> {
    let Range { min, max } = range(values);
    values
        .iter()
        .map(|x| {
            if max > min {
                (x - min) / (max - min)
            } else {
                constant
            }
        })
        .collect()
}

fn range(values: &[f64]) -> Range {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Range { min, max }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rows;
    use std::num::NonZeroUsize;

    #[test]
    fn a_zero_query_is_refused_as_such() {
        let dim = NonZeroUsize::new(2).unwrap();
        let columns = Columns::new(dim, Rows::F32(&[3.0, 4.0]), &[0.2], &[0], &[1.0]).unwrap();
        let refused = cosines(&[columns], &[0.0, 0.0]).unwrap_err();
        assert_eq!(refused, RankError::Query(QueryError::Zero));
    }
}
