//! The NumPy format, version 1.0: a header of printable text, then a C-ordered little-endian
//! matrix.

use clap::ValueEnum;
use half::f16;

/// Type of an element.
#[derive(Clone, Copy, ValueEnum)]
pub enum Dtype {
    /// Half precision, rounded to nearest even
    F16,
    /// Single precision, as made
    F32,
}

impl Dtype {
    fn descr(self) -> &'static str {
        match self {
            Dtype::F16 => "<f2",
            Dtype::F32 => "<f4",
        }
    }

    /// The elements as the file has them.
    pub fn encode(self, elements: &[f32]) -> Vec<u8> {
        match self {
            Dtype::F16 => elements
                .iter()
                .flat_map(|&x| f16::from_f32(x).to_le_bytes())
                .collect(),
            Dtype::F32 => elements.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }
}

/// What precedes a matrix of `rows` times `dim` elements. The data that follow are aligned to 64
/// bytes.
pub fn header(dtype: Dtype, rows: usize, dim: usize) -> Vec<u8> {
    let descr = dtype.descr();
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    let before_text = 10;
    let whole = (before_text + text.len() + 1).next_multiple_of(64);
    text.extend(std::iter::repeat_n(
        ' ',
        whole - before_text - text.len() - 1,
    ));
    text.push('\n');

    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    // Never more than 128: two numbers of 20 digits don't fill a second line of 64.
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header
}
