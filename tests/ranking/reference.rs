//! A ranking of known relevances beside the reference's.

use crate::common::best_kernel;
use memorank::Par;
use memorank::oracle;
use memorank::scoring::{
    Candidates, Component, Components, Hit, Normalization, Query, RankError, Ranking, Recency,
    Scoring, Ties, Workspace, rank_components,
};
use std::collections::HashMap;

/// Ranks, and asserts that
///
/// - the k best are, to the bit, the first k of the ranking of all, for which nothing is left out;
/// - totals and order are the reference's: exactly where recency has no weight or is given, else within 1e-12 of the
///   largest total that weights and components could add up to;
/// - what is refused is refused by the reference, except for a total that could overflow but does not.
pub fn assert_ranks_like_the_reference(
    components: &Components<'_>,
    query: &Query<'_>,
    scoring: &Scoring,
) -> Result<Ranking, RankError> {
    let components = std::slice::from_ref(components);
    let everything = Query {
        k: usize::MAX,
        ..*query
    };
    let rank = |query: &Query<'_>| {
        let mut ranking = Ranking::default();
        let mut workspace = Workspace::with_kernel(best_kernel());
        let par = Par::Serial;
        rank_components(
            components,
            query,
            scoring,
            par,
            &mut workspace,
            &mut ranking,
        )
        .map(|()| ranking)
    };
    let best = rank(query);
    let all = rank(&everything);
    let reference = oracle::rank_components(components, &everything, scoring);
    let (best, all, reference) = match (best, all, reference) {
        (Ok(best), Ok(all), Ok(reference)) => (best, all, reference),
        (Err(best), Err(all), reference) => {
            // As text: NaN is not equal to itself.
            assert_eq!(format!("{best:?}"), format!("{all:?}"));
            let overflow = matches!(best, RankError::Overflow { .. });
            assert!(overflow || reference.is_err(), "only we refuse: {best}");
            return Err(best);
        }
        (best, all, reference) => panic!("{best:?}, all: {all:?}, the reference: {reference:?}"),
    };
    super::assert_sound(&best, query);
    super::assert_sound(&all, &everything);
    let k = query.k.min(all.hits.len());
    let first = Ranking {
        hits: all.hits[..k].to_vec(),
        ..all.clone()
    };
    assert_eq!(super::rows(&best), super::rows(&first));
    assert_eq!(super::bits(&best), super::bits(&first));

    assert_eq!(all.candidates, reference.candidates);
    let tolerance = tolerance(scoring, &all, &reference);
    let by_row: HashMap<usize, &Hit> = reference.hits.iter().map(|hit| (hit.row, hit)).collect();
    for (ours, theirs) in all.hits.iter().zip(&reference.hits) {
        let same = by_row[&ours.row];
        let near = |a: f64, b: f64| (a - b).abs() <= tolerance;
        assert!(
            near(ours.score, same.score),
            "{ours:?} but the reference has {same:?}"
        );
        assert!(
            ours.row == theirs.row || near(same.score, theirs.score) && tolerance > 0.0,
            "{ours:?} in place of {theirs:?}"
        );
    }
    for pair in all.hits.windows(2) {
        let equal = pair[0].score == pair[1].score;
        let tie = |hit: &Hit| tie(query, hit.row);
        assert!(!equal || tie(&pair[0]) < tie(&pair[1]), "{pair:?}");
    }
    Ok(best)
}

fn tie(query: &Query<'_>, row: usize) -> usize {
    match (query.ties, query.candidates) {
        (Ties::Listed, Candidates::Rows(listed)) => listed
            .iter()
            .position(|&other| other as usize == row)
            .expect("a listed row"),
        _ => row,
    }
}

/// How far apart two totals may be. Nothing but decayed recency is computed in two ways.
fn tolerance(scoring: &Scoring, ours: &Ranking, reference: &Ranking) -> f64 {
    let weight = scoring.weights.recency;
    if weight == 0.0 || scoring.recency == Recency::Given {
        return 0.0;
    }
    let largest = |of: fn(&Hit) -> &Component| {
        let weighted = reference.hits.iter().map(|hit| of(hit).weighted.abs());
        weighted.fold(0.0, f64::max)
    };
    // The last is for what is rounded to a subnormal number.
    let roundings = 1e-12
        * (largest(|hit| &hit.relevance)
            + largest(|hit| &hit.recency)
            + largest(|hit| &hit.importance))
        + 1e-322;
    if let (Recency::Position { .. }, Normalization::MinMax { .. }) =
        (scoring.recency, scoring.normalization)
    {
        // Min-max of decay ^ position is the plain difference, and loses what cancels.
        let [ours, theirs] = [ours, reference].map(|ranking| {
            ranking
                .ranges
                .map_or(0.0, |r| r.recency.max - r.recency.min)
        });
        let max = reference.ranges.map_or(0.0, |r| r.recency.max);
        let lost = match ours.min(theirs) {
            0.0 if ours == theirs => 0.0,
            0.0 => 1.0,
            span => 4.0 * f64::EPSILON * max / span,
        };
        return roundings + weight * lost;
    }
    roundings
}
