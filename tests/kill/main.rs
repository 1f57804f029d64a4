//! Processes that are killed, real ones. A child is this program again, told by the environment what to do.
//!
//! `MEMORANK_KILLS` sets how many writers are killed at random (50).

mod at_random;
mod child;
// The store as the crash tests call it, and what it should hold.
#[allow(dead_code, reason = "those tests use the rest")]
#[path = "../crash/driver.rs"]
mod driver;
mod history;
#[path = "../crash/random.rs"]
mod random;
#[path = "../crash/workload"]
mod workload {
    #[allow(dead_code, reason = "those tests use the rest")]
    pub mod model;
}

/// A number from the environment.
fn setting(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(value) => value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value} is no number")),
        Err(_) => default,
    }
}

/// Says, if a check fails while it lives, what was being checked.
struct OnPanic(String);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}
