//! Exact retrieval for the memory streams of generative agents.
//!
//! Every memory is scored on relevance, recency and importance, each is normalised over the candidates,
//! they are added with weights, and the top k come back: the formula of *Generative Agents* (Park et al.,
//! 2023), exactly. Results have the same bits on every instruction set the kernel is written for and any
//! number of threads, as tested on x86-64 Linux; the README says with what.
//!
//! # Where to start
//!
//! | you have | start at |
//! |---|---|
//! | slices of your own | [`scoring::rank`], the example below |
//! | relevance computed elsewhere | [`scoring::rank_components`] |
//! | many small agents, or many queries | [`scoring::rank_each_into`], [`scoring::rank_many_into`] |
//! | memories to keep in files | [`store::Store`] and [`stream::retrieve`] |
//! | archives of another system | [`import`] |
//! | questions with known answers | [`eval`] |
//! | tools that want plain files | [`export`] |
//! | doubts | [`oracle`], [`yardstick`] |
//!
//! [`scoring::Preset`] names what is computed: `paper`, `reverie`, `genagents`, `unnormalized`. [`kernel`]
//! says in which order every addition is made.
//!
//! # Ranking slices of your own
//!
//! A crate with its own storage hands over borrowed columns. No store, no files, no clock:
//!
//! ```
//! use memorank::kernel::{Rows, inv_norms};
//! use memorank::scoring::{Columns, Preset, Query, MICROSECONDS_PER_HOUR, rank};
//!
//! let hour = MICROSECONDS_PER_HOUR.get() as i64; // times are i64 ticks: here microseconds
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
//!
//! # Features
//!
//! | feature | brings |
//! |---|---|
//! | `store` (default) | [`store`], [`stream`], [`eval`] |
//! | `rayon` (default) | [`Par::Rayon`] |
//! | `serde` | `Serialize` on settings and results, `Deserialize` on settings |
//! | `import` | [`import`], [`export`] |
//! | `tiktoken` | [`stream::Tiktoken`](stream/enum.Tiktoken.html), tokens as OpenAI's models count them |
//! | `client` | [`client`](client/index.html), models behind an endpoint that speaks OpenAI's protocol |
//! | `cli` | the `memorank` program |
//!
//! Without any, [`kernel`], [`scoring`], [`oracle`] and [`yardstick`] are left. No feature changes a number.

// Not forbid: the instruction sets and the one file that maps memory allow it for themselves.
#![deny(unsafe_code)]

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "store")]
pub mod eval;
#[cfg(feature = "import")]
pub mod export;
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

/// The README's example runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The example of the page about measuring runs.
#[cfg(all(doctest, feature = "serde"))]
#[doc = include_str!("../docs/evaluating.md")]
struct Evaluating;

/// The examples of the page about migrating run.
#[cfg(all(doctest, feature = "import"))]
#[doc = include_str!("../docs/migrating.md")]
struct Migrating;
