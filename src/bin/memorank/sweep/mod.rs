//! `memorank sweep`: how much of a ranking hangs on each weight.

mod chart;

use crate::destination::Destination;
use crate::failure::Failure;
use crate::judged::{self, Answers, Judged, Told};
use crate::output::{Output, counted, escaped, grouped, short};
use crate::settings::{Settings, Told as Computed};
use crate::table::print_table;
use memorank::eval::{Curve, Sweep, sweep};
use memorank::kernel::{Isa, Kernel};
use memorank::scoring::Workspace;
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    judged: Judged,
    #[command(flatten)]
    settings: Settings,
    /// What each weight is multiplied by, with commas between; by default 0, and 1/16 to 16 in steps of 2. A weight of 0 is
    /// taken for 1 then.
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', value_parser = factor)]
    factors: Vec<f64>,
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
    preset: &'a str,
    /// Where the scoring is from, if it is not the preset's.
    #[serde(skip_serializing_if = "Option::is_none")]
    scoring_file: Option<String>,
    settings: Computed<'a>,
    factors: &'a [f64],
    curves: &'a [Curve],
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let preset = args.settings.preset()?;
    if args.settings.decays_by_kind() {
        return Err(Failure::Usage(
            "--decay: a sweep has one decay, without a kind or floor".to_owned(),
        ));
    }
    let factors = args.factors();
    let kernel = Kernel::new(Isa::from_env()?)?;
    let subjects = args.judged.subjects(Answers::NotNeeded)?;
    let svg = Destination::of(args.svg.as_deref(), args.inputs())?;
    let wanted = Sweep {
        preset: &preset,
        factors: &factors,
    };
    let mut workspace = Workspace::with_kernel(kernel);
    let curves = judged::measured(&subjects, &args.judged.asking, |collections, par| {
        sweep(collections, &wanted, par, &mut workspace)
    })?;
    let overlaps = curves.iter().flat_map(|curve| &curve.points);
    if overlaps.clone().any(|point| point.overlap.is_nan()) {
        return Err(Failure::Error(
            "no question returns a memory: there is nothing to compare".into(),
        ));
    }
    let document = Document {
        schema: "memorank.sweep/1",
        collections: subjects.iter().map(|of| &of.told).collect(),
        questions: subjects.iter().map(|of| of.questions.len()).sum(),
        isa: kernel.isa().name(),
        preset: &args.settings.preset,
        scoring_file: args
            .settings
            .scoring
            .as_ref()
            .map(|path| path.display().to_string()),
        settings: Computed::new(&preset, None),
        factors: &factors,
        curves: &curves,
    };
    let written = svg.map_or(Ok(()), |svg| {
        svg.write(&chart::svg(&judged::name(&subjects), &document))
    });
    let told = match out.is_json() {
        true => out.document(&document),
        false => judged::print(&subjects, None, out).and_then(|()| document.print(out)),
    };
    // The figures are shown also if the chart could not be written at last.
    let told = told.and_then(|()| out.flush());
    written.and(told)
}

impl Args {
    fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        self.judged.inputs().chain(self.settings.scoring.clone())
    }

    fn factors(&self) -> Vec<f64> {
        let mut factors = match self.factors.is_empty() {
            true => std::iter::once(0.0)
                .chain((-4..=4).map(|power| 2.0f64.powi(power)))
                .collect(),
            false => self.factors.clone(),
        };
        // + 0.0, because -0 is 0.
        factors.iter_mut().for_each(|factor| *factor += 0.0);
        factors.sort_by(f64::total_cmp);
        factors.dedup();
        factors
    }
}

impl Document<'_> {
    /// What the others are compared with.
    fn compared(&self) -> String {
        let scoring = match &self.scoring_file {
            Some(file) => format!(" with {}", escaped(file)),
            None => String::new(),
        };
        format!(
            "the {} best under preset {}{scoring}",
            grouped(self.settings.preset.k),
            self.preset
        )
    }

    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        out.line(format_args!(
            "\nshare of {} that stays when one weight is multiplied; {}",
            self.compared(),
            counted(self.questions, "question")
        ))?;
        let heads = self.curves.iter().map(|curve| match curve.weight {
            0.0 => format!("{} (0, taken for 1)", curve.signal.name()),
            weight => format!("{} ({})", curve.signal.name(), short(weight)),
        });
        let heads = std::iter::once("factor".to_owned()).chain(heads);
        let lines = self.factors.iter().enumerate().map(|(at, factor)| {
            let cells = self.curves.iter().map(|curve| &curve.points[at]);
            let cells = cells.map(|point| format!("{:.4}", point.overlap));
            std::iter::once(short(*factor)).chain(cells).collect()
        });
        print_table(heads.collect(), lines.collect(), out)
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|f| (0.0..=1e6).contains(f));
    factor.ok_or_else(|| "a number from 0 to 1000000".to_owned())
}
