//! Gate 3: whether the memories that an insight cites carry it.

use crate::store::{ReadError, Snapshot};
use crate::stream::BoxError;
use thiserror::Error;

/// Whether evidence carries an insight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Support {
    /// It was checked, and the evidence does.
    Supported,
    /// It was checked, and the evidence does not.
    Unsupported,
    /// Nobody checked, or the check came to no end. It is no pass.
    Unchecked,
}

impl Support {
    /// One word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Support::Supported => "supported",
            Support::Unsupported => "unsupported",
            Support::Unchecked => "unchecked",
        }
    }

    /// The one with a [name](Support::name).
    pub(super) fn named(name: &str) -> Option<Support> {
        let all = [Support::Supported, Support::Unsupported, Support::Unchecked];
        all.into_iter().find(|support| support.name() == name)
    }
}

/// A check of insights: a model of entailment, a language model that judges, a person.
pub trait CheckSupport {
    /// Whether the texts of the evidence, in the order cited, carry the claim.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn check(&mut self, claim: &str, evidence: &[&str]) -> Result<Support, BoxError>;
}

/// Why an insight was not checked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SupportError {
    /// No memory has this id.
    #[error("there is no memory {id}; resolve citations first")]
    NoMemory {
        /// The id.
        id: u64,
    },
    /// A memory could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The check failed.
    #[error("checking: {0}")]
    Check(#[source] BoxError),
    /// The insight's embedding has another dimension than the store's.
    #[error("the insight's embedding has {found} elements, the store's have {expected}")]
    Dimension {
        /// Of the store.
        expected: usize,
        /// Of the insight.
        found: usize,
    },
    /// An embedding that has no direction: it is zero, or an element of it is not finite.
    #[error("{of} has no direction: it is zero or not finite")]
    NoDirection {
        /// Whose it is.
        of: String,
    },
}

/// Lets a check look at an insight and the memories that it cites.
///
/// # Errors
/// An id that names no memory, a text that cannot be read, or whatever the check fails with.
pub fn check_support(
    snapshot: &Snapshot,
    check: &mut dyn CheckSupport,
    claim: &str,
    evidence: &[u64],
) -> Result<Support, SupportError> {
    let texts = evidence
        .iter()
        .map(|&id| Ok(snapshot.text(row(snapshot, id)?)?));
    let texts = texts.collect::<Result<Vec<_>, SupportError>>()?;
    check.check(claim, &texts).map_err(SupportError::Check)
}

/// The similarity of an insight and its evidence, as the least that a check can do. It is not entailment:
/// "Klaus likes Maria" and "Klaus does not like Maria" are very similar.
///
/// The similarity is the cosine of the insight's embedding with the mean direction of the evidence's, each scaled
/// to length 1 first so that each counts the same. One memory among many that has nothing to do with the
/// insight lowers it, and one that says the same does not outweigh all others, as with the greatest cosine.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Similarity {
    /// The least similarity of what counts as supported. It is the model's: the same texts are 0.3 similar with
    /// one and 0.8 with another.
    pub threshold: f32,
}

impl Similarity {
    /// The similarity, in [-1, 1] and f64 throughout. `None`: there is no evidence, some of it has no embedding, or
    /// its directions cancel out.
    ///
    /// # Errors
    /// An id that names no memory; an embedding of another dimension or without a direction.
    pub fn of(
        snapshot: &Snapshot,
        claim: &[f32],
        evidence: &[u64],
    ) -> Result<Option<f64>, SupportError> {
        let (expected, found) = (snapshot.dim().get(), claim.len());
        if expected != found {
            return Err(SupportError::Dimension { expected, found });
        }
        let claim = direction(claim, || "the insight's embedding".to_owned())?;
        let mut sum = vec![0.0; expected];
        for &id in evidence {
            let Some(embedding) = snapshot.embedding(row(snapshot, id)?) else {
                return Ok(None);
            };
            let one = direction(&embedding, || format!("the embedding of memory {id}"))?;
            sum.iter_mut().zip(one).for_each(|(sum, x)| *sum += x);
        }
        let length = dot(&sum, &sum).sqrt();
        // Sums of opposites are 0, or what rounding makes of that.
        let cancelled = length <= evidence.len() as f64 * f64::EPSILON;
        Ok((!cancelled).then(|| (dot(&claim, &sum) / length).clamp(-1.0, 1.0)))
    }

    /// Whether the similarity reaches the threshold. Without one: [`Support::Unchecked`].
    ///
    /// # Errors
    /// As [`of`](Similarity::of).
    pub fn check(
        &self,
        snapshot: &Snapshot,
        claim: &[f32],
        evidence: &[u64],
    ) -> Result<Support, SupportError> {
        let similarity = Similarity::of(snapshot, claim, evidence)?;
        Ok(match similarity {
            None => Support::Unchecked,
            Some(cosine) if cosine >= f64::from(self.threshold) => Support::Supported,
            Some(_) => Support::Unsupported,
        })
    }
}

fn row(snapshot: &Snapshot, id: u64) -> Result<usize, SupportError> {
    let row = snapshot.row_of_id(id);
    row.ok_or(SupportError::NoMemory { id })
}

/// The embedding, scaled to length 1.
fn direction(embedding: &[f32], of: impl Fn() -> String) -> Result<Vec<f64>, SupportError> {
    let wide: Vec<f64> = embedding.iter().map(|&x| f64::from(x)).collect();
    let length = dot(&wide, &wide).sqrt();
    match length > 0.0 && length.is_finite() {
        true => Ok(wide.into_iter().map(|x| x / length).collect()),
        false => Err(SupportError::NoDirection { of: of() }),
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
