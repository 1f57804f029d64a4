//! Nothing is timed before its answer is right.

use crate::data::{columns, embeddings};
use crate::machine::Setup;
use memorank::kernel::{Isa, Kernel, Picks, Queries};
use memorank::scoring::{Columns, Preset, Query, Ranking, Workspace, rank_into};
use memorank::store::Snapshot;
use memorank::{Par, oracle};

/// Rows that the slow references see.
const SAMPLE: usize = 20_000;

/// The first rows agree with the oracle; and the first `rows`, of which those are a part, give the same
/// ranking on every kernel, serial and parallel.
pub fn ranking(setup: &Setup, store: &Snapshot, rows: usize, query: &Query<'_>) {
    let scoring = Preset::paper().scoring;
    let sample = [columns(store, 0..rows.min(SAMPLE))];
    let all = [columns(store, 0..rows)];
    let mut expected = None;
    for &kernel in &setup.kernels {
        let mut workspace = Workspace::with_kernel(kernel);
        let found = oracle::compare(&sample, query, &scoring, Par::Serial, &mut workspace);
        let found = found.expect("the query is sound");
        assert!(found.agrees(), "{}: {found:?}", kernel.isa());
        for par in setup.pars() {
            let ranking = rank(&all, query, par, &mut workspace);
            let expected = expected.get_or_insert_with(|| ranking.clone());
            assert_eq!(&ranking, expected, "{} {par:?}", kernel.isa());
        }
    }
}

/// One query alone, in the paper's scoring.
pub fn rank(
    columns: &[Columns<'_>],
    query: &Query<'_>,
    par: Par,
    workspace: &mut Workspace,
) -> Ranking {
    let mut ranking = Ranking::default();
    let scoring = Preset::paper().scoring;
    rank_into(columns, query, &scoring, par, workspace, &mut ranking).expect("the query is sound");
    ranking
}

/// `dots` of all rows, made by some kernel: the first have the bits of the scalar one, and all have those
/// of `others`.
pub fn dots(store: &Snapshot, queries: &Queries, dots: &[f32], others: &[f32]) {
    let same = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
    let sample = SAMPLE.min(dots.len());
    let mut expected = vec![0.0; sample];
    let scalar = Kernel::new(Isa::Scalar).expect("every machine has it");
    scalar.dots(
        embeddings(store),
        Picks::Range(0..sample),
        queries,
        &mut expected,
    );
    assert!(same(&expected, dots), "other bits than the scalar kernel's");
    assert!(same(dots, others), "other bits than another kernel's");
}
