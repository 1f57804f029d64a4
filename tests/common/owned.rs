//! A memory to be stored, for the tests of stores.

use memorank::store::{Kind, NewMemory, Reference};

/// A memory that owns its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Owned {
    pub key: Option<String>,
    pub kind: Kind,
    pub text: String,
    pub embedding: Option<Vec<f32>>,
    pub created: i64,
    pub last_access: i64,
    pub expiry: Option<i64>,
    pub importance: f32,
    pub evidence: Vec<Reference>,
    pub depth: u32,
    pub supersedes: Option<u64>,
    pub payload: Vec<u8>,
}

impl Owned {
    pub fn borrowed(&self) -> NewMemory<'_> {
        NewMemory {
            key: self.key.as_deref(),
            kind: self.kind.clone(),
            text: &self.text,
            embedding: self.embedding.as_deref(),
            created: self.created,
            last_access: self.last_access,
            expiry: self.expiry,
            importance: self.importance,
            evidence: &self.evidence,
            depth: self.depth,
            supersedes: self.supersedes,
            payload: &self.payload,
        }
    }
}
