//! Readers for memories saved by other systems.
