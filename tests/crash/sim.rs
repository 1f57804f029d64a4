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
#[cfg(test)]
mod tests;

pub use crash::{Crashes, Survivors};
pub use fault::{Failure, Fault, Kind};

use fault::{Faults, Moved};
use memorank::store::files::{File, FileLock, Files, What};
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

    fn handle(&self, machine: &mut Machine, id: Id, writable: bool) -> Box<dyn File> {
        machine.inodes[id].open += 1;
        Box::new(SimFile {
            sim: self.clone(),
            id,
            writable,
        })
    }

    fn open_file(&self, kind: Kind, path: &Path) -> io::Result<Box<dyn File>> {
        let (mut machine, _) = self.enter(kind)?;
        let id = machine.find(path)?;
        match machine.inodes[id].node {
            Node::File(_) => Ok(self.handle(&mut machine, id, kind == Kind::OpenToWrite)),
            Node::Directory(_) => Err(ErrorKind::InvalidInput.into()),
        }
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

impl Files for Sim {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_file(Kind::Open, path)
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_file(Kind::OpenToWrite, path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let (mut machine, _) = self.enter(Kind::Create)?;
        let id = machine.create(path, Node::File(Arc::default()))?;
        Ok(self.handle(&mut machine, id, true))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Kind::CreateDir)?;
        machine.create(path, Node::Directory(Names::new()))?;
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Kind::Rename)?;
        let (from_dir, from_name, id) = machine.place(from)?;
        let id = id.ok_or(ErrorKind::NotFound)?;
        let (to_dir, to_name, replaced) = machine.place(to)?;
        if replaced == Some(id) {
            return Ok(());
        }
        if normal(to).starts_with(normal(from)) {
            return Err(ErrorKind::InvalidInput.into());
        }
        match replaced.map(|other| (&machine.inodes[id].node, &machine.inodes[other].node)) {
            Some((Node::File(_), Node::Directory(_))) => {
                return Err(ErrorKind::IsADirectory.into());
            }
            Some((Node::Directory(_), Node::File(_))) => {
                return Err(ErrorKind::NotADirectory.into());
            }
            Some((_, Node::Directory(names))) if !names.is_empty() => {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
        if let Some(other) = replaced {
            machine.inodes[other].named = false;
        }
        machine.names_mut(from_dir).remove(&from_name);
        machine.names_mut(to_dir).insert(to_name.clone(), id);
        machine.log.push(Change::Rename {
            id,
            from: (from_dir, from_name),
            to: (to_dir, to_name),
        });
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Kind::Remove)?;
        let (dir, name, found) = machine.place(path)?;
        match machine.inodes[found.ok_or(ErrorKind::NotFound)?].node {
            Node::File(_) => machine.remove(dir, &name),
            Node::Directory(_) => return Err(ErrorKind::IsADirectory.into()),
        }
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Kind::RemoveDir)?;
        let (dir, name, _) = machine.place(path)?;
        let id = machine.find_dir(path)?;
        machine.empty(id);
        machine.remove(dir, &name);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let (machine, _) = self.enter(Kind::List)?;
        let names = machine.names(machine.find(dir)?)?;
        Ok(names.keys().cloned().collect())
    }

    fn what(&self, path: &Path) -> io::Result<What> {
        let (machine, _) = self.enter(Kind::What)?;
        Ok(match machine.inodes[machine.find(path)?].node {
            Node::File(_) => What::File,
            Node::Directory(_) => What::Directory,
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = self.machine().find_dir(dir)?;
        self.sync_logged(Kind::SyncDir, |done| Change::SyncDir { dir, done })
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let (mut machine, _) = self.enter(Kind::Lock)?;
        let id = match machine.place(path)? {
            (_, _, Some(id)) => id,
            (_, _, None) => machine.create(path, Node::File(Arc::default()))?,
        };
        if let Node::Directory(_) = machine.inodes[id].node {
            return Err(ErrorKind::IsADirectory.into());
        }
        if machine.inodes[id].locked.is_some() {
            return Ok(None);
        }
        machine.inodes[id].locked = Some(self.process);
        Ok(Some(Box::new(SimLock {
            sim: self.clone(),
            id,
            path: path.to_owned(),
        })))
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

#[derive(Debug)]
struct SimFile {
    sim: Sim,
    id: Id,
    writable: bool,
}

impl SimFile {
    fn enter_to_write(&self, kind: Kind) -> io::Result<(MutexGuard<'_, Machine>, Moved)> {
        match self.writable {
            true => self.sim.enter(kind),
            false => Err(ErrorKind::PermissionDenied.into()),
        }
    }
}

impl File for SimFile {
    fn bytes(&self) -> io::Result<u64> {
        let (machine, _) = self.sim.enter(Kind::Length)?;
        Ok(machine.bytes(self.id).len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (machine, moved) = self.sim.enter(Kind::Read)?;
        let rest = machine.bytes(self.id).get(offset as usize..);
        let rest = rest.unwrap_or_default();
        let read = moved.of(rest.len().min(buffer.len()));
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let (mut machine, moved) = self.enter_to_write(Kind::Write)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let offset = usize::try_from(offset).map_err(|_| ErrorKind::FileTooLarge)?;
        let old_end = machine.bytes(self.id).len();
        let end_of_room = (old_end as u64).saturating_add(machine.left());
        let fits = end_of_room
            .saturating_sub(offset as u64)
            .min(usize::MAX as u64) as usize;
        let written = moved.of(bytes.len()).min(fits);
        if written == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        let bytes = &bytes[..written];
        put(machine.bytes_mut(self.id), offset, bytes);
        machine.log.push(Change::Write {
            file: self.id,
            offset,
            bytes: bytes.into(),
        });
        Ok(written)
    }

    fn set_len(&self, to: u64) -> io::Result<()> {
        let (mut machine, _) = self.enter_to_write(Kind::SetLen)?;
        let to = usize::try_from(to).map_err(|_| ErrorKind::FileTooLarge)?;
        let more = to.saturating_sub(machine.bytes(self.id).len());
        if more as u64 > machine.left() {
            return Err(ErrorKind::StorageFull.into());
        }
        machine.bytes_mut(self.id).resize(to, 0);
        machine.log.push(Change::SetLen { file: self.id, to });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let file = self.id;
        (self.sim).sync_logged(Kind::Sync, |done| Change::Sync { file, done })
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.sim.machine().inodes[self.id].open -= 1;
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

#[derive(Debug)]
struct SimLock {
    sim: Sim,
    id: Id,
    path: PathBuf,
}

impl FileLock for SimLock {
    fn is_current(&self) -> io::Result<bool> {
        let (machine, _) = self.sim.enter(Kind::Current)?;
        Ok(machine.find(&self.path).is_ok_and(|id| id == self.id))
    }

    fn moved(&mut self, path: &Path) {
        self.path = path.to_owned();
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut machine = self.sim.machine();
        let locked = &mut machine.inodes[self.id].locked;
        if *locked == Some(self.sim.process) {
            *locked = None;
        }
    }
}
