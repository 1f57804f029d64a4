//! The portable kernel: the `wide` crate's vectors, chosen when the crate is compiled.
//!
//! `wide`'s `mul_add` is fused only where the crate was compiled for a target with the instruction; it is
//! used where it was tested: on x86-64 compiled with AVX and FMA, and on aarch64, which always has it
//! (under emulation: `.ci/aarch64`). Elsewhere the one rounding of the contract is rebuilt in f64: the
//! product of two f32 is exact there, the sum is rounded to ODD instead of to even, and the final rounding
//! to f32 is then the only one that shows (f64 has more than two bits beyond f32's 24; see S. Boldo and
//! G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd",
//! IEEE Transactions on Computers 57(4), 2008).

use super::lanes::{LANES, Lanes, Tiles};
use half::f16;
use half::slice::HalfFloatSliceExt;
use wide::{f32x8, f64x4, i64x4};

/// Two halves of 8 lanes.
#[derive(Clone, Copy)]
pub(super) struct Portable([f32x8; 2]);

impl Lanes for Portable {
    const TILES: Tiles = Tiles::Single;

    #[inline(always)]
    fn zero() -> Portable {
        Portable([f32x8::splat(0.0); 2])
    }

    #[inline(always)]
    fn load_f32(elements: &[f32; LANES]) -> Portable {
        let (halves, _) = elements.as_chunks::<8>();
        Portable([f32x8::new(halves[0]), f32x8::new(halves[1])])
    }

    #[inline(always)]
    fn load_f16(elements: &[f16; LANES]) -> Portable {
        let mut wide = [0.0; LANES];
        elements.convert_to_f32_slice(&mut wide);
        Portable::load_f32(&wide)
    }

    #[inline(always)]
    fn mul_acc(self, row: Portable, query: Portable) -> Portable {
        let [low, high] = self.0;
        Portable([
            fused(row.0[0], query.0[0], low),
            fused(row.0[1], query.0[1], high),
        ])
    }

    #[inline(always)]
    fn reduce(self) -> f32 {
        let mut lanes = (self.0[0] + self.0[1]).to_array();
        for half in [4, 2, 1] {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
        }
        lanes[0]
    }

    /// There is no portable way to ask.
    #[inline(always)]
    fn prefetch(_: *const u8) {}
}

/// `a * b + c` with one rounding in each lane.
#[inline(always)]
fn fused(a: f32x8, b: f32x8, c: f32x8) -> f32x8 {
    if cfg!(any(
        all(target_arch = "aarch64", target_feature = "neon"),
        all(
            target_arch = "x86_64",
            target_feature = "avx",
            target_feature = "fma"
        ),
    )) {
        a.mul_add(b, c)
    } else {
        let (a, b, c) = (a.to_array(), b.to_array(), c.to_array());
        let mut out = [0.0; 8];
        for i in [0, 4] {
            let widen =
                |x: [f32; 8]| f64x4::new([x[i], x[i + 1], x[i + 2], x[i + 3]].map(f64::from));
            let sum = add_to_odd(widen(a) * widen(b), widen(c)).to_array();
            for j in 0..4 {
                out[i + j] = sum[j] as f32;
            }
        }
        f32x8::new(out)
    }
}

/// `a + b` rounded to odd: the exact sum where it fits, else that one of its two f64 neighbours
/// whose last bit is 1.
#[inline(always)]
fn add_to_odd(a: f64x4, b: f64x4) -> f64x4 {
    // Knuth's two-sum: `sum + error` is the exact value.
    let sum = a + b;
    let a_part = sum - b;
    let b_part = sum - a_part;
    let error = (a - a_part) + (b - b_part);

    let zero = f64x4::splat(0.0);
    // An infinite sum has a NaN error, for which neither comparison holds.
    let inexact: i64x4 = bytemuck::cast(error.simd_lt(zero) | error.simd_gt(zero));
    let bits: i64x4 = bytemuck::cast(sum);
    let error_bits: i64x4 = bytemuck::cast(error);
    let one = i64x4::splat(1);
    let even = (bits & one) - one; // all ones where the last bit is 0
    let away = ((bits ^ error_bits) >> 63) | one; // 1 away from zero, -1 towards it
    bytemuck::cast(bits + (away & inexact & even))
}
