//! Vectors that come after their memories were stored: a record in the journal, and the same in memory.

use super::Store;
use super::elements::Elements;
use super::error::EmbedError;
use super::journal::{Body, Vector, encode};
use super::manifest::Manifest;
use std::collections::HashSet;

impl Store {
    /// Gives memories that were stored without a vector theirs, each an id and `dim` elements, and gives how many
    /// of them were there: a deleted memory is passed over. They are durable when this returns, as
    /// [`Durability::appends`](super::Durability::appends) says. What a vector is, is said once: one that is there
    /// stays as it is.
    ///
    /// It takes its turn with appends, checkpoints and compactions. Until a [compaction](Store::compact) the vectors
    /// of memories that are in the columns lie beside them and are read into memory when the store is opened; where
    /// they are many and far from one another, they make rankings a little slower.
    ///
    /// # Errors
    /// If no memory ever had an id, one is named twice, a memory has a vector, or one cannot be stored; or if the
    /// record cannot be written. No memory was given a vector then; after a sync that failed they may have been.
    ///
    /// ```
    /// # use memorank::kernel::Dtype;
    /// # use memorank::store::{CreateOptions, Kind, NewMemory, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F16, model: None };
    /// # let store = Store::create(dir.path().join("isabella"), &options)?;
    /// let ids = store.append(&[NewMemory {
    ///     key: None,
    ///     kind: Kind::OBSERVATION,
    ///     text: "the coffee is ready",
    ///     embedding: None, // the model is not to be reached
    ///     created: 1_000_000,
    ///     last_access: 1_000_000,
    ///     expiry: None,
    ///     importance: 3.0,
    ///     evidence: &[],
    ///     depth: 0,
    ///     supersedes: None,
    ///     payload: b"",
    /// }])?;
    /// assert_eq!(store.embed(&[(ids.start, &[0.5, -1.0])])?, 1);
    /// assert_eq!(store.snapshot().embedding(0), Some(vec![0.5, -1.0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn embed(&self, vectors: &[(u64, &[f32])]) -> Result<usize, EmbedError> {
        let writing = self.writing()?;
        let turn = writing.turn(&self.dir)?;
        // Only who has the turn gives ids or vectors: what is found now stays so.
        self.can_be_given(vectors)?;
        let stored = self.as_stored(vectors)?;
        let state = self.state();
        let row_bytes = stored.elements.len() / vectors.len().max(1);
        let given = (vectors.iter().enumerate()).filter_map(|(at, &(id, _))| {
            let row = state.slot_of_id(id)?;
            let vector = Vector {
                inv_norm: stored.inv_norms[at],
                elements: &stored.elements[at * row_bytes..][..row_bytes],
            };
            state.live.is_live(row).then_some((row, id, vector))
        });
        let mut given: Vec<_> = given.collect();
        // Rows next to one another become one piece.
        given.sort_unstable_by_key(|&(row, ..)| row);
        let body = Body::Embed {
            vectors: given.iter().map(|&(_, id, vector)| (id, vector)).collect(),
        };
        let mut record = Vec::new();
        encode(&body, &mut record).map_err(|e| self.too_long(e))?;
        // So that the state changes in place if nobody else looks at it.
        drop(state);

        // Not before: what is refused changes no file.
        self.take_over(writing, &turn)?;
        let mut journal = writing.journal();
        let sequence = match given.is_empty() {
            false => self.write_record(writing, &mut journal, &mut record)?,
            // Another thread may have written, and not yet synced, what leaves nothing to do.
            true => journal.last_sequence,
        };
        // One that was deleted meanwhile is nobody's any more, with a vector or without.
        self.change_state(&mut journal, |state| {
            for &(row, _, vector) in &given {
                state.embed(row, vector);
            }
        });
        drop(journal);
        drop(turn);
        self.keep_promise(writing, sequence, self.durability.appends)?;
        Ok(given.len())
    }

    /// Whether these memories, as far as they are there, can be given vectors.
    fn can_be_given(&self, vectors: &[(u64, &[f32])]) -> Result<(), EmbedError> {
        let state = self.state();
        let mut named = HashSet::with_capacity(vectors.len());
        for &(id, _) in vectors {
            if id >= state.next_id {
                let next = state.next_id;
                return Err(EmbedError::NoId { id, next });
            }
            if !named.insert(id) {
                return Err(EmbedError::Twice { id });
            }
            if let Some(row) = state.slot_of_id(id)
                && state.live.is_live(row)
                && state.has_embedding(row)
            {
                return Err(EmbedError::HasEmbedding { id });
            }
        }
        Ok(())
    }

    /// The vectors in the store's element type, checked.
    fn as_stored(&self, vectors: &[(u64, &[f32])]) -> Result<Stored, EmbedError> {
        let Manifest { dim, dtype, .. } = *self.state().committed.manifest;
        let mut elements = Elements::new(dim, dtype);
        let mut stored = Stored {
            elements: Vec::with_capacity(vectors.len() * dim.get() * dtype.size_bytes()),
            inv_norms: Vec::with_capacity(vectors.len()),
        };
        for &(id, vector) in vectors {
            (elements.set(vector)).map_err(|problem| EmbedError::Refused { id, problem })?;
            stored.elements.extend_from_slice(elements.keep());
            if elements.is_full() {
                stored.inv_norms.extend(elements.take_inv_norms());
            }
        }
        stored.inv_norms.extend(elements.take_inv_norms());
        Ok(stored)
    }
}

/// Vectors, one after another.
struct Stored {
    elements: Vec<u8>,
    inv_norms: Vec<f32>,
}
