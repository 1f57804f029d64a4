//! A filter that keeps 1 % of the rows.

use crate::check;
use crate::data::{Data, columns};
use crate::machine::Setup;
use crate::report::{Goal, Report, threads};
use crate::turns::{Work, interleaved, turn};
use memorank::kernel::Dtype;
use memorank::oracle;
use memorank::scoring::{Candidates, Preset, Query, Ranking, Workspace, rank_into};
use serde_json::json;

const DIM: usize = 768;
const DTYPE: Dtype = Dtype::F16;

pub fn run(setup: &Setup, report: &mut Report) {
    let data = Data::make(setup.million(), DIM, DTYPE);
    let store = data.open();
    let all = &[columns(&store, 0..store.len())];
    let scoring = Preset::paper().scoring;
    let embedding = data.query(0);
    let full = Query::new(&embedding, data.now(), 30);
    check::ranking(setup, &store, store.len(), &full);

    let kept = store.len() / 100;
    let run: Vec<u32> = (0..kept).map(|i| (store.len() / 2 + i) as u32).collect();
    // One of each hundred, here and there: the top bits of a multiple of an odd number.
    let somewhere = |i: usize| (u64::from((i as u32).wrapping_mul(0x9E37_79B1)) * 100) >> 32;
    let scattered: Vec<u32> = (0..kept)
        .map(|i| (i * 100) as u32 + somewhere(i) as u32)
        .collect();
    let masks = [&run, &scattered].map(|rows| mask(rows, store.len()));
    let filters = [
        ("mask, one run", Candidates::Mask(&masks[0])),
        ("rows, one run", Candidates::Rows(&run)),
        ("mask, scattered", Candidates::Mask(&masks[1])),
        ("rows, scattered", Candidates::Rows(&scattered)),
    ];

    println!("{} x {DIM} {DTYPE}, {kept} rows kept", store.len());
    println!(
        "{:>9} {:16} {:>9} {:>9} {:>8}",
        "threads", "", "full ms", "ms", "of full"
    );
    for par in setup.pars() {
        let rank = |query: Query<'_>, workspace: &mut Workspace, ranking: &mut Ranking| {
            rank_into(all, &query, &scoring, par, workspace, ranking).expect("sound");
        };
        let mut workspace = Workspace::with_kernel(setup.judged);
        for (name, candidates) in filters {
            let query = full.of(candidates);
            let found = oracle::compare(all, &query, &scoring, par, &mut workspace);
            let found = found.expect("the query is sound");
            assert!(found.agrees(), "{name}: {found:?}");
        }
        // A full ranking before each filtered one: else its few rows would still be in the caches.
        let works: Vec<Work<'_>> = (filters.iter())
            .flat_map(|&(_, candidates)| [Candidates::All, candidates])
            .map(|candidates| {
                let (mut workspace, mut ranking) =
                    (Workspace::with_kernel(setup.judged), Ranking::default());
                turn(move || rank(full.of(candidates), &mut workspace, &mut ranking))
            })
            .collect();
        let times = interleaved(setup.rounds(), 1, works);
        for ((name, _), work) in filters.into_iter().zip((0..).step_by(2)) {
            let (full, time) = (times.seconds(work), times.seconds(work + 1));
            let share = times.ratio(work + 1, work);
            println!(
                "{:>9} {name:16} {:>9.2} {:>9.3} {:>7.1} %",
                par.threads(),
                full * 1e3,
                time * 1e3,
                share * 100.0
            );
            report.figure(
                "filter",
                json!({
                    "rows": store.len(), "kept": kept, "dim": DIM, "dtype": DTYPE.name(),
                    "threads": par.threads(), "isa": setup.judged.isa().name(), "filter": name,
                    "full_seconds": full, "seconds": time, "of_full": share,
                }),
            );
            report.judge(Goal::Filter, format!("{name}, {}", threads(par)), share);
        }
    }
}

fn mask(rows: &[u32], all: usize) -> Vec<u64> {
    let mut words = vec![0; all.div_ceil(64)];
    for &row in rows {
        words[row as usize / 64] |= 1 << (row % 64);
    }
    words
}
