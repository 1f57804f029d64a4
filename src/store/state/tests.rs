use super::super::damage::{Damage, Problem};
use super::super::elements::Elements;
use super::super::evidence;
use super::super::format::NO_EXPIRY;
use super::super::memory::{Memory, Reference};
use super::super::snapshot::Snapshot;
use super::*;
use crate::kernel::{Dtype, Rows};
use crate::scoring::{self, Candidates, Preset, Query};
use std::num::NonZeroUsize;

mod model;

const DIM: NonZeroUsize = NonZeroUsize::new(3).unwrap();
const SIZES: Sizes = Sizes {
    chunk_rows: 3,
    page_rows: 5,
};

/// A memory as it was given.
#[derive(Clone, Debug)]
struct Given {
    id: u64,
    key: Option<String>,
    kind: Kind,
    text: String,
    embedding: Option<Vec<f32>>,
    time: i64,
    expiry: Option<i64>,
    evidence: Vec<Reference>,
}

impl Given {
    /// The memory with this id and key: what else it has follows from the id.
    fn new(id: u64, key: Option<u8>) -> Given {
        Given {
            id,
            key: key.map(|key| format!("key {key}")),
            kind: Kind::named(format!("kind {}", id % 4)),
            text: "né".repeat(id as usize % 4),
            embedding: (!id.is_multiple_of(5)).then(|| (0..3).map(|j| (id + j) as f32).collect()),
            time: id as i64 * 10,
            expiry: (id.is_multiple_of(3)).then_some(id as i64 * 20),
            evidence: (0..id % 3).map(Reference::Id).collect(),
        }
    }

    fn importance(&self) -> f32 {
        self.id as f32 / 8.0
    }

    fn push(&self, state: &mut State) {
        let mut elements = Elements::new(DIM, state.committed.manifest.dtype);
        let zeros = vec![0; DIM.get() * state.committed.manifest.dtype.size_bytes()];
        let (bytes, inv_norm) = match &self.embedding {
            None => (zeros, 0.0),
            Some(embedding) => {
                elements.set(embedding).unwrap();
                let bytes = elements.keep().to_vec();
                (bytes, elements.take_inv_norms().next().unwrap())
            }
        };
        let mut encoded = Vec::new();
        evidence::encode(&self.evidence, &mut encoded);
        let kind = state.intern(&self.kind).unwrap();
        state.push(&StoredRow {
            elements: &bytes,
            inv_norm,
            id: self.id,
            created: self.time + 1,
            last_access: self.time,
            expiry: self.expiry.unwrap_or(NO_EXPIRY),
            importance: self.importance(),
            kind,
            depth: self.id as u32,
            key: self.key.as_deref(),
            text: &self.text,
            payload: &self.text.as_bytes()[..self.text.len() / 2],
            evidence: &encoded,
        });
        state.tail.join();
    }

    fn memory(&self, last_access: i64) -> Memory<'_> {
        Memory {
            id: self.id,
            key: self.key.as_deref(),
            kind: &self.kind,
            text: &self.text,
            has_embedding: self.embedding.is_some(),
            created: self.time + 1,
            last_access,
            expiry: self.expiry,
            importance: self.importance(),
            evidence: self.evidence.clone(),
            depth: self.id as u32,
            supersedes: None,
            superseded_by: None,
            payload: &self.text.as_bytes()[..self.text.len() / 2],
        }
    }
}

fn manifest(dtype: Dtype) -> Manifest {
    Manifest::new(DIM, dtype, Some("model".into()))
}

fn empty(dtype: Dtype) -> State {
    let columns = Columns::owned(vec![Vec::new(); Column::COUNT], 0);
    let committed = Committed::new(manifest(dtype), columns, Live::new(0));
    State::with_sizes(committed, SIZES)
}

/// These rows of a state as columns, and the manifest that commits them.
fn written(state: &State, rows: impl Iterator<Item = usize>) -> (Manifest, Columns) {
    let mut bytes = vec![Vec::new(); Column::COUNT];
    let mut count = 0;
    for row in rows {
        count += 1;
        append(&mut bytes, state, row);
    }
    let manifest = Manifest {
        rows: count as u64,
        next_id: state.next_id,
        kinds: state.kinds.names(),
        ..(*state.committed.manifest).clone()
    };
    (manifest, Columns::owned(bytes, count))
}

fn append(bytes: &mut [Vec<u8>], state: &State, row: usize) {
    let row = state.stored(row).unwrap();
    let fields: [(Column, &[u8]); 9] = [
        (Column::Embedding, row.elements),
        (Column::InvNorm, &row.inv_norm.to_le_bytes()),
        (Column::Id, &row.id.to_le_bytes()),
        (Column::Created, &row.created.to_le_bytes()),
        (Column::LastAccess, &row.last_access.to_le_bytes()),
        (Column::Expiry, &row.expiry.to_le_bytes()),
        (Column::Importance, &row.importance.to_le_bytes()),
        (Column::Kind, &row.kind.to_le_bytes()),
        (Column::Depth, &row.depth.to_le_bytes()),
    ];
    for (column, field) in fields {
        bytes[column as usize].extend(field);
    }
    append_span(bytes, Column::KeyEnds, row.key.unwrap_or("").as_bytes());
    append_span(bytes, Column::TextEnds, row.text.as_bytes());
    append_span(bytes, Column::PayloadEnds, row.payload);
    append_span(bytes, Column::EvidenceEnds, row.evidence);
}

/// The column of bytes comes right after that of its ends.
fn append_span(bytes: &mut [Vec<u8>], ends: Column, span: &[u8]) {
    bytes[ends as usize + 1].extend(span);
    let end = bytes[ends as usize + 1].len() as u64;
    bytes[ends as usize].extend(end.to_le_bytes());
}

fn state_of(rows: u64, in_columns: usize) -> State {
    let mut state = empty(Dtype::F16);
    (0..rows).for_each(|id| Given::new(id, None).push(&mut state));
    let (manifest, columns) = written(&state, 0..in_columns);
    let extended = state.extended(manifest, columns);
    state.adopt(extended);
    state
}

fn ends(state: &State, agent: Agent) -> Vec<usize> {
    let snapshot = Snapshot::new(Arc::new(state.clone()));
    let segments = snapshot.segments(agent);
    segments.map(|segment| segment.rows().end).collect()
}

#[test]
fn segments_are_cut_at_the_columns_end_at_chunks_and_where_the_agent_touched() {
    let mut state = state_of(31, 22);
    // The tail's chunks begin at rows 0, 12, 24, 30: 22 rows of them are in the columns.
    assert_eq!(ends(&state, Agent::OWN), [22, 24, 30, 31]);
    state.touch(Agent(1), 11, 1_000);
    assert_eq!(ends(&state, Agent::OWN), [22, 24, 30, 31]);
    assert_eq!(ends(&state, Agent(1)), [10, 15, 22, 24, 30, 31]);
    state.touch(Agent(1), 30, 1_000);
    assert_eq!(ends(&state, Agent(1)), [10, 15, 22, 24, 30, 31]);
    Given::new(31, None).push(&mut state);
    assert_eq!(ends(&state, Agent(1)), [10, 15, 22, 24, 30, 31, 32]);
    assert_eq!(ends(&empty(Dtype::F32), Agent::OWN), [0; 0]);
}

#[test]
fn segments_rank_as_their_rows_do_in_one_piece() {
    let mut state = state_of(40, 22);
    for row in [3, 4, 17, 24, 38] {
        state.touch(Agent(1), row, 350 + row as i64);
    }
    for row in [2, 21, 22, 39] {
        state.delete(row);
    }
    let snapshot = Snapshot::new(Arc::new(state));
    let (mut elements, mut access, mut importance, mut inv_norms) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for segment in snapshot.segments(Agent(1)) {
        let Rows::F16(all) = segment.embeddings else {
            panic!("the store has f16");
        };
        elements.extend_from_slice(all);
        access.extend_from_slice(segment.last_access);
        importance.extend_from_slice(segment.importance);
        inv_norms.extend_from_slice(segment.inv_norms);
    }
    let whole = scoring::Columns::new(DIM, Rows::F16(&elements), &inv_norms, &access, &importance);
    let segments: Result<Vec<_>, _> = (snapshot.segments(Agent(1)))
        .map(|s| scoring::Columns::new(DIM, s.embeddings, s.inv_norms, s.last_access, s.importance))
        .collect();
    let mask = Candidates::Mask(snapshot.live().unwrap());
    let query = Query::new(&[1.0, -1.0, 0.5], 1_000, 50).of(mask);
    let scoring = Preset::paper().scoring;
    let in_segments = scoring::rank(&segments.unwrap(), &query, &scoring).unwrap();
    let in_one = scoring::rank(&[whole.unwrap()], &query, &scoring).unwrap();
    assert_eq!(in_segments.hits, in_one.hits);
    assert_eq!(
        in_one.hits.len(),
        (0..40)
            .filter(|id| id % 5 != 0 && ![2, 21, 22, 39].contains(id))
            .count()
    );
}

#[test]
fn segments_are_cut_where_vectors_came_later_and_where_an_agent_has_its_own_importance() {
    let mut state = state_of(31, 22);
    let elements = [0; 6];
    let vector = Vector {
        inv_norm: 1.0,
        elements: &elements,
    };
    // Those without a vector are every fifth.
    for row in [5, 20, 25] {
        assert!(state.embed(row, vector));
    }
    assert!(!state.embed(4, vector) && !state.embed(5, vector));
    assert_eq!(ends(&state, Agent::OWN), [5, 6, 20, 21, 22, 24, 30, 31]);
    state.set_importance(Agent(1), 12, Some(2.0));
    assert_eq!(
        ends(&state, Agent(1)),
        [5, 6, 10, 15, 20, 21, 22, 24, 30, 31]
    );
    assert_eq!(ends(&state, Agent(2)).len(), 8);
    // In columns that hold it, no row is another's segment.
    let kept = Kept::new(&state.live);
    let (manifest, columns) = written(&state, 0..31);
    let compacted = state.compacted(&kept, manifest, columns);
    assert_eq!(ends(&compacted, Agent::OWN), [31]);
}

#[test]
fn a_deleted_memorys_key_can_be_given_again_and_again() {
    let mut state = empty(Dtype::F32);
    for id in 0..50 {
        assert_eq!(state.row_of_key("key 1"), Ok(None));
        Given::new(id, Some(1)).push(&mut state);
        let row = state.rows() - 1;
        assert_eq!(state.row_of_key("key 1"), Ok(Some(row)));
        if id % 7 == 0 {
            let (manifest, columns) = written(&state, 0..state.rows());
            let extended = state.extended(manifest, columns);
            state.adopt(extended);
            assert_eq!(state.row_of_key("key 1"), Ok(Some(row)));
        }
        state.delete(row);
        assert_eq!(state.slot_of_id(id), Some(row));
    }
    let mut index = KeyIndex::default();
    let live = Live::without(50, 0..49);
    let is_live = |row| live.is_live(row);
    let (_, columns) = written(&state, 0..50);
    index.extend(&columns, 0, is_live).unwrap();
    let found = index.find_in(&columns, "key 1").unwrap();
    assert!(matches!(found, Found::Row(49)));
}

#[test]
fn a_damaged_key_is_told_unless_its_memory_was_deleted() {
    let state = state_of(4, 4);
    let (manifest, _) = written(&state, 0..4);
    let damaged = || {
        let mut bytes = vec![Vec::new(); Column::COUNT];
        (0..4).for_each(|row| append(&mut bytes, &state, row));
        bytes[Column::KeyEnds as usize][16..24].copy_from_slice(&[0xff; 8]);
        Columns::owned(bytes, 4)
    };
    let open = |live| State::new(Committed::new(manifest.clone(), damaged(), live));
    let found = open(Live::new(4)).row_of_key("key 1");
    assert!(
        matches!(
            &found,
            Err(Damage {
                problem: Problem::Span { row: 2, .. },
                ..
            })
        ),
        "{found:?}"
    );
    // A span has its start from the row before.
    assert_eq!(open(Live::without(4, [2, 3])).row_of_key("key 1"), Ok(None));
}

#[test]
fn a_state_of_the_usual_sizes_crosses_its_chunks() {
    let mut state = State::new(empty(Dtype::F16).committed);
    (0..2000).for_each(|id| Given::new(id, None).push(&mut state));
    assert_eq!(ends(&state, Agent::OWN), [1024, 2000]);
    state.touch(Agent(7), 1500, i64::MAX);
    assert_eq!(ends(&state, Agent(7)), [1024, 2000]);
    assert_eq!(state.last_access(Agent(7), 1500), i64::MAX);
}
