//! `memorank eval`: files of questions, what is compared, and what is said of it.

use crate::stage::{Ran, Stage, T, overwrite, run, state, time};
use crate::svg::elements;
use serde_json::{Value, json};
use std::fs;

/// Four directions, four memories; the last is the newest. Keys are m0 to m3.
pub fn compass() -> Stage {
    let stage = Stage::new();
    let line = |i: i64| {
        json!({
            "key": format!("m{i}"), "text": format!("memory {i}"), "importance": 1,
            "created": time(T - (3 - i) * 100 * crate::stage::HOUR),
        })
    };
    let rows = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
    stage.import("S", &rows, &(0..4).map(line).collect::<Vec<_>>());
    stage
}

/// Asks for the first memory by its direction, for the third by the last's.
pub const QUESTIONS: &str = r#"
{"id": "q1", "vector": [1, 0.1], "relevant": ["m0"], "category": "north"}
{"vector": [0, -1], "evidence": ["m2", 3, "m2"], "category": 2, "fold": "a"}

{"vector": [0, 1], "relevant": [], "what": 1}
{"vector": [0, 1], "relevant": ["1"], "now": "2023-02-13T15:00:00Z", "agent": 0, "why": [{}], "what": 2}
"#;

fn eval(stage: &Stage, name: &str, queries: &str, args: &[&str]) -> Ran {
    let store = stage.at(name);
    run(["eval", &store, queries].iter().chain(args))
}

fn mean(document: &Value, scoring: usize, measure: &str) -> f64 {
    let measures = document["scorings"][scoring]["measures"]
        .as_array()
        .unwrap();
    let of = measures.iter().find(|of| of["measure"] == measure);
    of.unwrap()["mean"].as_f64().unwrap()
}

#[test]
fn it_measures_what_a_hand_can_count() {
    let stage = compass();
    let queries = stage.write("q.jsonl", QUESTIONS);
    let args = [
        "--compare",
        "cosine",
        "--compare",
        "recency=1",
        "--measure",
        "recall@1",
        "--measure",
        "recall@2",
        "--measure",
        "mrr",
        "--json",
    ];
    let document = eval(&stage, "S", &queries, &args).json();
    // By cosine: m0 first; m3 first and m2 or m0 (both orthogonal, the lower row first) after; m1 first.
    assert_eq!(mean(&document, 0, "recall@1"), (1.0 + 0.5 + 1.0) / 3.0);
    assert_eq!(mean(&document, 0, "recall@2"), (1.0 + 0.5 + 1.0) / 3.0);
    assert_eq!(mean(&document, 0, "mrr"), 1.0);
    // By recency: m3, m2, m1, m0, whatever is asked.
    assert_eq!(mean(&document, 1, "recall@1"), (0.0 + 0.5 + 0.0) / 3.0);
    assert_eq!(mean(&document, 1, "recall@2"), (0.0 + 1.0 + 0.0) / 3.0);
    assert_eq!(mean(&document, 1, "mrr"), (0.25 + 1.0 + 1.0 / 3.0) / 3.0);
    let told = &document["collections"][0];
    for (name, value) in [
        ("questions", json!(3)),
        ("unjudged", json!(1)),
        ("missing", json!(0)),
        ("memories", json!(4)),
        ("ignored", json!(["what", "why"])),
    ] {
        assert_eq!(told[name], value, "{name}");
    }
    let categories = document["scorings"][1]["categories"].as_array().unwrap();
    let names: Vec<_> = categories.iter().map(|of| of["category"].clone()).collect();
    assert_eq!(names, ["2", "north"]);
    assert_eq!(categories[0]["questions"], 1);
    assert_eq!(categories[0]["measures"][1]["mean"], 1.0);
    assert_eq!(document["scorings"][0]["measures"][0].get("gain"), None);
    let gain = &document["scorings"][1]["measures"][0]["gain"];
    let difference = mean(&document, 1, "recall@1") - mean(&document, 0, "recall@1");
    assert!((gain["mean"].as_f64().unwrap() - difference).abs() < 1e-12);
    assert!(gain["low"].as_f64() <= gain["mean"].as_f64());
}

#[test]
fn a_question_has_the_same_figures_by_text_vector_or_matrix() {
    let stage = Stage::new();
    let store = stage.at("T");
    run(["create", &store]).ok();
    let texts = ["the key is under the mat", "it rains", "the cat is out"];
    run([&["add", &store], &texts[..]].concat()).ok();
    let texts = "{\"text\": \"where is the key?\", \"relevant\": [0]}\n\
                 {\"text\": \"the cat\", \"relevant\": [\"2\"]}\n";
    let texts = stage.write("texts.jsonl", texts);
    let asked = |args: &[&str]| run([&["eval", &store], args, &["--json"]].concat()).json();
    let by_text = asked(&[&texts]);
    assert_eq!(mean(&by_text, 0, "mrr"), 1.0);

    let embedder = memorank::stream::HashingEmbedder::new(
        std::num::NonZeroUsize::new(
            run(["info", &store, "--json"]).json()["dim"]
                .as_u64()
                .unwrap() as usize,
        )
        .unwrap(),
    );
    let vectors = ["where is the key?", "the cat"].map(|text| embedder.embedding(text).unwrap());
    let lines = vectors.iter().zip([0, 2]);
    let lines: String = lines
        .map(|(vector, id)| format!("{}\n", json!({"vector": vector, "relevant": [id]})))
        .collect();
    let by_vector = asked(&[&stage.write("vectors.jsonl", lines)]);
    let lines = "{\"relevant\": [0]}\n\n{\"relevant\": [2]}\n";
    let beside = stage.write("beside.jsonl", lines);
    let dim = vectors[0].len();
    stage.write(
        "beside.npy",
        crate::import_common::f32_npy(dim, &vectors.concat()),
    );
    let by_matrix = asked(&[&beside]);
    for other in [by_vector, by_matrix] {
        assert_eq!(other["scorings"], by_text["scorings"]);
    }
}

#[test]
fn several_stores_are_taken_together_and_filters_say_what_competes() {
    let stage = compass();
    crate::stage::copy(&stage.path("S"), &stage.path("other"));
    let (store, other) = (stage.at("S"), stage.at("other"));
    let queries = stage.write("q.jsonl", QUESTIONS);
    let first = stage.write(
        "one.jsonl",
        "{\"vector\": [1, 0], \"relevant\": [\"m3\"]}\n",
    );
    let both = run(["eval", &store, &queries, &other, &first, "--json"]).json();
    assert_eq!(both["questions"], 4);
    assert_eq!(both["collections"][1]["questions"], 1);
    // The fourth question's answer is orthogonal: after m0 and m1, of equal score.
    let expected = (3.0 + 1.0 / 3.0) / 4.0;
    assert!((mean(&both, 0, "mrr") - expected).abs() < 1e-12);

    let document = eval(&stage, "S", &queries, &["--exclude", "m0", "--json"]).json();
    assert_eq!(document["scorings"][0]["out_of_reach"], 1);
    assert!((mean(&document, 0, "mrr") - 2.0 / 3.0).abs() < 1e-12);
    let text = eval(&stage, "S", &queries, &["--exclude", "m0"]).ok();
    let told = "warning: 1 of 4 relevant memories do not compete for their questions: they are filtered out";
    assert!(text.contains(told), "{text}");
    // Nothing was there yet.
    let early = ["--now", "2000-01-01T00:00:00Z", "--json"];
    let err = eval(&stage, "S", &first, &early).fails(1);
    assert!(
        err.contains("no relevant memory competes for its question"),
        "{err}"
    );
    let future = [&early[..], &["--future"]].concat();
    assert!(mean(&eval(&stage, "S", &first, &future).json(), 0, "mrr") > 0.0);
}

#[test]
fn figures_depend_on_the_seed_and_not_on_threads() {
    let stage = compass();
    let queries = stage.write("q.jsonl", QUESTIONS);
    let figures = |args: &[&str]| eval(&stage, "S", &queries, &[args, &["--json"]].concat()).json();
    let one = figures(&["--threads", "1"]);
    for threads in ["0", "2", "7"] {
        assert_eq!(figures(&["--threads", threads]), one);
    }
    let few = figures(&["--resamples", "100", "--seed", "18446744073709551615"]);
    assert_ne!(few["scorings"], one["scorings"]);
    assert_eq!(few["seed"], u64::MAX);
}

#[test]
fn keys_that_no_memory_has_count_as_missed_and_are_told() {
    let stage = compass();
    let lines =
        "{\"vector\": [1, 0], \"relevant\": [\"m0\", \"gone\", 99, \"99\", \"gone\", \"m0\"]}\n";
    let queries = stage.write("q.jsonl", lines);
    let document = eval(&stage, "S", &queries, &["--json"]).json();
    assert_eq!(document["collections"][0]["missing"], 2);
    assert_eq!(mean(&document, 0, "recall@10"), 1.0 / 3.0);
    let text = eval(&stage, "S", &queries, &[]).ok();
    assert!(
        text.contains("note: 2 keys given as relevant and no memory's: counted as missed"),
        "{text}"
    );
    // If it is all of them, the file is about another store.
    let queries = stage.write(
        "q.jsonl",
        "{\"vector\": [1, 0], \"relevant\": [\"D1:1\"]}\n",
    );
    let err = eval(&stage, "S", &queries, &[]).fails(1);
    assert!(err.contains("are the questions about this store?"), "{err}");
}

#[test]
fn files_that_are_no_questions_are_errors_that_say_where() {
    let stage = compass();
    for (content, told) in [
        ("", "no question"),
        (" \n\n", "no question"),
        (
            "{\"vector\": [1, 0], \"relevant\": [\"m0\"]}\nx\n",
            "line 2, column ",
        ),
        ("[1]", "line 1, column "),
        (
            "{\"vector\": [1, 0], \"relevant\": \"m0\"}",
            "line 1, column ",
        ),
        (
            "{\"vector\": [1, 0], \"relevant\": [1.5]}",
            "line 1, column ",
        ),
        (
            "{\"vector\": [1, 0], \"relevant\": [-1]}",
            "line 1, column ",
        ),
        (
            "{\"vector\": [1, 0], \"relevant\": [null]}",
            "line 1, column ",
        ),
        (
            "{\"vector\": [1, null], \"relevant\": [\"m0\"]}",
            "line 1, column ",
        ),
        (
            "{\"vector\": [1, 1e39], \"relevant\": [\"m0\"]}",
            "line 1, column ",
        ),
        (
            "{\"vector\": [1], \"relevant\": [\"m0\"]}",
            "q.jsonl, line 1: ",
        ),
        (
            "{\"vector\": [0, 0], \"relevant\": [\"m0\"]}",
            "q.jsonl, line 1: ",
        ),
        (
            "{\"vector\": [1, 0], \"relevant\": [0], \"evidence\": [0]}",
            "duplicate field",
        ),
        (
            "{\"vector\": [1, 0], \"text\": \"a\", \"relevant\": [0]}",
            "line 1: \"vector\" or \"text\"",
        ),
        (
            "{\"vector\": [1, 0], \"relevant\": [0]}\n{\"relevant\": [0]}",
            "line 2: one of",
        ),
        ("{\"relevant\": [0]}", "q.npy"),
        (
            "{\"text\": \"a\", \"relevant\": [0]}",
            "line 1: the store does not say",
        ),
        (
            "{\"vector\": [1, 0], \"relevant\": [0], \"now\": \"noon\"}",
            "line 1, column ",
        ),
        (
            "{\"vector\": [1, 0], \"relevant\": [0], \"agent\": -1}",
            "line 1, column ",
        ),
        (
            "{\"vector\": [1, 0], \"relevant\": [0], \"category\": []}",
            "line 1, column ",
        ),
        (
            "{\"vector\": [1, 0], \"relevant\": []}",
            "no question has a relevant memory",
        ),
        ("{\"vector\": [1, 0]}", "no question has a relevant memory"),
    ] {
        let queries = stage.write("q.jsonl", content);
        let ran = eval(&stage, "S", &queries, &[]);
        assert_eq!(ran.out, "", "{content}");
        let err = ran.fails(1);
        assert!(err.contains(told), "{content}: {err}");
    }
    // A matrix of another length.
    let queries = stage.write("m.jsonl", "{\"relevant\": [0]}\n{\"relevant\": [1]}\n");
    stage.write("m.npy", crate::import_common::f32_npy(2, &[1.0, 0.0]));
    let err = eval(&stage, "S", &queries, &[]).fails(1);
    assert!(err.contains("1 vectors for the 2 questions"), "{err}");
    eval(&stage, "S", &stage.at("none.jsonl"), &[]).fails(1);
    eval(&stage, "S", &stage.at(""), &[]).fails(1);
}

#[test]
fn what_is_expected_is_said_in_words() {
    let stage = compass();
    for (line, told) in [
        (
            json!({"vector": [1, 0], "relevant": [1.5]}),
            "a key or id: a text or a whole number",
        ),
        (
            json!({"vector": [1, 0], "relevant": [0], "fold": [1]}),
            "a category or fold: a text or a",
        ),
    ] {
        let queries = stage.write("q.jsonl", line.to_string());
        let err = eval(&stage, "S", &queries, &[]).fails(1);
        assert!(
            err.contains(told) && err.matches("line").count() == 1,
            "{err}"
        );
    }
    let marked = stage.write(
        "bom.jsonl",
        "\u{feff}{\"vector\": [1, 0], \"relevant\": [0]}\r\n",
    );
    eval(&stage, "S", &marked, &[]).ok();
}

// A number is what other commands take for a memory: its key, or else its id.
#[test]
fn a_number_is_a_key_before_it_is_an_id() {
    let stage = Stage::new();
    let line = |key: usize| json!({"key": key.to_string(), "text": "t", "created": time(T), "importance": 1});
    stage.import("S", &[[1.0, 0.0], [0.0, 1.0]], &[line(1), line(0)]);
    for relevant in [json!([1]), json!(["1"])] {
        let line = json!({"vector": [1, 0], "relevant": relevant});
        let queries = stage.write("q.jsonl", line.to_string());
        let document = eval(&stage, "S", &queries, &["--json"]).json();
        assert_eq!(mean(&document, 0, "mrr"), 1.0);
    }
}

#[test]
fn categories_are_in_the_order_of_their_numbers() {
    let stage = compass();
    let line = |category: Value| {
        format!(
            "{}\n",
            json!({"vector": [1, 0], "relevant": [0], "category": category})
        )
    };
    let lines: String = [json!(10), json!("b"), json!(9), json!(-1), json!("a")]
        .map(line)
        .concat();
    let queries = stage.write("q.jsonl", lines);
    let document = eval(&stage, "S", &queries, &["--json"]).json();
    let categories = document["scorings"][0]["categories"].as_array().unwrap();
    let names = categories.iter().map(|of| of["category"].clone());
    assert!(names.eq(["-1", "9", "10", "a", "b"].map(Value::from)));
    // Of many the chart shows some.
    let lines: String = (0..300).map(|i| line(json!(i))).collect();
    let (queries, chart) = (stage.write("q.jsonl", lines), stage.at("chart.svg"));
    eval(
        &stage,
        "S",
        &queries,
        &["--resamples", "100", "--svg", &chart],
    )
    .ok();
    let svg = fs::read_to_string(&chart).unwrap();
    elements(&svg);
    assert!(svg.contains("by category, 20 of 300"), "{svg}");
}

#[test]
fn what_is_read_is_not_written_over() {
    let stage = compass();
    let store = stage.at("S");
    let queries = stage.write("q.jsonl", "{\"relevant\": [0]}\n");
    let matrix = stage.write("q.npy", crate::import_common::f32_npy(2, &[1.0, 0.0]));
    let scoring = stage.at("scoring.json");
    let args = ["tune", &store, &queries, "--folds", "2"];
    assert!(run(args).fails(1).contains("2 folds of 1 questions"));
    let weights = json!({
        "weights": {"relevance": 1, "recency": 0, "importance": 0},
        "recency": {"position": {"decay": 1}},
        "normalization": {"min-max": {"constant": 0.5}},
    });
    stage.write("scoring.json", weights.to_string());
    let mask = stage.write("mask", [1u8; 4]);
    std::os::unix::fs::symlink("q.jsonl", stage.path("link")).unwrap();
    let before = crate::stage::files(&stage.path(""));
    let link = stage.at("link");
    for svg in [&queries, &matrix, &scoring, &mask, &link] {
        let common = [&store, &queries, "--mask", &mask, "--svg", svg];
        for command in [
            &["eval", "--compare", &scoring][..],
            &["sweep", "--scoring", &scoring],
        ] {
            let ran = run([&command[..1], &common, &command[1..]].concat());
            assert_eq!(ran.out, "");
            let err = ran.fails(1);
            assert!(err.contains("it is what is read"), "{err}");
        }
    }
    assert_eq!(crate::stage::files(&stage.path("")), before);
    run(["eval", &store, &queries, &format!("{store}/."), &queries]).fails(2);
}

#[test]
fn a_file_that_is_wrong_is_named_among_several() {
    let stage = compass();
    crate::stage::copy(&stage.path("S"), &stage.path("other"));
    let (store, other) = (stage.at("S"), stage.at("other"));
    let good = stage.write("good.jsonl", QUESTIONS);
    let bad = stage.write(
        "bad.jsonl",
        "\n{\"vector\": [1, 2, 3], \"relevant\": [0]}\n",
    );
    let err = run(["eval", &store, &good, &other, &bad]).fails(1);
    assert!(err.contains("bad.jsonl, line 2: "), "{err}");
    run(["eval", &store, &good, &other]).fails(2);
}

#[test]
fn what_is_compared_is_a_name_weights_or_a_file() {
    let stage = compass();
    let queries = stage.write("q.jsonl", QUESTIONS);
    let scoring = json!({
        "weights": {"relevance": 0, "recency": 1, "importance": 0},
        "recency": {"age": {"decay": 0.995, "ticks_per_unit": 3_600_000_000u64, "since": "now"}},
        "normalization": {"min-max": {"constant": 0.5}},
    });
    let file = stage.write("recency.json", scoring.to_string());
    let compare = ["--compare", "recency=1", "--compare", &file, "--json"];
    let document = eval(&stage, "S", &queries, &compare).json();
    let [mix, file] = [0, 1].map(|i| document["scorings"][i]["settings"].clone());
    assert_eq!(mix, file);
    assert_eq!(document["scorings"][1]["measures"][2]["gain"]["mean"], 0.0);
    let all = eval(&stage, "S", &queries, &["--json"]).json();
    let names = all["scorings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["name"].clone());
    let expected = ["cosine", "paper", "reverie", "genagents", "unnormalized"];
    assert!(names.eq(expected.map(Value::from)));

    for wrong in [
        "relevance=-1",
        "relevance=1,weight=2",
        "half-life=1",
        "decay=2",
    ] {
        eval(&stage, "S", &queries, &["--compare", wrong]).fails(2);
    }
    let err = eval(&stage, "S", &queries, &["--compare", "papers"]).fails(1);
    assert!(err.contains("cosine, paper, reverie"), "{err}");
    for wrong in ["recall", "recall@0", "map"] {
        let err = eval(&stage, "S", &queries, &["--measure", wrong]).fails(2);
        assert!(err.contains("is no measure"), "{err}");
    }
}

#[test]
fn scorings_whose_names_are_cut_are_told_apart() {
    let stage = compass();
    let queries = stage.write("q.jsonl", QUESTIONS);
    let long = "relevance=1,recency=0.05,importance=0.5,half-life=30d";
    let other = "relevance=1,recency=0.05,importance=0.25,half-life=30d";
    let chart = stage.at("chart.svg");
    let args = ["--compare", long, "--compare", other, "--svg", &chart];
    eval(&stage, "S", &queries, &args).ok();
    let svg = fs::read_to_string(&chart).unwrap();
    for told in ["1: relevanc…", "2: relevanc…"] {
        assert!(svg.contains(told), "{told}: {svg}");
    }
    let document = eval(&stage, "S", &queries, &[&args[..4], &["--json"]].concat()).json();
    assert_eq!(document["scorings"][1]["name"], other);
}

#[test]
fn its_text_has_three_tables() {
    let stage = compass();
    let queries = stage.write("q.jsonl", QUESTIONS);
    let text = eval(&stage, "S", &queries, &[]).ok();
    for told in [
        "note: 1 question without a relevant memory left out",
        "note: fields not looked at: what, why",
        "3 questions\nscoring       recall@10  precision@10  mrr     ndcg@10\ncosine        1.0000",
        "over cosine, with 95 % intervals (10,000 paired resamples, seed 1)",
        "recall@10 by category\ncategory   cosine  paper   reverie  genagents  unnormalized\n2 (1)      1.0000",
        "\nnorth (1)  1.0000",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn it_draws_a_chart_and_changes_no_store() {
    let stage = compass();
    let queries = stage.write("q.jsonl", QUESTIONS);
    let before = state(&stage.path("S"));
    let chart = stage.at("chart.svg");
    let steering = "relevance=1,recency=0.5";
    eval(
        &stage,
        "S",
        &queries,
        &[
            "--svg",
            &chart,
            "--compare",
            "cosine",
            "--compare",
            steering,
        ],
    )
    .ok();
    let svg = fs::read_to_string(&chart).unwrap();
    let names = elements(&svg);
    for name in ["rect", "line", "circle", "text", "desc"] {
        assert!(names.iter().any(|found| found == name), "{name}");
    }
    assert!(svg.contains("recall@10, all questions") && svg.contains("recall@10 by category"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    // Without categories there is one panel.
    let plain = stage.write("p.jsonl", "{\"vector\": [1, 0], \"relevant\": [0]}\n");
    eval(&stage, "S", &plain, &["--svg", &chart]).ok();
    let svg = fs::read_to_string(&chart).unwrap();
    elements(&svg);
    assert!(!svg.contains("by category"));
    for wrong in ["S/chart.svg", "none/chart.svg"] {
        let ran = eval(&stage, "S", &queries, &["--svg", &stage.at(wrong)]);
        assert_eq!(ran.out, "");
        assert!(ran.fails(1).contains("cannot write"));
    }
    assert_eq!(state(&stage.path("S")), before);
}

#[test]
fn damage_is_told() {
    let stage = compass();
    let queries = stage.write("q.jsonl", QUESTIONS);
    overwrite(&stage.path("S/importance.f32"), 4, &f32::NAN.to_le_bytes());
    let err = eval(&stage, "S", &queries, &[]).fails(3);
    assert!(err.contains("row 1"), "{err}");
}
