//! First pass: the cosines of the candidates, and the ranges of all three signals.

use super::columns::Signals;
use super::query::RankError;
use super::slots::{Run, Segment};
use super::{Columns, Components};
use crate::kernel::{Kernel, Picks, Queries};

/// A segment that knows the relevance of its rows.
pub(super) trait Relevance: Segment {
    /// The relevance of every candidate of a run for every query, query after query. A candidate
    /// without a vector gets NaN, and no other does.
    fn relevance(
        &self,
        kernel: Kernel,
        run: &Run<'_>,
        queries: &Queries,
        out: &mut [f32],
    ) -> Result<(), RankError>;

    /// The columns scored beside it.
    fn signals(&self) -> Signals<'_>;
}

impl Relevance for Columns<'_> {
    fn relevance(
        &self,
        kernel: Kernel,
        run: &Run<'_>,
        queries: &Queries,
        out: &mut [f32],
    ) -> Result<(), RankError> {
        self.dots(kernel, run, queries, out);
        let mut wrong = false;
        for cosines in out.chunks_exact_mut(run.len()) {
            match &run.picks {
                Picks::Range(range) => {
                    let inv_norms = &self.inv_norms()[range.clone()];
                    for (cosine, &inv_norm) in cosines.iter_mut().zip(inv_norms) {
                        *cosine = finish(*cosine, inv_norm, &mut wrong);
                    }
                }
                Picks::List { .. } => run.for_each_row(|i, row| {
                    cosines[i] = finish(cosines[i], self.inv_norms()[row], &mut wrong);
                }),
            }
        }
        if wrong {
            Err(self.first_wrong(kernel, run, queries, out))
        } else {
            Ok(())
        }
    }

    fn signals(&self) -> Signals<'_> {
        Columns::signals(self)
    }
}

/// The cosine of a row, or NaN if it has no vector.
#[inline(always)]
fn finish(dot: f32, inv_norm: f32, wrong: &mut bool) -> f32 {
    let cosine = dot * inv_norm;
    let has_vector = inv_norm != 0.0;
    *wrong |= has_vector & !(cosine.is_finite() & (inv_norm > 0.0));
    // + 0.0 leaves no -0, so that min and max do not depend on order.
    if has_vector {
        cosine.clamp(-1.0, 1.0) + 0.0
    } else {
        f32::NAN
    }
}

impl Columns<'_> {
    fn dots(&self, kernel: Kernel, run: &Run<'_>, queries: &Queries, out: &mut [f32]) {
        kernel.dots(self.rows(), run.picks.clone(), queries, out);
    }

    /// The error of the first row that made a run fail: the clamp has hidden infinite cosines, so
    /// the dot products are taken once more.
    #[cold]
    fn first_wrong(
        &self,
        kernel: Kernel,
        run: &Run<'_>,
        queries: &Queries,
        out: &mut [f32],
    ) -> RankError {
        self.dots(kernel, run, queries, out);
        let mut first = None;
        run.for_each_row(|i, row| {
            let inv_norm = self.inv_norms()[row];
            if first.is_some() || inv_norm == 0.0 {
                return;
            }
            if !(inv_norm.is_finite() && inv_norm > 0.0) {
                first = Some(RankError::InverseNorm {
                    row: run.base + row,
                    value: inv_norm,
                });
            } else if out
                .iter()
                .skip(i)
                .step_by(run.len())
                .any(|x| !(x * inv_norm).is_finite())
            {
                first = Some(RankError::Cosine {
                    row: run.base + row,
                });
            }
        });
        first.expect("a run that failed has a row that is wrong")
    }
}

impl Relevance for Components<'_> {
    /// Relevances as given: one "query", and no kernel.
    fn relevance(
        &self,
        _: Kernel,
        run: &Run<'_>,
        _: &Queries,
        out: &mut [f32],
    ) -> Result<(), RankError> {
        let mut wrong = None;
        run.for_each_row(|i, row| {
            out[i] = self.relevance()[row] + 0.0;
            if out[i].is_infinite() && wrong.is_none() {
                wrong = Some(run.base + row);
            }
        });
        wrong.map_or(Ok(()), |row| Err(RankError::Cosine { row }))
    }

    fn signals(&self) -> Signals<'_> {
        Components::signals(self)
    }
}

/// The ranges of the raw values over candidates seen so far. Minima and maxima of numbers without
/// NaN and -0 do not depend on the order they are taken in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    pub(super) candidates: usize,
    pub(super) relevance: [f32; 2],
    pub(super) last_access: [i64; 2],
    pub(super) importance: [f32; 2],
}

impl Extent {
    pub(super) const EMPTY: Extent = Extent {
        candidates: 0,
        relevance: [f32::INFINITY, f32::NEG_INFINITY],
        last_access: [i64::MAX, i64::MIN],
        importance: [f32::INFINITY, f32::NEG_INFINITY],
    };

    /// Takes in the candidates of a run.
    pub(super) fn add(
        &mut self,
        run: &Run<'_>,
        relevance: &[f32],
        signals: Signals<'_>,
    ) -> Result<(), RankError> {
        let candidates = relevance.iter().filter(|x| !x.is_nan()).count();
        let mut all = *self;
        all.candidates += candidates;
        let mut finite = true;
        match &run.picks {
            // The usual case, over slices: it becomes vector code.
            Picks::Range(rows) if candidates == relevance.len() => {
                let importance = &signals.importance[rows.clone()];
                finite = importance.iter().fold(true, |all, x| all & x.is_finite());
                all.relevance = widened(all.relevance, relevance);
                all.importance = widened(all.importance, importance);
                for &access in &signals.last_access[rows.clone()] {
                    all.last_access = [
                        all.last_access[0].min(access),
                        all.last_access[1].max(access),
                    ];
                }
            }
            Picks::Range(_) | Picks::List { .. } => run.for_each_row(|i, row| {
                if relevance[i].is_nan() {
                    return;
                }
                let (access, importance) = (signals.last_access[row], signals.importance[row]);
                finite &= importance.is_finite();
                all.relevance = widened(all.relevance, &[relevance[i]]);
                all.importance = widened(all.importance, &[importance]);
                all.last_access = [
                    all.last_access[0].min(access),
                    all.last_access[1].max(access),
                ];
            }),
        }
        if !finite {
            return Err(first_wrong_importance(run, relevance, signals));
        }
        *self = all;
        Ok(())
    }

    pub(super) fn merge(&mut self, other: &Extent) {
        self.candidates += other.candidates;
        for (mine, theirs) in [
            (&mut self.relevance, other.relevance),
            (&mut self.importance, other.importance),
        ] {
            *mine = [mine[0].min(theirs[0]), mine[1].max(theirs[1])];
        }
        self.last_access = [
            self.last_access[0].min(other.last_access[0]),
            self.last_access[1].max(other.last_access[1]),
        ];
    }
}

/// A range widened by values that are not NaN; -0 counts as +0.
#[inline(always)]
fn widened([min, max]: [f32; 2], values: &[f32]) -> [f32; 2] {
    const LANES: usize = 8;
    let (mut low, mut high) = ([min; LANES], [max; LANES]);
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        for j in 0..LANES {
            let x = group[j] + 0.0;
            low[j] = if x < low[j] { x } else { low[j] };
            high[j] = if x > high[j] { x } else { high[j] };
        }
    }
    let rest = rest.iter().map(|x| x + 0.0);
    [
        rest.clone().chain(low).fold(min, f32::min),
        rest.chain(high).fold(max, f32::max),
    ]
}

#[cold]
fn first_wrong_importance(run: &Run<'_>, relevance: &[f32], signals: Signals<'_>) -> RankError {
    let mut first = None;
    run.for_each_row(|i, row| {
        let value = signals.importance[row];
        if first.is_none() && !relevance[i].is_nan() && !value.is_finite() {
            first = Some(RankError::Importance {
                row: run.base + row,
                value,
            });
        }
    });
    first.expect("a run that failed has a row that is wrong")
}
