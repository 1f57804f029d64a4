//! What a store asks of a file system.
//!
//! **What it promises**
//!
//! - Every byte that a store reads or writes goes through [`Files`], and through the [`File`]s and
//!   [`FileLock`]s it gives. [`Disk`] is the operating system's, [`InMemory`] a file system that ends
//!   with the program. `Store::create` and its like use [`Disk`]; `create_on` and its like take any.
//! - An implementation may read or write less than it was asked to, or be interrupted: the loops that
//!   go on are above the traits, in the store.
//! - An implementation promises what each method says, and no more is asked of it. Names and bytes
//!   survive a crash of the system if they were synced ([`File::sync`], [`Files::sync_dir`]); whatever
//!   else survives, the store can be opened.

#[cfg(test)]
mod contract;
mod disk;
#[cfg(test)]
mod interruptions;
mod memory;

pub use super::map::Bytes;
pub use disk::Disk;
#[cfg(feature = "import")]
pub(crate) use disk::open_regular;
pub use memory::InMemory;

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// A file system, as far as a store needs one.
///
/// Errors are [`io::Error`]s. A store looks at some of their kinds, as the operating system gives them:
/// [`NotFound`](io::ErrorKind::NotFound) of every method that takes a path,
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) of [`create_dir`](Files::create_dir) and
/// [`rename`](Files::rename), [`DirectoryNotEmpty`](io::ErrorKind::DirectoryNotEmpty) and
/// [`NotADirectory`](io::ErrorKind::NotADirectory) of [`rename`](Files::rename) and
/// [`list`](Files::list).
pub trait Files: Send + Sync + std::fmt::Debug {
    /// Opens a regular file for reading. Symbolic links are followed.
    ///
    /// # Errors
    /// If there is no file, or what is there is none: a pipe or a device is an error at once, and is not
    /// waited for.
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Opens a regular file that exists for reading and writing, as [`open`](Files::open) does. Its bytes
    /// stay as they are.
    ///
    /// # Errors
    /// If there is no file, what is there is none, or it may not be written.
    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Makes an empty file and opens it for reading and writing.
    ///
    /// # Errors
    /// If anything has this name already, or the directory it would lie in does not exist.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Makes an empty directory.
    ///
    /// # Errors
    /// If anything has this name already, or the directory it would lie in does not exist.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Gives a file or directory another name, at once: whoever looks sees the old state or the new one.
    /// A file replaces a file, a directory an empty directory. Files that are open under either name stay
    /// so, with the bytes they had; a [lock](FileLock) stays taken.
    ///
    /// # Errors
    /// If there is nothing to rename, or `to` is anything else than the above. Nothing was changed then.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file. Those who have it open go on reading it.
    ///
    /// # Errors
    /// If there is no file with this name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and all that is in it.
    ///
    /// # Errors
    /// If there is no directory with this name, or something in it cannot be removed; the rest may be gone
    /// then.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in no particular order, without `.` and `..`.
    ///
    /// # Errors
    /// If there is no directory with this name, or it cannot be read to its end.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// What has this name. A symbolic link at the end of the path is not followed: it is
    /// [`What::Other`].
    ///
    /// # Errors
    /// If nothing has it, or it cannot be examined.
    fn what(&self, path: &Path) -> io::Result<What>;

    /// Makes the names in a directory durable: after a crash of the system it has those it has now, or had
    /// later.
    ///
    /// # Errors
    /// If that is not certain.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes the exclusive lock of a file, which is made, empty, if it is missing. `None`: another handle,
    /// here or in another process, has the lock. Does not wait.
    ///
    /// # Errors
    /// If the file cannot be opened for writing, or the system knows no locks.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>>;
}

/// What has a name in a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Something else: a symbolic link, a pipe, a device.
    Other,
}

/// An open file. Closed when dropped; closing syncs nothing.
pub trait File: Send + Sync + std::fmt::Debug {
    /// Its length in bytes.
    ///
    /// # Errors
    /// If the system does not say.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads bytes from `offset` (in bytes) on into the start of `buffer`, and gives their number: at most
    /// `buffer.len()`, possibly fewer, and 0 only at or after the end of the file, or for an empty buffer.
    ///
    /// # Errors
    /// If no byte was read. [`Interrupted`](io::ErrorKind::Interrupted): to be tried again.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes bytes from the start of `bytes` to `offset` (in bytes) on, and gives their number: at most
    /// `bytes.len()`, possibly fewer. Bytes between the old end of the file and `offset` become zero.
    ///
    /// # Errors
    /// If no byte was written, or the file was opened for reading.
    /// [`Interrupted`](io::ErrorKind::Interrupted): to be tried again.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts the file to `bytes` bytes, or lengthens it by zeros.
    ///
    /// # Errors
    /// If its length is not changed, or the file was opened for reading.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Makes all that was written to the file, by whichever handle, and its length durable. Its name is its
    /// directory's: [`Files::sync_dir`].
    ///
    /// # Errors
    /// If that is not certain. What was written before may then be lost even if a later call succeeds.
    fn sync(&self) -> io::Result<()>;

    /// The first `len` bytes of the file, to be looked at for as long as the result lives. The caller sees to
    /// it that nobody writes to them or cuts them; what is appended behind them does no harm.
    ///
    /// Without an implementation of its own the bytes are [read](Bytes::read) into memory; [`Disk`]'s files
    /// are mapped.
    ///
    /// # Errors
    /// If the file is shorter, or cannot be read.
    fn map(&self, len: usize) -> io::Result<Bytes> {
        Bytes::read(self, len)
    }
}

/// An exclusive lock of a file, held until it is dropped.
pub trait FileLock: Send + Sync + std::fmt::Debug {
    /// Whether the locked file is still the one at its path, so that others who look there meet this lock.
    ///
    /// # Errors
    /// If the locked file cannot be examined. A path that leads nowhere is no error: it is not the file.
    fn is_current(&self) -> io::Result<bool>;

    /// Says that the file was renamed, or lies in a directory that was, and is now at `path`.
    fn moved(&mut self, path: &Path);
}

/// Reads until `buffer` is full.
///
/// # Errors
/// If the file ends before ([`UnexpectedEof`](io::ErrorKind::UnexpectedEof)) or cannot be read.
pub(super) fn read_exact_at<F: File + ?Sized>(
    file: &F,
    mut offset: u64,
    mut buffer: &mut [u8],
) -> io::Result<()> {
    while !buffer.is_empty() {
        let read = read_some_at(file, offset, buffer)?;
        if read == 0 {
            let what = "failed to fill whole buffer";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        buffer = &mut buffer[read..];
        offset += read as u64;
    }
    Ok(())
}

/// Reads once, however often it is interrupted.
pub(super) fn read_some_at<F: File + ?Sized>(
    file: &F,
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        match file.read_at(offset, buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Writes until all `bytes` are written.
///
/// # Errors
/// If some are not. How many are is not known then.
pub(super) fn write_all_at<F: File + ?Sized>(
    file: &F,
    mut offset: u64,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(offset, bytes) {
            Ok(0) => {
                let what = "failed to write whole buffer";
                return Err(io::Error::new(io::ErrorKind::WriteZero, what));
            }
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
