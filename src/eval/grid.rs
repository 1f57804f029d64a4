//! Settings to try.

use crate::scoring::{MICROSECONDS_PER_HOUR, Normalization, Recency, Scoring, Since, Weights};

/// Weights and decays, each with each. Only ratios of weights count, so the weight of relevance is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Weights of recency above 0.
    pub recency: Vec<f64>,
    /// Weights of importance above 0.
    pub importance: Vec<f64>,
    /// What remains of recency after an hour, in (0, 1). (With 0 or 1 recency is as good as constant.)
    pub decays: Vec<f64>,
}

impl Grid {
    /// Weights from 0.01 to 10 in steps of 1, 2, 5; half-lives from an hour to 15 years in steps of 2, and the
    /// paper's 0.995 per hour (a half-life of 138 hours).
    pub fn standard() -> Grid {
        let weights = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
        let half_lives = (0..=17).map(|power| 2.0f64.powi(power));
        let mut decays: Vec<f64> = half_lives.map(Grid::decay_of_half_life).collect();
        decays.push(0.995);
        decays.sort_by(f64::total_cmp);
        Grid {
            recency: weights.to_vec(),
            importance: weights.to_vec(),
            decays,
        }
    }

    /// What remains after one hour, if a half does after so many.
    pub fn decay_of_half_life(hours: f64) -> f64 {
        0.5f64.powf(1.0 / hours)
    }

    /// After how many hours a half remains of a decay per hour: 0 for a decay of 0, infinity for one of 1.
    pub fn half_life_of_decay(decay: f64) -> f64 {
        0.5f64.ln() / decay.ln()
    }

    /// All settings of the grid: cosine alone first, then those without recency, and then by weight of recency,
    /// weight of importance, and decay. All else is as in the preset `paper`.
    ///
    /// The order counts: of equally good ones, [`tune`](super::tune) takes the first.
    pub fn settings(&self) -> Vec<Scoring> {
        let mut all = Vec::new();
        let importances = || std::iter::once(0.0).chain(self.importance.iter().copied());
        let mut add = |recency, importance, decay| {
            all.push(Scoring {
                weights: Weights {
                    relevance: 1.0,
                    recency,
                    importance,
                },
                recency: Recency::Age {
                    decay,
                    ticks_per_unit: MICROSECONDS_PER_HOUR,
                    since: Since::Now,
                },
                normalization: Normalization::MinMax { constant: 0.5 },
            });
        };
        // Without recency no decay counts.
        importances().for_each(|importance| add(0.0, importance, 1.0));
        for &recency in &self.recency {
            for importance in importances() {
                for &decay in &self.decays {
                    add(recency, importance, decay);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_grid_begins_with_cosine_alone_and_has_each_setting_once() {
        let settings = Grid::standard().settings();
        assert_eq!(settings.len(), 11 + 10 * 11 * 19);
        let first = settings[0].weights;
        assert_eq!((first.recency, first.importance), (0.0, 0.0));
        for (i, setting) in settings.iter().enumerate() {
            setting.check().unwrap();
            assert!(!settings[..i].contains(setting), "{setting:?}");
        }
        let paper = crate::scoring::Preset::paper().scoring;
        assert!(settings.contains(&paper));
    }

    #[test]
    fn half_lives_and_decays_are_each_others_inverse() {
        for hours in [0.5, 1.0, 24.0, 138.3, 131_072.0] {
            let there_and_back = Grid::half_life_of_decay(Grid::decay_of_half_life(hours));
            assert!((there_and_back / hours - 1.0).abs() < 1e-9, "{hours}");
        }
        assert_eq!(Grid::half_life_of_decay(0.0), 0.0);
        assert_eq!(Grid::half_life_of_decay(0.25), 0.5);
    }
}
