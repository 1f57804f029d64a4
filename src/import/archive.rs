//! What the two JSON archives have in common: a folder with `nodes.json` and a file of vectors by
//! text, small enough to be held in memory.

use super::error::{ImportError, Place, VectorProblem};
use super::json::read_whole;
use super::report::{Notices, Report, Tally};
use super::vectors::{Embeddings, Fit};
use super::{NoticeKind, Options, Plan, Sink, Source, note_rounding};
use crate::kernel::Dtype;
use crate::store::{Kind, NewMemory, Reference};
use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The dimension of the authors' embedding model, for archives without any vector.
const AUTHORS_DIM: NonZeroUsize = NonZeroUsize::new(1536).unwrap();

/// The file of memories.
pub(super) const NODES: &str = "nodes.json";

const EMBEDDINGS: &str = "embeddings.json";

/// A memory, complete but for its vector.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) embedding_key: Option<String>,
    pub(super) created: i64,
    pub(super) last_access: i64,
    pub(super) expiry: Option<i64>,
    pub(super) importance: f32,
    pub(super) evidence: Vec<Reference>,
    pub(super) depth: u32,
    pub(super) payload: Vec<u8>,
}

/// The memories of an archive, and what was noticed of them.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    pub(super) tally: Tally,
}

/// An archive that was read and checked whole.
#[derive(Debug)]
pub(super) struct Archive {
    format: &'static str,
    folder: PathBuf,
    plan: Plan,
    not_imported: Vec<String>,
    nodes: Vec<Node>,
    embeddings: Embeddings,
    tally: Tally,
}

/// The path of `nodes.json` in `folder`, which must be there.
pub(super) fn nodes_path(folder: &Path, remedy: &'static str) -> Result<PathBuf, ImportError> {
    let path = folder.join(NODES);
    match std::fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(source) => Err(ImportError::Io {
            path,
            remedy,
            source,
        }),
    }
}

impl Archive {
    /// Reads the vectors in `folder` for `nodes`.
    pub(super) fn read(
        format: &'static str,
        folder: &Path,
        options: &Options,
        nodes: Nodes,
    ) -> Result<Archive, ImportError> {
        let name = options.embeddings.as_deref().unwrap_or(EMBEDDINGS);
        let path = folder.join(name);
        let embeddings = match options.embeddings.is_some() || path.exists() {
            true => Some(read_whole(&path)?),
            false => None,
        };
        let mut archive = Archive::new(format, folder, options, nodes, embeddings.as_deref())?;
        archive.not_imported = others(folder, &[NODES, name])?;
        Ok(archive)
    }

    /// Adds the vectors to `nodes`, and checks them. `embeddings` are the bytes of their file, if there is one.
    pub(super) fn new(
        format: &'static str,
        folder: &Path,
        options: &Options,
        nodes: Nodes,
        embeddings: Option<&[u8]>,
    ) -> Result<Archive, ImportError> {
        let Nodes {
            mut nodes,
            mut tally,
        } = nodes;
        let name = options.embeddings.as_deref().unwrap_or(EMBEDDINGS);
        let dtype = options.dtype.unwrap_or(Dtype::F32);
        let notices = &mut tally.notices;
        let embeddings = match embeddings {
            Some(bytes) => parse_embeddings(&folder.join(name), bytes, dtype, &nodes)?,
            None => {
                notices.add(NoticeKind::EmbeddingsFileAbsent, name);
                Embeddings::default()
            }
        };
        let dim = dimension(folder, name, options, &embeddings, notices)?;
        let rounded = settle(&mut nodes, &embeddings, dtype, &mut tally.notices)?;
        let dtype_reason = match (options.dtype, rounded) {
            (Some(_), 0) => "asked for; holds every value exactly".to_owned(),
            (Some(_), n) => format!("asked for; the vectors of {n} memories were rounded"),
            (None, 0) => "holds every value exactly".to_owned(),
            (None, n) => format!("the default; the vectors of {n} memories were rounded"),
        };
        Ok(Archive {
            format,
            folder: folder.to_owned(),
            not_imported: Vec::new(),
            plan: Plan {
                dim,
                dtype,
                dtype_reason,
                model: options.model.clone(),
            },
            nodes,
            embeddings,
            tally,
        })
    }
}

fn parse_embeddings(
    path: &Path,
    bytes: &[u8],
    dtype: Dtype,
    nodes: &[Node],
) -> Result<Embeddings, ImportError> {
    let mut owners: HashMap<&str, &str> = HashMap::new();
    for node in nodes {
        if let Some(text) = &node.embedding_key {
            owners.entry(text).or_insert(&node.key);
        }
    }
    Embeddings::parse(path, bytes, dtype, |text| {
        owners.get(text).map(|&node| node.to_owned())
    })
}

fn dimension(
    folder: &Path,
    name: &str,
    options: &Options,
    embeddings: &Embeddings,
    notices: &mut Notices,
) -> Result<NonZeroUsize, ImportError> {
    match (embeddings.dim, options.dim) {
        (Some(found), Some(expected)) if found != expected => Err(ImportError::Vector {
            place: Place {
                path: folder.join(name),
                item: "every vector".to_owned(),
            },
            problem: VectorProblem::Dimension {
                found: found.get(),
                expected: expected.get(),
                first: "the dimension asked for".to_owned(),
            },
        }),
        (Some(dim), _) | (None, Some(dim)) => Ok(dim),
        (None, None) => {
            let assumed = AUTHORS_DIM.to_string();
            notices.detail(NoticeKind::DimensionAssumed, name, assumed);
            Ok(AUTHORS_DIM)
        }
    }
}

/// Leaves `embedding_key` only where there is a vector to store, and gives the number of memories
/// whose vector was rounded.
fn settle(
    nodes: &mut [Node],
    embeddings: &Embeddings,
    dtype: Dtype,
    notices: &mut Notices,
) -> Result<u64, ImportError> {
    let mut used = HashSet::new();
    // Many memories share a text.
    let mut fits: HashMap<String, Fit> = HashMap::new();
    let mut rounded = 0;
    for node in nodes {
        let Some(text) = node.embedding_key.take() else {
            notices.detail(NoticeKind::VectorMissing, &node.key, "no embedding key");
            continue;
        };
        used.insert(text.clone());
        let Some(vector) = embeddings.get(&text) else {
            notices.detail(NoticeKind::VectorMissing, &node.key, text);
            continue;
        };
        let fit = match fits.get(&text) {
            Some(&fit) => fit,
            None => {
                let fit = embeddings.fit(dtype, &node.place.item, vector)?;
                fits.insert(text.clone(), fit);
                fit
            }
        };
        match fit {
            Fit::Zero => notices.detail(NoticeKind::VectorZero, &node.key, text),
            Fit::Stored { rounded: to_f16 } => {
                rounded += u64::from(vector.rounded + to_f16 > 0);
                let dim = vector.values.len();
                note_rounding(notices, &node.key, vector.rounded, to_f16, dim);
                node.embedding_key = Some(text);
            }
        }
    }
    for text in embeddings.keys.iter().filter(|&text| !used.contains(text)) {
        notices.add(NoticeKind::EmbeddingsUnused, text);
    }
    Ok(rounded)
}

/// The other files of the folder, by name.
pub(super) fn others(folder: &Path, imported: &[&str]) -> Result<Vec<String>, ImportError> {
    let entries = std::fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<std::io::Result<Vec<_>>>()
    });
    let mut names = entries.map_err(|source| ImportError::Io {
        path: folder.to_owned(),
        remedy: "",
        source,
    })?;
    names.retain(|name| !imported.contains(&name.as_str()));
    names.sort();
    Ok(names)
}

impl Source for Archive {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn memories(&self) -> u64 {
        self.nodes.len() as u64
    }

    fn feed(mut self, sink: &mut dyn Sink) -> Result<Report, ImportError> {
        for node in &self.nodes {
            let text = node.embedding_key.as_deref();
            let vector = text.and_then(|text| self.embeddings.get(text));
            let memory = NewMemory {
                key: Some(&node.key),
                kind: node.kind.clone(),
                text: &node.text,
                embedding: vector.map(|vector| &vector.values[..]),
                created: node.created,
                last_access: node.last_access,
                expiry: node.expiry,
                importance: node.importance,
                evidence: &node.evidence,
                depth: node.depth,
                supersedes: None,
                payload: &node.payload,
            };
            sink.push(&node.place, &memory)?;
            self.tally.count(&memory);
        }
        let (format, plan) = (self.format, &self.plan);
        let not_imported = self.not_imported;
        Ok(self.tally.report(format, &self.folder, not_imported, plan))
    }
}

/// Reports the numbers missing from `numbers` (ascending, distinct) between `first` and their last,
/// one entry for each run of them.
pub(super) fn note_gaps(
    numbers: impl Iterator<Item = u64>,
    first: u64,
    name: impl Fn(u64) -> String,
    notices: &mut Notices,
) {
    let mut expected = first;
    for number in numbers {
        if number > expected {
            let (count, last) = (number - expected, number - 1);
            let detail = (count > 1).then(|| format!("to {}, {count} numbers", name(last)));
            notices.entry(NoticeKind::NumberingGap, count, &name(expected), detail);
        }
        expected = expected.max(number.saturating_add(1));
    }
}
