//! `memories.jsonl` of an export.

use super::vectors::check;
use crate::export::{Cited, LINE_MAX, MOMENT, Moment, Summed};
use crate::import::json::{Fields, Record};
use crate::import::npy::{Lines, unhex};
use crate::import::{ImportError, Place};
use crate::store::{Kind, Reference, open_regular};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A memory but for its vector.
pub(in crate::import) struct Line {
    pub(super) place: Place,
    pub(super) id: u64,
    pub(super) key: Option<String>,
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) created: i64,
    pub(super) last_access: i64,
    pub(super) expiry: Option<i64>,
    pub(in crate::import) importance: f32,
    pub(super) depth: u32,
    pub(super) evidence: Vec<Reference>,
    pub(super) superseded_by: Option<u64>,
    pub(super) has_embedding: bool,
    pub(super) payload: Vec<u8>,
}

/// The lines, one after another.
pub(in crate::import) struct Memories<R> {
    path: PathBuf,
    lines: Lines<R>,
    read: u64,
    kinds: HashMap<String, Kind>,
}

impl Memories<BufReader<Summed<File>>> {
    pub(super) fn open(path: &Path, kinds: &[Kind]) -> Result<Self, ImportError> {
        let file = open_regular(path).map_err(|source| ImportError::Io {
            path: path.to_owned(),
            remedy: "",
            source,
        })?;
        let file = BufReader::with_capacity(1 << 20, Summed::new(file));
        Ok(Memories::new(path, file, kinds))
    }

    /// Compares the checksum once all lines were read.
    pub(super) fn finish(self, expected: u64) -> Result<(), ImportError> {
        let file = self.lines.into_reader();
        check(&self.path, file.get_ref().sum(), expected)
    }
}

impl<R: BufRead> Memories<R> {
    /// The lines of the file `path`, which `file` reads.
    pub(in crate::import) fn new(path: &Path, file: R, kinds: &[Kind]) -> Memories<R> {
        let kinds = kinds.iter().map(|kind| (kind.to_string(), kind.clone()));
        Memories {
            path: path.to_owned(),
            lines: Lines::new(path, file, LINE_MAX),
            read: 0,
            kinds: kinds.collect(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next memory, or `None` after the last line.
    pub(in crate::import) fn next(&mut self) -> Result<Option<Line>, ImportError> {
        if self.lines.advance()?.is_none() {
            return Ok(None);
        }
        self.read += 1;
        let fields: Fields = self.lines.parsed()?;
        let place = self.lines.place();
        let record = Record::new(&place.path, place.item, fields);
        self.memory(record).map(Some)
    }

    /// Reads on to the end, and gives the number of all lines.
    pub(super) fn count_all(&mut self) -> Result<u64, ImportError> {
        while self.lines.advance()?.is_some() {
            self.read += 1;
        }
        Ok(self.read)
    }

    fn memory(&self, mut record: Record) -> Result<Line, ImportError> {
        const WHOLE: &str = "a whole number of 64 bits, 0 or more";
        let line = Line {
            place: record.place.clone(),
            id: record.required("id", WHOLE)?,
            key: record.required("key", "text, or null")?,
            kind: self.kind(&mut record)?,
            text: record.required("text", "text")?,
            created: record.required::<Moment>("created", MOMENT)?.0,
            last_access: record.required::<Moment>("last_access", MOMENT)?.0,
            expiry: (record.required::<Option<Moment>>("expiry", MOMENT)?).map(|at| at.0),
            importance: importance(&mut record)?,
            depth: record.required("depth", "a whole number of 32 bits, 0 or more")?,
            evidence: evidence(&mut record)?,
            superseded_by: superseded_by(&mut record)?,
            has_embedding: record.required("has_embedding", "true or false")?,
            payload: payload(&mut record)?,
        };
        let place = record.place.clone();
        match record.rest().into_iter().next() {
            None => Ok(line),
            Some((field, _)) => Err(ImportError::UnknownField { place, field }),
        }
    }

    fn kind(&self, record: &mut Record) -> Result<Kind, ImportError> {
        const EXPECTED: &str = "one of the `kinds` of store.json";
        let Some(raw) = record.take("kind") else {
            return Err(record.wrong("kind", None, EXPECTED));
        };
        let name: Option<String> = serde_json::from_str(raw.get()).ok();
        let kind = name.and_then(|name| self.kinds.get(&name));
        kind.cloned()
            .ok_or_else(|| record.wrong("kind", Some(&raw), EXPECTED))
    }
}

/// What an importance must be.
pub(super) const IMPORTANCE: &str = "a number that is exactly an f32, and not -0";

/// The importance that a number is, if it is one.
pub(super) fn exact(wide: f64) -> Option<f32> {
    let narrow = wide as f32;
    let is_exact = narrow.is_finite() && (f64::from(narrow) + 0.0).to_bits() == wide.to_bits();
    is_exact.then_some(narrow)
}

fn importance(record: &mut Record) -> Result<f32, ImportError> {
    let Some(raw) = record.take("importance") else {
        return Err(record.wrong("importance", None, IMPORTANCE));
    };
    let wide: Option<f64> = serde_json::from_str(raw.get()).ok();
    wide.and_then(exact)
        .ok_or_else(|| record.wrong("importance", Some(&raw), IMPORTANCE))
}

fn evidence(record: &mut Record) -> Result<Vec<Reference>, ImportError> {
    let expected = "a list of ids and {\"missing\": text}";
    let cited: Vec<Cited<'_>> = record.required("evidence", expected)?;
    Ok(cited.into_iter().map(Reference::from).collect())
}

fn superseded_by(record: &mut Record) -> Result<Option<u64>, ImportError> {
    let Some(raw) = record.take("superseded_by") else {
        return Ok(None);
    };
    let by = serde_json::from_str(raw.get());
    by.map(Some)
        .map_err(|_| record.wrong("superseded_by", Some(&raw), "the id of a memory"))
}

/// The JSON of `payload`, verbatim, or the bytes of `payload_hex`.
fn payload(record: &mut Record) -> Result<Vec<u8>, ImportError> {
    let hex = record.take("payload_hex");
    let Some(plain) = record.take("payload") else {
        let Some(raw) = hex else {
            return Ok(Vec::new());
        };
        let text: Option<String> = serde_json::from_str(raw.get()).ok();
        return text.as_deref().and_then(unhex).ok_or_else(|| {
            let expected = "an even number of hexadecimal digits";
            record.wrong("payload_hex", Some(&raw), expected)
        });
    };
    if plain.get() == "null" || hex.is_some() {
        let expected = "JSON other than null, and no `payload_hex` beside it";
        return Err(record.wrong("payload", Some(&plain), expected));
    }
    Ok(plain.get().as_bytes().to_vec())
}
