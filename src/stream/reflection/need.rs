//! What a run needs next.

#[cfg(doc)]
use super::Reflect;
use super::prompt::Prompt;
use std::fmt;
use std::ops::RangeInclusive;

/// What a run needs next. (Another need would break callers' code, and should: nobody can pass it over.)
#[derive(Clone, Debug, PartialEq)]
pub enum Need<'a> {
    /// What a language model replies: answer with [`Reflect::replied`].
    Reply(Prompt<'a>),
    /// The embeddings of these texts, in this order, of questions first and later of insights: answer with
    /// [`Reflect::embedded`], or, for insights, with [`Reflect::not_embedded`].
    Embed {
        /// At least one.
        texts: Vec<&'a str>,
        /// The model to embed with, if it was named: by the store, or when the run was begun.
        model: Option<&'a str>,
    },
    /// Whether memories carry an insight: answer with [`Reflect::checked`].
    Check {
        /// The insight.
        claim: &'a str,
        /// The texts of the memories, in the order cited.
        evidence: Vec<&'a str>,
    },
    /// How much an insight matters: answer with [`Reflect::rated`] or [`Reflect::rated_as`].
    Rate {
        /// The insight.
        text: &'a str,
        /// The ratings to choose from.
        range: RangeInclusive<u8>,
    },
    /// Nothing: it can be stored, or is over.
    Nothing,
}

/// A [`Need`] without its texts, for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A reply.
    Reply,
    /// Embeddings.
    Embed,
    /// A check.
    Check,
    /// A rating.
    Rate,
    /// Nothing.
    Nothing,
}

impl Need<'_> {
    /// Which step it is.
    pub fn step(&self) -> Step {
        match self {
            Need::Reply(_) => Step::Reply,
            Need::Embed { .. } => Step::Embed,
            Need::Check { .. } => Step::Check,
            Need::Rate { .. } => Step::Rate,
            Need::Nothing => Step::Nothing,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Reply => "a reply",
            Step::Embed => "embeddings",
            Step::Check => "a check",
            Step::Rate => "a rating",
            Step::Nothing => "nothing",
        })
    }
}
