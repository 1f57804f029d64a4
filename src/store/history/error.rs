//! Why the store cannot go back.

use crate::store::damage::Damage;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no state as it was before a touch. The store is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// No record has this number.
    #[error("there is no record {sequence}; the last is {last}")]
    NoRecord {
        /// The number asked for.
        sequence: u64,
        /// The last record there is.
        last: u64,
    },
    /// The record is an append or another change.
    #[error("record {sequence} is not a touch; `Store::touches` lists those")]
    NotATouch {
        /// The number asked for.
        sequence: u64,
    },
    /// What is needed of the journal was not kept.
    #[error(
        "record {sequence} needs the journal from record {needed} on, which is kept from record {oldest} on; \
         have more kept from now on with `Store::keep_history`"
    )]
    NotKept {
        /// The number asked for.
        sequence: u64,
        /// The first record that is needed, as far as is known.
        needed: u64,
        /// The first one that is kept; if none is, one more than the last that there was.
        oldest: u64,
    },
    /// What was kept of the journal has a gap: a segment is not there.
    #[error("record {missing} of the journal is missing, though older ones are there")]
    Gap {
        /// The last of the missing records.
        missing: u64,
    },
    /// What was kept of the journal is damaged.
    #[error("{0}; what the store holds now is not concerned")]
    Damaged(#[from] Damage),
    /// A memory that was there was deleted since, and its bytes are gone.
    #[error("memory {id} was there and is gone by a compaction")]
    Compacted {
        /// Its id.
        id: u64,
    },
    /// The operating system refused.
    #[error("{doing} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl HistoryError {
    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> HistoryError {
        let path = path.into();
        move |source| HistoryError::Io {
            doing,
            path,
            source,
        }
    }
}
