//! A file system in memory of which every change is announced, and can be refused, delayed, or followed by a
//! copy of all files.

use memorank::store::files::{File, FileLock, Files, InMemory, What};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

/// A change to a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Create,
    Write,
    SetLen,
    Sync,
    Rename,
    Remove,
    SyncDir,
}

type Before = dyn Fn(Change, &Path) -> io::Result<()> + Send + Sync;

/// The files of an [`InMemory`], with something that is asked before each change. Of most writes only
/// half is made, and the rest is asked for apart.
#[derive(Clone)]
pub struct Watched {
    inner: InMemory,
    before: Arc<Before>,
}

/// `before` gets the change and the path it is made to (of a rename: the new one).
pub fn watched(
    inner: &InMemory,
    before: impl Fn(Change, &Path) -> io::Result<()> + Send + Sync + 'static,
) -> Arc<Watched> {
    Arc::new(Watched {
        inner: inner.clone(),
        before: Arc::new(before),
    })
}

impl Watched {
    fn watch(&self, inner: Box<dyn File>, path: &Path) -> Box<dyn File> {
        Box::new(WatchedFile {
            inner,
            path: path.to_owned(),
            before: self.before.clone(),
        })
    }
}

impl Files for Watched {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.inner.open(path)
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = self.inner.open_to_write(path)?;
        Ok(self.watch(file, path))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn File>> {
        (self.before)(Change::Create, path)?;
        let file = self.inner.create_new(path)?;
        Ok(self.watch(file, path))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        (self.before)(Change::Create, path)?;
        self.inner.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        (self.before)(Change::Rename, to)?;
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        (self.before)(Change::Remove, path)?;
        self.inner.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        (self.before)(Change::Remove, path)?;
        self.inner.remove_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.inner.list(dir)
    }

    fn what(&self, path: &Path) -> io::Result<What> {
        self.inner.what(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        (self.before)(Change::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        self.inner.lock(path)
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.inner).finish()
    }
}

struct WatchedFile {
    inner: Box<dyn File>,
    path: PathBuf,
    before: Arc<Before>,
}

impl File for WatchedFile {
    fn bytes(&self) -> io::Result<u64> {
        self.inner.bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        (self.before)(Change::Write, &self.path)?;
        // Long writes come block by block; their halves would be nothing new.
        let half = match bytes.len() {
            32..4096 => bytes.len() / 2,
            all => all,
        };
        self.inner.write_at(offset, &bytes[..half])
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        (self.before)(Change::SetLen, &self.path)?;
        self.inner.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        (self.before)(Change::Sync, &self.path)?;
        self.inner.sync()
    }
}

impl fmt::Debug for WatchedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchedFile").field(&self.path).finish()
    }
}

/// Stops a thread that is about to make a change, once.
#[derive(Clone)]
pub struct Pause {
    at: fn(Change, &Path) -> bool,
    state: Arc<(Mutex<Stage>, Condvar)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Idle,
    Armed,
    Paused,
    Resumed,
}

impl Pause {
    pub fn before(at: fn(Change, &Path) -> bool) -> Pause {
        let state = Arc::new((Mutex::new(Stage::Idle), Condvar::new()));
        Pause { at, state }
    }

    pub fn hook(&self) -> impl Fn(Change, &Path) -> io::Result<()> + Send + Sync + 'static {
        let pause = self.clone();
        move |change, path| {
            if (pause.at)(change, path) && *pause.state.0.lock().unwrap() == Stage::Armed {
                pause.set(Stage::Paused);
                pause.wait_until(Stage::Resumed);
            }
            Ok(())
        }
    }

    /// From now on.
    pub fn arm(&self) {
        self.set(Stage::Armed);
    }

    /// Waits until a thread is stopped. It goes on when the result is dropped.
    pub fn wait(&self) -> Paused<'_> {
        self.wait_until(Stage::Paused);
        Paused(self)
    }

    fn set(&self, stage: Stage) {
        *self.state.0.lock().unwrap() = stage;
        self.state.1.notify_all();
    }

    fn wait_until(&self, stage: Stage) {
        let (state, changed) = &*self.state;
        let now = state.lock().unwrap();
        drop(changed.wait_while(now, |now| *now != stage).unwrap());
    }
}

/// A thread is stopped while this lives.
pub struct Paused<'a>(&'a Pause);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.set(Stage::Resumed);
    }
}
