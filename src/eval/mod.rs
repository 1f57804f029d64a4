//! Whether a scoring helps: rankings measured against questions whose right answers are known, weights and decay
//! fitted to them, and how much of a ranking hangs on each weight.
//!
//! - [`evaluate`] finds the places of the right answers under any number of presets; a [`Measure`] makes a number of
//!   the places of one question, and a [`Bootstrap`] says how sure the difference of two presets is.
//! - [`tune`] looks for weights and a decay by cross-validation: what it reports as a gain was measured on questions
//!   that the setting was not chosen by.
//! - [`sweep`] needs no right answers: it tells how many of the best k stay when one weight changes.
//!
//! All three take [`Collection`]s: stores with questions. Candidates, their raw components and the order of equal
//! scores are those of [`stream::rank`](crate::stream::rank), to the bit; nothing is touched. The embeddings are read
//! once per block of questions, whatever is tried. Results do not depend on the number of threads.
//!
//! ```
//! use memorank::Par;
//! use memorank::eval::{Bootstrap, Collection, Judged, Measure, evaluate};
//! use memorank::kernel::Dtype;
//! use memorank::scoring::{Preset, Weights, Workspace};
//! use memorank::store::{CreateOptions, Kind, NewMemory, Store};
//!
//! let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F32, model: None };
//! let dir = tempfile::tempdir()?;
//! let store = Store::create(dir.path().join("house"), &options)?;
//! let hour = 3_600_000_000;
//! let memory = |text, embedding, created| NewMemory {
//!     key: None,
//!     kind: Kind::OBSERVATION,
//!     text,
//!     embedding: Some(embedding),
//!     created,
//!     last_access: created,
//!     expiry: None,
//!     importance: 1.0,
//!     evidence: &[],
//!     depth: 0,
//!     supersedes: None,
//!     payload: b"",
//! };
//! store.append(&[
//!     memory("the key is under the mat", &[1.0, 0.1], 0),
//!     memory("it rains", &[0.2, 1.0], 900 * hour),
//!     memory("the cat is out", &[0.3, 0.8], 1_000 * hour),
//! ])?;
//!
//! // "Where is the key?", asked long after.
//! let questions = [Judged::new(&[1.0, 0.0], 1_001 * hour, &[0])];
//! let collections = [Collection { snapshot: &store.snapshot(), questions: &questions }];
//! let mut cosine = Preset::paper();
//! cosine.scoring.weights = Weights { relevance: 1.0, recency: 0.0, importance: 0.0 };
//! let mut recent = Preset::paper();
//! recent.scoring.weights.recency = 2.0;
//! let presets = [cosine, recent];
//! let found = evaluate(&collections, &presets, Par::Serial, &mut Workspace::new())?;
//! let first: Measure = "recall@1".parse()?;
//! let [cosine, recent] = [0, 1].map(|preset| found.values(preset, first));
//! assert_eq!((cosine[0], recent[0]), (1.0, 0.0));
//! // Of one question no interval can be made: it has no width.
//! let gain = Bootstrap::default().gain(&recent, &cosine);
//! assert_eq!((gain.low, gain.mean, gain.high), (-1.0, -1.0, -1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bootstrap;
mod case;
mod contenders;
mod evaluate;
mod grid;
mod measure;
mod sweep;
mod tune;

use crate::scoring::{Preset, ScoringError};
use crate::store::{Agent, Snapshot};
use crate::stream::{Ask, Filter, StreamError};
use thiserror::Error;

pub use bootstrap::{Bootstrap, Gain, mean};
pub use evaluate::{Evaluation, evaluate};
pub use grid::Grid;
pub use measure::{Measure, NoMeasure, Places};
pub use sweep::{Curve, Point, Signal, Sweep, sweep};
pub use tune::{Fold, Tuned, Tuning, folds_at_random, tune};

/// A store's memories and questions about them.
#[derive(Clone, Copy, Debug)]
pub struct Collection<'a> {
    /// The memories.
    pub snapshot: &'a Snapshot,
    /// The questions.
    pub questions: &'a [Judged<'a>],
}

/// A question whose right answers are known.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The question's embedding, `dim` elements.
    pub embedding: &'a [f32],
    /// The name of the model that made it, as in [`Ask::model`].
    pub model: Option<&'a str>,
    /// The moment of asking, in microseconds since the Unix epoch.
    pub now: i64,
    /// Who asks.
    pub agent: Agent,
    /// Which memories compete.
    pub filter: &'a Filter<'a>,
    /// Ids of the memories that answer it, in any order. One that does not compete, or that no memory has, is an
    /// answer that no ranking finds: it counts as missed. An id given twice counts once.
    pub relevant: &'a [u64],
}

impl<'a> Judged<'a> {
    /// The store's own agent asks of every memory created by `now`, in microseconds since the Unix epoch. The
    /// embedding's model is not checked.
    pub fn new(embedding: &'a [f32], now: i64, relevant: &'a [u64]) -> Judged<'a> {
        Judged {
            embedding,
            model: None,
            now,
            agent: Agent::OWN,
            filter: &Filter::PAST,
            relevant,
        }
    }

    fn ask(&self, preset: &'a Preset) -> Ask<'a> {
        Ask {
            agent: self.agent,
            model: self.model,
            filter: self.filter,
            ..Ask::new(self.embedding, self.now, preset)
        }
    }
}

/// Why nothing was measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvalError {
    /// A question could not be asked.
    #[error("question {question} of collection {collection}: {error}")]
    Question {
        /// Index of the collection.
        collection: usize,
        /// Index of the question in the collection.
        question: usize,
        /// Why.
        #[source]
        error: StreamError,
    },
    /// A question has no right answer: there is nothing to find, and so nothing to measure.
    #[error("question {question} of collection {collection} has no relevant memory; leave it out")]
    NothingRelevant {
        /// Index of the collection.
        collection: usize,
        /// Index of the question in the collection.
        question: usize,
    },
    /// There are no questions.
    #[error("there is no question to measure")]
    NoQuestions,
    /// A setting is out of its range.
    #[error("setting {setting}: {error}")]
    Setting {
        /// Its index.
        setting: usize,
        /// What is wrong with it.
        #[source]
        error: ScoringError,
    },
    /// A setting's recency goes by position or is given: it says nothing about time.
    #[error("setting {setting}: its recency does not go by age")]
    NotByAge {
        /// Its index.
        setting: usize,
    },
    /// There is no setting.
    #[error("there is no setting to try")]
    NoSettings,
    /// Not one fold for each question.
    #[error("there are {found} folds for {questions} questions; say of each in which it is")]
    FoldsMismatch {
        /// Entries found.
        found: usize,
        /// Questions of all collections.
        questions: usize,
    },
    /// All questions are in one fold: none would be left to choose by.
    #[error("cross-validation needs questions in at least two folds")]
    OneFold,
}

/// All questions of the collections have something to find.
fn check_relevant(collections: &[Collection<'_>]) -> Result<(), EvalError> {
    for (collection, of) in collections.iter().enumerate() {
        let mut questions = of.questions.iter();
        if let Some(question) = questions.position(|judged| judged.relevant.is_empty()) {
            return Err(EvalError::NothingRelevant {
                collection,
                question,
            });
        }
    }
    match collections.iter().all(|of| of.questions.is_empty()) {
        true => Err(EvalError::NoQuestions),
        false => Ok(()),
    }
}
