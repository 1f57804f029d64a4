//! memorank and its peers, each called as its documentation has users call it. What is prepared before
//! `run` is not timed.

use crate::data::{Case, MANY, Number, length};
use memorank::kernel::{Kernel, Picks, Queries};
use numkong::{Angular, Angulars, Dot, Global, Matrix, PackedMatrix};
use std::rc::Rc;
use usearch::ffi::{IndexOptions, Matches};
use usearch::{Index, MetricKind};

/// How many a peer is asked for that does not give all.
pub const BEST: usize = 30;

/// Something that gives cosines.
pub trait Peer {
    /// Its name in the table.
    fn name(&self) -> &str;

    /// How many queries it takes in one run.
    fn queries(&self) -> usize;

    /// Computes them all.
    fn run(&mut self);

    /// Shows query, row and cosine of all that the last run gave.
    fn visit(&self, see: &mut dyn FnMut(usize, usize, f64));
}

/// Those that take f16 and f32. memorank is the first of each number of queries.
pub fn of_any_type<'a, T: Number>(case: &'a Case<T>, kernel: Kernel) -> Vec<Box<dyn Peer + 'a>> {
    let rows = Rc::new(numkong_matrix(case.elements(), case));
    vec![
        memorank(case, kernel, 1),
        numkong_angular(case, Rc::clone(&rows)),
        numkong_dot(case, Rc::clone(&rows)),
        Box::new(UsearchExact::new(case)),
        memorank(case, kernel, MANY),
        Box::new(NumKongPacked::new(case, rows)),
    ]
}

/// Those that take f32 only.
pub fn of_f32<'a>(case: &'a Case<f32>) -> Vec<Box<dyn Peer + 'a>> {
    vec![naive(case), product(case, 1), product(case, MANY)]
}

/// Anything that fills a slice with the cosines of all rows, query after query.
struct Fill<F> {
    name: String,
    rows: usize,
    cosines: Vec<f32>,
    fill: F,
}

impl<F: FnMut(&mut [f32])> Peer for Fill<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn queries(&self) -> usize {
        self.cosines.len() / self.rows
    }

    fn run(&mut self) {
        (self.fill)(&mut self.cosines);
    }

    fn visit(&self, see: &mut dyn FnMut(usize, usize, f64)) {
        for (query, cosines) in self.cosines.chunks_exact(self.rows).enumerate() {
            for (row, &cosine) in cosines.iter().enumerate() {
                see(query, row, f64::from(cosine));
            }
        }
    }
}

fn fill<'a, T: Number>(
    name: &str,
    case: &Case<T>,
    queries: usize,
    fill: impl FnMut(&mut [f32]) + 'a,
) -> Box<dyn Peer + 'a> {
    Box::new(Fill {
        name: name.to_owned(),
        rows: case.rows(),
        cosines: vec![0.0; case.rows() * queries],
        fill,
    })
}

fn memorank<'a, T: Number>(
    case: &'a Case<T>,
    kernel: Kernel,
    queries: usize,
) -> Box<dyn Peer + 'a> {
    let units = memorank_queries(case, queries);
    let name = format!("memorank {}", kernel.isa());
    fill(&name, case, queries, move |out| {
        memorank_into(case, kernel, &units, out)
    })
}

/// memorank's cosines, query after query: what the others are compared with.
pub fn memorank_cosines<T: Number>(case: &Case<T>, kernel: Kernel, queries: usize) -> Vec<f32> {
    let mut out = vec![0.0; case.rows() * queries];
    memorank_into(case, kernel, &memorank_queries(case, queries), &mut out);
    out
}

fn memorank_queries<T: Number>(case: &Case<T>, queries: usize) -> Queries {
    let mut units = Queries::new(case.dim());
    for query in case.plain(queries).chunks_exact(case.dim().get()) {
        units.push_unit(query).expect("generated queries are sound");
    }
    units
}

fn memorank_into<T: Number>(case: &Case<T>, kernel: Kernel, units: &Queries, out: &mut [f32]) {
    kernel.dots(case.as_rows(), Picks::Range(0..case.rows()), units, out);
    scale(out, case.inv_norms());
    out.iter_mut().for_each(|x| *x = x.clamp(-1.0, 1.0));
}

/// Dot products with unit queries become cosines.
fn scale(dots: &mut [f32], inv_norms: &[f32]) {
    for dots in dots.chunks_exact_mut(inv_norms.len()) {
        for (dot, inv_norm) in dots.iter_mut().zip(inv_norms) {
            *dot *= inv_norm;
        }
    }
}

fn naive(case: &Case<f32>) -> Box<dyn Peer + '_> {
    let unit = case.units(1);
    fill("naive", case, 1, move |out| {
        let rows = case.elements().chunks_exact(case.dim().get());
        for (out, row) in out.iter_mut().zip(rows) {
            *out = row.iter().zip(unit).map(|(x, q)| x * q).sum();
        }
        scale(out, case.inv_norms());
    })
}

fn product(case: &Case<f32>, queries: usize) -> Box<dyn Peer + '_> {
    let units = case.units(queries);
    fill("gemm", case, queries, move |out| {
        let (rows, dim) = (case.rows(), case.dim().get());
        assert_eq!(case.elements().len(), rows * dim);
        assert_eq!(units.len(), queries * dim);
        assert_eq!(out.len(), queries * rows);
        let (down, across) = (rows as isize, dim as isize);
        // SAFETY: the three matrices lie in the slices, which have the lengths asserted above: `out` is
        // written at `query * rows + row`, the others are read at `row * dim + j` and `query * dim + j`.
        #[allow(unsafe_code)]
        unsafe {
            gemm::gemm(
                rows,
                queries,
                dim,
                out.as_mut_ptr(),
                down,
                1,
                false,
                case.elements().as_ptr(),
                1,
                across,
                units.as_ptr(),
                across,
                1,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
        scale(out, case.inv_norms());
    })
}

/// Vectors of the case's dimension as NumKong keeps them: a copy.
fn numkong_matrix<T: Number>(elements: &[T], case: &Case<T>) -> Matrix<T::NumKong> {
    let copy: Vec<T::NumKong> = elements.iter().map(|x| x.numkong()).collect();
    let dim = case.dim().get();
    Matrix::from_slice(&copy, &[elements.len() / dim, dim])
}

fn numkong_angular<'a, T: Number>(
    case: &'a Case<T>,
    rows: Rc<Matrix<T::NumKong>>,
) -> Box<dyn Peer + 'a> {
    let query = numkong_matrix(case.queries(1), case);
    fill("NumKong angular", case, 1, move |out| {
        let rows = rows.as_slice().chunks_exact(case.dim().get());
        for (out, row) in out.iter_mut().zip(rows) {
            let distance = T::NumKong::angular(row, query.as_slice()).expect("one dimension");
            *out = (1.0 - distance.into()) as f32;
        }
    })
}

fn numkong_dot<'a, T: Number>(
    case: &'a Case<T>,
    rows: Rc<Matrix<T::NumKong>>,
) -> Box<dyn Peer + 'a> {
    let query = numkong_matrix(case.queries(1), case);
    let inverse = 1.0 / length(case.plain(1));
    fill("NumKong dot", case, 1, move |out| {
        let rows = rows.as_slice().chunks_exact(case.dim().get());
        for (out, row) in out.iter_mut().zip(rows) {
            let dot = T::NumKong::dot(row, query.as_slice()).expect("one dimension");
            *out = (dot.into() * inverse) as f32;
        }
        scale(out, case.inv_norms());
    })
}

/// Cosine distances, row after row.
type Distances<T> = Matrix<<<T as Number>::NumKong as Angulars>::SpatialResult>;

struct NumKongPacked<T: Number> {
    rows: Rc<Matrix<T::NumKong>>,
    queries: PackedMatrix<T::NumKong, Global>,
    distances: Distances<T>,
}

impl<T: Number> NumKongPacked<T> {
    fn new(case: &Case<T>, rows: Rc<Matrix<T::NumKong>>) -> NumKongPacked<T> {
        let queries = numkong_matrix(case.queries(MANY), case);
        let queries = PackedMatrix::try_pack(&queries).expect("memory for the queries");
        let distances = Matrix::try_full(&[case.rows(), MANY], Default::default());
        NumKongPacked {
            rows,
            queries,
            distances: distances.expect("memory for the distances"),
        }
    }
}

impl<T: Number> Peer for NumKongPacked<T> {
    fn name(&self) -> &str {
        "NumKong packed"
    }

    fn queries(&self) -> usize {
        MANY
    }

    fn run(&mut self) {
        self.rows
            .try_angulars_packed_into(&self.queries, &mut self.distances)
            .expect("the shapes fit");
    }

    fn visit(&self, see: &mut dyn FnMut(usize, usize, f64)) {
        for (row, distances) in self.distances.as_slice().chunks_exact(MANY).enumerate() {
            for (query, &distance) in distances.iter().enumerate() {
                see(query, row, 1.0 - distance.into());
            }
        }
    }
}

struct UsearchExact<'a, T: Number> {
    name: String,
    index: Index,
    query: &'a [T],
    found: Option<Matches>,
}

impl<'a, T: Number> UsearchExact<'a, T> {
    fn new(case: &'a Case<T>) -> UsearchExact<'a, T> {
        let options = IndexOptions {
            dimensions: case.dim().get(),
            metric: MetricKind::Cos,
            quantization: T::KIND,
            // The least there is: an exact search uses no edge.
            connectivity: 2,
            expansion_add: 1,
            ..IndexOptions::default()
        };
        let index = Index::new(&options).expect("cosines of f16 and f32 are known to it");
        index
            .reserve_capacity_and_threads(case.rows(), 1)
            .expect("memory for the vectors");
        for (key, row) in (0..).zip(case.elements().chunks_exact(case.dim().get())) {
            index.add(key, T::usearch(row)).expect("reserved");
        }
        UsearchExact {
            name: format!("USearch exact, {BEST} best"),
            index,
            query: case.queries(1),
            found: None,
        }
    }
}

impl<T: Number> Peer for UsearchExact<'_, T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn queries(&self) -> usize {
        1
    }

    fn run(&mut self) {
        let found = self.index.exact_search(T::usearch(self.query), BEST);
        self.found = Some(found.expect("the index has vectors"));
    }

    fn visit(&self, see: &mut dyn FnMut(usize, usize, f64)) {
        let found = self.found.as_ref().expect("it was run");
        for (&key, &distance) in found.keys.iter().zip(&found.distances) {
            see(0, key as usize, 1.0 - f64::from(distance));
        }
    }
}
