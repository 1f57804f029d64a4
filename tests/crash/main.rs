//! A store on a file system that loses power, fails and fills up.
//!
//! `MEMORANK_CRASH_IMAGES` sets how many file systems after a power cut are looked at (10,000), and
//! `MEMORANK_CRASH_WORKLOADS` how many times as many workloads meet faults (1).

mod driver;
mod faults;
mod random;
mod sim;
mod workload;

use random::Random;
use sim::{Crashes, Survivors};
use std::sync::atomic::{AtomicUsize, Ordering};
use workload::Workload;
use workload::check::{Found, check};

/// A number from the environment.
fn setting(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(value) => value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value} is no number")),
        Err(_) => default,
    }
}

/// Calls `work` with each of 0..`count`, on two threads.
fn in_parallel(count: usize, work: impl Fn(u64) + Sync) {
    let next = AtomicUsize::new(0);
    let one = || loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        if at >= count {
            break;
        }
        work(at as u64);
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(one);
        one();
        other.join().expect("a check failed above");
    });
}

/// Says where a check was when it failed.
struct Place<'a> {
    workload: &'a Workload,
    seed: u64,
    at: usize,
    survivors: Survivors,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Place {
                workload,
                seed,
                at,
                survivors,
            } = self;
            eprintln!(
                "{}workload {seed}, power cut after {at} changes, {survivors:?} survive",
                workload.describe(*at)
            );
        }
    }
}

const IMAGES_EACH: usize = 250;

#[test]
fn a_power_cut_leaves_a_prefix_with_all_that_was_promised() {
    let images = setting("MEMORANK_CRASH_IMAGES", 10_000);
    let counts = [const { AtomicUsize::new(0) }; 3];
    let changes = AtomicUsize::new(0);
    let workloads = images.div_ceil(IMAGES_EACH);
    in_parallel(workloads, |seed| {
        let mut workload = Workload::new(seed);
        let mut random = Random::new(!seed);
        workload.run(3 + random.below(25));
        let log_len = workload.sim.log_len();
        changes.fetch_add(log_len, Ordering::Relaxed);
        let here = IMAGES_EACH.min(images - seed as usize * IMAGES_EACH);
        let first = workload.steps[0].to;
        let mut cut = || first + random.below(log_len + 1 - first);
        let mut cuts: Vec<usize> = (0..here).map(|_| cut()).collect();
        cuts.sort();
        let mut crashes = Crashes::of(&workload.sim);
        for at in cuts {
            crashes.advance(at);
            let survivors = match random.chance(30) {
                true => random.pick(&Survivors::EXTREMES),
                false => Survivors::Some(random.next()),
            };
            let place = Place {
                workload: &workload,
                seed,
                at,
                survivors,
            };
            let image = crashes.image(survivors);
            let found = check(&image, &workload.setup, &workload.allowed(at), &mut random);
            counts[found as usize].fetch_add(1, Ordering::Relaxed);
            drop(place);
        }
    });
    let count = |found: Found| counts[found as usize].load(Ordering::Relaxed);
    println!(
        "{images} crash images of {workloads} workloads with {} changes: {} as promised, {} with more, {} before the creation",
        changes.into_inner(),
        count(Found::Least),
        count(Found::More),
        count(Found::NoStore),
    );
}
