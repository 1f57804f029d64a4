//! The new store: built beside its destination, renamed when it is complete.

use super::report::Report;
use super::{ImportError, Place, Sink, Source};
use crate::store::files::Disk;
use crate::store::{AppendError, BulkAppend, CreateOptions, NewMemory, Store, Temporary};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Nothing may be at `destination`, not even an empty folder.
pub(super) fn check(destination: &Path) -> Result<(), ImportError> {
    match fs::symlink_metadata(destination) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(io_error(destination, "", e)),
        Ok(_) => Err(ImportError::DestinationExists {
            path: destination.to_owned(),
        }),
    }
}

/// Imports `source` into a new store at `destination`.
pub(super) fn build(
    destination: &Path,
    source: impl Source,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, ImportError> {
    let options = source.plan().store();
    create(destination, &options, |store| fill(store, source, progress))
}

/// Makes a new store at `destination` of what `fill` puts into it.
pub(super) fn create(
    destination: &Path,
    options: &CreateOptions,
    fill: impl FnOnce(&Store) -> Result<Report, ImportError>,
) -> Result<Report, ImportError> {
    if destination.file_name().is_none() {
        let source = io::ErrorKind::InvalidInput.into();
        return Err(io_error(destination, "it names no new folder", source));
    }
    let temporary = Temporary::beside(Arc::new(Disk), destination).map_err(|e| {
        let remedy = "the folder it lies in must exist and be writable";
        io_error(destination, remedy, e)
    })?;
    let store = Store::create(temporary.path().join(STORE), options)?;
    let report = fill(&store)?;
    // Lets go of the lock and the maps before the files get their name.
    store.close().map_err(AppendError::from)?;
    let published = temporary.publish(STORE, destination);
    published.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => ImportError::DestinationExists {
            path: destination.to_owned(),
        },
        _ => io_error(destination, "no store was left there", e),
    })?;
    Ok(report)
}

fn fill(
    store: &Store,
    source: impl Source,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, ImportError> {
    let mut rows = Rows::new(store, source.memories(), progress)?;
    let report = source.feed(&mut rows)?;
    rows.bulk.commit()?;
    Ok(report)
}

/// Memories between two calls of `progress`.
const PROGRESS_EVERY: u64 = 4096;

/// The rows of a new store, and whom to tell how many there are.
pub(super) struct Rows<'s, 'p> {
    pub(super) bulk: BulkAppend<'s>,
    done: u64,
    total: u64,
    progress: &'p mut dyn FnMut(u64, u64),
}

impl<'s, 'p> Rows<'s, 'p> {
    pub(super) fn new(
        store: &'s Store,
        total: u64,
        progress: &'p mut dyn FnMut(u64, u64),
    ) -> Result<Rows<'s, 'p>, ImportError> {
        let mut bulk = store.bulk()?;
        bulk.allow_any_evidence();
        progress(0, total);
        Ok(Rows {
            bulk,
            done: 0,
            total,
            progress,
        })
    }
}

impl Sink for Rows<'_, '_> {
    fn push(&mut self, place: &Place, memory: &NewMemory<'_>) -> Result<(), ImportError> {
        match self.bulk.push(memory) {
            Ok(_) => {
                self.done += 1;
                if self.done.is_multiple_of(PROGRESS_EVERY) || self.done == self.total {
                    (self.progress)(self.done, self.total);
                }
                Ok(())
            }
            Err(AppendError::Refused { problem, .. }) => Err(ImportError::Refused {
                place: place.clone(),
                problem,
            }),
            Err(other) => Err(other.into()),
        }
    }
}

/// The store's own folder inside the temporary one: it is the store that creates it.
const STORE: &str = "store";

fn io_error(path: &Path, remedy: &'static str, source: io::Error) -> ImportError {
    ImportError::Io {
        path: path.to_owned(),
        remedy,
        source,
    }
}
