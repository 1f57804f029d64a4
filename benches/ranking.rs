//! A million memories: opening the store, ranking it, and the memory a ranking takes, each beside what
//! was promised. The answer is checked against the oracle before anything is timed.
//!
//! `cargo bench --bench ranking` (add `-- --test` for a small run without verdicts). Times are medians of
//! rounds in which the plain read of the same bytes and the ranking take turns.

use memorank::kernel::{Isa, Kernel};
use memorank::scoring::{Columns, Preset, Query, Ranking, Workspace, rank_into};
use memorank::store::{CreateOptions, Kind, NewMemory, Store};
use memorank::yardstick::{bytes_read, read_columns};
use memorank::{Par, kernel::Dtype, oracle, stream};
use memorank_data_gen::{Config, Stream};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

const DIM: usize = 384;
const ROUNDS: usize = 15;
/// Set for the child process that measures its own memory.
const CHILD: &str = "MEMORANK_BENCH_STORE";

fn main() -> ExitCode {
    if let Some(path) = std::env::var_os(CHILD) {
        rank_and_tell_memory(Path::new(&path));
        return ExitCode::SUCCESS;
    }
    let small = std::env::args().any(|arg| arg == "--test");
    let memories = if small { 20_000 } else { 1_000_000 };
    let config = Config {
        memories,
        dim: DIM,
        seed: 1,
    };
    let data = Stream::new(config).expect("the configuration is in range");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store");
    fill(&path, &data);
    let query = data.query(0);
    let query = Query::new(&query, data.now(), 30);

    let mut verdicts = vec![open_time(&path)];
    let store = Store::open_read_only(&path).expect("the store was just made");
    let columns = [stream::columns(&store).expect("a store's columns fit")];
    check(&columns, &query);
    println!("{memories} x {DIM} f16, paper, top 30; the oracle agrees");
    verdicts.extend(ranking_times(&columns, &query));
    verdicts.push(anonymous_memory(&path));

    let mut missed = false;
    for Verdict {
        what,
        measured,
        target,
        unit,
    } in verdicts
    {
        let held = measured <= target;
        missed |= !held;
        let word = if held { "held" } else { "MISSED" };
        println!("{word:>6}  {what}: {measured:.2} {unit}, target {target} {unit}");
    }
    if missed && !small {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

struct Verdict {
    what: String,
    measured: f64,
    target: f64,
    unit: &'static str,
}

fn fill(path: &Path, data: &Stream) {
    let dim = DIM.try_into().expect("not 0");
    let options = CreateOptions {
        dim,
        dtype: Dtype::F16,
        model: None,
    };
    let mut store = Store::create(path, &options).expect("a new folder");
    let mut bulk = store.bulk().expect("no other writer");
    for block in data.blocks() {
        for memory in block.memories() {
            bulk.push(&NewMemory {
                key: None,
                kind: Kind::named(memory.kind.as_str()),
                text: &memory.text(),
                embedding: Some(memory.embedding),
                created: memory.created,
                last_access: memory.last_access,
                expiry: None,
                importance: memory.importance,
                evidence: &[],
                depth: memory.depth,
                payload: b"",
            })
            .expect("generated memories are sound");
        }
    }
    bulk.commit().expect("the disk has room");
    store.close().expect("the disk has room");
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let started = Instant::now();
    std::hint::black_box(work());
    started.elapsed().as_secs_f64()
}

fn open_time(path: &Path) -> Verdict {
    let open = || Store::open_read_only(path).expect("the store was just made");
    let seconds = (0..ROUNDS).map(|_| timed(open)).collect();
    Verdict {
        what: "open, warm".to_owned(),
        measured: median(seconds) * 1e3,
        target: 20.0,
        unit: "ms",
    }
}

/// Nothing is timed before its answer is right.
fn check(columns: &[Columns<'_>; 1], query: &Query<'_>) {
    let scoring = Preset::paper().scoring;
    let compared = oracle::compare(columns, query, &scoring, Par::Rayon, &mut Workspace::new());
    let compared = compared.expect("the query is sound");
    assert!(compared.agrees(), "{compared:?}");
}

/// One plain read and one ranking per kernel in every round, so that all of them see the same machine.
fn ranking_times(columns: &[Columns<'_>; 1], query: &Query<'_>) -> Vec<Verdict> {
    let scoring = Preset::paper().scoring;
    let gigabytes = bytes_read(columns) as f64 / 1e9;
    // What the verdicts are about: the best kernel, or the one MEMORANK_ISA names.
    let judged = Isa::from_env().expect("MEMORANK_ISA names an instruction set of this machine");
    let mut verdicts = Vec::new();
    println!("{:>12} {:>8} {:>12} {:>8}", "", "threads", "speed", "ratio");
    for par in [Par::Serial, Par::Rayon] {
        let threads = par.threads();
        let isas = [Isa::Portable, Isa::Avx2, Isa::Avx512];
        let mut kernels: Vec<(Workspace, Vec<f64>)> = isas
            .into_iter()
            .filter_map(|isa| Kernel::new(isa).ok())
            .map(|kernel| (Workspace::with_kernel(kernel), Vec::new()))
            .collect();
        let mut ranking = Ranking::default();
        let mut reads = Vec::new();
        for _ in 0..ROUNDS {
            reads.push(timed(|| read_columns(columns, par, Kernel::best())));
            for (workspace, seconds) in &mut kernels {
                seconds.push(timed(|| {
                    rank_into(columns, query, &scoring, par, workspace, &mut ranking)
                }));
            }
        }
        let read = median(reads);
        println!(
            "{:>12} {threads:>8} {:>7.1} GB/s",
            "plain read",
            gigabytes / read
        );
        for (workspace, seconds) in kernels {
            let (isa, seconds) = (workspace.kernel().isa(), median(seconds));
            let ratio = seconds / read;
            println!(
                "{isa:>12} {threads:>8} {:>7.1} GB/s {ratio:>8.2}",
                gigabytes / seconds
            );
            if isa == judged {
                let what = format!("ranking / plain read, {isa}, {threads} threads");
                verdicts.push(Verdict {
                    what,
                    measured: ratio,
                    target: 1.5,
                    unit: "x",
                });
            }
        }
    }
    verdicts
}

fn anonymous_memory(path: &Path) -> Verdict {
    let program = std::env::current_exe().expect("the bench has a path");
    let output = Command::new(program)
        .env(CHILD, path)
        .output()
        .expect("the bench runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    let kib: f64 = text
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("the child told {output:?}"));
    let what = "anonymous memory of a process that opens and ranks".to_owned();
    Verdict {
        what,
        measured: kib / 1024.0,
        target: 64.0,
        unit: "MB",
    }
}

/// Opens, ranks, and prints RssAnon in KiB.
fn rank_and_tell_memory(path: &Path) {
    let store = Store::open_read_only(path).expect("the store is there");
    let columns = [stream::columns(&store).expect("a store's columns fit")];
    let embedding = store.embedding(0).expect("generated memories have vectors");
    let query = Query::new(&embedding, store.last_access()[0], 30);
    let mut ranking = Ranking::default();
    let scoring = Preset::paper().scoring;
    rank_into(
        &columns,
        &query,
        &scoring,
        Par::Rayon,
        &mut Workspace::new(),
        &mut ranking,
    )
    .expect("the query is sound");
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    println!(
        "{}",
        line.expect("Linux 4.5 and later")
            .trim()
            .trim_end_matches(" kB")
    );
}
