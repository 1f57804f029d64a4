//! What the tests share: instruction sets, seeded numbers, and the folder of real data.
#![allow(dead_code)]

use memorank::kernel::{Isa, IsaError, Kernel};
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Dimensions around every register size, and those of real models.
pub const DIMS: [usize; 23] = [
    1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 384, 387, 768, 1536, 1537,
];

/// Numbers of threads to try.
pub const THREADS: [usize; 4] = [1, 2, 3, 8];

/// A line for whoever runs the tests, with the name of the test: the runner hides what a passing test
/// prints with `println!`, but not this.
pub fn say(line: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // One write, so that lines of several threads do not mix. A closed stderr fails no test.
    let _ = std::io::stderr().write_all(format!("{test}: {line}\n").as_bytes());
}

/// The kernels to test, slowest first: those this machine can run, or, with `MEMORANK_ISA`, that one
/// beside the scalar one. What is left out is said, once, and fails if `MEMORANK_REQUIRE_ISAS` (names
/// separated by commas) demands it.
pub fn kernels() -> Vec<Kernel> {
    static KERNELS: OnceLock<Vec<Kernel>> = OnceLock::new();
    KERNELS.get_or_init(find_kernels).clone()
}

fn find_kernels() -> Vec<Kernel> {
    let required = std::env::var_os("MEMORANK_REQUIRE_ISAS").unwrap_or_default();
    let required = required.to_str().expect("MEMORANK_REQUIRE_ISAS is text");
    let required: Vec<Isa> = required
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| {
            name.parse()
                .unwrap_or_else(|e: IsaError| panic!("MEMORANK_REQUIRE_ISAS: {e}"))
        })
        .collect();
    let only = std::env::var_os("MEMORANK_ISA")
        .map(|_| Isa::from_env().unwrap_or_else(|e| panic!("MEMORANK_ISA: {e}")));
    let mut kernels = Vec::new();
    for isa in Isa::ALL {
        let wanted = only.is_none_or(|only| isa == only || isa == Isa::Scalar);
        let missing = match Kernel::new(isa) {
            Ok(kernel) if wanted => {
                kernels.push(kernel);
                continue;
            }
            Ok(_) => format!("MEMORANK_ISA leaves out {isa}"),
            Err(e) => e.to_string(),
        };
        assert!(!required.contains(&isa), "required: {missing}");
        say(format_args!("skipped: {missing}"));
    }
    kernels
}

/// The fastest of [`kernels`].
pub fn best_kernel() -> Kernel {
    *kernels().last().expect("the scalar kernel runs everywhere")
}

/// The folder of real data, or `None` where `MEMORANK_TEST_DATA` is unset (said on the way).
pub fn shared_data() -> Option<PathBuf> {
    let folder = std::env::var_os("MEMORANK_TEST_DATA").map(PathBuf::from);
    match &folder {
        None => say("skipped: MEMORANK_TEST_DATA is not set"),
        Some(folder) => assert!(folder.is_dir(), "MEMORANK_TEST_DATA: no folder {folder:?}"),
    }
    folder
}

/// Seeded numbers for tests: SplitMix64.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In 0..n.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// In [-1, 1).
    pub fn signed(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub fn vector(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.signed()).collect()
    }
}
