//! Reflecting in steps, without IO.

mod gates;
mod shown;
mod store;

use super::Support;
use super::attempt::{Attempt, Purpose, Verdict};
use super::error::{Exhausted, ReflectAnswerError, ReflectBeginError};
use super::need::{Need, Step};
use super::parse::Insight;
use super::prompt::{Prompt, Statement};
use super::settings::Settings;
use crate::store::{Snapshot, Store};
use crate::stream::steps::{self, Remember};
use crate::stream::{Draft, Embedding, Importance, Retrieved, rating};
use std::mem;
use std::ops::Range;

/// A reflection on its way into a store: a machine that says what it needs, and is brought the answers.
///
/// 1. A language model is asked for questions about the newest memories.
/// 2. The questions are embedded, and memories retrieved for one after another, each seeing the touches of those
///    before.
/// 3. For each question the model is asked for insights from the memories retrieved, with the numbers of those that they
///    rest on. Each goes through the gates: [`parse`](super::parse), [`resolve`](super::resolve()), and, with its
///    embedding, [support](super::Checking).
/// 4. The insights that pass are rated, and [`append`](Reflect::append) stores all of them or none.
///
/// What it sees is the store as it was when the run was begun. It writes nothing before the last step, then the insights
/// first and the touches of the retrievals after them. A reply that cannot be used is asked for again, as often as
/// [`Settings::attempts`] says; then the run is over, with an error that has every reply ([`Exhausted`]), and nothing was
/// written: a [`Trigger`](super::Trigger) is as due as it was.
///
/// It owns its data and holds no store: it can cross threads and `await` points. A clone goes its own way.
///
/// ```
/// # use memorank::kernel::Dtype;
/// # use memorank::stream::{BoxError, Draft, HashingEmbedder, Importance, Remember};
/// use memorank::scoring::Preset;
/// use memorank::store::{CreateOptions, Store};
/// use memorank::stream::reflection::{Need, Origin, Reflect, Settings, Support};
///
/// # let dir = tempfile::tempdir()?;
/// # let (dim, dtype, model) = (64.try_into()?, Dtype::F32, None);
/// # let store = Store::create(dir.path().join("klaus"), &CreateOptions { dim, dtype, model })?;
/// # let embedder = HashingEmbedder::new(dim);
/// # let drafts = ["Klaus reads about cities", "Klaus takes notes"].map(|text| Draft {
/// #     importance: Importance::Given(5.0), ..Draft::new(text, 0)
/// # });
/// # let mut remember = Remember::new(&store, None, drafts.into())?;
/// # remember.embedded(vec![embedder.embedding("Klaus reads about cities")?, embedder.embedding("Klaus takes notes")?])?;
/// # remember.append(&store)?;
/// # fn chat(prompt: &str) -> String {
/// #     match prompt.contains("conclusions") {
/// #         true => "1. Klaus is a diligent student (because of 1, 2)".into(),
/// #         false => "1. What does Klaus do?".into(),
/// #     }
/// # }
/// let mut run = Reflect::new(&store, Settings::new(Preset::paper()), None, 3_600_000_000)?;
/// loop {
///     match run.needs() {
///         Need::Reply(prompt) => run.replied(&chat(&prompt.to_string()))?,
///         Need::Embed { texts, .. } => {
///             let embeddings = texts.iter().map(|text| embedder.embedding(text));
///             run.embedded(embeddings.collect::<Result<_, _>>()?)?;
///         }
///         Need::Check { .. } => run.checked(Support::Unchecked)?, // nobody is asked for one here
///         Need::Rate { .. } => run.rated("7")?,
///         Need::Nothing => break,
///     }
/// }
/// let reflected = run.append(&store)?;
///
/// let snapshot = store.snapshot();
/// let stored = snapshot.memory(snapshot.row_of_id(reflected.ids.start).unwrap())?;
/// assert_eq!((stored.text, stored.depth), ("Klaus is a diligent student", 1));
/// assert_eq!(Origin::of(stored.payload).unwrap().support, Support::Unchecked);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reflect {
    settings: Settings,
    now: i64,
    snapshot: Snapshot,
    stage: Stage,
    /// Attempts that are left to ask the same.
    left: usize,
    attempts: Vec<Attempt>,
    newest: Vec<(u64, String)>,
    questions: Vec<Question>,
    /// The question whose insights are asked for.
    at: usize,
    /// What passed the second gate.
    pending: Vec<Pending>,
    /// What passed all gates, to be rated and stored.
    remember: Remember,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Questions,
    EmbedQuestions,
    Insights,
    EmbedInsights,
    /// Of so many pending insights it is known.
    Check(usize),
    Rate,
    /// The attempts are used up.
    Over,
    Stored,
}

#[derive(Debug)]
struct Question {
    text: String,
    embedding: Vec<f32>,
    /// Once it is embedded.
    retrieved: Option<Retrieved>,
    /// The memories retrieved.
    shown: Vec<(u64, String)>,
}

impl Clone for Question {
    fn clone(&self) -> Question {
        Question {
            text: self.text.clone(),
            embedding: self.embedding.clone(),
            retrieved: self.retrieved.as_ref().map(Retrieved::before_touch),
            shown: self.shown.clone(),
        }
    }
}

/// An insight between the gates.
#[derive(Clone, Debug)]
struct Pending {
    /// Its place in the reply.
    place: usize,
    insight: Insight,
    /// Its evidence.
    evidence: Vec<(u64, String)>,
    embedding: Embedding,
    support: Support,
}

impl Pending {
    /// The ids of its evidence.
    fn ids(&self) -> impl Iterator<Item = u64> {
        self.evidence.iter().map(|&(id, _)| id)
    }
}

/// What was stored.
#[derive(Debug)]
pub struct Reflected {
    /// The ids of the insights, in the order of the questions and the replies.
    pub ids: Range<u64>,
    /// The questions.
    pub questions: Vec<String>,
    /// What was retrieved for each of them. [`Retrieved::touch`] says whether that was recorded.
    pub retrieved: Vec<Retrieved>,
    /// Every reply.
    pub attempts: Vec<Attempt>,
}

impl Reflect {
    /// Begins to reflect on what a store holds, at a moment in microseconds since the Unix epoch: on memories that were
    /// created by then, have not expired, and no other corrects. `model` names what embeds; `None` claims nothing.
    ///
    /// # Errors
    /// If there is no such memory, the store names another model, a memory cannot be read, or nothing could be stored by
    /// the settings.
    pub fn new(
        store: &Store,
        settings: Settings,
        model: Option<&str>,
        now: i64,
    ) -> Result<Reflect, ReflectBeginError> {
        settings.check(now)?;
        settings.preset.scoring.check()?;
        let remember =
            Remember::new(store, model, Vec::new())?.with_range(settings.ratings.clone());
        let snapshot = store.snapshot();
        let newest = shown::newest(&snapshot, &settings, now)?;
        if newest.is_empty() {
            return Err(ReflectBeginError::NothingToReflectOn);
        }
        let is_embedded = |row| snapshot.is_live(row) && snapshot.has_embedding(row);
        if !(0..snapshot.rows()).any(is_embedded) {
            return Err(ReflectBeginError::NothingEmbedded);
        }
        Ok(Reflect {
            left: settings.attempts,
            settings,
            now,
            snapshot,
            stage: Stage::Questions,
            attempts: Vec::new(),
            newest,
            questions: Vec::new(),
            at: 0,
            pending: Vec::new(),
            remember,
        })
    }

    /// What is to be asked next.
    pub fn needs(&self) -> Need<'_> {
        match self.stage {
            Stage::Questions => Need::Reply(self.prompt(
                Purpose::Questions,
                None,
                &self.newest,
                self.settings.questions,
            )),
            Stage::EmbedQuestions => self.embed(self.questions.iter().map(|q| &q.text)),
            Stage::Insights => {
                let (question, asked) = (self.at, &self.questions[self.at]);
                let purpose = Purpose::Insights { question };
                let count = self.settings.insights;
                Need::Reply(self.prompt(purpose, Some(&asked.text), &asked.shown, count))
            }
            Stage::EmbedInsights => self.embed(self.pending.iter().map(|p| &p.insight.text)),
            Stage::Check(next) => {
                let Pending {
                    insight, evidence, ..
                } = &self.pending[next];
                Need::Check {
                    claim: &insight.text,
                    evidence: evidence.iter().map(|(_, text)| text.as_str()).collect(),
                }
            }
            Stage::Rate => match self.remember.needs() {
                steps::Need::Rate { text, range } => Need::Rate { text, range },
                steps::Need::Embed { .. } | steps::Need::Nothing => Need::Nothing,
            },
            Stage::Over | Stage::Stored => Need::Nothing,
        }
    }

    /// What a language model replied.
    ///
    /// # Errors
    /// If a reply is not what is needed, or it cannot be used and no attempt is left. Is one left, a reply that cannot be
    /// used is no error: the same is needed again, and the prompt says what was wrong.
    pub fn replied(&mut self, reply: &str) -> Result<(), ReflectAnswerError> {
        match self.stage {
            Stage::Questions => self.questions_replied(reply),
            Stage::Insights => self.insights_replied(reply),
            _ => Err(self.not_asked(Step::Reply)),
        }
    }

    /// The embeddings of the texts that were to be embedded, in their order, all taken or none. Those of questions are
    /// asked with at once.
    ///
    /// # Errors
    /// If embeddings are not what is needed, are more or fewer than the texts, or cannot be stored; if memories cannot be
    /// ranked, or none has an embedding; or if insights are refused for their support and no attempt is left.
    pub fn embedded(&mut self, embeddings: Vec<Vec<f32>>) -> Result<(), ReflectAnswerError> {
        match self.stage {
            Stage::EmbedQuestions => {
                self.check_all(self.questions.len(), &embeddings)?;
                self.retrieve(embeddings)
            }
            Stage::EmbedInsights => {
                self.check_all(self.pending.len(), &embeddings)?;
                for (pending, embedding) in self.pending.iter_mut().zip(embeddings) {
                    pending.embedding = Embedding::Given(embedding);
                }
                self.support()
            }
            _ => Err(self.not_asked(Step::Embed)),
        }
    }

    /// There are no embeddings of insights to be had now: these are stored without, and are no candidates until they get
    /// them (see [`FillIn`](crate::stream::FillIn)). Their similarity is unchecked.
    ///
    /// # Errors
    /// If embeddings of insights are not what is needed: without those of questions there is no run. And if insights are
    /// refused for their support and no attempt is left.
    pub fn not_embedded(&mut self) -> Result<(), ReflectAnswerError> {
        match self.stage {
            Stage::EmbedInsights => self.support(),
            Stage::EmbedQuestions => Err(ReflectAnswerError::QuestionsNeedEmbeddings),
            _ => Err(self.not_asked(Step::Embed)),
        }
    }

    /// Whether memories carry the insight that was to be checked.
    ///
    /// # Errors
    /// If a check is not what is needed, or insights are refused and no attempt is left.
    pub fn checked(&mut self, support: Support) -> Result<(), ReflectAnswerError> {
        let Stage::Check(next) = self.stage else {
            return Err(self.not_asked(Step::Check));
        };
        self.pending[next].support = support;
        self.stage = Stage::Check(next + 1);
        match next + 1 == self.pending.len() {
            true => self.judge(),
            false => Ok(()),
        }
    }

    /// What was replied when asked to rate, as [`rating::parse`](crate::stream::rating::parse) reads it.
    ///
    /// # Errors
    /// If a rating is not what is needed, or the reply is none and no attempt is left.
    pub fn rated(&mut self, reply: &str) -> Result<(), ReflectAnswerError> {
        self.asked(Step::Rate)?;
        let is_rated = |draft: &&Draft| matches!(draft.importance, Importance::Given(_));
        let insight = self.drafts().iter().filter(is_rated).count();
        let purpose = Purpose::Rating { insight };
        match rating::parse(reply, self.settings.ratings.clone()) {
            Ok(rating) => {
                self.remember.rated_as(rating.into())?;
                self.note(purpose, reply, Verdict::Rating(rating), true)
            }
            Err(error) => self.note(purpose, reply, Verdict::NoRating(error.problem), false),
        }
    }

    /// The importance of the insight that was to be rated, from elsewhere. Any finite number.
    ///
    /// # Errors
    /// If a rating is not what is needed, or the number is not finite.
    pub fn rated_as(&mut self, importance: f32) -> Result<(), ReflectAnswerError> {
        self.asked(Step::Rate)?;
        self.remember.rated_as(importance)?;
        self.left = self.settings.attempts;
        Ok(())
    }

    /// Every reply so far, and what became of it.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The insights that passed all gates so far.
    pub fn drafts(&self) -> &[Draft] {
        self.remember.drafts()
    }

    fn prompt<'a>(
        &'a self,
        purpose: Purpose,
        question: Option<&'a str>,
        shown: &'a [(u64, String)],
        count: usize,
    ) -> Prompt<'a> {
        let last = self.attempts.last();
        Prompt {
            purpose,
            question,
            statements: (shown.iter())
                .map(|(id, text)| Statement { id: *id, text })
                .collect(),
            count,
            refused: last.filter(|attempt| attempt.purpose == purpose && !attempt.is_taken),
        }
    }

    fn embed<'a>(&'a self, texts: impl Iterator<Item = &'a String>) -> Need<'a> {
        Need::Embed {
            texts: texts.map(String::as_str).collect(),
            model: self.remember.model(),
        }
    }

    fn check_all(
        &self,
        expected: usize,
        embeddings: &[Vec<f32>],
    ) -> Result<(), ReflectAnswerError> {
        Ok(self.remember.check_all(expected, embeddings)?)
    }

    fn asked(&self, given: Step) -> Result<(), ReflectAnswerError> {
        match self.needs().step() == given {
            true => Ok(()),
            false => Err(self.not_asked(given)),
        }
    }

    fn not_asked(&self, given: Step) -> ReflectAnswerError {
        let needed = self.needs().step();
        ReflectAnswerError::NotAsked { given, needed }
    }

    /// Takes note of a reply. The run is over if it was refused and no attempt is left.
    fn note(
        &mut self,
        purpose: Purpose,
        reply: &str,
        verdict: Verdict,
        is_taken: bool,
    ) -> Result<(), ReflectAnswerError> {
        self.attempts.push(Attempt {
            purpose,
            reply: reply.to_owned(),
            verdict,
            is_taken,
        });
        match is_taken {
            true => self.left = self.settings.attempts,
            false => self.refuse(purpose)?,
        }
        Ok(())
    }

    /// One attempt less.
    fn refuse(&mut self, purpose: Purpose) -> Result<(), ReflectAnswerError> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(());
        }
        self.stage = Stage::Over;
        let attempts = mem::take(&mut self.attempts);
        Err(ReflectAnswerError::Exhausted(Exhausted {
            purpose,
            attempts,
        }))
    }
}
