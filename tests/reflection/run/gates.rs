//! What passes the gates, and what is told of the rest.

use super::*;

#[test]
fn more_than_were_asked_for_are_told_and_not_stored() {
    let (_dir, _, store) = store();
    let many: String = (0..100)
        .map(|i| format!("{i}. Klaus reads (because of {})\n", i % 5 + 1))
        .collect();
    let reflected = run(&store, settings(), &[QUESTION, &many, "5", "5"]).unwrap();
    assert_eq!(reflected.ids, 4..6);
    let told = refused(&reflected.attempts[1]);
    assert_eq!(told.len(), 98);
    assert_eq!(told[0], (2, "more insights than were asked for".to_owned()));
    // However many problems there are, a prompt tells some.
    let mut again = Reflect::new(&store, settings(), None, NOW).unwrap();
    again.replied(QUESTION).unwrap();
    again.embedded(vec![vec![1.0; DIM]]).unwrap();
    again
        .replied(&"1. Klaus (because of 99)\n".repeat(5_000))
        .unwrap();
    let Need::Reply(prompt) = again.needs() else {
        panic!()
    };
    let prompt = prompt.to_string();
    assert!(
        prompt.len() < 4_000 && prompt.ends_with("- and 4990 more"),
        "{prompt}"
    );
}

#[test]
fn out_of_range_index_and_others_are_refused_one_by_one_and_the_rest_is_stored() {
    let (_dir, _, store) = store();
    let reply = "1. Klaus reads (because of 1, 5)\n2. Klaus sleeps (because of 0)\n\
        3. Klaus rests (because of 2, 2)\n4. Klaus writes (because of 2)";
    let reflected = run(&store, settings(), &[QUESTION, reply, "5"]).unwrap();
    assert_eq!(stored(&store, 4), [("Klaus writes".to_owned(), vec![1], 1)]);
    let attempt = &reflected.attempts[1];
    let expected = [
        (0, "citation 1 is 5: 4 memories were shown"),
        (1, "citation 0 is 0: 4 memories were shown"),
        (2, "citation 1 is 2: citation 0 names the same memory"),
    ];
    assert_eq!(
        refused(attempt),
        expected.map(|(at, told)| (at, told.to_owned()))
    );
    assert!(attempt.is_taken);
    let Verdict::Insights { parsed, .. } = &attempt.verdict else {
        panic!("{attempt:?}");
    };
    assert_eq!((parsed.count(), parsed.asked), (Count::More, 2));
}

#[test]
fn empty_citation_and_a_numbering_gap_in_a_reply() {
    let (_dir, _, store) = store();
    let reply = "2. Klaus reads (because of )\n7. Klaus writes (because of 1)\n9. Klaus";
    let reflected = run(&store, settings(), &[QUESTION, reply, "5"]).unwrap();
    assert_eq!(stored(&store, 4), [("Klaus writes".to_owned(), vec![0], 1)]);
    let Verdict::Insights { parsed, .. } = &reflected.attempts[1].verdict else {
        panic!("{:?}", reflected.attempts[1]);
    };
    let problems: Vec<_> = parsed.problems.iter().map(|p| (p.line, &p.kind)).collect();
    let expected = [
        (1, &ProblemKind::EmptyCitation),
        (3, &ProblemKind::NoCitation),
    ];
    assert_eq!(problems, expected);
}

#[test]
fn an_insight_that_is_not_supported_is_refused_and_one_that_is_unchecked_stays_so() {
    let two = "1. Klaus reads about cities (because of 1)\n2. Maria is an astronaut (because of 1)";
    let similar = Settings {
        checking: Checking::Similarity(Similarity { threshold: 0.5 }),
        ..settings()
    };
    let (_dir, path, store) = store();
    let reflected = run(&store, similar.clone(), &[QUESTION, two, "5"]).unwrap();
    assert_eq!(stored(&store, 4), [(SEEN[0].to_owned(), vec![0], 1)]);
    assert_eq!(
        refused(&reflected.attempts[1]),
        [(1, "the evidence does not support it".to_owned())]
    );
    assert_eq!(origins(&store, 4)[0].support, Support::Supported);
    let unsupported = "1. Maria is an astronaut (because of 1)";
    let all = [QUESTION, unsupported, unsupported, unsupported];
    let error = exhausted(run(&store, similar, &all).unwrap_err());
    assert_eq!(error.attempts.len(), 4);
    assert_eq!(stored(&store, 5), []);
    // Nobody could check.
    let strict = Settings {
        refuse_unchecked: true,
        checking: Checking::Caller,
        attempts: 1,
        ..settings()
    };
    let mut unchecked = Reflect::new(&store, strict, None, NOW).unwrap();
    unchecked.replied(QUESTION).unwrap();
    unchecked.embedded(vec![vec![1.0; DIM]]).unwrap();
    unchecked.replied(two).unwrap();
    unchecked.not_embedded().unwrap();
    unchecked.checked(Support::Unchecked).unwrap();
    let error = unchecked.checked(Support::Unchecked).unwrap_err();
    let ReflectAnswerError::Exhausted(error) = error else {
        panic!("{error}")
    };
    let told = "nobody checked whether the evidence supports it".to_owned();
    assert_eq!(refused(&error.attempts[1]), [(0, told.clone()), (1, told)]);
    run(&store, settings(), &[QUESTION, two, "5", "5"]).unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    let supports: Vec<_> = origins(&store, 4)
        .iter()
        .map(|origin| origin.support)
        .collect();
    assert_eq!(
        supports,
        [Support::Supported, Support::Unchecked, Support::Unchecked]
    );
}

#[test]
fn a_check_that_somebody_is_asked_for_and_nobody_does_is_an_error() {
    let (_dir, _, store) = store();
    let asked = Settings {
        checking: Checking::Caller,
        ..settings()
    };
    let error = run(&store, asked.clone(), &[QUESTION, "1. Klaus reads (1)"]).unwrap_err();
    assert!(matches!(error, ReflectError::NobodyChecks), "{error}");
    struct Says(Support);
    impl CheckSupport for Says {
        fn check(&mut self, claim: &str, evidence: &[&str]) -> Result<Support, BoxError> {
            assert_eq!((claim, evidence), ("Klaus reads", &SEEN[..1]));
            Ok(self.0)
        }
    }
    for (says, count) in [
        (Support::Unsupported, 0),
        (Support::Unchecked, 1),
        (Support::Supported, 2),
    ] {
        let mut script = Script::new(&[QUESTION, "1. Klaus reads (1)", "5"]);
        let mut models = Models {
            chat: &mut script,
            embedder: &mut embedder(),
            check: Some(&mut Says(says)),
        };
        let once = Settings {
            attempts: 1,
            ..asked.clone()
        };
        let reflected = reflect(&store, once, &mut models, NOW);
        assert_eq!(reflected.is_ok(), says != Support::Unsupported);
        assert_eq!(store.snapshot().len(), 4 + count);
    }
}
