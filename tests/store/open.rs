//! What does not open, and why.

use crate::example::*;
use memorank::kernel::Dtype;
use memorank::store::{Agent, CreateError, OpenError, OpenOptions, Store, verify};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The error of every way to open, which must be the same.
fn fails(path: &Path) -> OpenError {
    let errors = [
        Store::open(path).err(),
        Store::open_read_only(path).err(),
        Store::open_with(
            path,
            &OpenOptions {
                in_memory: true,
                ..OpenOptions::default()
            },
        )
        .err(),
        Store::open_with(
            path,
            &OpenOptions {
                verify: true,
                ..OpenOptions::default()
            },
        )
        .err(),
    ];
    let texts: Vec<_> = errors
        .iter()
        .map(|e| e.as_ref().unwrap().to_string())
        .collect();
    assert!(texts.iter().all(|t| *t == texts[0]), "{texts:?}");
    errors.into_iter().next().flatten().unwrap()
}

// B45
#[test]
fn what_is_no_store_is_told_apart_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let error = fails(&missing);
    assert!(matches!(error, OpenError::Missing { .. }), "{error}");
    assert!(!missing.exists());

    let png = dir.path().join("picture.png");
    fs::write(&png, b"\x89PNG\r\n\x1a\n and so on").unwrap();
    let error = fails(&png);
    assert!(matches!(error, OpenError::NotADirectory { .. }), "{error}");
    assert_eq!(fs::read(&png).unwrap(), b"\x89PNG\r\n\x1a\n and so on");

    let folder = dir.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("embedding.f16"), b"mine").unwrap();
    let before = bytes_of(&folder);
    let error = fails(&folder);
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
    assert!(bytes_of(&folder) == before);

    let (_dir, path) = filled(3, 2, Dtype::F32);
    let mut manifest = fs::read(path.join("manifest")).unwrap();
    let mut random = Random(1);
    manifest[..64].fill_with(|| random.below(256) as u8);
    fs::write(path.join("manifest"), manifest).unwrap();
    let before = bytes_of(&path);
    let error = fails(&path);
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert!(matches!(verify(&path), Err(OpenError::Foreign { .. })));
    assert!(bytes_of(&path) == before);
}

#[test]
fn a_newer_store_asks_for_a_newer_version() {
    let (_dir, path) = filled(3, 2, Dtype::F32);
    let manifest = fs::read_to_string(path.join("manifest")).unwrap();
    let newer = manifest.replacen("store 1 ", "store 12 ", 1);
    fs::write(path.join("manifest"), newer).unwrap();
    let error = fails(&path);
    assert!(
        matches!(error, OpenError::Newer { found: 12, .. }),
        "{error}"
    );
}

// B45, B47
#[test]
fn every_cut_of_the_manifest_is_an_error() {
    let (_dir, path) = filled(4, 2, Dtype::F32);
    let manifest = fs::read(path.join("manifest")).unwrap();
    let file = fs::File::options()
        .write(true)
        .open(path.join("manifest"))
        .unwrap();
    for len in (0..manifest.len()).rev() {
        file.set_len(len as u64).unwrap();
        let error = Store::open(&path).unwrap_err();
        let OpenError::ManifestCut {
            expected, found, ..
        } = error
        else {
            panic!("{len}: {error}");
        };
        assert!(found == len as u64 && expected > found && expected <= manifest.len() as u64);
    }
    // What follows is zeros (see `room_given_ahead_is_no_part_of_a_store`) or damage.
    for zeros in [0, 1, 1 << 20] {
        let longer = [&manifest, &vec![0; zeros][..], b"\n\0"].concat();
        fs::write(path.join("manifest"), longer).unwrap();
        let error = fails(&path);
        let OpenError::ManifestDamaged { offset, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(offset, (manifest.len() + zeros) as u64);
    }
    fs::write(path.join("manifest"), &manifest).unwrap();
    Store::open(&path).unwrap();
}

// B43
#[test]
fn room_given_ahead_is_no_part_of_a_store() {
    let (_dir, path) = filled(5, 2, Dtype::F16);
    for round in 0..2 {
        let n = 5 + round;
        let files: Vec<_> = bytes_of(&path).into_keys().collect();
        for name in &files {
            let file = fs::File::options()
                .write(true)
                .open(path.join(name))
                .unwrap();
            let len = file.metadata().unwrap().len();
            file.set_len(len + (1 << 20)).unwrap();
        }
        let before = bytes_of(&path);
        let report = verify(&path).unwrap();
        assert_eq!((report.rows as u64, report.damages), (n, vec![]));
        assert_eq!(report.uncommitted_bytes, (report.files as u64) << 20);
        // The segment of the journal, too.
        let dropped: Vec<_> = report.dropped.iter().map(|d| (d.offset, d.bytes)).collect();
        assert_eq!(dropped, [(64, 1 << 20)]);
        for (verify, in_memory) in [(true, false), (false, true)] {
            let options = OpenOptions {
                read_only: true,
                verify,
                in_memory,
                ..OpenOptions::default()
            };
            let store = Store::open_with(&path, &options).unwrap();
            assert_eq!(store.snapshot().len() as u64, n);
        }
        assert!(bytes_of(&path) == before);
        let store = Store::open(&path).unwrap();
        let snapshot = store.snapshot();
        assert_eq!((snapshot.len() as u64, snapshot.next_id()), (n, n));
        assert_eq!(append(&store, &[varied(n, 2)]), n..n + 1);
        drop(store);
        assert_eq!(verify(&path).unwrap().uncommitted_bytes, 0);
    }
    let store = Store::open(&path).unwrap();
    for row in 0..7 {
        assert_row(&store.snapshot(), row as usize, row, &varied(row, 2));
    }
}

#[test]
fn every_flipped_bit_of_the_manifest_is_an_error() {
    let (_dir, path) = filled(4, 2, Dtype::F32);
    let manifest = path.join("manifest");
    for bit in 0..fs::read(&manifest).unwrap().len() * 8 {
        flip(&manifest, bit);
        let error = Store::open(&path).unwrap_err();
        let typed = matches!(
            error,
            OpenError::Foreign { .. }
                | OpenError::Newer { .. }
                | OpenError::ManifestCut { .. }
                | OpenError::ManifestChecksum { .. }
                | OpenError::ManifestDamaged { .. }
        );
        assert!(typed, "bit {bit}: {error}");
        flip(&manifest, bit);
    }
    Store::open(&path).unwrap();
}

// B47
#[test]
fn a_cut_or_missing_column_is_an_error_before_it_is_read() {
    let (_dir, path) = worn(30, 3, Dtype::F16);
    let files = Store::open_read_only(&path).unwrap().info().files;
    for file in files {
        let whole = fs::read(&file.path).unwrap();
        assert_eq!(whole.len() as u64, file.bytes);
        let lens = [0, 1, whole.len() / 2, whole.len().saturating_sub(1)];
        for len in lens.into_iter().filter(|&len| len < whole.len()) {
            fs::write(&file.path, &whole[..len]).unwrap();
            let error = fails(&path);
            let OpenError::ColumnCut {
                path: cut,
                expected,
                found,
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!(
                (cut, expected, found),
                (file.path.clone(), file.bytes, len as u64)
            );
            let report = verify(&path).unwrap();
            assert_eq!(report.damages[0].path, file.path);
        }
        fs::remove_file(&file.path).unwrap();
        let error = fails(&path);
        assert!(matches!(error, OpenError::ColumnMissing { .. }), "{error}");
        assert_eq!(verify(&path).unwrap().damages.len(), 1);
        fs::write(&file.path, whole).unwrap();
    }
    Store::open(&path).unwrap();
}

#[test]
fn a_store_is_created_only_where_nothing_is() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(4, Dtype::F16);
    let full = dir.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("notes.txt"), b"mine").unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"mine").unwrap();
    for path in [&full, &file, &full.join("notes.txt")] {
        let error = Store::create(path, &options).unwrap_err();
        assert!(matches!(error, CreateError::Exists { .. }), "{error}");
    }
    let nowhere = dir.path().join("no/parent");
    assert!(matches!(
        Store::create(nowhere, &options),
        Err(CreateError::Write(_))
    ));
    assert!(matches!(
        Store::create("/", &options),
        Err(CreateError::NoName { .. })
    ));
    let wide = memorank::store::CreateOptions {
        dim: (1 << 21).try_into().unwrap(),
        ..options.clone()
    };
    let error = Store::create(dir.path().join("wide"), &wide).unwrap_err();
    assert!(matches!(error, CreateError::Dim { .. }), "{error}");
    let mut left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["file", "full"]);

    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let store = Store::create(&empty, &options).unwrap();
    append(&store, &[varied(0, 4)]);
    drop(store);
    let error = Store::create(&empty, &options).unwrap_err();
    assert!(matches!(error, CreateError::Exists { .. }), "{error}");
    assert_eq!(Store::open(&empty).unwrap().snapshot().len(), 1);
}

#[test]
fn what_a_stopped_writer_left_is_swept_and_nothing_else() {
    let (_dir, path) = filled(3, 2, Dtype::F32);
    let before = bytes_of(&path);
    let swept = [
        "manifest.77.3.tmp",
        "access.99.bytes",
        "deleted.u32",
        "embedding.4.f32",
        "journal.1",
        "journal.99",
        "journal.99.tmp",
    ];
    let kept = [
        "embedding.f16",
        "manifest.old",
        "notes.txt",
        "access.csv",
        "journal.old",
    ];
    for name in swept.iter().chain(&kept) {
        fs::write(path.join(name), b"x").unwrap();
    }
    let left = bytes_of(&path);
    let store = Store::open(&path).unwrap();
    assert!(bytes_of(&path) == left);
    store.sync().unwrap();
    assert!(bytes_of(&path) == left);
    store.touch(Agent::OWN, &[0], i64::MAX).unwrap();
    let after = bytes_of(&path);
    assert_eq!(after.len(), before.len() + kept.len());
    assert!(kept.iter().all(|name| after.contains_key(*name)));
    assert!(swept.iter().all(|name| !after.contains_key(*name)));
}

#[test]
fn a_checked_read_only_open_sees_no_damage_while_a_writer_checkpoints() {
    let (_dir, path) = filled(200, 4, Dtype::F32);
    let options = OpenOptions {
        read_only: true,
        verify: true,
        ..OpenOptions::default()
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let store = Store::open(&path).unwrap();
            let mut now = 1_000_000;
            while !done.load(Ordering::Relaxed) {
                store.touch(Agent::OWN, &[7], now).unwrap();
                store.checkpoint().unwrap();
                now += 1;
                // Without a pause between two manifests no reader might ever get through.
                std::thread::sleep(Duration::from_micros(300));
            }
            now - 1
        });
        let opened: Vec<_> = (0..400)
            .map(|_| {
                let store = Store::open_with(&path, &options)?;
                Ok(store.snapshot().last_access(Agent::OWN, 7))
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        let last = writer.join().unwrap();
        let mut seen = 0;
        for (at, opened) in opened.into_iter().enumerate() {
            let last_access = opened.unwrap_or_else(|e: OpenError| panic!("open {at}: {e}"));
            assert!((seen..=last).contains(&last_access));
            seen = last_access;
        }
    });
}

#[test]
fn a_store_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Store>();
}
