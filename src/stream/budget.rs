//! How much of what was ranked a caller can take.

/// Something that knows how many tokens a text is.
pub trait CountTokens {
    /// The tokens of `text`.
    fn count(&self, text: &str) -> usize;
}
