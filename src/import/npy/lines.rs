//! The lines of a `.jsonl` file, and the first of its two readings, which checks that every line is an
//! object and learns keys and ids, so that evidence may name any line.

use crate::import::{ImportError, Place};
use crate::store::open_regular;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that is read: 64 MiB.
const LINE_MAX: u64 = 64 << 20;

/// Lines of a file, numbered from 1.
#[derive(Debug)]
pub(in crate::import) struct Lines<R> {
    pub(super) path: PathBuf,
    file: R,
    line_max: u64,
    line: Vec<u8>,
    number: u64,
}

impl Lines<BufReader<File>> {
    pub(super) fn open(path: &Path) -> Result<Self, ImportError> {
        let file = open_regular(path).map_err(|source| ImportError::Io {
            path: path.to_owned(),
            remedy: "a .npy file is imported together with a .jsonl file of its memories",
            source,
        })?;
        let file = BufReader::with_capacity(1 << 20, file);
        Ok(Lines::new(path, file, LINE_MAX))
    }
}

impl<R: BufRead> Lines<R> {
    /// Lines of at most `line_max` bytes, their ends included.
    pub(in crate::import) fn new(path: &Path, file: R, line_max: u64) -> Lines<R> {
        Lines {
            path: path.to_owned(),
            file,
            line_max,
            line: Vec::new(),
            number: 0,
        }
    }

    pub(in crate::import) fn into_reader(self) -> R {
        self.file
    }

    pub(in crate::import) fn place(&self) -> Place {
        Place {
            path: self.path.clone(),
            item: format!("line {}", self.number),
        }
    }

    fn wrong(&self, found: impl Into<String>) -> ImportError {
        ImportError::Line {
            place: self.place(),
            found: found.into(),
        }
    }

    /// The next line's text, or `None` after the last.
    pub(in crate::import) fn advance(&mut self) -> Result<Option<&[u8]>, ImportError> {
        self.line.clear();
        let mut limited = (&mut self.file).take(self.line_max);
        let read = limited.read_until(b'\n', &mut self.line);
        let length = read.map_err(|source| ImportError::Io {
            path: self.path.clone(),
            remedy: "",
            source,
        })?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if length as u64 == self.line_max {
            return Err(self.wrong(format!("longer than {} bytes", self.line_max)));
        }
        if self.line.trim_ascii().is_empty() {
            return Err(self.wrong("an empty line"));
        }
        Ok(Some(&self.line))
    }

    /// The line as JSON.
    pub(in crate::import) fn parsed<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ImportError> {
        serde_json::from_slice(&self.line).map_err(|e| self.wrong(e.to_string()))
    }
}

/// The keys and ids of all lines.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) lines: u64,
    keys: HashMap<Box<str>, u64>,
    /// Ids that the file declares as numbers. Without any, a number is a position from 0.
    ids: HashMap<u64, u64>,
}

/// The first reading's view of a line.
#[derive(Deserialize)]
struct Names<'a> {
    #[serde(borrow)]
    key: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

impl Index {
    pub(super) fn read<R: BufRead>(mut lines: Lines<R>) -> Result<Index, ImportError> {
        let mut index = Index::default();
        while lines.advance()?.is_some() {
            let row = index.lines;
            index.lines += 1;
            let Names { key, id } = lines.parsed()?;
            // Other types are refused at the second reading, which knows the fields.
            let text = |raw: &RawValue| serde_json::from_str::<Box<str>>(raw.get()).ok();
            let number = id.and_then(|raw| raw.get().parse::<u64>().ok());
            let name = match (key, number) {
                (Some(key), _) => text(key),
                (None, Some(id)) => Some(id.to_string().into()),
                (None, None) => id.and_then(text),
            };
            let by_name = name
                .as_deref()
                .and_then(|name| Some((name.to_owned(), index.by_key(name)?)));
            let by_number = number.and_then(|id| Some((id.to_string(), *index.ids.get(&id)?)));
            if let Some((key, first)) = by_name.or(by_number) {
                return Err(ImportError::DuplicateKey {
                    place: lines.place(),
                    key,
                    first: format!("line {}", first + 1),
                });
            }
            index.keys.extend(name.map(|name| (name, row)));
            index.ids.extend(number.map(|id| (id, row)));
        }
        Ok(index)
    }

    pub(super) fn by_key(&self, key: &str) -> Option<u64> {
        self.keys.get(key).copied()
    }

    pub(super) fn by_id(&self, id: u64) -> Option<u64> {
        match self.ids.is_empty() {
            true => (id < self.lines).then_some(id),
            false => self.ids.get(&id).copied(),
        }
    }
}
