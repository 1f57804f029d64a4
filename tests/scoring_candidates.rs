//! Who competes, how many come back, and who goes first among equals.

mod common;
mod ranking;

use common::{Random, best_kernel, kernels};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{
    Candidates, Columns, Components, Query, RankError, Ranking, Recency, Scoring, Ties, Workspace,
    rank_components,
};
use ranking::*;

fn random(dtype: Dtype, dim: usize, n: usize, seed: u64) -> Memories {
    let mut random = Random(seed);
    let elements = random.vector(dim * n);
    let accesses: Vec<i64> = (0..n).map(|_| T - random.below(1 << 40) as i64).collect();
    let importance: Vec<f32> = (0..n).map(|_| (1 + random.below(10)) as f32).collect();
    Memories::new(dtype, dim, &elements, &accesses, &importance)
}

fn serial(columns: &[Columns<'_>], query: &Query<'_>) -> Result<Ranking, RankError> {
    rank_with(columns, query, &paper(), Par::Serial, best_kernel())
}

fn mask_of(rows: &[u32], n: usize) -> Vec<u64> {
    let mut mask = vec![0; n.div_ceil(64)];
    rows.iter()
        .for_each(|&row| mask[row as usize / 64] |= 1 << (row % 64));
    mask
}

#[test]
fn rows_masked_out_take_no_place() {
    // B34: 60 rows, the three best deleted.
    let memories = random(Dtype::F32, 2, 60, 34);
    let all = memories.rank(&Query::new(&G_QUERY, T, 60), &paper());
    let best = rows(&all);
    let live: Vec<u32> = (0..60)
        .filter(|&r| !best[..3].contains(&(r as usize)))
        .collect();
    let mask = mask_of(&live, 60);
    for k in [1, 10, 57, 60] {
        let query = Query::new(&G_QUERY, T, k).of(Candidates::Mask(&mask));
        let ranking = memories.rank(&query, &paper());
        assert_sound(&ranking, &query);
        assert_eq!(ranking.candidates, 57);
        // The ranges are those of the living: the order is that of the living alone.
        let alone = query.of(Candidates::Rows(&live));
        assert_eq!(bits(&ranking), bits(&memories.rank(&alone, &paper())));
        assert!(rows(&ranking).iter().all(|&r| live.contains(&(r as u32))));
    }
}

#[test]
fn all_masks_and_lists_agree() {
    for dtype in DTYPES {
        for n in [1, 63, 64, 65, 255, 256, 257, 1000] {
            let mut memories = random(dtype, 17, n, n as u64);
            memories.inv_norms[n / 2] = 0.0;
            let embedding = Random(9).vector(17);
            let query = Query::new(&embedding, T, n);
            let ascending: Vec<u32> = (0..n as u32).collect();
            let descending: Vec<u32> = ascending.iter().rev().copied().collect();
            let mask = mask_of(&ascending, n);
            let some: Vec<u32> = (0..n as u32).filter(|r| r % 3 != 1).collect();
            let some_shuffled: Vec<u32> = some
                .iter()
                .rev()
                .step_by(2)
                .chain(some.iter().rev().skip(1).step_by(2))
                .copied()
                .collect();
            let some_mask = mask_of(&some, n);
            let columns = [memories.part(0..n / 3), memories.part(n / 3..n)];
            for kernel in kernels() {
                on_all_threads(|par| {
                    let bits_of = |set| {
                        let query = query.of(set);
                        bits(&rank_with(&columns, &query, &paper(), par, kernel).unwrap())
                    };
                    let all = bits_of(Candidates::All);
                    assert_eq!(bits_of(Candidates::Mask(&mask)), all);
                    assert_eq!(bits_of(Candidates::Rows(&ascending)), all);
                    assert_eq!(bits_of(Candidates::Rows(&descending)), all);
                    let fewer = bits_of(Candidates::Rows(&some));
                    assert_eq!(bits_of(Candidates::Rows(&some_shuffled)), fewer);
                    assert_eq!(bits_of(Candidates::Mask(&some_mask)), fewer);
                });
            }
        }
    }
}

#[test]
fn segments_are_ranked_as_one() {
    let n = 1000;
    let embedding = Random(8).vector(33);
    let unsorted: Vec<u32> = (0..n as u32).map(|i| i * 383 % 1000).collect();
    let some = mask_of(&unsorted[..400], n);
    for dtype in DTYPES {
        let memories = random(dtype, 33, n, 1);
        for set in [
            Candidates::All,
            Candidates::Mask(&some),
            Candidates::Rows(&unsorted),
            Candidates::Rows(&unsorted[..37]),
        ] {
            let query = Query::new(&embedding, T, 100).of(set);
            let whole = bits(&serial(&[memories.columns()], &query).unwrap());
            let cuts: [&[usize]; 7] = [
                &[0, n],
                &[0, 1, n],
                &[0, 0, n],
                &[0, 256, 512, n, n],
                &[0, 0, 0, 500, 500, n],
                &[0, 255, 257, 640, 999, n],
                &[0, 63, 127, n, n, n],
            ];
            for cut in cuts {
                let segments: Vec<Columns<'_>> =
                    cut.windows(2).map(|w| memories.part(w[0]..w[1])).collect();
                on_all_threads(|par| {
                    let ranking =
                        rank_with(&segments, &query, &paper(), par, best_kernel()).unwrap();
                    assert_eq!(bits(&ranking), whole, "{cut:?}");
                });
            }
        }
    }
}

#[test]
fn segments_may_differ_in_type() {
    // Elements that f16 holds exactly have the same cosines in both types.
    let n = 700;
    let mut random = Random(12);
    let elements: Vec<f32> = (0..n * 20)
        .map(|_| (random.signed() * 99.0).round())
        .collect();
    let accesses: Vec<i64> = (0..n as i64).map(|i| T - i * MINUTE).collect();
    let of = |dtype| Memories::new(dtype, 20, &elements, &accesses, &vec![3.0; n]);
    let (wide, narrow) = (of(Dtype::F32), of(Dtype::F16));
    let embedding = random.vector(20);
    let query = Query::new(&embedding, T, n);
    for kernel in kernels() {
        let rank = |columns: &[Columns<'_>]| {
            bits(&rank_with(columns, &query, &paper(), Par::Serial, kernel).unwrap())
        };
        let whole = rank(&[wide.columns()]);
        assert_eq!(rank(&[narrow.columns()]), whole);
        assert_eq!(
            rank(&[
                wide.part(0..300),
                narrow.part(300..301),
                wide.part(301..301),
                narrow.part(301..690),
                wide.part(690..n)
            ]),
            whole
        );
    }
}

#[test]
fn k_is_a_limit_and_nothing_else() {
    // B36, B38.
    let n = 5000;
    let memories = random(Dtype::F32, 3, n, 38);
    let embedding = [0.3, -0.2, 0.9];
    on_all_threads(|par| {
        let rank = |k| {
            let query = Query::new(&embedding, T, k);
            let ranking =
                rank_with(&[memories.columns()], &query, &paper(), par, best_kernel()).unwrap();
            assert_sound(&ranking, &query);
            ranking
        };
        let all = rank(usize::MAX);
        assert_eq!(all.hits.len(), n);
        assert!(all.hits.capacity() <= 2 * n);
        for k in [
            0,
            1,
            31,
            32,
            33,
            63,
            64,
            65,
            2500,
            4097,
            4999,
            5000,
            5001,
            usize::MAX / 2 + 1,
        ] {
            let ranking = rank(k);
            assert_eq!(ranking.hits.len(), k.min(n));
            assert_eq!(ranking.hits, all.hits[..k.min(n)]);
            assert_eq!((ranking.ranges, ranking.candidates), (all.ranges, n));
        }
    });
    let g = set_g(Dtype::F32).rank(&Query::new(&G_QUERY, T, 10), &paper());
    assert_eq!(rows(&g), [1, 0, 2]);
}

#[test]
fn no_candidates_give_an_empty_ranking() {
    // B39.
    let g = set_g(Dtype::F32);
    let query = Query::new(&G_QUERY, T, 5);
    let empty = Memories::new(Dtype::F32, 2, &[], &[], &[]);
    on_all_threads(|par| {
        let rank = |columns: &[Columns<'_>], set| {
            let query = query.of(set);
            let ranking = rank_with(columns, &query, &paper(), par, best_kernel()).unwrap();
            assert_eq!(ranking, Ranking::default());
        };
        for set in [
            Candidates::All,
            Candidates::Mask(&[]),
            Candidates::Rows(&[]),
        ] {
            rank(&[], set);
            rank(&[empty.columns()], set);
            rank(&[empty.columns(), empty.columns()], set);
        }
        rank(&[g.columns()], Candidates::Mask(&[0]));
        rank(&[g.columns()], Candidates::Rows(&[]));
        let mut ranking = g.rank(&query, &paper());
        let components = [Components::new(&[f32::NAN; 3], &[T; 3], &[f32::NAN; 3]).unwrap()];
        let mut workspace = Workspace::with_kernel(best_kernel());
        rank_components(
            &components,
            &query,
            &paper(),
            par,
            &mut workspace,
            &mut ranking,
        )
        .unwrap();
        assert_eq!(ranking, Ranking::default());
    });
}

#[test]
fn candidates_that_do_not_exist_are_refused() {
    let n = 130;
    let memories = random(Dtype::F32, 2, n, 5);
    let columns = [memories.part(0..70), memories.part(70..n)];
    let fails =
        |set: Candidates<'_>| serial(&columns, &Query::new(&G_QUERY, T, 5).of(set)).unwrap_err();
    for (found, mask) in [(0, vec![]), (2, vec![1; 2]), (4, vec![0; 4])] {
        let expected = 3;
        assert_eq!(
            fails(Candidates::Mask(&mask)),
            RankError::MaskLength { found, expected }
        );
    }
    for bit in [2, 3, 63] {
        let row = 128 + bit;
        assert_eq!(
            fails(Candidates::Mask(&[0, 0, 1 << bit | 1])),
            RankError::NoSuchRow { row, rows: n }
        );
    }
    for row in [130, 131, 1 << 20, u32::MAX] {
        for list in [vec![0, row], vec![row, 0]] {
            let error = RankError::NoSuchRow {
                row: row as usize,
                rows: n,
            };
            assert_eq!(fails(Candidates::Rows(&list)), error);
        }
    }
    for list in [vec![3, 3], vec![0, 5, 129, 5], vec![129, 0, 1, 129]] {
        let row = list[list.len() - 1] as usize;
        assert_eq!(
            fails(Candidates::Rows(&list)),
            RankError::ListedTwice { row }
        );
    }
    // No row, no bit: one word too many is refused even if it is empty.
    assert_eq!(
        serial(&[], &Query::new(&G_QUERY, T, 5).of(Candidates::Mask(&[0]))),
        Err(RankError::MaskLength {
            found: 1,
            expected: 0
        })
    );
}

#[test]
fn equal_totals_go_by_row_or_as_listed() {
    // One old row, so that the others have a recency of exactly 1, the most there is.
    let mut memories = Memories::of_vectors(Dtype::F32, &vec![[1.0, 2.0]; 701]);
    memories.last_access[700] = T - HOUR;
    let list: Vec<u32> = (0..700).map(|i| i * 383 % 700).chain([700]).collect();
    let listed: Vec<usize> = list.iter().map(|&row| row as usize).collect();
    on_all_threads(|par| {
        for k in [1, 5, 100, 700] {
            let rank = |set, ties| {
                let query = Query {
                    ties,
                    ..Query::new(&G_QUERY, T, k).of(set)
                };
                let columns = [memories.part(0..300), memories.part(300..701)];
                rows(&rank_with(&columns, &query, &paper(), par, best_kernel()).unwrap())
            };
            let ascending: Vec<usize> = (0..k).collect();
            assert_eq!(rank(Candidates::Rows(&list), Ties::Listed), listed[..k]);
            assert_eq!(rank(Candidates::Rows(&list), Ties::Row), ascending);
            assert_eq!(rank(Candidates::All, Ties::Listed), ascending);
            assert_eq!(rank(Candidates::All, Ties::Row), ascending);
        }
    });
}

#[test]
fn equals_at_the_cut_go_by_row() {
    // B15: 5 better rows, 47 that share the 10th total, 300 worse ones.
    let mut vectors = vec![[0.0f32, 1.0]; 352];
    let mut random = Random(15);
    let mut order: Vec<usize> = (0..352).collect();
    for i in (1..352).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let (better, equal) = (&order[..5], &mut order[5..52].to_vec());
    better
        .iter()
        .enumerate()
        .for_each(|(i, &row)| vectors[row] = [1.0 + i as f32, 0.5]);
    equal.iter().for_each(|&row| vectors[row] = [0.6, 0.8]);
    equal.sort_unstable();
    let memories = Memories::of_vectors(Dtype::F32, &vectors);
    on_all_threads(|par| {
        let query = Query::new(&G_QUERY, T, 10);
        let columns = [memories.columns()];
        let ranking = rank_with(&columns, &query, &paper(), par, best_kernel()).unwrap();
        assert_eq!(rows(&ranking)[5..], equal[..5]);
    });
}

#[test]
fn listed_positions_follow_the_list_across_segments() {
    let memories = random(Dtype::F32, 2, 600, 3);
    let list: Vec<u32> = (0..600)
        .map(|i| i * 7 % 600)
        .filter(|r| r % 5 != 0)
        .collect();
    let scoring = Scoring {
        recency: Recency::Position { decay: 0.99 },
        ..weighted(0.0, 1.0, 0.0)
    };
    let query = Query {
        ties: Ties::Listed,
        ..Query::new(&G_QUERY, T, 600).of(Candidates::Rows(&list))
    };
    on_all_threads(|par| {
        let columns = [
            memories.part(0..1),
            memories.part(1..400),
            memories.part(400..600),
        ];
        let ranking = rank_with(&columns, &query, &scoring, par, best_kernel()).unwrap();
        let expected: Vec<usize> = list.iter().map(|&row| row as usize).collect();
        assert_eq!(rows(&ranking), expected);
    });
}

#[test]
fn more_rows_than_numbers_are_refused() {
    let rows = 1 << 20;
    let (relevance, access, importance) = (vec![1.0; rows], vec![T; rows], vec![1.0; rows]);
    let segment = Components::new(&relevance, &access, &importance).unwrap();
    let mut ranking = Ranking::default();
    let found = rank_components(
        &[segment; 4096],
        &Query::new(&[], T, 5),
        &paper(),
        Par::Serial,
        &mut Workspace::with_kernel(best_kernel()),
        &mut ranking,
    );
    assert_eq!(found, Err(RankError::TooManyRows { rows: 1 << 32 }));
}

#[test]
fn segments_of_another_dimension_are_refused() {
    let (a, b) = (random(Dtype::F32, 2, 4, 1), random(Dtype::F32, 3, 4, 1));
    let error = RankError::SegmentDimension {
        segment: 1,
        found: 3,
        expected: 2,
    };
    assert_eq!(
        serial(&[a.columns(), b.columns()], &Query::new(&G_QUERY, T, 1)),
        Err(error)
    );
}
