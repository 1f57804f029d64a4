//! The memory-mapped column store.
//!
//! A [`Store`] is a handle that threads share. What readers see is a [`Snapshot`]: the column files, mapped,
//! and over them what was appended and changed since. Small appends, touches, deletes and other changes are
//! records in a journal; a checkpoint folds them into the columns, and long appends go there at once.
//!
//! **What it promises**
//!
//! - An append or change is in the store whole when it returns, or not at all. By default it is on the disk
//!   then, but a touch in its file: that survives the end of the process, and a crash of the system after the
//!   next sync. [`Durability`] asks for more or less.
//! - After a crash at any moment, opening gives what was done up to some moment, with everything in it that was
//!   acknowledged as durable; no repair is needed. What a crash left half written is dropped and reported
//!   ([`Store::recovery`]).
//! - Every memory is checked before it is stored: what comes out of the columns can be scored.
//! - Last access survives closing, for each [`Agent`] its own. A touch is a maximum: it can be repeated and
//!   reordered.
//! - What a memory says is fixed when it is stored. One that was stored without a vector can be
//!   [given](Store::embed) one, once; an agent can have an [importance](Store::set_importance) of its own of any
//!   memory, beside the one it was stored with, which stays.
//! - A deleted memory is no candidate, its id is never given again, and its key is free. Evidence keeps its
//!   order and names it still: it is missing, and not passed over.
//! - One writer at a time; a second one is told so at once. Within it, appends, late vectors, checkpoints and
//!   compactions take turns; touches, importances and deletes wait for none of them.
//! - Readers take no lock, wait for no writer, and see one whole state: a snapshot does not change. A read-only
//!   handle changes no byte, nor does opening for writing: only the first write does.
//! - Bytes that were published are never overwritten, and files never shortened below them. Data are synced
//!   before the manifest that names them, and a journal that another handle wrote is never written on: what is
//!   valid in it is written anew.
//! - A write that fails (a full disk) changes nothing, and the handle goes on. After a sync that failed nobody
//!   knows what is on the disk: the handle writes no more, reads go on, and the store can be opened again.
//! - Anything that is no store, or a cut, damaged or newer one, is its own error with file and offset, and is
//!   left as it is. Damage is never a panic. Opening checks the manifest, the journal, all lengths and the
//!   checksums of what is read into memory; the mapped columns are checked by [`verify()`] and by
//!   [`OpenOptions::verify`]. A flipped bit in a mapped column that still makes a number is found by those and
//!   not by a ranking.
//! - Of a damaged store, [`repair`] salvages what is whole into a new one and lists the rest.
//! - Opening costs a few system calls per column, and reading what was touched (16 bytes for each memory and
//!   agent), what was deleted (4 bytes each), importances of agents' own (12 bytes each), vectors that came after
//!   their memories were in the columns, and the journal, which [`OpenOptions::checkpoint_bytes`] limits: not
//!   the columns.
//! - What was retrieved can be retrieved again as it was, as far as the journal is kept: [`Store::before`], see
//!   [History](#history).
//! - Every byte goes through [`files`], which a caller can supply. A store can live in memory as well.
//!
//! Tested on Linux with little-endian x86-64; other systems are untested, big-endian ones refused. The
//! directory must not be written to by other programs while a handle is open: see
//! [`Store`](Store#the-callers-duty). The layout of the files is described in [`format`](mod@format).
//!
//! # History
//!
//! Every record of the journal has a number, and says what it overrides: a touch the last accesses before it, an
//! importance those before it. So the state as it was before a record can be made of the state as it is, by undoing
//! what came since. A touch says besides which state its retrieval ranked ([`NewTouch::seen`]), which is an older one
//! where others wrote meanwhile, and keeps a note of the caller's. [`Store::touches`] lists the touches, and
//! [`Store::before`] goes back to what one of them saw.
//!
//! How far it goes is the caller's choice: a fold of the journal removes it, but for as many bytes as
//! [`Store::keep_history`] says, 0 at first. They are read by nobody else: neither opening nor ranking is
//! slower, and damage in them does no harm to the store. A touch of 30 memories takes some 600 bytes, an append what its
//! memories do; a long append ([`BulkAppend`], or more than a mebibyte at once) is no record at all, and can be gone
//! back behind all the same, as ids tell what came later. A compaction ends the memories it takes away: what was
//! asked while they were there is a [`HistoryError::Compacted`] then. An export or a repair begins a new history.
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
//! What is lost here: queries, transactions over several operations, other languages' libraries, and years of
//! other people's use: the journal, its recovery and the compaction are a small part of what those have, and
//! newer. What is gained: files that are plain arrays (numpy maps them, see [`format`](mod@format)), a scan at
//! the speed of memory, and touches that cost a record in a journal and not a rewritten page. A user who needs
//! the former keeps memories in a database and gives the kernel borrowed columns; it needs no store.

mod append;
mod behind;
mod bulk;
mod change;
mod close;
mod column;
mod commits;
mod current;
mod damage;
mod elements;
mod embed;
mod entries;
mod error;
mod evidence;
mod exclusive;
pub mod files;
mod filled;
mod fold;
pub mod format;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod history;
mod info;
mod journal;
mod keys;
mod kinds;
mod live;
mod lock;
mod log;
mod manifest;
mod map;
mod memory;
mod norms;
mod open;
mod own;
mod recover;
mod repair;
mod rows;
mod segments;
mod snapshot;
mod state;
mod superseded;
mod tail;
mod take_over;
mod temporary;
mod touch;
mod turns;
mod vectors;
mod verify;
mod writer;
mod writing;

pub use bulk::BulkAppend;
pub use damage::{Damage, Problem};
pub use error::{
    AppendError, CreateError, DeleteError, EmbedError, ImportanceError, MemoryProblem, OpenError,
    ReadError, TouchError, WriteError,
};
pub use exclusive::Exclusive;
pub use history::{HistoryError, Touched};
pub use info::{FileInfo, Info};
pub use journal::Dropped;
pub use memory::{Kind, Memory, NewMemory, Reference};
pub use open::{CreateOptions, Durability, OpenOptions, Promise};
pub use own::Agent;
pub use recover::Recovery;
pub use repair::{
    Changes, Lost, LostChanges, Part, Reduced, RepairError, RepairOptions, RepairReport, repair,
    repair_on, repair_with,
};
pub use segments::Segment;
pub use snapshot::Snapshot;
#[cfg(feature = "import")]
pub(crate) use temporary::Temporary;
pub use touch::NewTouch;
pub use verify::{VerifyReport, verify, verify_on};

use column::Hold;
use current::Current;
pub(crate) use elements::check_embedding;
use files::Files;
#[cfg(feature = "import")]
pub(crate) use files::open_regular;
#[cfg(feature = "import")]
pub(crate) use format::MAX_DIM;
#[cfg(feature = "import")]
pub(crate) use header::parse_sum;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use writing::Writing;

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
/// use memorank::store::{Agent, CreateOptions, Kind, NewMemory, Store};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("isabella");
/// let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F16, model: None };
/// let store = Store::create(&path, &options)?;
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
///     supersedes: None,
///     payload: b"",
/// }])?;
/// store.touch(Agent::OWN, &[0], 2_000_000)?;
/// store.close()?;
///
/// let store = Store::open_read_only(&path)?.snapshot();
/// let memory = store.memory(0)?;
/// assert_eq!((memory.text, memory.last_access), ("the coffee is ready", 2_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    files: Arc<dyn Files>,
    dir: PathBuf,
    hold: Hold,
    durability: Durability,
    checkpoint_bytes: u64,
    /// What readers see.
    current: Mutex<Current>,
    recovery: Recovery,
    /// None: read-only.
    writing: Option<Writing>,
}

impl Store {
    /// The store as it is now, for reading.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.state())
    }

    /// What was found in the journal when the store was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The store's directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Whether the handle was opened read-only.
    pub fn is_read_only(&self) -> bool {
        self.writing.is_none()
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.dir)
            .field("read_only", &self.is_read_only())
            .field("snapshot", &self.snapshot())
            .finish_non_exhaustive()
    }
}
