//! A store as it was at one moment, for readers.

#[cfg(feature = "import")]
use super::damage::Damage;
use super::error::ReadError;
use super::evidence;
use super::format::{Column, NO_EXPIRY};
use super::journal::Seen;
use super::manifest::Manifest;
use super::memory::{Kind, Memory, Reference};
use super::own::Agent;
use super::segments::{Segment, Segments};
use super::state::State;
use crate::kernel::{Dtype, Rows};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A store as it was at one moment. Whatever the store does afterwards, a snapshot does not change; it can
/// be read from any thread and outlives the store's handle. A clone costs nothing.
///
/// Rows are numbered from 0 in the order they were appended. A deleted memory leaves its row, and the numbers
/// of others stay, until the store is compacted; a snapshot taken before keeps its numbers. An id stays for
/// ever.
///
/// The fields of a row can be read one by one ([`created`](Snapshot::created) and the like, which panic as
/// slices do if there is no such row, and of a deleted memory give what was stored), or of many rows
/// as slices ([`segments`](Snapshot::segments)).
#[derive(Clone)]
pub struct Snapshot {
    state: Arc<State>,
    /// The record of a touch after the state's last record, whose effect it contains, with what that touch saw.
    touch: Option<u64>,
}

impl Snapshot {
    pub(super) fn new(state: Arc<State>) -> Snapshot {
        let touch = None;
        Snapshot { state, touch }
    }

    /// What a retrieval that ranks it sees.
    pub(super) fn seen(&self) -> Seen {
        Seen {
            sequence: self.state.sequence,
            next_id: self.state.next_id,
            touch: self.touch,
        }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn manifest(&self) -> &Manifest {
        &self.state.committed.manifest
    }

    /// Whether the files' bytes are still what was written to them. (What is in memory was checked when it was
    /// read.)
    #[cfg(feature = "import")]
    pub(crate) fn check(&self) -> Result<(), Damage> {
        let committed = &self.state.committed;
        committed.columns.check(&committed.manifest)
    }

    /// The number of rows, those of deleted memories among them. Row numbers are below it.
    pub fn rows(&self) -> usize {
        self.state.rows()
    }

    /// The number of memories.
    pub fn len(&self) -> usize {
        self.state.live.count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is such a row and its memory was not deleted.
    pub fn is_live(&self, row: usize) -> bool {
        self.state.live.is_live(row)
    }

    /// The rows whose memories were not deleted, as [`Candidates::Mask`](crate::scoring::Candidates::Mask)
    /// takes them. None: all of them.
    pub fn live(&self) -> Option<&[u64]> {
        self.state.live.words()
    }

    /// Elements per embedding.
    pub fn dim(&self) -> NonZeroUsize {
        self.state.committed.manifest.dim
    }

    /// How embeddings are stored.
    pub fn dtype(&self) -> Dtype {
        self.state.committed.manifest.dtype
    }

    /// The name of the model that makes the embeddings, if it was given.
    pub fn model(&self) -> Option<&str> {
        self.state.committed.manifest.model.as_deref()
    }

    /// The id of the next memory.
    pub fn next_id(&self) -> u64 {
        self.state.next_id
    }

    /// The last record of the store's journal that it contains: every append (but for long ones, which go past the
    /// journal), touch, delete or other change is one, numbered from 1. 0: none.
    pub fn sequence(&self) -> u64 {
        self.state.sequence
    }

    /// All kinds, in the order they first occurred.
    pub fn kinds(&self) -> &[Kind] {
        self.state.kinds.table()
    }

    /// The rows, from the first to the last, as slices for scoring, with the last accesses and importances of an
    /// agent. Rows that have nothing of the agent's own and that are in the store's files are few and long segments;
    /// those that were [given a vector](super::Store::embed) when they were there already are segments of their
    /// own.
    pub fn segments(&self, agent: Agent) -> impl Iterator<Item = Segment<'_>> {
        Segments::new(&self.state, agent)
    }

    /// The memory in a row, all but its embedding. Its last access and importance are those of [`Agent::OWN`].
    ///
    /// # Errors
    /// If there is no such row, its memory was deleted, or its bytes are damaged.
    pub fn memory(&self, row: usize) -> Result<Memory<'_>, ReadError> {
        self.has_memory(row)?;
        let (kinds, columns) = (self.kinds(), &self.state.committed.columns);
        let evidence = self.evidence(row)?;
        let (key, kind, text, payload) = match row.checked_sub(columns.rows) {
            None => (
                columns.key(row)?,
                columns.kind(row, kinds.len())?,
                columns.text(row)?,
                columns.payload(row)?,
            ),
            Some(row) => {
                let (chunk, at) = self.state.tail.place(row);
                let kind = chunk.kinds[at].into();
                (chunk.key(at), kind, chunk.text(at), chunk.payload(at))
            }
        };
        Ok(Memory {
            id: self.id(row),
            key,
            kind: &kinds[kind],
            text,
            has_embedding: self.has_embedding(row),
            created: self.created(row),
            last_access: self.last_access(Agent::OWN, row),
            expiry: self.expiry(row),
            importance: self.importance_of(Agent::OWN, row),
            evidence,
            depth: self.depth(row),
            supersedes: self.supersedes(row),
            superseded_by: self.superseded_by(row),
            payload,
        })
    }

    /// What the memory in a row says.
    ///
    /// # Errors
    /// If there is no such row, its memory was deleted, or its bytes are damaged.
    pub fn text(&self, row: usize) -> Result<&str, ReadError> {
        self.has_memory(row)?;
        let columns = &self.state.committed.columns;
        match row.checked_sub(columns.rows) {
            None => Ok(columns.text(row)?),
            Some(row) => {
                let (chunk, at) = self.state.tail.place(row);
                Ok(chunk.text(at))
            }
        }
    }

    /// What the memory in a row was concluded from, in order.
    ///
    /// # Errors
    /// If there is no such row, its memory was deleted, or its bytes are damaged.
    pub fn evidence(&self, row: usize) -> Result<Vec<Reference>, ReadError> {
        self.has_memory(row)?;
        let columns = &self.state.committed.columns;
        match row.checked_sub(columns.rows) {
            None => Ok(columns.evidence(row)?),
            Some(row) => {
                let (chunk, at) = self.state.tail.place(row);
                let evidence = evidence::decode(chunk.evidence(at));
                Ok(evidence.expect("it is decoded before it is pushed"))
            }
        }
    }

    fn has_memory(&self, row: usize) -> Result<(), ReadError> {
        let rows = self.rows();
        if row >= rows {
            return Err(ReadError::NoRow { row, rows });
        }
        match self.is_live(row) {
            true => Ok(()),
            false => Err(ReadError::Deleted { row }),
        }
    }

    /// The embedding in a row, widened to f32, or `None` if it has none, its memory was deleted, or there is
    /// no such row.
    pub fn embedding(&self, row: usize) -> Option<Vec<f32>> {
        if !self.is_live(row) || !self.has_embedding(row) {
            return None;
        }
        let (dim, columns) = (self.dim(), &self.state.committed.columns);
        if let (_, Some((filled, _))) = self.state.filled.piece(row..row + 1) {
            return Some(filled.widen(dim, 0));
        }
        Some(match row.checked_sub(columns.rows) {
            None => match self.dtype() {
                Dtype::F32 => Rows::F32(columns.view(Column::Embedding)).widen(dim, row),
                Dtype::F16 => Rows::F16(columns.view(Column::Embedding)).widen(dim, row),
            },
            Some(row) => {
                let (chunk, at) = self.state.tail.place(row);
                chunk.embeddings(dim, at..at + 1).widen(dim, 0)
            }
        })
    }

    /// The row of the memory with this id.
    pub fn row_of_id(&self, id: u64) -> Option<usize> {
        let row = self.state.slot_of_id(id)?;
        self.is_live(row).then_some(row)
    }

    /// The row of the memory with this key. The first call of a store reads all keys, and later ones are
    /// fast.
    ///
    /// # Errors
    /// If the bytes of a key are damaged.
    pub fn row_of_key(&self, key: &str) -> Result<Option<usize>, ReadError> {
        Ok(self.state.row_of_key(key)?)
    }

    /// The id of the memory in a row. Ids ascend with the rows.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn id(&self, row: usize) -> u64 {
        self.state.id(row)
    }

    /// When the memory in a row was made, in microseconds since the Unix epoch.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn created(&self, row: usize) -> i64 {
        self.state
            .value(row, Column::Created, |chunk| &chunk.created)
    }

    /// When an agent last retrieved the memory in a row, in microseconds since the Unix epoch: what the
    /// memory was stored with, if the agent never did.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn last_access(&self, agent: Agent, row: usize) -> i64 {
        self.state.last_access(agent, row)
    }

    /// The last access that the memory in a row was stored with, whatever any agent retrieved since.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn last_access_at_append(&self, row: usize) -> i64 {
        self.state.last_access_at_append(row)
    }

    /// What an agent retrieved since it was stored: the rows of memories that are there, ascending, and when each
    /// was last retrieved, in microseconds since the Unix epoch. Of all others
    /// [`last_access`](Snapshot::last_access) is what they were stored with.
    pub fn touched(&self, agent: Agent) -> impl Iterator<Item = (usize, i64)> {
        let touched = self.state.differences_of(agent);
        touched.filter(|&(row, _)| self.is_live(row))
    }

    /// As it would be after an agent's touch of some rows.
    ///
    /// # Panics
    /// If there is no such row.
    pub(crate) fn with_touch(
        &self,
        agent: Agent,
        rows: impl IntoIterator<Item = usize>,
        now: i64,
    ) -> Snapshot {
        let mut state = State::clone(&self.state);
        for row in rows {
            state.touch(agent, row, now);
        }
        Snapshot::new(Arc::new(state))
    }

    /// The same, said to contain the touch of a record, and what that touch saw.
    pub(crate) fn after_touch(self, touch: Option<u64>) -> Snapshot {
        Snapshot { touch, ..self }
    }

    /// A time after which no memory was created, if there is any. The first call of a store reads the column.
    pub(crate) fn newest_created(&self) -> Option<i64> {
        self.state.newest_created()
    }

    /// The agents that [touched](Snapshot::touched) a memory that is there, ascending.
    pub fn agents(&self) -> impl Iterator<Item = Agent> {
        let agents = self.state.access.keys().copied();
        agents.filter(|&agent| self.touched(agent).next().is_some())
    }

    /// When the memory in a row stops being valid, in microseconds since the Unix epoch; `None`: never.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn expiry(&self, row: usize) -> Option<i64> {
        let expiry = self.state.value(row, Column::Expiry, |chunk| &chunk.expiry);
        (expiry != NO_EXPIRY).then_some(expiry)
    }

    /// The importance that the memory in a row has for an agent: the one it was stored with, if the agent
    /// has [none of its own](super::Store::set_importance).
    ///
    /// # Panics
    /// If there is no such row.
    pub fn importance_of(&self, agent: Agent, row: usize) -> f32 {
        self.state.importance(agent, row)
    }

    /// The importance that the memory in a row was stored with, whatever it is for any agent.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn importance(&self, row: usize) -> f32 {
        self.state.importance_at_append(row)
    }

    /// Importances of agents' own, of memories that are there: the agent, the row and the importance, ascending by
    /// agent and row. All others [are](Snapshot::importance_of) what the memories were stored with.
    pub fn own_importances(&self) -> impl Iterator<Item = (Agent, usize, f32)> {
        let own = self.state.overrides();
        own.filter(|&(_, row, _)| self.is_live(row))
    }

    /// The depth of the memory in a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn depth(&self, row: usize) -> u32 {
        self.state.value(row, Column::Depth, |chunk| &chunk.depths)
    }

    /// The id of the memory that the one in a row corrects, if that is still there.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn supersedes(&self, row: usize) -> Option<u64> {
        let older = self.state.superseded.row_of(self.id(row))?;
        self.is_live(older).then(|| self.id(older))
    }

    /// The id of the memory that corrected the one in a row, whether it is still there or not.
    pub fn superseded_by(&self, row: usize) -> Option<u64> {
        self.state.superseded.by(row)
    }

    /// The id of the memory that corrected the one in a row by a moment. One that is there no more was made before any.
    pub(crate) fn superseded_at(&self, row: usize, now: i64) -> Option<u64> {
        let is_made = |&by: &u64| {
            self.row_of_id(by)
                .is_none_or(|row| self.created(row) <= now)
        };
        self.superseded_by(row).filter(is_made)
    }

    /// The rows of memories that are there and were corrected, ascending, with the ids of what corrected them.
    pub fn superseded(&self) -> impl Iterator<Item = (usize, u64)> {
        let all = self.state.superseded.iter();
        all.filter(|&(row, _)| self.is_live(row))
    }

    /// The kind of the memory in a row, as an index into [`kinds`](Snapshot::kinds). In a damaged store it can
    /// lie outside.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn kind_index(&self, row: usize) -> u16 {
        self.state.value(row, Column::Kind, |chunk| &chunk.kinds)
    }

    /// Whether the memory in a row has an embedding.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn has_embedding(&self, row: usize) -> bool {
        self.state.has_embedding(row)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("rows", &self.rows())
            .field("len", &self.len())
            .field("dim", &self.dim())
            .field("dtype", &self.dtype())
            .finish_non_exhaustive()
    }
}
