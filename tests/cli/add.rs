//! A store made, filled, asked and touched by the program alone.

use crate::stage::{HOUR, Stage, T, T_TEXT, files, ids, run, time};
use memorank::stream::HashingEmbedder;
use serde_json::{Value, json};

/// A store that embeds by words, made in `S`.
fn by_words(stage: &Stage, args: &[&str]) -> String {
    let store = stage.at("S");
    run([&["create", &store], args].concat()).ok();
    store
}

fn add(store: &str, args: &[&str]) -> Value {
    run([&["add", store, "--json"], args].concat()).json()
}

fn show(store: &str, key: &str) -> Value {
    run(["show", store, key, "--json"]).json()
}

#[test]
fn a_created_store_says_what_it_is_for() {
    let stage = Stage::new();
    let store = stage.at("S");
    let made = run(["create", &store, "--json"]).json();
    assert_eq!(
        made,
        json!({"schema": "memorank.create/1", "store": store, "model": HashingEmbedder::MODEL, "dim": 512,
            "dtype": "f16"})
    );
    let info = run(["info", &store, "--json"]).json();
    for field in ["model", "dim", "dtype"] {
        assert_eq!(info[field], made[field]);
    }
    assert_eq!(info["memories"], 0);
    let err = run(["create", &store]).fails(1);
    assert!(err.contains(&store), "{err}");
    for wrong in [["--dim", "0"], ["--dim", "x"], ["--dtype", "f8"]] {
        run([&["create", &stage.at("T")], &wrong[..]].concat()).fails(2);
        assert!(!stage.path("T").exists());
    }
    let other = ["--model", "m", "--dim", "3", "--dtype", "f32", "--json"];
    let made = run([&["create", &stage.at("T")], &other[..]].concat()).json();
    assert_eq!(
        (&made["model"], &made["dim"], &made["dtype"]),
        (&json!("m"), &json!(3), &json!("f32"))
    );
}

#[test]
fn a_text_finds_the_memory_with_its_words() {
    let stage = Stage::new();
    let store = by_words(&stage, &[]);
    let texts = [
        "Isabella plans a party at the cafe",
        "Klaus is reading about gentrification",
        "the coffee is ready",
    ];
    let added = add(&store, &[&texts[..], &["--created", T_TEXT]].concat());
    let found: Vec<_> = (0..3).map(|i| &added["added"][i]["text"]).collect();
    assert_eq!(found, texts);
    assert_eq!(added["memories"], 3);
    for (id, text) in texts.iter().enumerate() {
        let asked = stage
            .query("S", &["--text", text, "--json", "-k", "1"])
            .json();
        assert_eq!(ids(&asked), [id as u64]);
    }
    let asked = stage
        .query("S", &["--text", "CAFE party?", "--json"])
        .json();
    assert_eq!(ids(&asked)[0], 0);
    // Bit for bit as the library embeds.
    let embedding = HashingEmbedder::new(512.try_into().unwrap()).embedding(texts[2]);
    let stored = show(&store, "2")["embedding"].clone();
    for (stored, given) in stored.as_array().unwrap().iter().zip(embedding.unwrap()) {
        assert!((stored.as_f64().unwrap() - f64::from(given)).abs() < 1e-3);
    }
    for text in ["", " ", "?!"] {
        let err = stage.query("S", &["--text", text]).fails(1);
        assert!(err.contains("no word"), "{err}");
        let err = run(["add", &store, "fine", text]).fails(1);
        assert!(err.contains("no word"), "{err}");
    }
    assert_eq!(run(["info", &store, "--json"]).json()["memories"], 3);
}

// B91: what was given is what is shown, and a touch moves the last access alone.
#[test]
fn every_flag_of_add_is_stored_and_shown() {
    let stage = Stage::new();
    let store = by_words(&stage, &["--dim", "2"]);
    add(&store, &["first", "--created", T_TEXT]);
    let vectors = stage.write("v.json", "[0.6, -0.8]");
    let later = time(T + HOUR);
    add(
        &store,
        &[
            "what it says",
            "--key",
            "k",
            "--kind",
            "reflection",
            "--importance",
            "7",
            "--vectors",
            &vectors,
            "--model",
            HashingEmbedder::MODEL,
            "--created",
            &later,
            "--expiry",
            "2024-01-01T00:00:00Z",
            "--evidence",
            "0",
        ],
    );
    let shown = show(&store, "k");
    for (field, expected) in [
        ("id", json!(1)),
        ("key", json!("k")),
        ("kind", json!("reflection")),
        ("text", json!("what it says")),
        ("importance", json!(7.0)),
        ("created_us", json!(T + HOUR)),
        ("last_access_us", json!(T + HOUR)),
        ("expiry", json!("2024-01-01T00:00:00Z")),
        ("depth", json!(1)),
        ("evidence", json!([{"id": 0, "key": null}])),
    ] {
        assert_eq!(shown[field], expected, "{field}");
    }
    let embedding = shown["embedding"].as_array().unwrap();
    let off = |i: usize, x: f64| (embedding[i].as_f64().unwrap() - x).abs();
    assert!(off(0, 0.6) < 1e-3 && off(1, -0.8) < 1e-3);

    add(
        &store,
        &[
            "-",
            "--no-vector",
            "--kind",
            "diary",
            "--importance",
            "-2.5",
        ],
    );
    let shown = show(&store, "2");
    assert_eq!(
        (&shown["embedding"], &shown["kind"], &shown["importance"]),
        (&Value::Null, &json!("diary"), &json!(-2.5))
    );
    // Now, by default.
    assert!(shown["created_us"].as_i64().unwrap() > T);

    // B89: a reply that is a rating, and replies that are none.
    add(&store, &["rated", "--rating", " 8\n"]);
    assert_eq!(show(&store, "3")["importance"], 8.0);
    let before = files(&stage.path("S"));
    for reply in ["0", "11", "-1", "NaN", "5.5", "8/10", "Rating: 8", ""] {
        let err = run(["add", &store, "unrated", "--rating", reply]).fails(2);
        assert!(err.contains(&format!("{reply:?} is no rating")), "{err}");
    }
    assert_eq!(files(&stage.path("S")), before);
}

// B33
#[test]
fn what_cannot_be_added_changes_no_byte() {
    let stage = Stage::new();
    let store = by_words(&stage, &["--dim", "2"]);
    add(&store, &["first", "--key", "k", "--created", T_TEXT]);
    let two = stage.write("two.json", "[[1, 0], [0, 1]]");
    let three = stage.write("three.json", "[1, 0, 0]");
    let nan = stage.write("nan.json", "[1, null]");
    let before = files(&stage.path("S"));
    for (code, args) in [
        (2, &[][..]),
        (2, &["a", "b", "--key", "both"]),
        (2, &["a", "--importance", "NaN"]),
        (2, &["a", "--importance", "1e39"]),
        (2, &["a", "--importance", "8/10"]),
        (2, &["a", "--created", "yesterday"]),
        (2, &["a", "--expiry", "2024-01-01"]),
        (2, &["a", "--vectors", &two]),
        (2, &["a", "--vectors", &two, "--no-vector"]),
        (2, &["a", "--model", "m"]),
        (2, &["a", "--rating", "8", "--importance", "8"]),
        (1, &["a", "--vectors", &three]),
        (1, &["a", "--vectors", &nan]),
        (1, &["a", "b", "--vectors", &two, "--model", "m"]),
        (1, &["a", "--key", "k"]),
        (1, &["a", "--key", ""]),
        (1, &["a", "--kind", ""]),
        (1, &["a", "--evidence", "none"]),
        (1, &["a", "--supersedes", "none"]),
        (2, &["a", "b", "--supersedes", "0"]),
        (1, &["a", "--evidence", "0", "--evidence", "k"]),
    ] {
        run([&["add", &store], args].concat()).fails(code);
        assert_eq!(files(&stage.path("S")), before, "{args:?}");
    }
}

#[test]
fn a_correction_keeps_what_it_corrects_and_takes_its_place() {
    let stage = Stage::new();
    let store = by_words(&stage, &[]);
    let made = ["--created", T_TEXT];
    add(
        &store,
        &[&["the party is on Monday", "the cafe"], &made[..]].concat(),
    );
    let corrected = ["the party is on Tuesday", "--supersedes", "0"];
    add(&store, &[&corrected, &made[..]].concat());
    let found = |args: &[&str]| {
        let ask = [
            "query", &store, "--text", "party", "--now", T_TEXT, "--json",
        ];
        let mut found = ids(&run([&ask, args].concat()).json());
        found.sort_unstable();
        found
    };
    assert_eq!(found(&[]), [1, 2]);
    assert_eq!(found(&["--superseded"]), [0, 1, 2]);
    let (old, new) = (show(&store, "0"), show(&store, "2"));
    assert_eq!(
        (&old["superseded_by"], &old["supersedes"]),
        (&json!(2), &json!(null))
    );
    assert_eq!(
        (&new["superseded_by"], &new["supersedes"]),
        (&json!(null), &json!(0))
    );
    assert_eq!(old["text"], "the party is on Monday");
    let shown = run(["show", &store, "0"]).ok();
    assert!(shown.contains("superseded by id 2"), "{shown}");
    assert_eq!(run(["list", &store, "--json"]).json()["matching"], 3);
    let ask = [
        "explain", &store, "0", "--text", "party", "--now", T_TEXT, "--json",
    ];
    assert_eq!(
        run(ask).json()["no_candidate"],
        json!({"filtered": "superseded"})
    );
    let again = run(["add", &store, "on Wednesday", "--supersedes", "0"]).fails(1);
    assert!(again.contains("memory 0 is superseded by 2"), "{again}");
}

// B88
#[test]
fn words_are_not_embedded_for_another_model() {
    let stage = Stage::g();
    for (name, model) in [("named", Some("ada")), ("unnamed", None)] {
        let store = stage.at(name);
        let model = model.map_or(vec![], |model| vec!["--model", model]);
        let source = stage.at("G-source.npy");
        run([&["import", "npy", &source, &store], &model[..]].concat()).ok();
        for args in [
            &["add", &store, "a text"][..],
            &["query", &store, "--text", "a text"],
        ] {
            let err = run(args).fails(1);
            assert!(err.contains(HashingEmbedder::MODEL), "{err}");
            assert_eq!(err.contains("ada"), !model.is_empty(), "{err}");
        }
    }
}

#[test]
fn a_touch_is_of_the_agent_that_is_named() {
    let stage = Stage::g();
    let store = stage.at("G");
    let later = time(T + 5 * HOUR);
    let touched = run(["touch", &store, "g0", "1", "g0", "--now", &later, "--json"]).json();
    assert_eq!(
        touched,
        json!({"schema": "memorank.touch/1", "store": store, "agent": 0, "now": later, "now_us": T + 5 * HOUR,
        "touched": [
            {"id": 0, "key": "g0", "last_access": later},
            {"id": 1, "key": "g1", "last_access": later},
        ]})
    );
    let accessed = |key: &str| show(&store, key)["last_access_us"].clone();
    assert_eq!(accessed("g0"), T + 5 * HOUR);
    assert_eq!(accessed("g2"), T - 100 * HOUR);
    // Never back.
    let touched = run(["touch", &store, "g0", "--now", T_TEXT, "--json"]).json();
    assert_eq!(touched["touched"][0]["last_access"], later.as_str());
    // Another agent's is its own.
    let other = [
        "touch", &store, "g2", "--agent", "7", "--now", &later, "--json",
    ];
    assert_eq!(
        run(other).json()["touched"][0]["last_access"],
        later.as_str()
    );
    assert_eq!(accessed("g2"), T - 100 * HOUR);
    let store_again = memorank::store::Store::open_read_only(&store)
        .unwrap()
        .snapshot();
    assert_eq!(
        store_again.last_access(memorank::store::Agent(7), 2),
        T + 5 * HOUR
    );

    let before = files(&stage.path("G"));
    run(["touch", &store, "g0", "g9", "--now", &time(T + 9 * HOUR)]).fails(1);
    run(["touch", &store, "g0", "--now", "soon"]).fails(2);
    run(["touch", &store]).fails(2);
    run(["touch", &store, "g0", "--agent", "-1"]).fails(2);
    assert_eq!(files(&stage.path("G")), before);
}
