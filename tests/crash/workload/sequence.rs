//! Operations and power cuts in any order.

use super::Workload;
use super::check::check;
use crate::on_panic::OnPanic;
use crate::random::Random;
use crate::sim::{Crashes, Survivors};

/// What a sequence was made of.
#[derive(Debug, Default)]
pub struct Made {
    pub operations: usize,
    pub power_cuts: usize,
}

/// Calls operations on a store as `setup` chooses it, or cuts the power, as each of `choices` decides. `last` is a
/// power cut, and what it leaves must take more.
///
/// # Panics
/// If the store ever holds anything but the state after some of the operations, with all that were promised.
pub fn run(setup: Random, choices: impl Iterator<Item = Random>, mut last: Random) -> Made {
    let mut workload = Workload::of(setup);
    let mut made = Made::default();
    for mut random in choices {
        if random.chance(10) {
            let (at, survivors) = power_cut(&workload, &mut random);
            workload.choose_by(random);
            workload.cut_power(at, survivors);
            made.power_cuts += 1;
        } else {
            workload.choose_by(random);
            workload.step();
            made.operations += 1;
        }
    }
    let (at, survivors) = power_cut(&workload, &mut last);
    let _place = OnPanic(|| format!("{}power cut, {survivors:?} survive", workload.describe(at)));
    let mut crashes = Crashes::of(&workload.sim);
    crashes.advance(at);
    let image = crashes.image(survivors);
    check(&image, &workload.setup, &workload.allowed(at), &mut last);
    made.power_cuts += 1;
    made
}

/// The sequence that bytes stand for: seven for the kind of store, eight for each choice, eight for the last. A change
/// of one byte changes one choice.
pub fn run_bytes(bytes: &[u8]) -> Made {
    const SETUP_BYTES: usize = 7;
    const CHOICE_BYTES: usize = 8;
    // More would be slow, and say nothing new.
    const MOST: usize = 40;
    let (setup, rest) = bytes.split_at(bytes.len().min(SETUP_BYTES));
    let (choices, last) = rest.split_at(rest.len().saturating_sub(CHOICE_BYTES));
    let choices = choices.chunks(CHOICE_BYTES).take(MOST).map(Random::given);
    run(Random::given(setup), choices, Random::given(last))
}

/// Where the power is cut, most often among the last changes, and what survives.
fn power_cut(workload: &Workload, random: &mut Random) -> (usize, Survivors) {
    let end = workload.sim.log_len();
    let all = end - workload.steps[0].to;
    let back = match random.chance(80) {
        true => all.min(20),
        false => all,
    };
    let at = end - random.below(back + 1);
    let survivors = match random.chance(30) {
        true => random.pick(&Survivors::EXTREMES),
        false => Survivors::Some(random.next()),
    };
    (at, survivors)
}
