//! Walks along citations, forward and backward.

use super::graph::{Citation, Graph};
use std::collections::{BTreeSet, HashSet};

/// What a memory rests on, from the top down, as one would print it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Tree<'g> {
    /// The memory, then its evidence in order, each followed by its own.
    pub branches: Vec<Branch<'g>>,
    /// Whether it goes on: the limit left some of it out.
    pub is_cut: bool,
}

/// One line of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Branch<'g> {
    /// How many citations lead here from the top: 0 for the memory itself.
    pub level: usize,
    /// What is cited here.
    pub citation: Citation<'g>,
    /// Whether its evidence is told further up, and so is not told here again.
    pub seen: bool,
}

impl Graph {
    /// What the memory with an id rests on, directly and indirectly: at most `limit` branches. Each memory's evidence
    /// is told once, where the memory comes first, so that no cycle and no shared ground makes it long. If there is
    /// no such memory, there are no branches.
    pub fn tree(&self, id: u64, limit: usize) -> Tree<'_> {
        let mut tree = Tree {
            branches: Vec::new(),
            is_cut: false,
        };
        if self.snapshot().row_of_id(id).is_none() {
            return tree;
        }
        let mut told = HashSet::new();
        // What is to be told, the next one last.
        let mut ahead = vec![(0, Citation::Live(id))];
        while let Some((level, citation)) = ahead.pop() {
            if tree.branches.len() == limit {
                tree.is_cut = true;
                break;
            }
            let seen = match citation {
                Citation::Live(id) => {
                    let seen = !told.insert(id);
                    if !seen {
                        let start = ahead.len();
                        ahead.extend(self.cites(id).map(|cited| (level + 1, cited)));
                        ahead[start..].reverse();
                    }
                    seen
                }
                Citation::Deleted(_) | Citation::Unknown(_) | Citation::Missing(_) => false,
            };
            tree.branches.push(Branch {
                level,
                citation,
                seen,
            });
        }
        tree
    }

    /// The ids of all memories that rest on one, directly and indirectly, ascending: what would have to be thought
    /// over without it. It may have been deleted. A memory on a cycle rests on itself.
    pub fn dependants(&self, id: u64) -> Vec<u64> {
        self.resting_on([id]).into_iter().collect()
    }

    /// The ids of all memories that rest on one of these, directly and indirectly.
    pub(super) fn resting_on(&self, ids: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        let mut ahead: Vec<u64> = ids.into_iter().collect();
        while let Some(id) = ahead.pop() {
            ahead.extend(self.cited_by(id).filter(|&citing| found.insert(citing)));
        }
        found
    }
}
