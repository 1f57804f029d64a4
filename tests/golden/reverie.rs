//! `golden/reverie`: the authors' public snapshot, run on saved personas and edits of them.

use crate::archive::{Archives, Node, lines, node_row, nodes, npy};
use crate::case::{Case, Expected, Listed, Memories, Question, Scores};
use crate::compare::Scored;
use crate::json;
use memorank::kernel::{QueryError, RowProblem, Rows, inv_norms};
use memorank::scoring::{Preset, RankError, Recency, ScoringError, Weights};
use serde_json::Value;
use std::num::NonZeroUsize;

/// The case of a file; `None` if the file is about loading an archive, not about ranking.
pub fn case(golden: &Value, archives: &mut Archives) -> Option<Case> {
    let name = json::text(golden, "case");
    if matches!(
        name,
        "load__bad_time" | "load__gap" | "load__missing_embedding"
    ) {
        assert_eq!(
            json::text(json::field(golden, "exception"), "stage"),
            "load"
        );
        return None;
    }
    let nodes = nodes_of(golden, archives);
    let ids = Ids::of(&nodes);
    let mut memories = memories(golden, &nodes, archives);
    let questions = json::list(golden, "queries");
    if name.starts_with("edge__zero_memory") {
        give_zeros(&mut memories, &nodes, &ids, &questions[0]);
    }
    if let Some(before) = golden.get("last_accessed_before") {
        set_times(&mut memories.last_access, before, &ids);
    }
    let now = json::micros(json::text(golden, "curr_time"));
    let question = |question: &Value| Question {
        embedding: json::each(question, "vector", json::single),
        known_relevance: None,
        now,
        expected: expected(name, golden, question, &ids),
    };
    let questions: Vec<Question> = questions.iter().map(question).collect();
    let scored = questions
        .iter()
        .all(|q| matches!(q.expected, Expected::Scores(_) | Expected::Empty));
    let mut after = memories.created.clone();
    set_times(
        &mut after,
        json::field(golden, "last_accessed_after_changed"),
        &ids,
    );
    Some(Case {
        name: name.to_owned(),
        preset: preset(json::field(golden, "params")),
        listed: Listed::ByLastAccess(candidates(&nodes)),
        memories,
        sequential: true,
        questions,
        last_access_after: scored.then_some(after),
    })
}

fn preset(params: &Value) -> Preset {
    let number = |name| json::number(json::field(params, name));
    let mut preset = Preset::reverie();
    let weights = &mut preset.scoring.weights;
    let authors = Weights {
        relevance: number("gw_relevance"),
        recency: number("gw_recency"),
        importance: number("gw_importance"),
    };
    assert_eq!(*weights, authors);
    weights.relevance *= number("relevance_w");
    weights.recency *= number("recency_w");
    weights.importance *= number("importance_w");
    let decay = number("recency_decay");
    preset.scoring.recency = Recency::Position { decay };
    preset.k = json::index(json::field(params, "n_count"));
    preset
}

/// Nodes by ascending number: the file's own, or the archive's. A conversation's turns are events.
fn nodes_of(golden: &Value, archives: &Archives) -> Vec<Node> {
    let archive = json::text(golden, "archive");
    match golden.get("archive_nodes") {
        Some(edited) => nodes(edited),
        None if archive.starts_with("locomo/") => {
            let turn = |turn: &Value| Node {
                kind: "event".to_owned(),
                embedding_key: String::new(),
                created: json::micros(json::text(turn, "created")),
                importance: 5.0,
            };
            let turns = lines(&archives.folder(archive).join("memories.jsonl"));
            turns.iter().map(turn).collect()
        }
        None => archives.nodes(archive),
    }
}

fn memories(golden: &Value, nodes: &[Node], archives: &mut Archives) -> Memories {
    let archive = json::text(golden, "archive");
    let (vectors, dim) = if archive.starts_with("locomo/") {
        npy(&archives.folder(archive).join("memories.npy"))
    } else {
        let vectors = archives.vectors(archive, json::text(golden, "embeddings_file"));
        let dim = vectors.values().next().map_or(1536, Vec::len);
        let row = |node: &Node| vectors[&node.embedding_key].clone();
        (nodes.iter().flat_map(row).collect(), dim)
    };
    assert_eq!(vectors.len(), dim * nodes.len());
    let created: Vec<i64> = nodes.iter().map(|node| node.created).collect();
    Memories {
        dim: NonZeroUsize::new(dim).expect("a dimension"),
        vectors,
        vectorless: Vec::new(),
        last_access: created.clone(),
        created,
        importance: nodes.iter().map(|node| node.importance).collect(),
    }
}

/// Events, then thoughts, both newest first; none whose embedding key has "idle" in it.
fn candidates(nodes: &[Node]) -> Vec<u32> {
    let of = |kind| {
        let newest_first = nodes.iter().enumerate().rev();
        newest_first
            .filter(move |(_, node)| node.kind == kind && !node.embedding_key.contains("idle"))
            .map(|(row, _)| row as u32)
    };
    of("event").chain(of("thought")).collect()
}

/// Replaces the vectors that are zeros in the golden, which makes their relevance NaN, and stores
/// them as no vectors, as a zero vector is refused.
fn give_zeros(memories: &mut Memories, nodes: &[Node], ids: &Ids, question: &Value) {
    let spoilt: Vec<&str> = json::list(question, "candidates")
        .iter()
        .filter(|c| json::number(json::field(c, "relevance_raw")).is_nan())
        .map(|c| nodes[ids.row(json::text(c, "id"))].embedding_key.as_str())
        .collect();
    assert!(!spoilt.is_empty());
    let dim = memories.dim.get();
    for (row, node) in nodes.iter().enumerate() {
        if spoilt.contains(&node.embedding_key.as_str()) {
            let vector = &mut memories.vectors[row * dim..][..dim];
            vector.fill(0.0);
            let refused = inv_norms(memories.dim, Rows::F32(vector), &mut [0.0]).unwrap_err();
            assert_eq!(refused.problem, RowProblem::Length { length: 0.0 });
            memories.vectorless.push(row);
        }
    }
}

/// What is right, which is not always what the authors' code did.
fn expected(name: &str, golden: &Value, question: &Value, ids: &Ids) -> Expected {
    match name {
        "july1__decay1.01" => Expected::Refused(ScoringError::Decay(1.01).into()),
        "edge__zero_query" => Expected::Refused(QueryError::Zero.into()),
        "edge__wrong_dimension" => {
            let (found, expected) = (1535, 1536);
            let error = QueryError::Dimension { found, expected };
            Expected::Refused(RankError::Query(error))
        }
        "edge__zero_memory_first" | "edge__zero_memory_middle" => Expected::LikeOracle,
        "edge__all_idle" | "edge__only_chats" | "edge__empty_archive" => Expected::Empty,
        _ => {
            assert_eq!(golden.get("exception"), None, "an outcome of its own");
            Expected::Scores(scores(question, ids))
        }
    }
}

fn scores(question: &Value, ids: &Ids) -> Scores {
    let candidate = |candidate: &Value| {
        let number = |name| json::number(json::field(candidate, name));
        Scored {
            row: ids.row(json::text(candidate, "id")),
            raw: ["relevance_raw", "recency_raw", "importance_raw"].map(number),
            normalized: ["relevance", "recency", "importance"].map(number),
            score: number("score"),
        }
    };
    Scores {
        candidates: json::each(question, "candidates", candidate),
        last_access: json::each(question, "candidates", |c| {
            json::micros(json::text(c, "last_accessed"))
        }),
        order: json::each(question, "order", |id| {
            ids.row(id.as_str().expect("a node"))
        }),
        returned: None,
    }
}

/// Sets the last accesses that an object names by node.
fn set_times(last_access: &mut [i64], times: &Value, ids: &Ids) {
    for (id, time) in times.as_object().expect("times by node") {
        last_access[ids.row(id)] = json::micros(time.as_str().expect("a time"));
    }
}

/// The authors' loader skips nodes of a kind it does not know and numbers the rest on, so that its
/// ids of later nodes are too small.
struct Ids {
    skipped: Vec<usize>,
}

impl Ids {
    fn of(nodes: &[Node]) -> Ids {
        let known = |node: &Node| matches!(&*node.kind, "event" | "thought" | "chat");
        let skipped = (0..nodes.len()).filter(|&row| !known(&nodes[row]));
        Ids {
            skipped: skipped.collect(),
        }
    }

    fn row(&self, id: &str) -> usize {
        let mut row = node_row(id);
        for &skipped in &self.skipped {
            row += usize::from(row >= skipped);
        }
        row
    }
}
