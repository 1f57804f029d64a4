//! Appending: every memory is checked whole before a byte of it is written. A few go to the journal, as one
//! record; many go to the column files, past their committed length, and a manifest commits them all at
//! once.

use super::Store;
use super::bulk::BulkAppend;
use super::elements::Elements;
use super::error::{AppendError, MemoryProblem, WriteError};
use super::evidence;
use super::format::{MAX_ROWS, NO_EXPIRY};
use super::journal::{Body, Row, Vector, encode};
use super::kinds::Kinds;
use super::manifest::Manifest;
use super::memory::{NewMemory, Reference};
use super::recover;
use super::state::State;
use super::turns::Turn;
use super::writing::Writing;
use std::collections::{BTreeMap, HashMap};
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
        self.exclusive()?.append(memories)
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

    /// [`append`](Store::append), by whom the turn is.
    pub(super) fn append_in(
        &self,
        writing: &Writing,
        turn: Turn<'_>,
        memories: &[NewMemory<'_>],
    ) -> Result<Range<u64>, AppendError> {
        self.writing()?;
        let mut check = Check::new(self.state(), false);
        let mut batch = Batch::default();
        for (index, memory) in memories.iter().enumerate() {
            let refused = |problem| AppendError::Refused { index, problem };
            let id = check.room(check.state.next_id.saturating_add(index as u64), index)?;
            check.memory(memory, id).map_err(refused)?;
            if let Some(older) = memory.supersedes {
                let in_batch = |older| (check.state.next_id..id).contains(&older);
                check.supersedes(older, in_batch).map_err(refused)?;
                check.superseded.insert(older, id);
            }
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

        // Not before: what is refused changes no file.
        self.take_over(writing, &turn)?;
        let mut journal = writing.journal();
        let sequence = self.write_record(writing, &mut journal, &mut record)?;
        let push = |state: &mut State| {
            let zeros = vec![0; row_bytes];
            for (row, id) in rows.iter().zip(first..) {
                recover::push(state, row, id, &zeros).expect("its kind was checked");
            }
        };
        self.change_state_a_little(&mut journal, push);
        if self.state().tail.is_joinable() {
            self.change_state(&mut journal, |state| state.tail.join());
        }
        drop(journal);
        drop(turn);
        self.keep_promise(writing, sequence, self.durability.appends)?;
        Ok(ids)
    }
}

/// Whether memories can be stored in a store as it is.
pub(super) struct Check {
    pub(super) state: Arc<State>,
    pub(super) kinds: Kinds,
    /// Keys of a batch, and who has them.
    keys: HashMap<String, u64>,
    /// Ids of memories that a batch corrects, and what corrects them.
    pub(super) superseded: BTreeMap<u64, u64>,
    pub(super) elements: Elements,
    pub(super) allow_any_evidence: bool,
}

impl Check {
    pub(super) fn new(state: Arc<State>, allow_any_evidence: bool) -> Check {
        let Manifest { dim, dtype, .. } = *state.committed.manifest;
        Check {
            kinds: Kinds::clone(&state.kinds),
            keys: HashMap::new(),
            superseded: BTreeMap::new(),
            elements: Elements::new(dim, dtype),
            allow_any_evidence,
            state,
        }
    }

    pub(super) fn row_bytes(&self) -> usize {
        let Manifest { dim, dtype, .. } = *self.state.committed.manifest;
        dim.get() * dtype.size_bytes()
    }

    /// `id`, if there is room for a memory that has it after `rows` new ones.
    pub(super) fn room(&self, id: u64, rows: usize) -> Result<u64, AppendError> {
        match id < u64::MAX && ((self.state.rows() + rows) as u64) < MAX_ROWS {
            true => Ok(id),
            false => Err(AppendError::Full),
        }
    }

    /// All but its kind and the owner of its key. The embedding, if there is one, is set.
    pub(super) fn memory(&mut self, memory: &NewMemory<'_>, id: u64) -> Result<(), MemoryProblem> {
        check(memory, id, self.allow_any_evidence)?;
        if let Some(embedding) = memory.embedding {
            self.elements.set(embedding)?;
        }
        Ok(())
    }

    /// Whether a memory may correct the one with an id: one that is there, or was before it in the batch, and that
    /// nothing corrects yet.
    pub(super) fn supersedes(
        &self,
        older: u64,
        in_batch: impl Fn(u64) -> bool,
    ) -> Result<(), MemoryProblem> {
        let row = self.state.slot_of_id(older);
        let row = row.filter(|&row| self.state.live.is_live(row));
        if row.is_none() && !in_batch(older) {
            return Err(MemoryProblem::NothingToSupersede { id: older });
        }
        let by = row.and_then(|row| self.state.superseded.by(row));
        match by.or_else(|| self.superseded.get(&older).copied()) {
            Some(by) => Err(MemoryProblem::SupersededBefore { id: older, by }),
            None => Ok(()),
        }
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
    pub(super) fn owner(&self, key: &str) -> Result<Option<u64>, WriteError> {
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
            72 + key + memory.kind.as_str().len() + memory.text.len() + memory.payload.len()
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
