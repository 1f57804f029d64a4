//! What a repair kept and what it lost.

use super::Cause;
use crate::store::damage::Problem;
use std::fmt::{self, Display};
use std::path::PathBuf;

/// What [`repair`](super::repair) kept and what it lost.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Memories in the new store.
    pub kept: usize,
    /// Memories that had been deleted and were left out.
    pub deleted: usize,
    /// Memories that are not in the new store.
    pub lost: Vec<Lost>,
    /// What memories in the new store are without.
    pub reduced: Vec<Reduced>,
    /// Bytes that said what was appended, touched or deleted and cannot be read.
    pub changes: Vec<LostChanges>,
    /// Why the manifest could not be used, if it could not. No checksum was compared then: what is kept is what
    /// could be decoded.
    pub manifest: Option<String>,
    /// What else is worth knowing, in sentences.
    pub notes: Vec<String>,
}

impl RepairReport {
    /// Whether the new store holds all that the damaged one did.
    pub fn is_whole(&self) -> bool {
        self.lost.is_empty()
            && self.reduced.is_empty()
            && self.changes.is_empty()
            && self.manifest.is_none()
    }
}

/// A memory that could not be kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lost {
    /// Its row in the damaged store. Rows of the journal come after those of the columns.
    pub row: usize,
    /// Its id, if that is known.
    pub id: Option<u64>,
    /// Where the damage is, and what.
    pub cause: Cause,
}

/// A memory that was kept without a part of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reduced {
    /// Its row in the damaged store. Rows of the journal come after those of the columns.
    pub row: usize,
    /// Its id in the new store.
    pub id: u64,
    /// What was lost of it.
    pub part: Part,
    /// Where the damage is, and what.
    pub cause: Cause,
}

/// A part of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// Its id: it has a new one, and is the last.
    Id,
    /// Its embedding: it has none.
    Embedding,
    /// Its key: it has none.
    Key,
    /// Its kind: it is `unknown`.
    Kind,
    /// Its payload: it has none.
    Payload,
    /// Its evidence: it has none.
    Evidence,
    /// When it was made: it is the last access given at append.
    Created,
    /// The last access given at append: it is the time when it was made.
    LastAccess,
    /// Its expiry: it has none.
    Expiry,
    /// Its importance: it is the least that could be read, of all memories.
    Importance,
    /// Its depth: it is 0.
    Depth,
}

impl Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Id => "their ids (new ones were given)",
            Part::Embedding => "their embeddings",
            Part::Key => "their keys",
            Part::Kind => "their kinds (now `unknown`)",
            Part::Payload => "their payloads",
            Part::Evidence => "their evidence",
            Part::Created => "when they were made (now the last access given at append)",
            Part::LastAccess => "the last access given at append (now the time they were made)",
            Part::Expiry => "their expiries",
            Part::Importance => "their importances (now the least of all)",
            Part::Depth => "their depths (now 0)",
        })
    }
}

/// What kind of changes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Changes {
    /// Appends, touches and deletes of the journal.
    Journal,
    /// Touches that are in a file of their own since a checkpoint.
    Touches,
    /// Deletes that are in a file of their own since a checkpoint: memories may be there again.
    Deletes,
}

/// Bytes that said what was appended, touched or deleted, and cannot be read any more.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LostChanges {
    /// Of what.
    pub changes: Changes,
    /// The file.
    pub path: PathBuf,
    /// The first of the bytes.
    pub offset: u64,
    /// How many they are; 0 if that is not known.
    pub bytes: u64,
    /// What is wrong there.
    pub problem: Problem,
}

impl LostChanges {
    pub(super) fn new(changes: Changes, bytes: u64, cause: &Cause) -> LostChanges {
        LostChanges {
            changes,
            path: cause.path.clone(),
            offset: cause.offset,
            bytes,
            problem: cause.problem.clone(),
        }
    }
}

impl Display for LostChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LostChanges {
            path,
            offset,
            bytes,
            problem,
            ..
        } = self;
        write!(f, "{}: byte {offset}: {problem}; ", path.display())?;
        match self.changes {
            Changes::Journal if *bytes == 0 => f.write_str("what it held is lost"),
            Changes::Journal => write!(f, "what was in {bytes} bytes is lost"),
            Changes::Touches => write!(
                f,
                "up to {} touches are lost, and last accesses may be too early",
                bytes / 16
            ),
            Changes::Deletes => {
                write!(f, "up to {} deleted memories may be there again", bytes / 4)
            }
        }
    }
}

/// For people: each damage once, with the rows that it cost.
impl Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RepairReport {
            kept,
            deleted,
            lost,
            reduced,
            ..
        } = self;
        write!(f, "{kept} memories kept, {} lost", lost.len())?;
        match deleted {
            0 => writeln!(f)?,
            _ => writeln!(f, "; {deleted} that had been deleted were left out")?,
        }
        if let Some(problem) = &self.manifest {
            writeln!(f, "nothing could be checked: {problem}")?;
        }
        let same = |a: &Lost, b: &Lost| follows(a.row, b.row) && a.cause == b.cause;
        for group in lost.chunk_by(same) {
            let (first, last) = (&group[0], &group[group.len() - 1]);
            rows(f, "lost", first.row, last.row)?;
            match (first.id, last.id) {
                (Some(id), Some(last)) => ids(f, id, last)?,
                _ => f.write_str(" (ids unknown)")?,
            }
            writeln!(f, ": {}", first.cause)?;
        }
        // What belongs together lies apart: a row's parts follow one another.
        let mut by_part: Vec<&Reduced> = reduced.iter().collect();
        by_part.sort_by_key(|reduced| reduced.part as usize);
        let same = |a: &&Reduced, b: &&Reduced| {
            a.part == b.part && follows(a.row, b.row) && a.cause == b.cause
        };
        for group in by_part.chunk_by(same) {
            let (first, last) = (&group[0], &group[group.len() - 1]);
            rows(f, "kept", first.row, last.row)?;
            ids(f, first.id, last.id)?;
            writeln!(f, " without {}: {}", first.part, first.cause)?;
        }
        for changes in &self.changes {
            writeln!(f, "{changes}")?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}

/// Rows between two that are lost in the same way may have been deleted.
fn follows(row: usize, next: usize) -> bool {
    row < next
}

fn rows(f: &mut fmt::Formatter<'_>, what: &str, first: usize, last: usize) -> fmt::Result {
    match first == last {
        true => write!(f, "{what}: row {first}"),
        false => write!(f, "{what}: rows {first} to {last}"),
    }
}

fn ids(f: &mut fmt::Formatter<'_>, first: u64, last: u64) -> fmt::Result {
    match first == last {
        true => write!(f, " (id {first})"),
        false => write!(f, " (ids {first} to {last})"),
    }
}
