//! Appending: every memory is checked whole before a byte of it is written. A few go to the journal, as one
//! record; many go to the column files, past their committed length, and a manifest commits them all at
//! once.

use super::elements::Elements;
use super::error::{AppendError, MemoryProblem, WriteError};
use super::evidence;
use super::format::{MAX_ROWS, NO_EXPIRY};
use super::journal::{Body, Row, Vector, encode};
use super::keys::{Found, KeyIndex};
use super::kinds::Kinds;
use super::manifest::Manifest;
use super::memory::{Kind, NewMemory, Reference};
use super::recover;
use super::rows::RowWriter;
use super::state::State;
use super::tail::StoredRow;
use super::turns::Turn;
use super::writing::Writing;
use super::{Store, column::Columns};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A batch whose bytes are more than this goes to the columns at once, not to the journal.
const JOURNAL_BYTES: usize = 1 << 20;

impl Store {
    /// Appends memories, all or none, and gives their ids. They are durable when this returns, as
    /// [`Durability::appends`](super::Durability::appends) says.
    ///
    /// # Errors
    /// If any memory cannot be stored, or the bytes do not reach the disk: then none of them is in the store. Only
    /// after a sync that failed they may be, and the handle writes no more.
    pub fn append(&self, memories: &[NewMemory<'_>]) -> Result<Range<u64>, AppendError> {
        let writing = self.writing()?;
        let turn = writing.turn(&self.dir)?;
        self.take_over(writing, &turn)?;
        let mut check = Check::new(self.state(), false);
        let mut batch = Batch::default();
        for (index, memory) in memories.iter().enumerate() {
            let refused = |problem| AppendError::Refused { index, problem };
            let id = check.room(check.state.next_id.saturating_add(index as u64), index)?;
            check.memory(memory, id).map_err(refused)?;
            check.kinds.intern(&memory.kind).map_err(refused)?;
            check
                .key_of_batch(memory.key, id)?
                .map_or(Ok(()), |problem| Err(refused(problem)))?;
            batch.push(memory, &mut check.elements);
        }
        let first = check.state.next_id;
        let ids = first..first + memories.len() as u64;
        if memories.is_empty() {
            return Ok(ids);
        }
        batch.take_norms(&mut check.elements);
        if batch.bytes(memories) > JOURNAL_BYTES {
            drop(check);
            let mut bulk = BulkAppend::new(self, writing, turn)?;
            for memory in memories {
                bulk.push(memory)?;
            }
            return bulk.commit();
        }
        let rows = batch.rows(memories);
        let mut record = Vec::new();
        let first_id = first;
        let body = Body::Append { first_id, rows };
        encode(&body, &mut record).map_err(|e| self.too_long(e))?;
        let Body::Append { rows, .. } = body else {
            unreachable!("as it was made");
        };
        let row_bytes = check.row_bytes();
        // So that the state changes in place if nobody else looks at it.
        drop(check);

        let mut journal = writing.journal();
        let sequence = self.write_record(writing, &mut journal, &mut record)?;
        self.change_state(|state| {
            let zeros = vec![0; row_bytes];
            for (row, id) in rows.iter().zip(first..) {
                recover::push(state, row, id, &zeros).expect("its kind was checked");
            }
        });
        drop(journal);
        drop(turn);
        self.keep_promise(writing, sequence, self.durability.appends)?;
        Ok(ids)
    }

    /// Starts an append of any length, in bounded memory, past the journal. What is in the journal is folded into
    /// the columns first. Until the append is committed or dropped, other appends, checkpoints and
    /// compactions of the handle wait; touches, deletes and readers do not.
    ///
    /// # Errors
    /// If the handle cannot write.
    pub fn bulk(&self) -> Result<BulkAppend<'_>, AppendError> {
        let writing = self.writing()?;
        let turn = writing.turn(&self.dir)?;
        BulkAppend::new(self, writing, turn)
    }
}

/// Whether memories can be stored in a store as it is.
struct Check {
    state: Arc<State>,
    kinds: Kinds,
    /// Keys of a batch, and who has them.
    keys: HashMap<String, u64>,
    elements: Elements,
    allow_any_evidence: bool,
}

impl Check {
    fn new(state: Arc<State>, allow_any_evidence: bool) -> Check {
        let Manifest { dim, dtype, .. } = *state.committed.manifest;
        Check {
            kinds: Kinds::clone(&state.kinds),
            keys: HashMap::new(),
            elements: Elements::new(dim, dtype),
            allow_any_evidence,
            state,
        }
    }

    fn row_bytes(&self) -> usize {
        let Manifest { dim, dtype, .. } = *self.state.committed.manifest;
        dim.get() * dtype.size_bytes()
    }

    /// `id`, if there is room for a memory that has it after `rows` new ones.
    fn room(&self, id: u64, rows: usize) -> Result<u64, AppendError> {
        match id < u64::MAX && ((self.state.rows() + rows) as u64) < MAX_ROWS {
            true => Ok(id),
            false => Err(AppendError::Full),
        }
    }

    /// All but its kind and the owner of its key. The embedding, if there is one, is set.
    fn memory(&mut self, memory: &NewMemory<'_>, id: u64) -> Result<(), MemoryProblem> {
        check(memory, id, self.allow_any_evidence)?;
        if let Some(embedding) = memory.embedding {
            self.elements.set(embedding)?;
        }
        Ok(())
    }

    /// What is wrong with a key in a batch, if anything.
    fn key_of_batch(
        &mut self,
        key: Option<&str>,
        id: u64,
    ) -> Result<Option<MemoryProblem>, WriteError> {
        let Some(key) = key else {
            return Ok(None);
        };
        let taken = match self.keys.insert(key.to_owned(), id) {
            None => self.owner(key)?,
            earlier => earlier,
        };
        let key = key.to_owned();
        Ok(taken.map(|id| MemoryProblem::DuplicateKey { key, id }))
    }

    /// The id of the memory in the store that has this key.
    fn owner(&self, key: &str) -> Result<Option<u64>, WriteError> {
        let row = self.state.row_of_key(key)?;
        Ok(row.map(|row| self.state.id(row)))
    }
}

/// What is made of the memories of a batch before they are rows.
#[derive(Default)]
struct Batch {
    elements: Vec<u8>,
    evidence: Vec<u8>,
    /// Where each memory's elements and evidence end.
    ends: Vec<(usize, usize)>,
    /// Of those with an embedding.
    inv_norms: Vec<f32>,
}

impl Batch {
    /// Takes the embedding that was set.
    fn push(&mut self, memory: &NewMemory<'_>, elements: &mut Elements) {
        if memory.embedding.is_some() {
            if elements.is_full() {
                self.take_norms(elements);
            }
            self.elements.extend_from_slice(elements.keep());
            if elements.is_full() {
                self.take_norms(elements);
            }
        }
        evidence::encode(memory.evidence, &mut self.evidence);
        self.ends.push((self.elements.len(), self.evidence.len()));
    }

    fn take_norms(&mut self, elements: &mut Elements) {
        self.inv_norms.extend(elements.take_inv_norms());
    }

    /// About so many bytes in a record.
    fn bytes(&self, memories: &[NewMemory<'_>]) -> usize {
        let texts = memories.iter().map(|memory| {
            let key = memory.key.map_or(0, str::len);
            64 + key + memory.kind.as_str().len() + memory.text.len() + memory.payload.len()
        });
        self.elements.len() + self.evidence.len() + texts.sum::<usize>()
    }

    fn rows<'a>(&'a self, memories: &'a [NewMemory<'_>]) -> Vec<Row<'a>> {
        let mut inv_norms = self.inv_norms.iter();
        let starts = std::iter::once((0, 0)).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        let rows = memories.iter().zip(spans);
        rows.map(|(memory, (start, end))| {
            let vector = memory.embedding.map(|_| Vector {
                inv_norm: *inv_norms.next().expect("one for each embedding"),
                elements: &self.elements[start.0..end.0],
            });
            Row::new(memory, vector, &self.evidence[start.1..end.1])
        })
        .collect()
    }
}

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
    zeros: Vec<u8>,
    evidence: Vec<u8>,
    /// A write failed: what is in the files past the committed lengths is unknown.
    failed: bool,
    _turn: Turn<'s>,
}

impl<'s> BulkAppend<'s> {
    fn new(
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
        let kind = self.check.kinds.intern(&memory.kind).map_err(refused)?;
        if let Err(error) = self.stage(memory, id, kind) {
            return Err(self.fail(error).into());
        }
        if let Some(slot) = slot {
            let row = self.check.state.rows() + index;
            self.keys.insert(slot, row as u32);
        }
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
        self.writer.finish(&mut manifest)?;
        manifest.sequence = manifest.next_sequence(&store.dir)?;
        manifest.rows += self.rows as u64;
        manifest.next_id = self.next_id;
        manifest.kinds = self.check.kinds.names();
        // Before the manifest: an append that cannot be read back is not committed.
        let columns = Columns::load(&*store.files, &store.dir, &manifest, store.hold)?;
        // What came before this append and is only in the journal must not be lost where this is not.
        let last = self.writing.journal().last_sequence;
        store.sync_to(self.writing, last)?;
        let published = store.publish(self.writing, &manifest);
        if published
            .as_ref()
            .map_or_else(WriteError::poisons, |()| true)
        {
            self.writer.keep();
        }
        published?;
        let extended = store.state().extended(manifest, columns);
        let journal = self.writing.journal();
        store.change_state(|state| state.adopt(extended));
        drop(journal);
        Ok(())
    }
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
