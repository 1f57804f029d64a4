//! Archives of `reverie`: any nodes, and any vectors after the first line break of the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank::import::fuzzing;
use memorank_fuzz::archive;

fuzz_target!(|bytes: &[u8]| {
    let (nodes, embeddings) = archive(bytes);
    fuzzing::reverie(nodes, embeddings);
});
