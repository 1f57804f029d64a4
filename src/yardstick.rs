//! The yardstick: what it costs this machine to read a ranking's bytes and do nothing with them.

use crate::Par;
use crate::kernel::{Kernel, Rows, plain_read};
use crate::scoring::Columns;
use bytemuck::cast_slice;

/// Reads every byte once, in order, with the fastest loop found for the instruction set, and folds them
/// into one word.
pub fn read_bytes(bytes: &[u8], kernel: Kernel) -> u64 {
    plain_read(kernel, bytes)
}

/// The bytes a ranking of all rows must read: embeddings, inverse norms, last accesses, importances.
pub fn bytes_read(columns: &[Columns<'_>]) -> usize {
    columns.iter().flat_map(slices).map(<[u8]>::len).sum()
}

/// Reads every byte that a ranking of all rows must read, once and in order, and folds them into a
/// word. Measured beside a ranking, it says how far from memory's speed the ranking is.
pub fn read_columns(columns: &[Columns<'_>], par: Par, kernel: Kernel) -> u64 {
    let mut parts: Vec<(&[u8], u64)> = Vec::new();
    for slice in columns.iter().flat_map(slices) {
        let size = slice
            .len()
            .div_ceil(par.parts())
            .max(1 << 16)
            .next_multiple_of(64);
        parts.extend(slice.chunks(size).map(|part| (part, 0)));
    }
    par.for_each(&mut parts, |_, (bytes, word)| {
        *word = plain_read(kernel, bytes)
    });
    parts.iter().fold(0, |all, (_, word)| all ^ word)
}

fn slices<'a>(columns: &Columns<'a>) -> [&'a [u8]; 4] {
    let rows = match columns.rows() {
        Rows::F32(elements) => cast_slice(elements),
        Rows::F16(elements) => cast_slice(elements),
    };
    let signals = columns.signals();
    [
        rows,
        cast_slice(columns.inv_norms()),
        cast_slice(signals.stamps()),
        cast_slice(signals.importance),
    ]
}
