//! Creating and opening a store.

use super::Store;
use super::column::{self, Columns, Hold};
use super::damage::{Damage, Problem};
use super::error::{CreateError, OpenError, WriteError};
use super::files::{self, Disk, Files, What};
use super::format::{Column, MAX_DIM};
use super::kinds::Kinds;
use super::lock::Lock;
use super::manifest::{Manifest, sync_directory};
use super::temporary::Temporary;
use super::verify::{self, VerifyReport};
use crate::kernel::Dtype;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, OnceLock};

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Take no lock and change no byte.
    pub read_only: bool,
    /// Check everything that [`verify()`](super::verify()) checks, and refuse a damaged store.
    pub verify: bool,
    /// Read the columns into memory instead of mapping them, checking their checksums: nothing that
    /// happens to the files later can be seen or do harm. A writer reads them again after each append.
    pub in_memory: bool,
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

    /// As [`create`](Store::create), in any file system, [in memory](files::InMemory) say.
    ///
    /// # Errors
    /// As [`create`](Store::create).
    pub fn create_on(
        files: Arc<dyn Files>,
        path: impl AsRef<Path>,
        options: &CreateOptions,
    ) -> Result<Store, CreateError> {
        let path = path.as_ref();
        let dim = options.dim.get();
        if dim > MAX_DIM {
            return Err(CreateError::Dim { dim });
        }
        if path.file_name().is_none() {
            return Err(CreateError::NoName { path: path.into() });
        }
        let exists = || CreateError::Exists { path: path.into() };
        match files.what(path) {
            Ok(What::Directory) => {
                let names = files.list(path).map_err(WriteError::io("listing", path))?;
                if !names.is_empty() {
                    return Err(exists());
                }
            }
            Ok(_) => return Err(exists()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(WriteError::io("examining", path)(e).into()),
        }
        let making = WriteError::io("making a directory beside", path);
        let temporary = Temporary::beside(files.clone(), path).map_err(making)?;
        let parent = temporary.parent().to_owned();
        let manifest = fill(&*files, temporary.path(), options)?;
        let lock = temporary.rename(path).map_err(|e| match e.kind() {
            io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists => exists(),
            _ => WriteError::io("naming", path)(e).into(),
        })?;
        sync_directory(&*files, &parent)?;
        let columns =
            Columns::load(&*files, path, &manifest, Hold::Mapped).map_err(WriteError::from)?;
        Ok(Store {
            files,
            dir: path.to_owned(),
            manifest,
            columns,
            kinds: Kinds::default(),
            last_access: Vec::new(),
            touched: false,
            keys: OnceLock::new(),
            hold: Hold::Mapped,
            lock: Some(lock),
            poisoned: false,
        })
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

    /// As [`open_with`](Store::open_with), in any file system, [in memory](files::InMemory) say.
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
        let (manifest, (columns, last_access, report)) = read_whole(&*files, dir, |manifest| {
            let columns = Columns::load(&*files, dir, manifest, hold)?;
            let last_access = load_last_access(&*files, dir, manifest)?;
            let report = match options.verify {
                true => verify::check_current(&*files, dir, manifest)?,
                false => VerifyReport::default(),
            };
            Ok((columns, last_access, report))
        })?;
        if let Some(first) = report.damages.first() {
            return Err(OpenError::Damaged {
                first: first.clone(),
                count: report.damages.len(),
            });
        }
        if lock.is_some() {
            sweep(&*files, dir, &manifest);
        }
        Ok(Store {
            files,
            dir: dir.to_owned(),
            kinds: Kinds::new(&manifest.kinds),
            manifest,
            columns,
            last_access,
            touched: false,
            keys: OnceLock::new(),
            hold,
            lock,
            poisoned: false,
        })
    }
}

/// Reads a manifest and what it names. If a file is gone because a writer has published a new manifest
/// meanwhile, starts over.
pub(super) fn read_whole<T>(
    files: &dyn Files,
    dir: &Path,
    read: impl Fn(&Manifest) -> Result<T, Damage>,
) -> Result<(Manifest, T), OpenError> {
    let mut manifest = Manifest::read(files, dir)?;
    for _ in 1..ATTEMPTS {
        match read(&manifest) {
            Ok(whole) => return Ok((manifest, whole)),
            Err(damage) => {
                let newer = Manifest::read(files, dir)?;
                if newer.sequence == manifest.sequence {
                    return Err(damage.into());
                }
                manifest = newer;
            }
        }
    }
    let whole = read(&manifest)?;
    Ok((manifest, whole))
}

/// Last access is kept in memory and written anew, so its old checksums are checked here.
fn load_last_access(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
) -> Result<Vec<i64>, Damage> {
    let entry = manifest.column(Column::LastAccess);
    let path = dir.join(&entry.file);
    let file = column::open(files, &path, entry)?;
    let mut last_access = vec![0_i64; manifest.rows as usize];
    let bytes = bytemuck::cast_slice_mut(&mut last_access);
    files::read_exact_at(&*file, 0, bytes).map_err(|e| column::unreadable(&path, &e))?;
    let first = column::check(&path, &entry.sums, bytes).next();
    first.map_or(Ok(last_access), Err)
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

/// Makes an empty store in a directory that holds nothing but its lock.
fn fill(files: &dyn Files, dir: &Path, options: &CreateOptions) -> Result<Manifest, WriteError> {
    let manifest = Manifest::new(options.dim, options.dtype, options.model.clone());
    for entry in &manifest.columns {
        let path = dir.join(&entry.file);
        let file = (files.create_new(&path)).map_err(WriteError::io("creating", &path))?;
        file.sync().map_err(WriteError::io("syncing", &path))?;
    }
    manifest.publish(files, dir)?;
    Ok(manifest)
}

/// Removes what a writer that was stopped left behind: manifests half written, numbered column files that
/// no manifest names, and bytes past the committed ones. As well as it goes; the next writer tries again.
fn sweep(files: &dyn Files, dir: &Path, manifest: &Manifest) {
    let Ok(names) = files.list(dir) else {
        return;
    };
    for name in names {
        let Some(name) = name.to_str() else {
            continue;
        };
        let numbered = Column::ALL.into_iter().any(|column| {
            matches!(column.sequence_in(manifest.dtype, name), Some(Some(_)))
                && manifest.column(column).file != name
        });
        if numbered || Manifest::is_temporary(name) {
            let _ = files.remove_file(&dir.join(name));
        }
    }
    for entry in &manifest.columns {
        let path = dir.join(&entry.file);
        if let Ok(file) = files.open_to_write(&path)
            && file.bytes().is_ok_and(|found| found > entry.bytes)
        {
            let _ = file.set_len(entry.bytes);
        }
    }
}
