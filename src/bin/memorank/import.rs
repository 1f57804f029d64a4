//! `memorank import`: another system's memories, or those of an export, into a new store.

use crate::failure::Failure;
use crate::output::{Output, escaped, escaped_lines, progress};
use crate::values::Moment;
use clap::{Subcommand, ValueEnum};
use memorank::import::{self, Options, Report, TimeUnit};
use memorank::kernel::Dtype;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    format: Format,
}

/// Whatever is not as expected is kept where it can be, counted and listed. An import either commits
/// whole or leaves no store.
#[derive(Subcommand)]
enum Format {
    /// A saved persona of the generative agents' simulation: a folder with nodes.json and embeddings.json.
    Reverie {
        #[command(flatten)]
        common: Common,
        /// The file of vectors in the folder.
        #[arg(long, default_value = "embeddings.json")]
        embeddings: String,
    },
    /// An agent of the generative agents' later code: a folder with nodes.json and embeddings.json. A time
    /// step becomes an hour.
    Genagents {
        #[command(flatten)]
        common: Common,
        /// The moment of step 0 (RFC 3339).
        #[arg(long, default_value = "1970-01-01T00:00:00Z")]
        step_zero: Moment,
    },
    /// A matrix (.npy: f2, f4 or f8, one row per memory) with one JSON object per line beside it.
    Npy {
        #[command(flatten)]
        common: Common,
        /// The lines; by default the matrix's path with the ending .jsonl.
        #[arg(long)]
        jsonl: Option<PathBuf>,
        /// The unit of times that are numbers.
        #[arg(long, value_enum)]
        time_unit: Option<Unit>,
    },
    /// An export of a store: a folder with embeddings.npy, memories.jsonl and store.json. Every field comes back,
    /// under the same ids.
    Memorank {
        /// What to read.
        source: PathBuf,
        /// The folder of the new store; it must not exist.
        store: PathBuf,
    },
}

#[derive(clap::Args)]
struct Common {
    /// What to read.
    source: PathBuf,
    /// The folder of the new store; it must not exist.
    store: PathBuf,
    /// How to store embeddings; by default f32, and f16 for a matrix of f16.
    #[arg(long, value_enum)]
    dtype: Option<DtypeName>,
    /// The embedding model's name, kept in the store.
    #[arg(long)]
    model: Option<String>,
    /// The dimension, where no vector tells it.
    #[arg(long)]
    dim: Option<NonZeroUsize>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum DtypeName {
    F16,
    F32,
}

impl From<DtypeName> for Dtype {
    fn from(name: DtypeName) -> Dtype {
        match name {
            DtypeName::F16 => Dtype::F16,
            DtypeName::F32 => Dtype::F32,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    #[serde(flatten)]
    report: &'a Report,
}

impl Common {
    fn options(&self) -> Options {
        Options {
            dtype: self.dtype.map(Dtype::from),
            model: self.model.clone(),
            dim: self.dim,
            ..Options::default()
        }
    }
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let bar = progress(0, "importing");
    let mut told = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let (store, report) = match &args.format {
        Format::Reverie { common, embeddings } => {
            // The default file may be absent: that is reported. One that is asked for must be there.
            let named = (embeddings != "embeddings.json").then(|| embeddings.clone());
            let options = Options {
                embeddings: named,
                ..common.options()
            };
            (
                &common.store,
                import::reverie(&common.source, &common.store, &options, &mut told)?,
            )
        }
        Format::Genagents { common, step_zero } => {
            let options = Options {
                step_zero: step_zero.0,
                ..common.options()
            };
            (
                &common.store,
                import::genagents(&common.source, &common.store, &options, &mut told)?,
            )
        }
        Format::Npy {
            common,
            jsonl,
            time_unit,
        } => {
            let jsonl = jsonl
                .clone()
                .unwrap_or_else(|| common.source.with_extension("jsonl"));
            let time_unit = time_unit.map(|unit| match unit {
                Unit::S => TimeUnit::Seconds,
                Unit::Ms => TimeUnit::Milliseconds,
                Unit::Us => TimeUnit::Microseconds,
            });
            let options = Options {
                time_unit,
                ..common.options()
            };
            (
                &common.store,
                import::npy(&common.source, &jsonl, &common.store, &options, &mut told)?,
            )
        }
        Format::Memorank { source, store } => (store, import::memorank(source, store, &mut told)?),
    };
    bar.finish_and_clear();
    if out.is_json() {
        let store = store.display().to_string();
        return out.document(&Document {
            schema: "memorank.import/1",
            store,
            report: &report,
        });
    }
    // The report ends its lines itself.
    out.line(escaped_lines(report.to_string().trim_end(), 0))?;
    let store = store.display().to_string();
    out.line(format_args!("stored in {}", escaped(&store)))
}
