//! The same answer from every instruction set, number of threads, and from the library.

use crate::common::{THREADS, kernels};
use crate::stage::{HOUR, Ran, Stage, T, program, time};
use memorank::Par;
use memorank::kernel::Isa;
use memorank::scoring::{Preset, Ranking, Workspace};
use memorank::store::Store;
use memorank::stream::{self, Ask};
use memorank_data_gen::{Config, Stream};
use serde_json::{Value, json};

const DIM: usize = 33;

/// A store `S` of generated memories, and the query `q.json`.
fn generated(memories: usize) -> Stage {
    let stream = Stream::new(Config {
        memories,
        dim: DIM,
        seed: 7,
    })
    .unwrap();
    let stage = Stage::new();
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for block in stream.blocks() {
        for memory in block.memories() {
            rows.push(<[f32; DIM]>::try_from(memory.embedding).unwrap());
            lines.push(json!({
                "key": memory.key(), "text": memory.text(), "kind": memory.kind.as_str(),
                "created": time(memory.created), "last_access": time(memory.last_access),
                "importance": memory.importance,
            }));
        }
    }
    // Ties, and one whose text the authors' code leaves out.
    for at in [1, 2, 3] {
        rows[at] = rows[0];
        for field in ["last_access", "importance"] {
            lines[at][field] = lines[0][field].clone();
        }
    }
    lines[0]["text"] = "the desk is idle".into();
    stage.import("S", &rows, &lines);
    stage.write("q.json", serde_json::to_string(&stream.query(0)).unwrap());
    stage
}

fn query(stage: &Stage, isa: Option<&str>, args: &[&str]) -> Ran {
    let mut program = program();
    if let Some(isa) = isa {
        program.env("MEMORANK_ISA", isa);
    }
    let (store, vector) = (stage.at("S"), stage.at("q.json"));
    program
        .args(["query", &store, "--vector", &vector, "--json"])
        .args(args);
    program.output().unwrap().into()
}

/// The document's text, but for the name of the instruction set. A score that differs in the last bit is
/// printed differently.
pub fn without_isa(document: &str) -> (String, String) {
    let isa = serde_json::from_str::<Value>(document).unwrap()["isa"]
        .as_str()
        .unwrap()
        .to_owned();
    let line = format!("\"isa\": \"{isa}\"");
    assert_eq!(document.matches(&line).count(), 1);
    (document.replace(&line, ""), isa)
}

// B07, B77
#[test]
fn every_instruction_set_and_number_of_threads_gives_the_same_bits() {
    let stage = generated(500);
    for preset in Preset::NAMES {
        let args = ["--preset", preset, "-k", "500"];
        let (expected, best) = without_isa(&query(&stage, None, &args).ok());
        assert_eq!(best, Isa::best().name());
        for kernel in kernels() {
            let name = kernel.isa().name();
            let (found, isa) = without_isa(&query(&stage, Some(name), &args).ok());
            assert_eq!(isa, name);
            assert!(found == expected, "{preset} {name}");
        }
        for threads in THREADS.map(|n| n.to_string()) {
            let args = [&args[..], &["--threads", &threads]].concat();
            let (found, _) = without_isa(&query(&stage, None, &args).ok());
            assert!(found == expected, "{preset} {threads} threads");
        }
    }
}

#[test]
fn an_instruction_set_that_is_not_there_is_a_usage_error() {
    let stage = generated(10);
    for name in ["sse9", "AVX2 ", ""] {
        let err = query(&stage, Some(name), &[]).fails(2);
        assert!(
            err.contains("MEMORANK_ISA") && err.contains("scalar, portable"),
            "{err}"
        );
        let mut demo = program();
        demo.args(["demo", "--memories", "3"])
            .env("MEMORANK_ISA", name);
        assert_eq!(demo.output().unwrap().status.code(), Some(2));
    }
    for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
        let err = query(&stage, Some(isa.name()), &[]).fails(2);
        assert!(
            err.contains("MEMORANK_ISA") && err.contains(isa.name()),
            "{err}"
        );
    }
}

// B74
#[test]
fn the_program_gives_what_the_library_gives() {
    let stage = generated(300);
    let store = Store::open_read_only(stage.path("S")).unwrap();
    let snapshot = store.snapshot();
    let embedding: Vec<f32> =
        serde_json::from_slice(&std::fs::read(stage.path("q.json")).unwrap()).unwrap();
    let now = T + HOUR;
    for name in Preset::NAMES {
        let document = query(&stage, None, &["--preset", name, "--now", &time(now)]).json();
        let preset = Preset::named(name).unwrap();
        let ask = Ask::new(&embedding, now, &preset);
        let mut ranking = Ranking::default();
        stream::rank(
            &snapshot,
            &ask,
            Par::Serial,
            &mut Workspace::new(),
            &mut ranking,
        )
        .unwrap();
        let hits = document["hits"].as_array().unwrap();
        assert_eq!(hits.len(), ranking.hits.len());
        assert_eq!(document["candidates"], ranking.candidates);
        for (hit, expected) in hits.iter().zip(&ranking.hits) {
            assert_eq!(hit["id"], snapshot.id(expected.row));
            assert_eq!(hit["text"], snapshot.memory(expected.row).unwrap().text);
            let bits = |value: &Value| value.as_f64().unwrap().to_bits();
            assert_eq!(bits(&hit["score"]), expected.score.to_bits());
            for (name, component) in [
                ("relevance", expected.relevance),
                ("recency", expected.recency),
                ("importance", expected.importance),
            ] {
                assert_eq!(bits(&hit[name]["raw"]), component.raw.to_bits());
                assert_eq!(
                    bits(&hit[name]["normalized"]),
                    component.normalized.to_bits()
                );
                assert_eq!(bits(&hit[name]["weighted"]), component.weighted.to_bits());
            }
        }
        let scoring = &document["settings"]["scoring"];
        assert_eq!(*scoring, serde_json::to_value(preset.scoring).unwrap());
        assert_eq!(document["settings"]["k"], preset.k);
    }
    let idle = |name| {
        query(&stage, None, &["--preset", name, "-k", "300"])
            .ok()
            .contains("is idle")
    };
    assert!(idle("paper") && !idle("reverie"));
}
