//! What was concluded from what survives whatever is done to a store.

use crate::example::{Owned, new_store, plain};
use memorank::kernel::Dtype;
use memorank::store::{Kind, Reference, Store};
use memorank::stream::evidence::{Citation, Graph, Integrity, Rules};
#[cfg(feature = "import")]
use memorank::{export::export, import};

/// Everything about evidence, memory by memory: id, what it cites and in which order, depth, and what corrected it.
fn provenance(store: &Store) -> String {
    let snapshot = store.snapshot();
    let graph = Graph::of(&snapshot).unwrap();
    let mut text = format!("next id {}\n", snapshot.next_id());
    for row in (0..snapshot.rows()).filter(|&row| snapshot.is_live(row)) {
        let memory = snapshot.memory(row).unwrap();
        let cites: Vec<_> = graph.cites(memory.id).collect();
        text += &format!(
            "{} {:?} {cites:?} {:?} depth {} corrected by {:?}\n",
            memory.id, memory.key, memory.evidence, memory.depth, memory.superseded_by
        );
    }
    text + &format!("{:?}", integrity(&graph))
}

fn integrity(graph: &Graph) -> Integrity {
    graph.integrity(&Rules::default()).unwrap()
}

fn reflection(evidence: Vec<Reference>, depth: u32) -> Owned {
    Owned {
        kind: Kind::REFLECTION,
        evidence,
        depth,
        ..plain(&[1.0, 0.0])
    }
}

// B80, B81, B83
#[test]
fn ids_order_depth_and_unresolved_references_survive_whatever_is_done_to_a_store() {
    let (dir, path, store) = new_store(2, Dtype::F16);
    let id = Reference::Id;
    let missing = |text: &str| Reference::Missing(text.into());
    let mut bulk = store.bulk().unwrap();
    bulk.allow_any_evidence();
    for memory in [
        plain(&[1.0, 0.0]),
        plain(&[0.0, 1.0]),
        plain(&[1.0, 1.0]),
        // Not in the order of ids, and one of them twice.
        reflection(vec![id(2), id(0), id(1), id(0)], 1),
        // A text, itself, a later one, and what was never given.
        reflection(
            vec![missing("node_17 ☕"), id(4), id(5), id(999), missing("")],
            1,
        ),
        reflection(vec![id(3), id(4)], 2),
        reflection(vec![], 7),
    ] {
        bulk.push(&memory.borrowed()).unwrap();
    }
    bulk.commit().unwrap();
    let correction = Owned {
        supersedes: Some(2),
        ..plain(&[0.5, 0.5])
    };
    store.append(&[correction.borrowed()]).unwrap();
    store.delete(&[1]).unwrap();
    let many: Vec<_> = (0..10_000).map(|i| id(i % 8)).collect();
    let mut bulk = store.bulk().unwrap();
    bulk.allow_any_evidence();
    bulk.push(&reflection(many, 8).borrowed()).unwrap();
    bulk.commit().unwrap();
    store
        .append(&[reflection(vec![id(5), id(7)], 3).borrowed()])
        .unwrap();

    let expected = provenance(&store);
    let graph = Graph::of(&store.snapshot()).unwrap();
    let (live, deleted) = (Citation::Live, Citation::Deleted);
    assert!(graph.cites(3).eq([live(2), live(0), deleted(1), live(0)]));
    let unresolved = [
        Citation::Missing("node_17 ☕"),
        live(4),
        live(5),
        Citation::Unknown(999),
        Citation::Missing(""),
    ];
    assert!(graph.cites(4).eq(unresolved));
    assert_eq!(integrity(&graph).citations, 4 + 5 + 2 + 10_000 + 2);

    // What the journal alone holds, as a process that is killed leaves it.
    let crashed = dir.path().join("crashed");
    crate::example::copy(&path, &crashed);
    let mut store = {
        assert_eq!(provenance(&Store::open(&crashed).unwrap()), expected);
        store
    };
    let steps: [fn(&Store); 3] = [
        |store| store.checkpoint().unwrap(),
        |_| {},
        |store| store.compact().unwrap(),
    ];
    for step in steps {
        step(&store);
        assert_eq!(provenance(&store), expected);
        drop(store);
        store = Store::open(&path).unwrap();
        assert_eq!(provenance(&store), expected);
    }
    #[cfg(feature = "import")]
    {
        let [first, second, again] = ["first", "second", "again"].map(|name| dir.path().join(name));
        export(&store.snapshot(), &first).unwrap();
        import::memorank(&first, &again, &mut |_, _| ()).unwrap();
        let imported = Store::open(&again).unwrap();
        assert_eq!(provenance(&imported), expected);
        export(&imported.snapshot(), &second).unwrap();
        let bytes = |path| crate::example::bytes_of(path);
        assert!(bytes(&first) == bytes(&second));
    }
}
