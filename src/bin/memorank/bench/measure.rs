//! Plain read, cosine scan and ranking of the same rows, timed in turn, so that all of them see the same
//! machine. What is compared are medians over the rounds.

use super::part::Part;
use super::scan;
use crate::failure::Failure;
use memorank::Par;
use memorank::kernel::{Kernel, Queries, QueryError};
use memorank::scoring::{ColumnsError, Preset, Query, Ranking, Workspace, rank_into};
use memorank::store::Snapshot;
use memorank::yardstick::{bytes_read, read_columns};
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// Growth begins with so many memories.
const SMALLEST: usize = 1_000;
/// Work on fewer bytes is repeated within one timing until it has seen so many, or [`MOST_REPEATS`] times:
/// single passes are too short for the clock.
const TIMED_BYTES: usize = 1 << 20;
const MOST_REPEATS: usize = 64;

/// What was measured.
#[derive(Serialize)]
pub struct Figures {
    /// Of all memories, on one thread and on all.
    pub roofline: Vec<Roofline>,
    /// Of the first memories, more and more, on one thread and then on all.
    pub growth: Vec<Growth>,
}

#[derive(Serialize)]
pub struct Roofline {
    pub threads: usize,
    pub plain_read: Speed,
    pub cosine_scan: Speed,
    pub ranking: Speed,
}

#[derive(Serialize)]
pub struct Growth {
    pub threads: usize,
    pub memories: usize,
    pub plain_read: Speed,
    pub ranking: Speed,
}

/// How fast bytes were read.
#[derive(Clone, Copy, Serialize)]
pub struct Speed {
    /// That one pass reads.
    pub bytes: usize,
    /// Of one pass, median.
    pub seconds: f64,
    pub gb_per_s: f64,
    /// `gb_per_s` as a share of the plain read's: 1 is the plain read itself.
    pub of_plain_read: f64,
}

impl Speed {
    pub fn new(bytes: usize, seconds: f64, plain_read: f64) -> Speed {
        let gb_per_s = bytes as f64 / 1e9 / seconds;
        let of_plain_read = gb_per_s / plain_read;
        Speed {
            bytes,
            seconds,
            gb_per_s,
            of_plain_read,
        }
    }
}

/// What is ranked, and how.
pub struct Subject<'a> {
    pub snapshot: &'a Snapshot,
    pub kernel: Kernel,
    /// At least one. The rounds take turns with them.
    pub queries: &'a [Vec<f32>],
    pub now: i64,
    pub preset: &'a Preset,
}

impl Subject<'_> {
    pub fn query(&self, index: usize) -> Query<'_> {
        let embedding = &self.queries[index % self.queries.len()];
        Query::new(embedding, self.now, self.preset.k)
    }

    /// The first memories.
    pub fn first(&self, memories: usize) -> Result<Part<'_>, ColumnsError> {
        Part::first(self.snapshot, memories)
    }

    /// Measures on one thread and on `all`, calling `told` after every round.
    pub fn measure(
        &self,
        rounds: usize,
        all: Par,
        told: impl Fn(usize),
    ) -> Result<Figures, Failure> {
        let mut lanes = vec![Lane::new(self, Par::Serial)?];
        if all.threads() > 1 {
            lanes.push(Lane::new(self, all)?);
        }
        let units = self
            .queries
            .iter()
            .map(|query| {
                let mut unit = Queries::new(self.snapshot.dim());
                unit.push_unit(query).map(|()| unit)
            })
            .collect::<Result<Vec<_>, QueryError>>()
            .map_err(|e| Failure::Error(e.into()))?;
        for round in 0..rounds {
            for lane in &mut lanes {
                lane.round(self, &self.query(round), &units[round % units.len()])?;
            }
            told(round + 1);
        }
        Ok(Figures {
            roofline: lanes.iter().map(Lane::roofline).collect(),
            growth: lanes.iter().flat_map(Lane::growth).collect(),
        })
    }
}

/// How many of the first memories are ranked: 1,000, 10,000 and so on, and all. A power of ten that is
/// nearly all is left out.
pub fn sizes(memories: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(SMALLEST), |size| size.checked_mul(10));
    powers
        .take_while(|size| size.saturating_add(size / 2) <= memories)
        .chain([memories])
        .collect()
}

/// Everything that is measured on one number of threads.
struct Lane<'a> {
    par: Par,
    workspace: Workspace,
    ranking: Ranking,
    cosines: Vec<f32>,
    sizes: Vec<Size<'a>>,
    /// Seconds of each round, for all memories.
    scans: Vec<f64>,
}

struct Size<'a> {
    part: Part<'a>,
    reads: Vec<f64>,
    rankings: Vec<f64>,
}

impl<'a> Lane<'a> {
    fn new(subject: &'a Subject<'_>, par: Par) -> Result<Lane<'a>, Failure> {
        let snapshot = subject.snapshot;
        let sizes = sizes(snapshot.len()).into_iter().map(|size| {
            Ok(Size {
                part: subject.first(size)?,
                reads: Vec::new(),
                rankings: Vec::new(),
            })
        });
        let sizes: Result<_, ColumnsError> = sizes.collect();
        Ok(Lane {
            par,
            workspace: Workspace::with_kernel(subject.kernel),
            ranking: Ranking::default(),
            cosines: vec![0.0; snapshot.rows()],
            sizes: sizes.map_err(|e| Failure::Error(e.into()))?,
            scans: Vec::new(),
        })
    }

    fn round(
        &mut self,
        subject: &Subject<'_>,
        query: &Query<'_>,
        unit: &Queries,
    ) -> Result<(), Failure> {
        let (par, kernel) = (self.par, subject.kernel);
        for size in &mut self.sizes {
            let columns = &*size.part.columns;
            let query = size.part.asked(query);
            let repeats = (TIMED_BYTES / bytes_read(columns).max(1)).clamp(1, MOST_REPEATS);
            let mut rank = || {
                rank_into(
                    columns,
                    &query,
                    &subject.preset.scoring,
                    par,
                    &mut self.workspace,
                    &mut self.ranking,
                )
            };
            // Untimed: what is timed then finds the caches as a pass over the same bytes leaves them.
            rank()?;
            size.reads.push(timed(repeats, || {
                black_box(read_columns(columns, par, kernel));
            }));
            size.rankings.push(timed(repeats, || {
                // It went well with the same arguments.
                let _ = black_box(rank());
            }));
            if size.part.rows() == self.cosines.len() {
                let vectors = &size.part.vectors;
                self.scans.push(timed(repeats, || {
                    scan::cosines(vectors, unit, kernel, par, &mut self.cosines);
                    black_box(&self.cosines);
                }));
            }
        }
        Ok(())
    }

    fn roofline(&self) -> Roofline {
        let all = &self.sizes[self.sizes.len() - 1];
        let (plain_read, ranking) = all.speeds();
        // Embeddings and inverse norms, without the signals.
        let signals = size_of::<i64>() + size_of::<f32>();
        let bytes = plain_read.bytes - self.cosines.len() * signals;
        Roofline {
            threads: self.par.threads(),
            plain_read,
            cosine_scan: Speed::new(bytes, median(&self.scans), plain_read.gb_per_s),
            ranking,
        }
    }

    fn growth(&self) -> impl Iterator<Item = Growth> {
        self.sizes.iter().map(|size| {
            let (plain_read, ranking) = size.speeds();
            Growth {
                threads: self.par.threads(),
                memories: size.part.memories,
                plain_read,
                ranking,
            }
        })
    }
}

impl Size<'_> {
    /// Of the plain read and of the ranking.
    fn speeds(&self) -> (Speed, Speed) {
        let bytes = bytes_read(&self.part.columns);
        let read = median(&self.reads);
        let roof = bytes as f64 / 1e9 / read;
        (
            Speed::new(bytes, read, roof),
            Speed::new(bytes, median(&self.rankings), roof),
        )
    }
}

/// Seconds of one of so many passes. Never 0: it is divided by.
fn timed(repeats: usize, mut work: impl FnMut()) -> f64 {
    let started = Instant::now();
    for _ in 0..repeats {
        work();
    }
    started.elapsed().as_secs_f64().max(1e-9) / repeats as f64
}

fn median(seconds: &[f64]) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_ten_and_all() {
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(1_000), [1_000]);
        assert_eq!(sizes(1_499), [1_499]);
        assert_eq!(sizes(1_500), [1_000, 1_500]);
        assert_eq!(sizes(100_000), [1_000, 10_000, 100_000]);
        assert_eq!(sizes(2_000_000)[3..], [1_000_000, 2_000_000]);
        assert_eq!(sizes(usize::MAX).len(), 18);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[3.0, 1.0]), 2.0);
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
    }
}
