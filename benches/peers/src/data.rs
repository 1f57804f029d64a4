//! The rows and queries that all work on, and the two types of number they come in.

use bytemuck::{Pod, Zeroable};
use memorank::kernel::{Rows, f16, inv_norms};
use memorank_data_gen::Stream;
use numkong::{Angular, Angulars, Dot};
use std::num::NonZeroUsize;
use usearch::{ScalarKind, VectorType};

/// Queries in one call, where there are several.
pub const MANY: usize = 16;

/// An element of the rows, and what the peers call it.
pub trait Number: Pod {
    /// NumKong's name for it.
    type NumKong: Angular<Output: Into<f64>>
        + Dot<Output: Into<f64>>
        + Angulars<SpatialResult: Copy + Into<f64>>;
    /// USearch's name for it.
    type USearch: VectorType;
    /// What a USearch index of it holds.
    const KIND: ScalarKind;

    /// The nearest number of this type.
    fn nearest(x: f32) -> Self;
    /// As memorank takes rows.
    fn rows(elements: &[Self]) -> Rows<'_>;
    /// As NumKong takes an element.
    fn numkong(self) -> Self::NumKong;
    /// As USearch takes a vector.
    fn usearch(elements: &[Self]) -> &[Self::USearch];
}

impl Number for f16 {
    type NumKong = numkong::f16;
    type USearch = usearch::f16;
    const KIND: ScalarKind = ScalarKind::F16;

    fn nearest(x: f32) -> f16 {
        f16::from_f32(x)
    }

    fn rows(elements: &[f16]) -> Rows<'_> {
        Rows::F16(elements)
    }

    fn numkong(self) -> numkong::f16 {
        numkong::f16(self.to_bits())
    }

    fn usearch(elements: &[f16]) -> &[usearch::f16] {
        usearch::f16::from_i16s(bytemuck::cast_slice(elements))
    }
}

impl Number for f32 {
    type NumKong = f32;
    type USearch = f32;
    const KIND: ScalarKind = ScalarKind::F32;

    fn nearest(x: f32) -> f32 {
        x
    }

    fn rows(elements: &[f32]) -> Rows<'_> {
        Rows::F32(elements)
    }

    fn numkong(self) -> f32 {
        self
    }

    fn usearch(elements: &[f32]) -> &[f32] {
        elements
    }
}

/// Rows begin on a cache line, as in a mapped file and in the memory that NumKong allocates.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The rows of a stream, their inverse lengths, and [`MANY`] queries.
pub struct Case<T> {
    rows: usize,
    dim: NonZeroUsize,
    lines: Vec<Line>,
    inv_norms: Vec<f32>,
    queries: Vec<T>,
    plain: Vec<f32>,
    units: Vec<f32>,
}

impl<T: Number> Case<T> {
    /// All memories of the stream.
    pub fn new(stream: &Stream) -> Case<T> {
        let (rows, dim) = (stream.config().memories, stream.config().dim);
        let bytes = rows * dim * size_of::<T>();
        let mut lines = vec![Line::zeroed(); bytes.div_ceil(size_of::<Line>())];
        let mut places = bytemuck::cast_slice_mut::<Line, T>(&mut lines).iter_mut();
        for block in stream.blocks() {
            for (&x, place) in block.embeddings().iter().zip(&mut places) {
                *place = T::nearest(x);
            }
        }

        let (mut plain, mut units) = (Vec::new(), Vec::new());
        for query in 0..MANY as u64 {
            // Numbers that f16 has, whatever the rows are.
            let query = stream.query(query);
            let query: Vec<f32> = query.iter().map(|&x| f16::from_f32(x).to_f32()).collect();
            let length = length(&query);
            units.extend(query.iter().map(|&x| (f64::from(x) / length) as f32));
            plain.extend(query);
        }

        let mut case = Case {
            rows,
            dim: dim.try_into().expect("a stream's dimension is not 0"),
            lines,
            inv_norms: Vec::new(),
            queries: plain.iter().map(|&x| T::nearest(x)).collect(),
            plain,
            units,
        };
        let mut inverse = vec![0.0; rows];
        inv_norms(case.dim, case.as_rows(), &mut inverse)
            .expect("generated rows have lengths near 1");
        case.inv_norms = inverse;
        case
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements per row.
    pub fn dim(&self) -> NonZeroUsize {
        self.dim
    }

    /// The rows, one after the other.
    pub fn elements(&self) -> &[T] {
        &bytemuck::cast_slice(&self.lines)[..self.rows * self.dim.get()]
    }

    /// The rows as memorank takes them.
    pub fn as_rows(&self) -> Rows<'_> {
        T::rows(self.elements())
    }

    /// One over each row's length.
    pub fn inv_norms(&self) -> &[f32] {
        &self.inv_norms
    }

    /// The first queries, one after the other, in the type of the rows.
    pub fn queries(&self, many: usize) -> &[T] {
        &self.queries[..many * self.dim.get()]
    }

    /// The same numbers in f32.
    pub fn plain(&self, many: usize) -> &[f32] {
        &self.plain[..many * self.dim.get()]
    }

    /// The first queries, one after the other, of length 1.
    pub fn units(&self, many: usize) -> &[f32] {
        &self.units[..many * self.dim.get()]
    }
}

/// In f64.
pub fn length(vector: &[f32]) -> f64 {
    let squares = vector.iter().map(|&x| f64::from(x) * f64::from(x));
    squares.sum::<f64>().sqrt()
}
