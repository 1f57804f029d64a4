//! Pinned memories: always returned, beside the best.

use super::*;

fn pinning(store: &Store, ask: Ask<'_>, pinned: &[u64]) -> Result<Retrieved, StreamError> {
    let wanted = Retrieve {
        pinned,
        ..Retrieve::new(ask)
    };
    retrieve(store, &wanted, Par::Serial, &mut Workspace::new())
}

fn pins(retrieved: &Retrieved) -> Vec<u64> {
    let memories = retrieved.memories.iter().filter(|memory| memory.pinned);
    memories.map(|memory| memory.id).collect()
}

#[test]
fn what_is_pinned_is_first_and_the_k_best_are_beside_it() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let two = Preset {
        touch: Touch::None,
        ..paper(2)
    };
    let all = ranked(&store.snapshot(), &ask(&paper(3), T)).unwrap();
    let cases: [(&[u64], &[u64]); 5] = [
        (&[], &[1, 0]),
        (&[2], &[2, 1, 0]),
        (&[0], &[0, 1]),
        (&[2, 0, 2, 0], &[2, 0, 1]),
        (&[0, 1, 2], &[0, 1, 2]),
    ];
    for (pinned, expected) in cases {
        let found = pinning(&store, ask(&two, T), pinned).unwrap();
        assert_eq!(ids(&found), expected);
        assert_eq!(
            pins(&found),
            expected[..expected.len() - (ids(&found).len() - pins(&found).len())]
        );
        assert_eq!(
            (found.candidates, found.ranges),
            (all.candidates, all.ranges)
        );
        for memory in &found.memories {
            let hit = all.hits.iter().find(|hit| hit.row == memory.row);
            assert_eq!(memory.hit.as_ref(), hit, "scored as all others");
        }
    }
}

/// The hits of every memory of a store, pinned one by one and all at once, are those of a whole ranking.
#[test]
fn what_is_pinned_has_the_score_that_it_has_in_the_ranking_to_the_bit() {
    let (_dir, store) = mixed();
    let snapshot = store.snapshot();
    let live = (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
    let every: Vec<u64> = live.map(|row| snapshot.id(row)).collect();
    for name in Preset::NAMES {
        let all = Preset {
            k: usize::MAX,
            touch: Touch::None,
            ..Preset::named(name).unwrap()
        };
        let preset = Preset { k: 1, ..all };
        for agent in [Agent::OWN, Agent(3)] {
            let filter = without(&[5, 200]);
            let asks = |preset| Ask {
                agent,
                filter: &filter,
                ..ask(preset, T)
            };
            let expected = ranked(&snapshot, &asks(&all)).unwrap();
            let same = |found: &Retrieved| {
                for memory in &found.memories {
                    let hit = expected.hits.iter().find(|hit| hit.row == memory.row);
                    assert_eq!(memory.hit.as_ref(), hit, "{name}, row {}", memory.row);
                }
                assert_eq!(
                    (found.candidates, found.ranges),
                    (expected.candidates, expected.ranges)
                );
            };
            for pinned in every.chunks(1).step_by(7) {
                same(&pinning(&store, asks(&preset), pinned).unwrap());
            }
            let found = pinning(&store, asks(&preset), &every).unwrap();
            assert_eq!(found.memories.len(), every.len());
            same(&found);
        }
    }
}

#[test]
fn what_does_not_compete_is_pinned_without_a_score_and_not_in_the_ranges() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(
        &store,
        &[
            memory(&[1.0, 0.0], 10, 2.0),
            memory(&[0.6, 0.8], 0, 8.0),
            Owned {
                embedding: None,
                ..memory(&[], 5, 900.0)
            },
            Owned {
                created: T + HOUR,
                ..memory(&[-1.0, 0.0], 7, 700.0)
            },
            memory(&[-1.0, 0.0], 900, -800.0),
        ],
    );
    drop(path);
    let preset = paper(9);
    let asked = Ask {
        filter: &without(&[4]),
        ..ask(&preset, T)
    };
    let expected = ranked(&store.snapshot(), &asked).unwrap();
    assert_eq!(expected.candidates, 2);
    let found = pinning(&store, asked, &[4, 2, 3]).unwrap();
    assert_eq!(ids(&found), [4, 2, 3, 1, 0]);
    assert_eq!(ranking(&found), expected);
    assert!(
        found.memories[..3]
            .iter()
            .all(|memory| memory.hit.is_none())
    );
    found.touch.unwrap();
    assert_eq!(
        last_access(&store.snapshot()),
        [T; 5],
        "what is returned is touched"
    );
}

#[test]
fn by_a_time_what_is_pinned_is_in_its_place() {
    let created = |hours: i64, x: f32| Owned {
        created: T - hours * HOUR,
        ..memory(&[1.0, x], 10 - hours, 1.0)
    };
    let (_dir, path) = stored(&[
        created(5, 9.0),
        created(1, 0.1),
        created(9, 0.2),
        created(3, 9.0),
        created(5, 0.0),
    ]);
    let store = Store::open(&path).unwrap();
    for (result_order, expected) in [
        (ResultOrder::Score, [3, 0, 4, 1, 2]),
        (ResultOrder::Created, [2, 0, 4, 3, 1]),
        (ResultOrder::LastAccess, [1, 3, 0, 4, 2]),
    ] {
        let preset = Preset {
            result_order,
            k: 3,
            ..Preset::genagents()
        };
        let found = pinning(&store, ask(&preset, T), &[3, 0]).unwrap();
        assert_eq!(ids(&found), expected, "{result_order:?}");
    }
}

#[test]
fn a_pinned_memory_that_was_deleted_is_told_and_an_id_that_never_was_is_an_error() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    store.delete(&[0]).unwrap();
    let preset = paper(1);
    let found = pinning(&store, ask(&preset, T), &[0, 2, 0]).unwrap();
    assert_eq!((ids(&found), found.missing), (vec![2, 1], vec![0]));
    let before = last_access(&store.snapshot());
    let refused = pinning(&store, ask(&preset, T + HOUR), &[2, 3]).unwrap_err();
    assert!(
        matches!(refused, StreamError::NoId { id: 3, next: 3 }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("no memory 3"));
    assert_eq!(last_access(&store.snapshot()), before);
}
