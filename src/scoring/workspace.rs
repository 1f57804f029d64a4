//! What is kept between rankings.

use super::query::RankError;
use super::relevance::Extent;
use super::top::Top;
use crate::kernel::{Kernel, Queries};
use std::num::NonZeroUsize;

/// Scratch memory for rankings, and the kernel they run on. Reusing one saves the allocations: 4
/// bytes per slot and query, and a few per hit.
#[derive(Debug)]
pub struct Workspace {
    pub(super) kernel: Kernel,
    pub(super) queries: Queries,
    /// Relevances, run by run; within a run query by query.
    pub(super) relevance: Vec<f32>,
    /// Marks of rows already listed.
    pub(super) seen: Vec<u64>,
    pub(super) parts: Vec<Part>,
    /// Workspaces of the parts of [`rank_each_into`].
    pub(super) children: Vec<Workspace>,
}

/// What one part of the slots found.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Of each query of the batch.
    pub(super) extents: Vec<Extent>,
    /// Candidates of the query being ranked in the parts before this one.
    pub(super) before: usize,
    pub(super) top: Top,
    pub(super) error: Option<RankError>,
}

impl Workspace {
    /// An empty workspace on the fastest kernel of this machine.
    pub fn new() -> Workspace {
        Workspace::with_kernel(Kernel::best())
    }

    /// An empty workspace on a given kernel. The results are the same, bit for bit.
    pub fn with_kernel(kernel: Kernel) -> Workspace {
        Workspace {
            kernel,
            queries: Queries::new(NonZeroUsize::MIN),
            relevance: Vec::new(),
            seen: Vec::new(),
            parts: Vec::new(),
            children: Vec::new(),
        }
    }

    /// The kernel it runs on.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }
}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace::new()
    }
}
