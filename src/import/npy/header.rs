//! The header of a `.npy` file (format versions 1.0, 2.0 and 3.0), for little-endian
//! floats in one or two dimensions.
//!
//! Read here and not by one of the crates for it: what they bring along (a parser generator, big
//! integers, or a whole array library) is many times this file, and a header that lies must be an
//! error before any size is computed from it.

use super::dictionary::Dictionary;
use crate::store::MAX_DIM;
use std::fmt;
use std::io::{self, Read};

/// The element type of a `.npy` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Element {
    /// `<f2`
    F16,
    /// `<f4`
    F32,
    /// `<f8`
    F64,
}

impl Element {
    /// Bytes of one element.
    pub(super) const fn size_bytes(self) -> usize {
        match self {
            Element::F16 => 2,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }

    /// As numpy writes it: `<f4`.
    pub(super) const fn descr(self) -> &'static str {
        match self {
            Element::F16 => "<f2",
            Element::F32 => "<f4",
            Element::F64 => "<f8",
        }
    }
}

/// Which shapes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Shapes {
    /// `(rows, dim)`.
    Matrix,
    /// That, or `(dim,)`: one row.
    Vectors,
}

/// What a `.npy` file says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The element type.
    pub(super) element: Element,
    /// The number of rows.
    pub(super) rows: u64,
    /// Elements per row, not 0.
    pub(super) dim: u64,
    /// Where the data begins, from the start of the file.
    pub(super) offset_bytes: u64,
    /// How long the data must be.
    pub(super) data_bytes: u64,
}

/// Why a file is no `.npy` file that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The header could not be read.
    #[error("the header cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The first six bytes are not numpy's.
    #[error("not a .npy file (it begins with {0:02x?})")]
    Magic([u8; 6]),
    /// A format version that does not exist yet.
    #[error("format version {0}.{1} is not known; save it with numpy.save as 1.0, 2.0 or 3.0")]
    Version(u8, u8),
    /// The header is longer than any matrix needs.
    #[error("the header is {0} bytes long; {HEADER_MAX} are the most this reads")]
    Long(u64),
    /// The header is not the dictionary it should be.
    #[error("byte {at}: the header is not numpy's: expected {expected}")]
    Syntax {
        /// Offset in the file.
        at: u64,
        /// What should stand there.
        expected: &'static str,
    },
    /// An element type that is not taken.
    #[error(
        "elements are {0:?}; convert to little-endian floats first, as in a.astype(\"<f4\") (also taken: <f2, <f8)"
    )]
    Descr(String),
    /// Columns are contiguous, rows are not.
    #[error("the matrix is in Fortran order; save numpy.ascontiguousarray(a)")]
    FortranOrder,
    /// Not a matrix of rows.
    #[error("the shape is {0:?}; it must be two numbers, rows and a dimension above 0")]
    Shape(Vec<u64>),
    /// Neither a vector nor a matrix of rows, where both are taken.
    #[error(
        "the shape is {0:?}; it must be one number, a dimension above 0, or two, rows and a dimension above 0"
    )]
    VectorShape(Vec<u64>),
    /// The shape's size does not fit in 64 bits.
    #[error("{rows} rows of {dim} elements are more than 2^64 bytes")]
    Size {
        /// Rows told.
        rows: u64,
        /// Elements per row told.
        dim: u64,
    },
    /// More elements per row than a store takes.
    #[error("rows of {dim} elements; at most {MAX_DIM} can be stored")]
    Dim {
        /// Elements per row told.
        dim: u64,
    },
    /// The file is longer or shorter than its header says.
    #[error(
        "the file is {found} bytes long where its header says {expected} ({rows} rows of {dim} elements); it was cut or added to"
    )]
    Length {
        /// Bytes in the file.
        found: u64,
        /// Bytes the header asks for.
        expected: u64,
        /// Rows told.
        rows: u64,
        /// Elements per row told.
        dim: u64,
    },
}

/// The longest header that is read. numpy itself trusts 10,000 bytes.
const HEADER_MAX: u64 = 64 * 1024;

/// How every `.npy` file begins.
pub(in crate::import) const MAGIC: &[u8; 6] = b"\x93NUMPY";

impl Header {
    /// Reads the header of a file of `file_bytes` bytes, and leaves `file` at the first row.
    ///
    /// # Errors
    /// Anything but `<f2`, `<f4` or `<f8` in C order, in one of `shapes`, that fill their file exactly.
    pub(super) fn read(
        file: &mut impl Read,
        file_bytes: u64,
        shapes: Shapes,
    ) -> Result<Header, HeaderError> {
        let mut start = [0; 8];
        file.read_exact(&mut start)?;
        let [magic @ .., major, minor] = start;
        if &magic != MAGIC {
            return Err(HeaderError::Magic(magic));
        }
        let (prefix, length) = match (major, minor) {
            (1, 0) => {
                let mut length = [0; 2];
                file.read_exact(&mut length)?;
                (10, u64::from(u16::from_le_bytes(length)))
            }
            (2 | 3, 0) => {
                let mut length = [0; 4];
                file.read_exact(&mut length)?;
                (12, u64::from(u32::from_le_bytes(length)))
            }
            _ => return Err(HeaderError::Version(major, minor)),
        };
        if length > HEADER_MAX {
            return Err(HeaderError::Long(length));
        }
        let mut text = vec![0; length as usize];
        file.read_exact(&mut text)?;
        let (element, rows, dim) = matrix(Dictionary::parse(&text, prefix)?, shapes)?;
        let size = HeaderError::Size { rows, dim };
        let data_bytes = rows
            .checked_mul(dim)
            .and_then(|n| n.checked_mul(element.size_bytes() as u64));
        let offset_bytes = prefix + length;
        let ends = data_bytes.and_then(|data| offset_bytes.checked_add(data));
        let (Some(data_bytes), Some(expected)) = (data_bytes, ends) else {
            return Err(size);
        };
        if expected != file_bytes {
            return Err(HeaderError::Length {
                found: file_bytes,
                expected,
                rows,
                dim,
            });
        }
        // A row is held in memory, if there is one.
        if rows > 0 && dim > MAX_DIM as u64 {
            return Err(HeaderError::Dim { dim });
        }
        Ok(Header {
            element,
            rows,
            dim,
            offset_bytes,
            data_bytes,
        })
    }
}

fn matrix(dictionary: Dictionary, shapes: Shapes) -> Result<(Element, u64, u64), HeaderError> {
    let element = match dictionary.descr.as_str() {
        "<f2" => Element::F16,
        "<f4" => Element::F32,
        "<f8" => Element::F64,
        _ => return Err(HeaderError::Descr(dictionary.descr)),
    };
    if dictionary.fortran_order {
        return Err(HeaderError::FortranOrder);
    }
    match (shapes, &dictionary.shape[..]) {
        (_, &[rows, dim]) if dim > 0 => Ok((element, rows, dim)),
        (Shapes::Vectors, &[dim]) if dim > 0 => Ok((element, 1, dim)),
        (Shapes::Matrix, _) => Err(HeaderError::Shape(dictionary.shape)),
        (Shapes::Vectors, _) => Err(HeaderError::VectorShape(dictionary.shape)),
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.descr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(major: u8, text: &[u8], data: usize) -> Vec<u8> {
        let mut file = [&MAGIC[..], &[major, 0]].concat();
        match major {
            1 => file.extend((text.len() as u16).to_le_bytes()),
            _ => file.extend((text.len() as u32).to_le_bytes()),
        }
        file.extend(text);
        file.resize(file.len() + data, 0);
        file
    }

    fn read(file: &[u8]) -> Result<Header, HeaderError> {
        Header::read(&mut &file[..], file.len() as u64, Shapes::Vectors)
    }

    #[test]
    fn all_versions_and_elements() {
        for major in [1, 2, 3] {
            for element in [Element::F16, Element::F32, Element::F64] {
                let text = format!(
                    "{{'descr': '{element}', 'fortran_order': False, 'shape': (3, 5), }}   \n"
                );
                let data = 15 * element.size_bytes();
                let header = read(&file(major, text.as_bytes(), data)).unwrap();
                assert_eq!((header.element, header.rows, header.dim), (element, 3, 5));
            }
        }
    }

    #[test]
    fn one_dimension_is_one_row_where_it_is_taken() {
        let text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }";
        let file = file(1, text, 20);
        let header = read(&file).unwrap();
        assert_eq!((header.rows, header.dim), (1, 5));
        let refused = Header::read(&mut &file[..], file.len() as u64, Shapes::Matrix);
        assert!(matches!(refused, Err(HeaderError::Shape(shape)) if shape == [5]));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }

        #[test]
        fn random_headers_never_panic(
            major in 0u8..5,
            text in "[{}(),:'\"\\\\\\[\\]0-9LTFaelrus descr<f4shape_fortran_order]{0,80}",
        ) {
            let _ = read(&file(major, text.as_bytes(), 8));
        }

        #[test]
        fn changed_headers_are_read_as_they_are_or_refused(
            at in 0usize..80,
            byte in any::<u8>(),
            rows in any::<u64>(),
            dim in any::<u64>(),
        ) {
            let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
            let mut bytes = file(1, text.as_bytes(), 0);
            let last = bytes.len() - 1;
            bytes[at.min(last)] = byte;
            if let Ok(header) = read(&bytes) {
                let size = header.element.size_bytes() as u128;
                prop_assert_eq!(u128::from(header.rows) * u128::from(header.dim) * size, 0);
            }
        }
    }
}
