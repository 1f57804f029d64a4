//! A million rows: the plain read, the cosine scan and the ranking.

use crate::check;
use crate::data::{Data, columns, embedding_bytes, embeddings};
use crate::machine::{Setup, fetched_from_disk, parts};
use crate::read_loops::{READ_LOOPS, read_parts};
use crate::report::{Goal, Report, name, threads};
use crate::turns::{Work, interleaved, timed, turn};
use memorank::Par;
use memorank::kernel::{Dtype, Isa, Kernel, Picks, Queries};
use memorank::scoring::{Preset, Query, Ranking, Workspace, rank_into};
use memorank::store::Snapshot;
use memorank::yardstick::{bytes_read, read_bytes, read_columns};
use rayon::prelude::*;
use serde_json::json;

pub fn run(setup: &Setup, report: &mut Report) {
    for dtype in [Dtype::F16, Dtype::F32] {
        for dim in [384, 768, 1536] {
            let mut data = None;
            let made = timed(|| data = Some(Data::make(setup.million(), dim, dtype)));
            let data = data.expect("made above");
            println!("\n{} x {dim} {dtype}, made in {made:.1} s", setup.million());
            warm(setup, report, &data);
            if dim == 384 {
                cold(setup, report, &data);
            }
            if (dim, dtype) == (768, Dtype::F16) {
                other_loops(setup, report, &data);
            }
        }
    }
}

/// What is measured, and what it is compared with.
#[derive(Clone, Copy)]
enum Thing {
    ReadAll,
    ReadEmbeddings,
    Scan(Kernel),
    Ranking(Kernel),
}

impl Thing {
    fn name(self) -> String {
        match self {
            Thing::ReadAll => "plain read".to_owned(),
            Thing::ReadEmbeddings => "plain read, embeddings".to_owned(),
            Thing::Scan(kernel) => format!("cosine scan, {}", kernel.isa()),
            Thing::Ranking(kernel) => format!("ranking, {}", kernel.isa()),
        }
    }

    fn isa(self) -> Option<Isa> {
        match self {
            Thing::ReadAll | Thing::ReadEmbeddings => None,
            Thing::Scan(kernel) | Thing::Ranking(kernel) => Some(kernel.isa()),
        }
    }
}

fn warm(setup: &Setup, report: &mut Report, data: &Data) {
    let store = data.open();
    let (dim, dtype) = (store.dim().get(), store.dtype());
    let embedding = data.query(0);
    let query = Query::new(&embedding, data.now(), 30);
    check::ranking(setup, &store, store.len(), &query);
    let mut queries = Queries::new(store.dim());
    queries.push_unit(&embedding).expect("sound");
    check_scans(setup, &store, &queries);

    let all = [columns(&store, 0..store.len())];
    let (all, store, queries, query) = (&all, &store, &queries, &query);
    let bytes = embedding_bytes(store);
    println!(
        "{:>9} {:24} {:>9} {:>7} {:>8}",
        "threads", "", "ms", "GB/s", "of plain"
    );
    for par in setup.pars() {
        let mut things = vec![Thing::ReadAll, Thing::ReadEmbeddings];
        things.extend(setup.kernels.iter().map(|&kernel| Thing::Scan(kernel)));
        things.extend(setup.kernels.iter().map(|&kernel| Thing::Ranking(kernel)));
        let work = |&thing: &Thing| -> Work<'_> {
            match thing {
                Thing::ReadAll => turn(move || read_columns(all, par, Kernel::best())),
                Thing::ReadEmbeddings => {
                    turn(move || read_parts(bytes, par, |part| read_bytes(part, Kernel::best())))
                }
                Thing::Scan(kernel) => {
                    let mut out = vec![0.0; store.len()];
                    turn(move || scan(store, queries, par, kernel, &mut out))
                }
                Thing::Ranking(kernel) => {
                    let mut workspace = Workspace::with_kernel(kernel);
                    let (scoring, mut ranking) = (Preset::paper().scoring, Ranking::default());
                    turn(move || rank_into(all, query, &scoring, par, &mut workspace, &mut ranking))
                }
            }
        };
        let times = interleaved(setup.rounds(), 1, things.iter().map(work).collect());
        for (work, &thing) in things.iter().enumerate() {
            let (read, bytes) = match thing {
                Thing::ReadAll | Thing::Ranking(_) => (0, bytes_read(all)),
                Thing::ReadEmbeddings | Thing::Scan(_) => (1, bytes.len()),
            };
            let (seconds, ratio) = (times.seconds(work), times.ratio(read, work));
            let speed = bytes as f64 / seconds / 1e9;
            println!(
                "{:>9} {:24} {:>9.2} {speed:>7.1} {ratio:>8.2}",
                par.threads(),
                thing.name(),
                seconds * 1e3,
            );
            report.figure(
                "memory",
                json!({
                    "rows": store.len(), "dim": dim, "dtype": dtype.name(), "threads": par.threads(),
                    "what": thing.name(), "isa": thing.isa().map(Isa::name), "seconds": seconds,
                    "bytes": bytes, "of_plain": ratio,
                }),
            );
            let case = name(dim, dtype, par);
            match thing {
                Thing::ReadAll | Thing::ReadEmbeddings => continue,
                Thing::Scan(kernel) => match kernel.isa() {
                    Isa::Avx512 => report.judge(Goal::ScanAvx512, &case, ratio),
                    Isa::Avx2 => report.judge(Goal::ScanAvx2, &case, ratio),
                    Isa::Portable | Isa::Scalar => {}
                },
                Thing::Ranking(kernel) if kernel == setup.judged => {
                    let goal = match dim {
                        384 => Goal::Ranking384,
                        _ => Goal::RankingLarger,
                    };
                    report.judge(goal, &case, ratio);
                }
                Thing::Ranking(_) => {}
            }
            let case = format!("{}, {case}", thing.name());
            report.judge(Goal::YardstickRankings, case, ratio);
        }
    }
}

/// The dot products of all rows, cut for threads as the library does.
fn scan(store: &Snapshot, queries: &Queries, par: Par, kernel: Kernel, out: &mut [f32]) {
    let rows = embeddings(store);
    if par == Par::Serial {
        return kernel.dots(rows, Picks::Range(0..out.len()), queries, out);
    }
    let size = out.len().div_ceil(parts(par));
    let chunks = out.par_chunks_mut(size).with_max_len(1).enumerate();
    chunks.for_each(|(i, out)| {
        let start = i * size;
        kernel.dots(rows, Picks::Range(start..start + out.len()), queries, out);
    });
}

fn check_scans(setup: &Setup, store: &Snapshot, queries: &Queries) {
    let mut first = vec![0.0; store.len()];
    scan(store, queries, Par::Serial, setup.judged, &mut first);
    let mut other = vec![0.0; store.len()];
    for &kernel in &setup.kernels {
        for par in setup.pars() {
            other.fill(f32::NAN);
            scan(store, queries, par, kernel, &mut other);
            check::dots(store, queries, &first, &other);
        }
    }
}

/// The first time after the page cache was dropped: the disk's speed, not the memory's. A single time
/// each, and no target: other caches may lie below a virtual disk.
fn cold(setup: &Setup, report: &mut Report, data: &Data) {
    let embedding = data.query(0);
    let query = Query::new(&embedding, data.now(), 30);
    for what in ["plain read, cold", "ranking, cold"] {
        data.drop_cache();
        let store = data.open();
        let all = [columns(&store, 0..store.len())];
        let before = fetched_from_disk();
        let seconds = timed(|| match what {
            "ranking, cold" => {
                let mut workspace = Workspace::with_kernel(setup.judged);
                check::rank(&all, &query, Par::Rayon, &mut workspace).candidates as u64
            }
            _ => read_columns(&all, Par::Rayon, Kernel::best()),
        });
        let (bytes, fetched) = (bytes_read(&all), fetched_from_disk() - before);
        let threads = Par::Rayon.threads();
        if (fetched as f64) < 0.9 * bytes as f64 {
            println!("{threads:>9} {what:24} none: the system kept the files in its page cache");
            continue;
        }
        let speed = bytes as f64 / seconds / 1e9;
        println!("{threads:>9} {what:24} {:>9.2} {speed:>7.1}", seconds * 1e3);
        report.figure(
            "memory",
            json!({
                "rows": store.len(), "dim": store.dim().get(), "dtype": store.dtype().name(),
                "threads": threads, "what": what, "seconds": seconds, "bytes": bytes,
            }),
        );
    }
}

/// The yardstick beside other ways to read the same bytes.
fn other_loops(setup: &Setup, report: &mut Report, data: &Data) {
    let store = data.open();
    let bytes = embedding_bytes(&store);
    let yardstick = |part: &[u8]| read_bytes(part, Kernel::best());
    for par in setup.pars() {
        let word = yardstick(bytes);
        let mut works: Vec<Work<'_>> = vec![turn(move || read_parts(bytes, par, yardstick))];
        for (name, read) in READ_LOOPS {
            assert_eq!(
                read_parts(bytes, par, read),
                word,
                "{name} reads every byte"
            );
            works.push(turn(move || read_parts(bytes, par, read)));
        }
        let times = interleaved(setup.rounds(), 1, works);
        let names = ["yardstick"]
            .into_iter()
            .chain(READ_LOOPS.map(|(name, _)| name));
        for (work, name) in names.enumerate() {
            let (time, ratio) = (times.seconds(work), times.ratio(0, work));
            let speed = bytes.len() as f64 / time / 1e9;
            println!(
                "{:>9} {name:24} {:>9.2} {speed:>7.1} {ratio:>8.2}",
                par.threads(),
                time * 1e3
            );
            report.figure(
                "read loops",
                json!({
                    "threads": par.threads(), "what": name, "seconds": time,
                    "bytes": bytes.len(), "of_plain": ratio,
                }),
            );
            if name != "yardstick" {
                let case = format!("{name}, {}", threads(par));
                report.judge(Goal::YardstickLoops, case, ratio);
            }
        }
    }
}
