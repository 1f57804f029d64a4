//! Touches, importances and deletes: a record in the journal, and the same in memory.

use super::Promise;
use super::Store;
use super::current::Current;
use super::error::{DeleteError, ImportanceError, TouchError, WriteError};
use super::journal::{Body, Ids, encode};
use super::own::Agent;
use super::writing::{Journal, Writing};

/// An id that no memory ever had.
struct NoId {
    id: u64,
    next: u64,
}

/// What is done to some memories.
#[derive(Clone, Copy)]
enum Change {
    Touch {
        agent: Agent,
        now: i64,
    },
    /// `None`: the one it was stored with.
    Importance {
        agent: Agent,
        importance: Option<f32>,
    },
    Delete,
}

impl Change {
    /// Whether a live memory is another one afterwards.
    fn alters(self, current: &Current, row: usize) -> bool {
        match self {
            Change::Touch { agent, now } => current.is_older(agent, row, now),
            Change::Importance { agent, importance } => {
                let state = current.untouched();
                let new = importance.unwrap_or_else(|| state.importance_at_append(row));
                state.importance(agent, row).to_bits() != new.to_bits()
            }
            Change::Delete => true,
        }
    }

    fn body(self, ids: Ids<'_>) -> Body<'_> {
        match self {
            Change::Touch { agent, now } => {
                let agent = agent.0;
                Body::Touch { agent, now, ids }
            }
            Change::Importance { agent, importance } => {
                let agent = agent.0;
                Body::Importance {
                    agent,
                    importance,
                    ids,
                }
            }
            Change::Delete => Body::Delete { ids },
        }
    }

    fn apply(self, store: &Store, journal: &mut Journal, rows: &[(usize, u64)]) {
        let rows = rows.iter().map(|&(row, _)| row);
        match self {
            Change::Touch { agent, now } => {
                let mut current = store.current();
                rows.for_each(|row| current.touch(agent, row, now));
            }
            Change::Importance { agent, importance } => store.change_state(journal, |state| {
                rows.for_each(|row| {
                    state.set_importance(agent, row, importance);
                });
            }),
            Change::Delete => store.change_state(journal, |state| {
                rows.for_each(|row| {
                    state.delete(row);
                });
            }),
        }
    }
}

impl Store {
    /// Records that `agent` retrieved the memories with these ids at `now`, in microseconds since the Unix
    /// epoch: its last access of each becomes the later of `now` and what it was. Of a deleted memory
    /// nothing is recorded.
    ///
    /// When this returns, the touch is in the journal: it survives the end of the process, however it
    /// ends, and a crash of the system after the next [`sync`](Store::sync), append, delete or checkpoint;
    /// at once, if [`Durability::touches`](super::Durability::touches) asks for it.
    ///
    /// # Errors
    /// If no memory ever had an id, or the record cannot be written. Nothing was touched then; after a sync that
    /// failed it may have been.
    pub fn touch(&self, agent: Agent, ids: &[u64], now: i64) -> Result<(), TouchError> {
        match self.record(ids, Change::Touch { agent, now }, self.durability.touches) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(NoId { id, next })) => Err(TouchError::NoId { id, next }),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the memories with these ids an importance of `agent`'s own, or takes it away (`None`), and gives how many
    /// of them had another. Other agents keep theirs. For an agent without one, a memory has the
    /// importance that it was stored with; that one stays as it is, and is corrected by giving the store's own
    /// agent another. Of a deleted memory nothing is recorded.
    ///
    /// # Errors
    /// If the importance is not finite, no memory ever had an id, or the record cannot be written. Nothing was changed
    /// then; after a sync that failed it may have been.
    pub fn set_importance(
        &self,
        agent: Agent,
        ids: &[u64],
        importance: Option<f32>,
    ) -> Result<usize, ImportanceError> {
        if let Some(value) = importance.filter(|value| !value.is_finite()) {
            return Err(ImportanceError::NotFinite { value });
        }
        // No -0: least and greatest must not depend on the order.
        let importance = importance.map(|value| value + 0.0);
        let change = Change::Importance { agent, importance };
        match self.record(ids, change, self.durability.appends) {
            Ok(Ok(changed)) => Ok(changed),
            Ok(Err(NoId { id, next })) => Err(ImportanceError::NoId { id, next }),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the memories with these ids, and gives how many of them were there. A deleted memory is no
    /// candidate any more, its id is never given again, and its key is free. Evidence that names it names a
    /// memory that is missing. Its bytes stay until a [compaction](Store::compact).
    ///
    /// # Errors
    /// If no memory ever had an id, or the record cannot be written. Nothing was deleted then; after a sync that
    /// failed it may have been.
    pub fn delete(&self, ids: &[u64]) -> Result<usize, DeleteError> {
        match self.record(ids, Change::Delete, self.durability.appends) {
            Ok(Ok(deleted)) => Ok(deleted),
            Ok(Err(NoId { id, next })) => Err(DeleteError::NoId { id, next }),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a record about the live memories among `ids` that it changes something of, each once, and
    /// applies it to them. Gives their number.
    fn record(
        &self,
        ids: &[u64],
        change: Change,
        promise: Promise,
    ) -> Result<Result<usize, NoId>, WriteError> {
        self.writing()?;
        // Ids that were given stay so: no need to look again when it is this handle's turn.
        let next = self.current().untouched().next_id;
        if let Some(&id) = ids.iter().find(|&&id| id >= next) {
            return Ok(Err(NoId { id, next }));
        }
        let writing = self.journal_to_write()?;
        let mut journal = writing.journal();
        let mut rows = Vec::new();
        {
            let current = self.current();
            let state = current.untouched();
            for &id in ids {
                if let Some(row) = state.slot_of_id(id)
                    && state.live.is_live(row)
                    && change.alters(&current, row)
                {
                    rows.push((row, id));
                }
            }
        }
        rows.sort_unstable();
        rows.dedup();
        if rows.is_empty() {
            // Another thread may have written, and not yet synced, what leaves nothing to do.
            let last = journal.last_sequence;
            drop(journal);
            self.keep_promise(writing, last, promise)?;
            return Ok(Ok(0));
        }
        let ids: Vec<u64> = rows.iter().map(|&(_, id)| id).collect();
        let mut record = Vec::new();
        encode(&change.body(Ids::new(&ids)), &mut record).map_err(|e| self.too_long(e))?;
        let sequence = self.write_record(writing, &mut journal, &mut record)?;
        change.apply(self, &mut journal, &rows);
        drop(journal);
        self.keep_promise(writing, sequence, promise)?;
        Ok(Ok(rows.len()))
    }

    /// What this handle writes with, once it has a segment of its own.
    fn journal_to_write(&self) -> Result<&Writing, WriteError> {
        let writing = self.writing()?;
        if writing.journal().log.is_none() {
            let turn = writing.turn(&self.dir)?;
            self.take_over(writing, &turn)?;
        }
        Ok(writing)
    }
}
