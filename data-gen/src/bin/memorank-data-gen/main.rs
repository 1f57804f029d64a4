//! Writes a memory stream as `PREFIX.npy` and `PREFIX.jsonl`, and queries as `PREFIX.queries.npy`.
//!
//! Blocks are made and encoded by worker threads and written in order by this one, so the files
//! don't depend on the number of threads, and memory holds a few blocks per thread whatever the
//! stream's length. All files are written under temporary names and renamed when every one of them
//! is whole.

#![forbid(unsafe_code)]

mod jsonl;
mod npy;
mod output;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use indicatif::{ProgressBar, ProgressStyle};
use memorank_data_gen::{BLOCK_ROWS, Block, Config, Stream};
use npy::Dtype;
use output::Output;

/// Write a deterministic memory stream: PREFIX.npy (embeddings) and PREFIX.jsonl (everything else)
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Memories in the stream
    #[arg(long, value_name = "N")]
    memories: usize,
    /// Elements in an embedding
    #[arg(long, value_name = "D")]
    dim: usize,
    /// Which stream; the same numbers give the same files
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Type of an element
    #[arg(long, value_enum, default_value_t = Dtype::F16)]
    dtype: Dtype,
    /// Path of the files without their extensions; existing files are replaced
    #[arg(long, value_name = "PREFIX")]
    out: PathBuf,
    /// Worker threads [default: one per processor]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Query embeddings to write to PREFIX.queries.npy
    #[arg(long, value_name = "N")]
    queries: Option<usize>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let config = Config {
        memories: args.memories,
        dim: args.dim,
        seed: args.seed,
    };
    let stream = Stream::new(config).unwrap_or_else(|error| {
        Args::command()
            .error(ErrorKind::ValueValidation, error)
            .exit()
    });
    match write_files(&args, &stream) {
        Ok(summary) => {
            // A reader that has gone away is no failure: the files are written.
            let _ = io::stdout().write_all(summary.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Writes all files; says what they are.
fn write_files(args: &Args, stream: &Stream) -> Result<String> {
    let Config { memories, dim, .. } = *stream.config();
    let mut vectors = Output::create(&args.out, "npy")?;
    let mut lines = Output::create(&args.out, "jsonl")?;
    vectors.write(&npy::header(args.dtype, memories, dim))?;
    write_blocks(args, stream, &mut vectors, &mut lines)?;

    let mut outputs = vec![vectors, lines];
    if let Some(queries) = args.queries {
        let mut output = Output::create(&args.out, "queries.npy")?;
        output.write(&npy::header(args.dtype, queries, dim))?;
        for index in 0..queries as u64 {
            output.write(&args.dtype.encode(&stream.query(index)))?;
        }
        outputs.push(output);
    }

    let finished: Vec<_> = outputs
        .into_iter()
        .map(Output::finish)
        .collect::<Result<_>>()?;
    let mut summary = String::new();
    for file in finished {
        let path = file.rename()?;
        summary += &format!("wrote {}\n", path.display());
    }
    summary += &format!(
        "now {}\n",
        jsonl::date(stream.now()).context("the stream's end")?
    );
    Ok(summary)
}

/// A block as the bytes of both files.
struct Encoded {
    rows: usize,
    vectors: Vec<u8>,
    lines: Vec<u8>,
}

fn encode(block: &Block, dtype: Dtype) -> Result<Encoded> {
    Ok(Encoded {
        rows: block.len(),
        vectors: dtype.encode(block.embeddings()),
        lines: jsonl::encode(block)?,
    })
}

fn write_blocks(
    args: &Args,
    stream: &Stream,
    vectors: &mut Output,
    lines: &mut Output,
) -> Result<()> {
    let threads = match args.threads {
        Some(threads) => usize::from(threads),
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    let threads = threads.min(stream.block_count());
    let bar = progress_bar(stream.config().memories);
    let written = thread::scope(|scope| {
        // Worker t makes blocks t, t + threads, ... and waits until its last one but one was taken.
        // When this thread returns with an error, the receivers are gone and the workers stop at
        // their next block.
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let (sender, receiver) = mpsc::sync_channel(1);
                scope.spawn(move || {
                    for index in (worker..stream.block_count()).step_by(threads) {
                        if sender
                            .send(encode(&stream.block(index), args.dtype))
                            .is_err()
                        {
                            break;
                        }
                    }
                });
                receiver
            })
            .collect();
        for index in 0..stream.block_count() {
            let encoded = workers[index % threads].recv().with_context(|| {
                format!("the worker that makes rows from {}", index * BLOCK_ROWS)
            })??;
            vectors.write(&encoded.vectors)?;
            lines.write(&encoded.lines)?;
            bar.inc(encoded.rows as u64);
        }
        Ok(())
    });
    bar.finish_and_clear();
    written
}

/// A bar on stderr, which draws nothing unless that is a terminal.
fn progress_bar(memories: usize) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} memories, {eta} left");
    ProgressBar::new(memories as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
