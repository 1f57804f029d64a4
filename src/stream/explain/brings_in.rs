//! The least changes that bring a memory in.
//!
//! With the other values as they are, the more important or recent a row, the smaller the lead of any row over
//! it, under min-max too, whose ranges it may widen: so the least value is found by bisection. A weight
//! moves each lead along a line; the sweep counts, from the present weight outwards, how many rows are ahead
//! between the weights at which one of them draws level. Rounding decides what is close, so every answer
//! has been ranked, and so has the last value found before it, which is not in.

use super::BringsIn;
use super::contest::Contest;
use crate::scoring::{Hit, RankError, Scoring, Ties, Weights};

pub(super) fn find(contest: &mut Contest<'_>, hit: &Hit) -> Result<BringsIn, RankError> {
    let rivals = Rivals::new(contest, hit)?;
    let mut weights = [None; 3];
    for (component, weight) in weights.iter_mut().enumerate() {
        *weight = nearest_weight(contest, &rivals, hit.row, component)?;
    }
    Ok(BringsIn {
        importance: least_importance(contest, hit.row)?,
        last_access: least_access(contest, hit.row)?,
        weights,
    })
}

fn least_importance(contest: &mut Contest<'_>, row: usize) -> Result<Option<f32>, RankError> {
    let (old, most) = (contest.importance(row), f32::MAX);
    // A total that overflows is above all others, and no answer.
    let is_in = |contest: &mut Contest<'_>, key: i64| match contest
        .is_in_with_importance(row, value_of(key))
    {
        Err(RankError::Overflow { .. }) => Ok(true),
        other => other,
    };
    let (old, most) = (key_of(old), key_of(most));
    let least = least(old, most, |key| is_in(contest, key))?.map(value_of);
    match least {
        // + 0.0: the least may be -0.
        Some(least) if contest.is_in_with_importance(row, least).unwrap_or(false) => {
            Ok(Some(least + 0.0))
        }
        Some(_) | None => Ok(None),
    }
}

fn least_access(contest: &mut Contest<'_>, row: usize) -> Result<Option<i64>, RankError> {
    match contest.last_access(row) {
        Some(old) if old < contest.now() => {
            let now = contest.now();
            least(old, now, |access| contest.is_in_with_access(row, access))
        }
        Some(_) | None => Ok(None),
    }
}

/// A whole number that orders as the finite number does.
fn key_of(value: f32) -> i64 {
    let bits = i64::from(value.to_bits().cast_signed());
    if bits < 0 {
        i64::from(i32::MIN) - 1 - bits
    } else {
        bits
    }
}

fn value_of(key: i64) -> f32 {
    let bits = if key < 0 {
        i64::from(i32::MIN) - 1 - key
    } else {
        key
    };
    f32::from_bits(bits as u32)
}

/// The least number that is in, of those above `out`, up to `most`.
fn least(
    mut out: i64,
    most: i64,
    mut is_in: impl FnMut(i64) -> Result<bool, RankError>,
) -> Result<Option<i64>, RankError> {
    if most <= out || !is_in(most)? {
        return Ok(None);
    }
    let mut inside = most;
    while inside.abs_diff(out) > 1 {
        let between = out.midpoint(inside);
        if is_in(between)? {
            inside = between;
        } else {
            out = between;
        }
    }
    Ok(Some(inside))
}

/// All candidates but one, as they compare with that one.
struct Rivals {
    /// The lead in each component, normalised.
    leads: Vec<[f64; 3]>,
    /// Whether equal totals are in the rival's favour.
    wins_ties: Vec<bool>,
}

impl Rivals {
    fn new(contest: &mut Contest<'_>, hit: &Hit) -> Result<Rivals, RankError> {
        let normalized = |hit: &Hit| {
            [hit.relevance, hit.recency, hit.importance].map(|component| component.normalized)
        };
        let own = normalized(hit);
        let ties = contest.ties();
        let (mut leads, mut wins_ties, mut passed) = (Vec::new(), Vec::new(), false);
        contest.for_each_hit(|rival| {
            if rival.row == hit.row {
                passed = true;
                return;
            }
            let theirs = normalized(rival);
            leads.push([0, 1, 2].map(|i| theirs[i] - own[i]));
            wins_ties.push(match ties {
                Ties::Row => rival.row < hit.row,
                Ties::Listed => !passed,
            });
        })?;
        Ok(Rivals { leads, wins_ties })
    }

    /// For every rival the lead but for one component, and the lead in that component, which its weight multiplies.
    fn lines(&self, weights: [f64; 3], component: usize) -> impl Iterator<Item = ([f64; 2], bool)> {
        let lines = self.leads.iter().map(move |leads| {
            let others = (0..3).filter(|&i| i != component);
            let rest = others.map(|i| weights[i] * leads[i]).sum::<f64>();
            [rest, leads[component]]
        });
        lines.zip(self.wins_ties.iter().copied())
    }
}

fn array(weights: Weights) -> [f64; 3] {
    [weights.relevance, weights.recency, weights.importance]
}

fn with_weight(scoring: &Scoring, component: usize, weight: f64) -> Scoring {
    let mut weights = array(scoring.weights);
    weights[component] = weight;
    let [relevance, recency, importance] = weights;
    Scoring {
        weights: Weights {
            relevance,
            recency,
            importance,
        },
        ..*scoring
    }
}

/// The weight of a component, nearest to its present one, that brings the row in.
fn nearest_weight(
    contest: &mut Contest<'_>,
    rivals: &Rivals,
    row: usize,
    component: usize,
) -> Result<Option<f64>, RankError> {
    let scoring = *contest.scoring();
    // + 0.0: a weight may be -0, whose bits are not those of a small number.
    let old = array(scoring.weights)[component] + 0.0;
    let k = contest.k();
    let mut is_in = |weight: f64| {
        match contest.is_in(row, &with_weight(&scoring, component, weight)) {
            // A weight beyond what can be added up is no answer.
            Err(RankError::Scoring(_) | RankError::Overflow { .. }) => Ok(false),
            other => other,
        }
    };
    let mut nearest = None;
    for upwards in [true, false] {
        let lines = rivals.lines(array(scoring.weights), component);
        for [near, far] in openings(lines, old, upwards, k) {
            if let Some(found) = edge(near, far, old, &mut is_in)? {
                let distance = |weight: f64| (weight - old).abs();
                if nearest.is_none_or(|other| distance(found) < distance(other)) {
                    nearest = Some(found);
                }
                break;
            }
        }
    }
    Ok(nearest)
}

/// The stretches of weights, from `old` in one direction, with fewer than k rivals ahead: near end and far end of
/// each, which are the same where ties alone open it.
fn openings(
    lines: impl Iterator<Item = ([f64; 2], bool)>,
    old: f64,
    upwards: bool,
    k: usize,
) -> Vec<[f64; 2]> {
    let end = if upwards { f64::INFINITY } else { 0.0 };
    let mut ahead = 0;
    let mut levels = Vec::new();
    for ([rest, slope], wins_ties) in lines {
        // + 0.0: a weight is never -0.
        let weight = -rest / slope + 0.0;
        let gains = (slope > 0.0) == upwards;
        let passed = if upwards {
            weight <= old
        } else {
            weight >= old
        };
        if slope == 0.0 {
            ahead += usize::from(rest > 0.0 || rest == 0.0 && wins_ties);
        } else if passed {
            ahead += usize::from(gains);
        } else {
            ahead += usize::from(!gains);
            if weight >= 0.0 && weight.is_finite() {
                levels.push(Level {
                    weight,
                    gains,
                    wins_ties,
                });
            }
        }
    }
    levels.sort_unstable_by(|a, b| {
        let ascending = a.weight.total_cmp(&b.weight);
        if upwards {
            ascending
        } else {
            ascending.reverse()
        }
    });
    let mut openings = Vec::new();
    let mut near = old;
    for together in levels.chunk_by(|a, b| a.weight == b.weight) {
        let far = together[0].weight;
        let some = |f: fn(&Level) -> bool| together.iter().filter(|level| f(level)).count();
        let open = ahead < k;
        if open {
            openings.push([near, far]);
        }
        ahead -= some(|level| !level.gains);
        let at_level = ahead + some(|level| level.wins_ties);
        ahead += some(|level| level.gains);
        if !open && ahead >= k && at_level < k {
            openings.push([far, far]);
        }
        near = far;
    }
    if ahead < k {
        openings.push([near, end]);
    }
    openings
}

/// Where a rival draws level.
struct Level {
    weight: f64,
    /// Whether it is ahead beyond, and not before.
    gains: bool,
    wins_ties: bool,
}

/// The relative distance at which the edge of an opening counts as found.
const CLOSE: f64 = 1e-9;

/// The weight in an opening, or where rounding has moved it, that is in and next to one nearer to `old` that is
/// not.
fn edge(
    near: f64,
    far: f64,
    old: f64,
    is_in: &mut impl FnMut(f64) -> Result<bool, RankError>,
) -> Result<Option<f64>, RankError> {
    let away = if near > old || far > near { 1.0 } else { -1.0 };
    let middle = match far.is_infinite() {
        true => 2.0 * near + 1.0,
        false => near.midpoint(far),
    };
    let within = |weight: f64| (weight - near) * away > 0.0 && (far - weight) * away >= 0.0;
    let close = near * (1.0 + away * CLOSE);
    let at_near = near != old && is_in(near)?;
    let mut inside = at_near.then_some(near);
    for weight in [close, middle] {
        if inside.is_none() && within(weight) && is_in(weight)? {
            inside = Some(weight);
        }
    }
    let Some(mut inside) = inside else {
        return Ok(None);
    };
    // Where a tie or a rounding lets it in at the near end already, the edge lies before that.
    let mut out = near;
    if at_near {
        let before = near * (1.0 - away * CLOSE);
        out = if (before - old) * away > 0.0 && !is_in(before)? {
            before
        } else {
            old
        };
    }
    while (inside - out).abs() > CLOSE * inside {
        // By bits: weights are not negative, and may lie magnitudes apart.
        let between = f64::from_bits(inside.to_bits().midpoint(out.to_bits()));
        if between == inside || between == out {
            break;
        }
        if is_in(between)? {
            inside = between;
        } else {
            out = between;
        }
    }
    Ok(Some(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_the_numbers_do_and_are_neighbours_where_they_are() {
        let numbers = [
            f32::MIN,
            -1.0,
            -f32::MIN_POSITIVE,
            -1e-45,
            -0.0,
            0.0,
            1e-45,
            0.5,
            1.0,
            f32::MAX,
        ];
        assert!(numbers.map(key_of).is_sorted_by(|a, b| a < b));
        for number in numbers {
            assert_eq!(value_of(key_of(number)).to_bits(), number.to_bits());
            if number < f32::MAX && number != 0.0 && number != -1e-45 {
                assert_eq!(value_of(key_of(number) + 1), number.next_up());
            }
        }
        assert_eq!(key_of(0.0) - key_of(-0.0), 1);
    }

    #[test]
    fn bisection_finds_the_least_that_is_in_over_all_of_i64() {
        for [out, most] in [[i64::MIN, i64::MAX], [-3, 4], [-1, 0], [5, 6]] {
            for wanted in [out.saturating_add(1), out.midpoint(most), most] {
                if wanted > out {
                    let found = least(out, most, |x| Ok(x >= wanted)).unwrap();
                    assert_eq!(found, Some(wanted), "{out} {most}");
                }
            }
            assert_eq!(least(out, most, |_| Ok(false)), Ok(None));
        }
        assert_eq!(least(4, 4, |_| Ok(true)), Ok(None));
    }

    #[test]
    fn openings_lie_between_the_weights_where_rivals_draw_level() {
        // Ahead below 2; ahead above 3; always ahead; equal, which it wins.
        let rivals = [
            ([2.0, -1.0], false),
            ([-3.0, 1.0], false),
            ([1.0, 0.0], false),
            ([0.0, 0.0], true),
        ];
        let found = |old, upwards, k| openings(rivals.into_iter(), old, upwards, k);
        assert_eq!(found(1.0, true, 3), [[2.0, 3.0]]);
        assert_eq!(found(1.0, false, 3), [] as [[f64; 2]; 0]);
        assert_eq!(found(5.0, false, 3), [[3.0, 2.0]]);
        assert_eq!(found(5.0, true, 3), [] as [[f64; 2]; 0]);
        assert_eq!(found(5.0, true, 4), [[5.0, f64::INFINITY]]);
        assert_eq!(found(5.0, true, 2), [] as [[f64; 2]; 0]);
        // One falls behind where the other goes ahead, and both lose ties.
        let crossing = [([2.0, -1.0], false), ([-2.0, 1.0], false)];
        let found = openings(crossing.into_iter(), 1.0, true, 1);
        assert_eq!(found, [[2.0, 2.0]]);
    }
}
