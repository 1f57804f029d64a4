//! Columns as they are read: the committed bytes of each file, and rows out of them. Nothing in the
//! bytes is trusted: a row that cannot be read is a [`Damage`].

use super::damage::{Damage, Problem};
use super::evidence;
use super::files::{File, Files};
use super::format::{BLOCK_BYTES, Column};
use super::manifest::{Entry, Manifest};
use super::map::Bytes;
use super::memory::Reference;
use bytemuck::Pod;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// How the committed bytes of a column are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Mapped,
    /// Read, and checked against their checksums.
    InMemory,
}

/// The columns of a store. A clone shares their bytes.
#[derive(Clone)]
pub(super) struct Columns {
    pub(super) paths: Vec<PathBuf>,
    pub(super) bytes: Vec<Arc<Bytes>>,
    /// The bytes may hold more.
    pub(super) rows: usize,
}

impl Columns {
    pub(super) fn load(
        files: &dyn Files,
        dir: &Path,
        manifest: &Manifest,
        hold: Hold,
    ) -> Result<Columns, Damage> {
        let mut columns = Columns {
            paths: Vec::with_capacity(Column::COUNT),
            bytes: Vec::with_capacity(Column::COUNT),
            rows: manifest.rows as usize,
        };
        for column in Column::ALL {
            let entry = manifest.column(column);
            let path = dir.join(&entry.file);
            // What becomes part of the state in memory is checked first.
            let hold = match column.is_of_rows() {
                true => hold,
                false => Hold::InMemory,
            };
            columns
                .bytes
                .push(Arc::new(load(files, &path, entry, hold)?));
            columns.paths.push(path);
        }
        Ok(columns)
    }

    /// Every byte is the one that was written. `manifest` is the one they were loaded by.
    pub(super) fn check(&self, manifest: &Manifest) -> Result<(), Damage> {
        for ((path, bytes), entry) in self.paths.iter().zip(&self.bytes).zip(&manifest.columns) {
            let first = check(path, &entry.sums, bytes.as_slice()).next();
            first.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Columns of these bytes, in the order of [`Column::ALL`].
    #[cfg(test)]
    pub(super) fn owned(bytes: Vec<Vec<u8>>, rows: usize) -> Columns {
        Columns {
            paths: (Column::ALL.iter().map(|column| column.name().into())).collect(),
            bytes: (bytes.iter().map(|bytes| Arc::new(Bytes::owned(bytes)))).collect(),
            rows,
        }
    }

    pub(super) fn view<T: Pod>(&self, column: Column) -> &[T] {
        self.bytes[column as usize].view()
    }

    pub(super) fn damage(&self, column: Column, offset: u64, problem: Problem) -> Damage {
        Damage {
            path: self.paths[column as usize].clone(),
            offset,
            problem,
        }
    }

    /// The bytes of `row` in a column of spans, and where they start.
    fn span(&self, ends: Column, bytes: Column, row: usize) -> Result<(u64, &[u8]), Damage> {
        let all = self.bytes[bytes as usize].as_slice();
        let view: &[u64] = self.view(ends);
        let start = if row == 0 { 0 } else { view[row - 1] };
        let end = view[row];
        match (usize::try_from(start), usize::try_from(end)) {
            (Ok(from), Ok(to)) if from <= to && to <= all.len() => Ok((start, &all[from..to])),
            _ => {
                let problem = Problem::Span {
                    row,
                    start,
                    end,
                    bytes: all.len() as u64,
                };
                Err(self.damage(ends, row as u64 * 8, problem))
            }
        }
    }

    fn string(&self, ends: Column, bytes: Column, row: usize) -> Result<&str, Damage> {
        let (start, span) = self.span(ends, bytes, row)?;
        std::str::from_utf8(span).map_err(|e| {
            let offset = start + e.valid_up_to() as u64;
            self.damage(bytes, offset, Problem::Utf8 { row })
        })
    }

    pub(super) fn key(&self, row: usize) -> Result<Option<&str>, Damage> {
        let key = self.string(Column::KeyEnds, Column::KeyBytes, row)?;
        Ok((!key.is_empty()).then_some(key))
    }

    /// Whether `row` has this key.
    pub(super) fn has_key(&self, row: usize, key: &str) -> Result<bool, Damage> {
        let (_, found) = self.span(Column::KeyEnds, Column::KeyBytes, row)?;
        Ok(found == key.as_bytes())
    }

    pub(super) fn text(&self, row: usize) -> Result<&str, Damage> {
        self.string(Column::TextEnds, Column::TextBytes, row)
    }

    pub(super) fn payload(&self, row: usize) -> Result<&[u8], Damage> {
        let (_, payload) = self.span(Column::PayloadEnds, Column::PayloadBytes, row)?;
        Ok(payload)
    }

    /// The row's evidence as it is encoded.
    pub(super) fn encoded_evidence(&self, row: usize) -> Result<&[u8], Damage> {
        let (_, span) = self.span(Column::EvidenceEnds, Column::EvidenceBytes, row)?;
        Ok(span)
    }

    pub(super) fn evidence(&self, row: usize) -> Result<Vec<Reference>, Damage> {
        let (start, span) = self.span(Column::EvidenceEnds, Column::EvidenceBytes, row)?;
        evidence::decode(span).map_err(|(at, what)| {
            let problem = Problem::Evidence { row, what };
            self.damage(Column::EvidenceBytes, start + at as u64, problem)
        })
    }

    /// The row's index into a table of `kinds` kinds.
    pub(super) fn kind(&self, row: usize, kinds: usize) -> Result<usize, Damage> {
        let kind = self.view::<u16>(Column::Kind)[row];
        if usize::from(kind) < kinds {
            return Ok(kind.into());
        }
        let problem = Problem::Kind { row, kind, kinds };
        Err(self.damage(Column::Kind, row as u64 * 2, problem))
    }
}

/// A column's file, at least as long as committed.
pub(super) fn open(files: &dyn Files, path: &Path, entry: &Entry) -> Result<Box<dyn File>, Damage> {
    let failed = |e: io::Error| unreadable(path, &e);
    let file = files.open(path).map_err(failed)?;
    let found = file.bytes().map_err(failed)?;
    if found < entry.bytes {
        let problem = Problem::Cut {
            expected: entry.bytes,
            found,
        };
        return Err(Damage {
            path: path.to_owned(),
            offset: found,
            problem,
        });
    }
    Ok(file)
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Damage {
    let problem = match error.kind() {
        io::ErrorKind::NotFound => Problem::Missing,
        _ => Problem::Unreadable(error.to_string()),
    };
    Damage {
        path: path.to_owned(),
        offset: 0,
        problem,
    }
}

/// The committed bytes of one column.
pub(super) fn load(
    files: &dyn Files,
    path: &Path,
    entry: &Entry,
    hold: Hold,
) -> Result<Bytes, Damage> {
    let failed = |e: io::Error| unreadable(path, &e);
    let file = open(files, path, entry)?;
    let len = usize::try_from(entry.bytes).unwrap_or(usize::MAX);
    match hold {
        Hold::Mapped => file.map(len).map_err(failed),
        Hold::InMemory => {
            let bytes = Bytes::read(&*file, len).map_err(failed)?;
            let first = check(path, &entry.sums, bytes.as_slice()).next();
            first.map_or(Ok(bytes), Err)
        }
    }
}

/// The blocks of a column that have not the checksum they were written with.
pub(super) fn check<'a>(
    path: &'a Path,
    sums: &'a [u64],
    bytes: &'a [u8],
) -> impl Iterator<Item = Damage> + 'a {
    let blocks = bytes.chunks(BLOCK_BYTES).zip(sums).enumerate();
    blocks.filter_map(move |(at, (block, &sum))| {
        check_block(path, at as u64 * BLOCK_BYTES as u64, block, sum).err()
    })
}

/// `block`, which starts at `offset`, has the checksum `expected`.
pub(super) fn check_block(
    path: &Path,
    offset: u64,
    block: &[u8],
    expected: u64,
) -> Result<(), Damage> {
    let found = xxh3_64(block);
    if found == expected {
        return Ok(());
    }
    let problem = Problem::Checksum {
        bytes: block.len() as u64,
        expected,
        found,
    };
    Err(Damage {
        path: path.to_owned(),
        offset,
        problem,
    })
}
