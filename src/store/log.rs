//! The segment of the journal that a handle writes. No handle writes another's.

use super::error::{SYNCING, WriteError};
use super::files::{self, File, Files};
use super::journal::{HEADER_BYTES, Header, Origin, Place, file_name, seal};
use super::manifest::{create_anew, sync_directory};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct Log {
    pub(super) file: Arc<dyn File>,
    path: PathBuf,
    pub(super) number: u64,
    salt: u64,
    /// Where the next record goes.
    pub(super) end: u64,
    /// How much is known to be durable.
    pub(super) durable: u64,
}

/// Why a step failed, and whether what it left can do harm.
pub(super) struct Failed {
    pub(super) error: WriteError,
    pub(super) poisons: bool,
}

impl From<WriteError> for Failed {
    fn from(error: WriteError) -> Failed {
        let poisons = error.poisons();
        Failed { error, poisons }
    }
}

/// A number that nobody can foresee.
pub(super) fn salt() -> u64 {
    RandomState::new().hash_one("memorank")
}

impl Log {
    /// A segment that is in its file, durable up to its end.
    pub(super) fn new(file: Arc<dyn File>, path: PathBuf, number: u64, salt: u64, end: u64) -> Log {
        Log {
            file,
            path,
            number,
            salt,
            end,
            durable: end,
        }
    }

    /// Makes the segment after this one, all of which is durable. `first_sequence` is that of its first
    /// record. Once it is there, nothing more may be written to this one.
    pub(super) fn next(
        &self,
        files: &dyn Files,
        dir: &Path,
        first_sequence: u64,
    ) -> Result<Log, Failed> {
        let number = self.number + 1;
        let path = dir.join(file_name(number));
        let salt = salt();
        let header = Header {
            number,
            first_sequence,
            origin: Origin::Continues {
                previous_bytes: self.end,
            },
            salt,
        };
        let made = create_anew(files, &path).and_then(|file| {
            files::write_all_at(&*file, 0, &header.render())
                .map_err(WriteError::io("writing", &path))?;
            file.sync().map_err(WriteError::io(SYNCING, &path))?;
            sync_directory(files, dir)?;
            Ok(file)
        });
        match made {
            Ok(file) => Ok(Log::new(
                file.into(),
                path,
                number,
                salt,
                HEADER_BYTES as u64,
            )),
            Err(error) => {
                // It must not be found after a crash, when this segment has grown.
                let removed = match files.remove_file(&path) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
                    removed => removed,
                };
                let gone = removed.is_ok() && files.sync_dir(dir).is_ok();
                let poisons = !gone || error.poisons();
                Err(Failed { error, poisons })
            }
        }
    }

    /// Writes an encoded record as number `sequence`. After an error it is not there.
    pub(super) fn write(&mut self, record: &mut [u8], sequence: u64) -> Result<(), Failed> {
        let place = Place {
            salt: self.salt,
            sequence,
            durable: self.durable,
        };
        seal(record, &place);
        if let Err(e) = files::write_all_at(&*self.file, self.end, record) {
            let poisons = self.file.set_len(self.end).is_err();
            let error = WriteError::io("writing", &self.path)(e);
            return Err(Failed { error, poisons });
        }
        self.end += record.len() as u64;
        Ok(())
    }

    /// Syncs it, to its end.
    pub(super) fn sync(&mut self) -> Result<(), WriteError> {
        (self.file.sync()).map_err(WriteError::io(SYNCING, &self.path))?;
        self.durable = self.end;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
