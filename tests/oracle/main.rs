//! The two tests against the scalar reference, on random and hostile stores: our cosines lie within the
//! kernel's error bound, and the reference FED OUR COSINES ranks alike. Together they cover the whole
//! pipeline (B74).

mod cases;
#[path = "../common/mod.rs"]
mod common;
#[path = "../ranking/mod.rs"]
mod ranking;

use cases::{Case, accesses, importances};
use common::{Random, kernels};
use memorank::Par;
use memorank::kernel::{Kernel, Rows};
use memorank::oracle;
use memorank::scoring::{
    Candidates, Components, Normalization, Query, RankError, Ranking, Recency, Ties, Workspace,
    relevance_into,
};
use ranking::*;

const CASES: u64 = 5000;

/// `(ceil(dim / 16) + 7) * 2^-24 * S`, plus what the kernel's documentation calls second order, the
/// roundings of two f64 norms, and one subnormal rounding per element in the unit query and in the sum.
fn bound(dim: usize, row: &[f32], query: &[f32], inv_norm: f32) -> f64 {
    let length = |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let sum: f64 = row
        .iter()
        .zip(query)
        .map(|(&x, &q)| (f64::from(x) * f64::from(q)).abs())
        .sum();
    let s = sum / (length(row) * length(query));
    let first_order = (dim.div_ceil(16) + 7) as f64 * 2f64.powi(-24) * s;
    let dim = dim as f64;
    let subnormal = dim * 2f64.powi(-150) * (1.0 + f64::from(inv_norm));
    first_order * (1.0 + 1e-4) + dim * 2f64.powi(-51) + subnormal + 2f64.powi(-150)
}

fn assert_within_the_bound(case: &Case, kernel: Kernel) {
    let memories = &case.memories;
    let dim = memories.dim.get();
    let exact = oracle::cosines(&[memories.columns()], &case.embedding).unwrap();
    let found = memories.cosines(kernel, &case.embedding);
    assert_eq!(found.len(), exact.len());
    let rows: Rows<'_> = memories.elements.rows(0..memories.len() * dim);
    for (row, (&found, &exact)) in found.iter().zip(&exact).enumerate() {
        assert_eq!(found.is_nan(), memories.inv_norms[row] == 0.0);
        assert_eq!(found.is_nan(), exact.is_nan());
        let elements = rows.widen(memories.dim, row);
        let bound = bound(dim, &elements, &case.embedding, memories.inv_norms[row]);
        let error = (f64::from(found) - exact).abs();
        assert!(
            found.is_nan() || error <= bound,
            "row {row} dim {dim}: {found} is {error:e} from {exact}, more than {bound:e}"
        );
    }
}

/// The reference's ranking of the cosines that `kernel` gives.
fn fed_our_cosines(case: &Case, kernel: Kernel, k: usize) -> Result<Ranking, RankError> {
    let memories = &case.memories;
    let mut relevance = vec![0.0; memories.len()];
    relevance_into(
        &[memories.columns()],
        &[&case.embedding],
        Candidates::All,
        Par::Serial,
        &mut Workspace::with_kernel(kernel),
        &mut relevance,
    )
    .unwrap();
    let components =
        Components::new(&relevance, &memories.last_access, &memories.importance).unwrap();
    oracle::rank_components(&[components], &Query { k, ..case.query() }, &case.scoring)
}

/// How far apart two totals of this case may be.
fn tolerance(case: &Case, reference: &Ranking) -> f64 {
    let largest = reference
        .hits
        .iter()
        .map(|hit| hit.score.abs())
        .fold(1.0, f64::max);
    let mut tolerance = 1e-12 * largest;
    if let (Recency::Position { .. }, Some(ranges), Normalization::MinMax { .. }) = (
        case.scoring.recency,
        reference.ranges,
        case.scoring.normalization,
    ) {
        // Min-max of decay ^ position is the plain difference, and loses what cancels.
        let span = ranges.recency.max - ranges.recency.min;
        if span > 0.0 {
            tolerance +=
                case.scoring.weights.recency * 4.0 * f64::EPSILON * ranges.recency.max / span;
        }
    }
    tolerance
}

fn assert_ranks_alike(case: &Case, kernel: Kernel, par: Par) {
    let memories = &case.memories;
    let query = case.query();
    let columns = [
        memories.part(0..case.cut),
        memories.part(case.cut..memories.len()),
    ];
    let ours = rank_with(&columns, &query, &case.scoring, par, kernel);
    let reference = fed_our_cosines(case, kernel, usize::MAX);
    let (ours, reference) = match (ours, reference) {
        (Ok(ours), Ok(reference)) => (ours, reference),
        (Err(ours), Err(reference)) => return assert_eq!(ours, reference),
        (ours, reference) => panic!("{ours:?} but the reference says {reference:?}"),
    };
    assert_sound(&ours, &query);
    assert_eq!(ours.candidates, reference.candidates);
    let tolerance = tolerance(case, &reference);
    if let (Some(ours), Some(reference)) = (ours.ranges, reference.ranges) {
        assert_eq!(ours.relevance, reference.relevance);
        assert_eq!(ours.importance, reference.importance);
        assert_eq!(ours.ages, reference.ages);
        assert!((ours.recency.min - reference.recency.min).abs() < 1e-12);
        assert!((ours.recency.max - reference.recency.max).abs() < 1e-12);
    }
    let mut by_row = std::collections::HashMap::new();
    let mut listed = std::collections::HashMap::new();
    for hit in &reference.hits {
        by_row.insert(hit.row, hit);
    }
    for (position, &row) in case.list.iter().enumerate() {
        listed.insert(row as usize, position);
    }
    let tie = |row: usize| match (case.ties, case.set) {
        (Ties::Listed, 2) => listed[&row],
        (Ties::Listed | Ties::Row, _) => row,
    };
    for (hit, reference) in ours.hits.iter().zip(&reference.hits) {
        let same = by_row[&hit.row];
        assert!(
            (hit.score - same.score).abs() <= tolerance,
            "{hit:?} but the reference has {same:?}"
        );
        assert_eq!(hit.relevance.raw, same.relevance.raw);
        assert_eq!(hit.importance.raw, same.importance.raw);
        assert!((hit.recency.raw - same.recency.raw).abs() < 1e-12);
        // Another row in this place only if the reference can hardly tell the two apart.
        assert!(
            hit.row == reference.row || (same.score - reference.score).abs() <= tolerance,
            "{hit:?} in place of {reference:?}"
        );
    }
    for pair in ours.hits.windows(2) {
        let equal = pair[0].score == pair[1].score;
        assert!(!equal || tie(pair[0].row) < tie(pair[1].row), "{pair:?}");
    }
    // What was left out is not better than what was taken.
    if let Some(last) = ours.hits.last() {
        let taken: std::collections::HashSet<usize> = rows(&ours).into_iter().collect();
        let left = reference
            .hits
            .iter()
            .filter(|hit| !taken.contains(&hit.row));
        let best = left.map(|hit| hit.score).fold(f64::NEG_INFINITY, f64::max);
        assert!(best <= by_row[&last.row].score + tolerance);
    }
}

#[test]
fn cosines_lie_within_the_bound_and_the_reference_ranks_them_alike() {
    let kernels = kernels();
    let mut ranked = 0;
    for seed in 0..CASES {
        let case = Case::new(seed);
        let check = std::panic::AssertUnwindSafe(|| {
            for &kernel in &kernels {
                assert_within_the_bound(&case, kernel);
                assert_ranks_alike(&case, kernel, Par::Serial);
            }
            #[cfg(feature = "rayon")]
            pools()[seed as usize % 4]
                .install(|| assert_ranks_alike(&case, common::best_kernel(), Par::Rayon));
        });
        if let Err(panic) = std::panic::catch_unwind(check) {
            println!(
                "seed {seed}: {} rows of {} {}, {:?}",
                case.memories.len(),
                case.memories.dim,
                case.memories.elements.rows(0..0).dtype(),
                case.scoring
            );
            std::panic::resume_unwind(panic);
        }
        ranked += usize::from(case.memories.len() > 1 && case.k > 0);
    }
    assert!(ranked > 1000, "{ranked} cases with something to rank");
}

#[test]
fn the_whole_pipelines_agree_where_nothing_is_close() {
    // Without feeding: totals differ by what min-max makes of the error of the cosines.
    let mut random = Random(74);
    for dtype in DTYPES {
        let n = 300;
        let elements = random.vector(64 * n);
        let memories = Memories::new(
            dtype,
            64,
            &elements,
            &accesses(&mut Random(1), n),
            &importances(&mut Random(1), n),
        );
        let embedding = random.vector(64);
        let query = Query::new(&embedding, T, n);
        let reference = oracle::rank(&[memories.columns()], &query, &paper()).unwrap();
        let ours = memories.rank(&query, &paper());
        for found in &ours.hits {
            assert!((found.score - hit(&reference, found.row).score).abs() < 1e-5);
        }
    }
}
