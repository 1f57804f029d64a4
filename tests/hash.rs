//! One number for every bit of two large rankings, pinned: another machine, instruction set, number of
//! threads or version that gives a single other bit fails here.

mod common;
mod ranking;

use common::{kernels, say};
use memorank::kernel::{Dtype, Kernel};
use memorank::scoring::{Query, Ranking};
use memorank_data_gen::{Config, Stream};
use ranking::*;

/// FNV-1a over the words of [`bits`], byte by byte from the lowest.
fn hash(ranking: &Ranking) -> u64 {
    bits(ranking)
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

fn assert_hash(dtype: Dtype, config: Config, expected: u64) {
    let stream = Stream::new(config).unwrap();
    let mut elements = Vec::with_capacity(config.memories * config.dim);
    let (mut accesses, mut importance) = (Vec::new(), Vec::new());
    for block in stream.blocks() {
        elements.extend_from_slice(block.embeddings());
        accesses.extend_from_slice(block.last_access());
        importance.extend_from_slice(block.importance());
    }
    let memories = Memories::new(dtype, config.dim, &elements, &accesses, &importance);
    drop(elements);
    let embedding = stream.query(1);
    let query = Query::new(&embedding, stream.now(), 1000);
    // Cut where no block ends.
    let cut = config.memories / 3;
    let columns = [memories.part(0..cut), memories.part(cut..config.memories)];
    let hash_of = |par, kernel: Kernel| {
        let found = hash(&rank_with(&columns, &query, &paper(), par, kernel).unwrap());
        assert_eq!(found, expected, "{found:#018x} {} {par:?}", kernel.isa());
    };
    for kernel in kernels() {
        on_all_threads(|par| hash_of(par, kernel));
        let (memories, dim, isa) = (config.memories, config.dim, kernel.isa());
        say(format_args!(
            "{expected:#018x} {dtype} {memories} x {dim} {isa}"
        ));
    }
}

#[test]
fn a_large_f16_ranking_has_its_bits() {
    let config = Config {
        memories: 200_000,
        dim: 64,
        seed: 1,
    };
    assert_hash(Dtype::F16, config, 0x4e7b_ec3a_6808_f710);
}

#[test]
fn a_large_f32_ranking_of_an_odd_dimension_has_its_bits() {
    let config = Config {
        memories: 50_000,
        dim: 387,
        seed: 2,
    };
    assert_hash(Dtype::F32, config, 0x550c_f4d8_a8ab_f12e);
}
