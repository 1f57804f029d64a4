//! A tick of a town: many agents, each with a small store and a query of its own, in one call.

use crate::check;
use crate::data::{Data, columns};
use crate::machine::Setup;
use crate::report::{Goal, Report, name};
use crate::turns::{Work, interleaved, turn};
use memorank::Par;
use memorank::kernel::{Dtype, Kernel};
use memorank::scoring::{Columns, Job, Preset, Query, Ranking, Workspace, rank_each_into};
use memorank::yardstick::{bytes_read, read_columns};
use serde_json::json;
use std::slice::from_ref;

const DIM: usize = 384;
const DTYPE: Dtype = Dtype::F16;
/// Memories of an agent.
const EACH: usize = 1_000;

pub fn run(setup: &Setup, report: &mut Report) {
    let agents = setup.million() / EACH;
    let data = Data::make(setup.million(), DIM, DTYPE);
    let store = data.open();
    let scoring = Preset::paper().scoring;
    let par = Par::Rayon;
    let embeddings: Vec<Vec<f32>> = (0..agents).map(|i| data.query(i)).collect();
    let memories: Vec<Columns<'_>> = (0..agents)
        .map(|i| columns(&store, i * EACH..(i + 1) * EACH))
        .collect();
    let jobs: Vec<Job<'_>> = (memories.iter().zip(&embeddings))
        .map(|(memories, embedding)| Job {
            columns: from_ref(memories),
            query: Query::new(embedding, data.now(), 30),
        })
        .collect();

    check::ranking(setup, &store, EACH, &jobs[0].query);
    let mut workspace = Workspace::with_kernel(setup.judged);
    let alone: Vec<Ranking> = (jobs.iter())
        .map(|job| check::rank(job.columns, &job.query, Par::Serial, &mut workspace))
        .collect();
    let mut rankings = Vec::new();
    rank_each_into(&jobs, &scoring, par, &mut workspace, &mut rankings).expect("sound jobs");
    assert!(rankings == alone, "all at once, one at a time");

    // The same bytes as one run of rows: cutting the read at each agent would only slow it.
    let all = [columns(&store, 0..store.len())];
    let works: Vec<Work<'_>> = vec![
        turn(|| read_columns(&all, par, Kernel::best())),
        turn(|| rank_each_into(&jobs, &scoring, par, &mut workspace, &mut rankings)),
    ];
    let times = interleaved(setup.rounds(), 1, works);
    let (read, time) = (times.seconds(0), times.seconds(1));
    let ratio = times.ratio(0, 1);
    println!(
        "{agents} agents x {EACH} x {DIM} {DTYPE}, {} threads",
        par.threads()
    );
    println!(
        "plain read {:.2} ms, all rankings {:.2} ms: {ratio:.2} of plain",
        read * 1e3,
        time * 1e3
    );
    report.figure(
        "agents",
        json!({
            "agents": agents, "rows_each": EACH, "dim": DIM, "dtype": DTYPE.name(),
            "threads": par.threads(), "isa": setup.judged.isa().name(), "bytes": bytes_read(&all),
            "plain_read_seconds": read, "rankings_seconds": time, "of_plain": ratio,
        }),
    );
    report.judge(Goal::Agents, name(DIM, DTYPE, par), ratio);
}
