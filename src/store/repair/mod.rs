//! Salvaging a damaged store: what checks out goes into a new one, and what does not is listed.
//!
//! **What it promises**
//!
//! - The damaged store stays as it is, byte for byte: no lock is taken and nothing opened for writing. The new
//!   one is made under a temporary name, so that there is a whole one or none.
//! - What is kept is what was stored, unless the report says otherwise: ids (gaps stay gaps), the next id,
//!   kinds, the model, last accesses and importances of every agent; embeddings and evidence bit for bit. Deleted memories
//!   are left out.
//! - Every memory of the damaged store is kept, or was deleted, or is in [`RepairReport::lost`]; every part of
//!   a kept one that is not what it was is in [`RepairReport::reduced`].
//! - Files are read, not mapped: a disk that cannot give some bytes costs those bytes.
//!
//! **The rules.** A value counts if it decodes and all blocks that it lies in have the checksums they were
//! written with (1 MiB is one block: a flipped byte in a small store makes a whole column unreadable). Of a
//! value that does not:
//!
//! | what | what happens | because |
//! |---|---|---|
//! | text | the memory is lost | a memory that says nothing would take the place of one that does |
//! | both times | the memory is lost | its recency would be invented |
//! | last access at append | the time it was made | that is what it is as long as nothing was retrieved |
//! | time it was made | its last access at append | the same |
//! | inverse norm | nothing is lost | it follows from the elements |
//! | embedding | kept, never a candidate | it can still be read, by id and by key |
//! | importance | the least that can be read of any memory | so it shifts nobody else's |
//! | id | told by the ids around it, where these leave only one way | ids ascend |
//! | id, otherwise | a new one, after all others | evidence that names the old one then names nothing, not another |
//! | key, payload, evidence, expiry | none | what the memory says and how it is scored stays |
//! | depth, kind | 0, `unknown` | the same |
//! | touches | as far as they can be read | last accesses only become later by them |
//! | importances of agents' own | as far as they can be read | the one it was stored with is a memory's own |
//! | vectors that came later | as far as they can be read | a memory without one can still be read |
//! | deletes | as far as they can be read | rather one memory too many: those that may be there again are told |
//!
//! If two memories have one key, a delete between them was lost: the later one has the key.
//!
//! *The journal.* If it is as opening wants it, all of it holds, and what a crash left at its end is left out, as
//! opening does. Otherwise every record counts that is whole by itself, before and after the damage: a
//! touch is a maximum, an id is never given again, a vector stays, so touches, deletes and vectors hold whatever is
//! missing before them; of an agent's importances the last that is found holds; and an append whose ids are above
//! all others is one. Ids that lost appends may have given are
//! skipped. A last segment that is missing cannot be told from one that never was.
//!
//! *Without a manifest* (missing, or one byte of it damaged) there are no checksums, kinds or model. The
//! dimension must be given. All that decodes and is in order is kept, and a vector only if its norm agrees with
//! its elements; a changed byte of a text is kept as it is. Kinds are called `kind 0`, `kind 1`, ...; bytes of an
//! append that was never committed may come in. The next id is one more than the greatest that is found.

mod ascending;
mod blocks;
mod error;
mod journal;
mod report;
mod rewrite;
mod rows;
mod source;
mod survey;

pub use error::RepairError;
pub use report::{Changes, Lost, LostChanges, Part, Reduced, RepairReport};

use super::damage::Damage;
use super::files::{Disk, Files};
use super::open::make;
use crate::kernel::Dtype;
use source::Source;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// Why something is lost. Many rows share one.
type Cause = Arc<Damage>;

/// What a repair is told about a store whose manifest cannot be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// Elements per embedding.
    pub dim: Option<NonZeroUsize>,
    /// How embeddings are stored; otherwise the name of their file tells.
    pub dtype: Option<Dtype>,
}

/// Salvages what is whole of the damaged store at `path` into a new store at `new_path`, which must not exist,
/// or be an empty directory. Changes no byte of the damaged one. It should have no writer meanwhile.
///
/// # Errors
/// If there is no store, its manifest cannot be used (see [`repair_with`]), or the new one cannot be made. Damage
/// is no error: it is in the report.
///
/// ```
/// use memorank::kernel::Dtype;
/// use memorank::store::{CreateOptions, Store, repair};
///
/// let dir = tempfile::tempdir()?;
/// let (damaged, new) = (dir.path().join("isabella"), dir.path().join("isabella-2"));
/// let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F16, model: None };
/// Store::create(&damaged, &options)?.close()?;
/// let report = repair(&damaged, &new)?;
/// assert!(report.is_whole());
/// Store::open(&new)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn repair(
    path: impl AsRef<Path>,
    new_path: impl AsRef<Path>,
) -> Result<RepairReport, RepairError> {
    repair_with(path, new_path, &RepairOptions::default())
}

/// As [`repair`], and also if the manifest cannot be used: `options` say then what it said.
///
/// # Errors
/// As [`repair`].
pub fn repair_with(
    path: impl AsRef<Path>,
    new_path: impl AsRef<Path>,
    options: &RepairOptions,
) -> Result<RepairReport, RepairError> {
    repair_on(Arc::new(Disk), path, new_path, options)
}

/// As [`repair_with`], of a store in any file system.
///
/// # Errors
/// As [`repair`].
pub fn repair_on(
    files: Arc<dyn Files>,
    path: impl AsRef<Path>,
    new_path: impl AsRef<Path>,
    options: &RepairOptions,
) -> Result<RepairReport, RepairError> {
    let (path, new_path) = (path.as_ref(), new_path.as_ref());
    if new_path != path && new_path.starts_with(path) {
        return Err(RepairError::Inside {
            path: path.to_owned(),
            new_path: new_path.to_owned(),
        });
    }
    let mut report = RepairReport::default();
    let source = Source::find(&*files, path, options, &mut report)?;
    let (report, _lock) = make(&files, new_path, |new| {
        rewrite::rewrite(&files, path, &source, new, report)
    })?;
    Ok(report)
}
