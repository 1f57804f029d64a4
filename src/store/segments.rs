//! A snapshot's rows as slices: pieces within which every field lies in one array.

use super::format::Column;
use super::own::{Agent, Own};
use super::state::State;
use crate::kernel::{Dtype, Rows};
use bytemuck::Pod;
use std::ops::Range;

/// Some rows of a snapshot, one after another, field by field. Deleted rows are among them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Segment<'a> {
    /// The number of the first row.
    pub first_row: usize,
    /// The embeddings; zeros where a row has none.
    pub embeddings: Rows<'a>,
    /// The inverse length of each embedding; 0 where a row has none.
    pub inv_norms: &'a [f32],
    /// When each memory was last retrieved by the agent asked for, in microseconds since the Unix epoch.
    pub last_access: &'a [i64],
    /// The importance of each memory for the agent asked for.
    pub importance: &'a [f32],
    /// When each memory was made, in microseconds since the Unix epoch.
    pub created: &'a [i64],
}

impl Segment<'_> {
    /// The numbers of its rows.
    pub fn rows(&self) -> Range<usize> {
        self.first_row..self.first_row + self.inv_norms.len()
    }
}

/// The segments of a state for one agent: cut where the columns end, at the chunks of the tail, and where
/// vectors that came later begin and end, and what the agent has of its own.
pub(super) struct Segments<'a> {
    state: &'a State,
    access: Option<&'a Own<i64>>,
    importance: Option<&'a Own<f32>>,
    next: usize,
}

impl<'a> Segments<'a> {
    pub(super) fn new(state: &'a State, agent: Agent) -> Segments<'a> {
        Segments {
            state,
            access: state.access.get(&agent),
            importance: state.own_importance(agent),
            next: 0,
        }
    }

    /// The part of `segment` in which the agent has the same fields of its own, from its first row on.
    fn of_agent(&self, segment: Segment<'a>) -> Segment<'a> {
        let all = segment.rows();
        let (touched, access) = piece(self.access, &all);
        let (end, importance) = piece(self.importance, &(all.start..touched));
        let rows = end - segment.first_row;
        if end == all.end && access.is_none() && importance.is_none() {
            return segment;
        }
        let dim = self.state.committed.manifest.dim.get();
        Segment {
            first_row: segment.first_row,
            embeddings: match segment.embeddings {
                Rows::F32(all) => Rows::F32(&all[..rows * dim]),
                Rows::F16(all) => Rows::F16(&all[..rows * dim]),
            },
            inv_norms: &segment.inv_norms[..rows],
            last_access: access.map_or(&segment.last_access[..rows], |own| &own[..rows]),
            importance: importance.unwrap_or(&segment.importance[..rows]),
            created: &segment.created[..rows],
        }
    }

    /// Rows of the columns: as many of these as have their vectors there, or in one run beside them.
    fn committed(&self, rows: Range<usize>) -> Segment<'a> {
        let (end, filled) = self.state.filled.piece(rows.clone());
        let rows = rows.start..end;
        let (manifest, columns) = (
            &self.state.committed.manifest,
            &self.state.committed.columns,
        );
        let dim = manifest.dim.get();
        let in_columns = || {
            let elements = rows.start * dim..rows.end * dim;
            let embeddings = match manifest.dtype {
                Dtype::F32 => Rows::F32(&columns.view(Column::Embedding)[elements]),
                Dtype::F16 => Rows::F16(&columns.view(Column::Embedding)[elements]),
            };
            (embeddings, &columns.view(Column::InvNorm)[rows.clone()])
        };
        let (embeddings, inv_norms) = filled.unwrap_or_else(in_columns);
        Segment {
            first_row: rows.start,
            embeddings,
            inv_norms,
            last_access: &columns.view(Column::LastAccess)[rows.clone()],
            importance: &columns.view(Column::Importance)[rows.clone()],
            created: &columns.view(Column::Created)[rows],
        }
    }

    /// The rest of a chunk of the tail.
    fn in_tail(&self, row: usize) -> Segment<'a> {
        let (chunk, rows) = (self.state.tail).piece(row - self.state.committed.columns.rows);
        Segment {
            first_row: row,
            embeddings: chunk.embeddings(self.state.committed.manifest.dim, rows.clone()),
            inv_norms: &chunk.inv_norms()[rows.clone()],
            last_access: &chunk.last_access[rows.clone()],
            importance: &chunk.importance[rows.clone()],
            created: &chunk.created[rows],
        }
    }
}

/// The longest piece of `rows` from its start on that an agent has of its own, or has not.
fn piece<'a, T: Pod>(own: Option<&'a Own<T>>, rows: &Range<usize>) -> (usize, Option<&'a [T]>) {
    own.map_or((rows.end, None), |own| own.piece(rows.clone()))
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let committed = self.state.committed.columns.rows;
        let rest = match self.next {
            row if row < committed => self.committed(row..committed),
            row if row < self.state.rows() => self.in_tail(row),
            _ => return None,
        };
        let segment = self.of_agent(rest);
        self.next = segment.rows().end;
        Some(segment)
    }
}
