//! What was asked of a model, and what became of each of its replies.

use super::{CitationProblem, Parsed, Questions};
use crate::stream::rating::RatingProblem;
use std::fmt;
use thiserror::Error;

/// What a model was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Purpose {
    /// Questions about the newest memories.
    Questions,
    /// Insights from the memories that were retrieved for a question.
    Insights {
        /// Its place among the questions.
        question: usize,
    },
    /// How much an insight matters.
    Rating {
        /// Its place among those that passed the gates.
        insight: usize,
    },
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Purpose::Questions => f.write_str("questions"),
            Purpose::Insights { question } => write!(f, "insights for question {question}"),
            Purpose::Rating { insight } => write!(f, "a rating of insight {insight}"),
        }
    }
}

/// A reply, and what became of it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Attempt {
    /// What was asked for.
    pub purpose: Purpose,
    /// The reply, whole and as it came.
    pub reply: String,
    /// What was found in it.
    pub verdict: Verdict,
    /// Whether it was taken. If not, the same was asked again, or the run is over.
    pub is_taken: bool,
}

/// What was found in a reply.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Verdict {
    /// Questions.
    Questions(Questions),
    /// Insights.
    Insights {
        /// What the first gate made of it.
        parsed: Parsed,
        /// Insights among those that did not pass the other gates, in the order of the reply (but those that were refused
        /// for their support come after those that were for their citations).
        refused: Vec<Refused>,
    },
    /// A rating.
    Rating(u8),
    /// No rating.
    NoRating(RatingProblem),
}

/// An insight that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Refused {
    /// Its place among [`Parsed::insights`].
    pub insight: usize,
    /// Why.
    pub refusal: Refusal,
}

/// Why an insight did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Refusal {
    /// Citations do not hold (gate 2).
    #[error("{}", Listed(.0))]
    Citations(Vec<CitationProblem>),
    /// As many as were asked for passed the gate before it.
    #[error("more insights than were asked for")]
    MoreThanAsked,
    /// The evidence does not carry it (gate 3).
    #[error("the evidence does not support it")]
    Unsupported,
    /// Nobody said whether the evidence carries it, and the settings ask for that (gate 3).
    #[error("nobody checked whether the evidence supports it")]
    Unchecked,
}

struct Listed<'a>(&'a [CitationProblem]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            let before = if at == 0 { "" } else { "; " };
            write!(f, "{before}{problem}")?;
        }
        Ok(())
    }
}

impl Attempt {
    /// What was wrong with the reply, for who is to do better: a line each.
    pub fn problems(&self) -> Vec<String> {
        match &self.verdict {
            Verdict::Questions(questions) if questions.taken.is_empty() => {
                vec!["there was no question in it".to_owned()]
            }
            Verdict::Questions(_) | Verdict::Rating(_) => Vec::new(),
            Verdict::NoRating(problem) => vec![problem.to_string()],
            Verdict::Insights { parsed, refused } => {
                let parse = (parsed.problems.iter())
                    .map(|problem| format!("line {}: {}", problem.line, problem.kind));
                let others = refused.iter().map(|Refused { insight, refusal }| {
                    format!("line {}: {refusal}", parsed.insights[*insight].line)
                });
                let mut problems: Vec<String> = parse.chain(others).collect();
                if problems.is_empty() && !self.is_taken {
                    problems.push(format!(
                        "there were only {} insights in it",
                        parsed.insights.len()
                    ));
                }
                problems
            }
        }
    }
}
