//! A store on files that fail: an error or success for every caller, and nothing lost that was promised, neither in
//! this boot nor after a power cut.

use crate::on_panic::OnPanic;
use crate::random::Random;
use crate::setting::setting;
use crate::sim::{Failure, Fault, Kind};
use crate::workload::Workload;
use crate::{cut_power, in_parallel};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Operations of a workload, from its creation on.
const OPERATIONS: usize = 12;

/// `default` times MEMORANK_CRASH_WORKLOADS.
fn workloads(default: usize) -> usize {
    default * setting("MEMORANK_CRASH_WORKLOADS", 1)
}

/// What happens to the workload of a seed.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    None,
    Fault(Fault),
    /// The disk is full at so many bytes.
    Full(u64),
}

/// The workload of a seed, in trouble from its start.
fn run(seed: u64, trouble: Trouble) -> Workload {
    let _running = OnPanic(|| format!("workload {seed}, {trouble:?}"));
    let mut workload = Workload::new(seed);
    workload.sim.heal();
    match trouble {
        Trouble::None => {}
        Trouble::Fault(fault) => workload.sim.inject(fault),
        Trouble::Full(bytes) => workload.sim.fill_up_at(bytes),
    }
    workload.faulty = !matches!(trouble, Trouble::None);
    workload.run(OPERATIONS);
    workload
}

/// Nothing fails any more. The store must open in the same boot, take more, and keep it through power cuts.
fn recover(mut workload: Workload, seed: u64, trouble: Trouble, cuts: usize) {
    let name = || format!("workload {seed}, {trouble:?}");
    let recovering = OnPanic(name);
    workload.sim.heal();
    workload.faulty = false;
    let mut random = Random::new(seed ^ workload.sim.log_len() as u64);
    let (healed, failures) = (workload.sim.log_len(), workload.failures);
    if matches!(trouble, Trouble::Full(_)) && workload.is_open() {
        // That was not for ever: there is no need to open it again.
        workload.step();
        assert_eq!(workload.failures, failures, "there is room again");
    }
    workload.let_go();
    workload.run(4);
    assert_eq!(workload.failures, failures, "all is well again");
    drop(recovering);
    let log_len = workload.sim.log_len();
    let cuts = (0..cuts).map(|n| match n % 2 {
        0 => log_len,
        _ => healed + random.below(log_len + 1 - healed),
    });
    let cuts = cuts.collect();
    cut_power(&workload, &name, cuts, &mut random, |_| {});
}

#[test]
fn a_sync_that_failed_once_takes_nothing_that_is_promised_afterwards() {
    const CUTS: usize = 6;
    let (syncs, failures, cuts) = Default::default();
    let add = |to: &AtomicUsize, n: usize| _ = to.fetch_add(n, Ordering::Relaxed);
    in_parallel(workloads(6), |seed| {
        for kinds in [&[Kind::Sync] as &[Kind], &[Kind::SyncDir]] {
            for nth in 1..=run(seed, Trouble::None).sim.count(kinds) {
                let trouble = Trouble::Fault(Fault {
                    kinds,
                    nth,
                    how: Failure::Io,
                    for_ever: false,
                });
                let workload = run(seed, trouble);
                add(&syncs, 1);
                add(&failures, workload.failures);
                add(&cuts, CUTS);
                recover(workload, seed, trouble, CUTS);
            }
        }
    });
    println!(
        "{syncs:?} syncs failed, with {failures:?} operations; {cuts:?} power cuts after more was appended"
    );
}

/// Every operation of `kinds` fails in turn.
fn sweep(name: &str, seeds: usize, kinds: &'static [Kind], how: Failure) {
    let (runs, failures) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let seeds = workloads(seeds);
    in_parallel(seeds * 2, |n| {
        let (seed, for_ever) = (100_000 + n / 2, n % 2 == 1);
        for nth in 1.. {
            let trouble = Trouble::Fault(Fault {
                kinds,
                nth,
                how,
                for_ever,
            });
            let workload = run(seed, trouble);
            failures.fetch_add(workload.failures, Ordering::Relaxed);
            if matches!(how, Failure::Interrupted | Failure::Short) {
                assert_eq!(workload.failures, 0, "nobody sees it: seed {seed}, {nth}");
            }
            if workload.sim.heal() == 0 {
                break;
            }
            recover(workload, seed, trouble, 2);
            runs.fetch_add(1, Ordering::Relaxed);
        }
    });
    println!(
        "{name}: {runs:?} faults, of {seeds} workloads, once and for ever; {failures:?} operations failed"
    );
}

#[test]
fn every_operation_may_fail_with_eio() {
    sweep("EIO of any operation", 1, &Kind::ALL, Failure::Io);
}

#[test]
fn every_change_may_fail_with_enospc() {
    const CHANGES: &[Kind] = &[
        Kind::Create,
        Kind::CreateDir,
        Kind::Lock,
        Kind::Rename,
        Kind::Write,
        Kind::SetLen,
        Kind::Sync,
        Kind::SyncDir,
    ];
    sweep("ENOSPC of any change", 2, CHANGES, Failure::Full);
}

#[test]
fn interruptions_and_short_calls_are_not_seen() {
    const CALLS: &[Kind] = &[Kind::Read, Kind::Write];
    sweep("EINTR of reads and writes", 1, CALLS, Failure::Interrupted);
    sweep("short reads and writes", 1, CALLS, Failure::Short);
}

#[test]
fn a_full_disk_takes_nothing_and_is_not_for_ever() {
    let failed = Mutex::new(BTreeMap::<&str, usize>::new());
    let limits = AtomicUsize::new(0);
    in_parallel(workloads(4), |seed| {
        let seed = 200_000 + seed;
        let full = run(seed, Trouble::None).sim.used();
        for limit in (0..=full + 400).step_by(full as usize / 150) {
            let trouble = Trouble::Full(limit);
            let workload = run(seed, trouble);
            for step in workload.steps.iter().filter(|step| step.failed) {
                *failed.lock().unwrap().entry(step.op.name()).or_default() += 1;
            }
            limits.fetch_add(1, Ordering::Relaxed);
            recover(workload, seed, trouble, 2);
        }
    });
    println!(
        "disk full at {limits:?} sizes; failed: {:?}",
        failed.into_inner().unwrap()
    );
}
