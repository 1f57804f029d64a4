//! What is done to a store in its life, as steps that can be interrupted or fail.

use crate::example::*;
use memorank::store::{Agent, Reference, Store};
use std::error::Error;

/// An operation.
pub type Step = fn(&Store) -> Result<(), Box<dyn Error>>;

/// Every operation of a store of dimension 2, each more than once and in several orders.
pub const LIFE: [Step; 21] = [
    |store| append_varied(store, 0..2),
    |store| Ok(store.touch(Agent::OWN, &[0], 70_000)?),
    |store| Ok(store.checkpoint()?),
    |store| append_varied(store, 2..5),
    |store| Ok(store.touch(OTHER, &[1, 4], 80_000)?),
    |store| Ok(store.delete(&[0, 3]).map(|_| ())?),
    |store| bulk_varied(store, 5..8),
    |store| Ok(store.touch(Agent::OWN, &[7, 1], 90_000)?),
    |store| Ok(store.sync()?),
    |store| Ok(store.compact()?),
    |store| append_varied(store, 8..9),
    |store| {
        let memory = Owned {
            // That of a deleted one.
            key: Some("node_0".into()),
            evidence: vec![Reference::Id(0), Reference::Id(8)],
            supersedes: Some(7),
            ..plain(&[0.5, 0.25])
        };
        Ok(store.append(&[memory.borrowed()]).map(|_| ())?)
    },
    |store| Ok(store.delete(&[8]).map(|_| ())?),
    |store| Ok(store.touch(OTHER, &[9, 1], 100_000)?),
    |store| Ok(store.checkpoint()?),
    |store| Ok(store.touch(OTHER, &[9], 110_000)?),
    |store| Ok(store.delete(&[1]).map(|_| ())?),
    |store| bulk_varied(store, 10..11),
    |store| append_varied(store, 11..12),
    |store| Ok(store.compact()?),
    |store| Ok(store.touch(Agent::OWN, &[10, 11], 120_000)?),
];

fn append_varied(store: &Store, ids: std::ops::Range<u64>) -> Result<(), Box<dyn Error>> {
    let memories: Vec<_> = ids.clone().map(|i| varied(i, 2)).collect();
    let memories: Vec<_> = memories.iter().map(Owned::borrowed).collect();
    assert_eq!(store.append(&memories)?, ids);
    Ok(())
}

fn bulk_varied(store: &Store, ids: std::ops::Range<u64>) -> Result<(), Box<dyn Error>> {
    let mut bulk = store.bulk()?;
    for i in ids.clone() {
        bulk.push(&varied(i, 2).borrowed())?;
    }
    assert_eq!(bulk.commit()?, ids);
    Ok(())
}

/// The contents of an empty store, and then after each step.
pub fn states() -> Vec<String> {
    let (_files, store) = crate::in_memory::new_in_memory(2, memorank::kernel::Dtype::F32);
    let mut states = vec![contents(&store.snapshot())];
    for step in LIFE {
        step(&store).unwrap();
        states.push(contents(&store.snapshot()));
    }
    states
}
