//! `memorank integrity`: whether the evidence of all memories holds.

use crate::failure::Failure;
use crate::output::{Output, escaped, grouped};
use crate::{keys, opened};
use memorank::store::Kind;
use memorank::stream::evidence::{Graph, Rules};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder. No byte of it changes.
    store: PathBuf,
    /// A kind of memories that are conclusions, with evidence and a depth above 0; given several times, these.
    #[arg(long, value_name = "KIND", default_value = Kind::REFLECTION.as_str())]
    conclusions: Vec<String>,
    /// Another kind that may have evidence (in archives of the generative agents' simulation, observation).
    #[arg(long, value_name = "KIND")]
    may_cite: Vec<String>,
    /// A kind that may be cited; by default any.
    #[arg(long, value_name = "KIND")]
    cited: Vec<String>,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    store: String,
    sound: bool,
    memories: usize,
    citations: usize,
    /// Of each fault, by its name.
    counts: BTreeMap<&'static str, usize>,
    findings: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    id: u64,
    /// Its key, or else its id.
    #[serde(skip)]
    name: String,
    key: Option<String>,
    fault: &'static str,
    detail: String,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let snapshot = opened::to_read(&args.store)?.snapshot();
    let kinds = |names: &[String]| names.iter().map(Kind::named).collect::<Vec<_>>();
    let rules = Rules {
        conclusions: kinds(&args.conclusions),
        may_cite: kinds(&args.may_cite),
        cited: (!args.cited.is_empty()).then(|| kinds(&args.cited)),
    };
    let integrity = Graph::of(&snapshot)?.integrity(&rules)?;
    let findings = integrity.findings.iter().map(|finding| {
        let row = snapshot.row_of_id(finding.id).expect("it was looked at");
        Ok(Found {
            id: finding.id,
            name: keys::name(&snapshot, finding.id)?,
            key: snapshot.memory(row)?.key.map(str::to_owned),
            fault: finding.fault.name(),
            detail: finding.fault.to_string(),
        })
    });
    let document = Document {
        schema: "memorank.integrity/1",
        store: args.store.display().to_string(),
        sound: integrity.findings.is_empty(),
        memories: integrity.memories,
        citations: integrity.citations,
        counts: integrity.counts(),
        findings: findings.collect::<Result<_, Failure>>()?,
    };
    let told = match out.is_json() {
        true => out.document(&document),
        false => document.print(out),
    };
    match (document.sound, told.and_then(|()| out.flush())) {
        (false, Ok(()) | Err(Failure::ClosedPipe)) => Err(Failure::DamageTold),
        (_, told) => told,
    }
}

impl Document {
    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        out.line(format_args!(
            "{}: {} memories, {} citations checked",
            escaped(&self.store),
            grouped(self.memories),
            grouped(self.citations)
        ))?;
        for Found {
            name,
            fault,
            detail,
            ..
        } in &self.findings
        {
            let (name, detail) = (escaped(name), escaped(detail));
            out.line(format_args!("{fault}: {name}: {detail}"))?;
        }
        if self.sound {
            return out.line("sound");
        }
        let counts = self
            .counts
            .iter()
            .map(|(name, count)| format!("{count} {name}"));
        out.line(counts.collect::<Vec<_>>().join(", "))
    }
}
