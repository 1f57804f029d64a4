//! Replies as models write them, each with what is to be made of it.
//!
//! `replies.json` has them. The first 30 were written by somebody who knew the rules and not the parser. Problems are
//! in the order of lines, one for each item that is refused.

use memorank::stream::reflection::{Count, ProblemKind, parse};
use serde_json::{Value, json};

const CORPUS: &str = include_str!("replies.json");

/// What is made of a reply, as the corpus says it.
fn outcome(reply: &str, asked: usize) -> Value {
    let parsed = parse(reply, asked);
    assert_eq!(parsed.asked, asked);
    let insights = parsed.insights.iter().map(|insight| {
        json!({"line": insight.line, "text": insight.text, "citations": insight.citations})
    });
    let problems = parsed.problems.iter().map(|problem| {
        assert!(
            problem
                .to_string()
                .starts_with(&format!("line {}: ", problem.line))
        );
        json!({"line": problem.line, "kind": name(&problem.kind)})
    });
    let count = match parsed.count() {
        Count::AsAsked => "as-asked",
        Count::Fewer => "fewer",
        Count::More => "more",
    };
    json!({
        "insights": insights.collect::<Vec<_>>(), "problems": problems.collect::<Vec<_>>(), "count": count,
    })
}

fn name(kind: &ProblemKind) -> &'static str {
    match kind {
        ProblemKind::NoCitation => "no-citation",
        ProblemKind::EmptyCitation => "empty-citation",
        ProblemKind::NegativeIndex { .. } => "negative-index",
        ProblemKind::NotAnIndex { .. } => "not-an-index",
        ProblemKind::TooLarge { .. } => "too-large",
        ProblemKind::BackwardRange { .. } => "backward-range",
        ProblemKind::LongRange { .. } => "long-range",
        ProblemKind::NoText => "no-text",
        ProblemKind::Json { .. } => "json",
        other => panic!("{other:?} has no name in the corpus"),
    }
}

#[test]
fn replies_as_models_write_them_give_what_the_rules_say() {
    let corpus: Value = serde_json::from_str(CORPUS).unwrap();
    let replies = corpus["replies"].as_array().unwrap();
    assert_eq!(replies.len(), 65);
    let mut wrong = Vec::new();
    for case in replies {
        let (reply, asked) = (
            case["reply"].as_str().unwrap(),
            case["asked"].as_u64().unwrap(),
        );
        let found = outcome(reply, asked as usize);
        for part in ["insights", "problems", "count"] {
            if found[part] != case[part] {
                let (name, found, expected) = (&case["name"], &found[part], &case[part]);
                wrong.push(format!(
                    "{name}: {part}\n  found {found}\n  expected {expected}\n{reply}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
