//! How rankings are compared, and what is told about a folder of goldens.

use crate::case::TOLERANCE;
use crate::common::say;
use memorank::kernel::Kernel;
use memorank::scoring::{Component, Ranking};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Two candidates may stand in another order than in the golden only if their golden scores differ,
/// and by less than this: each of the two scores may be off by [`TOLERANCE`].
const GAP: f64 = 2.0 * TOLERANCE;

/// A candidate and its numbers: relevance, recency, importance, in this order.
#[derive(Clone, Copy)]
pub struct Scored {
    pub row: usize,
    pub raw: [f64; 3],
    pub normalized: [f64; 3],
    pub score: f64,
}

impl Scored {
    /// The hits of a ranking, best first.
    pub fn all(ranking: &Ranking) -> Vec<Scored> {
        let scored = ranking.hits.iter().map(|hit| {
            let of = |part: fn(&Component) -> f64| {
                [&hit.relevance, &hit.recency, &hit.importance].map(part)
            };
            Scored {
                row: hit.row,
                raw: of(|c| c.raw),
                normalized: of(|c| c.normalized),
                score: hit.score,
            }
        });
        scored.collect()
    }
}

/// The largest differences seen: raw components, normalised ones, scores.
#[derive(Clone, Copy, Default)]
struct Differences([f64; 3]);

impl Differences {
    fn take(&mut self, other: [f64; 3]) {
        for (worst, new) in self.0.iter_mut().zip(other) {
            *worst = larger(*worst, new);
        }
    }
}

/// The larger number; NaN if one is none.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

fn farthest(a: [f64; 3], b: [f64; 3]) -> f64 {
    let differences = a.into_iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, larger)
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [raw, normalized, score] = self.0;
        write!(
            f,
            "raw {raw:.1e}, normalised {normalized:.1e}, score {score:.1e}"
        )
    }
}

/// What was compared, and what was not as it should be.
pub struct Report {
    pub kernels: Vec<Kernel>,
    pub questions: usize,
    /// Candidates of f32 columns compared, over all questions.
    pub candidates: usize,
    at: String,
    worst: BTreeMap<&'static str, Differences>,
    /// Pairs in another order than in the reference, across a gap below [`GAP`].
    swaps: BTreeMap<&'static str, usize>,
    faults: Vec<String>,
}

impl Report {
    pub fn new(kernels: Vec<Kernel>) -> Report {
        Report {
            kernels,
            questions: 0,
            candidates: 0,
            at: String::new(),
            worst: BTreeMap::new(),
            swaps: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    /// What is looked at from here on.
    pub fn at(&mut self, place: String) {
        self.at = place;
    }

    pub fn expect(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(format!("{}: {}", self.at, fault()));
        }
    }

    /// Every component and score of `ours` is within `tolerance` of the other's; both have the same rows.
    pub fn agree(&mut self, what: &'static str, ours: &[Scored], other: &[Scored], tolerance: f64) {
        let by_row: HashMap<usize, &Scored> = other.iter().map(|c| (c.row, c)).collect();
        let mut worst = Differences::default();
        let mut missing = ours.len().abs_diff(other.len());
        for a in ours {
            let Some(b) = by_row.get(&a.row) else {
                missing += 1;
                continue;
            };
            worst.take([
                farthest(a.raw, b.raw),
                farthest(a.normalized, b.normalized),
                (a.score - b.score).abs(),
            ]);
        }
        self.expect(missing == 0, || format!("{what}: {missing} rows differ"));
        let within = worst.0.iter().all(|&difference| difference <= tolerance);
        self.expect(within, || format!("{what}: {worst}"));
        self.worst.entry(what).or_default().take(worst.0);
    }

    /// `ours`, best first, is the order of `other`, whose candidates are listed in the order of ties:
    /// two candidates stand the other way round only if 0 < difference of their scores there < [`GAP`].
    pub fn ordered(&mut self, what: &'static str, ours: &[Scored], other: &[Scored]) {
        let order = best_first(other);
        let places: HashMap<usize, usize> = order
            .iter()
            .enumerate()
            .map(|(place, &row)| (row, place))
            .collect();
        let scores: HashMap<usize, f64> = other.iter().map(|c| (c.row, c.score)).collect();
        let ours: Vec<(usize, f64)> = ours
            .iter()
            .filter_map(|c| Some((*places.get(&c.row)?, scores[&c.row])))
            .collect();
        let (mut swaps, mut wrong) = (0, 0);
        for (i, (place, score)) in ours.iter().enumerate() {
            for (earlier, earlier_score) in &ours[..i] {
                if earlier > place {
                    let gap = score - earlier_score;
                    if gap > 0.0 && gap < GAP {
                        swaps += 1;
                    } else {
                        wrong += 1;
                    }
                }
            }
        }
        self.expect(wrong == 0, || {
            format!("{what}: {wrong} pairs are in another order")
        });
        *self.swaps.entry(what).or_default() += swaps;
    }

    /// The golden's own order is that of its scores, ties as listed: it is read as it was written.
    pub fn reads_order(&mut self, candidates: &[Scored], order: &[usize], k: usize) {
        let best = best_first(candidates);
        self.expect(best[..k] == *order, || {
            "the golden's order is not that of its scores".into()
        });
    }

    /// Says one line per comparison.
    ///
    /// # Panics
    /// If anything was not as expected: with all of it.
    pub fn finish(self, folder: &str, files: usize) {
        say(format_args!(
            "{folder}: {files} files, {} questions, {} candidates, {} kernels",
            self.questions,
            self.candidates,
            self.kernels.len()
        ));
        for (what, worst) in &self.worst {
            let swaps = match self.swaps.get(what) {
                Some(swaps) => format!("; {swaps} pairs swapped across gaps below {GAP:.0e}"),
                None => String::new(),
            };
            say(format_args!(
                "{folder}: {what}: worst differences: {worst}{swaps}"
            ));
        }
        assert!(
            self.faults.is_empty(),
            "{folder}: {} faults:\n{}",
            self.faults.len(),
            self.faults.join("\n")
        );
    }
}

/// Rows by descending score; equal scores as listed.
fn best_first(candidates: &[Scored]) -> Vec<usize> {
    let mut sorted: Vec<&Scored> = candidates.iter().collect();
    sorted.sort_by(|a, b| b.score.total_cmp(&a.score));
    sorted.into_iter().map(|c| c.row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(scores: &[(usize, f64)]) -> Vec<Scored> {
        let candidate = |&(row, score): &(usize, f64)| Scored {
            row,
            raw: [0.0; 3],
            normalized: [0.0; 3],
            score,
        };
        scores.iter().map(candidate).collect()
    }

    fn faults(check: impl FnOnce(&mut Report)) -> usize {
        let mut report = Report::new(Vec::new());
        check(&mut report);
        report.faults.len()
    }

    #[test]
    fn orders_may_differ_across_small_gaps_only_and_never_at_ties() {
        let golden = scored(&[(0, 1.0), (1, 1.0 + 1e-5), (2, 1.0), (3, 0.5)]);
        let ordered = |rows: [usize; 4]| {
            let ours = scored(&rows.map(|row| (row, 0.0)));
            faults(|report| report.ordered("ours", &ours, &golden))
        };
        assert_eq!(ordered([1, 0, 2, 3]), 0, "the golden's own order");
        assert_eq!(ordered([0, 1, 2, 3]), 0, "a small gap");
        assert_eq!(ordered([0, 2, 1, 3]), 0, "two small gaps");
        assert_eq!(ordered([1, 2, 0, 3]), 1, "a tie the other way round");
        assert_eq!(ordered([1, 0, 3, 2]), 1, "a large gap");
    }

    #[test]
    fn differences_that_are_no_numbers_are_faults() {
        let (one, nan) = (scored(&[(0, 1.0)]), scored(&[(0, f64::NAN)]));
        let agree = |a: &[Scored], b: &[Scored]| faults(|report| report.agree("", a, b, 1e-5));
        assert_eq!(agree(&one, &one), 0);
        assert_eq!(agree(&one, &nan), 1);
        assert_eq!(agree(&one, &scored(&[(0, 1.0 + 1e-4)])), 1);
        assert_eq!(agree(&one, &scored(&[(1, 1.0)])), 1);
        assert_eq!(agree(&one, &[]), 1);
    }
}
