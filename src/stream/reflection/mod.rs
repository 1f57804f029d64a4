//! Reflection: conclusions that a language model draws from memories, and what is checked before they are kept.
//!
//! No model is asked here: the caller asks, and [`parse`] makes insights of the reply, each with the numbers that it
//! cites. What is refused is named, one by one: nothing is clamped, mended or dropped in silence.

mod parse;

pub use parse::{Count, Insight, Parsed, Problem, ProblemKind, parse};
