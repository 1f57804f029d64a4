//! How many tokens a caller can take.
//!
//! The budget is spent in the order of the scores, whatever order the result has then: the least relevant goes
//! first. What is pinned counts first and is never cut.

use std::fmt;

/// Counts the tokens of a text, as the model that will read it does. Threads share it.
pub trait CountTokens: Sync {
    /// The number of tokens.
    fn count(&self, text: &str) -> usize;
}

/// One token for every four bytes begun: a rule of thumb for English, that needs no tokenizer. Other
/// languages have more tokens to a text than it says, or fewer.
///
/// ```
/// use memorank::stream::{BytesPerFour, CountTokens};
///
/// assert_eq!(["", "tea", "green tea"].map(|text| BytesPerFour.count(text)), [0, 1, 3]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesPerFour;

impl CountTokens for BytesPerFour {
    fn count(&self, text: &str) -> usize {
        text.len().div_ceil(4)
    }
}

/// The tokens that the texts of a retrieval may have together.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// How many.
    pub tokens: usize,
    /// Who counts them.
    pub counter: &'a dyn CountTokens,
    /// What becomes of the memories after one that does not fit.
    pub overflow: Overflow,
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("tokens", &self.tokens)
            .field("overflow", &self.overflow)
            .finish_non_exhaustive()
    }
}

/// What becomes of the memories after one that does not fit into a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// They are cut as well: what is left are the best memories, none passed over.
    KeepPrefix,
    /// Those that still fit stay.
    SkipOversized,
}

/// A budget being spent, or none.
pub(super) struct Spending<'a> {
    budget: Option<Budget<'a>>,
    spent: usize,
    /// Nothing more is let through.
    over: bool,
}

impl<'a> Spending<'a> {
    pub(super) fn of(budget: Option<Budget<'a>>) -> Spending<'a> {
        Spending {
            budget,
            spent: 0,
            over: false,
        }
    }

    /// The tokens of a text. Without a budget they are 0, and nothing is read.
    pub(super) fn count<'t, E>(
        &self,
        text: impl FnOnce() -> Result<&'t str, E>,
    ) -> Result<usize, E> {
        match &self.budget {
            Some(budget) => Ok(budget.counter.count(text()?)),
            None => Ok(0),
        }
    }

    /// Spends so many tokens, whether they fit or not.
    pub(super) fn spend(&mut self, tokens: usize) {
        self.spent = self.spent.saturating_add(tokens);
    }

    /// Spends so many tokens, if they fit.
    pub(super) fn take(&mut self, tokens: usize) -> bool {
        let Some(Budget {
            tokens: most,
            overflow,
            ..
        }) = self.budget
        else {
            return true;
        };
        let after = self.spent.checked_add(tokens);
        let fits = !self.over && after.is_some_and(|after| after <= most);
        match overflow {
            _ if fits => self.spend(tokens),
            Overflow::KeepPrefix => self.over = true,
            Overflow::SkipOversized => {}
        }
        fits
    }

    pub(super) fn spent(&self) -> usize {
        self.spent
    }

    /// By how much more was spent than there was.
    pub(super) fn excess(&self) -> usize {
        let most = self.budget.map_or(usize::MAX, |budget| budget.tokens);
        self.spent.saturating_sub(most)
    }
}
