//! A column's file, read for what of it is whole.

use super::Cause;
use crate::store::column::{check_block, unreadable};
use crate::store::damage::{Damage, Problem};
use crate::store::files::{self, File, Files};
use crate::store::format::BLOCK_BYTES;
use crate::store::manifest::Entry;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bytes of a column, a block at a time. They are read, never mapped: what a disk cannot give is an
/// error then, not a signal.
pub(super) struct Blocks {
    path: PathBuf,
    file: Result<Box<dyn File>, Cause>,
    /// That can be read, if they are whole.
    bytes: u64,
    /// None: there is nothing to compare with.
    sums: Option<Vec<u64>>,
    /// The number of the block that was read last.
    current: Option<usize>,
    block: Vec<u8>,
    bad: HashMap<usize, Cause>,
    /// Of all that lies beyond the file.
    beyond: Cause,
}

impl Blocks {
    /// The file that `entry` names. If `checked` is false, its length is that of the file and there are no sums;
    /// `expected` is how long it should be then.
    pub(super) fn open(
        files: &dyn Files,
        dir: &Path,
        entry: &Entry,
        checked: bool,
        expected: u64,
    ) -> Blocks {
        let path = dir.join(&entry.file);
        let file = (files.open(&path)).map_err(|e| Arc::new(unreadable(&path, &e)));
        let bytes = entry.bytes;
        let problem = Problem::Cut {
            expected,
            found: bytes,
        };
        Blocks {
            beyond: cause(&path, bytes, problem),
            path,
            file,
            bytes,
            sums: checked.then(|| entry.sums.clone()),
            current: None,
            block: Vec::new(),
            bad: HashMap::new(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Damage in this file.
    pub(super) fn cause(&self, offset: u64, problem: Problem) -> Cause {
        cause(&self.path, offset, problem)
    }

    /// The bytes from `offset` on, if all blocks that they lie in are whole.
    pub(super) fn read(&mut self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, Cause> {
        if (offset.checked_add(len as u64)).is_none_or(|end| end > self.bytes) {
            return Err(match &self.file {
                Ok(_) => self.beyond.clone(),
                Err(missing) => missing.clone(),
            });
        }
        let (first, start) = place(offset);
        if start + len <= BLOCK_BYTES {
            if len == 0 {
                return Ok(Cow::Borrowed(&[]));
            }
            self.load(first)?;
            return Ok(Cow::Borrowed(&self.block[start..start + len]));
        }
        let mut all = Vec::new();
        if all.try_reserve_exact(len).is_err() {
            let error = io::Error::from(io::ErrorKind::OutOfMemory);
            return Err(Arc::new(unreadable(&self.path, &error)));
        }
        let (mut block, mut start) = (first, start);
        while all.len() < len {
            self.load(block)?;
            let end = self.block.len().min(start + len - all.len());
            all.extend_from_slice(&self.block[start..end]);
            (block, start) = (block + 1, 0);
        }
        Ok(Cow::Owned(all))
    }

    /// As many bytes as `N`, from `offset` on.
    pub(super) fn array<const N: usize>(&mut self, offset: u64) -> Result<[u8; N], Cause> {
        let bytes = self.read(offset, N)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    /// Each block, from the first to the last: where it starts, and its bytes or why they cannot be used, and how
    /// many they are.
    pub(super) fn for_each(&mut self, mut each: impl FnMut(u64, Result<&[u8], (u64, Cause)>)) {
        for n in 0..self.bytes.div_ceil(BLOCK_BYTES as u64) as usize {
            let start = n as u64 * BLOCK_BYTES as u64;
            match self.load(n) {
                Ok(()) => each(start, Ok(&self.block)),
                Err(cause) => each(start, Err((self.len_of(n) as u64, cause))),
            }
        }
    }

    /// Each `len` bytes, from the first to the last that are whole: where they start, and the bytes or why they cannot
    /// be used.
    pub(super) fn for_each_entry(
        &mut self,
        len: usize,
        mut each: impl FnMut(u64, Result<&[u8], Cause>),
    ) {
        for n in 0..self.bytes / len as u64 {
            let offset = n * len as u64;
            match self.read(offset, len) {
                Ok(entry) => each(offset, Ok(&entry)),
                Err(cause) => each(offset, Err(cause)),
            }
        }
    }

    fn len_of(&self, n: usize) -> usize {
        let start = n as u64 * BLOCK_BYTES as u64;
        (self.bytes - start).min(BLOCK_BYTES as u64) as usize
    }

    /// Makes block `n` the current one.
    fn load(&mut self, n: usize) -> Result<(), Cause> {
        if self.current == Some(n) {
            return Ok(());
        }
        if let Some(cause) = self.bad.get(&n) {
            return Err(cause.clone());
        }
        self.current = None;
        if let Err(cause) = self.fetch(n) {
            self.bad.insert(n, cause.clone());
            return Err(cause);
        }
        self.current = Some(n);
        Ok(())
    }

    fn fetch(&mut self, n: usize) -> Result<(), Cause> {
        let start = n as u64 * BLOCK_BYTES as u64;
        self.block.resize(self.len_of(n), 0);
        let file = self.file.as_ref().map_err(Arc::clone)?;
        if let Err(e) = files::read_exact_at(&**file, start, &mut self.block) {
            return Err(match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    let found = file.bytes().unwrap_or(start);
                    let expected = self.bytes;
                    cause(&self.path, found, Problem::Cut { expected, found })
                }
                _ => {
                    let mut damage = unreadable(&self.path, &e);
                    damage.offset = start;
                    Arc::new(damage)
                }
            });
        }
        match &self.sums {
            Some(sums) => check_block(&self.path, start, &self.block, sums[n]).map_err(Arc::new),
            None => Ok(()),
        }
    }
}

fn cause(path: &Path, offset: u64, problem: Problem) -> Cause {
    Arc::new(Damage {
        path: path.to_owned(),
        offset,
        problem,
    })
}

/// The block of a byte, and where it is in it.
fn place(offset: u64) -> (usize, usize) {
    let block = BLOCK_BYTES as u64;
    ((offset / block) as usize, (offset % block) as usize)
}
