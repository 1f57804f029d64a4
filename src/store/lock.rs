//! One writer per store. The lock is the operating system's, on an empty file of its own: it ends with
//! the process that holds it, however that ends, and a lock file left behind blocks nobody.

use super::error::{OpenError, WriteError};
use super::format::LOCK;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of the store at `dir`, or says at once that another handle has it.
    pub(super) fn take(dir: &Path) -> Result<Lock, OpenError> {
        let path = dir.join(LOCK);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(OpenError::io("opening", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { file, path }),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
                path: dir.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(OpenError::io("locking", &path)(source)),
        }
    }

    /// The lock that a process which ended left in `dir`, if there is one and nobody has it.
    pub(super) fn take_left(dir: &Path) -> Option<Lock> {
        let path = dir.join(LOCK);
        let file = File::options().read(true).write(true).open(&path).ok()?;
        file.try_lock().ok()?;
        Some(Lock { file, path })
    }

    /// The lock's file is still where every other writer looks for it.
    pub(super) fn check(&self) -> Result<(), WriteError> {
        let lost = |_| WriteError::LockLost {
            path: self.path.clone(),
        };
        let there = std::fs::metadata(&self.path).map_err(lost)?;
        let held = (self.file.metadata()).map_err(WriteError::io("examining", &self.path))?;
        match same_file(&there, &held) {
            true => Ok(()),
            false => Err(lost(std::io::ErrorKind::NotFound.into())),
        }
    }

    /// The lock of a store that was renamed to `dir` since it was taken.
    pub(super) fn moved(mut self, dir: &Path) -> Lock {
        self.path = dir.join(LOCK);
        self
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would do, if no process that another thread is just starting had a copy of it.
        let _ = self.file.unlock();
    }
}

#[cfg(unix)]
fn same_file(a: &std::fs::Metadata, b: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Elsewhere the standard library gives files no identity; an open file cannot be removed there.
#[cfg(not(unix))]
fn same_file(_: &std::fs::Metadata, _: &std::fs::Metadata) -> bool {
    true
}
