//! Touches: what is returned, and nothing else, is refreshed.

use super::*;

#[test]
fn a_retrieval_touches_exactly_what_it_returns() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let now = || last_access(&store.snapshot());
    let before = now();
    let preset = paper(2);
    let retrieved = retrieved(&store, &ask(&preset, T + HOUR)).unwrap();
    let ranking = ranking(&retrieved);
    retrieved.touch.unwrap();
    assert_eq!(rows(&ranking), [1, 0]);
    assert_eq!(now(), [T + HOUR, T + HOUR, T - 100 * HOUR]);
    assert_eq!(last_access(&retrieved.snapshot), before, "what was ranked");
    // The later of old and now.
    let all = paper(usize::MAX);
    let ranking = touched(&store, &ask(&all, T - 50 * HOUR));
    assert_eq!(ranking.hits.len(), 3);
    assert_eq!(
        now(),
        [T + HOUR, T + HOUR, T - 50 * HOUR],
        "a touch does not go back"
    );
    // k = 0 returns nothing and touches nothing.
    let ranking = touched(&store, &ask(&paper(0), T + 9 * HOUR));
    assert_eq!((ranking.hits.len(), ranking.candidates), (0, 3));
    assert!(now().iter().all(|&at| at < T + 9 * HOUR));
}

// B30: retrievals one after another. The second sees what the first touched, as if it had always been so.
#[test]
fn a_retrieval_is_scored_with_the_touches_of_the_one_before() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let one = paper(1);
    let first = Ask {
        embedding: &[0.0, 1.0],
        ..ask(&one, T + HOUR)
    };
    let touched_row = rows(&touched(&store, &first))[0];
    assert_eq!(touched_row, 1);
    let all = paper(3);
    let second = ask(&all, T + 2 * HOUR);
    let found = touched(&store, &second);

    let last_access = |row, hours: i64| if row == touched_row { -1 } else { hours };
    let (_dir, path) = stored(&[
        memory(&[1.0, 0.0], last_access(0, 10), 2.0),
        memory(&[0.6, 0.8], last_access(1, 0), 8.0),
        memory(&[0.0, 1.0], last_access(2, 100), 5.0),
    ]);
    let expected = ranked(&Store::open(&path).unwrap().snapshot(), &second).unwrap();
    assert_same_bits(&found, &expected);
    // On the state at the start it would have been another.
    let (_dir, path) = g();
    let apart = ranked(&Store::open(&path).unwrap().snapshot(), &second).unwrap();
    assert_ne!(found, apart);
}

// B36
#[test]
fn a_retrieval_of_more_than_there_are_touches_each_once() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let ten = paper(10);
    assert_eq!(rows(&touched(&store, &ask(&ten, T + HOUR))), [1, 0, 2]);
    assert_eq!(last_access(&store.snapshot()), [T + HOUR; 3]);
    let reader = Store::open_read_only(&path).unwrap();
    assert_eq!(reader.recovery().records, 1);
    assert_eq!(last_access(&reader.snapshot()), [T + HOUR; 3]);
}

#[test]
fn a_preset_decides_whether_it_touches() {
    for name in Preset::NAMES {
        let (_dir, path) = g();
        let store = Store::open(&path).unwrap();
        let preset = Preset::named(name).unwrap();
        let ranking = touched(&store, &ask(&preset, T + HOUR));
        assert_eq!(ranking.hits.len(), 3);
        let accesses = last_access(&store.snapshot());
        let touched = accesses.iter().all(|&at| at == T + HOUR);
        assert_eq!(touched, preset.touch == Touch::Returned, "{name}");
        assert_eq!(touched, name != "genagents");
    }
}

// B28
#[test]
fn a_read_only_store_gives_the_ranking_and_says_that_it_did_not_touch() {
    let (_dir, path) = g();
    let before = bytes_of(&path);
    let store = Store::open_read_only(&path).unwrap();
    assert!(store.is_read_only());
    let preset = Preset::paper();
    let expected = ranked(&store.snapshot(), &ask(&preset, T)).unwrap();
    let beside = retrieved(&store, &ask(&preset, T)).unwrap();
    let ranking = ranking(&beside);
    let refused = matches!(
        beside.touch,
        Err(TouchError::Write(WriteError::ReadOnly { .. }))
    );
    assert!(refused, "{:?}", beside.touch);
    assert_eq!(ranking, expected);
    assert_eq!(rows(&ranking), [1, 0, 2]);
    for snapshot in [&beside.snapshot, &store.snapshot()] {
        assert_eq!(
            last_access(snapshot),
            [T - 10 * HOUR, T, T - 100 * HOUR],
            "nothing was touched in memory either"
        );
    }
    // A preset that does not touch is no matter.
    touched(&store, &ask(&Preset::genagents(), T));
    drop(store);
    assert_eq!(bytes_of(&path), before);
}

// B13
#[test]
fn a_touch_survives_closing_and_scores_are_the_same_to_the_bit() {
    let preset = paper(1);
    let all = Preset::paper();
    let ((_a, stays), (_b, closes)) = (g(), g());
    let open = Store::open(&stays).unwrap();
    touched(&open, &ask(&preset, T));
    let open = open.snapshot();
    let expected = ranked(&open, &ask(&all, T + HOUR)).unwrap();

    let store = Store::open(&closes).unwrap();
    touched(&store, &ask(&preset, T));
    store.close().unwrap();
    let read = || Store::open_read_only(&closes).unwrap().snapshot();
    let snapshot = read();
    assert_eq!(last_access(&snapshot), last_access(&open));
    let found = ranked(&snapshot, &ask(&all, T + HOUR)).unwrap();
    assert_same_bits(&found, &expected);
    // Also a handle that was only dropped, and while it stays open.
    let store = Store::open(&closes).unwrap();
    touched(&store, &ask(&all, T + 2 * HOUR));
    assert_eq!(last_access(&read()), [T + 2 * HOUR; 3]);
    touched(&store, &ask(&all, T + 3 * HOUR));
    drop(store);
    assert_eq!(last_access(&read()), [T + 3 * HOUR; 3]);
}

#[test]
fn a_touch_of_what_is_older_leaves_the_rest() {
    for age in [0, 1, 10 * HOUR as u64, 10 * HOUR as u64 + 1, u64::MAX] {
        let (_dir, path) = g();
        let store = Store::open(&path).unwrap();
        let before = last_access(&store.snapshot());
        let preset = Preset {
            touch: Touch::IfOlder { age },
            ..paper(3)
        };
        let ranking = touched(&store, &ask(&preset, T));
        assert_eq!(ranking.hits.len(), 3, "what is returned is the same");
        let expected = before.iter().map(|&at| match (T - at) as u64 > age {
            true => T,
            false => at,
        });
        assert_eq!(
            last_access(&store.snapshot()),
            expected.collect::<Vec<_>>(),
            "{age}"
        );
    }
    // One that was retrieved later than now, and the widest ages there are.
    let at = |last_access| Owned {
        last_access,
        ..memory(&[1.0, 0.0], 0, 1.0)
    };
    let (_dir, path) = stored(&[at(i64::MIN), at(T + HOUR), at(i64::MAX)]);
    let store = Store::open(&path).unwrap();
    let preset = Preset {
        touch: Touch::IfOlder { age: T as u64 },
        ..paper(3)
    };
    touched(&store, &ask(&preset, T));
    assert_eq!(last_access(&store.snapshot()), [T, T + HOUR, i64::MAX]);
}

// B28
#[test]
fn where_nothing_is_to_be_touched_a_read_only_store_is_no_matter() {
    let (_dir, path) = g();
    let store = Store::open_read_only(&path).unwrap();
    let older = Preset {
        touch: Touch::IfOlder {
            age: 101 * HOUR as u64,
        },
        ..paper(3)
    };
    for preset in [older, paper(0)] {
        touched(&store, &ask(&preset, T));
    }
}
