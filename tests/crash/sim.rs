//! A file system in memory that can fail, fill up and lose power.
//!
//! **What it promises**
//!
//! - It is what [`Files`] asks for. Inodes live apart from their names: an open file outlives both its
//!   removal and its renaming.
//! - Every change, and every sync, is recorded in a log. From any prefix of the log [`Crashes`] makes
//!   file systems that a power cut at that point may leave.
//! - A [fault](Fault) makes the N-th operation of some kinds fail, and [`fill_up_at`](Sim::fill_up_at)
//!   the disk full.
//! - Locks belong to a process. [`kill`](Sim::kill) ends one: its locks are free, its handles do nothing
//!   any more, and the file system goes on, with what was not synced still readable.

mod crash;
mod fault;
mod files;
mod log;
#[cfg(test)]
mod tests;

pub use crash::{Crashes, Survivors};
pub use fault::{Failure, Fault, Kind};

use fault::{Faults, Moved};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An inode's number, and its place in [`Machine::inodes`].
type Id = usize;
type Names = BTreeMap<OsString, Id>;
const ROOT: Id = 0;

/// What a name takes of a disk that can fill up.
const NAME_BYTES: u64 = 64;

/// A process on a simulated machine. Clones are the same process.
#[derive(Clone)]
pub struct Sim {
    machine: Arc<Mutex<Machine>>,
    process: usize,
}

struct Machine {
    inodes: Vec<Inode>,
    /// What was there when the machine booted, all of it durable.
    booted_with: Vec<Node>,
    log: Vec<Change>,
    faults: Faults,
    /// Bytes that fit on the disk.
    room: u64,
    /// Processes, by number, that were killed.
    killed: Vec<bool>,
}

#[derive(Clone, Debug)]
enum Node {
    File(Arc<Vec<u8>>),
    Directory(Names),
}

struct Inode {
    node: Node,
    /// Whether it has a name.
    named: bool,
    open: usize,
    /// The process that holds its lock.
    locked: Option<usize>,
}

impl Inode {
    fn new(node: Node, named: bool) -> Inode {
        Inode {
            node,
            named,
            open: 0,
            locked: None,
        }
    }
}

/// An entry of the log.
#[derive(Clone, Debug)]
enum Change {
    Write {
        file: Id,
        offset: usize,
        bytes: Arc<[u8]>,
    },
    SetLen {
        file: Id,
        to: usize,
    },
    /// `done`: or it failed.
    Sync {
        file: Id,
        done: bool,
    },
    SyncDir {
        dir: Id,
        done: bool,
    },
    /// A new inode and its name.
    Create {
        dir: Id,
        name: OsString,
        id: Id,
        directory: bool,
    },
    Rename {
        id: Id,
        from: (Id, OsString),
        to: (Id, OsString),
    },
    Remove {
        dir: Id,
        name: OsString,
    },
}

impl Sim {
    /// A machine with an empty root.
    pub fn new() -> Sim {
        Sim::boot(vec![Node::Directory(Names::new())])
    }

    fn boot(nodes: Vec<Node>) -> Sim {
        let inodes = nodes.iter().map(|node| Inode::new(node.clone(), true));
        let machine = Machine {
            inodes: inodes.collect(),
            booted_with: nodes,
            log: Vec::new(),
            faults: Faults::default(),
            room: u64::MAX,
            killed: vec![false],
        };
        Sim {
            machine: Arc::new(Mutex::new(machine)),
            process: 0,
        }
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        (self.machine.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// How many changes and syncs there were.
    pub fn log_len(&self) -> usize {
        self.machine().log.len()
    }

    /// The changes and syncs from `from` to `to`, a line each.
    pub fn describe(&self, from: usize, to: usize) -> String {
        self.machine().describe(from, to)
    }

    /// Ends the process: as SIGKILL does, so that nothing is synced or cleaned up. Gives a new one.
    pub fn kill(&self) -> Sim {
        let mut machine = self.machine();
        machine.killed[self.process] = true;
        for inode in &mut machine.inodes {
            if inode.locked == Some(self.process) {
                inode.locked = None;
            }
        }
        machine.killed.push(false);
        Sim {
            machine: self.machine.clone(),
            process: machine.killed.len() - 1,
        }
    }

    /// From now on the disk is full at so many bytes, each name counted as 64 of them.
    pub fn fill_up_at(&self, bytes: u64) {
        self.machine().room = bytes;
    }

    /// Bytes taken on the disk.
    pub fn used(&self) -> u64 {
        self.machine().used()
    }

    /// From now on `fault` happens, and what was counted is forgotten.
    pub fn inject(&self, fault: Fault) {
        self.machine().faults.set(Some(fault));
    }

    /// From now on nothing fails. Gives how often the fault happened.
    pub fn heal(&self) -> u64 {
        let mut machine = self.machine();
        machine.room = u64::MAX;
        machine.faults.set(None)
    }

    /// How many operations of these kinds there were since the last [`inject`](Sim::inject) or
    /// [`heal`](Sim::heal).
    pub fn count(&self, kinds: &[Kind]) -> u64 {
        self.machine().faults.count(kinds)
    }

    /// The machine, for an operation that may fail here.
    fn enter(&self, kind: Kind) -> io::Result<(MutexGuard<'_, Machine>, Moved)> {
        let mut machine = self.alive()?;
        let moved = machine.faults.meet(kind)?;
        Ok((machine, moved))
    }

    fn alive(&self) -> io::Result<MutexGuard<'_, Machine>> {
        let machine = self.machine();
        match machine.killed[self.process] {
            false => Ok(machine),
            true => Err(io::Error::other("the process was killed")),
        }
    }

    /// A sync that fails is in the log too.
    fn sync_logged(&self, kind: Kind, change: impl FnOnce(bool) -> Change) -> io::Result<()> {
        let mut machine = self.alive()?;
        let met = machine.faults.meet(kind);
        machine.log.push(change(met.is_ok()));
        met.map(|_| ())
    }
}

/// The names on the way from the root. Without links, `..` takes away the name before it.
fn normal(path: &Path) -> PathBuf {
    let mut names = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::ParentDir => {
                names.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    names
}

impl Machine {
    fn names(&self, dir: Id) -> io::Result<&Names> {
        match &self.inodes[dir].node {
            Node::Directory(names) => Ok(names),
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn names_mut(&mut self, dir: Id) -> &mut Names {
        match &mut self.inodes[dir].node {
            Node::Directory(names) => names,
            Node::File(_) => unreachable!("it was found to be a directory"),
        }
    }

    fn bytes(&self, file: Id) -> &Vec<u8> {
        match &self.inodes[file].node {
            Node::File(bytes) => bytes,
            Node::Directory(_) => unreachable!("only files are opened"),
        }
    }

    fn bytes_mut(&mut self, file: Id) -> &mut Vec<u8> {
        match &mut self.inodes[file].node {
            Node::File(bytes) => Arc::make_mut(bytes),
            Node::Directory(_) => unreachable!("only files are opened"),
        }
    }

    fn find(&self, path: &Path) -> io::Result<Id> {
        normal(path).iter().try_fold(ROOT, |at, name| {
            let found = self.names(at)?.get(name);
            found.copied().ok_or_else(|| ErrorKind::NotFound.into())
        })
    }

    fn find_dir(&self, path: &Path) -> io::Result<Id> {
        let id = self.find(path)?;
        self.names(id).map(|_| id)
    }

    /// The directory that `path` lies in, its name there, and what has that name.
    fn place(&self, path: &Path) -> io::Result<(Id, OsString, Option<Id>)> {
        let path = normal(path);
        let Some(name) = path.file_name() else {
            // The root has no name that could be given or taken.
            return Err(ErrorKind::AlreadyExists.into());
        };
        let dir = self.find_dir(path.parent().expect("it has a name"))?;
        let found = self.names(dir)?.get(name).copied();
        Ok((dir, name.to_owned(), found))
    }

    fn create(&mut self, path: &Path, node: Node) -> io::Result<Id> {
        let (dir, name, found) = self.place(path)?;
        if found.is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        if self.left() < NAME_BYTES {
            return Err(ErrorKind::StorageFull.into());
        }
        let id = self.inodes.len();
        self.log.push(Change::Create {
            dir,
            name: name.clone(),
            id,
            directory: matches!(node, Node::Directory(_)),
        });
        self.inodes.push(Inode::new(node, true));
        self.names_mut(dir).insert(name, id);
        Ok(id)
    }

    fn remove(&mut self, dir: Id, name: &OsStr) {
        let id = self.names_mut(dir).remove(name).expect("it was found");
        self.inodes[id].named = false;
        self.log.push(Change::Remove {
            dir,
            name: name.to_owned(),
        });
    }

    fn empty(&mut self, dir: Id) {
        let names: Vec<_> = self.names_mut(dir).clone().into_iter().collect();
        for (name, id) in names {
            if let Node::Directory(_) = self.inodes[id].node {
                self.empty(id);
            }
            self.remove(dir, &name);
        }
    }

    fn used(&self) -> u64 {
        let taken = |inode: &Inode| match &inode.node {
            Node::File(bytes) if inode.named || inode.open > 0 => bytes.len() as u64,
            Node::File(_) => 0,
            Node::Directory(names) => names.len() as u64 * NAME_BYTES,
        };
        self.inodes.iter().map(taken).sum()
    }

    fn left(&self) -> u64 {
        match self.room {
            u64::MAX => u64::MAX,
            room => room.saturating_sub(self.used()),
        }
    }
}

impl std::fmt::Debug for Sim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sim")
            .field("process", &self.process)
            .field("changes", &self.log_len())
            .finish_non_exhaustive()
    }
}

/// Writes into bytes in memory, which are lengthened by zeros as needed.
fn put(to: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if to.len() < end {
        to.resize(end, 0);
    }
    to[offset..end].copy_from_slice(bytes);
}
