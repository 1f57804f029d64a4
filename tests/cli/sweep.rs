//! `memorank sweep`: the best that stay.

use crate::eval::{QUESTIONS, compass};
use crate::stage::{Stage, run, state};
use crate::svg::elements;
use serde_json::{Value, json};
use std::fs;

fn sweep(stage: &Stage, args: &[&str]) -> Value {
    let (store, queries) = (stage.at("S"), stage.at("q.jsonl"));
    run([&["sweep", &store, &queries], args, &["--json"]].concat()).json()
}

fn overlap(document: &Value, signal: usize, point: usize) -> f64 {
    let point = &document["curves"][signal]["points"][point];
    point["overlap"].as_f64().unwrap()
}

#[test]
fn it_tells_the_share_that_stays() {
    let stage = compass();
    stage.write("q.jsonl", QUESTIONS);
    let document = sweep(&stage, &["-k", "1", "--factors", "100,0,1"]);
    assert_eq!(document["questions"], 4);
    assert_eq!(document["factors"], json!([0.0, 1.0, 100.0]));
    // With all weights the newest, m3, is first where it is asked for. Elsewhere relevance decides beside it.
    assert_eq!(overlap(&document, 0, 1), 1.0);
    assert_eq!(overlap(&document, 1, 1), 1.0);
    // Without relevance m3 is first, always; with much of it, what points there.
    let paper = |args: &[&str]| -> Vec<u64> {
        let ask = |vector: &str| {
            let vector = stage.write("v.json", vector);
            let args = [&["--vector", &vector, "-k", "1", "--json"], args].concat();
            crate::stage::ids(&stage.query("S", &args).json())[0]
        };
        ["[1, 0.1]", "[0, -1]", "[0, 1]", "[0, 1]"]
            .map(ask)
            .to_vec()
    };
    let base = paper(&[]);
    for (signal, name) in ["--relevance", "--recency", "--importance"]
        .iter()
        .enumerate()
    {
        for (point, weight) in ["0", "1", "100"].iter().enumerate() {
            let other = paper(&[name, weight]);
            let same = base.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert_eq!(
                overlap(&document, signal, point),
                same as f64 / 4.0,
                "{name} {weight}"
            );
        }
    }
    // All of four stay among four.
    let all = sweep(&stage, &["-k", "4"]);
    assert_eq!(all["factors"].as_array().unwrap().len(), 10);
    assert!((0..10).all(|point| overlap(&all, 1, point) == 1.0));
}

#[test]
fn right_answers_are_not_looked_at() {
    let stage = compass();
    let line = |relevant: Value| format!("{}\n", json!({"vector": [1, 0], "relevant": relevant}));
    stage.write("q.jsonl", line(json!(["gone"])));
    let unknown = sweep(&stage, &[]);
    stage.write("q.jsonl", line(json!([])));
    assert_eq!(sweep(&stage, &[]), unknown);
}

#[test]
fn a_weight_of_0_is_taken_for_1() {
    let stage = compass();
    stage.write("q.jsonl", QUESTIONS);
    let document = sweep(&stage, &["--recency", "0", "--factors", "0,2"]);
    let curve = &document["curves"][1];
    assert_eq!(curve["weight"], 0.0);
    assert_eq!(curve["points"][1]["weight"], 2.0);
    assert_eq!(overlap(&document, 1, 0), 1.0);
}

#[test]
fn it_prints_a_table_and_draws_a_chart() {
    let stage = compass();
    let queries = stage.write("q.jsonl", QUESTIONS);
    let before = state(&stage.path("S"));
    let (store, chart) = (stage.at("S"), stage.at("chart.svg"));
    let text = run(["sweep", &store, &queries, "-k", "2", "--svg", &chart]).ok();
    for told in [
        "share of the 2 best under preset paper that stays when one weight is multiplied; 4 questions",
        "factor  relevance (1)  recency (1)  importance (1)",
        "\n0.0625  ",
        "\n16      ",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let svg = fs::read_to_string(&chart).unwrap();
    assert_eq!(
        elements(&svg)
            .iter()
            .filter(|name| *name == "polyline")
            .count(),
        3
    );
    assert!(svg.contains("Weight of recency"));
    assert_eq!(state(&stage.path("S")), before);
}

#[test]
fn what_cannot_be_swept_is_an_error() {
    let stage = compass();
    let queries = stage.write("q.jsonl", QUESTIONS);
    let store = stage.at("S");
    let sweep = |args: &[&str]| run([&["sweep", &store, &queries], args].concat());
    for args in [
        &["-k", "0"][..],
        &["--created-until", "2000-01-01T00:00:00Z"],
    ] {
        let err = sweep(args).fails(1);
        assert!(err.contains("no question returns a memory"), "{err}");
    }
    for args in [
        &["--factors", "-1"][..],
        &["--factors", "x"],
        &["--factors", "NaN"],
        &["--decay", "observation=0.5"],
        &["--relevance", "1e308", "--factors", "1000"],
    ] {
        sweep(args).fails(2);
    }
}
