//! Taking over: what others' segments hold and the columns do not is written anew, before the first
//! record of this handle.
//!
//! Whether it reached the disk cannot be known: it may be in the system's memory only, after a sync that
//! failed for its writer and that no later sync makes good. So it is written again, under a name that
//! counts only once a manifest gives it.

use super::Store;
use super::error::{SYNCING, WriteError};
use super::files::{self, Files};
use super::format::Column;
use super::history;
use super::journal::{Takeover, file_name, number_in};
use super::log::{Log, salt};
use super::manifest::{Manifest, create_anew};
use super::recover::replay;
use super::turns::Turn;
use super::writing::Writing;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Records are written in pieces of about so many bytes.
const PIECE_BYTES: usize = 1 << 20;

impl Store {
    /// Makes sure that this handle has a segment of its own to write to.
    pub(super) fn take_over(&self, writing: &Writing, _: &Turn<'_>) -> Result<(), WriteError> {
        self.writing()?;
        // Nobody else changes this while the turn is ours.
        if writing.journal().log.is_some() {
            return Ok(());
        }
        writing.check_lock()?;
        let mut manifest = Manifest::clone(&self.state().committed.manifest);
        manifest.sequence = manifest.next_sequence(&self.dir)?;
        // What these held is held by the new one.
        let superseded = manifest.journal_segment;
        let made = self.write_segment(writing, &mut manifest);
        let log = made.map_err(|error| writing.note(error.into()))?;
        let published = (self.publish(writing, &manifest)).and_then(|()| self.sync_own_name());
        if let Err(error) = published {
            let error = writing.note(error.into());
            if !writing.is_poisoned() {
                let _ = self.files.remove_file(log.path());
            }
            return Err(error);
        }
        sweep(&*self.files, &self.dir, &manifest, superseded);
        history::trim(&*self.files, &self.dir, &manifest);
        let lead = writing.commits.lead_alone();
        let mut journal = writing.journal();
        self.change_state(&mut journal, |state| {
            state.committed.manifest = Arc::new(manifest);
        });
        lead.reached(journal.last_sequence);
        journal.old.clear();
        journal.log = Some(log);
        Ok(())
    }

    /// A segment that holds all unfolded records, durable under its name, which `manifest` takes up.
    fn write_segment(&self, writing: &Writing, manifest: &mut Manifest) -> Result<Log, WriteError> {
        let (files, dir) = (&*self.files, &*self.dir);
        let old = writing.journal().old.clone();
        let number = next_number(files, dir, manifest, &old)?;
        let path = dir.join(file_name(number));
        let temporary = dir.join(format!("{}.tmp", file_name(number)));
        let file = create_anew(files, &temporary)?;
        let mut piece = Vec::new();
        let salt = salt();
        let mut takeover = Takeover::start(number, manifest.journal_folded + 1, salt, &mut piece);
        let mut end = 0;
        let mut failed = None;
        let copied = replay(files, dir, manifest, &old, |record| {
            takeover.push(record, &mut piece);
            if piece.len() >= PIECE_BYTES && failed.is_none() {
                failed = files::write_all_at(&*file, end, &piece).err();
                end += piece.len() as u64;
                piece.clear();
            }
            Ok(())
        });
        let finish = || {
            copied?;
            match failed {
                None => files::write_all_at(&*file, end, &piece),
                Some(error) => Err(error),
            }
            .map_err(WriteError::io("writing", &temporary))?;
            file.sync().map_err(WriteError::io(SYNCING, &temporary))?;
            (files.rename(&temporary, &path)).map_err(WriteError::io("naming", &path))
        };
        if let Err(error) = finish() {
            let _ = files.remove_file(&temporary);
            return Err(error);
        }
        end += piece.len() as u64;
        manifest.journal_segment = number;
        manifest.journal_bytes = end;
        Ok(Log::new(file.into(), path, number, salt, end))
    }

    /// Makes the store's own name durable: who created it may have been stopped before that was.
    fn sync_own_name(&self) -> Result<(), WriteError> {
        let parent = self.dir.join("..");
        match self.files.sync_dir(&parent) {
            // One that may not be read cannot be synced by this user, and can hold a store to write to.
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced.map_err(WriteError::io(SYNCING, &parent)),
        }
    }

    /// Makes a manifest the store's. All it names is durable.
    pub(super) fn publish(&self, writing: &Writing, manifest: &Manifest) -> Result<(), WriteError> {
        writing.check_lock()?;
        manifest.publish(&*self.files, &self.dir)
    }
}

/// A number above those of the journal, with none after it that a leftover could be read as its successor by.
fn next_number(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    old: &[u64],
) -> Result<u64, WriteError> {
    let is_free = |number: u64| match files.what(&dir.join(file_name(number))) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Ok(_) => Ok(false),
        Err(e) => Err(WriteError::io("examining", dir)(e)),
    };
    let last = (old.iter().copied()).fold(manifest.journal_segment, u64::max);
    for number in last.saturating_add(1)..u64::MAX {
        if is_free(number)? && is_free(number + 1)? {
            return Ok(number);
        }
    }
    let path = dir.to_owned();
    Err(WriteError::Exhausted { path })
}

/// Removes what a writer that was stopped left behind: files half written or no longer named, and bytes past
/// the committed ones. As well as it goes; the next writer tries again. Segments below `superseded` are history.
fn sweep(files: &dyn Files, dir: &Path, manifest: &Manifest, superseded: u64) {
    let Ok(names) = files.list(dir) else {
        return;
    };
    for name in names {
        let Some(name) = name.to_str() else {
            continue;
        };
        let column = Column::ALL.into_iter().any(|column| {
            (column.sequence_in(manifest.dtype, name)).is_some()
                && manifest.column(column).file != name
        });
        let segment = number_in(name)
            .is_some_and(|number| number >= superseded && number != manifest.journal_segment);
        let half_made = name
            .strip_suffix(".tmp")
            .is_some_and(|name| number_in(name).is_some());
        if column || segment || half_made || Manifest::is_temporary(name) {
            let _ = files.remove_file(&dir.join(name));
        }
    }
    for entry in &manifest.columns {
        let path = dir.join(&entry.file);
        if let Ok(file) = files.open_to_write(&path)
            && file.bytes().is_ok_and(|found| found > entry.bytes)
        {
            let _ = file.set_len(entry.bytes);
        }
    }
}
