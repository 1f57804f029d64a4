//! `memorank demo`: generate, store, rank, compare with the oracle and the plain read, touch, rank again.

use crate::failure::Failure;
use crate::import::DtypeName;
use crate::output::{Output, grouped, one_line, progress};
use crate::table::{Line, print_hits, print_ranges};
use crate::threads::{on_threads, threads};
use memorank::Par;
use memorank::kernel::{Isa, Kernel};
use memorank::oracle::{self, Comparison};
use memorank::scoring::{self, Preset, Query, Ranges, Ranking, Workspace, rank_into};
use memorank::store::{Agent, CreateOptions, Kind, NewMemory, Reference, Snapshot, Store};
use memorank::stream::{self, Ask, Retrieve, Retrieved};
use memorank::yardstick::{bytes_read, read_columns};
use memorank_data_gen::{Block, Config, Stream};
use serde::Serialize;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::Instant;

#[derive(clap::Args)]
pub struct Args {
    /// How many memories to generate.
    #[arg(long, default_value_t = 1_000_000)]
    memories: usize,
    /// Elements per embedding.
    #[arg(long, default_value = "384")]
    dim: NonZeroUsize,
    /// How to store embeddings.
    #[arg(long, value_enum, default_value = "f16")]
    dtype: DtypeName,
    /// The seed of everything generated.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many threads, at most 1024; 0 for one per core.
    #[arg(long, default_value_t = 0, value_parser = threads, allow_negative_numbers = true)]
    threads: usize,
}

/// Rankings and reads are timed in turn, this often; their medians are compared.
const ROUNDS: usize = 9;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    memories: usize,
    dim: usize,
    dtype: &'static str,
    seed: u64,
    isa: &'static str,
    threads: usize,
    query: String,
    now_us: i64,
    seconds: Seconds,
    bytes: usize,
    oracle: Verdict,
    ranges: Option<Ranges>,
    before_touch: Vec<Shown>,
    after_touch: Vec<Shown>,
}

#[derive(Serialize)]
struct Seconds {
    generate_and_store: f64,
    open: f64,
    first_ranking: f64,
    /// Median, warm.
    ranking: f64,
    /// Median, interleaved with the rankings.
    plain_read: f64,
}

/// What the f64 oracle says of the same query.
#[derive(Serialize)]
pub struct Verdict {
    pub agrees: bool,
    /// Between our cosines and the oracle's, over all memories.
    pub largest_cosine_difference: f64,
    /// `kernel::cosine_error_bound` of the dimension.
    pub cosine_bound: f64,
    /// Whether the oracle, given our cosines, ranks the same memories in the same order.
    pub same_order: bool,
    /// Between our totals and those of the oracle, given our cosines.
    pub largest_total_difference: f64,
}

impl Verdict {
    pub fn new(compared: &Comparison) -> Verdict {
        Verdict {
            agrees: compared.agrees(),
            largest_cosine_difference: compared.largest_cosine_difference,
            cosine_bound: compared.cosine_bound,
            same_order: compared.same_order,
            largest_total_difference: compared.largest_total_difference,
        }
    }
}

#[derive(Clone, Serialize)]
struct Shown {
    key: String,
    text: String,
    /// Its place in the ranking before the touch, if it was among those shown.
    before: Option<usize>,
    #[serde(flatten)]
    hit: memorank::scoring::Hit,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let kernel = Kernel::new(Isa::from_env()?)?;
    let config = Config {
        memories: args.memories,
        dim: args.dim.get(),
        seed: args.seed,
    };
    let stream = Stream::new(config).map_err(|e| Failure::Usage(e.to_string()))?;
    let folder = tempfile::Builder::new()
        .prefix("memorank-demo-")
        .tempdir()
        .map_err(|e| Failure::Error(format!("no temporary folder: {e}").into()))?;
    let path = folder.path().join("store");

    let started = Instant::now();
    let options = CreateOptions {
        dim: args.dim,
        dtype: args.dtype.into(),
        model: None,
    };
    let store = Store::create(&path, &options).map_err(|e| Failure::Error(e.into()))?;
    fill(&store, &stream)?;
    store.close()?;
    let generate_and_store = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let store = Store::open(&path)?;
    let open = started.elapsed().as_secs_f64();

    let document = on_threads(args.threads, |par| {
        let asked = Asked {
            stream: &stream,
            kernel,
            par,
        };
        asked.measure(&store, generate_and_store, open)
    })??;
    drop(store);
    folder.close()?;
    if out.is_json() {
        out.document(&document)?;
    } else {
        print(&document, out)?;
    }
    if document.oracle.agrees {
        Ok(())
    } else {
        out.flush()?;
        Err(Failure::Error("the f64 oracle disagrees".into()))
    }
}

/// Generates block by block and appends all of it, or nothing.
fn fill(store: &Store, stream: &Stream) -> Result<(), Failure> {
    let bar = progress(stream.config().memories as u64, "generating");
    let mut bulk = store.bulk().map_err(|e| Failure::Error(e.into()))?;
    std::thread::scope(|scope| {
        // One thread generates, this one stores; a few blocks wait between them.
        let (sender, blocks) = std::sync::mpsc::sync_channel(4);
        // A failed send means that storing failed and nobody listens any more.
        scope.spawn(move || {
            stream
                .blocks()
                .try_for_each(|block| sender.send(block).ok())
        });
        for block in blocks {
            append(&mut bulk, &block).map_err(|e| Failure::Error(e.into()))?;
            bar.inc(block.len() as u64);
        }
        Ok::<(), Failure>(())
    })?;
    bulk.commit().map_err(|e| Failure::Error(e.into()))?;
    bar.finish_and_clear();
    Ok(())
}

fn append(
    bulk: &mut memorank::store::BulkAppend<'_>,
    block: &Block,
) -> Result<(), memorank::store::AppendError> {
    for memory in block.memories() {
        let evidence: Vec<Reference> = memory
            .evidence
            .iter()
            .map(|&row| Reference::Id(row as u64))
            .collect();
        bulk.push(&NewMemory {
            key: Some(&memory.key()),
            kind: Kind::named(memory.kind.as_str()),
            text: &memory.text(),
            embedding: Some(memory.embedding),
            created: memory.created,
            last_access: memory.last_access,
            expiry: None,
            importance: memory.importance,
            evidence: &evidence,
            depth: memory.depth,
            supersedes: None,
            payload: b"",
        })?;
    }
    Ok(())
}

/// The query of the demo, and where it runs.
struct Asked<'a> {
    stream: &'a Stream,
    kernel: Kernel,
    par: Par,
}

impl Asked<'_> {
    fn measure(
        &self,
        store: &Store,
        generate_and_store: f64,
        open: f64,
    ) -> Result<Document, Failure> {
        let mut preset = Preset::paper();
        preset.k = 10;
        let (embedding, now) = (self.stream.query(0), self.stream.now());
        let ask = Ask::new(&embedding, now, &preset);
        let mut workspace = Workspace::with_kernel(self.kernel);
        let mut ranking = Ranking::default();

        let snapshot = store.snapshot();
        let first = Instant::now();
        stream::rank(&snapshot, &ask, self.par, &mut workspace, &mut ranking)?;
        let first_ranking = first.elapsed().as_secs_f64();

        let columns = stream::columns(&snapshot, Agent::OWN);
        let columns = columns.map_err(|e| Failure::Error(e.into()))?;
        let query = Query::new(&embedding, now, preset.k);
        let (mut ranks, mut reads) = ([0.0; ROUNDS], [0.0; ROUNDS]);
        for (rank, read) in ranks.iter_mut().zip(&mut reads) {
            let started = Instant::now();
            rank_into(
                &columns,
                &query,
                &preset.scoring,
                self.par,
                &mut workspace,
                &mut ranking,
            )?;
            *rank = started.elapsed().as_secs_f64();
            let started = Instant::now();
            std::hint::black_box(read_columns(&columns, self.par, self.kernel));
            *read = started.elapsed().as_secs_f64();
        }
        let (ranked, read) = (median(ranks), median(reads));
        let compared =
            oracle::compare(&columns, &query, &preset.scoring, self.par, &mut workspace)?;
        let bytes = bytes_read(&columns);

        let ranges = ranking.ranges;
        let Retrieved {
            snapshot,
            memories,
            touch,
            ..
        } = stream::retrieve(store, &Retrieve::new(ask), self.par, &mut workspace)?;
        touch?;
        let before_touch = shown(&snapshot, &ranking.hits, &HashMap::new())?;
        let places = memories
            .iter()
            .enumerate()
            .map(|(i, memory)| (memory.row, i + 1))
            .collect();
        let touched = store.snapshot();
        stream::rank(&touched, &ask, self.par, &mut workspace, &mut ranking)?;
        Ok(Document {
            schema: "memorank.demo/1",
            memories: snapshot.len(),
            dim: snapshot.dim().get(),
            dtype: snapshot.dtype().name(),
            seed: self.stream.config().seed,
            isa: self.kernel.isa().name(),
            threads: self.par.threads(),
            query: self.stream.query_text(0),
            now_us: now,
            seconds: Seconds {
                generate_and_store,
                open,
                first_ranking,
                ranking: ranked,
                plain_read: read,
            },
            bytes,
            oracle: Verdict::new(&compared),
            ranges,
            before_touch,
            after_touch: shown(&touched, &ranking.hits, &places)?,
        })
    }
}

fn median(mut seconds: [f64; ROUNDS]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[ROUNDS / 2]
}

fn shown(
    snapshot: &Snapshot,
    hits: &[scoring::Hit],
    places: &HashMap<usize, usize>,
) -> Result<Vec<Shown>, Failure> {
    let hits = hits.iter().map(|hit| {
        let memory = snapshot.memory(hit.row)?;
        Ok(Shown {
            key: memory.key.unwrap_or_default().to_owned(),
            text: memory.text.to_owned(),
            before: places.get(&hit.row).copied(),
            hit: *hit,
        })
    });
    hits.collect()
}

fn print(document: &Document, out: &mut Output) -> Result<(), Failure> {
    let Document {
        seconds, oracle, ..
    } = document;
    let speed = |s: f64| document.bytes as f64 / 1e9 / s;
    let memories = grouped(document.memories);
    out.heading(format_args!(
        "{memories} memories x {} {}, seed {}, preset paper, k 10",
        document.dim, document.dtype, document.seed
    ))?;
    let (isa, threads) = (document.isa, document.threads);
    out.line(format_args!(
        "  generate, store  {:>9.2} s",
        seconds.generate_and_store
    ))?;
    out.line(format_args!(
        "  open             {:>9.2} ms",
        seconds.open * 1e3
    ))?;
    out.line(format_args!(
        "  first ranking    {:>9.2} ms",
        seconds.first_ranking * 1e3
    ))?;
    out.line(format_args!(
        "  ranking, warm    {:>9.2} ms  {:>5.1} GB/s  {isa}, {threads} threads, median of {ROUNDS}",
        seconds.ranking * 1e3,
        speed(seconds.ranking)
    ))?;
    out.line(format_args!(
        "  plain read       {:>9.2} ms  {:>5.1} GB/s  the same bytes and threads: ranking = {:.2} reads",
        seconds.plain_read * 1e3,
        speed(seconds.plain_read),
        seconds.ranking / seconds.plain_read
    ))?;
    out.line(format_args!(
        "  f64 oracle       {}: cosines differ by at most {:.1e} (bound {:.1e}); order {}, totals within {:.0e}",
        if oracle.agrees { "AGREES" } else { "DISAGREES" },
        oracle.largest_cosine_difference,
        oracle.cosine_bound,
        if oracle.same_order { "the same" } else { "DIFFERENT" },
        oracle.largest_total_difference
    ))?;
    out.line(format_args!("\nquery: {}", one_line(&document.query, 80)))?;
    print_ranges(document.ranges.as_ref(), out)?;
    print_hits(
        document
            .before_touch
            .iter()
            .map(|shown| shown.line(String::new())),
        out,
    )?;
    out.line("\nretrieved: each of the ten was accessed now. The same query again:")?;
    let moved = document.after_touch.iter().enumerate().map(|(i, shown)| {
        shown.line(match shown.before {
            None => " (new)".to_owned(),
            Some(before) if before == i + 1 => String::new(),
            Some(before) => format!(" (was {before})"),
        })
    });
    print_hits(moved, out)
}

impl Shown {
    fn line(&self, note: String) -> Line<'_> {
        Line {
            key: self.key.clone(),
            note,
            text: &self.text,
            hit: Some(self.hit),
            detail: None,
        }
    }
}
