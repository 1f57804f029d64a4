//! The scalar reference for the whole pipeline, in plain f64.
//!
//! Same arguments and same result types as [`scoring`](crate::scoring), no shared code: sums in f64,
//! the system's `exp`, `exp_m1` and `ln`, a sort instead of a selection, one thread. Slow and short on
//! purpose. Tests and `memorank demo` compare the fast path with it in two steps: our cosines lie within
//! the kernel's error bound of [`cosines`], and [`rank_components`] FED OUR COSINES gives the same order
//! and totals within 1e-12.

use crate::kernel::QueryError;
use crate::scoring::{
    AgeRange, Candidates, Columns, Component, Components, Hit, Normalization, Query, Range, Ranges,
    RankError, Ranking, Recency, Scoring, Signals, Since, Ties,
};

/// The cosine of every row with the query, in f64 from the stored elements; NaN for rows without a
/// vector.
///
/// # Errors
/// A query that is zero, not finite or of another dimension; a row whose cosine is not finite.
pub fn cosines(columns: &[Columns<'_>], embedding: &[f32]) -> Result<Vec<f64>, RankError> {
    if let Some(element) = embedding.iter().position(|x| !x.is_finite()) {
        let value = embedding[element];
        return Err(QueryError::NonFinite { element, value }.into());
    }
    if embedding.iter().all(|&x| x == 0.0) {
        return Err(QueryError::Zero.into());
    }
    let mut out = Vec::new();
    for segment in columns {
        let expected = segment.dim().get();
        if embedding.len() != expected {
            return Err(QueryError::Dimension {
                found: embedding.len(),
                expected,
            }
            .into());
        }
        for (row, &inv_norm) in segment.inv_norms().iter().enumerate() {
            if inv_norm == 0.0 {
                out.push(f64::NAN);
                continue;
            }
            let elements = segment.rows().widen(segment.dim(), row);
            let (mut dot, mut row_square, mut query_square) = (0.0, 0.0, 0.0);
            for (x, q) in elements.into_iter().map(f64::from).zip(embedding) {
                let q = f64::from(*q);
                dot += x * q;
                row_square += x * x;
                query_square += q * q;
            }
            let cosine = dot / (row_square.sqrt() * query_square.sqrt());
            if !cosine.is_finite() {
                return Err(RankError::Cosine { row: out.len() });
            }
            out.push(cosine.clamp(-1.0, 1.0));
        }
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
    let relevance = cosines(columns, query.embedding)?.into_iter();
    let signals = columns.iter().map(Columns::signals);
    rank_rows(&rows(relevance, signals), query, scoring)
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
    rank_rows(&rows(relevance, signals), query, scoring)
}

/// One memory: relevance (NaN: no vector), last access, importance.
type Row = (f64, i64, f32);

fn rows<'a>(
    relevance: impl Iterator<Item = f64>,
    signals: impl Iterator<Item = Signals<'a>>,
) -> Vec<Row> {
    let signals = signals.flat_map(|s| s.last_access.iter().zip(s.importance));
    relevance
        .zip(signals)
        .map(|(relevance, (&access, &imp))| (relevance, access, imp))
        .collect()
}

fn rank_rows(rows: &[Row], query: &Query<'_>, scoring: &Scoring) -> Result<Ranking, RankError> {
    scoring.check()?;
    let mut listed = listed_rows(rows.len(), query.candidates)?;
    listed.retain(|&row| !rows[row].0.is_nan());
    for &row in &listed {
        let (relevance, _, value) = rows[row];
        if relevance.is_infinite() {
            return Err(RankError::Cosine { row });
        }
        if !value.is_finite() {
            return Err(RankError::Importance { row, value });
        }
    }
    if listed.is_empty() {
        return Ok(Ranking::default());
    }

    let relevance: Vec<f64> = listed.iter().map(|&row| rows[row].0).collect();
    let importance: Vec<f64> = listed.iter().map(|&row| f64::from(rows[row].2)).collect();
    let accesses: Vec<i64> = listed.iter().map(|&row| rows[row].1).collect();
    let (recency, recency_normalized, ages) = recency(&accesses, query.now, scoring);
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
    accesses: &[i64],
    now: i64,
    scoring: &Scoring,
) -> (Vec<f64>, Vec<f64>, Option<AgeRange>) {
    match scoring.recency {
        Recency::Position { decay } => {
            let raw: Vec<f64> = (1..=accesses.len()).map(|p| decay.powf(p as f64)).collect();
            let normalized = match scoring.normalization {
                Normalization::MinMax { constant } => min_max(&raw, constant),
                Normalization::None { .. } => raw.clone(),
            };
            (raw, normalized, None)
        }
        Recency::Age {
            decay,
            ticks_per_unit,
            since,
        } => {
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
