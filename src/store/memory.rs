//! What a memory is: the fields that are stored, as borrowed going in and as borrowed coming out.

use std::borrow::Cow;
use std::fmt;

/// What sort of memory a row holds: a short name. Four are named by the library, any other is the
/// caller's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(Cow<'static, str>);

impl Kind {
    /// Something perceived.
    pub const OBSERVATION: Kind = Kind(Cow::Borrowed("observation"));
    /// A conclusion drawn from other memories, which it cites as evidence.
    pub const REFLECTION: Kind = Kind(Cow::Borrowed("reflection"));
    /// A conversation.
    pub const CHAT: Kind = Kind(Cow::Borrowed("chat"));
    /// An intention.
    pub const PLAN: Kind = Kind(Cow::Borrowed("plan"));

    /// The kind called `name`.
    pub fn named(name: impl Into<String>) -> Kind {
        Kind(Cow::Owned(name.into()))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One entry of a memory's evidence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// The memory with this id. It may have been deleted since: then the id names nothing.
    Id(u64),
    /// A reference that named no memory when it was imported, as its source wrote it.
    Missing(String),
}

/// A memory to be stored. Its id is given by the store.
#[derive(Clone, Debug)]
pub struct NewMemory<'a> {
    /// The caller's own name for it, unique in the store. An empty key is refused.
    pub key: Option<&'a str>,
    /// What sort of memory it is.
    pub kind: Kind,
    /// What it says.
    pub text: &'a str,
    /// `dim` finite elements, or `None`: then it is stored, listed and counted, and no candidate until it is
    /// [given](super::Store::embed) a vector.
    pub embedding: Option<&'a [f32]>,
    /// When it was made, in microseconds since the Unix epoch.
    pub created: i64,
    /// When it was last retrieved, in microseconds since the Unix epoch; `created` if it never was.
    pub last_access: i64,
    /// When it stops being valid, in microseconds since the Unix epoch; `None`: never. `i64::MAX` is refused.
    pub expiry: Option<i64>,
    /// Any finite number; 1 to 10 in the paper.
    pub importance: f32,
    /// What it was concluded from, in order: ids of older memories, each once (unless
    /// [`BulkAppend::allow_any_evidence`](super::BulkAppend::allow_any_evidence) was asked for). It may be empty.
    pub evidence: &'a [Reference],
    /// 0 for an observation, 1 + the deepest evidence for a reflection.
    pub depth: u32,
    /// The id of an older memory that this one corrects. That one is kept, and is [superseded](Memory::superseded_by)
    /// from then on.
    pub supersedes: Option<u64>,
    /// Bytes of the caller's, never scored.
    pub payload: &'a [u8],
}

/// A stored memory, borrowed from a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory<'a> {
    /// Ascending with the rows, never reused.
    pub id: u64,
    /// The caller's own name for it.
    pub key: Option<&'a str>,
    /// What sort of memory it is.
    pub kind: &'a Kind,
    /// What it says.
    pub text: &'a str,
    /// Whether it has an embedding (see [`Snapshot::embedding`](super::Snapshot::embedding)).
    pub has_embedding: bool,
    /// When it was made, in microseconds since the Unix epoch.
    pub created: i64,
    /// When it was last retrieved, in microseconds since the Unix epoch.
    pub last_access: i64,
    /// When it stops being valid, in microseconds since the Unix epoch.
    pub expiry: Option<i64>,
    /// As stored.
    pub importance: f32,
    /// What it was concluded from, in order.
    pub evidence: Vec<Reference>,
    /// As stored.
    pub depth: u32,
    /// The id of the memory that this one corrects; `None` also if that one is there no more.
    pub supersedes: Option<u64>,
    /// The id of the memory that corrected this one. It stays so if that one is deleted: to forget a correction does
    /// not bring back what it corrected.
    pub superseded_by: Option<u64>,
    /// As stored.
    pub payload: &'a [u8],
}
