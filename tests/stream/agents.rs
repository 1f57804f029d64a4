//! Agents that share a store: each has last accesses of its own.

use super::*;

/// Every agent's last accesses, as the columns of its rankings have them.
fn accesses(snapshot: &Snapshot, agent: Agent) -> Vec<i64> {
    let columns = columns(snapshot, agent).unwrap();
    let parts = columns.iter().map(|columns| columns.last_access().unwrap());
    parts.collect::<Vec<_>>().concat()
}

#[test]
fn agents_have_their_own_last_accesses() {
    let (_dir, path) = g();
    let store = Store::open(&path).unwrap();
    let (klaus, maria) = (Agent(1), Agent(u32::MAX));
    let stored = [T - 10 * HOUR, T, T - 100 * HOUR];
    // The best of each: with recency alone, what the agent itself saw last.
    let mut preset = paper(1);
    preset.scoring.weights.relevance = 0.0;
    preset.scoring.weights.importance = 0.0;
    let asks = |agent, now| Ask {
        agent,
        ..ask(&preset, now)
    };
    let of_klaus = Ask {
        filter: &without(&[0, 1]),
        ..asks(klaus, T + 5 * HOUR)
    };
    assert_eq!(rows(&touched(&store, &of_klaus)), [2]);
    let of_maria = Ask {
        filter: &without(&[1, 2]),
        ..asks(maria, T + 6 * HOUR)
    };
    assert_eq!(rows(&touched(&store, &of_maria)), [0]);
    let seen = |snapshot: &Snapshot| {
        assert_eq!(accesses(snapshot, Agent::OWN), stored);
        assert_eq!(
            accesses(snapshot, Agent(7)),
            stored,
            "of one who never asked"
        );
        assert_eq!(
            accesses(snapshot, klaus),
            [stored[0], stored[1], T + 5 * HOUR]
        );
        assert_eq!(
            accesses(snapshot, maria),
            [T + 6 * HOUR, stored[1], stored[2]]
        );
        let best = [(Agent::OWN, 1), (klaus, 2), (maria, 0)];
        for (agent, best) in best {
            let ranking = ranked(snapshot, &asks(agent, T + 7 * HOUR)).unwrap();
            assert_eq!(rows(&ranking), [best], "{agent:?}");
        }
    };
    seen(&store.snapshot());
    store.checkpoint().unwrap();
    seen(&store.snapshot());
    store.close().unwrap();
    seen(&Store::open_read_only(&path).unwrap().snapshot());
}
