//! Many retrievals in one call: the same bits as one call after another.

use super::*;
use memorank::stream::{
    BatchError, Budget, BytesPerFour, Contains, Order, Overflow, Period, retrieve_each,
    retrieve_many,
};

/// All that is told of a retrieval but its snapshot, and its touch.
fn told(retrieved: Retrieved) -> String {
    let Retrieved {
        snapshot: _,
        memories,
        cut,
        missing,
        tokens,
        excess,
        ranges,
        candidates,
        sequence: _,
        touch,
    } = retrieved;
    touch.unwrap();
    let bits = memories.iter().filter_map(|memory| memory.hit);
    let bits: Vec<u64> = bits.map(|hit| hit.score.to_bits()).collect();
    format!("{memories:?} {bits:?} {cut:?} {missing:?} {tokens} {excess} {ranges:?} {candidates}")
}

/// The last accesses of all agents that ask.
fn accesses(store: &Store) -> Vec<Vec<i64>> {
    let snapshot = store.snapshot();
    let of = |agent| (0..snapshot.rows()).map(move |row| (agent, row));
    let agents = [Agent::OWN, Agent(3), Agent(4)];
    let each = agents.map(|agent| {
        let rows = of(agent).map(|(agent, row)| snapshot.last_access(agent, row));
        rows.collect()
    });
    each.to_vec()
}

/// Calls `check` with questions of every sort: presets, agents, filters on what touches change, pins, budgets.
fn with_questions(check: impl Fn(&[Retrieve<'_>])) {
    let presets = Preset::NAMES.map(|name| Preset {
        k: 12,
        ..Preset::named(name).unwrap()
    });
    let older = Preset {
        touch: Touch::IfOlder {
            age: 3 * HOUR as u64,
        },
        result_order: ResultOrder::LastAccess,
        ..paper(20)
    };
    let period = |from, until| Filter {
        last_access: Period { from, until },
        ..Filter::default()
    };
    let filters = [
        Filter::default(),
        period(Some(T - 5 * HOUR), None),
        period(None, Some(T - 5 * HOUR)),
        without(&[1, 7]),
        Filter {
            text: Some(Contains::IgnoringAsciiCase("klaus")),
            kinds: Some(&[Kind::OBSERVATION, Kind::CHAT]),
            ..Filter::default()
        },
        Filter {
            ids: Some(&[5, 8, 133, 200]),
            future: true,
            ..Filter::default()
        },
    ];
    let budget = Budget {
        tokens: 25,
        counter: &BytesPerFour,
        overflow: Overflow::SkipOversized,
    };
    let embeddings = [[1.0, 0.0], [0.3, 0.9], [1.0, 2.0], [-1.0, 0.5]];
    let mut asks = Vec::new();
    for i in 0..20_usize {
        let preset = [&presets[..], std::slice::from_ref(&older)].concat();
        let preset: &Preset = Box::leak(Box::new(preset[i % 5]));
        asks.push(Retrieve {
            ask: Ask {
                agent: [Agent::OWN, Agent(3), Agent(4)][i / 2 % 3],
                filter: &filters[i * 7 % 6],
                ..Ask::new(&embeddings[i % 4], T + (i as i64 % 7 - 2) * HOUR, preset)
            },
            pinned: [&[][..], &[250, 2, 3], &[9, 63]][i % 3],
            budget: (i % 4 == 1).then_some(budget),
            note: b"",
        });
    }
    check(&asks);
    for one in asks.chunks(1).step_by(4) {
        check(one);
    }
    // One filter for all that leaves most memories out: the others are not read.
    let few: Vec<_> = asks
        .iter()
        .map(|wanted| Retrieve {
            ask: Ask {
                filter: &filters[5],
                ..wanted.ask
            },
            ..*wanted
        })
        .collect();
    check(&few);
    check(&[]);
}

// B30, B74
#[test]
fn a_sequential_batch_is_single_calls_in_the_same_order_to_the_bit() {
    with_questions(|asks| {
        let ((_a, singly), (_b, together)) = (mixed(), mixed());
        let mut workspace = Workspace::new();
        let expected: Vec<String> = asks
            .iter()
            .map(|wanted| told(retrieve(&singly, wanted, Par::Serial, &mut workspace).unwrap()))
            .collect();
        let order = Order::Sequential;
        let found = retrieve_many(&together, asks, order, Par::Serial, &mut workspace).unwrap();
        assert_eq!(found.into_iter().map(told).collect::<Vec<_>>(), expected);
        assert_eq!(accesses(&together), accesses(&singly));
    });
}

// B30
#[test]
fn a_batch_of_a_snapshot_is_single_calls_on_the_store_as_it_was() {
    with_questions(|asks| {
        let (_a, together) = mixed();
        let mut workspace = Workspace::new();
        let expected: Vec<String> = asks
            .iter()
            .map(|wanted| {
                let (_dir, fresh) = mixed();
                told(retrieve(&fresh, wanted, Par::Serial, &mut workspace).unwrap())
            })
            .collect();
        let order = Order::Snapshot;
        let found = retrieve_many(&together, asks, order, Par::Serial, &mut workspace).unwrap();
        assert_eq!(found.into_iter().map(told).collect::<Vec<_>>(), expected);
        // A touch is a maximum: the accesses are those of all of them.
        let (_c, each) = mixed();
        let stores: Vec<_> = asks.iter().map(|wanted| (&each, *wanted)).collect();
        let found = retrieve_each(&stores, Par::Serial, &mut workspace).unwrap();
        assert_eq!(found.into_iter().map(told).collect::<Vec<_>>(), expected);
        assert_eq!(accesses(&each), accesses(&together));
    });
}

// B30: set G, by hand.
#[test]
fn the_second_question_of_a_batch_sees_the_touch_of_the_first_if_it_is_to() {
    let one = paper(1);
    let mut recent = paper(3);
    recent.scoring.weights.relevance = 0.0;
    recent.scoring.weights.importance = 0.0;
    let first = Ask {
        embedding: &[-1.0, 0.1],
        filter: &without(&[1]),
        ..ask(&one, T + HOUR)
    };
    let asks = [first, ask(&recent, T + HOUR)].map(Retrieve::new);
    for (order, expected) in [(Order::Sequential, [2, 1, 0]), (Order::Snapshot, [1, 0, 2])] {
        let (_dir, path) = g();
        let store = Store::open(&path).unwrap();
        let found = retrieve_many(&store, &asks, order, Par::Serial, &mut Workspace::new());
        let found = found.unwrap();
        assert_eq!(
            (ids(&found[0]), ids(&found[1])),
            (vec![2], expected.to_vec())
        );
        assert_eq!(
            last_access(&found[0].snapshot),
            [T - 10 * HOUR, T, T - 100 * HOUR]
        );
        assert_eq!(last_access(&store.snapshot()), [T + HOUR; 3]);
    }
}

#[cfg(feature = "rayon")]
#[test]
fn threads_do_not_change_a_batch() {
    with_questions(|asks| {
        let mut workspace = Workspace::new();
        let answers = [1, 3].map(|threads| {
            let ((_a, many), (_b, each)) = (mixed(), mixed());
            let stores: Vec<_> = asks.iter().map(|wanted| (&each, *wanted)).collect();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let found = pool.unwrap().install(|| {
                let order = Order::Sequential;
                let found = retrieve_many(&many, asks, order, Par::Rayon, &mut workspace).unwrap();
                let each = retrieve_each(&stores, Par::Rayon, &mut workspace).unwrap();
                (found, each)
            });
            let found = [found.0, found.1].map(|all| all.into_iter().map(told).collect::<Vec<_>>());
            (found, accesses(&many), accesses(&each))
        });
        assert!(answers.iter().all(|answer| *answer == answers[0]));
    });
}

#[test]
fn each_of_many_stores_is_asked_its_own() {
    let stores = [10, 0, 100].map(|hours| {
        stored(&[
            memory(&[1.0, 0.0], hours, 2.0),
            memory(&[0.6, 0.8], 10, 8.0),
        ])
    });
    let opened = stores
        .each_ref()
        .map(|(_, path)| Store::open(path).unwrap());
    let one = paper(1);
    let asks: Vec<_> = (opened
        .iter()
        .zip([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]].iter()))
    .map(|(store, embedding)| (store, Retrieve::new(Ask::new(embedding, T + HOUR, &one))))
    .collect();
    let found = retrieve_each(&asks, Par::Serial, &mut Workspace::new()).unwrap();
    for ((store, wanted), found) in asks.iter().zip(found) {
        let expected = ranked(&found.snapshot, &wanted.ask).unwrap();
        assert_same_bits(&ranking(&found), &expected);
        let row = expected.hits[0].row;
        assert_eq!(last_access(&store.snapshot())[row], T + HOUR);
        assert_ne!(last_access(&store.snapshot())[1 - row], T + HOUR);
    }
}

#[test]
fn one_question_that_fails_names_itself_and_nothing_is_touched() {
    let preset = paper(3);
    let mut wrong = paper(3);
    wrong.scoring.weights.recency = f64::NAN;
    let good = Retrieve::new(ask(&preset, T + HOUR));
    let bad: [Retrieve<'_>; 5] = [
        Retrieve::new(Ask::new(&[0.0, 0.0], T, &preset)),
        Retrieve::new(Ask::new(&[1.0], T, &preset)),
        Retrieve::new(ask(&wrong, T)),
        Retrieve {
            pinned: &[3],
            ..good
        },
        Retrieve::new(Ask {
            model: Some("another"),
            ..good.ask
        }),
    ];
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let before = last_access(&store.snapshot());
    let mut workspace = Workspace::new();
    for bad in bad {
        let alone = retrieve(&store, &bad, Par::Serial, &mut workspace).unwrap_err();
        let asks = [good, good, bad, good];
        let check = |found: Result<Vec<Retrieved>, BatchError>| {
            let BatchError { index, error } = found.unwrap_err();
            assert_eq!((index, error.to_string()), (2, alone.to_string()));
        };
        for order in [Order::Sequential, Order::Snapshot] {
            check(retrieve_many(
                &store,
                &asks,
                order,
                Par::Serial,
                &mut workspace,
            ));
        }
        let asks = asks.map(|wanted| (&store, wanted));
        check(retrieve_each(&asks, Par::Serial, &mut workspace));
    }
    assert_eq!(last_access(&store.snapshot()), before);
}

// B28
#[test]
fn on_a_read_only_store_no_question_sees_a_touch_that_was_not_made() {
    let (_dir, path) = g();
    let store = Store::open_read_only(&path).unwrap();
    let preset = paper(1);
    let asks = [T + HOUR, T + 2 * HOUR].map(|now| Retrieve::new(ask(&preset, now)));
    let mut workspace = Workspace::new();
    let order = Order::Sequential;
    let found = retrieve_many(&store, &asks, order, Par::Serial, &mut workspace).unwrap();
    for (found, wanted) in found.iter().zip(&asks) {
        assert!(found.touch.is_err());
        let expected = ranked(&store.snapshot(), &wanted.ask).unwrap();
        assert_same_bits(&ranking(found), &expected);
    }
}
