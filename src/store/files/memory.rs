//! A file system in memory.

use super::{File, FileLock, Files, What};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A file system in memory: for stores that shall leave no files, in tests and games. It is empty at first,
/// but for its root. Clones are the same file system; it ends with the last of them and of the files
/// and locks it gave.
///
/// A path is looked up from the root, whether it is relative or absolute: `a` and `/a` are the same. There are
/// no links, permissions or devices. Syncing does nothing, as nothing here outlives the program.
/// A [mapped](File::map) file is a copy of it.
///
/// A file for which the allocator has no room is an error of the kind
/// [`StorageFull`](ErrorKind::StorageFull), and stays as it was.
///
/// ```
/// use memorank::kernel::Dtype;
/// use memorank::store::files::InMemory;
/// use memorank::store::{CreateOptions, Kind, NewMemory, OpenOptions, Store};
/// use std::sync::Arc;
///
/// let files = Arc::new(InMemory::new());
/// let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F16, model: None };
/// let store = Store::create_on(files.clone(), "isabella", &options)?;
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
/// store.close()?;
///
/// let store = Store::open_on(files, "isabella", &OpenOptions::default())?.snapshot();
/// assert_eq!(store.memory(0)?.text, "the coffee is ready");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct InMemory {
    /// All but the root, by [`normal`] paths. They are ordered by components, so a directory stands right
    /// before all that is in it.
    nodes: Arc<Mutex<BTreeMap<PathBuf, Node>>>,
}

#[derive(Clone)]
enum Node {
    Directory,
    File(Arc<Inode>),
}

/// A file, whatever its name is and whether it has one.
#[derive(Default)]
struct Inode {
    bytes: RwLock<Vec<u8>>,
    locked: AtomicBool,
}

type Nodes = BTreeMap<PathBuf, Node>;

impl InMemory {
    /// An empty file system.
    pub fn new() -> InMemory {
        InMemory::default()
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        // Every change is made after all that can fail: what a panic left is whole.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, path: &Path, writable: bool) -> io::Result<Box<dyn File>> {
        match find(&self.nodes(), &normal(path))? {
            Node::File(inode) => Ok(Box::new(MemoryFile { inode, writable })),
            Node::Directory => {
                let what = "not a regular file";
                Err(io::Error::new(ErrorKind::InvalidInput, what))
            }
        }
    }
}

impl std::fmt::Debug for InMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.nodes().keys()).finish()
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

/// What is at a normal path, if all above it are directories.
fn find(nodes: &Nodes, path: &Path) -> io::Result<Node> {
    if path == Path::new("") {
        return Ok(Node::Directory);
    }
    check_parent(nodes, path)?;
    Ok(nodes.get(path).ok_or(ErrorKind::NotFound)?.clone())
}

fn check_parent(nodes: &Nodes, path: &Path) -> io::Result<()> {
    match path.parent() {
        None => Ok(()),
        Some(parent) => check_directory(nodes, parent),
    }
}

fn check_directory(nodes: &Nodes, path: &Path) -> io::Result<()> {
    match find(nodes, path)? {
        Node::Directory => Ok(()),
        Node::File(_) => Err(ErrorKind::NotADirectory.into()),
    }
}

/// Where something new can be.
fn check_free(nodes: &Nodes, path: &Path) -> io::Result<()> {
    match find(nodes, path) {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(_) => check_parent(nodes, path),
    }
}

/// All that is below a directory.
fn below<'a>(nodes: &'a Nodes, dir: &Path) -> impl Iterator<Item = &'a PathBuf> {
    let range = (Bound::Included(dir), Bound::Unbounded);
    let from = nodes.range::<Path, _>(range).map(|(path, _)| path);
    let within = from.take_while(move |path| path.starts_with(dir));
    within.skip_while(move |path| path.as_path() == dir)
}

impl Files for InMemory {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.handle(path, false)
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.handle(path, true)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let (mut nodes, path) = (self.nodes(), normal(path));
        check_free(&nodes, &path)?;
        let inode = Arc::<Inode>::default();
        nodes.insert(path, Node::File(inode.clone()));
        Ok(Box::new(MemoryFile {
            inode,
            writable: true,
        }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (mut nodes, path) = (self.nodes(), normal(path));
        check_free(&nodes, &path)?;
        nodes.insert(path, Node::Directory);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut nodes, from, to) = (self.nodes(), normal(from), normal(to));
        let node = find(&nodes, &from)?;
        check_parent(&nodes, &to)?;
        if from == to {
            return Ok(());
        }
        if from == Path::new("") || to.starts_with(&from) {
            return Err(ErrorKind::InvalidInput.into());
        }
        match (&node, find(&nodes, &to)) {
            (Node::File(_), Ok(Node::Directory)) => return Err(ErrorKind::IsADirectory.into()),
            (Node::Directory, Ok(Node::File(_))) => return Err(ErrorKind::NotADirectory.into()),
            (Node::Directory, Ok(Node::Directory)) if below(&nodes, &to).next().is_some() => {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
        let moved: Vec<PathBuf> = below(&nodes, &from).cloned().collect();
        for path in moved {
            let rest = path.strip_prefix(&from).expect("it is below");
            let renamed = to.join(rest);
            let node = nodes.remove(&path).expect("it was found");
            nodes.insert(renamed, node);
        }
        nodes.remove(&from);
        nodes.insert(to, node);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let (mut nodes, path) = (self.nodes(), normal(path));
        match find(&nodes, &path)? {
            Node::File(_) => nodes.remove(&path),
            Node::Directory => return Err(ErrorKind::IsADirectory.into()),
        };
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let (mut nodes, path) = (self.nodes(), normal(path));
        check_directory(&nodes, &path)?;
        nodes.retain(|at, _| !at.starts_with(&path));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let (nodes, dir) = (self.nodes(), normal(dir));
        check_directory(&nodes, &dir)?;
        let own = below(&nodes, &dir).filter(|path| path.parent() == Some(&dir));
        Ok(own
            .filter_map(|path| path.file_name().map(Into::into))
            .collect())
    }

    fn what(&self, path: &Path) -> io::Result<What> {
        Ok(match find(&self.nodes(), &normal(path))? {
            Node::File(_) => What::File,
            Node::Directory => What::Directory,
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        check_directory(&self.nodes(), &normal(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let (mut nodes, path) = (self.nodes(), normal(path));
        let inode = match find(&nodes, &path) {
            Ok(Node::File(inode)) => inode,
            Ok(Node::Directory) => return Err(ErrorKind::IsADirectory.into()),
            Err(_) => {
                check_parent(&nodes, &path)?;
                let inode = Arc::<Inode>::default();
                nodes.insert(path.clone(), Node::File(inode.clone()));
                inode
            }
        };
        if inode.locked.swap(true, Ordering::Acquire) {
            return Ok(None);
        }
        let files = self.clone();
        Ok(Some(Box::new(MemoryLock { files, inode, path })))
    }
}

struct MemoryFile {
    inode: Arc<Inode>,
    writable: bool,
}

impl MemoryFile {
    fn change(&self, to: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        if !self.writable {
            let what = "the file was opened for reading";
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
        let bytes = self.inode.bytes.write();
        to(&mut bytes.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Lengthens `bytes` by zeros, if it is shorter and there is room.
fn lengthen(bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    let more = len.saturating_sub(bytes.len());
    (bytes.try_reserve(more)).map_err(|_| ErrorKind::StorageFull)?;
    bytes.resize(bytes.len() + more, 0);
    Ok(())
}

impl File for MemoryFile {
    fn bytes(&self) -> io::Result<u64> {
        let bytes = self.inode.bytes.read();
        Ok(bytes.unwrap_or_else(PoisonError::into_inner).len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inode.bytes.read();
        let bytes = bytes.unwrap_or_else(PoisonError::into_inner);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = bytes.get(offset..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&self, offset: u64, new: &[u8]) -> io::Result<usize> {
        self.change(|bytes| {
            if new.is_empty() {
                return Ok(());
            }
            let start = usize::try_from(offset).map_err(|_| ErrorKind::FileTooLarge)?;
            let end = (start.checked_add(new.len())).ok_or(ErrorKind::FileTooLarge)?;
            lengthen(bytes, end)?;
            bytes[start..end].copy_from_slice(new);
            Ok(())
        })?;
        Ok(new.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|bytes| {
            let len = usize::try_from(len).map_err(|_| ErrorKind::FileTooLarge)?;
            bytes.truncate(len);
            lengthen(bytes, len)
        })
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryFile")
            .field("bytes", &self.bytes().unwrap_or_default())
            .field("writable", &self.writable)
            .finish()
    }
}

struct MemoryLock {
    files: InMemory,
    inode: Arc<Inode>,
    path: PathBuf,
}

impl FileLock for MemoryLock {
    fn is_current(&self) -> io::Result<bool> {
        let found = find(&self.files.nodes(), &self.path);
        Ok(matches!(found, Ok(Node::File(inode)) if Arc::ptr_eq(&inode, &self.inode)))
    }

    fn moved(&mut self, path: &Path) {
        self.path = normal(path);
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.inode.locked.store(false, Ordering::Release);
    }
}

impl std::fmt::Debug for MemoryLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryLock")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
