//! Creating and opening a store.

use super::Store;
use super::column::Hold;
use super::current::Current;
use super::damage::{Damage, Problem};
use super::error::{CreateError, OpenError, SYNCING, WriteError};
use super::files::{Disk, Files, What};
use super::format::MAX_DIM;
use super::lock::Lock;
use super::manifest::{Manifest, sync_directory};
use super::recover::{self, Loaded};
use super::temporary::Temporary;
use super::verify::{self, VerifyReport};
use super::writing::Writing;
use crate::kernel::Dtype;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What a store is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOptions {
    /// Elements per embedding; at most 2^20.
    pub dim: NonZeroUsize,
    /// How embeddings are stored.
    pub dtype: Dtype,
    /// The name of the model that makes the embeddings, if it is to be kept.
    pub model: Option<String>,
}

/// How a store is opened. The default is for writing, by map, without reading the columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Take no lock and change no byte.
    pub read_only: bool,
    /// Check everything that [`verify()`](super::verify()) checks, but for what is kept of the journal, and refuse a
    /// damaged store.
    pub verify: bool,
    /// Read the columns into memory instead of mapping them, checking their checksums: nothing that
    /// happens to the files later can be seen or do harm. A writer reads them again after each checkpoint.
    pub in_memory: bool,
    /// What a writer's operations promise when they return.
    pub durability: Durability,
    /// How long the journal may grow, in bytes, before it is folded into the columns; `u64::MAX`: until it
    /// is closed. A longer journal makes opening slower.
    pub checkpoint_bytes: u64,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            read_only: false,
            verify: false,
            in_memory: false,
            durability: Durability::default(),
            checkpoint_bytes: 64 << 20,
        }
    }
}

/// What operations promise when they return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durability {
    /// Of all operations but touches; [`OnDisk`](Promise::OnDisk) by default. Bulk appends are on disk in any case.
    pub appends: Promise,
    /// Of touches; [`Written`](Promise::Written) by default: a sync for every retrieval would cost more than the
    /// retrieval.
    pub touches: Promise,
}

impl Default for Durability {
    fn default() -> Durability {
        Durability {
            appends: Promise::OnDisk,
            touches: Promise::Written,
        }
    }
}

/// What is true of an operation that returned. Whatever is promised, a store that is opened after a crash holds
/// what was done up to some moment, and nothing of what was done later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It is in the journal: it survives the end of the process, also by a signal. A crash of the system can undo
    /// it until the next sync.
    Written,
    /// It was synced: it survives a crash of the system.
    OnDisk,
}

/// How often a reader starts over when a writer replaced the files under it.
const ATTEMPTS: usize = 100;

impl Store {
    /// Creates a store and opens it for writing. `path` must not exist, or be an empty directory; the
    /// directory it lies in must exist.
    ///
    /// The store is made under a temporary name beside `path` (`.<name>.<pid>.<n>.tmp`) and renamed, so
    /// there is a whole store or none. What killed processes left under such names is removed by the
    /// next creation of the same path, as far as it is surely theirs (on Linux).
    ///
    /// # Errors
    /// If something else is there, if `dim` is too large, or if the operating system refuses.
    pub fn create(path: impl AsRef<Path>, options: &CreateOptions) -> Result<Store, CreateError> {
        Store::create_on(Arc::new(Disk), path, options)
    }

    /// As [`create`](Store::create), in any file system, [in memory](super::files::InMemory) say.
    ///
    /// # Errors
    /// As [`create`](Store::create).
    pub fn create_on(
        files: Arc<dyn Files>,
        path: impl AsRef<Path>,
        options: &CreateOptions,
    ) -> Result<Store, CreateError> {
        let path = path.as_ref();
        check_dim(options.dim)?;
        let (manifest, lock) = make(&files, path, |dir| {
            fill(&*files, dir, options).map_err(CreateError::from)
        })?;
        let hold = Hold::Mapped;
        let loaded = recover::load(&*files, path, &manifest, hold).map_err(WriteError::from)?;
        let options = OpenOptions::default();
        Ok(Store::new(files, path, hold, &options, loaded, Some(lock)))
    }

    /// Opens a store for writing, by map: no other program may write to its directory while the handle lives
    /// ([why](Store#the-callers-duty)).
    ///
    /// # Errors
    /// If there is no undamaged store of this format at `path`, or another handle is writing to it.
    pub fn open(path: impl AsRef<Path>) -> Result<Store, OpenError> {
        Store::open_with(path, &OpenOptions::default())
    }

    /// Opens a store for reading, by map. Takes no lock, waits for no writer and changes no byte; what a
    /// writer commits later is not seen. No other program may write to the directory while the handle lives
    /// ([why](Store#the-callers-duty)).
    ///
    /// # Errors
    /// If there is no undamaged store of this format at `path`.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Store, OpenError> {
        let options = OpenOptions {
            read_only: true,
            ..OpenOptions::default()
        };
        Store::open_with(path, &options)
    }

    /// Opens a store.
    ///
    /// # Errors
    /// As [`open`](Store::open). With `verify` also if anything is damaged, with `in_memory` also if a
    /// checksum is wrong.
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Store, OpenError> {
        Store::open_on(Arc::new(Disk), path, options)
    }

    /// As [`open_with`](Store::open_with), in any file system, [in memory](super::files::InMemory) say.
    ///
    /// # Errors
    /// As [`open_with`](Store::open_with).
    pub fn open_on(
        files: Arc<dyn Files>,
        path: impl AsRef<Path>,
        options: &OpenOptions,
    ) -> Result<Store, OpenError> {
        let dir = path.as_ref();
        let hold = match options.in_memory {
            true => Hold::InMemory,
            false => Hold::Mapped,
        };
        // Before the lock: what is no store gets no lock file either.
        Manifest::read(&*files, dir)?;
        let lock = match options.read_only {
            true => None,
            false => Some(Lock::take(&*files, dir)?),
        };
        let (loaded, report) = read_whole(&*files, dir, |manifest| {
            let loaded = recover::load(&*files, dir, manifest, hold)?;
            let report = match options.verify {
                true => verify::check_current(&*files, dir, manifest)?,
                false => VerifyReport::default(),
            };
            Ok((loaded, report))
        })?;
        if let Some(first) = report.damages.first() {
            return Err(OpenError::Damaged {
                first: first.clone(),
                count: report.damages.len(),
            });
        }
        Ok(Store::new(files, dir, hold, options, loaded, lock))
    }

    fn new(
        files: Arc<dyn Files>,
        dir: &Path,
        hold: Hold,
        options: &OpenOptions,
        loaded: Loaded,
        lock: Option<Lock>,
    ) -> Store {
        Store {
            files,
            dir: dir.to_owned(),
            hold,
            durability: options.durability,
            checkpoint_bytes: options.checkpoint_bytes,
            current: Mutex::new(Current::new(loaded.state)),
            writing: lock.map(|lock| Writing::new(lock, &loaded.journal)),
            recovery: loaded.journal.recovery,
        }
    }
}

/// Reads a manifest and what it names. A writer may be at work: if it published a new manifest meanwhile, all is
/// read again; and what looks like damage counts only if it is found twice.
pub(super) fn read_whole<T>(
    files: &dyn Files,
    dir: &Path,
    read: impl Fn(&Manifest) -> Result<T, Damage>,
) -> Result<T, OpenError> {
    let mut manifest = Manifest::read(files, dir)?;
    let mut damage = None;
    for _ in 0..ATTEMPTS {
        let whole = read(&manifest);
        let now = Manifest::read(files, dir)?;
        if now.sequence != manifest.sequence {
            (manifest, damage) = (now, None);
            continue;
        }
        match whole {
            Ok(whole) => return Ok(whole),
            Err(found) if damage.as_ref() == Some(&found) => return Err(found.into()),
            Err(found) => damage = Some(found),
        }
    }
    // Never still: the writer publishes faster than it can be read.
    Ok(read(&manifest)?)
}

impl From<Damage> for OpenError {
    fn from(damage: Damage) -> OpenError {
        let Damage { path, .. } = damage;
        match damage.problem {
            Problem::Missing => OpenError::ColumnMissing { path },
            Problem::Cut { expected, found } => OpenError::ColumnCut {
                path,
                expected,
                found,
            },
            Problem::NewerSegment { found } => OpenError::Newer {
                path,
                found: found.into(),
            },
            Problem::Unreadable(what) => OpenError::Io {
                doing: "reading",
                path,
                source: io::Error::other(what),
            },
            problem => OpenError::Damaged {
                first: Damage {
                    path,
                    offset: damage.offset,
                    problem,
                },
                count: 1,
            },
        }
    }
}

/// Whether a store can have embeddings of so many elements.
pub(super) fn check_dim(dim: NonZeroUsize) -> Result<(), CreateError> {
    match dim.get() {
        ..=MAX_DIM => Ok(()),
        dim => Err(CreateError::Dim { dim }),
    }
}

/// Makes a store's directory under a temporary name beside `path`, has it filled, and renames it: there is a
/// whole store or none. Gives what `fill` gave, and the store's lock.
pub(super) fn make<T, E: From<CreateError>>(
    files: &Arc<dyn Files>,
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<(T, Lock), E> {
    let failed = |error: WriteError| E::from(CreateError::Write(error));
    if path.file_name().is_none() {
        return Err(CreateError::NoName { path: path.into() }.into());
    }
    let exists = || CreateError::Exists { path: path.into() };
    match files.what(path) {
        Ok(What::Directory) => {
            let names = files.list(path).map_err(WriteError::io("listing", path));
            if !names.map_err(failed)?.is_empty() {
                return Err(exists().into());
            }
        }
        Ok(_) => return Err(exists().into()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(failed(WriteError::io("examining", path)(e))),
    }
    let making = WriteError::io("making a directory beside", path);
    let temporary = Temporary::beside(files.clone(), path).map_err(|e| failed(making(e)))?;
    let parent = temporary.parent().to_owned();
    let filled = fill(temporary.path())?;
    let lock = temporary.rename(path).map_err(|e| match e.kind() {
        io::ErrorKind::DirectoryNotEmpty
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::AlreadyExists => exists(),
        _ => WriteError::io("naming", path)(e).into(),
    })?;
    sync_directory(&**files, &parent).map_err(failed)?;
    Ok((filled, lock))
}

/// Makes an empty store in a directory that holds nothing but its lock.
pub(super) fn fill(
    files: &dyn Files,
    dir: &Path,
    options: &CreateOptions,
) -> Result<Manifest, WriteError> {
    let manifest = Manifest::new(options.dim, options.dtype, options.model.clone());
    for entry in &manifest.columns {
        let path = dir.join(&entry.file);
        let file = (files.create_new(&path)).map_err(WriteError::io("creating", &path))?;
        file.sync().map_err(WriteError::io(SYNCING, &path))?;
    }
    manifest.publish(files, dir)?;
    Ok(manifest)
}
