//! What the journal costs: rankings over rows that are not in the columns yet, opening, touches, appends
//! that are on disk when they return, and what a reader feels of an appender.

use crate::check;
use crate::data::{Data, block, columns, create, new_memory, stream};
use crate::machine::Setup;
use crate::report::{Goal, Report, threads};
use crate::turns::{Work, interleaved, median, quantile, timed, turn};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Query, Ranking, Workspace};
use memorank::store::{Agent, NewMemory, OpenOptions, Snapshot, Store};
use memorank::stream::{self, Ask, Filter};
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread;

const DIM: usize = 384;
const DTYPE: Dtype = Dtype::F16;
/// Memories of an append that goes to the journal.
const BATCH: usize = 500;
/// Memories of a touch.
const TOUCHED: usize = 30;

pub fn run(setup: &Setup, report: &mut Report) {
    let block = block(DIM);
    let texts: Vec<String> = block.memories().map(|memory| memory.text()).collect();
    let memories: Vec<NewMemory<'_>> = (block.memories().zip(&texts))
        .map(|(memory, text)| new_memory(&memory, text))
        .collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = create(&folder.path().join("store"), DIM, DTYPE);
    full_tail(setup, report, &memories, store);
    let data = Data::make(setup.million(), DIM, DTYPE);
    full_tail(setup, report, &memories, data.open_to_write());
    drop(data);
    touch(setup, report);
    append_one(setup, report, &memories[0]);
    reader(setup, report, &memories);
}

/// As many rows as fit in the journal before it is folded, after those that a store has: opened, and ranked
/// beside the same rows folded. Of a store without others it is told what nothing but a tail costs.
fn full_tail(setup: &Setup, report: &mut Report, memories: &[NewMemory<'_>], store: Store) {
    let below = store.snapshot().rows();
    let bytes = fill_journal(setup, &store, memories);
    let tail = store.snapshot();
    let rows = tail.rows();
    assert_eq!(store.info().in_journal, rows - below, "none was folded");

    // The journal stays as long as the writer does.
    let open = || {
        let opened = Store::open_read_only(store.path()).expect("the store is there");
        assert_eq!(opened.snapshot().rows(), rows);
    };
    let seconds = median((0..setup.rounds()).map(|_| timed(open)).collect());
    let in_tail = format!("{} of {rows} rows in the tail", rows - below);
    println!("{in_tail}, {bytes} bytes of journal, {DIM} {DTYPE}");
    println!("  open: {seconds:.3} s");
    report.figure(
        "journal",
        json!({
            "what": "open", "journal_bytes": bytes, "rows": rows, "in_columns": below, "seconds": seconds,
        }),
    );
    report.judge(Goal::OpenJournal, in_tail.clone(), seconds);

    store.checkpoint().expect("the disk has room");
    let folded = store.snapshot();
    assert_eq!(store.info().in_journal, 0);
    let stream = stream(memories.len(), DIM);
    let embedding = stream.query(0);
    let query = Query::new(&embedding, stream.now(), 30);
    check::ranking(setup, &folded, rows, &query);
    let preset = Preset::paper();
    // All rows, whenever they were made: the rows before these are of a longer stream.
    let filter = Filter {
        future: true,
        ..Filter::default()
    };
    let ask = Ask {
        filter: &filter,
        ..Ask::new(&embedding, stream.now(), &preset)
    };
    for par in setup.pars() {
        let rank = |snapshot: &Snapshot, workspace: &mut Workspace, ranking: &mut Ranking| {
            stream::rank(snapshot, &ask, par, workspace, ranking).expect("the query is sound");
        };
        let mut rankings = [Ranking::default(), Ranking::default()];
        let works: Vec<Work<'_>> = ([&tail, &folded].into_iter().zip(&mut rankings))
            .map(|(snapshot, ranking)| {
                let mut workspace = Workspace::with_kernel(setup.judged);
                turn(move || rank(snapshot, &mut workspace, ranking))
            })
            .collect();
        let times = interleaved(setup.rounds(), if setup.tiny { 1 } else { 5 }, works);
        assert!(rankings[0] == rankings[1], "in the tail, in the columns");
        assert_eq!(rankings[0].candidates, rows, "all compete");
        let (with_tail, in_columns) = (times.seconds(0), times.seconds(1));
        let ratio = times.ratio(0, 1);
        println!(
            "  ranking, {} threads: {:.3} ms, all in the columns {:.3} ms: {ratio:.3} of that",
            par.threads(),
            with_tail * 1e3,
            in_columns * 1e3
        );
        report.figure(
            "journal",
            json!({
                "what": "ranking", "rows": rows, "in_columns": below, "dim": DIM, "dtype": DTYPE.name(),
                "threads": par.threads(), "isa": setup.judged.isa().name(),
                "tail_seconds": with_tail, "columns_seconds": in_columns, "of_columns": ratio,
            }),
        );
        if below > 0 {
            report.judge(Goal::Tail, format!("{in_tail}, {}", threads(par)), ratio);
        }
    }
}

/// Appends until one more batch would have the journal folded. Gives the journal's bytes.
fn fill_journal(setup: &Setup, store: &Store, memories: &[NewMemory<'_>]) -> u64 {
    let most = match setup.tiny {
        true => 2 << 20,
        false => OpenOptions::default().checkpoint_bytes,
    };
    let mut bytes = 0;
    for batch in memories.chunks_exact(BATCH).cycle() {
        store.append(batch).expect("the disk has room");
        let before = std::mem::replace(&mut bytes, journal_bytes(store.path()));
        // Their texts differ a little in length.
        if bytes + (bytes - before) * 9 / 8 > most {
            break;
        }
    }
    bytes
}

/// Bytes of the journal's files.
fn journal_bytes(store: &Path) -> u64 {
    let entries = std::fs::read_dir(store).expect("the store is there");
    let entries = entries.map(|entry| entry.expect("the store is there"));
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("journal."))
        .map(|entry| entry.metadata().expect("the file is there").len())
        .sum()
}

/// Touches of memories here and there: alone, and beside a snapshot, as a retrieval touches. The snapshot
/// keeps the pages as they were, until it is dropped.
fn touch(setup: &Setup, report: &mut Report) {
    let data = Data::make(setup.million(), DIM, DTYPE);
    let store = data.open_to_write();
    let rows = store.snapshot().rows() as u64;
    let somewhere = |i: u64| ((i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) * rows) >> 32;
    let (mut touches, mut now) = (0, data.now());
    let ids: Vec<[u64; TOUCHED]> = (0..64)
        .map(|touch| std::array::from_fn(|i| somewhere(touch * TOUCHED as u64 + i as u64)))
        .collect();
    let mut touch = || {
        touches += 1;
        now += 1;
        let ids = &ids[touches % ids.len()];
        (store.touch(Agent::OWN, ids, now)).expect("the disk has room");
    };
    // Every page that will be touched is there.
    (0..ids.len()).for_each(|_| touch());
    let rounds = if setup.tiny { 10 } else { 2_000 };
    for (case, beside) in [("alone", false), ("beside a snapshot", true)] {
        let touch = turn(|| {
            let snapshot = beside.then(|| store.snapshot());
            touch();
            snapshot
        });
        let us = interleaved(rounds, 1, vec![touch]).seconds(0) * 1e6;
        println!("touch of {TOUCHED} of {rows} rows, {case}: {us:.2} us");
        report.figure(
            "journal",
            json!({ "what": "touch", "rows": rows, "ids": TOUCHED, "case": case,
                "seconds": us / 1e6 }),
        );
        report.judge(Goal::Touch, case, us);
    }
}

/// An append of one memory that is on disk when it returns, beside one write and sync of as many bytes.
fn append_one(setup: &Setup, report: &mut Report, memory: &NewMemory<'_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = create(&folder.path().join("store"), DIM, DTYPE);
    let append = || {
        (store.append(std::slice::from_ref(memory))).expect("the disk has room");
    };
    append();
    let before = journal_bytes(store.path());
    append();
    let record = vec![0x5a; (journal_bytes(store.path()) - before) as usize];
    let mut plain = File::create_new(folder.path().join("plain")).expect("a new file");
    let write = || {
        plain.write_all(&record).expect("the disk has room");
        plain.sync_all().expect("the disk has room");
    };
    let rounds = if setup.tiny { 5 } else { 301 };
    let times = interleaved(rounds, 1, vec![turn(append), turn(write)]);
    let (append, write, ratio) = (times.seconds(0), times.seconds(1), times.ratio(0, 1));
    println!(
        "append of one, on disk: {:.0} us; write and sync of its {} bytes: {:.0} us: {ratio:.2} of that",
        append * 1e6,
        record.len(),
        write * 1e6
    );
    report.figure(
        "journal",
        json!({ "what": "append of one", "bytes": record.len(), "append_seconds": append,
            "write_and_sync_seconds": write, "of_write_and_sync": ratio }),
    );
    report.judge(Goal::AppendOne, format!("{DIM} {DTYPE}"), ratio);
}

/// Rounds of a reader beside an appender: a round's slowest rankings tell of the machine's worst moments, too.
const READER_ROUNDS: usize = 5;

/// A thread's rankings of a store as it began, while another appends through the same handle. Each takes a snapshot
/// of its own, as a retrieval does.
fn reader(setup: &Setup, report: &mut Report, memories: &[NewMemory<'_>]) {
    let (rows, quiet) = match setup.tiny {
        true => (1_000, 10),
        false => (100_000, 300),
    };
    let appends: [(&str, Append); 2] = [("in bulk", in_bulk), ("in batches", in_batches)];
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..READER_ROUNDS.min(setup.rounds()) {
        for ((_, append), rounds) in appends.iter().zip(&mut rounds) {
            rounds.push(beside(setup, memories, rows, quiet, append));
        }
    }
    let count = setup.million();
    for ((case, _), rounds) in appends.iter().zip(&rounds) {
        let of = |time: fn(&Round) -> f64| median(rounds.iter().map(time).collect());
        let (alone, beside) = (of(|round| round.alone), of(|round| round.beside));
        let ratio = of(|round| round.beside / round.alone);
        let rankings: usize = rounds.iter().map(|round| round.rankings).sum();
        println!(
            "99 of 100 rankings of {rows} rows: {:.2} ms; while {count} rows are appended {case}: {:.2} ms \
             ({rankings} rankings): {ratio:.2} of that",
            alone * 1e3,
            beside * 1e3
        );
        report.figure(
            "journal",
            json!({ "what": "reader beside an appender", "rows": rows, "appended": count,
                "case": case, "rounds": rounds.len(), "rankings": rankings, "alone_p99_seconds": alone,
                "beside_p99_seconds": beside, "of_alone": ratio }),
        );
        report.judge(Goal::Reader, *case, ratio);
    }
}

/// What 99 of 100 rankings take at most, in seconds.
struct Round {
    alone: f64,
    beside: f64,
    /// Beside the appender.
    rankings: usize,
}

/// One round, on a store of its own.
fn beside(
    setup: &Setup,
    memories: &[NewMemory<'_>],
    rows: usize,
    quiet: usize,
    append: &Append,
) -> Round {
    let data = Data::make(rows, DIM, DTYPE);
    let store = data.open_to_write();
    let embedding = data.query(0);
    let query = Query::new(&embedding, data.now(), 30);
    check::ranking(setup, &store.snapshot(), rows, &query);
    let mut workspace = Workspace::with_kernel(setup.judged);
    let mut rank = || {
        timed(|| {
            let snapshot = store.snapshot();
            let first = [columns(&snapshot, 0..rows)];
            check::rank(&first, &query, Par::Serial, &mut workspace)
        })
    };
    rank();
    let alone = (0..quiet).map(|_| rank()).collect();
    let count = setup.million();
    let beside: Vec<f64> = thread::scope(|scope| {
        let appender = scope.spawn(|| append(&store, memories, count));
        let mut times = vec![rank()];
        while !appender.is_finished() {
            times.push(rank());
        }
        appender.join().expect("the disk has room");
        times
    });
    assert_eq!(store.snapshot().rows(), rows + count);
    Round {
        rankings: beside.len(),
        alone: quantile(alone, 0.99),
        beside: quantile(beside, 0.99),
    }
}

/// Appends so many memories.
type Append = fn(&Store, &[NewMemory<'_>], usize);

fn in_bulk(store: &Store, memories: &[NewMemory<'_>], count: usize) {
    let mut bulk = store.bulk().expect("the disk has room");
    for memory in memories.iter().cycle().take(count) {
        bulk.push(memory).expect("the disk has room");
    }
    bulk.commit().expect("the disk has room");
}

/// Each on disk before the next; the journal is folded now and then.
fn in_batches(store: &Store, memories: &[NewMemory<'_>], count: usize) {
    for batch in memories.chunks_exact(BATCH).cycle().take(count / BATCH) {
        store.append(batch).expect("the disk has room");
    }
}
