//! `tests/golden/data`: a few goldens as numbers, in one form for all presets (see the README there).

use crate::case::{Case, Expected, Listed, Memories, Question, Scores};
use crate::compare::Scored;
use crate::json;
use memorank::scoring::{Preset, Recency, Weights};
use serde_json::Value;
use std::num::{NonZeroU64, NonZeroUsize};

/// The cases of a file, which share its vectors.
pub fn cases(file: &Value) -> Vec<Case> {
    let dim = NonZeroUsize::new(json::index(json::field(file, "dim"))).expect("a dimension");
    let vectors: Vec<Vec<f32>> = json::each(file, "vectors", |vector| {
        let vector: Vec<f32> = vector
            .as_array()
            .expect("a vector")
            .iter()
            .map(json::single)
            .collect();
        assert_eq!(vector.len(), dim.get());
        vector
    });
    json::each(file, "cases", |case| self::case(case, dim, &vectors))
}

fn case(case: &Value, dim: NonZeroUsize, vectors: &[Vec<f32>]) -> Case {
    let name = json::text(case, "name").to_owned();
    let importance: Vec<f32> = json::each(case, "importance", json::single);
    let n = importance.len();
    let mut rows = Vec::new();
    let mut vectorless = Vec::new();
    for row in 0..n {
        let vector = case
            .get("vector")
            .map_or(&Value::Null, |vectors| &vectors[row]);
        if vector.is_null() {
            vectorless.push(row);
            rows.extend(std::iter::repeat_n(0.0, dim.get()));
        } else {
            rows.extend_from_slice(&vectors[json::index(vector)]);
        }
    }
    let memories = Memories {
        dim,
        vectors: rows,
        vectorless,
        created: json::each(case, "created", json::whole),
        last_access: json::each(case, "last_access", json::whole),
        importance,
    };
    let listed = || json::each(case, "listed", |row| json::index(row) as u32);
    let listed = match json::text(case, "candidates") {
        "all" => Listed::All,
        "listed" => Listed::Rows(listed()),
        "by last access" => Listed::ByLastAccess(listed()),
        other => panic!("{name}: candidates: {other:?}"),
    };
    Case {
        preset: preset(case),
        questions: json::each(case, "questions", |q| question(q, n)),
        last_access_after: Some(json::each(case, "last_access_after", json::whole)),
        sequential: json::field(case, "sequential") == true,
        name,
        memories,
        listed,
    }
}

/// The named preset, with what the case says otherwise.
fn preset(case: &Value) -> Preset {
    let mut preset = Preset::named(json::text(case, "preset")).expect("a preset");
    if let Some(weights) = case.get("weights") {
        let weight = |name| json::number(json::field(weights, name));
        preset.scoring.weights = Weights {
            relevance: weight("relevance"),
            recency: weight("recency"),
            importance: weight("importance"),
        };
    }
    if let Recency::Age { ticks_per_unit, .. } = &mut preset.scoring.recency {
        let ticks = json::index(json::field(case, "ticks_per_unit"));
        *ticks_per_unit = NonZeroU64::new(ticks as u64).expect("a unit of time");
    }
    if let Some(of_case) = case.get("decay") {
        preset.scoring = preset.scoring.with_decay(json::number(of_case));
    }
    preset.k = case.get("k").map_or(preset.k, json::index);
    preset
}

fn question(question: &Value, n: usize) -> Question {
    let rows = json::each(question, "rows", json::index);
    let numbers = |name| json::each(question, name, json::number);
    let raw = ["relevance_raw", "recency_raw", "importance_raw"].map(numbers);
    let normalized = ["relevance", "recency", "importance"].map(numbers);
    let score = numbers("score");
    // Without an embedding, the golden's relevance is also what is scored.
    let known_relevance = question.get("embedding").is_none().then(|| {
        let mut relevance = vec![f32::NAN; n];
        for (&row, &value) in rows.iter().zip(&raw[0]) {
            relevance[row] = value as f32;
        }
        relevance
    });
    let candidate = |(i, &row): (usize, &usize)| Scored {
        row,
        raw: [raw[0][i], raw[1][i], raw[2][i]],
        normalized: [normalized[0][i], normalized[1][i], normalized[2][i]],
        score: score[i],
    };
    let scores = Scores {
        candidates: rows.iter().enumerate().map(candidate).collect(),
        last_access: json::each(question, "last_access", json::whole),
        order: json::each(question, "order", json::index),
        returned: question
            .get("returned")
            .map(|_| json::each(question, "returned", json::index)),
    };
    Question {
        embedding: match known_relevance {
            Some(_) => Vec::new(),
            None => json::each(question, "embedding", json::single),
        },
        known_relevance,
        now: json::whole(json::field(question, "now")),
        expected: Expected::Scores(scores),
    }
}
