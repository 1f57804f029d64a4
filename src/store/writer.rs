//! Appending to a column's file, block by block. One buffer is both what is not yet written and what is
//! not yet summed, so a writer needs no more memory than a block, whatever is appended.

use super::behind::{Behind, Failed};
use super::column::check_block;
use super::damage::{Damage, Problem};
use super::error::{SYNCING, WriteError};
use super::files::{self, File, Files};
use super::format::BLOCK_BYTES;
use super::manifest::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

pub(super) struct ColumnWriter {
    files: Arc<dyn Files>,
    path: PathBuf,
    /// Before this writer.
    committed: u64,
    /// What the column will be: its length, and the checksums of all full blocks (and of the last
    /// block, before it is opened and after it is finished).
    entry: Entry,
    /// From the first byte on.
    open: Option<Open>,
}

struct Open {
    file: Arc<dyn File>,
    /// Once there is much to write.
    behind: Option<Behind>,
    /// Full blocks that were pushed.
    full: usize,
    /// Where `block` starts.
    start: u64,
    /// The bytes after the last full block.
    block: Vec<u8>,
    /// How many of them are in the file.
    written: usize,
}

impl ColumnWriter {
    pub(super) fn new(files: &Arc<dyn Files>, dir: &Path, entry: &Entry) -> ColumnWriter {
        ColumnWriter {
            files: files.clone(),
            path: dir.join(&entry.file),
            committed: entry.bytes,
            entry: entry.clone(),
            open: None,
        }
    }

    /// The length with all that was pushed.
    pub(super) fn bytes(&self) -> u64 {
        self.entry.bytes
    }

    /// The length without it.
    pub(super) fn committed(&self) -> u64 {
        self.committed
    }

    /// Opens the file, cuts what no manifest ever named, and takes up the last block after checking it.
    fn open(&mut self) -> Result<&mut Open, WriteError> {
        if self.open.is_none() {
            let path = &self.path;
            let file = (self.files.open_to_write(path)).map_err(WriteError::io("opening", path))?;
            let found = (file.bytes()).map_err(WriteError::io("examining", path))?;
            let committed = self.committed;
            if found < committed {
                return Err(WriteError::Damaged(Damage {
                    path: path.clone(),
                    offset: found,
                    problem: Problem::Cut {
                        expected: committed,
                        found,
                    },
                }));
            }
            if found > committed {
                (file.set_len(committed)).map_err(WriteError::io("cutting", path))?;
            }
            let partial = (committed % BLOCK_BYTES as u64) as usize;
            let start = committed - partial as u64;
            let mut block = vec![0; partial];
            files::read_exact_at(&*file, start, &mut block)
                .map_err(WriteError::io("reading", path))?;
            if partial > 0 {
                let sum = self.entry.sums.last().copied().unwrap_or_default();
                check_block(path, start, &block, sum)?;
                self.entry.sums.pop();
            }
            self.open = Some(Open {
                file: file.into(),
                behind: None,
                full: 0,
                start,
                block,
                written: partial,
            });
        }
        Ok(self.open.as_mut().expect("opened above"))
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.open()?;
        let ColumnWriter {
            path, entry, open, ..
        } = self;
        let open = open.as_mut().expect("opened above");
        entry.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - open.block.len()));
            open.block.extend_from_slice(now);
            bytes = later;
            if open.block.len() == BLOCK_BYTES {
                entry.sums.push(xxh3_64(&open.block));
                open.write_full(path)?;
            }
        }
        Ok(())
    }

    /// Bytes that were pushed, read back.
    pub(super) fn read_back(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, WriteError> {
        let path = self.path.clone();
        let open = self.open()?;
        open.write(&path)?;
        open.settle(&path)?;
        let mut bytes = vec![0; len];
        files::read_exact_at(&*open.file, offset, &mut bytes)
            .map_err(WriteError::io("reading", &path))?;
        Ok(bytes)
    }

    /// Writes and syncs the rest. Gives the column's new entry.
    pub(super) fn finish(&mut self) -> Result<Entry, WriteError> {
        if let Some(open) = &mut self.open {
            open.write(&self.path)?;
            open.settle(&self.path)?;
            (open.file.sync()).map_err(WriteError::io(SYNCING, &self.path))?;
            if !open.block.is_empty() {
                self.entry.sums.push(xxh3_64(&open.block));
            }
        }
        Ok(self.entry.clone())
    }

    /// Takes back what was pushed, as well as it goes: the next writer would cut it anyway.
    pub(super) fn roll_back(&mut self) {
        if let Some(mut open) = self.open.take() {
            let _ = open.settle(&self.path);
            let _ = open.file.set_len(self.committed);
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(Failed) -> WriteError {
    |(doing, source)| WriteError::io(doing, path)(source)
}

/// Full blocks that are written at once, before a thread is worth it: more than a fold of the journal has by default,
/// whose thread took the processor from readers on a machine with two.
const AT_ONCE: usize = 64;

impl Open {
    /// Writes a block that is full, or has it written, and starts the next one.
    fn write_full(&mut self, path: &Path) -> Result<(), WriteError> {
        self.full += 1;
        if self.full == AT_ONCE {
            self.behind = Behind::start(self.file.clone()).ok();
        }
        match &mut self.behind {
            Some(behind) => {
                let full = std::mem::take(&mut self.block);
                self.block = behind.write(self.start, full).map_err(failed(path))?;
            }
            None => {
                self.write(path)?;
                self.block.clear();
            }
        }
        self.start += BLOCK_BYTES as u64;
        self.written = 0;
        Ok(())
    }

    /// Waits until what was written behind is in the file.
    fn settle(&mut self, path: &Path) -> Result<(), WriteError> {
        match self.behind.take() {
            Some(mut behind) => behind.finish().map_err(failed(path)),
            None => Ok(()),
        }
    }

    fn write(&mut self, path: &Path) -> Result<(), WriteError> {
        let offset = self.start + self.written as u64;
        files::write_all_at(&*self.file, offset, &self.block[self.written..])
            .map_err(WriteError::io("writing", path))?;
        self.written = self.block.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::files::Disk;

    fn open_writer(dir: &Path, entry: &Entry) -> ColumnWriter {
        let files: Arc<dyn Files> = Arc::new(Disk);
        ColumnWriter::new(&files, dir, entry)
    }

    fn start(dir: &Path) -> Entry {
        std::fs::File::create(dir.join("text.bytes")).unwrap();
        Entry {
            file: "text.bytes".into(),
            bytes: 0,
            sums: vec![],
        }
    }

    #[test]
    fn sums_do_not_depend_on_how_bytes_were_pushed() {
        let dir = tempfile::tempdir().unwrap();
        let all: Vec<u8> = (0..2 * BLOCK_BYTES + 17)
            .map(|i| ((i * i) >> 7) as u8)
            .collect();
        let sums: Vec<u64> = all.chunks(BLOCK_BYTES).map(xxh3_64).collect();
        let b = BLOCK_BYTES;
        for cuts in [
            vec![],
            vec![1],
            vec![b - 1, b],
            vec![b],
            vec![b, 2 * b],
            vec![b + 5, 2 * b + 1],
        ] {
            let mut entry = start(dir.path());
            let mut at = 0;
            for to in cuts.into_iter().chain([all.len()]) {
                let mut writer = open_writer(dir.path(), &entry);
                for piece in all[at..to].chunks(300_001) {
                    writer.push(piece).unwrap();
                }
                entry = writer.finish().unwrap();
                at = to;
            }
            assert_eq!(entry.sums, sums);
            assert_eq!(entry.bytes, all.len() as u64);
            assert_eq!(std::fs::read(dir.path().join("text.bytes")).unwrap(), all);
        }
    }

    #[test]
    fn a_damaged_last_block_is_not_summed_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = open_writer(dir.path(), &start(dir.path()));
        writer.push(b"hello").unwrap();
        assert_eq!(writer.read_back(1, 3).unwrap(), b"ell");
        let entry = writer.finish().unwrap();
        std::fs::write(dir.path().join("text.bytes"), b"hallo").unwrap();
        let mut writer = open_writer(dir.path(), &entry);
        let pushed = writer.push(b" world");
        assert!(matches!(pushed, Err(WriteError::Damaged(_))), "{pushed:?}");
        assert_eq!(
            std::fs::read(dir.path().join("text.bytes")).unwrap(),
            b"hallo"
        );
    }

    #[test]
    fn bytes_past_the_commit_are_cut_and_a_short_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = open_writer(dir.path(), &start(dir.path()));
        writer.push(b"hello").unwrap();
        let entry = writer.finish().unwrap();
        std::fs::write(dir.path().join("text.bytes"), b"hello, garbage").unwrap();
        let mut writer = open_writer(dir.path(), &entry);
        writer.push(b"!").unwrap();
        writer.finish().unwrap();
        assert_eq!(
            std::fs::read(dir.path().join("text.bytes")).unwrap(),
            b"hello!"
        );
        std::fs::write(dir.path().join("text.bytes"), b"hell").unwrap();
        let pushed = open_writer(dir.path(), &entry).push(b"!");
        assert!(matches!(pushed, Err(WriteError::Damaged(_))), "{pushed:?}");
    }
}
