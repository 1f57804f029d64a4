//! The graph of evidence: what it says of every reference, walks, depth, and what integrity finds.

use crate::common::Random;
use crate::example::{Owned, new_store, plain};
use memorank::kernel::Dtype;
use memorank::store::{Kind, Reference, Snapshot, Store};
use memorank::stream::evidence::{Branch, Citation, Fault, Graph, Rules, depth};
use std::collections::{BTreeMap, BTreeSet};

fn observation() -> Owned {
    plain(&[1.0, 0.0])
}

fn reflection(evidence: &[u64], depth: u32) -> Owned {
    Owned {
        kind: Kind::REFLECTION,
        evidence: evidence.iter().map(|&id| Reference::Id(id)).collect(),
        depth,
        ..observation()
    }
}

/// A store of these memories, whatever they cite.
fn stored(memories: &[Owned]) -> (tempfile::TempDir, Store) {
    let (dir, _, store) = new_store(2, Dtype::F32);
    let mut bulk = store.bulk().unwrap();
    bulk.allow_any_evidence();
    for memory in memories {
        bulk.push(&memory.borrowed()).unwrap();
    }
    bulk.commit().unwrap();
    (dir, store)
}

fn graph(store: &Store) -> Graph {
    Graph::of(&store.snapshot()).unwrap()
}

/// What is found under the default rules, by id.
fn faults(store: &Store) -> Vec<(u64, Fault)> {
    let integrity = graph(store).integrity(&Rules::default()).unwrap();
    assert_eq!(integrity.memories, store.snapshot().len());
    let findings = integrity.findings.into_iter();
    findings
        .map(|finding| (finding.id, finding.fault))
        .collect()
}

fn tree(graph: &Graph, id: u64, limit: usize) -> Vec<(usize, Citation<'_>, bool)> {
    let branches = graph.tree(id, limit).branches.into_iter();
    branches
        .map(
            |Branch {
                 level,
                 citation,
                 seen,
                 ..
             }| (level, citation, seen),
        )
        .collect()
}

#[test]
fn nested_reflection() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    let add = |memory: Owned| store.append(&[memory.borrowed()]).unwrap().start;
    let seen = [add(observation()), add(observation())];
    let mut last = add(reflection(&seen, depth(&store.snapshot(), &seen)));
    for expected in 2..40 {
        let evidence = [seen[0], last];
        let above = depth(&store.snapshot(), &evidence);
        assert_eq!(above, expected);
        last = add(reflection(&evidence, above));
    }
    assert_eq!(faults(&store), []);
    let graph = graph(&store);
    assert!(graph.cited_by(seen[0]).eq(2..=last));
    assert_eq!(graph.dependants(seen[1]), (2..=last).collect::<Vec<_>>());
    let top = tree(&graph, last, 4);
    let live = Citation::Live;
    assert_eq!(
        top,
        [
            (0, live(last), false),
            (1, live(0), false),
            (1, live(last - 1), false),
            (2, live(0), true)
        ]
    );
}

#[test]
fn the_depth_of_what_cites_nothing_that_is_there_is_one() {
    let (_dir, store) = stored(&[
        observation(),
        reflection(&[], 1),
        reflection(&[1], u32::MAX),
    ]);
    let snapshot = store.snapshot();
    assert_eq!(depth(&snapshot, &[]), 1);
    assert_eq!(depth(&snapshot, &[7, 3]), 1);
    assert_eq!(depth(&snapshot, &[0]), 1);
    assert_eq!(depth(&snapshot, &[0, 1, 9]), 2);
    assert_eq!(depth(&snapshot, &[2]), u32::MAX, "it cannot go higher");
}

#[test]
fn what_rests_on_a_corrected_memory_is_found_and_keeps_its_depth() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    let add = |memory: Owned| store.append(&[memory.borrowed()]).unwrap().start;
    add(observation());
    add(reflection(&[0], 1));
    add(reflection(&[1], 2));
    let correction = Owned {
        supersedes: Some(0),
        ..observation()
    };
    assert_eq!(add(correction), 3);
    // It says what was wrong with the one that it corrects.
    let corrects_what_it_cites = Owned {
        supersedes: Some(2),
        ..reflection(&[2, 3], 3)
    };
    assert_eq!(add(corrects_what_it_cites), 4);
    let found = [(
        1,
        Fault::Superseded {
            place: 0,
            id: 0,
            by: 3,
        },
    )];
    assert_eq!(faults(&store), found);
    store.compact().unwrap();
    assert_eq!(faults(&store), found);
    let snapshot = store.snapshot();
    assert_eq!(
        [0, 1, 2, 3, 4].map(|row| snapshot.depth(row)),
        [0, 1, 2, 0, 3]
    );
}

#[test]
fn dangling_citation() {
    let broken = Owned {
        evidence: vec![
            Reference::Missing("node_17".into()),
            Reference::Id(0),
            Reference::Id(77),
            Reference::Missing(String::new()),
        ],
        ..reflection(&[], 1)
    };
    let (_dir, store) = stored(&[observation(), broken]);
    let graph = graph(&store);
    let expected = [
        Citation::Missing("node_17"),
        Citation::Live(0),
        Citation::Unknown(77),
        Citation::Missing(""),
    ];
    assert!(graph.cites(1).eq(expected));
    let dangling = |place, named: &str| {
        let named = named.to_owned();
        (1, Fault::Dangling { place, named })
    };
    // The depth is as the rest gives it.
    assert_eq!(
        faults(&store),
        [dangling(0, "node_17"), dangling(2, "77"), dangling(3, "")]
    );
}

#[test]
fn deleted_evidence_is_told_before_and_after_a_restart_and_a_compaction_b80() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    for memory in [
        observation(),
        observation(),
        reflection(&[1, 0], 1),
        reflection(&[2, 0], 2),
    ] {
        store.append(&[memory.borrowed()]).unwrap();
    }
    store.delete(&[0, 2]).unwrap();
    let check = |store: &Store| {
        let graph = graph(store);
        assert!(
            graph
                .cites(3)
                .eq([Citation::Deleted(2), Citation::Deleted(0)])
        );
        assert!(graph.cites(2).eq([]), "a deleted memory cites nothing");
        assert!(graph.cited_by(0).eq([3]));
        assert_eq!(
            graph.dependants(2),
            [3],
            "what was concluded from it is still found"
        );
        let (first, second) = (
            Fault::Deleted { place: 0, id: 2 },
            Fault::Deleted { place: 1, id: 0 },
        );
        // The depth was right when it was stored.
        assert_eq!(faults(store), [(3, first), (3, second)]);
    };
    check(&store);
    store.checkpoint().unwrap();
    check(&store);
    store.compact().unwrap();
    check(&store);
}

#[test]
fn each_fault_is_found_with_its_place_b81() {
    let chat = Owned {
        kind: Kind::CHAT,
        ..observation()
    };
    let cites = |kind: Kind, evidence: &[u64], depth| Owned {
        kind,
        ..reflection(evidence, depth)
    };
    let (_dir, store) = stored(&[
        observation(),
        chat,
        reflection(&[], 1),
        reflection(&[0, 3, 0], 1),
        reflection(&[5, 0], 1),
        reflection(&[4, 0, 5], 2),
        cites(Kind::OBSERVATION, &[1], 0),
        cites(Kind::PLAN, &[1], 1),
        reflection(&[0], 0),
        reflection(&[8, 3], 1),
        Owned {
            depth: 3,
            ..observation()
        },
        reflection(&[99, 99], 1),
        reflection(&[0, 1, 2, 10], 2),
    ]);
    let ninety_nine = || "99".to_owned();
    let expected = [
        (2, Fault::Empty),
        (3, Fault::ItSelf { place: 1 }),
        (3, Fault::Duplicate { place: 2, first: 0 }),
        (4, Fault::Later { place: 0, id: 5 }),
        (4, Fault::Cycle),
        (5, Fault::ItSelf { place: 2 }),
        (5, Fault::Cycle),
        (6, Fault::WrongKind),
        (7, Fault::WrongKind),
        (
            7,
            Fault::DepthMismatch {
                stored: 1,
                expected: 0,
            },
        ),
        (
            8,
            Fault::DepthMismatch {
                stored: 0,
                expected: 1,
            },
        ),
        // By what 8 should have.
        (
            9,
            Fault::DepthMismatch {
                stored: 1,
                expected: 2,
            },
        ),
        (
            10,
            Fault::DepthMismatch {
                stored: 3,
                expected: 0,
            },
        ),
        (
            11,
            Fault::Dangling {
                place: 0,
                named: ninety_nine(),
            },
        ),
        (
            11,
            Fault::Dangling {
                place: 1,
                named: ninety_nine(),
            },
        ),
        (11, Fault::Duplicate { place: 1, first: 0 }),
    ];
    assert_eq!(faults(&store), expected);
    let integrity = graph(&store).integrity(&Rules::default()).unwrap();
    let counts = BTreeMap::from([
        ("cycle", 2),
        ("dangling", 2),
        ("depth-mismatch", 4),
        ("duplicate", 2),
        ("empty", 1),
        ("it-self", 2),
        ("later", 1),
        ("wrong-kind", 2),
    ]);
    assert_eq!(integrity.counts(), counts);
    assert_eq!(integrity.citations, 19);
    for finding in integrity.findings {
        assert!(!finding.fault.to_string().is_empty());
    }
}

#[test]
fn wrong_evidence_type() {
    let cites = |kind: Kind, evidence: &[u64], depth| Owned {
        kind,
        ..reflection(evidence, depth)
    };
    let (_dir, store) = stored(&[
        observation(),
        cites(Kind::CHAT, &[], 0),
        reflection(&[1, 0], 1),
        cites(Kind::PLAN, &[2, 1], 2),
        cites(Kind::OBSERVATION, &[1], 0),
        cites(Kind::PLAN, &[], 1),
    ]);
    let found = |rules: &Rules| -> Vec<(u64, Fault)> {
        let integrity = graph(&store).integrity(rules).unwrap();
        integrity
            .findings
            .into_iter()
            .map(|finding| (finding.id, finding.fault))
            .collect()
    };
    let rules = Rules {
        conclusions: vec![Kind::REFLECTION, Kind::PLAN],
        may_cite: vec![Kind::OBSERVATION],
        cited: Some(vec![Kind::OBSERVATION, Kind::REFLECTION]),
    };
    let not_cited = |id, place| (id, Fault::WrongEvidence { place, id: 1 });
    assert_eq!(
        found(&rules),
        [
            not_cited(2, 0),
            not_cited(3, 1),
            not_cited(4, 0),
            (5, Fault::Empty)
        ]
    );
    let any = Rules {
        cited: None,
        ..rules.clone()
    };
    assert_eq!(found(&any), [(5, Fault::Empty)]);
    let none = Rules {
        conclusions: vec![],
        may_cite: vec![],
        cited: None,
    };
    let faults = found(&none);
    let wrong = faults
        .iter()
        .filter(|(_, fault)| *fault == Fault::WrongKind)
        .map(|&(id, _)| id);
    assert!(wrong.eq([2, 3, 4]));
}

#[test]
fn evidence_keeps_its_order_through_all_that_a_store_does_b83() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    for memory in [
        observation(),
        observation(),
        observation(),
        observation(),
        reflection(&[3, 1], 1),
    ] {
        store.append(&[memory.borrowed()]).unwrap();
    }
    for step in 0..4 {
        match step {
            0 => {}
            1 => store.checkpoint().unwrap(),
            2 => {
                store.delete(&[0]).unwrap();
            }
            _ => {
                store.compact().unwrap();
            }
        }
        for snapshot in [
            store.snapshot(),
            Store::open_read_only(&path).unwrap().snapshot(),
        ] {
            let row = snapshot.row_of_id(4).unwrap();
            assert_eq!(
                snapshot.evidence(row).unwrap(),
                [Reference::Id(3), Reference::Id(1)]
            );
            let graph = Graph::of(&snapshot).unwrap();
            assert!(graph.cites(4).eq([Citation::Live(3), Citation::Live(1)]));
        }
    }
}

#[test]
fn a_tree_tells_each_memory_once_whatever_is_shared_or_goes_in_circles() {
    let broken = Owned {
        evidence: vec![
            Reference::Missing("x".into()),
            Reference::Id(0),
            Reference::Missing("x".into()),
        ],
        ..reflection(&[], 1)
    };
    let (_dir, store) = stored(&[
        observation(),
        broken,
        reflection(&[1, 3, 1], 2),
        reflection(&[2, 3], 2),
    ]);
    let graph = graph(&store);
    let (live, x) = (Citation::Live, Citation::Missing("x"));
    let all = [
        (0, live(3), false),
        (1, live(2), false),
        (2, live(1), false),
        (3, x, false),
        (3, live(0), false),
        (3, x, false),
        (2, live(3), true),
        (2, live(1), true),
        (1, live(3), true),
    ];
    for limit in 0..12 {
        assert_eq!(tree(&graph, 3, limit), all[..limit.min(9)]);
        assert_eq!(graph.tree(3, limit).is_cut, limit < 9);
    }
    assert_eq!(tree(&graph, 4, 9), []);
    assert!(!graph.tree(4, 0).is_cut);
    assert_eq!(graph.dependants(0), [1, 2, 3]);
    assert_eq!(graph.dependants(3), [2, 3], "it rests on itself");
}

/// Random stores with everything that evidence can be, against the definitions, told without the graph.
#[test]
fn any_store_gives_what_the_definitions_say() {
    let mut random = Random(3);
    for round in 0..40 {
        let n = 1 + random.below(30);
        let kinds = [
            Kind::OBSERVATION,
            Kind::REFLECTION,
            Kind::REFLECTION,
            Kind::CHAT,
        ];
        let memories: Vec<_> = (0..n)
            .map(|_| Owned {
                kind: kinds[random.below(4) as usize].clone(),
                evidence: (0..random.below(4))
                    .map(|_| match random.below(12) {
                        0 => Reference::Missing(format!("node_{}", random.below(2))),
                        _ => Reference::Id(random.below(n + 2)),
                    })
                    .collect(),
                depth: random.below(4) as u32,
                ..observation()
            })
            .collect();
        let (_dir, store) = stored(&memories);
        let deleted: Vec<u64> = (0..n).filter(|_| random.below(6) == 0).collect();
        store.delete(&deleted).unwrap();
        if round % 3 == 0 {
            store.compact().unwrap();
        }
        let snapshot = store.snapshot();
        let graph = Graph::of(&snapshot).unwrap();
        let references = references(&snapshot);
        for id in 0..n + 3 {
            let expected = references.get(&id).map_or(&[][..], |references| references);
            assert_eq!(
                graph.cites(id).collect::<Vec<_>>(),
                as_citations(&snapshot, expected)
            );
            let citing = |from: &u64| references[from].contains(&Reference::Id(id));
            let expected: Vec<u64> = references.keys().copied().filter(citing).collect();
            assert_eq!(graph.cited_by(id).collect::<Vec<_>>(), expected);
            assert_eq!(graph.dependants(id), dependants(&references, id));
        }
        assert_eq!(
            graph.len(),
            references.values().map(Vec::len).sum::<usize>()
        );
        let integrity = graph.integrity(&Rules::default()).unwrap();
        let on_cycle = integrity
            .findings
            .iter()
            .filter(|finding| finding.fault == Fault::Cycle);
        let expected = references.keys().filter(|&&id| {
            let others = |to: &&u64| **to != id && references[to].contains(&Reference::Id(id));
            references
                .keys()
                .filter(others)
                .any(|&to| to == id || reaches(&references, id, to))
        });
        assert!(on_cycle.map(|finding| &finding.id).eq(expected));
    }
}

fn references(snapshot: &Snapshot) -> BTreeMap<u64, Vec<Reference>> {
    let live = (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
    live.map(|row| (snapshot.id(row), snapshot.memory(row).unwrap().evidence))
        .collect()
}

fn as_citations<'r>(snapshot: &Snapshot, references: &'r [Reference]) -> Vec<Citation<'r>> {
    let each = references.iter().map(|reference| match reference {
        Reference::Missing(text) => Citation::Missing(text),
        Reference::Id(id) if snapshot.row_of_id(*id).is_some() => Citation::Live(*id),
        Reference::Id(id) if *id < snapshot.next_id() => Citation::Deleted(*id),
        Reference::Id(id) => Citation::Unknown(*id),
    });
    each.collect()
}

/// All that cite it, then all that cite those, until there are no more.
fn dependants(references: &BTreeMap<u64, Vec<Reference>>, id: u64) -> Vec<u64> {
    let mut found = BTreeSet::new();
    loop {
        let cites = |cited: u64, citing: &u64| references[citing].contains(&Reference::Id(cited));
        let more: Vec<u64> = references
            .keys()
            .filter(|citing| !found.contains(*citing))
            .filter(|citing| cites(id, citing) || found.iter().any(|&found| cites(found, citing)))
            .copied()
            .collect();
        if more.is_empty() {
            return found.into_iter().collect();
        }
        found.extend(more);
    }
}

/// Whether one rests on the other.
fn reaches(references: &BTreeMap<u64, Vec<Reference>>, from: u64, to: u64) -> bool {
    dependants(references, to).contains(&from)
}

#[test]
fn a_graph_of_no_memories_and_of_no_evidence_is_empty() {
    let (_dir, store) = stored(&[]);
    assert!(graph(&store).is_empty());
    assert_eq!(faults(&store), []);
    let (_dir, store) = stored(&[observation(), observation()]);
    let graph = graph(&store);
    assert!(graph.is_empty() && graph.cites(0).eq([]) && graph.cited_by(1).next().is_none());
    assert_eq!(tree(&graph, 1, 5), [(0, Citation::Live(1), false)]);
}
