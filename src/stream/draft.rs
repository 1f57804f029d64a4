//! A memory before it is one: what it says, and what a model is still to be asked about it.

use crate::store::{Kind, NewMemory, Reference};

/// A memory to be. It owns its data, so that it can wait for answers wherever it likes.
///
/// ```
/// use memorank::store::Kind;
/// use memorank::stream::{Draft, Importance};
///
/// let seen = Draft::new("Klaus is reading about gentrification", 1_676_300_400_000_000);
/// let planned = Draft {
///     kind: Kind::PLAN,
///     importance: Importance::Given(1.0),
///     ..Draft::new("buy coffee", 1_676_300_400_000_000)
/// };
/// assert_eq!((seen.kind, planned.depth), (Kind::OBSERVATION, 0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The caller's own name for it, unique in the store.
    pub key: Option<String>,
    /// What sort of memory it is.
    pub kind: Kind,
    /// What it says. This is what gets embedded and rated.
    pub text: String,
    /// When it was made, in microseconds since the Unix epoch. It counts as its last access too.
    pub created: i64,
    /// When it stops being valid, in microseconds since the Unix epoch; `None`: never.
    pub expiry: Option<i64>,
    /// How much it matters.
    pub importance: Importance,
    /// What it is compared by.
    pub embedding: Embedding,
    /// What it was concluded from, in order: ids of older memories, each once.
    pub evidence: Vec<Reference>,
    /// 0 for an observation, 1 + the deepest evidence for a reflection.
    pub depth: u32,
    /// The id of an older memory that this one corrects.
    pub supersedes: Option<u64>,
    /// Bytes of the caller's, never scored.
    pub payload: Vec<u8>,
}

/// The importance of a draft.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Importance {
    /// Known: any finite number.
    Given(f32),
    /// To be asked.
    Ask,
}

/// The embedding of a draft.
#[derive(Clone, Debug, PartialEq)]
pub enum Embedding {
    /// Known: as many elements as the store's.
    Given(Vec<f32>),
    /// To be asked.
    Ask,
    /// It has none, and is never a candidate.
    None,
}

impl Draft {
    /// An observation, of which embedding and importance are to be asked.
    pub fn new(text: impl Into<String>, created: i64) -> Draft {
        Draft {
            key: None,
            kind: Kind::OBSERVATION,
            text: text.into(),
            created,
            expiry: None,
            importance: Importance::Ask,
            embedding: Embedding::Ask,
            evidence: Vec::new(),
            depth: 0,
            supersedes: None,
            payload: Vec::new(),
        }
    }

    /// As it is stored; `None` while anything is to be asked.
    pub(super) fn memory(&self) -> Option<NewMemory<'_>> {
        let Importance::Given(importance) = self.importance else {
            return None;
        };
        let embedding = match &self.embedding {
            Embedding::Given(embedding) => Some(embedding.as_slice()),
            Embedding::None => None,
            Embedding::Ask => return None,
        };
        Some(NewMemory {
            key: self.key.as_deref(),
            kind: self.kind.clone(),
            text: &self.text,
            embedding,
            created: self.created,
            last_access: self.created,
            expiry: self.expiry,
            importance,
            evidence: &self.evidence,
            depth: self.depth,
            supersedes: self.supersedes,
            payload: &self.payload,
        })
    }
}
