//! Reading bytes in several ways, to see whether one beats the yardstick.

use crate::machine::parts;
use memorank::Par;
use memorank::kernel::Kernel;
use memorank::yardstick::read_bytes;
use rayon::prelude::*;

/// Reads all bytes and folds them into the word that [`read_bytes`] gives.
pub type ReadLoop = fn(&[u8]) -> u64;

/// The other loops. These are plain loops with the 16-byte loads of the baseline; the yardstick's own,
/// with 32-byte ones, stands in for those on pieces that bring its streams nearer to each other.
pub const READ_LOOPS: [(&str, ReadLoop); 9] = [
    ("words", words),
    ("2 streams", |bytes| streams::<2>(bytes, 8 << 20)),
    ("4 streams", |bytes| streams::<4>(bytes, 8 << 20)),
    ("8 streams", |bytes| streams::<8>(bytes, 8 << 20)),
    ("4 streams, all bytes", |bytes| {
        streams::<4>(bytes, usize::MAX)
    }),
    ("8 streams, all bytes", |bytes| {
        streams::<8>(bytes, usize::MAX)
    }),
    ("yardstick, by 16 KiB", |bytes| in_pieces(bytes, 16 << 10)),
    ("yardstick, by 1 MiB", |bytes| in_pieces(bytes, 1 << 20)),
    ("yardstick, by 64 MiB", |bytes| in_pieces(bytes, 64 << 20)),
];

/// `read` on one thread, or on all in parts such as the library makes.
pub fn read_parts(bytes: &[u8], par: Par, read: impl Fn(&[u8]) -> u64 + Send + Sync) -> u64 {
    if par == Par::Serial {
        return read(bytes);
    }
    let size = bytes
        .len()
        .div_ceil(parts(par))
        .next_multiple_of(64)
        .max(64);
    let words = bytes.par_chunks(size).with_max_len(1).map(read);
    words.reduce(|| 0, |a, b| a ^ b)
}

/// One stream, as anyone would write it.
fn words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words
        .iter()
        .fold(0, |sum, &word| sum ^ u64::from_le_bytes(word));
    rest.iter().fold(sum, |sum, &byte| sum ^ u64::from(byte))
}

/// `N` streams of lines side by side, in blocks of so many bytes.
fn streams<const N: usize>(bytes: &[u8], block: usize) -> u64 {
    let mut sums = [[0; 8]; N];
    let mut rest = 0;
    for block in bytes.chunks(block) {
        let (lines, tail) = block.as_chunks::<64>();
        let length = lines.len() / N;
        let streams: [&[[u8; 64]]; N] = std::array::from_fn(|i| &lines[i * length..][..length]);
        for line in 0..length {
            for (sum, stream) in sums.iter_mut().zip(&streams) {
                for (sum, word) in sum.iter_mut().zip(stream[line].as_chunks::<8>().0) {
                    *sum ^= u64::from_le_bytes(*word);
                }
            }
        }
        let left = words(lines[N * length..].as_flattened());
        rest ^= left ^ words(tail);
    }
    sums.as_flattened().iter().fold(rest, |all, sum| all ^ sum)
}

fn in_pieces(bytes: &[u8], size: usize) -> u64 {
    let kernel = Kernel::best();
    let pieces = bytes.chunks(size).map(|piece| read_bytes(piece, kernel));
    pieces.fold(0, |all, word| all ^ word)
}
