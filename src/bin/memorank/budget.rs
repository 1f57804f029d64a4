//! A budget of tokens, and what it cut.

use crate::failure::Failure;
use crate::output::{Output, one_line};
use crate::values::whole;
use clap::ValueEnum;
use memorank::store::ReadError;
#[cfg(feature = "tiktoken")]
use memorank::stream::Tiktoken;
use memorank::stream::{self, BytesPerFour, CountTokens, Overflow, Retrieved};
use serde::Serialize;

#[derive(clap::Args)]
#[command(next_help_heading = "A budget")]
pub struct Budget {
    /// How many tokens the texts may have together. What is cut is told.
    #[arg(long, value_name = "TOKENS", value_parser = whole, allow_negative_numbers = true)]
    budget: Option<usize>,
    /// How tokens are counted.
    #[arg(long, value_enum, requires = "budget", default_value = "bytes")]
    count: Count,
    /// What becomes of the memories after one that does not fit.
    #[arg(long, value_enum, requires = "budget", default_value = "keep-prefix")]
    overflow: WhatThen,
}

#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Count {
    /// One for every four bytes begun.
    Bytes,
    /// As GPT-3.5 and GPT-4 do.
    #[cfg(feature = "tiktoken")]
    Cl100k,
    /// As GPT-4o and later models do.
    #[cfg(feature = "tiktoken")]
    O200k,
}

#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum WhatThen {
    /// They are cut, too.
    KeepPrefix,
    /// Those that still fit stay.
    SkipOversized,
}

impl Budget {
    pub fn budget(&self) -> Option<stream::Budget<'static>> {
        let counter: &dyn CountTokens = match self.count {
            Count::Bytes => &BytesPerFour,
            #[cfg(feature = "tiktoken")]
            Count::Cl100k => &Tiktoken::Cl100k,
            #[cfg(feature = "tiktoken")]
            Count::O200k => &Tiktoken::O200k,
        };
        let overflow = match self.overflow {
            WhatThen::KeepPrefix => Overflow::KeepPrefix,
            WhatThen::SkipOversized => Overflow::SkipOversized,
        };
        self.budget.map(|tokens| stream::Budget {
            tokens,
            counter,
            overflow,
        })
    }

    /// What became of it.
    pub fn spent<'a>(&self, retrieved: &'a Retrieved) -> Result<Option<Spent<'a>>, ReadError> {
        let Some(tokens) = self.budget else {
            return Ok(None);
        };
        let cut = retrieved.cut.iter().map(|cut| {
            let memory = retrieved.snapshot.memory(cut.row)?;
            Ok(Cut {
                id: cut.id,
                key: memory.key,
                text: memory.text,
                tokens: cut.tokens,
                score: cut.hit.score,
            })
        });
        Ok(Some(Spent {
            tokens,
            count: self.count,
            overflow: self.overflow,
            spent: retrieved.tokens,
            excess: retrieved.excess,
            cut: cut.collect::<Result<_, ReadError>>()?,
        }))
    }
}

/// A budget, and what became of it.
#[derive(Serialize)]
pub struct Spent<'a> {
    tokens: usize,
    count: Count,
    overflow: WhatThen,
    spent: usize,
    /// By which the pinned memories alone exceed it.
    excess: usize,
    /// Best first.
    cut: Vec<Cut<'a>>,
}

#[derive(Serialize)]
struct Cut<'a> {
    id: u64,
    key: Option<&'a str>,
    text: &'a str,
    tokens: usize,
    score: f64,
}

impl Spent<'_> {
    pub fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let Spent { tokens, spent, .. } = self;
        out.line(format_args!(
            "{spent} of {tokens} tokens, {} memories cut",
            self.cut.len()
        ))?;
        if self.excess > 0 {
            out.line(format_args!(
                "the pinned memories alone are {} tokens too many",
                self.excess
            ))?;
        }
        for cut in &self.cut {
            let key = match cut.key {
                Some(key) => one_line(key, 24),
                None => format!("id {}", cut.id),
            };
            let (score, tokens, text) = (cut.score, cut.tokens, one_line(cut.text, 60));
            out.line(format_args!(
                "cut  {score:>7.4}  {tokens} tokens  {key}  {text}"
            ))?;
        }
        Ok(())
    }
}
