//! What the generative agents' authors' own code retrieves, beside what their paper says, of one archive.
//!
//! ```text
//! cargo run --features import --example reverie_archive -- FOLDER
//! cargo run --features import --example reverie_archive
//! ```
//!
//! FOLDER holds `nodes.json` and `embeddings.json`: of a saved persona it is
//! `bootstrap_memory/associative_memory`. Without one, a small archive is made up. The archive itself is not
//! changed: it is imported into a store in a temporary folder.

use memorank::Par;
use memorank::import::{self, Options, timestamp::format_us};
use memorank::scoring::{Preset, Ranking, Workspace};
use memorank::store::{Kind, Snapshot, Store};
use memorank::stream::{self, Ask, HashingEmbedder, Retrieve, StreamError};
use serde_json::json;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

const DAY: i64 = 24 * 3_600_000_000;
const SHOWN: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => made_up(&temporary.path().join("archive"))?,
    };
    let path = temporary.path().join("store");
    let report = import::reverie(&folder, &path, &Options::default(), &mut |_, _| ())?;
    println!(
        "{}: {} memories, {} with a vector",
        folder.display(),
        report.memories,
        report.with_vector
    );
    for notice in &report.notices {
        println!("  {} x {}", notice.count, notice.name);
    }

    // A program would embed a question with the model that made the archive's embeddings. Here the newest
    // reflection (or, without one, the newest memory) is the question, asked a day after it was made.
    let store = Store::open(&path)?;
    let snapshot = store.snapshot();
    let Some((row, embedding)) = newest(&snapshot) else {
        println!("there is no memory with a vector: nothing to ask");
        return Ok(());
    };
    let question = Question {
        embedding,
        now: snapshot.created(row) + DAY,
    };
    let (asked, about) = (format_us(question.now), text(&snapshot, row));
    println!("\nasked at {asked}: {about}");

    // Ranking changes nothing, so both see the same state.
    let presets = [("reverie", Preset::reverie()), ("paper", Preset::paper())];
    for (name, preset) in &presets {
        show(name, &snapshot, &question.rank(&snapshot, preset)?);
    }

    // Retrieving is ranking and then a touch: what was returned was accessed now, and counts as fresh.
    let few = Preset {
        k: SHOWN,
        ..Preset::reverie()
    };
    let wanted = Retrieve::new(question.ask(&few));
    let retrieved = stream::retrieve(&store, &wanted, Par::Serial, &mut Workspace::new())?;
    retrieved.touch?;
    println!("\n{} were touched; asked again:", retrieved.memories.len());
    let touched = store.snapshot();
    for (name, preset) in &presets {
        let before = best(&question.rank(&snapshot, preset)?);
        let after = best(&question.rank(&touched, preset)?);
        let new = after.iter().filter(|row| !before.contains(row)).count();
        match before == after {
            true => println!("  {name}: the same {}", after.len()),
            false => println!("  {name}: another order, {new} new among {}", after.len()),
        }
    }
    Ok(())
}

/// What is asked, and when.
struct Question {
    embedding: Vec<f32>,
    now: i64,
}

impl Question {
    fn ask<'a>(&'a self, preset: &'a Preset) -> Ask<'a> {
        Ask::new(&self.embedding, self.now, preset)
    }

    fn rank(&self, snapshot: &Snapshot, preset: &Preset) -> Result<Ranking, StreamError> {
        let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
        let ask = self.ask(preset);
        stream::rank(snapshot, &ask, Par::Serial, &mut workspace, &mut ranking)?;
        Ok(ranking)
    }
}

/// The first rows of a ranking.
fn best(ranking: &Ranking) -> Vec<usize> {
    ranking.hits.iter().map(|hit| hit.row).take(SHOWN).collect()
}

/// The newest reflection with a vector, or else the newest memory with one.
fn newest(snapshot: &Snapshot) -> Option<(usize, Vec<f32>)> {
    let is_reflection = |row: usize| {
        let kind = usize::from(snapshot.kind_index(row));
        snapshot.kinds().get(kind) == Some(&Kind::REFLECTION)
    };
    let with_vector = (0..snapshot.rows()).filter(|&row| snapshot.has_embedding(row));
    let row = with_vector.max_by_key(|&row| (is_reflection(row), snapshot.created(row), row))?;
    Some((row, snapshot.embedding(row)?))
}

fn show(name: &str, snapshot: &Snapshot, ranking: &Ranking) {
    println!("\n{name}: {} candidates", ranking.candidates);
    println!("  score  relevance  recency  importance");
    for hit in ranking.hits.iter().take(SHOWN) {
        println!(
            "  {:5.3}  {:9.3}  {:7.3}  {:10.3}  {}",
            hit.score,
            hit.relevance.weighted,
            hit.recency.weighted,
            hit.importance.weighted,
            text(snapshot, hit.row)
        );
    }
}

/// The beginning of what a memory says.
fn text(snapshot: &Snapshot, row: usize) -> String {
    match snapshot.memory(row) {
        Ok(memory) => memory.text.chars().take(60).collect(),
        Err(error) => error.to_string(),
    }
}

/// A small archive in the form of the authors' files, its texts embedded by their words.
fn made_up(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let memories = [
        ("event", 8, 1, "the bed is idle"),
        ("event", 9, 2, "Isabella is opening the cafe"),
        ("event", 10, 4, "Klaus is talking about gentrification"),
        (
            "event",
            11,
            3,
            "Isabella is buying decorations for the party",
        ),
        (
            "event",
            14,
            6,
            "Maria is asking about the party at the cafe",
        ),
        ("thought", 15, 8, "Isabella plans a party at the cafe"),
        ("event", 17, 1, "the coffee machine is brewing"),
        ("thought", 20, 7, "Maria likes Klaus and comes to the party"),
    ];
    let embedder = HashingEmbedder::new(256.try_into()?);
    let (mut nodes, mut embeddings) = (json!({}), json!({}));
    for (number, (kind, hour, poignancy, text)) in (1..).zip(memories) {
        nodes[format!("node_{number}")] = json!({
            "node_count": number,
            "type_count": number,
            "type": kind,
            "depth": u8::from(kind == "thought"),
            "created": format!("2023-02-13 {hour:02}:00:00"),
            "expiration": null,
            "subject": "Isabella",
            "predicate": "is",
            "object": "there",
            "description": text,
            "embedding_key": text,
            "poignancy": poignancy,
            "keywords": [],
            "filling": [],
        });
        embeddings[text] = json!(embedder.embedding(text)?);
    }
    fs::create_dir(folder)?;
    fs::write(folder.join("nodes.json"), nodes.to_string())?;
    fs::write(folder.join("embeddings.json"), embeddings.to_string())?;
    Ok(folder.to_owned())
}
