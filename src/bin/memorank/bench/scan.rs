//! The cosine scan alone: every cosine, and nothing made of it.

use memorank::Par;
use memorank::kernel::{Kernel, Picks, Queries, Rows};
use rayon::prelude::*;

/// Rows in one call of the kernel: their cosines are finished while they are in the caches.
const RUN: usize = 1 << 14;

/// Writes the cosine of every row with the one query into its place of `out`.
pub fn cosines(
    rows: Rows<'_>,
    inv_norms: &[f32],
    unit: &Queries,
    kernel: Kernel,
    par: Par,
    out: &mut [f32],
) {
    let part = |first: usize, out: &mut [f32]| {
        for (run, out) in out.chunks_mut(RUN).enumerate() {
            let start = first + run * RUN;
            kernel.dots(rows, Picks::Range(start..start + out.len()), unit, out);
            for (cosine, inv_norm) in out.iter_mut().zip(&inv_norms[start..]) {
                *cosine = (*cosine * inv_norm).clamp(-1.0, 1.0);
            }
        }
    };
    match par {
        Par::Serial => part(0, out),
        _ => {
            // More parts than threads, so that a slow one does not hold up the rest.
            let size = out.len().div_ceil(par.threads() * 8).max(1);
            out.par_chunks_mut(size)
                .with_max_len(1)
                .enumerate()
                .for_each(|(i, out)| part(i * size, out));
        }
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
            let mut out = vec![f32::NAN; n];
            cosines(rows, &inverse, &unit, Kernel::best(), par, &mut out);
            assert_eq!(out, expected);
        }
    }
}
