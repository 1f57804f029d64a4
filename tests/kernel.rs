//! Every kernel gives the bits of the contract.

mod common;

use common::{DIMS, Random, kernels};
use half::f16;
use memorank::kernel::{
    Isa, IsaError, Kernel, Picks, Queries, QueryError, Rows, inv_norms, to_f16,
};
use std::num::NonZeroUsize;

fn dim(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}

fn queries(d: usize, vectors: &[Vec<f32>]) -> Queries {
    let mut queries = Queries::new(dim(d));
    vectors.iter().for_each(|v| queries.push(v).unwrap());
    queries
}

fn dots(kernel: Kernel, rows: Rows<'_>, picks: Picks<'_>, queries: &Queries) -> Vec<u32> {
    let mut out = vec![f32::NAN; picks.len() * queries.len()];
    kernel.dots(rows, picks, queries, &mut out);
    out.iter().map(|x| x.to_bits()).collect()
}

/// Numbers of very different sizes, so that a wrong order or a second rounding shows.
fn rough(random: &mut Random) -> f32 {
    let scale = [1.0, 1e-3, 300.0, 1e-7, 3e-5][random.below(5) as usize];
    random.signed() * scale
}

#[test]
fn every_kernel_gives_the_bits_of_the_scalar_one() {
    let scalar = Kernel::new(Isa::Scalar).unwrap();
    let kernels = kernels();
    let mut random = Random(1);
    for d in (1..=34).chain(DIMS.into_iter().filter(|&d| d > 34)) {
        let row_counts: &[usize] = if d > 200 {
            &[1, 5, 19]
        } else {
            &[1, 2, 3, 4, 5, 7, 8, 9, 19]
        };
        for &n in row_counts {
            // Every offset from an aligned start, NaN on both sides, the rows ending at the last
            // element before it.
            let offsets = if n == 9 || d > 200 { 0..16 } else { 0..2 };
            for offset in offsets {
                let elements: Vec<f32> = (0..n * d).map(|_| rough(&mut random)).collect();
                let mut f32s = vec![f32::NAN; offset + n * d + 16];
                f32s[offset..offset + n * d].copy_from_slice(&elements);
                let f16s: Vec<f16> = f32s.iter().map(|&x| f16::from_f32(x)).collect();
                let q = 1 + (offset + n) % 6;
                let vectors: Vec<Vec<f32>> = (0..q)
                    .map(|_| (0..d).map(|_| rough(&mut random)).collect())
                    .collect();
                let queries = queries(d, &vectors);
                for rows in [
                    Rows::F32(&f32s[offset..offset + n * d]),
                    Rows::F16(&f16s[offset..offset + n * d]),
                ] {
                    let expected = dots(scalar, rows, Picks::Range(0..n), &queries);
                    for &kernel in &kernels {
                        let got = dots(kernel, rows, Picks::Range(0..n), &queries);
                        assert_eq!(
                            got,
                            expected,
                            "{} {} dim {d} rows {n}",
                            kernel.isa(),
                            rows.dtype()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_scalar_kernel_says_the_contract() {
    // The same sentence once more, with f64 in place of the fused multiply-add where that is exact.
    let d = 37;
    let mut random = Random(2);
    let row: Vec<f32> = (0..d).map(|_| (random.signed() * 64.0).round()).collect();
    let query: Vec<f32> = (0..d).map(|_| (random.signed() * 64.0).round()).collect();
    let exact: f32 = row.iter().zip(&query).map(|(x, q)| x * q).sum();
    let scalar = Kernel::new(Isa::Scalar).unwrap();
    assert_eq!(
        dots(
            scalar,
            Rows::F32(&row),
            Picks::Range(0..1),
            &queries(d, &[query])
        ),
        [exact.to_bits()]
    );
    // One rounding per element, not two: 1 - 2^-24 * (1 + 2^-23) differs when the product is rounded.
    let (x, q) = (1.0 + f32::EPSILON, 1.0 - f32::EPSILON / 2.0);
    let row = [1.0, 0.0, x];
    let mut lanes16 = vec![0.0; 33];
    (lanes16[0], lanes16[16], lanes16[32]) = (row[0], row[1], row[2]);
    let mut query = vec![0.0; 33];
    (query[0], query[32]) = (-1.0, q);
    assert_eq!(
        dots(
            scalar,
            Rows::F32(&lanes16),
            Picks::Range(0..1),
            &queries(33, &[query])
        ),
        [x.mul_add(q, -1.0).to_bits()]
    );
    assert_ne!(x.mul_add(q, -1.0), x * q - 1.0);
}

#[test]
fn lanes_reduce_by_halves() {
    // 2^24 + 1 + 1: the order of the additions decides what survives.
    let scalar = Kernel::new(Isa::Scalar).unwrap();
    let big = 16_777_216.0;
    for (positions, expected) in [([0usize, 1, 8], big), ([0, 4, 12], big + 2.0)] {
        let mut row = vec![0.0; 16];
        row[positions[0]] = big;
        row[positions[1]] = 1.0;
        row[positions[2]] = 1.0;
        let ones = queries(16, &[vec![1.0; 16]]);
        for kernel in kernels().into_iter().chain([scalar]) {
            let got = dots(kernel, Rows::F32(&row), Picks::Range(0..1), &ones);
            assert_eq!(got, [expected.to_bits()], "{}", kernel.isa());
        }
    }
}

#[test]
fn hard_roundings_are_the_same_everywhere() {
    // Sums at and next to ties, cancellations, subnormal products and results, overflow to infinity.
    let hard = [
        1.0,
        -1.0,
        1.0 + f32::EPSILON,
        1.0 - f32::EPSILON / 2.0,
        3.0,
        1.0 / 3.0,
        16_777_216.0,
        16_777_215.0,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        -f32::from_bits(3),
        1e-30,
        -1e-30,
        4097.0,
        8193.0,
        5e-20,
        0.0,
        -0.0,
    ];
    let scalar = Kernel::new(Isa::Scalar).unwrap();
    let mut random = Random(3);
    let kernels = kernels();
    for round in 0..4000 {
        let pick = |random: &mut Random| hard[random.below(hard.len() as u64) as usize];
        let row: Vec<f32> = (0..48).map(|_| pick(&mut random)).collect();
        let query: Vec<f32> = (0..48).map(|_| pick(&mut random)).collect();
        let queries = queries(48, &[query]);
        let expected = dots(scalar, Rows::F32(&row), Picks::Range(0..1), &queries);
        for &kernel in &kernels {
            let got = dots(kernel, Rows::F32(&row), Picks::Range(0..1), &queries);
            assert_eq!(got, expected, "{} round {round}", kernel.isa());
        }
    }
    let huge = vec![3e38; 32];
    let queries = queries(32, &[vec![2.0; 32]]);
    for &kernel in &kernels {
        let got = dots(kernel, Rows::F32(&huge), Picks::Range(0..1), &queries);
        assert_eq!(got, [f32::INFINITY.to_bits()], "{}", kernel.isa());
    }
}

#[test]
fn many_queries_and_picked_rows_give_the_bits_of_one_at_a_time() {
    let mut random = Random(4);
    for d in [1, 17, 33, 384] {
        let n = 37;
        let elements: Vec<f32> = (0..n * d).map(|_| rough(&mut random)).collect();
        let f16s: Vec<f16> = elements.iter().map(|&x| f16::from_f32(x)).collect();
        let vectors: Vec<Vec<f32>> = (0..11).map(|_| random.vector(d)).collect();
        let list: Vec<u32> = (0..53)
            .map(|_| 1000 + random.below(n as u64) as u32)
            .collect();
        for rows in [Rows::F32(&elements), Rows::F16(&f16s)] {
            for kernel in kernels() {
                let picks = Picks::List {
                    rows: &list,
                    base: 1000,
                };
                let together = dots(kernel, rows, picks, &queries(d, &vectors));
                for (q, vector) in vectors.iter().enumerate() {
                    let one = queries(d, std::slice::from_ref(vector));
                    for (i, &row) in list.iter().enumerate() {
                        let row = (row - 1000) as usize;
                        let alone = dots(kernel, rows, Picks::Range(row..row + 1), &one);
                        assert_eq!(
                            alone,
                            [together[q * list.len() + i]],
                            "{} dim {d}",
                            kernel.isa()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn all_f16_patterns_widen_alike() {
    // B70: every finite pattern times 1, each in a lane of its own.
    let finite: Vec<f16> = (0..=u16::MAX)
        .map(f16::from_bits)
        .filter(|x| x.is_finite())
        .collect();
    let one = queries(1, &[vec![1.0]]);
    for kernel in kernels() {
        let got = dots(
            kernel,
            Rows::F16(&finite),
            Picks::Range(0..finite.len()),
            &one,
        );
        for (x, bits) in finite.iter().zip(got) {
            // +0 + -0 * 1 is +0.
            assert_eq!(
                f32::from_bits(bits),
                x.to_f32(),
                "{} {:#06x}",
                kernel.isa(),
                x.to_bits()
            );
            assert_eq!(f16::from_f32(f32::from_bits(bits)), *x);
        }
    }
}

#[test]
fn f32_rounds_to_f16_to_nearest_even() {
    // B70: the halves of subnormals, and ties.
    for (x, expected) in [
        (f32::from_bits(0x3300_0000), 0x0000),
        (f32::from_bits(0x3300_0001), 0x0001),
        (f32::from_bits(0x3340_0000), 0x0001),
        (2.0f32.powi(-15), 0x0200),
        (1.0 + 2.0f32.powi(-11), 0x3c00),
        (1.0 + 3.0 * 2.0f32.powi(-11), 0x3c02),
        (65519.9, 0x7bff),
    ] {
        // Whole registers and rests.
        for n in [1, 7, 8, 9, 17] {
            let mut stored = vec![f16::ZERO; n];
            to_f16(dim(n), &vec![x; n], &mut stored).unwrap();
            assert!(stored.iter().all(|y| y.to_bits() == expected), "{x} x {n}");
        }
    }
    let finite: Vec<f16> = (0..=u16::MAX)
        .map(f16::from_bits)
        .filter(|x| x.is_finite())
        .collect();
    let wide: Vec<f32> = finite.iter().map(|x| x.to_f32()).collect();
    let mut stored = vec![f16::ONE; finite.len()];
    to_f16(dim(1), &wide, &mut stored).unwrap();
    let bits = |values: &[f16]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&stored), bits(&finite));
}

// B69
#[test]
fn rows_are_narrowed_whole_or_not_at_all() {
    use memorank::kernel::{RowError, RowProblem, to_f16};
    let given = [1.0, 65519.9, -65519.9, f32::from_bits(1), -0.0, 65504.0];
    let mut out = [f16::ZERO; 6];
    to_f16(dim(3), &given, &mut out).unwrap();
    let bits = out.map(f16::to_bits);
    assert_eq!(bits, [0x3c00, 0x7bff, 0xfbff, 0, 0x8000, 0x7bff]);
    let before = [f16::from_f32(7.0); 6];
    for value in [
        70000.0,
        65520.0,
        -65520.0,
        f32::MAX,
        f32::NAN,
        f32::INFINITY,
    ] {
        for at in 0..6 {
            let mut bad = given;
            // The first of two is told.
            (bad[5], bad[at]) = (f32::NEG_INFINITY, value);
            let mut out = before;
            let error = to_f16(dim(3), &bad, &mut out).unwrap_err();
            let (row, element) = (at / 3, at % 3);
            let problem = match value.is_finite() {
                true => RowProblem::F16Overflow { element, value },
                false => RowProblem::NonFinite { element, value },
            };
            let expected = RowError { row, problem };
            assert_eq!(error.to_string(), expected.to_string());
            assert_eq!(out, before);
        }
    }
    for (rows, room, told) in [(6, 5, 5), (5, 6, 5), (3, 6, 3), (6, 3, 6)] {
        let error = to_f16(dim(3), &given[..rows], &mut out[..room]).unwrap_err();
        let shape = |p| matches!(p, RowProblem::Shape { elements, .. } if elements == told);
        assert!(shape(error.problem), "{error}");
    }
}

/// One row after another, one element after another.
#[test]
fn inverse_norms_are_sequential_sums_whatever_rows_come_together() {
    let mut random = Random(77);
    for d in (1..=34).chain([63, 64, 65, 127, 128, 387]) {
        let mut f32s: Vec<f32> = (0..19 * d).map(|_| rough(&mut random)).collect();
        f32s.iter_mut().step_by(d).for_each(|x| *x += 1.0); // No row rounds to zeros.
        let f16s: Vec<f16> = f32s.iter().map(|&x| f16::from_f32(x)).collect();
        let stored: Vec<f32> = f16s.iter().map(|x| x.to_f32()).collect();
        for (rows, values) in [(Rows::F32(&f32s), &f32s), (Rows::F16(&f16s), &stored)] {
            let mut out = [0.0; 19];
            inv_norms(dim(d), rows, &mut out).unwrap();
            for (row, inverse) in values.chunks(d).zip(out) {
                let mut sum = 0.0;
                for &x in row {
                    sum += f64::from(x) * f64::from(x);
                }
                assert_eq!(inverse.to_bits(), ((1.0 / sum.sqrt()) as f32).to_bits());
            }
        }
    }
}

#[test]
fn a_refused_row_leaves_all_inverse_norms_as_they_were() {
    let mut out = [7.0; 3];
    for bad in [f32::NAN, 0.0, 1e30] {
        let rows = [1.0, 1.0, 3.0, 4.0, bad, bad];
        inv_norms(dim(2), Rows::F32(&rows), &mut out).unwrap_err();
        assert_eq!(out, [7.0; 3]);
    }
    inv_norms(dim(2), Rows::F32(&[0.5; 5]), &mut out).unwrap_err();
    assert_eq!(out, [7.0; 3]);
}

#[test]
fn f16_products_and_sums_do_not_overflow_or_stall() {
    // B17, B18.
    let dot = |kernel, row: &[f32], query: Vec<f32>| {
        let row: Vec<f16> = row.iter().map(|&x| f16::from_f32(x)).collect();
        let d = row.len();
        f32::from_bits(
            dots(
                kernel,
                Rows::F16(&row),
                Picks::Range(0..1),
                &queries(d, &[query]),
            )[0],
        )
    };
    for kernel in kernels() {
        let mut row = vec![0.0; 64];
        row[0] = 256.0;
        assert_eq!(dot(kernel, &row, row.clone()), 65536.0);
        let mut row = vec![0.0; 33];
        row[32] = 256.0;
        assert_eq!(dot(kernel, &row, row.clone()), 65536.0);
        assert_eq!(dot(kernel, &[300.0; 32], vec![300.0; 32]), 2.88e6);
        assert_eq!(
            dot(kernel, &[65504.0; 32], vec![65504.0; 32]),
            137_304_768_512.0
        );
        assert_eq!(dot(kernel, &[1.0; 4096], vec![1.0; 4096]), 4096.0);
    }
}

#[test]
fn odd_sizes_sum_exactly_and_never_read_past_the_row() {
    // B58.
    let row = [1.0, 2.0, 3.0, 1.0, 2.0, f32::NAN, f32::NAN];
    for kernel in kernels() {
        let q = queries(5, &[vec![4.0, 5.0, 6.0, 4.0, 5.0]]);
        let got = dots(kernel, Rows::F32(&row[..5]), Picks::Range(0..1), &q);
        assert_eq!(got, [46.0f32.to_bits()]);
    }
    let mut random = Random(5);
    for d in DIMS {
        let mut integers =
            |n: usize| -> Vec<f32> { (0..n).map(|_| random.below(33) as f32 - 16.0).collect() };
        let (row, query) = (integers(d), integers(d));
        let exact: i64 = row
            .iter()
            .zip(&query)
            .map(|(&x, &q)| x as i64 * q as i64)
            .sum();
        let halves: Vec<f16> = row.iter().map(|&x| f16::from_f32(x)).collect();
        for kernel in kernels() {
            for rows in [Rows::F32(&row), Rows::F16(&halves)] {
                let q = queries(d, std::slice::from_ref(&query));
                let got = dots(kernel, rows, Picks::Range(0..1), &q);
                assert_eq!(got, [(exact as f32).to_bits()], "{} dim {d}", kernel.isa());
            }
        }
    }
}

#[test]
fn a_missing_instruction_set_is_an_error() {
    for isa in Isa::ALL {
        match Kernel::new(isa) {
            Ok(kernel) => assert_eq!(kernel.isa(), isa),
            Err(e) => assert_eq!(e, IsaError::Missing(isa)),
        }
        assert_eq!(isa.name().parse(), Ok(isa));
    }
    assert_eq!(
        "sse9".parse::<Isa>(),
        Err(IsaError::Unknown("sse9".to_owned()))
    );
    assert!(Isa::best().is_available());
}

#[test]
fn bad_queries_are_refused_and_not_added() {
    let mut q = Queries::new(dim(3));
    assert_eq!(
        q.push(&[1.0, 2.0]),
        Err(QueryError::Dimension {
            found: 2,
            expected: 3
        })
    );
    assert_eq!(
        q.push_unit(&[1.0, f32::INFINITY, 0.0]),
        Err(QueryError::NonFinite {
            element: 1,
            value: f32::INFINITY
        })
    );
    assert_eq!(q.push_unit(&[0.0, -0.0, 0.0]), Err(QueryError::Zero));
    assert!(q.is_empty());
    // Any length that has a direction will do.
    q.push_unit(&[f32::from_bits(1), 0.0, 0.0]).unwrap();
    q.push_unit(&[f32::MAX, f32::MAX, 0.0]).unwrap();
    assert_eq!(q.len(), 2);
}

#[test]
fn rows_out_of_range_are_refused_with_their_reason() {
    use memorank::kernel::{RowError, RowProblem};
    let mut out = [0.0; 2];
    let fails =
        |rows: &[f32], out: &mut [f32]| inv_norms(dim(2), Rows::F32(rows), out).unwrap_err();
    assert!(matches!(
        fails(&[1.0, 2.0, 3.0, f32::NAN], &mut out),
        RowError {
            row: 1,
            problem: RowProblem::NonFinite { element: 1, .. }
        }
    ));
    assert!(matches!(
        fails(&[1.0, 2.0, 0.0, -0.0], &mut out),
        RowError {
            row: 1,
            problem: RowProblem::Length { length: 0.0 }
        }
    ));
    let edge = 2.0f32.powi(-96);
    inv_norms(
        dim(2),
        Rows::F32(&[edge, 0.0, 2.0f32.powi(96), 0.0]),
        &mut out,
    )
    .unwrap();
    assert_eq!(out, [2.0f32.powi(96), edge]);
    for length in [
        edge * (1.0 - f32::EPSILON),
        2.0f32.powi(96) * (1.0 + f32::EPSILON),
    ] {
        assert!(matches!(
            fails(&[1.0, 2.0, length, 0.0], &mut out),
            RowError {
                row: 1,
                problem: RowProblem::Length { .. }
            }
        ));
    }
    assert!(matches!(
        fails(&[1.0, 2.0, 3.0], &mut out),
        RowError {
            problem: RowProblem::Shape { .. },
            ..
        }
    ));
    let nan = [
        f16::from_f32(1.0),
        f16::from_bits(0x7e00),
        f16::from_bits(0x7c00),
        f16::ONE,
    ];
    assert!(matches!(
        inv_norms(dim(2), Rows::F16(&nan), &mut out).unwrap_err(),
        RowError {
            row: 0,
            problem: RowProblem::NonFinite { element: 1, .. }
        }
    ));
}
