//! With `Par::Serial`, a ranking into memory that has seen its size allocates nothing.

mod common;
mod ranking;

use common::best_kernel;
use memorank::Par;
use memorank::scoring::{
    Candidates, Components, Job, Query, Ranking, Recency, Scoring, Ties, Workspace,
    rank_components, rank_each_into, rank_into, rank_many_into, relevance_into,
};
use ranking::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting the calls of each thread.
struct Counting;

fn count() {
    // A thread that is ending has no counter, and no test.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: every call goes to `System` unchanged, and counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's duties are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as in `dealloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(f: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    f();
    ALLOCATIONS.get() - before
}

fn memories(n: usize) -> Memories {
    let mut random = common::Random(7);
    let elements = random.vector(n * 24);
    let accesses: Vec<i64> = (0..n).map(|_| T - random.below(1 << 40) as i64).collect();
    let importance: Vec<f32> = (0..n).map(|_| (1 + random.below(10)) as f32).collect();
    let dtype = memorank::kernel::Dtype::F16;
    Memories::new(dtype, 24, &elements, &accesses, &importance)
}

#[test]
fn the_counter_counts() {
    let found = allocations(|| drop(std::hint::black_box(Box::new(5))));
    assert_eq!(found, 1);
}

#[test]
fn a_second_ranking_allocates_nothing() {
    let n = 3000;
    let memories = memories(n);
    let embedding = common::Random(8).vector(24);
    let list: Vec<u32> = (0..n as u32).rev().step_by(2).collect();
    let mask = vec![0x5555_5555_5555_5555 & u64::MAX >> 8; n.div_ceil(64)];
    let columns = [memories.part(0..1000), memories.part(1000..n)];
    let by_position = Scoring {
        recency: Recency::Position { decay: 0.99 },
        ..paper()
    };
    for kernel in common::kernels() {
        for k in [0, 1, 30, 1000, usize::MAX] {
            for set in [
                Candidates::All,
                Candidates::Mask(&mask),
                Candidates::Rows(&list),
            ] {
                for scoring in [paper(), unnormalized(), by_position] {
                    let mut workspace = Workspace::with_kernel(kernel);
                    let mut ranking = Ranking::default();
                    let query = Query {
                        ties: Ties::Listed,
                        ..Query::new(&embedding, T, k).of(set)
                    };
                    let mut rank = || {
                        let (workspace, ranking) = (&mut workspace, &mut ranking);
                        rank_into(&columns, &query, &scoring, Par::Serial, workspace, ranking)
                            .unwrap();
                    };
                    rank();
                    assert_eq!(allocations(&mut rank), 0, "{} k {k}", kernel.isa());
                    // A smaller one neither.
                    let fewer =
                        Query::new(&embedding, T, k / 2).of(Candidates::Rows(&[1, 5, 2999]));
                    let found = allocations(|| {
                        let (workspace, ranking) = (&mut workspace, &mut ranking);
                        rank_into(&columns, &fewer, &scoring, Par::Serial, workspace, ranking)
                            .unwrap();
                    });
                    assert_eq!(found, 0, "{} k {k}", kernel.isa());
                }
            }
        }
    }
}

#[test]
fn batches_agents_and_seams_allocate_nothing_the_second_time() {
    let n = 2000;
    let memories = memories(n);
    let columns = [memories.columns()];
    let mut random = common::Random(9);
    let vectors: Vec<Vec<f32>> = (0..9).map(|_| random.vector(24)).collect();
    let embeddings: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
    let queries: Vec<Query<'_>> = embeddings.iter().map(|v| Query::new(v, T, 30)).collect();
    let jobs: Vec<Job<'_>> = queries
        .iter()
        .map(|&query| Job {
            columns: &columns,
            query,
        })
        .collect();
    let relevance = memories.cosines(best_kernel(), &vectors[0]);
    let parts = [Components::new(&relevance, &memories.last_access, &memories.importance).unwrap()];

    let mut workspace = Workspace::with_kernel(best_kernel());
    let mut rankings = Vec::new();
    let mut ranking = Ranking::default();
    let mut out = vec![0.0; 9 * n];
    let mut all = || {
        let (par, w) = (Par::Serial, &mut workspace);
        rank_many_into(&columns, &queries, &paper(), par, w, &mut rankings).unwrap();
        rank_each_into(&jobs, &paper(), par, w, &mut rankings).unwrap();
        relevance_into(&columns, &embeddings, Candidates::All, par, w, &mut out).unwrap();
        rank_components(&parts, &queries[0], &paper(), par, w, &mut ranking).unwrap();
    };
    all();
    assert_eq!(allocations(all), 0);
}
