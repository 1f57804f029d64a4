//! Group commit: one thread syncs the journal for all whose records were written before.

use std::sync::{Condvar, Mutex, MutexGuard};

/// How much of the journal is durable, and whether somebody is at it.
pub(super) struct Commits {
    progress: Mutex<Progress>,
    changed: Condvar,
}

struct Progress {
    /// The last record that is durable.
    durable: u64,
    /// Somebody syncs.
    led: bool,
}

impl Commits {
    /// For a journal whose records up to `durable` are so.
    pub(super) fn new(durable: u64) -> Commits {
        let led = false;
        Commits {
            progress: Mutex::new(Progress { durable, led }),
            changed: Condvar::new(),
        }
    }

    /// Waits until the record `sequence` is durable (`None`) or nobody is syncing: then the caller does, for
    /// all that was written by then.
    pub(super) fn lead(&self, sequence: u64) -> Option<Lead<'_>> {
        let mut progress = self.progress();
        loop {
            if progress.durable >= sequence {
                return None;
            }
            if !progress.led {
                progress.led = true;
                return Some(Lead(self));
            }
            progress = (self.changed.wait(progress)).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Waits until nobody is syncing, whatever is durable, and keeps others from it.
    pub(super) fn lead_alone(&self) -> Lead<'_> {
        let progress = self.progress();
        let waited = (self.changed).wait_while(progress, |progress| progress.led);
        waited.unwrap_or_else(|e| e.into_inner()).led = true;
        Lead(self)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The right to sync, until it is dropped.
pub(super) struct Lead<'a>(&'a Commits);

impl Lead<'_> {
    /// Says that the records up to `sequence` are durable.
    pub(super) fn reached(&self, sequence: u64) {
        let mut progress = self.0.progress();
        progress.durable = progress.durable.max(sequence);
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.0.progress().led = false;
        self.0.changed.notify_all();
    }
}
