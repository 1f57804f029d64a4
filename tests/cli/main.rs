//! The `memorank` program, run as a user runs it. Names in comments like B45 are trials: faults met in
//! systems of this kind.

#[path = "../import_common/mod.rs"]
mod import_common;

use import_common::common;

mod add;
mod agents;
mod archives;
mod bench;
mod damage;
mod delete;
mod demo;
mod documents;
mod embed;
mod equality;
mod eval;
mod evaluating;
mod evidence;
mod explain;
mod export;
mod filters;
mod flags;
mod history;
mod hostile;
mod imports;
mod journal;
mod list;
mod manual;
mod old_processors;
mod query;
mod questions;
mod reflect;
mod repair;
mod replay;
mod returned;
mod stage;
mod svg;
mod sweep;
mod terminal;
mod touch;
mod tune;
mod usage;
