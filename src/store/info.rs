//! What a store is and where its bytes are, for people and programs that ask.

use super::Store;
use super::format::Column;
use crate::kernel::Dtype;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What a store is and where its bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The store's directory.
    pub path: PathBuf,
    /// Memories.
    pub rows: usize,
    /// Memories without a vector: never candidates.
    pub without_vector: usize,
    /// The id of the next memory.
    pub next_id: u64,
    /// Elements per embedding.
    pub dim: NonZeroUsize,
    /// How embeddings are stored.
    pub dtype: Dtype,
    /// The name of the model that makes the embeddings.
    pub model: Option<String>,
    /// Each column's file.
    pub files: Vec<FileInfo>,
}

/// A column's file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInfo {
    /// Where it is.
    pub path: PathBuf,
    /// The type of its elements: `"f16"`, `"i64"`, ... or `"bytes"`.
    pub element: &'static str,
    /// Its committed bytes.
    pub bytes: u64,
}

impl Store {
    /// What the store is and where its bytes are. Reads the column of inverse norms.
    pub fn info(&self) -> Info {
        let files = Column::ALL.into_iter().zip(&self.manifest.columns);
        let files = files.map(|(column, entry)| FileInfo {
            path: self.dir.join(&entry.file),
            element: column.element(self.dtype()),
            bytes: entry.bytes,
        });
        Info {
            path: self.dir.clone(),
            rows: self.len(),
            without_vector: self.inv_norms().iter().filter(|&&n| n == 0.0).count(),
            next_id: self.next_id(),
            dim: self.dim(),
            dtype: self.dtype(),
            model: self.manifest.model.clone(),
            files: files.collect(),
        }
    }
}
