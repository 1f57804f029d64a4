//! From a reply to questions.

use memorank::stream::reflection::{Questions, parse_questions};

fn taken(reply: &str) -> Vec<String> {
    let Questions {
        taken, left_out, ..
    } = parse_questions(reply, 9);
    assert!(left_out.is_empty());
    taken
}

#[test]
fn the_forms_that_models_reply_in() {
    for reply in [
        "1. What does Klaus do?\n2. Whom does he like?",
        "1) What does Klaus do?\n2) Whom does he like?\n",
        "- What does Klaus do?\n- Whom does he like?",
        "* What does Klaus do?\n\n* Whom does he like?",
        "What does Klaus do?\nWhom does he like?",
        "Sure! Here are two questions:\n\n1. What does Klaus do?\n2. Whom does he like?\n\nI hope this helps!",
        "Question 1: What does Klaus do?\nQuestion 2: Whom does he like?",
        "Q1: What does Klaus do?\nQ2: Whom does he like?",
        "**1. What does Klaus do?**\n**2. Whom does he like?**",
        "1. \"What does Klaus do?\"\n2. “Whom does he like?”",
        "1. What does\n   Klaus do?\n2. Whom does he like?",
        "\u{feff}1. What does Klaus do?\r\n2. Whom does he like?\r\n",
        "[\"What does Klaus do?\", \"Whom does he like?\"]",
        "```json\n[\"What does Klaus do?\", \"Whom does he like?\"]\n```",
        "```\n1. What does Klaus do?\n2. Whom does he like?\n```",
        "{\"questions\": [\"What does Klaus do?\", \"Whom does he like?\"]}",
        "[{\"question\": \"What does Klaus do?\", \"id\": 1}, {\"question\": \"Whom does he like?\"}]",
        "Here you are:\n[\"What does Klaus do?\", \"Whom does he like?\"]\nAnything else",
    ] {
        assert_eq!(
            taken(reply),
            ["What does Klaus do?", "Whom does he like?"],
            "{reply}"
        );
    }
    assert_eq!(taken("1. 克劳斯在做什么？"), ["克劳斯在做什么？"]);
    assert_eq!(taken("ماذا يفعل؟"), ["ماذا يفعل؟"]);
}

#[test]
fn what_has_no_question_gives_none() {
    for reply in [
        "",
        " \n\n",
        "I am sorry, I cannot do that.",
        "1. \n2. ?\n- \"\"",
        "[]",
        "{}",
        "[1, 2]",
        "[\"What\"",
        "{\"a\": [\"What?\"], \"b\": [\"Why?\"]}",
        "{\"question\": \"What?\"}",
        "[[\"What?\"]]",
        "[\"\\ud800\"]",
        "```json\nWhat?\n```",
    ] {
        assert_eq!(parse_questions(reply, 3).taken, [""; 0], "{reply}");
    }
}

#[test]
fn more_than_were_asked_for_are_left_out_and_told_and_the_same_twice_is_two() {
    let questions = parse_questions("Well.\n1. Why?\n2. Why?\n3. Who?\nSo much.", 2);
    assert_eq!(questions.taken, ["Why?", "Why?"]);
    assert_eq!(questions.left_out, ["Who?"]);
    assert_eq!(questions.prose, [1, 5]);
    assert_eq!(parse_questions("Why?", 0).left_out, ["Why?"]);
    assert_eq!(parse_questions("Why?", usize::MAX).taken, ["Why?"]);
}

#[test]
fn an_item_without_a_question_mark_goes_on_in_the_next_line_until_a_blank_one() {
    let reply = "1. What Klaus does\nall day\n\nThat is all.\n2. Who? Maria.";
    assert_eq!(taken(reply), ["What Klaus does all day", "Who? Maria."]);
}
