//! Short sequences of operations and power cuts: a store goes on with what each left.

use crate::in_parallel;
use crate::on_panic::OnPanic;
use crate::random::Random;
use crate::setting::setting;
use crate::workload::sequence;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn sequences_of_operations_and_power_cuts_lose_nothing_that_was_promised() {
    let sequences = setting("MEMORANK_CRASH_SEQUENCES", 2_000);
    let [operations, power_cuts] = [const { AtomicUsize::new(0) }; 2];
    in_parallel(sequences, |seed| {
        let _running = OnPanic(|| format!("sequence {seed}"));
        let mut random = Random::new(seed);
        let length = random.below(20);
        let [setup, last] = [random.next(), random.next()].map(Random::new);
        let choices = (0..length).map(|_| Random::new(random.next()));
        let made = sequence::run(setup, choices, last);
        operations.fetch_add(made.operations, Ordering::Relaxed);
        power_cuts.fetch_add(made.power_cuts, Ordering::Relaxed);
    });
    println!("{sequences} sequences of {operations:?} operations and {power_cuts:?} power cuts");
}

/// What the fuzzer starts from, and what it found.
#[test]
fn seeds_of_the_fuzz_target_lose_nothing_that_was_promised() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/operations");
    let seeds: Vec<_> = fs::read_dir(dir).expect("they are there").collect();
    assert!(!seeds.is_empty());
    for seed in seeds {
        let path = seed.expect("it can be read").path();
        let _running = OnPanic(|| path.display().to_string());
        let made = sequence::run_bytes(&fs::read(&path).expect("it can be read"));
        println!("{}: {made:?}", path.display());
    }
}
