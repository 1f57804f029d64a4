//! Batches, agents and seams give the bits of single rankings.

mod common;
mod ranking;

use common::{Random, best_kernel, kernels};
use memorank::Par;
use memorank::kernel::{Dtype, Kernel, QueryError};
use memorank::scoring::{
    BatchError, Candidates, Columns, Components, Job, Query, RankError, Ranking, Recency, Scoring,
    Ties, Workspace, rank_components, rank_each_into, rank_many_into, relevance_into,
};
use ranking::*;

/// Rows of every kind: some without a vector, some the same, some accessed later than T.
fn mixed(dtype: Dtype, dim: usize, n: usize, seed: u64) -> Memories {
    let mut random = Random(seed);
    let mut elements = random.vector(dim * n);
    for row in (0..n).filter(|row| row % 7 == 3) {
        elements[row * dim..(row + 1) * dim].fill(0.0);
    }
    let accesses: Vec<i64> = (0..n)
        .map(|_| T + HOUR - random.below(1 << 40) as i64)
        .collect();
    let importance: Vec<f32> = (0..n).map(|_| (1 + random.below(10)) as f32).collect();
    Memories::new(dtype, dim, &elements, &accesses, &importance)
}

fn many(
    columns: &[Columns<'_>],
    queries: &[Query<'_>],
    par: Par,
    kernel: Kernel,
) -> Result<Vec<Ranking>, BatchError> {
    // Rankings of an earlier call are in the way.
    let mut rankings = vec![set_g(Dtype::F32).rank(&Query::new(&G_QUERY, T, 2), &paper()); 3];
    let mut workspace = Workspace::with_kernel(kernel);
    let done = rank_many_into(
        columns,
        queries,
        &paper(),
        par,
        &mut workspace,
        &mut rankings,
    );
    if done.is_err() {
        assert!(rankings.iter().all(|r| *r == Ranking::default()));
    }
    done.map(|()| rankings)
}

#[test]
fn queries_of_one_batch_see_the_state_at_the_start() {
    // B30: ranking touches nothing, so the second query is scored like the first.
    let g = set_g(Dtype::F32);
    let queries = [Query::new(&G_QUERY, T, 3), Query::new(&[0.0, 2.0], T, 2)];
    let batch = many(&[g.columns()], &queries, Par::Serial, best_kernel()).unwrap();
    assert_eq!(batch.len(), 2);
    for (query, ranking) in queries.iter().zip(&batch) {
        assert_eq!(bits(ranking), bits(&g.rank(query, &paper())));
    }
    assert_eq!(rows(&batch[0]), [1, 0, 2]);
}

#[test]
fn batches_of_mixed_queries_give_the_bits_of_singles() {
    let n = 1100;
    for dtype in DTYPES {
        let memories = mixed(dtype, 33, n, 1);
        let mut random = Random(2);
        let vectors: Vec<Vec<f32>> = (0..11).map(|_| random.vector(33)).collect();
        let mask: Vec<u64> = (0..n.div_ceil(64))
            .map(|w| {
                if w == n / 64 {
                    random.next() & ((1 << (n % 64)) - 1)
                } else {
                    random.next()
                }
            })
            .collect();
        let list: Vec<u32> = (0..n as u32).rev().step_by(3).collect();
        let sets = [
            Candidates::All,
            Candidates::All,
            Candidates::Mask(&mask),
            Candidates::Rows(&list),
            Candidates::Rows(&list),
            Candidates::Rows(&[]),
            Candidates::All,
            Candidates::All,
            Candidates::All,
            Candidates::All,
            Candidates::All,
        ];
        let queries: Vec<Query<'_>> = vectors
            .iter()
            .zip(sets)
            .enumerate()
            .map(|(i, (vector, set))| Query {
                now: T + i as i64 * HOUR,
                ties: [Ties::Row, Ties::Listed][i % 2],
                ..Query::new(vector, T, [0, 1, 7, 5000][i % 4]).of(set)
            })
            .collect();
        let columns = [memories.part(0..300), memories.part(300..n)];
        for kernel in kernels() {
            on_all_threads(|par| {
                let batch = many(&columns, &queries, par, kernel).unwrap();
                for (query, ranking) in queries.iter().zip(&batch) {
                    let single = rank_with(&columns, query, &paper(), Par::Serial, kernel).unwrap();
                    assert_eq!(bits(ranking), bits(&single));
                    assert_sound(ranking, query);
                }
            });
        }
    }
    assert_eq!(many(&[], &[], Par::Serial, best_kernel()), Ok(Vec::new()));
}

#[test]
fn a_bad_query_of_a_batch_is_named() {
    let g = set_g(Dtype::F32);
    let good = Query::new(&G_QUERY, T, 3);
    let list = [0, 7];
    let cases: [(Query<'_>, RankError); 4] = [
        (
            Query::new(&[0.0, 0.0], T, 3),
            RankError::Query(QueryError::Zero),
        ),
        (
            Query::new(&[1.0], T, 3),
            RankError::Query(QueryError::Dimension {
                found: 1,
                expected: 2,
            }),
        ),
        (
            good.of(Candidates::Rows(&list)),
            RankError::NoSuchRow { row: 7, rows: 3 },
        ),
        (
            good.of(Candidates::Mask(&[])),
            RankError::MaskLength {
                found: 0,
                expected: 1,
            },
        ),
    ];
    for (bad, error) in cases {
        on_all_threads(|par| {
            for index in 0..3 {
                let mut queries = [good; 3];
                queries[index] = bad;
                assert_eq!(
                    many(&[g.columns()], &queries, par, best_kernel()),
                    Err(BatchError { index, error })
                );
            }
        });
    }
}

#[test]
fn the_query_named_is_one_that_fails_alone() {
    // A wrong inverse norm that shows only for queries that are not orthogonal to the row.
    let mut memories = Memories::of_vectors(Dtype::F32, &[[1.0, 1.0], [1e20, 0.0], [0.0, 1e20]]);
    memories.inv_norms[1] = 1e30;
    memories.inv_norms[2] = 1e30;
    let (x, y) = ([1.0, 0.0], [0.0, 1.0]);
    let queries = [&x, &y, &x].map(|v| Query::new(v, T, 3));
    let list = [0, 1];
    let of_two = queries.map(|query| query.of(Candidates::Rows(&list)));
    let columns = [memories.columns()];
    on_all_threads(|par| {
        for (queries, index, row) in [
            (&queries[..], 0, 1),
            (&queries[1..], 0, 2),
            (&of_two[1..], 1, 1),
        ] {
            let error = RankError::Cosine { row };
            assert_eq!(
                many(&columns, queries, par, best_kernel()),
                Err(BatchError { index, error })
            );
            let embeddings: Vec<&[f32]> = queries.iter().map(|q| q.embedding).collect();
            let found = relevance_into(
                &columns,
                &embeddings,
                queries[0].candidates,
                par,
                &mut Workspace::with_kernel(best_kernel()),
                &mut vec![0.0; 3 * queries.len()],
            );
            assert_eq!(found, Err(BatchError { index, error }));
        }
    });
}

#[test]
fn an_earlier_failure_does_not_come_back() {
    let mut spoiled = set_g(Dtype::F32);
    spoiled.importance[1] = f32::NAN;
    let g = set_g(Dtype::F32);
    let query = Query::new(&G_QUERY, T, 3);
    on_all_threads(|par| {
        let mut workspace = Workspace::with_kernel(best_kernel());
        let mut ranking = Ranking::default();
        for _ in 0..2 {
            let columns = [spoiled.columns()];
            let done = memorank::scoring::rank_into(
                &columns,
                &query,
                &paper(),
                par,
                &mut workspace,
                &mut ranking,
            );
            assert!(matches!(done, Err(RankError::Importance { row: 1, .. })));
            assert_eq!(ranking, Ranking::default());
            let columns = [g.columns()];
            let none = relevance_into(&columns, &[], Candidates::All, par, &mut workspace, &mut []);
            assert_eq!(none, Ok(()));
            memorank::scoring::rank_into(
                &columns,
                &query,
                &paper(),
                par,
                &mut workspace,
                &mut ranking,
            )
            .unwrap();
            assert_eq!(rows(&ranking), [1, 0, 2]);
        }
    });
}

#[test]
fn the_two_seams_together_give_the_bits_of_rank() {
    let n = 700;
    let list: Vec<u32> = (0..n as u32).rev().step_by(2).collect();
    let by_position = Scoring {
        recency: Recency::Position { decay: 0.999 },
        ..paper()
    };
    for dtype in DTYPES {
        let memories = mixed(dtype, 17, n, 3);
        let mut random = Random(4);
        let vectors: Vec<Vec<f32>> = (0..6).map(|_| random.vector(17)).collect();
        let embeddings: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
        let columns = [
            memories.part(0..0),
            memories.part(0..511),
            memories.part(511..n),
        ];
        for kernel in kernels() {
            on_all_threads(|par| {
                let mut workspace = Workspace::with_kernel(kernel);
                for candidates in [Candidates::All, Candidates::Rows(&list)] {
                    let mut relevance = vec![0.0; 6 * n];
                    relevance_into(
                        &columns,
                        &embeddings,
                        candidates,
                        par,
                        &mut workspace,
                        &mut relevance,
                    )
                    .unwrap();
                    for (vector, relevance) in vectors.iter().zip(relevance.chunks(n)) {
                        let parts = [0..600, 600..600, 600..n].map(|rows| {
                            Components::new(
                                &relevance[rows.clone()],
                                &memories.last_access[rows.clone()],
                                &memories.importance[rows],
                            )
                            .unwrap()
                        });
                        let query = Query::new(vector, T, 50).of(candidates);
                        for scoring in [paper(), unnormalized(), by_position] {
                            let mut ranking = Ranking::default();
                            rank_components(
                                &parts,
                                &query,
                                &scoring,
                                par,
                                &mut workspace,
                                &mut ranking,
                            )
                            .unwrap();
                            let whole =
                                rank_with(&columns, &query, &scoring, Par::Serial, kernel).unwrap();
                            assert_eq!(bits(&ranking), bits(&whole));
                        }
                    }
                }
            });
        }
    }
}

#[test]
fn relevance_is_nan_where_there_is_no_candidate() {
    let mut g = set_g(Dtype::F32);
    g.inv_norms[1] = 0.0;
    let mut out = [7.0; 6];
    relevance_into(
        &[g.columns()],
        &[&G_QUERY, &[0.0, 1.0]],
        Candidates::Rows(&[2, 1]),
        Par::Serial,
        &mut Workspace::with_kernel(best_kernel()),
        &mut out,
    )
    .unwrap();
    let expected = [f32::NAN, f32::NAN, 0.0, f32::NAN, f32::NAN, 1.0];
    for (found, expected) in out.into_iter().zip(expected) {
        assert!(found == expected || (found.is_nan() && expected.is_nan()));
    }
}

#[test]
fn agents_ranked_together_give_the_bits_of_one_at_a_time() {
    let stores: Vec<Memories> = (0..40)
        .map(|i| mixed(DTYPES[i % 2], 1 + i, i * i, i as u64))
        .collect();
    let columns: Vec<[Columns<'_>; 1]> = stores.iter().map(|s| [s.columns()]).collect();
    let mut random = Random(5);
    let vectors: Vec<Vec<f32>> = (0..40).map(|i| random.vector(1 + i)).collect();
    let jobs: Vec<Job<'_>> = columns
        .iter()
        .zip(&vectors)
        .map(|(columns, vector)| Job {
            columns,
            query: Query::new(vector, T, 9),
        })
        .collect();
    for kernel in kernels() {
        on_all_threads(|par| {
            let mut workspace = Workspace::with_kernel(kernel);
            let mut rankings = Vec::new();
            // Fewer jobs the second time, more the third.
            for some in [&jobs[..17], &jobs[..2], &jobs[..], &[]] {
                rank_each_into(some, &paper(), par, &mut workspace, &mut rankings).unwrap();
                assert_eq!(rankings.len(), some.len());
                for (job, ranking) in some.iter().zip(&rankings) {
                    let alone =
                        rank_with(job.columns, &job.query, &paper(), Par::Serial, kernel).unwrap();
                    assert_eq!(bits(ranking), bits(&alone));
                }
            }
        });
    }
}

#[test]
fn the_first_agent_that_fails_is_named() {
    let g = set_g(Dtype::F32);
    let columns = [g.columns()];
    let good = Job {
        columns: &columns,
        query: Query::new(&G_QUERY, T, 3),
    };
    on_all_threads(|par| {
        let mut rankings = Vec::new();
        for first in [0, 1, 30, 99] {
            let mut jobs = vec![good; 100];
            jobs[first].query.embedding = &[0.0, 0.0];
            jobs[99].query.embedding = &[f32::NAN, 0.0];
            let found = rank_each_into(
                &jobs,
                &paper(),
                par,
                &mut Workspace::with_kernel(best_kernel()),
                &mut rankings,
            )
            .unwrap_err();
            assert_eq!(found.index, first);
            assert_eq!(
                first == 99,
                found.error != RankError::Query(QueryError::Zero)
            );
            assert_eq!(rankings, vec![Ranking::default(); 100]);
        }
    });
}

#[test]
fn a_batch_beyond_the_scratch_limit_is_cut_and_keeps_its_bits() {
    let n = 700;
    let memories = mixed(Dtype::F16, 17, n, 5);
    let columns = [memories.part(0..300), memories.part(300..n)];
    let mut random = Random(6);
    let vectors: Vec<Vec<f32>> = (0..7).map(|_| random.vector(17)).collect();
    let embeddings: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
    let queries: Vec<Query<'_>> = embeddings.iter().map(|e| Query::new(e, T, 20)).collect();
    let run = |limit: usize| {
        let mut workspace = Workspace::new();
        workspace.set_scratch_limit(limit);
        let mut rankings = Vec::new();
        rank_many_into(
            &columns,
            &queries,
            &paper(),
            Par::Serial,
            &mut workspace,
            &mut rankings,
        )
        .unwrap();
        let mut relevance = vec![0.0; 7 * n];
        relevance_into(
            &columns,
            &embeddings,
            Candidates::All,
            Par::Serial,
            &mut workspace,
            &mut relevance,
        )
        .unwrap();
        let relevance: Vec<u32> = relevance.into_iter().map(f32::to_bits).collect();
        (rankings, relevance)
    };
    let together = run(Workspace::SCRATCH_LIMIT);
    for limit in [0, 4 * n - 1, 4 * n, 3 * 4 * n, 7 * 4 * n - 1] {
        assert!(run(limit) == together, "limit {limit}");
    }

    // The index of what is wrong counts through all parts.
    let short = [1.0; 3];
    let mut wrong = queries.clone();
    wrong[4] = Query::new(&short, T, 20);
    let mut workspace = Workspace::new();
    workspace.set_scratch_limit(2 * 4 * n);
    let mut rankings = Vec::new();
    let error = rank_many_into(
        &columns,
        &wrong,
        &paper(),
        Par::Serial,
        &mut workspace,
        &mut rankings,
    )
    .unwrap_err();
    assert_eq!(error.index, 4);
    assert!(rankings.iter().all(|ranking| ranking.hits.is_empty()));
}
