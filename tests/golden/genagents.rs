//! `golden/genagents`: the authors' later code, run on one agent and edits of it. Times are steps.

use crate::archive::Archives;
use crate::case::{Case, Expected, Listed, Memories, Question, Scores};
use crate::compare::Scored;
use crate::json;
use memorank::scoring::{Preset, Recency, Since, Weights};
use serde_json::Value;
use std::num::{NonZeroU64, NonZeroUsize};

pub fn case(golden: &Value, archives: &mut Archives) -> Case {
    let name = json::text(golden, "case");
    let params = json::field(golden, "params");
    let archived = json::read(&archives.folder("genagents").join("nodes.json"));
    let archived = archived.as_array().expect("nodes");
    let nodes = match golden.get("archive_nodes") {
        Some(edited) => edited.as_array().expect("nodes"),
        None => archived,
    };
    let memories = memories(nodes, archived, archives);
    let filter = json::text(params, "curr_filter");
    let listed = match filter {
        "all" => Listed::All,
        kind => Listed::Rows(
            (0..nodes.len() as u32)
                .filter(|&row| json::text(&nodes[row as usize], "node_type") == kind)
                .collect(),
        ),
    };
    let now = json::whole(json::field(golden, "time_step"));
    let question = |question: &Value| Question {
        embedding: json::each(question, "vector", json::single),
        known_relevance: None,
        now,
        expected: Expected::Scores(scores(question)),
    };
    let mut questions: Vec<Question> = json::each(golden, "queries", question);
    if matches!(name, "empty_filter" | "empty_stream") {
        questions.push(Question {
            embedding: vec![1.0; memories.dim.get()],
            known_relevance: None,
            now,
            expected: Expected::Empty,
        });
    } else {
        assert_eq!(golden.get("exception"), None, "an outcome of its own");
    }
    assert!(!questions.is_empty());
    let changed = json::field(golden, "last_retrieved_changed");
    assert_eq!(changed.as_object().map(|o| o.len()), Some(0));
    Case {
        name: name.to_owned(),
        preset: preset(name, params),
        last_access_after: Some(memories.last_access.clone()),
        memories,
        listed,
        sequential: true,
        questions,
    }
}

fn preset(name: &str, params: &Value) -> Preset {
    let number = |name| json::number(json::field(params, name));
    let mut preset = Preset::genagents();
    let weights = Weights {
        relevance: number("hp_relevance"),
        recency: number("hp_recency"),
        importance: number("hp_importance"),
    };
    let k = json::index(json::field(params, "n_count"));
    if name == "defaults" {
        assert_eq!((preset.scoring.weights, preset.k), (weights, k));
    }
    preset.scoring.weights = weights;
    preset.k = k;
    preset.scoring.recency = Recency::Age {
        decay: number("recency_decay"),
        ticks_per_unit: NonZeroU64::MIN,
        since: Since::NewestAccess,
    };
    preset
}

fn memories(nodes: &[Value], archived: &[Value], archives: &mut Archives) -> Memories {
    let vectors = archives.vectors("genagents", "embeddings.json");
    let vector = |node: &Value| {
        let id = json::index(json::field(node, "node_id"));
        vectors[json::text(&archived[id], "content")].clone()
    };
    let times = |name: &str| -> Vec<i64> {
        let time = |node| json::whole(json::field(node, name));
        nodes.iter().map(time).collect()
    };
    let importance = |node| json::single(json::field(node, "importance"));
    let dim = vectors.values().next().map_or(0, Vec::len);
    Memories {
        dim: NonZeroUsize::new(dim).expect("a dimension"),
        vectors: nodes.iter().flat_map(vector).collect(),
        vectorless: Vec::new(),
        created: times("created"),
        last_access: times("last_retrieved"),
        importance: nodes.iter().map(importance).collect(),
    }
}

fn scores(question: &Value) -> Scores {
    let candidate = |candidate: &Value| {
        let number = |name| json::number(json::field(candidate, name));
        Scored {
            row: json::index(json::field(candidate, "id")),
            raw: ["relevance_raw", "recency_raw", "importance_raw"].map(number),
            normalized: ["relevance", "recency", "importance"].map(number),
            score: number("score"),
        }
    };
    Scores {
        candidates: json::each(question, "candidates", candidate),
        last_access: json::each(question, "candidates", |c| {
            json::whole(json::field(c, "last_retrieved"))
        }),
        order: json::each(question, "order_by_score", json::index),
        returned: Some(json::each(question, "returned_order", json::index)),
    }
}
