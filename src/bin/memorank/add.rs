//! `memorank add`: memories from the command line.

use crate::failure::Failure;
use crate::output::{Output, escaped, grouped, one_line, short_key};
use crate::values::{Moment, importance};
use crate::{embed, keys, opened};
use memorank::import;
use memorank::store::{Kind, NewMemory, Reference, Snapshot};
use memorank::stream::{evidence, rating};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
    /// What each memory says. All are added, or none.
    #[arg(required = true, value_name = "TEXT")]
    texts: Vec<String>,
    /// The caller's own name for the memory, unique in the store; of one text only.
    #[arg(long)]
    key: Option<String>,
    /// What sort of memory it is: observation, reflection, chat, plan, or a name of your own.
    #[arg(long, default_value = Kind::OBSERVATION.as_str())]
    kind: String,
    /// Any finite number; 1 to 10 in the paper.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = importance)]
    importance: f32,
    /// The importance, as a language model replied when asked for a number from 1 to 10: anything but that number is
    /// an error.
    #[arg(
        long,
        value_name = "REPLY",
        conflicts_with = "importance",
        allow_hyphen_values = true
    )]
    rating: Option<String>,
    /// A file with the memories' vectors, one for each text: .npy, or JSON. Without it they are embedded by their words, if
    /// the store's model is the built-in one.
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    /// The model that made the vectors: an error if the store's is another.
    #[arg(long, requires = "vectors")]
    model: Option<String>,
    /// Store without a vector: listed, counted, and never a candidate.
    #[arg(long, conflicts_with = "vectors")]
    no_vector: bool,
    /// When the memories were made (RFC 3339); by default now.
    #[arg(long, value_name = "TIME")]
    created: Option<Moment>,
    /// When they stop being valid (RFC 3339).
    #[arg(long, value_name = "TIME")]
    expiry: Option<Moment>,
    /// A memory that they were concluded from (its key or id); several in order.
    #[arg(long, value_name = "KEY")]
    evidence: Vec<String>,
    /// An older memory that this one corrects (its key or id): it is kept, and is no candidate any more; of one text
    /// only.
    #[arg(long, value_name = "KEY")]
    supersedes: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    added: Vec<Added<'a>>,
    /// With those.
    memories: usize,
}

#[derive(Serialize)]
struct Added<'a> {
    id: u64,
    key: Option<&'a str>,
    text: &'a str,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let texts = args.texts.len();
    for (flag, is_given) in [
        ("--key names", args.key.is_some()),
        ("--supersedes is of", args.supersedes.is_some()),
    ] {
        if is_given && texts > 1 {
            let told = format!("{flag} one memory, and there are {texts}");
            return Err(Failure::Usage(told));
        }
    }
    let importance = match &args.rating {
        Some(reply) => rated(reply)?,
        None => args.importance,
    };
    let created = args.created.map_or_else(opened::clock, |at| Ok(at.0))?;
    let expiry = args.expiry.map(|at| at.0);
    let store = opened::to_write(&args.store)?;
    let snapshot = store.snapshot();
    let kind = Kind::named(&*args.kind);
    let (evidence, depth) = args.evidence(&snapshot, &kind)?;
    let supersedes = match &args.supersedes {
        Some(key) => Some(keys::id(&snapshot, key)?),
        None => None,
    };
    let embeddings = args.embeddings(&snapshot)?;
    let memories = args.texts.iter().zip(&embeddings);
    let memories: Vec<_> = memories
        .map(|(text, embedding)| NewMemory {
            key: args.key.as_deref(),
            kind: kind.clone(),
            text,
            embedding: embedding.as_deref(),
            created,
            last_access: created,
            expiry,
            importance,
            evidence: &evidence,
            depth,
            supersedes,
            payload: b"",
        })
        .collect();
    let ids = store.append(&memories)?;
    let added = ids.zip(&args.texts).map(|(id, text)| Added {
        id,
        key: args.key.as_deref(),
        text,
    });
    let document = Document {
        schema: "memorank.add/1",
        store: args.store.display().to_string(),
        added: added.collect(),
        memories: store.snapshot().len(),
    };
    store.close()?;
    if out.is_json() {
        return out.document(&document);
    }
    for Added { id, key, text } in &document.added {
        let key = short_key(*key);
        let text = one_line(text, 60);
        out.line(format_args!("added {key} (id {id})  {text}"))?;
    }
    out.line(format_args!(
        "{}: {} memories",
        escaped(&document.store),
        grouped(document.memories)
    ))
}

/// The importance that a language model replied.
fn rated(reply: &str) -> Result<f32, Failure> {
    let rating = rating::parse(reply, rating::PAPER);
    let rating = rating.map_err(|e| Failure::Usage(format!("--rating: {e}")))?;
    Ok(f32::from(rating))
}

impl Args {
    /// What the memories were concluded from, and the depth that gives them: 0 unless they are reflections, 1 + the
    /// deepest evidence then.
    fn evidence(&self, snapshot: &Snapshot, kind: &Kind) -> Result<(Vec<Reference>, u32), Failure> {
        let ids = keys::ids(snapshot, &self.evidence)?;
        let depth = match *kind == Kind::REFLECTION {
            true => evidence::depth(snapshot, &ids),
            false => 0,
        };
        Ok((ids.into_iter().map(Reference::Id).collect(), depth))
    }

    /// A vector for each text, or none.
    fn embeddings(&self, snapshot: &Snapshot) -> Result<Vec<Option<Vec<f32>>>, Failure> {
        let texts = &self.texts;
        if self.no_vector {
            return Ok(vec![None; texts.len()]);
        }
        let Some(path) = &self.vectors else {
            let embedded = texts
                .iter()
                .map(|text| embed::text(snapshot, text).map(Some));
            return embedded.collect();
        };
        opened::check_model(snapshot, self.model.as_deref())?;
        let vectors = import::read_vectors(path)?;
        if vectors.len() != texts.len() {
            let (path, found, texts) = (path.display(), vectors.len(), texts.len());
            let told = format!("--vectors: {path} holds {found} vectors for {texts} texts");
            return Err(Failure::Usage(told));
        }
        Ok(vectors.into_iter().map(Some).collect())
    }
}
