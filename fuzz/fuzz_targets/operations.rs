//! Operations on a store whose machine loses power.
#![no_main]

use crash::{driver, random, sim, workload};
use libfuzzer_sys::fuzz_target;

/// The simulated machine and the model of the tests, which use more of them.
#[allow(dead_code, unused_imports)]
#[path = "../../tests/crash"]
mod crash {
    pub mod driver;
    pub mod random;
    pub mod sim;
    pub mod workload;
}
#[path = "../../tests/common/on_panic.rs"]
mod on_panic;
#[path = "../../tests/common/owned.rs"]
mod owned;

fuzz_target!(|bytes: &[u8]| {
    workload::sequence::run_bytes(bytes);
});
