//! The `memorank` program: add or import memories, rank and explain them, look at them, delete them, check them,
//! and time rankings.
//!
//! Data go to stdout, progress to stderr and only to a terminal. Exit code 0: done; 1: an error;
//! 2: the command line is wrong; 3: damage was found in a store, evidence that does not hold,
//! or a repair lost something.

#![forbid(unsafe_code)]

mod add;
mod answer;
mod bench;
mod budget;
mod checkpoint;
mod cited;
mod compact;
mod create;
mod delete;
mod demo;
mod destination;
mod embed;
mod eval;
mod evidence;
mod explain;
mod export;
mod failure;
mod files;
mod fill_in;
mod filters;
mod head;
mod history;
mod import;
mod importance;
mod info;
mod integrity;
mod judged;
mod keys;
mod list;
mod manual;
mod mixes;
mod models;
mod opened;
mod output;
mod queries;
mod query;
mod question;
mod reflect;
mod repair;
mod replay;
mod resampling;
mod settings;
mod show;
mod svg;
mod sweep;
mod table;
mod threads;
mod touch;
mod tune;
mod values;
mod verify;
mod wanted;

use clap::{Parser, Subcommand};
use output::Output;
use std::process::ExitCode;

/// Exact retrieval for the memory streams of generative agents.
///
/// Every memory is scored on relevance, recency and importance, each normalised over all candidates.
/// The environment variable MEMORANK_ISA (scalar, portable, avx2, avx512) forces an instruction set; the
/// results are the same, bit for bit.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print one JSON document with a "schema" field instead of text.
    #[arg(long, global = true, display_order = 900)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// See a million memories ranked, in a temporary folder that is removed at the end.
    Demo(demo::Args),
    /// Make a new store without memories.
    Create(create::Args),
    /// Add memories to a store.
    Add(add::Args),
    /// Give memories that were stored without a vector theirs.
    Embed(fill_in::Args),
    /// Make a store of another system's memories, or of an export.
    Import(import::Args),
    /// Write a store's memories as plain files that any tool reads: .npy, .jsonl and .json.
    Export(export::Args),
    /// Rank a store's memories for a query.
    Query(query::Args),
    /// Say that memories were retrieved.
    Touch(touch::Args),
    /// List the touches that a store's access log holds, and say how much of it is kept.
    History(history::Args),
    /// Rank a store's memories as the retrieval of a touch saw them.
    ///
    /// The question is to be given again, with the flags it was asked with: the record of the touch has the agent, the
    /// time, and what was asked with as a note.
    Replay(replay::Args),
    /// Have a language model draw conclusions from the memories, and store those whose evidence holds.
    ///
    /// It is asked for questions about the newest memories, memories are retrieved for each, and it is asked for insights
    /// with the numbers of those that they rest on. All insights that pass are stored, or none.
    Reflect(reflect::Args),
    /// Explain where a memory stands for a question, and what would bring it in.
    Explain(explain::Args),
    /// List memories, a line each.
    List(list::Args),
    /// Show one memory with all its fields.
    Show(show::Args),
    /// Show what a memory was concluded from, as a tree, and what rests on it.
    Evidence(evidence::Args),
    /// Check the evidence and depth of every memory.
    Integrity(integrity::Args),
    /// Give memories an importance of an agent's own.
    Importance(importance::Args),
    /// Tell what a store holds and where its bytes are.
    Info(info::Args),
    /// Check every byte of a store against its checksums.
    Verify(verify::Args),
    /// Salvage what is whole of a damaged store into a new one, and list what was lost.
    Repair(repair::Args),
    /// Delete memories, unless others rest on them. Their bytes stay until the store is compacted.
    Delete(delete::Args),
    /// Fold the journal into the columns, as every writer does when it closes.
    Checkpoint(checkpoint::Args),
    /// Write the columns anew without the deleted memories; ids and keys stay.
    Compact(compact::Args),
    /// Measure how well scorings find the memories that answer questions, side by side.
    Eval(eval::Args),
    /// Look for the weights and the decay that find most, by cross-validation.
    Tune(tune::Args),
    /// Tell how much of a ranking hangs on each weight.
    Sweep(sweep::Args),
    /// Measure how fast a store is ranked, beside the plain read of the same bytes.
    Bench(bench::Args),
    /// Print completions of the command line for a shell.
    Completions(manual::Completions),
    /// Print the manual page, or write those of all commands.
    Man(manual::Manual),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = Output::new(cli.json);
    let done = match cli.command {
        Command::Demo(args) => demo::run(&args, &mut out),
        Command::Create(args) => create::run(&args, &mut out),
        Command::Add(args) => add::run(&args, &mut out),
        Command::Embed(args) => fill_in::run(&args, &mut out),
        Command::Import(args) => import::run(&args, &mut out),
        Command::Export(args) => export::run(&args, &mut out),
        Command::Query(args) => query::run(&args, &mut out),
        Command::Touch(args) => touch::run(&args, &mut out),
        Command::History(args) => history::run(&args, &mut out),
        Command::Replay(args) => replay::run(&args, &mut out),
        Command::Reflect(args) => reflect::run(&args, &mut out),
        Command::Explain(args) => explain::run(&args, &mut out),
        Command::List(args) => list::run(&args, &mut out),
        Command::Show(args) => show::run(&args, &mut out),
        Command::Evidence(args) => evidence::run(&args, &mut out),
        Command::Integrity(args) => integrity::run(&args, &mut out),
        Command::Importance(args) => importance::run(&args, &mut out),
        Command::Info(args) => info::run(&args, &mut out),
        Command::Verify(args) => verify::run(&args, &mut out),
        Command::Repair(args) => repair::run(&args, &mut out),
        Command::Delete(args) => delete::run(&args, &mut out),
        Command::Checkpoint(args) => checkpoint::run(&args, &mut out),
        Command::Compact(args) => compact::run(&args, &mut out),
        Command::Eval(args) => eval::run(&args, &mut out),
        Command::Tune(args) => tune::run(&args, &mut out),
        Command::Sweep(args) => sweep::run(&args, &mut out),
        Command::Bench(args) => bench::run(&args, &mut out),
        Command::Completions(args) => manual::completions(&args, &mut out),
        Command::Man(args) => manual::manual(&args, &mut out),
    };
    match done.and_then(|()| out.finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
