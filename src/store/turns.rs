//! One at a time: appends, bulk appends, checkpoints and compactions exclude each other.

use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{self, ThreadId};

#[derive(Default)]
pub(super) struct Turns {
    /// Who has the turn.
    holder: Mutex<Option<ThreadId>>,
    free: Condvar,
}

/// The turn, until it is dropped. It belongs to a thread, so it cannot be sent to another.
pub(super) struct Turn<'a>(&'a Turns, PhantomData<MutexGuard<'a, ()>>);

/// This thread has the turn, and would wait for itself.
pub(super) struct Own;

impl Turns {
    /// Waits for the turn.
    pub(super) fn take(&self) -> Result<Turn<'_>, Own> {
        let mut holder = self.holder();
        let own = thread::current().id();
        while let Some(other) = *holder {
            if other == own {
                return Err(Own);
            }
            holder = self.free.wait(holder).unwrap_or_else(|e| e.into_inner());
        }
        *holder = Some(own);
        Ok(Turn(self, PhantomData))
    }

    /// Takes the turn if nobody has it.
    pub(super) fn try_take(&self) -> Option<Turn<'_>> {
        let mut holder = self.holder();
        match *holder {
            Some(_) => None,
            None => {
                *holder = Some(thread::current().id());
                Some(Turn(self, PhantomData))
            }
        }
    }

    fn holder(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.holder.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.holder() = None;
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn one_thread_has_the_turn_and_cannot_have_it_twice() {
        let (turns, inside) = (Turns::default(), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let turn = turns.take().ok().expect("this thread has it not");
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        assert!(turns.take().is_err() && turns.try_take().is_none());
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
        assert!(turns.try_take().is_some());
    }
}
