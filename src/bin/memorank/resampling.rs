//! How intervals are made, and what is drawn at random: the flags that `eval` and `tune` share.

use memorank::eval::Bootstrap;
use serde::Serialize;
use std::num::NonZeroUsize;

#[derive(clap::Args, Serialize)]
pub struct Resampling {
    /// How often questions are drawn anew for intervals, from 100 to 1000000.
    #[arg(
        long,
        value_name = "N",
        default_value = "10000",
        value_parser = resamples,
        allow_negative_numbers = true
    )]
    pub resamples: NonZeroUsize,
    /// What all that is drawn depends on.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl Resampling {
    pub fn bootstrap(&self) -> Bootstrap {
        let Resampling { resamples, seed } = *self;
        Bootstrap { resamples, seed }
    }
}

fn resamples(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok();
    // Of fewer, the ends of an interval are chance.
    let number = number.filter(|n: &NonZeroUsize| (100..=1_000_000).contains(&n.get()));
    number.ok_or_else(|| "a whole number from 100 to 1000000".to_owned())
}
