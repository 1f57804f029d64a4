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
    /// Bytes that said what was appended or changed and cannot be read.
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

impl Part {
    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Part::Id => "id",
            Part::Embedding => "embedding",
            Part::Key => "key",
            Part::Kind => "kind",
            Part::Payload => "payload",
            Part::Evidence => "evidence",
            Part::Created => "created",
            Part::LastAccess => "last_access",
            Part::Expiry => "expiry",
            Part::Importance => "importance",
            Part::Depth => "depth",
        }
    }
}

/// What a memory is without, and what it has instead.
impl Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Id => "its id (there is a new one)",
            Part::Embedding => "embedding",
            Part::Key => "key",
            Part::Kind => "kind (now `unknown`)",
            Part::Payload => "payload",
            Part::Evidence => "evidence",
            Part::Created => "the time it was made (now the last access given at append)",
            Part::LastAccess => "the last access given at append (now the time it was made)",
            Part::Expiry => "expiry",
            Part::Importance => "importance (now the least of all)",
            Part::Depth => "depth (now 0)",
        })
    }
}

/// What kind of changes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Changes {
    /// All that was written to the journal.
    Journal,
    /// Touches that are in a file of their own since a checkpoint.
    Touches,
    /// Deletes that are in a file of their own since a checkpoint: memories may be there again.
    Deletes,
    /// Importances of agents' own that are in a file of their own since a checkpoint: memories have the one they were
    /// stored with.
    Importances,
    /// Vectors that came after their memories were in the columns: those are without.
    Vectors,
    /// What was corrected by what, in a file of its own since a checkpoint: memories may be candidates again.
    Corrections,
}

impl Changes {
    /// One word for them.
    pub fn name(self) -> &'static str {
        match self {
            Changes::Journal => "journal",
            Changes::Touches => "touches",
            Changes::Deletes => "deletes",
            Changes::Importances => "importances",
            Changes::Vectors => "vectors",
            Changes::Corrections => "corrections",
        }
    }
}

/// Bytes that said what was appended or changed, and cannot be read any more.
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
        write!(f, "lost: {}: byte {offset}: {problem}; ", path.display())?;
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
            Changes::Importances => write!(
                f,
                "up to {} importances of agents' own are lost",
                bytes / 12
            ),
            Changes::Vectors => write!(
                f,
                "{bytes} bytes of vectors that came later are lost, and memories are without"
            ),
            Changes::Corrections => write!(
                f,
                "up to {} corrected memories may be candidates again",
                bytes / 12
            ),
        }
    }
}

impl RepairReport {
    /// For people, a line each: what is there, then each damage once with the rows that it cost.
    pub fn lines(&self) -> Vec<String> {
        let (kept, lost) = (self.kept, self.lost.len());
        let left_out = match self.deleted {
            0 => String::new(),
            deleted => format!("; {deleted} that had been deleted were left out"),
        };
        let mut lines = vec![format!("{kept} memories kept, {lost} lost{left_out}")];
        let problem = self.manifest.iter();
        lines.extend(problem.map(|problem| format!("nothing could be checked: {problem}")));
        // Rows between two that are lost in the same way may have been deleted.
        let same = |a: &Lost, b: &Lost| a.cause == b.cause;
        lines.extend(self.lost.chunk_by(same).map(|group| {
            let (first, last) = (&group[0], &group[group.len() - 1]);
            let ids = match (first.id, last.id) {
                (Some(first), Some(last)) => ids(first, last),
                _ => "ids unknown".into(),
            };
            let rows = rows(first.row, last.row);
            format!("lost: {rows} ({ids}): {}", first.cause)
        }));
        // What belongs together lies apart: a row's parts follow one another.
        let mut by_part: Vec<&Reduced> = self.reduced.iter().collect();
        by_part.sort_by_key(|reduced| reduced.part as usize);
        let same = |a: &&Reduced, b: &&Reduced| a.part == b.part && a.cause == b.cause;
        lines.extend(by_part.chunk_by(same).map(|group| {
            let (first, last) = (&group[0], &group[group.len() - 1]);
            let (rows, ids) = (rows(first.row, last.row), ids(first.id, last.id));
            format!(
                "kept without {}: {rows} ({ids}): {}",
                first.part, first.cause
            )
        }));
        lines.extend(self.changes.iter().map(LostChanges::to_string));
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines
    }
}

impl Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

fn rows(first: usize, last: usize) -> String {
    match first == last {
        true => format!("row {first}"),
        false => format!("rows {first} to {last}"),
    }
}

fn ids(first: u64, last: u64) -> String {
    match first == last {
        true => format!("id {first}"),
        false => format!("ids {first} to {last}"),
    }
}
