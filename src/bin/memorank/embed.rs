//! Embeddings for texts of the command line, by the one model that is built in.

use crate::failure::Failure;
use memorank::store::Snapshot;
use memorank::stream::HashingEmbedder;

/// The embedding of a text for a store whose embeddings the built-in embedder made.
pub fn text(snapshot: &Snapshot, text: &str) -> Result<Vec<f32>, Failure> {
    let built_in = HashingEmbedder::MODEL;
    let error = |what: String| Err(Failure::Error(what.into()));
    match snapshot.model() {
        Some(model) if model == built_in => {}
        Some(model) => {
            return error(format!(
                "the store's embeddings are by {model:?}, and {built_in:?} is all that is built in: give the \
                 text's vector"
            ));
        }
        None => {
            return error(format!(
                "the store does not say by which model its embeddings are: give the text's vector (a store \
                 made with --model {built_in} takes texts)"
            ));
        }
    }
    let embedding = HashingEmbedder::new(snapshot.dim()).embedding(text);
    embedding.or_else(|e| error(format!("{text:?}: {e}")))
}
