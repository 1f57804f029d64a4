//! Stores with a manifest or a journal as the targets of those make them, read and written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank_fuzz::{example_with, journal, manifest, place, use_all};

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, rest)) = bytes.split_first() else {
        return;
    };
    let changed = match which % 2 {
        0 => manifest(rest).map(|bytes| example_with("manifest", bytes)),
        _ => journal(rest).map(|bytes| example_with("journal.", bytes)),
    };
    if let Some(files) = changed {
        use_all(&place(&files));
    }
});
