//! The kernels for AVX2 (with FMA and F16C) and AVX-512, in `core::arch`.
//!
//! The trait's functions are `inline(always)` and end up inside the `target_feature` functions of
//! the two scans at the bottom, which are the only way in. Nothing here reads memory but through array references.

#![allow(unsafe_code)]

use super::dispatch::{Kernel, Loop, Picks};
use super::isa::Isa;
use super::lanes::{Element, LANES, Lanes, Tiles, scan};
use super::plain_read::{self, Sum};
use super::queries::Queries;
use half::f16;
use std::arch::x86_64::*;

/// Two registers of 8 lanes.
#[derive(Clone, Copy)]
struct Avx2(__m256, __m256);

impl Lanes for Avx2 {
    const TILES: Tiles = Tiles::Narrow;

    #[inline(always)]
    fn zero() -> Avx2 {
        // SAFETY: `Avx2` is used by the functions with its target features only.
        unsafe { Avx2(_mm256_setzero_ps(), _mm256_setzero_ps()) }
    }

    #[inline(always)]
    fn load_f32(elements: &[f32; LANES]) -> Avx2 {
        let p = elements.as_ptr();
        // SAFETY: target features as in `zero`; the array has 16 elements, the loads are unaligned.
        unsafe { Avx2(_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))) }
    }

    #[inline(always)]
    fn load_f16(elements: &[f16; LANES]) -> Avx2 {
        let p = elements.as_ptr().cast::<__m128i>();
        // SAFETY: target features as in `zero`; the array has 32 bytes, the loads are unaligned.
        unsafe {
            Avx2(
                _mm256_cvtph_ps(_mm_loadu_si128(p)),
                _mm256_cvtph_ps(_mm_loadu_si128(p.add(1))),
            )
        }
    }

    #[inline(always)]
    fn mul_acc(self, row: Avx2, query: Avx2) -> Avx2 {
        // SAFETY: target features as in `zero`.
        unsafe {
            Avx2(
                _mm256_fmadd_ps(row.0, query.0, self.0),
                _mm256_fmadd_ps(row.1, query.1, self.1),
            )
        }
    }

    #[inline(always)]
    fn reduce(self) -> f32 {
        // SAFETY: target features as in `zero`.
        unsafe { reduce_8(_mm256_add_ps(self.0, self.1)) }
    }

    #[inline(always)]
    fn prefetch(address: *const u8) {
        prefetch(address);
    }
}

/// One register of 16 lanes.
#[derive(Clone, Copy)]
struct Avx512(__m512);

impl Lanes for Avx512 {
    const TILES: Tiles = Tiles::Wide;

    #[inline(always)]
    fn zero() -> Avx512 {
        // SAFETY: `Avx512` is used by the functions with its target features only.
        unsafe { Avx512(_mm512_setzero_ps()) }
    }

    #[inline(always)]
    fn load_f32(elements: &[f32; LANES]) -> Avx512 {
        // SAFETY: target features as in `zero`; the array has 16 elements, the load is unaligned.
        unsafe { Avx512(_mm512_loadu_ps(elements.as_ptr())) }
    }

    #[inline(always)]
    fn load_f16(elements: &[f16; LANES]) -> Avx512 {
        // SAFETY: target features as in `zero`; the array has 32 bytes, the load is unaligned.
        unsafe {
            Avx512(_mm512_cvtph_ps(_mm256_loadu_si256(
                elements.as_ptr().cast(),
            )))
        }
    }

    #[inline(always)]
    fn mul_acc(self, row: Avx512, query: Avx512) -> Avx512 {
        // SAFETY: target features as in `zero`.
        unsafe { Avx512(_mm512_fmadd_ps(row.0, query.0, self.0)) }
    }

    #[inline(always)]
    fn reduce(self) -> f32 {
        // SAFETY: target features as in `zero`. The upper half is moved as f64, which AVX-512F has.
        unsafe {
            let low = _mm512_castps512_ps256(self.0);
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self.0)));
            reduce_8(_mm256_add_ps(low, high))
        }
    }

    #[inline(always)]
    fn prefetch(address: *const u8) {
        prefetch(address);
    }
}

/// `l[i] + l[i + 4]`, then `+ 2`, `+ 1`.
///
/// # Safety
/// The machine has AVX.
#[inline(always)]
unsafe fn reduce_8(lanes: __m256) -> f32 {
    // SAFETY: AVX, as the caller promises.
    unsafe {
        let four = _mm_add_ps(
            _mm256_castps256_ps128(lanes),
            _mm256_extractf128_ps::<1>(lanes),
        );
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }
}

/// Asks for the cache line at `address`, into the second-level cache.
#[inline(always)]
pub(super) fn prefetch(address: *const u8) {
    // SAFETY: SSE is part of x86-64, and a prefetch has no effect but on the caches.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
}

/// [`scan`] with AVX2.
///
/// # Panics
/// If `kernel` is of neither: its value is the proof that the machine has the instructions.
pub(super) fn scan_avx2<E: Element>(
    kernel: Kernel,
    rows: &[E],
    picks: &Picks<'_>,
    queries: &Queries,
    out: &mut [f32],
    stride: usize,
) {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn inner<E: Element>(r: &[E], p: &Picks<'_>, q: &Queries, out: &mut [f32], stride: usize) {
        scan::<Avx2, E>(r, p, q, out, stride);
    }
    assert!(matches!(kernel.isa(), Isa::Avx2 | Isa::Avx512));
    // SAFETY: such a `Kernel` is only made where AVX2, FMA and F16C were detected.
    unsafe { inner(rows, picks, queries, out, stride) }
}

/// [`scan`] with AVX-512; of one query with AVX2, whose shorter loads read memory faster on Zen 4 (f32
/// of a mapped file: 1.05 to 1.11 times a sequential read's speed, against 0.98 to 1.05).
///
/// # Panics
/// If `kernel` is another one: its value is the proof that the machine has the instructions.
pub(super) fn scan_avx512<E: Element>(
    kernel: Kernel,
    rows: &[E],
    picks: &Picks<'_>,
    queries: &Queries,
    out: &mut [f32],
    stride: usize,
) {
    // VL beside F: without it the compiler keeps sums out of half the registers.
    #[target_feature(enable = "avx512f,avx512vl")]
    fn inner<E: Element>(r: &[E], p: &Picks<'_>, q: &Queries, out: &mut [f32], stride: usize) {
        scan::<Avx512, E>(r, p, q, out, stride);
    }
    assert_eq!(kernel.isa(), Isa::Avx512);
    if queries.len() == 1 {
        return scan_avx2(kernel, rows, picks, queries, out, stride);
    }
    // SAFETY: a `Kernel` of AVX-512 is only made where F and VL were detected.
    unsafe { inner(rows, picks, queries, out, stride) }
}

/// A loop compiled for AVX2.
///
/// # Panics
/// If `kernel` is another one: its value is the proof that the machine has the instructions.
pub(super) fn run_avx2<L: Loop>(kernel: Kernel, work: L) -> L::Output {
    #[target_feature(enable = "avx2")]
    fn inner<L: Loop>(work: L) -> L::Output {
        work.run()
    }
    assert_eq!(kernel.isa(), Isa::Avx2);
    // SAFETY: a `Kernel` of AVX2 is only made where it was detected.
    unsafe { inner(work) }
}

/// A loop compiled for AVX-512.
///
/// # Panics
/// If `kernel` is another one: its value is the proof that the machine has the instructions.
pub(super) fn run_avx512<L: Loop>(kernel: Kernel, work: L) -> L::Output {
    #[target_feature(enable = "avx512f,avx512vl,avx512dq")]
    fn inner<L: Loop>(work: L) -> L::Output {
        work.run()
    }
    assert_eq!(kernel.isa(), Isa::Avx512);
    // SAFETY: a `Kernel` of AVX-512 is only made where F, VL and DQ were detected.
    unsafe { inner(work) }
}

/// Two registers of 32 bytes.
#[derive(Clone, Copy)]
struct Line(__m256i, __m256i);

impl Sum for Line {
    #[inline(always)]
    fn zero() -> Line {
        // SAFETY: `Line` is used by the function with its target feature only.
        unsafe { Line(_mm256_setzero_si256(), _mm256_setzero_si256()) }
    }

    #[inline(always)]
    fn add(self, line: &[u8; 64]) -> Line {
        let p = line.as_ptr().cast::<__m256i>();
        // SAFETY: target feature as in `zero`; the line has 64 bytes, the loads are unaligned.
        unsafe {
            Line(
                _mm256_xor_si256(self.0, _mm256_loadu_si256(p)),
                _mm256_xor_si256(self.1, _mm256_loadu_si256(p.add(1))),
            )
        }
    }

    #[inline(always)]
    fn words(self) -> [u64; 8] {
        bytemuck::cast([self.0, self.1])
    }
}

/// [`plain_read::fold`] with AVX2.
///
/// # Panics
/// If the machine has no AVX2.
pub(super) fn plain_read_avx2(bytes: &[u8]) -> u64 {
    #[target_feature(enable = "avx2")]
    fn inner(bytes: &[u8]) -> u64 {
        plain_read::fold::<Line>(bytes)
    }
    assert!(is_x86_feature_detected!("avx2"));
    // SAFETY: AVX2 was detected just now.
    unsafe { inner(bytes) }
}
