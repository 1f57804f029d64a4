//! Recency that the caller gives: the plain min-max of any numbers in [0, 1].

mod common;
mod ranking;

use common::{Random, kernels};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::oracle;
use memorank::scoring::{
    Candidates, Columns, ColumnsError, Components, Decay, MICROSECONDS_PER_HOUR, Query, RankError,
    Ranking, Recency, Scoring, Ties, Workspace, age, rank_components, relevance_into,
};
use ranking::reference::assert_ranks_like_the_reference;
use ranking::*;

fn given(scoring: Scoring) -> Scoring {
    Scoring {
        recency: Recency::Given,
        ..scoring
    }
}

/// Recencies of one of many styles: ties, spans of nothing, the edges of f64.
fn recencies(random: &mut Random, n: usize) -> Vec<f64> {
    let style = random.below(6);
    let value = |random: &mut Random| match style {
        0 => 0.25,
        1 => random.below(4) as f64 / 3.0,
        2 => 1.0 - random.below(5) as f64 * f64::EPSILON / 2.0,
        3 => f64::from_bits(random.below(4)),
        4 => 0.995f64.powf(random.below(1 << 20) as f64 / 16.0),
        _ => random.below(1 << 53) as f64 / (1u64 << 53) as f64,
    };
    (0..n).map(|_| value(random)).collect()
}

/// Memories of all styles, some without a vector, and recencies beside them.
fn mixed(seed: u64, n: usize) -> (Memories, Vec<f64>) {
    let random = &mut Random(seed);
    let dtype = DTYPES[random.below(2) as usize];
    let mut elements = random.vector(5 * n);
    for row in (0..n).filter(|row| row % 7 == 3) {
        elements[row * 5..(row + 1) * 5].fill(0.0);
    }
    let importance: Vec<f32> = (0..n).map(|_| (1 + random.below(10)) as f32).collect();
    let memories = Memories::new(dtype, 5, &elements, &vec![T; n], &importance);
    (memories, recencies(random, n))
}

/// The memories, with recencies, in two segments.
fn segments<'a>(memories: &'a Memories, recency: &'a [f64], cut: usize) -> [Columns<'a>; 2] {
    let dim = memories.dim.get();
    [0..cut, cut..memories.len()].map(|rows| {
        Columns::with_recency(
            memories.dim,
            memories.elements.rows(rows.start * dim..rows.end * dim),
            &memories.inv_norms[rows.clone()],
            &recency[rows.clone()],
            &memories.importance[rows],
        )
        .unwrap()
    })
}

fn ranked(components: &[Components<'_>], scoring: &Scoring) -> Result<Ranking, RankError> {
    let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
    let query = Query::new(&[], T, usize::MAX);
    let par = Par::Serial;
    rank_components(
        components,
        &query,
        scoring,
        par,
        &mut workspace,
        &mut ranking,
    )?;
    Ok(ranking)
}

#[test]
fn given_recency_has_the_bits_of_the_reference_everywhere() {
    for seed in 0..120 {
        let random = &mut Random(seed ^ 0x5eed);
        // Beyond the first block, rows are scored only if their bound is high enough.
        let n = [3, 40, 700, 3000][random.below(4) as usize];
        let (memories, recency) = mixed(seed, n);
        let list: Vec<u32> = (0..n as u32).rev().step_by(2).collect();
        let mask: Vec<u64> = (0..n.div_ceil(64))
            .map(|word| random.next() >> (64 * (word + 1)).saturating_sub(n).min(63))
            .collect();
        let sets = [
            Candidates::All,
            Candidates::Mask(&mask),
            Candidates::Rows(&list),
        ];
        let embedding = random.vector(5);
        let query = Query {
            ties: [Ties::Row, Ties::Listed][random.below(2) as usize],
            ..Query::new(&embedding, T, [1, 3, 30][random.below(3) as usize])
                .of(sets[random.below(3) as usize])
        };
        let weights = [0.0, 0.5, 1.0, 3.0];
        let mut weight = || weights[random.below(4) as usize];
        let normalization = [paper(), unnormalized()][seed as usize % 2].normalization;
        let scoring = Scoring {
            normalization,
            ..given(weighted(weight(), weight(), weight()))
        };

        let relevance = memories.cosines(common::best_kernel(), &embedding);
        let fed = Components::with_recency(&relevance, &recency, &memories.importance).unwrap();
        let expected = bits(&assert_ranks_like_the_reference(&fed, &query, &scoring).unwrap());
        let columns = segments(&memories, &recency, n / 3);
        for kernel in kernels() {
            let found = rank_with(&columns, &query, &scoring, Par::Serial, kernel).unwrap();
            assert_eq!(found.ranges.and_then(|ranges| ranges.ages), None);
            assert_eq!(bits(&found), expected, "seed {seed} {}", kernel.isa());
            let mut workspace = Workspace::with_kernel(kernel);
            let compared = oracle::compare(&columns, &query, &scoring, Par::Serial, &mut workspace);
            assert!(compared.unwrap().agrees(), "seed {seed} {}", kernel.isa());
        }
        on_all_threads(|par| {
            let kernel = common::best_kernel();
            let found = rank_with(&columns, &query, &scoring, par, kernel).unwrap();
            assert_eq!(bits(&found), expected, "seed {seed}");
        });
    }
}

#[test]
fn decayed_ages_given_as_recency_score_as_recency_by_age_does() {
    // Without min-max: with it, recency by age is computed in its own way.
    let (mut memories, _) = mixed(1, 2000);
    let random = &mut Random(2);
    for access in &mut memories.last_access {
        *access = T + HOUR - random.below(1 << 42) as i64;
    }
    let decay = Decay::new(0.995, MICROSECONDS_PER_HOUR).unwrap();
    let raw = |&access: &i64| decay.raw(age(T, access));
    let recency: Vec<f64> = memories.last_access.iter().map(raw).collect();
    let query = Query::new(&[0.3, 1.0, -0.5, 0.0, 2.0], T, 100);
    let by_age = memories.rank(&query, &unnormalized());
    let columns = segments(&memories, &recency, 512);
    let kernel = common::best_kernel();
    let scoring = given(unnormalized());
    let found = rank_with(&columns, &query, &scoring, Par::Serial, kernel).unwrap();
    let without_ages = Ranking {
        ranges: by_age.ranges.map(|mut ranges| {
            ranges.ages = None;
            ranges
        }),
        ..by_age
    };
    assert_eq!(bits(&found), bits(&without_ages));
}

#[test]
fn min_max_of_given_recency_is_the_plain_one_and_a_constant_where_all_are_equal() {
    // B04, B23.
    let recency = [0.25, 0.5, 1.0];
    let components = [Components::with_recency(&[1.0; 3], &recency, &[1.0; 3]).unwrap()];
    let scoring = given(weighted(0.0, 1.0, 0.0));
    let ranking = ranked(&components, &scoring).unwrap();
    assert_eq!(rows(&ranking), [2, 1, 0]);
    assert_eq!(scores(&ranking), [1.0, 0.25 / 0.75, 0.0]);
    let range = ranking.ranges.unwrap().recency;
    assert_eq!((range.min, range.max), (0.25, 1.0));
    for equal in [0.0, 5e-324, 0.5, 1.0] {
        let recency = [equal; 3];
        let components = [Components::with_recency(&[1.0; 3], &recency, &[1.0; 3]).unwrap()];
        let ranking = ranked(&components, &scoring).unwrap();
        assert_eq!(rows(&ranking), [0, 1, 2]);
        assert_eq!(scores(&ranking), [0.5; 3]);
    }
}

#[test]
fn a_recency_outside_its_range_is_refused_by_row_and_only_of_candidates() {
    // B08, B10: above 1 too.
    let above = f64::from_bits(1.0f64.to_bits() + 1);
    let bad = [
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        -5e-324,
        -1.0,
        above,
        2.0,
    ];
    let scoring = given(paper());
    let n = 1500;
    for value in bad {
        for row in [0, 7, 511, 512, 1499] {
            let (memories, _) = mixed(3, n);
            let mut recency = vec![0.5; n];
            recency[row] = value;
            if row != 1499 {
                // The first is named.
                recency[n - 2] = f64::NAN;
            }
            let columns = segments(&memories, &recency, 1000);
            let embedding = [1.0; 5];
            let query = Query::new(&embedding, T, 3);
            let list = [row as u32 ^ 1, row as u32];
            let mut mask = vec![0; n.div_ceil(64)];
            mask[row / 64] |= 1 << (row % 64);
            let named = |error: RankError| match error {
                RankError::Recency { row, value } => (row, value.to_bits()),
                other => panic!("{other}"),
            };
            for set in [
                Candidates::All,
                Candidates::Mask(&mask),
                Candidates::Rows(&list),
            ] {
                for kernel in kernels() {
                    on_all_threads(|par| {
                        let refused = rank_with(&columns, &query.of(set), &scoring, par, kernel);
                        assert_eq!(named(refused.unwrap_err()), (row, value.to_bits()));
                    });
                }
                let refused = oracle::rank(&columns, &query.of(set), &scoring);
                assert_eq!(named(refused.unwrap_err()), (row, value.to_bits()));
            }
            // Of a row that is no candidate it is not looked at.
            let others: Vec<u32> = (0..n as u32 - 2).filter(|&r| r as usize != row).collect();
            let ranking = rank_with(
                &columns,
                &query.of(Candidates::Rows(&others)),
                &scoring,
                Par::Serial,
                common::best_kernel(),
            );
            assert_sound(&ranking.unwrap(), &query);
            let mut relevance = vec![0.5; n];
            (relevance[row], relevance[n - 2]) = (f32::NAN, f32::NAN);
            let importance = vec![1.0; n];
            let fed = [Components::with_recency(&relevance, &recency, &importance).unwrap()];
            assert_sound(
                &ranked(&fed, &scoring).unwrap(),
                &Query::new(&[], T, usize::MAX),
            );
        }
    }
}

#[test]
fn a_column_that_recency_cannot_be_made_of_is_refused_by_segment() {
    let (memories, recency) = mixed(5, 20);
    let recent = segments(&memories, &recency, 10);
    let by_access = memories.part(10..20);
    let query = Query::new(&[1.0; 5], T, 3);
    let rank = |columns: &[Columns<'_>], scoring: &Scoring| {
        let ours = rank_with(columns, &query, scoring, Par::Serial, common::best_kernel());
        let reference = oracle::rank(columns, &query, scoring);
        assert_eq!(
            ours.as_ref().err(),
            reference.as_ref().err(),
            "{reference:?}"
        );
        ours
    };
    let [first, second] = recent;
    let segment = 1;
    let given = given(paper());
    assert_eq!(
        rank(&[first, by_access], &given),
        Err(RankError::NoRecency { segment })
    );
    assert_eq!(
        rank(&[by_access, second], &paper()),
        Err(RankError::NoLastAccess { segment })
    );
    // Positions need neither: the column is only looked at for its range.
    let by_position = Scoring {
        recency: Recency::Position { decay: 0.5 },
        ..paper()
    };
    let mixed = rank(&[first, by_access], &by_position).unwrap();
    let plain = rank(&[memories.columns()], &by_position).unwrap();
    assert_eq!(bits(&mixed), bits(&plain));
    // Nor do relevances.
    let mut relevance = [vec![0.0; 20], vec![0.0; 20]];
    for (columns, out) in [(&[first, by_access][..], 0), (&[memories.columns()][..], 1)] {
        relevance_into(
            columns,
            &[&[1.0; 5]],
            Candidates::All,
            Par::Serial,
            &mut Workspace::new(),
            &mut relevance[out],
        )
        .unwrap();
    }
    let bits = relevance.map(|column| column.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    assert_eq!(bits[0], bits[1]);
}

#[test]
fn a_recency_column_of_another_length_is_refused() {
    let memories = set_g(Dtype::F32);
    let refused = Columns::with_recency(
        memories.dim,
        memories.elements.rows(0..6),
        &memories.inv_norms,
        &[0.5; 2],
        &memories.importance,
    );
    let expected = ColumnsError::Length {
        column: "recency",
        found: 2,
        rows: 3,
    };
    assert_eq!(refused.unwrap_err(), expected);
    let refused = Components::with_recency(&[1.0; 3], &[0.5; 2], &[1.0; 3]);
    assert_eq!(refused.unwrap_err(), expected);
}

#[test]
fn given_recency_has_neither_decay_nor_clock() {
    let scoring = given(paper());
    assert_eq!(scoring.decay(), None);
    assert_eq!(scoring.with_decay(7.0), scoring);
    assert_eq!(scoring.with_ticks_per_unit(1.try_into().unwrap()), scoring);
    assert_eq!(scoring.check(), Ok(()));
    assert_eq!(paper().decay(), Some(0.995));
}

#[cfg(feature = "serde")]
#[test]
fn given_recency_is_written_as_its_neighbours_are() {
    let scoring = given(paper());
    let json = serde_json::to_value(scoring).unwrap();
    assert_eq!(json["recency"], "given");
    assert_eq!(serde_json::from_value::<Scoring>(json).unwrap(), scoring);
}
