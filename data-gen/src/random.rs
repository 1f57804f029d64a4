//! Random numbers that depend on (seed, purpose, index) and on nothing else.
//!
//! A counter is hashed by the finaliser of SplitMix64 (Steele, Lea and Flood, 2014), so that any
//! number of any sequence can be had without the ones before it. A generator crate would have to be
//! pinned for its values to stay; this is a few lines of integer arithmetic, and good enough for
//! data that has to look random only.

/// 2^64 divided by the golden ratio, odd: the step of the counter.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a sequence is for. Sequences of different purposes are unrelated.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// The axes and the common mean.
    Axes = 1,
    /// The directions of topics and subtopics.
    Topics = 2,
    /// The times and topics of the bursts of a block.
    Bursts = 3,
    /// What a memory is.
    Memory = 4,
    /// The noise of a memory's embedding.
    Noise = 5,
    /// The words of a memory.
    Words = 6,
    /// What a query asks for.
    Query = 7,
    /// The noise of a query's embedding.
    QueryNoise = 8,
}

/// A sequence of random numbers.
#[derive(Clone)]
pub struct Draws {
    counter: u64,
}

impl Draws {
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        let sequence = mix(seed.wrapping_add(STEP.wrapping_mul(purpose as u64)));
        Self {
            counter: mix(sequence.wrapping_add(STEP.wrapping_mul(index))),
        }
    }

    /// Uniform over all of u64.
    pub fn bits(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(STEP);
        mix(self.counter)
    }

    /// Uniform over 0..n for n up to 2^32; the bias, under n / 2^32, does not matter here.
    pub fn below(&mut self, n: usize) -> usize {
        (((self.bits() >> 32) * n as u64) >> 32) as usize
    }

    /// The smaller of two uniform draws from 0..n: small numbers are common, large ones rare.
    pub fn mostly_small(&mut self, n: usize) -> usize {
        self.below(n).min(self.below(n))
    }

    /// True in `percent` of 100 draws.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Uniform over 0.0..1.0 in steps of 2^-24.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 * (1.0 / 16_777_216.0)
    }

    /// Uniform over 0..range, which is not negative; 0 if `range` is 0.
    pub fn within(&mut self, range: i64) -> i64 {
        ((i128::from(self.bits()) * i128::from(range)) >> 64) as i64
    }

    /// Bell-shaped, with mean 0 and variance 1.
    pub fn bell(&mut self) -> f32 {
        bell_steps(self.bits()) * BELL_STEP
    }

    /// `base[j] + step[j] * noise` for every element, where the noise is bell-shaped, with mean 0
    /// and standard deviation 1 / [`BELL_STEP`]. The inner loop of the whole crate.
    pub fn add_noise(self, base: &[f32], step: &[f32], out: &mut [f32]) {
        for (j, ((x, base), step)) in out.iter_mut().zip(base).zip(step).enumerate() {
            let counter = self.counter.wrapping_add(STEP.wrapping_mul(j as u64 + 1));
            *x = base + step * bell_steps(mix(counter));
        }
    }
}

/// One step of [`bell_steps`] in standard deviations: sqrt(3) / 2^16, as four uniform fields of
/// 2^16 values each have variance 2^32 / 12.
pub const BELL_STEP: f32 = 2.642_899e-5;

/// The sum of the four 16-bit fields less its mean, an integer: bell-shaped, and never beyond 3.47
/// standard deviations. A Box-Muller normal would need the platform's logarithm and cosine.
fn bell_steps(bits: u64) -> f32 {
    let pairs = (bits & 0x0000_FFFF_0000_FFFF) + ((bits >> 16) & 0x0000_FFFF_0000_FFFF);
    let sum = (pairs as u32) + (pairs >> 32) as u32;
    (sum as i32 - 131_070) as f32
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_has_mean_0_and_variance_1() {
        let mut draws = Draws::new(1, Purpose::Axes, 0);
        let (mut sum, mut squares) = (0.0, 0.0);
        let n = 100_000;
        for _ in 0..n {
            let x = f64::from(draws.bell());
            assert!(x.abs() < 3.47);
            sum += x;
            squares += x * x;
        }
        assert!((sum / f64::from(n)).abs() < 0.02);
        assert!((squares / f64::from(n) - 1.0).abs() < 0.02);
    }

    #[test]
    fn noise_is_the_draws_of_the_same_sequence() {
        let draws = Draws::new(9, Purpose::Noise, 77);
        let mut out = [0.0; 33];
        draws
            .clone()
            .add_noise(&[0.0; 33], &[BELL_STEP; 33], &mut out);
        let mut draws = draws;
        for x in out {
            assert_eq!(x.to_bits(), (0.0 + draws.bell()).to_bits());
        }
    }

    #[test]
    fn draws_stay_in_their_ranges() {
        let mut draws = Draws::new(2, Purpose::Words, 5);
        let mut seen = [0; 7];
        for _ in 0..7000 {
            seen[draws.below(7)] += 1;
            assert!(draws.mostly_small(3) < 3);
            assert!((0.0..1.0).contains(&draws.unit()));
            assert!((0..50).contains(&draws.within(50)));
            assert_eq!(draws.within(0), 0);
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
