//! The archives behind the goldens: embeddings and nodes as their systems saved them.

use crate::json;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A node of the authors' simulation.
#[derive(Clone)]
pub struct Node {
    pub kind: String,
    pub embedding_key: String,
    pub created: i64,
    pub importance: f32,
}

/// Embeddings by the text they were made from.
pub type Vectors = HashMap<String, Vec<f32>>;

/// Archives below one folder, each embeddings file read once.
pub struct Archives {
    data: PathBuf,
    vectors: HashMap<PathBuf, Rc<Vectors>>,
}

impl Archives {
    pub fn new(data: PathBuf) -> Archives {
        Archives {
            data,
            vectors: HashMap::new(),
        }
    }

    pub fn folder(&self, archive: &str) -> PathBuf {
        self.data.join(archive)
    }

    pub fn vectors(&mut self, archive: &str, file: &str) -> Rc<Vectors> {
        let path = self.folder(archive).join(file);
        let read = || {
            let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            Rc::new(serde_json::from_slice(&text).expect("an object of vectors"))
        };
        self.vectors
            .entry(path.clone())
            .or_insert_with(read)
            .clone()
    }

    /// The saved nodes of a persona, by ascending number.
    pub fn nodes(&self, archive: &str) -> Vec<Node> {
        nodes(&json::read(&self.folder(archive).join("nodes.json")))
    }
}

/// Nodes of an object with keys `node_1` to `node_n`, written in any order, by ascending number.
pub fn nodes(object: &Value) -> Vec<Node> {
    let n = object.as_object().expect("an object of nodes").len();
    (1..=n)
        .map(|number| {
            let node = json::field(object, &format!("node_{number}"));
            Node {
                kind: json::text(node, "type").to_owned(),
                embedding_key: json::text(node, "embedding_key").to_owned(),
                created: json::micros(json::text(node, "created")),
                importance: json::single(json::field(node, "poignancy")),
            }
        })
        .collect()
}

/// The row of the node called `node_{row + 1}`.
pub fn node_row(id: &str) -> usize {
    let number = id.strip_prefix("node_").and_then(|n| n.parse().ok());
    number
        .and_then(|n: usize| n.checked_sub(1))
        .unwrap_or_else(|| panic!("not a node: {id:?}"))
}

/// One JSON object per line.
pub fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{path:?}: {e}")))
        .collect()
}

/// The elements of a little-endian f32 `.npy` matrix in row order, and its row length.
pub fn npy(path: &Path) -> (Vec<f32>, usize) {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00", "{}", path.display());
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..start]).expect("a text header");
    assert!(header.contains("'<f4'") && header.contains("'fortran_order': False"));
    let shape = header
        .split(['(', ')'])
        .nth(1)
        .expect("a shape")
        .split(',')
        .filter_map(|n| n.trim().parse().ok())
        .collect::<Vec<usize>>();
    let (elements, rest) = bytes[start..].as_chunks::<4>();
    let elements: Vec<f32> = elements.iter().map(|b| f32::from_le_bytes(*b)).collect();
    assert!(rest.is_empty() && shape.len() == 2 && elements.len() == shape[0] * shape[1]);
    (elements, shape[1])
}
