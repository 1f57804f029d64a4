//! The cosine of a query with every row, by memorank and by other libraries, on one thread.
//!
//! ```sh
//! cargo bench --manifest-path benches/peers/Cargo.toml             # 200,000 rows
//! cargo bench --manifest-path benches/peers/Cargo.toml -- --rows 50000
//! cargo bench --manifest-path benches/peers/Cargo.toml -- --test   # small: checks, and times without meaning
//! ```
//!
//! A C and a C++17 compiler are needed, for NumKong and USearch; a first build takes minutes, most of them
//! NumKong's. `MEMORANK_ISA` forces memorank's instruction set, not the others'. Rows that fit in a cache
//! measure the cache.
//!
//! # What each row of the table computes
//!
//! | name | what | for |
//! |---|---|---|
//! | plain read | [`read_bytes`] over the embeddings: nothing is computed | f16, f32 |
//! | memorank | `Kernel::dots`, times the stored inverse lengths, clamped; 1 and 16 queries in one call | f16, f32 |
//! | NumKong angular | NumKong 7.8.7, `Angular::angular`, row by row; it sums both lengths anew with every dot product | f16, f32 |
//! | NumKong dot | `Dot::dot`, row by row, times the stored inverse lengths | f16, f32 |
//! | NumKong packed | `Tensor::try_angulars_packed_into`, rows against 16 queries packed beforehand, in one call | f16, f32 |
//! | USearch exact | USearch 2.26.6, `Index::exact_search`, cosine, and the 30 best | f16, f32 |
//! | naive | `zip`, `map`, `sum` in f32, times the stored inverse lengths | f32 |
//! | gemm | gemm 0.19.0, an f32 product of rows and unit queries, times the stored inverse lengths; 1 and 16 queries | f32 |
//!
//! The versions are those of `Cargo.lock`. SimSIMD is not here: NumKong is its successor.
//!
//! # What they do not compute
//!
//! - None does what a ranking does after the cosines: no min-max, no recency, no importance. Neither does the
//!   row "memorank". USearch alone also picks the best, which the others do not.
//! - The sums differ. memorank adds in f32 on 16 lanes in one written order, the same bits everywhere. NumKong
//!   adds f16 products in f32 (in an order that depends on the machine) and f32 products in f64: more exact,
//!   and more work per byte. On x86, NumKong's angular distance of f16 takes an approximate inverse square root
//!   with one Newton step. USearch calls the same kernels. The naive sum is one f32 chain. gemm adds in f32 in blocks.
//! - NumKong and USearch want f16 queries for f16 rows; memorank keeps queries in f32. All queries here are
//!   numbers that f16 has, so nobody loses by it.
//! - USearch's crate has no exact search over a matrix of the caller's (its C++ and Python have): vectors go
//!   into an index first. Its building is not timed, and is kept cheap with 2 edges per node: an exact search
//!   looks at no edge, and takes the vectors in the order they were added.
//! - NumKong and USearch read copies of the rows of their own, all others the same ones. These and NumKong's
//!   begin on a cache line, USearch's where its arena puts them.
//!
//! Before anything is timed, every cosine that a peer returns is compared with memorank's. They may differ by
//! memorank's own error bound plus that of an f32 sum in any order, `(dim + 8) * 2^-24`. A peer that returns
//! only its best must return as good ones as memorank finds.
//!
//! Times are medians of rounds in which all take turns. GB/s counts the embeddings once, whoever reads what
//! else and however many queries there are. The times are compared with memorank's for as many queries.

#![deny(unsafe_code)]

mod data;
mod peers;

use data::{Case, MANY, Number};
use memorank::kernel::{Isa, Kernel, cosine_error_bound, f16};
use memorank::yardstick::read_bytes;
use memorank_data_gen::{Config, Stream};
use peers::Peer;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Instant;

const DIMS: [usize; 2] = [384, 768];
const ROUNDS: usize = 15;

/// What the command line asks for.
struct Options {
    rows: NonZeroUsize,
    rounds: usize,
}

fn main() -> ExitCode {
    let options = match Options::from_args(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}; known are --rows N and --test");
            return ExitCode::from(2);
        }
    };
    let isa = Isa::from_env().expect("MEMORANK_ISA names an instruction set of this machine");
    let kernel = Kernel::new(isa).expect("from_env looked");
    for dim in DIMS {
        let config = Config {
            memories: options.rows.get(),
            dim,
            seed: 1,
        };
        let stream = Stream::new(config).expect("as many rows as fit in memory are in range");
        {
            let case = Case::<f16>::new(&stream);
            compete(&case, kernel, peers::of_any_type(&case, kernel), &options);
        }
        let case = Case::<f32>::new(&stream);
        let mut all = peers::of_any_type(&case, kernel);
        all.extend(peers::of_f32(&case));
        compete(&case, kernel, all, &options);
    }
    ExitCode::SUCCESS
}

impl Options {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
        let (mut rows, mut test) = (None, false);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                // Cargo's own.
                "--bench" => {}
                "--test" => test = true,
                "--rows" => {
                    let number = args.next().unwrap_or_default();
                    let number = number
                        .parse()
                        .map_err(|e| format!("--rows {number:?}: {e}"))?;
                    rows = Some(number);
                }
                _ => return Err(format!("unknown argument {arg:?}")),
            }
        }
        let (default, rounds) = if test { (500, 1) } else { (200_000, ROUNDS) };
        let rows = rows.or(NonZeroUsize::new(default));
        Ok(Options {
            rows: rows.expect("the default is not 0"),
            rounds,
        })
    }
}

/// Checks all, then lets all take turns, then prints the table.
fn compete<T: Number>(
    case: &Case<T>,
    kernel: Kernel,
    mut peers: Vec<Box<dyn Peer + '_>>,
    options: &Options,
) {
    let differences = check(case, kernel, &mut peers);
    let bytes: &[u8] = bytemuck::cast_slice(case.elements());
    let mut reads = Vec::new();
    let mut times = vec![Vec::new(); peers.len()];
    for _ in 0..options.rounds {
        reads.push(timed(|| {
            black_box(read_bytes(black_box(bytes), kernel));
        }));
        for (peer, times) in peers.iter_mut().zip(&mut times) {
            times.push(timed(|| peer.run()));
        }
    }

    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let ours = |queries| {
        let place = peers.iter().position(|peer| peer.queries() == queries);
        medians[place.expect("memorank is the first of each number of queries")]
    };
    let line = |name: &str, queries: &str, seconds: f64, ours: f64| {
        let (ms, speed) = (seconds * 1e3, bytes.len() as f64 / seconds / 1e9);
        let multiple = seconds / ours;
        print!("{name:<30} {queries:>7} {ms:>10.3} {speed:>8.2} {multiple:>10.2}");
    };
    println!(
        "\n{} x {} {}, 1 thread, medians of {} rounds",
        case.rows(),
        case.dim(),
        case.as_rows().dtype(),
        options.rounds
    );
    println!(
        "{:<30} {:>7} {:>10} {:>8} {:>10} {:>9}",
        "", "queries", "ms", "GB/s", "x memorank", "off by"
    );
    line("plain read", "", median(reads), ours(1));
    println!();
    for ((peer, &seconds), difference) in peers.iter().zip(&medians).zip(differences) {
        let queries = peer.queries();
        line(peer.name(), &queries.to_string(), seconds, ours(queries));
        println!(" {difference:>9.1e}");
    }
}

/// Nothing is timed before its answer is right. Gives each peer's largest difference from memorank.
fn check<T: Number>(case: &Case<T>, kernel: Kernel, peers: &mut [Box<dyn Peer + '_>]) -> Vec<f64> {
    let (rows, dim) = (case.rows(), case.dim());
    let any_order = (dim.get() as f64 + 8.0) * f64::powi(2.0, -24);
    let tolerance = cosine_error_bound(dim) + any_order;
    let expected = peers::memorank_cosines(case, kernel, MANY);
    let mut differences = Vec::new();
    for peer in peers {
        peer.run();
        let (mut largest, mut worst, mut seen) = (0.0_f64, f64::INFINITY, 0);
        peer.visit(&mut |query, row, cosine| {
            let ours = f64::from(expected[query * rows + row]);
            let difference = (cosine - ours).abs();
            assert!(
                difference <= tolerance,
                "{}: {cosine} for row {row} and query {query}, memorank has {ours}",
                peer.name()
            );
            (largest, worst, seen) = (largest.max(difference), worst.min(cosine), seen + 1);
        });
        if seen < rows * peer.queries() {
            let mut ours = expected[..rows].to_vec();
            ours.sort_by(|a, b| b.total_cmp(a));
            assert_eq!((peer.queries(), seen), (1, rows.min(peers::BEST)));
            let last = f64::from(ours[seen - 1]);
            assert!(
                worst >= last - tolerance,
                "{}: the last of its best is {worst}, memorank's {last}",
                peer.name()
            );
        }
        differences.push(largest);
    }
    differences
}

fn timed(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64()
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
