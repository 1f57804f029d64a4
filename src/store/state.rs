//! What a store holds at one moment: rows in the column files and rows in memory, what was touched, what was
//! deleted or corrected, and what was given a vector or another importance since. A clone shares nearly everything with its original and does not change with it.
//!
//! Rows are numbered over the columns and then the tail. A row's number stays until a compaction, whether
//! its memory is deleted or moves from the tail to the columns.

use super::column::Columns;
use super::damage::Damage;
use super::error::MemoryProblem;
use super::filled::Filled;
use super::format::Column;
use super::journal::Vector;
use super::keys::{Found, KeyIndex};
use super::kinds::Kinds;
use super::live::{Kept, Live};
use super::manifest::Manifest;
use super::memory::Kind;
use super::own::{Agent, Own, PAGE_ROWS};
use super::superseded::Superseded;
use super::tail::{CHUNK_ROWS, StoredRow, Tail, TailChunk};
use bytemuck::Pod;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What a manifest commits, loaded.
#[derive(Clone)]
pub(super) struct Committed {
    pub(super) manifest: Arc<Manifest>,
    pub(super) columns: Arc<Columns>,
    keys: Arc<CommittedKeys>,
    /// The newest creation time in the columns, read when it is first asked for.
    newest_created: Arc<OnceLock<Option<i64>>>,
}

/// The keys in the columns, read when one is first asked for.
struct CommittedKeys {
    /// At some moment after the last of the rows was added: then no two live rows have one key. Every state that
    /// is asked for a key comes after that, so the key of a row that was deleted by then is nobody's.
    live: Live,
    index: OnceLock<KeyIndex>,
}

impl Committed {
    /// A store's columns, and which of their rows are live.
    pub(super) fn new(manifest: Manifest, columns: Columns, live: Live) -> Committed {
        Committed {
            manifest: Arc::new(manifest),
            columns: Arc::new(columns),
            keys: Arc::new(CommittedKeys {
                live,
                index: OnceLock::new(),
            }),
            newest_created: Arc::default(),
        }
    }

    fn newest_created(&self) -> Option<i64> {
        let newest = || self.created().iter().copied().max();
        *self.newest_created.get_or_init(newest)
    }

    fn created(&self) -> &[i64] {
        &self.columns.view(Column::Created)[..self.columns.rows]
    }

    fn ids(&self) -> &[u64] {
        &self.columns.view(Column::Id)[..self.columns.rows]
    }

    /// Takes note of what is live after all that the journal holds: some of it may be older than some of the
    /// rows, as a delete that came before a bulk append.
    fn recovered(&mut self, live: &Live) {
        let (live, index) = (live.clone(), OnceLock::new());
        self.keys = Arc::new(CommittedKeys { live, index });
    }

    fn key_index(&self) -> Result<&KeyIndex, Damage> {
        let keys = &*self.keys;
        if let Some(index) = keys.index.get() {
            return Ok(index);
        }
        let mut index = KeyIndex::default();
        index.extend(&self.columns, 0, |row| keys.live.is_live(row))?;
        Ok(keys.index.get_or_init(|| index))
    }
}

/// How rows are divided. Tests make it small.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) chunk_rows: usize,
    pub(super) page_rows: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            chunk_rows: CHUNK_ROWS,
            page_rows: PAGE_ROWS,
        }
    }
}

#[derive(Clone)]
pub(super) struct State {
    /// The last record of the journal that it contains.
    pub(super) sequence: u64,
    pub(super) committed: Committed,
    pub(super) tail: Tail,
    pub(super) live: Live,
    pub(super) next_id: u64,
    pub(super) kinds: Arc<Kinds>,
    pub(super) access: BTreeMap<Agent, Own<i64>>,
    /// Importances of agents' own.
    overrides: BTreeMap<Agent, Own<f32>>,
    /// Vectors of rows of the columns that have none there, or, in a state that was gone back to, have one that came
    /// later.
    pub(super) filled: Filled,
    pub(super) superseded: Superseded,
    sizes: Sizes,
}

impl State {
    /// What was committed, and nothing touched.
    pub(super) fn new(committed: Committed) -> State {
        State::with_sizes(committed, Sizes::default())
    }

    pub(super) fn with_sizes(committed: Committed, sizes: Sizes) -> State {
        let Manifest {
            dim,
            dtype,
            next_id,
            journal_folded,
            ..
        } = *committed.manifest;
        State {
            sequence: journal_folded,
            tail: Tail::new(dim, dtype, sizes.chunk_rows),
            live: committed.keys.live.clone(),
            next_id,
            kinds: Arc::new(Kinds::new(&committed.manifest.kinds)),
            access: BTreeMap::new(),
            overrides: BTreeMap::new(),
            filled: Filled::new(dim, dtype),
            superseded: Superseded::default(),
            committed,
            sizes,
        }
    }

    /// The journal was replayed. Before that no key may be asked for.
    pub(super) fn recovered(&mut self) {
        self.committed.recovered(&self.live);
    }

    /// Rows, deleted ones among them.
    pub(super) fn rows(&self) -> usize {
        self.committed.columns.rows + self.tail.rows()
    }

    /// The kind's index. A new kind is added.
    pub(super) fn intern(&mut self, kind: &Kind) -> Result<u16, MemoryProblem> {
        match self.kinds.index_of(kind) {
            Some(index) => Ok(index),
            None => Arc::make_mut(&mut self.kinds).intern(kind),
        }
    }

    /// Adds a memory. Its id is at least `next_id`, its kind's index from [`intern`](State::intern), and no
    /// live memory has its key.
    pub(super) fn push(&mut self, row: &StoredRow<'_>) {
        debug_assert!(self.next_id <= row.id && row.id < u64::MAX);
        self.tail.push(row);
        self.live.grow(self.rows());
        self.next_id = row.id + 1;
    }

    /// Makes an agent's last access of a row the later of `now` and what it was, and says whether that
    /// changed it.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn touch(&mut self, agent: Agent, row: usize, now: i64) -> bool {
        let rows = self.rows();
        let given = last_access_given(&self.committed.columns, &self.tail);
        let access = self.access.entry(agent);
        let access = access.or_insert_with(|| Own::new(self.sizes.page_rows));
        access.touch(row, now, rows, given)
    }

    /// Gives the memory in a row an importance for an agent, or the one it was stored with, and says whether it had
    /// another.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn set_importance(
        &mut self,
        agent: Agent,
        row: usize,
        importance: Option<f32>,
    ) -> bool {
        let rows = self.rows();
        let given = importance_given(&self.committed.columns, &self.tail);
        let importance = importance.unwrap_or_else(|| given(row));
        let own = self.overrides.entry(agent);
        let own = own.or_insert_with(|| Own::new(self.sizes.page_rows));
        own.set(row, importance, rows, given)
    }

    /// Gives a row a vector, and says whether it had none.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn embed(&mut self, row: usize, vector: Vector<'_>) -> bool {
        let has_none = !self.has_embedding(row);
        if has_none {
            match row.checked_sub(self.committed.columns.rows) {
                None => self.filled.insert(row, vector, false),
                Some(row) => self.tail.embed(row, vector),
            }
        }
        has_none
    }

    /// Whether a row has a vector.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn has_embedding(&self, row: usize) -> bool {
        let inv_norm: f32 = self.value(row, Column::InvNorm, TailChunk::inv_norms);
        let filled = self.filled.get(row).map(|vector| vector.inv_norm);
        filled.unwrap_or(inv_norm) != 0.0
    }

    /// Deletes the memory in a row, and says whether it was live.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn delete(&mut self, row: usize) -> bool {
        self.live.delete(row)
    }

    /// Takes note that the memory with the id `by` corrects the one with an id, if that one is there and no other
    /// does.
    pub(super) fn supersede(&mut self, id: u64, by: u64) {
        if let Some(row) = self.slot_of_id(id) {
            self.superseded.insert(row, by);
        }
    }

    /// A time after which no memory was created, if there is any: the newest creation time of all rows, or of
    /// some that are gone by now.
    pub(super) fn newest_created(&self) -> Option<i64> {
        (self.committed.newest_created()).max(self.tail.newest_created())
    }

    /// An agent's last access of a row.
    pub(super) fn last_access(&self, agent: Agent, row: usize) -> i64 {
        let own = (self.access.get(&agent)).and_then(|access| access.own(row));
        own.unwrap_or_else(|| self.last_access_at_append(row))
    }

    /// The importance of a row for an agent.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn importance(&self, agent: Agent, row: usize) -> f32 {
        let own = (self.overrides.get(&agent)).and_then(|own| own.own(row));
        own.unwrap_or_else(|| self.importance_at_append(row))
    }

    /// The importance of a row that was given at append.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn importance_at_append(&self, row: usize) -> f32 {
        self.value(row, Column::Importance, |chunk| &chunk.importance)
    }

    /// The importance of a row that is an agent's own, and not the one given at append.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn override_of(&self, agent: Agent, row: usize) -> Option<f32> {
        let (own, given) = (self.importance(agent, row), self.importance_at_append(row));
        (own.to_bits() != given.to_bits()).then_some(own)
    }

    /// An agent's importances, if it has some of its own.
    pub(super) fn own_importance(&self, agent: Agent) -> Option<&Own<f32>> {
        self.overrides.get(&agent)
    }

    /// Every importance that is not the one given at append, ascending by agent and row.
    pub(super) fn overrides(&self) -> impl Iterator<Item = (Agent, usize, f32)> + '_ {
        let given = importance_given(&self.committed.columns, &self.tail);
        self.overrides.iter().flat_map(move |(&agent, own)| {
            let differences = own.differences(given);
            differences.map(move |(row, importance)| (agent, row, importance))
        })
    }

    /// The last access of a row that was given at append.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn last_access_at_append(&self, row: usize) -> i64 {
        self.value(row, Column::LastAccess, |chunk| &chunk.last_access)
    }

    /// An agent's last accesses that are not the ones given at append, ascending by row.
    pub(super) fn differences_of(&self, agent: Agent) -> impl Iterator<Item = (usize, i64)> + '_ {
        let access = self.access.get(&agent).into_iter();
        access.flat_map(|access| {
            access.differences(last_access_given(&self.committed.columns, &self.tail))
        })
    }

    /// Every last access that is not the one given at append, ascending by agent and row.
    pub(super) fn differences(&self) -> impl Iterator<Item = (Agent, usize, i64)> + '_ {
        self.access.keys().flat_map(|&agent| {
            let differences = self.differences_of(agent);
            differences.map(move |(row, time)| (agent, row, time))
        })
    }

    /// A field of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn value<T: Pod>(
        &self,
        row: usize,
        column: Column,
        in_tail: impl Fn(&TailChunk) -> &[T],
    ) -> T {
        let (rows, committed) = (self.rows(), self.committed.columns.rows);
        assert!(row < rows, "row {row} of {rows}");
        match row.checked_sub(committed) {
            None => self.committed.columns.view(column)[row],
            Some(row) => {
                let (chunk, at) = self.tail.place(row);
                in_tail(chunk)[at]
            }
        }
    }

    /// The id of the memory in a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn id(&self, row: usize) -> u64 {
        self.value(row, Column::Id, |chunk| &chunk.ids)
    }

    /// A row as it was appended, with the vector it was given since, to be written again.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn stored(&self, row: usize) -> Result<StoredRow<'_>, Damage> {
        let Manifest { dim, dtype, .. } = *self.committed.manifest;
        let columns = &self.committed.columns;
        if let Some(row) = row.checked_sub(columns.rows) {
            let (chunk, at) = self.tail.place(row);
            return Ok(chunk.row(dim, at));
        }
        let elements = dim.get() * dtype.size_bytes();
        let all = columns.bytes[Column::Embedding as usize].as_slice();
        let vector = self.filled.get(row).unwrap_or_else(|| Vector {
            inv_norm: columns.view(Column::InvNorm)[row],
            elements: &all[row * elements..][..elements],
        });
        Ok(StoredRow {
            elements: vector.elements,
            inv_norm: vector.inv_norm,
            id: columns.view(Column::Id)[row],
            created: columns.view(Column::Created)[row],
            last_access: columns.view(Column::LastAccess)[row],
            expiry: columns.view(Column::Expiry)[row],
            importance: columns.view(Column::Importance)[row],
            kind: columns.view(Column::Kind)[row],
            depth: columns.view(Column::Depth)[row],
            key: columns.key(row)?,
            text: columns.text(row)?,
            payload: columns.payload(row)?,
            evidence: columns.encoded_evidence(row)?,
        })
    }

    /// The row that has or had the memory with this id, deleted or not.
    pub(super) fn slot_of_id(&self, id: u64) -> Option<usize> {
        if let Some(row) = self.tail.row_of_id(id) {
            return Some(self.committed.columns.rows + row);
        }
        let ids = self.committed.ids();
        // Where it is unless ids before it are missing, and else the last row it can be in: a search
        // reads memory all over the column.
        let last = usize::try_from(id.checked_sub(*ids.first()?)?).ok()?;
        match ids.get(last) {
            Some(&found) if found == id => Some(last),
            _ => ids[..ids.len().min(last)].binary_search(&id).ok(),
        }
    }

    /// The row of the live memory with this key.
    pub(super) fn row_of_key(&self, key: &str) -> Result<Option<usize>, Damage> {
        if key.is_empty() {
            return Ok(None);
        }
        let columns = &*self.committed.columns;
        let is_live = |row| self.live.is_live(columns.rows + row);
        if let Some(row) = self.tail.row_of_key(key, is_live) {
            return Ok(Some(columns.rows + row));
        }
        let index = self.committed.key_index()?;
        Ok(match index.find_in(columns, key)? {
            Found::Row(row) if self.live.is_live(row as usize) => Some(row as usize),
            Found::Row(_) | Found::Free(_) => None,
        })
    }

    /// The columns after an append to them: first the rows of the tail, or as many of them as were there
    /// in this state, then perhaps others. This state or a later one [adopts](State::adopt) them.
    pub(super) fn extended(&self, manifest: Manifest, columns: Columns) -> Committed {
        let mut live = self.live.clone();
        live.grow(columns.rows);
        let extended = Committed::new(manifest, columns, live);
        if let Some(&newest) = self.committed.newest_created.get() {
            let added = &extended.created()[self.committed.columns.rows..];
            let newest = newest.max(added.iter().copied().max());
            extended.newest_created.get_or_init(|| newest);
        }
        // Damage is told when a key is asked for.
        if let Some(index) = self.committed.keys.index.get() {
            let (mut index, keys) = (index.clone(), &*extended.keys);
            let first = self.committed.columns.rows;
            let is_live = |row| keys.live.is_live(row);
            if (index.extend(&extended.columns, first, is_live)).is_ok() {
                keys.index.get_or_init(|| index);
            }
        }
        extended
    }

    /// Takes [extended](State::extended) columns: what they hold of the tail leaves it, touched and deleted
    /// as it is by now. No vector came meanwhile.
    ///
    /// # Panics
    /// If they have fewer rows than the columns before.
    pub(super) fn adopt(&mut self, extended: Committed) {
        let (old, new) = (self.committed.columns.rows, extended.columns.rows);
        assert!(old <= new, "{old} rows became {new}");
        self.tail.drop_first(self.tail.rows().min(new - old));
        self.next_id = self.next_id.max(extended.manifest.next_id);
        let kinds = &extended.manifest.kinds;
        if kinds.len() > self.kinds.table().len() {
            self.kinds = Arc::new(Kinds::new(kinds));
        }
        self.committed = extended;
        self.live.grow(self.rows());
    }

    /// What it becomes after a compaction that wrote the `kept` rows into new columns: touched and deleted
    /// as it is by now, with the rows that were added since. `kept` was made of this state or an earlier
    /// one, and no vector came since.
    ///
    /// # Panics
    /// If the columns have not the kept rows.
    pub(super) fn compacted(&self, kept: &Kept, manifest: Manifest, columns: Columns) -> State {
        assert_eq!(columns.rows, kept.count(), "rows of a compaction");
        let mut tail = self.tail.clone();
        tail.drop_first(kept.rows() - self.committed.columns.rows);
        let live = self.live.renumbered(kept);
        let rows = live.rows();
        let before = (&*self.committed.columns, &self.tail);
        let (old, new) = (
            last_access_given(before.0, before.1),
            last_access_given(&columns, &tail),
        );
        let access = (self.access.iter())
            .map(|(&agent, access)| (agent, access.renumbered(kept, old, rows, new)))
            .collect();
        let (old, new) = (
            importance_given(before.0, before.1),
            importance_given(&columns, &tail),
        );
        let overrides = (self.overrides.iter())
            .map(|(&agent, own)| (agent, own.renumbered(kept, old, rows, new)))
            .collect();
        State {
            sequence: self.sequence,
            access,
            overrides,
            // The columns hold them.
            filled: Filled::new(manifest.dim, manifest.dtype),
            superseded: self.superseded.renumbered(kept),
            committed: Committed::new(manifest, columns, live.clone()),
            tail,
            live,
            next_id: self.next_id,
            kinds: self.kinds.clone(),
            sizes: self.sizes,
        }
    }
}

/// Last accesses as given at append.
fn last_access_given<'a>(
    columns: &'a Columns,
    tail: &'a Tail,
) -> impl Fn(usize) -> i64 + Copy + 'a {
    given(columns, tail, Column::LastAccess, |chunk| {
        &chunk.last_access
    })
}

/// Importances as given at append.
fn importance_given<'a>(columns: &'a Columns, tail: &'a Tail) -> impl Fn(usize) -> f32 + Copy + 'a {
    given(columns, tail, Column::Importance, |chunk| &chunk.importance)
}

fn given<'a, T: Pod>(
    columns: &'a Columns,
    tail: &'a Tail,
    column: Column,
    in_tail: fn(&TailChunk) -> &[T],
) -> impl Fn(usize) -> T + Copy + 'a {
    let committed = &columns.view::<T>(column)[..columns.rows];
    move |row| match committed.get(row) {
        Some(&value) => value,
        None => {
            let (chunk, at) = tail.place(row - committed.len());
            in_tail(chunk)[at]
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("rows", &self.rows())
            .field("in_tail", &self.tail.rows())
            .field("live", &self.live.count())
            .field("next_id", &self.next_id)
            .finish_non_exhaustive()
    }
}

mod undo;

#[cfg(test)]
mod tests;
