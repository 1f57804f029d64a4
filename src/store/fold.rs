//! Folding: what the journal holds becomes part of the columns, and the journal starts anew. A checkpoint
//! appends to the columns; a compaction writes them anew, without the deleted rows.

use super::Store;
use super::column::Columns;
use super::entries::{override_entry, superseded_entry, touched_entry, vector_head};
use super::error::WriteError;
use super::format::Column;
use super::history;
use super::live::Kept;
use super::manifest::{Manifest, sync_directory};
use super::rows::RowWriter;
use super::state::State;
use super::turns::Turn;
use super::writing::Writing;
use std::sync::Arc;

/// A state, the last record that it contains, and the segment that holds all after that.
struct Point {
    state: Arc<State>,
    sequence: u64,
    segment: u64,
    segment_bytes: u64,
    /// Of the records that become part of the columns.
    unfolded_bytes: u64,
}

impl Store {
    /// Makes all that was written durable.
    ///
    /// # Errors
    /// If that is not certain; the handle then writes no more.
    pub fn sync(&self) -> Result<(), WriteError> {
        let writing = self.writing()?;
        let (is_new, unfolded, last) = {
            let journal = writing.journal();
            let is_new = journal.log.is_none();
            (is_new, journal.unfolded_bytes > 0, journal.last_sequence)
        };
        match is_new {
            false => self.sync_to(writing, last),
            // Only who wrote them knows whether another handle's records are durable.
            true if unfolded => self.take_over(writing, &writing.turn(&self.dir)?),
            true => self.sync_names(writing),
        }
    }

    /// Folds the journal into the columns. Opening is fastest after it; nothing else needs it to be called: it
    /// is done by itself when the journal exceeds [`OpenOptions::checkpoint_bytes`](super::OpenOptions), before a
    /// bulk append, and when the handle is closed. Touches, deletes and readers do not wait for it.
    ///
    /// # Errors
    /// If the bytes do not reach the disk. What was written before stays, in the journal.
    pub fn checkpoint(&self) -> Result<(), WriteError> {
        let writing = self.writing()?;
        let turn = writing.turn(&self.dir)?;
        self.fold(writing, &turn)
    }

    /// Writes the columns anew without the deleted memories, beside the old ones, which are removed then.
    /// Ids stay, rows are numbered anew; snapshots that were taken before stay as they are. It needs room for
    /// the store a second time.
    ///
    /// # Errors
    /// As [`checkpoint`](Store::checkpoint), and if any column is damaged: all of them are checked before they are
    /// copied, as new checksums would hide what is wrong.
    pub fn compact(&self) -> Result<(), WriteError> {
        let writing = self.writing()?;
        let turn = writing.turn(&self.dir)?;
        // Nobody else replaces them while the turn is ours.
        let committed = self.state().committed.clone();
        committed.columns.check(&committed.manifest)?;
        self.take_over(writing, &turn)?;
        let point = self.switch(writing)?;
        let kept = Kept::new(&point.state.live);
        let mut manifest = self.manifest_after(&point)?;
        let files = &self.files;
        let mut writer = RowWriter::append(files, &self.dir, &manifest);
        let written = || {
            for column in Column::ALL {
                writer.renew(&self.dir, &manifest, column)?;
            }
            for row in kept.old_rows() {
                let row = point.state.stored(row)?;
                writer.push(&row)?;
                writer.push_inv_norm(row.inv_norm)?;
            }
            for (agent, row, time) in point.state.differences() {
                if let Some(row) = kept.new_row(row) {
                    writer.bytes(Column::Access, &touched_entry((agent, row, time)))?;
                }
            }
            for (agent, row, importance) in point.state.overrides() {
                if let Some(row) = kept.new_row(row) {
                    let entry = override_entry((agent, row, importance));
                    writer.bytes(Column::Override, &entry)?;
                }
            }
            for entry in point.state.superseded.renumbered(&kept).iter() {
                writer.bytes(Column::Superseded, &superseded_entry(entry))?;
            }
            manifest.rows = kept.count() as u64;
            self.commit(writing, &mut writer, &mut manifest)
        };
        let columns = { written }().map_err(|error| writing.note(error.into()))?;
        let old = Manifest::clone(&self.state().committed.manifest);
        {
            let mut journal = writing.journal();
            // With what was touched and deleted since.
            self.change_state(&mut journal, |state| {
                *state = state.compacted(&kept, manifest.clone(), columns);
            });
            journal.folded(point.unfolded_bytes);
        }
        self.remove_old(writing, &old, &manifest);
        Ok(())
    }

    /// Makes the names of the store's files and its own durable, for a handle that wrote nothing yet: whoever
    /// wrote the manifest may have been stopped, or failed, before that was done.
    fn sync_names(&self, writing: &Writing) -> Result<(), WriteError> {
        for dir in [self.dir.clone(), self.dir.join("..")] {
            let synced = sync_directory(&*self.files, &dir);
            synced.map_err(|error| writing.note(error.into()))?;
        }
        Ok(())
    }

    /// [`checkpoint`](Store::checkpoint), by whom the turn is.
    pub(super) fn fold(&self, writing: &Writing, turn: &Turn<'_>) -> Result<(), WriteError> {
        let (unfolded, is_new) = {
            let journal = writing.journal();
            let folded = self.state().committed.manifest.journal_folded;
            (journal.last_sequence != folded, journal.log.is_none())
        };
        match unfolded {
            false if is_new => return self.sync_names(writing),
            false => return Ok(()),
            true => {}
        }
        self.take_over(writing, turn)?;
        let point = self.switch(writing)?;
        let mut manifest = self.manifest_after(&point)?;
        let mut writer = RowWriter::append(&self.files, &self.dir, &manifest);
        let written = || {
            for column in [Column::Access, Column::Deleted] {
                writer.renew(&self.dir, &manifest, column)?;
            }
            for row in manifest.rows as usize..point.state.rows() {
                let row = point.state.stored(row)?;
                writer.push(&row)?;
                writer.push_inv_norm(row.inv_norm)?;
            }
            for touched in point.state.differences() {
                writer.bytes(Column::Access, &touched_entry(touched))?;
            }
            for row in point.state.live.deleted() {
                writer.bytes(Column::Deleted, &(row as u32).to_le_bytes())?;
            }
            let overrides = point.state.overrides().flat_map(override_entry);
            let superseded = point.state.superseded.iter().flat_map(superseded_entry);
            for (column, entries) in [
                (Column::Override, overrides.collect::<Vec<u8>>()),
                (Column::Superseded, superseded.collect()),
            ] {
                let before = &point.state.committed.columns.bytes[column as usize];
                if entries != before.as_slice() {
                    writer.renew(&self.dir, &manifest, column)?;
                    writer.bytes(column, &entries)?;
                }
            }
            for (row, vector) in point.state.filled.unwritten() {
                writer.bytes(Column::Vectors, &vector_head(row, vector.inv_norm))?;
                writer.bytes(Column::Vectors, vector.elements)?;
            }
            manifest.rows = point.state.rows() as u64;
            self.commit(writing, &mut writer, &mut manifest)
        };
        let columns = { written }().map_err(|error| writing.note(error.into()))?;
        let old = Manifest::clone(&self.state().committed.manifest);
        let extended = point.state.extended(manifest.clone(), columns);
        {
            let mut journal = writing.journal();
            self.change_state(&mut journal, |state| {
                state.adopt(extended);
                state.filled.written();
            });
            journal.folded(point.unfolded_bytes);
        }
        self.remove_old(writing, &old, &manifest);
        Ok(())
    }

    /// Ends the segment that is written, and starts the next one.
    fn switch(&self, writing: &Writing) -> Result<Point, WriteError> {
        let lead = writing.commits.lead_alone();
        // Once without the journal, so that others wait for little.
        self.sync_as(writing, &lead)?;
        let mut journal = writing.journal();
        let note = |failed| writing.note(failed);
        let sequence = journal.last_sequence;
        let log = journal.log.as_mut().expect("taken over before");
        if log.durable < log.end {
            log.sync().map_err(|error| note(error.into()))?;
        }
        lead.reached(sequence);
        let next = (log.next(&*self.files, &self.dir, sequence + 1)).map_err(note)?;
        let (segment, segment_bytes) = (next.number, next.end);
        let ended = std::mem::replace(log, next);
        journal.old.push(ended.number);
        Ok(Point {
            state: self.state(),
            sequence,
            segment,
            segment_bytes,
            unfolded_bytes: journal.unfolded_bytes,
        })
    }

    /// The next manifest, whose columns hold a state. Rows and entries are still the ones before.
    fn manifest_after(&self, point: &Point) -> Result<Manifest, WriteError> {
        let mut manifest = Manifest::clone(&point.state.committed.manifest);
        manifest.sequence = manifest.next_sequence(&self.dir)?;
        manifest.next_id = point.state.next_id;
        manifest.kinds = point.state.kinds.names();
        manifest.journal_folded = point.sequence;
        manifest.journal_segment = point.segment;
        manifest.journal_bytes = point.segment_bytes;
        Ok(manifest)
    }

    /// Makes what was written durable, loads it, and makes the manifest the store's.
    pub(super) fn commit(
        &self,
        writing: &Writing,
        writer: &mut RowWriter,
        manifest: &mut Manifest,
    ) -> Result<Columns, WriteError> {
        writer.finish(manifest)?;
        // Before the manifest: what cannot be read back is not committed.
        let columns = Columns::load(&*self.files, &self.dir, manifest, self.hold)?;
        let published = self.publish(writing, manifest);
        if published
            .as_ref()
            .map_or_else(WriteError::poisons, |()| true)
        {
            writer.keep();
        }
        published.map(|()| columns)
    }

    /// Removes segments and files that the manifest before named and `manifest` does not, but for the segments that
    /// are kept. What stays is swept by the next writer.
    fn remove_old(&self, writing: &Writing, before: &Manifest, manifest: &Manifest) {
        writing.journal().old.clear();
        history::trim(&*self.files, &self.dir, manifest);
        self.remove_replaced(before, manifest);
    }

    /// Removes files of columns that the manifest before named and `manifest` does not.
    pub(super) fn remove_replaced(&self, before: &Manifest, manifest: &Manifest) {
        for (old, new) in before.columns.iter().zip(&manifest.columns) {
            if old.file != new.file {
                let _ = self.files.remove_file(&self.dir.join(&old.file));
            }
        }
    }
}
