//! Weights and decay for a measure, chosen by cross-validation.

use super::bootstrap::{Bootstrap, Draws, Gain, mean};
use super::case::of_each;
use super::measure::Measure;
use super::{Collection, EvalError, check_relevant, contenders};
use crate::Par;
use crate::scoring::{CandidateRule, Ranking, Recency, Scoring, Ties, Workspace};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// What is tried, and how it is judged.
#[derive(Clone, Copy, Debug)]
pub struct Tuning<'a> {
    /// Settings whose recency goes by age, or does not count. The others have to beat the first: cosine alone, in the
    /// settings of a [`Grid`](super::Grid).
    pub settings: &'a [Scoring],
    /// What is to be large.
    pub measure: Measure,
    /// For each question of all collections, the number of its fold. Questions that resemble each other, such as
    /// those about one conversation, belong in one.
    pub folds: &'a [usize],
    /// How intervals are made.
    pub bootstrap: Bootstrap,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The mean of the measure over all questions, of each setting.
    pub means: Vec<f64>,
    /// Each fold, ascending by its number.
    pub folds: Vec<Fold>,
    /// The held-out gain: each question under the setting that was best on the other folds, over the first setting.
    pub gain: Gain,
    /// The setting that is best on all questions; of several, the first.
    pub best: usize,
    /// What to use: the best setting if the held-out gain is [sure](Gain::is_sure) and there are enough
    /// [questions](Tuned::FEWEST_QUESTIONS), or else the first.
    pub chosen: usize,
    /// The settings that cannot be told from the best one: over all questions they are worse by no more than two
    /// standard errors of the paired difference. If they are many and far apart, the optimum is flat.
    pub near: Vec<usize>,
    /// Right answers, of all questions, that do not compete for them: no setting finds them.
    pub out_of_reach: usize,
}

impl Tuned {
    /// Of fewer questions an interval says little: of two that agree it has no width.
    pub const FEWEST_QUESTIONS: usize = 20;
}

/// Settings that are not worth looking for contenders.
const FEW: usize = 8;

/// One fold of a cross-validation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fold {
    /// Its number.
    pub fold: usize,
    /// How many questions are in it.
    pub questions: usize,
    /// The setting that is best on the questions of all other folds; of several, the first.
    pub setting: usize,
    /// Its mean over those.
    pub trained: f64,
    /// Its mean over the questions of this fold.
    pub held_out: f64,
    /// The mean of the first setting over the questions of this fold.
    pub first: f64,
}

/// Tries every setting on every question, and judges the choice among them by cross-validation: for each fold the
/// setting is chosen by the other folds, and measured on this one. So the gain is one over questions that had no say
/// in the choice, and can be a loss.
///
/// Raw components are computed once per question; trying a setting reads no embedding. Candidates are all that a
/// question's filter lets pass, equal scores are ordered by row.
///
/// # Errors
/// A setting out of range or whose recency does not go by age; folds that are not one for each question, or one for
/// all; a question that has no relevant memory or cannot be asked, and what is damaged; no question at all.
pub fn tune(
    collections: &[Collection<'_>],
    tuning: &Tuning<'_>,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Tuned, EvalError> {
    let questions = collections.iter().map(|of| of.questions.len()).sum();
    tuning.check(questions)?;
    check_relevant(collections)?;
    let Tuning {
        settings, measure, ..
    } = *tuning;
    let values = of_each(collections, par, workspace, |question, workspace| {
        let case = question.case(CandidateRule::All)?;
        let mut values = Vec::with_capacity(settings.len());
        let Some(k) = measure.cutoff() else {
            for scoring in settings {
                let places = case.places(scoring, Ties::Row, workspace)?;
                values.push(measure.of(&places));
            }
            return Ok((values, case.out_of_reach()));
        };
        // They are looked for once, and save most of the work of each setting.
        let contenders = match settings.len() {
            ..FEW => None,
            FEW.. => contenders::of(&case, k.get()),
        };
        let contenders = contenders.map(|kept| case.only(&kept));
        let mut ranking = Ranking::default();
        for scoring in settings {
            let case = match &contenders {
                Some(contenders) if contenders::suffice(scoring) => contenders,
                Some(_) | None => &case,
            };
            case.top(scoring, Ties::Row, k.get(), workspace, &mut ranking)?;
            values.push(measure.of(&case.places_in(&ranking)));
        }
        Ok((values, case.out_of_reach()))
    })?;
    let out_of_reach = values.iter().map(|(_, out_of_reach)| out_of_reach).sum();
    let values: Vec<Vec<f64>> = values.into_iter().map(|(values, _)| values).collect();
    Ok(tuning.judge(&values, out_of_reach))
}

impl Tuning<'_> {
    fn check(&self, questions: usize) -> Result<(), EvalError> {
        if self.settings.is_empty() {
            return Err(EvalError::NoSettings);
        }
        for (setting, scoring) in self.settings.iter().enumerate() {
            let checked = scoring.check();
            checked.map_err(|error| EvalError::Setting { setting, error })?;
            if !matches!(scoring.recency, Recency::Age { .. }) {
                return Err(EvalError::NotByAge { setting });
            }
        }
        let found = self.folds.len();
        if found != questions {
            return Err(EvalError::FoldsMismatch { found, questions });
        }
        match self.folds.iter().any(|fold| *fold != self.folds[0]) {
            false if questions > 0 => Err(EvalError::OneFold),
            _ => Ok(()),
        }
    }

    /// `values` has a value for each question and setting.
    fn judge(&self, values: &[Vec<f64>], out_of_reach: usize) -> Tuned {
        let of_setting =
            |setting: usize| -> Vec<f64> { values.iter().map(|of| of[setting]).collect() };
        let mut folds: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (question, &fold) in self.folds.iter().enumerate() {
            folds.entry(fold).or_default().push(question);
        }
        let sums: Vec<Vec<f64>> = folds.values().map(|of| self.sums(values, of)).collect();
        let means = self.means(&sums, |_| true, values.len());
        let mut held_out = vec![0.0; values.len()];
        let told = folds.iter().enumerate().map(|(at, (&fold, of))| {
            let trained = self.means(&sums, |other| other != at, values.len() - of.len());
            let setting = first_largest(&trained);
            of.iter()
                .for_each(|&question| held_out[question] = values[question][setting]);
            Fold {
                fold,
                questions: of.len(),
                setting,
                trained: trained[setting],
                held_out: sums[at][setting] / of.len() as f64,
                first: sums[at][0] / of.len() as f64,
            }
        });
        let told = told.collect();
        let gain = self.bootstrap.gain(&held_out, &of_setting(0));
        let best = first_largest(&means);
        let of_best = of_setting(best);
        let near = (0..means.len()).filter(|&setting| is_near(&of_setting(setting), &of_best));
        Tuned {
            folds: told,
            gain,
            best,
            chosen: match gain.is_sure() && values.len() >= Tuned::FEWEST_QUESTIONS {
                true => best,
                false => 0,
            },
            out_of_reach,
            near: near.collect(),
            means,
        }
    }

    /// The sum of each setting over some questions.
    fn sums(&self, values: &[Vec<f64>], questions: &[usize]) -> Vec<f64> {
        let mut sums = vec![0.0; self.settings.len()];
        for &question in questions {
            let settings = sums.iter_mut().zip(&values[question]);
            settings.for_each(|(sum, value)| *sum += value);
        }
        sums
    }

    /// The mean of each setting over the folds of which `is_in` is true: so many questions.
    fn means(
        &self,
        sums: &[Vec<f64>],
        is_in: impl Fn(usize) -> bool,
        questions: usize,
    ) -> Vec<f64> {
        let mut means = vec![0.0; self.settings.len()];
        for (_, sums) in sums.iter().enumerate().filter(|(at, _)| is_in(*at)) {
            let settings = means.iter_mut().zip(sums);
            settings.for_each(|(mean, sum)| *mean += sum);
        }
        means.iter_mut().for_each(|mean| *mean /= questions as f64);
        means
    }
}

/// The index of the largest; of several, the first.
fn first_largest(values: &[f64]) -> usize {
    let mut best = 0;
    for (index, &value) in values.iter().enumerate() {
        if value > values[best] {
            best = index;
        }
    }
    best
}

/// Whether the mean of `values` is below that of the best by at most two standard errors of the difference.
fn is_near(values: &[f64], best: &[f64]) -> bool {
    let differences: Vec<f64> = best.iter().zip(values).map(|(a, b)| a - b).collect();
    let (n, mean) = (differences.len() as f64, mean(&differences));
    let squares: f64 = differences.iter().map(|d| (d - mean) * (d - mean)).sum();
    let standard_error = (squares / (n * (n - 1.0).max(1.0))).sqrt();
    mean <= 2.0 * standard_error
}

/// So many folds of as many questions each as can be, shuffled by the seed (Fisher and Yates): for questions that come
/// from one store and have nothing else to be told apart by.
pub fn folds_at_random(questions: usize, folds: NonZeroUsize, seed: u64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..questions).map(|question| question % folds).collect();
    let mut draws = Draws(seed);
    for last in (1..questions).rev() {
        all.swap(last, draws.below(last + 1));
    }
    all
}
