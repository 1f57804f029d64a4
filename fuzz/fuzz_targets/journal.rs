//! Journals: anything after the header, and records with the right checksum whose bodies are anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank_fuzz::{example, place, use_all};
use std::path::PathBuf;
use std::sync::LazyLock;
use xxhash_rust::xxh3::Xxh3;

const HEADER_BYTES: usize = 64;

static EXAMPLE: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(example);

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, mut rest)) = bytes.split_first() else {
        return;
    };
    let mut files = EXAMPLE.clone();
    let journal = files.iter_mut().find(|(path, _)| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("journal."))
    });
    let (_, segment) = journal.expect("the example has one");
    if how % 2 == 0 {
        // What is there, and anything after it or over it.
        let keep = segment.len().min(HEADER_BYTES + usize::from(how) * 4);
        segment.truncate(keep);
        segment.extend_from_slice(rest);
    } else {
        let u64_at =
            |bytes: &[u8], at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (mut sequence, salt) = (u64_at(segment, 32), u64_at(segment, 48));
        segment.truncate(HEADER_BYTES);
        while let [durable, low, high, body @ ..] = rest {
            let len = usize::from(u16::from_le_bytes([*low, *high])).min(body.len());
            let (body, after) = body.split_at(len);
            let durable = match durable {
                0 => 0,
                1 => segment.len() as u64,
                other => u64::from(*other) * 8,
            };
            let mut head = Vec::from(*b"MRJ1");
            head.extend((body.len() as u32).to_le_bytes());
            head.extend(sequence.to_le_bytes());
            head.extend(durable.to_le_bytes());
            let mut sum = Xxh3::with_seed(salt);
            sum.update(&head);
            sum.update(body);
            head.extend(sum.digest().to_le_bytes());
            segment.extend(head);
            segment.extend_from_slice(body);
            sequence += 1;
            rest = after;
        }
    }
    use_all(&place(&files));
});
