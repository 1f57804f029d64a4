//! Repairs: what is whole in a new store, what is not in a list, the damaged one as it was.

use crate::stage::{Stage, overwrite, run, state};
use serde_json::{Value, json};
use std::fs;

#[test]
fn of_a_sound_store_nothing_is_lost() {
    let stage = Stage::g();
    let before = state(&stage.path("G"));
    let text = run(["repair", &stage.at("G"), &stage.at("H")]).ok();
    assert_eq!(
        text,
        format!(
            "{}: 3 memories kept, 0 lost\nnothing was lost\n",
            stage.at("H")
        )
    );
    for args in [&["show", "g1"][..], &["query", "--like", "g0"]] {
        let of = |name: &str| {
            let store = stage.at(name);
            let mut document =
                run([&args[..1], &[&store], &args[1..], &["--json"]].concat()).json();
            document.as_object_mut().unwrap().remove("store");
            document
        };
        assert_eq!(of("G"), of("H"));
    }
    let sound = run(["verify", &stage.at("H")]).ok();
    assert!(sound.ends_with("sound\n"), "{sound}");
    assert_eq!(state(&stage.path("G")), before);
}

#[test]
fn what_is_lost_is_told_and_is_exit_code_3() {
    let stage = Stage::g();
    let key = stage.path("G/key.bytes");
    let flipped = fs::read(&key).unwrap()[1] ^ 1;
    overwrite(&key, 1, &[flipped]);
    let before = state(&stage.path("G"));
    let ran = run(["repair", &stage.at("G"), &stage.at("H")]);
    let (store, bytes) = (stage.at("G"), fs::read(&key).unwrap().len());
    let told = format!(
        "kept without key: rows 0 to 2 (ids 0 to 2): {store}/key.bytes: byte 0: checksum of {bytes} bytes"
    );
    let lines: Vec<&str> = ran.out.lines().collect();
    let [first, second, last] = lines[..] else {
        panic!("{}", ran.out);
    };
    assert!(
        first.ends_with("3 memories kept, 0 lost") && second.starts_with(&told),
        "{}",
        ran.out
    );
    assert_eq!(last, "NOT ALL of it is there");
    assert_eq!(ran.fails(3), "");
    let ran = run(["repair", &stage.at("G"), &stage.at("I"), "--json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(ran.fails(3), "");
    assert_eq!(document["whole"], false);
    let reduced = &document["reduced"][2];
    assert_eq!(reduced["without"], "key");
    assert_eq!((&reduced["row"], &reduced["id"]), (&json!(2), &json!(2)));
    run(["verify", &stage.at("I")]).ok();
    assert_eq!(
        run(["show", &stage.at("I"), "2", "--json"]).json()["key"],
        Value::Null
    );
    assert_eq!(state(&stage.path("G")), before);
}

#[test]
fn without_a_manifest_the_dimension_is_asked_for() {
    let stage = Stage::g();
    fs::remove_file(stage.path("G/manifest")).unwrap();
    let (damaged, new) = (stage.at("G"), stage.at("H"));
    let err = run(["repair", &damaged, &new]).fails(3);
    assert!(err.contains("speak for 2 (--dim N)"), "{err}");
    assert!(!stage.path("H").exists());
    let ran = run(["repair", &damaged, &new, "--dim", "2", "--json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&document["kept"], &document["checked"]),
        (&json!(3), &json!(false))
    );
    ran.fails(3);
    assert_eq!(run(["show", &new, "g1", "--json"]).json()["id"], 1);
    // One of each type.
    fs::copy(stage.path("G/depth.u32"), stage.path("G/embedding.f16")).unwrap();
    fs::copy(stage.path("G/depth.u32"), stage.path("G/embedding.f32")).unwrap();
    let err = run(["repair", &damaged, &stage.at("I"), "--dim", "2"]).fails(3);
    assert!(err.contains("--dtype"), "{err}");
}
