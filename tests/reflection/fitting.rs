//! What holds of any reply, for tests and fuzzing.

use memorank::stream::reflection::{parse, parse_questions};

/// Lines are those of the reply and in order, and nothing that was accepted is empty.
pub fn check(reply: &str) {
    let parsed = parse(reply, 3);
    let lines = reply.lines().count();
    for lines_of in [
        parsed.insights.iter().map(|of| of.line).collect::<Vec<_>>(),
        parsed.problems.iter().map(|of| of.line).collect(),
        parsed.prose.clone(),
    ] {
        assert!(lines_of.is_sorted(), "{reply:?}");
        assert!(
            lines_of.iter().all(|line| (1..=lines).contains(line)),
            "{reply:?}"
        );
    }
    for insight in &parsed.insights {
        assert!(
            !insight.citations.is_empty() && !insight.text.is_empty(),
            "{reply:?}"
        );
        assert_eq!(insight.text, insight.text.trim(), "{reply:?}");
    }
    for problem in &parsed.problems {
        assert!(problem.to_string().starts_with("line "), "{reply:?}");
    }
    let questions = parse_questions(reply, 3);
    assert!(questions.taken.len() <= 3, "{reply:?}");
    let all = questions.taken.iter().chain(&questions.left_out);
    assert!(
        all.into_iter()
            .all(|text| text.contains(char::is_alphanumeric)),
        "{reply:?}"
    );
}
