//! Embeddings for texts of the command line, by the one model that is built in.

use crate::failure::Failure;
use memorank::store::Snapshot;
use memorank::stream::HashingEmbedder;

/// The embedding of a text for a store whose embeddings the built-in embedder made.
pub fn text(snapshot: &Snapshot, text: &str) -> Result<Vec<f32>, Failure> {
    let embedding = built_in(snapshot)?.embedding(text);
    embedding.map_err(|e| Failure::Error(format!("{text:?}: {e}").into()))
}

/// The built-in embedder, for a store whose embeddings it made.
pub fn built_in(snapshot: &Snapshot) -> Result<HashingEmbedder, Failure> {
    let built_in = HashingEmbedder::MODEL;
    let told = match snapshot.model() {
        Some(model) if model == built_in => return Ok(HashingEmbedder::new(snapshot.dim())),
        Some(model) => format!(
            "the store's embeddings are by {model:?}, and {built_in:?} is all that is built in: give the text's \
             vector"
        ),
        None => format!(
            "the store does not say by which model its embeddings are: give the text's vector (a store made with \
             --model {built_in} takes texts)"
        ),
    };
    Err(Failure::Error(told.into()))
}
