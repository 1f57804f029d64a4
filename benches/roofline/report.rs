//! What was promised, and what was found.

use crate::machine::{Setup, cpu_model};
use memorank::Par;
use memorank::kernel::Dtype;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Something that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    YardstickLoops,
    YardstickRankings,
    ScanAvx512,
    ScanAvx2,
    Ranking384,
    RankingLarger,
    Growth,
    Batch16,
    Batch64,
    Filter,
    Small1000,
    Small100,
    Agents,
    Allocations,
    Scratch,
    Anonymous,
    Open,
    Append,
    Tail,
    Touch,
    AppendOne,
    OpenJournal,
    Reader,
    Retrieve,
}

enum Limit {
    AtLeast(f64),
    AtMost(f64),
}
use Limit::{AtLeast, AtMost};

struct Target {
    goal: Goal,
    what: &'static str,
    limit: Limit,
    unit: &'static str,
}

const fn target(goal: Goal, what: &'static str, limit: Limit, unit: &'static str) -> Target {
    Target {
        goal,
        what,
        limit,
        unit,
    }
}

/// All targets: the one place for their numbers. For a machine of 2 cores with AVX-512.
#[rustfmt::skip]
const TARGETS: [Target; 24] = [
    target(Goal::YardstickLoops, "other read loops over the plain read", AtMost(1.02), "x its speed"),
    target(Goal::YardstickRankings, "scans and rankings over the plain read", AtMost(1.02), "x its speed"),
    target(Goal::ScanAvx512, "cosine scan, AVX-512", AtLeast(0.95), "x the plain read's speed"),
    target(Goal::ScanAvx2, "cosine scan, AVX2", AtLeast(0.90), "x the plain read's speed"),
    target(Goal::Ranking384, "ranking, top 30, 384 elements", AtLeast(0.88), "x the plain read's speed"),
    target(Goal::RankingLarger, "ranking, top 30, 768 and 1536 elements", AtLeast(0.92), "x the plain read's speed"),
    target(Goal::Growth, "best over worst ratio, 100k to 10M rows", AtMost(1.10), "x"),
    target(Goal::Batch16, "16 queries in one call", AtMost(2.0), "x the time of one"),
    target(Goal::Batch64, "64 queries in one call", AtMost(6.0), "x the time of one"),
    target(Goal::Filter, "a filter that keeps 1 % of the rows", AtMost(0.05), "of the full time"),
    target(Goal::Small1000, "1,000 x 384 f16, one ranking", AtMost(20.0), "us"),
    target(Goal::Small100, "100 x 384 f16, one ranking", AtMost(3.0), "us"),
    target(Goal::Agents, "1,000 agents in one call", AtLeast(0.80), "x the plain read's speed"),
    target(Goal::Allocations, "allocations of a reused workspace, serial", AtMost(0.0), "calls"),
    target(Goal::Scratch, "scratch per row and query", AtMost(4.0), "bytes"),
    target(Goal::Open, "open, 1M rows, warm", AtMost(5.0), "ms"),
    target(Goal::Append, "bulk append", AtLeast(0.5), "x the speed of plain writing"),
    target(Goal::Anonymous, "anonymous memory of a process that opens and ranks", AtMost(64.0), "MB"),
    target(Goal::Tail, "ranking of 1M rows and a full tail", AtMost(1.03), "x the time without a tail"),
    target(Goal::Touch, "touch of 30, buffered", AtMost(10.0), "us"),
    target(Goal::AppendOne, "append of one, on disk", AtMost(1.3), "x one write and sync of its bytes"),
    target(Goal::OpenJournal, "open, 64 MiB of journal", AtMost(1.0), "s"),
    target(Goal::Reader, "99 of 100 rankings of 100,000 rows while 1M are appended", AtMost(2.0), "x the time alone"),
    target(Goal::Retrieve, "retrieval of 30 of 1M with a touch", AtMost(1.02), "x the ranking"),
];

impl Limit {
    fn holds(&self, measured: f64) -> bool {
        match *self {
            AtLeast(limit) => measured >= limit,
            AtMost(limit) => measured <= limit,
        }
    }

    /// The worse of two values.
    fn worse(&self, a: f64, b: f64) -> f64 {
        match self {
            AtLeast(_) => a.min(b),
            AtMost(_) => a.max(b),
        }
    }

    fn words(&self) -> String {
        match self {
            AtLeast(limit) => format!(">= {limit}"),
            AtMost(limit) => format!("<= {limit}"),
        }
    }
}

/// One measurement that a goal is about.
struct Case {
    goal: Goal,
    name: String,
    measured: f64,
}

/// Figures and verdicts as they come in.
pub struct Report {
    machine: Value,
    figures: Map<String, Value>,
    cases: Vec<Case>,
}

impl Report {
    pub fn new(setup: &Setup) -> Report {
        let isas: Vec<&str> = setup.kernels.iter().map(|k| k.isa().name()).collect();
        let machine = json!({
            "cpu": cpu_model(),
            "threads": Par::Rayon.threads(),
            "isa": setup.judged.isa().name(),
            "isas": isas,
            "tiny": setup.tiny,
        });
        Report {
            machine,
            figures: Map::new(),
            cases: Vec::new(),
        }
    }

    /// Keeps a figure of a part for the JSON file.
    pub fn figure(&mut self, part: &str, figure: Value) {
        let figures = self.figures.entry(part).or_insert_with(|| json!([]));
        figures.as_array_mut().expect("only made here").push(figure);
    }

    /// Takes a measurement, in the goal's unit, that its target has to hold for.
    pub fn judge(&mut self, goal: Goal, name: impl Into<String>, measured: f64) {
        let name = name.into();
        self.cases.push(Case {
            goal,
            name,
            measured,
        });
    }

    /// One line for each target, with its worst case. Gives whether none was missed.
    pub fn print_verdicts(&self) -> bool {
        let mut held = true;
        for target in &TARGETS {
            let cases: Vec<&Case> = self.cases_of(target).collect();
            let limit = &target.limit;
            let worst = (cases.iter())
                .map(|case| case.measured)
                .reduce(|a, b| limit.worse(a, b));
            let worst = worst.and_then(|worst| cases.iter().find(|case| case.measured == worst));
            let Some(worst) = worst else {
                println!("{:>6}  {}: not measured", "-", target.what);
                continue;
            };
            let missed = cases
                .iter()
                .filter(|case| !limit.holds(case.measured))
                .count();
            held &= missed == 0;
            let (word, missed) = match missed {
                0 => ("held", String::new()),
                missed => ("MISSED", format!("; {missed} of {} missed", cases.len())),
            };
            println!(
                "{word:>6}  {}: {:.3} {}, target {} ({}{missed})",
                target.what,
                worst.measured,
                target.unit,
                limit.words(),
                worst.name,
            );
        }
        held
    }

    /// Writes figures, verdicts and the machine as JSON.
    pub fn save(&self, path: &Path) {
        let verdicts: Vec<Value> = TARGETS
            .iter()
            .flat_map(|target| self.verdicts_of(target))
            .collect();
        let document = json!({
            "schema": "memorank.roofline/1",
            "machine": self.machine,
            "figures": self.figures,
            "verdicts": verdicts,
        });
        let text = serde_json::to_string_pretty(&document).expect("a value is JSON");
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("the JSON file's folder can be made");
        }
        std::fs::write(path, text + "\n").expect("the JSON file can be written");
    }

    fn verdicts_of(&self, target: &Target) -> impl Iterator<Item = Value> {
        self.cases_of(target).map(|case| {
            json!({
                "target": target.what,
                "limit": target.limit.words(),
                "unit": target.unit,
                "case": case.name,
                "measured": case.measured,
                "held": target.limit.holds(case.measured),
            })
        })
    }

    fn cases_of(&self, target: &Target) -> impl Iterator<Item = &Case> {
        let goal = target.goal;
        self.cases.iter().filter(move |case| case.goal == goal)
    }
}

/// `"768 f16, 2 threads"`.
pub fn name(dim: usize, dtype: Dtype, par: Par) -> String {
    format!("{dim} {dtype}, {}", threads(par))
}

/// `"1 thread"`, `"2 threads"`.
pub fn threads(par: Par) -> String {
    match par.threads() {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    }
}
