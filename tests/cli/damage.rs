//! Damaged stores: found, told with file and offset, exit code 3, and left as they are.

use crate::stage::{Stage, copy, overwrite, run, state};
use std::fs;

// B45: what is no store is told apart, and nothing is changed.
#[test]
fn what_is_no_store_has_its_own_error_and_stays_as_it_is() {
    let stage = Stage::g();
    stage.write("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    fs::create_dir(stage.path("folder")).unwrap();
    stage.write("folder/notes.txt", "nothing here");
    copy(&stage.path("G"), &stage.path("random"));
    let mut random = crate::common::Random(45);
    let noise: Vec<u8> = (0..8).flat_map(|_| random.next().to_le_bytes()).collect();
    overwrite(&stage.path("random/manifest"), 0, &noise);
    let before = (
        state(&stage.path("")),
        state(&stage.path("folder")),
        state(&stage.path("random")),
    );

    let mut told = Vec::new();
    for (name, code, words) in [
        ("none", 1, "does not exist"),
        ("image.png", 1, "is not a directory"),
        ("folder", 1, "is not a memorank store: it has no manifest"),
        ("random", 3, "manifest: byte 0: not the manifest"),
    ] {
        let path = stage.at(name);
        for args in [
            &["info", &path][..],
            &["verify", &path],
            &["show", &path, "g0"],
            &["query", &path, "--like", "g0"],
            &["query", &path, "--like", "g0", "--touch"],
            &["info", &path, "--json"],
        ] {
            let ran = run(args);
            assert_eq!(ran.out, "", "{args:?}");
            let err = ran.fails(code);
            assert!(err.contains(words) && err.contains(name), "{args:?}: {err}");
            told.push(err.replace(name, ""));
        }
    }
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 4, "{told:?}");
    let after = (
        state(&stage.path("")),
        state(&stage.path("folder")),
        state(&stage.path("random")),
    );
    assert_eq!(after, before);
}

#[test]
fn a_newer_store_is_named_as_such() {
    let stage = Stage::g();
    let manifest = fs::read_to_string(stage.path("G/manifest")).unwrap();
    stage.write(
        "G/manifest",
        manifest.replace("memorank store 1", "memorank store 2"),
    );
    let err = run(["info", &stage.at("G")]).fails(1);
    assert!(
        err.contains("format 2") && err.contains("newer memorank"),
        "{err}"
    );
}

#[test]
fn verify_finds_every_flipped_byte_with_file_and_offset() {
    let stage = Stage::g();
    assert!(run(["verify", &stage.at("G")]).ok().ends_with("sound\n"));
    for entry in fs::read_dir(stage.path("G")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let bytes = fs::read(stage.path("G").join(&name)).unwrap();
        let Some(last) = bytes.len().checked_sub(1) else {
            continue;
        };
        if name == "manifest" {
            continue;
        }
        let damaged = stage.path("damaged");
        copy(&stage.path("G"), &damaged);
        overwrite(&damaged.join(&name), last, &[bytes[last] ^ 1]);
        let store = stage.at("damaged");
        let ran = run(["verify", &store]);
        let problem = match &*name {
            "journal.1" => "the segment has not the checksum its header gives".to_owned(),
            _ => format!("checksum of {} bytes", bytes.len()),
        };
        let first = format!("damage: {store}/{name}: byte 0: {problem}");
        assert!(ran.out.contains(&first), "{}", ran.out);
        assert!(
            ran.out.contains("\nDAMAGED; restore it from a copy, or"),
            "{}",
            ran.out
        );
        assert_eq!(ran.fails(3), "");

        let ran = run(["verify", &store, "--json"]);
        let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(document["sound"], false);
        let damage = &document["damages"][0];
        assert_eq!(damage["file"], format!("{store}/{name}"));
        assert_eq!(damage["offset_bytes"], 0);
        assert!(damage["problem"].as_str().unwrap().starts_with(&problem));
        assert_eq!(ran.fails(3), "");
        fs::remove_dir_all(&damaged).unwrap();
    }
}

#[test]
fn missing_and_cut_files_are_damage() {
    let stage = Stage::g();
    for (name, length) in [
        ("embedding.f32", None),
        ("embedding.f32", Some(23)),
        ("text.ends.u64", Some(0)),
        ("manifest", Some(40)),
        ("manifest", Some(0)),
        ("last_access.i64", Some(8)),
        ("journal.1", None),
        ("journal.1", Some(0)),
        ("journal.1", Some(63)),
    ] {
        copy(&stage.path("G"), &stage.path("damaged"));
        let (store, file) = (stage.at("damaged"), stage.path("damaged").join(name));
        let bytes = fs::read(&file).unwrap();
        match length {
            None => fs::remove_file(&file).unwrap(),
            Some(length) => fs::write(&file, &bytes[..length]).unwrap(),
        }
        for args in [
            &["info", &store][..],
            &["verify", &store],
            &["query", &store, "--like", "g0"],
        ] {
            let ran = run(args);
            assert!(format!("{}{}", ran.out, ran.err).contains(name), "{ran:?}");
            ran.fails(3);
        }
        fs::remove_dir_all(stage.path("damaged")).unwrap();
    }
}

// B09: what could not be stored and is there now is damage: no panic, no NaN in a result, no null.
#[test]
fn numbers_that_are_not_finite_are_damage() {
    let stage = Stage::g();
    let query = stage.at("q.json");
    for name in ["inv_norm.f32", "importance.f32", "embedding.f32"] {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN] {
            copy(&stage.path("G"), &stage.path("damaged"));
            let store = stage.at("damaged");
            overwrite(&stage.path("damaged").join(name), 0, &value.to_le_bytes());
            for preset in memorank::scoring::Preset::NAMES {
                for source in [["--vector", &query], ["--like", "g0"], ["--like", "g1"]] {
                    for form in [&[][..], &["--json"], &["--touch"]] {
                        let args = [&["--preset", preset], &source[..], form].concat();
                        let ran = stage.query("damaged", &args);
                        assert_eq!(ran.out, "", "{name} {value} {args:?}");
                        let err = ran.fails(3);
                        assert!(err.contains("damaged") && err.contains("verify"), "{err}");
                    }
                }
            }
            let ran = run(["verify", &store]);
            assert!(ran.out.contains(name), "{}", ran.out);
            ran.fails(3);
            // The inverse norm is no field of a memory.
            if name != "inv_norm.f32" {
                for form in [&[][..], &["--json"]] {
                    let ran = run([&["show", &store, "0"], form].concat());
                    assert_eq!(ran.out, "");
                    assert!(ran.fails(3).contains("damaged"));
                }
            }
            fs::remove_dir_all(stage.path("damaged")).unwrap();
        }
    }
}

// A bit anywhere: each command answers or says what is wrong; none is killed or panics.
#[test]
fn no_flipped_bit_makes_a_command_panic() {
    let stage = Stage::g();
    let query = stage.at("q.json");
    let mut random = crate::common::Random(3);
    let names: Vec<_> = fs::read_dir(stage.path("G"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    for name in names {
        let bytes = fs::read(stage.path("G").join(&name)).unwrap();
        if bytes.is_empty() {
            continue;
        }
        for _ in 0..4 {
            copy(&stage.path("G"), &stage.path("damaged"));
            let at = random.below(bytes.len() as u64) as usize;
            let flipped = bytes[at] ^ (1 << random.below(8));
            overwrite(&stage.path("damaged").join(&name), at, &[flipped]);
            let store = stage.at("damaged");
            for args in [
                &["info", &store][..],
                &["show", &store, "1"],
                &["query", &store, "--vector", &query, "--json"],
                &[
                    "query", &store, "--like", "2", "--preset", "reverie", "--touch",
                ],
                &["delete", &store, "0"],
                &["checkpoint", &store],
                &["compact", &store],
            ] {
                let ran = run(args);
                assert!(
                    matches!(ran.code, Some(0 | 1 | 3)),
                    "{name:?} {at}: {ran:?}"
                );
            }
            assert!(
                matches!(run(["verify", &store]).code, Some(1 | 3)),
                "{name:?} {at}"
            );
            fs::remove_dir_all(stage.path("damaged")).unwrap();
        }
    }
}
