//! Six long conversations with labelled evidence, beside plain f64 that shares no code with the library.

use crate::common::shared_data;
use crate::example::{Owned, append, new_store, plain};
use crate::{cosine, measure};
use memorank::Par;
use memorank::eval::{Collection, Judged, evaluate, mean};
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Workspace};
use memorank::store::{Snapshot, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One conversation: memories and questions, as its files have them.
struct Conversation {
    memories: Vec<Vec<f32>>,
    /// Of each memory, in microseconds.
    accessed: Vec<i64>,
    now: i64,
    questions: Vec<Vec<f32>>,
    evidence: Vec<Vec<u64>>,
    category: Vec<i64>,
}

/// A little-endian f32 matrix of `columns` columns.
fn matrix(path: &Path, columns: usize) -> Vec<Vec<f32>> {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let described = String::from_utf8_lossy(&bytes[10..10 + header]).into_owned();
    assert!(described.contains("'<f4'") && described.contains("'fortran_order': False"));
    let elements = bytes[10 + header..].chunks_exact(4);
    let elements: Vec<f32> = elements
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    elements
        .chunks_exact(columns)
        .map(<[f32]>::to_vec)
        .collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// 2023-05-08T13:56:00Z, by the days of the proleptic Gregorian calendar.
fn micros(value: &Value) -> i64 {
    let text = value.as_str().unwrap();
    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().unwrap();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + number(11..13)) * 60 + number(14..16)) * 60 + number(17..19);
    seconds * 1_000_000
}

fn conversation(folder: &Path) -> Conversation {
    let at = |name: &str| folder.join(name);
    let meta: Value = serde_json::from_str(&fs::read_to_string(at("meta.json")).unwrap()).unwrap();
    let memories = lines(&at("memories.jsonl"));
    let ids: BTreeMap<&str, u64> = (memories.iter().zip(0..))
        .map(|(line, id)| (line["id"].as_str().unwrap(), id))
        .collect();
    let evidence = |line: &Value| -> Vec<u64> {
        let keys = line["evidence"].as_array().unwrap();
        keys.iter().map(|key| ids[key.as_str().unwrap()]).collect()
    };
    let questions = lines(&at("questions.jsonl"));
    let vectors = matrix(&at("questions.npy"), 384);
    assert_eq!(vectors.len(), questions.len());
    let asked = questions.iter().zip(vectors);
    let asked = asked.filter(|(line, _)| !line["evidence"].as_array().unwrap().is_empty());
    let (lines, vectors): (Vec<&Value>, Vec<Vec<f32>>) = asked.unzip();
    Conversation {
        memories: matrix(&at("memories.npy"), 384),
        accessed: memories
            .iter()
            .map(|line| micros(&line["last_accessed"]))
            .collect(),
        now: micros(&meta["now"]),
        questions: vectors,
        evidence: lines.iter().map(|line| evidence(line)).collect(),
        category: lines
            .iter()
            .map(|line| line["category"].as_i64().unwrap())
            .collect(),
    }
}

fn stored(of: &Conversation) -> (tempfile::TempDir, Store) {
    let (dir, _, store) = new_store(384, Dtype::F32);
    let memories: Vec<Owned> = (of.memories.iter().zip(&of.accessed))
        .map(|(embedding, &at)| Owned {
            created: at,
            last_access: at,
            ..plain(embedding)
        })
        .collect();
    append(&store, &memories);
    (dir, store)
}

fn min_max(values: &[f64]) -> Vec<f64> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    values
        .iter()
        .map(|x| (x - least) / (most - least))
        .collect()
}

/// Recall at 10 and the reciprocal rank of each question in plain f64, with so much weight on recency. Importance is the
/// same for all: it changes no order.
fn plain_f64(of: &Conversation, recency_weight: f64) -> Vec<(f64, f64)> {
    let length = |x: &[f32]| x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let recency: Vec<f64> = (of.accessed.iter())
        .map(|&at| 0.995f64.powf((of.now - at).max(0) as f64 / 3.6e9))
        .collect();
    let recency = min_max(&recency);
    let asked = of.questions.iter().zip(&of.evidence);
    let values = asked.map(|(question, evidence)| {
        let cosines: Vec<f64> = (of.memories.iter())
            .map(|memory| {
                let pairs = memory.iter().zip(question);
                let dot: f64 = pairs.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                dot / (length(memory) * length(question))
            })
            .collect();
        let relevance = min_max(&cosines);
        let scores: Vec<f64> = (relevance.iter().zip(&recency))
            .map(|(relevance, recency)| relevance + recency_weight * recency)
            .collect();
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        let is_evidence = |row: &usize| evidence.contains(&(*row as u64));
        let found = order[..10].iter().filter(|row| is_evidence(row)).count();
        let mut distinct = evidence.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let first = order.iter().position(is_evidence).unwrap();
        (
            found as f64 / distinct.len() as f64,
            1.0 / (first + 1) as f64,
        )
    });
    values.collect()
}

// The numbers are asked for: 43 % by cosine alone, 8 % by the paper's weights.
#[test]
fn recall_is_that_of_plain_f64() {
    let Some(shared) = shared_data() else {
        return;
    };
    let mut folders: Vec<_> = (fs::read_dir(shared.join("data/locomo")).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    let conversations: Vec<Conversation> =
        folders.iter().map(|folder| conversation(folder)).collect();
    assert_eq!(conversations.len(), 6);
    let stores: Vec<_> = conversations.iter().map(stored).collect();
    let snapshots: Vec<Snapshot> = stores.iter().map(|(_, store)| store.snapshot()).collect();
    let judged: Vec<Vec<Judged<'_>>> = (conversations.iter())
        .map(|of| {
            let asked = of.questions.iter().zip(&of.evidence);
            let judged = asked.map(|(vector, evidence)| Judged::new(vector, of.now, evidence));
            judged.collect()
        })
        .collect();
    let collections: Vec<Collection<'_>> = (snapshots.iter().zip(&judged))
        .map(|(snapshot, questions)| Collection {
            snapshot,
            questions,
        })
        .collect();
    let presets = [cosine(), Preset::paper()];
    let mut workspace = Workspace::new();
    let found = evaluate(&collections, &presets, Par::Serial, &mut workspace).unwrap();

    let categories: Vec<i64> = conversations
        .iter()
        .flat_map(|of| of.category.clone())
        .collect();
    assert_eq!(categories.len(), 1_153);
    for (preset, weight, recall) in [(0, 0.0, 0.43), (1, 1.0, 0.08)] {
        let expected: Vec<(f64, f64)> = conversations
            .iter()
            .flat_map(|of| plain_f64(of, weight))
            .collect();
        let check = |category: Option<i64>| {
            let of = |values: Vec<f64>| {
                let kept = values.iter().zip(&categories);
                let kept = kept.filter(|(_, of)| category.is_none_or(|wanted| **of == wanted));
                mean(&kept.map(|(value, _)| *value).collect::<Vec<_>>())
            };
            for (name, plain) in [
                (
                    "recall@10",
                    expected.iter().map(|of| of.0).collect::<Vec<_>>(),
                ),
                ("mrr", expected.iter().map(|of| of.1).collect()),
            ] {
                let (ours, plain) = (of(found.values(preset, measure(name))), of(plain));
                assert!(
                    (ours - plain).abs() < 0.002,
                    "{name} {category:?}: {ours}, not {plain}"
                );
            }
        };
        check(None);
        (1..=5).for_each(|category| check(Some(category)));
        let all = mean(&found.values(preset, measure("recall@10")));
        assert!((all - recall).abs() < 0.005, "{all}");
    }
}
