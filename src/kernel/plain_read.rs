//! The yardstick: reading memory and nothing else.

#![allow(
    clippy::needless_range_loop,
    reason = "closures of iterators would not inherit the callers' target features"
)]

use super::dispatch::Kernel;
use super::isa::Isa;

/// Reads every byte once, in order, with the fastest loop found for the instruction set, and folds them
/// into one word. What a ranking takes longer than this on the same bytes, it spends on arithmetic.
pub(crate) fn plain_read(kernel: Kernel, bytes: &[u8]) -> u64 {
    match kernel.isa() {
        // Not with the loads of AVX-512: on Zen 4 they read slower from memory.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 => super::x86::plain_read_avx2(bytes),
        #[cfg(not(target_arch = "x86_64"))]
        Isa::Avx2 | Isa::Avx512 => fold::<[u64; 8]>(bytes),
        Isa::Scalar | Isa::Portable => fold::<[u64; 8]>(bytes),
    }
}

/// Bytes that are read side by side, in [`STREAMS`] of equal length.
const BLOCK: usize = 8 << 20;

/// One stream reads slower: 0.9 of the speed of 4 (Zen 4; `cargo bench --bench roofline`). Asking for the next
/// page of each, as scans do, is no faster: 0.96 to 1.01.
const STREAMS: usize = 4;

/// A sum of lines of 64 bytes, in the registers of some instruction set.
pub(super) trait Sum: Copy {
    fn zero() -> Self;
    fn add(self, line: &[u8; 64]) -> Self;
    fn words(self) -> [u64; 8];
}

impl Sum for [u64; 8] {
    #[inline(always)]
    fn zero() -> [u64; 8] {
        [0; 8]
    }

    #[inline(always)]
    fn add(mut self, line: &[u8; 64]) -> [u64; 8] {
        for (sum, word) in self.iter_mut().zip(line.as_chunks::<8>().0) {
            *sum ^= u64::from_le_bytes(*word);
        }
        self
    }

    #[inline(always)]
    fn words(self) -> [u64; 8] {
        self
    }
}

/// The loop: a line of each stream per turn.
#[inline(always)]
pub(super) fn fold<S: Sum>(bytes: &[u8]) -> u64 {
    let mut sums = [S::zero(); STREAMS];
    let mut rest = 0;
    for block in bytes.chunks(BLOCK) {
        let (lines, tail) = block.as_chunks::<64>();
        let length = lines.len() / STREAMS;
        let mut streams: [&[[u8; 64]]; STREAMS] = [&[]; STREAMS];
        for i in 0..STREAMS {
            streams[i] = &lines[i * length..][..length];
        }
        for line in 0..length {
            for i in 0..STREAMS {
                sums[i] = sums[i].add(&streams[i][line]);
            }
        }
        for line in &lines[STREAMS * length..] {
            sums[0] = sums[0].add(line);
        }
        rest = tail.iter().fold(rest, |sum, &byte| sum ^ u64::from(byte));
    }
    let mut all = rest;
    for sum in sums {
        all = sum.words().iter().fold(all, |all, word| all ^ word);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read() {
        let mut bytes = vec![0; 1500];
        for isa in Isa::ALL {
            let Ok(kernel) = Kernel::new(isa) else {
                continue;
            };
            let nothing = plain_read(kernel, &bytes);
            for i in 0..bytes.len() {
                bytes[i] = 1;
                assert_ne!(plain_read(kernel, &bytes), nothing, "{isa} byte {i}");
                bytes[i] = 0;
            }
        }
    }
}
