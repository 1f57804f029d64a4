//! `stream`: from drafts to memories, in steps and in one call.

#![cfg(feature = "store")]

#[path = "store/example.rs"]
#[allow(dead_code)]
mod example;

use example::{contents, new_store};
use memorank::kernel::Dtype;
use memorank::store::{CreateOptions, EmbedError, Kind, MemoryProblem, Reference, Store};
use memorank::stream::rating::RatingProblem;
use memorank::stream::{
    AnswerError, BeginError, BoxError, Draft, Embed, Embedding, FillIn, FinishError,
    HashingEmbedder, Importance, Need, OtherModel, Rate, Remember, RememberError, Step, remember,
};
use std::ops::RangeInclusive;

/// The model of the stores of `example`.
const MODEL: Option<&str> = Some("a model");

fn store() -> (tempfile::TempDir, Store) {
    let (dir, _, store) = new_store(2, Dtype::F16);
    (dir, store)
}

fn known(text: &str) -> Draft {
    Draft {
        importance: Importance::Given(3.0),
        embedding: Embedding::Given(vec![0.6, 0.8]),
        ..Draft::new(text, 7)
    }
}

/// Two that lack all, and one each that lacks less.
fn drafts() -> Vec<Draft> {
    vec![
        Draft::new("first", 1),
        known("known"),
        Draft {
            embedding: Embedding::None,
            ..Draft::new("never embedded", 2)
        },
        Draft {
            importance: Importance::Given(4.0),
            ..Draft::new("rated", 3)
        },
        Draft::new("last", 4),
    ]
}

fn vectors(n: usize) -> Vec<Vec<f32>> {
    (1..=n).map(|i| vec![i as f32, 0.5]).collect()
}

/// The machine with its embeddings.
fn embedded(store: &Store) -> Remember {
    let mut machine = Remember::new(store, MODEL, drafts()).unwrap();
    machine.embedded(vectors(3)).unwrap();
    machine
}

fn rate(text: &str) -> Need<'_> {
    let range = 1..=10;
    Need::Rate { text, range }
}

#[test]
fn a_machine_asks_for_what_is_lacking_and_stores_what_was_answered() {
    let (_dir, store) = store();
    let mut machine = Remember::new(&store, MODEL, drafts()).unwrap();
    let (texts, model) = (vec!["first", "rated", "last"], MODEL);
    assert_eq!(machine.needs(), Need::Embed { texts, model });
    machine.embedded(vectors(3)).unwrap();
    for (text, reply) in [("first", "1"), ("never embedded", " 10\n"), ("last", "5")] {
        assert_eq!(machine.needs(), rate(text));
        machine.rated(reply).unwrap();
    }
    assert_eq!(machine.needs(), Need::Nothing);
    assert_eq!(machine.append(&store).unwrap(), 0..5);

    let snapshot = store.snapshot();
    let stored: Vec<_> = (0..5)
        .map(|row| {
            let memory = snapshot.memory(row).unwrap();
            (memory.text, memory.importance, snapshot.embedding(row))
        })
        .collect();
    assert_eq!(
        stored,
        [
            ("first", 1.0, Some(vec![1.0, 0.5])),
            ("known", 3.0, snapshot.embedding(1)),
            ("never embedded", 10.0, None),
            ("rated", 4.0, Some(vec![2.0, 0.5])),
            ("last", 5.0, Some(vec![3.0, 0.5])),
        ]
    );
    // Once, and no more.
    assert!(machine.drafts().is_empty());
    assert_eq!(machine.append(&store).unwrap(), 5..5);
    assert_eq!(store.snapshot().len(), 5);
}

#[test]
fn every_field_of_a_draft_is_stored_as_an_append_of_it_would() {
    let (_a, ours) = store();
    let (_b, theirs) = store();
    let mut all = Vec::new();
    for memory in example::all_varied(12, 2) {
        let (last_access, embedding) = (memory.created, memory.embedding.clone());
        all.push(Draft {
            key: memory.key.clone(),
            kind: memory.kind.clone(),
            text: memory.text.clone(),
            created: memory.created,
            expiry: memory.expiry,
            importance: Importance::Given(memory.importance),
            embedding: embedding.map_or(Embedding::None, Embedding::Given),
            evidence: memory.evidence.clone(),
            depth: memory.depth,
            supersedes: memory.supersedes,
            payload: memory.payload.clone(),
        });
        let memory = example::Owned {
            last_access,
            ..memory
        };
        example::append(&theirs, &[memory]);
    }
    let mut machine = Remember::new(&ours, None, all).unwrap();
    assert_eq!(machine.append(&ours).unwrap(), 0..12);
    assert_eq!(contents(&ours.snapshot()), contents(&theirs.snapshot()));
}

/// Each answer at each step at which it is not asked for.
#[test]
fn answers_out_of_order_are_errors_and_change_nothing() {
    let (_dir, store) = store();
    type Answer = fn(&mut Remember) -> Result<(), AnswerError>;
    let fresh = Remember::new(&store, MODEL, drafts()).unwrap();
    let unrated = embedded(&store);
    let ready = Remember::new(&store, MODEL, vec![known("known")]).unwrap();
    for mut machine in [fresh, unrated, ready] {
        let needed = machine.needs().step();
        let answers: [(Step, Answer); 4] = [
            (Step::Embed, |machine| machine.embedded(vectors(3))),
            (Step::Embed, Remember::not_embedded),
            (Step::Rate, |machine| machine.rated("5")),
            (Step::Rate, |machine| machine.rated_as(5.0)),
        ];
        for (step, answer) in answers.into_iter().filter(|&(step, _)| step != needed) {
            let before = machine.clone();
            match answer(&mut machine) {
                Err(AnswerError::NotAsked { given, needed: n }) => {
                    assert_eq!((given, n), (step, needed));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(machine.drafts(), before.drafts());
            assert_eq!(machine.needs().step(), needed);
        }
    }
}

#[test]
fn nothing_is_stored_before_everything_is_answered() {
    let (_dir, store) = store();
    let mut machine = Remember::new(&store, MODEL, drafts()).unwrap();
    for needed in [Step::Embed, Step::Rate, Step::Rate, Step::Rate] {
        match machine.append(&store) {
            Err(FinishError::Unanswered { needed: n }) => assert_eq!(n, needed),
            other => panic!("{other:?}"),
        }
        assert!(store.snapshot().is_empty());
        match needed {
            Step::Embed => machine.embedded(vectors(3)).unwrap(),
            Step::Rate => machine.rated("2").unwrap(),
            Step::Nothing => unreachable!("not in the list"),
        }
    }
    assert_eq!(machine.append(&store).unwrap(), 0..5);
}

#[test]
fn embeddings_are_taken_all_or_none_b33_b87() {
    let (_dir, store) = store();
    let mut machine = Remember::new(&store, MODEL, drafts()).unwrap();
    for found in [0, 2, 4] {
        match machine.embedded(vectors(found)) {
            Err(AnswerError::Count { expected, found: n }) => {
                assert_eq!((expected, n), (3, found));
            }
            other => panic!("{other:?}"),
        }
    }
    let (expected, nan) = (2, f32::NAN);
    let f16_overflow = MemoryProblem::F16Overflow {
        element: 1,
        value: 65520.0,
    };
    let infinite = MemoryProblem::NonFinite {
        element: 0,
        value: f32::INFINITY,
    };
    for (bad, problem) in [
        (
            vec![],
            Some(MemoryProblem::Dimension { expected, found: 0 }),
        ),
        (
            vec![1.0; 3],
            Some(MemoryProblem::Dimension { expected, found: 3 }),
        ),
        (vec![0.0; 2], Some(MemoryProblem::Length { length: 0.0 })),
        (vec![1.0, 65520.0], Some(f16_overflow)),
        (vec![f32::INFINITY, 1.0], Some(infinite)),
        // NaN is not equal to itself.
        (vec![1.0, nan], None),
    ] {
        for at in 0..3 {
            let mut answer = vectors(3);
            answer[at] = bad.clone();
            match machine.embedded(answer) {
                Err(AnswerError::Embedding { index, problem: p }) => {
                    assert_eq!(index, at);
                    assert!(problem.as_ref().is_none_or(|problem| *problem == p), "{p}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(machine.drafts(), drafts());
        }
    }
    machine.embedded(vectors(3)).unwrap();
}

#[test]
fn a_reply_that_is_no_rating_is_asked_again_b89() {
    let (_dir, store) = store();
    let mut machine = embedded(&store);
    let before = machine.drafts().to_vec();
    for (reply, problem) in [
        ("8/10", RatingProblem::MoreThanANumber),
        ("0", RatingProblem::OutOfRange),
        ("5.5", RatingProblem::NotWhole),
        ("", RatingProblem::Empty),
    ] {
        match machine.rated(reply) {
            Err(AnswerError::Rating(error)) => {
                assert_eq!((error.reply.as_str(), error.problem), (reply, problem));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(machine.drafts(), before);
        assert_eq!(machine.needs(), rate("first"));
    }
    machine.rated("8").unwrap();
    assert_eq!(machine.needs(), rate("never embedded"));
}

#[test]
fn ratings_are_of_the_range_that_was_asked_for() {
    let (_dir, store) = store();
    let mut machine = embedded(&store).with_range(0..=100);
    let (text, range) = ("first", 0..=100);
    assert_eq!(machine.needs(), Need::Rate { text, range });
    assert!(machine.rated("101").is_err());
    machine.rated("100").unwrap();
    machine.rated("0").unwrap();
    assert_eq!(machine.drafts()[0].importance, Importance::Given(100.0));
}

#[test]
fn an_importance_from_elsewhere_is_any_finite_number() {
    let (_dir, store) = store();
    let mut machine = embedded(&store);
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        match machine.rated_as(value) {
            Err(AnswerError::Importance { value: v }) => {
                assert_eq!(v.to_bits(), value.to_bits());
            }
            other => panic!("{other:?}"),
        }
    }
    machine.rated_as(-2.5).unwrap();
    assert_eq!(machine.drafts()[0].importance, Importance::Given(-2.5));
}

#[test]
fn what_the_store_refuses_stays_in_the_machine_b33() {
    let (_dir, store) = store();
    let twins = ["a", "b"].map(|text| Draft {
        key: Some("twin".into()),
        ..known(text)
    });
    let mut machine = Remember::new(&store, MODEL, twins.to_vec()).unwrap();
    match machine.append(&store) {
        Err(FinishError::Append(error)) => assert!(error.to_string().contains("twin"), "{error}"),
        other => panic!("{other:?}"),
    }
    assert!(store.snapshot().is_empty());
    let mut drafts = machine.into_drafts();
    assert_eq!(drafts, twins);
    drafts[1].key = None;
    let mut machine = Remember::new(&store, MODEL, drafts).unwrap();
    assert_eq!(machine.append(&store).unwrap(), 0..2);
}

#[test]
fn a_draft_that_could_not_be_stored_is_told_before_anything_is_asked() {
    let (_dir, store) = store();
    let wrong = [
        Draft {
            embedding: Embedding::Given(vec![1.0; 3]),
            ..known("dimension")
        },
        Draft {
            embedding: Embedding::Given(vec![0.0; 2]),
            ..known("length")
        },
        Draft {
            importance: Importance::Given(f32::INFINITY),
            ..known("importance")
        },
    ];
    for draft in wrong {
        match Remember::new(&store, MODEL, vec![known("fine"), draft]) {
            Err(BeginError::Draft { index: 1, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn another_model_is_an_error_that_names_both_b88() {
    let (_dir, store) = store();
    let other = OtherModel {
        stored: "a model".into(),
        given: "B".into(),
    };
    match Remember::new(&store, Some("B"), vec![]) {
        Err(BeginError::Model(error)) => assert_eq!(error, other),
        result => panic!("{result:?}"),
    }
    match FillIn::new(&store, Some("B"), 0, 1) {
        Err(BeginError::Model(error)) => assert_eq!(error, other),
        result => panic!("{result:?}"),
    }
    let text = other.to_string();
    assert!(
        text.contains("\"a model\"") && text.contains("\"B\""),
        "{text}"
    );

    // A machine of a nameless store is asked about when it comes to another one.
    let dir = tempfile::tempdir().unwrap();
    let nameless = CreateOptions {
        model: None,
        ..example::options(2, Dtype::F16)
    };
    let nameless = Store::create(dir.path().join("nameless"), &nameless).unwrap();
    let mut machine = Remember::new(&nameless, Some("B"), vec![known("one")]).unwrap();
    match machine.append(&store) {
        Err(FinishError::Model(error)) => assert_eq!(error, other),
        result => panic!("{result:?}"),
    }
    assert_eq!(machine.append(&nameless).unwrap(), 0..1);
}

#[test]
fn memories_stored_without_an_embedding_are_filled_in_later() {
    let (_dir, store) = store();
    let mut machine = Remember::new(&store, MODEL, drafts()).unwrap();
    machine.not_embedded().unwrap();
    while machine.needs() != Need::Nothing {
        machine.rated("5").unwrap();
    }
    machine.append(&store).unwrap();
    assert_eq!(store.delete(&[2]).unwrap(), 1);

    let ids = |from, limit| {
        let fill_in = FillIn::new(&store, MODEL, from, limit).unwrap();
        fill_in.ids().to_vec()
    };
    assert_eq!(ids(0, 10), [0, 3, 4]);
    assert_eq!(ids(0, 2), [0, 3]);
    assert_eq!(ids(1, 1), [3]);
    assert!(ids(5, 10).is_empty() && ids(0, 0).is_empty());

    let mut fill_in = FillIn::new(&store, MODEL, 0, 10).unwrap();
    let (texts, model) = (vec!["first", "rated", "last"], MODEL);
    assert_eq!(fill_in.needs(), Need::Embed { texts, model });
    assert!(fill_in.embeddings().is_empty());
    assert!(fill_in.embedded(vectors(2)).is_err());
    let mut zeros = vectors(3);
    zeros[1] = vec![0.0; 2];
    assert!(fill_in.embedded(zeros).is_err());
    match fill_in.fill(&store) {
        Err(FinishError::Unanswered { needed }) => assert_eq!(needed, Step::Embed),
        other => panic!("{other:?}"),
    }
    fill_in.embedded(vectors(3)).unwrap();
    assert_eq!(fill_in.needs(), Need::Nothing);
    match fill_in.embedded(vectors(3)) {
        Err(AnswerError::NotAsked { .. }) => {}
        other => panic!("{other:?}"),
    }
    let expected: [(u64, &[f32]); 3] = [(0, &[1.0, 0.5]), (3, &[2.0, 0.5]), (4, &[3.0, 0.5])];
    assert_eq!(fill_in.embeddings(), expected);

    store.delete(&[3]).unwrap();
    assert_eq!(fill_in.fill(&store).unwrap(), 2);
    let snapshot = store.snapshot();
    assert_eq!(snapshot.embedding(0).unwrap(), [1.0, 0.5]);
    assert_eq!(snapshot.embedding(4).unwrap(), [3.0, 0.5]);
    assert!(ids(0, 10).is_empty());
    // They have one now, and it stays.
    match fill_in.fill(&store) {
        Err(FinishError::Embed(EmbedError::HasEmbedding { id: 0 })) => {}
        other => panic!("{other:?}"),
    }
}

/// A machine can wait in a task that moves between threads.
#[test]
fn machines_can_be_sent_and_shared() {
    fn assert_task<T: Send + Sync + Clone + 'static>() {}
    assert_task::<Remember>();
    assert_task::<FillIn>();
    assert_task::<Draft>();
}

/// Gives its replies in turn, then fails.
struct Replies(Vec<&'static str>);

impl Rate for Replies {
    fn rate(&mut self, text: &str, range: RangeInclusive<u8>) -> Result<String, BoxError> {
        assert_eq!(range, 1..=10);
        assert!(!text.is_empty());
        match self.0.is_empty() {
            true => Err("no reply".into()),
            false => Ok(self.0.remove(0).into()),
        }
    }
}

struct Wrong;

impl Embed for Wrong {
    fn model(&self) -> &str {
        HashingEmbedder::MODEL
    }

    fn embed(&mut self, _: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
        Err("no connection".into())
    }
}

fn hashing(dim: usize) -> (tempfile::TempDir, Store, HashingEmbedder) {
    let dir = tempfile::tempdir().unwrap();
    let options = CreateOptions {
        model: Some(HashingEmbedder::MODEL.into()),
        ..example::options(dim, Dtype::F32)
    };
    let store = Store::create(dir.path().join("store"), &options).unwrap();
    (dir, store, HashingEmbedder::new(options.dim))
}

#[test]
fn one_call_asks_and_stores() {
    let (_dir, store, mut embedder) = hashing(64);
    let drafts = vec![
        Draft::new("Klaus reads", 5),
        Draft {
            kind: Kind::REFLECTION,
            evidence: vec![Reference::Missing("a book".into())],
            ..Draft::new("Klaus likes reading", 6)
        },
    ];
    let ids = remember(&store, drafts, &mut embedder, &mut Replies(vec!["2", "9"])).unwrap();
    assert_eq!(ids, 0..2);
    let snapshot = store.snapshot();
    assert_eq!((snapshot.importance(0), snapshot.importance(1)), (2.0, 9.0));
    let expected = embedder.embedding("Klaus likes reading").unwrap();
    assert_eq!(snapshot.embedding(1), Some(expected));
}

#[test]
fn a_failure_of_one_call_stores_nothing_and_a_machine_goes_on_after_it() {
    let (_dir, store, mut embedder) = hashing(64);
    let drafts = vec![Draft::new("Klaus reads", 5), Draft::new("Klaus eats", 6)];
    let call = |embedder: &mut dyn Embed, replies: Vec<&'static str>| {
        remember(&store, drafts.clone(), embedder, &mut Replies(replies)).unwrap_err()
    };
    let failed = call(&mut Wrong, vec!["1", "1"]);
    assert!(matches!(failed, RememberError::Embedder(_)), "{failed:?}");
    let failed = call(&mut embedder, vec!["1"]);
    assert!(matches!(failed, RememberError::Rater(_)), "{failed:?}");
    let failed = call(&mut embedder, vec!["1", "about 2"]);
    let reply = |error: &AnswerError| match error {
        AnswerError::Rating(error) => error.reply.clone(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(&failed, RememberError::Answer(error) if reply(error) == "about 2"));
    let (_other, other, _) = hashing(32);
    let failed = remember(&other, drafts.clone(), &mut embedder, &mut Replies(vec![]));
    assert!(matches!(
        failed,
        Err(RememberError::Answer(AnswerError::Embedding {
            index: 0,
            ..
        }))
    ));
    assert!(store.snapshot().is_empty() && other.snapshot().is_empty());

    let model = Some(HashingEmbedder::MODEL);
    let mut machine = Remember::new(&store, model, drafts.clone()).unwrap();
    let failed = machine.ask(&mut Wrong, &mut Replies(vec![]));
    assert!(matches!(failed, Err(RememberError::Embedder(_))));
    let failed = machine.ask(&mut embedder, &mut Replies(vec!["4"]));
    assert!(matches!(failed, Err(RememberError::Rater(_))));
    // Neither embeddings nor the first rating are asked for again.
    machine.ask(&mut Wrong, &mut Replies(vec!["7"])).unwrap();
    assert_eq!(machine.append(&store).unwrap(), 0..2);
    let snapshot = store.snapshot();
    assert_eq!((snapshot.importance(0), snapshot.importance(1)), (4.0, 7.0));
}

#[test]
fn an_embedder_of_another_model_is_not_asked_b88() {
    let (_dir, store) = store();
    let mut embedder = HashingEmbedder::new(2.try_into().unwrap());
    let failed = remember(&store, drafts(), &mut embedder, &mut Replies(vec![]));
    let names_both =
        |error: &OtherModel| error.stored == "a model" && error.given == HashingEmbedder::MODEL;
    assert!(matches!(
        failed,
        Err(RememberError::Begin(BeginError::Model(error))) if names_both(&error)
    ));
    let mut machine = Remember::new(&store, None, drafts()).unwrap();
    match machine.ask(&mut embedder, &mut Replies(vec![])) {
        Err(RememberError::Model(error)) => assert!(names_both(&error)),
        other => panic!("{other:?}"),
    }
}
