//! What fuzz targets call: the parsers of a store's bytes, without a store. There only under `cfg(fuzzing)`, and
//! no part of the API.

use super::files::{self, Files, InMemory};
use super::format::MANIFEST;
use super::journal::{HEADER_BYTES, Place, Replay, Segment, encode, header_of, salvage, seal};
use super::manifest::Manifest;
use std::path::Path;

/// Reads the manifest whose file holds `bytes`. One that is taken must come back from what is written of it.
pub fn manifest(bytes: &[u8]) {
    let dir = Path::new("store");
    let memory = InMemory::new();
    memory.create_dir(dir).expect("it is new");
    let place = |name: &str, bytes: &[u8]| {
        let file = memory.create_new(&dir.join(name)).expect("it is new");
        files::write_all_at(&*file, 0, bytes).expect("in memory");
    };
    place(MANIFEST, bytes);
    match Manifest::read(&memory, dir) {
        Ok(manifest) => {
            manifest.publish(&memory, dir).expect("in memory");
            let again = Manifest::read(&memory, dir).expect("just written");
            assert_eq!(again, manifest);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Reads a journal of one segment, `bytes`, of a store whose embeddings have `embedding_bytes` and whose manifest
/// names the segment's first `named_bytes` as durable. Every record that is taken must be what is written of it, and
/// every byte must be in a record, dropped, or damage; searching damage for what can be saved finds each of
/// those records.
pub fn journal(embedding_bytes: usize, named_bytes: u64, bytes: &[u8]) {
    let segment = Segment {
        path: Path::new("journal.1"),
        number: 1,
        bytes,
    };
    let mut taken = 0;
    let mut end = HEADER_BYTES as u64;
    let mut written = Vec::new();
    let salt = header_of(&segment).map_or(0, |header| header.salt);
    let read = Replay::new(embedding_bytes, 0, named_bytes).read(&segment, None, |record| {
        written.clear();
        encode(&record.body, &mut written).expect("as long as it was");
        let place = Place {
            salt,
            sequence: record.sequence,
            durable: record.durable,
        };
        seal(&mut written, &place);
        let start = end as usize;
        end += record.len_bytes();
        assert_eq!(written, bytes[start..end as usize]);
        taken += 1;
        Ok(())
    });
    match read {
        Ok(outcome) => {
            if let Some(dropped) = &outcome.dropped {
                assert_eq!(dropped.offset, end);
                assert!(!dropped.to_string().is_empty());
                end += dropped.bytes;
            }
            assert_eq!(end, bytes.len() as u64);
        }
        Err(damage) => {
            assert!(damage.offset <= bytes.len() as u64);
            assert!(!damage.to_string().is_empty());
        }
    }
    let found = salvage(&segment, embedding_bytes);
    assert!(found.records.len() >= taken);
    let gaps = found.gaps.iter();
    assert!(
        gaps.clone()
            .all(|gap| gap.offset + gap.bytes <= bytes.len() as u64)
    );
}
