//! `memorank bench`: how fast a store is ranked, beside the plain read of the same bytes.

mod chart;
mod measure;
mod part;
mod scan;

use crate::demo::Verdict;
use crate::destination::Destination;
use crate::failure::Failure;
use crate::opened::{self, newest_access};
use crate::output::{Output, escaped, grouped, progress};
use crate::show;
use crate::threads::on_threads;
use crate::values::whole;
use chart::{Chart, share, speed};
use measure::{Figures, Subject};
use memorank::Par;
use memorank::import::timestamp::format_us;
use memorank::kernel::{Isa, Kernel};
use memorank::oracle::{self, Comparison};
use memorank::scoring::{Preset, Workspace};
use memorank::store::{Agent, Snapshot};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder. No byte of it changes.
    store: PathBuf,
    /// How many memories a ranking returns.
    #[arg(short, long, default_value_t = 30, value_parser = whole, allow_negative_numbers = true)]
    k: usize,
    /// How often everything is timed, in turn; medians are reported.
    #[arg(long, default_value_t = 15, value_parser = rounds, allow_negative_numbers = true)]
    rounds: usize,
    /// Write a chart of the figures to this file, replacing one that is there.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Queries are embeddings of so many of the store's memories, evenly spread.
const QUERIES: usize = 3;
/// The oracle is slow: it looks at so many of the first memories at most.
const CHECKED: usize = 20_000;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    store: String,
    memories: usize,
    without_vector: usize,
    dim: usize,
    dtype: &'static str,
    isa: &'static str,
    preset: &'static str,
    k: usize,
    now: String,
    now_us: i64,
    /// Ids of the memories whose embeddings were the queries.
    queries: Vec<u64>,
    rounds: usize,
    oracle: Oracle,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Serialize)]
struct Oracle {
    /// The first memories, which were compared.
    checked: usize,
    /// Over all queries.
    #[serde(flatten)]
    verdict: Verdict,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let kernel = Kernel::new(Isa::from_env()?)?;
    let snapshot = opened::to_read(&args.store)?.snapshot();
    let with_vector = with_vector(args, &snapshot)?;
    // Before minutes of measuring.
    let svg = Destination::of(args.svg.as_deref(), [args.store.clone()])?;

    let mut preset = Preset::paper();
    preset.k = args.k;
    let rows = queries(&snapshot, with_vector);
    let queries = rows.iter().map(|&row| {
        let embedding = show::embedding(&snapshot, row)?;
        Ok(embedding.expect("a row with a vector was chosen"))
    });
    let queries = queries.collect::<Result<Vec<_>, Failure>>()?;
    let subject = Subject {
        snapshot: &snapshot,
        kernel,
        queries: &queries,
        // Answers do not depend on a clock.
        now: newest_access(&snapshot, Agent::OWN).unwrap_or(0),
        preset: &preset,
    };
    let (oracle, figures) = on_threads(0, |par| {
        let oracle = check(&subject, par)?;
        let bar = progress(args.rounds as u64, "measuring");
        let figures = subject.measure(args.rounds, par, |round| bar.set_position(round as u64))?;
        bar.finish_and_clear();
        Ok::<_, Failure>((oracle, figures))
    })??;

    let document = Document {
        schema: "memorank.bench/1",
        store: args.store.display().to_string(),
        memories: snapshot.len(),
        without_vector: snapshot.len() - with_vector,
        dim: snapshot.dim().get(),
        dtype: snapshot.dtype().name(),
        isa: kernel.isa().name(),
        preset: "paper",
        k: args.k,
        now: format_us(subject.now),
        now_us: subject.now,
        queries: rows.iter().map(|&row| snapshot.id(row)).collect(),
        rounds: args.rounds,
        oracle,
        figures,
    };
    let written = svg.map_or(Ok(()), |destination| destination.write(&document.chart()));
    let told = match out.is_json() {
        true => out.document(&document),
        false => print(&document, out),
    };
    // The figures are shown also if the chart could not be written at last.
    let told = told.and_then(|()| out.flush());
    written.and(told)
}

fn rounds(text: &str) -> Result<usize, String> {
    let rounds = text.parse().ok().filter(|n| (1..=10_000).contains(n));
    rounds.ok_or_else(|| "a whole number from 1 to 10000".to_owned())
}

/// How many memories have a vector: at least one.
fn with_vector(args: &Args, snapshot: &Snapshot) -> Result<usize, Failure> {
    let (memories, with_vector) = (snapshot.len(), vectors(snapshot).count());
    let path = args.store.display();
    match (memories, with_vector) {
        (0, _) => Err(format!(
            "{path} has no memories: there is nothing to measure"
        )),
        (_, 0) => Err(format!(
            "none of the {} memories of {path} has a vector: there is nothing to rank",
            grouped(memories)
        )),
        _ => Ok(with_vector),
    }
    .map_err(|e| Failure::Error(e.into()))
}

/// The rows whose memories have a vector.
fn vectors(snapshot: &Snapshot) -> impl Iterator<Item = usize> {
    (0..snapshot.rows()).filter(|&row| snapshot.is_live(row) && snapshot.has_embedding(row))
}

/// Rows to ask with.
fn queries(snapshot: &Snapshot, with_vector: usize) -> Vec<usize> {
    let n = QUERIES.min(with_vector);
    let mut left = vectors(snapshot);
    let step = with_vector / n;
    (0..n)
        .filter_map(|i| left.nth(if i == 0 { 0 } else { step - 1 }))
        .collect()
}

/// Nothing is timed before its answer is right.
fn check(subject: &Subject<'_>, par: Par) -> Result<Oracle, Failure> {
    let checked = subject.snapshot.len().min(CHECKED);
    let part = subject.first(checked);
    let part = part.map_err(|e| Failure::Error(e.into()))?;
    let mut workspace = Workspace::with_kernel(subject.kernel);
    let scoring = &subject.preset.scoring;
    let mut all: Option<Comparison> = None;
    for index in 0..subject.queries.len() {
        let query = part.asked(&subject.query(index));
        let one = oracle::compare(&part.columns, &query, scoring, par, &mut workspace)?;
        all = Some(all.map_or(one, |all| {
            Comparison {
                largest_cosine_difference: all
                    .largest_cosine_difference
                    .max(one.largest_cosine_difference),
                same_order: all.same_order && one.same_order,
                largest_total_difference: all
                    .largest_total_difference
                    .max(one.largest_total_difference),
                ..one
            }
        }));
    }
    match all {
        Some(all) if all.agrees() => Ok(Oracle {
            checked,
            verdict: Verdict::new(&all),
        }),
        _ => Err(Failure::Error(
            format!(
                "the f64 oracle disagrees on the first {checked} memories: nothing was measured"
            )
            .into(),
        )),
    }
}

/// 1 thread, 2 threads.
fn threads(n: usize) -> String {
    match n {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    }
}

impl Document {
    /// Said of the store, of the ranking.
    fn subject(&self) -> String {
        let (dim, dtype) = (self.dim, self.dtype);
        format!("{} memories x {dim} {dtype}", grouped(self.memories))
    }

    fn method(&self) -> String {
        let rounds = match self.rounds {
            1 => "1 round".to_owned(),
            n => format!("medians of {n} rounds"),
        };
        format!(
            "preset {}, k {}, {}, {rounds}",
            self.preset, self.k, self.isa
        )
    }

    fn chart(&self) -> String {
        let path = PathBuf::from(&self.store);
        let name = path.file_name().map_or(&*self.store, |name| {
            name.to_str().expect("a part of a text is a text")
        });
        chart::svg(&Chart {
            name,
            subject: &self.subject(),
            method: &self.method(),
            figures: &self.figures,
        })
    }
}

fn print(document: &Document, out: &mut Output) -> Result<(), Failure> {
    let store = escaped(&document.store);
    out.heading(format_args!("{store}: {}", document.subject()))?;
    if document.without_vector > 0 {
        let n = grouped(document.without_vector);
        out.line(format_args!("without a vector: {n}"))?;
    }
    out.line(document.method())?;
    let Oracle { checked, verdict } = &document.oracle;
    out.line(format_args!(
        "f64 oracle, first {} memories: agrees; cosines differ by at most {:.1e} (bound {:.1e}), totals by {:.0e}\n",
        grouped(*checked),
        verdict.largest_cosine_difference,
        verdict.cosine_bound,
        verdict.largest_total_difference
    ))?;

    out.heading(format_args!(
        "{:<12} {:<12} {:>12} {:>10} {:>8}",
        "", "", "ms", "GB/s", "ratio"
    ))?;
    for lane in &document.figures.roofline {
        for (name, measured) in lane.named() {
            out.line(format_args!(
                "{:<12} {name:<12} {:>12.4} {:>10} {:>8}",
                threads(lane.threads),
                measured.seconds * 1e3,
                speed(measured.gb_per_s),
                share(measured.of_plain_read)
            ))?;
        }
    }
    out.line("")?;
    out.heading(format_args!(
        "{:<12} {:>12} {:>12} {:>12} {:>10} {:>8}",
        "", "memories", "read ms", "ranking ms", "GB/s", "ratio"
    ))?;
    for point in &document.figures.growth {
        out.line(format_args!(
            "{:<12} {:>12} {:>12.4} {:>12.4} {:>10} {:>8}",
            threads(point.threads),
            grouped(point.memories),
            point.plain_read.seconds * 1e3,
            point.ranking.seconds * 1e3,
            speed(point.ranking.gb_per_s),
            share(point.ranking.of_plain_read)
        ))?;
    }
    out.line("\nratio: GB/s beside those of the plain read on the same threads; 1 is as fast")
}
