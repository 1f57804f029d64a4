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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    #[test]
    fn one_sync_serves_all_that_was_written_before_it() {
        let (commits, written, syncs) = (Commits::new(0), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let own = written.fetch_add(1, Ordering::SeqCst) + 1;
                        if let Some(lead) = commits.lead(own) {
                            let all = written.load(Ordering::SeqCst);
                            syncs.fetch_add(1, Ordering::SeqCst);
                            thread::yield_now();
                            lead.reached(all);
                        }
                        assert!(commits.lead(own).is_none());
                    }
                });
            }
        });
        assert_eq!(written.into_inner(), 400);
        assert!(syncs.into_inner() <= 400);
        assert!(commits.lead(400).is_none());
    }

    #[test]
    fn a_lead_that_reached_nothing_is_taken_by_the_next() {
        let commits = Commits::new(3);
        assert!(commits.lead(3).is_none());
        drop(commits.lead(4).expect("4 is not durable"));
        let lead = commits.lead(4).expect("nor now");
        lead.reached(5);
        drop(lead);
        assert!(commits.lead(5).is_none());
        drop(commits.lead_alone());
    }
}
