//! `memorank completions` and `memorank man`: what shells and `man` want to know, from the definition of the
//! command line.

use crate::Cli;
use crate::failure::Failure;
use crate::output::{Output, escaped};
use clap::CommandFactory;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Completions {
    /// The shell whose completions are printed.
    shell: clap_complete::Shell,
}

#[derive(clap::Args)]
pub struct Manual {
    /// Write a page for each command into this folder, which must be there, instead of printing that of `memorank`.
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Refuses `--json`, which has nothing to say here.
fn plain(out: &Output, what: &str) -> Result<(), Failure> {
    match out.is_json() {
        true => Err(Failure::Usage(format!("--json: {what} is no document"))),
        false => Ok(()),
    }
}

pub fn completions(args: &Completions, out: &mut Output) -> Result<(), Failure> {
    plain(out, "a script of completions")?;
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "memorank", &mut script);
    out.bytes(&script)
}

pub fn manual(args: &Manual, out: &mut Output) -> Result<(), Failure> {
    plain(out, "a manual page")?;
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        return out.bytes(&page);
    };
    let failed = |e: std::io::Error| Failure::Error(format!("{}: {e}", dir.display()).into());
    clap_mangen::generate_to(Cli::command(), dir).map_err(failed)?;
    let dir = escaped(&dir.display().to_string());
    out.line(format_args!("wrote a page for each command to {dir}"))
}
