//! Whose vectors they are: those of two models do not compare.

use thiserror::Error;

/// The caller's vectors are of another model than the store's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the store's embeddings are of model {stored:?}, not {given:?}; embed with the store's")]
pub struct OtherModel {
    /// The store's model.
    pub stored: String,
    /// The caller's.
    pub given: String,
}

impl OtherModel {
    /// Compares the names of two models. One without a name could be any.
    ///
    /// # Errors
    /// If both have a name, and not the same.
    pub fn check(stored: Option<&str>, given: Option<&str>) -> Result<(), OtherModel> {
        match (stored, given) {
            (Some(stored), Some(given)) if stored != given => Err(OtherModel {
                stored: stored.to_owned(),
                given: given.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}
