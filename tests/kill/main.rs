//! Processes that are killed, and disks that are full: real ones. A child is this program again, told by the
//! environment what to do.
//!
//! `MEMORANK_KILLS` sets how many writers are killed at random (50). `MEMORANK_STRACE_STEP` sets at which of the
//! system calls that change something a process is killed: every 10th, the 10th first, or that numbered
//! `MEMORANK_STRACE_OFFSET`; 1 is every one. Where strace does not work or no file system can be mounted, it is said;
//! with `MEMORANK_REQUIRE_STRACE` or `MEMORANK_REQUIRE_TMPFS` set it is a failure.

mod at_random;
mod child;
#[path = "../common/mod.rs"]
mod common;
// The store as the crash tests call it, and what it should hold.
#[allow(dead_code, reason = "those tests use the rest")]
#[path = "../crash/driver.rs"]
mod driver;
mod full_disk;
mod history;
#[path = "../common/on_panic.rs"]
mod on_panic;
#[path = "../common/owned.rs"]
mod owned;
#[allow(dead_code, reason = "those tests use the rest")]
#[path = "../crash/random.rs"]
mod random;
#[path = "../common/setting.rs"]
mod setting;
mod system_calls;
#[path = "../crash/workload"]
mod workload {
    #[allow(dead_code, reason = "those tests use the rest")]
    pub mod model;
}

/// Says that a test does not run, or fails if `required` is set.
fn skip(required: &str, why: &str) {
    assert!(std::env::var_os(required).is_none(), "{required}: {why}");
    common::say(format_args!("skipped: {why}"));
}
