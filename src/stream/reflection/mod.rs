//! Reflection: conclusions that a language model draws from memories, and what is checked before they are kept.
//!
//! No model is asked here. The caller asks; these are the parts around it, in the order in which they come:
//!
//! - A [`Trigger`] says when it is time: when what was observed since the last reflection matters enough.
//! - [`parse`] makes insights of a model's reply, each with the numbers that it cites (gate 1).
//! - [`resolve`] makes ids of these numbers, of the memories that the model was shown (gate 2).
//! - [`Support`] says whether the cited memories carry the insight, as a [`CheckSupport`] of the caller's or
//!   [`Similarity`] finds (gate 3).
//!
//! What a gate refuses it names, one by one: nothing is clamped, mended or dropped in silence. What
//! depth a reflection has, and whether the evidence of a whole store holds, is [`evidence`](super::evidence)'s to say.

mod parse;
mod resolve;
mod support;
mod trigger;

pub use parse::{Count, Insight, Parsed, Problem, ProblemKind, parse};
pub use resolve::{Base, CitationFault, CitationProblem, Shown, resolve};
pub use support::{CheckSupport, Similarity, Support, SupportError, check_support};
pub use trigger::{Trigger, TriggerError};
