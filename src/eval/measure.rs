//! From the places of the right answers to one number.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// Where the right answers of one question are in a ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Places {
    /// How many memories answer the question. At least one.
    pub relevant: usize,
    /// The places of those that compete, counted from 1, ascending: in the ranking of all candidates by score,
    /// whatever order a preset returns its result in.
    pub found: Vec<usize>,
}

impl Places {
    /// How many of the memories that answer do not compete.
    pub fn out_of_reach(&self) -> usize {
        self.relevant - self.found.len()
    }
}

/// A measure of retrieval, in [0, 1]. A memory is relevant or it is not: there are no grades.
///
/// ```
/// use memorank::eval::{Measure, Places};
///
/// // Three memories answer; two of them are ranked, in places 1 and 4.
/// let places = Places { relevant: 3, found: vec![1, 4] };
/// let of = |name: &str| name.parse().map(|measure: Measure| measure.of(&places));
/// assert_eq!(of("recall@3")?, 1.0 / 3.0);
/// assert_eq!(of("recall@10")?, 2.0 / 3.0);
/// assert_eq!(of("precision@10")?, 2.0 / 10.0);
/// assert_eq!(of("mrr")?, 1.0);
/// # Ok::<(), memorank::eval::NoMeasure>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// `recall@k`: the share of the relevant that is among the first k.
    Recall(NonZeroUsize),
    /// `precision@k`: how many of the first k places have a relevant memory, over k, also where fewer compete.
    Precision(NonZeroUsize),
    /// `mrr` or `mrr@k`: 1 / the place of the first that is relevant; 0 if there is none (among the first k).
    ReciprocalRank(Option<NonZeroUsize>),
    /// `ndcg` or `ndcg@k`: the sum of `1 / log2(1 + place)` over the relevant (among the first k), divided by what
    /// it would be if they came first (Järvelin and Kekäläinen, *Cumulated gain-based evaluation of IR techniques*,
    /// 2002, with gains of 0 and 1).
    Ndcg(Option<NonZeroUsize>),
}

impl Measure {
    /// The measure of one question.
    pub fn of(self, places: &Places) -> f64 {
        let within = match self.cutoff() {
            Some(k) => {
                let end = places.found.partition_point(|&place| place <= k.get());
                &places.found[..end]
            }
            None => &places.found[..],
        };
        match self {
            Measure::Recall(_) => within.len() as f64 / places.relevant as f64,
            Measure::Precision(k) => within.len() as f64 / k.get() as f64,
            Measure::ReciprocalRank(_) => within.first().map_or(0.0, |&place| 1.0 / place as f64),
            Measure::Ndcg(k) => {
                let gain = |place: usize| 1.0 / (1.0 + place as f64).log2();
                let most = k.map_or(places.relevant, |k| k.get().min(places.relevant));
                let ideal: f64 = (1..=most).map(gain).sum();
                within.iter().map(|&place| gain(place)).sum::<f64>() / ideal
            }
        }
    }

    /// How many of the first places it looks at; `None`: at all.
    pub fn cutoff(self) -> Option<NonZeroUsize> {
        match self {
            Measure::Recall(k) | Measure::Precision(k) => Some(k),
            Measure::ReciprocalRank(k) | Measure::Ndcg(k) => k,
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Measure::Recall(_) => "recall",
            Measure::Precision(_) => "precision",
            Measure::ReciprocalRank(_) => "mrr",
            Measure::Ndcg(_) => "ndcg",
        })?;
        self.cutoff().map_or(Ok(()), |k| write!(f, "@{k}"))
    }
}

impl FromStr for Measure {
    type Err = NoMeasure;

    fn from_str(text: &str) -> Result<Measure, NoMeasure> {
        let no = || NoMeasure(text.to_owned());
        let (name, cutoff) = match text.split_once('@') {
            // `+5` is a number to Rust.
            Some((name, k)) if k.starts_with(|c: char| c.is_ascii_digit()) => {
                (name, Some(k.parse().map_err(|_| no())?))
            }
            Some(_) => return Err(no()),
            None => (text, None),
        };
        match (name, cutoff) {
            ("recall", Some(k)) => Ok(Measure::Recall(k)),
            ("precision", Some(k)) => Ok(Measure::Precision(k)),
            ("mrr", k) => Ok(Measure::ReciprocalRank(k)),
            ("ndcg", k) => Ok(Measure::Ndcg(k)),
            _ => Err(no()),
        }
    }
}

/// A name that is no measure's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMeasure(String);

impl fmt::Display for NoMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no measure; there are recall@K, precision@K, mrr, mrr@K, ndcg and ndcg@K, K being at least 1",
            self.0
        )
    }
}

impl std::error::Error for NoMeasure {}
