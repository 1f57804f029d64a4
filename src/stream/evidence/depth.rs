//! How far a memory is from what was observed.

use crate::store::Snapshot;

/// The depth of a conclusion from memories of these depths.
pub(crate) fn above(cited: impl IntoIterator<Item = u32>) -> u32 {
    let deepest = cited.into_iter().max();
    deepest.map_or(1, |deepest| deepest.saturating_add(1))
}

/// The depth of a conclusion from the memories with these ids: what [`Draft::depth`](crate::stream::Draft::depth) of
/// a reflection should be. An id that names no memory is passed over.
pub fn depth(snapshot: &Snapshot, evidence: &[u64]) -> u32 {
    let rows = evidence.iter().filter_map(|&id| snapshot.row_of_id(id));
    above(rows.map(|row| snapshot.depth(row)))
}
