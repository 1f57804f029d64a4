//! Deleted memories: no candidates, and not touched.

use super::*;

#[test]
fn deleted_memories_are_no_candidates() {
    let memories: Vec<_> = (0..130)
        .map(|i| memory(&[1.0, i as f32 * 0.1], i, (i % 7) as f32))
        .collect();
    let (_dir, path, store) = new_store(2, Dtype::F32);
    append(&store, &memories[..100]);
    store.checkpoint().unwrap();
    append(&store, &memories[100..]);
    let before = store.snapshot();
    let deleted = [0, 1, 2, 63, 64, 65, 99, 100, 129];
    assert_eq!(store.delete(&deleted).unwrap(), deleted.len());
    let none_deleted = |store: &Snapshot| {
        for name in Preset::NAMES {
            let preset = Preset {
                k: usize::MAX,
                ..Preset::named(name).unwrap()
            };
            // As if they were excluded, and together with what is.
            for exclude in [&[][..], &[5], &[5, 0, 128, 127]] {
                let both: Vec<u64> = (0..130)
                    .filter(|id| exclude.contains(id) || deleted.contains(id))
                    .collect();
                let left_out = |snapshot: &Snapshot, ids| {
                    let asked = Ask {
                        filter: &without(ids),
                        ..ask(&preset, T)
                    };
                    ranked(snapshot, &asked).unwrap()
                };
                let found = left_out(store, exclude);
                let expected = left_out(&before, &both);
                assert_same_bits(&found, &expected);
                assert_eq!(found.candidates, 130 - both.len());
            }
        }
    };
    none_deleted(&store.snapshot());
    store.checkpoint().unwrap();
    none_deleted(&store.snapshot());
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    none_deleted(&store.snapshot());

    // Without their rows, the same memories by id.
    let whole = store.snapshot();
    store.compact().unwrap();
    let compact = store.snapshot();
    assert_eq!((compact.rows(), compact.live()), (121, None));
    for name in Preset::NAMES {
        let preset = Preset::named(name).unwrap();
        let found = ranked(&compact, &ask(&preset, T)).unwrap();
        let expected = ranked(&whole, &ask(&preset, T)).unwrap();
        let ids = |of: &Snapshot, ranking: &Ranking| {
            let hits = ranking.hits.iter();
            hits.map(|hit| (of.id(hit.row), hit.score.to_bits()))
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&compact, &found), ids(&whole, &expected), "{name}");
    }

    // What was deleted while a retrieval ran is not touched, which is no error.
    let preset = paper(usize::MAX);
    let all: Vec<u64> = (0..130).collect();
    let ranking = touched(&store, &ask(&preset, T + HOUR));
    assert_eq!(ranking.hits.len(), 121);
    store.delete(&all).unwrap();
    store.touch(Agent::OWN, &all, T + 2 * HOUR).unwrap();
    let ranking = touched(&store, &ask(&preset, T + 3 * HOUR));
    assert_eq!(ranking, Ranking::default());
}
