//! Replies to a request for insights.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// What the tests check of any reply.
#[path = "../../tests/reflection/fitting.rs"]
mod fitting;

fuzz_target!(|bytes: &[u8]| fitting::check(&String::from_utf8_lossy(bytes)));
