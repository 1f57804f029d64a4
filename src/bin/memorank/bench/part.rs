//! The first memories of a store: what is ranked and read to see how time grows.

use super::scan::Vectors;
use memorank::kernel::Rows;
use memorank::scoring::{Candidates, Columns, ColumnsError, Query};
use memorank::store::{Agent, Snapshot};

/// The first memories of a store, and the rows of deleted ones among them, which are read and do not
/// compete.
pub struct Part<'a> {
    pub memories: usize,
    pub columns: Vec<Columns<'a>>,
    /// Of the same rows.
    pub vectors: Vec<Vectors<'a>>,
    /// None: nothing was deleted.
    live: Option<Vec<u64>>,
}

impl<'a> Part<'a> {
    pub fn first(snapshot: &'a Snapshot, memories: usize) -> Result<Part<'a>, ColumnsError> {
        let mut live = (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
        let end = match memories {
            0 => 0,
            // With all that may come after the last one.
            n if n >= snapshot.len() => snapshot.rows(),
            n => live.nth(n - 1).map_or(0, |last| last + 1),
        };
        let (dim, mut columns, mut vectors) = (snapshot.dim(), Vec::new(), Vec::new());
        for segment in snapshot.segments(Agent::OWN) {
            let rows = segment
                .rows()
                .end
                .min(end)
                .saturating_sub(segment.first_row);
            if rows == 0 {
                break;
            }
            let embeddings = match segment.embeddings {
                Rows::F32(all) => Rows::F32(&all[..rows * dim.get()]),
                Rows::F16(all) => Rows::F16(&all[..rows * dim.get()]),
            };
            let inv_norms = &segment.inv_norms[..rows];
            let (last_access, importance) =
                (&segment.last_access[..rows], &segment.importance[..rows]);
            columns.push(Columns::new(
                dim,
                embeddings,
                inv_norms,
                last_access,
                importance,
            )?);
            vectors.push((embeddings, inv_norms));
        }
        Ok(Part {
            memories,
            columns,
            vectors,
            live: snapshot.live().map(|words| first_bits(words, end)),
        })
    }

    /// Rows, those of deleted memories among them.
    pub fn rows(&self) -> usize {
        self.columns.iter().map(Columns::len).sum()
    }

    /// A query, asked of these memories.
    pub fn asked<'q>(&'q self, query: &Query<'q>) -> Query<'q> {
        let candidates = match &self.live {
            None => Candidates::All,
            Some(words) => Candidates::Mask(words),
        };
        Query {
            candidates,
            ..*query
        }
    }
}

/// The first `n` bits of a mask, and no others.
fn first_bits(words: &[u64], n: usize) -> Vec<u64> {
    let mut first = words[..n.div_ceil(64)].to_vec();
    if let (Some(last), used @ 1..) = (first.last_mut(), n % 64) {
        *last &= (1 << used) - 1;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use memorank::kernel::Dtype;
    use memorank::store::files::InMemory;
    use memorank::store::{CreateOptions, Kind, NewMemory, Store};
    use std::sync::Arc;

    #[test]
    fn the_first_memories_come_with_the_deleted_rows_among_them() {
        let options = CreateOptions {
            dim: 1.try_into().unwrap(),
            dtype: Dtype::F32,
            model: None,
        };
        let store = Store::create_on(Arc::new(InMemory::new()), "store", &options).unwrap();
        let memory = |i: i64| NewMemory {
            key: None,
            kind: Kind::OBSERVATION,
            text: "",
            embedding: Some(&[1.0]),
            created: i,
            last_access: i,
            expiry: None,
            importance: 1.0,
            evidence: &[],
            depth: 0,
            supersedes: None,
            payload: b"",
        };
        let append = |ids: std::ops::Range<i64>| {
            let memories: Vec<_> = ids.map(memory).collect();
            store.append(&memories).unwrap();
        };
        let rows = |memories: usize| {
            let snapshot = store.snapshot();
            let part = Part::first(&snapshot, memories).unwrap();
            assert_eq!(part.memories, memories);
            let accesses = part.columns.iter().filter_map(Columns::last_access);
            let expected = 0..part.rows() as i64;
            assert!(accesses.flatten().copied().eq(expected));
            let vectors = part.vectors.iter().map(|(_, inv_norms)| inv_norms.len());
            assert_eq!(vectors.sum::<usize>(), part.rows());
            let query = Query::new(&[1.0], 0, 1);
            let competing = match part.asked(&query).candidates {
                Candidates::Mask(words) => words.iter().map(|word| word.count_ones()).sum(),
                _ => part.rows() as u32,
            };
            assert_eq!(competing as usize, memories);
            part.rows()
        };
        assert_eq!(rows(0), 0);
        append(0..100);
        store.checkpoint().unwrap();
        append(100..200);
        assert_eq!([1, 99, 101, 200].map(rows), [1, 99, 101, 200]);
        store.delete(&[0, 63, 64, 150, 199]).unwrap();
        // All there are come with the rows after the last.
        assert_eq!([1, 62, 63, 195].map(rows), [2, 63, 66, 200]);
    }
}
