//! The memory-mapped column store.

mod memory;

pub use memory::{Kind, Memory, NewMemory, Reference};
