//! `memorank eval`: scorings side by side, on questions whose right answers are known.

mod chart;

use crate::destination::Destination;
use crate::failure::Failure;
use crate::judged::{self, Answers, Judged, Label, Subject, Told};
use crate::mixes::{self, COSINE};
use crate::output::{Output, counted, escaped, grouped, middle_out};
use crate::resampling::Resampling;
use crate::table::print_table;
use memorank::eval::{Evaluation, Gain, Measure, Places, evaluate, mean};
use memorank::kernel::{Isa, Kernel};
use memorank::scoring::{CandidateRule, Preset, Scoring, Ties, Workspace};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    judged: Judged,
    /// What is compared; given several times, these, each with the first. `cosine` (relevance alone), a preset's name,
    /// weights as in `relevance=1,recency=0.1,half-life=7d` (also `importance`, and `decay` per hour), or a file with a scoring
    /// as JSON, as `tune` writes it. By default cosine and all presets.
    #[arg(long, value_name = "SCORING")]
    compare: Vec<String>,
    /// What is measured: recall@K, precision@K, mrr, mrr@K, ndcg or ndcg@K; given several times, these. The chart and the
    /// table of categories show the first.
    #[arg(
        long,
        value_name = "MEASURE",
        default_values = ["recall@10", "precision@10", "mrr", "ndcg@10"]
    )]
    measure: Vec<Measure>,
    #[command(flatten)]
    resampling: Resampling,
    /// Write a chart to this file, replacing one that is there.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    collections: Vec<&'a Told>,
    questions: usize,
    isa: &'static str,
    #[serde(flatten)]
    bootstrap: &'a Resampling,
    scorings: Vec<Scored<'a>>,
}

#[derive(Serialize)]
struct Scored<'a> {
    name: &'a str,
    /// What it is called in tables.
    #[serde(skip)]
    label: String,
    /// What it is called in the chart.
    #[serde(skip)]
    short: String,
    settings: Settings<'a>,
    /// Relevant memories that do not compete: no scoring with this rule finds them.
    out_of_reach: usize,
    measures: Vec<Value>,
    categories: Vec<Category<'a>>,
}

/// A scoring over the questions of one category.
#[derive(Serialize)]
struct Category<'a> {
    category: &'a Label,
    questions: usize,
    measures: Vec<Value>,
}

#[derive(Serialize)]
struct Settings<'a> {
    scoring: &'a Scoring,
    candidates: CandidateRule,
    ties: Ties,
}

#[derive(Serialize)]
struct Value {
    measure: String,
    mean: f64,
    /// Over the first scoring.
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<Gain>,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let names = args.names();
    let presets = names.iter().map(|name| mixes::preset(name));
    let presets: Vec<Preset> = presets.collect::<Result<_, _>>()?;
    let kernel = Kernel::new(Isa::from_env()?)?;
    let subjects = args.judged.subjects(Answers::Needed)?;
    let svg = Destination::of(args.svg.as_deref(), args.inputs())?;

    let mut workspace = Workspace::with_kernel(kernel);
    let evaluation = judged::measured(&subjects, &args.judged.asking, |collections, par| {
        evaluate(collections, &presets, par, &mut workspace)
    })?;
    // Those that no scoring finds. Rules of presets leave out more.
    let places = evaluation.places.iter();
    let out_of_reach = places.map(|of| of.iter().map(Places::out_of_reach).sum());
    let warning = judged::check_reach(&subjects, out_of_reach.min().unwrap_or(0))?;
    let document = args.document(&names, &presets, &subjects, &evaluation, kernel);
    let written = svg.map_or(Ok(()), |svg| {
        svg.write(&chart::svg(&judged::name(&subjects), &document))
    });
    let told = match out.is_json() {
        true => out.document(&document),
        false => {
            judged::print(&subjects, warning.as_deref(), out).and_then(|()| document.print(out))
        }
    };
    // The figures are shown also if the chart could not be written at last.
    let told = told.and_then(|()| out.flush());
    written.and(told)
}

impl Args {
    /// What is compared may be a file.
    fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        let compared = self.compare.iter().map(PathBuf::from);
        self.judged.inputs().chain(compared)
    }

    fn names(&self) -> Vec<String> {
        match self.compare.is_empty() {
            true => std::iter::once(COSINE)
                .chain(Preset::NAMES)
                .map(str::to_owned)
                .collect(),
            false => self.compare.clone(),
        }
    }

    fn document<'a>(
        &'a self,
        names: &'a [String],
        presets: &'a [Preset],
        subjects: &'a [Subject<'_>],
        evaluation: &Evaluation,
        kernel: Kernel,
    ) -> Document<'a> {
        let questions: Vec<_> = subjects.iter().flat_map(|of| &of.questions).collect();
        let mut categories: BTreeMap<&Label, Vec<usize>> = BTreeMap::new();
        for (index, question) in questions.iter().enumerate() {
            if let Some(category) = &question.category {
                categories.entry(category).or_default().push(index);
            }
        }
        let all: Vec<usize> = (0..questions.len()).collect();
        let measures = |scoring: usize| -> Vec<Vec<f64>> {
            let measures = self.measure.iter();
            measures
                .map(|&measure| evaluation.values(scoring, measure))
                .collect()
        };
        let first = measures(0);
        let (long, short) = (labels(names, 40), labels(names, chart::NAME));
        let scorings = names.iter().zip(presets).enumerate();
        let scorings = scorings.map(|(index, (name, preset))| {
            let own = measures(index);
            let baseline = (index > 0).then_some(&first[..]);
            let measured = |of: &[usize]| self.measured(&own, baseline, of);
            let places = evaluation.places[index].iter();
            Scored {
                name,
                label: long[index].clone(),
                short: short[index].clone(),
                settings: Settings {
                    scoring: &preset.scoring,
                    candidates: preset.candidates,
                    ties: preset.ties,
                },
                out_of_reach: places.map(Places::out_of_reach).sum(),
                measures: measured(&all),
                categories: (categories.iter())
                    .map(|(&category, of)| Category {
                        category,
                        questions: of.len(),
                        measures: measured(of),
                    })
                    .collect(),
            }
        });
        Document {
            schema: "memorank.eval/1",
            collections: subjects.iter().map(|of| &of.told).collect(),
            questions: questions.len(),
            isa: kernel.isa().name(),
            bootstrap: &self.resampling,
            scorings: scorings.collect(),
        }
    }

    /// All measures over some questions, of which there are values by measure and question.
    fn measured(
        &self,
        values: &[Vec<f64>],
        baseline: Option<&[Vec<f64>]>,
        of: &[usize],
    ) -> Vec<Value> {
        let bootstrap = self.resampling.bootstrap();
        let some = |values: &[f64]| -> Vec<f64> { of.iter().map(|&at| values[at]).collect() };
        let measures = self.measure.iter().enumerate().map(|(at, measure)| {
            let own = some(&values[at]);
            Value {
                measure: measure.to_string(),
                mean: mean(&own),
                gain: baseline.map(|baseline| bootstrap.gain(&own, &some(&baseline[at]))),
            }
        });
        measures.collect()
    }
}

impl Document<'_> {
    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let Some((first, others)) = self.scorings.split_first() else {
            return Ok(());
        };
        let measures = first.measures.iter().map(|of| of.measure.clone());
        let heads: Vec<_> = std::iter::once("scoring".to_owned())
            .chain(measures)
            .collect();
        out.line(format_args!("\n{}", counted(self.questions, "question")))?;
        let means = self
            .scorings
            .iter()
            .map(|of| of.line(of.measures.iter().map(Value::told)));
        print_table(heads.clone(), means.collect(), out)?;
        if !others.is_empty() {
            out.line(format_args!(
                "\nover {}, with 95 % intervals ({} paired resamples, seed {})",
                first.label,
                grouped(self.bootstrap.resamples.get()),
                self.bootstrap.seed
            ))?;
            let gains = others.iter().map(|of| {
                let gains = of.measures.iter().filter_map(|of| of.gain);
                of.line(gains.map(|of| gain(&of)))
            });
            print_table(heads, gains.collect(), out)?;
        }
        if first.categories.is_empty() {
            return Ok(());
        }
        out.line(format_args!("\n{} by category", first.measures[0].measure))?;
        let names = self.scorings.iter().map(|of| of.label.clone());
        let heads = std::iter::once("category".to_owned()).chain(names);
        let lines = first.categories.iter().enumerate().map(|(at, category)| {
            let cells = self
                .scorings
                .iter()
                .map(|of| of.categories[at].measures[0].told());
            std::iter::once(category.told()).chain(cells).collect()
        });
        print_table(heads.collect(), lines.collect(), out)
    }
}

impl Scored<'_> {
    /// A line of a table.
    fn line(&self, cells: impl Iterator<Item = String>) -> Vec<String> {
        std::iter::once(self.label.clone()).chain(cells).collect()
    }
}

impl Category<'_> {
    /// Its name, and how many questions it has.
    fn told(&self) -> String {
        let name = middle_out(&self.category.to_string(), 24);
        format!("{name} ({})", grouped(self.questions))
    }
}

impl Value {
    fn told(&self) -> String {
        format!("{:.4}", self.mean)
    }
}

/// Names cut to so many columns, and numbered if they would be the same then.
fn labels(names: &[String], columns: usize) -> Vec<String> {
    let cut = |name: &String, columns| middle_out(&escaped(name), columns);
    let labels: Vec<String> = names.iter().map(|name| cut(name, columns)).collect();
    let distinct: BTreeSet<&String> = labels.iter().collect();
    match distinct.len() == labels.len() {
        true => labels,
        false => (1..)
            .zip(names)
            .map(|(number, name)| format!("{number}: {}", cut(name, columns - 4)))
            .collect(),
    }
}

/// -0.3546 (-0.3810 to -0.3285)
pub fn gain(gain: &Gain) -> String {
    let Gain { mean, low, high } = gain;
    format!("{mean:+.4} ({low:+.4} to {high:+.4})")
}
