//! What is kept between rankings.

use super::query::RankError;
use super::relevance::Extent;
use super::shortlist::Shortlist;
use super::top::Top;
use crate::kernel::{Kernel, Queries};
use std::num::NonZeroUsize;

/// Scratch memory for rankings, and the kernel they run on. Reusing one saves the allocations: 4
/// bytes per slot (a row, or a listed candidate) and query, some 30 KB for each part of the work that
/// runs beside others, and a few per hit.
#[derive(Debug)]
pub struct Workspace {
    pub(super) kernel: Kernel,
    /// The most bytes of relevances that a batch may take.
    scratch_limit: usize,
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
    /// Candidates that are ranked before the one being located.
    pub(super) ahead: usize,
    pub(super) top: Top,
    pub(super) shortlist: Box<Shortlist>,
    pub(super) error: Option<RankError>,
}

impl Workspace {
    /// The scratch limit of a new workspace, in bytes: 64 queries over a million rows.
    pub const SCRATCH_LIMIT: usize = 256_000_000;

    /// An empty workspace on the fastest kernel of this machine.
    pub fn new() -> Workspace {
        Workspace::with_kernel(Kernel::best())
    }

    /// An empty workspace on a given kernel. The results are the same, bit for bit.
    pub fn with_kernel(kernel: Kernel) -> Workspace {
        Workspace {
            kernel,
            scratch_limit: Workspace::SCRATCH_LIMIT,
            queries: Queries::new(NonZeroUsize::MIN),
            relevance: Vec::new(),
            seen: Vec::new(),
            parts: Vec::new(),
            children: Vec::new(),
        }
    }

    /// Sets how many bytes of relevances a batch may keep at a time. A batch that needs more (4 bytes per
    /// slot and query) is cut into parts, each of which reads the embeddings once; one query at a time
    /// is always possible. The results are the same.
    pub fn set_scratch_limit(&mut self, bytes: usize) {
        self.scratch_limit = bytes;
    }

    /// How many queries over `slots` the scratch limit allows at a time.
    pub(super) fn queries_at_once(&self, slots: usize) -> usize {
        (self.scratch_limit / size_of::<f32>() / slots.max(1)).max(1)
    }

    /// So many workspaces on the same kernel, for parts of the work that run beside each other.
    pub(crate) fn children(&mut self, parts: usize) -> &mut [Workspace] {
        let kernel = self.kernel;
        if self.children.len() < parts {
            (self.children).resize_with(parts, || Workspace::with_kernel(kernel));
        }
        &mut self.children[..parts]
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
