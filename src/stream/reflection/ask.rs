//! Reflecting in one call, for callers that may block.

use super::error::{ReflectAnswerError, ReflectBeginError, ReflectFinishError};
use super::need::Need;
use super::run::{Reflect, Reflected};
use super::settings::Settings;
use super::support::CheckSupport;
use crate::store::Store;
use crate::stream::{BoxError, Embed, OtherModel, rating};
use thiserror::Error;

/// A language model that replies.
pub trait Complete {
    /// The reply to a prompt, as it came.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn complete(&mut self, prompt: &str) -> Result<String, BoxError>;
}

/// What a reflection asks.
pub struct Models<'m> {
    /// Replies, and rates insights by [`rating::prompt`].
    pub chat: &'m mut dyn Complete,
    /// Embeds questions and insights.
    pub embedder: &'m mut dyn Embed,
    /// Checks insights, if the settings say that the [caller](super::Checking::Caller) does.
    pub check: Option<&'m mut dyn CheckSupport>,
}

/// Why a reflection came to nothing. Nothing is in the store (but see [`Store::append`] for a sync that failed).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReflectError {
    /// It could not be begun.
    #[error(transparent)]
    Begin(#[from] ReflectBeginError),
    /// The embedder is another than the run was begun for.
    #[error(transparent)]
    Model(#[from] OtherModel),
    /// The language model failed.
    #[error("asking: {0}")]
    Chat(#[source] BoxError),
    /// The embedder failed.
    #[error("embedding: {0}")]
    Embedder(#[source] BoxError),
    /// The check failed.
    #[error("checking: {0}")]
    Check(#[source] BoxError),
    /// The settings say that somebody checks, and nobody was named.
    #[error("the settings ask for a check; name who checks, or let nobody")]
    NobodyChecks,
    /// What they answered cannot be used.
    #[error(transparent)]
    Answer(#[from] ReflectAnswerError),
    /// The insights were not stored.
    #[error(transparent)]
    Finish(#[from] ReflectFinishError),
}

/// Reflects on what a store holds at a moment, in microseconds since the Unix epoch, and stores the insights, all or
/// none.
///
/// Replies go with an error of a model that fails. To keep them, make a [`Reflect`] and let it
/// [`ask`](Reflect::ask).
///
/// # Errors
/// As [`Reflect::new`], [`Reflect::ask`] and [`Reflect::append`].
pub fn reflect(
    store: &Store,
    settings: Settings,
    models: &mut Models<'_>,
    now: i64,
) -> Result<Reflected, ReflectError> {
    let mut run = Reflect::new(store, settings, Some(models.embedder.model()), now)?;
    run.ask(models)?;
    Ok(run.append(store)?)
}

impl Reflect {
    /// Asks until nothing is needed. After an error of a model it goes on where it was.
    ///
    /// # Errors
    /// If the embedder's model is not the run's, an answer does not come, or no reply could be used as often as the
    /// settings allow.
    pub fn ask(&mut self, models: &mut Models<'_>) -> Result<(), ReflectError> {
        loop {
            match self.needs() {
                Need::Reply(prompt) => {
                    let reply = models.chat.complete(&prompt.to_string());
                    self.replied(&reply.map_err(ReflectError::Chat)?)?;
                }
                Need::Embed { texts, model } => {
                    OtherModel::check(model, Some(models.embedder.model()))?;
                    let embeddings = models.embedder.embed(&texts);
                    self.embedded(embeddings.map_err(ReflectError::Embedder)?)?;
                }
                Need::Check { claim, evidence } => {
                    let check = models.check.as_mut().ok_or(ReflectError::NobodyChecks)?;
                    let support = check.check(claim, &evidence);
                    self.checked(support.map_err(ReflectError::Check)?)?;
                }
                Need::Rate { text, range } => {
                    let reply = models.chat.complete(&rating::prompt(text, range));
                    self.rated(&reply.map_err(ReflectError::Chat)?)?;
                }
                Need::Nothing => return Ok(()),
            }
        }
    }
}
