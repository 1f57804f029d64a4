//! Small stores: how long one ranking takes, with everything that belongs to it.

use crate::check;
use crate::data::{Data, columns};
use crate::machine::Setup;
use crate::report::{Goal, Report, threads};
use crate::turns::{interleaved, read_and_rank};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::Query;
use memorank::yardstick::bytes_read;
use serde_json::json;

const DTYPE: Dtype = Dtype::F16;
const SIZES: [usize; 3] = [100, 1_000, 10_000];

pub fn run(setup: &Setup, report: &mut Report) {
    println!(
        "{:>9} {:>6} {:>6} {:>12} {:>11} {:>8}",
        "threads", "rows", "dim", "plain read", "ranking", "of plain"
    );
    for dim in [384, 1536] {
        let data = Data::make(SIZES[2], dim, DTYPE);
        let store = data.open();
        let embedding = data.query(0);
        let query = Query::new(&embedding, data.now(), 30);
        for rows in SIZES {
            check::ranking(setup, &store, rows, &query);
            let part = [columns(&store, 0..rows)];
            for par in setup.pars() {
                let works = read_and_rank(&part, &query, par, setup.judged);
                // Turns of many calls: what a ranking finds in the caches is what the one before left. Short ones
                // take turns for a quarter of a second, so that no moment decides.
                let (rounds, repeats) = match rows {
                    _ if setup.tiny => (5, 10),
                    10_000.. => (51, 300_000 / rows),
                    _ => (201, 300),
                };
                let times = interleaved(rounds, repeats, works);
                let (read, time) = (times.seconds(0), times.seconds(1));
                let us = time * 1e6;
                println!(
                    "{:>9} {rows:>6} {dim:>6} {:>9.2} us {us:>8.2} us {:>8.2}",
                    par.threads(),
                    read * 1e6,
                    read / time
                );
                report.figure(
                    "small",
                    json!({
                        "rows": rows, "dim": dim, "dtype": DTYPE.name(), "threads": par.threads(),
                        "isa": setup.judged.isa().name(), "bytes": bytes_read(&part),
                        "plain_read_seconds": read, "ranking_seconds": time,
                    }),
                );
                match (rows, dim, par) {
                    (1_000, 384, Par::Serial) => report.judge(Goal::Small1000, threads(par), us),
                    (100, 384, Par::Serial) => report.judge(Goal::Small100, threads(par), us),
                    _ => {}
                }
            }
        }
    }
}
