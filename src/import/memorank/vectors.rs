//! `embeddings.npy` of an export.

use crate::export::{Summed, npy_header};
use crate::import::npy::{Matrix, Shapes};
use crate::import::{ImportError, Place, Plan};
use crate::kernel::Dtype;
use crate::store::open_regular;
use std::fs::File;
use std::io::{BufReader, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

type Summing = BufReader<Summed<File>>;

/// The rows, one after another.
pub(super) struct Vectors {
    path: PathBuf,
    matrix: Matrix<Chain<Cursor<Vec<u8>>, Summing>>,
    dtype: Dtype,
    values: Vec<f32>,
}

impl Vectors {
    /// Opens the matrix of a store like `plan` with so many memories.
    pub(super) fn open(path: &Path, plan: &Plan, memories: u64) -> Result<Vectors, ImportError> {
        let failed = |source| ImportError::Io {
            path: path.to_owned(),
            remedy: "",
            source,
        };
        let file = open_regular(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let mut file = BufReader::with_capacity(1 << 20, Summed::new(file));
        let expected = npy_header(plan.dtype, memories, plan.dim);
        let mut start = Vec::new();
        (file.by_ref().take(expected.len() as u64))
            .read_to_end(&mut start)
            .map_err(failed)?;
        let as_written = start == expected;
        let matrix = Matrix::new(path, Cursor::new(start).chain(file), bytes, Shapes::Matrix)?;
        let agree = |field, found: String, expected: String| match found == expected {
            true => Ok(()),
            false => Err(ImportError::Differs {
                place: header(path),
                field,
                found,
                expected,
            }),
        };
        let dtype = match plan.dtype {
            Dtype::F16 => "<f2",
            Dtype::F32 => "<f4",
        };
        agree("descr", matrix.element().to_string(), dtype.to_owned())?;
        agree("rows", matrix.rows().to_string(), memories.to_string())?;
        agree("dim", matrix.dim().to_string(), plan.dim.to_string())?;
        if !as_written {
            return Err(ImportError::Field {
                place: header(path),
                field: "header",
                found: "spaced or ordered in another way".to_owned(),
                expected: "the header that an export writes",
            });
        }
        Ok(Vectors {
            path: path.to_owned(),
            values: matrix.row_buffer(),
            matrix,
            dtype: plan.dtype,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn rows(&self) -> u64 {
        self.matrix.rows()
    }

    pub(super) fn place(&self, row: u64) -> Place {
        self.matrix.place(row)
    }

    /// Reads the next row. There is one.
    pub(super) fn advance(&mut self) -> Result<(), ImportError> {
        self.matrix.next_row(self.dtype, &mut self.values)?;
        Ok(())
    }

    /// The row that was read, with the very bits it will be stored with: f16 widen exactly.
    pub(super) fn values(&self) -> &[f32] {
        &self.values
    }

    /// Compares the checksum once all rows were read.
    pub(super) fn finish(self, expected: u64) -> Result<(), ImportError> {
        let (_, file) = self.matrix.into_reader().into_inner();
        check(&self.path, file.get_ref().sum(), expected)
    }
}

fn header(path: &Path) -> Place {
    Place {
        path: path.to_owned(),
        item: "the header".to_owned(),
    }
}

pub(super) fn check(path: &Path, found: u64, expected: u64) -> Result<(), ImportError> {
    match found == expected {
        true => Ok(()),
        false => Err(ImportError::Checksum {
            path: path.to_owned(),
            expected,
            found,
        }),
    }
}
