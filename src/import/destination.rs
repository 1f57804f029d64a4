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
    if destination.file_name().is_none() {
        let source = io::ErrorKind::InvalidInput.into();
        return Err(io_error(destination, "it names no new folder", source));
    }
    let temporary = Temporary::beside(Arc::new(Disk), destination).map_err(|e| {
        let remedy = "the folder it lies in must exist and be writable";
        io_error(destination, remedy, e)
    })?;
    let plan = source.plan();
    let options = CreateOptions {
        dim: plan.dim,
        dtype: plan.dtype,
        model: plan.model.clone(),
    };
    let store = Store::create(temporary.path().join(STORE), &options)?;
    let report = fill(&store, source, progress)?;
    // Lets go of the lock and the maps before the files get their name.
    store.close().map_err(AppendError::from)?;
    publish(&temporary, destination)?;
    Ok(report)
}

fn fill(
    store: &Store,
    source: impl Source,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, ImportError> {
    let mut bulk = store.bulk()?;
    bulk.allow_any_evidence();
    let mut rows = Rows {
        bulk,
        done: 0,
        total: source.memories(),
        progress,
    };
    (rows.progress)(0, rows.total);
    let report = source.feed(&mut rows)?;
    rows.bulk.commit()?;
    Ok(report)
}

/// Memories between two calls of `progress`.
const PROGRESS_EVERY: u64 = 4096;

struct Rows<'s, 'p> {
    bulk: BulkAppend<'s>,
    done: u64,
    total: u64,
    progress: &'p mut dyn FnMut(u64, u64),
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

/// Gives the store inside its place, durably.
fn publish(temporary: &Temporary, destination: &Path) -> Result<(), ImportError> {
    check(destination)?;
    let failed = |e| io_error(destination, "no store was left there", e);
    fs::rename(temporary.path().join(STORE), destination).map_err(failed)?;
    let synced = fs::File::open(temporary.parent()).and_then(|parent| parent.sync_all());
    synced.map_err(|e| {
        // Not known to be durable: better none. A second failure would add nothing to the first.
        let _ = fs::remove_dir_all(destination);
        failed(e)
    })
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
