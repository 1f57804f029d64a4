//! Manifests: anything, and bodies with the right checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank_fuzz::{example, place, use_all};
use std::path::PathBuf;
use std::sync::LazyLock;
use xxhash_rust::xxh3::xxh3_64;

static EXAMPLE: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(example);

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, rest)) = bytes.split_first() else {
        return;
    };
    let manifest = match how % 2 {
        0 => rest.to_vec(),
        _ => {
            let head = format!("memorank store 1 {:016x} {}\n", xxh3_64(rest), rest.len());
            [head.as_bytes(), rest].concat()
        }
    };
    let mut files = EXAMPLE.clone();
    for (path, bytes) in &mut files {
        if path.ends_with("manifest") {
            bytes.clone_from(&manifest);
        }
    }
    use_all(&place(&files));
});
