//! Vectors that come after their memories were stored.

use crate::stage::{Stage, T_TEXT, ids, run, state};
use serde_json::{Value, json};

/// A store that embeds by words, whose memories 0 ("a"), 2 and 3 have no vector. There is no word in 3.
fn stored() -> (Stage, String) {
    let stage = Stage::new();
    let store = stage.at("S");
    run(["create", &store, "--dim", "2"]).ok();
    let add = |args: &[&str]| {
        run([&["add", &store, "--created", T_TEXT], args].concat()).ok();
    };
    add(&["the coffee is ready", "--key", "a", "--no-vector"]);
    add(&["Klaus is reading", "--key", "b"]);
    add(&["tea", "...", "--no-vector"]);
    (stage, store)
}

fn embed(store: &str, args: &[&str]) -> Value {
    run([&["embed", store, "--json"], args].concat()).json()
}

fn has_vector(store: &str) -> Vec<bool> {
    let shown = ["0", "1", "2", "3"].map(|id| run(["show", store, id, "--json"]).json());
    shown
        .iter()
        .map(|memory| !memory["embedding"].is_null())
        .collect()
}

#[test]
fn what_was_stored_without_a_vector_is_embedded_by_its_words() {
    let (stage, store) = stored();
    assert_eq!(has_vector(&store), [false, true, false, false]);
    let document = embed(&store, &[]);
    assert_eq!(
        document,
        json!({"schema": "memorank.embed/1", "store": store, "without_vector": 1, "embedded": [
            {"id": 0, "key": "a"},
            {"id": 2, "key": null},
        ]})
    );
    assert_eq!(has_vector(&store), [true, true, true, false]);
    let asked = stage.query("S", &["--text", "coffee is ready", "--json"]);
    let mut competed = ids(&asked.json());
    competed.sort_unstable();
    assert_eq!(competed, [0, 1, 2]);
    // There is nothing left to do.
    assert_eq!(embed(&store, &[])["embedded"], json!([]));
}

#[test]
fn keys_say_which_and_a_file_says_what() {
    let (stage, store) = stored();
    assert_eq!(
        run(["embed", &store, "2"]).ok(),
        format!("embedded - (id 2)  tea\n{store}: 2 memories without a vector\n")
    );
    let vectors = stage.write("v.json", "[[0.5, -1.5], [-2, 1.5]]");
    let document = embed(&store, &["3", "a", "--vectors", &vectors]);
    assert_eq!(
        document["embedded"],
        json!([{"id": 3, "key": null}, {"id": 0, "key": "a"}])
    );
    let shown = |id| run(["show", &store, id, "--json"]).json()["embedding"].clone();
    assert_eq!(shown("3"), json!([0.5, -1.5]));
    assert_eq!(shown("0"), json!([-2.0, 1.5]));
}

// B88: another model's vectors are refused, and so is what cannot be stored: nothing is changed then.
#[test]
fn what_is_refused_changes_nothing() {
    let (stage, store) = stored();
    let one = stage.write("one.json", "[1, 2]");
    let long = stage.write("long.json", "[1, 2, 3]");
    let zero = stage.write("zero.json", "[[1, 2], [0, 0]]");
    let before = state(&stage.path("S"));
    for (args, code, told) in [
        (&["b"][..], 1, "id 1 has an embedding"),
        (&["a", "b"], 1, "id 1 has an embedding"),
        (&["a", "a"], 1, "twice"),
        (&["a", "nobody"], 1, "nobody"),
        (&["--vectors", &one], 2, "holds 1 vectors for 3 memories"),
        (&["a", "--vectors", &long], 1, "3"),
        (&["a", "2", "--vectors", &zero], 1, "id 2"),
        (
            &["a", "--vectors", &one, "--model", "other"],
            1,
            "\"other\"",
        ),
        (&["a", "--model", "other"], 2, "--vectors"),
        (&["a", "--vectors", "none.json"], 1, "none.json"),
    ] {
        let err = run([&["embed", &store], args].concat()).fails(code);
        assert!(err.contains(told), "{args:?}: {err}");
    }
    assert_eq!(state(&stage.path("S")), before);
    assert_eq!(has_vector(&store), [false, true, false, false]);
}

#[test]
fn a_store_of_another_model_does_not_embed_by_words() {
    let stage = Stage::new();
    let store = stage.at("S");
    run(["create", &store, "--dim", "2", "--model", "m"]).ok();
    run(["add", &store, "tea", "--no-vector"]).ok();
    let err = run(["embed", &store]).fails(1);
    assert!(err.contains("\"m\""), "{err}");
    let vectors = stage.write("v.json", "[1, 2]");
    let args = ["embed", &store, "--vectors", &vectors, "--model", "m"];
    assert_eq!(run(args).ok().lines().count(), 2);
}
