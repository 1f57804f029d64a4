//! How much of the journal is kept.

use super::trim;
use crate::store::Store;
use crate::store::error::WriteError;
use crate::store::manifest::Manifest;
use std::sync::Arc;

impl Store {
    /// How much of the journal is kept once it is folded, in bytes, so that [`before`](Store::before) can go back:
    /// 0 for none, `u64::MAX` for all.
    pub fn history_bytes(&self) -> u64 {
        self.current().untouched().committed.manifest.history_bytes
    }

    /// Has the newest segments of the journal kept that are no more than so many bytes together, each as long as the
    /// journal was when it was folded; 0: none, `u64::MAX`: all. The store keeps to it from now on, whoever writes.
    /// What is more is removed now, and at each fold. What was removed before does not come back.
    ///
    /// It takes its turn with appends, checkpoints and compactions.
    ///
    /// # Errors
    /// If the manifest cannot be written. It stays as it was; after a sync that failed it may not.
    pub fn keep_history(&self, bytes: u64) -> Result<(), WriteError> {
        let writing = self.writing()?;
        let turn = writing.turn(&self.dir)?;
        self.take_over(writing, &turn)?;
        let mut manifest = Manifest::clone(&self.state().committed.manifest);
        manifest.sequence = manifest.next_sequence(&self.dir)?;
        manifest.history_bytes = bytes;
        (self.publish(writing, &manifest)).map_err(|error| writing.note(error.into()))?;
        trim(&*self.files, &self.dir, &manifest);
        self.change_state(&mut writing.journal(), |state| {
            state.committed.manifest = Arc::new(manifest);
        });
        Ok(())
    }
}
