//! `stream::reflection` and `stream::evidence`: from a model's reply to insights whose evidence holds, and what
//! holds of the evidence in a whole store.

#[cfg(feature = "import")]
mod archives;
#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod delete;
mod draw;
mod evidence;
#[path = "../store/example.rs"]
#[allow(dead_code)]
mod example;
mod fitting;
mod parse;
mod questions;
mod resolve;
mod round_trip;
mod run;
mod support;
mod trigger;
