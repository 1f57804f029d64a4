//! An embedder without a model: words hashed to places. For tests, examples and first steps.

use super::remember::{BoxError, Embed};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Part of what "memorank-hash-words-1" means.
const SEED: u64 = 1;

/// Embeds texts by the words they have, not by what they mean: "dog" and "puppy" have nothing in common.
///
/// A word is a longest run of alphanumeric characters, in lower case; a writing without spaces gives long
/// words that seldom match. Words, and pairs of words that follow each other, are counted, and each is hashed
/// (XXH3 of its UTF-8, a pair with a space between, seed 1): bit 0 of the hash is its sign, the rest modulo
/// `dim` its place. Its count's square root is added there with that sign, in f64 and in the order of the
/// words' bytes; the sum is divided by its length and rounded to f32.
///
/// The same text gives the same bits everywhere. (Which characters are alphanumeric is Unicode's to say, and
/// for new letters that changes with Rust's version. "é" as one character and as two are different words: bring
/// texts into one normal form.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashingEmbedder {
    dim: NonZeroUsize,
}

/// There is no letter and no digit in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is no word in the text; store it without an embedding")]
pub struct NoWord;

impl HashingEmbedder {
    /// The model's name. Another way of hashing would get another.
    pub const MODEL: &str = "memorank-hash-words-1";

    /// Embeddings of `dim` elements: some hundreds, so that few words meet in one place.
    pub fn new(dim: NonZeroUsize) -> HashingEmbedder {
        HashingEmbedder { dim }
    }

    /// The embedding of one text: `dim` elements, of length 1.
    ///
    /// # Errors
    /// If there is no word in it.
    ///
    /// ```
    /// use memorank::stream::HashingEmbedder;
    /// let embedder = HashingEmbedder::new(256.try_into()?);
    /// let embedding = embedder.embedding("Isabella plans a party")?;
    /// assert_eq!(embedding, embedder.embedding("isabella: plans -- A PARTY!")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn embedding(&self, text: &str) -> Result<Vec<f32>, NoWord> {
        let counts = features(text);
        if counts.is_empty() {
            return Err(NoWord);
        }
        let dim = self.dim.get();
        let mut sums = vec![0.0; dim];
        for (feature, count) in &counts {
            let hash = xxh3_64_with_seed(feature.as_bytes(), SEED);
            let place = ((hash >> 1) % dim as u64) as usize;
            let size = f64::from(*count).sqrt();
            sums[place] += if hash & 1 == 0 { size } else { -size };
        }
        // They do not cancel out, however few the places: n words make n - 1 pairs, so the counts add up to an
        // odd number, and those of roots that cancel to an even one. Should f64's rounding do it all the same,
        // zeros come out, which a store refuses.
        let length = sums.iter().map(|x| x * x).sum::<f64>().sqrt();
        let length = length.max(f64::MIN_POSITIVE);
        Ok(sums.iter().map(|x| (x / length) as f32).collect())
    }
}

/// Words and pairs of neighbours, and how often each occurs.
fn features(text: &str) -> BTreeMap<String, u32> {
    let lower = text.to_lowercase();
    let words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut counts = BTreeMap::new();
    let mut before: Option<&str> = None;
    for word in words {
        let pair = before.map(|before| format!("{before} {word}"));
        for feature in [Some(word.to_owned()), pair].into_iter().flatten() {
            *counts.entry(feature).or_insert(0) += 1;
        }
        before = Some(word);
    }
    counts
}

impl Embed for HashingEmbedder {
    fn model(&self) -> &str {
        HashingEmbedder::MODEL
    }

    fn embed(&mut self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
        let embeddings = texts.iter().map(|text| self.embedding(text));
        Ok(embeddings.collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dim: usize, text: &str) -> Result<Vec<f32>, NoWord> {
        HashingEmbedder::new(dim.try_into().unwrap()).embedding(text)
    }

    fn cosine(a: &str, b: &str) -> f64 {
        let (a, b) = (of(512, a).unwrap(), of(512, b).unwrap());
        a.iter().zip(&b).map(|(a, b)| f64::from(a * b)).sum()
    }

    #[test]
    fn a_text_is_the_sum_of_its_words_and_pairs() {
        let mut expected = [0.0; 64];
        for feature in ["big", "dog", "big dog"] {
            let hash = xxh3_64_with_seed(feature.as_bytes(), 1);
            let sign = [1.0, -1.0][(hash % 2) as usize];
            expected[(hash / 2 % 64) as usize] += sign;
        }
        // Each has a place of its own.
        assert_eq!(expected.iter().filter(|&&x| x != 0.0).count(), 3);
        let expected = expected.map(|x: f64| (x / 3f64.sqrt()) as f32);
        assert_eq!(of(64, "Big dog").unwrap(), expected);
    }

    #[test]
    fn a_word_that_comes_n_times_counts_its_square_root() {
        let counts = features("a a a a b");
        let expected = [("a", 4), ("a a", 3), ("a b", 1), ("b", 1)];
        assert!(
            counts
                .iter()
                .map(|(word, &n)| (word.as_str(), n))
                .eq(expected)
        );
    }

    #[test]
    fn case_spaces_and_marks_do_not_matter_and_order_does() {
        let plain = of(512, "klaus mueller's paper 7").unwrap();
        for same in ["Klaus Mueller's  paper, 7", "\nKLAUS-MUELLER'S (paper) 7!"] {
            assert_eq!(of(512, same).unwrap(), plain, "{same}");
        }
        assert_ne!(of(512, "mueller's klaus paper 7").unwrap(), plain);
        assert_eq!(of(64, "ΟΔΟΣ ÉCOLE"), of(64, "οδος école"));
    }

    #[test]
    fn more_words_in_common_are_a_higher_cosine() {
        let text = "Isabella plans a party at the cafe";
        let near = cosine(text, "Isabella plans a party");
        let far = cosine(text, "Klaus went to a party");
        let none = cosine(text, "nothing else matters");
        assert!(cosine(text, text) > 0.999_999);
        assert!(near > far + 0.2 && far > none, "{near} {far} {none}");
    }

    #[test]
    fn a_text_without_a_word_is_an_error() {
        for text in ["", " ", "...", "🙂 —", "\0\n", "\u{301}"] {
            assert_eq!(of(8, text), Err(NoWord), "{text:?}");
        }
    }

    #[test]
    fn words_never_cancel_out_however_few_the_places() {
        for i in 0..2_000_u32 {
            // Up to 12 words out of 4.
            let words = (0..=i % 12).map(|j| ["a", "b", "c", "d"][(i >> j & 3) as usize]);
            let text = words.collect::<Vec<_>>().join(" ");
            for dim in 1..4 {
                let embedding = of(dim, &text).unwrap();
                assert!(embedding.iter().any(|x| x.abs() > 0.5), "{text}");
            }
        }
    }

    #[test]
    fn embeddings_have_length_one_whatever_the_text() {
        for text in ["a".to_owned(), "a b ".repeat(100_000), "x".repeat(1 << 20)] {
            let length: f64 = of(97, &text)
                .unwrap()
                .iter()
                .map(|&x| f64::from(x) * f64::from(x))
                .sum();
            assert!((length - 1.0).abs() < 1e-6, "{length}");
        }
    }
}
