//! Journals: anything after the header, and records with the right checksum whose bodies are anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank::store::fuzzing;
use memorank_fuzz::{EMBEDDING_BYTES, journal};

fuzz_target!(|bytes: &[u8]| {
    if let Some(segment) = journal(bytes) {
        // Now and then the manifest says that some of it was durable.
        let named = u64::from(bytes[0] / 2) * 8;
        fuzzing::journal(EMBEDDING_BYTES, named, &segment);
    }
});
