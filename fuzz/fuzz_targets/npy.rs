//! Matrices: any `.npy` file beside lines that fit some.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank::import::{Options, fuzzing};
use memorank_fuzz::LINES;

fuzz_target!(|bytes: &[u8]| fuzzing::npy(bytes, LINES, &Options::default()));
