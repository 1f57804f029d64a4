//! Reflection: conclusions that a language model draws from memories, and what is checked before they are kept.
//!
//! [`Reflect`] is all of it, in steps: it says what it needs, and the caller asks models; [`reflect`] asks them itself. These
//! are its parts, in the order in which they come:
//!
//! - A [`Trigger`] says when it is time: when what was observed since the last reflection matters enough.
//! - [`parse`] makes insights of a model's reply, each with the numbers that it cites (gate 1).
//! - [`resolve`] makes ids of these numbers, of the memories that the model was shown (gate 2).
//! - [`Support`] says whether the cited memories carry the insight, as a [`CheckSupport`] of the caller's or
//!   [`Similarity`] finds (gate 3).
//! - [`Origin`] is what a stored insight says of its question and support: unchecked is no pass, and stays visible.
//!
//! What a gate refuses it names, one by one: nothing is clamped, mended or dropped in silence. What
//! depth a reflection has, and whether the evidence of a whole store holds, is [`evidence`](super::evidence)'s to say.

mod ask;
mod attempt;
mod error;
mod need;
mod origin;
mod parse;
mod prompt;
mod resolve;
mod run;
mod settings;
mod support;
mod trigger;

pub use ask::{Complete, Models, ReflectError, reflect};
pub use attempt::{Attempt, Purpose, Refusal, Refused, Verdict};
pub use error::{Exhausted, ReflectAnswerError, ReflectBeginError, ReflectFinishError};
pub use need::{Need, Step};
pub use origin::Origin;
pub use parse::{Count, Insight, Parsed, Problem, ProblemKind, Questions, parse, parse_questions};
pub use prompt::{Prompt, Statement};
pub use resolve::{Base, CitationFault, CitationProblem, Shown, resolve};
pub use run::{Reflect, Reflected};
pub use settings::{Checking, Settings, SettingsError};
pub use support::{CheckSupport, Similarity, Support, SupportError, check_support};
pub use trigger::{Trigger, TriggerError};
