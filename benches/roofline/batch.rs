//! Several queries in one call, which read the embeddings once.

use crate::check;
use crate::data::{Data, columns};
use crate::machine::Setup;
use crate::report::{Goal, Report, name};
use crate::turns::{Work, interleaved, turn};
use memorank::Par;
use memorank::kernel::{Dtype, Kernel};
use memorank::scoring::{Preset, Query, Workspace, rank_many_into};
use memorank::yardstick::read_columns;
use serde_json::json;

const DIM: usize = 768;
const DTYPE: Dtype = Dtype::F16;
const COUNTS: [usize; 6] = [1, 2, 4, 8, 16, 64];

pub fn run(setup: &Setup, report: &mut Report) {
    let data = Data::make(setup.million(), DIM, DTYPE);
    let store = data.open();
    let all = &[columns(&store, 0..store.len())];
    let scoring = Preset::paper().scoring;
    let par = Par::Rayon;
    let embeddings: Vec<Vec<f32>> = (0..64).map(|i| data.query(i)).collect();
    let queries: Vec<Query<'_>> = (embeddings.iter())
        .map(|embedding| Query::new(embedding, data.now(), 30))
        .collect();

    check::ranking(setup, &store, store.len(), &queries[0]);
    let mut workspace = Workspace::with_kernel(setup.judged);
    let alone: Vec<_> = (queries.iter())
        .map(|query| check::rank(all, query, par, &mut workspace))
        .collect();
    let mut works: Vec<Work<'_>> = vec![turn(|| read_columns(all, par, Kernel::best()))];
    for count in COUNTS {
        let queries = &queries[..count];
        let mut workspace = Workspace::with_kernel(setup.judged);
        let mut rankings = Vec::new();
        rank_many_into(all, queries, &scoring, par, &mut workspace, &mut rankings)
            .expect("the queries are sound");
        assert!(rankings == alone[..count], "{count} at once, one at a time");
        works.push(turn(move || {
            rank_many_into(all, queries, &scoring, par, &mut workspace, &mut rankings)
        }));
    }
    let times = interleaved(setup.rounds(), 1, works);
    let read = times.seconds(0);
    println!(
        "{} x {DIM} {DTYPE}, {} threads; plain read {:.2} ms",
        store.len(),
        par.threads(),
        read * 1e3
    );
    println!(
        "{:>9} {:>9} {:>7} {:>9}",
        "queries", "ms", "of one", "ms each"
    );
    for (count, work) in COUNTS.into_iter().zip(1..) {
        let (time, of_one) = (times.seconds(work), times.ratio(work, 1));
        println!(
            "{count:>9} {:>9.2} {of_one:>7.2} {:>9.2}",
            time * 1e3,
            time * 1e3 / count as f64
        );
        report.figure(
            "batch",
            json!({
                "rows": store.len(), "dim": DIM, "dtype": DTYPE.name(), "threads": par.threads(),
                "isa": setup.judged.isa().name(), "queries": count, "seconds": time, "of_one": of_one,
                "plain_read_seconds": read,
            }),
        );
        match count {
            16 => report.judge(Goal::Batch16, name(DIM, DTYPE, par), of_one),
            64 => report.judge(Goal::Batch64, name(DIM, DTYPE, par), of_one),
            _ => {}
        }
    }
}
