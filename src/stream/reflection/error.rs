//! Why a reflection came to nothing.

use super::attempt::{Attempt, Purpose};
use super::need::Step;
use super::settings::SettingsError;
use super::support::SupportError;
use crate::scoring::ScoringError;
use crate::store::{AppendError, ReadError, WriteError};
use crate::stream::{AnswerError, BatchError, BeginError, OtherModel};
use std::fmt;
use thiserror::Error;

/// Why there is no run. Nothing was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReflectBeginError {
    /// A setting by which nothing could be stored.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The preset's scoring cannot be used.
    #[error(transparent)]
    Scoring(#[from] ScoringError),
    /// No memory was there by that moment that is valid and of the kinds to be shown.
    #[error("there is no memory to reflect on")]
    NothingToReflectOn,
    /// No memory has an embedding, so that none could be retrieved for a question.
    #[error("no memory has an embedding; embed some first")]
    NothingEmbedded,
    /// The models differ.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// A memory could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why an answer was not taken. But for [`Exhausted`], which ends the run, it is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReflectAnswerError {
    /// It answers what was not asked.
    #[error("{given} came, and the next need is {needed}; ask `needs` before each answer")]
    NotAsked {
        /// What was brought.
        given: Step,
        /// What is needed.
        needed: Step,
    },
    /// No reply to the same could be used, as often as the settings allow.
    #[error(transparent)]
    Exhausted(Exhausted),
    /// Embeddings or an importance that cannot be used.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// Questions are asked with their embeddings.
    #[error("questions cannot be asked without embeddings")]
    QuestionsNeedEmbeddings,
    /// Memories could not be ranked.
    #[error(transparent)]
    Retrieve(#[from] BatchError),
    /// No memory competes for a question: none has an embedding.
    #[error("no memory can be shown for question {question}: none that is valid has an embedding")]
    NothingToShow {
        /// Its place among the questions.
        question: usize,
    },
    /// The similarity of an insight and its evidence could not be computed.
    #[error(transparent)]
    Support(#[from] SupportError),
    /// A memory could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A run that is over, as no reply to the same could be used. Nothing was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Exhausted {
    /// What was asked for in vain.
    pub purpose: Purpose,
    /// Every reply of the run, and what became of it.
    pub attempts: Vec<Attempt>,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exhausted { purpose, attempts } = self;
        let tried = attempts.iter().rev();
        let tried = tried.take_while(|attempt| attempt.purpose == *purpose);
        write!(
            f,
            "no usable reply in {} attempts at {purpose}",
            tried.count()
        )?;
        let problems = attempts.last().map(Attempt::problems).unwrap_or_default();
        match problems.first() {
            Some(problem) => write!(f, "; in the last: {problem}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Exhausted {}

/// Why insights were not stored. None of them is in the store (but see [`Store::append`](crate::store::Store::append) for
/// a sync that failed), and the run is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReflectFinishError {
    /// There is something left to ask.
    #[error("{needed} must come first; ask `needs` until it is nothing")]
    Unanswered {
        /// What is needed.
        needed: Step,
    },
    /// The attempts were used up.
    #[error("the run is over: no usable reply came")]
    Over,
    /// They are stored.
    #[error("the insights are stored already")]
    Stored,
    /// A memory that an insight cites was deleted since it was shown.
    #[error("insight {insight} cites memory {id}, which was deleted meanwhile; reflect again")]
    Deleted {
        /// The insight's place among the drafts.
        insight: usize,
        /// The memory's id.
        id: u64,
    },
    /// A memory that an insight cites was corrected since it was shown.
    #[error("insight {insight} cites memory {id}, which {by} corrected meanwhile; reflect again")]
    Superseded {
        /// The insight's place among the drafts.
        insight: usize,
        /// The memory's id.
        id: u64,
        /// The id of what corrected it.
        by: u64,
    },
    /// It is another store than the run was begun for, with another model.
    #[error(transparent)]
    Model(#[from] OtherModel),
    /// The store does not hold what the run was begun with.
    #[error("it is another store than the one that was reflected on; append to that one")]
    OtherStore,
    /// A memory that is cited could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written to.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The store refused the insights.
    #[error(transparent)]
    Append(#[from] AppendError),
}
