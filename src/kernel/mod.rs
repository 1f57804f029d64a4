//! Dot products over plain slices, with the same bits on every instruction set.
//!
//! # The contract
//!
//! A dot product of a row `x` and a query `q` of `dim` elements is defined on 16 virtual f32 lanes:
//!
//! 1. every lane starts at +0;
//! 2. element `j` goes to lane `j mod 16`, in ascending `j`, as one fused multiply-add
//!    `lane = x[j] * q[j] + lane` with ONE rounding; f16 elements are widened exactly first;
//! 3. if `dim` is no multiple of 16, both sides are padded with zeros, fused like the rest;
//! 4. the lanes are added by halves: `l[i] + l[i + 8]`, then `+ 4`, `+ 2`, `+ 1`.
//!
//! [`scalar`](self::Isa::Scalar) says this in plain loops and is the reference that every other
//! instruction set is tested against, bit for bit. Rows are independent: the bits do not depend on
//! the row's position, its neighbours, the number of queries or of threads. The floating-point
//! environment is the default one (round to nearest even, subnormals kept); Rust assumes it too.
//!
//! Run on x86-64, and on aarch64 (scalar and portable) under qemu only: the command is `.ci/aarch64`.
//!
//! # Error of a cosine
//!
//! Let `u = 2^-24`, `m = ceil(dim / 16)` and `S = sum |x[j] q[j]| / (|x| |q|)`. A lane takes `m`
//! fused steps and the reduction 4 more additions, each with a relative error of at most `u` on a
//! partial sum that is bounded by the sum of magnitudes: `m + 4` roundings. The unit query's
//! elements carry one rounding to f32 each, the stored inverse norm one, and the product
//! `dot * inv_norm` one: 3 more. To first order
//!
//! ```text
//! |cosine - exact| <= (ceil(dim / 16) + 7) * 2^-24 * S
//! ```
//!
//! plus the f64 roundings of the two norms (about `dim * 2^-53`) and the absolute error of subnormal
//! numbers: of unit-query elements below 2^-126, and of sums, up to `dim * 2^-150 / |x|`, which is
//! `dim * 2^-54` for the shortest rows allowed. `S` is at most 1 (Cauchy-Schwarz); [`cosine_error_bound`]
//! takes it so. Self-cosines are 1 within 4e-7, not exactly 1.

mod dispatch;
mod isa;
mod lanes;
mod narrow;
mod norm;
mod plain_read;
mod portable;
mod queries;
mod rows;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use dispatch::Loop;
pub use dispatch::{Kernel, Picks};
pub use half::f16;
pub use isa::{Isa, IsaError};
pub use narrow::to_f16;
#[cfg(feature = "store")]
pub(crate) use norm::is_surely_sound;
pub use norm::{LENGTH_MAX, LENGTH_MIN, RowError, RowProblem, inv_norms};
pub(crate) use plain_read::plain_read;
pub use queries::{Queries, QueryError};
pub use rows::{Dtype, Rows};

/// The error bound of a cosine at its largest, `S = 1`, with the small terms (the module docs derive it).
pub fn cosine_error_bound(dim: std::num::NonZeroUsize) -> f64 {
    let (dim, groups) = (dim.get() as f64, dim.get().div_ceil(lanes::LANES) as f64);
    (groups + 7.0) * f64::powi(2.0, -24) + 3.0 * dim * f64::powi(2.0, -53)
}
