//! Gate 3: what a check says is what comes out, and similarity is no more than that.

use crate::example::{Owned, append, new_store, plain};
use memorank::kernel::Dtype;
use memorank::store::Store;
use memorank::stream::BoxError;
use memorank::stream::reflection::Support::{self, *};
use memorank::stream::reflection::{CheckSupport, Similarity, SupportError, check_support};

/// Answers in turn, and keeps what it was asked.
struct Judge {
    answers: Vec<Result<Support, BoxError>>,
    asked: Vec<(String, Vec<String>)>,
}

impl CheckSupport for Judge {
    fn check(&mut self, claim: &str, evidence: &[&str]) -> Result<Support, BoxError> {
        let evidence = evidence.iter().map(|text| (*text).to_owned()).collect();
        self.asked.push((claim.to_owned(), evidence));
        self.answers.remove(0)
    }
}

/// Ids 0 to 4 along the axes, the opposite of 0, one without an embedding, and a deleted one.
fn store() -> (tempfile::TempDir, Store) {
    let (dir, _, store) = new_store(2, Dtype::F32);
    let mut memories =
        [[1.0, 0.0], [0.0, 8.0], [-3.0, 0.0], [1.0, 1.0], [1.0, 1.0]].map(|of| plain(&of));
    memories[3].embedding = None;
    for (memory, i) in memories.iter_mut().zip(0..) {
        *memory = Owned {
            text: format!("text {i}"),
            ..memory.clone()
        };
    }
    append(&store, &memories);
    store.delete(&[4]).unwrap();
    (dir, store)
}

#[test]
fn a_check_is_given_the_texts_in_order_and_its_answer_stays_what_it_is() {
    let (_dir, store) = store();
    for answer in [Supported, Unsupported, Unchecked] {
        let mut judge = Judge {
            answers: vec![Ok(answer)],
            asked: vec![],
        };
        let found = check_support(&store.snapshot(), &mut judge, "claim", &[3, 0]);
        assert_eq!(found.unwrap(), answer);
        assert_eq!(
            judge.asked,
            [(
                "claim".to_owned(),
                vec!["text 3".to_owned(), "text 0".to_owned()]
            )]
        );
    }
}

#[test]
fn a_check_that_fails_or_cannot_be_asked_is_an_error_and_no_answer() {
    let (_dir, store) = store();
    let mut judge = Judge {
        answers: vec![Err("no network".into())],
        asked: vec![],
    };
    for id in [4, 5] {
        let found = check_support(&store.snapshot(), &mut judge, "claim", &[0, id]);
        assert!(matches!(found, Err(SupportError::NoMemory { id: told }) if told == id));
    }
    assert!(judge.asked.is_empty());
    let found = check_support(&store.snapshot(), &mut judge, "claim", &[0]);
    assert_eq!(found.unwrap_err().to_string(), "checking: no network");
}

#[test]
fn similarity_is_the_cosine_with_the_mean_direction_of_the_evidence() {
    let (_dir, store) = store();
    let of = |claim: [f32; 2], evidence: &[u64]| {
        Similarity::of(&store.snapshot(), &claim, evidence).unwrap()
    };
    let half = 0.5_f64.sqrt();
    for (claim, evidence, expected) in [
        ([2.0, 0.0], &[0][..], 1.0),
        ([2.0, 0.0], &[2], -1.0),
        ([0.0, 1e-30], &[0], 0.0),
        // Lengths do not weigh: 8 up is as much as 1 to the right.
        ([1.0, 0.0], &[0, 1], half),
        ([0.0, 1e30], &[1, 0], half),
        ([1.0, 1.0], &[1, 0], 1.0),
        ([0.0, 1.0], &[0, 1, 2], 1.0),
        ([1.0, 0.0], &[0, 0, 1], 2.0 / 5.0_f64.sqrt()),
    ] {
        let found = of(claim, evidence).unwrap();
        assert!(
            (found - expected).abs() < 1e-12,
            "{claim:?} {evidence:?}: {found}"
        );
    }
    assert_eq!(of([1.0, 0.0], &[]), None, "no evidence");
    assert_eq!(of([1.0, 0.0], &[0, 3]), None, "some has no embedding");
    assert_eq!(of([1.0, 0.0], &[0, 2]), None, "it cancels out");
}

#[test]
fn similarity_that_is_unknown_is_unchecked_whatever_the_threshold() {
    let (_dir, store) = store();
    for threshold in [-1.0, 0.5, 1.0, f32::NAN] {
        let similarity = Similarity { threshold };
        let check = |evidence: &[u64]| {
            similarity
                .check(&store.snapshot(), &[1.0, 0.0], evidence)
                .unwrap()
        };
        for evidence in [&[][..], &[3], &[0, 3], &[0, 2]] {
            assert_eq!(check(evidence), Unchecked);
        }
        // Cosines of 1, 0 and -1; the threshold itself is enough.
        let expected = [1.0, 0.0, -1.0].map(|cosine| {
            if cosine >= threshold {
                Supported
            } else {
                Unsupported
            }
        });
        assert_eq!([&[0], &[1], &[2]].map(|evidence| check(evidence)), expected);
    }
}

#[test]
fn an_embedding_that_has_no_direction_or_another_dimension_is_an_error() {
    let (_dir, store) = store();
    let of = |claim: &[f32]| Similarity::of(&store.snapshot(), claim, &[0]);
    for claim in [
        [0.0, 0.0],
        [f32::NAN, 1.0],
        [1.0, f32::INFINITY],
        [-0.0, 0.0],
    ] {
        assert!(
            matches!(of(&claim), Err(SupportError::NoDirection { .. })),
            "{claim:?}"
        );
    }
    for claim in [&[][..], &[1.0], &[1.0; 3]] {
        assert!(
            matches!(of(claim), Err(SupportError::Dimension { expected: 2, .. })),
            "{claim:?}"
        );
    }
    let gone = Similarity::of(&store.snapshot(), &[1.0, 0.0], &[4]);
    assert!(matches!(gone, Err(SupportError::NoMemory { id: 4 })));
}
