//! What is asked, of which rows, and what can be wrong with it.

use super::settings::ScoringError;
use crate::kernel::QueryError;
use std::fmt;

/// One query.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The query's embedding, of any length but 0: it is divided by its norm.
    pub embedding: &'a [f32],
    /// The moment of asking, in the ticks of the last-access column.
    pub now: i64,
    /// How many hits at most. Any number: no memory is reserved beyond the number of candidates.
    pub k: usize,
    /// Which rows compete.
    pub candidates: Candidates<'a>,
    /// What orders equal totals.
    pub ties: Ties,
}

impl<'a> Query<'a> {
    /// All rows compete, equal totals are ordered by ascending row.
    pub fn new(embedding: &'a [f32], now: i64, k: usize) -> Query<'a> {
        Query {
            embedding,
            now,
            k,
            candidates: Candidates::All,
            ties: Ties::Row,
        }
    }

    /// The same query of these candidates.
    pub fn of(self, candidates: Candidates<'a>) -> Query<'a> {
        Query { candidates, ..self }
    }
}

/// The rows that compete. Of these, rows without a vector never do.
#[derive(Clone, Copy, Debug)]
pub enum Candidates<'a> {
    /// Every row.
    All,
    /// Row `i` where bit `i % 64` of word `i / 64` is set. One word per 64 rows begun; bits beyond
    /// the last row are 0.
    Mask(&'a [u64]),
    /// These rows, each at most once, in any order. The order counts for [`Ties::Listed`] and for
    /// [`Recency::Position`](super::Recency::Position).
    Rows(&'a [u32]),
}

impl Candidates<'_> {
    /// Whether both are the same borrowed set, so that one pass can serve both.
    pub(super) fn is_same(&self, other: &Candidates<'_>) -> bool {
        match (self, other) {
            (Candidates::All, Candidates::All) => true,
            (Candidates::Mask(a), Candidates::Mask(b)) => std::ptr::eq(*a, *b),
            (Candidates::Rows(a), Candidates::Rows(b)) => std::ptr::eq(*a, *b),
            (Candidates::All | Candidates::Mask(_) | Candidates::Rows(_), _) => false,
        }
    }
}

/// What orders equal totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Ties {
    /// Ascending row.
    Row,
    /// The order in which the candidates are listed.
    Listed,
}

/// Why a ranking was refused.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RankError {
    /// The scoring is out of range.
    Scoring(ScoringError),
    /// The query embedding cannot be used.
    Query(QueryError),
    /// A segment has another dimension than the first.
    SegmentDimension {
        /// Index of the segment.
        segment: usize,
        /// Its dimension.
        found: usize,
        /// The first segment's.
        expected: usize,
    },
    /// More than 2^32 - 1 rows in all segments.
    TooManyRows {
        /// Rows found.
        rows: usize,
    },
    /// A mask has not one word for every 64 rows begun.
    MaskLength {
        /// Words found.
        found: usize,
        /// Words needed.
        expected: usize,
    },
    /// A listed or masked row does not exist.
    NoSuchRow {
        /// The row.
        row: usize,
        /// Rows in all segments.
        rows: usize,
    },
    /// A row is listed twice.
    ListedTwice {
        /// The row.
        row: usize,
    },
    /// The inverse norm is negative, infinite or NaN.
    InverseNorm {
        /// The row.
        row: usize,
        /// The value found.
        value: f32,
    },
    /// The cosine is infinite or NaN: the row holds such an element, or its inverse norm is not its own. Or
    /// a relevance given for the row is infinite.
    Cosine {
        /// The row.
        row: usize,
    },
    /// The importance is infinite or NaN.
    Importance {
        /// The row.
        row: usize,
        /// The value found.
        value: f32,
    },
    /// The recency given for the row lies outside [0, 1], or is -0 or NaN.
    Recency {
        /// The row.
        row: usize,
        /// The value found.
        value: f64,
    },
    /// Recency goes by age, and a segment has recencies in place of last accesses.
    NoLastAccess {
        /// Index of the segment.
        segment: usize,
    },
    /// Recency is [given](super::Recency::Given), and a segment has last accesses in place of recencies.
    NoRecency {
        /// Index of the segment.
        segment: usize,
    },
    /// Without min-max, weights and importances (or relevances of the caller's own) are together so
    /// large that a total could overflow.
    Overflow {
        /// The largest importance among the candidates.
        importance: f64,
    },
}

impl fmt::Display for RankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankError::Scoring(e) => e.fmt(f),
            RankError::Query(e) => e.fmt(f),
            RankError::SegmentDimension {
                segment,
                found,
                expected,
            } => {
                write!(
                    f,
                    "segment {segment} has {found} elements per row, the first {expected}"
                )
            }
            RankError::TooManyRows { rows } => {
                write!(
                    f,
                    "{rows} rows are more than one ranking can take (2^32 - 1)"
                )
            }
            RankError::MaskLength { found, expected } => {
                write!(f, "the mask has {found} words, the rows need {expected}")
            }
            RankError::NoSuchRow { row, rows } => {
                write!(f, "row {row} is a candidate, but there are {rows} rows")
            }
            RankError::ListedTwice { row } => write!(f, "row {row} is listed twice"),
            RankError::InverseNorm { row, value } => {
                write!(
                    f,
                    "row {row}: the inverse norm is {value}; compute it with inv_norms"
                )
            }
            RankError::Cosine { row } => write!(
                f,
                "row {row}: the relevance is not finite; an element is not, or the inverse norm is wrong"
            ),
            RankError::Importance { row, value } => {
                write!(f, "row {row}: the importance is {value}; it must be finite")
            }
            RankError::Recency { row, value } => {
                write!(
                    f,
                    "row {row}: the recency is {value}; it must lie in [0, 1], and 0 without a sign"
                )
            }
            RankError::NoLastAccess { segment } => write!(
                f,
                "segment {segment} has recencies and no last accesses, which recency by age is made of; \
                 score it with Recency::Given"
            ),
            RankError::NoRecency { segment } => write!(
                f,
                "segment {segment} has last accesses and no recencies, which the scoring says are given; \
                 make it with with_recency"
            ),
            RankError::Overflow { importance } => write!(
                f,
                "the weights times relevances and importances up to {importance:e} overflow; \
                 use smaller weights"
            ),
        }
    }
}

impl std::error::Error for RankError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RankError::Scoring(e) => Some(e),
            RankError::Query(e) => Some(e),
            _ => None,
        }
    }
}

impl From<ScoringError> for RankError {
    fn from(e: ScoringError) -> RankError {
        RankError::Scoring(e)
    }
}

impl From<QueryError> for RankError {
    fn from(e: QueryError) -> RankError {
        RankError::Query(e)
    }
}
