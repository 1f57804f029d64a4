//! Numbers from a seed: SplitMix64. Or the first of them from bytes that a fuzzer gives.

use std::collections::VecDeque;

pub struct Random {
    /// Numbers that come first, one a byte.
    given: VecDeque<u8>,
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random {
            given: VecDeque::new(),
            state: seed,
        }
    }

    /// Each byte decides the choice at its place, so that to change one changes little. What is chosen after them
    /// follows from them all.
    pub fn given(bytes: &[u8]) -> Random {
        let seed = bytes.iter().fold(bytes.len() as u64, |seed, &byte| {
            Random::new(seed ^ u64::from(byte)).next()
        });
        Random {
            given: bytes.iter().copied().collect(),
            state: seed,
        }
    }

    pub fn next(&mut self) -> u64 {
        if let Some(byte) = self.given.pop_front() {
            // In all places, so that the largest range is reached.
            return u64::from_le_bytes([byte; 8]);
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of 0..`end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True `percent` times in 100.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}
