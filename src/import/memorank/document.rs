//! `store.json` of an export.

use crate::export::{FORMAT, Importance, Summed, Touch, VERSION, end};
use crate::import::{ImportError, Place};
use crate::store::{open_regular, parse_sum};
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

/// What it says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    format: String,
    version: u64,
    pub(super) dim: u64,
    pub(super) dtype: String,
    // So that it must be there.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(super) model: Option<String>,
    pub(super) next_id: u64,
    pub(super) memories: u64,
    pub(super) kinds: Vec<String>,
    pub(super) files: Files,
    pub(super) touches: Vec<Touch>,
    pub(super) importances: Vec<Importance>,
    #[serde(deserialize_with = "sum")]
    xxh3: u64,
}

/// The checksums of the other files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Files {
    #[serde(rename = "embeddings.npy", deserialize_with = "sum")]
    pub(super) embeddings: u64,
    #[serde(rename = "memories.jsonl", deserialize_with = "sum")]
    pub(super) memories: u64,
}

fn sum<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_sum(&text).ok_or_else(|| {
        D::Error::invalid_value(Unexpected::Str(&text), &"16 lower-case hexadecimal digits")
    })
}

impl Document {
    /// Reads it. Its format and checksum are right then, what it says is not checked.
    pub(super) fn read(path: &Path) -> Result<Document, ImportError> {
        let failed = |source| ImportError::Io {
            path: path.to_owned(),
            remedy: "an export is a folder of embeddings.npy, memories.jsonl and store.json",
            source,
        };
        let mut file = open_regular(path).map_err(failed)?;
        let (found, whole) = check(&file).map_err(failed)?;
        file.rewind().map_err(failed)?;
        // Never whole in memory: a file that is no export may have any size.
        let parsed: Result<Document, _> = serde_json::from_reader(BufReader::new(&file));
        let document = match parsed {
            Ok(document) => document,
            Err(source) => {
                // Of another version, it may have other fields.
                file.rewind().map_err(failed)?;
                if let Ok(head) = serde_json::from_reader(BufReader::new(&file)) {
                    known(path, &head)?;
                }
                return Err(ImportError::Json {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let Document {
            format, version, ..
        } = &document;
        known(
            path,
            &Head {
                format: format.clone(),
                version: *version,
            },
        )?;
        match whole {
            true => Ok(document),
            false => Err(ImportError::Checksum {
                path: path.to_owned(),
                expected: document.xxh3,
                found,
            }),
        }
    }
}

/// The checksum of all but the last two lines, and whether it stands there.
fn check(file: &File) -> io::Result<(u64, bool)> {
    let end_bytes = end(0).len() as u64;
    let start = file.metadata()?.len().saturating_sub(end_bytes);
    let mut summed = Summed::new(file.take(start));
    io::copy(&mut summed, &mut io::sink())?;
    let mut last = Vec::new();
    file.take(end_bytes + 1).read_to_end(&mut last)?;
    let sum = summed.sum();
    Ok((sum, last == end(sum).as_bytes()))
}

/// What every version says of itself.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
}

fn known(path: &Path, head: &Head) -> Result<(), ImportError> {
    let wrong = |field, found: String, expected| {
        let place = Place {
            path: path.to_owned(),
            item: "the document".to_owned(),
        };
        Err(ImportError::Field {
            place,
            field,
            found,
            expected,
        })
    };
    match head.version {
        _ if head.format != FORMAT => {
            let found = format!("{:?}", super::shortened(&head.format));
            wrong("format", found, "\"memorank export\"")
        }
        VERSION => Ok(()),
        newer => wrong("version", newer.to_string(), "1; use a newer memorank"),
    }
}
