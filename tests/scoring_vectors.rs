//! Relevance: sizes, signs, and vectors that cannot be scored.

mod common;
mod ranking;

use approx::assert_abs_diff_eq;
use common::{Random, best_kernel, kernels};
use half::f16;
use memorank::Par;
use memorank::kernel::{Dtype, QueryError, RowError, RowProblem, Rows, inv_norms};
use memorank::scoring::{Candidates, Columns, Query, RankError, Workspace, relevance_into};
use ranking::*;

/// Checks the cosine of every row, on every kernel, and that all kernels give the same bits.
fn assert_cosines(memories: &Memories, embedding: &[f32], expected: &[f64], epsilon: f64) {
    let mut seen: Option<Vec<u32>> = None;
    for kernel in kernels() {
        let cosines = memories.cosines(kernel, embedding);
        for (found, expected) in cosines.iter().zip(expected) {
            assert_abs_diff_eq!(f64::from(*found), *expected, epsilon = epsilon);
        }
        let bits: Vec<u32> = cosines.iter().map(|x| x.to_bits()).collect();
        assert_eq!(seen.get_or_insert_with(|| bits.clone()), &bits);
    }
}

#[test]
fn a_row_without_a_vector_never_competes() {
    // B06, B07, B87: on every kernel.
    for dtype in DTYPES {
        let mut memories = Memories::new(
            dtype,
            2,
            &[1.0, 0.0, 0.6, 0.8, 0.0, 1.0, 0.0, 0.0],
            &[T - 10 * HOUR, T, T - 100 * HOUR, T + 900 * HOUR],
            &[2.0, 8.0, 5.0, 1e30],
        );
        let query = Query::new(&G_QUERY, T, 9);
        let g = set_g(dtype).rank(&query, &paper());
        assert_eq!(rows(&g), [1, 0, 2]);
        for spoil in [None, Some(f32::NAN), Some(f32::INFINITY)] {
            // What lies in such a row is ignored.
            if let Some(value) = spoil {
                match &mut memories.elements {
                    Elements::F32(s) => s[6] = value,
                    Elements::F16(s) => s[6] = f16::from_f32(value),
                }
                memories.importance[3] = value;
            }
            for kernel in kernels() {
                for set in [
                    Candidates::All,
                    Candidates::Mask(&[15]),
                    Candidates::Rows(&[0, 1, 2, 3]),
                ] {
                    let columns = [memories.columns()];
                    let query = query.of(set);
                    let ranking =
                        rank_with(&columns, &query, &paper(), Par::Serial, kernel).unwrap();
                    assert_eq!(bits(&ranking), bits(&g));
                }
                let only = Query::new(&G_QUERY, T, 9).of(Candidates::Rows(&[3]));
                let columns = [memories.columns()];
                let none = rank_with(&columns, &only, &paper(), Par::Serial, kernel).unwrap();
                assert_eq!(
                    (none.candidates, none.ranges, none.hits.len()),
                    (0, None, 0)
                );
            }
        }
        // A zero vector gets no inverse norm by itself.
        let zero = Elements::new(dtype, &[0.0, -0.0]);
        assert_eq!(
            inv_norms(memories.dim, zero.rows(0..2), &mut [0.0]),
            Err(RowError {
                row: 0,
                problem: RowProblem::Length { length: 0.0 }
            })
        );
    }
}

#[test]
fn stores_without_any_vector_rank_to_nothing() {
    let memories = Memories::new(Dtype::F16, 3, &[0.0; 3 * 600], &[T; 600], &[f32::NAN; 600]);
    on_all_threads(|par| {
        let query = Query::new(&[1.0, 0.0, 0.0], T, 9);
        let columns = [memories.columns()];
        let ranking = rank_with(&columns, &query, &paper(), par, best_kernel()).unwrap();
        assert_eq!(bits(&ranking), [0]);
    });
}

#[test]
fn queries_that_cannot_be_used_are_refused() {
    // B06, B08.
    for dim in [1, 15, 16, 17, 33] {
        let memories = Memories::new(Dtype::F32, dim, &vec![1.0; dim], &[T], &[1.0]);
        let fails =
            |embedding: &[f32]| match memories.try_rank(&Query::new(embedding, T, 1), &paper()) {
                Err(RankError::Query(error)) => error,
                other => panic!("{other:?}"),
            };
        assert_eq!(fails(&vec![0.0; dim]), QueryError::Zero);
        assert_eq!(fails(&vec![-0.0; dim]), QueryError::Zero);
        for found in [0, dim - 1, dim + 1] {
            let expected = dim;
            assert_eq!(
                fails(&vec![1.0; found]),
                QueryError::Dimension { found, expected }
            );
        }
        for element in [0, dim / 2, dim - 1] {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut embedding = vec![1.0; dim];
                embedding[element] = bad;
                match fails(&embedding) {
                    QueryError::NonFinite {
                        element: found,
                        value,
                    } => {
                        assert_eq!((found, value.to_bits()), (element, bad.to_bits()));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn rows_that_are_not_finite_are_named() {
    // B08, B09: past the gate of inv_norms, on every kernel, in the first lane, a tail lane and last.
    let n = 60;
    for dtype in DTYPES {
        for dim in [1, 3, 16, 20, 33, 64] {
            let mut random = Random(dim as u64);
            let elements = random.vector(n * dim);
            let mut memories = Memories::new(dtype, dim, &elements, &[T; 60], &[1.0; 60]);
            let embedding: Vec<f32> = (0..dim).map(|_| 0.5 + random.signed() * 0.25).collect();
            let all: Vec<u32> = (0..n as u32).rev().collect();
            for row in [0, 7, n - 1] {
                for element in [0, dim / 16 * 16 % dim, dim - 1] {
                    for bits in [0x7e00u16, 0x7c00, 0xfc00, 0x7c01, 0xffff] {
                        let at = row * dim + element;
                        match &mut memories.elements {
                            Elements::F32(s) => s[at] = f16::from_bits(bits).to_f32(),
                            Elements::F16(s) => s[at] = f16::from_bits(bits),
                        }
                        let refused = inv_norms(
                            memories.dim,
                            memories.elements.rows(0..n * dim),
                            &mut vec![0.0; n],
                        );
                        assert!(matches!(
                            refused,
                            Err(RowError { row: r, problem: RowProblem::NonFinite { element: e, .. } })
                                if (r, e) == (row, element)
                        ));
                        for kernel in kernels() {
                            for set in [Candidates::All, Candidates::Rows(&all)] {
                                let query = Query::new(&embedding, T, 10).of(set);
                                let columns = [memories.columns()];
                                assert_eq!(
                                    rank_with(&columns, &query, &paper(), Par::Serial, kernel),
                                    Err(RankError::Cosine { row })
                                );
                            }
                            // Not a candidate: no matter.
                            let others = u64::MAX >> 4 & !(1 << row);
                            let mask = [others];
                            let query = Query::new(&embedding, T, 10).of(Candidates::Mask(&mask));
                            let columns = [memories.columns()];
                            let found = rank_with(&columns, &query, &paper(), Par::Serial, kernel);
                            assert_eq!(found.unwrap().candidates, n - 1);
                        }
                        match &mut memories.elements {
                            Elements::F32(s) => s[at] = elements[at],
                            Elements::F16(s) => s[at] = f16::from_f32(elements[at]),
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_non_finite_element_is_found_where_the_query_is_zero() {
    // 0 * inf and 0 * NaN are NaN: no zero of the query hides them.
    for (dim, element) in [(2, 1), (33, 32), (16, 5)] {
        for bad in [f32::NAN, f32::INFINITY] {
            let mut row = vec![1.0; dim];
            row[element] = bad;
            let mut embedding = vec![0.0; dim];
            embedding[0] = 1.0;
            let columns = Columns::new(
                dim.try_into().unwrap(),
                Rows::F32(&row),
                &[1.0],
                &[T],
                &[1.0],
            )
            .unwrap();
            for kernel in kernels() {
                let query = Query::new(&embedding, T, 1);
                assert_eq!(
                    rank_with(&[columns], &query, &paper(), Par::Serial, kernel),
                    Err(RankError::Cosine { row: 0 })
                );
            }
        }
    }
}

#[test]
fn small_vectors_have_cosines_too() {
    // B19: f16 keeps 1e-4 with a few bits, the same ones in both.
    for dim in [3, 4, 8] {
        for dtype in DTYPES {
            let small = f16::from_f32(1e-4).to_f32();
            let memories = Memories::of_vectors(dtype, &[vec![small; dim]]);
            assert_cosines(&memories, &vec![small; dim], &[1.0], 4e-7);
        }
        let memories = Memories::of_vectors(Dtype::F32, &[vec![1e-4; dim]]);
        assert_cosines(&memories, &vec![1e-4; dim], &[1.0], 4e-7);
    }
}

#[test]
fn squares_do_not_overflow_or_underflow() {
    // B20.
    for vector in [vec![1e20; 64], vec![1e-23; 8], vec![3e19, 4e19]] {
        let memories = Memories::of_vectors(Dtype::F32, &[&vector]);
        assert_cosines(&memories, &vector, &[1.0], 4e-7);
    }
    // A query may be of any length that has a direction.
    for scale in [f32::MAX, 1e20, 1e-30, f32::MIN_POSITIVE, f32::from_bits(1)] {
        let memories = Memories::of_vectors(Dtype::F32, &[[1.0, 1.0], [1.0, -1.0], [-1.0, 0.0]]);
        let half = 0.5f64.sqrt();
        assert_cosines(&memories, &[scale, scale], &[1.0, 0.0, -half], 4e-7);
    }
    // Rows of lengths up to the edges.
    let edges = [2.0f32.powi(-96), 2.0f32.powi(96)];
    let memories = Memories::of_vectors(Dtype::F32, &edges.map(|x| [x, 0.0]));
    assert_cosines(&memories, &[1.0, 1.0], &[0.5f64.sqrt(); 2], 4e-7);
}

#[test]
fn cosines_are_as_exact_as_f32_allows() {
    // B22: 100 rows times 100 queries.
    let memories = Memories::of_vectors(Dtype::F32, &[[1.0, 2.0, 3.0]]);
    assert_cosines(&memories, &[1.0, 2.0, 3.0], &[1.0], 1e-6);
    let (dim, n) = (1536, 100);
    let mut random = Random(22);
    let elements = random.vector(dim * n);
    let memories = Memories::new(Dtype::F32, dim, &elements, &[T; 100], &[1.0; 100]);
    let vectors: Vec<Vec<f32>> = (0..n).map(|_| random.vector(dim)).collect();
    let embeddings: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
    let expected: Vec<Vec<f64>> = vectors
        .iter()
        .map(|q| memorank::oracle::cosines(&[memories.columns()], q).unwrap())
        .collect();
    for kernel in kernels() {
        let mut out = vec![0.0; n * n];
        relevance_into(
            &[memories.columns()],
            &embeddings,
            Candidates::All,
            Par::Serial,
            &mut Workspace::with_kernel(kernel),
            &mut out,
        )
        .unwrap();
        for (found, expected) in out.iter().zip(expected.iter().flatten()) {
            assert_abs_diff_eq!(f64::from(*found), *expected, epsilon = 1e-6);
        }
    }
}

#[test]
fn cosines_do_not_need_unit_vectors() {
    // B60, B58.
    for dtype in DTYPES {
        let memories = Memories::of_vectors(dtype, &[[6.0, 8.0], [8.0, 6.0], [-3.0, -4.0]]);
        assert_cosines(&memories, &[3.0, 4.0], &[1.0, 0.96, -1.0], 4e-7);
        let memories = Memories::of_vectors(dtype, &[[1.0, 2.0, 3.0, 1.0, 2.0]]);
        assert_cosines(&memories, &[4.0, 5.0, 6.0, 4.0, 5.0], &[0.971494], 1e-6);
    }
}

#[test]
fn the_same_vector_ranks_first() {
    // B61.
    for dtype in DTYPES {
        for dim in [2, 17, 387] {
            let mut random = Random(61);
            let n = 500;
            let elements = random.vector(dim * n);
            let memories = Memories::new(dtype, dim, &elements, &[T; 500], &[1.0; 500]);
            for row in [0, 250, 499] {
                let embedding = &elements[row * dim..(row + 1) * dim];
                let query = Query::new(embedding, T, 1);
                let ranking = memories.rank(&query, &weighted(1.0, 0.0, 0.0));
                assert_eq!(rows(&ranking), [row], "{dtype} dim {dim}");
            }
        }
    }
}

#[test]
fn negative_cosines_are_scaled_like_others() {
    // B62.
    let vectors = [-1.0f32, -0.5, -0.2].map(|x| [x, (1.0 - x * x).sqrt()]);
    let memories = Memories::of_vectors(Dtype::F32, &vectors);
    let ranking = memories.rank(&Query::new(&[1.0, 0.0], T, 3), &weighted(1.0, 0.0, 0.0));
    assert_eq!(rows(&ranking), [2, 1, 0]);
    for (found, expected) in scores(&ranking).iter().zip([1.0, 0.625, 0.0]) {
        assert_abs_diff_eq!(*found, expected, epsilon = 1e-6);
    }
}

#[test]
fn an_f32_store_keeps_f32_answers() {
    // B73.
    let memories = Memories::of_vectors(
        Dtype::F32,
        &[[0.4, 0.1, 0.1], [0.5, 0.1, 0.1], [0.6, 0.1, 0.1]],
    );
    let embedding = [0.05, 0.1, 0.1];
    assert_cosines(&memories, &embedding, &[0.628539, 0.577350, 0.540738], 1e-6);
    let ranking = memories.rank(&Query::new(&embedding, T, 3), &paper());
    assert_eq!(rows(&ranking), [0, 1, 2]);
}

#[test]
fn a_cosine_that_underflows_is_plus_zero() {
    let memories = Memories::of_vectors(
        Dtype::F32,
        &[[2.0f32.powi(95), -1e-45], [2.0f32.powi(95), 0.0]],
    );
    for kernel in kernels() {
        let cosines = memories.cosines(kernel, &[0.0, 1.0]);
        assert!(cosines.iter().all(|x| x.to_bits() == 0), "{cosines:?}");
    }
}

// B56
#[test]
#[ignore = "it reads 4.5 GB of zeros: cargo test --test scoring_vectors -- --ignored"]
fn the_last_of_more_elements_than_32_bits_address_is_found() {
    const N: usize = 2_900_000;
    const DIM: usize = 768;
    // Zeros that were never written take no memory.
    let mut bits = vec![0_u16; N * DIM];
    let mut inv = vec![0.0; N];
    // The first row, those before and after the element 2^31, which is at the byte 2^32, and the last.
    let rows = [0, (1 << 31) / DIM - 1, (1 << 31) / DIM + 1, N - 1];
    for (at, row) in rows.into_iter().enumerate() {
        let elements = &mut bits[row * DIM..][..DIM];
        elements[at] = f16::ONE.to_bits();
        elements[DIM - 1] = f16::ONE.to_bits();
        let elements = Rows::F16(bytemuck::cast_slice(elements));
        inv_norms(DIM.try_into().unwrap(), elements, &mut inv[row..][..1]).unwrap();
    }
    let (last_access, importance) = (vec![T; N], vec![1.0; N]);
    let elements = Rows::F16(bytemuck::cast_slice(&bits));
    let dim = DIM.try_into().unwrap();
    let columns = Columns::new(dim, elements, &inv, &last_access, &importance).unwrap();
    let mut embedding = vec![0.0; DIM];
    (embedding[3], embedding[DIM - 1]) = (1.0, 1.0);
    for kernel in kernels() {
        let query = Query::new(&embedding, T, 10);
        let ranking = rank_with(&[columns], &query, &paper(), Par::Serial, kernel).unwrap();
        let found: Vec<_> = ranking.hits.iter().map(|hit| hit.row).collect();
        assert_eq!(found, [rows[3], rows[0], rows[1], rows[2]]);
        assert_abs_diff_eq!(ranking.hits[0].relevance.raw, 1.0, epsilon = 4e-7);
    }
}
