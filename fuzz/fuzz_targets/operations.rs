//! Operations on a store whose machine loses power: what kind of store, then eight bytes for each operation or power
//! cut, and the last eight for the last one. A change of one byte changes one operation.
#![no_main]

// The simulated machine and the model are those of the tests, which use more of them.
#[allow(dead_code)]
#[path = "../../tests/crash/driver.rs"]
mod driver;
#[path = "../../tests/common/owned.rs"]
mod owned;
#[path = "../../tests/crash/random.rs"]
mod random;
#[allow(dead_code, unused_imports)]
#[path = "../../tests/crash/sim.rs"]
mod sim;
#[allow(dead_code)]
#[path = "../../tests/crash/workload.rs"]
mod workload;

use libfuzzer_sys::fuzz_target;
use random::Random;
use workload::sequence;

const SETUP_BYTES: usize = 6;
const CHOICE_BYTES: usize = 8;
/// More would be slow, and say nothing new.
const MOST: usize = 40;

fuzz_target!(|bytes: &[u8]| {
    let (setup, rest) = bytes.split_at(bytes.len().min(SETUP_BYTES));
    let (choices, last) = rest.split_at(rest.len().saturating_sub(CHOICE_BYTES));
    let choices = choices.chunks(CHOICE_BYTES).take(MOST).map(Random::given);
    sequence::run(Random::given(setup), choices, Random::given(last));
});
