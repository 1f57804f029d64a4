//! Ticks of a game: a hundred villagers, each with memories of its own, and a chronicle that all of them read.
//!
//! ```text
//! cargo run --release --example game_tick
//! ```
//!
//! Every ten minutes of the game each villager sees what happens where it is, remembers it, and is reminded of
//! what it once saw like it: all hundred are asked in one call. On the hour those at the inn listen to the
//! chronicle: one store, read once for all of them, in which each has last accesses of its own. Nothing is written
//! to the disk, and nothing is random: the run is the same each time.

use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Workspace};
use memorank::store::files::InMemory;
use memorank::store::{Agent, CreateOptions, Kind, NewMemory, Store};
use memorank::stream::{Ask, HashingEmbedder, Order, Retrieve, retrieve_each, retrieve_many};
use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

const VILLAGERS: usize = 100;
/// Ten minutes, in microseconds.
const TICK: i64 = 600_000_000;
const TICKS_PER_HOUR: usize = 6;
const HOURS: usize = 16;

const PLACES: [&str; 4] = ["the well", "the field", "the forge", "the inn"];
const INN: usize = 3;
/// What can happen, and how much it matters, from 1 to 10.
const EVENTS: [(&str, f32); 6] = [
    ("a child is singing", 2.0),
    ("two men quarrel about a debt", 6.0),
    ("a stranger asks for the way to the mill", 5.0),
    ("nothing stirs", 1.0),
    ("a cart has lost its wheel", 3.0),
    ("smoke rises, somebody shouts fire", 10.0),
];

struct Villager {
    name: String,
    memories: Store,
}

impl Villager {
    /// Its number says where it goes in the course of the day.
    fn place(number: usize, tick: usize) -> usize {
        (number + tick / (TICKS_PER_HOUR * (1 + number % 3))) % PLACES.len()
    }
}

/// What happens at a place now.
fn event(place: usize, tick: usize) -> (String, f32) {
    let (what, importance) = EVENTS[(tick * 7 + place * 5 + tick * place) % EVENTS.len()];
    (format!("at {}, {what}", PLACES[place]), importance)
}

fn seen<'a>(text: &'a str, embedding: &'a [f32], now: i64, importance: f32) -> NewMemory<'a> {
    NewMemory {
        key: None,
        kind: Kind::OBSERVATION,
        text,
        embedding: Some(embedding),
        created: now,
        last_access: now,
        expiry: None,
        importance,
        evidence: &[],
        depth: 0,
        supersedes: None,
        payload: &[],
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Each event is embedded once, however many see it. A game with a model would do just so.
    let dim = NonZeroUsize::new(256).ok_or("a dimension")?;
    let embedder = HashingEmbedder::new(dim);
    let options = CreateOptions {
        dim,
        dtype: Dtype::F16,
        model: Some(HashingEmbedder::MODEL.to_owned()),
    };
    let files = Arc::new(InMemory::new());
    let chronicle = Store::create_on(files.clone(), "chronicle", &options)?;
    let villagers = (0..VILLAGERS).map(|number| {
        let name = format!("villager {number}");
        let memories = Store::create_on(files.clone(), &name, &options)?;
        Ok(Villager { name, memories })
    });
    let villagers: Vec<Villager> = villagers.collect::<Result<_, Box<dyn Error>>>()?;

    let preset = Preset {
        k: 2,
        ..Preset::paper()
    };
    // The chronicle's three best; it is long, and what was heard an hour ago need not be heard again soon.
    let heard = Preset {
        k: 3,
        ..Preset::paper()
    };
    let mut workspace = Workspace::new();
    let mut recall_seconds = Vec::new();
    for tick in 0..HOURS * TICKS_PER_HOUR {
        let now = tick as i64 * TICK;
        let events: Vec<(String, f32, Vec<f32>)> = (0..PLACES.len())
            .map(|place| {
                let (text, importance) = event(place, tick);
                let embedding = embedder.embedding(&text)?;
                Ok((text, importance, embedding))
            })
            .collect::<Result<_, Box<dyn Error>>>()?;

        // Reminded first, so that nobody is reminded of what it sees now.
        let started = Instant::now();
        let asks: Vec<(&Store, Retrieve<'_>)> = (villagers.iter().enumerate())
            .map(|(number, villager)| {
                let (_, _, embedding) = &events[Villager::place(number, tick)];
                (
                    &villager.memories,
                    Retrieve::new(Ask::new(embedding, now, &preset)),
                )
            })
            .collect();
        let reminded = retrieve_each(&asks, Par::Rayon, &mut workspace)?;
        recall_seconds.push(started.elapsed().as_secs_f64());

        if tick % (4 * TICKS_PER_HOUR) == 3 * TICKS_PER_HOUR {
            let (text, ..) = &events[Villager::place(7, tick)];
            println!(
                "{}:00, {}: {text}",
                6 + tick / TICKS_PER_HOUR,
                villagers[7].name
            );
            for memory in &reminded[7].memories {
                println!("  remembers: {}", reminded[7].snapshot.text(memory.row)?);
            }
        }
        for retrieved in reminded {
            retrieved.touch?;
        }

        for (number, villager) in villagers.iter().enumerate() {
            let (text, importance, embedding) = &events[Villager::place(number, tick)];
            villager
                .memories
                .append(&[seen(text, embedding, now, *importance)])?;
        }
        let told: Vec<NewMemory<'_>> = (events.iter())
            .map(|(text, importance, embedding)| seen(text, embedding, now, *importance))
            .collect();
        chronicle.append(&told)?;

        if tick % TICKS_PER_HOUR == 0 {
            let (_, _, embedding) = &events[INN];
            let listeners = (0..VILLAGERS).filter(|&number| Villager::place(number, tick) == INN);
            let asks: Vec<Retrieve<'_>> = listeners
                .map(|number| {
                    Retrieve::new(Ask {
                        agent: Agent(number as u32 + 1),
                        ..Ask::new(embedding, now, &heard)
                    })
                })
                .collect();
            for retrieved in retrieve_many(
                &chronicle,
                &asks,
                Order::Snapshot,
                Par::Rayon,
                &mut workspace,
            )? {
                retrieved.touch?;
            }
        }
    }

    let memories: usize = villagers
        .iter()
        .map(|of| of.memories.snapshot().len())
        .sum();
    recall_seconds.sort_by(f64::total_cmp);
    println!(
        "{memories} memories of {VILLAGERS} villagers; to remind all of them took {:.2} ms, the median of {} ticks",
        recall_seconds[recall_seconds.len() / 2] * 1e3,
        recall_seconds.len()
    );
    // What one of them has heard is fresh to it alone.
    let chronicle = chronicle.snapshot();
    let heard = |agent| {
        let rows = 0..chronicle.rows();
        rows.filter(|&row| chronicle.last_access(agent, row) > chronicle.created(row))
            .count()
    };
    println!(
        "of {} entries of the chronicle {} heard {}, {} heard {}",
        chronicle.len(),
        villagers[0].name,
        heard(Agent(1)),
        villagers[7].name,
        heard(Agent(8))
    );
    Ok(())
}
