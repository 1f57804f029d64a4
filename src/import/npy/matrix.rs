//! The rows of a `.npy` file, one after another, as f32.

use super::header::{Element, Header, HeaderError, Shapes};
use crate::import::vectors::narrow;
use crate::import::{ImportError, Place, VectorProblem};
use crate::kernel::{Dtype, f16};
use crate::store::open_regular;
use half::slice::HalfFloatSliceExt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// A matrix whose header was found to tell the truth. Its rows are read in order.
#[derive(Debug)]
pub(in crate::import) struct Matrix<R> {
    path: PathBuf,
    data: R,
    header: Header,
    dim: NonZeroUsize,
    /// The next row.
    row: u64,
    /// A row as it is in the file.
    bytes: Vec<u8>,
}

impl Matrix<BufReader<File>> {
    /// Opens a file of two dimensions.
    pub(super) fn open(path: &Path) -> Result<Self, ImportError> {
        let file = open_regular(path).map_err(|source| ImportError::Io {
            path: path.to_owned(),
            remedy: "",
            source,
        })?;
        let file_bytes = file.metadata().map_err(|e| failed(path, e.into()))?.len();
        let file = BufReader::with_capacity(1 << 20, file);
        Matrix::new(path, file, file_bytes, Shapes::Matrix)
    }
}

impl<'a> Matrix<&'a [u8]> {
    /// The content of a file of one dimension (a single row) or two.
    pub(in crate::import) fn of_vectors(
        path: &Path,
        content: &'a [u8],
    ) -> Result<Self, ImportError> {
        Matrix::new(path, content, content.len() as u64, Shapes::Vectors)
    }
}

impl<R: Read> Matrix<R> {
    /// A file of `file_bytes` bytes from its start on.
    pub(in crate::import) fn new(
        path: &Path,
        mut file: R,
        file_bytes: u64,
        shapes: Shapes,
    ) -> Result<Matrix<R>, ImportError> {
        let header =
            Header::read(&mut file, file_bytes, shapes).map_err(|source| failed(path, source))?;
        let dim = usize::try_from(header.dim).ok().and_then(NonZeroUsize::new);
        let dim = dim.ok_or_else(|| {
            let shape = vec![header.rows, header.dim];
            failed(path, HeaderError::Shape(shape))
        })?;
        let mut matrix = Matrix {
            path: path.to_owned(),
            data: file,
            header,
            dim,
            row: 0,
            bytes: Vec::new(),
        };
        matrix.bytes = vec![0; matrix.row_elements() * header.element.size_bytes()];
        Ok(matrix)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::import) fn element(&self) -> Element {
        self.header.element
    }

    /// Elements per row.
    pub(in crate::import) fn dim(&self) -> NonZeroUsize {
        self.dim
    }

    pub(in crate::import) fn rows(&self) -> u64 {
        self.header.rows
    }

    pub(in crate::import) fn into_reader(self) -> R {
        self.data
    }

    /// A row lies in the file, so its size is real; without rows the dimension is only a claim.
    fn row_elements(&self) -> usize {
        if self.header.rows == 0 {
            0
        } else {
            self.dim.get()
        }
    }

    /// Room for [`Matrix::next_row`]: `dim` elements, or none if there are no rows.
    pub(in crate::import) fn row_buffer(&self) -> Vec<f32> {
        vec![0.0; self.row_elements()]
    }

    pub(in crate::import) fn place(&self, row: u64) -> Place {
        Place {
            path: self.path.clone(),
            item: format!("row {row}"),
        }
    }

    /// Reads a row into `values`, as [`narrow`] has it for a column of `column`, and gives the number of
    /// elements it rounded for good. What is not finite in the file is not finite in `values`; finite f64
    /// beyond f32 are an error.
    ///
    /// # Panics
    /// If `values` has not the length of [`Matrix::row_buffer`].
    pub(in crate::import) fn next_row(
        &mut self,
        column: Dtype,
        values: &mut [f32],
    ) -> Result<usize, ImportError> {
        assert_eq!(values.len(), self.row_elements(), "room for one row");
        self.data
            .read_exact(&mut self.bytes)
            .map_err(|source| ImportError::Io {
                path: self.path.clone(),
                remedy: "the file changed while it was read",
                source,
            })?;
        let row = self.row;
        self.row += 1;
        let decoded = decode(self.header.element, &self.bytes, column, values);
        decoded.map_err(|problem| ImportError::Vector {
            place: self.place(row),
            problem,
        })
    }
}

fn failed(path: &Path, source: HeaderError) -> ImportError {
    ImportError::Npy {
        path: path.to_owned(),
        source,
    }
}

fn decode(
    element: Element,
    bytes: &[u8],
    column: Dtype,
    values: &mut [f32],
) -> Result<usize, VectorProblem> {
    match element {
        Element::F16 => {
            // A row at a time: converting one by one costs most of the reading.
            let chunks = bytes.as_chunks().0.iter();
            let halves: Vec<f16> = chunks.map(|&b| f16::from_le_bytes(b)).collect();
            halves.convert_to_f32_slice(values);
        }
        Element::F32 => {
            for (value, b) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value = f32::from_le_bytes(*b);
            }
        }
        Element::F64 => {
            let mut rounded = 0;
            for (element, (value, b)) in values.iter_mut().zip(bytes.as_chunks().0).enumerate() {
                let wide = f64::from_le_bytes(*b);
                let (narrowed, inexact) = narrow(wide, column);
                *value = narrowed;
                if wide.is_finite() && !value.is_finite() {
                    let found = format!("{wide:e} is beyond f32");
                    return Err(VectorProblem::Element { element, found });
                }
                rounded += usize::from(inexact && wide.is_finite());
            }
            return Ok(rounded);
        }
    }
    Ok(0)
}
