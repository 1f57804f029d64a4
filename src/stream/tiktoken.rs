//! Tokens as OpenAI's models count them.

use super::budget::CountTokens;
use bpe_openai::{Tokenizer, cl100k_base, o200k_base};

/// A vocabulary of OpenAI's. They are part of the program: nothing is read or fetched.
///
/// Text is counted as text: names of special tokens in it, such as `<|endoftext|>`, are the characters that
/// they are. Counting takes time proportional to the text's length, whatever is in it. The first count of each
/// vocabulary unpacks it, which takes some tens of milliseconds.
///
/// ```
/// use memorank::stream::{CountTokens, Tiktoken};
/// assert_eq!(Tiktoken::O200k.count("Isabella plans a party"), 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tiktoken {
    /// `cl100k_base`: GPT-3.5, GPT-4 and the third generation of embeddings.
    Cl100k,
    /// `o200k_base`: GPT-4o and later.
    O200k,
}

impl Tiktoken {
    fn tokenizer(self) -> &'static Tokenizer {
        match self {
            Tiktoken::Cl100k => cl100k_base(),
            Tiktoken::O200k => o200k_base(),
        }
    }
}

impl CountTokens for Tiktoken {
    fn count(&self, text: &str) -> usize {
        self.tokenizer().count(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts of tiktoken-rs 0.12.
    #[test]
    fn texts_have_the_tokens_that_tiktoken_counts() {
        for (text, cl100k, o200k) in [
            ("", 0, 0),
            ("hello world", 2, 2),
            ("<|endoftext|> hello", 8, 8),
            (&"a".repeat(100_000), 12_500, 12_500),
            (&"\n".repeat(100_000), 3_125, 6_250),
            (&"😀".repeat(25_000), 50_000, 25_000),
        ] {
            assert_eq!(Tiktoken::Cl100k.count(text), cl100k);
            assert_eq!(Tiktoken::O200k.count(text), o200k);
        }
    }

    /// Other counters' regular expressions run out of stack here.
    #[test]
    fn a_million_spaces_are_counted() {
        let text = " ".repeat(1_000_000) + "x";
        assert_eq!(Tiktoken::O200k.count(&text), 7_814);
    }
}
