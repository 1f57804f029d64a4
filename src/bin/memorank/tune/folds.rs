//! Which questions are held out together.

use crate::failure::Failure;
use crate::judged::{Label, Question, Subject};
use memorank::eval::folds_at_random;
use serde::Serialize;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The folds of a cross-validation.
pub struct Folds {
    pub by: By,
    /// Of each fold.
    pub names: Vec<String>,
    /// Of each question, the number of its fold.
    pub numbers: Vec<usize>,
}

/// What the folds are.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// What the questions say.
    Given,
    Stores,
    Random,
}

/// As many folds at random as are wanted, where nothing else tells questions apart.
const RANDOM: usize = 5;

impl Folds {
    /// So many at random, if a number is given. Or else what the questions say, or the stores, or some at random.
    pub fn new(
        subjects: &[Subject<'_>],
        wanted: Option<usize>,
        seed: u64,
    ) -> Result<Folds, Failure> {
        if let Some(folds) = wanted {
            return Folds::random(subjects, folds, seed);
        }
        let questions = subjects.iter().flat_map(|of| &of.questions);
        let given = questions.clone().filter(|of| of.fold.is_some()).count();
        let all = questions.clone().count();
        let asked = subjects.iter().filter(|of| !of.questions.is_empty());
        let stores: BTreeSet<PathBuf> = asked.map(Subject::folder).collect();
        if given == all {
            Ok(Folds::given(questions))
        } else if given > 0 {
            let told = "all do, or none, or --folds says how many there are";
            Err(Failure::Error(
                format!("{given} of {all} questions name their fold: {told}").into(),
            ))
        } else if stores.len() > 1 {
            Ok(Folds::stores(subjects, &stores))
        } else {
            Folds::random(subjects, RANDOM, seed)
        }
    }

    fn given<'a>(questions: impl Iterator<Item = &'a Question> + Clone) -> Folds {
        let folds = || questions.clone().flat_map(|of| &of.fold);
        let mut labels: Vec<&Label> = folds().collect();
        labels.sort();
        labels.dedup();
        let numbers = folds().filter_map(|fold| labels.binary_search(&fold).ok());
        Folds {
            by: By::Given,
            numbers: numbers.collect(),
            names: labels.iter().map(|label| label.to_string()).collect(),
        }
    }

    /// A store that is given several times is one.
    fn stores(subjects: &[Subject<'_>], stores: &BTreeSet<PathBuf>) -> Folds {
        let number = |of: &Subject<'_>| stores.iter().position(|folder| *folder == of.folder());
        let numbers = subjects.iter().filter_map(|of| Some((number(of)?, of)));
        let numbers = numbers.flat_map(|(number, of)| vec![number; of.questions.len()]);
        let folder_name = |folder: &PathBuf| folder.file_name().map(|name| name.to_owned());
        let names: BTreeSet<_> = stores.iter().map(folder_name).collect();
        let is_told_apart = names.len() == stores.len();
        let name = |folder: &PathBuf| match folder_name(folder) {
            Some(name) if is_told_apart => name.display().to_string(),
            _ => folder.display().to_string(),
        };
        Folds {
            by: By::Stores,
            numbers: numbers.collect(),
            names: stores.iter().map(name).collect(),
        }
    }

    fn random(subjects: &[Subject<'_>], folds: usize, seed: u64) -> Result<Folds, Failure> {
        let questions = subjects.iter().map(|of| of.questions.len()).sum();
        let several = NonZeroUsize::new(folds).filter(|folds| folds.get() > 1);
        let Some(folds) = several else {
            let told = "--folds: cross-validation needs at least two";
            return Err(Failure::Usage(told.to_owned()));
        };
        if questions < folds.get() {
            return Err(Failure::Error(
                format!("{folds} folds of {questions} questions: there is not one for each").into(),
            ));
        }
        Ok(Folds {
            by: By::Random,
            names: (1..=folds.get()).map(|number| number.to_string()).collect(),
            numbers: folds_at_random(questions, folds, seed),
        })
    }
}
