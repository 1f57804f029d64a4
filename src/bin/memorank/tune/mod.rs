//! `memorank tune`: weights and a decay for questions whose right answers are known.

mod chart;
mod folds;
mod grid;

use crate::destination::Destination;
use crate::eval::gain;
use crate::failure::Failure;
use crate::judged::{self, Answers, Judged, Told};
use crate::output::{Output, counted, escaped, grouped, middle_out, short};
use crate::resampling::Resampling;
use crate::table::print_table;
use crate::values::whole;
use folds::{By, Folds};
use grid::Tried;
use memorank::eval::{Gain, Grid, Measure, Tuned, Tuning, tune};
use memorank::kernel::{Isa, Kernel};
use memorank::scoring::{Scoring, Workspace};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    judged: Judged,
    /// What is to be large: recall@K, precision@K, mrr, mrr@K, ndcg or ndcg@K.
    #[arg(long, value_name = "MEASURE", default_value = "recall@10")]
    measure: Measure,
    /// Cut the questions into so many folds at random (by --seed). By default the folds are those that the questions name;
    /// or else each store's questions are one; or else, of one store, there are five at random.
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    folds: Option<usize>,
    #[command(flatten)]
    tried: Tried,
    #[command(flatten)]
    resampling: Resampling,
    /// Write the scoring to this file as JSON, replacing one that is there: `query --scoring` takes it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a chart to this file, replacing one that is there.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// A value for each setting and question takes 8 bytes.
const VALUES: usize = 200_000_000;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    collections: Vec<&'a Told>,
    questions: usize,
    isa: &'static str,
    #[serde(flatten)]
    bootstrap: &'a Resampling,
    measure: String,
    /// Relevant memories that do not compete: no setting finds them.
    out_of_reach: usize,
    /// How many were tried.
    settings: usize,
    folds_by: By,
    folds: Vec<Fold>,
    /// The held-out gain over cosine alone.
    gain: Gain,
    /// Whether its whole interval lies above 0.
    beats_cosine: bool,
    /// Cosine alone, over all questions.
    cosine: f64,
    best: Best,
    near: Near,
    /// What to use.
    scoring: Scoring,
}

#[derive(Serialize)]
struct Fold {
    fold: String,
    questions: usize,
    /// The setting that was best on the other folds.
    setting: Setting,
    /// Its mean on those.
    trained: f64,
    /// Its mean on this fold.
    held_out: f64,
    /// That of cosine alone.
    cosine: f64,
}

/// A setting of the grid; the weight of relevance is 1.
#[derive(Clone, Copy, Serialize)]
struct Setting {
    recency: f64,
    importance: f64,
    decay: f64,
}

/// The setting that is best on all questions.
#[derive(Serialize)]
struct Best {
    #[serde(flatten)]
    setting: Setting,
    mean: f64,
}

/// Those that cannot be told from the best: from the least to the largest of each number.
#[derive(Serialize)]
struct Near {
    settings: usize,
    recency: [f64; 2],
    importance: [f64; 2],
    /// Of those with a weight of recency; nothing if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    decay: Option<[f64; 2]>,
}

impl Setting {
    fn of(scoring: &Scoring) -> Setting {
        Setting {
            recency: scoring.weights.recency,
            importance: scoring.weights.importance,
            decay: scoring.decay().unwrap_or(1.0),
        }
    }

    fn cells(self) -> [String; 3] {
        let half_life = match self.recency > 0.0 {
            true => hours(self.decay),
            false => "-".to_owned(),
        };
        [short(self.recency), half_life, short(self.importance)]
    }
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let settings = args.tried.settings()?;
    let kernel = Kernel::new(Isa::from_env()?)?;
    let subjects = args.judged.subjects(Answers::Needed)?;
    let folds = Folds::new(&subjects, args.folds, args.resampling.seed)?;
    if settings.len().saturating_mul(folds.numbers.len()) > VALUES {
        let told = format!(
            "{} and {} are more than {} to try: take fewer of either",
            counted(settings.len(), "setting"),
            counted(folds.numbers.len(), "question"),
            grouped(VALUES)
        );
        return Err(Failure::Error(told.into()));
    }
    let scoring_file = Destination::of(args.out.as_deref(), args.judged.inputs())?;
    let svg = Destination::of(args.svg.as_deref(), args.judged.inputs())?;
    if let (Some(scoring), Some(chart)) = (&scoring_file, &svg)
        && scoring.path() == chart.path()
    {
        return Err(Failure::Usage(
            "--out and --svg are the same file".to_owned(),
        ));
    }

    let tuning = Tuning {
        settings: &settings,
        measure: args.measure,
        folds: &folds.numbers,
        bootstrap: args.resampling.bootstrap(),
    };
    let mut workspace = Workspace::with_kernel(kernel);
    let tuned = judged::measured(&subjects, &args.judged.asking, |collections, par| {
        tune(collections, &tuning, par, &mut workspace)
    })?;

    let warning = judged::check_reach(&subjects, tuned.out_of_reach)?;
    let near = Near::new(&settings, &tuned);
    let fold = |fold: &memorank::eval::Fold| Fold {
        fold: folds.names[fold.fold].clone(),
        questions: fold.questions,
        setting: Setting::of(&settings[fold.setting]),
        trained: fold.trained,
        held_out: fold.held_out,
        cosine: fold.first,
    };
    let document = Document {
        schema: "memorank.tune/1",
        collections: subjects.iter().map(|of| &of.told).collect(),
        questions: folds.numbers.len(),
        isa: kernel.isa().name(),
        bootstrap: &args.resampling,
        measure: args.measure.to_string(),
        out_of_reach: tuned.out_of_reach,
        settings: settings.len(),
        folds_by: folds.by,
        folds: tuned.folds.iter().map(fold).collect(),
        gain: tuned.gain,
        beats_cosine: tuned.chosen != 0,
        cosine: tuned.means[0],
        best: Best {
            setting: Setting::of(&settings[tuned.best]),
            mean: tuned.means[tuned.best],
        },
        near,
        scoring: settings[tuned.chosen],
    };
    let write = || {
        if let Some(file) = &scoring_file {
            let json = serde_json::to_string_pretty(&document.scoring);
            file.write(&(json.map_err(|e| Failure::Error(e.into()))? + "\n"))?;
        }
        if let Some(svg) = &svg {
            let name = judged::name(&subjects);
            svg.write(&chart::svg(&name, &document, &settings, &tuned.means))?;
        }
        Ok(())
    };
    let written = write();
    let told = match out.is_json() {
        true => out.document(&document),
        false => {
            judged::print(&subjects, warning.as_deref(), out).and_then(|()| document.print(out))
        }
    };
    // The figures are shown also if a file could not be written at last.
    let told = told.and_then(|()| out.flush());
    written.and(told)
}

impl Near {
    fn new(settings: &[Scoring], tuned: &Tuned) -> Near {
        let near = || tuned.near.iter().map(|&at| Setting::of(&settings[at]));
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], x| {
                [least.min(x), most.max(x)]
            })
        };
        let mut decays = near().filter(|of| of.recency > 0.0).map(|of| of.decay);
        Near {
            settings: tuned.near.len(),
            recency: range(&mut near().map(|of| of.recency)),
            importance: range(&mut near().map(|of| of.importance)),
            decay: Some(range(&mut decays)).filter(|[least, _]| least.is_finite()),
        }
    }
}

impl Document<'_> {
    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let by = match self.folds_by {
            By::Given => "as the questions say",
            By::Stores => "a store each",
            By::Random => "at random",
        };
        out.line(format_args!(
            "\n{}, {}, {}; {}, {by}\n",
            counted(self.questions, "question"),
            counted(self.settings, "setting"),
            self.measure,
            counted(self.folds.len(), "fold")
        ))?;
        let heads = [
            "fold",
            "questions",
            "recency",
            "half-life",
            "importance",
            "trained",
            "held out",
            "cosine",
            "gain",
        ];
        let lines = self.folds.iter().map(|fold| {
            let mut cells = vec![
                middle_out(&escaped(&fold.fold), 24),
                grouped(fold.questions),
            ];
            cells.extend(fold.setting.cells());
            let numbers = [fold.trained, fold.held_out, fold.cosine];
            cells.extend(numbers.map(|number| format!("{number:.4}")));
            cells.push(format!("{:+.4}", fold.held_out - fold.cosine));
            cells
        });
        print_table(heads.map(str::to_owned).to_vec(), lines.collect(), out)?;
        out.line(format_args!(
            "\nheld-out gain over cosine alone: {}, 95 % interval of {} paired resamples, seed {}",
            gain(&self.gain),
            grouped(self.bootstrap.resamples.get()),
            self.bootstrap.seed
        ))?;
        let [recency, half_life, importance] = self.best.setting.cells();
        out.line(format_args!(
            "best on all questions: recency {recency}, half-life {half_life}, importance {importance}: {:.4}; cosine \
             alone: {:.4}",
            self.best.mean, self.cosine
        ))?;
        out.line(format_args!(
            "{} of {} settings are within two standard errors of it: {}",
            grouped(self.near.settings),
            grouped(self.settings),
            self.near.told()
        ))?;
        out.heading(if self.beats_cosine {
            "\nThe gain is more than chance: the scoring is the best on all questions.".to_owned()
        } else if self.questions < Tuned::FEWEST_QUESTIONS {
            format!(
                "\nFewer than {} questions tell nothing for sure: the scoring is cosine alone.",
                Tuned::FEWEST_QUESTIONS
            )
        } else {
            "\nNothing beats cosine alone by more than chance: the scoring is cosine alone."
                .to_owned()
        })?;
        let scoring = serde_json::to_string(&self.scoring).map_err(|e| Failure::Error(e.into()))?;
        out.line(scoring)
    }
}

impl Near {
    fn told(&self) -> String {
        let range = |[least, most]: [f64; 2]| match least == most {
            true => short(least),
            false => format!("{} to {}", short(least), short(most)),
        };
        let half_lives = match self.decay {
            None => "-".to_owned(),
            Some([least, most]) if least == most => hours(least),
            Some([least, most]) => format!("{} to {}", hours(least), hours(most)),
        };
        let (recency, importance) = (range(self.recency), range(self.importance));
        format!("recency {recency}, half-life {half_lives}, importance {importance}")
    }
}

/// Hours.
const YEAR: f64 = 8_766.0;

/// The half-life of a decay per hour: 1 h, 138 h, 171 d, 15 y; none for a decay of 1.
fn hours(decay: f64) -> String {
    let hours = Grid::half_life_of_decay(decay);
    let told = |x: f64, unit: &str| {
        let is_whole = x >= 100.0 || (x - x.round()).abs() < 0.05;
        let digits = if is_whole { 0 } else { 1 };
        format!("{x:.digits$} {unit}")
    };
    match hours {
        h if h.is_infinite() => "none".to_owned(),
        h if h >= 2.0 * YEAR => told(h / YEAR, "y"),
        h if h >= 1_000.0 => told(h / 24.0, "d"),
        h if h >= 1.0 => told(h, "h"),
        h if h >= 1.0 / 60.0 => told(h * 60.0, "min"),
        h => told(h * 3_600.0, "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_lives_are_short() {
        for (decay, told) in [
            (0.5, "1 h"),
            (0.995, "138 h"),
            (0.0, "0 s"),
            (Grid::decay_of_half_life(1.0 / 60.0), "1 min"),
            (Grid::decay_of_half_life(0.01), "36 s"),
            (1.0, "none"),
            (Grid::decay_of_half_life(8.0), "8 h"),
            (Grid::decay_of_half_life(2.5), "2.5 h"),
            (Grid::decay_of_half_life(4_096.0), "171 d"),
            (Grid::decay_of_half_life(1_020.0), "42.5 d"),
            (Grid::decay_of_half_life(16_384.0), "683 d"),
            (Grid::decay_of_half_life(131_072.0), "15 y"),
        ] {
            assert_eq!(hours(decay), told);
        }
    }
}
