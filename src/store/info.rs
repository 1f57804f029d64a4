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
    pub memories: usize,
    /// Rows of deleted memories, until a compaction.
    pub deleted: usize,
    /// Rows that are in the journal only, until a checkpoint.
    pub in_journal: usize,
    /// Memories without a vector: no candidates.
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
        let state = self.snapshot();
        let manifest = state.manifest();
        let files = Column::ALL.into_iter().zip(&manifest.columns);
        let files = files.map(|(column, entry)| FileInfo {
            path: self.dir.join(&entry.file),
            element: column.element(manifest.dtype),
            bytes: entry.bytes,
        });
        let rows = 0..state.rows();
        let without = rows.filter(|&row| state.is_live(row) && !state.has_embedding(row));
        Info {
            path: self.dir.clone(),
            memories: state.len(),
            deleted: state.rows() - state.len(),
            in_journal: state.rows() - manifest.rows as usize,
            without_vector: without.count(),
            next_id: state.next_id(),
            dim: manifest.dim,
            dtype: manifest.dtype,
            model: manifest.model.clone(),
            files: files.collect(),
        }
    }
}
