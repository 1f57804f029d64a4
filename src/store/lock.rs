//! One writer per store. The lock is the file system's, on an empty file of its own: on disk it ends with
//! the process that holds it, however that ends, and a lock file left behind blocks nobody.

use super::error::{OpenError, WriteError};
use super::files::{FileLock, Files, What};
use super::format::LOCK;
use std::path::{Path, PathBuf};

pub(super) struct Lock {
    held: Box<dyn FileLock>,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of the store at `dir`, or says at once that another handle has it.
    pub(super) fn take(files: &dyn Files, dir: &Path) -> Result<Lock, OpenError> {
        let path = dir.join(LOCK);
        match files.lock(&path).map_err(OpenError::io("opening", &path))? {
            Some(held) => Ok(Lock { held, path }),
            None => Err(OpenError::Locked {
                path: dir.to_owned(),
            }),
        }
    }

    /// The lock that a process which ended left in `dir`, if there is one and nobody has it.
    pub(super) fn take_left(files: &dyn Files, dir: &Path) -> Option<Lock> {
        let path = dir.join(LOCK);
        // None is made: a directory without one may be of a process that is about to make its own.
        match files.what(&path) {
            Ok(What::File) => Lock::take(files, dir).ok(),
            _ => None,
        }
    }

    /// The lock's file is still where every other writer looks for it.
    pub(super) fn check(&self) -> Result<(), WriteError> {
        let current = self.held.is_current();
        match current.map_err(WriteError::io("examining", &self.path))? {
            true => Ok(()),
            false => Err(WriteError::LockLost {
                path: self.path.clone(),
            }),
        }
    }

    /// The lock of a store that was renamed to `dir` since it was taken.
    pub(super) fn moved(mut self, dir: &Path) -> Lock {
        self.path = dir.join(LOCK);
        self.held.moved(&self.path);
        self
    }
}
