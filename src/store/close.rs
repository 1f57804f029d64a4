//! The end of a handle.

use super::Store;
use super::error::WriteError;

impl Store {
    /// Folds the journal into the columns and gives the lock back. Dropping a store does the same, but cannot
    /// say whether it went well.
    ///
    /// # Errors
    /// If the bytes do not reach the disk. What was acknowledged as durable is so; the next writer recovers it from
    /// the journal.
    pub fn close(mut self) -> Result<(), WriteError> {
        let closed = self.finish();
        self.writing = None;
        closed
    }

    fn finish(&self) -> Result<(), WriteError> {
        if self.writing.is_none() {
            return Ok(());
        }
        let writing = self.writing()?;
        // Nobody else has the store any more: a turn that is not free was forgotten with its bulk append, and
        // will never be.
        let path = || self.dir.clone();
        let turn = (writing.try_turn()).ok_or_else(|| WriteError::Busy { path: path() })?;
        self.fold(writing, &turn)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
