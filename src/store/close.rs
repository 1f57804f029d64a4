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
        match self.writing {
            Some(_) => self.checkpoint(),
            None => Ok(()),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
