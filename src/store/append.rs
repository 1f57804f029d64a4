//! Appending: every memory is checked whole before a byte of it is staged, staged bytes lie past the
//! committed length of their files, and a new manifest commits them all at once.

use super::Store;
use super::column::Columns;
use super::elements::Elements;
use super::error::{AppendError, MemoryProblem, WriteError};
use super::evidence;
use super::format::{Column, MAX_ROWS, NO_EXPIRY};
use super::keys::{Found, KeyIndex};
use super::kinds::Kinds;
use super::memory::{NewMemory, Reference};
use super::writer::ColumnWriter;
use std::collections::HashMap;
use std::ops::Range;

/// An append of any length, in bounded memory: at most a block of 1 MiB for each of the 17 columns,
/// 8 bytes for each memory, and 16 or so for each key.
///
/// Nothing is in the store before [`commit`](BulkAppend::commit) returns. Dropped before that, it is as
/// if it had never been.
pub struct BulkAppend<'s> {
    store: &'s mut Store,
    writers: Vec<ColumnWriter>,
    kinds: Kinds,
    keys: KeyIndex,
    elements: Elements,
    last_access: Vec<i64>,
    allow_any_evidence: bool,
    /// Whether what the writers hold may be taken back: until a manifest may name it.
    revocable: bool,
}

impl<'s> BulkAppend<'s> {
    pub(super) fn new(store: &'s mut Store) -> Result<BulkAppend<'s>, WriteError> {
        store.writable()?.check()?;
        let new = |entry| ColumnWriter::new(&store.files, &store.dir, entry);
        Ok(BulkAppend {
            writers: store.manifest.columns.iter().map(new).collect(),
            kinds: store.kinds.clone(),
            keys: KeyIndex::default(),
            elements: Elements::new(store.dim(), store.dtype()),
            last_access: Vec::new(),
            allow_any_evidence: false,
            revocable: true,
            store,
        })
    }

    /// Accepts evidence that is not older than the memory that cites it, or is cited twice, as imported
    /// data may hold.
    pub fn allow_any_evidence(&mut self) -> &mut Self {
        self.allow_any_evidence = true;
        self
    }

    /// How many memories were pushed.
    pub fn len(&self) -> usize {
        self.last_access.len()
    }

    /// Whether none was pushed.
    pub fn is_empty(&self) -> bool {
        self.last_access.is_empty()
    }

    /// Adds a memory and gives the id it will have.
    ///
    /// # Errors
    /// A memory that cannot be stored is [`AppendError::Refused`] and changes nothing: others can still
    /// be pushed and committed. After any other error the handle is poisoned.
    pub fn push(&mut self, memory: &NewMemory<'_>) -> Result<u64, AppendError> {
        self.store.writable()?;
        let id = self.next_id(self.len())?;
        let refused = |problem| AppendError::Refused {
            index: self.last_access.len(),
            problem,
        };
        check(memory, id, self.allow_any_evidence).map_err(refused)?;
        if let Some(embedding) = memory.embedding {
            self.elements.set(embedding).map_err(refused)?;
        }
        let slot = match memory.key {
            Some(key) => Some(self.free_slot(key)?),
            None => None,
        };
        let kind = match self.kinds.intern(&memory.kind) {
            Ok(kind) => kind,
            Err(problem) => {
                return Err(AppendError::Refused {
                    index: self.len(),
                    problem,
                });
            }
        };
        if let Err(error) = self.stage(memory, id, kind) {
            self.store.poisoned = true;
            return Err(error.into());
        }
        if let Some(slot) = slot {
            let row = self.store.len() + self.len();
            self.keys.insert(slot, row as u32);
        }
        self.last_access.push(memory.last_access);
        Ok(id)
    }

    /// Makes all that was pushed part of the store, durably, and gives its ids.
    ///
    /// # Errors
    /// If the bytes do not reach the disk. The handle is then poisoned; whether the memories are in the
    /// store shows when it is opened again: all of them are, or none.
    pub fn commit(mut self) -> Result<Range<u64>, AppendError> {
        self.store.writable()?;
        let first = self.store.next_id();
        if !self.is_empty()
            && let Err(error) = self.publish()
        {
            self.store.poisoned = true;
            return Err(error.into());
        }
        self.revocable = false;
        Ok(first..self.store.next_id())
    }

    /// Checks a whole batch without staging any of it.
    pub(super) fn check_all(&mut self, batch: &[NewMemory<'_>]) -> Result<(), AppendError> {
        let mut kinds = self.kinds.clone();
        let mut keys = HashMap::new();
        for (index, memory) in batch.iter().enumerate() {
            let id = self.next_id(index)?;
            let refused = |problem| AppendError::Refused { index, problem };
            check(memory, id, self.allow_any_evidence).map_err(refused)?;
            if let Some(embedding) = memory.embedding {
                self.elements.set(embedding).map_err(refused)?;
            }
            kinds.intern(&memory.kind).map_err(refused)?;
            if let Some(key) = memory.key {
                let taken = match keys.insert(key, id) {
                    None => self.committed_row(key)?.map(|row| self.store.ids()[row]),
                    earlier => earlier,
                };
                if let Some(id) = taken {
                    let key = key.to_owned();
                    return Err(refused(MemoryProblem::DuplicateKey { key, id }));
                }
            }
        }
        Ok(())
    }

    /// The id of the memory `after` others, if there is room for it.
    fn next_id(&self, after: usize) -> Result<u64, AppendError> {
        let after = after as u64;
        let next = self.store.next_id().checked_add(after);
        match next {
            Some(id) if id < u64::MAX && self.store.manifest.rows + after < MAX_ROWS => Ok(id),
            _ => Err(AppendError::Full),
        }
    }

    fn committed_row(&self, key: &str) -> Result<Option<usize>, WriteError> {
        let index = self.store.key_index()?;
        Ok(match index.find_in(&self.store.columns, key)? {
            Found::Row(row) => Some(row as usize),
            Found::Free(_) => None,
        })
    }

    /// Where a key that nobody has goes in `keys`.
    fn free_slot(&mut self, key: &str) -> Result<u64, AppendError> {
        let taken = |index, id| AppendError::Refused {
            index,
            problem: MemoryProblem::DuplicateKey {
                key: key.to_owned(),
                id,
            },
        };
        let index = self.len();
        if let Some(row) = self.committed_row(key)? {
            return Err(taken(index, self.store.ids()[row]));
        }
        let (writers, committed) = (&mut self.writers, self.store.len());
        let found = self.keys.find(key, |row| {
            let staged = staged_key(writers, committed, row as usize)?;
            Ok::<_, WriteError>(staged == key.as_bytes())
        });
        match found {
            Ok(Found::Free(slot)) => Ok(slot),
            Ok(Found::Row(row)) => {
                let id = self.next_id(row as usize - committed)?;
                Err(taken(index, id))
            }
            Err(error) => {
                self.store.poisoned = true;
                Err(error.into())
            }
        }
    }

    fn stage(&mut self, memory: &NewMemory<'_>, id: u64, kind: u16) -> Result<(), WriteError> {
        self.stage_embedding(memory.embedding.is_some())?;
        let mut encoded = Vec::new();
        evidence::encode(memory.evidence, &mut encoded);
        let importance = memory.importance + 0.0;
        let expiry = memory.expiry.unwrap_or(NO_EXPIRY);
        for column in Column::ALL {
            let ends = |bytes: Column| self.writers[bytes as usize].bytes();
            let fixed: [u8; 8];
            let bytes: &[u8] = match column {
                Column::Embedding | Column::InvNorm => continue,
                Column::Id => &id.to_le_bytes(),
                Column::Created => &memory.created.to_le_bytes(),
                Column::LastAccess => &memory.last_access.to_le_bytes(),
                Column::Expiry => &expiry.to_le_bytes(),
                Column::Importance => &importance.to_le_bytes(),
                Column::Kind => &kind.to_le_bytes(),
                Column::Depth => &memory.depth.to_le_bytes(),
                Column::KeyBytes => memory.key.unwrap_or("").as_bytes(),
                Column::TextBytes => memory.text.as_bytes(),
                Column::PayloadBytes => memory.payload,
                Column::EvidenceBytes => &encoded,
                // The ends come before their bytes in `ALL`, so they say where those will end.
                Column::KeyEnds => {
                    let len = memory.key.unwrap_or("").len() as u64;
                    fixed = (ends(Column::KeyBytes) + len).to_le_bytes();
                    &fixed
                }
                Column::TextEnds => {
                    fixed = (ends(Column::TextBytes) + memory.text.len() as u64).to_le_bytes();
                    &fixed
                }
                Column::PayloadEnds => {
                    let len = memory.payload.len() as u64;
                    fixed = (ends(Column::PayloadBytes) + len).to_le_bytes();
                    &fixed
                }
                Column::EvidenceEnds => {
                    fixed = (ends(Column::EvidenceBytes) + encoded.len() as u64).to_le_bytes();
                    &fixed
                }
            };
            self.writers[column as usize].push(bytes)?;
        }
        Ok(())
    }

    /// The embedding that was set, or zeros. Its norm may follow later.
    fn stage_embedding(&mut self, is_some: bool) -> Result<(), WriteError> {
        if is_some {
            self.writers[Column::Embedding as usize].push(self.elements.keep())?;
            match self.elements.is_full() {
                true => self.stage_inv_norms(),
                false => Ok(()),
            }
        } else {
            // In the order of rows.
            self.stage_inv_norms()?;
            self.writers[Column::InvNorm as usize].push(&0_f32.to_le_bytes())?;
            let row_bytes = self.store.dim().get() * self.store.dtype().size_bytes();
            self.writers[Column::Embedding as usize].push(&vec![0; row_bytes])
        }
    }

    fn stage_inv_norms(&mut self) -> Result<(), WriteError> {
        let writer = &mut self.writers[Column::InvNorm as usize];
        for inv_norm in self.elements.take_inv_norms() {
            writer.push(&inv_norm.to_le_bytes())?;
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), WriteError> {
        self.stage_inv_norms()?;
        let mut manifest = self.store.manifest.clone();
        for (writer, entry) in self.writers.iter_mut().zip(&mut manifest.columns) {
            if writer.changed() {
                *entry = writer.finish()?;
            }
        }
        manifest.sequence = manifest.next_sequence(&self.store.dir)?;
        manifest.rows += self.len() as u64;
        manifest.next_id += self.len() as u64;
        manifest.kinds = self.kinds.names();
        // Before the manifest: an append that cannot be read back is not committed.
        let store = &mut *self.store;
        let columns = Columns::load(&*store.files, &store.dir, &manifest, store.hold)?;
        store.writable()?.check()?;
        self.revocable = false;
        manifest.publish(&*store.files, &store.dir)?;
        let first = store.len();
        store.manifest = manifest;
        store.columns = columns;
        store.kinds = std::mem::take(&mut self.kinds);
        store.last_access.append(&mut self.last_access);
        if let Some(mut keys) = store.keys.take()
            && keys.extend(&store.columns, first).is_ok()
        {
            store.keys = keys.into();
        }
        Ok(())
    }
}

impl Drop for BulkAppend<'_> {
    fn drop(&mut self) {
        // A manifest may name the bytes, or another writer be at work: then they are not ours to cut.
        let ours = self
            .store
            .lock
            .as_ref()
            .is_some_and(|lock| lock.check().is_ok());
        if self.revocable && ours {
            self.writers.iter_mut().for_each(ColumnWriter::roll_back);
        }
    }
}

/// The key of a row that was pushed and not committed.
fn staged_key(
    writers: &mut [ColumnWriter],
    committed: usize,
    row: usize,
) -> Result<Vec<u8>, WriteError> {
    let mut end = |row: usize| {
        let bytes = writers[Column::KeyEnds as usize].read_back(row as u64 * 8, 8)?;
        let end = bytes.try_into().expect("8 bytes were read");
        Ok::<u64, WriteError>(u64::from_le_bytes(end))
    };
    let end_at = end(row)?;
    let start = match row {
        row if row > committed => end(row - 1)?,
        // The first row of this append starts where the committed bytes end.
        _ => writers[Column::KeyBytes as usize].committed(),
    };
    writers[Column::KeyBytes as usize].read_back(start, (end_at - start) as usize)
}

/// What can be said of a memory without its embedding, its key's owner and its kind's index.
fn check(memory: &NewMemory<'_>, own: u64, any_evidence: bool) -> Result<(), MemoryProblem> {
    let value = memory.importance;
    if !value.is_finite() {
        return Err(MemoryProblem::Importance { value });
    }
    if memory.expiry == Some(NO_EXPIRY) {
        return Err(MemoryProblem::Expiry);
    }
    if memory.key == Some("") {
        return Err(MemoryProblem::EmptyKey);
    }
    if !any_evidence {
        let mut seen = HashMap::new();
        for (position, reference) in memory.evidence.iter().enumerate() {
            let &Reference::Id(id) = reference else {
                continue;
            };
            if id >= own {
                return Err(MemoryProblem::ForwardEvidence { position, id, own });
            }
            if let Some(first) = seen.insert(id, position) {
                return Err(MemoryProblem::DuplicateEvidence {
                    position,
                    id,
                    first,
                });
            }
        }
    }
    Ok(())
}
