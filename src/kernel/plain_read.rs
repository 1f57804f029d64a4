//! The yardstick: reading memory and nothing else.

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
        Isa::Avx2 | Isa::Avx512 => fold(bytes),
        Isa::Scalar | Isa::Portable => fold(bytes),
    }
}

/// The loop: 8 independent sums of 64 bytes each, which the compiler turns into loads as wide as the
/// calling function's target features allow.
#[inline(always)]
pub(super) fn fold(bytes: &[u8]) -> u64 {
    let (turns, rest) = bytes.as_chunks::<512>();
    let mut sums = [0u64; 64];
    for turn in turns {
        for (sum, word) in sums.iter_mut().zip(turn.as_chunks::<8>().0) {
            *sum ^= u64::from_le_bytes(*word);
        }
    }
    let rest = rest.iter().fold(0, |sum, &byte| sum ^ u64::from(byte));
    sums.iter().fold(rest, |all, sum| all ^ sum)
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
