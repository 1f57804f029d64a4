//! What is asked of a model.

use super::attempt::{Attempt, Purpose};
use std::fmt;

/// What is to be asked of a language model: the parts, to be put in words of one's own; displayed, words that serve.
///
/// The words are the library's own, not the paper's, and no part of any formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt<'a> {
    /// What is asked for.
    pub purpose: Purpose,
    /// The question to be answered, if insights are asked for.
    pub question: Option<&'a str>,
    /// The memories shown. The first one is number 1.
    pub statements: Vec<Statement<'a>>,
    /// How many are asked for.
    pub count: usize,
    /// The reply to the same before, which was refused, if there was one.
    pub refused: Option<&'a Attempt>,
}

/// A memory as a model is shown it. Displayed, it is one line, whatever is in its text: no text may look like several
/// statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its id.
    pub id: u64,
    /// What it says, as stored.
    pub text: &'a str,
}

impl fmt::Display for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        one_line(self.text, f)
    }
}

/// Problems of a refused reply that a prompt tells, and characters of each: a reply may have any number.
const TOLD: usize = 10;
const TOLD_CHARS: usize = 200;

impl fmt::Display for Prompt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Statements:")?;
        for (number, statement) in (1..).zip(&self.statements) {
            writeln!(f, "{number}. {statement}")?;
        }
        writeln!(f)?;
        let (count, last) = (self.count, self.statements.len());
        match self.question {
            None => write!(
                f,
                "Which {count} general questions about those who occur in these statements can be answered best with them?\n\
                 Reply with {count} questions alone, one a line, numbered from 1."
            )?,
            Some(question) => {
                write!(f, "Question: ")?;
                one_line(question, f)?;
                write!(
                    f,
                    "\n\nWhich {count} general conclusions can be drawn from these statements, with this question in mind?\n\
                     Reply with {count} conclusions alone, one a line, numbered from 1. End each with the numbers of the \
                     statements that it rests on, from 1 to {last}, in this form: (because of 2, 7)"
                )?;
            }
        }
        if let Some(refused) = self.refused {
            write!(f, "\n\nYour last reply could not be used:")?;
            let problems = refused.problems();
            for problem in problems.iter().take(TOLD) {
                let told: String = problem.chars().take(TOLD_CHARS).collect();
                write!(f, "\n- ")?;
                one_line(&told, f)?;
            }
            if problems.len() > TOLD {
                write!(f, "\n- and {} more", problems.len() - TOLD)?;
            }
        }
        Ok(())
    }
}

/// A text in one line.
fn one_line(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    let words = text.split(is_blank).filter(|word| !word.is_empty());
    for (at, word) in words.enumerate() {
        let before = if at == 0 { "" } else { " " };
        write!(f, "{before}{word}")?;
    }
    Ok(())
}
