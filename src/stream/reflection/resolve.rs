//! Gate 2: from the numbers that an insight cites to the ids of memories.

use crate::store::Snapshot;
use std::collections::HashMap;
use std::fmt;
use thiserror::Error;

/// The memories that a model was shown, as it was shown them.
///
/// Keep it from the prompt to the answer: to retrieve again may give another list, and the same numbers would name
/// other memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown<'a> {
    /// Their ids, in the order of the list.
    pub ids: &'a [u64],
    /// The number that the first of them had there.
    pub base: Base,
    /// The moment of reflecting, in microseconds since the Unix epoch.
    pub now: i64,
}

/// The first number of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Base {
    /// The list starts at 0.
    Zero,
    /// The list starts at 1.
    One,
}

/// A citation that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[error("citation {place} is {index}: {fault}")]
pub struct CitationProblem {
    /// Its place among the insight's citations, from 0.
    pub place: usize,
    /// The number cited.
    pub index: u32,
    /// What is wrong with it.
    pub fault: CitationFault,
}

/// Why a citation does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum CitationFault {
    /// The list has no such number.
    OutOfRange {
        /// How many memories were shown.
        shown: usize,
    },
    /// The same memory was cited before, by this number or another.
    Duplicate {
        /// Its place there.
        first: usize,
    },
    /// No memory has this id yet: it is the one that the insight would get, or a later one.
    ItSelf {
        /// The id.
        id: u64,
    },
    /// The memory was deleted.
    Deleted {
        /// Its id.
        id: u64,
    },
    /// The memory was corrected by the moment of reflecting.
    Superseded {
        /// Its id.
        id: u64,
        /// The id of what corrected it.
        by: u64,
    },
    /// The memory was created after the moment of reflecting.
    Later {
        /// Its id.
        id: u64,
    },
    /// The memory expired by the moment of reflecting.
    Expired {
        /// Its id.
        id: u64,
    },
}

impl fmt::Display for CitationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CitationFault::OutOfRange { shown } => write!(f, "{shown} memories were shown"),
            CitationFault::Duplicate { first } => {
                write!(f, "citation {first} names the same memory")
            }
            CitationFault::ItSelf { id } => write!(f, "there is no memory {id} before the insight"),
            CitationFault::Deleted { id } => write!(f, "memory {id} was deleted"),
            CitationFault::Superseded { id, by } => write!(f, "memory {id} was corrected by {by}"),
            CitationFault::Later { id } => write!(f, "memory {id} was created after this moment"),
            CitationFault::Expired { id } => write!(f, "memory {id} expired"),
        }
    }
}

/// The ids that an insight's citations name, in their order.
///
/// No citation names nothing: that there is one is [`parse`](super::parse)'s to say.
///
/// # Errors
/// Everything that does not hold, in the order of the citations, of one citation in the order of [`CitationFault`].
/// Of a memory that is cited again, only that is told there.
///
/// ```
/// # use memorank::kernel::Dtype;
/// # use memorank::store::{CreateOptions, Store};
/// # use memorank::stream::{HashingEmbedder, Draft, Embedding, Importance, Rate, BoxError, remember};
/// # struct Fives;
/// # impl Rate for Fives {
/// #     fn rate(&mut self, _: &str, _: std::ops::RangeInclusive<u8>) -> Result<String, BoxError> { Ok("5".into()) }
/// # }
/// use memorank::stream::reflection::{Base, CitationFault, Shown, resolve};
///
/// # let dir = tempfile::tempdir()?;
/// # let (dim, dtype, model) = (64.try_into()?, Dtype::F32, None);
/// # let store = Store::create(dir.path().join("klaus"), &CreateOptions { dim, dtype, model })?;
/// # let drafts = ["he reads", "he writes", "he sleeps"].map(|text| Draft::new(text, 0));
/// # remember(&store, drafts.into(), &mut HashingEmbedder::new(dim), &mut Fives)?;
/// let shown = Shown { ids: &[2, 0, 1], base: Base::One, now: 1_676_300_400_000_000 };
/// assert_eq!(resolve(&store.snapshot(), &shown, &[3, 1]), Ok(vec![1, 2]));
///
/// let problems = resolve(&store.snapshot(), &shown, &[1, 0]).unwrap_err();
/// assert_eq!(problems[0].fault, CitationFault::OutOfRange { shown: 3 });
/// assert_eq!(problems[0].to_string(), "citation 1 is 0: 3 memories were shown");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resolve(
    snapshot: &Snapshot,
    shown: &Shown<'_>,
    citations: &[u32],
) -> Result<Vec<u64>, Vec<CitationProblem>> {
    let (mut ids, mut problems) = (Vec::with_capacity(citations.len()), Vec::new());
    let mut places = HashMap::new();
    for (place, &index) in citations.iter().enumerate() {
        let mut tell = |fault| {
            problems.push(CitationProblem {
                place,
                index,
                fault,
            });
        };
        let Some(&id) = shown.at(index) else {
            tell(CitationFault::OutOfRange {
                shown: shown.ids.len(),
            });
            continue;
        };
        ids.push(id);
        let first = *places.entry(id).or_insert(place);
        if first != place {
            tell(CitationFault::Duplicate { first });
        } else if id >= snapshot.next_id() {
            tell(CitationFault::ItSelf { id });
        } else if let Some(row) = snapshot.row_of_id(id) {
            if let Some(by) = snapshot.superseded_at(row, shown.now) {
                tell(CitationFault::Superseded { id, by });
            }
            if snapshot.created(row) > shown.now {
                tell(CitationFault::Later { id });
            }
            if snapshot
                .expiry(row)
                .is_some_and(|expiry| expiry <= shown.now)
            {
                tell(CitationFault::Expired { id });
            }
        } else {
            tell(CitationFault::Deleted { id });
        }
    }
    match problems.is_empty() {
        true => Ok(ids),
        false => Err(problems),
    }
}

impl<'a> Shown<'a> {
    /// The id of what had a number in the list.
    fn at(&self, index: u32) -> Option<&'a u64> {
        let index = match self.base {
            Base::Zero => index,
            Base::One => index.checked_sub(1)?,
        };
        self.ids.get(usize::try_from(index).ok()?)
    }
}
