//! Deleting memories that others may have been concluded from.

use super::graph::{Citation, Graph};
use crate::store::{DeleteError, ReadError, Store, WriteError};
use std::collections::BTreeSet;
use std::fmt;
use thiserror::Error;

/// What becomes of memories that rest on one that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Policy {
    /// If there are any, nothing is deleted.
    Refuse,
    /// They stay as they are, and [rest on a deleted memory](Graph::rests_on_deleted) from then on.
    Keep,
    /// They are deleted, too. (What rests on them by way of a memory that was deleted before is none of them: that one
    /// cites nothing any more.)
    Cascade,
}

/// What the deletion of some memories does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Deletion {
    /// What becomes of the dependants.
    pub policy: Policy,
    /// The ids of the memories to be deleted that are there, ascending, each once.
    pub asked: Vec<u64>,
    /// What rests on them and is not among them, ascending by id.
    pub dependants: Vec<Dependant>,
}

/// A memory that rests on one that is to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Dependant {
    /// Its id.
    pub id: u64,
    /// Whether it cites one of those itself. If not, it does so by way of others.
    pub is_direct: bool,
}

/// Why nothing was deleted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeletionError {
    /// Other memories rest on these, and the policy is [`Policy::Refuse`].
    #[error("{}", Refused(.0))]
    Cited(Deletion),
    /// No memory ever had the id.
    #[error("there is no memory {id}, the next will be {next}")]
    NoId {
        /// The id.
        id: u64,
        /// The id of the next memory.
        next: u64,
    },
    /// The evidence of a memory could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written to.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The store refused. After a sync that failed the memories may be deleted.
    #[error(transparent)]
    Delete(#[from] DeleteError),
}

/// Ids that an error's text names.
const NAMED: usize = 8;

struct Refused<'a>(&'a Deletion);

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dependants = &self.0.dependants;
        let named = dependants.iter().take(NAMED);
        let named: Vec<_> = named.map(|dependant| dependant.id.to_string()).collect();
        let more = if dependants.len() > NAMED { " ..." } else { "" };
        write!(
            f,
            "memories rest on what is to be deleted: {}{more} ({} in all); keep them, or delete them too",
            named.join(", "),
            dependants.len()
        )
    }
}

impl Deletion {
    /// What deleting the memories with these ids would do. Ids of memories that were deleted before are passed over.
    ///
    /// # Errors
    /// If no memory ever had an id. That a policy refuses is [`is_refused`](Deletion::is_refused)'s to say.
    pub fn plan(graph: &Graph, ids: &[u64], policy: Policy) -> Result<Deletion, DeletionError> {
        let snapshot = graph.snapshot();
        let next = snapshot.next_id();
        if let Some(&id) = ids.iter().find(|&&id| id >= next) {
            return Err(DeletionError::NoId { id, next });
        }
        let there = ids.iter().copied();
        let asked: BTreeSet<u64> = there
            .filter(|&id| snapshot.row_of_id(id).is_some())
            .collect();
        let direct = |id| {
            let mut cites = graph.cites(id);
            cites.any(|citation| matches!(citation, Citation::Live(id) if asked.contains(&id)))
        };
        let dependants = graph.resting_on(asked.iter().copied());
        let dependants = dependants.difference(&asked).map(|&id| Dependant {
            id,
            is_direct: direct(id),
        });
        Ok(Deletion {
            policy,
            dependants: dependants.collect(),
            asked: asked.into_iter().collect(),
        })
    }

    /// Whether the policy forbids it.
    pub fn is_refused(&self) -> bool {
        self.policy == Policy::Refuse && !self.dependants.is_empty()
    }

    /// The ids of all that is deleted, ascending: none if it is refused.
    pub fn deletes(&self) -> Vec<u64> {
        let dependants = self.dependants.iter().map(|dependant| dependant.id);
        match self.policy {
            Policy::Refuse if self.is_refused() => Vec::new(),
            Policy::Refuse | Policy::Keep => self.asked.clone(),
            Policy::Cascade => {
                let mut all: Vec<u64> = self.asked.iter().copied().chain(dependants).collect();
                all.sort_unstable();
                all
            }
        }
    }
}

/// Deletes memories, and with what rests on them does as a policy says. It is decided by what the store holds when it is
/// done: no memory that another one cites by then is deleted in spite of [`Policy::Refuse`]. The evidence of every memory is
/// read once.
///
/// Threads that use [`Store::delete`] beside it are asked for no policy. One that uses [`Store::append`] may cite what was
/// deleted since it looked; to look and append in one, it takes [`Store::exclusive`], as a
/// [reflection](crate::stream::reflection::Reflect::append) does.
///
/// # Errors
/// [`DeletionError::Cited`] if the policy refuses, an id that no memory ever had, or a store that cannot be read or
/// written. Nothing was deleted then; after a sync that failed it may have been.
///
/// ```
/// # use memorank::kernel::Dtype;
/// # use memorank::store::{CreateOptions, Kind, Reference, Store};
/// # use memorank::stream::{Draft, Embedding, Importance, Remember};
/// use memorank::stream::evidence::{self, DeletionError, Graph, Policy};
///
/// # let dir = tempfile::tempdir()?;
/// # let (dim, dtype, model) = (2.try_into()?, Dtype::F32, None);
/// # let store = Store::create(dir.path().join("klaus"), &CreateOptions { dim, dtype, model })?;
/// # let remember = |kind, evidence: &[u64], depth| -> Result<u64, Box<dyn std::error::Error>> {
/// #     let draft = Draft {
/// #         kind, depth, evidence: evidence.iter().map(|&id| Reference::Id(id)).collect(),
/// #         importance: Importance::Given(5.0), embedding: Embedding::None, ..Draft::new("", 0)
/// #     };
/// #     Ok(Remember::new(&store, None, vec![draft])?.append(&store)?.start)
/// # };
/// let seen = remember(Kind::OBSERVATION, &[], 0)?;
/// let concluded = remember(Kind::REFLECTION, &[seen], 1)?;
///
/// let refused = evidence::delete(&store, &[seen], Policy::Refuse);
/// assert!(matches!(refused, Err(DeletionError::Cited(_))));
///
/// evidence::delete(&store, &[seen], Policy::Keep)?;
/// let graph = Graph::of(&store.snapshot())?;
/// assert_eq!(graph.rests_on_deleted(), [concluded]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn delete(store: &Store, ids: &[u64], policy: Policy) -> Result<Deletion, DeletionError> {
    let exclusive = store.exclusive()?;
    let graph = Graph::of(&exclusive.snapshot())?;
    let deletion = Deletion::plan(&graph, ids, policy)?;
    if deletion.is_refused() {
        return Err(DeletionError::Cited(deletion));
    }
    exclusive.delete(&deletion.deletes())?;
    Ok(deletion)
}

impl Graph {
    /// The ids of all memories that rest on one that was deleted, directly or by way of others, ascending: what
    /// [`Policy::Keep`] leaves behind.
    pub fn rests_on_deleted(&self) -> Vec<u64> {
        let snapshot = self.snapshot();
        let gone = self
            .cited()
            .filter(|&id| id < snapshot.next_id() && snapshot.row_of_id(id).is_none());
        self.resting_on(gone).into_iter().collect()
    }
}
