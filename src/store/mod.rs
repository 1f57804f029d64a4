//! The memory-mapped column store.
//!
//! **What it promises**
//!
//! - An append is in the store whole and durably when it returns, or not at all. A crash at any moment
//!   leaves the state before it or after it; the next open needs no repair.
//! - Every memory is checked before it is stored: what comes out of the columns can be scored.
//! - Last access survives closing. A touch is in memory until [`Store::sync`], [`Store::close`] or drop.
//! - One writer at a time; a second one is told so at once. Readers take no lock and never wait. A
//!   read-only handle changes no byte.
//! - Bytes that were published are never overwritten, and files never shortened below them. Data are
//!   synced before the manifest that names them.
//! - Anything that is no store, or a cut, damaged or newer one, is its own error with file and offset,
//!   and is left as it is. Damage is never a panic. Opening checks the manifest, all lengths and the
//!   checksums of what is read into memory; the mapped columns are checked by [`verify()`] and by
//!   [`OpenOptions::verify`]. A flipped bit in a mapped column that still makes a number is found by
//!   those and not by a ranking.
//! - Opening costs a few system calls per column and 8 bytes of reading per row, not the columns.
//! - Every byte goes through [`files`], which a caller can supply. A store can live in memory as well.
//!
//! Tested on Linux with little-endian x86-64; other systems are untested, big-endian ones refused. The
//! directory must not be written to by other programs while a handle is open: see
//! [`Store`](Store#the-callers-duty). The layout of the files is described in [`format`](mod@format).
//!
//! **Why not a kept store?** A ranking reads every embedding, in order, and changes the last access of
//! what it returns. So the store wants one contiguous matrix that is mapped as it is and grows by
//! append, beside one small column that changes at every read.
//!
//! - *LMDB* maps its file too, has real transactions and many readers, and is far better tested. But a
//!   value lies on pages of 4 KiB with a header on each (or on a run of overflow pages per value), so
//!   rows are not one array: the kernel would gather row by row, and a matrix kept as one value would be
//!   copied whole at each append.
//! - *redb* is the same bargain in safe Rust, with checksums; it does not hand out a map, it reads pages
//!   through a cache of its own.
//! - *SQLite* would give queries, and tools everywhere. Each blob is copied out through B-tree pages; scans
//!   measure the row decoder, not memory.
//! - *Arrow and Parquet files* have the right columns and can be mapped (Arrow). They are written once:
//!   an append is a new file or batch, a changed last access a new file, and commit, locking, checksums
//!   of what was mapped and recovery remain to be written around them.
//!
//! What is lost here: queries, transactions over several appends, other languages' libraries, and years
//! of other people's use. What is gained: files that are plain arrays (numpy maps them), and a scan
//! at the speed of memory. A user who needs the former keeps memories in a database and gives the kernel
//! borrowed columns; it needs no store.

mod access;
mod append;
mod behind;
mod column;
mod damage;
mod elements;
mod error;
mod evidence;
pub mod files;
pub mod format;
mod header;
mod info;
mod journal;
mod keys;
mod kinds;
mod live;
mod lock;
mod manifest;
mod map;
mod memory;
mod open;
mod segments;
mod snapshot;
mod state;
mod tail;
mod temporary;
mod touch;
mod verify;
mod writer;

pub use access::Agent;
pub use append::BulkAppend;
pub use damage::{Damage, Problem};
pub use error::{
    AppendError, CreateError, MemoryProblem, OpenError, ReadError, TouchError, WriteError,
};
pub use info::{FileInfo, Info};
pub use memory::{Kind, Memory, NewMemory, Reference};
pub use open::{CreateOptions, OpenOptions};
pub use segments::Segment;
pub use snapshot::Snapshot;
#[cfg(feature = "import")]
pub(crate) use temporary::Temporary;
pub use verify::{VerifyReport, verify, verify_on};

use crate::kernel::{Dtype, Rows};
use column::{Columns, Hold};
use files::Files;
#[cfg(feature = "import")]
pub(crate) use files::open_regular;
use format::{Column, NO_EXPIRY};
use keys::{Found, KeyIndex};
use kinds::Kinds;
use lock::Lock;
use manifest::Manifest;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

#[cfg(target_endian = "big")]
compile_error!("the store maps little-endian columns; big-endian targets are not supported");

/// A store, open.
///
/// Rows are numbered from 0 in the order they were appended; a row's id stays when others are removed.
///
/// # The caller's duty
/// Unless it was opened [into memory](OpenOptions::in_memory), a store reads its columns through a memory
/// map. Its own writers never change or cut what is mapped. A stranger can: if another program shortens a
/// column file (`truncate`, a copy onto it, a sync tool) while a handle is open, the next read past the
/// new end KILLS THE PROCESS with SIGBUS, which no check can prevent and no error reports; if it writes into one,
/// other numbers are scored. Whoever opens a store by map owes it that no other program writes to its
/// directory while the handle lives. Where that cannot be promised, open it into memory. (A store on
/// [`files::InMemory`] is never mapped.)
///
/// ```
/// use memorank::kernel::Dtype;
/// use memorank::store::{CreateOptions, Kind, NewMemory, Store};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("isabella");
/// let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F16, model: None };
/// let mut store = Store::create(&path, &options)?;
/// store.append(&[NewMemory {
///     key: None,
///     kind: Kind::OBSERVATION,
///     text: "the coffee is ready",
///     embedding: Some(&[0.6, 0.8]),
///     created: 1_000_000,
///     last_access: 1_000_000,
///     expiry: None,
///     importance: 3.0,
///     evidence: &[],
///     depth: 0,
///     payload: b"",
/// }])?;
/// store.touch(&[0], 2_000_000)?;
/// store.close()?;
///
/// let store = Store::open_read_only(&path)?;
/// let memory = store.memory(0)?;
/// assert_eq!((memory.text, memory.last_access), ("the coffee is ready", 2_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    files: Arc<dyn Files>,
    dir: PathBuf,
    /// As published last.
    manifest: Manifest,
    columns: Columns,
    kinds: Kinds,
    last_access: Vec<i64>,
    /// Whether `last_access` differs from its file.
    touched: bool,
    /// Built when a key is first asked for.
    keys: OnceLock<KeyIndex>,
    hold: Hold,
    /// None: read-only.
    lock: Option<Lock>,
    /// A write failed: what the files hold past the published lengths is unknown.
    poisoned: bool,
}

impl Store {
    /// Appends memories and gives their ids. They are durable when this returns.
    ///
    /// # Errors
    /// If any memory cannot be stored, or the bytes do not reach the disk. None of them is in the store
    /// then (see [`BulkAppend::commit`] for a disk that fails in the moment of the commit).
    pub fn append(&mut self, memories: &[NewMemory<'_>]) -> Result<Range<u64>, AppendError> {
        let mut bulk = self.bulk()?;
        bulk.check_all(memories)?;
        for memory in memories {
            bulk.push(memory)?;
        }
        bulk.commit()
    }

    /// Starts an append of any length, in bounded memory.
    ///
    /// # Errors
    /// If the handle cannot write.
    pub fn bulk(&mut self) -> Result<BulkAppend<'_>, AppendError> {
        Ok(BulkAppend::new(self)?)
    }

    /// The number of memories.
    pub fn len(&self) -> usize {
        self.columns.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements per embedding.
    pub fn dim(&self) -> NonZeroUsize {
        self.manifest.dim
    }

    /// How embeddings are stored.
    pub fn dtype(&self) -> Dtype {
        self.manifest.dtype
    }

    /// The name of the model that makes the embeddings, if it was given.
    pub fn model(&self) -> Option<&str> {
        self.manifest.model.as_deref()
    }

    /// The id of the next memory.
    pub fn next_id(&self) -> u64 {
        self.manifest.next_id
    }

    /// The store's directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Whether the handle was opened read-only.
    pub fn is_read_only(&self) -> bool {
        self.lock.is_none()
    }

    /// All embeddings, row after row; zeros where a row has none.
    pub fn embeddings(&self) -> Rows<'_> {
        match self.dtype() {
            Dtype::F32 => Rows::F32(self.columns.view(Column::Embedding)),
            Dtype::F16 => Rows::F16(self.columns.view(Column::Embedding)),
        }
    }

    /// The inverse length of each embedding; 0 where a row has none.
    pub fn inv_norms(&self) -> &[f32] {
        self.columns.view(Column::InvNorm)
    }

    /// When each memory was last retrieved, in microseconds since the Unix epoch, with all touches.
    pub fn last_access(&self) -> &[i64] {
        &self.last_access
    }

    /// The importance of each memory.
    pub fn importance(&self) -> &[f32] {
        self.columns.view(Column::Importance)
    }

    /// When each memory was made, in microseconds since the Unix epoch.
    pub fn created(&self) -> &[i64] {
        self.columns.view(Column::Created)
    }

    /// When each memory stops being valid, in microseconds since the Unix epoch; `i64::MAX`: never.
    pub fn expiry(&self) -> &[i64] {
        self.columns.view(Column::Expiry)
    }

    /// The id of each memory, ascending.
    pub fn ids(&self) -> &[u64] {
        self.columns.view(Column::Id)
    }

    /// The depth of each memory.
    pub fn depths(&self) -> &[u32] {
        self.columns.view(Column::Depth)
    }

    /// The kind of each memory, as an index into [`kinds`](Store::kinds). In a damaged store an index can
    /// lie outside.
    pub fn kind_indices(&self) -> &[u16] {
        self.columns.view(Column::Kind)
    }

    /// All kinds, in the order they first occurred.
    pub fn kinds(&self) -> &[Kind] {
        self.kinds.table()
    }

    /// The memory in a row, all but its embedding.
    ///
    /// # Errors
    /// If there is no such row, or its bytes are damaged.
    pub fn memory(&self, row: usize) -> Result<Memory<'_>, ReadError> {
        let rows = self.len();
        if row >= rows {
            return Err(ReadError::NoRow { row, rows });
        }
        let kinds = self.kinds.table();
        let expiry = self.expiry()[row];
        Ok(Memory {
            id: self.ids()[row],
            key: self.columns.key(row)?,
            kind: &kinds[self.columns.kind(row, kinds.len())?],
            text: self.columns.text(row)?,
            has_embedding: self.inv_norms()[row] != 0.0,
            created: self.created()[row],
            last_access: self.last_access[row],
            expiry: (expiry != NO_EXPIRY).then_some(expiry),
            importance: self.importance()[row],
            evidence: self.columns.evidence(row)?,
            depth: self.depths()[row],
            payload: self.columns.payload(row)?,
        })
    }

    /// The embedding in a row, widened to f32, or `None` if it has none or there is no such row.
    pub fn embedding(&self, row: usize) -> Option<Vec<f32>> {
        let inv_norm = *self.inv_norms().get(row)?;
        (inv_norm != 0.0).then(|| self.embeddings().widen(self.dim(), row))
    }

    /// The row of the memory with this id.
    pub fn row_of_id(&self, id: u64) -> Option<usize> {
        self.ids().binary_search(&id).ok()
    }

    /// The row of the memory with this key. The first call reads all keys, and later ones are fast.
    ///
    /// # Errors
    /// If the bytes of a key are damaged.
    pub fn row_of_key(&self, key: &str) -> Result<Option<usize>, ReadError> {
        if key.is_empty() {
            return Ok(None);
        }
        Ok(match self.key_index()?.find_in(&self.columns, key)? {
            Found::Row(row) => Some(row as usize),
            Found::Free(_) => None,
        })
    }

    fn key_index(&self) -> Result<&KeyIndex, Damage> {
        if let Some(index) = self.keys.get() {
            return Ok(index);
        }
        let mut index = KeyIndex::default();
        index.extend(&self.columns, 0)?;
        Ok(self.keys.get_or_init(|| index))
    }

    /// The lock, if this handle may write.
    fn writable(&self) -> Result<&Lock, WriteError> {
        let path = || self.dir.clone();
        match &self.lock {
            None => Err(WriteError::ReadOnly { path: path() }),
            Some(_) if self.poisoned => Err(WriteError::Poisoned { path: path() }),
            Some(lock) => Ok(lock),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.dir)
            .field("rows", &self.len())
            .field("dim", &self.dim())
            .field("dtype", &self.dtype())
            .field("read_only", &self.is_read_only())
            .finish_non_exhaustive()
    }
}
