//! Matrices: any `.npy` file beside lines that fit some.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank::import::{Options, npy};
use memorank_fuzz::import;

fuzz_target!(|bytes: &[u8]| {
    let lines =
        "{\"text\":\"a\",\"created\":\"2023-02-13T00:00:00Z\",\"importance\":1}\n".repeat(3);
    let files: [(&str, &[u8]); 2] = [("m.npy", bytes), ("m.jsonl", lines.as_bytes())];
    import(&files, |folder, store| {
        npy(
            &folder.join("m.npy"),
            &folder.join("m.jsonl"),
            store,
            &Options::default(),
            &mut |_, _| (),
        )
        .err()
    });
});
