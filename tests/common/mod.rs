//! What the tests share: instruction sets, seeded numbers, and the folder of real data.
#![allow(dead_code)]

use memorank::kernel::{Isa, Kernel};
use std::path::PathBuf;

/// Dimensions around every register size, and those of real models.
pub const DIMS: [usize; 23] = [
    1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 384, 387, 768, 1536, 1537,
];

/// Numbers of threads to try.
pub const THREADS: [usize; 4] = [1, 2, 3, 8];

/// The kernels this machine can run. One it lacks is said, and fails if `MEMORANK_REQUIRE_ISAS`
/// (names separated by commas) demands it.
pub fn kernels() -> Vec<Kernel> {
    let required = std::env::var("MEMORANK_REQUIRE_ISAS").unwrap_or_default();
    let mut kernels = Vec::new();
    for isa in Isa::ALL {
        match Kernel::new(isa) {
            Ok(kernel) => kernels.push(kernel),
            Err(e) => {
                assert!(
                    !required.split(',').any(|name| name == isa.name()),
                    "required: {e}"
                );
                println!("skipped: {e}");
            }
        }
    }
    kernels
}

/// The folder of real data, or `None` where `MEMORANK_TEST_DATA` is unset (said on the way).
pub fn shared_data() -> Option<PathBuf> {
    let folder = std::env::var_os("MEMORANK_TEST_DATA").map(PathBuf::from);
    match &folder {
        None => println!("skipped: MEMORANK_TEST_DATA is not set"),
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
