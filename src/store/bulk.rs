//! Appends of any length: straight to the column files, past their committed length, until a manifest commits
//! them all at once.

use super::Store;
use super::append::Check;
use super::entries::superseded_entry;
use super::error::{AppendError, MemoryProblem, WriteError};
use super::evidence;
use super::format::{Column, NO_EXPIRY};
use super::keys::{Found, KeyIndex};
use super::manifest::Manifest;
use super::memory::{Kind, NewMemory};
use super::rows::RowWriter;
use super::superseded::Superseded;
use super::tail::StoredRow;
use super::turns::Turn;
use super::writing::Writing;
use std::ops::Range;

/// An append of any length, in bounded memory: at most a few blocks of 1 MiB for each of the columns, 16
/// bytes or so for each key.
///
/// Nothing is in the store before [`commit`](BulkAppend::commit) returns. Dropped before that, it is as
/// if it had never been. It stays on the thread that started it.
pub struct BulkAppend<'s> {
    store: &'s Store,
    writing: &'s Writing,
    writer: RowWriter,
    check: Check,
    keys: KeyIndex,
    rows: usize,
    next_id: u64,
    /// Where ids go on without a gap: the first one, and how many were pushed before it.
    runs: Vec<(u64, usize)>,
    zeros: Vec<u8>,
    evidence: Vec<u8>,
    /// A write failed: what is in the files past the committed lengths is unknown.
    failed: bool,
    _turn: Turn<'s>,
}

impl<'s> BulkAppend<'s> {
    pub(super) fn new(
        store: &'s Store,
        writing: &'s Writing,
        turn: Turn<'s>,
    ) -> Result<BulkAppend<'s>, AppendError> {
        store.take_over(writing, &turn)?;
        if store.state().tail.rows() > 0 {
            store.fold(writing, &turn)?;
        }
        // The bytes past the committed ones may be another's.
        writing.check_lock()?;
        let check = Check::new(store.state(), false);
        let manifest = &check.state.committed.manifest;
        Ok(BulkAppend {
            writer: RowWriter::append(&store.files, &store.dir, manifest),
            zeros: vec![0; check.row_bytes()],
            next_id: check.state.next_id,
            check,
            keys: KeyIndex::default(),
            rows: 0,
            runs: Vec::new(),
            evidence: Vec::new(),
            failed: false,
            store,
            writing,
            _turn: turn,
        })
    }

    /// Accepts evidence that is not older than the memory that cites it, or is cited twice, as imported
    /// data may hold.
    pub fn allow_any_evidence(&mut self) -> &mut Self {
        self.check.allow_any_evidence = true;
        self
    }

    /// Leaves out the ids before `next_id`: the next memory gets that one. Ids that are left out are never given,
    /// as if their memories had been deleted; committed without a memory, they are left out all the same.
    ///
    /// # Errors
    /// If it would go back, to an id that may have been given already. Then nothing is changed.
    pub fn skip_ids_to(&mut self, next_id: u64) -> Result<&mut Self, AppendError> {
        self.usable()?;
        if next_id < self.next_id {
            return Err(AppendError::IdsGoBack {
                id: next_id,
                next: self.next_id,
            });
        }
        self.next_id = next_id;
        Ok(self)
    }

    /// Names kinds, in this order, those among them that the store has not: memories may have them or not.
    ///
    /// # Errors
    /// If one has no name, or they are too many. Those before it are named then.
    pub fn name_kinds(&mut self, kinds: &[Kind]) -> Result<&mut Self, AppendError> {
        self.usable()?;
        let index = self.rows;
        for kind in kinds {
            let named = self.check.kinds.intern(kind);
            named.map_err(|problem| AppendError::Refused { index, problem })?;
        }
        Ok(self)
    }

    /// Says that the memory with the id `by`, which was pushed, was in the store, or may have been and is there no
    /// more, corrects the one with an id: what [`NewMemory::supersedes`] says of a memory that is there.
    ///
    /// # Errors
    /// If there is no memory with this id, another corrects it, or `by` is not the id of a later one. Then nothing is
    /// changed.
    pub fn supersede(&mut self, id: u64, by: u64) -> Result<&mut Self, AppendError> {
        self.usable()?;
        let index = self.rows;
        let refused = |problem| AppendError::Refused { index, problem };
        self.may_be_superseded(id).map_err(refused)?;
        if !(id < by && by < self.next_id) {
            return Err(refused(MemoryProblem::SupersededByNone { id, by }));
        }
        self.check.superseded.insert(id, by);
        Ok(self)
    }

    /// How many memories were pushed.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether none was pushed.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a memory and gives the id it will have.
    ///
    /// # Errors
    /// A memory that cannot be stored is [`AppendError::Refused`] and changes nothing: others can still
    /// be pushed and committed. After any other error nothing more can.
    pub fn push(&mut self, memory: &NewMemory<'_>) -> Result<u64, AppendError> {
        self.usable()?;
        let index = self.rows;
        let id = self.check.room(self.next_id, index)?;
        let refused = |problem| AppendError::Refused { index, problem };
        self.check.memory(memory, id).map_err(refused)?;
        let slot = match memory.key {
            Some(key) => Some(self.free_slot(key)?),
            None => None,
        };
        if let Some(older) = memory.supersedes {
            self.may_be_superseded(older).map_err(refused)?;
        }
        let kind = self.check.kinds.intern(&memory.kind).map_err(refused)?;
        if let Err(error) = self.stage(memory, id, kind) {
            return Err(self.fail(error).into());
        }
        if let Some(slot) = slot {
            let row = self.check.state.rows() + index;
            self.keys.insert(slot, row as u32);
        }
        if let Some(older) = memory.supersedes {
            self.check.superseded.insert(older, id);
        }
        self.note_run(id);
        self.rows += 1;
        self.next_id = id + 1;
        Ok(id)
    }

    /// Makes all that was pushed part of the store, durably, and gives its ids (those that were skipped among them).
    ///
    /// # Errors
    /// If the bytes do not reach the disk: none of the memories is in the store then. Only if it was the manifest's
    /// new name that was not certain to last, or a sync that failed, the handle writes no more, and whether
    /// they are in the store shows when it is opened again: all of them are, or none.
    pub fn commit(mut self) -> Result<Range<u64>, AppendError> {
        self.usable()?;
        let state = &self.check.state;
        let ids = state.next_id..self.next_id;
        let kinds = self.check.kinds.table().len() - state.kinds.table().len();
        if !(self.is_empty() && ids.is_empty() && kinds == 0)
            && let Err(error) = self.publish()
        {
            return Err(self.fail(error).into());
        }
        Ok(ids)
    }

    fn usable(&self) -> Result<(), WriteError> {
        let path = || self.store.dir.clone();
        match self.failed {
            true => Err(WriteError::Poisoned { path: path() }),
            false => self.store.writing().map(|_| ()),
        }
    }

    fn fail(&mut self, error: WriteError) -> WriteError {
        self.failed = true;
        self.writing.note(error.into())
    }

    fn may_be_superseded(&self, id: u64) -> Result<(), MemoryProblem> {
        self.check
            .supersedes(id, |id| self.pushed_before(id).is_some())
    }

    /// Takes note of where ids go on after a gap.
    fn note_run(&mut self, id: u64) {
        let goes_on = |&(first, before): &(u64, usize)| first + (self.rows - before) as u64 == id;
        if !self.runs.last().is_some_and(goes_on) {
            self.runs.push((id, self.rows));
        }
    }

    /// How many memories were pushed before the one with an id, if that was pushed.
    fn pushed_before(&self, id: u64) -> Option<usize> {
        let after = self.runs.partition_point(|&(first, _)| first <= id);
        let &(first, before) = self.runs.get(after.checked_sub(1)?)?;
        let end = (self.runs.get(after)).map_or(self.rows, |&(_, before)| before);
        let index = before.checked_add(usize::try_from(id - first).ok()?)?;
        (index < end).then_some(index)
    }

    /// All that is corrected, by rows, once this is committed.
    fn superseded(&self) -> Superseded {
        let state = &self.check.state;
        let mut superseded = state.superseded.clone();
        for (&id, &by) in &self.check.superseded {
            let row = state.slot_of_id(id);
            let pushed = || self.pushed_before(id).map(|before| state.rows() + before);
            if let Some(row) = row.or_else(pushed) {
                superseded.insert(row, by);
            }
        }
        superseded
    }

    /// Where a key that nobody has goes in `keys`.
    fn free_slot(&mut self, key: &str) -> Result<u64, AppendError> {
        let index = self.rows;
        let taken = |id| AppendError::Refused {
            index,
            problem: MemoryProblem::DuplicateKey {
                key: key.to_owned(),
                id,
            },
        };
        if let Some(id) = self.check.owner(key)? {
            return Err(taken(id));
        }
        let (writer, committed) = (&mut self.writer, self.check.state.rows());
        let found = self.keys.find(key, |row| {
            let staged = writer.key(row as usize, committed)?;
            Ok::<_, WriteError>(staged == key.as_bytes())
        });
        match found {
            Ok(Found::Free(slot)) => Ok(slot),
            Ok(Found::Row(row)) => match self.writer.id(row as usize) {
                Ok(id) => Err(taken(id)),
                Err(error) => Err(self.fail(error).into()),
            },
            Err(error) => Err(self.fail(error).into()),
        }
    }

    fn stage(&mut self, memory: &NewMemory<'_>, id: u64, kind: u16) -> Result<(), WriteError> {
        self.evidence.clear();
        evidence::encode(memory.evidence, &mut self.evidence);
        let with_embedding = memory.embedding.is_some();
        if !with_embedding {
            // Norms are staged in the order of rows.
            self.stage_inv_norms()?;
        }
        let elements = match with_embedding {
            true => self.check.elements.keep(),
            false => &self.zeros,
        };
        self.writer.push(&StoredRow {
            elements,
            // Staged apart.
            inv_norm: 0.0,
            id,
            created: memory.created,
            last_access: memory.last_access,
            expiry: memory.expiry.unwrap_or(NO_EXPIRY),
            // No -0: least and greatest must not depend on the order.
            importance: memory.importance + 0.0,
            kind,
            depth: memory.depth,
            key: memory.key,
            text: memory.text,
            payload: memory.payload,
            evidence: &self.evidence,
        })?;
        match with_embedding {
            true if self.check.elements.is_full() => self.stage_inv_norms(),
            true => Ok(()),
            false => self.writer.push_inv_norm(0.0),
        }
    }

    fn stage_inv_norms(&mut self) -> Result<(), WriteError> {
        for inv_norm in self.check.elements.take_inv_norms() {
            self.writer.push_inv_norm(inv_norm)?;
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), WriteError> {
        self.writing.check_lock()?;
        self.stage_inv_norms()?;
        let store = self.store;
        let mut manifest = Manifest::clone(&self.check.state.committed.manifest);
        manifest.sequence = manifest.next_sequence(&store.dir)?;
        manifest.rows += self.rows as u64;
        manifest.next_id = self.next_id;
        manifest.kinds = self.check.kinds.names();
        // What came before this append and is only in the journal must not be lost where this is not.
        let last = self.writing.journal().last_sequence;
        store.sync_to(self.writing, last)?;
        // Nobody else changes it while the turn is ours.
        let superseded = self.superseded();
        if !self.check.superseded.is_empty() {
            self.writer
                .renew(&store.dir, &manifest, Column::Superseded)?;
            for entry in superseded.iter() {
                (self.writer).bytes(Column::Superseded, &superseded_entry(entry))?;
            }
        }
        let columns = store.commit(self.writing, &mut self.writer, &mut manifest)?;
        let old = self.check.state.committed.manifest.clone();
        store.remove_replaced(&old, &manifest);
        let extended = store.state().extended(manifest, columns);
        store.change_state(&mut self.writing.journal(), |state| {
            state.adopt(extended);
            state.superseded = superseded;
        });
        Ok(())
    }
}
