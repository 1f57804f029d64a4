//! History: what the store held before a touch, made of what it holds now by undoing what the journal says was done
//! since.
//!
//! - Every record says what is needed to undo it, as long as the rows are there. Only a compaction takes rows away.
//! - The journal is kept for it as far as [`Store::keep_history`] says; what
//!   was not folded yet is there in any case.
//! - Nothing else reads what is kept: damage in it is told by [`verify()`](super::verify()), and by who goes back.

mod error;
mod keep;
mod log;

pub use error::HistoryError;
pub(super) use log::trim;

use super::damage::Damage;
use super::files::Files;
use super::journal::{Body, Record, Seen, Touch};
use super::manifest::Manifest;
use super::own::Agent;
use super::state::State;
use super::{Snapshot, Store};
use log::{End, Failed, Log};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// A touch as its record says it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Touched {
    /// Who retrieved.
    pub agent: Agent,
    /// When, in microseconds since the Unix epoch.
    pub now: i64,
    /// What was retrieved: ascending, each once.
    pub ids: Vec<u64>,
    /// The caller's bytes.
    pub note: Vec<u8>,
}

impl Touched {
    fn new(touch: &Touch<'_>) -> Touched {
        Touched {
            agent: Agent(touch.agent),
            now: touch.now,
            ids: touch.ids.iter().collect(),
            note: touch.note.to_vec(),
        }
    }
}

/// How often reading starts over when a writer removed a file under it.
const ATTEMPTS: usize = 100;

impl Store {
    /// The touches that the journal holds, with the numbers of their records, the oldest first: those that are not
    /// folded yet, and of the others those that were [kept](Store::keep_history), back to the first gap
    /// if there is one. A handle that only reads sees those from before it was opened.
    ///
    /// # Errors
    /// If a segment is damaged or cannot be read.
    pub fn touches(&self) -> Result<Vec<(u64, Touched)>, HistoryError> {
        let now = self.snapshot();
        let mut touches = self.retried(&now, |log| {
            let mut touches = Vec::new();
            let end = log.back_from(now.sequence(), |record| {
                if let Body::Touch(touch) = &record.body {
                    touches.push((record.sequence, Touched::new(touch)));
                }
                ControlFlow::Continue(())
            })?;
            match end {
                End::Stopped | End::Start(_) | End::Gap(_) => Ok(touches),
                End::Damaged(damage) => Err(Failed::Refused(damage.into())),
            }
        })?;
        touches.reverse();
        Ok(touches)
    }

    /// The store as the touch with this number saw it, and the touch: the snapshot that was ranked, if the touch was
    /// given [one](super::NewTouch::seen), and else the store just before it. It has the same memories, last accesses,
    /// importances and vectors, to the bit, in the same rows (but after a [compaction](Store::compact), which numbers
    /// rows anew). It may name kinds that came later.
    ///
    /// It takes time and memory for what changed since, and one segment of the journal.
    ///
    /// # Errors
    /// If there is no such record, it is not a touch, the journal was not kept so far or is damaged, or a memory that
    /// was there is gone by a compaction.
    ///
    /// ```
    /// # use memorank::kernel::Dtype;
    /// use memorank::store::{Agent, NewTouch, Store};
    /// # use memorank::store::{CreateOptions, Kind, NewMemory};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("isabella");
    /// # let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F16, model: None };
    /// let store = Store::create(&path, &options)?;
    /// store.keep_history(1 << 30)?;
    /// # store.append(&[NewMemory {
    /// #     key: None,
    /// #     kind: Kind::OBSERVATION,
    /// #     text: "the coffee is ready",
    /// #     embedding: Some(&[0.6, 0.8]),
    /// #     created: 0,
    /// #     last_access: 0,
    /// #     expiry: None,
    /// #     importance: 3.0,
    /// #     evidence: &[],
    /// #     depth: 0,
    /// #     supersedes: None,
    /// #     payload: b"",
    /// # }])?;
    /// let touch = NewTouch { agent: Agent::OWN, ids: &[0], now: 5, note: b"coffee?", seen: None };
    /// let sequence = store.touch_with(&touch)?.expect("there is an id, and history");
    /// store.delete(&[0])?;
    /// store.checkpoint()?;
    ///
    /// let (before, touched) = store.before(sequence)?;
    /// assert_eq!(before.text(0)?, "the coffee is ready");
    /// assert_eq!(before.last_access(Agent::OWN, 0), 0);
    /// assert_eq!((touched.ids, touched.note), (vec![0], b"coffee?".to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn before(&self, sequence: u64) -> Result<(Snapshot, Touched), HistoryError> {
        let now = self.snapshot();
        let last = now.sequence();
        if sequence == 0 || sequence > last {
            return Err(HistoryError::NoRecord { sequence, last });
        }
        self.retried(&now, |log| {
            let mut way = WayBack::new(&now, log.embedding_bytes, sequence);
            let end = log.back_from(last, |record| way.undo(record))?;
            way.arrived(sequence, end).map_err(Failed::Refused)
        })
    }

    /// Reads the journal, again if a writer removed a part of it meanwhile.
    fn retried<T>(
        &self,
        now: &Snapshot,
        read: impl Fn(&Log<'_>) -> Result<T, Failed>,
    ) -> Result<T, HistoryError> {
        let log = log_of(&*self.files, &self.dir, now.manifest());
        let mut attempts = 1;
        loop {
            match read(&log) {
                Ok(done) => return Ok(done),
                Err(Failed::Vanished(_)) if attempts < ATTEMPTS => attempts += 1,
                Err(Failed::Vanished(error) | Failed::Refused(error)) => return Err(error),
            }
        }
    }
}

/// Checks the segments that were folded and kept, and gives the number of their records.
pub(super) fn check(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    damages: &mut Vec<Damage>,
) -> u64 {
    let (live, last) = (manifest.journal_segment, manifest.journal_folded);
    log_of(files, dir, manifest).check(live, last, damages)
}

fn log_of<'a>(files: &'a dyn Files, dir: &'a Path, manifest: &Manifest) -> Log<'a> {
    Log {
        files,
        dir,
        embedding_bytes: manifest.dim.get() * manifest.dtype.size_bytes(),
    }
}

/// On the way back to what a touch saw.
struct WayBack {
    state: State,
    /// The elements of a memory without an embedding.
    zeros: Vec<u8>,
    /// Memories that were deleted, and whose rows are no more.
    gone: Vec<u64>,
    /// The record of the next touch to take note of: first the one that was asked for, then those that it saw.
    next: u64,
    /// Those touches.
    touches: Vec<Touched>,
    /// What the first of them saw.
    seen: Option<Seen>,
}

impl WayBack {
    fn new(now: &Snapshot, embedding_bytes: usize, sequence: u64) -> WayBack {
        WayBack {
            state: State::clone(now.state()),
            zeros: vec![0; embedding_bytes],
            gone: Vec::new(),
            next: sequence,
            touches: Vec::new(),
            seen: None,
        }
    }

    /// Undoes a record, and breaks when that was the last.
    fn undo(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        if record.sequence == self.next {
            let Body::Touch(touch) = &record.body else {
                return ControlFlow::Break(());
            };
            let seen = *self.seen.get_or_insert(touch.seen);
            self.touches.push(Touched::new(touch));
            // They all saw the same state.
            self.next = (touch.seen.touch)
                .filter(|&other| other > seen.sequence)
                .unwrap_or(0);
        }
        (self.state).undo(&record.body, &self.zeros, &mut self.gone);
        match self.seen {
            Some(seen) if record.sequence <= seen.sequence + 1 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    /// What the touch `sequence` saw, if the end of the way is there.
    fn arrived(self, sequence: u64, end: End) -> Result<(Snapshot, Touched), HistoryError> {
        let WayBack {
            mut state,
            gone,
            mut touches,
            seen,
            ..
        } = self;
        match end {
            End::Stopped => {}
            End::Start(oldest) => {
                let needed = seen.map_or(sequence, |seen| seen.sequence + 1);
                return Err(HistoryError::NotKept {
                    sequence,
                    needed,
                    oldest,
                });
            }
            End::Gap(missing) => return Err(HistoryError::Gap { missing }),
            End::Damaged(damage) => return Err(damage.into()),
        }
        let Some(seen) = seen else {
            return Err(HistoryError::NotATouch { sequence });
        };
        if let Some(&id) = gone.iter().find(|&&id| id < seen.next_id) {
            return Err(HistoryError::Compacted { id });
        }
        state.truncate(seen.next_id);
        state.sequence = seen.sequence;
        let touched = touches.remove(0);
        for Touched {
            agent, now, ids, ..
        } in touches.iter().rev()
        {
            for &id in ids {
                if let Some(row) = state.slot_of_id(id).filter(|&row| state.live.is_live(row)) {
                    state.touch(*agent, row, *now);
                }
            }
        }
        let snapshot = Snapshot::new(Arc::new(state)).after_touch(seen.touch);
        Ok((snapshot, touched))
    }
}
