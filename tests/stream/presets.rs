//! Presets: the rules of the authors' code about memories, and the order of results.

use super::*;

/// With this kind, text and payload.
pub fn of_kind(kind: Kind, text: &str, payload: &str) -> Owned {
    Owned {
        kind,
        text: text.to_owned(),
        payload: payload.as_bytes().to_vec(),
        ..memory(&[1.0, 0.0], 1, 1.0)
    }
}

#[test]
fn reverie_leaves_out_what_was_embedded_as_idle_and_what_is_neither_event_nor_thought() {
    let kinds = [Kind::OBSERVATION, Kind::REFLECTION];
    let mut memories = Vec::new();
    for kind in kinds.clone() {
        memories.extend([
            of_kind(kind.clone(), "the desk is idle", ""),
            of_kind(
                kind.clone(),
                "the desk is idle",
                r#"{"embedding_key": "desk in use"}"#,
            ),
            of_kind(
                kind.clone(),
                "the desk is used",
                r#"{"embedding_key": "desk is idle"}"#,
            ),
            of_kind(
                kind.clone(),
                "the desk is used",
                r#"{"embedding_key": "\u0069dle"}"#,
            ),
            of_kind(kind.clone(), "an idler", "no json"),
            of_kind(kind.clone(), "the desk is used", r#"{"other": "idle"}"#),
            of_kind(kind.clone(), "Idle", "idle"),
        ]);
    }
    memories.push(of_kind(Kind::CHAT, "a chat", ""));
    memories.push(of_kind(Kind::PLAN, "a plan", ""));
    memories.push(Owned {
        embedding: None,
        ..of_kind(Kind::OBSERVATION, "no vector", "")
    });
    let (_dir, path) = stored(&memories);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    let preset = Preset::reverie();
    assert_eq!(preset.candidates, CandidateRule::Reverie);
    let mut found = rows(&ranked(&store, &ask(&preset, T)).unwrap());
    found.sort();
    assert_eq!(found, [1, 5, 6, 8, 12, 13]);
    // Every other preset takes all that have a vector.
    let all = ranked(&store, &ask(&Preset::paper(), T)).unwrap();
    assert_eq!(all.candidates, memories.len() - 1);
}

// All scores are equal but for the position: the authors' list is by last access, then events before
// thoughts, then newest first; the first position has the most recency.
#[test]
fn reverie_lists_by_last_access_then_events_then_newest() {
    let at = |kind, hours| Owned {
        kind,
        ..memory(&[1.0, 0.0], hours, 1.0)
    };
    let (_dir, path) = stored(&[
        at(Kind::REFLECTION, 5),
        at(Kind::OBSERVATION, 5),
        at(Kind::OBSERVATION, 1),
        at(Kind::REFLECTION, 9),
        at(Kind::OBSERVATION, 5),
        at(Kind::REFLECTION, 5),
    ]);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    let ranking = ranked(&store, &ask(&Preset::reverie(), T)).unwrap();
    assert_eq!(rows(&ranking), [3, 4, 1, 5, 0, 2]);
    let raw: Vec<_> = ranking.hits.iter().map(|hit| hit.recency.raw).collect();
    for (position, raw) in (1..).zip(raw) {
        assert!((raw - 0.99_f64.powi(position)).abs() < 1e-15);
    }
    // With recency out of it, ties keep that order.
    let mut flat = Preset::reverie();
    flat.scoring.weights.recency = 0.0;
    let ranking = ranked(&store, &ask(&flat, T)).unwrap();
    assert_eq!(rows(&ranking), [3, 4, 1, 5, 0, 2]);
}

#[test]
fn genagents_gives_the_best_in_the_order_of_their_creation() {
    let created = |hours: i64, x: f32| Owned {
        created: T - hours * HOUR,
        ..memory(&[1.0, x], 0, 1.0)
    };
    let (_dir, path) = stored(&[
        created(1, 0.1),
        created(9, 0.2),
        created(5, 0.0),
        created(5, 0.3),
        created(7, 9.0),
        created(0, 9.5),
    ]);
    let store = Store::open_read_only(&path).unwrap().snapshot();
    let preset = Preset {
        k: 4,
        ..Preset::genagents()
    };
    assert_eq!(preset.result_order, ResultOrder::Created);
    let ranking = ranked(&store, &ask(&preset, T)).unwrap();
    // The four best are rows 0 to 3; what was created together stays as ranked.
    assert_eq!(rows(&ranking), [1, 2, 3, 0]);
}

#[test]
fn by_last_access_the_one_retrieved_longest_ago_is_first_as_it_was_before_the_touch() {
    let (_dir, path) = stored(&[
        memory(&[1.0, 0.1], 5, 1.0),
        memory(&[1.0, 0.0], 5, 1.0),
        memory(&[1.0, 0.2], 9, 1.0),
        memory(&[1.0, 0.3], 1, 1.0),
        memory(&[0.0, 1.0], 7, 1.0),
    ]);
    let store = Store::open(&path).unwrap();
    let mut preset = Preset {
        result_order: ResultOrder::LastAccess,
        ..paper(4)
    };
    preset.scoring.weights.recency = 0.0;
    // What was retrieved together stays as ranked.
    assert_eq!(rows(&touched(&store, &ask(&preset, T))), [2, 1, 0, 3]);
    // Now all four together; for another agent as before.
    let other = Ask {
        agent: Agent(1),
        ..ask(&preset, T)
    };
    let snapshot = store.snapshot();
    assert_eq!(
        rows(&ranked(&snapshot, &ask(&preset, T)).unwrap()),
        [1, 0, 2, 3]
    );
    assert_eq!(rows(&ranked(&snapshot, &other).unwrap()), [2, 1, 0, 3]);
}
