//! Files that were cut or damaged are errors, and leave no store.

use crate::example::*;
use memorank::export::{ExportError, export};
use memorank::import::ImportError;
use memorank::kernel::Dtype;
use memorank::store::{Agent, Kind, ReadError, Reference, Snapshot, Store, WriteError};
use std::fs;

/// A small store with something of everything, and its export.
pub fn exported(folder: &Folder) -> Snapshot {
    let store = folder.create("store", 2, Dtype::F16);
    append(
        &store,
        &[
            Owned {
                key: Some("k0".into()),
                payload: b"{\"a\": 1}".to_vec(),
                evidence: vec![Reference::Missing("gone".into())],
                ..plain("zero", Some(&[0.5, -0.25]))
            },
            plain("deleted", None),
            Owned {
                kind: Kind::REFLECTION,
                payload: b"\xff".to_vec(),
                evidence: vec![Reference::Id(0), Reference::Id(1)],
                expiry: Some(i64::MIN),
                ..plain("two", None)
            },
        ],
    );
    store.delete(&[1]).unwrap();
    store
        .touch(Agent::OWN, &[0], 1_676_246_400_000_001)
        .unwrap();
    store.touch(Agent(7), &[0, 2], i64::MAX).unwrap();
    for (id, importance) in [(0, 2.5), (2, 3.5)] {
        (store.set_importance(Agent(5), &[id], Some(importance))).unwrap();
    }
    let snapshot = store.snapshot();
    folder.export(&snapshot, "export");
    snapshot
}

/// The import of changed files fails, or gives what was exported.
fn import(folder: &Folder, exported: &Snapshot, what: &str) -> Result<(), ImportError> {
    let outcome = folder.import("changed", "imported");
    if outcome.is_ok() {
        assert_same(exported, &folder.open("imported"));
        fs::remove_dir_all(folder.path("imported")).unwrap();
    }
    let told = outcome.map(|_| ());
    if let Err(error) = &told {
        // Whatever it is, it says where.
        let (text, place) = (error.to_string(), folder.path("changed"));
        assert!(text.contains(place.to_str().unwrap()), "{what}: {text}");
    }
    told
}

fn copy(folder: &Folder) {
    fs::create_dir(folder.path("changed")).unwrap();
    for file in FILES {
        fs::copy(
            folder.path("export").join(file),
            folder.path("changed").join(file),
        )
        .unwrap();
    }
}

#[test]
fn every_cut_of_every_file_is_an_error() {
    let folder = Folder::new();
    let snapshot = exported(&folder);
    copy(&folder);
    for (file, bytes) in FILES.iter().zip(files(&folder.path("export"))) {
        let path = folder.path("changed").join(file);
        for cut in 0..bytes.len() {
            let what = format!("{file} cut to {cut} bytes");
            fs::write(&path, &bytes[..cut]).unwrap();
            assert!(import(&folder, &snapshot, &what).is_err(), "{what}");
        }
        let longer = [&bytes[..], b"\n"].concat();
        fs::write(&path, longer).unwrap();
        assert!(import(&folder, &snapshot, file).is_err(), "{file} and more");
        fs::write(&path, bytes).unwrap();
    }
    import(&folder, &snapshot, "as it was").unwrap();
}

#[test]
fn every_flipped_bit_of_the_document_is_an_error() {
    let folder = Folder::new();
    let snapshot = exported(&folder);
    copy(&folder);
    let [_, _, json] = files(&folder.path("export"));
    let path = folder.path("changed").join("store.json");
    for bit in 0..json.len() * 8 {
        let mut json = json.clone();
        json[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &json).unwrap();
        let what = format!("bit {bit}");
        assert!(import(&folder, &snapshot, &what).is_err(), "{what}");
    }
}

#[test]
fn flipped_bits_of_the_other_files_are_errors() {
    let folder = Folder::new();
    let snapshot = exported(&folder);
    copy(&folder);
    for (file, bytes) in FILES[..2].iter().zip(files(&folder.path("export"))) {
        let path = folder.path("changed").join(file);
        // All bits of the bytes in turn, one bit of each.
        for at in 0..bytes.len() {
            let bit = at * 8 + at % 8;
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            let what = format!("{file}, bit {bit}");
            assert!(import(&folder, &snapshot, &what).is_err(), "{what}");
        }
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_file_that_is_missing_or_a_folder_is_told_by_name() {
    let folder = Folder::new();
    let snapshot = exported(&folder);
    for file in FILES {
        copy(&folder);
        let path = folder.path("changed").join(file);
        fs::remove_file(&path).unwrap();
        let error = import(&folder, &snapshot, file).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        fs::create_dir(&path).unwrap();
        let error = import(&folder, &snapshot, file).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
        fs::remove_dir_all(folder.path("changed")).unwrap();
    }
}

#[test]
fn nothing_is_written_over() {
    let folder = Folder::new();
    let snapshot = exported(&folder);
    fs::create_dir(folder.path("empty")).unwrap();
    fs::write(folder.path("file"), "x").unwrap();
    for name in ["empty", "file", "export", "store"] {
        let refused = export(&snapshot, folder.path(name));
        let at = folder.path(name);
        assert!(
            matches!(&refused, Err(ExportError::Exists { path }) if *path == at),
            "{refused:?}"
        );
        let refused = folder.import("export", name);
        assert!(
            matches!(&refused, Err(ImportError::DestinationExists { path }) if *path == at),
            "{refused:?}"
        );
    }
    assert!(export(&snapshot, folder.path("no/such")).is_err());
    assert!(export(&snapshot, "/").is_err());
    assert_eq!(fs::read(folder.path("file")).unwrap(), b"x");
    assert_eq!(fs::read_dir(folder.path("empty")).unwrap().count(), 0);
    // Nor is anything left beside them.
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 4);
}

/// A closed store with a flipped bit that still makes a number.
fn damaged(folder: &Folder) -> Store {
    let store = folder.create("store", 1, Dtype::F32);
    append(&store, &[plain("a", Some(&[1.0])), plain("b", None)]);
    store.delete(&[1]).unwrap();
    store.close().unwrap();
    let path = folder.path("store").join("embedding.f32");
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] ^= 1;
    fs::write(&path, bytes).unwrap();
    Store::open(folder.path("store")).unwrap()
}

#[test]
fn damage_is_not_exported() {
    let folder = Folder::new();
    let store = damaged(&folder);
    let refused = export(&store.snapshot(), folder.path("export"));
    assert!(
        matches!(&refused, Err(ExportError::Read(ReadError::Damaged(damage))) if damage.offset == 0),
        "{refused:?}"
    );
    assert!(!folder.path("export").exists());
}

#[test]
fn damage_gets_no_new_checksum_when_the_store_is_compacted() {
    let folder = Folder::new();
    let store = damaged(&folder);
    let refused = store.compact();
    assert!(
        matches!(&refused, Err(WriteError::Damaged(_))),
        "{refused:?}"
    );
    // The handle goes on.
    append(&store, &[plain("c", None)]);
    // A checkpoint would add to a block that is damaged.
    let refused = store.close();
    assert!(
        matches!(&refused, Err(WriteError::Damaged(_))),
        "{refused:?}"
    );
    let found = memorank::store::verify(folder.path("store")).unwrap();
    assert!(!found.is_sound());
    let store = Store::open(folder.path("store")).unwrap();
    assert_eq!(store.snapshot().len(), 2);
}
