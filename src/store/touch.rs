//! Touches: a record in the journal, and the same in memory.

use super::error::{TouchError, WriteError};
use super::journal::{Body, Ids, NOT_TOUCHED, Numbers, Seen, Touch, encode};
use super::own::Agent;
use super::writing::Writing;
use super::{Snapshot, Store};

/// Bytes of a touch's note at most.
const MAX_NOTE_BYTES: usize = 1 << 16;

/// A touch, and what is to be remembered of it.
#[derive(Clone, Copy, Debug)]
pub struct NewTouch<'a> {
    /// Who retrieved.
    pub agent: Agent,
    /// What was retrieved.
    pub ids: &'a [u64],
    /// When, in microseconds since the Unix epoch.
    pub now: i64,
    /// Bytes of the caller's, 65,536 at most: the question, say.
    pub note: &'a [u8],
    /// The snapshot of this store that was ranked, so that [`Store::before`] goes back to it: by now others may
    /// have changed the store. `None`: the store as it is just before the touch.
    pub seen: Option<&'a Snapshot>,
}

impl Store {
    /// Records that `agent` retrieved the memories with these ids at `now`, in microseconds since the Unix
    /// epoch: its last access of each becomes the later of `now` and what it was. A deleted memory is not
    /// touched.
    ///
    /// When this returns, the touch is in the journal: it survives the end of the process, however it
    /// ends, and a crash of the system after the next [`sync`](Store::sync), append, delete or checkpoint;
    /// at once, if [`Durability::touches`](super::Durability::touches) asks for it.
    ///
    /// # Errors
    /// If no memory ever had an id, or the record cannot be written. Nothing was touched then; after a sync that
    /// failed it may have been.
    pub fn touch(&self, agent: Agent, ids: &[u64], now: i64) -> Result<(), TouchError> {
        self.touch_with(&NewTouch {
            agent,
            ids,
            now,
            note: b"",
            seen: None,
        })
        .map(|_| ())
    }

    /// As [`touch`](Store::touch), with a note and what was ranked. Gives the number of the touch's record, by which
    /// [`before`](Store::before) finds it; `None` if there is none, because the touch alters no last access. (With
    /// [history](Store::keep_history) there is one if there is an id.)
    ///
    /// # Errors
    /// As [`touch`](Store::touch), or a note that is too long.
    ///
    /// # Panics
    /// If `seen` was not taken of this store and holds what this one does not.
    pub fn touch_with(&self, touch: &NewTouch<'_>) -> Result<Option<u64>, TouchError> {
        self.record_touch(touch, self.history_bytes() > 0)
    }

    /// [`touch_with`](Store::touch_with). `always`: there is a record if there is an id.
    pub(crate) fn record_touch(
        &self,
        touch: &NewTouch<'_>,
        always: bool,
    ) -> Result<Option<u64>, TouchError> {
        let NewTouch {
            agent, now, note, ..
        } = *touch;
        self.writing()?;
        // Ids that were given stay so: no need to look again when it is this handle's turn.
        let next = self.current().untouched().next_id;
        if let Some(&id) = touch.ids.iter().find(|&&id| id >= next) {
            return Err(TouchError::NoId { id, next });
        }
        if note.len() > MAX_NOTE_BYTES {
            let (bytes, most) = (note.len(), MAX_NOTE_BYTES);
            return Err(TouchError::Note { bytes, most });
        }
        let mut ids = touch.ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let (mut before, mut rows) = (Vec::with_capacity(ids.len()), Vec::new());

        let writing = self.journal_to_write()?;
        let mut journal = writing.journal();
        let seen = {
            let current = self.current();
            let state = current.untouched();
            for &id in &ids {
                let row = state.slot_of_id(id);
                let row = row.filter(|&row| state.live.is_live(row));
                let last = row.map_or(NOT_TOUCHED, |row| current.last_access(agent, row));
                rows.extend(row.filter(|_| last < now));
                before.push(last);
            }
            let latest = Seen {
                sequence: journal.last_sequence,
                next_id: state.next_id,
                touch: None,
            };
            let seen = touch.seen.map_or(latest, Snapshot::seen);
            let last = seen.touch.unwrap_or(seen.sequence);
            assert!(
                last <= latest.sequence && seen.next_id <= latest.next_id,
                "a snapshot of another store"
            );
            seen
        };
        let is_written = !rows.is_empty() || (always && !ids.is_empty());
        let sequence = if is_written {
            let mut record = Vec::new();
            let body = Body::Touch(Touch {
                agent: agent.0,
                now,
                seen,
                ids: Ids::new(&ids),
                before: Numbers::new(&before),
                note,
            });
            encode(&body, &mut record).map_err(|e| self.too_long(e))?;
            let sequence = self.write_record(writing, &mut journal, &mut record)?;
            self.current().touch(sequence, agent, &rows, now);
            sequence
        } else {
            // Another thread may have written, and not yet synced, what leaves nothing to do.
            journal.last_sequence
        };
        drop(journal);
        self.keep_promise(writing, sequence, self.durability.touches)?;
        Ok(is_written.then_some(sequence))
    }

    /// What this handle writes with, once it has a segment of its own.
    pub(super) fn journal_to_write(&self) -> Result<&Writing, WriteError> {
        let writing = self.writing()?;
        if writing.journal().log.is_none() {
            let turn = writing.turn(&self.dir)?;
            self.take_over(writing, &turn)?;
        }
        Ok(writing)
    }
}
