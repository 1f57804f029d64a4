//! Deleting memories, folding the journal, compacting.

use crate::journal::unfolded;
use crate::stage::{HOUR, Stage, T, T_TEXT, append, copy, files, ids, overwrite, run, state, time};
use memorank::scoring::Preset;
use memorank::store::Store;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// Every query that could find a memory of `G`.
fn everything(stage: &Stage) -> Vec<Value> {
    let asks = Preset::NAMES.iter().flat_map(|preset| {
        ["1", "30"].map(|k| stage.ask_g(&["--preset", preset, "-k", k, "--now", &time(T + HOUR)]))
    });
    asks.collect()
}

#[test]
fn a_deleted_memory_is_never_ranked_again() {
    let stage = Stage::g();
    let store = stage.at("G");
    let document = run(["delete", &store, "g1", "--json"]).json();
    assert_eq!(
        document,
        json!({
            "schema": "memorank.delete/1", "store": store, "memories": 2, "policy": "refuse",
            "dry_run": false, "dependants": [], "deleted": [{"id": 1, "key": "g1"}],
        })
    );
    let gone = |stage: &Stage| {
        for document in everything(stage) {
            assert!(!ids(&document).contains(&1), "{document}");
            assert_eq!(
                (&document["memories"], &document["candidates"]),
                (&2.into(), &2.into())
            );
            // It does not compete either: it had the greatest importance.
            assert_eq!(
                document["ranges"]["importance"],
                json!({"min": 2.0, "max": 5.0})
            );
        }
        for key in ["1", "g1"] {
            stage.query("G", &["--like", key]).fails(1);
            run(["show", &stage.at("G"), key]).fails(1);
            run(["delete", &stage.at("G"), key]).fails(1);
        }
        assert_eq!(
            run(["verify", &stage.at("G"), "--json"]).json()["sound"],
            true
        );
    };
    gone(&stage);
    stage.ask_g(&["--touch"]);
    gone(&stage);
    run(["checkpoint", &store]).ok();
    gone(&stage);
    run(["compact", &store]).ok();
    gone(&stage);
    // Also none that comes after.
    append(&Store::open(stage.path("G")).unwrap(), "g1", &[1.0, 0.0]);
    let shown = run(["show", &store, "g1", "--json"]).json();
    assert_eq!(shown["id"], 3);
    run(["show", &store, "1"]).fails(1);
}

#[test]
fn to_show_a_deleted_memory_is_an_error_that_says_so() {
    let stage = Stage::g();
    let store = stage.at("G");
    run(["delete", &store, "g1"]).ok();
    for args in [
        &["show", &store, "1"][..],
        &["show", &store, "1", "--json"],
        &["query", &store, "--like", "1"],
        &["delete", &store, "1"],
    ] {
        let ran = run(args);
        assert_eq!(ran.out, "");
        let err = ran.fails(1);
        assert!(err.contains("the memory with id 1 was deleted"), "{err}");
    }
    for key in [
        "g1",
        "3",
        "-1",
        "18446744073709551615",
        "18446744073709551616",
    ] {
        let err = run(["show", &store, "--", key]).fails(1);
        assert!(
            err.contains(&format!("no memory has the key or id {key:?}")),
            "{err}"
        );
    }
}

#[test]
fn evidence_that_was_deleted_is_told_as_missing() {
    let stage = Stage::new();
    let line = |key: &str| json!({"key": key, "text": key, "created": T_TEXT, "importance": 1});
    let mut second = line("b");
    second["evidence"] = json!(["a"]);
    stage.import("S", &[[1.0, 0.0], [0.6, 0.8]], &[line("a"), second]);
    let store = stage.at("S");
    run(["delete", &store, "a", "--policy", "keep"]).ok();
    for _ in 0..2 {
        let shown = run(["show", &store, "b", "--json"]).json();
        assert_eq!(shown["evidence"], json!([{"missing_id": 0}]));
        assert!(
            run(["show", &store, "b"])
                .ok()
                .contains("evidence     id 0: MISSING\n")
        );
        run(["compact", &store]).ok();
    }
}

#[test]
fn several_are_deleted_together_or_none() {
    let stage = Stage::g();
    let store = stage.at("G");
    let before = state(&stage.path("G"));
    for keys in [
        &["g0", "g9"][..],
        &["g9", "g0"],
        &["g0", "g1", "3"],
        &["g0", ""],
    ] {
        run([&["delete", &store], keys].concat()).fails(1);
        assert_eq!(state(&stage.path("G")), before, "{keys:?}");
    }
    // By key and by id, in any order, one of them twice.
    let text = run(["delete", &store, "2", "g0", "g2"]).ok();
    let expected = format!(
        "deleted g0 (id 0)  memory 0\ndeleted g2 (id 2)  memory 2\n{store}: 1 memories left\n"
    );
    assert_eq!(text, expected);
    assert_eq!(ids(&stage.ask_g(&[])), [1]);

    // The last one, too.
    run(["delete", &store, "g1"]).ok();
    let document = stage.ask_g(&[]);
    assert_eq!(
        (&document["hits"], &document["ranges"]),
        (&json!([]), &json!(null))
    );
    let info = run(["info", &store, "--json"]).json();
    assert_eq!(
        (&info["memories"], &info["deleted"]),
        (&0.into(), &3.into())
    );
    for name in ["first_created", "last_created", "newest_access"] {
        assert_eq!(info[name], json!(null));
    }
    run(["bench", &store]).fails(1);
    assert_eq!(run(["compact", &store, "--json"]).json()["bytes"], 0);
    assert_eq!(stage.ask_g(&[])["hits"], json!([]));
    assert_eq!(run(["info", &store, "--json"]).json()["next_id"], 3);
    run(["verify", &store]).ok();
}

// As `show` tells them apart: the key goes first.
#[test]
fn a_key_that_looks_like_an_id_is_the_key() {
    let stage = Stage::new();
    let line = |key: &str| json!({"key": key, "text": key, "created": T_TEXT, "importance": 1});
    stage.import("K", &[[1.0, 0.0], [0.0, 1.0]], &[line("1"), line("x")]);
    // The key is looked up before the deletion frees it: both are the first.
    let document = run(["delete", &stage.at("K"), "1", "1", "--json"]).json();
    assert_eq!(document["deleted"], json!([{"id": 0, "key": "1"}]));
    assert_eq!(run(["show", &stage.at("K"), "x", "--json"]).json()["id"], 1);
}

#[test]
fn a_compaction_shrinks_the_files_and_keeps_ids_keys_and_touches() {
    let stage = Stage::new();
    let lines: Vec<_> = (0..100)
        .map(|i| {
            json!({
                "key": format!("k{i}"), "text": format!("memory {i}"), "created": T_TEXT,
                "importance": i % 7, "payload": {"i": i}, "evidence": if i > 50 { vec![i - 1] } else { vec![] },
            })
        })
        .collect();
    let rows: Vec<[f32; 2]> = (0..100).map(|i| [1.0, i as f32]).collect();
    stage.import("S", &rows, &lines);
    let store = stage.at("S");
    let later = time(T + 9 * HOUR);
    stage
        .query(
            "S",
            &["--like", "k77", "--touch", "--now", &later, "-k", "9"],
        )
        .ok();
    let gone: Vec<_> = (0..100)
        .filter(|i| i % 3 != 0)
        .map(|i| format!("k{i}"))
        .collect();
    let keys = gone.iter().map(String::as_str);
    let keep = ["delete", &store, "--policy", "keep"];
    run(keep.into_iter().chain(keys)).ok();

    let answers = || {
        let kept = (0..100).filter(|i| i % 3 == 0);
        let shown = kept.map(|i| run(["show", &store, &format!("k{i}"), "--json"]).json());
        let asked = Preset::NAMES.map(|preset| {
            let args = ["--like", "k33", "-k", "100", "--json", "--preset", preset];
            stage.query("S", &args).json()
        });
        shown.chain(asked).collect::<Vec<_>>()
    };
    let before = answers();
    let columns = |store: &str| {
        let info = run(["info", store, "--json"]).json();
        let files = info["files"].as_array().unwrap().iter().map(|file| {
            let name = file["name"].as_str().unwrap().to_owned();
            let bytes = fs::metadata(stage.path("S").join(&name)).unwrap().len();
            assert_eq!(file["bytes"], bytes, "{name}");
            (name, bytes)
        });
        files.collect::<Vec<_>>()
    };
    let old = columns(&store);
    let document = run(["compact", &store, "--json"]).json();
    let new = columns(&store);
    assert_eq!(
        (&document["removed"], &document["memories"]),
        (&66.into(), &34.into())
    );
    let sum = |files: &[(String, u64)]| files.iter().map(|(_, bytes)| bytes).sum::<u64>();
    assert_eq!(document["bytes_before"], sum(&old));
    assert_eq!(document["bytes"], sum(&new));
    for ((name, old), (_, new)) in old.iter().zip(&new) {
        let touches = name.starts_with("access.");
        assert!(
            new < old || *old == 0 || touches,
            "{name}: {old}, now {new}"
        );
    }
    // What was there before is not there any more.
    for (name, _) in &old {
        assert!(!stage.path("S").join(name).exists(), "{name}");
    }
    assert_eq!(answers(), before);
    assert_eq!(run(["verify", &store, "--json"]).json()["sound"], true);
    let info = run(["info", &store, "--json"]).json();
    assert_eq!(
        (&info["memories"], &info["deleted"], &info["next_id"]),
        (&34.into(), &0.into(), &100.into())
    );
    // Once more changes nothing that can be seen.
    let document = run(["compact", &store, "--json"]).json();
    assert_eq!(
        (&document["removed"], &document["bytes"]),
        (&0.into(), &sum(&new).into())
    );
    assert_eq!(answers(), before);
}

#[test]
fn a_checkpoint_folds_what_a_writer_left() {
    let stage = unfolded();
    let (store, query) = (stage.at("J"), stage.at("q.json"));
    let ask = || stage.query("J", &["--vector", &query, "--json"]).ok();
    let before = ask();
    let document = run(["checkpoint", &store, "--json"]).json();
    for (name, value) in [("records", 3), ("memories", 3), ("deleted", 1)] {
        assert_eq!(document[name], value, "{name}");
    }
    assert_eq!(ask(), before);
    let info = run(["info", &store, "--json"]).json();
    assert_eq!(
        (&info["in_journal"], &info["bytes"]),
        (&0.into(), &document["bytes"])
    );
    let verified = run(["verify", &store, "--json"]).json();
    assert_eq!(
        (&verified["sound"], &verified["rows"], &verified["records"]),
        (&true.into(), &4.into(), &0.into())
    );
    // There is nothing left to do, and nothing is done.
    let folded = state(&stage.path("J"));
    let text = run(["checkpoint", &store]).ok();
    assert!(text.contains(": 0 records of the journal"), "{text}");
    assert_eq!(state(&stage.path("J")), folded);
}

#[test]
fn a_compaction_takes_in_the_journal() {
    let stage = unfolded();
    let (store, query) = (stage.at("J"), stage.at("q.json"));
    let ask = || stage.query("J", &["--vector", &query, "--json"]).ok();
    let before = ask();
    let document = run(["compact", &store, "--json"]).json();
    assert_eq!(
        (&document["removed"], &document["memories"]),
        (&1.into(), &3.into())
    );
    assert_eq!(ask(), before);
    let verified = run(["verify", &store, "--json"]).json();
    assert_eq!(
        (&verified["sound"], &verified["rows"], &verified["records"]),
        (&true.into(), &3.into(), &0.into())
    );
}

const WRITERS: [&[&str]; 3] = [&["delete", "g0"], &["checkpoint"], &["compact"]];

/// One of [`WRITERS`] on a store.
fn writer<'a>(args: &[&'a str], store: &'a str) -> Vec<&'a str> {
    [&[args[0], store], &args[1..]].concat()
}

#[test]
fn a_store_that_is_being_written_to_is_left_alone() {
    let stage = Stage::g();
    let held = Store::open(stage.path("G")).unwrap();
    let before = state(&stage.path("G"));
    for args in WRITERS {
        let ran = run(writer(args, &stage.at("G")));
        assert_eq!(ran.out, "");
        let err = ran.fails(1);
        assert!(err.contains("open for writing elsewhere"), "{err}");
    }
    assert_eq!(state(&stage.path("G")), before);
    drop(held);
    for args in WRITERS {
        run(writer(args, &stage.at("G"))).ok();
    }
}

// A column that is written anew gets new checksums: what is wrong in it would be so for good.
#[test]
fn damage_is_not_compacted() {
    let stage = Stage::g();
    run(["delete", &stage.at("G"), "g1"]).ok();
    let names = files(&stage.path("G")).into_iter();
    let damageable = names.filter(|(name, bytes)| !bytes.is_empty() && name != "manifest");
    let mut seen = 0;
    for (name, bytes) in damageable {
        let at = bytes.len() / 2;
        copy(&stage.path("G"), &stage.path("damaged"));
        let store = stage.at("damaged");
        overwrite(&stage.path("damaged").join(&name), at, &[bytes[at] ^ 1]);
        let before = state(&stage.path("damaged"));
        for form in [&[][..], &["--json"]] {
            let ran = run([&["compact", &store], form].concat());
            assert_eq!(ran.out, "", "{name}");
            let err = ran.fails(3);
            assert!(err.contains(&name), "{name}: {err}");
            assert_eq!(state(&stage.path("damaged")), before, "{name}");
        }
        run(["verify", &store]).fails(3);
        fs::remove_dir_all(stage.path("damaged")).unwrap();
        seen += 1;
    }
    assert!(seen > 10);
}

#[test]
fn no_writer_makes_damage_of_odd_files_worse() {
    let stage = unfolded();
    for (name, target) in [
        ("manifest", None),
        ("embedding.f32", Some("/dev/zero")),
        ("text.bytes", Some("text.bytes")),
        ("text.bytes", None),
        ("journal.2", None),
        ("journal.2", Some("/dev/zero")),
        ("lock", None),
    ] {
        for args in WRITERS {
            copy(&stage.path("J"), &stage.path("odd"));
            let file = stage.path("odd").join(name);
            fs::remove_file(&file).unwrap();
            match target {
                Some(target) => symlink(target, &file).unwrap(),
                None => fs::create_dir(&file).unwrap(),
            }
            let ran = run(writer(args, &stage.at("odd")));
            assert_eq!(ran.out, "", "{name} {args:?}");
            assert!(matches!(ran.code, Some(1 | 3)), "{name} {args:?}: {ran:?}");
            assert!(ran.err.contains(name), "{name} {args:?}: {ran:?}");
            // Nothing else was touched. (A device would be read without end.)
            match target {
                Some(_) => fs::remove_file(&file).unwrap(),
                None => fs::remove_dir(&file).unwrap(),
            }
            let others = |folder: &str| {
                let mut files = files(&stage.path(folder));
                files.retain(|(other, _)| other != name);
                files
            };
            assert_eq!(others("odd"), others("J"), "{name} {args:?}");
            fs::remove_dir_all(stage.path("odd")).unwrap();
        }
    }
}

// No byte can be written to any file: the disk is full, say.
#[test]
fn writers_without_room_say_so_and_leave_the_store_as_it_was() {
    let stage = unfolded();
    let before = files(&stage.path("J"));
    for args in WRITERS {
        let args = writer(args, stage.path("J").to_str().unwrap()).join("' '");
        let mut shell = std::process::Command::new("sh");
        let program = env!("CARGO_BIN_EXE_memorank");
        let script = format!("trap '' XFSZ; ulimit -f 0; '{program}' '{args}'");
        let ran: crate::stage::Ran = shell.args(["-c", &script]).output().unwrap().into();
        assert_eq!(ran.out, "", "{args}");
        let err = ran.fails(1);
        assert!(
            err.contains("writing") && err.contains("journal.3"),
            "{err}"
        );
        assert_eq!(files(&stage.path("J")), before, "{args}");
    }
    run(["verify", &stage.at("J")]).ok();
}
