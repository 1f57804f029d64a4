//! The candidates that can be among the best k whatever the weights: thousands of settings look at these alone.
//!
//! # Why nothing is missed
//!
//! Say that a is ahead of b if a's relevance is above b's by more than [`MARGIN`] of the range of relevances, a was
//! accessed no earlier, and a is no less important. Under a setting with min-max whose weights add up to at most
//! [`RATIO`] times that of relevance, a then has the higher total: exactly, it is higher by more than
//! `w_rel * MARGIN`, since recency falls with age for every decay in [0, 1]; as it is computed, each normalised value is
//! off by less than 1e-14 (a few roundings of numbers up to 1; `scoring::math` has the errors of exp and expm1), so both
//! totals together by less than `1e-13 * (w_rel + w_rec + w_imp)`, and that is at most a tenth of the difference. So a
//! candidate behind k others is never among the best k.
//!
//! Those are looked for among the candidates that are kept, which is enough: who is ahead of somebody ahead of b is
//! ahead of b, so that of those ahead of b the k most relevant have fewer than k ahead of them, and are kept.
//!
//! Ranges are over all candidates. So the ones at their ends are kept, too, and the best k have the same bits.
//!
//! The points behind fewer than k others are known as the k-skyband (Papadias, Tao, Fu and Seeger, *Progressive skyline
//! computation in database systems*, 2005).

use super::case::Case;
use crate::scoring::{Normalization, Recency, Scoring};

const MARGIN: f64 = 1e-9;
const RATIO: f64 = 1e3;
/// Comparisons for each candidate. Where relevance falls as time goes by, nobody is ahead of many, and to find that out
/// would take longer than to try all settings on all candidates.
const COMPARISONS: usize = 200;

/// Whether the contenders of a case are all that a setting can put among the best k.
pub(super) fn suffice(scoring: &Scoring) -> bool {
    let weights = scoring.weights;
    let sum = weights.relevance + weights.recency + weights.importance;
    let by_age = matches!(scoring.recency, Recency::Age { .. });
    let min_max = matches!(scoring.normalization, Normalization::MinMax { .. });
    by_age && min_max && weights.relevance > 0.0 && sum <= RATIO * weights.relevance
}

/// Indexes of the candidates that are behind fewer than k others, and of those at the ends of ranges; ascending. `None`:
/// it does not pay to look for them.
pub(super) fn of(case: &Case, k: usize) -> Option<Vec<usize>> {
    if k >= case.candidates() {
        return None;
    }
    let relevance = |i: usize| f64::from(case.relevance[i]);
    let mut by_relevance: Vec<usize> = (0..case.candidates()).collect();
    by_relevance.sort_by(|&a, &b| relevance(b).total_cmp(&relevance(a)));
    let (Some(&most), Some(&least)) = (by_relevance.first(), by_relevance.last()) else {
        return None;
    };
    let margin = MARGIN * (relevance(most) - relevance(least));
    let mut kept: Vec<usize> = Vec::new();
    let mut left = COMPARISONS.saturating_mul(case.candidates());
    // So many of those that are kept are more relevant by the margin.
    let mut above = 0;
    for &candidate in &by_relevance {
        let clearly = |&other: &usize| relevance(other) - relevance(candidate) > margin;
        while kept.get(above).is_some_and(clearly) {
            above += 1;
        }
        let is_ahead = |other: usize| {
            case.last_access[other] >= case.last_access[candidate]
                && case.importance[other] >= case.importance[candidate]
        };
        let mut ahead = 0;
        for &other in &kept[..above] {
            left = left.checked_sub(1)?;
            ahead += usize::from(is_ahead(other));
            if ahead == k {
                break;
            }
        }
        if ahead < k {
            kept.push(candidate);
        }
    }
    let all = 0..case.candidates();
    kept.extend([most, least]);
    kept.extend(all.clone().min_by_key(|&i| case.last_access[i]));
    kept.extend(all.clone().max_by_key(|&i| case.last_access[i]));
    let by_importance = |a: &usize, b: &usize| case.importance[*a].total_cmp(&case.importance[*b]);
    kept.extend(all.clone().min_by(by_importance));
    kept.extend(all.max_by(by_importance));
    kept.sort_unstable();
    kept.dedup();
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Grid;
    use crate::eval::bootstrap::Draws;
    use crate::scoring::{Hit, Ranking, Ties, Workspace};

    /// Some candidates of which much is equal, or nearly.
    fn case(draws: &mut Draws, n: usize, spread: usize) -> Case {
        let tiny = |draws: &mut Draws| draws.below(3) as f32 * 1e-8;
        let relevance = (0..n).map(|_| draws.below(spread) as f32 / spread as f32 + tiny(draws));
        let relevance = relevance.collect();
        let ages = [1, 1_000_000, 3_600_000_000, 1 << 50];
        let unit = ages[draws.below(4)];
        let last_access = (0..n)
            .map(|_| -(draws.below(spread) as i64) * unit)
            .collect();
        let importance = (0..n).map(|_| draws.below(1 + spread / 4) as f32).collect();
        Case {
            relevance,
            last_access,
            importance,
            listed: None,
            now: draws.below(2) as i64 * unit,
            answers: (0..n).filter(|_| draws.below(5) == 0).collect(),
            relevant: n,
        }
    }

    /// The grid, and settings at the edge of what contenders suffice for.
    fn settings() -> Vec<Scoring> {
        let mut grid = Grid::standard();
        grid.recency = vec![0.01, 1.0, 10.0, 499.0];
        grid.importance = vec![0.02, 2.0, 500.0];
        grid.decays.extend([0.0, 1.0, 1.0 - 1e-12]);
        grid.decays.retain(|decay| (decay * 1e4) as u64 % 3 != 1);
        grid.settings()
    }

    #[test]
    fn the_best_are_the_same_to_the_bit() {
        let mut draws = Draws(3);
        let settings = settings();
        let (mut workspace, mut all, mut few) =
            (Workspace::new(), Ranking::default(), Ranking::default());
        let mut dropped = 0;
        for round in 0..150 {
            let (n, spread) = (1 + draws.below(120), 1 + draws.below(60));
            let case = case(&mut draws, n, spread);
            let k = [1, 2, 5, 10][round % 4];
            let Some(kept) = of(&case, k) else {
                assert!(k >= n);
                continue;
            };
            let contenders = case.only(&kept);
            dropped += n - kept.len();
            for scoring in &settings {
                assert!(suffice(scoring));
                let ties = Ties::Row;
                case.top(scoring, ties, k, &mut workspace, &mut all)
                    .unwrap();
                (contenders.top(scoring, ties, k, &mut workspace, &mut few)).unwrap();
                let there = |hit: &Hit| Hit {
                    row: kept[hit.row],
                    ..*hit
                };
                let few_hits: Vec<Hit> = few.hits.iter().map(there).collect();
                assert_eq!(few_hits, all.hits, "{scoring:?}");
                assert_eq!(few.ranges, all.ranges);
                assert_eq!(contenders.places_in(&few), case.places_in(&all));
            }
        }
        assert!(dropped > 1_000, "{dropped}");
    }

    #[test]
    fn other_settings_look_at_all_candidates() {
        let mut scoring = Grid::standard().settings()[0];
        assert!(suffice(&scoring));
        scoring.weights.relevance = 0.0;
        assert!(!suffice(&scoring));
        scoring.weights.relevance = 1.0;
        scoring.weights.importance = 1_000.0;
        assert!(!suffice(&scoring));
        scoring.weights.importance = 0.0;
        scoring.normalization = Normalization::None {
            importance_divisor: 10.0,
        };
        assert!(!suffice(&scoring));
    }

    #[test]
    fn they_are_not_looked_for_where_that_does_not_pay() {
        let mut draws = Draws(1);
        assert_eq!(of(&case(&mut draws, 0, 1), 3), None);
        assert_eq!(of(&case(&mut draws, 5, 3), 5), None);
        let mut drifting = case(&mut draws, 5_000, 3);
        let rows = 0..5_000;
        drifting.relevance = rows.clone().map(|i| 1.0 - i as f32 / 5_000.0).collect();
        drifting.last_access = rows.collect();
        assert_eq!(of(&drifting, 3), None);
        drifting.last_access.reverse();
        assert!(of(&drifting, 3).is_some_and(|kept| kept.len() < 20));
    }
}
