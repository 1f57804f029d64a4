//! `Reflect` against scripted replies.

mod gates;
mod replies;
mod shown;
mod stored;
mod turns;

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
