//! `Reflect` against scripted replies.

use crate::common::Random;
use crate::example::{bytes_of, contents};
use memorank::kernel::Dtype;
use memorank::scoring::Preset;
use memorank::store::{Agent, CreateOptions, Kind, Reference, Store};
use memorank::stream::evidence::{Graph, Rules};
use memorank::stream::reflection::*;
use memorank::stream::{
    Ask, BoxError, Draft, Embed, Embedding, Filter, HashingEmbedder, Importance, Order, Remember,
    Retrieve, retrieve_many,
};
use std::collections::VecDeque;
use std::path::PathBuf;

const DIM: usize = 32;
const NOW: i64 = 1_676_300_400_000_000;
const SEEN: [&str; 4] = [
    "Klaus reads about cities",
    "Klaus takes notes about cities",
    "Maria plays chess",
    "the coffee is ready",
];

fn embedder() -> HashingEmbedder {
    HashingEmbedder::new(DIM.try_into().unwrap())
}

fn observed(text: &str) -> Draft {
    Draft {
        importance: Importance::Given(5.0),
        embedding: Embedding::Given(embedder().embedding(text).unwrap()),
        ..Draft::new(text, NOW - 1)
    }
}

/// A store of what was seen.
fn store() -> (tempfile::TempDir, PathBuf, Store) {
    let (dir, path, store) = empty();
    add(&store, seen());
    (dir, path, store)
}

fn empty() -> (tempfile::TempDir, PathBuf, Store) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let options = CreateOptions {
        dim: DIM.try_into().unwrap(),
        dtype: Dtype::F32,
        model: Some(HashingEmbedder::MODEL.into()),
    };
    let store = Store::create(&path, &options).unwrap();
    (dir, path, store)
}

/// One after another.
fn seen() -> Vec<Draft> {
    let drafts = (0..).zip(SEEN).map(|(i, text)| Draft {
        created: NOW - 3_600_000_000 + i,
        ..observed(text)
    });
    drafts.collect()
}

fn add(store: &Store, drafts: Vec<Draft>) -> u64 {
    let ids = Remember::new(store, None, drafts)
        .unwrap()
        .append(store)
        .unwrap();
    ids.start
}

/// One question, two insights at most, of what is shown in the order of ids.
fn settings() -> Settings {
    Settings {
        questions: 1,
        insights: 2,
        ..Settings::new(by_creation())
    }
}

/// All memories, oldest first, so that a test knows their numbers.
fn by_creation() -> Preset {
    Preset {
        k: 100,
        result_order: memorank::scoring::ResultOrder::Created,
        ..Preset::paper()
    }
}

/// Replies, one after another.
struct Script(VecDeque<String>);

impl Script {
    fn new(replies: &[&str]) -> Script {
        Script(replies.iter().map(|&reply| reply.to_owned()).collect())
    }
}

impl Complete for Script {
    fn complete(&mut self, _: &str) -> Result<String, BoxError> {
        Ok(self.0.pop_front().ok_or("the script is over")?)
    }
}

fn run(store: &Store, settings: Settings, replies: &[&str]) -> Result<Reflected, ReflectError> {
    let mut script = Script::new(replies);
    let mut models = Models {
        chat: &mut script,
        embedder: &mut embedder(),
        check: None,
    };
    let reflected = reflect(store, settings, &mut models, NOW);
    assert!(
        script.0.is_empty() || reflected.is_err(),
        "{:?} were not asked for",
        script.0
    );
    reflected
}

fn exhausted(error: ReflectError) -> Exhausted {
    match error {
        ReflectError::Answer(ReflectAnswerError::Exhausted(exhausted)) => exhausted,
        other => panic!("{other}"),
    }
}

/// The text, evidence and depth of each memory from an id on.
fn stored(store: &Store, from: u64) -> Vec<(String, Vec<u64>, u32)> {
    let snapshot = store.snapshot();
    let rows =
        (0..snapshot.rows()).filter(|&row| snapshot.is_live(row) && snapshot.id(row) >= from);
    rows.map(|row| {
        let memory = snapshot.memory(row).unwrap();
        assert_eq!(memory.kind, &Kind::REFLECTION);
        let id = |reference: &Reference| match reference {
            Reference::Id(id) => *id,
            Reference::Missing(text) => panic!("{text}"),
        };
        let evidence = memory.evidence.iter().map(id).collect();
        (memory.text.to_owned(), evidence, memory.depth)
    })
    .collect()
}

fn origins(store: &Store, from: u64) -> Vec<Origin> {
    let snapshot = store.snapshot();
    let rows = (0..snapshot.rows()).filter(|&row| snapshot.id(row) >= from);
    rows.map(|row| Origin::of(snapshot.memory(row).unwrap().payload).unwrap())
        .collect()
}

const QUESTION: &str = "1. What does Klaus do?";

#[test]
fn insights_of_all_questions_are_stored_with_evidence_depth_rating_and_origin() {
    let (_dir, path, store) = store();
    let settings = Settings {
        questions: 2,
        ..settings()
    };
    let reflected = run(
        &store,
        settings,
        &[
            "Here are two:\n1. What does Klaus do?\n2. Who plays?\n3. Why?",
            "1. Klaus studies cities (because of 2, 1)\n2. Klaus is busy (because of 1)",
            "- Maria likes chess (3)",
            "8",
            "7",
            "3",
        ],
    )
    .unwrap();
    assert_eq!(reflected.ids, 4..7);
    assert_eq!(reflected.questions, ["What does Klaus do?", "Who plays?"]);
    let look = |store: &Store| {
        let expected = [
            ("Klaus studies cities".to_owned(), vec![1, 0], 1),
            ("Klaus is busy".to_owned(), vec![0], 1),
            ("Maria likes chess".to_owned(), vec![2], 1),
        ];
        assert_eq!(stored(store, 4), expected);
        let snapshot = store.snapshot();
        assert_eq!(
            [4, 5, 6].map(|row| snapshot.importance(row)),
            [8.0, 7.0, 3.0]
        );
        for row in 4..7 {
            assert_eq!(snapshot.created(row), NOW);
            let text = snapshot.text(row).unwrap();
            assert_eq!(
                snapshot.embedding(row),
                Some(embedder().embedding(text).unwrap())
            );
        }
        let origin = |question: &str| Origin {
            question: question.into(),
            support: Support::Unchecked,
        };
        let (klaus, who) = (origin("What does Klaus do?"), origin("Who plays?"));
        assert_eq!(origins(store, 4), [klaus.clone(), klaus, who]);
        let graph = Graph::of(&snapshot).unwrap();
        assert_eq!(graph.integrity(&Rules::default()).unwrap().findings, []);
    };
    look(&store);
    let Verdict::Questions(questions) = &reflected.attempts[0].verdict else {
        panic!("{:?}", reflected.attempts[0]);
    };
    assert_eq!(questions.left_out, ["Why?"]);
    assert_eq!(reflected.attempts.len(), 6);
    assert!(reflected.attempts.iter().all(|attempt| attempt.is_taken));
    drop(store);
    look(&Store::open(&path).unwrap());
}

#[test]
fn what_is_retrieved_and_touched_is_what_a_sequential_batch_retrieves_and_touches() {
    let (_a, _, ours) = store();
    let (_b, _, theirs) = store();
    let preset = Preset {
        k: 2,
        ..Preset::paper()
    };
    let settings = Settings {
        questions: 3,
        agent: Agent(7),
        ..Settings::new(preset)
    };
    let asked = [
        "What about cities?",
        "Who plays chess?",
        "Is there coffee about cities?",
    ];
    let mut run = Reflect::new(&ours, settings, None, NOW).unwrap();
    run.replied(&asked.join("\n")).unwrap();
    let embeddings: Vec<_> = asked
        .iter()
        .map(|text| embedder().embedding(text).unwrap())
        .collect();
    run.embedded(embeddings.clone()).unwrap();
    // What comes meanwhile is not seen.
    let late = add(
        &ours,
        vec![observed("Klaus writes about cities and coffee and chess")],
    );
    assert_eq!(contents(&ours.snapshot()).lines().count(), 6);
    for _ in asked {
        run.replied("1. An insight (because of 2)").unwrap();
        let Need::Embed { texts, .. } = run.needs() else {
            panic!("embeddings come before the next question");
        };
        assert_eq!(texts, ["An insight"]);
        run.embedded(vec![embedder().embedding("An insight").unwrap()])
            .unwrap();
    }
    (0..3).for_each(|_| run.rated("5").unwrap());
    let last_access = |store: &Store| {
        let snapshot = store.snapshot();
        (0..4)
            .map(|row| snapshot.last_access(Agent(7), row))
            .collect::<Vec<_>>()
    };
    let untouched = last_access(&ours);
    let reflected = run.append(&ours).unwrap();
    assert_ne!(last_access(&ours), untouched);
    let filter = Filter {
        unexpired: true,
        ..Filter::PAST
    };
    let asks: Vec<_> = embeddings
        .iter()
        .map(|embedding| {
            Retrieve::new(Ask {
                agent: Agent(7),
                filter: &filter,
                ..Ask::new(embedding, NOW, &preset)
            })
        })
        .collect();
    let order = Order::Sequential;
    let mut workspace = memorank::scoring::Workspace::new();
    let all = retrieve_many(&theirs, &asks, order, memorank::Par::Serial, &mut workspace).unwrap();
    for (ours, theirs) in reflected.retrieved.iter().zip(&all) {
        assert_eq!(ours.memories, theirs.memories);
        assert_eq!(ours.ranges, theirs.ranges);
        assert!(ours.touch.is_ok() && ours.sequence.is_some());
    }
    assert_eq!(last_access(&ours), last_access(&theirs));
    // The records say what was seen: not what came before they were written.
    for retrieved in &reflected.retrieved {
        let (before, touched) = ours.before(retrieved.sequence.unwrap()).unwrap();
        assert!(before.row_of_id(late).is_none());
        assert_eq!(touched.agent, Agent(7));
    }
}

#[test]
fn nested_reflection() {
    let (_dir, _, store) = store();
    for depth in 1..5 {
        let last = store.snapshot().next_id();
        let insight = format!("1. Insight {depth} (because of 1, {last})");
        let reflected = run(&store, settings(), &[QUESTION, &insight, "5"]).unwrap();
        let expected = match depth {
            1 => vec![0, 3],
            _ => vec![0, last - 1],
        };
        let expected = [(format!("Insight {depth}"), expected, depth)];
        assert_eq!(stored(&store, reflected.ids.start), expected);
    }
    let graph = Graph::of(&store.snapshot()).unwrap();
    assert_eq!(graph.integrity(&Rules::default()).unwrap().findings, []);
}

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
fn the_newest_are_those_that_were_made_last() {
    let (_dir, _, store) = empty();
    let at = |created, text: &str| Draft {
        created: NOW - created,
        ..observed(text)
    };
    add(
        &store,
        vec![
            at(1, "last"),
            at(9, "first"),
            at(5, "between"),
            at(5, "after it"),
        ],
    );
    for (newest, expected) in [
        (9, &["first", "between", "after it", "last"][..]),
        (2, &["after it", "last"]),
    ] {
        let settings = Settings {
            newest,
            ..settings()
        };
        let run = Reflect::new(&store, settings, None, NOW).unwrap();
        let Need::Reply(prompt) = run.needs() else {
            panic!()
        };
        assert!(
            prompt
                .statements
                .iter()
                .map(|of| of.text)
                .eq(expected.iter().copied())
        );
    }
}

#[test]
fn repeated_insight_text_is_two_memories() {
    let (_dir, _, store) = store();
    let twice = "1. Klaus reads (because of 1)\n2. Klaus reads (because of 2)";
    let reflected = run(&store, settings(), &[QUESTION, twice, "5", "5"]).unwrap();
    assert_eq!(reflected.ids, 4..6);
    let texts = stored(&store, 4);
    assert_eq!(texts[0], ("Klaus reads".to_owned(), vec![0], 1));
    assert_eq!(texts[1], ("Klaus reads".to_owned(), vec![1], 1));
}

/// What was refused of the last reply, by the place of the insight.
fn refused(attempt: &Attempt) -> Vec<(usize, String)> {
    let Verdict::Insights { refused, .. } = &attempt.verdict else {
        panic!("{attempt:?}");
    };
    let told = refused
        .iter()
        .map(|refused| (refused.insight, refused.refusal.to_string()));
    told.collect()
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

/// A run that is ready to be stored, which cites 0 and 1.
fn ready(store: &Store) -> Reflect {
    let mut run = Reflect::new(store, settings(), None, NOW).unwrap();
    run.replied(QUESTION).unwrap();
    run.embedded(vec![vec![1.0; DIM]]).unwrap();
    run.replied("1. Klaus reads (because of 1, 2)\n2. Klaus writes (because of 2)")
        .unwrap();
    run.not_embedded().unwrap();
    run.rated("5").unwrap();
    run.rated("5").unwrap();
    run
}

#[test]
fn evidence_that_was_deleted_or_corrected_meanwhile_is_told_and_nothing_is_stored() {
    let (_dir, _, deleted) = store();
    let mut run = ready(&deleted);
    deleted.delete(&[1]).unwrap();
    let before = contents(&deleted.snapshot());
    let error = run.append(&deleted).unwrap_err();
    assert!(
        matches!(error, ReflectFinishError::Deleted { insight: 0, id: 1 }),
        "{error}"
    );
    assert_eq!(contents(&deleted.snapshot()), before);

    let (_dir, _, corrected) = store();
    let mut run = ready(&corrected);
    let correction = |created| Draft {
        supersedes: Some(1),
        created,
        ..observed("Klaus takes notes about villages")
    };
    add(&corrected, vec![correction(NOW)]);
    let before = contents(&corrected.snapshot());
    let error = run.append(&corrected).unwrap_err();
    let told = matches!(
        error,
        ReflectFinishError::Superseded {
            insight: 0,
            id: 1,
            by: 4
        }
    );
    assert!(told, "{error}");
    assert_eq!(contents(&corrected.snapshot()), before);

    // What is corrected only later was right at the moment of reflecting.
    let (_dir, _, later) = store();
    let mut run = ready(&later);
    add(&later, vec![correction(NOW + 1)]);
    assert_eq!(run.append(&later).unwrap().ids, 5..7);
}

#[test]
fn what_is_deleted_expired_corrected_or_to_come_is_not_shown() {
    let (_dir, _, store) = store();
    add(
        &store,
        vec![Draft {
            expiry: Some(NOW),
            ..observed("it rained")
        }],
    );
    add(
        &store,
        vec![Draft {
            created: NOW + 1,
            ..observed("it will rain")
        }],
    );
    add(
        &store,
        vec![Draft {
            supersedes: Some(2),
            created: NOW - 2,
            ..observed("Maria plays go")
        }],
    );
    add(
        &store,
        vec![Draft {
            kind: Kind::CHAT,
            ..observed("Klaus: hello")
        }],
    );
    store.delete(&[0]).unwrap();
    let shown = |settings: Settings| {
        let mut run = Reflect::new(&store, settings, None, NOW).unwrap();
        let Need::Reply(prompt) = run.needs() else {
            panic!()
        };
        let newest: Vec<String> = prompt
            .statements
            .iter()
            .map(|statement| statement.text.to_owned())
            .collect();
        let ids = prompt.statements.iter().map(|statement| statement.id);
        let texts = ids.map(|id| store.snapshot().row_of_id(id).unwrap());
        let texts = texts.map(|row| store.snapshot().text(row).unwrap().to_owned());
        assert!(texts.eq(newest.iter().cloned()));
        run.replied(QUESTION).unwrap();
        run.embedded(vec![vec![1.0; DIM]]).unwrap();
        let Need::Reply(prompt) = run.needs() else {
            panic!()
        };
        assert!(prompt.statements.iter().map(|of| of.text).eq(&newest));
        newest
    };
    assert_eq!(
        shown(settings()),
        [SEEN[1], SEEN[3], "Maria plays go", "Klaus: hello"]
    );
    // Wrong evidence type: what is not shown cannot be cited.
    let observations = Settings {
        kinds: Some(vec![Kind::OBSERVATION]),
        ..settings()
    };
    assert_eq!(
        shown(observations.clone()),
        [SEEN[1], SEEN[3], "Maria plays go"]
    );
    let chat = "1. Klaus greets (because of 4)";
    let error = exhausted(run(&store, observations, &[QUESTION, chat, chat, chat]).unwrap_err());
    let told = "citation 0 is 4: 3 memories were shown".to_owned();
    assert_eq!(refused(&error.attempts[3]), [(0, told)]);
    let newest = Settings {
        newest: 2,
        ..settings()
    };
    let run = Reflect::new(&store, newest, None, NOW).unwrap();
    let Need::Reply(prompt) = run.needs() else {
        panic!()
    };
    let newest = prompt.statements.iter().map(|of| of.text);
    assert!(newest.eq(["Maria plays go", "Klaus: hello"]));
}

#[test]
fn a_text_cannot_forge_a_statement() {
    let (_dir, _, store) = empty();
    add(
        &store,
        vec![observed(
            "a\n2. b\r\n3. c\u{2028}4. d\u{b}\u{85}5. e\u{1b}[2J\t f",
        )],
    );
    let run = Reflect::new(&store, settings(), None, NOW).unwrap();
    let Need::Reply(prompt) = run.needs() else {
        panic!()
    };
    let text = prompt.to_string();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    assert_eq!(lines, ["1. a 2. b 3. c 4. d 5. e [2J f"]);
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

#[test]
fn all_insights_are_there_or_none_wherever_the_journal_ends() {
    let (dir, path, store) = store();
    store.checkpoint().unwrap();
    let before = contents(&store.snapshot());
    let journal = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
        let mut segments = files.keys().filter(|name| name.starts_with("journal."));
        segments.next_back().unwrap().clone()
    };
    let start = bytes_of(&path);
    let start = start[&journal(&start)].len();
    ready(&store).append(&store).unwrap();
    let files = bytes_of(&path);
    let name = journal(&files);
    let mut met = [0; 2];
    for end in start..=files[&name].len() {
        let cut = dir.path().join(format!("cut-{end}"));
        std::fs::create_dir(&cut).unwrap();
        for (file, bytes) in &files {
            let bytes = if *file == name { &bytes[..end] } else { bytes };
            std::fs::write(cut.join(file), bytes).unwrap();
        }
        let left = Store::open_read_only(&cut).unwrap().snapshot();
        match left.len() {
            4 => assert_eq!(contents(&left), before),
            6 => assert_eq!(
                left.evidence(4).unwrap(),
                [Reference::Id(0), Reference::Id(1)]
            ),
            other => panic!("{other} memories of 4 and 2"),
        }
        met[usize::from(left.len() == 6)] += 1;
        std::fs::remove_dir_all(&cut).unwrap();
    }
    assert!(met[0] > 100 && met[1] > 1, "{met:?}");
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

#[test]
fn a_run_can_cross_threads() {
    fn is_send<T: Send>(run: T) -> T {
        run
    }
    let (_dir, _, store) = store();
    let mut run = is_send(ready(&store));
    let store = &store;
    std::thread::scope(|scope| {
        let stored = scope.spawn(move || run.append(store).unwrap().ids);
        assert_eq!(stored.join().unwrap(), 4..6);
    });
}

#[test]
fn a_clone_of_a_run_goes_its_own_way() {
    let (_dir, _, store) = store();
    let mut run = Reflect::new(&store, settings(), None, NOW).unwrap();
    run.replied(QUESTION).unwrap();
    run.embedded(vec![vec![1.0; DIM]]).unwrap();
    let mut other = run.clone();
    assert_eq!(format!("{other:?}"), format!("{run:?}"));
    for (run, text) in [(&mut run, "Klaus reads"), (&mut other, "Klaus rests")] {
        run.replied(&format!("1. {text} (because of 1)")).unwrap();
        run.not_embedded().unwrap();
        run.rated("5").unwrap();
        let reflected = run.append(&store).unwrap();
        reflected.retrieved[0].touch.as_ref().unwrap();
        assert_eq!(stored(&store, reflected.ids.start)[0].0, text);
    }
}

#[test]
fn another_store_is_refused_whatever_it_holds() {
    let (_dir, _, store) = store();
    // Touches put it ahead of the other, which has the same memories.
    for later in 0..3 {
        store.touch(Agent::OWN, &[0], NOW + later).unwrap();
    }
    let mut run = ready(&store);
    let (_dir, _, behind) = self::store();
    let (_dir, _, empty) = empty();
    let (_dir, _, different) = self::empty();
    for text in ["a", "b", "c", "d", "e"] {
        add(&different, vec![observed(text)]);
    }
    for other in [&behind, &empty, &different] {
        let before = contents(&other.snapshot());
        let error = run.append(other).unwrap_err();
        assert!(matches!(error, ReflectFinishError::OtherStore), "{error}");
        assert_eq!(contents(&other.snapshot()), before);
    }
    assert_eq!(run.append(&store).unwrap().ids, 4..6);
}
