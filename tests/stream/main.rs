//! `stream`: ranking reads, retrieval touches what it returns.

#[path = "../store/example.rs"]
#[allow(dead_code)]
mod example;
#[path = "../store/watched.rs"]
#[allow(dead_code)]
mod watched;

mod agents;
mod batch;
mod budget;
mod deletes;
mod filter;
mod pinned;
mod presets;
mod rank;
mod replay;
mod touch;

use example::{Owned, append, bytes_of, last_access, new_store, plain};
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{CandidateRule, Preset, RankError, Ranking, ResultOrder, Touch, Workspace};
use memorank::store::{Agent, Kind, Snapshot, Store, TouchError, WriteError};
use memorank::stream::{
    Ask, Filter, Retrieve, Retrieved, StreamError, columns, rank as rank_in, replay, retrieve,
};
use std::path::PathBuf;

const HOUR: i64 = 3_600_000_000;
const T: i64 = 1_676_300_400_000_000;

fn memory(embedding: &[f32], hours: i64, importance: f32) -> Owned {
    Owned {
        created: T - 200 * HOUR,
        last_access: T - hours * HOUR,
        importance,
        ..plain(embedding)
    }
}

/// A closed store of these memories.
fn stored(memories: &[Owned]) -> (tempfile::TempDir, PathBuf) {
    let (dir, path, store) = new_store(2, Dtype::F32);
    append(&store, memories);
    store.close().unwrap();
    (dir, path)
}

/// Set G of the trials.
fn g() -> (tempfile::TempDir, PathBuf) {
    stored(&[
        memory(&[1.0, 0.0], 10, 2.0),
        memory(&[0.6, 0.8], 0, 8.0),
        memory(&[0.0, 1.0], 100, 5.0),
    ])
}

fn ask(preset: &Preset, now: i64) -> Ask<'_> {
    Ask::new(&[1.0, 0.0], now, preset)
}

/// All but the memories with these ids.
fn without(ids: &[u64]) -> Filter<'_> {
    Filter {
        exclude: ids,
        ..Filter::default()
    }
}

fn ranked(snapshot: &Snapshot, ask: &Ask<'_>) -> Result<Ranking, StreamError> {
    let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
    rank_in(snapshot, ask, Par::Serial, &mut workspace, &mut ranking)?;
    Ok(ranking)
}

fn retrieved(store: &Store, ask: &Ask<'_>) -> Result<Retrieved, StreamError> {
    let wanted = Retrieve::new(*ask);
    retrieve(store, &wanted, Par::Serial, &mut Workspace::new())
}

/// What was retrieved, as a ranking.
fn ranking(retrieved: &Retrieved) -> Ranking {
    let hits = retrieved.memories.iter().filter_map(|memory| memory.hit);
    Ranking {
        hits: hits.collect(),
        ranges: retrieved.ranges,
        candidates: retrieved.candidates,
    }
}

/// A retrieval where nothing goes wrong.
fn touched(store: &Store, ask: &Ask<'_>) -> Ranking {
    let retrieved = retrieved(store, ask).unwrap();
    let ranking = ranking(&retrieved);
    retrieved.touch.unwrap();
    ranking
}

fn rows(ranking: &Ranking) -> Vec<usize> {
    ranking.hits.iter().map(|hit| hit.row).collect()
}

fn ids(retrieved: &Retrieved) -> Vec<u64> {
    retrieved.memories.iter().map(|memory| memory.id).collect()
}

fn assert_same_bits(found: &Ranking, expected: &Ranking) {
    assert_eq!(found, expected);
    for (found, expected) in found.hits.iter().zip(&expected.hits) {
        assert_eq!(found.score.to_bits(), expected.score.to_bits());
    }
}

fn paper(k: usize) -> Preset {
    Preset {
        k,
        ..Preset::paper()
    }
}

/// Memories that differ in every field a filter looks at, some in the columns and some in the tail, some
/// deleted, some touched by an agent of its own, and the store they are in. Ids are rows.
fn mixed() -> (tempfile::TempDir, Store) {
    const KINDS: [Kind; 3] = [Kind::OBSERVATION, Kind::REFLECTION, Kind::CHAT];
    let memories: Vec<Owned> = (0..300)
        .map(|i: i64| Owned {
            kind: KINDS[i as usize % 3].clone(),
            embedding: (i % 17 != 3).then(|| vec![1.0, (i * 37 % 300) as f32 * 0.01]),
            text: ["Klaus paints", "KLAUS sleeps", "the desk is idle", "Ürgüp"][i as usize % 4]
                .to_owned(),
            created: T + (i - 250) * HOUR,
            last_access: T + (i * 7 % 300 - 250) * HOUR,
            expiry: (i % 5 == 0).then_some(T + (i - 200) * HOUR),
            importance: (i * 31 % 11) as f32,
            ..plain(&[])
        })
        .collect();
    let (dir, _, store) = new_store(2, Dtype::F32);
    append(&store, &memories[..130]);
    store.checkpoint().unwrap();
    append(&store, &memories[130..]);
    let touched: Vec<u64> = (0..300).step_by(13).collect();
    store.touch(Agent(3), &touched, T - 2 * HOUR).unwrap();
    store.delete(&[0, 63, 64, 129, 130, 255, 299]).unwrap();
    (dir, store)
}
