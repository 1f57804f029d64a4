//! A file of questions: a JSON object in each line.

use crate::failure::Failure;
use crate::files;
use crate::question::{Asked, Source};
use crate::values::Moment;
use serde::Deserialize;
use std::path::Path;

/// More is no file of questions: a device without an end, say.
const LIMIT_BYTES: u64 = 1 << 30;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: Option<String>,
    like: Option<String>,
    vector: Option<Vec<f32>>,
    agent: Option<u32>,
    now: Option<Moment>,
}

/// The questions of a file, at least one. Empty lines are passed over.
pub fn read(path: &Path) -> Result<Vec<Asked>, Failure> {
    let file = path.display().to_string();
    let told = |what: String| Failure::Error(format!("{file}{what}").into());
    let bytes = files::read(path, LIMIT_BYTES).map_err(|e| told(format!(": {e}")))?;
    if bytes.len() as u64 > LIMIT_BYTES {
        return Err(told(": more than 1 GiB of questions".to_owned()));
    }
    let mut all = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let wrong = |what: &str| told(format!(", line {number}: {what}"));
        let line: Line = serde_json::from_slice(line).map_err(|e| wrong(&e.to_string()))?;
        let source = match (line.text, line.like, line.vector) {
            (Some(text), None, None) => Source::Text(text),
            (None, Some(key), None) => Source::Like(key),
            (None, None, Some(vector)) => Source::Vector {
                file: file.clone(),
                index: all.len(),
                vector,
            },
            (None, None, None) | (Some(_), ..) | (_, Some(_), _) => {
                return Err(wrong(
                    "one of \"text\", \"like\" and \"vector\" is expected",
                ));
            }
        };
        all.push(Asked {
            source,
            agent: line.agent,
            now: line.now,
        });
    }
    match all.is_empty() {
        true => Err(told(": no question".to_owned())),
        false => Ok(all),
    }
}
