//! Provenance: what memories were concluded from, what rests on them, and whether all of it holds.
//!
//! - A [`Graph`] has every reference of a snapshot, resolved once: forward in the order of the evidence, and
//!   backward. [`tree`](Graph::tree) and [`dependants`](Graph::dependants) walk it.
//! - A reference that names no memory is a value like any other, and says why: see [`Citation`].
//! - [`depth`] is what a conclusion from some memories would have.
//! - [`integrity`](Graph::integrity) looks at everything, as [`Rules`] say it should be, and names each [`Fault`].
//! - [`delete`](delete()) deletes with a [`Policy`] for what rests on it.
//! - [`to_dot`](Graph::to_dot) and [`to_mermaid`](Graph::to_mermaid) draw it.
//!
//! # Depth
//! Of a kind that cites (reflections, by default): 1 + the greatest depth among the memories it cites, 1 if there is
//! none. Of any other kind: 0. Only what is there and was stored before counts: a reference to nothing, to itself or
//! to a later memory leaves the depth as the others give it, and no cycle can matter.
//!
//! It is stored, and what happens later does not change it:
//!
//! - After [`Policy::Refuse`] and [`Policy::Cascade`] nothing that is left rests on what was deleted, so every depth is
//!   still what the evidence gives.
//! - After [`Policy::Keep`] dependants have the depth that was right when they were stored. It may be more than what is
//!   left of their evidence gives, and [`integrity`](Graph::integrity) takes that for what it is.
//! - A [correction](crate::store::NewMemory::supersedes) has the depth that its own evidence gives: that it corrects a
//!   memory is no citation. What rests on the memory that was corrected keeps its depth, and is found to
//!   rest on it ([`Fault::Superseded`]).

mod cycles;
mod delete;
mod depth;
mod draw;
mod graph;
mod integrity;
mod walk;

pub use delete::{Deletion, DeletionError, Dependant, Policy, delete};
pub(crate) use depth::above;
pub use depth::depth;
pub use graph::{Citation, Graph};
pub use integrity::{Fault, Finding, Integrity, Rules};
pub use walk::{Branch, Tree};
