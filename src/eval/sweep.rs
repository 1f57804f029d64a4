//! How much of a ranking hangs on each weight.

use super::case::of_each;
use super::{Collection, EvalError};
use crate::Par;
use crate::scoring::{Preset, Ranking, Workspace};

/// What is varied, and what is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// The setting that others are compared with. Its k counts, its result order and touch do not.
    pub preset: &'a Preset,
    /// What each weight is multiplied by in turn while the two others stay. A weight of 0 is taken for 1 then.
    pub factors: &'a [f64],
}

/// A component of the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Signal {
    /// The cosine.
    Relevance,
    /// What remains since the last access.
    Recency,
    /// The stored number.
    Importance,
}

impl Signal {
    /// All of them, in the order in which they are added up.
    pub const ALL: [Signal; 3] = [Signal::Relevance, Signal::Recency, Signal::Importance];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Relevance => "relevance",
            Signal::Recency => "recency",
            Signal::Importance => "importance",
        }
    }
}

/// What one weight does.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Curve {
    /// Whose weight.
    pub signal: Signal,
    /// As it is in the preset.
    pub weight: f64,
    /// A point for each factor.
    pub points: Vec<Point>,
}

/// What one weight does at one value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Point {
    /// The weight.
    pub weight: f64,
    /// Which share of the best k of the preset are among the best k with this weight, in [0, 1]: the mean over all
    /// questions that have candidates; NaN if none has.
    pub overlap: f64,
}

/// Ranks every question under the preset and with each of its weights changed, and tells which share of the best k
/// stays. What is relevant to a question is not looked at.
///
/// # Errors
/// A preset, or a factor times a weight, out of range; a question that cannot be asked, and what is damaged; no
/// question at all.
pub fn sweep(
    collections: &[Collection<'_>],
    sweep: &Sweep<'_>,
    par: Par,
    workspace: &mut Workspace,
) -> Result<Vec<Curve>, EvalError> {
    if collections.iter().all(|of| of.questions.is_empty()) {
        return Err(EvalError::NoQuestions);
    }
    let preset = sweep.preset;
    let mut curves = Signal::ALL.map(|signal| sweep.curve(signal)).to_vec();
    let points = || curves.iter().flat_map(Curve::varied);
    let settings: Vec<_> = std::iter::once(preset.scoring)
        .chain(points().map(|(signal, weight)| {
            let mut scoring = preset.scoring;
            let weights = &mut scoring.weights;
            *match signal {
                Signal::Relevance => &mut weights.relevance,
                Signal::Recency => &mut weights.recency,
                Signal::Importance => &mut weights.importance,
            } = weight;
            scoring
        }))
        .collect();
    for (setting, scoring) in settings.iter().enumerate() {
        let checked = scoring.check();
        checked.map_err(|error| EvalError::Setting { setting, error })?;
    }

    // Of each question how many stay, of how many.
    let kept = of_each(collections, par, workspace, |question, workspace| {
        let case = question.case(preset.candidates)?;
        let mut ranking = Ranking::default();
        let mut best: Option<Vec<usize>> = None;
        let mut kept = Vec::with_capacity(settings.len() - 1);
        for scoring in &settings {
            case.top(scoring, preset.ties, preset.k, workspace, &mut ranking)?;
            let mut rows: Vec<usize> = ranking.hits.iter().map(|hit| hit.row).collect();
            rows.sort_unstable();
            match &best {
                None => best = Some(rows),
                Some(best) => {
                    let stays = |row: &&usize| best.binary_search(row).is_ok();
                    kept.push(rows.iter().filter(stays).count());
                }
            }
        }
        Ok((best.map_or(0, |best| best.len()), kept))
    })?;
    let kept = || kept.iter().filter(|(of, _)| *of > 0);
    let questions = kept().count();
    let points = curves.iter_mut().flat_map(|curve| &mut curve.points);
    for (at, point) in points.enumerate() {
        let shares = kept().map(|(of, kept)| kept[at] as f64 / *of as f64);
        point.overlap = shares.sum::<f64>() / questions as f64;
    }
    Ok(curves)
}

impl Sweep<'_> {
    /// Before anything is ranked.
    fn curve(&self, signal: Signal) -> Curve {
        let weights = self.preset.scoring.weights;
        let weight = match signal {
            Signal::Relevance => weights.relevance,
            Signal::Recency => weights.recency,
            Signal::Importance => weights.importance,
        };
        let unit = if weight == 0.0 { 1.0 } else { weight };
        let points = self.factors.iter().map(|factor| Point {
            weight: factor * unit,
            overlap: f64::NAN,
        });
        Curve {
            signal,
            weight,
            points: points.collect(),
        }
    }
}

impl Curve {
    fn varied(&self) -> impl Iterator<Item = (Signal, f64)> + '_ {
        let points = self.points.iter();
        points.map(|point| (self.signal, point.weight))
    }
}
