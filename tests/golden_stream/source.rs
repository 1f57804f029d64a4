//! What a golden's memories are imported from: the archive as its system saved it, or an edited copy.

use crate::archive::{Archives, lines};
use crate::case::Case;
use crate::import_common::Folder;
use crate::json;
use memorank::import::{ImportError, Options, Report, genagents, npy, reverie};
use memorank::kernel::Dtype;
use memorank::store::Store;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

#[derive(Clone, Copy)]
enum Format {
    Reverie,
    Genagents,
    /// `memories.npy` of the archive with `memories.jsonl` of the copy.
    Npy,
}

pub struct Source {
    format: Format,
    /// The archive.
    path: PathBuf,
    /// What is imported in its place.
    edited: Option<Folder>,
    options: Options,
    /// Key of each row.
    pub keys: Vec<String>,
    /// The only kind that competes.
    pub filter: Option<String>,
}

pub struct Imported {
    pub store: Store,
    pub report: Report,
    /// Holds the store.
    pub folder: Folder,
}

impl Source {
    pub fn import(&self, dtype: Dtype) -> Result<Imported, ImportError> {
        let folder = Folder::new();
        let (from, to) = (self.folder(), folder.store());
        let options = Options {
            dtype: Some(dtype),
            ..self.options.clone()
        };
        let progress = &mut |_, _| ();
        let report = match self.format {
            Format::Reverie => reverie(&from, &to, &options, progress),
            Format::Genagents => genagents(&from, &to, &options, progress),
            Format::Npy => {
                let (matrix, lines) = (self.path.join("memories.npy"), from.join("memories.jsonl"));
                npy(&matrix, &lines, &to, &options, progress)
            }
        };
        match report {
            Ok(report) => Ok(Imported {
                store: Store::open(to).expect("a store"),
                report,
                folder,
            }),
            Err(e) => {
                assert_eq!(folder.left(), [] as [PathBuf; 0], "{e}");
                Err(e)
            }
        }
    }

    fn folder(&self) -> PathBuf {
        let edited = self.edited.as_ref().map(Folder::source);
        edited.unwrap_or_else(|| self.path.clone())
    }

    pub fn paper(golden: &Value, case: &Case, archives: &Archives) -> Source {
        let archive = json::text(golden, "archive");
        if archive.starts_with("locomo/") {
            return Source::conversation(archive, case, archives);
        }
        if archive == "genagents" {
            // The golden's hours do not begin at the epoch.
            let step_zero = case.memories.created[0] - 3_600_000_000;
            let mut source = Source::agent(archives, None);
            source.options.step_zero = step_zero;
            return source;
        }
        let saved = json::read(&archives.folder(archive).join("nodes.json"));
        let mut nodes = Map::new();
        for (id, importance) in json::list(golden, "ids")
            .iter()
            .zip(json::list(golden, "importance_raw"))
        {
            let id = id.as_str().expect("a node");
            let mut node = json::field(&saved, id).clone();
            if json::single(&node["poignancy"]) != json::single(importance) {
                node["poignancy"] = importance.clone();
            }
            nodes.insert(id.to_owned(), node);
        }
        Source::persona(archive, nodes, &[], archives)
    }

    pub fn reverie(golden: &Value, case: &Case, archives: &Archives) -> Source {
        let archive = json::text(golden, "archive");
        if archive.starts_with("locomo/") {
            return Source::conversation(archive, case, archives);
        }
        let saved = json::read(&archives.folder(archive).join("nodes.json"));
        let nodes = golden.get("archive_nodes").unwrap_or(&saved);
        let mut nodes = nodes.as_object().expect("nodes").clone();
        for node in nodes.values_mut() {
            // Edited nodes come without the text.
            if node.get("description").is_none() {
                node["description"] = node["embedding_key"].clone();
            }
        }
        let key = |row: &usize| nodes[&format!("node_{}", row + 1)]["embedding_key"].clone();
        let zeros: Vec<Value> = case.memories.vectorless.iter().map(key).collect();
        Source::persona(archive, nodes, &zeros, archives)
    }

    /// A saved persona, or `nodes` in place of its own, with zeros as the vectors of the texts `zeros`.
    fn persona(
        archive: &str,
        nodes: Map<String, Value>,
        zeros: &[Value],
        archives: &Archives,
    ) -> Source {
        let path = archives.folder(archive);
        let file = match archive.starts_with("reverie_nodes_only/") {
            true => "embeddings_minilm384.json",
            false => "embeddings.json",
        };
        let keys = (1..=nodes.len()).map(|n| format!("node_{n}")).collect();
        let nodes = Value::Object(nodes);
        let edited = !zeros.is_empty() || nodes != json::read(&path.join("nodes.json"));
        let edited = edited.then(|| {
            let folder = Folder::new();
            folder.write(
                "nodes.json",
                newest_first(nodes.as_object().expect("nodes")),
            );
            let mut vectors = json::read(&path.join(file));
            for text in zeros {
                let vector = &mut vectors[text.as_str().expect("a text")];
                let dim = vector.as_array().expect("a vector").len();
                *vector = json!(vec![0.0; dim]);
            }
            folder.write(file, vectors.to_string());
            folder
        });
        let options = Options {
            embeddings: Some(file.to_owned()),
            ..Options::default()
        };
        Source {
            format: Format::Reverie,
            path,
            edited,
            options,
            keys,
            filter: None,
        }
    }

    /// A persona with a change of its nodes, which are all there, and of its vectors.
    pub fn changed(
        archive: &str,
        archives: &Archives,
        change: impl FnOnce(&mut Map<String, Value>, &mut Map<String, Value>),
    ) -> Source {
        let path = archives.folder(archive);
        let folder = Folder::edited(&path, change);
        Source {
            format: Format::Reverie,
            path,
            edited: Some(folder),
            options: Options::default(),
            keys: Vec::new(),
            filter: None,
        }
    }

    pub fn genagents(golden: &Value, archives: &Archives) -> Source {
        let mut source = Source::agent(archives, golden.get("archive_nodes"));
        let filter = json::text(json::field(golden, "params"), "curr_filter");
        source.filter = (filter != "all").then(|| filter.to_owned());
        source
    }

    /// The saved agent, or `edited` nodes of it, which come without text and evidence.
    fn agent(archives: &Archives, edited: Option<&Value>) -> Source {
        let path = archives.folder("genagents");
        let saved = json::read(&path.join("nodes.json"));
        let nodes = edited.unwrap_or(&saved).as_array().expect("nodes");
        let id = |node: &Value| json::index(json::field(node, "node_id"));
        let keys = nodes.iter().map(|node| id(node).to_string()).collect();
        let edited = edited.is_some().then(|| {
            let complete = |node: &Value| {
                let mut node = node.clone();
                for field in ["content", "pointer_id"] {
                    node[field] = saved[id(&node)][field].clone();
                }
                node
            };
            let nodes: Vec<Value> = nodes.iter().map(complete).collect();
            let vectors = std::fs::read_to_string(path.join("embeddings.json"));
            Folder::archive(&json!(nodes).to_string(), &vectors.expect("vectors"))
        });
        Source {
            format: Format::Genagents,
            path,
            edited,
            options: Options::default(),
            keys,
            filter: None,
        }
    }

    /// A conversation with the golden's importances.
    fn conversation(archive: &str, case: &Case, archives: &Archives) -> Source {
        let path = archives.folder(archive);
        let mut turns = lines(&path.join("memories.jsonl"));
        for (turn, importance) in turns.iter_mut().zip(&case.memories.importance) {
            turn["importance"] = json!(importance);
        }
        let folder = Folder::new();
        let text: String = turns.iter().map(|turn| format!("{turn}\n")).collect();
        folder.write("memories.jsonl", text);
        let keys = turns.iter().map(|turn| json::text(turn, "id").to_owned());
        Source {
            format: Format::Npy,
            path,
            edited: Some(folder),
            options: Options::default(),
            keys: keys.collect(),
            filter: None,
        }
    }
}

/// Nodes as the authors write them.
fn newest_first(nodes: &Map<String, Value>) -> String {
    let mut numbered: Vec<(usize, &Value)> = nodes
        .iter()
        .map(|(id, node)| (crate::archive::node_row(id), node))
        .collect();
    numbered.sort_by_key(|(row, _)| std::cmp::Reverse(*row));
    let entries: Vec<String> = numbered
        .iter()
        .map(|(row, node)| format!("\"node_{}\": {node}", row + 1))
        .collect();
    format!("{{{}}}", entries.join(", "))
}
