//! How far from the speed of memory rankings are, and whether that is what was promised.
//!
//! ```text
//! cargo bench --bench roofline                     everything: minutes, and 9 GB of disk
//! cargo bench --bench roofline -- --only growth    one part
//! cargo bench --bench roofline -- --json FILE      figures there, not in target/roofline.json
//! cargo bench --bench roofline -- --test           tiny sizes, seconds, no exit code
//! ```
//!
//! Each part prints a table of its own. At the end there is one line for each target of [`report`], with its
//! worst case; the process fails if one is missed. Answers are checked before they are timed: a wrong one
//! is a panic. Times are medians of rounds in which the plain read and the measured thing take turns; a
//! ratio is the median of the rounds' ratios: 1 is the speed of the plain read and less is slower. The plain
//! read is [`memorank::yardstick`]'s; it is judged too.
//!
//! Verdicts are about the best instruction set of the machine, or the one that `MEMORANK_ISA` names; only the
//! cosine scan has a target for AVX2 beside it. Stores are made in the temporary folder (`TMPDIR`), one at
//! a time. Linux only. Without the `--bench` that cargo adds, as in `cargo test --benches`, it is `--test`.

mod agents;
mod allocations;
mod batch;
mod check;
mod data;
mod filter;
mod growth;
mod journal;
mod machine;
mod memory;
mod read_loops;
mod report;
mod retrieval;
mod small;
mod store;
mod turns;

use machine::Setup;
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints its tables and leaves its figures in the report.
type Part = fn(&Setup, &mut Report);

/// Names for `--only`, in the order in which they run.
const PARTS: [(&str, Part); 9] = [
    ("memory", memory::run),
    ("growth", growth::run),
    ("batch", batch::run),
    ("filter", filter::run),
    ("small", small::run),
    ("agents", agents::run),
    ("store", store::run),
    ("journal", journal::run),
    ("retrieval", retrieval::run),
];

struct Args {
    tiny: bool,
    only: Option<String>,
    json: PathBuf,
}

fn main() -> ExitCode {
    if store::is_child() {
        store::rank_and_tell_memory();
        return ExitCode::SUCCESS;
    }
    let args = match args() {
        Ok(args) => args,
        Err(problem) => {
            let names = PARTS.map(|(name, _)| name).join(", ");
            eprintln!("{problem}; there are --test, --json FILE and --only NAME: {names}");
            return ExitCode::from(2);
        }
    };
    let setup = Setup::new(args.tiny);
    let mut report = Report::new(&setup);
    println!("{}", setup.describe());
    for (name, run) in PARTS {
        if args.only.as_ref().is_none_or(|only| only == name) {
            println!("\n== {name}");
            run(&setup, &mut report);
        }
    }
    println!("\n== verdicts");
    if args.tiny {
        println!("tiny sizes: the lines show that all is measured, and say nothing of the targets");
    }
    let held = report.print_verdicts();
    report.save(&args.json);
    println!("figures: {}", args.json.display());
    if held || args.tiny {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        tiny: false,
        only: None,
        json: PathBuf::from("target/roofline.json"),
    };
    let mut by_cargo_bench = false;
    let mut given = std::env::args().skip(1);
    while let Some(arg) = given.next() {
        let mut value = || given.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--bench" => by_cargo_bench = true,
            "--test" => args.tiny = true,
            "--only" => {
                let name = value()?;
                if PARTS.iter().all(|(part, _)| *part != name) {
                    return Err(format!("no part is called {name:?}"));
                }
                args.only = Some(name);
            }
            "--json" => args.json = value()?.into(),
            _ => return Err(format!("unknown argument {arg:?}")),
        }
    }
    args.tiny |= !by_cargo_bench;
    Ok(args)
}
