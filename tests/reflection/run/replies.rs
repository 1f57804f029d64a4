//! Replies that cannot be used, until the attempts are used up.

use super::*;

#[test]
fn a_reply_that_cannot_be_used_is_asked_for_again_with_what_was_wrong() {
    let (_dir, _, store) = store();
    let mut run = Reflect::new(&store, settings(), None, NOW).unwrap();
    let prompt = |run: &Reflect| match run.needs() {
        Need::Reply(prompt) => prompt.to_string(),
        other => panic!("{other:?}"),
    };
    let first = prompt(&run);
    assert!(
        first.contains("1. Klaus reads about cities\n2. Klaus takes notes"),
        "{first}"
    );
    run.replied("I am sorry.").unwrap();
    let again = prompt(&run);
    let wrong = "\n\nYour last reply could not be used:\n- there was no question in it";
    assert_eq!(again, format!("{first}{wrong}"));
    run.replied(QUESTION).unwrap();
    run.embedded(vec![embedder().embedding("What does Klaus do?").unwrap()])
        .unwrap();
    let first = prompt(&run);
    assert!(first.contains("Question: What does Klaus do?"), "{first}");
    assert!(!first.contains("Your last reply"), "{first}");
    run.replied("1. Klaus reads (because of 9)\n2. Klaus\n")
        .unwrap();
    let again = prompt(&run);
    for told in [
        "- line 2: no citation",
        "- line 1: citation 0 is 9: 4 memories were shown",
    ] {
        assert!(again.contains(told), "{again}");
    }
    run.replied("Klaus reads (because of 1)").unwrap();
    run.not_embedded().unwrap();
    run.rated("seven").unwrap();
    run.rated("7").unwrap();
    let reflected = run.append(&store).unwrap();
    assert_eq!(store.snapshot().embedding(4), None);
    let taken: Vec<_> = reflected
        .attempts
        .iter()
        .map(|attempt| attempt.is_taken)
        .collect();
    assert_eq!(taken, [false, true, false, true, false, true]);
}

#[test]
fn exhausted_retries_keep_every_reply_and_write_nothing() {
    let (_dir, path, store) = store();
    let due = Trigger {
        threshold: 20.0,
        ..Trigger::default()
    };
    assert!(due.is_due(&store.snapshot(), Agent::OWN).unwrap());
    let (before, files) = (contents(&store.snapshot()), bytes_of(&path));
    let good = "1. Klaus reads (because of 1)";
    let bad = "1. Klaus reads (because of 9)";
    let questions = Purpose::Questions;
    let insights = Purpose::Insights { question: 0 };
    let rating = Purpose::Rating { insight: 1 };
    let two = "1. Klaus reads (because of 1)\n2. Klaus writes (because of 2)";
    for (replies, purpose) in [
        (&["", "What?!", "Sorry"][..], questions),
        (&["no", QUESTION, "none", bad, "1. ()"], insights),
        (&[QUESTION, bad, two, "8", "9/10", "eight", "11"], rating),
    ] {
        let error = exhausted(run(&store, settings(), replies).unwrap_err());
        assert_eq!(error.purpose, purpose);
        let kept: Vec<_> = error
            .attempts
            .iter()
            .map(|attempt| &attempt.reply)
            .collect();
        // "What?!" is no line that ends in a question mark.
        assert_eq!(kept, replies);
        assert!(error.to_string().contains("in 3 attempts at"), "{error}");
        assert_eq!(contents(&store.snapshot()), before);
        assert!(bytes_of(&path) == files);
        assert!(due.is_due(&store.snapshot(), Agent::OWN).unwrap());
    }
    // One attempt alone.
    let once = Settings {
        attempts: 1,
        ..settings()
    };
    let error = exhausted(run(&store, once, &[QUESTION, bad, good]).unwrap_err());
    assert_eq!((error.purpose, error.attempts.len()), (insights, 2));
    // A run that stores something starts the sum anew.
    run(&store, settings(), &[QUESTION, good, "5"]).unwrap();
    assert!(!due.is_due(&store.snapshot(), Agent::OWN).unwrap());
}

#[test]
fn whatever_is_replied_the_run_ends_and_what_is_stored_holds() {
    let mut random = Random(99);
    let pieces = [
        "1. ",
        "- ",
        "Klaus reads",
        " (because of ",
        "1",
        "2",
        ", ",
        "9",
        "-",
        ")",
        "\n",
        "?",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "insight",
        "evidence",
        ":",
        "```",
        "json",
        "5",
        "(1)",
        " (2, 1)\n",
        "What?\n",
        "☕",
    ];
    let (mut stored, mut over) = (0, 0);
    let (_dir, _, store) = store();
    for round in 0..600 {
        let checking = [
            Checking::Nobody,
            Checking::Caller,
            Checking::Similarity(Similarity { threshold: 0.1 }),
        ][random.below(3) as usize];
        let settings = Settings {
            questions: 1 + random.below(2) as usize,
            insights: 3,
            least: 1 + random.below(2) as usize,
            attempts: 1 + random.below(4) as usize,
            checking,
            refuse_unchecked: checking != Checking::Nobody && random.below(4) == 0,
            ..Settings::new(by_creation())
        };
        let most = settings.attempts * (1 + settings.questions + 40 * settings.questions);
        let mut run = Reflect::new(&store, settings, None, NOW + round).unwrap();
        let mut replies = 0;
        let ended = loop {
            let answered = match run.needs().step() {
                Step::Reply => {
                    replies += 1;
                    let count = random.below(12);
                    let reply: String = match random.below(3) {
                        0 => "What is it?\n1. Klaus reads (1)\n2. Klaus writes (because of 2-3)"
                            .into(),
                        _ => (0..count)
                            .map(|_| pieces[random.below(pieces.len() as u64) as usize])
                            .collect(),
                    };
                    run.replied(&reply)
                }
                Step::Embed => {
                    let Need::Embed { texts, .. } = run.needs() else {
                        panic!()
                    };
                    let embeddings = texts.iter().map(|_| random.vector(DIM)).collect();
                    run.embedded(embeddings)
                }
                Step::Check => run.checked(
                    [Support::Supported, Support::Unsupported, Support::Unchecked]
                        [random.below(3) as usize],
                ),
                Step::Rate => {
                    replies += 1;
                    run.rated(["5", "x"][random.below(2) as usize])
                }
                Step::Nothing => break true,
            };
            match answered {
                Ok(()) => {}
                Err(ReflectAnswerError::Exhausted(exhausted)) => {
                    assert_eq!(exhausted.attempts.len(), replies);
                    break false;
                }
                Err(other) => panic!("{other}"),
            }
            assert!(replies <= most, "it does not end");
        };
        let before = contents(&store.snapshot());
        match ended {
            true => {
                let reflected = run.append(&store).unwrap();
                assert!(!reflected.ids.is_empty());
                stored += 1;
            }
            false => {
                assert!(matches!(run.append(&store), Err(ReflectFinishError::Over)));
                assert_eq!(contents(&store.snapshot()), before);
                over += 1;
            }
        }
    }
    assert!(stored > 50 && over > 50, "{stored} stored, {over} over");
    let graph = Graph::of(&store.snapshot()).unwrap();
    assert_eq!(graph.integrity(&Rules::default()).unwrap().findings, []);
}
