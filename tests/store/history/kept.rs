//! What is kept of the journal: how much, and what becomes of the store when it is damaged or gone.

use super::*;
use memorank::store::{Problem, WriteError, repair_on};

/// The segments of the store, with their lengths, oldest first.
fn segments(files: &InMemory) -> Vec<(u64, u64)> {
    let names = names(files);
    let numbers = names
        .iter()
        .filter_map(|name| name.strip_prefix("journal."));
    let mut numbers: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
    numbers.sort_unstable();
    let with_bytes = numbers.into_iter().map(|number| {
        let bytes = get(files, &format!("journal.{number}"));
        (number, bytes.len() as u64)
    });
    with_bytes.collect()
}

/// A closed store with a segment kept for each of some touches, whose numbers it gives, with what they saw.
fn worn_with_history(rounds: u64) -> (InMemory, Vec<(u64, String)>) {
    let (files, store) = new_with_history(2);
    append(&store, &[varied(0, 2), varied(1, 2), varied(2, 2)]);
    let mut touches = Vec::new();
    for round in 0..rounds {
        let seen = observed(&store.snapshot());
        let sequence = touched(&store, &touch(&[round % 3], 60_000 + round as i64));
        touches.push((sequence, seen));
        append(&store, &[varied(3 + round, 2)]);
        store.set_importance(OTHER, &[round], Some(2.0)).unwrap();
        store.checkpoint().unwrap();
    }
    store.close().unwrap();
    (files, touches)
}

#[test]
fn as_much_is_kept_as_was_asked_for_the_newest_first() {
    let (all, _) = worn_with_history(5);
    let (live, kept) = {
        let mut segments = segments(&all);
        (segments.pop().unwrap(), segments)
    };
    assert_eq!(kept.len(), 5);
    let sum = |newest: usize| {
        kept[5 - newest..]
            .iter()
            .map(|&(_, bytes)| bytes)
            .sum::<u64>()
    };
    for newest in 0..=5 {
        for (bytes, expected) in [
            (sum(newest), newest),
            ((sum(newest) + 1), newest),
            (sum(newest).saturating_sub(1), newest.saturating_sub(1)),
        ] {
            let files = killed(&all);
            let store = open(&files).unwrap();
            assert_eq!(segments(&files).len(), 6, "opening changes nothing");
            store.keep_history(bytes).unwrap();
            store.touch(Agent::OWN, &[0], 70_000).unwrap();
            let left = segments(&files);
            assert_eq!(
                left[..left.len() - 1],
                kept[5 - expected..],
                "{bytes} bytes"
            );
            assert!(left[left.len() - 1].0 > live.0);
            let found = store.touches().unwrap();
            assert_eq!(found.len(), expected + 1);
        }
    }
}

#[test]
fn a_fold_removes_what_is_more_than_was_asked_for() {
    let (files, store) = new_with_history(2);
    append(&store, &[varied(0, 2)]);
    store.keep_history(1_000).unwrap();
    let mut most = 0;
    for now in 60_000..60_040 {
        touched(&store, &touch(&[0], now));
        if now % 3 == 0 {
            store.checkpoint().unwrap();
        }
        let mut segments = segments(&files);
        segments.pop();
        let bytes = segments.iter().map(|&(_, bytes)| bytes).sum::<u64>();
        assert!(bytes <= 1_000, "{segments:?}");
        most = most.max(bytes);
        // All that is kept can be used, and so can what is not folded yet.
        let touches = store.touches().unwrap();
        assert!(
            touches
                .iter()
                .all(|&(sequence, _)| store.before(sequence).is_ok())
        );
        assert!(touches.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
    }
    assert!(most > 600, "{most}");
    // A compaction of a store without anything new leaves no empty segment.
    store.checkpoint().unwrap();
    let before = segments(&files).len();
    store.compact().unwrap();
    store.compact().unwrap();
    assert_eq!(segments(&files).len(), before);
}

#[test]
fn a_store_that_is_opened_by_several_writers_in_turn_keeps_one_history() {
    let (mut files, mut touches) = worn_with_history(2);
    for round in 0..6 {
        let store = open(&files).unwrap();
        for (sequence, seen) in &touches {
            assert_before(&store, *sequence, seen);
        }
        for i in 0..2 {
            let seen = observed(&store.snapshot());
            let sequence = touched(&store, &touch(&[i], 80_000 + round));
            touches.push((sequence, seen));
        }
        match round % 3 {
            // Nothing is folded: the next one takes over.
            0 => files = killed(&files),
            1 => {
                store.checkpoint().unwrap();
                files = killed(&files);
            }
            _ => store.close().unwrap(),
        }
    }
    let store = open_read_only(&files).unwrap();
    let found: Vec<_> = store
        .touches()
        .unwrap()
        .into_iter()
        .map(|(n, _)| n)
        .collect();
    let expected: Vec<_> = touches.iter().map(|&(n, _)| n).collect();
    assert_eq!(found, expected);
    let report = verify_on(&files, STORE).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.kept_records, store.snapshot().sequence());
}

// Damage in what is kept is told, and concerns nothing else.
#[test]
fn a_flipped_bit_of_what_is_kept_is_found_and_stops_nobody() {
    let (sound, touches) = worn_with_history(3);
    let expected = observed(&open_read_only(&sound).unwrap().snapshot());
    let (mut refused, kept) = (0, segments(&sound));
    for &(number, bytes) in &kept[..kept.len() - 1] {
        for bit in (0..bytes as usize * 8).step_by(7) {
            let files = killed(&sound);
            flip_in(&files, &path(&format!("journal.{number}")), bit);
            // Checks all but what is kept.
            let store = open_read_only(&files).unwrap();
            assert_eq!(observed(&store.snapshot()), expected);
            let report = verify_on(&files, STORE).unwrap();
            assert!(!report.is_sound(), "segment {number}, bit {bit}");
            let name = format!("journal.{number}");
            assert!(
                report.damages.iter().all(|d| d.path.ends_with(&name)),
                "{report:?}"
            );
            let all = store.touches();
            assert!(matches!(all, Err(HistoryError::Damaged(_))), "{all:?}");
            for (sequence, seen) in &touches {
                match store.before(*sequence) {
                    Ok((before, _)) => assert_eq!(observed(&before), *seen),
                    Err(HistoryError::Damaged(damage)) => {
                        assert!(damage.path.ends_with(&name));
                        refused += 1;
                    }
                    Err(error) => panic!("segment {number}, bit {bit}: {error}"),
                }
            }
            if bit % 49 == 0 {
                let store = open(&files).unwrap();
                store.touch(Agent::OWN, &[0], 90_000).unwrap();
                store.keep_history(0).unwrap();
                store.close().unwrap();
                assert_eq!(segments(&files).len(), 1);
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn what_is_cut_or_gone_or_no_segment_is_told() {
    let (sound, touches) = worn_with_history(3);
    let kept = segments(&sound);
    let name = |at: usize| format!("journal.{}", kept[at].0);
    let newest = touches.len() - 1;

    let files = killed(&sound);
    files.remove_file(&path(&name(1))).unwrap();
    let store = open_read_only(&files).unwrap();
    assert_before(&store, touches[newest].0, &touches[newest].1);
    for (sequence, _) in &touches[..newest] {
        let error = store.before(*sequence).unwrap_err();
        assert!(matches!(error, HistoryError::Gap { .. }), "{error}");
    }
    assert_eq!(store.touches().unwrap().len(), 1);

    let files = killed(&sound);
    files.remove_file(&path(&name(0))).unwrap();
    let store = open_read_only(&files).unwrap();
    let error = store.before(touches[0].0).unwrap_err();
    assert!(matches!(error, HistoryError::NotKept { .. }), "{error}");
    assert!(verify_on(&files, STORE).unwrap().is_sound());

    for cut in 0..kept[1].1 as usize {
        let files = killed(&sound);
        put(&files, &name(1), &get(&sound, &name(1))[..cut]);
        let store = open_read_only(&files).unwrap();
        assert_before(&store, touches[newest].0, &touches[newest].1);
        match store.before(touches[0].0).unwrap_err() {
            HistoryError::Damaged(damage) => assert!(damage.path.ends_with(name(1))),
            // Where there is no header, there may never have been a record.
            HistoryError::Gap { .. } => assert!(cut < 64, "{cut}"),
            error => panic!("{cut}: {error}"),
        }
        let damages = verify_on(&files, STORE).unwrap().damages;
        assert_eq!(damages.is_empty(), cut < 64, "{cut}: {damages:?}");
    }
    let files = killed(&sound);
    files.remove_file(&path(&name(1))).unwrap();
    files.create_dir(&path(&name(1))).unwrap();
    let store = open_read_only(&files).unwrap();
    let error = store.before(touches[0].0).unwrap_err();
    assert!(matches!(error, HistoryError::Io { .. }), "{error}");
    let damages = verify_on(&files, STORE).unwrap().damages;
    assert!(matches!(damages[..], [ref one] if matches!(one.problem, Problem::Unreadable(_))));
}

// As a crash leaves it between the manifest that names a takeover and the removal of what it took over.
#[test]
fn what_was_taken_over_and_is_still_there_is_passed_over() {
    let (sound, touches) = worn_with_history(2);
    let store = open(&sound).unwrap();
    let seen = observed(&store.snapshot());
    let sequence = touched(&store, &touch(&[0], 70_000));
    let old = segments(&sound).pop().unwrap().0;
    let crashed = killed(&sound);
    let bytes = get(&crashed, &format!("journal.{old}"));
    let store = open(&crashed).unwrap();
    let next = touched(&store, &touch(&[0], 70_001));
    // Torn, as the crash may have left it.
    for bytes in [
        &bytes[..],
        &bytes[..bytes.len() - 9],
        &bytes[..64],
        &bytes[..9],
        &[],
    ] {
        for fold in [false, true] {
            let files = killed(&crashed);
            put(&files, &format!("journal.{old}"), bytes);
            let store = open(&files).unwrap();
            if fold {
                touched(&store, &touch(&[0], 70_002));
                store.checkpoint().unwrap();
            }
            assert_before(&store, sequence, &seen);
            assert_before(&store, touches[0].0, &touches[0].1);
            assert!(store.before(next).is_ok());
            assert_eq!(
                store.touches().unwrap().len(),
                touches.len() + 2 + usize::from(fold)
            );
            let report = verify_on(&files, STORE).unwrap();
            assert!(report.is_sound(), "{report:?}");
        }
    }
}

#[test]
fn a_repair_takes_what_the_store_holds_and_no_history() {
    let (files, touches) = worn_with_history(3);
    let expected = contents(&open_read_only(&files).unwrap().snapshot());
    for without_manifest in [false, true] {
        let files = killed(&files);
        if without_manifest {
            put(&files, "manifest", b"gone");
        }
        let options = memorank::store::RepairOptions {
            dim: Some(2.try_into().unwrap()),
            dtype: None,
        };
        let repaired = Path::new("repaired");
        let report = repair_on(Arc::new(files.clone()), STORE, repaired, &options).unwrap();
        let options = OpenOptions {
            read_only: true,
            ..OpenOptions::default()
        };
        let store = Store::open_on(Arc::new(files), repaired, &options).unwrap();
        if !without_manifest {
            assert!(report.is_whole(), "{report:?}");
            assert_eq!(contents(&store.snapshot()), expected);
        }
        assert_eq!(store.snapshot().len(), 6);
        assert!(matches!(
            store.before(touches[0].0),
            Err(HistoryError::NoRecord { .. })
        ));
    }
}

#[test]
fn how_much_is_kept_is_a_matter_of_the_store_whoever_writes() {
    let (files, store) = new_with_history(2);
    assert_eq!(store.history_bytes(), u64::MAX);
    append(&store, &[varied(0, 2)]);
    let sequence = touched(&store, &touch(&[0], 60_000));
    store.close().unwrap();
    for now in 60_001..60_004 {
        let store = open(&files).unwrap();
        assert_eq!(store.history_bytes(), u64::MAX);
        store.touch(Agent::OWN, &[0], now).unwrap();
        store.compact().unwrap();
        store.close().unwrap();
    }
    let reader = open_read_only(&files).unwrap();
    assert!(reader.before(sequence).is_ok());
    assert!(matches!(
        reader.keep_history(0),
        Err(WriteError::ReadOnly { .. })
    ));

    let store = open(&files).unwrap();
    let expected = contents(&store.snapshot());
    store.keep_history(0).unwrap();
    assert_eq!((store.history_bytes(), segments(&files).len()), (0, 1));
    assert_eq!(contents(&store.snapshot()), expected);
    store.close().unwrap();
    let store = open(&files).unwrap();
    assert_eq!(store.history_bytes(), 0);
    assert!(store.touches().unwrap().is_empty());
}
