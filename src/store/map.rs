//! The one file of the store with `unsafe`: the committed bytes of a column, mapped or read.
//!
//! **The danger of a map, told once.** A mapped file is memory that another program can change. A store
//! never overwrites or shortens bytes it has published, so its own writers do no harm to a map. But a
//! stranger who cuts a column file while it is mapped (`truncate`, a copy onto it, a sync tool) makes
//! the next read past the new end fatal: the system kills the process with SIGBUS, and no check at open
//! can prevent it. A stranger who writes into it changes the numbers that are scored. Whoever opens a
//! store by map owes it that no other program writes to its directory. Where that cannot be
//! promised, open it into memory (`OpenOptions::in_memory`): the bytes are read and checked once, and
//! nothing that happens to the files later is seen.
#![allow(unsafe_code)]

use super::files::{self, File};
use bytemuck::Pod;
use memmap2::{Mmap, MmapOptions};
use std::{fs, io};

/// The first bytes of a [`File`], mapped or read, as [`File::map`] gives them.
pub struct Bytes(Held);

enum Held {
    Mapped(Mmap),
    /// Whole words, so that the bytes are aligned for every element type; the last may be padding.
    Owned {
        words: Vec<u64>,
        len: usize,
    },
}

impl Bytes {
    pub(super) const EMPTY: Bytes = Bytes(Held::Owned {
        words: Vec::new(),
        len: 0,
    });

    /// The first `len` bytes of `file`, mapped. The caller has checked that the file is as long.
    pub(super) fn map(file: &fs::File, len: usize) -> io::Result<Bytes> {
        // An empty map is refused by some systems and dangles on others.
        if len == 0 {
            return Ok(Bytes::EMPTY);
        }
        // SAFETY: `Mmap` asks that the file is not changed or cut while the map lives. The store's own
        // writers keep that: they append past `len`, write new files, and cut only bytes past the
        // published length (`ColumnWriter::open` and `roll_back`, and `sweep` in `open`), which is at least
        // `len`. For strangers it is the caller's duty, documented above, on `Store` and on `File::map`.
        let map = unsafe { MmapOptions::new().len(len).map(file)? };
        Ok(Bytes(Held::Mapped(map)))
    }

    /// The first `len` bytes of `file`, read into memory that is aligned for every type of a column's
    /// elements. Nothing that happens to the file later is seen.
    ///
    /// # Errors
    /// If the file is shorter ([`UnexpectedEof`](io::ErrorKind::UnexpectedEof)), cannot be read, or there is
    /// no room for so many bytes ([`OutOfMemory`](io::ErrorKind::OutOfMemory)).
    ///
    /// # Panics
    /// If `file` says that it read more than it was asked to.
    pub fn read<F: File + ?Sized>(file: &F, len: usize) -> io::Result<Bytes> {
        let mut words = Vec::new();
        words
            .try_reserve_exact(len.div_ceil(8))
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        words.resize(len.div_ceil(8), 0_u64);
        files::read_exact_at(file, 0, &mut bytemuck::cast_slice_mut(&mut words)[..len])?;
        Ok(Bytes(Held::Owned { words, len }))
    }

    #[cfg(test)]
    pub(super) fn owned(bytes: &[u8]) -> Bytes {
        let mut words = vec![0_u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        let len = bytes.len();
        Bytes(Held::Owned { words, len })
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Held::Mapped(map) => map,
            Held::Owned { words, len } => &bytemuck::cast_slice(words)[..*len],
        }
    }

    /// The bytes as whole elements; bytes left over at the end are not seen.
    pub(super) fn view<T: Pod>(&self) -> &[T] {
        let bytes = self.as_slice();
        let whole = bytes.len() - bytes.len() % size_of::<T>();
        // A map starts at a page and `words` at a multiple of 8: aligned for every column's type. An
        // empty slice may start anywhere.
        match whole {
            0 => &[],
            _ => bytemuck::cast_slice(&bytes[..whole]),
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bytes")
            .field("len", &self.as_slice().len())
            .field("mapped", &matches!(self.0, Held::Mapped(_)))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;
    use std::io::Write;

    // B48
    #[test]
    fn elements_are_aligned_however_the_bytes_came() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..=255).collect();
        file.write_all(&bytes).unwrap();
        for len in [0, 1, 2, 7, 8, 9, 255, 256] {
            let read = Bytes::read(&file, len).unwrap();
            let map = Bytes::map(&file, len).unwrap();
            assert_eq!(read.as_slice(), &bytes[..len]);
            assert_eq!(map.as_slice(), &bytes[..len]);
            assert_eq!(read.view::<u64>(), map.view::<u64>());
            assert_eq!(read.view::<u64>().len(), len / 8);
            assert_eq!(map.view::<f16>().len(), len / 2);
            assert_eq!(Bytes::EMPTY.view::<i64>(), [0_i64; 0]);
        }
    }

    #[test]
    fn reading_more_than_there_is_fails() {
        let file = tempfile::tempfile().unwrap();
        assert!(Bytes::read(&file, 1).is_err());
    }
}
