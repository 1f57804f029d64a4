//! What fuzz targets call: the importers' parsers on bytes, without files and without a store. There only under
//! `cfg(fuzzing)`, and no part of the API.

use super::archive::{Archive, Nodes};
use super::memorank::memories::Memories;
use super::npy::{Lines, Matrix, Rows, Shapes};
use super::{ImportError, Options, Place, Report, Sink, Source};
use crate::store::{Kind, NewMemory};
use std::path::Path;

/// A matrix (the bytes of a `.npy` file) and its lines.
pub fn npy(matrix: &[u8], lines: &[u8], options: &Options) {
    let rows = Matrix::new(
        Path::new("m.npy"),
        matrix,
        matrix.len() as u64,
        Shapes::Matrix,
    )
    .and_then(|matrix| {
        let lines = || Ok(Lines::new(Path::new("m.jsonl"), lines, LINE_MAX));
        Rows::new(matrix, lines, options)
    });
    give(rows);
}

/// The longest line.
const LINE_MAX: u64 = 1 << 16;

/// An archive's nodes and embeddings, if there are any.
pub fn reverie(nodes: &[u8], embeddings: Option<&[u8]>) {
    let nodes = super::reverie::nodes(Path::new("nodes.json"), nodes);
    give_archive("reverie", nodes, embeddings);
}

/// As [`reverie`].
pub fn genagents(nodes: &[u8], embeddings: Option<&[u8]>) {
    let nodes = super::genagents::nodes(Path::new("nodes.json"), nodes, &Options::default());
    give_archive("genagents", nodes, embeddings);
}

/// The lines of an export.
pub fn memories(lines: &[u8]) {
    let kinds = [Kind::OBSERVATION, Kind::REFLECTION, Kind::named("diary")];
    let mut memories = Memories::new(Path::new("memories.jsonl"), lines, &kinds);
    loop {
        match memories.next() {
            Ok(Some(line)) => assert!(line.importance.is_finite()),
            Ok(None) => break,
            Err(error) => return assert!(!error.to_string().is_empty()),
        }
    }
}

fn give_archive(
    format: &'static str,
    nodes: Result<Nodes, ImportError>,
    embeddings: Option<&[u8]>,
) {
    let options = Options::default();
    give(nodes.and_then(|nodes| Archive::new(format, Path::new(""), &options, nodes, embeddings)));
}

/// Lets what was read give all its memories.
fn give(source: Result<impl Source, ImportError>) {
    let given = source.and_then(|source| {
        let mut sink = Checked {
            dim: source.plan().dim.get(),
            memories: 0,
        };
        let announced = source.memories();
        let report: Report = source.feed(&mut sink)?;
        assert_eq!(sink.memories, announced);
        assert_eq!(report.memories, announced);
        Ok(())
    });
    if let Err(error) = given {
        assert!(!error.to_string().is_empty());
    }
}

/// Memories that a store could take, but for what it says of evidence and keys.
struct Checked {
    dim: usize,
    memories: u64,
}

impl Sink for Checked {
    fn push(&mut self, _: &Place, memory: &NewMemory<'_>) -> Result<(), ImportError> {
        self.memories += 1;
        assert!(memory.importance.is_finite());
        if let Some(embedding) = memory.embedding {
            assert_eq!(embedding.len(), self.dim);
            assert!(embedding.iter().all(|x| x.is_finite()));
            assert!(embedding.iter().any(|&x| x != 0.0));
        }
        Ok(())
    }
}
