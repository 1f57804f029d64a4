//! When to reflect.

use crate::common::Random;
use crate::example::{OTHER, Owned, append, flip, new_store, plain};
use memorank::kernel::Dtype;
use memorank::store::{Agent, Kind, Snapshot, Store};
use memorank::stream::reflection::{Trigger, TriggerError};

fn memory(kind: Kind, importance: f32) -> Owned {
    Owned {
        kind,
        importance,
        ..plain(&[1.0, 0.0])
    }
}

fn observed(importances: &[f32]) -> Vec<Owned> {
    let each = importances.iter();
    each.map(|&importance| memory(Kind::OBSERVATION, importance))
        .collect()
}

fn reflection() -> Owned {
    memory(Kind::REFLECTION, 9.0)
}

fn sum(store: &Store) -> f64 {
    let trigger = Trigger::default();
    trigger
        .importance_since(&store.snapshot(), Agent::OWN)
        .unwrap()
}

fn is_due(store: &Store) -> bool {
    Trigger::default()
        .is_due(&store.snapshot(), Agent::OWN)
        .unwrap()
}

#[test]
fn the_papers_threshold_is_reached_by_a_sum_of_150_and_not_before() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    assert!(!is_due(&store));
    append(&store, &observed(&[10.0; 14]));
    append(&store, &observed(&[9.5]));
    assert_eq!((sum(&store), is_due(&store)), (149.5, false));
    append(&store, &observed(&[0.5]));
    assert_eq!((sum(&store), is_due(&store)), (150.0, true));
    append(&store, &observed(&[1.0]));
    assert!(is_due(&store));
}

#[test]
fn only_a_reflection_that_was_stored_starts_the_sum_anew() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(&store, &observed(&[100.0, 100.0]));
    let refused = Owned {
        importance: f32::NAN,
        ..reflection()
    };
    store.append(&[refused.borrowed()]).unwrap_err();
    assert!(is_due(&store), "a failed run resets nothing");

    let id = append(&store, &[reflection()]).start;
    append(&store, &observed(&[3.0]));
    assert_eq!(sum(&store), 3.0);
    for fold in [false, true] {
        if fold {
            store.checkpoint().unwrap();
        }
        let reader = Store::open_read_only(&path).unwrap();
        assert_eq!(sum(&reader), 3.0, "it survives a restart");
    }
    store.delete(&[id]).unwrap();
    assert_eq!(sum(&store), 203.0, "as if it had never been stored");
}

#[test]
fn memories_without_a_vector_count_and_deleted_ones_do_not() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    let without = Owned {
        embedding: None,
        ..memory(Kind::OBSERVATION, 7.0)
    };
    append(&store, &[without]);
    append(&store, &observed(&[2.0, 4.0]));
    store.delete(&[1]).unwrap();
    assert_eq!(sum(&store), 11.0);
}

#[test]
fn a_threshold_of_nan_is_never_reached_and_one_of_zero_always() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    for (threshold, due) in [
        (f64::NAN, false),
        (0.0, true),
        (f64::NEG_INFINITY, true),
        (f64::INFINITY, false),
    ] {
        let trigger = Trigger {
            threshold,
            ..Trigger::default()
        };
        assert_eq!(trigger.is_due(&store.snapshot(), Agent::OWN).unwrap(), due);
    }
}

/// As the docs say it, from the first row to the last.
fn by_the_docs(trigger: &Trigger, snapshot: &Snapshot, agent: Agent) -> f64 {
    let live = (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
    live.fold(0.0, |sum, row| {
        let memory = snapshot.memory(row).unwrap();
        if *memory.kind == trigger.reflections {
            0.0
        } else if trigger.kinds.contains(memory.kind) {
            sum + f64::from(snapshot.importance_of(agent, row))
        } else {
            sum
        }
    })
}

#[test]
fn any_life_of_a_store_gives_the_sum_since_the_last_reflection() {
    let kinds = [Kind::OBSERVATION, Kind::CHAT, Kind::REFLECTION, Kind::PLAN];
    let triggers = [
        Trigger::default(),
        Trigger {
            kinds: vec![Kind::OBSERVATION, Kind::CHAT],
            ..Trigger::default()
        },
        Trigger {
            kinds: vec![Kind::REFLECTION, Kind::named("nobody's")],
            reflections: Kind::PLAN,
            ..Trigger::default()
        },
        Trigger {
            kinds: vec![],
            ..Trigger::default()
        },
    ];
    let mut random = Random(1);
    let (_dir, path, mut store) = new_store(2, Dtype::F32);
    for _ in 0..250 {
        let next = store.snapshot().next_id();
        match random.below(10) {
            0 => store.checkpoint().unwrap(),
            1 => {
                store.close().unwrap();
                store = Store::open(&path).unwrap();
            }
            2 | 3 if next > 0 => {
                store
                    .delete(&[next - 1 - random.below(next.min(8))])
                    .unwrap();
            }
            4 | 5 if next > 0 => {
                let id = next - 1 - random.below(next.min(8));
                store
                    .set_importance(OTHER, &[id], Some(random.signed()))
                    .unwrap();
            }
            _ => {
                let kind = [0, 0, 0, 0, 1, 1, 1, 2, 3][random.below(9) as usize];
                append(
                    &store,
                    &[memory(kinds[kind].clone(), 10.0 * random.signed())],
                );
            }
        }
        let snapshot = store.snapshot();
        for trigger in &triggers {
            for agent in [Agent::OWN, OTHER] {
                let found = trigger.importance_since(&snapshot, agent).unwrap();
                assert_eq!(
                    found.to_bits(),
                    by_the_docs(trigger, &snapshot, agent).to_bits()
                );
            }
        }
    }
}

#[test]
fn a_damaged_importance_is_told_and_makes_no_nan() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(&store, &observed(&[1.0, 1.5]));
    store.close().unwrap();
    // 1.5 with all bits of its exponent is NaN.
    flip(&path.join("importance.f32"), 32 + 30);
    let store = Store::open(&path).unwrap();
    let error = Trigger::default()
        .is_due(&store.snapshot(), Agent::OWN)
        .unwrap_err();
    assert!(
        matches!(error, TriggerError::Importance { id: 1, value } if value.is_nan()),
        "{error}"
    );
}
