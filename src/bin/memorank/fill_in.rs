//! `memorank embed`: vectors for memories that were stored without.

use crate::failure::Failure;
use crate::output::{Output, escaped, grouped, one_line, short_key};
use crate::{embed, keys, opened};
use memorank::import;
use memorank::store::Snapshot;
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
    /// Each memory's key; or its id, if no memory has that key. Without any: all that have no vector. One that has a
    /// vector is an error, and then none is given one.
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// A file with a vector for each of these memories, in their order, without any in the order of their ids: .npy, or
    /// JSON. Without it they are embedded by their words, if the store's model is the built-in one; those without any
    /// word stay as they are.
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    /// The model that made the vectors: an error if the store's is another.
    #[arg(long, requires = "vectors")]
    model: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    embedded: Vec<Embedded<'a>>,
    /// Of all memories, now.
    without_vector: usize,
}

#[derive(Serialize)]
struct Embedded<'a> {
    id: u64,
    key: Option<&'a str>,
    #[serde(skip)]
    text: &'a str,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let store = opened::to_write(&args.store)?;
    let snapshot = store.snapshot();
    let rows = args.rows(&snapshot)?;
    let vectors = args.vectors(&snapshot, &rows)?;
    let given: Vec<(u64, &[f32])> = (vectors.iter())
        .map(|(row, vector)| (snapshot.id(*row), &vector[..]))
        .collect();
    store.embed(&given)?;
    let embedded = vectors.iter().map(|&(row, _)| {
        let memory = snapshot.memory(row)?;
        Ok(Embedded {
            id: memory.id,
            key: memory.key,
            text: memory.text,
        })
    });
    let document = Document {
        schema: "memorank.embed/1",
        store: args.store.display().to_string(),
        embedded: embedded.collect::<Result<_, Failure>>()?,
        without_vector: without_vector(&store.snapshot()).count(),
    };
    store.close()?;
    if out.is_json() {
        return out.document(&document);
    }
    for Embedded { id, key, text } in &document.embedded {
        let key = short_key(*key);
        let text = one_line(text, 60);
        out.line(format_args!("embedded {key} (id {id})  {text}"))?;
    }
    out.line(format_args!(
        "{}: {} memories without a vector",
        escaped(&document.store),
        grouped(document.without_vector)
    ))
}

/// The rows of memories that have none.
fn without_vector(snapshot: &Snapshot) -> impl Iterator<Item = usize> {
    (0..snapshot.rows()).filter(|&row| snapshot.is_live(row) && !snapshot.has_embedding(row))
}

impl Args {
    /// Whose vectors are to be stored.
    fn rows(&self, snapshot: &Snapshot) -> Result<Vec<usize>, Failure> {
        match self.keys.is_empty() {
            true => Ok(without_vector(snapshot).collect()),
            false => keys::rows(snapshot, &self.keys),
        }
    }

    /// The rows that get a vector, with it.
    fn vectors(
        &self,
        snapshot: &Snapshot,
        rows: &[usize],
    ) -> Result<Vec<(usize, Vec<f32>)>, Failure> {
        let Some(path) = &self.vectors else {
            return by_words(snapshot, rows);
        };
        opened::check_model(snapshot, self.model.as_deref())?;
        let vectors = import::read_vectors(path)?;
        if vectors.len() != rows.len() {
            let (path, found, memories) = (path.display(), vectors.len(), rows.len());
            let told = format!("--vectors: {path} holds {found} vectors for {memories} memories");
            return Err(Failure::Usage(told));
        }
        Ok(rows.iter().copied().zip(vectors).collect())
    }
}

/// By the built-in embedder. Memories in whose texts there is no word are left out.
fn by_words(snapshot: &Snapshot, rows: &[usize]) -> Result<Vec<(usize, Vec<f32>)>, Failure> {
    let embedder = embed::built_in(snapshot)?;
    let mut vectors = Vec::new();
    for &row in rows {
        if let Ok(vector) = embedder.embedding(snapshot.text(row)?) {
            vectors.push((row, vector));
        }
    }
    Ok(vectors)
}
