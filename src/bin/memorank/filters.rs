//! Which memories are meant: the flags that `list`, `query`, `explain` and `replay` share.

use crate::failure::Failure;
use crate::values::Moment;
use crate::{files, keys};
use memorank::store::{Kind, Snapshot};
use memorank::stream::{Contains, Filter, Period};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The flags' heading in `--help`.
pub const HEADING: &str = "Which memories";

/// Serialized as given, and what is not given not at all.
#[derive(clap::Args, Serialize)]
#[command(next_help_heading = HEADING)]
pub struct Filters {
    /// Only memories of this kind; given several times, of these.
    #[arg(long, value_name = "KIND")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kind: Vec<String>,
    /// Only memories created at this moment (RFC 3339) or later.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    created_from: Option<Moment>,
    /// Only memories created before this moment.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    created_until: Option<Moment>,
    /// Only memories last retrieved at this moment or later.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    accessed_from: Option<Moment>,
    /// Only memories last retrieved before this moment.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    accessed_until: Option<Moment>,
    /// Only memories without an expiry, or with one after --now.
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unexpired: bool,
    /// Only memories whose text contains this.
    #[arg(long, value_name = "TEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    contains: Option<String>,
    /// For --contains, a to z are A to Z.
    #[arg(long, requires = "contains")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ignore_case: bool,
    /// Only this memory (its key or id); given several times, these.
    #[arg(long, value_name = "KEY")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    only: Vec<String>,
    /// Not this memory; given several times, none of these.
    #[arg(long, value_name = "KEY")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exclude: Vec<String>,
    /// A file with a byte for each row of the store, those of deleted memories too: only rows whose byte is not 0. numpy
    /// writes it with `mask.astype("u1").tofile(FILE)`.
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<PathBuf>,
}

/// The filters in the kinds, ids and rows of one snapshot.
pub struct Narrowed<'a> {
    filters: &'a Filters,
    kinds: Vec<Kind>,
    only: Vec<u64>,
    /// Ids that do not compete.
    pub exclude: Vec<u64>,
    mask: Option<Vec<u64>>,
}

impl Filters {
    /// The file with a mask.
    pub fn mask(&self) -> Option<&Path> {
        self.mask.as_deref()
    }

    pub fn narrowed(&self, snapshot: &Snapshot) -> Result<Narrowed<'_>, Failure> {
        let kinds = self.kind.iter().map(|name| kind(snapshot, name));
        let mask = self.mask.as_ref().map(|path| mask(path, snapshot.rows()));
        Ok(Narrowed {
            filters: self,
            kinds: kinds.collect::<Result<_, _>>()?,
            only: keys::ids(snapshot, &self.only)?,
            exclude: keys::ids(snapshot, &self.exclude)?,
            mask: mask.transpose()?,
        })
    }
}

impl Narrowed<'_> {
    /// The filter, which leaves these ids out, and lets pass what comes later and what was corrected.
    pub fn without<'s>(&'s self, exclude: &'s [u64]) -> Filter<'s> {
        let filters = self.filters;
        let period = |from: Option<Moment>, until: Option<Moment>| Period {
            from: from.map(|from| from.0),
            until: until.map(|until| until.0),
        };
        let text = filters
            .contains
            .as_deref()
            .map(|text| match filters.ignore_case {
                true => Contains::IgnoringAsciiCase(text),
                false => Contains::Exactly(text),
            });
        Filter {
            kinds: (!self.kinds.is_empty()).then_some(&self.kinds),
            created: period(filters.created_from, filters.created_until),
            last_access: period(filters.accessed_from, filters.accessed_until),
            unexpired: filters.unexpired,
            text,
            ids: (!self.only.is_empty()).then_some(&self.only),
            exclude,
            mask: self.mask.as_deref(),
            future: true,
            superseded: true,
        }
    }
}

/// The kind of a store that has this name.
pub fn kind(snapshot: &Snapshot, name: &str) -> Result<Kind, Failure> {
    let kinds = snapshot.kinds();
    if let Some(kind) = kinds.iter().find(|kind| kind.as_str() == name) {
        return Ok(kind.clone());
    }
    let names: Vec<_> = kinds
        .iter()
        .map(|kind| format!("{:?}", kind.as_str()))
        .collect();
    let there_are = match names.is_empty() {
        true => "it has none yet".to_owned(),
        false => format!("it has {}", names.join(", ")),
    };
    Err(Failure::Error(
        format!("the store has no kind {name:?}; {there_are}").into(),
    ))
}

/// The bits of so many rows: a byte each in the file.
fn mask(path: &Path, rows: usize) -> Result<Vec<u64>, Failure> {
    let told = |what: String| Failure::Error(format!("{}: {what}", path.display()).into());
    // One byte too many is enough to know.
    let bytes = files::read(path, rows as u64).map_err(|e| told(e.to_string()))?;
    if bytes.len() != rows {
        let found = match bytes.len() > rows {
            true => "more".to_owned(),
            false => bytes.len().to_string(),
        };
        return Err(told(format!(
            "a mask has a byte for each of the store's {rows} rows; this file has {found}"
        )));
    }
    let word = |bytes: &[u8]| {
        let bits = bytes.iter().enumerate();
        bits.fold(0, |word, (bit, &byte)| word | u64::from(byte != 0) << bit)
    };
    Ok(bytes.chunks(64).map(word).collect())
}
