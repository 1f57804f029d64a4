//! Questions: the flags that `query`, `explain` and `replay` share.

use crate::failure::Failure;
use crate::filters::{Filters, HEADING, Narrowed};
use crate::settings::Settings;
use crate::threads::threads;
use crate::values::{Moment, whole};
use crate::{embed, keys, opened, show};
use memorank::import;
use memorank::scoring::Preset;
use memorank::store::{Agent, Snapshot};
use memorank::stream::{Ask, Decays, Filter};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Question {
    #[command(flatten)]
    sources: Sources,
    /// Leave the memory named by --like out: it does not compete.
    #[arg(long, conflicts_with_all = ["vector", "text"])]
    exclude_self: bool,
    /// Which of the vectors in FILE, counted from 0.
    #[arg(
        long,
        conflicts_with_all = ["like", "text"],
        default_value_t = 0,
        value_name = "N",
        value_parser = whole,
        allow_negative_numbers = true
    )]
    vector_index: usize,
    #[command(flatten)]
    pub asking: Asking,
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    pub competing: Competing,
}

/// Who asks, when, and how.
#[derive(clap::Args)]
pub struct Asking {
    /// The embedding model's name: an error if the store was made by another.
    #[arg(long)]
    pub model: Option<String>,
    /// The moment of asking (RFC 3339); by default the newest last access in the store.
    #[arg(long, value_name = "TIME")]
    pub now: Option<Moment>,
    /// Who asks, by default 0: agents that share a store have last accesses and importances of their own.
    #[arg(long, value_name = "N")]
    pub agent: Option<u32>,
    /// How many threads, at most 1024; 0 for one per core.
    #[arg(long, default_value_t = 0, value_parser = threads, allow_negative_numbers = true)]
    pub threads: usize,
}

/// Which memories compete.
#[derive(clap::Args, Serialize)]
pub struct Competing {
    #[command(flatten)]
    #[serde(flatten)]
    pub filters: Filters,
    /// Memories created after --now compete, too.
    #[arg(long, help_heading = HEADING)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    future: bool,
    /// Memories that were corrected (`add --supersedes`) compete, too.
    #[arg(long, help_heading = HEADING)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    superseded: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Sources {
    /// A file with the query's vector: .npy, or JSON: [0.1, 0.2, ...].
    #[arg(long, value_name = "FILE")]
    vector: Option<PathBuf>,
    /// Ask with the embedding of this memory (its key or id).
    #[arg(long, value_name = "KEY")]
    like: Vec<String>,
    /// Ask with the words of this text, if the store's model is the built-in one: it matches words, not meaning.
    #[arg(long)]
    text: Vec<String>,
}

/// What is asked with, as it was given.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Text(String),
    /// A memory's key or id.
    Like(String),
    Vector {
        file: String,
        /// Which of the file's, counted from 0.
        index: usize,
        #[serde(skip)]
        vector: Vec<f32>,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Text(text) => write!(f, "text {text:?}"),
            Source::Like(key) => write!(f, "like {key:?}"),
            Source::Vector { file, index, .. } => write!(f, "vector {index} of {file}"),
        }
    }
}

/// One question, before it is put to a store.
pub struct Asked {
    pub source: Source,
    /// Not that of the flags.
    pub agent: Option<u32>,
    /// Not that of the flags.
    pub now: Option<Moment>,
}

/// One question in the terms of a snapshot.
pub struct Put<'a> {
    pub source: &'a Source,
    pub agent: Agent,
    pub now: i64,
    /// Why it is that moment.
    pub whence: &'static str,
    embedding: Cow<'a, [f32]>,
    /// Ids that do not compete.
    exclude: Vec<u64>,
}

impl Question {
    /// The questions that the flags ask.
    pub fn asked(&self) -> Result<Vec<Asked>, Failure> {
        let Sources { vector, like, text } = &self.sources;
        let texts = text.iter().cloned().map(Source::Text);
        let mut sources: Vec<Source> = texts
            .chain(like.iter().cloned().map(Source::Like))
            .collect();
        if let Some(path) = vector {
            sources.push(vector_of(path, self.vector_index)?);
        }
        let asked = sources.into_iter().map(|source| Asked {
            source,
            agent: None,
            now: None,
        });
        Ok(asked.collect())
    }

    /// The question that the flags ask, where there can be but one.
    pub fn only(&self, done: &str) -> Result<Asked, Failure> {
        let mut asked = self.asked()?;
        let found = asked.len();
        match asked.pop() {
            Some(only) if found == 1 => Ok(only),
            Some(_) | None => Err(Failure::Usage(format!(
                "a {done} for one question, and there are {found}"
            ))),
        }
    }

    /// A question in the terms of a snapshot.
    pub fn put<'a>(
        &self,
        asked: &'a Asked,
        snapshot: &Snapshot,
        narrowed: &Narrowed<'_>,
    ) -> Result<Put<'a>, Failure> {
        let mut exclude = narrowed.exclude.clone();
        let embedding = match &asked.source {
            Source::Vector { vector, .. } => Cow::Borrowed(&vector[..]),
            Source::Text(text) => Cow::Owned(embed::text(snapshot, text)?),
            Source::Like(key) => {
                let row = keys::row(snapshot, key)?;
                if self.exclude_self {
                    exclude.push(snapshot.id(row));
                }
                let embedding = show::embedding(snapshot, row)?;
                let none =
                    || Failure::Error(format!("{key:?} has no embedding to ask with").into());
                Cow::Owned(embedding.ok_or_else(none)?)
            }
        };
        let agent = self.asking.agent(asked.agent);
        let (now, whence) = self.asking.moment(asked.now, snapshot, agent);
        Ok(Put {
            source: &asked.source,
            agent,
            now,
            whence,
            embedding,
            exclude,
        })
    }

    /// What it asks of the stream.
    pub fn ask<'a>(
        &'a self,
        put: &'a Put<'_>,
        preset: &'a Preset,
        filter: &'a Filter<'a>,
        decays: Option<&'a Decays>,
    ) -> Ask<'a> {
        Ask {
            agent: put.agent,
            model: self.asking.model.as_deref(),
            filter,
            decays,
            ..Ask::new(&put.embedding, put.now, preset)
        }
    }
}

impl Asking {
    /// Who asks a question that may say so itself.
    pub fn agent(&self, own: Option<u32>) -> Agent {
        Agent(own.or(self.agent).unwrap_or(Agent::OWN.0))
    }

    /// The moment of a question that may have its own, and why it is that one.
    pub fn moment(
        &self,
        own: Option<Moment>,
        snapshot: &Snapshot,
        agent: Agent,
    ) -> (i64, &'static str) {
        match own.or(self.now) {
            Some(now) => (now.0, ""),
            None => match opened::newest_access(snapshot, agent) {
                Some(newest) => (newest, " (the newest last access)"),
                None => (0, " (there is no last access)"),
            },
        }
    }
}

impl Competing {
    /// Which memories compete, but for these ids.
    pub fn filter<'a>(&self, narrowed: &'a Narrowed<'_>, exclude: &'a [u64]) -> Filter<'a> {
        Filter {
            future: self.future,
            superseded: self.superseded,
            ..narrowed.without(exclude)
        }
    }
}

/// Bytes of a touch's note at most.
const NOTE_BYTES: usize = 200;

impl Put<'_> {
    /// What the record of a touch says of it: what was asked with, cut where it is long.
    pub fn note(&self) -> String {
        let (mut note, cut) = (self.source.to_string(), "…");
        if note.len() > NOTE_BYTES {
            let mut ends = (0..=NOTE_BYTES - cut.len()).rev();
            let end = ends.find(|&at| note.is_char_boundary(at));
            note.truncate(end.unwrap_or(0));
            note.push_str(cut);
        }
        note
    }

    /// Which memories compete for it.
    pub fn filter<'a>(&'a self, question: &Question, narrowed: &'a Narrowed<'_>) -> Filter<'a> {
        question.competing.filter(narrowed, &self.exclude)
    }
}

/// One of a file's vectors.
fn vector_of(path: &Path, index: usize) -> Result<Source, Failure> {
    let mut vectors = import::read_vectors(path)?;
    let (file, found) = (path.display().to_string(), vectors.len());
    if index >= found {
        let told = format!("--vector-index {index}: {file} holds {found} vectors");
        return Err(Failure::Usage(told));
    }
    let vector = vectors.swap_remove(index);
    Ok(Source::Vector {
        file,
        index,
        vector,
    })
}
