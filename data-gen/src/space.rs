//! The space the embeddings live in: what real models share, and uniform noise lacks.
//!
//! An embedding is mean + topic + subtopic + noise, brought to a length between 0.8 and 1.25.
//!
//! - The mean is common to every row and holds a fifth of the squared length, so that two unrelated
//!   rows have a cosine near 0.2. A few large axes hold most of it.
//! - A topic holds three tenths and one of its subtopics a fifth: cosines within a topic are near
//!   0.5, within a subtopic near 0.7. Noise has the rest.
//! - Topics, subtopics and noise follow a power law: the axis of rank r has a variance in
//!   proportion to 1 / (r + 8). The ranks are dealt to the axes by the seed.
//! - Lengths vary because a kernel that forgets to divide by them must give a different ranking.

use crate::random::{BELL_STEP, Draws, Purpose};
use crate::words::{SUBTOPICS, TOPICS};

const MEAN_SHARE: f32 = 0.2;
const TOPIC_SHARE: f32 = 0.3;
const SUBTOPIC_SHARE: f32 = 0.2;
const NOISE_SHARE: f32 = 0.3;

/// What an embedding is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    pub topic: u8,
    pub subtopic: u8,
}

impl Subject {
    /// The first topics and subtopics are the common ones.
    pub fn draw(draws: &mut Draws) -> Self {
        let topic = draws.mostly_small(TOPICS) as u8;
        Self {
            topic,
            subtopic: draws.mostly_small(SUBTOPICS) as u8,
        }
    }
}

/// Mean, topics and spectrum of one seed and dimension.
#[derive(Clone)]
pub struct Space {
    dim: usize,
    /// mean + topic + subtopic, one row per subtopic.
    centres: Vec<f32>,
    /// The noise's standard deviation per axis times [`BELL_STEP`].
    noise: Vec<f32>,
}

impl Space {
    pub fn new(seed: u64, dim: usize) -> Self {
        let mut draws = Draws::new(seed, Purpose::Axes, 0);
        let mut axes: Vec<usize> = (0..dim).collect();
        for last in (1..dim).rev() {
            axes.swap(last, draws.below(last + 1));
        }

        let mut spread = vec![0.0; dim];
        for (rank, &axis) in axes.iter().enumerate() {
            spread[axis] = 1.0 / (rank as f32 + 8.0).sqrt();
        }
        let mut noise = spread.clone();
        scale_to(&mut noise, NOISE_SHARE);
        noise.iter_mut().for_each(|x| *x *= BELL_STEP);

        let mut mean: Vec<f32> = (0..dim).map(|_| draws.bell()).collect();
        scale_to(&mut mean, MEAN_SHARE * 0.4);
        let large = 3.min(dim / 4);
        for &axis in &axes[..large] {
            let size = (MEAN_SHARE * 0.6 / large as f32).sqrt();
            mean[axis] = if draws.percent(50) { size } else { -size };
        }

        let mut centres = Vec::with_capacity(TOPICS * SUBTOPICS * dim);
        let mut draws = Draws::new(seed, Purpose::Topics, 0);
        for _ in 0..TOPICS {
            let topic = direction(&mut draws, &spread, TOPIC_SHARE);
            for _ in 0..SUBTOPICS {
                let subtopic = direction(&mut draws, &spread, SUBTOPIC_SHARE);
                let parts = mean.iter().zip(&topic).zip(&subtopic);
                centres.extend(parts.map(|((mean, topic), subtopic)| mean + topic + subtopic));
            }
        }
        Self {
            dim,
            centres,
            noise,
        }
    }

    /// Fills `out` with an embedding near the subject's centre: finite, and never zero.
    pub fn embed(&self, subject: Subject, mut draws: Draws, out: &mut [f32]) {
        let length = 0.8 + 0.45 * draws.unit();
        let centre = usize::from(subject.topic) * SUBTOPICS + usize::from(subject.subtopic);
        let centre = &self.centres[centre * self.dim..][..self.dim];
        draws.add_noise(centre, &self.noise, out);
        scale_to(out, length * length);
    }
}

/// A random direction with the given spread per axis and squared length.
fn direction(draws: &mut Draws, spread: &[f32], squared_length: f32) -> Vec<f32> {
    let mut x: Vec<f32> = spread.iter().map(|s| s * draws.bell()).collect();
    scale_to(&mut x, squared_length);
    x
}

/// Scales `x` to the given squared length. What is too near zero to have a direction becomes the
/// first axis: it can happen in one or two dimensions, where the parts may cancel.
fn scale_to(x: &mut [f32], squared_length: f32) {
    let mut now = squares(x);
    if now < 1e-12 {
        x.fill(0.0);
        x[0] = 1.0;
        now = 1.0;
    }
    let factor = (squared_length / now).sqrt();
    x.iter_mut().for_each(|x| *x *= factor);
}

/// The sum of squares in eight lanes: a fixed order that vectorises.
fn squares(x: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 8];
    let (chunks, rest) = x.as_chunks::<8>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x * x;
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += x * x;
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_cancel_still_give_a_direction() {
        for mut x in [vec![0.0], vec![1e-7, -1e-7]] {
            scale_to(&mut x, 0.25);
            assert_eq!(x[0], 0.5);
            assert_eq!(squares(&x), 0.25);
        }
    }

    #[test]
    fn a_few_axes_of_the_mean_are_large() {
        let space = Space::new(3, 384);
        let mut mean = vec![0.0f32; 384];
        for centre in space.centres.chunks_exact(384) {
            for (mean, x) in mean.iter_mut().zip(centre) {
                *mean += x / (TOPICS * SUBTOPICS) as f32;
            }
        }
        let mut sizes: Vec<f32> = mean.iter().map(|x| x.abs()).collect();
        sizes.sort_by(f32::total_cmp);
        assert!(sizes[383 - 2] > 5.0 * sizes[192], "{sizes:?}");
    }
}
