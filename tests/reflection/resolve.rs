//! Gate 2: each way in which a citation can fail to hold is named, and nothing else is.

use crate::common::Random;
use crate::example::{Owned, append, new_store, plain};
use memorank::kernel::Dtype;
use memorank::store::Store;
use memorank::stream::reflection::CitationFault::{self, *};
use memorank::stream::reflection::{Base, Shown, resolve};

const NOW: i64 = 1_000;

/// Ids 0 to 9: 3 was deleted, 5 expired by now, 6 is of the future, 7 is of the future and expired before it
/// begins, 8 expires later.
fn store() -> (tempfile::TempDir, Store) {
    let (dir, _, store) = new_store(2, Dtype::F32);
    let memories: Vec<_> = (0..10)
        .map(|i| Owned {
            created: if i == 6 || i == 7 { NOW + 1 } else { NOW },
            expiry: [
                None,
                None,
                None,
                None,
                None,
                Some(NOW),
                None,
                Some(NOW - 1),
                Some(NOW + 1),
                None,
            ][i],
            ..plain(&[1.0, 0.0])
        })
        .collect();
    append(&store, &memories[..6]);
    store.checkpoint().unwrap();
    append(&store, &memories[6..]);
    store.delete(&[3]).unwrap();
    (dir, store)
}

fn resolved(
    store: &Store,
    ids: &[u64],
    base: Base,
    citations: &[u32],
) -> Result<Vec<u64>, Vec<(usize, u32, CitationFault)>> {
    let shown = Shown {
        ids,
        base,
        now: NOW,
    };
    let told = |problems: Vec<_>| problems.into_iter().map(told).collect();
    resolve(&store.snapshot(), &shown, citations).map_err(told)
}

fn told(problem: memorank::stream::reflection::CitationProblem) -> (usize, u32, CitationFault) {
    assert!(problem.to_string().starts_with(&format!(
        "citation {} is {}: ",
        problem.place, problem.index
    )));
    (problem.place, problem.index, problem.fault)
}

#[test]
fn what_was_corrected_is_named_with_its_correction() {
    let (_dir, store) = store();
    let correction = Owned {
        supersedes: Some(4),
        ..plain(&[1.0, 0.0])
    };
    append(&store, &[correction]);
    let superseded = Superseded { id: 4, by: 10 };
    assert_eq!(
        resolved(&store, &[4, 10], Base::One, &[1, 2]),
        Err(vec![(0, 1, superseded)])
    );
    assert_eq!(resolved(&store, &[4, 10], Base::One, &[2]), Ok(vec![10]));
}

#[test]
fn ids_come_in_the_order_of_the_citations_from_either_base() {
    let (_dir, store) = store();
    let ids = [9, 0, 4, 1, 8];
    assert_eq!(
        resolved(&store, &ids, Base::Zero, &[4, 0, 2]),
        Ok(vec![8, 9, 4])
    );
    assert_eq!(
        resolved(&store, &ids, Base::One, &[5, 1, 3]),
        Ok(vec![8, 9, 4])
    );
    assert_eq!(resolved(&store, &ids, Base::One, &[]), Ok(vec![]));
    assert_eq!(resolved(&store, &[], Base::Zero, &[]), Ok(vec![]));
}

#[test]
fn out_of_range_index() {
    let (_dir, store) = store();
    for shown in 0..4 {
        let ids = &[0, 1, 2, 4][..shown];
        for index in (0..6).chain([u32::MAX]) {
            let fault = Err(vec![(0, index, OutOfRange { shown })]);
            let zero = ids.get(index as usize).map(|&id| vec![id]);
            assert_eq!(
                resolved(&store, ids, Base::Zero, &[index]),
                zero.ok_or(()).or(fault.clone())
            );
            let one = (index as usize)
                .checked_sub(1)
                .and_then(|at| ids.get(at))
                .map(|&id| vec![id]);
            assert_eq!(
                resolved(&store, ids, Base::One, &[index]),
                one.ok_or(()).or(fault)
            );
        }
    }
}

#[test]
fn every_fault_is_named_beside_all_others_b81() {
    let (_dir, store) = store();
    let ids = [0, 3, 5, 6, 7, 8, 10, u64::MAX, 0];
    let found = resolved(
        &store,
        &ids,
        Base::Zero,
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1],
    );
    let expected = vec![
        (1, 1, Deleted { id: 3 }),
        (2, 2, Expired { id: 5 }),
        (3, 3, Later { id: 6 }),
        (4, 4, Later { id: 7 }),
        (4, 4, Expired { id: 7 }),
        (6, 6, ItSelf { id: 10 }),
        (7, 7, ItSelf { id: u64::MAX }),
        (8, 8, Duplicate { first: 0 }),
        (9, 9, OutOfRange { shown: 9 }),
        (10, 0, Duplicate { first: 0 }),
        (11, 1, Duplicate { first: 1 }),
    ];
    assert_eq!(found, Err(expected));
}

#[test]
fn each_citation_is_judged_alone_but_for_duplicates() {
    let (_dir, store) = store();
    let ids: Vec<u64> = (0..12).collect();
    let mut random = Random(2);
    for _ in 0..5_000 {
        let citations: Vec<u32> = (0..random.below(8))
            .map(|_| random.below(14) as u32)
            .collect();
        let found = resolved(&store, &ids, Base::Zero, &citations);
        let mut expected = Vec::new();
        for (place, &index) in citations.iter().enumerate() {
            let first = citations.iter().position(|&other| other == index).unwrap();
            match resolved(&store, &ids, Base::Zero, &[index]) {
                // Cited again, a number that is out of range is only that.
                _ if index < 12 && first < place => {
                    expected.push((place, index, Duplicate { first }))
                }
                Ok(one) => assert_eq!(one, [u64::from(index)]),
                Err(faults) => expected.extend(
                    faults
                        .into_iter()
                        .map(|(_, index, fault)| (place, index, fault)),
                ),
            }
        }
        match expected.is_empty() {
            true => assert!(
                found
                    .unwrap()
                    .into_iter()
                    .eq(citations.iter().map(|&index| u64::from(index)))
            ),
            false => assert_eq!(found, Err(expected)),
        }
    }
}

#[test]
fn what_resolves_can_be_stored_as_evidence() {
    use memorank::store::{Kind, Reference};
    let (_dir, store) = store();
    let ids = resolved(&store, &[9, 0, 4], Base::One, &[3, 1]).unwrap();
    let reflection = Owned {
        kind: Kind::REFLECTION,
        evidence: ids.into_iter().map(Reference::Id).collect(),
        depth: 1,
        ..plain(&[1.0, 0.0])
    };
    let row = append(&store, &[reflection]).start as usize;
    let evidence = store.snapshot().memory(row).unwrap().evidence;
    assert_eq!(evidence, [Reference::Id(4), Reference::Id(9)]);
}
