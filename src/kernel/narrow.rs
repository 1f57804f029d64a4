//! Rows of f32 elements as f16, to nearest even: checked whole before an element is written.

use super::norm::{RowError, RowProblem, largest};
use half::f16;
use half::slice::HalfFloatSliceExt;
use std::num::NonZeroUsize;

/// From here on rounding to f16 gives infinity: half way between its largest number, 65504, and 65536.
const F16_OVERFLOW: f32 = 65520.0;

/// Rounds rows to f16, each element to the nearest, ties to even: `out[i]` is `rows[i]`.
///
/// # Errors
/// The first element that is not finite, or that f16 cannot hold (65520 or more, either sign); or a shape
/// that does not fit: `rows` and `out` hold the same number of whole rows. `out` is unchanged then.
///
/// ```
/// use memorank::kernel::{RowProblem, f16, to_f16};
/// let dim = 2.try_into().unwrap();
/// let mut out = [f16::ZERO; 2];
/// to_f16(dim, &[0.5, 65519.9], &mut out)?;
/// assert_eq!(out, [f16::from_f32(0.5), f16::MAX]);
///
/// let error = to_f16(dim, &[1.0, 65520.0], &mut out).unwrap_err();
/// assert_eq!(error.problem, RowProblem::F16Overflow { element: 1, value: 65520.0 });
/// # Ok::<(), memorank::kernel::RowError>(())
/// ```
pub fn to_f16(dim: NonZeroUsize, rows: &[f32], out: &mut [f16]) -> Result<(), RowError> {
    let expected = out.len() / dim;
    for elements in [out.len(), rows.len()] {
        if elements != expected * dim.get() {
            return Err(RowError::shape(elements, dim, expected));
        }
    }
    let fits = |x: f32| x.abs() < F16_OVERFLOW;
    if !fits(largest(rows)) {
        let at = rows.iter().position(|&x| !fits(x));
        let at = at.expect("one of them does not fit");
        let (row, element, value) = (at / dim, at % dim, rows[at]);
        let problem = match value.is_finite() {
            true => RowProblem::F16Overflow { element, value },
            false => RowProblem::NonFinite { element, value },
        };
        return Err(RowError { row, problem });
    }
    out.convert_from_f32_slice(rows);
    Ok(())
}
