//! Going back while others write.

use super::*;
use crate::setting::setting;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

// B31: what is ranked is older than the touch's record, by what others did in between.
#[test]
fn a_touch_of_one_thread_goes_back_to_its_own_snapshot_and_not_to_that_of_another() {
    let rounds = 150 * setting("MEMORANK_CONCURRENCY_SECONDS", 1);
    let (files, store) = new_with_history(2);
    append(&store, &(0..20).map(|i| varied(i, 2)).collect::<Vec<_>>());
    let seen = Mutex::new(Vec::new());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let touchers: Vec<_> = (0..3_u64)
            .map(|toucher| {
                let (store, seen) = (&store, &seen);
                scope.spawn(move || {
                    for round in 0..rounds as u64 {
                        let snapshot = store.snapshot();
                        let expected = observed(&snapshot);
                        thread::yield_now();
                        let sequence = touched(
                            store,
                            &NewTouch {
                                agent: [Agent::OWN, OTHER][toucher as usize % 2],
                                seen: Some(&snapshot),
                                ..touch(&[round * 7 % 20, toucher], 60_000 + round as i64)
                            },
                        );
                        seen.lock().unwrap().push((sequence, expected));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for i in 20.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                append(
                    &store,
                    &[Owned {
                        key: None,
                        ..varied(i, 2)
                    }],
                );
                let id = store.snapshot().next_id() - 1;
                store
                    .set_importance(OTHER, &[id / 2], Some(i as f32))
                    .unwrap();
                if i % 3 == 1 {
                    let _ = store.embed(&[(id, &[0.25, 0.5])]);
                }
                store.delete(&[id - 1]).unwrap();
                if i % 8 == 0 {
                    store.checkpoint().unwrap();
                }
            }
        });
        // Beside the writers, a handle of its own.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let reader = open_read_only(&files).unwrap();
                let touches = reader.touches().unwrap();
                if let Some((sequence, _)) = touches.first() {
                    assert!(reader.before(*sequence).is_ok());
                }
            }
        });
        for toucher in touchers {
            toucher.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let seen = seen.into_inner().unwrap();
    let late = seen.iter().filter(|(sequence, expected)| {
        let (before, _) = store.before(*sequence).unwrap();
        assert_eq!(observed(&before), *expected, "record {sequence}");
        before.sequence() + 1 < *sequence
    });
    assert!(late.count() > 0, "no thread came between");
    assert_eq!(seen.len(), 3 * rounds);
    store.close().unwrap();
    let store = open_read_only(&files).unwrap();
    for (sequence, expected) in seen.iter().step_by(7) {
        assert_before(&store, *sequence, expected);
    }
}
