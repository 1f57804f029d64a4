//! The same bits on any number of threads and for any place of a row, and calls that nest.
#![cfg(feature = "rayon")]

mod common;
mod ranking;

use common::{Random, THREADS, best_kernel, kernels};
use memorank::Par;
use memorank::kernel::{Dtype, Kernel};
use memorank::scoring::{
    Candidates, Columns, Job, Query, Ranking, Workspace, rank, rank_each_into, rank_into,
    rank_many_into,
};
use ranking::*;
use rayon::prelude::*;
use std::sync::Mutex;

/// 100 rows of one vector among 900 random ones, shuffled.
fn with_equals(dtype: Dtype, dim: usize) -> Memories {
    let mut random = Random(14);
    let same = random.vector(dim);
    let mut vectors: Vec<Vec<f32>> = (0..1000)
        .map(|i| {
            if i < 100 {
                same.clone()
            } else {
                random.vector(dim)
            }
        })
        .collect();
    for i in (1..vectors.len()).rev() {
        vectors.swap(i, random.below(i as u64 + 1) as usize);
    }
    Memories::of_vectors(dtype, &vectors)
}

fn rank_bits(columns: &[Columns<'_>], query: &Query<'_>, par: Par, kernel: Kernel) -> Vec<u64> {
    bits(&rank_with(columns, query, &paper(), par, kernel).unwrap())
}

#[test]
fn the_pools_have_the_threads_they_should() {
    let threads: Vec<usize> = pools().iter().map(|p| p.current_num_threads()).collect();
    assert_eq!(threads, THREADS);
}

#[test]
fn equal_vectors_are_equal_wherever_they_lie() {
    // B01: 1003 is no multiple of any number of rows taken at once.
    let n = 1003;
    for dtype in DTYPES {
        let vector = Random(1).vector(387);
        let memories = Memories::of_vectors(dtype, &vec![&vector; n]);
        let embedding = Random(2).vector(387);
        let query = Query::new(&embedding, T, 10);
        // Every cut moves rows in and out of the remainder of a block.
        let cuts = [0, 1, 3, 5, 255, 257, 1000, n];
        let mut seen: Option<Vec<u64>> = None;
        for kernel in kernels() {
            let mut cosines = memories.cosines(kernel, &embedding);
            cosines.dedup_by_key(|x| x.to_bits());
            assert_eq!(cosines.len(), 1);
            on_all_threads(|par| {
                for cut in cuts {
                    let columns = [memories.part(0..cut), memories.part(cut..n)];
                    let ranking = rank_with(&columns, &query, &paper(), par, kernel).unwrap();
                    assert_eq!(rows(&ranking), (0..10).collect::<Vec<_>>());
                    assert_eq!(scores(&ranking), [1.5; 10]);
                    let mut batch = Vec::new();
                    let mut workspace = Workspace::with_kernel(kernel);
                    let queries = [query; 5];
                    rank_many_into(
                        &columns,
                        &queries,
                        &paper(),
                        par,
                        &mut workspace,
                        &mut batch,
                    )
                    .unwrap();
                    assert!(batch.iter().all(|r| bits(r) == bits(&ranking)));
                }
            });
            let found = rank_bits(&[memories.columns()], &query, Par::Serial, kernel);
            assert_eq!(seen.get_or_insert_with(|| found.clone()), &found);
        }
    }
}

#[test]
fn top_10_is_a_prefix_of_top_1000_every_time() {
    // B14.
    for dtype in DTYPES {
        let memories = with_equals(dtype, 33);
        let embedding = Random(3).vector(33);
        let top = |k, par, kernel| {
            let query = Query::new(&embedding, T, k);
            rank_with(&[memories.columns()], &query, &paper(), par, kernel).unwrap()
        };
        let all = top(1000, Par::Serial, best_kernel());
        for pair in all.hits.windows(2) {
            assert!(pair[0].score > pair[1].score || pair[0].row < pair[1].row);
        }
        for kernel in kernels() {
            on_all_threads(|par| {
                for _ in 0..20 {
                    for k in [10, 100, 1000] {
                        let some = top(k, par, kernel);
                        let found: Vec<_> = some.hits.iter().map(hit_bits).collect();
                        let expected: Vec<_> = all.hits[..k].iter().map(hit_bits).collect();
                        assert_eq!(found, expected);
                    }
                }
            });
        }
    }
}

#[test]
fn busy_pools_change_nothing() {
    // B77.
    let memories = with_equals(Dtype::F16, 64);
    let embedding = Random(4).vector(64);
    let query = Query::new(&embedding, T, 100);
    let expected = rank_bits(&[memories.columns()], &query, Par::Serial, best_kernel());
    for pool in pools() {
        pool.install(|| {
            // 200 rankings at once, and sums to steal in between.
            (0..400usize).into_par_iter().for_each(|i| {
                if i % 2 == 0 {
                    let columns = [memories.columns()];
                    let found = rank_bits(&columns, &query, Par::Rayon, best_kernel());
                    assert_eq!(found, expected);
                } else {
                    let sum: u64 = (0..5_000u64).into_par_iter().map(|x| x ^ i as u64).sum();
                    assert!(sum > 0);
                }
            });
        });
    }
}

#[test]
fn workspaces_move_between_pools() {
    // More parts, fewer parts, none: what an earlier ranking left is never read.
    let memories = with_equals(Dtype::F32, 8);
    let embedding = Random(5).vector(8);
    let list: Vec<u32> = (0..700).rev().collect();
    let mut workspace = Workspace::with_kernel(best_kernel());
    let mut ranking = Ranking::default();
    for round in 0..40usize {
        let pool = &pools()[round * 7 % 4];
        let rows = [1000, 300, 0, 999][round % 4];
        let mut query = Query::new(&embedding, T, [5, 1000, 0][round % 3]);
        if rows > 700 && round % 8 < 4 {
            query = query.of(Candidates::Rows(&list));
        }
        let columns = [memories.part(0..rows)];
        let par = [Par::Rayon, Par::Rayon, Par::Serial][round % 3];
        pool.install(|| {
            rank_into(
                &columns,
                &query,
                &paper(),
                par,
                &mut workspace,
                &mut ranking,
            )
            .unwrap();
        });
        let fresh = rank_bits(&columns, &query, Par::Serial, best_kernel());
        assert_eq!(bits(&ranking), fresh);
    }
}

#[test]
fn the_first_bad_row_is_named_on_any_number_of_threads() {
    let mut memories = with_equals(Dtype::F32, 8);
    for row in [990, 600, 450] {
        memories.importance[row] = f32::INFINITY;
        memories.inv_norms[row + 1] = f32::NAN;
    }
    let embedding = Random(5).vector(8);
    let query = Query::new(&embedding, T, 10);
    let columns = [memories.columns()];
    let expected = rank_with(&columns, &query, &paper(), Par::Serial, best_kernel());
    assert!(expected.is_err());
    on_all_threads(|par| {
        let found = rank_with(&columns, &query, &paper(), par, best_kernel());
        // NaN is not equal to itself.
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    });
}

#[test]
fn rankings_nest_inside_rayon_tasks() {
    // B78: parallel inside parallel, two stores at once, on one thread and on two.
    let (a, b) = (with_equals(Dtype::F32, 16), with_equals(Dtype::F16, 16));
    let embedding = Random(6).vector(16);
    let query = Query::new(&embedding, T, 10);
    let expected = [&a, &b].map(|m| {
        let columns = [m.columns()];
        rank_bits(&columns, &query, Par::Serial, best_kernel())
    });
    for pool in &pools()[..2] {
        pool.install(|| {
            (0..50).into_par_iter().for_each(|_| {
                let (first, second) = rayon::join(
                    || bits(&rank(&[a.columns()], &query, &paper()).unwrap()),
                    || bits(&rank(&[b.columns()], &query, &paper()).unwrap()),
                );
                assert_eq!([first, second], expected);
                let columns = [a.columns()];
                let jobs = [Job {
                    columns: &columns,
                    query,
                }; 20];
                let mut rankings = Vec::new();
                let mut workspace = Workspace::with_kernel(best_kernel());
                rank_each_into(&jobs, &paper(), Par::Rayon, &mut workspace, &mut rankings).unwrap();
                assert!(rankings.iter().all(|r| bits(r) == expected[0]));
            });
        });
        // A pool inside a pool.
        pool.install(|| {
            pools()[1].install(|| {
                let found = bits(&rank(&[a.columns()], &query, &paper()).unwrap());
                assert_eq!(found, expected[0]);
            });
        });
    }
}

#[test]
fn a_caller_may_hold_its_own_lock_when_serial() {
    // B78: with Par::Serial no other task runs on this thread while the lock is held.
    let memories = with_equals(Dtype::F32, 16);
    let embedding = Random(7).vector(16);
    let query = Query::new(&embedding, T, 10);
    let columns = [memories.columns()];
    let expected = rank_bits(&columns, &query, Par::Serial, best_kernel());
    let scratch = Mutex::new((Workspace::with_kernel(best_kernel()), Ranking::default()));
    for pool in &pools()[..2] {
        pool.install(|| {
            (0..200).into_par_iter().for_each(|_| {
                let mut scratch = scratch.lock().unwrap();
                let (workspace, ranking) = &mut *scratch;
                rank_into(&columns, &query, &paper(), Par::Serial, workspace, ranking).unwrap();
                assert_eq!(bits(ranking), expected);
            });
        });
    }
}
