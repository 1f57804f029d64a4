//! What is tried.

use crate::failure::Failure;
use crate::output::grouped;
use crate::values::Age;
use memorank::eval::Grid;
use memorank::scoring::Scoring;

/// Without these, the library's own.
#[derive(clap::Args)]
#[command(next_help_heading = "What is tried, with a weight of relevance of 1")]
pub struct Tried {
    /// Weights of recency beside 0, with commas between them; by default 0.01 to 10 in steps of 1, 2, 5.
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',', value_parser = weight)]
    recency: Vec<f64>,
    /// Weights of importance beside 0; by default the same.
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',', value_parser = weight)]
    importance: Vec<f64>,
    /// What remains of recency after an hour; by default 0.995 and the half-lives.
    #[arg(long, value_name = "DECAYS", value_delimiter = ',', value_parser = decay)]
    decay: Vec<f64>,
    /// After how long a half of recency remains, as in 12h,7d; by default an hour to 15 years in steps of 2.
    #[arg(long, value_name = "AGES", value_delimiter = ',')]
    half_life: Vec<Age>,
}

/// More would take longer than anybody waits.
const SETTINGS: usize = 100_000;

impl Tried {
    /// All settings of the grid.
    pub fn settings(&self) -> Result<Vec<Scoring>, Failure> {
        let grid = self.grid();
        let Grid {
            recency,
            importance,
            decays,
        } = &grid;
        let settings = (importance.len() + 1).saturating_mul(recency.len() * decays.len() + 1);
        match settings > SETTINGS {
            true => Err(Failure::Usage(format!(
                "the weights, decays and half-lives make {} settings, each with each; {} are the most",
                grouped(settings),
                grouped(SETTINGS)
            ))),
            false => Ok(grid.settings()),
        }
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::standard();
        let sorted = |given: &[f64]| {
            let mut values = given.to_vec();
            values.sort_by(f64::total_cmp);
            values.dedup();
            values
        };
        let or = |given: &[f64], standard: &mut Vec<f64>| {
            if !given.is_empty() {
                *standard = sorted(given);
                standard.retain(|&weight| weight > 0.0);
            }
        };
        or(&self.recency, &mut grid.recency);
        or(&self.importance, &mut grid.importance);
        let half_lives = self.half_life.iter();
        let half_lives = half_lives.map(|age| Grid::decay_of_half_life(age.0 as f64 / 3.6e9));
        let decays: Vec<f64> = self.decay.iter().copied().chain(half_lives).collect();
        if !decays.is_empty() {
            grid.decays = sorted(&decays);
        }
        grid
    }
}

fn weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|w| (0.0..=1e6).contains(w));
    weight.ok_or_else(|| "a number from 0 to 1000000".to_owned())
}

fn decay(text: &str) -> Result<f64, String> {
    let decay = text.parse().ok().filter(|d| (0.0..=1.0).contains(d));
    decay.ok_or_else(|| "a number from 0 to 1".to_owned())
}
