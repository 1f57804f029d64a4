//! `golden/paper`: the paper's formula in f64 over archives of several systems.

use crate::archive::{Archives, lines, node_row, npy};
use crate::case::{Case, Expected, Listed, Memories, Question, Scores};
use crate::compare::Scored;
use crate::json;
use memorank::scoring::{
    MICROSECONDS_PER_HOUR, Normalization, Preset, Recency, Scoring, Since, Weights,
};
use serde_json::Value;
use std::num::NonZeroUsize;

pub fn case(golden: &Value, archives: &mut Archives) -> Case {
    let archive = json::text(golden, "archive");
    let ids = json::list(golden, "ids");
    let (vectors, dim) = vectors(archive, ids, archives);
    let created = seconds(golden, "created_unix");
    let questions = json::list(golden, "queries");
    let memories = Memories {
        dim: NonZeroUsize::new(dim).expect("a dimension"),
        vectors,
        vectorless: Vec::new(),
        created,
        last_access: seconds(&questions[0], "last_accessed_unix"),
        importance: json::each(golden, "importance_raw", json::single),
    };
    let now = json::whole(json::field(golden, "now_unix")) * 1_000_000;
    let question = |question: &Value| Question {
        embedding: json::each(question, "vector", json::single),
        known_relevance: None,
        now,
        expected: Expected::Scores(scores(golden, question, ids)),
    };
    Case {
        name: json::text(golden, "case").to_owned(),
        preset: preset(json::field(golden, "params")),
        memories,
        listed: Listed::All,
        sequential: json::field(golden, "sequential") == true,
        questions: questions.iter().map(question).collect(),
        last_access_after: None,
    }
}

fn preset(params: &Value) -> Preset {
    let number = |name| json::number(json::field(params, name));
    let preset = Preset::paper();
    let constant = number("range_zero_value");
    assert_eq!(
        preset.scoring.normalization,
        Normalization::MinMax { constant }
    );
    assert_eq!(
        json::text(params, "ties"),
        "lower position in \"ids\" first"
    );
    Preset {
        scoring: Scoring {
            weights: Weights {
                relevance: number("w_relevance"),
                recency: number("w_recency"),
                importance: number("w_importance"),
            },
            recency: Recency::Age {
                decay: number("decay_per_hour"),
                ticks_per_unit: MICROSECONDS_PER_HOUR,
                since: Since::Now,
            },
            ..preset.scoring
        },
        k: json::index(json::field(params, "k")),
        ..preset
    }
}

/// The vectors of the memories called `ids`, row after row, and their dimension.
fn vectors(archive: &str, ids: &[Value], archives: &mut Archives) -> (Vec<f32>, usize) {
    if archive.starts_with("locomo/") {
        let folder = archives.folder(archive);
        let memories = lines(&folder.join("memories.jsonl"));
        assert!(memories.iter().map(|m| &m["id"]).eq(ids));
        return npy(&folder.join("memories.npy"));
    }
    let keys: Vec<String> = if archive == "genagents" {
        let nodes = json::read(&archives.folder(archive).join("nodes.json"));
        let key = |id| json::text(&nodes[json::index(id)], "content").to_owned();
        ids.iter().map(key).collect()
    } else {
        let nodes = archives.nodes(archive);
        let key = |id: &Value| {
            nodes[node_row(id.as_str().expect("a node"))]
                .embedding_key
                .clone()
        };
        ids.iter().map(key).collect()
    };
    let file = match archive.starts_with("reverie_nodes_only/") {
        true => "embeddings_minilm384.json",
        false => "embeddings.json",
    };
    let vectors = archives.vectors(archive, file);
    let dim = vectors[&keys[0]].len();
    let rows: Vec<f32> = keys.iter().flat_map(|key| &vectors[key]).copied().collect();
    assert_eq!(rows.len(), dim * ids.len());
    (rows, dim)
}

fn scores(golden: &Value, question: &Value, ids: &[Value]) -> Scores {
    let numbers = |value, name| json::each(value, name, json::number);
    let raw = [
        numbers(question, "relevance_raw"),
        numbers(question, "recency_raw"),
        numbers(golden, "importance_raw"),
    ];
    let normalized = [
        numbers(question, "relevance"),
        numbers(question, "recency"),
        numbers(golden, "importance"),
    ];
    let score = numbers(question, "score");
    let row = |id: &Value| {
        ids.iter()
            .position(|other| other == id)
            .expect("a known id")
    };
    Scores {
        candidates: (0..ids.len())
            .map(|row| Scored {
                row,
                raw: [raw[0][row], raw[1][row], raw[2][row]],
                normalized: [normalized[0][row], normalized[1][row], normalized[2][row]],
                score: score[row],
            })
            .collect(),
        last_access: seconds(question, "last_accessed_unix"),
        order: json::each(question, "top", row),
        returned: None,
    }
}

/// Seconds in the file, microseconds here.
fn seconds(value: &Value, name: &str) -> Vec<i64> {
    json::each(value, name, |second| json::whole(second) * 1_000_000)
}
