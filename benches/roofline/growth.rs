//! The ratio to the plain read, from stores that fit in the caches to those that hardly fit in memory.

use crate::check;
use crate::data::{Data, columns, fits};
use crate::machine::Setup;
use crate::report::{Goal, Report, threads};
use crate::turns::{interleaved, read_and_rank};
use memorank::kernel::Dtype;
use memorank::scoring::Query;
use memorank::yardstick::bytes_read;
use serde_json::json;

const DIM: usize = 384;
const DTYPE: Dtype = Dtype::F16;
/// Bytes per turn at least: small stores are ranked again and again.
const BYTES_PER_TURN: usize = 64 << 20;

pub fn run(setup: &Setup, report: &mut Report) {
    let mut sizes = match setup.tiny {
        true => vec![500, 1_000, 2_000, 5_000],
        false => vec![1_000, 10_000, 100_000, 1_000_000, 10_000_000],
    };
    let judged_from = sizes[2];
    while let Some(&largest) = sizes.last()
        && let Err(problem) = fits(largest, DIM, DTYPE)
    {
        println!("left out: {problem}");
        report.figure("growth", json!({ "rows": largest, "left_out": problem }));
        sizes.pop();
    }
    let Some(&largest) = sizes.last() else {
        return;
    };
    // The smaller stores are the beginnings of the largest.
    let data = Data::make(largest, DIM, DTYPE);
    let store = data.open();
    let embedding = data.query(0);
    let query = Query::new(&embedding, data.now(), 30);

    println!(
        "{:>9} {:>9} {:>10} {:>7} {:>8}",
        "threads", "rows", "ms", "GB/s", "of plain"
    );
    for par in setup.pars() {
        let mut judged = Vec::new();
        for &rows in &sizes {
            check::ranking(setup, &store, rows, &query);
            let part = [columns(&store, 0..rows)];
            let works = read_and_rank(&part, &query, par, setup.judged);
            let bytes = bytes_read(&part);
            let repeats = match setup.tiny {
                true => 1,
                false => BYTES_PER_TURN.div_ceil(bytes),
            };
            let times = interleaved(setup.rounds(), repeats, works);
            let (read, ranking) = (times.seconds(0), times.seconds(1));
            let ratio = times.ratio(0, 1);
            println!(
                "{:>9} {rows:>9} {:>10.3} {:>7.1} {ratio:>8.2}",
                par.threads(),
                ranking * 1e3,
                bytes as f64 / ranking / 1e9
            );
            report.figure(
                "growth",
                json!({
                    "rows": rows, "dim": DIM, "dtype": DTYPE.name(), "threads": par.threads(),
                    "isa": setup.judged.isa().name(), "bytes": bytes, "plain_read_seconds": read,
                    "ranking_seconds": ranking, "of_plain": ratio,
                }),
            );
            if rows >= judged_from {
                judged.push(ratio);
            }
        }
        let best = judged.iter().copied().fold(f64::MIN, f64::max);
        let worst = judged.iter().copied().fold(f64::MAX, f64::min);
        if judged.len() > 1 {
            let case = format!("{}, up to {largest} rows", threads(par));
            report.judge(Goal::Growth, case, best / worst);
        }
    }
}
