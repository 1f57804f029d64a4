//! Remembering in steps, without IO: a machine says what it needs, the caller asks a model, and brings the
//! answer.
//!
//! A [`Remember`] holds drafts. [`needs`](Remember::needs) says what is to be asked next: first all
//! embeddings at once, then one rating after another. An answer is checked when it comes, whole, and goes into
//! its draft. With nothing left to ask, [`append`](Remember::append) stores all drafts or none.
//!
//! - An answer to what was not asked is an error, and so is appending too early.
//! - After any error the machine is as it was: the question can be asked again, or the drafts taken back with
//!   [`into_drafts`](Remember::into_drafts), with all the answers that came.
//! - It owns its data and holds no store: it can cross threads and `await` points, and store nothing while it
//!   waits.
//!
//! Which model embeds is the caller's to say, and is checked against the store's.

use super::draft::{Draft, Embedding, Importance};
use super::model::OtherModel;
use super::rating::{self, RatingError};
use crate::kernel::Dtype;
use crate::store::{
    AppendError, EmbedError, MemoryProblem, NewMemory, ReadError, Store, check_embedding,
};
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::{Range, RangeInclusive};
use thiserror::Error;

/// What a machine needs next. (Another need would break callers' code, and should: nobody can pass it over.)
#[derive(Clone, Debug, PartialEq)]
pub enum Need<'a> {
    /// The embeddings of these texts, in this order: answer with [`Remember::embedded`] or
    /// [`Remember::not_embedded`].
    Embed {
        /// At least one.
        texts: Vec<&'a str>,
        /// The model to embed with, if it was named: by the store, or when the machine was made.
        model: Option<&'a str>,
    },
    /// How much this text matters: answer with [`Remember::rated`] or [`Remember::rated_as`].
    Rate {
        /// What to rate.
        text: &'a str,
        /// The ratings to choose from.
        range: RangeInclusive<u8>,
    },
    /// Nothing: it can be stored.
    Nothing,
}

/// A [`Need`] without its texts, for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Embeddings.
    Embed,
    /// A rating.
    Rate,
    /// Nothing.
    Nothing,
}

impl Need<'_> {
    /// Which step it is.
    pub fn step(&self) -> Step {
        match self {
            Need::Embed { .. } => Step::Embed,
            Need::Rate { .. } => Step::Rate,
            Need::Nothing => Step::Nothing,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Embed => "embeddings",
            Step::Rate => "a rating",
            Step::Nothing => "nothing",
        })
    }
}

/// Why there is no machine. Nothing was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BeginError {
    /// The models differ.
    #[error(transparent)]
    Model(#[from] OtherModel),
    /// An embedding or importance that was given cannot be stored.
    #[error("draft {index}: {problem}")]
    Draft {
        /// Its place among the drafts.
        index: usize,
        /// What is wrong with it.
        problem: MemoryProblem,
    },
    /// A memory could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why an answer was not taken. The machine is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It answers what was not asked.
    #[error("{given} came, and the next need is {needed}; ask `needs` before each answer")]
    NotAsked {
        /// What was brought.
        given: Step,
        /// What is needed.
        needed: Step,
    },
    /// More or fewer embeddings than texts.
    #[error("{found} embeddings came for {expected} texts; give one for each, in their order")]
    Count {
        /// Texts that were to be embedded.
        expected: usize,
        /// Embeddings that came.
        found: usize,
    },
    /// An embedding that the store would refuse. None of the answer was taken.
    #[error("embedding {index}: {problem}")]
    Embedding {
        /// Its place in the answer.
        index: usize,
        /// What is wrong with it.
        problem: MemoryProblem,
    },
    /// A reply that is no rating.
    #[error(transparent)]
    Rating(#[from] RatingError),
    /// An importance that is not finite.
    #[error("importance is {value}; it must be finite")]
    Importance {
        /// The value.
        value: f32,
    },
}

/// Why drafts were not stored. The machine still has them; in the store is none of them (but see
/// [`Store::append`] for a sync that failed).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FinishError {
    /// There is something left to ask.
    #[error("{needed} must come first; ask `needs` until it is nothing")]
    Unanswered {
        /// What is needed.
        needed: Step,
    },
    /// It is another store than the machine was made for, with another model.
    #[error(transparent)]
    Model(#[from] OtherModel),
    /// The store refused the memories.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The store refused the embeddings of memories that it has.
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

/// What embeddings must be like.
#[derive(Clone, Debug)]
struct Target {
    dim: NonZeroUsize,
    dtype: Dtype,
    model: Option<String>,
}

impl Target {
    fn new(store: &Store, model: Option<&str>) -> Result<Target, OtherModel> {
        let snapshot = store.snapshot();
        OtherModel::check(snapshot.model(), model)?;
        Ok(Target {
            dim: snapshot.dim(),
            dtype: snapshot.dtype(),
            model: snapshot.model().or(model).map(str::to_owned),
        })
    }

    /// Whether a store may be given such embeddings.
    fn fits(&self, store: &Store) -> Result<(), OtherModel> {
        OtherModel::check(store.snapshot().model(), self.model.as_deref())
    }

    fn check(&self, embedding: &[f32]) -> Result<(), MemoryProblem> {
        check_embedding(self.dim, self.dtype, embedding)
    }

    /// Checks an answer to so many texts.
    fn check_all(&self, expected: usize, embeddings: &[Vec<f32>]) -> Result<(), AnswerError> {
        let found = embeddings.len();
        if found != expected {
            return Err(AnswerError::Count { expected, found });
        }
        for (index, embedding) in embeddings.iter().enumerate() {
            let refused = |problem| AnswerError::Embedding { index, problem };
            self.check(embedding).map_err(refused)?;
        }
        Ok(())
    }
}

/// Drafts on their way into a store.
///
/// ```
/// use memorank::kernel::Dtype;
/// use memorank::store::{CreateOptions, Store};
/// use memorank::stream::{Draft, Need, Remember};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("klaus");
/// let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F32, model: None };
/// let store = Store::create(path, &options)?;
/// let draft = Draft::new("Klaus is reading", 1_676_300_400_000_000);
/// let mut remember = Remember::new(&store, None, vec![draft])?;
/// loop {
///     match remember.needs() {
///         Need::Embed { texts, .. } => {
///             let embeddings = texts.iter().map(|_| vec![0.6, 0.8]).collect(); // ask a model
///             remember.embedded(embeddings)?;
///         }
///         Need::Rate { text, range } => {
///             let reply = format!("{}\n", text.len().min(usize::from(*range.end()))); // ask another
///             if let Err(error) = remember.rated(&reply) {
///                 eprintln!("{error}"); // the next round asks again
///             }
///         }
///         Need::Nothing => break,
///     }
/// }
/// assert_eq!(remember.append(&store)?, 0..1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Remember {
    target: Target,
    range: RangeInclusive<u8>,
    drafts: Vec<Draft>,
}

impl Remember {
    /// Drafts for a store, to be rated from 1 to 10. `model` names what embeds them; `None` claims nothing.
    ///
    /// # Errors
    /// If the store names another model, or would refuse an embedding or importance that was given.
    pub fn new(
        store: &Store,
        model: Option<&str>,
        drafts: Vec<Draft>,
    ) -> Result<Remember, BeginError> {
        let target = Target::new(store, model)?;
        for (index, draft) in drafts.iter().enumerate() {
            let refused = |problem| BeginError::Draft { index, problem };
            if let Embedding::Given(embedding) = &draft.embedding {
                target.check(embedding).map_err(refused)?;
            }
            match draft.importance {
                Importance::Given(value) if !value.is_finite() => {
                    return Err(refused(MemoryProblem::Importance { value }));
                }
                Importance::Given(_) | Importance::Ask => {}
            }
        }
        Ok(Remember {
            target,
            range: rating::PAPER,
            drafts,
        })
    }

    /// Asks for ratings of another range.
    #[must_use]
    pub fn with_range(mut self, range: RangeInclusive<u8>) -> Remember {
        self.range = range;
        self
    }

    /// What is to be asked next.
    pub fn needs(&self) -> Need<'_> {
        let unembedded = self.drafts.iter().filter(|draft| asks_embedding(draft));
        let texts: Vec<&str> = unembedded.map(|draft| draft.text.as_str()).collect();
        if !texts.is_empty() {
            let model = self.target.model.as_deref();
            return Need::Embed { texts, model };
        }
        match self.drafts.iter().find(|draft| asks_rating(draft)) {
            Some(draft) => Need::Rate {
                text: &draft.text,
                range: self.range.clone(),
            },
            None => Need::Nothing,
        }
    }

    /// The embeddings of the texts that were to be embedded, in their order. Each is checked as the store
    /// checks it; all are taken or none.
    ///
    /// # Errors
    /// If embeddings are not what is needed, are more or fewer than the texts, or cannot be stored.
    pub fn embedded(&mut self, embeddings: Vec<Vec<f32>>) -> Result<(), AnswerError> {
        self.asked(Step::Embed)?;
        let asking = self.drafts.iter().filter(|draft| asks_embedding(draft));
        self.target.check_all(asking.count(), &embeddings)?;
        let asking = self.drafts.iter_mut().filter(|draft| asks_embedding(draft));
        for (draft, embedding) in asking.zip(embeddings) {
            draft.embedding = Embedding::Given(embedding);
        }
        Ok(())
    }

    /// There are no embeddings to be had now: these drafts are stored without, and are no candidates until
    /// they get them (see [`FillIn`]).
    ///
    /// # Errors
    /// If embeddings are not what is needed.
    pub fn not_embedded(&mut self) -> Result<(), AnswerError> {
        self.asked(Step::Embed)?;
        let asking = self.drafts.iter_mut().filter(|draft| asks_embedding(draft));
        asking.for_each(|draft| draft.embedding = Embedding::None);
        Ok(())
    }

    /// What was replied when asked to rate, as [`rating::parse`] reads it.
    ///
    /// # Errors
    /// If a rating is not what is needed, or the reply is none.
    pub fn rated(&mut self, reply: &str) -> Result<(), AnswerError> {
        self.asked(Step::Rate)?;
        let rating = rating::parse(reply, self.range.clone())?;
        self.rated_as(rating.into())
    }

    /// The importance of the text that was to be rated, from elsewhere: where a model does not answer, say. Any
    /// finite number.
    ///
    /// # Errors
    /// If a rating is not what is needed, or the number is not finite.
    pub fn rated_as(&mut self, importance: f32) -> Result<(), AnswerError> {
        self.asked(Step::Rate)?;
        if !importance.is_finite() {
            return Err(AnswerError::Importance { value: importance });
        }
        if let Some(draft) = self.drafts.iter_mut().find(|draft| asks_rating(draft)) {
            draft.importance = Importance::Given(importance);
        }
        Ok(())
    }

    /// Stores the drafts, all or none, and gives their ids in the drafts' order. The machine is empty then.
    ///
    /// # Errors
    /// If something is left to ask, or the store refuses. The machine keeps its drafts.
    pub fn append(&mut self, store: &Store) -> Result<Range<u64>, FinishError> {
        let needed = self.needs().step();
        let memories = self.memories();
        let memories = memories.ok_or(FinishError::Unanswered { needed })?;
        self.target.fits(store)?;
        let ids = store.append(&memories)?;
        self.drafts.clear();
        Ok(ids)
    }

    /// The drafts, with the answers that came.
    pub fn drafts(&self) -> &[Draft] {
        &self.drafts
    }

    /// Gives the drafts back, with the answers that came.
    pub fn into_drafts(self) -> Vec<Draft> {
        self.drafts
    }

    /// One more draft.
    pub(super) fn push(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    /// As they are stored; `None` while anything is to be asked.
    pub(super) fn memories(&self) -> Option<Vec<NewMemory<'_>>> {
        self.drafts.iter().map(Draft::memory).collect()
    }

    /// The model to embed with.
    pub(super) fn model(&self) -> Option<&str> {
        self.target.model.as_deref()
    }

    /// Whether a store may be given such embeddings.
    pub(super) fn fits(&self, store: &Store) -> Result<(), OtherModel> {
        self.target.fits(store)
    }

    /// Checks embeddings of so many texts.
    pub(super) fn check_all(
        &self,
        expected: usize,
        embeddings: &[Vec<f32>],
    ) -> Result<(), AnswerError> {
        self.target.check_all(expected, embeddings)
    }

    fn asked(&self, given: Step) -> Result<(), AnswerError> {
        asked(given, self.needs().step())
    }
}

fn asks_embedding(draft: &Draft) -> bool {
    matches!(draft.embedding, Embedding::Ask)
}

fn asks_rating(draft: &Draft) -> bool {
    matches!(draft.importance, Importance::Ask)
}

fn asked(given: Step, needed: Step) -> Result<(), AnswerError> {
    match given == needed {
        true => Ok(()),
        false => Err(AnswerError::NotAsked { given, needed }),
    }
}

/// Memories that were stored without an embedding, on their way to one.
#[derive(Clone, Debug)]
pub struct FillIn {
    target: Target,
    ids: Vec<u64>,
    texts: Vec<String>,
    /// One for each, once they came.
    embeddings: Vec<Vec<f32>>,
}

impl FillIn {
    /// The first `limit` memories from id `from` on that have no embedding. `model` names what embeds them;
    /// `None` claims nothing.
    ///
    /// # Errors
    /// If the store names another model, or a memory cannot be read.
    pub fn new(
        store: &Store,
        model: Option<&str>,
        from: u64,
        limit: usize,
    ) -> Result<FillIn, BeginError> {
        let mut fill_in = FillIn {
            target: Target::new(store, model)?,
            ids: Vec::new(),
            texts: Vec::new(),
            embeddings: Vec::new(),
        };
        let snapshot = store.snapshot();
        let without = (0..snapshot.rows()).filter(|&row| {
            snapshot.is_live(row) && !snapshot.has_embedding(row) && snapshot.id(row) >= from
        });
        for row in without.take(limit) {
            let memory = snapshot.memory(row)?;
            fill_in.ids.push(memory.id);
            fill_in.texts.push(memory.text.to_owned());
        }
        Ok(fill_in)
    }

    /// The memories' ids, ascending.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// What is to be asked: embeddings of the texts of all, or nothing.
    pub fn needs(&self) -> Need<'_> {
        match self.embeddings.len() < self.ids.len() {
            true => Need::Embed {
                texts: self.texts.iter().map(String::as_str).collect(),
                model: self.target.model.as_deref(),
            },
            false => Need::Nothing,
        }
    }

    /// The embeddings of the texts, in their order, all taken or none.
    ///
    /// # Errors
    /// As [`Remember::embedded`].
    pub fn embedded(&mut self, embeddings: Vec<Vec<f32>>) -> Result<(), AnswerError> {
        asked(Step::Embed, self.needs().step())?;
        self.target.check_all(self.ids.len(), &embeddings)?;
        self.embeddings = embeddings;
        Ok(())
    }

    /// Gives the store the embeddings, all or none, and gives how many of the memories are still there.
    ///
    /// # Errors
    /// If the embeddings did not come yet, or the store refuses: if one of the memories got an embedding meanwhile,
    /// say. The machine keeps them.
    pub fn fill(&self, store: &Store) -> Result<usize, FinishError> {
        match self.needs().step() {
            Step::Nothing => {}
            needed @ (Step::Embed | Step::Rate) => return Err(FinishError::Unanswered { needed }),
        }
        self.target.fits(store)?;
        Ok(store.embed(&self.embeddings())?)
    }

    /// The memories' ids with the embeddings that came: none before they did.
    pub fn embeddings(&self) -> Vec<(u64, &[f32])> {
        let embeddings = self.embeddings.iter().map(Vec::as_slice);
        self.ids.iter().copied().zip(embeddings).collect()
    }
}
