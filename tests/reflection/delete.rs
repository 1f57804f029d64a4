//! Deleting by policy: against the plainest model, and beside threads that conclude.

use crate::common::Random;
use crate::example::{Owned, contents, new_store, plain};
use memorank::kernel::Dtype;
use memorank::store::{Kind, Reference, Store, WriteError};
use memorank::stream::evidence::{
    Deletion, DeletionError, Dependant, Fault, Graph, Policy, Rules, delete, depth,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn memory(evidence: &[u64], depth: u32) -> Owned {
    let kind = match depth {
        0 => Kind::OBSERVATION,
        _ => Kind::REFLECTION,
    };
    Owned {
        kind,
        evidence: evidence.iter().map(|&id| Reference::Id(id)).collect(),
        depth,
        ..plain(&[1.0, 0.0])
    }
}

/// A store with 0 and 1 observed, 2 concluded from both, 3 from 2, and 4 from 1.
fn store() -> (tempfile::TempDir, std::path::PathBuf, Store) {
    let (dir, path, store) = new_store(2, Dtype::F32);
    for (evidence, depth) in [(&[][..], 0), (&[], 0), (&[0, 1], 1), (&[2], 2), (&[1], 1)] {
        store.append(&[memory(evidence, depth).borrowed()]).unwrap();
    }
    (dir, path, store)
}

fn live(store: &Store) -> Vec<u64> {
    let snapshot = store.snapshot();
    let rows = (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
    rows.map(|row| snapshot.id(row)).collect()
}

fn depths(store: &Store) -> BTreeMap<u64, u32> {
    let snapshot = store.snapshot();
    let rows = (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
    rows.map(|row| (snapshot.id(row), snapshot.depth(row)))
        .collect()
}

fn faults(store: &Store) -> BTreeMap<u64, Vec<Fault>> {
    let graph = Graph::of(&store.snapshot()).unwrap();
    let mut faults: BTreeMap<u64, Vec<Fault>> = BTreeMap::new();
    for finding in graph.integrity(&Rules::default()).unwrap().findings {
        faults.entry(finding.id).or_default().push(finding.fault);
    }
    faults
}

fn dependant(id: u64, is_direct: bool) -> Dependant {
    Dependant { id, is_direct }
}

/// As it is, after a compaction, and opened again.
fn at_any_time(path: &std::path::Path, store: Store, look: impl Fn(&Store)) {
    look(&store);
    store.compact().unwrap();
    look(&store);
    drop(store);
    look(&Store::open(path).unwrap());
}

// B80
#[test]
fn a_refused_deletion_deletes_nothing_and_names_what_rests_on_it() {
    let (_dir, _path, store) = store();
    let before = contents(&store.snapshot());
    let error = delete(&store, &[0], Policy::Refuse).unwrap_err();
    let told = error.to_string();
    let DeletionError::Cited(deletion) = error else {
        panic!("{told}");
    };
    assert_eq!(
        deletion.dependants,
        [dependant(2, true), dependant(3, false)]
    );
    assert!(deletion.is_refused() && deletion.deletes().is_empty());
    assert!(told.contains("2, 3 (2 in all)"), "{told}");
    assert_eq!(contents(&store.snapshot()), before);
    // With all that rests on it, nothing is left that cites it.
    let deletion = delete(&store, &[3, 0, 2, 3], Policy::Refuse).unwrap();
    assert_eq!(
        (deletion.asked, deletion.dependants),
        (vec![0, 2, 3], vec![])
    );
    assert_eq!(live(&store), [1, 4]);
    delete(&store, &[4], Policy::Refuse).unwrap();
    assert_eq!(faults(&store), BTreeMap::new());
}

// B80
#[test]
fn what_is_kept_rests_on_a_deleted_memory_and_has_the_depth_it_had() {
    let (_dir, path, store) = store();
    let before = depths(&store);
    let deletion = delete(&store, &[0, 2], Policy::Keep).unwrap();
    assert_eq!(deletion.dependants, [dependant(3, true)]);
    assert_eq!(deletion.deletes(), [0, 2]);
    delete(&store, &[1], Policy::Keep).unwrap();
    at_any_time(&path, store, |store| {
        let left = depths(store);
        assert!(
            left.iter()
                .eq(before.iter().filter(|(id, _)| [3, 4].contains(*id)))
        );
        let graph = Graph::of(&store.snapshot()).unwrap();
        assert_eq!(graph.rests_on_deleted(), [3, 4]);
        let deleted = |id| vec![Fault::Deleted { place: 0, id }];
        assert_eq!(
            faults(store),
            BTreeMap::from([(3, deleted(2)), (4, deleted(1))])
        );
        // What is concluded from them is as deep as it would have been.
        assert_eq!(depth(&store.snapshot(), &[3, 4]), 3);
    });
}

// B80
#[test]
fn a_cascade_takes_all_that_rests_on_it_and_leaves_depths_as_they_are() {
    let (_dir, path, store) = store();
    let deletion = delete(&store, &[0], Policy::Cascade).unwrap();
    assert_eq!(deletion.deletes(), [0, 2, 3]);
    at_any_time(&path, store, |store| {
        assert_eq!(depths(store), BTreeMap::from([(1, 0), (4, 1)]));
        assert_eq!(faults(store), BTreeMap::new());
        let graph = Graph::of(&store.snapshot()).unwrap();
        assert!(graph.rests_on_deleted().is_empty());
    });
}

#[test]
fn what_was_deleted_before_is_passed_over_and_what_never_was_is_an_error() {
    let (_dir, _path, store) = store();
    delete(&store, &[0], Policy::Keep).unwrap();
    for policy in [Policy::Refuse, Policy::Keep, Policy::Cascade] {
        let again = delete(&store, &[0], policy).unwrap();
        assert_eq!((again.asked, again.dependants), (vec![], vec![]));
        let error = delete(&store, &[1, 5], policy).unwrap_err();
        assert!(
            matches!(error, DeletionError::NoId { id: 5, next: 5 }),
            "{error}"
        );
    }
    assert_eq!(live(&store), [1, 2, 3, 4]);
    let exclusive = store.exclusive().unwrap();
    let error = delete(&store, &[1], Policy::Keep).unwrap_err();
    assert!(
        matches!(error, DeletionError::Write(WriteError::Busy { .. })),
        "{error}"
    );
    drop(exclusive);
}

/// By the definition: all from which a path of citations leads to one of `ids`.
fn resting_on(cites: &BTreeMap<u64, Vec<u64>>, ids: &BTreeSet<u64>) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    loop {
        let more: Vec<u64> = (cites.iter())
            .filter(|(_, cited)| {
                cited
                    .iter()
                    .any(|id| ids.contains(id) || found.contains(id))
            })
            .map(|(&id, _)| id)
            .filter(|id| !found.contains(id))
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

#[test]
fn every_policy_does_what_it_says_to_any_graph() {
    let mut random = Random(80);
    let mut met = BTreeMap::new();
    for _ in 0..100 {
        let (_dir, _, store) = new_store(2, Dtype::F32);
        let mut cites = BTreeMap::new();
        let count = 2 + random.below(10);
        let mut bulk = store.bulk().unwrap();
        bulk.allow_any_evidence();
        for id in 0..count {
            // Itself and later ones too, as an import may bring them.
            let cited: Vec<u64> = (0..random.below(3))
                .map(|_| random.below(count + 1))
                .collect();
            bulk.push(&memory(&cited, 1).borrowed()).unwrap();
            cites.insert(id, cited);
        }
        bulk.commit().unwrap();
        let gone = random.below(count);
        store.delete(&[gone]).unwrap();
        cites.remove(&gone);

        let ids: Vec<u64> = (0..1 + random.below(3))
            .map(|_| random.below(count))
            .collect();
        let asked: BTreeSet<u64> = ids.iter().copied().filter(|&id| id != gone).collect();
        let resting = resting_on(&cites, &asked);
        let dependants: BTreeSet<u64> = resting.difference(&asked).copied().collect();
        let policy = [Policy::Refuse, Policy::Keep, Policy::Cascade][random.below(3) as usize];
        let snapshot = store.snapshot();
        let plan = Deletion::plan(&Graph::of(&snapshot).unwrap(), &ids, policy).unwrap();
        assert!(plan.asked.iter().eq(&asked));
        assert!(
            plan.dependants
                .iter()
                .map(|dependant| &dependant.id)
                .eq(&dependants)
        );
        for dependant in &plan.dependants {
            let direct = cites[&dependant.id].iter().any(|id| asked.contains(id));
            assert_eq!(dependant.is_direct, direct);
        }
        let before = depths(&store);
        let refused = policy == Policy::Refuse && !dependants.is_empty();
        *met.entry(format!("{policy:?}, {refused}")).or_insert(0) += 1;
        match delete(&store, &ids, policy) {
            Ok(done) => assert_eq!(done, plan),
            Err(DeletionError::Cited(told)) if refused => assert_eq!(told, plan),
            Err(error) => panic!("{error}"),
        }
        let goes = |id: &u64| match policy {
            _ if refused => false,
            Policy::Refuse | Policy::Keep => asked.contains(id),
            Policy::Cascade => asked.contains(id) || dependants.contains(id),
        };
        let left: BTreeMap<u64, u32> = before.into_iter().filter(|(id, _)| !goes(id)).collect();
        assert_eq!(depths(&store), left);
        cites.retain(|id, _| left.contains_key(id));
        let all_gone: BTreeSet<u64> = (0..count).filter(|id| !left.contains_key(id)).collect();
        let graph = Graph::of(&store.snapshot()).unwrap();
        let resting = resting_on(&cites, &all_gone);
        assert!(graph.rests_on_deleted().iter().eq(&resting));
    }
    assert_eq!(met.len(), 4, "{met:?}");
}

#[test]
fn nothing_that_is_refused_to_be_cited_is_deleted_under_threads() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    let all: Vec<_> = (0..200).map(|_| memory(&[], 0)).collect();
    let borrowed: Vec<_> = all.iter().map(Owned::borrowed).collect();
    store.append(&borrowed).unwrap();
    // One is cited from the start, and one never.
    store.append(&[memory(&[0], 1).borrowed()]).unwrap();
    let done = AtomicBool::new(false);
    let concludes = |seed| {
        let mut random = Random(seed);
        while !done.load(Ordering::Acquire) {
            // As who reflects does: it looks whether all is still there, and appends.
            let id = random.below(199);
            let exclusive = store.exclusive().unwrap();
            if exclusive.snapshot().row_of_id(id).is_some() {
                exclusive.append(&[memory(&[id], 1).borrowed()]).unwrap();
            }
        }
    };
    let (mut deleted, mut refused) = (0, 0);
    thread::scope(|scope| {
        for seed in [3, 4, 5] {
            let concludes = &concludes;
            scope.spawn(move || concludes(seed));
        }
        for id in 0..200 {
            match delete(&store, &[id], Policy::Refuse) {
                Ok(_) => deleted += 1,
                Err(DeletionError::Cited(_)) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        done.store(true, Ordering::Release);
    });
    println!("{deleted} deleted, {refused} refused");
    assert!(deleted > 0 && refused > 0 && deleted + refused == 200);
    let graph = Graph::of(&store.snapshot()).unwrap();
    assert!(graph.rests_on_deleted().is_empty());
}
