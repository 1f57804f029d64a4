//! What a store and a ranking cost beside reading: memory, opening, appending.

use crate::allocations::{bytes_of, calls_during};
use crate::check;
use crate::data::{self, Data, block, columns, embedding_bytes, new_memory};
use crate::machine::{Setup, anonymous_memory};
use crate::report::{Goal, Report};
use crate::turns::{median, timed};
use memorank::Par;
use memorank::kernel::{Dtype, f16};
use memorank::scoring::{Preset, Query, Ranking, Workspace, rank_into, rank_many_into};
use memorank::store::{Agent, Snapshot, Store};
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

const DIM: usize = 384;
const DTYPE: Dtype = Dtype::F16;
/// Set for the child process that measures its own memory: the store's path.
const CHILD: &str = "MEMORANK_BENCH_STORE";
/// Rounds of appending and plain writing: a gigabyte each.
const WRITE_ROUNDS: usize = 5;

pub fn run(setup: &Setup, report: &mut Report) {
    let data = Data::make(setup.million(), DIM, DTYPE);
    let store = data.open();
    println!("{} x {DIM} {DTYPE}", store.len());
    scratch(setup, report, &data, &store);
    open_time(setup, report, &data);
    anonymous(report, &data);
    drop((store, data));
    append(setup, report);
}

fn scratch(setup: &Setup, report: &mut Report, data: &Data, store: &Snapshot) {
    let scoring = Preset::paper().scoring;
    let embeddings: Vec<Vec<f32>> = (0..16).map(|i| data.query(i)).collect();
    let queries: Vec<Query<'_>> = (embeddings.iter())
        .map(|embedding| Query::new(embedding, data.now(), 30))
        .collect();
    check::ranking(setup, store, store.len(), &queries[0]);

    let all = [columns(store, 0..store.len())];
    let mut workspace = Workspace::with_kernel(setup.judged);
    let (mut ranking, mut rankings) = (Ranking::default(), Vec::new());
    let mut rank = || {
        let (par, workspace) = (Par::Serial, &mut workspace);
        rank_into(&all, &queries[0], &scoring, par, workspace, &mut ranking).expect("sound");
        rank_many_into(&all, &queries, &scoring, par, workspace, &mut rankings).expect("sound");
    };
    rank();
    let calls = calls_during(rank);
    println!("allocations of a ranking and a batch with a reused workspace, serial: {calls}");
    report.figure("store", json!({ "what": "allocations", "calls": calls }));
    report.judge(Goal::Allocations, "one query and 16", calls as f64);

    // What a workspace holds does not all grow with the rows: the second half of them tells what does.
    for count in [1, 16] {
        let held = |rows: usize| {
            let (part, queries) = ([columns(store, 0..rows)], &queries[..count]);
            bytes_of(|| {
                let mut workspace = Workspace::with_kernel(setup.judged);
                let (par, mut rankings) = (Par::Serial, Vec::new());
                rank_many_into(&part, queries, &scoring, par, &mut workspace, &mut rankings)
                    .expect("the queries are sound");
                workspace
            })
        };
        let (half, whole) = (held(store.len() / 2), held(store.len()));
        let each = (whole - half) as f64 / (store.len() - store.len() / 2) as f64 / count as f64;
        println!("workspace, {count} at once: {whole} bytes, {each:.3} per row and query");
        report.figure(
            "store",
            json!({ "what": "scratch", "queries": count, "rows": store.len(), "bytes": whole,
                "bytes_per_row_and_query": each }),
        );
        report.judge(Goal::Scratch, format!("{count} at once"), each);
    }
}

fn open_time(setup: &Setup, report: &mut Report, data: &Data) {
    let times = (0..setup.rounds()).map(|_| timed(|| data.open())).collect();
    let seconds = median(times);
    println!("open, warm: {:.2} ms", seconds * 1e3);
    report.figure("store", json!({ "what": "open", "seconds": seconds }));
    report.judge(Goal::Open, "warm", seconds * 1e3);
}

fn anonymous(report: &mut Report, data: &Data) {
    let program = std::env::current_exe().expect("the bench has a path");
    let output = Command::new(program).env(CHILD, data.path()).output();
    let output = output.expect("the bench runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes: f64 = (text.trim().parse()).unwrap_or_else(|_| panic!("the child told {output:?}"));
    println!(
        "anonymous memory of a process that opens and ranks: {:.1} MB",
        bytes / 1e6
    );
    report.figure(
        "store",
        json!({ "what": "anonymous memory", "bytes": bytes }),
    );
    report.judge(Goal::Anonymous, "all threads", bytes / 1e6);
}

/// Whether this process is the one that measures its own memory.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// The child's work: opens, ranks, and prints its anonymous memory in bytes.
pub fn rank_and_tell_memory() {
    let path = std::env::var_os(CHILD).expect("is_child");
    let store = Store::open_read_only(path).expect("the store is there");
    let store = store.snapshot();
    let all = [columns(&store, 0..store.len())];
    let embedding = store.embedding(0).expect("generated memories have vectors");
    let query = Query::new(&embedding, store.last_access(Agent::OWN, 0), 30);
    check::rank(&all, &query, Par::Rayon, &mut Workspace::new());
    println!("{}", anonymous_memory());
}

/// A bulk append beside plain sequential writing of as many bytes of the same kind, with one sync.
fn append(setup: &Setup, report: &mut Report) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let block = block(DIM);
    let texts: Vec<String> = block.memories().map(|memory| memory.text()).collect();
    let rows = setup.million();
    let (mut appends, mut writes, mut bytes) = (Vec::new(), Vec::new(), 0);
    for round in 0..WRITE_ROUNDS.min(setup.rounds()) {
        let path = folder.path().join(format!("store{round}"));
        let store = data::create(&path, DIM, DTYPE);
        let memories: Vec<_> = block.memories().collect();
        appends.push(timed(|| {
            let mut bulk = store.bulk().expect("no other writer");
            for (memory, text) in memories.iter().zip(&texts).cycle().take(rows) {
                bulk.push(&new_memory(memory, text)).expect("sound");
            }
            bulk.commit().expect("the disk has room");
        }));
        let stored = store.snapshot();
        assert_eq!(stored.len(), rows);
        let last = memories[(rows - 1) % memories.len()].embedding.iter();
        let last: Vec<f32> = last.map(|&x| f16::from_f32(x).to_f32()).collect();
        assert_eq!(stored.embedding(rows - 1), Some(last), "stored as given");
        bytes = store.info().files.iter().map(|file| file.bytes).sum();
        let pattern = &embedding_bytes(&stored)[..(1 << 20).min(rows * DIM)];
        let plain = folder.path().join("plain");
        writes.push(timed(|| write(&plain, pattern, bytes)));
        std::fs::remove_file(plain).expect("just written");
        drop((stored, store));
        std::fs::remove_dir_all(path).expect("just written");
    }
    let (append, write) = (median(appends), median(writes));
    let (ratio, speed) = (write / append, |seconds| bytes as f64 / seconds / 1e9);
    println!(
        "bulk append: {:.0} rows/s, {:.2} GB/s; plain writing {:.2} GB/s: {ratio:.2} of it",
        rows as f64 / append,
        speed(append),
        speed(write)
    );
    report.figure(
        "store",
        json!({ "what": "append", "rows": rows, "bytes": bytes, "append_seconds": append,
            "plain_write_seconds": write, "of_plain": ratio }),
    );
    report.judge(Goal::Append, format!("{DIM} {DTYPE}"), ratio);
}

fn write(path: &Path, pattern: &[u8], bytes: u64) {
    let mut file = File::create(path).expect("a new file");
    let mut left = bytes;
    while left > 0 {
        let now = left.min(pattern.len() as u64);
        file.write_all(&pattern[..now as usize])
            .expect("the disk has room");
        left -= now;
    }
    file.sync_all().expect("the disk has room");
}
