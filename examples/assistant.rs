//! An assistant that lives for years: it remembers what it is told, whatever fails meanwhile, and puts what matters
//! into a prompt of limited length.
//!
//! ```text
//! cargo run --example assistant
//! cargo run --example assistant -- FOLDER    # keeps its memories there, and has them the next time
//! ```
//!
//! Its models are stand-ins: embeddings of words, and a rater that does not always keep to what it is asked. Both
//! are asked from here, between two steps of the library: in a real program, over a network, with `await`.

use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, ResultOrder, Touch, Workspace};
use memorank::store::{Agent, CreateOptions, Kind, Store};
use memorank::stream::{
    Ask, Budget, BytesPerFour, Decays, Draft, FillIn, Filter, HashingEmbedder, KindDecay, Need,
    Overflow, Remember, Retrieve, Retrieved, explain, retrieve,
};
use std::error::Error;
use std::path::{Path, PathBuf};

const DAY: i64 = 24 * 3_600_000_000;
const YEAR: i64 = 365 * DAY;
/// 2026-03-02T09:00:00Z.
const BEGINNING: i64 = 1_772_442_000_000_000;

/// What a request over a network would give, or fail with.
type Reply<T> = Result<T, Box<dyn Error>>;

struct Models {
    embedder: HashingEmbedder,
    /// Whether embeddings can be had just now.
    online: bool,
}

impl Models {
    fn embed(&self, texts: &[&str]) -> Reply<Vec<Vec<f32>>> {
        if !self.online {
            return Err("503 Service Unavailable".into());
        }
        let embeddings = texts.iter().map(|text| self.embedder.embedding(text));
        Ok(embeddings.collect::<Result<_, _>>()?)
    }

    /// Replies as language models do: mostly with a number.
    fn rate(&self, text: &str, asked_before: bool) -> String {
        let rating = match text {
            text if text.contains("allergic") => 10,
            text if text.contains("moves") || text.contains("remind") => 7,
            _ => 3,
        };
        match asked_before {
            false if rating == 7 => format!("{rating}/10"),
            _ => rating.to_string(),
        }
    }
}

struct Assistant {
    store: Store,
    models: Models,
    preset: Preset,
    decays: Decays,
}

impl Assistant {
    fn wake(path: &Path) -> Result<Assistant, Box<dyn Error>> {
        let dim = 256.try_into()?;
        let store = match path.exists() {
            true => Store::open(path)?,
            false => {
                let model = Some(HashingEmbedder::MODEL.to_owned());
                Store::create(
                    path,
                    &CreateOptions {
                        dim,
                        dtype: Dtype::F16,
                        model,
                    },
                )?
            }
        };
        let preset = Preset {
            k: 6,
            result_order: ResultOrder::Created,
            // What comes up every hour need not be written down every hour.
            touch: Touch::IfOlder { age: DAY as u64 },
            ..Preset::paper()
        };
        // In the paper, days count. Here small talk fades within weeks, and what the user is fades in a year to a
        // quarter, and no further.
        let decays = Decays {
            default: KindDecay {
                decay: 0.9998,
                floor: 0.25,
            },
            kinds: vec![(
                Kind::CHAT,
                KindDecay {
                    decay: 0.998,
                    floor: 0.0,
                },
            )],
        };
        let embedder = HashingEmbedder::new(dim);
        let models = Models {
            embedder,
            online: true,
        };
        Ok(Assistant {
            store,
            models,
            preset,
            decays,
        })
    }

    /// Stores all drafts or none. What cannot be embedded now is stored all the same.
    fn remember(&self, drafts: Vec<Draft>) -> Result<(), Box<dyn Error>> {
        let mut remember = Remember::new(&self.store, Some(HashingEmbedder::MODEL), drafts)?;
        let mut refused = false;
        loop {
            match remember.needs() {
                Need::Embed { texts, .. } => match self.models.embed(&texts) {
                    Ok(embeddings) => remember.embedded(embeddings)?,
                    Err(error) => {
                        println!("  (no embeddings now: {error})");
                        remember.not_embedded()?;
                    }
                },
                Need::Rate { text, .. } => {
                    let reply = self.models.rate(text, refused);
                    // A reply that is no rating is never guessed at: it is asked for again.
                    refused = match remember.rated(&reply) {
                        Ok(()) => false,
                        Err(error) if refused => return Err(error.into()),
                        Err(error) => {
                            println!("  (asked again: {error})");
                            true
                        }
                    };
                }
                Need::Nothing => break,
            }
        }
        let ids = remember.append(&self.store)?;
        println!(
            "  remembers {} more, {} in all",
            ids.count(),
            self.store.snapshot().len()
        );
        Ok(())
    }

    /// Embeds what could not be embedded when it came.
    fn catch_up(&self) -> Result<(), Box<dyn Error>> {
        let mut missing = FillIn::new(&self.store, Some(HashingEmbedder::MODEL), 0, 100)?;
        if let Need::Embed { texts, .. } = missing.needs() {
            let embeddings = self.models.embed(&texts)?;
            missing.embedded(embeddings)?;
            println!(
                "  embedded {} that had waited for it",
                missing.fill(&self.store)?
            );
        }
        Ok(())
    }

    /// What it thinks of when it is asked something: in the order in which it was told, at most 52 tokens of it.
    fn think(&self, question: &str, pinned: &[u64], now: i64) -> Result<Retrieved, Box<dyn Error>> {
        let embedding = self.models.embedder.embedding(question)?;
        let filter = Filter {
            unexpired: true,
            ..Filter::default()
        };
        let ask = self.ask(&embedding, &filter, now);
        let wanted = Retrieve {
            pinned,
            budget: Some(Budget {
                tokens: 52,
                counter: &BytesPerFour,
                overflow: Overflow::SkipOversized,
            }),
            ..Retrieve::new(ask)
        };
        Ok(retrieve(
            &self.store,
            &wanted,
            Par::Serial,
            &mut Workspace::new(),
        )?)
    }

    fn ask<'a>(&'a self, embedding: &'a [f32], filter: &'a Filter<'a>, now: i64) -> Ask<'a> {
        Ask {
            model: Some(HashingEmbedder::MODEL),
            filter,
            decays: Some(&self.decays),
            ..Ask::new(embedding, now, &self.preset)
        }
    }

    /// A prompt with what it thinks of, and what had no room in it.
    fn answer(&self, question: &str, pinned: &[u64], now: i64) -> Result<(), Box<dyn Error>> {
        println!("  asked: {question}");
        let thought = self.think(question, pinned, now)?;
        for memory in &thought.memories {
            let mark = if memory.pinned { "pinned" } else { "" };
            println!("  {mark:>8} | {}", thought.snapshot.text(memory.row)?);
        }
        println!(
            "  {} tokens, {} memories cut",
            thought.tokens,
            thought.cut.len()
        );
        // The answer is right even if nobody can write down that it was given.
        if let Err(error) = thought.touch {
            eprintln!("  not written: {error}");
        }
        Ok(())
    }
}

fn chat(text: &str, at: i64) -> Draft {
    Draft {
        kind: Kind::CHAT,
        ..Draft::new(text, at)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let path = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => temporary.path().join("assistant"),
    };
    let before = match path.exists() {
        true => Store::open_read_only(&path)?.snapshot().next_id(),
        false => 0,
    };

    println!("the first day");
    let now = BEGINNING;
    let mut assistant = Assistant::wake(&path)?;
    assistant.remember(vec![
        Draft::new("the user is called Ada and lives in Lyon", now),
        Draft::new("Ada is allergic to walnuts", now),
        chat("Ada asked for a walnut cake recipe for a friend", now + DAY),
        Draft {
            kind: Kind::PLAN,
            expiry: Some(now + 7 * DAY),
            ..Draft::new("remind Ada of the cake on Sunday", now + DAY)
        },
    ])?;
    let name = before;
    assistant.models.online = false;
    assistant.remember(vec![Draft::new("Ada moves to Turin in May", now + 2 * DAY)])?;
    assistant.store.close()?;

    println!("\na year later");
    let now = now + YEAR;
    let assistant = Assistant::wake(&path)?;
    assistant.catch_up()?;
    let small_talk =
        (0..20).map(|i| chat(&format!("Ada said that day {i} was rainy"), now - i * DAY));
    assistant.remember(small_talk.collect())?;
    let question = "which cake can Ada eat on Sunday?";
    assistant.answer(question, &[name], now)?;

    println!("\nwhy not the recipe?");
    let recipe = before + 2;
    let embedding = assistant.models.embedder.embedding(question)?;
    let filter = Filter {
        unexpired: true,
        ..Filter::default()
    };
    let ask = assistant.ask(&embedding, &filter, now);
    let snapshot = assistant.store.snapshot();
    let found = explain(&snapshot, &ask, recipe, Par::Serial, &mut Workspace::new())?;
    let standing = found.candidate.map_err(|why| format!("{why:?}"))?;
    println!(
        "  it is number {} of {} by score",
        standing.place, found.candidates
    );
    if let Some(importance) = standing.brings_in.importance {
        println!("  an importance of {importance} would bring it in, and it gets that");
        let own = Agent::OWN;
        (assistant.store).set_importance(own, &[recipe], Some(importance))?;
        assistant.answer(question, &[name], now)?;
    }
    assistant.store.close()?;
    Ok(())
}
