//! Properties of every ranking, on memories that proptest shrinks.

mod common;
mod ranking;

use common::kernels;
use memorank::Par;
use memorank::kernel::{Dtype, Kernel};
use memorank::scoring::{
    Candidates, Hit, Normalization, Query, Ranking, Recency, Scoring, Since, Ties, Workspace,
    rank_many_into,
};
use proptest::prelude::*;
use ranking::*;
use std::num::NonZeroU64;

/// A memory: vector (none if all zero), hours since last access, importance. Few different values, so
/// that ties are common.
type Row = (Vec<f32>, i32, i8);

#[derive(Clone, Debug)]
struct Store {
    dim: usize,
    dtype: Dtype,
    rows: Vec<Row>,
    query: Vec<f32>,
    scoring: Scoring,
    kernel: usize,
}

impl Store {
    fn memories(&self) -> Memories {
        self.memories_of(&(0..self.rows.len()).collect::<Vec<_>>())
    }

    /// Its rows in this order.
    fn memories_of(&self, order: &[usize]) -> Memories {
        let rows: Vec<&Row> = order.iter().map(|&row| &self.rows[row]).collect();
        let elements: Vec<f32> = rows.iter().flat_map(|row| row.0.clone()).collect();
        let accesses: Vec<i64> = rows.iter().map(|row| T - i64::from(row.1) * HOUR).collect();
        let importance: Vec<f32> = rows.iter().map(|row| f32::from(row.2)).collect();
        Memories::new(self.dtype, self.dim, &elements, &accesses, &importance)
    }

    fn query(&self, k: usize) -> Query<'_> {
        Query::new(&self.query, T, k)
    }

    fn kernel(&self) -> Kernel {
        let kernels = kernels();
        kernels[self.kernel % kernels.len()]
    }

    fn rank(&self, memories: &Memories, query: &Query<'_>, par: Par) -> Ranking {
        rank_with(
            &[memories.columns()],
            query,
            &self.scoring,
            par,
            self.kernel(),
        )
        .unwrap()
    }
}

fn scoring() -> impl Strategy<Value = Scoring> {
    let weight = || prop_oneof![Just(0.0), Just(1.0), Just(0.5), 0.0..5.0];
    let decay = || prop_oneof![Just(0.0), Just(1.0), Just(0.995), 0.0..=1.0];
    let by_age = (decay(), 1..10_000_000_000u64, any::<bool>()).prop_map(|(decay, ticks, now)| {
        Recency::Age {
            decay,
            ticks_per_unit: NonZeroU64::new(ticks).unwrap(),
            since: if now { Since::Now } else { Since::NewestAccess },
        }
    });
    let normalization = prop_oneof![
        (0.0..=1.0).prop_map(|constant| Normalization::MinMax { constant }),
        Just(Normalization::None {
            importance_divisor: 10.0
        }),
    ];
    (weight(), weight(), weight(), by_age, normalization).prop_map(
        |(relevance, recency, importance, by_age, normalization)| Scoring {
            recency: by_age,
            normalization,
            ..weighted(relevance, recency, importance)
        },
    )
}

fn store() -> impl Strategy<Value = Store> {
    (1usize..20).prop_flat_map(|dim| {
        let element = prop_oneof![Just(0.0f32), Just(1.0), Just(-1.0), -2.0f32..2.0];
        let vector = proptest::collection::vec(element, dim);
        // f16 has no smaller numbers: such a row would be zero in one type only.
        let vector = vector.prop_map(|v: Vec<f32>| -> Vec<f32> {
            v.into_iter().map(|x| (x * 64.0).round() / 64.0).collect()
        });
        let query = vector.clone().prop_map(|mut v| {
            v[0] += f32::from(v.iter().all(|&x| x == 0.0));
            v
        });
        let hours = prop_oneof![Just(0), -5..5, 0..100_000];
        let rows = proptest::collection::vec((vector, hours, -3i8..11), 0..600);
        let dtype = prop_oneof![Just(Dtype::F32), Just(Dtype::F16)];
        (dtype, rows, query, scoring(), 0..4usize).prop_map(
            move |(dtype, rows, query, scoring, kernel)| Store {
                dim,
                dtype,
                rows,
                query,
                scoring,
                kernel,
            },
        )
    })
}

fn hits_bits(hits: &[Hit]) -> Vec<Vec<u64>> {
    hits.iter().map(hit_bits).collect()
}

/// Some rows of `n`, chosen and ordered by a number.
fn some_rows(n: usize, seed: u64) -> Vec<u32> {
    let mut random = common::Random(seed);
    let mut rows: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        rows.swap(i, random.below(i as u64 + 1) as usize);
    }
    rows.truncate(random.below(n as u64 + 1) as usize);
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn top_k_is_a_prefix_of_all(store in store(), k in 0usize..700) {
        let memories = store.memories();
        let all = store.rank(&memories, &store.query(usize::MAX), Par::Serial);
        let top = store.rank(&memories, &store.query(k), Par::Serial);
        assert_sound(&top, &store.query(k));
        let prefix = &all.hits[..k.min(all.hits.len())];
        prop_assert_eq!(hits_bits(&top.hits), hits_bits(prefix));
        prop_assert_eq!(top.ranges, all.ranges);
        for pair in all.hits.windows(2) {
            prop_assert!(pair[0].score > pair[1].score || pair[0].row < pair[1].row);
        }
    }

    #[test]
    fn permuting_rows_permutes_the_result(store in store(), seed in any::<u64>()) {
        let n = store.rows.len();
        let mut order: Vec<usize> = (0..n).collect();
        let mut random = common::Random(seed);
        for i in (1..n).rev() {
            order.swap(i, random.below(i as u64 + 1) as usize);
        }
        let all = store.rank(&store.memories(), &store.query(n), Par::Serial);
        let permuted = store.rank(&store.memories_of(&order), &store.query(n), Par::Serial);
        prop_assert_eq!(permuted.ranges, all.ranges);
        // The same scores in the same places, and the same hit for every memory; ties aside.
        prop_assert_eq!(scores(&permuted), scores(&all));
        let mut back = permuted.hits.clone();
        back.iter_mut().for_each(|hit| hit.row = order[hit.row]);
        back.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
        prop_assert_eq!(hits_bits(&back), hits_bits(&all.hits));
    }

    #[test]
    fn batches_give_the_bits_of_singles(
        store in store(),
        queries in proptest::collection::vec((0usize..4, -9i64..9, 0usize..50, any::<bool>()), 0..12),
        seed in any::<u64>(),
    ) {
        let memories = store.memories();
        let n = memories.len();
        let lists = [some_rows(n, seed), some_rows(n, !seed)];
        let mut mask = vec![0; n.div_ceil(64)];
        lists[0].iter().for_each(|&row| mask[row as usize / 64] |= 1u64 << (row % 64));
        let sets = [
            Candidates::All,
            Candidates::Mask(&mask),
            Candidates::Rows(&lists[0]),
            Candidates::Rows(&lists[1]),
        ];
        let vectors: Vec<Vec<f32>> = (0..queries.len() as u64)
            .map(|i| common::Random(seed ^ i).vector(store.dim))
            .collect();
        let queries: Vec<Query<'_>> = queries
            .iter()
            .zip(&vectors)
            .map(|(&(set, hours, k, listed), vector)| Query {
                ties: if listed { Ties::Listed } else { Ties::Row },
                ..Query::new(vector, T + hours * HOUR, k).of(sets[set])
            })
            .collect();
        let mut batch = Vec::new();
        let mut workspace = Workspace::with_kernel(store.kernel());
        let columns = [memories.part(0..n / 2), memories.part(n / 2..n)];
        rank_many_into(&columns, &queries, &store.scoring, Par::Serial, &mut workspace, &mut batch)
            .unwrap();
        prop_assert_eq!(batch.len(), queries.len());
        for (query, ranking) in queries.iter().zip(&batch) {
            prop_assert_eq!(bits(ranking), bits(&store.rank(&memories, query, Par::Serial)));
        }
    }

    #[test]
    fn ranges_are_those_of_a_plain_loop(store in store(), seed in any::<u64>()) {
        let memories = store.memories();
        let list = some_rows(memories.len(), seed);
        let query = store.query(7).of(Candidates::Rows(&list));
        let ranking = store.rank(&memories, &query, Par::Serial);
        let cosines = memories.cosines(store.kernel(), &store.query);
        let (mut candidates, mut relevance, mut importance) = (0, Vec::new(), Vec::new());
        let mut accesses = Vec::new();
        for &row in &list {
            let row = row as usize;
            if memories.inv_norms[row] != 0.0 {
                candidates += 1;
                relevance.push(f64::from(cosines[row]));
                importance.push(f64::from(memories.importance[row]));
                accesses.push(memories.last_access[row]);
            }
        }
        prop_assert_eq!(ranking.candidates, candidates);
        let Some(ranges) = ranking.ranges else {
            prop_assert_eq!(candidates, 0);
            return Ok(());
        };
        let ends = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            (values[0], values[values.len() - 1])
        };
        prop_assert_eq!((ranges.relevance.min, ranges.relevance.max), ends(relevance));
        prop_assert_eq!((ranges.importance.min, ranges.importance.max), ends(importance));
        let Recency::Age { since, .. } = store.scoring.recency else { unreachable!("by age") };
        let since = match since {
            Since::Now => T,
            Since::NewestAccess => *accesses.iter().max().unwrap(),
        };
        let ages: Vec<u64> = accesses.iter().map(|&x| (since - x).max(0) as u64).collect();
        let found = ranges.ages.unwrap();
        prop_assert_eq!(Some(&found.youngest), ages.iter().min());
        prop_assert_eq!(Some(&found.oldest), ages.iter().max());
    }

    #[test]
    fn threads_and_parts_do_not_matter(
        store in store(),
        k in 0usize..700,
        cuts in proptest::collection::vec(0usize..600, 0..4),
    ) {
        let memories = store.memories();
        let n = memories.len();
        let query = store.query(k);
        let expected = bits(&store.rank(&memories, &query, Par::Serial));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(n)).chain([0, n]).collect();
        cuts.sort_unstable();
        let segments: Vec<_> = cuts.windows(2).map(|w| memories.part(w[0]..w[1])).collect();
        on_all_threads(|par| {
            let found = rank_with(&segments, &query, &store.scoring, par, store.kernel()).unwrap();
            assert_eq!(bits(&found), expected);
        });
    }
}
