//! First pass: the cosines of the candidates, and the ranges of all three signals.

use super::columns::{RecencyColumn, Signals, stamp_of};
use super::query::RankError;
use super::slots::{Run, Segment};
use super::{Columns, Components};
use crate::kernel::{Kernel, Loop, Picks, Queries};

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
        // What is read after the dot products comes in beside them.
        let signals = Columns::signals(self);
        kernel.prefetch(self.inv_norms(), &run.picks);
        kernel.prefetch(signals.stamps(), &run.picks);
        kernel.prefetch(signals.importance, &run.picks);
        self.dots(kernel, run, queries, out);
        let mut wrong = false;
        for cosines in out.chunks_exact_mut(run.len()) {
            match &run.picks {
                Picks::Range(range) => {
                    let inv_norms = &self.inv_norms()[range.clone()];
                    wrong |= kernel.run(Finish { cosines, inv_norms });
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

/// Makes cosines of dot products. Whether one is wrong.
struct Finish<'a> {
    cosines: &'a mut [f32],
    inv_norms: &'a [f32],
}

impl Loop for Finish<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let mut wrong = false;
        for (cosine, &inv_norm) in self.cosines.iter_mut().zip(self.inv_norms) {
            *cosine = finish(*cosine, inv_norm, &mut wrong);
        }
        wrong
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
    /// Of last accesses, or of the bits of given recencies: see [`Signals::stamps`].
    pub(super) stamps: [i64; 2],
    pub(super) importance: [f32; 2],
}

impl Extent {
    pub(super) const EMPTY: Extent = Extent {
        candidates: 0,
        relevance: [f32::INFINITY, f32::NEG_INFINITY],
        stamps: [i64::MAX, i64::MIN],
        importance: [f32::INFINITY, f32::NEG_INFINITY],
    };

    /// Takes in the candidates of a run.
    pub(super) fn add(
        &mut self,
        kernel: Kernel,
        run: &Run<'_>,
        relevance: &[f32],
        signals: Signals<'_>,
    ) -> Result<(), RankError> {
        let candidates = relevance.iter().filter(|x| !x.is_nan()).count();
        // The stamps of the run alone: other segments may hold another kind.
        let mut all = Extent {
            stamps: Extent::EMPTY.stamps,
            ..*self
        };
        let mut finite = true;
        let stamps = signals.stamps();
        match &run.picks {
            // The usual case, over slices.
            Picks::Range(rows) if candidates == relevance.len() => {
                (all, finite) = kernel.run(Widen {
                    extent: all,
                    relevance,
                    stamps: &stamps[rows.clone()],
                    importance: &signals.importance[rows.clone()],
                });
            }
            Picks::Range(_) | Picks::List { .. } => run.for_each_row(|i, row| {
                if relevance[i].is_nan() {
                    return;
                }
                let importance = signals.importance[row];
                finite &= importance.is_finite();
                all.relevance = wider(all.relevance, relevance[i] + 0.0);
                all.importance = wider(all.importance, importance + 0.0);
                all.stamps = wider(all.stamps, stamps[row]);
            }),
        }
        if !finite {
            return Err(first_wrong_importance(run, relevance, signals));
        }
        if let RecencyColumn::Given(recencies) = signals.recency
            && !all.recencies_are_sound()
        {
            return Err(first_wrong_recency(run, relevance, recencies));
        }
        all.candidates += candidates;
        all.stamps = widest(all.stamps, self.stamps);
        *self = all;
        Ok(())
    }

    /// Whether stamps that are recencies all lie in [0, 1]. -0 is negative among stamps, NaN is not between.
    fn recencies_are_sound(&self) -> bool {
        self.stamps[0] >= 0 && self.stamps[1] <= stamp_of(1.0)
    }

    pub(super) fn merge(&mut self, other: &Extent) {
        self.candidates += other.candidates;
        for (mine, theirs) in [
            (&mut self.relevance, other.relevance),
            (&mut self.importance, other.importance),
        ] {
            *mine = [mine[0].min(theirs[0]), mine[1].max(theirs[1])];
        }
        self.stamps = widest(self.stamps, other.stamps);
    }
}

/// The range of both.
fn widest(a: [i64; 2], b: [i64; 2]) -> [i64; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

/// The ranges widened by values side by side, and whether all importances are finite.
struct Widen<'a> {
    extent: Extent,
    relevance: &'a [f32],
    stamps: &'a [i64],
    importance: &'a [f32],
}

impl Loop for Widen<'_> {
    type Output = (Extent, bool);

    #[inline(always)]
    fn run(self) -> (Extent, bool) {
        let mut finite = true;
        for x in self.importance {
            finite &= x.is_finite();
        }
        let extent = Extent {
            relevance: widened(self.extent.relevance, self.relevance, |x| x + 0.0),
            importance: widened(self.extent.importance, self.importance, |x| x + 0.0),
            stamps: widened(self.extent.stamps, self.stamps, |x| x),
            ..self.extent
        };
        (extent, finite)
    }
}

/// A range widened by `f` of values that are not NaN. `f` turns -0 into +0.
#[inline(always)]
fn widened<T: Copy + PartialOrd>([min, max]: [T; 2], values: &[T], f: impl Fn(T) -> T) -> [T; 2] {
    const LANES: usize = 32;
    let (mut low, mut high) = ([min; LANES], [max; LANES]);
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        for ((low, high), &x) in low.iter_mut().zip(&mut high).zip(group) {
            [*low, *high] = wider([*low, *high], f(x));
        }
    }
    let mut range = [min, max];
    for &x in rest {
        range = wider(range, f(x));
    }
    for (low, high) in low.into_iter().zip(high) {
        range = [wider(range, low)[0], wider(range, high)[1]];
    }
    range
}

/// A range widened by `x`, unless that is NaN.
#[inline(always)]
fn wider<T: Copy + PartialOrd>([min, max]: [T; 2], x: T) -> [T; 2] {
    [if x < min { x } else { min }, if x > max { x } else { max }]
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

#[cold]
fn first_wrong_recency(run: &Run<'_>, relevance: &[f32], recencies: &[f64]) -> RankError {
    let mut first = None;
    run.for_each_row(|i, row| {
        let value = recencies[row];
        let sound = (0.0..=1.0).contains(&value) && value.is_sign_positive();
        if first.is_none() && !relevance[i].is_nan() && !sound {
            first = Some(RankError::Recency {
                row: run.base + row,
                value,
            });
        }
    });
    first.expect("a run that failed has a row that is wrong")
}
