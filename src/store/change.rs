//! Importances and deletes: a record in the journal, and the same in memory.

use super::Store;
use super::error::{DeleteError, ImportanceError, WriteError};
use super::journal::{Body, Ids, Numbers, encode};
use super::own::Agent;
use super::state::State;
use super::turns::Turn;
use super::writing::Writing;

/// An id that no memory ever had.
struct NoId {
    id: u64,
    next: u64,
}

/// What is done to some memories.
#[derive(Clone, Copy)]
enum Change {
    /// `None`: the one it was stored with.
    Importance {
        agent: Agent,
        importance: Option<f32>,
    },
    Delete,
}

impl Change {
    /// Whether a live memory is another one afterwards.
    fn alters(self, state: &State, row: usize) -> bool {
        match self {
            Change::Importance { agent, importance } => {
                let new = importance.unwrap_or_else(|| state.importance_at_append(row));
                state.importance(agent, row).to_bits() != new.to_bits()
            }
            Change::Delete => true,
        }
    }

    /// What it overrides of the rows.
    fn overridden(self, state: &State, rows: &[(usize, u64)]) -> Vec<f32> {
        match self {
            Change::Importance { agent, .. } => {
                let own = rows.iter().map(|&(row, _)| state.override_of(agent, row));
                own.map(|own| own.unwrap_or(f32::NAN)).collect()
            }
            Change::Delete => Vec::new(),
        }
    }

    fn body<'a>(self, ids: &'a [u64], overridden: &'a [f32]) -> Body<'a> {
        let ids = Ids::new(ids);
        match self {
            Change::Importance { agent, importance } => Body::Importance {
                agent: agent.0,
                importance,
                ids,
                before: Numbers::new(overridden),
            },
            Change::Delete => Body::Delete { ids },
        }
    }

    fn apply(self, state: &mut State, row: usize) {
        match self {
            Change::Importance { agent, importance } => {
                state.set_importance(agent, row, importance);
            }
            Change::Delete => {
                state.delete(row);
            }
        }
    }
}

impl Store {
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
        match self.change(ids, change) {
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
        match self.change(ids, Change::Delete) {
            Ok(Ok(deleted)) => Ok(deleted),
            Ok(Err(NoId { id, next })) => Err(DeleteError::NoId { id, next }),
            Err(error) => Err(error.into()),
        }
    }

    /// [`delete`](Store::delete), by whom the turn is.
    pub(super) fn delete_in(
        &self,
        writing: &Writing,
        turn: Turn<'_>,
        ids: &[u64],
    ) -> Result<usize, DeleteError> {
        if let Err(NoId { id, next }) = self.all_given(ids) {
            return Err(DeleteError::NoId { id, next });
        }
        self.take_over(writing, &turn)?;
        let (deletes, sequence) = self.write_change(writing, ids, Change::Delete)?;
        drop(turn);
        self.keep_promise(writing, sequence, self.durability.appends)?;
        Ok(deletes)
    }

    /// Writes a record about the live memories among `ids` that it changes something of, each once, and
    /// applies it to them. Gives their number.
    fn change(&self, ids: &[u64], change: Change) -> Result<Result<usize, NoId>, WriteError> {
        self.writing()?;
        if let Err(no_id) = self.all_given(ids) {
            return Ok(Err(no_id));
        }
        let writing = self.journal_to_write()?;
        let (changes, sequence) = self.write_change(writing, ids, change)?;
        self.keep_promise(writing, sequence, self.durability.appends)?;
        Ok(Ok(changes))
    }

    /// Whether all of the ids were given. That stays so: no need to look again when it is this handle's turn.
    fn all_given(&self, ids: &[u64]) -> Result<(), NoId> {
        let next = self.current().untouched().next_id;
        match ids.iter().find(|&&id| id >= next) {
            Some(&id) => Err(NoId { id, next }),
            None => Ok(()),
        }
    }

    /// [`change`](Store::change), up to the record: the number of memories, and the last record that it rests on.
    fn write_change(
        &self,
        writing: &Writing,
        ids: &[u64],
        change: Change,
    ) -> Result<(usize, u64), WriteError> {
        let mut journal = writing.journal();
        let mut rows = Vec::new();
        let overridden;
        {
            let current = self.current();
            let state = current.untouched();
            for &id in ids {
                if let Some(row) = state.slot_of_id(id)
                    && state.live.is_live(row)
                    && change.alters(state, row)
                {
                    rows.push((row, id));
                }
            }
            rows.sort_unstable();
            rows.dedup();
            overridden = change.overridden(state, &rows);
        }
        let sequence = if rows.is_empty() {
            // Another thread may have written, and not yet synced, what leaves nothing to do.
            journal.last_sequence
        } else {
            let ids: Vec<u64> = rows.iter().map(|&(_, id)| id).collect();
            let mut record = Vec::new();
            encode(&change.body(&ids, &overridden), &mut record).map_err(|e| self.too_long(e))?;
            let sequence = self.write_record(writing, &mut journal, &mut record)?;
            self.change_state(&mut journal, |state| {
                rows.iter().for_each(|&(row, _)| change.apply(state, row));
            });
            sequence
        };
        Ok((rows.len(), sequence))
    }
}
