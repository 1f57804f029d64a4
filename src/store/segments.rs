//! A snapshot's rows as slices: pieces within which every field lies in one array.

use super::access::Access;
use super::format::Column;
use super::state::State;
use crate::kernel::{Dtype, Rows};
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
    /// The importance of each memory.
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
/// what the agent touched begins and ends.
pub(super) struct Segments<'a> {
    state: &'a State,
    access: Option<&'a Access>,
    next: usize,
}

impl<'a> Segments<'a> {
    pub(super) fn new(state: &'a State, access: Option<&'a Access>) -> Segments<'a> {
        Segments {
            state,
            access,
            next: 0,
        }
    }

    /// The part of `segment` that the agent touched or did not touch, from its first row on.
    fn of_agent(&self, segment: Segment<'a>) -> Segment<'a> {
        let Some(access) = self.access else {
            return segment;
        };
        let (end, own) = access.piece(segment.rows());
        let rows = end - segment.first_row;
        let dim = self.state.committed.manifest.dim.get();
        Segment {
            first_row: segment.first_row,
            embeddings: match segment.embeddings {
                Rows::F32(all) => Rows::F32(&all[..rows * dim]),
                Rows::F16(all) => Rows::F16(&all[..rows * dim]),
            },
            inv_norms: &segment.inv_norms[..rows],
            last_access: own.unwrap_or(&segment.last_access[..rows]),
            importance: &segment.importance[..rows],
            created: &segment.created[..rows],
        }
    }

    /// Rows of the columns.
    fn committed(&self, rows: Range<usize>) -> Segment<'a> {
        let (manifest, columns) = (
            &self.state.committed.manifest,
            &self.state.committed.columns,
        );
        let dim = manifest.dim.get();
        let elements = rows.start * dim..rows.end * dim;
        Segment {
            first_row: rows.start,
            embeddings: match manifest.dtype {
                Dtype::F32 => Rows::F32(&columns.view(Column::Embedding)[elements]),
                Dtype::F16 => Rows::F16(&columns.view(Column::Embedding)[elements]),
            },
            inv_norms: &columns.view(Column::InvNorm)[rows.clone()],
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
            inv_norms: &chunk.inv_norms[rows.clone()],
            last_access: &chunk.last_access[rows.clone()],
            importance: &chunk.importance[rows.clone()],
            created: &chunk.created[rows],
        }
    }
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
