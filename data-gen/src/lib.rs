//! Deterministic memory streams from a seed, for tests, benches and demonstrations of `memorank`.
//!
//! A [`Stream`] is what a generative agent might have written down: observations, chats, plans and
//! reflections in bursts over days, with embeddings that have topics, a decaying spectrum, a common
//! mean and a few large axes. Uniform noise has none of these, and a ranking of it says little
//! about a ranking of real memories.
//!
//! What is promised:
//!
//! - The same [`Config`] gives the same bytes, in any order of blocks and on any number of threads:
//!   a block depends on the configuration and its number alone. Only integer arithmetic and single
//!   operations of + - * / and square root are used, all of which IEEE 754 defines to the last bit.
//!   A test pins the bytes. What it was run on: x86-64 Linux, optimised and not, for the baseline
//!   and for the machine's own instruction set.
//! - A shorter stream is the beginning of a longer one in every column but `last_access`: a longer
//!   life leaves more time to look back. Another dimension changes the embeddings only.
//! - Some memories repeat an earlier one, with the same text and the same bytes of embedding; some
//!   share their time of creation.
//! - The bytes belong to a version of this crate. A version that changes them says so.
//!
//! ```
//! use memorank_data_gen::{Config, Stream};
//!
//! let stream = Stream::new(Config { memories: 10_000, dim: 64, seed: 7 })?;
//! let mut rows = 0;
//! for block in stream.blocks() {
//!     for memory in block.memories() {
//!         assert_eq!(memory.row, rows);
//!         assert_eq!(memory.embedding.len(), 64);
//!         assert!(memory.last_access <= stream.now());
//!         rows += 1;
//!     }
//! }
//! assert_eq!(rows, 10_000);
//! # Ok::<(), memorank_data_gen::ConfigError>(())
//! ```

#![forbid(unsafe_code)]

mod block;
mod bursts;
mod random;
mod space;
mod words;

use std::fmt;

pub use block::{Block, Kind, Memory, key};
use random::{Draws, Purpose};
use space::{Space, Subject};

/// Memories in a block. The last block of a stream may have fewer.
pub const BLOCK_ROWS: usize = 4096;

/// The longest stream. It ends before the year 8000, so that every time has a date of four digits.
pub const MAX_MEMORIES: usize = 1 << 31;

/// The largest dimension. A block of it takes a gigabyte.
pub const MAX_DIM: usize = 1 << 16;

/// Which stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// How many memories it has, from 0 to [`MAX_MEMORIES`].
    pub memories: usize,
    /// Elements in an embedding, from 1 to [`MAX_DIM`].
    pub dim: usize,
    /// Any number. Different seeds give unrelated streams.
    pub seed: u64,
}

/// Why there is no such stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// More than [`MAX_MEMORIES`]: the number asked for.
    Memories(usize),
    /// A dimension of 0 or more than [`MAX_DIM`]: the dimension asked for.
    Dim(usize),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memories(n) => write!(
                f,
                "{n} memories asked for: a stream has at most {MAX_MEMORIES}"
            ),
            Self::Dim(n) => write!(f, "a dimension of {n} asked for: it is from 1 to {MAX_DIM}"),
        }
    }
}

impl std::error::Error for ConfigError {}

/// A memory stream, made block by block when asked for.
#[derive(Clone)]
pub struct Stream {
    config: Config,
    space: Space,
    now: i64,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("config", &self.config)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// The stream of a configuration. It holds topics and spectrum, 96 rows of embeddings, and no
    /// memory yet.
    ///
    /// # Errors
    ///
    /// A number outside what its field in [`Config`] says.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        if config.memories > MAX_MEMORIES {
            return Err(ConfigError::Memories(config.memories));
        }
        if config.dim == 0 || config.dim > MAX_DIM {
            return Err(ConfigError::Dim(config.dim));
        }
        let space = Space::new(config.seed, config.dim);
        let now = bursts::now(config.seed, config.memories);
        Ok(Self { config, space, now })
    }

    /// What the stream was made from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A minute after the last memory was made, in microseconds since the Unix epoch: no time in the
    /// stream is later. An empty stream is looked at on 5 January 2026, 08:00 UTC, when all begin.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The number of blocks: `memories` divided by [`BLOCK_ROWS`], rounded up.
    pub fn block_count(&self) -> usize {
        self.config.memories.div_ceil(BLOCK_ROWS)
    }

    /// Block `index`: the memories from row `index * BLOCK_ROWS`.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`block_count`](Self::block_count).
    pub fn block(&self, index: usize) -> Block {
        assert!(
            index < self.block_count(),
            "block {index} of {}",
            self.block_count()
        );
        Block::new(&self.config, &self.space, self.now, index)
    }

    /// Every block in order, each made when the iterator comes to it.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = Block> {
        (0..self.block_count()).map(|index| self.block(index))
    }

    /// The embedding of query `index`, a point near some subtopic like those of the memories, of a
    /// length between 0.8 and 1.25. Any index gives a query; common topics are asked about more
    /// often.
    pub fn query(&self, index: u64) -> Vec<f32> {
        let subject = Subject::draw(&mut self.query_draws(index));
        let mut out = vec![0.0; self.config.dim];
        self.space.embed(
            subject,
            Draws::new(self.config.seed, Purpose::QueryNoise, index),
            &mut out,
        );
        out
    }

    /// A question about the topic of query `index`.
    pub fn query_text(&self, index: u64) -> String {
        let mut draws = self.query_draws(index);
        words::question(Subject::draw(&mut draws), draws)
    }

    fn query_draws(&self, index: u64) -> Draws {
        Draws::new(self.config.seed, Purpose::Query, index)
    }
}
