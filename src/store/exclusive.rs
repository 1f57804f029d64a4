//! Decisions that hold: what is appended or deleted because of what the store has at that moment.

use super::error::{AppendError, DeleteError, WriteError};
use super::memory::NewMemory;
use super::turns::Turn;
use super::writing::Writing;
use super::{Snapshot, Store};
use std::ops::Range;

/// The turn to append to a store, or to delete from it, by what it holds: until this is used or dropped, nobody else
/// appends, folds or compacts. Touches, other deletes and readers do not wait, so a memory that the
/// [`snapshot`](Exclusive::snapshot) has may be deleted by the time of the change, and none is new by then.
///
/// ```
/// use memorank::kernel::Dtype;
/// # use memorank::store::{CreateOptions, Store};
///
/// # let dir = tempfile::tempdir()?;
/// # let (dim, dtype, model) = (2.try_into()?, Dtype::F32, None);
/// # let store = Store::create(dir.path().join("klaus"), &CreateOptions { dim, dtype, model })?;
/// let exclusive = store.exclusive()?;
/// let snapshot = exclusive.snapshot();
/// let unrated = (0..snapshot.rows())
///     .filter(|&row| snapshot.is_live(row) && snapshot.importance(row) == 0.0)
///     .map(|row| snapshot.id(row));
/// let unrated: Vec<u64> = unrated.collect();
/// exclusive.delete(&unrated)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exclusive<'s> {
    store: &'s Store,
    writing: &'s Writing,
    turn: Turn<'s>,
}

impl Store {
    /// Waits for the turn to append to the store, or to delete from it, by what it holds.
    ///
    /// # Errors
    /// If the handle cannot write, or this thread has the turn already.
    pub fn exclusive(&self) -> Result<Exclusive<'_>, WriteError> {
        let writing = self.writing()?;
        let turn = writing.turn(&self.dir)?;
        Ok(Exclusive {
            store: self,
            writing,
            turn,
        })
    }
}

impl Exclusive<'_> {
    /// The store as it is now.
    pub fn snapshot(&self) -> Snapshot {
        self.store.snapshot()
    }

    /// As [`Store::append`].
    ///
    /// # Errors
    /// As there.
    pub fn append(self, memories: &[NewMemory<'_>]) -> Result<Range<u64>, AppendError> {
        self.store.append_in(self.writing, self.turn, memories)
    }

    /// As [`Store::delete`].
    ///
    /// # Errors
    /// As there.
    pub fn delete(self, ids: &[u64]) -> Result<usize, DeleteError> {
        self.store.delete_in(self.writing, self.turn, ids)
    }
}
