//! Presets side by side.

use super::case::of_each;
use super::measure::{Measure, Places};
use super::{Collection, EvalError, check_relevant};
use crate::Par;
use crate::scoring::{CandidateRule, Preset, Workspace};

/// Where the right answers are under each preset.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Of each preset, of each question: those of the first collection first.
    pub places: Vec<Vec<Places>>,
}

impl Evaluation {
    /// The measure of every question under a preset.
    ///
    /// # Panics
    /// If there is no such preset.
    pub fn values(&self, preset: usize, measure: Measure) -> Vec<f64> {
        let places = self.places[preset].iter();
        places.map(|places| measure.of(places)).collect()
    }
}

/// Ranks every question's candidates under each of the presets, and finds the places of the memories that answer it.
///
/// Of a preset its scoring, candidate rule and order of equal scores count; its k, result order and touch do not.
///
/// # Errors
/// A preset out of range; a question that has no relevant memory or cannot be asked, and what is damaged; no
/// question at all.
pub fn evaluate(
    collections: &[Collection<'_>],
    presets: &[Preset],
    par: Par,
    workspace: &mut Workspace,
) -> Result<Evaluation, EvalError> {
    check_relevant(collections)?;
    for (setting, preset) in presets.iter().enumerate() {
        let checked = preset.scoring.check();
        checked.map_err(|error| EvalError::Setting { setting, error })?;
    }
    let by_question = of_each(collections, par, workspace, |question, workspace| {
        let mut cases = Vec::new();
        let mut places = Vec::with_capacity(presets.len());
        for preset in presets {
            let rule = preset.candidates;
            let known = |(of, _): &(CandidateRule, _)| *of == rule;
            let at = match cases.iter().position(known) {
                Some(at) => at,
                None => {
                    cases.push((rule, question.case(rule)?));
                    cases.len() - 1
                }
            };
            places.push(
                cases[at]
                    .1
                    .places(&preset.scoring, preset.ties, workspace)?,
            );
        }
        Ok(places)
    })?;
    let mut places = vec![Vec::with_capacity(by_question.len()); presets.len()];
    for of_question in by_question {
        let presets = places.iter_mut().zip(of_question);
        presets.for_each(|(of_preset, places)| of_preset.push(places));
    }
    Ok(Evaluation { places })
}
