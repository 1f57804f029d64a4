//! The store through its public API. Names say the behaviour; a comment names the trial.
//!
//! `MEMORANK_FLIPS` sets how many bits flip in columns (2,000), and `MEMORANK_CONCURRENCY_SECONDS` for how long
//! each test of threads is repeated (once).

mod agents;
mod append;
mod checkpoints;
#[path = "../common/mod.rs"]
mod common;
mod compaction;
mod concurrency;
mod crashes;
mod damage;
mod deletes;
mod durability;
mod embed;
mod example;
mod exclusive;
mod failures;
mod history;
mod importance;
mod in_memory;
mod journal_damage;
mod life;
mod model;
mod open;
mod processes;
mod python;
mod recovery;
mod refused;
mod repair;
mod round_trip;
#[path = "../common/setting.rs"]
mod setting;
mod superseded;
mod touch;
mod watched;
