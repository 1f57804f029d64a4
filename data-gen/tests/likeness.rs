//! What makes a stream like a real one.

use std::collections::HashMap;

use memorank_data_gen::{BLOCK_ROWS, Block, Config, Kind, Stream};

fn stream(memories: usize, dim: usize, seed: u64) -> Stream {
    Stream::new(Config {
        memories,
        dim,
        seed,
    })
    .unwrap()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| f64::from(*a) * f64::from(*b))
        .sum()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn lengths_vary() {
    let stream = stream(2000, 64, 4);
    let block = stream.block(0);
    let lengths: Vec<_> = block
        .embeddings()
        .chunks_exact(64)
        .map(|x| dot(x, x).sqrt())
        .collect();
    assert!(lengths.iter().any(|&length| length < 0.85));
    assert!(lengths.iter().any(|&length| length > 1.2));
}

#[test]
fn the_mean_is_far_from_zero_and_lies_on_a_few_axes() {
    let stream = stream(BLOCK_ROWS, 384, 8);
    let block = stream.block(0);
    let (mean, _) = moments(&block, 384);
    let length_squared: f64 = mean.iter().map(|m| m * m).sum();
    assert!((0.15..0.45).contains(&length_squared), "{length_squared}");
    let mut shares: Vec<_> = mean.iter().map(|m| m * m / length_squared).collect();
    shares.sort_by(|a, b| b.total_cmp(a));
    assert!(shares[..3].iter().sum::<f64>() > 0.3, "{:?}", &shares[..6]);
}

#[test]
fn the_spectrum_decays() {
    let stream = stream(BLOCK_ROWS, 384, 8);
    let (_, mut variance) = moments(&stream.block(0), 384);
    variance.sort_by(|a, b| b.total_cmp(a));
    let sum = |part: &[f64]| part.iter().sum::<f64>();
    // Uniform noise would have a tenth of its variance in a tenth of its axes.
    assert!(sum(&variance[..38]) > 0.35 * sum(&variance));
    assert!(sum(&variance[..38]) > 8.0 * sum(&variance[346..]));
    assert!(variance[383] > 0.0);
}

/// Mean and variance along each axis.
fn moments(block: &Block, dim: usize) -> (Vec<f64>, Vec<f64>) {
    let n = block.len() as f64;
    let (mut mean, mut squares) = (vec![0.0; dim], vec![0.0; dim]);
    for row in block.embeddings().chunks_exact(dim) {
        for (j, &x) in row.iter().enumerate() {
            mean[j] += f64::from(x) / n;
            squares[j] += f64::from(x) * f64::from(x) / n;
        }
    }
    let variance = mean.iter().zip(squares).map(|(m, s)| s - m * m).collect();
    (mean, variance)
}

#[test]
fn memories_have_topics_and_queries_ask_about_them() {
    let stream = stream(BLOCK_ROWS, 384, 21);
    let block = stream.block(0);
    let rows: Vec<_> = block.embeddings().chunks_exact(384).collect();
    let mut unrelated = 0.0;
    for i in 0..1000 {
        unrelated += cosine(rows[i], rows[i + 2048]) / 1000.0;
    }
    // The common mean makes them alike, and nothing else does in most pairs.
    assert!((0.1..0.4).contains(&unrelated), "{unrelated}");
    for i in 0..20 {
        let query = stream.query(i);
        let mut cosines: Vec<_> = rows.iter().map(|row| cosine(&query, row)).collect();
        cosines.sort_by(|a, b| b.total_cmp(a));
        assert!(
            (0.6..0.9).contains(&cosines[0]),
            "query {i}: {}",
            cosines[0]
        );
        assert!(cosines[2048] < 0.4, "query {i}: {}", cosines[2048]);
    }
}

#[test]
fn repeated_memories_have_the_same_text_and_embedding() {
    let stream = stream(BLOCK_ROWS, 32, 3);
    let block = stream.block(0);
    let mut first: HashMap<Vec<u32>, (usize, String)> = HashMap::new();
    let mut repeats = 0;
    for memory in block.memories() {
        let bits = memory.embedding.iter().map(|x| x.to_bits()).collect();
        let text = memory.text();
        if let Some((row, words)) = first.get(&bits) {
            assert!(*row < memory.row);
            assert_eq!(*words, text);
            repeats += 1;
        } else {
            first.insert(bits, (memory.row, text));
        }
    }
    assert!((60..250).contains(&repeats), "{repeats}");
}

#[test]
fn times_ascend_share_ticks_and_come_in_bursts() {
    let stream = stream(3 * BLOCK_ROWS, 2, 12);
    let created: Vec<_> = stream
        .blocks()
        .flat_map(|block| block.created().to_vec())
        .collect();
    let mut gaps: Vec<_> = created.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&gap| gap >= 0));
    let shared = gaps.iter().filter(|&&gap| gap == 0).count();
    assert!((400..1600).contains(&shared), "{shared}");
    gaps.sort();
    let (median, mean) = (
        gaps[gaps.len() / 2],
        gaps.iter().sum::<i64>() / gaps.len() as i64,
    );
    assert!(mean > 5 * median, "median {median}, mean {mean}");
    assert!(gaps[gaps.len() - 1] > 3_600_000_000);
    assert_eq!(stream.now(), created[created.len() - 1] + 60_000_000);
}

#[test]
fn last_access_lies_between_creation_and_now() {
    for memories in [1, 10, 10_000] {
        let stream = stream(memories, 2, 12);
        let day = 86_400_000_000;
        let (mut never, mut late) = (0, 0);
        for memory in stream.blocks().flat_map(|b| {
            b.memories()
                .map(|m| (m.created, m.last_access))
                .collect::<Vec<_>>()
        }) {
            let (created, last_access) = memory;
            assert!(created <= last_access && last_access <= stream.now());
            never += usize::from(created == last_access);
            late += usize::from(last_access - created > day);
        }
        if memories == 10_000 {
            assert!((5000..7000).contains(&never), "{never}");
            assert!(late > 1000, "{late}");
        }
    }
}

#[test]
fn importance_is_whole_and_mostly_small() {
    let stream = stream(BLOCK_ROWS, 2, 1);
    let block = stream.block(0);
    let mut counts = [0; 11];
    for &importance in block.importance() {
        assert_eq!(importance.fract(), 0.0);
        counts[importance as usize] += 1;
    }
    assert_eq!(counts[0], 0);
    assert!(counts[1..].iter().all(|&n| n > 0), "{counts:?}");
    assert!(
        counts[1..=4].iter().sum::<i32>() * 10 > 7 * BLOCK_ROWS as i32,
        "{counts:?}"
    );
    assert!(counts[1] > 10 * counts[8], "{counts:?}");
}

#[test]
fn every_kind_occurs_and_texts_are_sentences() {
    let stream = stream(1000, 2, 1);
    let block = stream.block(0);
    for kind in [Kind::Observation, Kind::Reflection, Kind::Chat, Kind::Plan] {
        assert!(
            block.memories().any(|memory| memory.kind == kind),
            "{kind:?}"
        );
    }
    for memory in block.memories() {
        let text = memory.text();
        assert!(text.ends_with(['.', '"']), "{text}");
        assert!(!text.contains(['{', '}', '\n']), "{text}");
    }
    assert!(block.memories().any(|memory| memory.text().contains('"')));
    assert!(block.memories().any(|memory| !memory.text().is_ascii()));
}
