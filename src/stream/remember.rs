//! Remembering in one call, for callers that may block: a [`Remember`], and the models that it asks.

use super::draft::Draft;
use super::model::OtherModel;
use super::steps::{AnswerError, BeginError, FinishError, Need, Remember};
use crate::store::Store;
use std::error::Error;
use std::ops::{Range, RangeInclusive};

/// What an embedder or rater fails with.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A model that embeds texts.
pub trait Embed {
    /// Its name: the one that a store keeps ([`CreateOptions::model`](crate::store::CreateOptions::model)).
    fn model(&self) -> &str;

    /// The embedding of each text, in their order.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn embed(&mut self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BoxError>;
}

/// A language model that rates texts.
pub trait Rate {
    /// The reply when asked to rate `text` with a number of `range` and nothing else, as it came.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn rate(&mut self, text: &str, range: RangeInclusive<u8>) -> Result<String, BoxError>;
}

/// Why drafts were not remembered. None of them is in the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RememberError {
    /// The drafts do not fit the store.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// The embedder is another than the machine was made for.
    #[error(transparent)]
    Model(#[from] OtherModel),
    /// The embedder failed.
    #[error("embedding: {0}")]
    Embedder(#[source] BoxError),
    /// The rater failed.
    #[error("rating: {0}")]
    Rater(#[source] BoxError),
    /// What they answered cannot be used.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The store refused.
    #[error(transparent)]
    Finish(#[from] FinishError),
}

/// Asks for what the drafts lack, and stores them, all or none: their ids, in their order.
///
/// The drafts go with an error. To keep them, and the answers that came, make a [`Remember`] and let it
/// [`ask`](Remember::ask).
///
/// # Errors
/// If the drafts do not fit the store, an answer does not come or cannot be used, or the store refuses.
///
/// ```
/// use memorank::kernel::Dtype;
/// use memorank::store::{CreateOptions, Store};
/// use memorank::stream::{BoxError, Draft, HashingEmbedder, Rate, remember};
/// use std::ops::RangeInclusive;
///
/// struct Fives;
/// impl Rate for Fives {
///     fn rate(&mut self, _: &str, _: RangeInclusive<u8>) -> Result<String, BoxError> {
///         Ok("5".into())
///     }
/// }
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("klaus");
/// let dim = 64.try_into()?;
/// let model = Some(HashingEmbedder::MODEL.to_owned());
/// let store = Store::create(path, &CreateOptions { dim, dtype: Dtype::F16, model })?;
/// let drafts = vec![Draft::new("Klaus is reading", 0), Draft::new("the coffee is ready", 1)];
/// let ids = remember(&store, drafts, &mut HashingEmbedder::new(dim), &mut Fives)?;
/// assert_eq!(ids, 0..2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn remember(
    store: &Store,
    drafts: Vec<Draft>,
    embedder: &mut dyn Embed,
    rater: &mut dyn Rate,
) -> Result<Range<u64>, RememberError> {
    let mut machine = Remember::new(store, Some(embedder.model()), drafts)?;
    machine.ask(embedder, rater)?;
    Ok(machine.append(store)?)
}

impl Remember {
    /// Asks until nothing is needed. After an error it goes on where it was.
    ///
    /// # Errors
    /// If the embedder's model is not the machine's, or an answer does not come or cannot be used.
    pub fn ask(
        &mut self,
        embedder: &mut dyn Embed,
        rater: &mut dyn Rate,
    ) -> Result<(), RememberError> {
        loop {
            match self.needs() {
                Need::Embed { texts, model } => {
                    OtherModel::check(model, Some(embedder.model()))?;
                    let embeddings = embedder.embed(&texts).map_err(RememberError::Embedder)?;
                    self.embedded(embeddings)?;
                }
                Need::Rate { text, range } => {
                    let reply = rater.rate(text, range).map_err(RememberError::Rater)?;
                    self.rated(&reply)?;
                }
                Need::Nothing => return Ok(()),
            }
        }
    }
}
