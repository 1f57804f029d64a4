//! `memorank bench`. What it measures is not looked at, only what it says and writes.

use crate::stage::{Ran, Stage, T, T_TEXT, copy, overwrite, run, state, time};
use crate::svg::elements;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

/// A store `S` of 2,000 memories, of which every seventh has no vector.
fn thousands(name: &str) -> Stage {
    let mut random = crate::common::Random(12);
    let rows: Vec<[f32; 20]> = (0..2000)
        .map(|row| match row % 7 {
            3 => [0.0; 20],
            _ => random.vector(20).try_into().unwrap(),
        })
        .collect();
    let line = |i: i64| {
        json!({
            "text": format!("memory {i}"), "created": T_TEXT, "last_access": time(T - i * 1_000_000),
            "importance": i % 10,
        })
    };
    let stage = Stage::new();
    stage.import(name, &rows, &(0..2000).map(line).collect::<Vec<_>>());
    stage
}

fn bench(stage: &Stage, name: &str, args: &[&str]) -> Ran {
    let store = stage.at(name);
    run(["bench", &store, "--rounds", "2"].iter().chain(args))
}

#[test]
fn it_prints_roofline_and_growth() {
    let stage = thousands("S");
    let text = bench(&stage, "S", &[]).ok();
    let told = |words: &str| assert!(text.contains(words), "{words}: {text}");
    told("2,000 memories x 20 f32");
    told("without a vector: 286");
    told("preset paper, k 30");
    told("medians of 2 rounds");
    told("f64 oracle, first 2,000 memories: agrees");
    let lines = |name: &str| text.lines().filter(|line| line.contains(name)).count();
    let lanes = lines("cosine scan");
    assert!(lanes == 1 || lanes == 2, "{text}");
    assert_eq!(lines(" plain read  "), lanes);
    assert_eq!(lines(" 1,000 "), lanes);
    // The heading and the oracle say it too.
    assert_eq!(lines(" 2,000 "), lanes + 2);
    assert!(text.lines().all(|line| line.chars().count() <= 120));
}

#[test]
fn its_document_has_every_lane_and_size() {
    let stage = thousands("S");
    let document = bench(&stage, "S", &["--json", "--k", "7"]).json();
    for (name, value) in [
        ("schema", json!("memorank.bench/1")),
        ("memories", json!(2000)),
        ("without_vector", json!(286)),
        ("dim", json!(20)),
        ("dtype", json!("f32")),
        ("preset", json!("paper")),
        ("k", json!(7)),
        ("now", json!(T_TEXT)),
        ("now_us", json!(T)),
        ("rounds", json!(2)),
    ] {
        assert_eq!(document[name], value, "{name}");
    }
    assert_eq!(document["oracle"]["agrees"], true);
    assert_eq!(document["oracle"]["checked"], 2000);
    // Evenly spread, and none of those without a vector.
    assert_eq!(document["queries"], json!([0, 666, 1332]));

    let positive = |speed: &Value| {
        let number = |name: &str| speed[name].as_f64().unwrap();
        assert!(number("seconds") > 0.0 && number("gb_per_s") > 0.0);
        assert!(number("of_plain_read") > 0.0, "{speed}");
    };
    let lanes = document["roofline"].as_array().unwrap();
    assert_eq!(lanes[0]["threads"], 1);
    for lane in lanes {
        for name in ["plain_read", "cosine_scan", "ranking"] {
            positive(&lane[name]);
        }
        let row = 20 * 4 + 4;
        assert_eq!(lane["cosine_scan"]["bytes"], 2000 * row);
        assert_eq!(lane["ranking"]["bytes"], 2000 * (row + 12));
        assert_eq!(lane["plain_read"]["bytes"], lane["ranking"]["bytes"]);
        assert_eq!(lane["plain_read"]["of_plain_read"], 1.0);
    }
    let points = document["growth"].as_array().unwrap();
    let found: Vec<_> = points
        .iter()
        .map(|point| (point["threads"].clone(), point["memories"].clone()))
        .collect();
    let expected: Vec<_> = lanes
        .iter()
        .flat_map(|lane| [1000, 2000].map(|n| (lane["threads"].clone(), json!(n))))
        .collect();
    assert_eq!(found, expected);
    for point in points {
        positive(&point["ranking"]);
    }
}

#[test]
fn it_changes_no_byte_of_the_store_and_leaves_only_the_chart() {
    let stage = thousands("S");
    let before = state(&stage.path("S"));
    fs::create_dir(stage.path("charts")).unwrap();
    let chart = stage.write("charts/chart.svg", "an older one");
    bench(&stage, "S", &["--svg", &chart]).ok();
    assert_eq!(state(&stage.path("S")), before);
    let left: Vec<_> = fs::read_dir(stage.path("charts")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");

    let svg = fs::read_to_string(&chart).unwrap();
    let names = elements(&svg);
    assert_eq!(names[..4], ["svg", "title", "desc", "style"]);
    let kinds: BTreeSet<_> = names.iter().map(|name| &**name).collect();
    for name in ["rect", "line", "polyline", "text"] {
        assert!(kinds.contains(name), "{name}: {svg}");
    }
    for told in [
        "2,000 memories x 20 f32",
        "1 thread",
        "plain read",
        "cosine scan",
        "prefers-color-scheme: dark",
        ">1k<",
        ">2k<",
    ] {
        assert!(svg.contains(told), "{told}: {svg}");
    }
}

#[test]
fn a_name_is_text_in_the_chart() {
    let name = "<script>&\"a\" 'b'\u{1b}[31m\u{202e}";
    let stage = thousands(name);
    let chart = stage.at("chart.svg");
    bench(&stage, name, &["--svg", &chart]).ok();
    let svg = fs::read_to_string(&chart).unwrap();
    assert!(!elements(&svg).contains(&"script".to_owned()));
    assert!(!svg.contains(['\u{1b}', '\u{202e}']), "{svg}");
}

#[test]
fn stores_with_nothing_to_rank_are_errors() {
    let stage = Stage::new();
    stage.write("e.jsonl", "");
    let empty = stage.write("e.npy", crate::import_common::f32_npy(2, &[]));
    run(["import", "npy", &empty, &stage.at("empty"), "--dim", "2"]).ok();
    let line = json!({"text": "t", "created": T_TEXT, "importance": 1});
    stage.import("bare", &[[0.0, 0.0]; 3], &vec![line; 3]);
    for (name, told) in [
        ("empty", "has no memories"),
        ("bare", "none of the 3 memories"),
        ("none", "does not exist"),
    ] {
        for form in [&[][..], &["--json"]] {
            let chart = stage.at("chart.svg");
            let ran = bench(&stage, name, &[&["--svg", &chart], form].concat());
            assert_eq!(ran.out, "");
            let err = ran.fails(1);
            assert!(err.contains(told) && err.contains(name), "{err}");
            assert!(!stage.path("chart.svg").exists());
        }
    }
}

#[test]
fn small_stores_work() {
    let line = json!({"text": "t", "created": T_TEXT, "importance": 1});
    for n in [1, 2, 3, 4] {
        let stage = Stage::new();
        let mut rows = vec![[0.0, 0.0]; n];
        rows[n - 1] = [0.6, 0.8];
        rows[n / 2] = [1.0, 0.0];
        stage.import("S", &rows, &vec![line.clone(); n]);
        let chart = stage.at("chart.svg");
        for k in ["0", "1", "30"] {
            let args = ["-k", k, "--json", "--svg", &chart];
            let document = bench(&stage, "S", &args).json();
            assert_eq!(document["growth"][0]["memories"], n);
            elements(&fs::read_to_string(&chart).unwrap());
        }
    }
}

#[test]
fn charts_that_cannot_be_written_are_errors_before_anything_is_measured() {
    let stage = Stage::g();
    stage.write("a file", "kept");
    fs::create_dir(stage.path("folder")).unwrap();
    symlink("G", stage.path("link")).unwrap();
    let before = (state(&stage.path("")), state(&stage.path("G")));
    for path in [
        "none/chart.svg",
        "a file/chart.svg",
        "folder",
        "G/chart.svg",
        "G/embedding.f32",
        "link/manifest",
        "/dev/null",
        "",
    ] {
        let path = match path {
            "" => String::new(),
            // Joined to an absolute one, this is the latter.
            path => stage.at(path),
        };
        // So many rounds that measuring first would be noticed.
        let store = stage.at("G");
        let ran = run(["bench", &store, "--rounds", "10000", "--svg", &path]);
        assert_eq!(ran.out, "");
        let code = if path.is_empty() { 2 } else { 1 };
        let err = ran.fails(code);
        assert!(path.is_empty() || err.contains("cannot write"), "{err}");
    }
    let after = (state(&stage.path("")), state(&stage.path("G")));
    assert_eq!(after, before);
}

#[test]
fn a_chart_behind_a_link_is_replaced_and_the_link_stays() {
    let stage = Stage::g();
    fs::create_dir(stage.path("charts")).unwrap();
    stage.write("charts/real.svg", "older");
    symlink("charts/real.svg", stage.path("link.svg")).unwrap();
    bench(&stage, "G", &["--svg", &stage.at("link.svg")]).ok();
    assert!(stage.path("link.svg").is_symlink());
    elements(&fs::read_to_string(stage.path("charts/real.svg")).unwrap());
}

#[test]
fn damage_is_found_before_anything_is_measured() {
    let stage = Stage::g();
    for name in ["inv_norm.f32", "importance.f32", "embedding.f32"] {
        copy(&stage.path("G"), &stage.path("damaged"));
        let file = stage.path("damaged").join(name);
        overwrite(&file, 0, &f32::NAN.to_le_bytes());
        let chart = stage.at("chart.svg");
        let ran = bench(&stage, "damaged", &["--svg", &chart]);
        assert_eq!(ran.out, "", "{name}");
        ran.fails(3);
        assert!(!stage.path("chart.svg").exists());
        fs::remove_dir_all(stage.path("damaged")).unwrap();
    }
}
