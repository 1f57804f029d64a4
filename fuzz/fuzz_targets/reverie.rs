//! Archives of `reverie`: any nodes, and any vectors after the first line break of the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank::import::{Options, reverie};
use memorank_fuzz::import;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |&b| b == b'\n');
    let [nodes, embeddings] = [parts.next(), parts.next()].map(Option::unwrap_or_default);
    let files = [("nodes.json", nodes), ("embeddings.json", embeddings)];
    import(&files, |folder, store| {
        reverie(folder, store, &Options::default(), &mut |_, _| ()).err()
    });
});
