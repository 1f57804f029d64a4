//! Taking turns with a clock.

use memorank::Par;
use memorank::kernel::Kernel;
use memorank::scoring::{Columns, Preset, Query, Ranking, Workspace, rank_into};
use memorank::yardstick::read_columns;
use std::hint::black_box;
use std::time::Instant;

/// Something measured, with its result kept from the optimizer.
pub type Work<'a> = Box<dyn FnMut() + 'a>;

/// `work` for [`interleaved`].
pub fn turn<'a, T>(mut work: impl FnMut() -> T + 'a) -> Work<'a> {
    Box::new(move || {
        black_box(work());
    })
}

/// The plain read of some columns, and their ranking with a workspace of its own that is reused.
pub fn read_and_rank<'a>(
    columns: &'a [Columns<'a>],
    query: &'a Query<'a>,
    par: Par,
    kernel: Kernel,
) -> Vec<Work<'a>> {
    let scoring = Preset::paper().scoring;
    let (mut workspace, mut ranking) = (Workspace::with_kernel(kernel), Ranking::default());
    vec![
        turn(move || read_columns(columns, par, Kernel::best())),
        turn(move || rank_into(columns, query, &scoring, par, &mut workspace, &mut ranking)),
    ]
}

/// Seconds of a single time, by work and round.
pub struct Times(Vec<Vec<f64>>);

impl Times {
    /// The median of a work's rounds.
    pub fn seconds(&self, work: usize) -> f64 {
        median(self.0[work].clone())
    }

    /// How many times as long `a` took as `b`: the median of the rounds' ratios. A machine that slows
    /// down for some rounds slows both.
    pub fn ratio(&self, a: usize, b: usize) -> f64 {
        let rounds = self.0[a].iter().zip(&self.0[b]);
        median(rounds.map(|(a, b)| a / b).collect())
    }
}

/// Every work `repeats` times per round, one work after the other, so that all of them see the same
/// machine. A round before the first warms up.
pub fn interleaved(rounds: usize, repeats: usize, mut works: Vec<Work<'_>>) -> Times {
    let mut seconds = vec![Vec::with_capacity(rounds); works.len()];
    for round in 0..=rounds {
        for (work, seconds) in works.iter_mut().zip(&mut seconds) {
            let turn = timed(|| (0..repeats).for_each(|_| work()));
            if round > 0 {
                seconds.push(turn / repeats as f64);
            }
        }
    }
    Times(seconds)
}

pub fn median(seconds: Vec<f64>) -> f64 {
    quantile(seconds, 0.5)
}

/// What `share` of them are below.
pub fn quantile(mut seconds: Vec<f64>, share: f64) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[(seconds.len() as f64 * share) as usize]
}

/// Seconds.
pub fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let started = Instant::now();
    black_box(work());
    started.elapsed().as_secs_f64()
}
