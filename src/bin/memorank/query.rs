//! `memorank query`: a store's memories, ranked.

use crate::failure::Failure;
use crate::output::{Output, bar, grouped, one_line, padded, width};
use crate::show;
use crate::{embed, opened};
use memorank::Par;
use memorank::import::{self, timestamp};
use memorank::kernel::{Isa, Kernel};
use memorank::scoring::{Component, Preset, Ranges, Touch, Workspace};
use memorank::store::Snapshot;
use memorank::stream::{self, Ask, Filter, Retrieve, Retrieved, Returned};
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store's folder.
    store: PathBuf,
    #[command(flatten)]
    like: Like,
    /// Leave the memory named by --like out: it does not compete.
    #[arg(long, conflicts_with_all = ["vector", "text"])]
    exclude_self: bool,
    /// Which of the vectors in FILE, counted from 0.
    #[arg(
        long,
        conflicts_with_all = ["like", "text"],
        default_value_t = 0,
        value_name = "N",
        value_parser = whole,
        allow_negative_numbers = true
    )]
    vector_index: usize,
    /// The embedding model's name: an error if the store was made by another.
    #[arg(long)]
    model: Option<String>,
    /// What is computed.
    #[arg(long, default_value = "paper", value_parser = Preset::NAMES)]
    preset: String,
    /// The weight of relevance, instead of the preset's.
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    relevance: Option<f64>,
    /// The weight of recency, instead of the preset's.
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    recency: Option<f64>,
    /// The weight of importance, instead of the preset's.
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    importance: Option<f64>,
    /// What remains of recency after an hour (reverie: after a position), instead of the preset's.
    #[arg(long, allow_negative_numbers = true)]
    decay: Option<f64>,
    /// How many memories, instead of the preset's number.
    #[arg(short, long, value_parser = whole, allow_negative_numbers = true)]
    k: Option<usize>,
    /// The moment of asking (RFC 3339); by default the newest last access in the store.
    #[arg(long)]
    now: Option<String>,
    /// Refresh the last access of what is returned. Without it, no byte of the store changes.
    #[arg(long)]
    touch: bool,
    /// How many threads, at most 1024; 0 for one per core.
    #[arg(long, default_value_t = 0, value_parser = threads, allow_negative_numbers = true)]
    threads: usize,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Like {
    /// A file with the query's vector: .npy, or JSON: [0.1, 0.2, ...].
    #[arg(long, value_name = "FILE")]
    vector: Option<PathBuf>,
    /// Ask with the embedding of this memory (its key or id).
    #[arg(long, value_name = "KEY")]
    like: Option<String>,
    /// Ask with the words of this text, if the store's model is the built-in one: it matches words, not meaning.
    #[arg(long)]
    text: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    preset: &'a str,
    settings: Preset,
    now: String,
    now_us: i64,
    isa: &'static str,
    memories: usize,
    candidates: usize,
    ranges: Option<Ranges>,
    touched: usize,
    hits: Vec<Hit<'a>>,
}

#[derive(Serialize)]
struct Hit<'a> {
    id: u64,
    key: Option<&'a str>,
    kind: &'a str,
    text: &'a str,
    created: String,
    /// After the touch, if there was one.
    last_access: String,
    score: f64,
    relevance: Component,
    recency: Component,
    importance: Component,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let preset = args.preset()?;
    let kernel = Kernel::new(Isa::from_env()?)?;
    let asked_at = opened::moment("--now", args.now.as_deref())?;
    let store = match args.touch {
        true => opened::to_write(&args.store)?,
        false => opened::to_read(&args.store)?,
    };
    let before = store.snapshot();
    opened::check_model(&before, args.model.as_deref())?;
    let (embedding, exclude) = args.embedding(&before)?;
    let newest = opened::newest_access(&before);
    let now = asked_at.or(newest).unwrap_or(0);
    let whence = match (asked_at, newest) {
        (Some(_), _) => "",
        (None, Some(_)) => " (the newest last access)",
        (None, None) => " (there is no last access)",
    };

    let filter = Filter {
        exclude: &exclude,
        ..Filter::default()
    };
    let wanted = Retrieve::new(Ask {
        model: args.model.as_deref(),
        filter: &filter,
        ..Ask::new(&embedding, now, &preset)
    });
    let mut workspace = Workspace::with_kernel(kernel);
    let Retrieved {
        snapshot,
        memories,
        ranges,
        candidates,
        touch,
        ..
    } = on_threads(args.threads, |par| {
        stream::retrieve(&store, &wanted, par, &mut workspace)
    })??;
    let touch = touch
        .map_err(Failure::from)
        .and_then(|()| match args.touch {
            true => Ok(store.sync()?),
            false => Ok(()),
        });
    // The ranking is shown also if it could not be noted who was in it: without a touch, then.
    let (snapshot, touched) = match touch.is_ok() && args.touch {
        true => (store.snapshot(), memories.len()),
        false => (snapshot, 0),
    };

    let document = Document {
        schema: "memorank.query/1",
        store: args.store.display().to_string(),
        preset: &args.preset,
        settings: preset,
        now: timestamp::format_us(now),
        now_us: now,
        isa: kernel.isa().name(),
        memories: snapshot.len(),
        candidates,
        ranges,
        touched,
        hits: hits(&snapshot, &memories)?,
    };
    let told = match out.is_json() {
        true => out.document(&document),
        false => print(&document, whence, out),
    };
    let told = told.and_then(|()| out.flush());
    touch.and(told)
}

/// A number from the command line.
pub fn whole(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| format!("a whole number from 0 to {}", usize::MAX))
}

/// A number of threads. Thousands would take minutes to start, and longer to rank than one.
pub fn threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|&n| n <= 1024);
    threads.ok_or_else(|| "a whole number from 0 to 1024".to_owned())
}

/// Runs `work` on so many threads: a pool of this program's for more than one.
pub fn on_threads<T: Send>(
    threads: usize,
    work: impl FnOnce(Par) -> T + Send,
) -> Result<T, Failure> {
    if threads == 1 {
        return Ok(work(Par::Serial));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool
        .map_err(|e| Failure::Error(e.into()))?
        .install(|| work(Par::Rayon)))
}

impl Args {
    fn preset(&self) -> Result<Preset, Failure> {
        let Some(mut preset) = Preset::named(&self.preset) else {
            return Err(Failure::Usage(format!(
                "no preset is called {:?}",
                self.preset
            )));
        };
        let weights = &mut preset.scoring.weights;
        weights.relevance = self.relevance.unwrap_or(weights.relevance);
        weights.recency = self.recency.unwrap_or(weights.recency);
        weights.importance = self.importance.unwrap_or(weights.importance);
        if let Some(decay) = self.decay {
            preset.scoring = preset.scoring.with_decay(decay);
        }
        preset.k = self.k.unwrap_or(preset.k);
        // Whatever the preset does: a query from the command line touches if it is told to.
        preset.touch = if self.touch {
            Touch::Returned
        } else {
            Touch::None
        };
        preset
            .scoring
            .check()
            .map_err(|e| Failure::Usage(e.to_string()))?;
        Ok(preset)
    }

    /// The query's vector, and the ids of memories that do not compete.
    fn embedding(&self, snapshot: &Snapshot) -> Result<(Vec<f32>, Vec<u64>), Failure> {
        if let Some(key) = &self.like.like {
            let row = show::find(snapshot, key)?;
            let Some(embedding) = show::embedding(snapshot, row)? else {
                return Err(Failure::Error(
                    format!("{key:?} has no embedding to ask with").into(),
                ));
            };
            return Ok((
                embedding,
                if self.exclude_self {
                    vec![snapshot.id(row)]
                } else {
                    vec![]
                },
            ));
        }
        if let Some(text) = &self.like.text {
            return Ok((embed::text(snapshot, text)?, vec![]));
        }
        let Some(path) = &self.like.vector else {
            return Err(Failure::Usage("give --vector, --like or --text".to_owned()));
        };
        let mut vectors = import::read_vectors(path)?;
        let (index, found) = (self.vector_index, vectors.len());
        if index >= found {
            let told = format!(
                "--vector-index {index}: {} holds {found} vectors",
                path.display()
            );
            return Err(Failure::Usage(told));
        }
        Ok((vectors.swap_remove(index), vec![]))
    }
}

fn hits<'a>(snapshot: &'a Snapshot, memories: &[Returned]) -> Result<Vec<Hit<'a>>, Failure> {
    // Nothing is pinned: all have scored.
    let hits = memories.iter().filter_map(|memory| memory.hit).map(|hit| {
        let memory = snapshot.memory(hit.row)?;
        Ok(Hit {
            id: memory.id,
            key: memory.key,
            kind: memory.kind.as_str(),
            text: memory.text,
            created: timestamp::format_us(memory.created),
            last_access: timestamp::format_us(memory.last_access),
            score: hit.score,
            relevance: hit.relevance,
            recency: hit.recency,
            importance: hit.importance,
        })
    });
    hits.collect()
}

fn print(document: &Document<'_>, whence: &str, out: &mut Output) -> Result<(), Failure> {
    out.line(format_args!(
        "{} candidates of {} memories, preset {}, now {}{whence}",
        grouped(document.candidates),
        grouped(document.memories),
        document.preset,
        document.now
    ))?;
    print_ranges(document.ranges.as_ref(), out)?;
    let rows = document.hits.iter().map(|hit| Line {
        key: hit
            .key
            .map_or_else(|| format!("id {}", hit.id), str::to_owned),
        text: hit.text,
        score: hit.score,
        components: [hit.relevance, hit.recency, hit.importance],
    });
    print_hits(rows, out)?;
    if document.touched > 0 {
        out.line(format_args!("touched {} memories", document.touched))?;
    }
    Ok(())
}

/// One hit, to be printed.
pub struct Line<'a> {
    pub key: String,
    pub text: &'a str,
    pub score: f64,
    pub components: [Component; 3],
}

pub fn print_hits<'a>(
    lines: impl Iterator<Item = Line<'a>>,
    out: &mut Output,
) -> Result<(), Failure> {
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return Ok(());
    }
    let keys: Vec<_> = lines.iter().map(|line| one_line(&line.key, 24)).collect();
    let widest = keys.iter().map(|key| width(key)).max().unwrap_or(0);
    out.heading(format_args!(
        "{:>4} {:>7}  {:<14}  {:<14}  {:<14}  memory",
        "", "score", "relevance", "recency", "importance"
    ))?;
    for (i, (line, key)) in lines.iter().zip(&keys).enumerate() {
        let bars = line
            .components
            .map(|c| format!("{} {:>5.2}", bar(c.normalized), c.normalized));
        out.line(format_args!(
            "{:>4} {:>7.4}  {}  {}  {}  {}  {}",
            i + 1,
            line.score,
            bars[0],
            bars[1],
            bars[2],
            padded(key, widest),
            one_line(line.text, 60)
        ))?;
    }
    Ok(())
}

pub fn print_ranges(ranges: Option<&Ranges>, out: &mut Output) -> Result<(), Failure> {
    let Some(ranges) = ranges else {
        return out.line("no candidates");
    };
    let ages = ranges.ages.map_or(String::new(), |ages| {
        let hours = |us: u64| us as f64 / 3.6e9;
        format!(
            "  (ages {:.1} h to {:.1} h)",
            hours(ages.youngest),
            hours(ages.oldest)
        )
    });
    out.line(format_args!(
        "ranges: relevance {:.4} to {:.4}, recency {} to {}{ages}, importance {} to {}",
        ranges.relevance.min,
        ranges.relevance.max,
        decayed(ranges.recency.min),
        decayed(ranges.recency.max),
        ranges.importance.min,
        ranges.importance.max
    ))
}

/// A recency: 0.9951, or 3.2e-40.
fn decayed(recency: f64) -> String {
    match recency {
        0.0 => "0".to_owned(),
        0.001.. => format!("{recency:.4}"),
        _ => format!("{recency:.1e}"),
    }
}
