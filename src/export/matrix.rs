//! The file of embeddings.

use crate::kernel::{Dtype, Rows};
use crate::store::{Agent, Snapshot};
use std::io::{self, Write};
use std::num::NonZeroUsize;

/// The header of a `.npy` file (version 1.0, the whole of it a multiple of 64 bytes, as numpy has it) for a
/// matrix of `rows` rows.
pub(crate) fn header(dtype: Dtype, rows: u64, dim: NonZeroUsize) -> Vec<u8> {
    let descr = match dtype {
        Dtype::F16 => "<f2",
        Dtype::F32 => "<f4",
    };
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    let prefix = 10;
    let bytes = (prefix + text.len() + 1).next_multiple_of(64);
    text.extend(std::iter::repeat_n(' ', bytes - prefix - text.len() - 1));
    text.push('\n');
    let length = u16::try_from(text.len()).expect("two numbers make it some 150 bytes");
    [
        b"\x93NUMPY\x01\x00",
        &length.to_le_bytes()[..],
        text.as_bytes(),
    ]
    .concat()
}

/// The rows of the memories that are there, in order; zeros where there is no vector.
pub(super) fn write(snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    let dim = snapshot.dim();
    out.write_all(&header(snapshot.dtype(), snapshot.len() as u64, dim))?;
    let row_bytes = dim.get() * snapshot.dtype().size_bytes();
    let zeros = vec![0; row_bytes];
    for segment in snapshot.segments(Agent::OWN) {
        let all: &[u8] = match segment.embeddings {
            Rows::F16(all) => bytemuck::cast_slice(all),
            Rows::F32(all) => bytemuck::cast_slice(all),
        };
        for (row, elements) in segment.rows().zip(all.chunks_exact(row_bytes)) {
            if snapshot.is_live(row) {
                out.write_all(match snapshot.has_embedding(row) {
                    true => elements,
                    false => &zeros,
                })?;
            }
        }
    }
    Ok(())
}
