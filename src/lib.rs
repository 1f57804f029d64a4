//! memorank: exact retrieval for the memory streams of generative agents.

#![deny(unsafe_code)]

#[cfg(feature = "import")]
pub mod import;
pub mod kernel;
#[cfg(feature = "store")]
pub mod store;
