//! Manifests: anything, and bodies with the right checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank::store::fuzzing;
use memorank_fuzz::manifest;

fuzz_target!(|bytes: &[u8]| {
    if let Some(manifest) = manifest(bytes) {
        fuzzing::manifest(&manifest);
    }
});
