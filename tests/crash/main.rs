//! A store on a file system that loses power, fails and fills up.
//!
//! `MEMORANK_CRASH_IMAGES` sets how many file systems after a power cut are looked at (10,000),
//! `MEMORANK_CRASH_SEQUENCES` how many short sequences of operations and power cuts are run (2,000), and
//! `MEMORANK_CRASH_WORKLOADS` how many times as many workloads meet faults (1). A check that fails names its
//! workload; `MEMORANK_CRASH_SEED=17 MEMORANK_CRASH_IMAGES=250` looks at that of workload 17 alone.

mod driver;
mod faults;
#[path = "../common/on_panic.rs"]
mod on_panic;
#[path = "../common/owned.rs"]
mod owned;
mod random;
mod sequences;
#[path = "../common/setting.rs"]
mod setting;
mod sim;
mod workload;

use on_panic::OnPanic;
use random::Random;
use setting::setting;
use sim::{Crashes, Survivors};
use std::sync::atomic::{AtomicUsize, Ordering};
use workload::Workload;
use workload::check::{Found, check};

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

/// Looks at what power cuts leave of a workload at some places of its log. `name` says which workload it is.
fn cut_power(
    workload: &Workload,
    name: &dyn Fn() -> String,
    mut cuts: Vec<usize>,
    random: &mut Random,
    mut count: impl FnMut(Found),
) {
    cuts.sort();
    let mut crashes = Crashes::of(&workload.sim);
    for at in cuts {
        crashes.advance(at);
        let survivors = match random.chance(30) {
            true => random.pick(&Survivors::EXTREMES),
            false => Survivors::Some(random.next()),
        };
        let _place = OnPanic(|| {
            let (name, before) = (name(), workload.describe(at));
            format!("{before}{name}, power cut after {at} changes, {survivors:?} survive")
        });
        let image = crashes.image(survivors);
        count(check(
            &image,
            &workload.setup,
            &workload.allowed(at),
            random,
        ));
    }
}

const IMAGES_EACH: usize = 250;

#[test]
fn a_power_cut_leaves_a_prefix_with_all_that_was_promised() {
    let images = setting("MEMORANK_CRASH_IMAGES", 10_000);
    let first_seed = setting("MEMORANK_CRASH_SEED", 0) as u64;
    let counts = [const { AtomicUsize::new(0) }; 3];
    let changes = AtomicUsize::new(0);
    let workloads = images.div_ceil(IMAGES_EACH);
    in_parallel(workloads, |n| {
        let seed = first_seed + n;
        let name = || format!("workload {seed}");
        let running = OnPanic(name);
        let mut workload = Workload::new(seed);
        let mut random = Random::new(!seed);
        workload.run(3 + random.below(25));
        drop(running);
        let log_len = workload.sim.log_len();
        changes.fetch_add(log_len, Ordering::Relaxed);
        let [nothing, creation] = [0, 1].map(|step| workload.steps[step].to);
        let cuts = (0..IMAGES_EACH.min(images - n as usize * IMAGES_EACH)).map(|_| {
            let from = if random.chance(5) { nothing } else { creation };
            from + random.below(log_len + 1 - from)
        });
        let cuts = cuts.collect();
        cut_power(&workload, &name, cuts, &mut random, |found| {
            counts[found as usize].fetch_add(1, Ordering::Relaxed);
        });
    });
    let count = |found: Found| counts[found as usize].load(Ordering::Relaxed);
    println!(
        "{images} crash images of {workloads} workloads with {} changes: {} hold what was promised, {} more, \
         {} are from before the creation",
        changes.into_inner(),
        count(Found::Least),
        count(Found::More),
        count(Found::NoStore),
    );
}
