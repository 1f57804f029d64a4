//! The operating system's files.

use super::{Bytes, File, FileLock, Files, What};
use std::ffi::OsString;
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The operating system's files: what `Store::create`, `Store::open` and `verify` use. Its [`File`]s are
/// [`std::fs::File`]s, and [mapped](File::map).
///
/// Tested on Linux. On Windows a directory cannot be synced and need not be, so that
/// [`sync_dir`](Files::sync_dir) does nothing there; on systems that are neither Unix nor Windows reading
/// and writing are [`Unsupported`](io::ErrorKind::Unsupported).
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(Box::new(open_regular(path)?))
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
        check_regular(path)?;
        Ok(Box::new(
            fs::File::options().read(true).write(true).open(path)?,
        ))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(Box::new(fs::File::create_new(path)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }

    fn what(&self, path: &Path) -> io::Result<What> {
        let kind = fs::symlink_metadata(path)?.file_type();
        Ok(match () {
            () if kind.is_file() => What::File,
            () if kind.is_dir() => What::Directory,
            () => What::Other,
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match cfg!(unix) {
            true => fs::File::open(dir)?.sync_all(),
            false => Ok(()),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let file = fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(DiskLock {
                file,
                path: path.to_owned(),
            }))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(io::Error::new(
                e.kind(),
                format!("it cannot be locked: {e}"),
            )),
        }
    }
}

/// Opens a file for reading. A pipe or device in its place would make the reader wait, or never end.
pub(crate) fn open_regular(path: &Path) -> io::Result<fs::File> {
    check_regular(path)?;
    fs::File::open(path)
}

fn check_regular(path: &Path) -> io::Result<()> {
    match fs::metadata(path)?.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}

impl File for fs::File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        system::read_at(self, offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        system::write_at(self, offset, bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        fs::File::set_len(self, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }

    /// A map. Whoever shortens the file while it lives kills the process: see
    /// [`Store`](crate::store::Store#the-callers-duty).
    fn map(&self, len: usize) -> io::Result<Bytes> {
        // A map may be longer than its file, and to read behind the file is fatal.
        if self.bytes()? < len as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Bytes::map(self, len)
    }
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;

    pub(super) fn read_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }

    pub(super) fn write_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        file.write_at(bytes, offset)
    }
}

/// These move the file's cursor, which nobody uses.
#[cfg(windows)]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::windows::fs::FileExt;

    pub(super) fn read_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        file.seek_read(buffer, offset)
    }

    pub(super) fn write_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        file.seek_write(bytes, offset)
    }
}

#[cfg(not(any(unix, windows)))]
mod system {
    use std::fs::File;
    use std::io;

    pub(super) fn read_at(_: &File, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn write_at(_: &File, _: u64, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[derive(Debug)]
struct DiskLock {
    file: fs::File,
    path: PathBuf,
}

impl FileLock for DiskLock {
    fn is_current(&self) -> io::Result<bool> {
        let held = self.file.metadata()?;
        Ok(fs::metadata(&self.path).is_ok_and(|there| same_file(&there, &held)))
    }

    fn moved(&mut self, path: &Path) {
        self.path = path.to_owned();
    }
}

impl Drop for DiskLock {
    fn drop(&mut self) {
        // Closing the file would do, if no process that another thread is just starting had a copy of it.
        let _ = self.file.unlock();
    }
}

#[cfg(unix)]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Elsewhere the standard library gives files no identity; an open file cannot be removed there.
#[cfg(not(unix))]
fn same_file(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}
