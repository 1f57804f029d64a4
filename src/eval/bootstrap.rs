//! How sure a difference is: the paired bootstrap.

use std::num::NonZeroUsize;

/// The paired bootstrap (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 13): questions are
/// drawn with replacement, as many as there are, each with its values under both settings; the interval holds the
/// middle 95 % of the mean differences of all draws (percentiles).
///
/// It says how much the figure depends on which questions happened to be asked. It takes them for independent:
/// questions about the same few conversations are not, and their interval is narrower than it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// How often all questions are drawn.
    pub resamples: NonZeroUsize,
    /// What the draws depend on, and on nothing else.
    pub seed: u64,
}

/// 10,000 resamples, seed 1.
impl Default for Bootstrap {
    fn default() -> Bootstrap {
        Bootstrap {
            resamples: const { NonZeroUsize::new(10_000).unwrap() },
            seed: 1,
        }
    }
}

/// A mean difference with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Gain {
    /// Of the values, over those that they are compared with; below 0 it is a loss.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Gain {
    /// Whether the whole interval lies above 0.
    pub fn is_sure(&self) -> bool {
        self.low > 0.0
    }
}

impl Bootstrap {
    /// By how much `values` are above `baseline`, question by question. Two comparisons over equally many questions
    /// see the same draws.
    ///
    /// # Panics
    /// If there are not as many of the one as of the other, or none.
    pub fn gain(&self, values: &[f64], baseline: &[f64]) -> Gain {
        assert_eq!(values.len(), baseline.len(), "two values for each question");
        assert!(!values.is_empty(), "a mean needs values");
        let differences: Vec<f64> = values.iter().zip(baseline).map(|(a, b)| a - b).collect();
        let mut draws = Draws(self.seed);
        let n = differences.len();
        let resampled = (0..self.resamples.get()).map(|_| {
            let drawn = (0..n).map(|_| differences[draws.below(n)]);
            drawn.sum::<f64>() / n as f64
        });
        let mut means: Vec<f64> = resampled.collect();
        means.sort_by(f64::total_cmp);
        // The least and the greatest after 2.5 % of them are left out at each end.
        let out = means.len() / 40;
        Gain {
            mean: mean(&differences),
            low: means[out],
            high: means[means.len() - 1 - out],
        }
    }
}

/// The mean of some values, added up in their order; NaN for none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014). Figures are pinned to
/// a seed, so its numbers must not change with the version of a generator crate.
pub(super) struct Draws(pub(super) u64);

impl Draws {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Below n; some numbers are likelier than others by n / 2^64.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The first numbers of its authors' code for the seed 1234567.
        let mut draws = Draws(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!([(); 3].map(|()| draws.bits()), expected);
    }

    #[test]
    fn every_number_below_n_is_drawn_about_as_often() {
        let mut draws = Draws(7);
        let mut counts = [0; 6];
        (0..60_000).for_each(|_| counts[draws.below(6)] += 1);
        // Five standard deviations: 5 * sqrt(60,000 * 5 / 36).
        assert!(
            counts.iter().all(|n: &i32| (n - 10_000).abs() < 457),
            "{counts:?}"
        );
    }
}
