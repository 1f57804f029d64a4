//! What `query` computes, and from what.

use crate::stage::{HOUR, Stage, T, T_TEXT, answer, ids, run, scores, time};
use approx::assert_abs_diff_eq;
use memorank::kernel::{Dtype, f16};
use serde_json::json;

// B64, B66: each weight drives its own component, also where the others are 0.
#[test]
fn each_weight_drives_its_own_component() {
    let stage = Stage::g();
    let all = stage.ask_g(&[]);
    assert_eq!(ids(&all), [1, 0, 2]);
    for (found, expected) in scores(&all).into_iter().zip([2.6, 1.875986, 0.5]) {
        assert_abs_diff_eq!(found, expected, epsilon = 1e-6);
    }
    for (component, order, totals) in [
        ("importance", [1, 2, 0], [1.0, 0.5, 0.0]),
        ("recency", [1, 0, 2], [1.0, 0.875986, 0.0]),
        ("relevance", [0, 1, 2], [1.0, 0.6, 0.0]),
    ] {
        let flags: Vec<_> = ["relevance", "recency", "importance"]
            .iter()
            .flat_map(|name| {
                [
                    format!("--{name}"),
                    u8::from(*name == component).to_string(),
                ]
            })
            .collect();
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        let alone = stage.ask_g(&flags);
        assert_eq!(ids(&alone), order, "{component}");
        for (found, expected) in scores(&alone).into_iter().zip(totals) {
            assert_abs_diff_eq!(found, expected, epsilon = 1e-6);
        }
        for hit in alone["hits"].as_array().unwrap() {
            assert_eq!(hit["score"], hit[component]["normalized"]);
        }
        // Twice the weight, and the others as they were.
        let doubled = stage.ask_g(&[&format!("--{component}"), "2"]);
        for hit in doubled["hits"].as_array().unwrap() {
            let weighted = |name: &str| hit[name]["weighted"].as_f64().unwrap();
            let normalized = |name: &str| hit[name]["normalized"].as_f64().unwrap();
            for name in ["relevance", "recency", "importance"] {
                let weight = if name == component { 2.0 } else { 1.0 };
                assert_eq!(weighted(name), weight * normalized(name));
            }
        }
    }
}

// B65: all weights 0: everything scores 0, in order of ids.
#[test]
fn without_weights_the_order_is_that_of_ids() {
    let document = Stage::g().ask_g(&["--relevance", "0", "--recency", "0", "--importance", "0"]);
    assert_eq!(
        (ids(&document), scores(&document)),
        (vec![0, 1, 2], vec![0.0; 3])
    );
}

// B67
#[test]
fn decay_1_makes_recency_flat_and_decay_0_a_step() {
    let stage = Stage::g();
    let normalized = |decay: &str| -> Vec<f64> {
        let document = stage.ask_g(&["--decay", decay]);
        let mut hits = document["hits"].as_array().unwrap().clone();
        hits.sort_by_key(|hit| hit["id"].as_u64());
        hits.iter()
            .map(|hit| hit["recency"]["normalized"].as_f64().unwrap())
            .collect()
    };
    assert_eq!(normalized("1"), [0.5, 0.5, 0.5]);
    assert_eq!(normalized("0"), [0.0, 1.0, 0.0]);
    assert_eq!(normalized("0.5")[2].to_bits(), 0.0_f64.to_bits());
}

#[test]
fn now_is_the_newest_last_access_and_told() {
    let stage = Stage::g();
    let document = stage.ask_g(&[]);
    assert_eq!(
        (&document["now"], &document["now_us"]),
        (&json!(T_TEXT), &json!(T))
    );
    let text = stage.query("G", &["--like", "g1"]).ok();
    assert!(
        text.contains(&format!("now {T_TEXT} (the newest last access)")),
        "{text}"
    );

    let later = stage.ask_g(&["--now", "2023-02-14T01:00:00+09:00"]);
    assert_eq!(later["now_us"], json!(T + HOUR));
    let first = &later["hits"][0];
    assert_eq!(first["id"], 1);
    assert_abs_diff_eq!(
        first["recency"]["raw"].as_f64().unwrap(),
        0.995,
        epsilon = 1e-15
    );
    assert_eq!(
        later["ranges"]["ages"],
        json!({"youngest": HOUR, "oldest": 101 * HOUR})
    );
    // B10: before the last access, ages are 0 and recency is 1.
    let earlier = stage.ask_g(&["--now", &time(T - 50 * HOUR)]);
    assert_eq!(earlier["ranges"]["recency"]["max"], 1.0);
    assert_eq!(earlier["ranges"]["ages"]["youngest"], 0);
}

#[test]
fn a_memory_is_asked_with_by_key_or_id_and_can_be_left_out() {
    let stage = Stage::g();
    let ask = |args: &[&str]| answer(stage.query("G", &[args, &["--json"]].concat()).json());
    let by_key = ask(&["--like", "g0"]);
    assert_eq!(by_key, ask(&["--like", "0"]));
    assert_eq!(by_key, ask(&["--vector", &stage.at("q.json")]));

    let without = stage
        .query("G", &["--json", "--like", "g0", "--exclude-self"])
        .json();
    assert_eq!(
        (ids(&without), &without["candidates"]),
        (vec![1, 2], &json!(2))
    );
    assert_eq!(without["memories"], 3);
    // It does not compete: the ranges are those of the others.
    assert_abs_diff_eq!(
        without["ranges"]["relevance"]["max"].as_f64().unwrap(),
        0.6,
        epsilon = 1e-6
    );

    // A key that looks like another memory's id is the key.
    let line = |key: &str| json!({"key": key, "text": key, "created": T_TEXT, "importance": 1});
    stage.import("K", &[[1.0, 0.0], [0.0, 1.0]], &[line("1"), line("x")]);
    let shown = run(["show", &stage.at("K"), "1", "--json"]).json();
    assert_eq!(shown["id"], 0);
}

#[test]
fn a_memory_without_a_vector_cannot_be_asked_with() {
    let stage = Stage::new();
    let line = |key: &str| json!({"key": key, "text": key, "created": T_TEXT, "importance": 1});
    stage.import("S", &[[1.0, 0.0], [0.0, 0.0]], &[line("a"), line("none")]);
    let err = stage.query("S", &["--like", "none"]).fails(1);
    assert!(err.contains("\"none\" has no embedding"), "{err}");
    // B06, B87: it is counted and never a candidate.
    let document = stage.query("S", &["--like", "a", "--json"]).json();
    assert_eq!(
        (&document["memories"], &document["candidates"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(ids(&document), [0]);
    let shown = run(["show", &stage.at("S"), "none", "--json"]).json();
    assert_eq!(shown["embedding"], json!(null));
}

#[test]
fn vectors_are_read_from_json_and_npy() {
    use crate::import_common::{f32_npy, npy_bytes};
    let stage = Stage::g();
    let ask = |args: &[&str]| answer(stage.query("G", &[args, &["--json"]].concat()).json());
    let expected = ask(&["--like", "g0"]);
    let halves: Vec<u8> = [1.0, 0.0]
        .iter()
        .flat_map(|&x| f16::from_f32(x).to_le_bytes())
        .collect();
    let doubles: Vec<u8> = [1.0_f64, 0.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    for (name, content) in [
        ("a.json", b"[1.0, 0]".to_vec()),
        ("b.json", b" [[1, 0.0], [0, 1]]\n".to_vec()),
        ("a.npy", f32_npy(2, &[1.0, 0.0])),
        ("b.npy", npy_bytes("<f2", 1, 2, &halves)),
        ("c.npy", npy_bytes("<f8", 1, 2, &doubles)),
        ("no-ending", f32_npy(2, &[1.0, 0.0, 0.0, 1.0])),
    ] {
        let path = stage.write(name, content);
        assert_eq!(ask(&["--vector", &path]), expected, "{name}");
    }
    let second = ask(&["--like", "g2"]);
    for name in ["b.json", "no-ending"] {
        let path = stage.at(name);
        assert_eq!(
            ask(&["--vector", &path, "--vector-index", "1"]),
            second,
            "{name}"
        );
    }
    // From a pipe, too.
    let mut program = crate::stage::program();
    program.args(["query", &stage.at("G"), "--json", "--vector", "/dev/stdin"]);
    program.stdin(std::fs::File::open(stage.path("q.json")).unwrap());
    assert_eq!(
        answer(crate::stage::Ran::from(program.output().unwrap()).json()),
        expected
    );
}

// B93, B08, B06: no vector is guessed from what is none.
#[test]
fn vectors_that_cannot_be_used_are_errors() {
    let stage = Stage::g();
    for (content, told) in [
        ("[null,1]", "element 0"),
        ("[1e400,1]", "element 0"),
        ("[1,1e39]", "element 1"),
        ("[NaN,1]", "element 0"),
        ("[1,\"0\"]", "element 1"),
        ("[1,2,3]", "3 elements, the rows have 2"),
        ("[1]", "1 elements, the rows have 2"),
        ("[0,-0.0]", "all zeros"),
        ("[]", "no vector"),
        ("[[]]", "no elements"),
        ("[[1,0],[1]]", "vector 1"),
        ("{\"a\": 1}", "expected a list of numbers"),
        ("[1,0", "element 2"),
        ("[1,0] x", "trailing"),
        ("", "EOF"),
    ] {
        let path = stage.write("bad.json", content);
        let err = stage.query("G", &["--vector", &path, "--json"]).fails(1);
        assert!(err.contains(told), "{content}: {err}");
    }
    let path = stage.write(
        "bad.npy",
        crate::import_common::f32_npy(2, &[f32::NAN, 1.0]),
    );
    assert!(
        stage
            .query("G", &["--vector", &path])
            .fails(1)
            .contains("element 0")
    );
    assert!(
        stage
            .query("G", &["--vector", &stage.at("none")])
            .fails(1)
            .contains("none: ")
    );
}

// B88
#[test]
fn another_model_is_an_error_that_names_both() {
    let stage = Stage::g();
    let (source, store) = (stage.at("G-source.npy"), stage.at("M"));
    run([
        "import",
        "npy",
        &source,
        &store,
        "--model",
        "all-MiniLM-L6-v2",
    ])
    .ok();
    let err = stage
        .query("M", &["--like", "g0", "--model", "ada-002"])
        .fails(1);
    assert!(
        err.contains("\"all-MiniLM-L6-v2\"") && err.contains("\"ada-002\""),
        "{err}"
    );
    stage
        .query("M", &["--like", "g0", "--model", "all-MiniLM-L6-v2"])
        .ok();
    assert_eq!(
        run(["info", &store, "--json"]).json()["model"],
        "all-MiniLM-L6-v2"
    );
}

// B36, B38, B03
#[test]
fn k_takes_any_number() {
    let stage = Stage::g();
    for (k, expected) in [
        ("0", &[][..]),
        ("1", &[1]),
        ("2", &[1, 0]),
        ("3", &[1, 0, 2]),
        ("4", &[1, 0, 2]),
        ("18446744073709551615", &[1, 0, 2]),
    ] {
        let document = stage.ask_g(&["-k", k]);
        assert_eq!(ids(&document), expected, "k {k}");
        assert_eq!(document["candidates"], 3);
    }
    assert_eq!(ids(&stage.ask_g(&["--k", "1"])), [1]);
}

// B39, B47
#[test]
fn an_empty_store_gives_an_empty_list() {
    let stage = Stage::new();
    stage.import::<2>("E", &[], &[]);
    let store = stage.at("E");
    let query = stage.write("q.json", "[1, 0]");
    for preset in memorank::scoring::Preset::NAMES {
        let args = ["--vector", &query, "--preset", preset, "--json"];
        let document = stage.query("E", &args).json();
        assert_eq!(document["hits"], json!([]));
        assert_eq!(
            (&document["candidates"], &document["ranges"]),
            (&json!(0), &json!(null))
        );
        let touched = stage.query("E", &[&args[..], &["--touch"]].concat()).json();
        assert_eq!(touched["touched"], 0);
    }
    let text = stage.query("E", &["--vector", &query]).ok();
    assert!(text.ends_with("no candidates\n"), "{text}");
    assert!(!text.contains("newest"), "{text}");
    run(["info", &store]).ok();
    assert_eq!(run(["verify", &store, "--json"]).json()["sound"], true);
    stage.query("E", &["--like", "0"]).fails(1);
    run(["show", &store, "0"]).fails(1);

    // All there is may also be left out.
    let line = json!({"text": "alone", "created": T_TEXT, "importance": 1});
    stage.import("one", &[[1.0, 0.0]], &[line]);
    let alone = stage.query("one", &["--like", "0", "--json"]).json();
    assert_eq!((ids(&alone), scores(&alone)), (vec![0], vec![1.5]));
    let none = stage
        .query("one", &["--like", "0", "--exclude-self", "--json"])
        .json();
    assert_eq!(none["hits"], json!([]));
}

// B73: the type is told, and f16 finds the same.
#[test]
fn f16_ranks_the_same_memories_and_info_tells_the_type() {
    let stage = Stage::g();
    let (source, store) = (stage.at("G-source.npy"), stage.at("H"));
    run(["import", "npy", &source, &store, "--dtype", "f16"]).ok();
    let document = stage.query("H", &["--like", "g0", "--json"]).json();
    assert_eq!(ids(&document), [1, 0, 2]);
    let dtype = |store: &str| run(["info", store, "--json"]).json()["dtype"].clone();
    assert_eq!(dtype(&store), Dtype::F16.name());
    assert_eq!(dtype(&stage.at("G")), Dtype::F32.name());
}
