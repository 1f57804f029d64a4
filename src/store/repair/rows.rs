//! A row of the columns, as far as it can be read.

use super::Cause;
use super::blocks::Blocks;
use super::report::Part;
use super::source::Source;
use crate::store::damage::Problem;
use crate::store::evidence;
use crate::store::files::Files;
use crate::store::format::{Column, MAX_KINDS, NO_EXPIRY};
use crate::store::norms::Norms;
use std::path::Path;

/// A row as far as it can be read.
pub(super) struct Salvaged {
    /// With its inverse norm; `None` if there is no vector.
    pub(super) vector: Option<(Vec<u8>, f32)>,
    pub(super) created: i64,
    pub(super) last_access: i64,
    /// `NO_EXPIRY`: none.
    pub(super) expiry: i64,
    /// `None`: it cannot be read.
    pub(super) importance: Option<f32>,
    /// `None`: it cannot be read.
    pub(super) kind: Option<u16>,
    pub(super) depth: u32,
    pub(super) key: Option<String>,
    pub(super) text: String,
    pub(super) payload: Vec<u8>,
    pub(super) evidence: Vec<u8>,
    /// What it is without.
    pub(super) without: Vec<(Part, Cause)>,
}

/// The columns of rows.
pub(super) struct Reader {
    /// In the order of [`Column::ALL`].
    columns: Vec<Blocks>,
    pub(super) rows: usize,
    row_bytes: usize,
    /// Indexes of kinds are below it.
    kinds: usize,
    checked: bool,
    pub(super) norms: Norms,
    /// Inverse norms that could not be read and were computed from the elements.
    pub(super) computed: usize,
}

impl Reader {
    pub(super) fn open(files: &dyn Files, dir: &Path, source: &Source) -> Reader {
        let manifest = &source.manifest;
        let columns = Column::ALL.into_iter();
        Reader {
            columns: columns
                .map(|column| source.open(files, dir, column))
                .collect(),
            rows: manifest.rows as usize,
            row_bytes: manifest.dim.get() * manifest.dtype.size_bytes(),
            kinds: match source.checked {
                true => manifest.kinds.len(),
                false => MAX_KINDS,
            },
            checked: source.checked,
            norms: Norms::new(manifest.dim, manifest.dtype),
            computed: 0,
        }
    }

    /// What can be told of a row, or why it is lost.
    pub(super) fn row(&mut self, row: usize) -> Result<Salvaged, Cause> {
        let text = self.text(row)?;
        let mut without = Vec::new();
        let mut or = |part: Part, cause: Cause| without.push((part, cause));
        let created = self.fixed(Column::Created, row).map(i64::from_le_bytes);
        let last_access = self.fixed(Column::LastAccess, row).map(i64::from_le_bytes);
        let (created, last_access) = match (created, last_access) {
            (Ok(created), Ok(last_access)) => (created, last_access),
            (Ok(created), Err(cause)) => {
                or(Part::LastAccess, cause);
                (created, created)
            }
            (Err(cause), Ok(last_access)) => {
                or(Part::Created, cause);
                (last_access, last_access)
            }
            (Err(cause), Err(_)) => return Err(cause),
        };
        let expiry = self.fixed(Column::Expiry, row).map(i64::from_le_bytes);
        let depth = self.fixed(Column::Depth, row).map(u32::from_le_bytes);
        let salvaged = Salvaged {
            vector: self.vector(row).unwrap_or_else(|cause| {
                or(Part::Embedding, cause);
                None
            }),
            created,
            last_access,
            expiry: expiry.unwrap_or_else(|cause| {
                or(Part::Expiry, cause);
                NO_EXPIRY
            }),
            importance: (self.importance(row))
                .map_err(|cause| or(Part::Importance, cause))
                .ok(),
            kind: self.kind(row).map_err(|cause| or(Part::Kind, cause)).ok(),
            depth: depth.unwrap_or_else(|cause| {
                or(Part::Depth, cause);
                0
            }),
            key: self.key(row).unwrap_or_else(|cause| {
                or(Part::Key, cause);
                None
            }),
            text,
            payload: self.payload(row).unwrap_or_else(|cause| {
                or(Part::Payload, cause);
                Vec::new()
            }),
            evidence: self.evidence(row).unwrap_or_else(|cause| {
                or(Part::Evidence, cause);
                Vec::new()
            }),
            without: Vec::new(),
        };
        Ok(Salvaged {
            without,
            ..salvaged
        })
    }

    pub(super) fn cause(&self, column: Column, offset: u64, problem: Problem) -> Cause {
        self.columns[column as usize].cause(offset, problem)
    }

    pub(super) fn id(&mut self, row: usize) -> Result<u64, Cause> {
        self.fixed(Column::Id, row).map(u64::from_le_bytes)
    }

    pub(super) fn importance(&mut self, row: usize) -> Result<f32, Cause> {
        let value = f32::from_le_bytes(self.fixed(Column::Importance, row)?);
        match value.is_finite() {
            // No -0: least and greatest must not depend on the order.
            true => Ok(value + 0.0),
            false => {
                let problem = Problem::Importance { row, value };
                Err(self.cause(Column::Importance, row as u64 * 4, problem))
            }
        }
    }

    pub(super) fn key(&mut self, row: usize) -> Result<Option<String>, Cause> {
        let key = self.string(Column::KeyEnds, Column::KeyBytes, row)?;
        Ok((!key.is_empty()).then_some(key))
    }

    fn text(&mut self, row: usize) -> Result<String, Cause> {
        self.string(Column::TextEnds, Column::TextBytes, row)
    }

    fn payload(&mut self, row: usize) -> Result<Vec<u8>, Cause> {
        Ok(self.span(Column::PayloadEnds, Column::PayloadBytes, row)?.1)
    }

    fn evidence(&mut self, row: usize) -> Result<Vec<u8>, Cause> {
        let (start, bytes) = self.span(Column::EvidenceEnds, Column::EvidenceBytes, row)?;
        match evidence::decode(&bytes) {
            Ok(_) => Ok(bytes),
            Err((at, what)) => {
                let problem = Problem::Evidence { row, what };
                Err(self.cause(Column::EvidenceBytes, start + at as u64, problem))
            }
        }
    }

    fn kind(&mut self, row: usize) -> Result<u16, Cause> {
        let kind = u16::from_le_bytes(self.fixed(Column::Kind, row)?);
        let kinds = self.kinds;
        match usize::from(kind) < kinds {
            true => Ok(kind),
            false => {
                let problem = Problem::Kind { row, kind, kinds };
                Err(self.cause(Column::Kind, row as u64 * 2, problem))
            }
        }
    }

    /// A row's elements and their inverse norm. One that cannot be read is what it was when it was written: it
    /// follows from the elements.
    fn vector(&mut self, row: usize) -> Result<Option<(Vec<u8>, f32)>, Cause> {
        let stored = self.fixed(Column::InvNorm, row).map(f32::from_le_bytes);
        let offset = row as u64 * self.row_bytes as u64;
        let elements = match self.columns[Column::Embedding as usize].read(offset, self.row_bytes) {
            Ok(elements) => elements.into_owned(),
            // It had none.
            Err(_) if stored.as_ref().is_ok_and(|stored| stored.to_bits() == 0) => return Ok(None),
            Err(cause) => return Err(cause),
        };
        let computed = self.norms.of(&elements).map_err(|problem| {
            let problem = Problem::Elements { row, problem };
            self.cause(Column::Embedding, offset, problem)
        })?;
        match stored {
            Err(_) => self.computed += 1,
            Ok(stored) if stored.to_bits() == computed.to_bits() => {}
            // Which of them is damaged cannot be told.
            Ok(stored) => {
                let problem = Problem::InvNorm {
                    row,
                    stored,
                    computed,
                };
                return Err(self.cause(Column::InvNorm, row as u64 * 4, problem));
            }
        }
        Ok((computed != 0.0).then_some((elements, computed)))
    }

    /// A row's value in a column of `N` bytes for each.
    fn fixed<const N: usize>(&mut self, column: Column, row: usize) -> Result<[u8; N], Cause> {
        self.columns[column as usize].array(row as u64 * N as u64)
    }

    fn string(&mut self, ends: Column, bytes: Column, row: usize) -> Result<String, Cause> {
        let (start, span) = self.span(ends, bytes, row)?;
        String::from_utf8(span).map_err(|e| {
            let offset = start + e.utf8_error().valid_up_to() as u64;
            self.cause(bytes, offset, Problem::Utf8 { row })
        })
    }

    /// A row's bytes in a column of spans, and where they start.
    fn span(&mut self, ends: Column, bytes: Column, row: usize) -> Result<(u64, Vec<u8>), Cause> {
        let end = self.end(ends, row)?;
        let start = match row {
            0 => 0,
            _ => self.end(ends, row - 1)?,
        };
        let mut ordered = start <= end;
        if !self.checked {
            // An end that is wrong makes one of its two rows too long; its other neighbours can tell.
            ordered &= row < 2
                || self
                    .end(ends, row - 2)
                    .map_or(true, |before| before <= start);
            ordered &=
                row + 1 == self.rows || self.end(ends, row + 1).map_or(true, |next| end <= next);
        }
        let all = &mut self.columns[bytes as usize];
        match usize::try_from(end.saturating_sub(start)) {
            Ok(len) if ordered && end <= all.bytes() => {
                let span = all.read(start, len)?;
                Ok((start, span.into_owned()))
            }
            _ => {
                let problem = Problem::Span {
                    row,
                    start,
                    end,
                    bytes: all.bytes(),
                };
                Err(self.cause(ends, row as u64 * 8, problem))
            }
        }
    }

    fn end(&mut self, ends: Column, row: usize) -> Result<u64, Cause> {
        self.fixed(ends, row).map(u64::from_le_bytes)
    }
}
