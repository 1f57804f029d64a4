//! The first line of a manifest: what it is, of which version, and how its body can be checked.

use super::error::OpenError;
use super::format::{MAGIC, VERSION};
use std::path::Path;

/// 16 lower-case hexadecimal digits.
pub(crate) fn parse_sum(text: &str) -> Option<u64> {
    let sum = u64::from_str_radix(text, 16).ok()?;
    (format!("{sum:016x}") == text).then_some(sum)
}

/// No first line of a manifest is longer.
pub(super) const HEADER_MAX: u64 = 80;

/// The first line.
pub(super) struct Header {
    pub(super) sum: u64,
    pub(super) body_bytes: u64,
    /// Of the line itself, with its end.
    pub(super) bytes: u64,
}

impl Header {
    pub(super) fn render(version: u64, sum: u64, body_bytes: u64) -> String {
        format!("{MAGIC}{version} {sum:016x} {body_bytes}\n")
    }

    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Header, OpenError> {
        let path = || path.to_owned();
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC.as_bytes()[..known] {
            return Err(OpenError::Foreign { path: path() });
        }
        let damaged = || OpenError::ManifestDamaged {
            path: path(),
            offset: 0,
            what: "the first line cannot be read".into(),
        };
        let line = bytes.split(|&b| b == b'\n').next().unwrap_or(bytes);
        let line = std::str::from_utf8(line).map_err(|_| damaged())?;
        let mut fields = line.get(known..).unwrap_or("").splitn(3, ' ');
        let (version, sum, body_bytes) = (fields.next(), fields.next(), fields.next());
        // A version is whole only with a field after it.
        if let (Some(version), Some(_)) = (version, sum) {
            let found: u64 = version.parse().map_err(|_| damaged())?;
            if found > VERSION {
                return Err(OpenError::Newer {
                    path: path(),
                    found,
                });
            }
        }
        if line.len() == bytes.len() {
            // No end of line. Unless the line is too long to be one, the rest of the file is missing.
            if bytes.len() as u64 >= HEADER_MAX {
                return Err(damaged());
            }
            let found = bytes.len() as u64;
            let expected = Header::render(VERSION, 0, 0).len() as u64;
            return Err(OpenError::ManifestCut {
                path: path(),
                expected: expected.max(found + 1),
                found,
            });
        }
        let sum = sum.and_then(parse_sum).ok_or_else(damaged)?;
        let body_bytes: u64 = (body_bytes.and_then(|n| n.parse().ok())).ok_or_else(damaged)?;
        if Header::render(VERSION, sum, body_bytes).trim_end() != line {
            return Err(damaged());
        }
        Ok(Header {
            sum,
            body_bytes,
            bytes: line.len() as u64 + 1,
        })
    }
}
