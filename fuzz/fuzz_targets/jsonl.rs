//! Lines: any `.jsonl` file beside a matrix of one or two rows, and as the lines of an export.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank::import::{Options, TimeUnit, fuzzing};
use memorank_fuzz::matrix;

fuzz_target!(|bytes: &[u8]| {
    let Some((&rows, lines)) = bytes.split_first() else {
        return;
    };
    let options = Options {
        time_unit: Some(TimeUnit::Seconds),
        ..Options::default()
    };
    match rows % 3 {
        0 => fuzzing::memories(lines),
        rows => fuzzing::npy(matrix(rows), lines, &options),
    }
});
