//! Appending rows to the column files, each column its own.

use super::error::WriteError;
use super::files::Files;
use super::format::Column;
use super::manifest::{Entry, Manifest, create_anew};
use super::tail::StoredRow;
use super::writer::ColumnWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A writer for every column, and the files that were made for them. Dropped before
/// [`keep`](RowWriter::keep), it takes back all it wrote, as well as that goes.
pub(super) struct RowWriter {
    files: Arc<dyn Files>,
    writers: Vec<ColumnWriter>,
    made: Vec<PathBuf>,
    kept: bool,
}

impl RowWriter {
    /// Appends to the files of a manifest.
    pub(super) fn append(files: &Arc<dyn Files>, dir: &Path, manifest: &Manifest) -> RowWriter {
        let entries = manifest.columns.iter();
        RowWriter {
            files: files.clone(),
            writers: entries.map(|e| ColumnWriter::new(files, dir, e)).collect(),
            made: Vec::new(),
            kept: false,
        }
    }

    /// Starts a column anew, in a file of its own that `sequence` numbers.
    pub(super) fn renew(
        &mut self,
        dir: &Path,
        manifest: &Manifest,
        column: Column,
    ) -> Result<(), WriteError> {
        let file = column.file(manifest.dtype, Some(manifest.sequence));
        let path = dir.join(&file);
        create_anew(&*self.files, &path)?;
        self.made.push(path);
        let (bytes, sums) = (0, Vec::new());
        let entry = Entry { file, bytes, sums };
        self.writers[column as usize] = ColumnWriter::new(&self.files, dir, &entry);
        Ok(())
    }

    /// Appends a row, all but its inverse norm.
    pub(super) fn push(&mut self, row: &StoredRow<'_>) -> Result<(), WriteError> {
        self.bytes(Column::Embedding, row.elements)?;
        self.bytes(Column::Id, &row.id.to_le_bytes())?;
        self.bytes(Column::Created, &row.created.to_le_bytes())?;
        self.bytes(Column::LastAccess, &row.last_access.to_le_bytes())?;
        self.bytes(Column::Expiry, &row.expiry.to_le_bytes())?;
        self.bytes(Column::Importance, &row.importance.to_le_bytes())?;
        self.bytes(Column::Kind, &row.kind.to_le_bytes())?;
        self.bytes(Column::Depth, &row.depth.to_le_bytes())?;
        let key = row.key.unwrap_or("").as_bytes();
        self.span(Column::KeyEnds, Column::KeyBytes, key)?;
        self.span(Column::TextEnds, Column::TextBytes, row.text.as_bytes())?;
        self.span(Column::PayloadEnds, Column::PayloadBytes, row.payload)?;
        self.span(Column::EvidenceEnds, Column::EvidenceBytes, row.evidence)
    }

    /// Appends the inverse norm of the first row that has none yet.
    pub(super) fn push_inv_norm(&mut self, inv_norm: f32) -> Result<(), WriteError> {
        self.bytes(Column::InvNorm, &inv_norm.to_le_bytes())
    }

    fn span(&mut self, ends: Column, column: Column, bytes: &[u8]) -> Result<(), WriteError> {
        self.bytes(column, bytes)?;
        let end = self.writers[column as usize].bytes();
        self.bytes(ends, &end.to_le_bytes())
    }

    pub(super) fn bytes(&mut self, column: Column, bytes: &[u8]) -> Result<(), WriteError> {
        self.writers[column as usize].push(bytes)
    }

    /// The key of the row that is number `row` of the column files, of which `committed` were there before.
    pub(super) fn key(&mut self, row: usize, committed: usize) -> Result<Vec<u8>, WriteError> {
        let mut end = |row: usize| {
            let ends = &mut self.writers[Column::KeyEnds as usize];
            let bytes = ends.read_back(row as u64 * 8, 8)?;
            let end = bytes.try_into().expect("8 bytes were read");
            Ok::<u64, WriteError>(u64::from_le_bytes(end))
        };
        let end_at = end(row)?;
        let start = match row {
            row if row > committed => end(row - 1)?,
            // The first row of these starts where the committed bytes end.
            _ => self.writers[Column::KeyBytes as usize].committed(),
        };
        self.writers[Column::KeyBytes as usize].read_back(start, (end_at - start) as usize)
    }

    /// The id of the row that is number `row` of the column files.
    pub(super) fn id(&mut self, row: usize) -> Result<u64, WriteError> {
        let bytes = self.writers[Column::Id as usize].read_back(row as u64 * 8, 8)?;
        let id = bytes.try_into().expect("8 bytes were read");
        Ok(u64::from_le_bytes(id))
    }

    /// Makes all of it durable, and gives `manifest` the columns' entries.
    pub(super) fn finish(&mut self, manifest: &mut Manifest) -> Result<(), WriteError> {
        for (writer, entry) in self.writers.iter_mut().zip(&mut manifest.columns) {
            *entry = writer.finish()?;
        }
        Ok(())
    }

    /// A manifest may name it: it stays.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for RowWriter {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        self.writers.iter_mut().for_each(ColumnWriter::roll_back);
        for path in &self.made {
            let _ = self.files.remove_file(path);
        }
    }
}
