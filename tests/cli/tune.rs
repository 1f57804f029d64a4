//! `memorank tune`: folds, what is tried, and the scoring that is written.

use crate::eval::compass;
use crate::stage::{HOUR, Ran, Stage, T, files, run, time};
use crate::svg::elements;
use serde_json::{Value, json};
use std::fs;

/// A store of 60 memories in random directions, an hour apart, and 40 questions about the newest ten, asked by random
/// directions: only recency can find them.
fn recent() -> (Stage, String) {
    let mut random = crate::common::Random(20);
    let mut vector = || -> [f32; 4] { random.vector(4).try_into().unwrap() };
    let line = |i: i64| json!({"text": "t", "created": time(T - (59 - i) * HOUR), "importance": 1});
    let rows: Vec<[f32; 4]> = (0..60).map(|_| vector()).collect();
    let stage = Stage::new();
    stage.import("S", &rows, &(0..60).map(line).collect::<Vec<_>>());
    let lines: String = (0..40)
        .map(|i| {
            format!(
                "{}\n",
                json!({"vector": vector(), "relevant": [50 + i % 10]})
            )
        })
        .collect();
    let queries = stage.write("q.jsonl", lines);
    (stage, queries)
}

fn tune(stage: &Stage, queries: &str, args: &[&str]) -> Ran {
    let store = stage.at("S");
    run(["tune", &store, queries].iter().chain(args))
}

/// A grid that is tried in no time.
const SMALL: &[&str] = &[
    "--recency",
    "0.5,5",
    "--importance",
    "1",
    "--half-life",
    "10h,2d",
];

#[test]
fn what_it_writes_is_what_a_query_takes() {
    let (stage, queries) = recent();
    let (out, chart) = (stage.at("scoring.json"), stage.at("chart.svg"));
    let args = [SMALL, &["--out", &out, "--svg", &chart, "--json"]].concat();
    let document = tune(&stage, &queries, &args).json();
    assert_eq!(document["beats_cosine"], true);
    assert!(document["gain"]["low"].as_f64().unwrap() > 0.0);
    // Cosine; with importance; two weights of recency, two of importance, two decays.
    assert_eq!(document["settings"], 2 + 2 * 2 * 2);
    assert_eq!(document["folds_by"], "random");
    assert_eq!(document["folds"].as_array().unwrap().len(), 5);
    let best = &document["best"];
    assert!(best["mean"].as_f64() > document["cosine"].as_f64());
    let written: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(written, document["scoring"]);
    assert_eq!(written["weights"]["recency"], best["recency"]);

    let asked = stage
        .query("S", &["--like", "3", "--scoring", &out, "--json"])
        .json();
    assert_eq!(asked["settings"]["scoring"], written);
    assert_eq!(asked["scoring_file"], out);
    assert_eq!(asked["settings"]["k"], 30);
    // Flags change what the file says.
    let args = [
        "--like",
        "3",
        "--scoring",
        &out,
        "--recency",
        "0.25",
        "--json",
    ];
    let asked = stage.query("S", &args).json();
    assert_eq!(asked["settings"]["scoring"]["weights"]["recency"], 0.25);
    let text = stage.query("S", &["--like", "3", "--scoring", &out]).ok();
    assert!(
        text.contains("preset paper with /") && text.contains("scoring.json, now"),
        "{text}"
    );
    // Measured again on all questions, it is as good as was said.
    let store = stage.at("S");
    let again = run([
        "eval",
        &store,
        &queries,
        "--compare",
        "cosine",
        "--compare",
        &out,
        "--json",
    ])
    .json();
    let mean = |i: usize| {
        again["scorings"][i]["measures"][0]["mean"]
            .as_f64()
            .unwrap()
    };
    assert!((mean(0) - document["cosine"].as_f64().unwrap()).abs() < 1e-12);
    assert!((mean(1) - best["mean"].as_f64().unwrap()).abs() < 1e-12);
    let svg = fs::read_to_string(&chart).unwrap();
    assert_eq!(
        elements(&svg)
            .iter()
            .filter(|name| *name == "polyline")
            .count(),
        3
    );
    for told in [
        "Recency",
        "Half-life",
        "Importance",
        "dashed: cosine",
        ">10 h<",
        ">48 h<",
    ] {
        assert!(svg.contains(told), "{told}");
    }
}

#[test]
fn it_says_plainly_that_nothing_beats_cosine() {
    let stage = compass();
    let lines: String = (0..24)
        .map(|i| {
            let [x, y] = [[1, 0], [0, 1], [-1, 0], [0, -1]][i % 4];
            format!(
                "{}\n",
                json!({"vector": [x, y], "relevant": [format!("m{}", i % 4)]})
            )
        })
        .collect();
    let queries = stage.write("q.jsonl", lines);
    let out = stage.at("scoring.json");
    let args = [SMALL, &["--measure", "recall@1", "--out", &out]].concat();
    let text = tune(&stage, &queries, &args).ok();
    assert!(
        text.contains("Nothing beats cosine alone by more than chance"),
        "{text}"
    );
    assert!(
        text.contains("held-out gain over cosine alone: +0.0000 (+0.0000 to +0.0000)"),
        "{text}"
    );
    let written: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(
        written["weights"],
        json!({"relevance": 1.0, "recency": 0.0, "importance": 0.0})
    );
}

#[test]
fn folds_are_given_or_stores_or_random() {
    let (stage, queries) = recent();
    let folds = |args: &[&str]| {
        let document = run([&["tune"], args, SMALL, &["--json"]].concat()).json();
        let folds = document["folds"].as_array().unwrap().iter();
        let folds = folds.map(|of| format!("{} {}", of["fold"].as_str().unwrap(), of["questions"]));
        (
            document["folds_by"].as_str().unwrap().to_owned(),
            folds.collect::<Vec<_>>(),
        )
    };
    let store = stage.at("S");
    let random =
        |n: usize, each: usize| -> Vec<String> { (1..=n).map(|i| format!("{i} {each}")).collect() };
    assert_eq!(folds(&[&store, &queries]), ("random".into(), random(5, 8)));
    assert_eq!(
        folds(&[&store, &queries, "--folds", "4"]),
        ("random".into(), random(4, 10))
    );

    crate::stage::copy(&stage.path("S"), &stage.path("other"));
    let other = stage.at("other");
    let few = stage.write(
        "few.jsonl",
        "{\"vector\": [1, 0, 0, 0], \"relevant\": [55]}\n",
    );
    let by_store = folds(&[&store, &queries, &other, &few]);
    assert_eq!(
        by_store,
        ("stores".into(), vec!["S 40".into(), "other 1".into()])
    );

    let given = fs::read_to_string(&queries).unwrap();
    let given: String = (given.lines().enumerate())
        .map(|(i, line)| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line["fold"] = if i < 30 { json!("spring") } else { json!(7) };
            format!("{line}\n")
        })
        .collect();
    let given = stage.write("given.jsonl", given);
    assert_eq!(
        folds(&[&store, &given]),
        ("given".into(), vec!["7 10".into(), "spring 30".into()])
    );
    assert_eq!(
        folds(&[&store, &given, "--folds", "2"]),
        ("random".into(), random(2, 20))
    );

    // Some name a fold, some do not.
    let err = run(["tune", &store, &given, &other, &few]).fails(1);
    assert!(err.contains("40 of 41 questions name their fold"), "{err}");
    let one = "{\"vector\": [1, 0, 0, 0], \"relevant\": [55], \"fold\": 1}\n".repeat(3);
    let one = stage.write("one.jsonl", one);
    assert!(
        tune(&stage, &one, &[])
            .fails(1)
            .contains("at least two folds")
    );
    for folds in ["0", "1", "-1", "x"] {
        tune(&stage, &queries, &["--folds", folds]).fails(2);
    }
    let err = tune(&stage, &few, &[]).fails(1);
    assert!(err.contains("5 folds of 1 questions"), "{err}");
}

// Questions about one conversation in two folds would be chosen by what they resemble.
#[test]
fn a_store_that_is_given_twice_is_one_fold() {
    let (stage, queries) = recent();
    let store = stage.at("S");
    let other = stage.write("other.jsonl", fs::read_to_string(&queries).unwrap());
    let dotted = format!("{store}/.");
    let args = ["tune", &store, &queries, &dotted, &other, "--json"];
    let document = run([&args[..], SMALL].concat()).json();
    assert_eq!(document["folds_by"], "random");
    // Two of the same name are told apart.
    fs::create_dir(stage.path("b")).unwrap();
    crate::stage::copy(&stage.path("S"), &stage.path("b/S"));
    let second = stage.at("b/S");
    let args = ["tune", &store, &queries, &second, &other, "--json"];
    let document = run([&args[..], SMALL].concat()).json();
    let folds = document["folds"].as_array().unwrap().iter();
    let names: std::collections::BTreeSet<_> = folds.map(|of| of["fold"].to_string()).collect();
    assert_eq!(names.len(), 2);
}

#[test]
fn little_is_not_taken_for_much() {
    let (stage, queries) = recent();
    let all = fs::read_to_string(&queries).unwrap();
    let few: String = all
        .lines()
        .take(12)
        .map(|line| format!("{line}\n"))
        .collect();
    let few = stage.write("few.jsonl", few);
    let document = tune(&stage, &few, &[SMALL, &["--json"]].concat()).json();
    assert_eq!(document["beats_cosine"], false);
    let text = tune(&stage, &few, SMALL).ok();
    assert!(
        text.contains("Fewer than 20 questions tell nothing for sure"),
        "{text}"
    );

    let err = tune(
        &stage,
        &queries,
        &[
            "--kind",
            "observation",
            "--created-until",
            "2000-01-01T00:00:00Z",
        ],
    )
    .fails(1);
    assert!(err.contains("no relevant memory competes"), "{err}");
    let many: Vec<String> = (1..=400).map(|i| i.to_string()).collect();
    let many = many.join(",");
    let err = tune(
        &stage,
        &queries,
        &["--recency", &many, "--importance", &many],
    )
    .fails(2);
    assert!(err.contains("100,000 are the most"), "{err}");
}

#[test]
fn figures_depend_on_the_seed_and_not_on_threads() {
    let (stage, queries) = recent();
    let figures =
        |args: &[&str]| tune(&stage, &queries, &[SMALL, args, &["--json"]].concat()).json();
    let one = figures(&["--threads", "1"]);
    assert_eq!(figures(&["--threads", "3"]), one);
    assert_ne!(figures(&["--seed", "2"])["folds"], one["folds"]);
    let given = figures(&["--decay", "0.5,1,0"]);
    // Half-lives and decays are tried together.
    assert_eq!(given["settings"], 2 + 2 * 2 * 5);
}

#[test]
fn numbers_out_of_range_are_usage_errors_and_nothing_is_written() {
    let (stage, queries) = recent();
    let out = stage.at("scoring.json");
    for args in [
        &["--recency", "-1"][..],
        &["--recency", "x"],
        &["--importance", "inf"],
        &["--decay", "1.5"],
        &["--decay", "NaN"],
        &["--half-life", "5"],
        &["--measure", "recall"],
        &["--resamples", "0"],
        &["--resamples", "99"],
        &["--resamples", "1000001"],
        &["--seed", "-1"],
    ] {
        tune(&stage, &queries, &[args, &["--out", &out]].concat()).fails(2);
    }
    assert!(!stage.path("scoring.json").exists());
    tune(&stage, &queries, &["--out", &out, "--svg", &out]).fails(2);
    let before = files(&stage.path("S"));
    let ran = tune(&stage, &queries, &["--out", &stage.at("S/scoring.json")]);
    assert!(ran.fails(1).contains("it would lie in the store"));
    assert_eq!(files(&stage.path("S")), before);
}

#[test]
fn a_file_that_is_no_scoring_is_an_error_that_says_why() {
    let stage = Stage::g();
    let good = json!({
        "weights": {"relevance": 1, "recency": 1, "importance": 1},
        "recency": {"age": {"decay": 0.995, "ticks_per_unit": 3_600_000_000u64, "since": "now"}},
        "normalization": {"min-max": {"constant": 0.5}},
    });
    let with = |at: &str, value: Value| {
        let mut scoring = good.clone();
        *scoring.pointer_mut(at).unwrap() = value;
        scoring.to_string()
    };
    let mut unknown = good.clone();
    unknown["weight"] = json!(1);
    let mut unknown_inside = good.clone();
    unknown_inside["recency"]["age"]["floor"] = json!(1);
    for (content, told) in [
        (String::new(), "EOF"),
        ("[]".into(), "invalid"),
        ("{}".into(), "missing field"),
        (unknown.to_string(), "unknown field `weight`"),
        (unknown_inside.to_string(), "unknown field `floor`"),
        (
            with("/weights/recency", json!(-1)),
            "the weight of recency is -1",
        ),
        (with("/weights/recency", json!(null)), "null"),
        (with("/recency/age/decay", json!(1.5)), "the decay is 1.5"),
        (with("/recency/age/ticks_per_unit", json!(0)), "nonzero"),
        (
            with("/recency", json!({"position": {"decay": 2}})),
            "the decay is 2",
        ),
        (with("/normalization", json!("mean")), "unknown variant"),
        (with("/recency", json!("given")), "recencies that are given"),
        (format!("{good} x"), "trailing"),
    ] {
        let file = stage.write("scoring.json", content);
        for command in [
            &["query", "--like", "g1"][..],
            &["explain", "g0", "--like", "g1"],
        ] {
            let store = stage.at("G");
            let args = [&[command[0], &store], &command[1..], &["--scoring", &file]].concat();
            let err = run(args).fails(1);
            assert!(
                err.contains("scoring.json: ") && err.contains(told),
                "{told}: {err}"
            );
        }
    }
    stage
        .query("G", &["--like", "g1", "--scoring", &stage.at("none")])
        .fails(1);
    stage
        .query("G", &["--like", "g1", "--scoring", "/dev/zero"])
        .fails(1);
}
