//! Deterministic memory streams from a seed.
