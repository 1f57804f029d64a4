//! Imports of files as the targets of each format make them, into a store that is then read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank::import::{Options, TimeUnit, genagents, npy, reverie};
use memorank_fuzz::{LINES, archive, import, matrix};

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, rest)) = bytes.split_first() else {
        return;
    };
    let options = Options {
        time_unit: Some(TimeUnit::Seconds),
        ..Options::default()
    };
    if which % 4 < 2 {
        let (nodes, embeddings) = archive(rest);
        let mut files = vec![("nodes.json", nodes)];
        files.extend(embeddings.map(|bytes| ("embeddings.json", bytes)));
        let read = [reverie, genagents][usize::from(which % 4)];
        return import(&files, |folder, store| {
            read(folder, store, &options, &mut |_, _| ()).err()
        });
    }
    let files = match which % 4 {
        2 => [("m.npy", rest), ("m.jsonl", LINES)],
        _ => [("m.npy", matrix(1 + which / 4 % 2)), ("m.jsonl", rest)],
    };
    import(&files, |folder, store| {
        let [matrix, lines] = ["m.npy", "m.jsonl"].map(|name| folder.join(name));
        npy(&matrix, &lines, store, &options, &mut |_, _| ()).err()
    });
});
