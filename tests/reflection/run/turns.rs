//! What is asked when, and answers that were not asked for.

use super::*;

#[test]
fn a_run_that_is_over_or_stored_takes_and_gives_nothing_more() {
    let (_dir, _, store) = store();
    let once = Settings {
        attempts: 1,
        ..settings()
    };
    let mut over = Reflect::new(&store, once, None, NOW).unwrap();
    assert!(over.replied("no").is_err());
    let mut done = Reflect::new(&store, settings(), None, NOW).unwrap();
    done.replied(QUESTION).unwrap();
    done.embedded(vec![vec![1.0; DIM]]).unwrap();
    done.replied("1. Klaus reads (1)").unwrap();
    done.embedded(vec![vec![0.5; DIM]]).unwrap();
    let unrated = done.append(&store).unwrap_err();
    assert!(matches!(
        unrated,
        ReflectFinishError::Unanswered { needed: Step::Rate }
    ));
    done.rated_as(2.5).unwrap();
    assert_eq!(done.append(&store).unwrap().ids, 4..5);
    for (run, is_over) in [(&mut over, true), (&mut done, false)] {
        assert_eq!(run.needs(), Need::Nothing);
        match run.append(&store).unwrap_err() {
            ReflectFinishError::Over => assert!(is_over),
            ReflectFinishError::Stored => assert!(!is_over),
            other => panic!("{other}"),
        }
        assert!(out_of_turn(run, Step::Nothing));
    }
    assert_eq!(store.snapshot().len(), 5);
}

/// Whether every answer but the one that is needed is refused, and changes nothing.
fn out_of_turn(run: &mut Reflect, needed: Step) -> bool {
    type Answer = fn(&mut Reflect) -> Result<(), ReflectAnswerError>;
    let answers: [(Step, Answer); 6] = [
        (Step::Reply, |run| run.replied(QUESTION)),
        (Step::Embed, |run| run.embedded(vec![vec![1.0; DIM]])),
        (Step::Embed, Reflect::not_embedded),
        (Step::Check, |run| run.checked(Support::Supported)),
        (Step::Rate, |run| run.rated("5")),
        (Step::Rate, |run| run.rated_as(5.0)),
    ];
    answers.into_iter().filter(|(step, _)| *step != needed).all(|(step, answer)| {
        let before = format!("{run:?}");
        let refused = answer(run);
        let told = matches!(refused, Err(ReflectAnswerError::NotAsked { given, needed: n }) if (given, n) == (step, needed));
        told && format!("{run:?}") == before
    })
}

#[test]
fn answers_out_of_turn_are_errors_and_change_nothing() {
    let (_dir, _, store) = store();
    let checked = Settings {
        checking: Checking::Caller,
        ..settings()
    };
    let mut run = Reflect::new(&store, checked, None, NOW).unwrap();
    assert!(out_of_turn(&mut run, Step::Reply));
    run.replied(QUESTION).unwrap();
    assert!(out_of_turn(&mut run, Step::Embed));
    let none = run.not_embedded().unwrap_err();
    assert!(
        matches!(none, ReflectAnswerError::QuestionsNeedEmbeddings),
        "{none}"
    );
    for wrong in [
        vec![],
        vec![vec![1.0; DIM]; 2],
        vec![vec![1.0]],
        vec![vec![f32::NAN; DIM]],
        vec![vec![0.0; DIM]],
    ] {
        let refused = run.embedded(wrong).unwrap_err();
        assert!(
            matches!(refused, ReflectAnswerError::Answer(_)),
            "{refused}"
        );
    }
    run.embedded(vec![vec![1.0; DIM]]).unwrap();
    assert!(out_of_turn(&mut run, Step::Reply));
    run.replied("1. Klaus reads (2)\n2. Klaus writes (1)")
        .unwrap();
    assert!(out_of_turn(&mut run, Step::Embed));
    run.embedded(vec![vec![1.0; DIM], vec![0.5; DIM]]).unwrap();
    assert!(out_of_turn(&mut run, Step::Check));
    run.checked(Support::Supported).unwrap();
    let Need::Check { claim, evidence } = run.needs() else {
        panic!("there are two insights");
    };
    assert_eq!((claim, evidence), ("Klaus writes", vec![SEEN[0]]));
    run.checked(Support::Supported).unwrap();
    assert!(out_of_turn(&mut run, Step::Rate));
    assert!(run.rated_as(f32::NAN).is_err());
    run.rated("5").unwrap();
    run.rated("6").unwrap();
    assert!(out_of_turn(&mut run, Step::Nothing));
    run.append(&store).unwrap();
    let supports = origins(&store, 4).into_iter().map(|origin| origin.support);
    assert!(supports.eq([Support::Supported; 2]));
}

#[test]
fn what_cannot_be_begun_is_told() {
    let (_dir, _, empty) = self::empty();
    let nothing = Reflect::new(&empty, settings(), None, NOW).unwrap_err();
    assert!(
        matches!(nothing, ReflectBeginError::NothingToReflectOn),
        "{nothing}"
    );
    let (_dir, _, store) = store();
    type Change = fn(&mut Settings);
    let changes: [(&str, Change); 13] = [
        ("newest", |s| s.newest = 0),
        ("questions", |s| s.questions = 0),
        ("preset.k", |s| s.preset.k = 0),
        ("insights", |s| s.insights = 0),
        ("least", |s| s.least = 0),
        ("attempts", |s| s.attempts = 0),
        ("least", |s| s.least = 3),
        ("ratings", |s| {
            s.ratings = std::ops::RangeInclusive::new(7, 6)
        }),
        ("checking.threshold", |s| {
            s.checking = Checking::Similarity(Similarity {
                threshold: f32::NAN,
            })
        }),
        ("refuse_unchecked", |s| s.refuse_unchecked = true),
        ("expiry", |s| s.expiry = Some(NOW)),
        ("expiry", |s| s.expiry = Some(i64::MIN)),
        ("expiry", |s| s.expiry = Some(i64::MAX)),
    ];
    for (name, change) in changes {
        let mut settings = settings();
        change(&mut settings);
        let error = Reflect::new(&store, settings, None, NOW).unwrap_err();
        let ReflectBeginError::Settings(error) = error else {
            panic!("{error}")
        };
        assert_eq!(error.name, name);
    }
    let mut no_scoring = settings();
    no_scoring.preset.scoring.weights.recency = f64::NAN;
    let error = Reflect::new(&store, no_scoring, None, NOW).unwrap_err();
    assert!(matches!(error, ReflectBeginError::Scoring(_)), "{error}");
    // Without a vector nothing can be retrieved for a question.
    add(
        &empty,
        vec![Draft {
            embedding: Embedding::None,
            ..observed("a")
        }],
    );
    let error = Reflect::new(&empty, settings(), None, NOW).unwrap_err();
    assert!(
        matches!(error, ReflectBeginError::NothingEmbedded),
        "{error}"
    );
    add(
        &empty,
        vec![Draft {
            kind: Kind::CHAT,
            ..observed("b")
        }],
    );
    let observations = Settings {
        kinds: Some(vec![Kind::OBSERVATION]),
        ..settings()
    };
    let mut run = Reflect::new(&empty, observations, None, NOW).unwrap();
    run.replied(QUESTION).unwrap();
    let error = run.embedded(vec![vec![1.0; DIM]]).unwrap_err();
    assert!(
        matches!(error, ReflectAnswerError::NothingToShow { question: 0 }),
        "{error}"
    );
}

#[test]
fn another_embedder_is_refused_before_it_is_asked() {
    struct Other;
    impl Embed for Other {
        fn model(&self) -> &str {
            "other"
        }
        fn embed(&mut self, _: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
            panic!("it is not asked")
        }
    }
    let (_dir, _, store) = store();
    let mut script = Script::new(&[]);
    let mut models = Models {
        chat: &mut script,
        embedder: &mut Other,
        check: None,
    };
    let error = reflect(&store, settings(), &mut models, NOW).unwrap_err();
    assert!(
        matches!(error, ReflectError::Begin(ReflectBeginError::Begin(_))),
        "{error}"
    );
    let mut run = Reflect::new(&store, settings(), None, NOW).unwrap();
    let mut script = Script::new(&[QUESTION]);
    models.chat = &mut script;
    let error = run.ask(&mut models).unwrap_err();
    assert!(matches!(error, ReflectError::Model(_)), "{error}");
    // It goes on where it was.
    let mut script = Script::new(&["1. Klaus reads (1)", "4"]);
    let mut models = Models {
        chat: &mut script,
        embedder: &mut embedder(),
        check: None,
    };
    run.ask(&mut models).unwrap();
    assert_eq!(run.append(&store).unwrap().ids, 4..5);
}
