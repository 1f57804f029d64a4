//! A file of questions whose right answers are known: a JSON object in each line.

use crate::failure::Failure;
use crate::files;
use crate::values::Moment;
use memorank::import::read_vectors;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::Path;

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

#[derive(Deserialize)]
#[serde(untagged)]
pub enum Key {
    Id(u64),
    Key(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
pub enum Label {
    Number(i64),
    Text(String),
}

impl From<Label> for String {
    fn from(label: Label) -> String {
        match label {
            Label::Number(number) => number.to_string(),
            Label::Text(text) => text,
        }
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
    let mut all = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        if !line.trim_ascii().is_empty() {
            let line = serde_json::from_slice(line);
            all.push((
                number,
                line.map_err(|e| told(format!(", line {number}: {e}")))?,
            ));
        }
    }
    match all.is_empty() {
        true => Err(told(": no question".to_owned())),
        false => Ok(all),
    }
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
    let matrix = path.with_extension("npy");
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
