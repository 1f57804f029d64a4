//! The cosine scan alone: every cosine, and nothing made of it.

use memorank::Par;
use memorank::kernel::{Kernel, Picks, Queries, Rows};
use rayon::prelude::*;

/// Rows in one call of the kernel: their cosines are finished while they are in the caches.
const RUN: usize = 1 << 14;

/// Embeddings, and the inverse length of each.
pub type Vectors<'a> = (Rows<'a>, &'a [f32]);

/// Writes the cosine of every row with the one query into its place of `out`.
pub fn cosines(
    vectors: &[Vectors<'_>],
    unit: &Queries,
    kernel: Kernel,
    par: Par,
    mut out: &mut [f32],
) {
    // More pieces than threads, so that a slow one does not hold up the rest.
    let pieces = match par {
        Par::Serial => 1,
        _ => par.threads() * 8,
    };
    let size = out.len().div_ceil(pieces).max(1);
    let mut work = Vec::new();
    for &(rows, inv_norms) in vectors {
        let (own, rest) = out.split_at_mut(inv_norms.len());
        let pieces = own.chunks_mut(size).enumerate();
        work.extend(pieces.map(|(i, out)| (rows, inv_norms, i * size, out)));
        out = rest;
    }
    let piece = |(rows, inv_norms, first, out): (Rows<'_>, &[f32], usize, &mut [f32])| {
        for (run, out) in out.chunks_mut(RUN).enumerate() {
            let start = first + run * RUN;
            kernel.dots(rows, Picks::Range(start..start + out.len()), unit, out);
            for (cosine, inv_norm) in out.iter_mut().zip(&inv_norms[start..]) {
                *cosine = (*cosine * inv_norm).clamp(-1.0, 1.0);
            }
        }
    };
    match par {
        Par::Serial => work.into_iter().for_each(piece),
        _ => work.into_par_iter().with_max_len(1).for_each(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memorank::kernel::inv_norms;

    #[test]
    fn every_row_has_its_cosine_on_any_threads() {
        let dim = 3.try_into().unwrap();
        let n = 2 * RUN + 5;
        let elements: Vec<f32> = (0..3 * n).map(|i| (i % 17) as f32 + 1.0).collect();
        let rows = Rows::F32(&elements);
        let mut inverse = vec![0.0; n];
        inv_norms(dim, rows, &mut inverse).unwrap();
        let mut unit = Queries::new(dim);
        unit.push_unit(&[1.0, -2.0, 0.5]).unwrap();
        let mut expected = vec![0.0; n];
        let scalar = Kernel::new(memorank::kernel::Isa::Scalar).unwrap();
        scalar.dots(rows, Picks::Range(0..n), &unit, &mut expected);
        expected.iter_mut().zip(&inverse).for_each(|(x, i)| *x *= i);
        for par in [Par::Serial, Par::Rayon] {
            for cut in [0, 1, RUN + 3, n] {
                let (first, rest) = elements.split_at(3 * cut);
                let (norms, other) = inverse.split_at(cut);
                let vectors = [(Rows::F32(first), norms), (Rows::F32(rest), other)];
                let mut out = vec![f32::NAN; n];
                cosines(&vectors, &unit, Kernel::best(), par, &mut out);
                assert_eq!(out, expected);
            }
        }
    }
}
