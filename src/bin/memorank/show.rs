//! `memorank show`: one memory with all its fields.

use crate::failure::Failure;
use crate::output::{Output, escaped, escaped_lines, hex, one_line, short_key};
use crate::{keys, opened};
use memorank::import::timestamp::format_us;
use memorank::store::{Agent, Memory, ReadError, Reference, Snapshot};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
    /// The memory's key; or its id, if no memory has that key.
    key: String,
    /// Whose last access and importance are meant.
    #[arg(long, value_name = "N", default_value_t = Agent::OWN.0)]
    agent: u32,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    agent: u32,
    id: u64,
    key: Option<&'a str>,
    kind: &'a str,
    text: &'a str,
    created: String,
    created_us: i64,
    last_access: String,
    last_access_us: i64,
    expiry: Option<String>,
    expiry_us: Option<i64>,
    importance: f32,
    depth: u32,
    evidence: Vec<Evidence<'a>>,
    supersedes: Option<u64>,
    superseded_by: Option<u64>,
    payload: Payload<'a>,
    embedding: Option<Vec<f32>>,
}

/// A reference: to a memory that is there, or one that is not.
#[derive(Serialize)]
#[serde(untagged)]
enum Evidence<'a> {
    Memory { id: u64, key: Option<&'a str> },
    Deleted { missing_id: u64 },
    Missing { missing: &'a str },
}

/// JSON as it is, other bytes in hexadecimal.
#[derive(Serialize)]
#[serde(untagged)]
enum Payload<'a> {
    Json(&'a serde_json::value::RawValue),
    Hex { hex: String },
    None,
}

/// The embedding of the memory in `row`, to ask with.
pub fn embedding(snapshot: &Snapshot, row: usize) -> Result<Option<Vec<f32>>, Failure> {
    // Whoever reads the memory is told of damage to it.
    let id = snapshot.memory(row)?.id;
    let embedding = snapshot.embedding(row);
    let broken = (embedding.iter().flatten()).position(|x| !x.is_finite());
    match broken {
        None => Ok(embedding),
        Some(element) => Err(Failure::damaged(format!(
            "the store is damaged: memory {id}: element {element} of its embedding is not finite"
        ))),
    }
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let snapshot = opened::to_read(&args.store)?.snapshot();
    let row = keys::row(&snapshot, &args.key)?;
    let agent = Agent(args.agent);
    let memory = Memory {
        last_access: snapshot.last_access(agent, row),
        importance: opened::importance(&snapshot, agent, row)?,
        ..snapshot.memory(row)?
    };
    let embedding = embedding(&snapshot, row)?;
    if out.is_json() {
        return out.document(&document(&snapshot, agent, &memory, embedding)?);
    }
    let key = memory.key.map_or("(no key)".into(), escaped);
    let kind = escaped(memory.kind.as_str());
    out.heading(format_args!("{key}  id {}  {kind}", memory.id))?;
    out.line(format_args!("  text         {}", field(memory.text)))?;
    out.line(format_args!("  created      {}", format_us(memory.created)))?;
    out.line(format_args!(
        "  last access  {}",
        format_us(memory.last_access)
    ))?;
    if let Some(expiry) = memory.expiry {
        out.line(format_args!("  expires      {}", format_us(expiry)))?;
    }
    out.line(format_args!("  importance   {}", memory.importance))?;
    out.line(format_args!("  depth        {}", memory.depth))?;
    for entry in evidence(&snapshot, &memory)? {
        match entry {
            Evidence::Memory { id, key } => {
                let text = snapshot
                    .row_of_id(id)
                    .map(|row| snapshot.memory(row))
                    .transpose()?;
                let text = text.map_or("", |memory| memory.text);
                out.line(format_args!(
                    "  evidence     {} (id {id})  {}",
                    short_key(key),
                    one_line(text, 60)
                ))?;
            }
            Evidence::Deleted { missing_id } => {
                out.line(format_args!("  evidence     id {missing_id}: MISSING"))?;
            }
            Evidence::Missing { missing } => {
                out.line(format_args!("  evidence     {missing:?}: MISSING"))?;
            }
        }
    }
    for (field, id) in [
        ("supersedes   ", memory.supersedes),
        ("superseded by", memory.superseded_by),
    ] {
        if let Some(id) = id {
            out.line(format_args!("  {field} id {id}"))?;
        }
    }
    if !memory.payload.is_empty() {
        out.line(format_args!(
            "  payload      {}",
            field(&String::from_utf8_lossy(memory.payload))
        ))?;
    }
    match embedding {
        None => out.line("  embedding    none: never a candidate"),
        Some(vector) => {
            let length = vector
                .iter()
                .map(|x| f64::from(*x).powi(2))
                .sum::<f64>()
                .sqrt();
            let (dim, dtype) = (vector.len(), snapshot.dtype());
            out.line(format_args!(
                "  embedding    {dim} x {dtype}, length {length:.6}"
            ))
        }
    }
}

/// Text beside a field's name, its lines below each other.
fn field(text: &str) -> String {
    escaped_lines(text, 15)
}

fn document<'a>(
    snapshot: &'a Snapshot,
    agent: Agent,
    memory: &'a Memory<'a>,
    embedding: Option<Vec<f32>>,
) -> Result<Document<'a>, ReadError> {
    let payload = match serde_json::from_slice(memory.payload) {
        Ok(json) => Payload::Json(json),
        Err(_) if memory.payload.is_empty() => Payload::None,
        Err(_) => Payload::Hex {
            hex: hex(memory.payload),
        },
    };
    Ok(Document {
        schema: "memorank.show/1",
        agent: agent.0,
        id: memory.id,
        key: memory.key,
        kind: memory.kind.as_str(),
        text: memory.text,
        created: format_us(memory.created),
        created_us: memory.created,
        last_access: format_us(memory.last_access),
        last_access_us: memory.last_access,
        expiry: memory.expiry.map(format_us),
        expiry_us: memory.expiry,
        importance: memory.importance,
        depth: memory.depth,
        evidence: evidence(snapshot, memory)?,
        supersedes: memory.supersedes,
        superseded_by: memory.superseded_by,
        payload,
        embedding,
    })
}

fn evidence<'a>(
    snapshot: &'a Snapshot,
    memory: &'a Memory<'a>,
) -> Result<Vec<Evidence<'a>>, ReadError> {
    let entries = memory.evidence.iter().map(|reference| match reference {
        Reference::Missing(text) => Ok(Evidence::Missing { missing: text }),
        Reference::Id(id) => match snapshot.row_of_id(*id) {
            Some(row) => snapshot.memory(row).map(|m| Evidence::Memory {
                id: *id,
                key: m.key,
            }),
            None => Ok(Evidence::Deleted { missing_id: *id }),
        },
    });
    entries.collect()
}
