//! Where a row stands is where the ranking of all has it.

mod common;
mod ranking;

use common::{Random, best_kernel, kernels};
use memorank::Par;
use memorank::scoring::{
    Candidates, Components, Located, MICROSECONDS_PER_HOUR, Query, RankError, Ranking, Recency,
    Scoring, Since, Ties, Workspace, locate, rank_components,
};
use ranking::*;

struct Case {
    relevance: Vec<f32>,
    last_access: Vec<i64>,
    recency: Vec<f64>,
    importance: Vec<f32>,
    list: Vec<u32>,
    mask: Vec<u64>,
    set: u64,
    ties: Ties,
    k: usize,
    cut: usize,
    scoring: Scoring,
}

impl Case {
    fn new(seed: u64) -> Case {
        let random = &mut Random(seed);
        let n = [0, 1, 2, 9, 60, 700, 2500][random.below(7) as usize];
        // Few values: many totals are equal.
        let few = [2, 5, 1000][random.below(3) as usize];
        let without = random.below(3);
        let mut column = |f: &mut dyn FnMut(u64) -> f64| -> Vec<f64> {
            (0..n).map(|_| f(random.below(few))).collect()
        };
        let relevance = column(&mut |x| x as f64 / few as f64);
        let recency = column(&mut |x| 1.0 - x as f64 / few as f64);
        let importance = column(&mut |x| x as f64 - 1.0);
        let hours = column(&mut |x| x as f64);
        let no_vector = |row: usize| without > 0 && (row as u64 * 7 + 1) % 5 < without;
        let relevance = relevance
            .iter()
            .enumerate()
            .map(|(row, &x)| if no_vector(row) { f32::NAN } else { x as f32 });
        let mut list: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            list.swap(i, random.below(i as u64 + 1) as usize);
        }
        list.truncate(random.below(n as u64 + 1) as usize);
        let mut mask = vec![0u64; n.div_ceil(64)];
        for &row in &list {
            mask[row as usize / 64] |= 1 << (row % 64);
        }
        let weights = [0.0, 1.0, 0.5, 3.0];
        let mut weight = || weights[random.below(4) as usize];
        let scoring = weighted(weight(), weight(), weight());
        let recency_of = match random.below(4) {
            0 => Recency::Given,
            1 => Recency::Position { decay: 0.99 },
            2 => Recency::Age {
                decay: 0.99,
                ticks_per_unit: MICROSECONDS_PER_HOUR,
                since: Since::NewestAccess,
            },
            _ => paper().recency,
        };
        let normalization = [paper(), unnormalized()][random.below(2) as usize].normalization;
        Case {
            relevance: relevance.collect(),
            last_access: hours.iter().map(|&h| T + HOUR - h as i64 * HOUR).collect(),
            recency,
            importance: importance.iter().map(|&x| x as f32).collect(),
            list,
            mask,
            set: random.below(3),
            ties: [Ties::Row, Ties::Listed][random.below(2) as usize],
            k: [0, 1, 3, n, usize::MAX][random.below(5) as usize],
            cut: random.below(n as u64 + 1) as usize,
            scoring: Scoring {
                recency: recency_of,
                normalization,
                ..scoring
            },
        }
    }

    fn query(&self) -> Query<'_> {
        let set = match self.set {
            0 => Candidates::All,
            1 => Candidates::Mask(&self.mask),
            _ => Candidates::Rows(&self.list),
        };
        Query {
            ties: self.ties,
            ..Query::new(&[], T, self.k).of(set)
        }
    }

    fn components(&self) -> [Components<'_>; 2] {
        [0..self.cut, self.cut..self.relevance.len()].map(|rows| {
            let relevance = &self.relevance[rows.clone()];
            let importance = &self.importance[rows.clone()];
            match self.scoring.recency {
                Recency::Given => {
                    Components::with_recency(relevance, &self.recency[rows], importance)
                }
                _ => Components::new(relevance, &self.last_access[rows], importance),
            }
            .unwrap()
        })
    }

    fn all(&self) -> Ranking {
        let query = Query {
            k: usize::MAX,
            ..self.query()
        };
        let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
        rank_components(
            &self.components(),
            &query,
            &self.scoring,
            Par::Serial,
            &mut workspace,
            &mut ranking,
        )
        .unwrap();
        ranking
    }

    fn locate(
        &self,
        row: usize,
        par: Par,
        workspace: &mut Workspace,
    ) -> Result<Option<Located>, RankError> {
        let (components, query) = (self.components(), self.query());
        locate(&components, &query, &self.scoring, par, workspace, row)
    }
}

fn located_bits(located: &Located) -> Vec<u64> {
    let hits = [Some(located.hit), located.kth].into_iter().flatten();
    let hits = hits.flat_map(|hit| hit_bits(&hit));
    [located.place as u64].into_iter().chain(hits).collect()
}

// B14, B15: ties at the place and at the cut are part of it.
#[test]
fn every_row_is_located_where_the_ranking_of_all_has_it() {
    let mut located = 0;
    for seed in 0..300 {
        let case = Case::new(seed);
        let all = case.all();
        let kernel = kernels()[seed as usize % kernels().len()];
        let mut workspace = Workspace::with_kernel(kernel);
        let n = case.relevance.len();
        let step = n.div_ceil(150).max(1);
        let mut places = vec![None; n];
        for (i, hit) in all.hits.iter().enumerate() {
            places[hit.row] = Some((i + 1, *hit));
        }
        let kth = case.k.min(all.hits.len()).checked_sub(1);
        let expected = |row: usize| {
            places[row].map(|(place, hit)| Located {
                place,
                hit,
                kth: kth.map(|kth| all.hits[kth]),
            })
        };
        for row in (seed as usize % step..n).step_by(step) {
            let found = case.locate(row, Par::Serial, &mut workspace).unwrap();
            let bits = found.as_ref().map(located_bits);
            assert_eq!(
                bits,
                expected(row).as_ref().map(located_bits),
                "seed {seed} row {row} of {n}, {:?}",
                case.scoring
            );
            located += usize::from(found.is_some());
        }
        let Some(row) = n.checked_sub(1) else {
            continue;
        };
        on_all_threads(|par| {
            let mut workspace = Workspace::with_kernel(best_kernel());
            let found = case.locate(row, par, &mut workspace).unwrap();
            let bits = found.as_ref().map(located_bits);
            assert_eq!(bits, expected(row).as_ref().map(located_bits));
        });
    }
    assert!(located > 5000, "{located} rows located");
}

#[test]
fn a_row_that_does_not_exist_is_refused_and_one_that_does_not_compete_is_nowhere() {
    let components = [Components::new(&[0.5, f32::NAN, 0.7], &[T; 3], &[1.0; 3]).unwrap()];
    let scoring = paper();
    let (mut workspace, mask) = (Workspace::new(), [0b011]);
    let mut found = |set, row| {
        let query = Query::new(&[], T, 1).of(set);
        locate(
            &components,
            &query,
            &scoring,
            Par::Serial,
            &mut workspace,
            row,
        )
    };
    let (row, rows) = (3, 3);
    let refused = Err(RankError::NoSuchRow { row, rows });
    assert_eq!(found(Candidates::All, 3), refused);
    assert_eq!(found(Candidates::All, 1), Ok(None));
    assert_eq!(found(Candidates::Mask(&mask), 2), Ok(None));
    assert_eq!(found(Candidates::Rows(&[]), 0), Ok(None));
    let alone = found(Candidates::Rows(&[0, 1]), 0).unwrap().unwrap();
    assert_eq!((alone.place, alone.hit.score), (1, 1.5));
    assert_eq!(alone.kth, Some(alone.hit));
    // What a ranking refuses is refused.
    let listed = found(Candidates::Rows(&[0, 0]), 0);
    assert_eq!(listed, Err(RankError::ListedTwice { row: 0 }));
}
