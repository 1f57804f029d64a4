//! A file of questions whose right answers are known: a JSON object in each line.

use crate::failure::Failure;
use crate::files;
use crate::values::Moment;
use memorank::import::read_vectors;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// More is no file of questions: a device without an end, say.
const LIMIT_BYTES: u64 = 1 << 30;

#[derive(Deserialize)]
pub struct Line {
    #[serde(default, alias = "evidence")]
    pub relevant: Vec<Key>,
    pub vector: Option<Vec<f32>>,
    pub text: Option<String>,
    pub category: Option<Label>,
    pub fold: Option<Label>,
    pub now: Option<Moment>,
    pub agent: Option<u32>,
    /// What the question is called.
    #[serde(rename = "id")]
    _id: Option<IgnoredAny>,
    #[serde(flatten)]
    pub ignored: BTreeMap<String, IgnoredAny>,
}

/// What a memory is called: its key, or else its id.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a key or id: a text or a whole number")]
pub enum Key {
    Number(u64),
    Text(String),
}

/// Of a category or fold. Numbers come before texts.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(untagged, expecting = "a category or fold: a text or a whole number")]
pub enum Label {
    Number(i64),
    Text(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Number(number) => number.fmt(f),
            Key::Text(text) => text.fmt(f),
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Number(number) => number.fmt(f),
            Label::Text(text) => text.fmt(f),
        }
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The questions of a file with the numbers of their lines. Empty lines are passed over.
pub fn lines(path: &Path) -> Result<Vec<(usize, Line)>, Failure> {
    let file = path.display();
    let told = |what: String| Failure::Error(format!("{file}{what}").into());
    let bytes = files::read(path, LIMIT_BYTES).map_err(|e| told(format!(": {e}")))?;
    if bytes.len() as u64 > LIMIT_BYTES {
        return Err(told(": more than 1 GiB of questions".to_owned()));
    }
    // What some editors begin a text with.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let mut all = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line = serde_json::from_slice(line).map_err(|e| {
            // It counts lines within this one.
            let (what, at) = (e.to_string(), format!(" at line 1 column {}", e.column()));
            let what = what.strip_suffix(&at).unwrap_or(&what);
            told(format!(", line {number}, column {}: {what}", e.column()))
        })?;
        all.push((number, line));
    }
    match all.is_empty() {
        true => Err(told(": no question".to_owned())),
        false => Ok(all),
    }
}

/// Where the matrix beside a file would be.
pub fn matrix_beside(path: &Path) -> PathBuf {
    path.with_extension("npy")
}

/// The vectors of a matrix beside the file, if no line has one or a text.
pub fn vectors_beside(
    path: &Path,
    lines: &[(usize, Line)],
) -> Result<Option<std::vec::IntoIter<Vec<f32>>>, Failure> {
    let mut lines_with = lines.iter();
    if lines_with.any(|(_, line)| line.vector.is_some() || line.text.is_some()) {
        return Ok(None);
    }
    let matrix = matrix_beside(path);
    if !matrix.exists() {
        let told = format!(
            "{}: no line has a \"vector\" or \"text\", and there is no {}",
            path.display(),
            matrix.display()
        );
        return Err(Failure::Error(told.into()));
    }
    let vectors = read_vectors(&matrix)?;
    if vectors.len() != lines.len() {
        let told = format!(
            "{} has {} vectors for the {} questions of {}",
            matrix.display(),
            vectors.len(),
            lines.len(),
            path.display()
        );
        return Err(Failure::Error(told.into()));
    }
    Ok(Some(vectors.into_iter()))
}
