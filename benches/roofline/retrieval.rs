//! What an agent's call costs beside a ranking, and rankings over vectors that came after their memories.

use crate::check;
use crate::data::{Data, block, create, new_memory, stream};
use crate::machine::Setup;
use crate::report::{Goal, Report, threads};
use crate::turns::{Work, interleaved, turn};
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Query, Ranking, Touch, Workspace};
use memorank::store::{NewMemory, Store};
use memorank::stream::{Ask, Filter, Retrieve, rank, retrieve};
use serde_json::json;
use std::path::Path;

const DIM: usize = 384;
const DTYPE: Dtype = Dtype::F16;
/// Memories of a retrieval.
const K: usize = 30;
/// One memory of so many is given its vector later.
const LATE: usize = 100;

pub fn run(setup: &Setup, report: &mut Report) {
    touching(setup, report);
    late_vectors(setup, report);
}

/// A retrieval touches what it returns; the ranking beside it only reads. Both see each touch.
fn touching(setup: &Setup, report: &mut Report) {
    let data = Data::make(setup.million(), DIM, DTYPE);
    let embedding = data.query(0);
    let query = Query::new(&embedding, data.now(), K);
    check::ranking(setup, &data.open(), setup.million(), &query);
    let store = data.open_to_write();
    let preset = Preset {
        k: K,
        ..Preset::paper()
    };
    assert_eq!(preset.touch, Touch::Returned);
    for par in setup.pars() {
        let workspace = || Workspace::with_kernel(setup.judged);
        let (mut now, mut both, mut ranking) =
            (data.now(), [workspace(), workspace()], Ranking::default());
        let [of_rank, of_retrieve] = &mut both;
        let ask = |now| Ask::new(&embedding, now, &preset);
        let works: Vec<Work<'_>> = vec![
            turn(|| {
                rank(
                    &store.snapshot(),
                    &ask(data.now()),
                    par,
                    of_rank,
                    &mut ranking,
                )
                .expect("sound")
            }),
            turn(|| {
                now += 1;
                let wanted = Retrieve::new(ask(now));
                let retrieved = retrieve(&store, &wanted, par, of_retrieve).expect("sound");
                assert_eq!(retrieved.memories.len(), K);
                retrieved.touch.expect("the disk has room");
            }),
        ];
        let times = interleaved(3 * setup.rounds(), 1, works);
        let (ranked, retrieved, ratio) = (times.seconds(0), times.seconds(1), times.ratio(1, 0));
        println!(
            "retrieval of {K} of {} rows, {}: {:.3} ms, ranking {:.3} ms: {ratio:.3} of that",
            setup.million(),
            threads(par),
            retrieved * 1e3,
            ranked * 1e3
        );
        report.figure(
            "retrieval",
            json!({
                "what": "touch", "rows": setup.million(), "dim": DIM, "dtype": DTYPE.name(), "k": K,
                "threads": par.threads(), "isa": setup.judged.isa().name(),
                "rank_seconds": ranked, "retrieve_seconds": retrieved, "of_rank": ratio,
            }),
        );
        report.judge(Goal::Retrieve, threads(par), ratio);
    }
}

/// Memories here and there that got their vectors when all were in the columns, beside the columns written anew.
fn late_vectors(setup: &Setup, report: &mut Report) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = with_late_vectors(&folder.path().join("store"), setup.million());
    let beside = store.snapshot();
    store.compact().expect("the disk has room");
    let within = store.snapshot();
    let stream = stream(setup.million(), DIM);
    let embedding = stream.query(0);
    let query = Query::new(&embedding, stream.now(), K);
    check::ranking(setup, &within, within.rows(), &query);
    let preset = Preset::paper();
    let filter = Filter {
        future: true,
        ..Filter::default()
    };
    let ask = Ask {
        filter: &filter,
        ..Ask::new(&embedding, stream.now(), &preset)
    };
    for par in setup.pars() {
        let mut rankings = [Ranking::default(), Ranking::default()];
        let works: Vec<Work<'_>> = [&beside, &within]
            .into_iter()
            .zip(&mut rankings)
            .map(|(snapshot, ranking)| {
                let (mut workspace, ask) = (Workspace::with_kernel(setup.judged), &ask);
                turn(move || rank(snapshot, ask, par, &mut workspace, ranking).expect("sound"))
            })
            .collect();
        let times = interleaved(setup.rounds(), 1, works);
        assert!(rankings[0] == rankings[1], "beside the columns, in them");
        let (late, seconds, ratio) = (times.seconds(0), times.seconds(1), times.ratio(0, 1));
        println!(
            "ranking of {} rows, of which 1 in {LATE} got its vector later, {}: {:.3} ms, in the columns {:.3} ms: \
             {ratio:.3} of that",
            within.rows(),
            threads(par),
            late * 1e3,
            seconds * 1e3
        );
        report.figure(
            "retrieval",
            json!({
                "what": "late vectors", "rows": within.rows(), "late": within.rows() / LATE, "dim": DIM,
                "dtype": DTYPE.name(), "threads": par.threads(), "isa": setup.judged.isa().name(),
                "late_seconds": late, "columns_seconds": seconds, "of_columns": ratio,
            }),
        );
    }
}

/// So many memories, scattered ones of which were given their vectors after all were in the columns.
fn with_late_vectors(path: &Path, rows: usize) -> Store {
    let store = create(path, DIM, DTYPE);
    let block = block(DIM);
    let memories = block.memories().map(|memory| new_memory(&memory, ""));
    let memories: Vec<NewMemory<'_>> = memories.collect();
    let of_row = |row: usize| &memories[row % memories.len()];
    let is_late = |row: usize| row % LATE == LATE / 2;
    let mut bulk = store.bulk().expect("no other writer");
    for row in 0..rows {
        let memory = of_row(row);
        let stored = NewMemory {
            embedding: memory.embedding.filter(|_| !is_late(row)),
            kind: memory.kind.clone(),
            ..*memory
        };
        bulk.push(&stored).expect("sound");
    }
    bulk.commit().expect("the disk has room");
    let late = (0..rows).filter(|&row| is_late(row));
    let late: Vec<(u64, &[f32])> = late
        .filter_map(|row| Some((row as u64, of_row(row).embedding?)))
        .collect();
    store.embed(&late).expect("the disk has room");
    store.checkpoint().expect("the disk has room");
    store
}
