//! Filters: which memories compete, and that the ranges are theirs.

use super::*;
use memorank::scoring::{Candidates, Query, rank_into};
use memorank::store::Memory;
use memorank::stream::{Barrier, Contains, Order, Period, retrieve_many};

fn period(from: impl Into<Option<i64>>, until: impl Into<Option<i64>>) -> Period {
    Period {
        from: from.into(),
        until: until.into(),
    }
}

/// One of each part, and some with bounds that a memory lies on.
fn parts() -> Vec<Filter<'static>> {
    const ALL: Filter<'static> = Filter {
        future: true,
        ..Filter::PAST
    };
    let of_kinds = |kinds| Filter {
        kinds: Some(kinds),
        ..ALL
    };
    let of_text = |text| Filter {
        text: Some(text),
        ..ALL
    };
    let created = |from, until| Filter {
        created: Period { from, until },
        ..ALL
    };
    let accessed = |from, until| Filter {
        last_access: Period { from, until },
        ..ALL
    };
    vec![
        ALL,
        Filter::PAST,
        of_kinds(&[]),
        of_kinds(&[Kind::CHAT]),
        of_kinds(&[Kind::REFLECTION, Kind::PLAN, Kind::OBSERVATION]),
        created(Some(T - 100 * HOUR), None),
        created(None, Some(T - 100 * HOUR)),
        created(Some(T - 100 * HOUR), Some(T - 40 * HOUR)),
        created(Some(T), Some(T)),
        accessed(Some(T - 2 * HOUR), None),
        accessed(Some(i64::MIN), Some(T - 2 * HOUR)),
        accessed(Some(T - 90 * HOUR), Some(i64::MAX)),
        Filter {
            unexpired: true,
            ..ALL
        },
        of_text(Contains::Exactly("Klaus")),
        of_text(Contains::Exactly("")),
        of_text(Contains::IgnoringAsciiCase("")),
        of_text(Contains::IgnoringAsciiCase("klaus S")),
        of_text(Contains::IgnoringAsciiCase("RGÜP")),
        of_text(Contains::IgnoringAsciiCase("ürgüp")),
        Filter {
            ids: Some(&[]),
            ..ALL
        },
        Filter {
            ids: Some(&[128, 7, 63, 7, 131, 1_000_000, 298]),
            ..ALL
        },
        Filter {
            exclude: &[128, 7, 63, 7, 131, 1_000_000, 298],
            ..ALL
        },
        Filter {
            mask: Some(&[0xffff_0000_ffff_0000, 0, u64::MAX, 1, 0x0000_0800_0000_0000]),
            ..ALL
        },
    ]
}

/// What both let through.
fn both<'a>(a: &Filter<'a>, b: &Filter<'a>) -> Filter<'a> {
    let narrower = |a: Period, b: Period| if a == Period::default() { b } else { a };
    Filter {
        kinds: a.kinds.or(b.kinds),
        created: narrower(a.created, b.created),
        last_access: narrower(a.last_access, b.last_access),
        unexpired: a.unexpired || b.unexpired,
        text: a.text.or(b.text),
        ids: a.ids.or(b.ids),
        exclude: [a.exclude, b.exclude][usize::from(a.exclude.is_empty())],
        mask: a.mask.or(b.mask),
        future: a.future && b.future,
        superseded: a.superseded && b.superseded,
    }
}

/// Whether a memory passes, by what the documentation says of each part.
fn passes(filter: &Filter<'_>, now: i64, memory: &Memory<'_>, last_access: i64) -> bool {
    let within = |period: Period, time: i64| {
        time >= period.from.unwrap_or(i64::MIN) && period.until.is_none_or(|until| time < until)
    };
    let row = memory.id as usize;
    let contains = match filter.text {
        None => true,
        Some(Contains::Exactly(part)) => memory.text.contains(part),
        Some(Contains::IgnoringAsciiCase(part)) => {
            (memory.text.to_ascii_lowercase()).contains(&part.to_ascii_lowercase())
        }
        Some(other) => panic!("{other:?}: not known here"),
    };
    contains
        && filter.kinds.is_none_or(|kinds| kinds.contains(memory.kind))
        && within(filter.created, memory.created)
        && within(filter.last_access, last_access)
        && !(filter.unexpired && memory.expiry.is_some_and(|expiry| expiry <= now))
        && filter.ids.is_none_or(|ids| ids.contains(&memory.id))
        && !filter.exclude.contains(&memory.id)
        && (filter.mask).is_none_or(|words| words[row / 64] >> (row % 64) & 1 == 1)
        && (filter.future || memory.created <= now)
        && (filter.superseded || memory.superseded_by.is_none())
}

/// Checks that exactly the memories that pass compete, that they score as if nothing else were there, and that
/// of the others it is told why not. Gives how many compete.
fn check(snapshot: &Snapshot, ask: &Ask<'_>) -> usize {
    let expected: Vec<u32> = (0..snapshot.rows() as u32)
        .filter(|&row| {
            let row = row as usize;
            let Ok(memory) = snapshot.memory(row) else {
                return false;
            };
            let last_access = snapshot.last_access(ask.agent, row);
            let passes = passes(ask.filter, ask.now, &memory, last_access);
            let why_not = ask.filter.why_not(snapshot, ask, row).unwrap();
            assert_eq!(why_not.is_none(), passes, "{row}: {why_not:?}");
            passes && memory.has_embedding
        })
        .collect();
    let query = Query {
        candidates: Candidates::Rows(&expected),
        ..Query::new(ask.embedding, ask.now, ask.preset.k)
    };
    let (mut workspace, mut alone) = (Workspace::new(), Ranking::default());
    let columns = columns(snapshot, ask.agent).unwrap();
    let scoring = &ask.preset.scoring;
    let par = Par::Serial;
    rank_into(&columns, &query, scoring, par, &mut workspace, &mut alone).unwrap();
    let found = ranked(snapshot, ask).unwrap();
    assert_same_bits(&found, &alone);
    assert_eq!(found.candidates, expected.len());
    expected.len()
}

#[test]
fn what_passes_all_parts_competes_and_nothing_else_counts() {
    let (_dir, store) = mixed();
    let preset = paper(usize::MAX);
    let parts = parts();
    let mut met = std::collections::BTreeSet::new();
    for checkpointed in [false, true] {
        if checkpointed {
            store.checkpoint().unwrap();
        }
        let snapshot = store.snapshot();
        for (agent, now) in [
            (Agent::OWN, T),
            (Agent(3), T - 30 * HOUR),
            (Agent(3), T + 900 * HOUR),
        ] {
            for (i, one) in parts.iter().enumerate() {
                for other in &parts[i..] {
                    let asked = Ask {
                        agent,
                        filter: &both(one, other),
                        ..ask(&preset, now)
                    };
                    met.insert(check(&snapshot, &asked));
                }
            }
        }
    }
    assert!(met.contains(&0) && met.len() > 40, "{met:?}");
}

#[test]
fn the_first_part_that_a_memory_fails_is_told() {
    let (_dir, store) = mixed();
    let snapshot = store.snapshot();
    let (paper, reverie) = (paper(1), Preset::reverie());
    let why = |filter: Filter<'_>, preset: &Preset, row: usize| {
        let why = filter.why_not(&snapshot, &ask(preset, T), row).unwrap();
        assert!(why.is_none_or(|barrier| !barrier.to_string().is_empty()));
        why
    };
    let past = Filter::PAST;
    let cases = [
        (past, 1, None),
        (past, 260, Some(Barrier::Future)),
        (
            Filter {
                future: true,
                ..past
            },
            260,
            None,
        ),
        (
            Filter {
                mask: Some(&[1; 5]),
                ..past
            },
            1,
            Some(Barrier::Mask),
        ),
        (
            Filter {
                ids: Some(&[2]),
                ..past
            },
            1,
            Some(Barrier::Ids),
        ),
        (without(&[2, 1]), 1, Some(Barrier::Excluded)),
        (
            Filter {
                created: period(T, None),
                ..past
            },
            1,
            Some(Barrier::Created),
        ),
        (
            Filter {
                last_access: period(None, T - 900 * HOUR),
                ..past
            },
            1,
            Some(Barrier::LastAccess),
        ),
        (
            Filter {
                kinds: Some(&[Kind::CHAT]),
                ..past
            },
            1,
            Some(Barrier::Kind),
        ),
        (
            Filter {
                unexpired: true,
                ..past
            },
            5,
            Some(Barrier::Expired),
        ),
        (
            Filter {
                text: Some(Contains::Exactly("klaus")),
                ..past
            },
            1,
            Some(Barrier::Text),
        ),
        (
            Filter {
                text: Some(Contains::Exactly("klaus")),
                ids: Some(&[]),
                ..past
            },
            1,
            Some(Barrier::Ids),
        ),
    ];
    for (filter, row, expected) in cases {
        assert_eq!(why(filter, &paper, row), expected, "{filter:?}");
    }
    assert_eq!(why(past, &reverie, 1), None);
    assert_eq!(
        why(past, &reverie, 2),
        Some(Barrier::Rule),
        "a chat, and idle"
    );
}

// B34: what is left out takes no slots.
#[test]
fn what_is_excluded_does_not_compete() {
    let memories: Vec<_> = (0..130)
        .map(|i| memory(&[1.0, i as f32 * 0.1], i, (i % 7) as f32))
        .collect();
    let (_dir, path) = stored(&memories);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    for name in Preset::NAMES {
        let preset = Preset {
            k: usize::MAX,
            ..Preset::named(name).unwrap()
        };
        let left_out = |ids| {
            let asked = Ask {
                filter: &without(ids),
                ..ask(&preset, T)
            };
            ranked(&store, &asked).unwrap()
        };
        for exclude in [&[0][..], &[129], &[63, 64, 127, 128], &[5, 3, 100]] {
            let ranking = left_out(exclude);
            let mut found = rows(&ranking);
            found.sort();
            let expected: Vec<_> = (0..130)
                .filter(|row| !exclude.contains(&(*row as u64)))
                .collect();
            assert_eq!(found, expected, "{name} {exclude:?}");
            assert_eq!(ranking.candidates, expected.len());
        }
        let none: Vec<u64> = (0..130).collect();
        let ranking = left_out(&none);
        assert_eq!((ranking.hits, ranking.ranges), (vec![], None));
    }
    // Ranges are those of the others: without the best and the worst, they are narrower.
    let preset = Preset::paper();
    let some = Ask {
        filter: &without(&[0]),
        ..ask(&preset, T)
    };
    let all = ranked(&store, &ask(&preset, T)).unwrap();
    let some = ranked(&store, &some).unwrap();
    assert_eq!(all.ranges.unwrap().relevance.max, 1.0);
    assert!(some.ranges.unwrap().relevance.max < 1.0);
}

#[test]
fn every_preset_obeys_the_filter() {
    let (_dir, store) = mixed();
    let snapshot = store.snapshot();
    for name in Preset::NAMES {
        let preset = Preset {
            k: usize::MAX,
            ..Preset::named(name).unwrap()
        };
        for filter in &parts() {
            let asked = Ask {
                filter,
                ..ask(&preset, T)
            };
            let mut found = rows(&ranked(&snapshot, &asked).unwrap());
            found.sort();
            let competes = |&row: &usize| {
                snapshot.is_live(row)
                    && snapshot.has_embedding(row)
                    && filter.why_not(&snapshot, &asked, row).unwrap().is_none()
            };
            let expected: Vec<usize> = (0..snapshot.rows()).filter(competes).collect();
            assert_eq!(found, expected, "{name} {filter:?}");
        }
    }
}

#[test]
fn a_mask_that_is_not_one_of_the_rows_is_an_error() {
    let (_dir, path) = g();
    let store = Store::open_read_only(&path).unwrap().snapshot();
    let preset = Preset::paper();
    let with = |mask| {
        let filter = Filter {
            mask: Some(mask),
            ..Filter::default()
        };
        let asked = Ask {
            filter: &filter,
            ..ask(&preset, T)
        };
        ranked(&store, &asked)
    };
    assert_eq!(rows(&with(&[0b101]).unwrap()), [0, 2]);
    for mask in [&[][..], &[1, 0]] {
        let refused = with(mask).unwrap_err();
        let length = matches!(
            refused,
            StreamError::Rank(RankError::MaskLength { expected: 1, .. })
        );
        assert!(length, "{refused:?}");
    }
    let refused = with(&[0b1001]).unwrap_err();
    let row = RankError::NoSuchRow { row: 3, rows: 3 };
    assert!(matches!(refused, StreamError::Rank(e) if e == row));
}

// A memory to come is not there yet, wherever it lies and whatever became of it since.
#[test]
fn what_is_created_after_the_moment_of_asking_does_not_compete() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    let at = |created| Owned {
        created,
        ..memory(&[1.0, 0.5], 300, 1.0)
    };
    let preset = paper(9);
    let found = |now| rows(&ranked(&store.snapshot(), &ask(&preset, now)).unwrap());
    append(&store, &[at(T), at(T + 2), at(i64::MAX), at(i64::MIN)]);
    let look = || {
        assert_eq!(found(i64::MIN), [3]);
        assert_eq!(found(T - 1), [3]);
        assert_eq!(found(T), [0, 3]);
        assert_eq!(found(T + 1), [0, 3]);
        assert_eq!(found(T + 2), [0, 1, 3]);
        assert_eq!(found(i64::MAX), [0, 1, 2, 3]);
        let all = Filter {
            future: true,
            ..Filter::default()
        };
        let asked = Ask {
            filter: &all,
            ..ask(&preset, i64::MIN)
        };
        assert_eq!(ranked(&store.snapshot(), &asked).unwrap().candidates, 4);
    };
    look();
    store.checkpoint().unwrap();
    look();
    // After the newest of the columns was looked up, some come to them.
    store.delete(&[2]).unwrap();
    append(&store, &[at(T + 5)]);
    assert_eq!(found(T + 4), [0, 1, 3]);
    store.checkpoint().unwrap();
    assert_eq!(found(T + 4), [0, 1, 3]);
    assert_eq!(found(T + 5), [0, 1, 3, 4]);
    let mut bulk = store.bulk().unwrap();
    bulk.push(&at(T + 9).borrowed()).unwrap();
    bulk.commit().unwrap();
    assert_eq!(found(T + 8), [0, 1, 3, 4]);
    store.compact().unwrap();
    assert_eq!(found(T + 8), [0, 1, 2, 3]);
    assert_eq!(found(T + 9), [0, 1, 2, 3, 4]);
}

#[test]
fn what_was_corrected_by_the_moment_of_asking_does_not_compete() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    let at = |created, supersedes| Owned {
        created,
        supersedes,
        ..memory(&[1.0, 0.5], 300, 1.0)
    };
    append(&store, &[at(T, None), at(T, None), at(T + 2, Some(0))]);
    let preset = paper(9);
    let found = |now, filter: &Filter<'_>| {
        let snapshot = store.snapshot();
        let asked = Ask {
            filter,
            ..ask(&preset, now)
        };
        let found = rows(&ranked(&snapshot, &asked).unwrap());
        for row in (0..snapshot.rows()).filter(|&row| snapshot.is_live(row)) {
            let why_not = filter.why_not(&snapshot, &asked, row).unwrap();
            assert_eq!(
                why_not.is_none(),
                found.contains(&row),
                "{row}: {why_not:?}"
            );
        }
        found
    };
    let future = Filter {
        future: true,
        ..Filter::PAST
    };
    let superseded = Filter {
        superseded: true,
        ..Filter::PAST
    };
    assert_eq!(found(T + 2, &Filter::PAST), [1, 2]);
    assert_eq!(found(T + 1, &Filter::PAST), [0, 1], "it is not made yet");
    assert_eq!(found(T + 1, &future), [1, 2]);
    assert_eq!(found(T + 2, &superseded), [0, 1, 2]);
    let why_not = (Filter::PAST).why_not(&store.snapshot(), &ask(&preset, T + 2), 0);
    assert_eq!(why_not.unwrap(), Some(Barrier::Superseded));
    // What is done to the correction does not bring it back.
    store.checkpoint().unwrap();
    store.delete(&[2]).unwrap();
    assert_eq!(found(T + 2, &Filter::PAST), [1]);
    assert_eq!(found(T + 1, &Filter::PAST), [1]);
    let asks = [ask(&preset, T + 2), ask(&preset, T + 3)].map(Retrieve::new);
    let all = retrieve_many(
        &store,
        &asks,
        Order::Sequential,
        Par::Serial,
        &mut Workspace::new(),
    );
    for retrieved in all.unwrap() {
        let rows: Vec<_> = retrieved.memories.iter().map(|memory| memory.row).collect();
        assert_eq!(rows, [1]);
    }
}

// B88
#[test]
fn vectors_of_another_model_are_refused_and_both_are_named() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    append(&store, &[memory(&[1.0, 0.0], 1, 1.0)]);
    let before = last_access(&store.snapshot());
    let preset = Preset::paper();
    let by = |model| Ask {
        model,
        ..ask(&preset, T)
    };
    let refused = retrieved(&store, &by(Some("another"))).unwrap_err();
    let told = refused.to_string();
    assert!(
        told.contains("\"a model\"") && told.contains("\"another\""),
        "{told}"
    );
    assert!(matches!(refused, StreamError::Model(_)));
    assert_eq!(last_access(&store.snapshot()), before);
    for model in [Some("a model"), None] {
        assert_eq!(touched(&store, &by(model)).hits.len(), 1);
    }
    // Whose model nobody named can be asked with any.
    let dir = tempfile::tempdir().unwrap();
    let options = memorank::store::CreateOptions {
        model: None,
        ..example::options(2, Dtype::F32)
    };
    let store = Store::create(dir.path().join("store"), &options).unwrap();
    touched(&store, &by(Some("another")));
}
