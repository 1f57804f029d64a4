//! Why a store was not repaired.

use crate::store::error::{CreateError, OpenError, WriteError};
use std::path::PathBuf;
use thiserror::Error;

/// Why a store was not repaired. No byte of it was changed, and there is no new store; only after a
/// [`CreateError`] that came after the new one got its name there is one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RepairError {
    /// There is no store, or it is none that this version can read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The new store cannot be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The new store would lie in the damaged one.
    #[error("{} lies in {}, which is not to be changed; choose another path", .new_path.display(), .path.display())]
    Inside {
        /// The damaged store.
        path: PathBuf,
        /// The path of the new one.
        new_path: PathBuf,
    },
    /// The manifest cannot be used, and nothing else says how many elements an embedding has.
    #[error(
        "{problem}. Without it nothing says how many elements an embedding has: give the dimension{}",
        .suggested.map(|dim| format!("; the lengths of the files speak for {dim}")).unwrap_or_default()
    )]
    NoDim {
        /// What is wrong with the manifest.
        problem: String,
        /// What the lengths of the files speak for. They may hold bytes that never belonged to the store.
        suggested: Option<usize>,
    },
    /// The manifest cannot be used, and there is no file of embeddings, or one of each type.
    #[error(
        "{problem}. Without it nothing says how embeddings are stored: give the type, f16 or f32"
    )]
    NoDtype {
        /// What is wrong with the manifest.
        problem: String,
    },
    /// Somebody wrote to the damaged store meanwhile.
    #[error("{} was written to meanwhile; close its writer first", .path.display())]
    Changed {
        /// The damaged store.
        path: PathBuf,
    },
}

impl From<WriteError> for RepairError {
    fn from(error: WriteError) -> RepairError {
        RepairError::Create(error.into())
    }
}
