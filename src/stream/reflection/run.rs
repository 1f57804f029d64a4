//! Reflecting in steps, without IO.

use super::attempt::{Attempt, Purpose, Refusal, Refused, Verdict};
use super::error::{Exhausted, ReflectAnswerError, ReflectBeginError, ReflectFinishError};
use super::origin::Origin;
use super::parse::{Insight, parse, parse_questions};
use super::prompt::Prompt;
use super::settings::{Checking, Settings};
use super::{Base, Shown, Support, resolve};
use crate::scoring::Workspace;
use crate::store::{ReadError, Reference, Snapshot, Store};
use crate::stream::evidence::above;
use crate::stream::many::{answer_all, touch_in_turn};
use crate::stream::steps::{self, Remember};
use crate::stream::{
    Ask, Draft, Embedding, Filter, Importance, Order, Retrieve, Retrieved, rating,
};
use std::fmt;
use std::mem;
use std::ops::{Range, RangeInclusive};

/// What a run needs next. (Another need would break callers' code, and should: nobody can pass it over.)
#[derive(Clone, Debug, PartialEq)]
pub enum Need<'a> {
    /// What a language model replies: answer with [`Reflect::replied`].
    Reply(Prompt<'a>),
    /// The embeddings of these texts, in this order, of questions first and later of insights: answer with
    /// [`Reflect::embedded`], or, for insights, with [`Reflect::not_embedded`].
    Embed {
        /// At least one.
        texts: Vec<&'a str>,
        /// The model to embed with, if it was named: by the store, or when the run was begun.
        model: Option<&'a str>,
    },
    /// Whether memories carry an insight: answer with [`Reflect::checked`].
    Check {
        /// The insight.
        claim: &'a str,
        /// The texts of the memories, in the order cited.
        evidence: Vec<&'a str>,
    },
    /// How much an insight matters: answer with [`Reflect::rated`] or [`Reflect::rated_as`].
    Rate {
        /// The insight.
        text: &'a str,
        /// The ratings to choose from.
        range: RangeInclusive<u8>,
    },
    /// Nothing: it can be stored, or is over.
    Nothing,
}

/// A [`Need`] without its texts, for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A reply.
    Reply,
    /// Embeddings.
    Embed,
    /// A check.
    Check,
    /// A rating.
    Rate,
    /// Nothing.
    Nothing,
}

impl Need<'_> {
    /// Which step it is.
    pub fn step(&self) -> Step {
        match self {
            Need::Reply(_) => Step::Reply,
            Need::Embed { .. } => Step::Embed,
            Need::Check { .. } => Step::Check,
            Need::Rate { .. } => Step::Rate,
            Need::Nothing => Step::Nothing,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Reply => "a reply",
            Step::Embed => "embeddings",
            Step::Check => "a check",
            Step::Rate => "a rating",
            Step::Nothing => "nothing",
        })
    }
}

/// A reflection on its way into a store: a machine that says what it needs, and is brought the answers.
///
/// 1. A language model is asked for questions about the newest memories.
/// 2. The questions are embedded, and memories retrieved for one after another, each seeing the touches of those
///    before.
/// 3. For each question the model is asked for insights from the memories retrieved, with the numbers of those that they
///    rest on. Each goes through the gates: [`parse`](super::parse), [`resolve`](super::resolve()), and, with its
///    embedding, [support](Checking).
/// 4. The insights that pass are rated, and [`append`](Reflect::append) stores all of them or none.
///
/// What it sees is the store as it was when the run was begun. It writes nothing before the last step, then the insights
/// first and the touches of the retrievals after them. A reply that cannot be used is asked for again, as often as
/// [`Settings::attempts`] says; then the run is over, with an error that has every reply ([`Exhausted`]), and nothing was
/// written: a [`Trigger`](super::Trigger) is as due as it was.
///
/// It owns its data and holds no store: it can cross threads and `await` points.
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
#[derive(Debug)]
pub struct Reflect {
    settings: Settings,
    now: i64,
    snapshot: Snapshot,
    stage: Stage,
    /// Attempts that are left to ask the same.
    left: usize,
    attempts: Vec<Attempt>,
    newest: Vec<String>,
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
    /// The texts of the memories retrieved.
    shown: Vec<String>,
}

/// An insight between the gates.
#[derive(Debug)]
struct Pending {
    /// Its place in the reply.
    place: usize,
    insight: Insight,
    evidence: Vec<u64>,
    /// The texts of its evidence.
    texts: Vec<String>,
    embedding: Embedding,
    support: Support,
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
    /// If there is no such memory, the store names another model, a memory cannot be read, or a setting is 0 that must not
    /// be.
    pub fn new(
        store: &Store,
        settings: Settings,
        model: Option<&str>,
        now: i64,
    ) -> Result<Reflect, ReflectBeginError> {
        settings.check()?;
        let remember =
            Remember::new(store, model, Vec::new())?.with_range(settings.ratings.clone());
        let snapshot = store.snapshot();
        let newest = newest(&snapshot, &settings, now)?;
        if newest.is_empty() {
            return Err(ReflectBeginError::NothingToReflectOn);
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
                let Pending { insight, texts, .. } = &self.pending[next];
                Need::Check {
                    claim: &insight.text,
                    evidence: texts.iter().map(String::as_str).collect(),
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
            Stage::EmbedQuestions
            | Stage::EmbedInsights
            | Stage::Check(_)
            | Stage::Rate
            | Stage::Over
            | Stage::Stored => Err(self.not_asked(Step::Reply)),
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
            Stage::Questions
            | Stage::Insights
            | Stage::Check(_)
            | Stage::Rate
            | Stage::Over
            | Stage::Stored => Err(self.not_asked(Step::Embed)),
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
            Stage::Questions
            | Stage::Insights
            | Stage::Check(_)
            | Stage::Rate
            | Stage::Over
            | Stage::Stored => Err(self.not_asked(Step::Embed)),
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

    /// Stores the insights, all or none, and then touches what was retrieved for the questions. Nothing is needed
    /// afterwards.
    ///
    /// # Errors
    /// If something is left to ask, the run is over or its insights are stored, a memory that is cited was deleted or
    /// corrected since it was shown, it is a store with another model, or the store refuses. Nothing was written then
    /// (but see [`Store::append`] for a sync that failed), and the run is as it was.
    pub fn append(&mut self, store: &Store) -> Result<Reflected, ReflectFinishError> {
        match (self.stage, self.needs().step()) {
            (Stage::Over, _) => return Err(ReflectFinishError::Over),
            (Stage::Stored, _) => return Err(ReflectFinishError::Stored),
            (_, Step::Nothing) => {}
            (_, needed) => return Err(ReflectFinishError::Unanswered { needed }),
        }
        let exclusive = store.exclusive()?;
        self.remember.fits(store)?;
        self.still_holds(&exclusive.snapshot())?;
        let memories = self.remember.memories().expect("nothing is needed");
        let ids = exclusive.append(&memories)?;
        let texts = self.questions.iter().map(|question| question.text.clone());
        let texts: Vec<String> = texts.collect();
        let filter = filter(&self.settings);
        let mut retrieved = Vec::new();
        let mut asked = Vec::new();
        for question in mem::take(&mut self.questions) {
            retrieved.extend(question.retrieved);
            asked.push((question.text, question.embedding));
        }
        let asks: Vec<Retrieve<'_>> = (asked.iter())
            .map(|(text, embedding)| retrieval(&self.settings, self.now, text, embedding, &filter))
            .collect();
        touch_in_turn(store, &asks, &mut retrieved);
        self.stage = Stage::Stored;
        Ok(Reflected {
            ids,
            questions: texts,
            retrieved,
            attempts: mem::take(&mut self.attempts),
        })
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
        shown: &'a [String],
        count: usize,
    ) -> Prompt<'a> {
        let last = self.attempts.last();
        Prompt {
            purpose,
            question,
            statements: shown.iter().map(String::as_str).collect(),
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

    fn questions_replied(&mut self, reply: &str) -> Result<(), ReflectAnswerError> {
        let found = parse_questions(reply, self.settings.questions);
        let questions = found.taken.iter().map(|text| Question {
            text: text.clone(),
            embedding: Vec::new(),
            retrieved: None,
            shown: Vec::new(),
        });
        let questions: Vec<Question> = questions.collect();
        let is_taken = !questions.is_empty();
        self.note(
            Purpose::Questions,
            reply,
            Verdict::Questions(found),
            is_taken,
        )?;
        if is_taken {
            self.questions = questions;
            self.stage = Stage::EmbedQuestions;
        }
        Ok(())
    }

    /// Asks with the embeddings of the questions.
    fn retrieve(&mut self, embeddings: Vec<Vec<f32>>) -> Result<(), ReflectAnswerError> {
        let filter = filter(&self.settings);
        let asks: Vec<Retrieve<'_>> = (self.questions.iter().zip(&embeddings))
            .map(|(question, embedding)| {
                retrieval(&self.settings, self.now, &question.text, embedding, &filter)
            })
            .collect();
        let all = answer_all(
            self.snapshot.clone(),
            &asks,
            Order::Sequential,
            self.settings.par,
            &mut Workspace::new(),
        )?;
        let texts_of = |retrieved: &Retrieved| {
            let rows = retrieved.memories.iter().map(|memory| memory.row);
            texts(&self.snapshot, rows)
        };
        let shown: Vec<Vec<String>> = all.iter().map(texts_of).collect::<Result<_, _>>()?;
        if let Some(question) = shown.iter().position(Vec::is_empty) {
            return Err(ReflectAnswerError::NothingToShow { question });
        }
        let answers = embeddings.into_iter().zip(all).zip(shown);
        for (question, ((embedding, retrieved), shown)) in self.questions.iter_mut().zip(answers) {
            question.embedding = embedding;
            question.retrieved = Some(retrieved);
            question.shown = shown;
        }
        self.stage = Stage::Insights;
        Ok(())
    }

    /// Gates 1 and 2.
    fn insights_replied(&mut self, reply: &str) -> Result<(), ReflectAnswerError> {
        let parsed = parse(reply, self.settings.insights);
        let retrieved = self.questions[self.at].retrieved.iter();
        let ids = retrieved.flat_map(|retrieved| &retrieved.memories);
        let ids: Vec<u64> = ids.map(|memory| memory.id).collect();
        let shown = Shown {
            ids: &ids,
            base: Base::One,
            now: self.now,
        };
        let (mut pending, mut refused) = (Vec::new(), Vec::new());
        for (place, insight) in parsed.insights.iter().enumerate() {
            match resolve(&self.snapshot, &shown, &insight.citations) {
                Ok(evidence) => {
                    let rows = evidence
                        .iter()
                        .filter_map(|&id| self.snapshot.row_of_id(id));
                    pending.push(Pending {
                        place,
                        insight: insight.clone(),
                        texts: texts(&self.snapshot, rows)?,
                        evidence,
                        embedding: Embedding::None,
                        support: Support::Unchecked,
                    });
                }
                Err(problems) => refused.push(Refused {
                    insight: place,
                    refusal: Refusal::Citations(problems),
                }),
            }
        }
        // Whether it is taken, the last gate says.
        self.attempts.push(Attempt {
            purpose: Purpose::Insights { question: self.at },
            reply: reply.to_owned(),
            verdict: Verdict::Insights { parsed, refused },
            is_taken: false,
        });
        self.pending = pending;
        match self.pending.len() < self.settings.least {
            true => self.judge(),
            false => {
                self.stage = Stage::EmbedInsights;
                Ok(())
            }
        }
    }

    /// Gate 3, for insights that have the embeddings they get.
    fn support(&mut self) -> Result<(), ReflectAnswerError> {
        match self.settings.checking {
            Checking::Nobody => self.judge(),
            Checking::Caller => {
                self.stage = Stage::Check(0);
                Ok(())
            }
            Checking::Similarity(similarity) => {
                for pending in &mut self.pending {
                    if let Embedding::Given(claim) = &pending.embedding {
                        let evidence = &pending.evidence;
                        pending.support = similarity.check(&self.snapshot, claim, evidence)?;
                    }
                }
                self.judge()
            }
        }
    }

    /// Takes the reply, or refuses it, when all is known of its insights.
    fn judge(&mut self) -> Result<(), ReflectAnswerError> {
        let (mut passed, mut refused) = (Vec::new(), Vec::new());
        for pending in mem::take(&mut self.pending) {
            let refusal = match pending.support {
                Support::Unsupported => Refusal::Unsupported,
                Support::Unchecked if self.settings.refuse_unchecked => Refusal::Unchecked,
                Support::Supported | Support::Unchecked => {
                    passed.push(pending);
                    continue;
                }
            };
            refused.push(Refused {
                insight: pending.place,
                refusal,
            });
        }
        let is_taken = passed.len() >= self.settings.least;
        let attempt = self.attempts.last_mut().expect("a reply is judged");
        attempt.is_taken = is_taken;
        if let Verdict::Insights { refused: all, .. } = &mut attempt.verdict {
            all.extend(refused);
        }
        if !is_taken {
            self.stage = Stage::Insights;
            return self.refuse(Purpose::Insights { question: self.at });
        }
        self.left = self.settings.attempts;
        for pending in passed {
            let draft = self.draft(pending);
            self.remember.push(draft);
        }
        self.at += 1;
        self.stage = match self.at == self.questions.len() {
            true => Stage::Rate,
            false => Stage::Insights,
        };
        Ok(())
    }

    fn draft(&self, pending: Pending) -> Draft {
        let evidence = pending.evidence.iter();
        let rows = evidence.filter_map(|&id| self.snapshot.row_of_id(id));
        let origin = Origin {
            question: self.questions[self.at].text.clone(),
            support: pending.support,
        };
        Draft {
            kind: self.settings.kind.clone(),
            expiry: self.settings.expiry,
            embedding: pending.embedding,
            depth: above(rows.map(|row| self.snapshot.depth(row))),
            evidence: pending
                .evidence
                .iter()
                .map(|&id| Reference::Id(id))
                .collect(),
            payload: origin.to_payload(),
            ..Draft::new(pending.insight.text, self.now)
        }
    }

    /// Whether all that is cited is still there, and right, in a later snapshot.
    fn still_holds(&self, snapshot: &Snapshot) -> Result<(), ReflectFinishError> {
        for (insight, draft) in self.drafts().iter().enumerate() {
            for reference in &draft.evidence {
                let &Reference::Id(id) = reference else {
                    continue;
                };
                let Some(row) = snapshot.row_of_id(id) else {
                    return Err(ReflectFinishError::Deleted { insight, id });
                };
                if let Some(by) = snapshot.superseded_at(row, self.now) {
                    return Err(ReflectFinishError::Superseded { insight, id, by });
                }
            }
        }
        Ok(())
    }
}

/// What may be shown.
fn filter(settings: &Settings) -> Filter<'_> {
    Filter {
        kinds: settings.kinds.as_deref(),
        unexpired: true,
        ..Filter::PAST
    }
}

/// How memories are retrieved for a question.
fn retrieval<'a>(
    settings: &'a Settings,
    now: i64,
    text: &'a str,
    embedding: &'a [f32],
    filter: &'a Filter<'a>,
) -> Retrieve<'a> {
    let ask = Ask {
        agent: settings.agent,
        filter,
        ..Ask::new(embedding, now, &settings.preset)
    };
    Retrieve {
        note: noted(text).as_bytes(),
        ..Retrieve::new(ask)
    }
}

/// Bytes of a question that the record of its touch keeps.
const NOTE_BYTES: usize = 1024;

fn noted(text: &str) -> &str {
    let ends = (0..=text.len().min(NOTE_BYTES)).rev();
    let end = { ends }.find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// The texts of the newest memories, the newest last.
fn newest(snapshot: &Snapshot, settings: &Settings, now: i64) -> Result<Vec<String>, ReadError> {
    let filter = filter(settings);
    let ask = Ask {
        agent: settings.agent,
        ..Ask::new(&[], now, &settings.preset)
    };
    let mut rows = Vec::new();
    for row in (0..snapshot.rows()).rev() {
        if rows.len() == settings.newest {
            break;
        }
        if snapshot.is_live(row) && filter.why_not(snapshot, &ask, row)?.is_none() {
            rows.push(row);
        }
    }
    texts(snapshot, rows.into_iter().rev())
}

fn texts(snapshot: &Snapshot, rows: impl Iterator<Item = usize>) -> Result<Vec<String>, ReadError> {
    rows.map(|row| Ok(snapshot.text(row)?.to_owned())).collect()
}
