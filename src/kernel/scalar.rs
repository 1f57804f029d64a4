//! The contract in plain loops: the reference for every other kernel. It shares no
//! arithmetic with them.

use super::dispatch::Picks;
use super::lanes::{Element, LANES};
use super::queries::Queries;

/// `sum row[j] * query[j]` as the contract orders it, `query` padded with zeros to whole groups.
pub(super) fn dot(row: impl ExactSizeIterator<Item = f32>, query: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let padding = query.len() - row.len();
    for (j, x) in row.chain(std::iter::repeat_n(0.0, padding)).enumerate() {
        lanes[j % LANES] = x.mul_add(query[j], lanes[j % LANES]);
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0]
}

/// `out[q * stride + i] = dot(picked row i, query q)`.
pub(super) fn scan<E: Element>(
    rows: &[E],
    picks: &Picks<'_>,
    queries: &Queries,
    out: &mut [f32],
    stride: usize,
) {
    let dim = queries.dim().get();
    for pick in 0..picks.len() {
        let row = &rows[picks.row(pick) * dim..][..dim];
        for q in 0..queries.len() {
            out[q * stride + pick] = dot(row.iter().map(|&x| x.widen()), queries.padded(q));
        }
    }
}
