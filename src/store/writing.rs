//! What a handle that may write has beside the state: the lock, the turn, the journal.
//!
//! Locks are taken in this order, and let go before one before them is taken: the turn ([`Turns`]), the
//! lead of a sync ([`Commits`]), the journal, the state.

use super::commits::{Commits, Lead};
use super::current::Current;
use super::error::{SYNCING, WriteError};
use super::journal::TooLong;
use super::lock::Lock;
use super::log::{Failed, Log};
use super::recover::Found;
use super::state::State;
use super::turns::{Turn, Turns};
use super::{Promise, Store};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) struct Writing {
    pub(super) lock: Lock,
    turns: Turns,
    journal: Mutex<Journal>,
    pub(super) commits: Commits,
    /// A sync or rename failed: what is on the disk is unknown.
    poisoned: AtomicBool,
}

/// The journal as this handle knows it.
pub(super) struct Journal {
    /// `None` before the first write: until then others' segments hold what the columns do not.
    pub(super) log: Option<Log>,
    /// Of all records, this handle's and others'.
    pub(super) last_sequence: u64,
    /// Of records that the columns do not hold.
    pub(super) unfolded_bytes: u64,
    /// How many they were when they could not be folded by themselves. Each attempt starts a segment.
    put_off_bytes: u64,
    /// Segments that are needed until the next manifest.
    pub(super) old: Vec<u64>,
}

impl Journal {
    /// Of records that came since they were tried to be folded.
    fn unfolded_since(&self) -> u64 {
        self.unfolded_bytes - self.put_off_bytes
    }

    /// Takes note that so many of the bytes were folded.
    pub(super) fn folded(&mut self, bytes: u64) {
        self.unfolded_bytes -= bytes;
        self.put_off_bytes = 0;
    }
}

impl Writing {
    pub(super) fn new(lock: Lock, found: &Found) -> Writing {
        Writing {
            lock,
            turns: Turns::default(),
            commits: Commits::new(0),
            journal: Mutex::new(Journal {
                log: None,
                last_sequence: found.last_sequence,
                unfolded_bytes: found.unfolded_bytes,
                put_off_bytes: 0,
                old: found.segments.clone(),
            }),
            poisoned: AtomicBool::new(false),
        }
    }

    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
        // Whoever panicked there had not begun to change it.
        self.journal.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn turn(&self, dir: &Path) -> Result<Turn<'_>, WriteError> {
        let path = || dir.to_owned();
        self.turns
            .take()
            .map_err(|_| WriteError::Busy { path: path() })
    }

    pub(super) fn try_turn(&self) -> Option<Turn<'_>> {
        self.turns.try_take()
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Nobody else can have the lock.
    pub(super) fn check_lock(&self) -> Result<(), WriteError> {
        (self.lock.check()).map_err(|error| self.note(error.into()))
    }

    /// Takes note of a failed step.
    pub(super) fn note(&self, failed: Failed) -> WriteError {
        if failed.poisons {
            self.poisoned.store(true, Ordering::Release);
        }
        failed.error
    }
}

impl Store {
    /// The state, as it is now.
    pub(super) fn state(&self) -> Arc<State> {
        self.current().state().clone()
    }

    /// Changes the state for those who look from now on. Nobody else changes it meanwhile, as who does has the
    /// journal. Nobody who looks has to wait for the change, nor for the end of what only the state before had (64
    /// MiB of a tail, or mapped columns, took 90 ms to let go).
    ///
    /// It contains all records that were written, as what each of them does is done before the journal is let go.
    pub(super) fn change_state(&self, journal: &mut Journal, change: impl FnOnce(&mut State)) {
        let mut state = State::clone(&self.state());
        change(&mut state);
        state.sequence = journal.last_sequence;
        let before = std::mem::replace(self.current().state(), Arc::new(state));
        drop(before);
    }

    /// [`change_state`](Store::change_state) for a change of a mebibyte at most: done in place where nobody has the
    /// state, so that a push copies nothing.
    pub(super) fn change_state_a_little(
        &self,
        journal: &mut Journal,
        change: impl FnOnce(&mut State),
    ) {
        let mut current = self.current();
        match Arc::get_mut(current.state()) {
            Some(state) => {
                change(state);
                state.sequence = journal.last_sequence;
            }
            None => {
                drop(current);
                self.change_state(journal, change);
            }
        }
    }

    pub(super) fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What it writes with, if it may write.
    pub(super) fn writing(&self) -> Result<&Writing, WriteError> {
        let path = || self.dir.clone();
        match &self.writing {
            None => Err(WriteError::ReadOnly { path: path() }),
            Some(writing) if writing.is_poisoned() => Err(WriteError::Poisoned { path: path() }),
            Some(writing) => Ok(writing),
        }
    }

    /// Writes an encoded record, and gives its sequence number.
    pub(super) fn write_record(
        &self,
        writing: &Writing,
        journal: &mut Journal,
        record: &mut [u8],
    ) -> Result<u64, WriteError> {
        self.writing()?;
        let sequence = journal.last_sequence + 1;
        if sequence == u64::MAX {
            let path = self.dir.clone();
            return Err(WriteError::Exhausted { path });
        }
        let log = journal.log.as_mut().expect("taken over before");
        (log.write(record, sequence)).map_err(|failed| writing.note(failed))?;
        journal.last_sequence = sequence;
        journal.unfolded_bytes += record.len() as u64;
        Ok(sequence)
    }

    /// Does what was promised of the record `sequence`, and folds the journal if it has grown too long.
    pub(super) fn keep_promise(
        &self,
        writing: &Writing,
        sequence: u64,
        promise: Promise,
    ) -> Result<(), WriteError> {
        match promise {
            Promise::Written => {}
            Promise::OnDisk => self.sync_to(writing, sequence)?,
        }
        let unfolded = writing.journal().unfolded_since();
        if unfolded >= self.checkpoint_bytes
            && let Some(turn) = writing.try_turn()
            && self.fold(writing, &turn).is_err()
        {
            // It is no fault of this operation's, and is tried again when as much has come again.
            let mut journal = writing.journal();
            journal.put_off_bytes = journal.unfolded_bytes;
        }
        Ok(())
    }

    pub(super) fn too_long(&self, TooLong { bytes }: TooLong) -> WriteError {
        let path = self.dir.clone();
        WriteError::TooLong { path, bytes }
    }

    /// Makes the journal durable up to the record `sequence`, which was written.
    pub(super) fn sync_to(&self, writing: &Writing, sequence: u64) -> Result<(), WriteError> {
        let Some(lead) = writing.commits.lead(sequence) else {
            return Ok(());
        };
        self.sync_as(writing, &lead)
    }

    /// Makes durable all that is written by now.
    pub(super) fn sync_as(&self, writing: &Writing, lead: &Lead<'_>) -> Result<(), WriteError> {
        // The one who led before may have failed.
        self.writing()?;
        let (file, path, number, end, last) = {
            let journal = writing.journal();
            let Some(log) = &journal.log else {
                return Ok(());
            };
            let path = log.path().to_owned();
            let last = journal.last_sequence;
            (log.file.clone(), path, log.number, log.end, last)
        };
        // Without the journal: others write on meanwhile.
        let synced = file.sync().map_err(WriteError::io(SYNCING, &path));
        synced.map_err(|error| writing.note(error.into()))?;
        // Who replaced the lock's file may have taken over before these records were there.
        writing.check_lock()?;
        if let Some(log) = &mut writing.journal().log
            && log.number == number
        {
            log.durable = log.durable.max(end);
        }
        lead.reached(last);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::InMemory;
    use super::super::{Agent, CreateOptions, Kind, NewMemory, Store};
    use crate::kernel::Dtype;
    use std::sync::Arc;

    /// A store with a memory that was touched and nobody has looked at since.
    fn touched() -> Store {
        let options = CreateOptions {
            dim: 1.try_into().unwrap(),
            dtype: Dtype::F32,
            model: None,
        };
        let store = Store::create_on(Arc::new(InMemory::new()), "store", &options).unwrap();
        let memory = NewMemory {
            key: None,
            kind: Kind::OBSERVATION,
            text: "",
            embedding: Some(&[1.0]),
            created: 0,
            last_access: 0,
            expiry: None,
            importance: 1.0,
            evidence: &[],
            depth: 0,
            supersedes: None,
            payload: b"",
        };
        store.append(&[memory]).unwrap();
        store.touch(Agent::OWN, &[0], 5).unwrap();
        store
    }

    #[test]
    fn who_looks_sees_the_state_before_while_it_is_changed() {
        let store = touched();
        let mut journal = store.writing().unwrap().journal();
        store.change_state(&mut journal, |state| {
            assert!(state.delete(0));
            let current = store.current.try_lock();
            assert!(current.unwrap().state().live.is_live(0));
        });
        assert!(!store.snapshot().is_live(0));
    }

    #[test]
    fn a_little_is_changed_in_place_unless_somebody_has_the_state() {
        let store = touched();
        let mut journal = store.writing().unwrap().journal();
        let mut place = |change: fn(&mut super::State)| {
            let before = Arc::as_ptr(store.current().state());
            store.change_state_a_little(&mut journal, change);
            before == Arc::as_ptr(store.current().state())
        };
        assert!(place(|state| assert!(state.touch(Agent::OWN, 0, 6))));
        let snapshot = store.snapshot();
        assert!(!place(|state| assert!(state.touch(Agent::OWN, 0, 7))));
        assert_eq!(snapshot.last_access(Agent::OWN, 0), 6);
        assert_eq!(store.snapshot().last_access(Agent::OWN, 0), 7);
    }
}
