//! memorank: exact retrieval for the memory streams of generative agents.
//!
//! Score EVERY memory on relevance, recency and importance, normalise each over the candidates, add
//! them with weights, and return the top k: the formula of *Generative Agents* (Park et al., 2023),
//! exactly, with the same bits on every instruction set and number of threads.
//!
//! # Ranking slices of your own
//!
//! A crate with its own storage hands over borrowed columns. No store, no files, no clock:
//!
//! ```
//! use memorank::kernel::{Rows, inv_norms};
//! use memorank::scoring::{Columns, Preset, Query, TICKS_PER_HOUR, rank};
//!
//! let hour = TICKS_PER_HOUR.get() as i64; // times are i64 ticks: here microseconds
//! let embeddings = [1.0, 0.0, 0.6, 0.8, 0.0, 1.0]; // three memories, two dimensions
//! let (last_access, importance) = ([-10 * hour, 0, -100 * hour], [2.0, 8.0, 5.0]);
//! let dim = 2.try_into()?;
//! let mut inverse = [0.0; 3];
//! inv_norms(dim, Rows::F32(&embeddings), &mut inverse)?; // once per memory: keep it
//! let columns = Columns::new(dim, Rows::F32(&embeddings), &inverse, &last_access, &importance)?;
//! let ranking = rank(&[columns], &Query::new(&[1.0, 0.0], 0, 2), &Preset::paper().scoring)?;
//! assert_eq!(ranking.hits.iter().map(|hit| hit.row).collect::<Vec<_>>(), [1, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]

#[cfg(feature = "import")]
pub mod import;
pub mod kernel;
pub mod oracle;
mod parallel;
pub mod scoring;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "store")]
pub mod stream;
pub mod yardstick;

pub use parallel::Par;
