//! What every stream promises: its bytes, its order, its limits.

use std::collections::{HashMap, HashSet};
use std::thread;

use memorank_data_gen::{
    BLOCK_ROWS, Block, Config, ConfigError, Kind, MAX_DIM, MAX_MEMORIES, Stream, key,
};

fn stream(memories: usize, dim: usize, seed: u64) -> Stream {
    Stream::new(Config {
        memories,
        dim,
        seed,
    })
    .unwrap()
}

/// Everything a block has, as bytes.
fn bytes(block: &Block) -> Vec<u8> {
    let mut out = Vec::new();
    for memory in block.memories() {
        out.extend(
            memory
                .embedding
                .iter()
                .flat_map(|x| x.to_bits().to_le_bytes()),
        );
        out.extend(memory.created.to_le_bytes());
        out.extend(memory.last_access.to_le_bytes());
        out.extend(memory.importance.to_bits().to_le_bytes());
        out.extend(
            memory
                .evidence
                .iter()
                .flat_map(|&row| (row as u64).to_le_bytes()),
        );
        out.extend(memory.depth.to_le_bytes());
        let line = format!(
            "{} {} {}\n",
            memory.key(),
            memory.kind.as_str(),
            memory.text()
        );
        out.extend(line.as_bytes());
    }
    out
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| f64::from(*a) * f64::from(*b))
        .sum()
}

#[test]
fn the_bytes_are_pinned() {
    let stream = stream(5000, 19, 42);
    let mut all: Vec<u8> = stream.blocks().flat_map(|block| bytes(&block)).collect();
    for i in 0..10 {
        all.extend(
            stream
                .query(i)
                .iter()
                .flat_map(|x| x.to_bits().to_le_bytes()),
        );
        all.extend(stream.query_text(i).as_bytes());
    }
    all.extend(stream.now().to_le_bytes());
    // A change of this number is a change of everybody's data: its commit says so.
    assert_eq!(format!("{:016x}", hash(&all)), "03f732438a2a4f71");
}

#[test]
fn the_number_of_threads_does_not_change_a_byte() {
    let stream = stream(5 * BLOCK_ROWS + 100, 24, 9);
    let in_order: Vec<_> = stream.blocks().map(|block| bytes(&block)).collect();
    for threads in [1, 2, 3, 8] {
        let made: HashMap<_, _> = thread::scope(|scope| {
            let stream = &stream;
            let workers: Vec<_> = (0..threads)
                .map(|worker| {
                    scope.spawn(move || {
                        // Last to first: no block may lean on another.
                        let mine = (worker..stream.block_count()).step_by(threads).rev();
                        mine.map(|i| (i, bytes(&stream.block(i))))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap())
                .collect()
        });
        assert_eq!(made.len(), in_order.len());
        for (i, expected) in in_order.iter().enumerate() {
            assert!(made[&i] == *expected, "block {i} with {threads} threads");
        }
    }
}

#[test]
fn rows_are_numbered_through_the_blocks() {
    for memories in [0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1] {
        let stream = stream(memories, 3, 5);
        assert_eq!(stream.block_count(), memories.div_ceil(BLOCK_ROWS));
        let mut rows = 0;
        for block in stream.blocks() {
            assert_eq!(block.first_row(), rows);
            assert!(!block.is_empty());
            assert_eq!(block.embeddings().len(), 3 * block.len());
            for (at, memory) in block.memories().enumerate() {
                assert_eq!(memory.row, rows);
                assert_eq!(memory.key(), key(rows));
                assert_eq!(memory.embedding, &block.embeddings()[3 * at..][..3]);
                assert_eq!(memory.created, block.created()[at]);
                assert_eq!(memory.last_access, block.last_access()[at]);
                assert_eq!(memory.importance, block.importance()[at]);
                rows += 1;
            }
        }
        assert_eq!(rows, memories);
    }
    assert_eq!(key(42), "m000042");
    assert_eq!(key(12_345_678), "m12345678");
}

#[test]
fn a_shorter_stream_is_the_beginning_of_a_longer_one() {
    let (short, long) = (stream(700, 12, 5), stream(9000, 12, 5));
    let (short, long) = (short.block(0), long.block(0));
    assert_eq!(short.len(), 700);
    for (a, b) in short.memories().zip(long.memories()) {
        assert_eq!(a.embedding, b.embedding);
        assert_eq!(a.text(), b.text());
        assert_eq!(
            (a.row, a.kind, a.created, a.importance, a.evidence, a.depth),
            (b.row, b.kind, b.created, b.importance, b.evidence, b.depth)
        );
    }
}

#[test]
fn another_dimension_changes_the_embeddings_only() {
    let (a, b) = (stream(6000, 3, 5), stream(6000, 40, 5));
    assert_eq!(a.now(), b.now());
    for (a, b) in a.blocks().zip(b.blocks()) {
        for (a, b) in a.memories().zip(b.memories()) {
            assert_eq!(a.text(), b.text());
            assert_eq!(
                (
                    a.kind,
                    a.created,
                    a.last_access,
                    a.importance,
                    a.evidence,
                    a.depth
                ),
                (
                    b.kind,
                    b.created,
                    b.last_access,
                    b.importance,
                    b.evidence,
                    b.depth
                )
            );
        }
    }
}

#[test]
fn seeds_and_blocks_differ() {
    let mut seen = HashSet::new();
    for seed in [0, 1, 2, u64::MAX] {
        let stream = stream(2 * BLOCK_ROWS, 16, seed);
        for block in stream.blocks() {
            for memory in block.memories().take(20) {
                let bits: Vec<_> = memory.embedding.iter().map(|x| x.to_bits()).collect();
                seen.insert(bits);
            }
        }
    }
    // Less a few repeated memories.
    assert!(seen.len() > 150, "{}", seen.len());
}

#[test]
fn elements_are_finite_and_no_embedding_is_zero() {
    for dim in (1..=34).chain([384, 1536]) {
        let stream = stream(300, dim, 77);
        let block = stream.block(0);
        let rows = block.embeddings().chunks_exact(dim);
        let queries: Vec<_> = (0..300).map(|i| stream.query(i)).collect();
        for x in rows.chain(queries.iter().map(Vec::as_slice)) {
            assert_eq!(x.len(), dim);
            assert!(x.iter().all(|x| x.is_finite()));
            let length = dot(x, x).sqrt();
            assert!((0.799..1.251).contains(&length), "dim {dim}: {length}");
        }
    }
}

#[test]
fn queries_are_made_from_their_index() {
    let stream = stream(0, 48, 6);
    let queries: Vec<_> = (0..50).map(|i| stream.query(i)).collect();
    for i in (0..50).rev() {
        assert_eq!(stream.query(i), queries[i as usize]);
        assert!(stream.query_text(i).ends_with('?'));
        if i > 0 {
            assert_ne!(queries[i as usize], queries[i as usize - 1]);
        }
    }
}

#[test]
fn reflections_rest_on_earlier_memories() {
    let stream = stream(2 * BLOCK_ROWS + 50, 2, 1);
    let mut depths = Vec::new();
    let (mut reflections, mut deepest) = (0, 0);
    for block in stream.blocks() {
        for memory in block.memories() {
            if memory.kind == Kind::Reflection {
                reflections += 1;
                assert!((2..=5).contains(&memory.evidence.len()), "{memory:?}");
                let different: HashSet<_> = memory.evidence.iter().collect();
                assert_eq!(different.len(), memory.evidence.len());
                assert!(memory.evidence.iter().all(|&row| row < memory.row));
                let below = memory
                    .evidence
                    .iter()
                    .map(|&row| depths[row])
                    .max()
                    .unwrap();
                assert_eq!(memory.depth, 1 + below);
            } else {
                assert!(memory.evidence.is_empty());
                assert_eq!(memory.depth, 0);
            }
            deepest = deepest.max(memory.depth);
            depths.push(memory.depth);
        }
    }
    assert!((200..900).contains(&reflections), "{reflections}");
    assert!((2..=20).contains(&deepest), "{deepest}");
}

#[test]
fn impossible_streams_are_refused() {
    let new = |memories, dim| {
        Stream::new(Config {
            memories,
            dim,
            seed: 0,
        })
        .map(|_| ())
    };
    assert_eq!(new(1, 0), Err(ConfigError::Dim(0)));
    assert_eq!(new(1, MAX_DIM + 1), Err(ConfigError::Dim(MAX_DIM + 1)));
    assert_eq!(
        new(MAX_MEMORIES + 1, 1),
        Err(ConfigError::Memories(MAX_MEMORIES + 1))
    );
    assert!(new(1, 65_536).is_ok());
}

#[test]
fn the_longest_stream_ends_before_the_year_8000() {
    let stream = stream(MAX_MEMORIES, 1, 1);
    let block = stream.block(stream.block_count() - 1);
    let year_8000 = 190_288_396_800_000_000;
    assert!(block.created().iter().all(|&t| 0 < t && t < year_8000));
    assert_eq!(block.memories().last().unwrap().key(), "m2147483647");
}

#[test]
#[should_panic(expected = "block 1 of 1")]
fn a_block_beyond_the_stream_panics() {
    stream(10, 2, 1).block(1);
}
