//! Gate 1: each rule, for all of its kind.

use crate::common::Random;
use crate::fitting::check;
use memorank::stream::reflection::ProblemKind::{self, *};
use memorank::stream::reflection::{Count, parse};

/// The one item that a reply is.
fn item(reply: &str) -> Result<(String, Vec<u32>), ProblemKind> {
    let mut parsed = parse(reply, 1);
    match (parsed.insights.pop(), parsed.problems.pop()) {
        (Some(insight), None) => Ok((insight.text, insight.citations)),
        (None, Some(problem)) => Err(problem.kind),
        other => panic!("{reply:?}: {other:?}"),
    }
}

fn cited(group: &str) -> Result<Vec<u32>, ProblemKind> {
    let (text, citations) = item(&format!("1. Klaus reads {group}"))?;
    assert_eq!(text, "Klaus reads", "{group}");
    Ok(citations)
}

fn found(kind: fn(String) -> ProblemKind, text: &str) -> Result<Vec<u32>, ProblemKind> {
    Err(kind(text.to_owned()))
}

fn negative(found: String) -> ProblemKind {
    NegativeIndex { found }
}

fn no_index(found: String) -> ProblemKind {
    NotAnIndex { found }
}

#[test]
fn a_citation_may_be_written_in_many_ways() {
    for group in [
        "(because of 1, 5, 3)",
        "(Because Of 1,5,3)",
        "(because of statements 1, 5 and 3)",
        "(because of statement 1, memory 5 & insight 3)",
        "(BECAUSE OF Numbers 1; 5; 3)",
        "(because of #1, no. 5, and No 3.)",
        "[because of 1 5 3]",
        "(1, 5, 3)",
        "(1,5,3)",
        "( 1 ; 5 & 3 )",
        "(#1, #5 and #3)",
        "[1, 5, 3]",
        "[1][5][3]",
        "[1], [5], and [3]",
        "(1) (5, 3)",
        "(because of 1)(because of 5, 3)",
        "(01, 005, 3)",
    ] {
        for closing in ["", ".", " .", ",", ";", ":", " \t"] {
            assert_eq!(
                cited(&format!("{group}{closing}")),
                Ok(vec![1, 5, 3]),
                "{group}"
            );
        }
    }
    assert_eq!(
        cited("(because of 3, 1, 3)"),
        Ok(vec![3, 1, 3]),
        "order and repeats stay"
    );
}

#[test]
fn a_range_of_any_dash_is_all_of_its_numbers() {
    for dash in [
        "-", "–", "—", "\u{2010}", "\u{2011}", "\u{2212}", " - ", " – ", " -", "- ",
    ] {
        for group in [
            format!("(because of 2{dash}4, 9)"),
            format!("[2{dash}4][9]"),
            format!("(#2{dash}#4 9)"),
        ] {
            assert_eq!(cited(&group), Ok(vec![2, 3, 4, 9]), "{group}");
        }
        assert_eq!(cited(&format!("(7{dash}7)")), Ok(vec![7]));
        let backward = format!("4{dash}2");
        assert_eq!(
            cited(&format!("({backward})")),
            Err(BackwardRange { found: backward })
        );
        let chain = format!("1{dash}2{dash}3");
        assert!(
            matches!(cited(&format!("({chain})")), Err(NotAnIndex { .. })),
            "{chain}"
        );
    }
    assert_eq!(cited("(1-1000)").unwrap().len(), 1000);
    assert_eq!(cited("(4294966296-4294967295)").unwrap().len(), 1000);
    for long in ["1-1001", "0-1000", "0-4294967295"] {
        let found = long.to_owned();
        assert_eq!(cited(&format!("({long})")), Err(LongRange { found }));
    }
}

#[test]
fn a_minus_that_is_not_between_two_numbers_is_a_negative_index() {
    for dash in ["-", "–", "—", "\u{2212}"] {
        for (group, index) in [
            ("(_1)", "_1"),
            ("(because of _1)", "_1"),
            ("(1, _5)", "_5"),
            ("(1 and _5)", "_5"),
            ("[_ 2]", "_ 2"),
            ("(1_)", "1_"),
            ("(1_, 2)", "1_"),
            ("(1__3)", "1_"),
            ("(_)", "_"),
        ] {
            let (group, index) = (group.replace('_', dash), index.replace('_', dash));
            assert_eq!(cited(&group), found(negative, &index), "{group}");
        }
    }
}

#[test]
fn what_is_no_whole_number_is_no_index() {
    for (group, index) in [
        ("(1.5)", "1.5"),
        ("(1, 2.0)", "2.0"),
        ("(.5)", ".5"),
        ("(+1)", "+1"),
        ("(1...3)", "1...3"),
        ("(#)", "#"),
        ("(because of 1st)", "1st"),
        ("(because of one)", "one"),
        ("(because of all statements)", "all"),
        ("(because of node_1)", "node_1"),
        ("(because of node-1)", "node-1"),
        ("(because of 1 to 3)", "to"),
        ("(because of １)", "１"),
        ("(because of the paper)", "the"),
        ("(because of \"1\")", "\"1\""),
    ] {
        assert_eq!(cited(group), found(no_index, index), "{group}");
    }
}

#[test]
fn an_index_above_u32_is_too_large_however_long_it_is() {
    assert_eq!(cited("(4294967295)"), Ok(vec![u32::MAX]));
    for digits in ["4294967296".to_owned(), "9".repeat(5000)] {
        for group in [
            format!("({digits})"),
            format!("(1-{digits})"),
            format!("(because of {digits}-1)"),
        ] {
            let found = digits.clone();
            assert_eq!(cited(&group), Err(TooLarge { found }));
        }
    }
}

#[test]
fn empty_citation() {
    for group in [
        "()",
        "[]",
        "( )",
        "(because of)",
        "(because of )",
        "(because of statements)",
        "(,)",
        "(and)",
    ] {
        assert_eq!(cited(group), Err(EmptyCitation), "{group}");
        assert_eq!(
            cited(&format!("[1]{group}")),
            Err(EmptyCitation),
            "[1]{group}"
        );
        assert_eq!(
            cited(&format!("{group} [1]")),
            Err(EmptyCitation),
            "{group} [1]"
        );
    }
    assert_eq!(
        item(r#"{"insight": "Klaus reads", "evidence": []}"#),
        Err(EmptyCitation)
    );
}

#[test]
fn what_does_not_end_an_item_or_hold_indices_is_no_citation() {
    for text in [
        "Klaus reads",
        "Klaus reads (because of 1) at night",
        "Klaus reads (because of 1, 2",
        "Klaus reads because of 1, 2",
        "Klaus reads because of 1, 2)",
        "Klaus reads (at Hobbs Cafe)",
        "Klaus reads (statements 1, 2)",
        "Klaus reads (because 1, 2)",
        "Klaus reads (becauseof 1)",
        "Klaus reads (because often 1)",
        "Klaus reads {1}",
        "Klaus reads (1]",
        "Klaus reads [1)",
        "Klaus reads (because of 1)!",
        "",
    ] {
        assert_eq!(item(&format!("- {text}")), Err(NoCitation), "{text}");
    }
    assert_eq!(item(r#"{"insight": "Klaus reads"}"#), Err(NoCitation));
}

#[test]
fn a_group_with_text_after_it_is_part_of_the_text() {
    let reply = "1. Klaus (20) reads (because of 1) at night (because of 2)";
    assert_eq!(
        item(reply),
        Ok(("Klaus (20) reads (because of 1) at night".into(), vec![2]))
    );
}

#[test]
fn a_citation_without_text_is_refused_in_every_form() {
    for reply in [
        "1. (because of 1)",
        "(because of 1)",
        "- [1][2].",
        "1. **(1)**",
        "1. \"\" (1)",
        "1. ... (1)",
        "1. \" (1)",
        "[1]",
        "(1)",
        r#"{"insight": " ", "evidence": [1]}"#,
        r#"[{"evidence": [1]}]"#,
    ] {
        assert_eq!(item(reply), Err(NoText), "{reply}");
    }
}

#[test]
fn quotes_and_bold_around_the_text_go_and_all_else_stays() {
    for (written, text) in [
        ("**Klaus reads.** (1)", "Klaus reads."),
        ("\"Klaus reads\" (1).", "Klaus reads"),
        ("\"Klaus reads (1).\"", "Klaus reads"),
        ("“Klaus reads (1)”.", "Klaus reads"),
        ("**\"Klaus reads\" (1)**", "Klaus reads"),
        ("**“Klaus reads.”** (1)", "Klaus reads."),
        ("'Klaus reads' (1)", "Klaus reads"),
        ("\"Klaus\" reads \"Marx\" (1)", "\"Klaus\" reads \"Marx\""),
        ("**Klaus**: reads **Marx** (1)", "**Klaus**: reads **Marx**"),
        ("Klaus reads \"Marx\" (1)", "Klaus reads \"Marx\""),
        ("Klaus reads \"Marx (1)\"", "Klaus reads \"Marx"),
        ("Klaus reads! (1)", "Klaus reads!"),
        ("Klaus reads, (1)", "Klaus reads,"),
        ("*Klaus* reads (1)", "*Klaus* reads"),
    ] {
        let reply = format!("1. {written}");
        assert_eq!(item(&reply), Ok((text.into(), vec![1])), "{written}");
    }
}

#[test]
fn an_item_goes_on_to_the_next_marker_blank_line_rule_or_fence() {
    let parsed = parse(
        "1. Klaus\nreads\n  much (1)\n2. Maria\n(2)\n\nnothing\n- Sam\n---\nmore (3)\n• Tom (4)\n```\nlast",
        4,
    );
    let insights = parsed
        .insights
        .iter()
        .map(|i| (i.line, i.text.as_str(), &i.citations[..]));
    assert!(insights.eq([
        (1, "Klaus reads much", &[1][..]),
        (4, "Maria", &[2]),
        (10, "more", &[3]),
        (11, "Tom", &[4]),
    ]));
    let problems: Vec<_> = parsed
        .problems
        .iter()
        .map(|p| (p.line, p.text.as_str(), &p.kind))
        .collect();
    assert_eq!(problems, [(8, "Sam", &NoCitation)]);
    assert_eq!(parsed.prose, [7, 9, 13]);
    assert_eq!(parsed.count(), Count::AsAsked);
}

#[test]
fn line_breaks_of_any_system_count_the_same_lines() {
    let reply = "Insights:\n\n1. a (1)\n2. b (2.5)\n\nend\n";
    let unix = parse(reply, 1);
    assert_eq!(
        (
            unix.insights[0].line,
            unix.problems[0].line,
            &unix.prose[..]
        ),
        (3, 4, &[1, 6][..])
    );
    assert_eq!(parse(&reply.replace('\n', "\r\n"), 1), unix);
    assert_eq!(parse(&format!("\u{feff}{reply}"), 1), unix);
}

/// A numbering gap, numbers that repeat, and ones out of order: markers are no data.
#[test]
fn numbering_gap() {
    for markers in [
        ["1.", "2.", "3."],
        ["1.", "3.", "7."],
        ["1.", "1.", "1."],
        ["3.", "1.", "0."],
        ["-", "5)", "(9)"],
    ] {
        let [a, b, c] = markers;
        let parsed = parse(&format!("{a} x (1)\n{b} y (2)\n{c} z (3)"), 3);
        assert!(parsed.problems.is_empty(), "{markers:?}");
        let texts = parsed.insights.iter().map(|insight| insight.text.as_str());
        assert!(texts.eq(["x", "y", "z"]), "{markers:?}");
    }
}

#[test]
fn repeated_insight_text() {
    let json = r#"[{"insight": "Klaus reads", "evidence": [1]}, {"insight": "Klaus reads", "evidence": [1]}]"#;
    for reply in ["1. Klaus reads (1)\n2. Klaus reads (1)", json] {
        let parsed = parse(reply, 2);
        assert_eq!(parsed.count(), Count::AsAsked);
        assert_eq!(parsed.insights[0].text, parsed.insights[1].text);
    }
}

/// Evidence that is no array of whole numbers, in JSON and in a list.
#[test]
fn wrong_evidence_type() {
    for value in [
        "\"1\"",
        "1.0",
        "1e2",
        "-1.5",
        "true",
        "null",
        "[1]",
        "{}",
        "\"node_1\"",
    ] {
        let object = format!(r#"{{"insight": "Klaus reads", "evidence": [2, {value}]}}"#);
        assert_eq!(
            item(&object),
            Err(NotAnIndex {
                found: value.into()
            })
        );
        assert_eq!(
            item(&format!("[{object}]")),
            Err(NotAnIndex {
                found: value.into()
            })
        );
    }
    for value in ["-1", "-0"] {
        let object = format!(r#"{{"insight": "Klaus reads", "evidence": [{value}]}}"#);
        assert_eq!(
            item(&object),
            Err(NegativeIndex {
                found: value.into()
            })
        );
    }
    for value in ["\"node_1\"", "1", "{}", "true", "\"1, 2\""] {
        let object = format!(r#"{{"insight": "Klaus reads", "evidence": {value}}}"#);
        let error = item(&object).unwrap_err();
        assert!(
            matches!(&error, Json { what } if what.contains(value)),
            "{error}"
        );
    }
    assert_eq!(
        item("1. Klaus reads (because of node_1)"),
        Err(no_index("node_1".into()))
    );
}

#[test]
fn insights_are_those_of_the_objects_however_the_json_is_wrapped() {
    let array = r#"[{"insight": " Klaus reads ", "evidence": [1, 2]}, {"evidence": [3], "insight": "Klaus \u00fcbt", "x": 1}]"#;
    let object = format!(r#"{{"agent": "Klaus", "any name": {array}}}"#);
    for json in [array.to_owned(), object, array.replace(", ", ",\n  ")] {
        for reply in [
            json.clone(),
            format!("\n\n {json}\n"),
            format!("```json\n{json}\n```"),
            format!("```JSON\n{json}\n```"),
            format!("```\n{json}\n```"),
            format!("Sure (1):\n1. as asked (1)\n```json\n{json}\n```\n2. done (2)"),
            format!("Sure:\n{json}\n\nDone."),
        ] {
            let parsed = parse(&reply, 2);
            let insights = parsed
                .insights
                .iter()
                .map(|i| (i.text.as_str(), &i.citations[..]));
            assert!(
                insights.eq([("Klaus reads", &[1, 2][..]), ("Klaus übt", &[3])]),
                "{reply}"
            );
            assert!(parsed.problems.is_empty(), "{reply}");
        }
    }
}

#[test]
fn broken_json_is_one_problem_and_no_insight() {
    let array = r#"[{"insight": "Klaus reads", "evidence": [1, 2]}]"#;
    for cut in 1..array.len() {
        for reply in [
            array[..cut].to_owned(),
            format!("```json\n{}\n```", &array[..cut]),
        ] {
            let parsed = parse(&reply, 1);
            assert_eq!(
                (parsed.insights.len(), parsed.problems.len()),
                (0, 1),
                "{reply}"
            );
            assert!(matches!(parsed.problems[0].kind, Json { .. }), "{reply}");
        }
    }
    for reply in [
        "{'insight': 'Klaus reads (1)', 'evidence': [1]}",
        "{insight: Klaus reads (1)\n- Klaus (1)}",
        "```json\n```",
        "```json\n\n```",
        "```json\nnothing\n```",
        "```json\n5\n```",
        "[\n# Klaus\n{\"insight\": \"Klaus reads\", \"evidence\": [1]}]",
        r#"{"insight": "Klaus reads", "insight": "Klaus sleeps", "evidence": [1]}"#,
        r#"{"a": [], "b": []}"#,
        "{}",
        r#"["Klaus reads (1)"]"#,
        r#"{"insight": "Klaus \ud800", "evidence": [1]}"#,
    ] {
        assert!(matches!(item(reply), Err(Json { .. })), "{reply}");
    }
}

#[test]
fn a_problem_in_json_is_told_with_its_line_in_the_reply() {
    let reply = "Here:\n```json\n[\n {\"insight\": \"a\",\n  \"evidence\": [1]},\n {\"insight\": \"b\", \"evidence\": [-1]},\n 5\n]\n```";
    let parsed = parse(reply, 3);
    assert_eq!((parsed.insights[0].line, &parsed.prose[..]), (4, &[1][..]));
    let lines = parsed.problems.iter().map(|problem| problem.line);
    assert!(lines.eq([6, 7]));

    let broken = parse(
        "Here:\n```json\n[\n {\"insight\": \"a\" \"evidence\": [1]}\n]\n```",
        1,
    );
    let told = "line 3: expected `,` or `}` in line 4; ask again";
    assert_eq!(broken.problems[0].to_string(), told);
}

/// Megabytes of what could make a careless parser look at the same bytes again and again: this test would not end.
#[test]
fn long_replies_take_no_longer_than_their_length() {
    let n = 1 << 20;
    let around = |open: &str, close: &str| format!("1. x {}{}", open.repeat(n), close.repeat(n));
    for reply in [
        "(".repeat(n),
        ")".repeat(n),
        around("(", ")"),
        around("[1", "]"),
        "[1]".repeat(n),
        "(1) ".repeat(n),
        format!("1. x {}", "[1], and ".repeat(n)),
        "1.\n".repeat(n),
        "1. x (\n1)\n".repeat(n / 4),
        "\n".repeat(n),
        "x\n".repeat(n),
        "```\n".repeat(n),
        "[\n".repeat(n),
        "x\n[\n".repeat(n / 2),
        "{".repeat(n),
        format!("{}{}", "{}".repeat(n / 8), " ".repeat(n)),
        "[{}]\n".repeat(n / 8),
        format!("1. x (because of {})", "1, ".repeat(n)),
        format!("1. {} (1)", "**\"".repeat(n)),
        format!("1. x {} (1)", "a".repeat(n)),
        format!(
            "[{}]",
            "{\"insight\": \"a\", \"evidence\": [1]},\n".repeat(n / 32)
        ),
    ] {
        parse(&reply, 1);
    }
}

/// Whatever a reply is, what comes out fits it.
#[test]
fn any_reply_gives_lines_that_it_has_in_order_and_nothing_empty() {
    const PIECES: [&str; 40] = [
        "1.",
        "2)",
        "(3)",
        "-",
        "*",
        "•",
        "Insight 4:",
        "**",
        "##",
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "Klaus reads",
        "ü",
        "(because of ",
        "(",
        ")",
        "[",
        "]",
        "1",
        "5, ",
        "-",
        "–",
        "1.5",
        "and",
        "\"",
        "“",
        "”",
        ".",
        "```json\n",
        "```\n",
        "{\"insight\": \"a\", \"evidence\": [",
        "]}",
        "}",
        ",",
        "{",
        "\"",
        "99999999999",
    ];
    let mut random = Random(6);
    for _ in 0..200_000 {
        let pieces = (0..random.below(24)).map(|_| PIECES[random.below(40) as usize]);
        let reply: String = pieces.collect();
        check(&reply);
    }
}
