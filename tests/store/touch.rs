use crate::example::*;
use memorank::kernel::Dtype;
use memorank::store::{Agent, Store, TouchError, WriteError, verify};

const HOUR: i64 = 3_600_000_000;

// B13
#[test]
fn last_access_is_kept_when_closed_dropped_or_synced() {
    for how in 0..3 {
        let (_dir, path, store) = new_store(2, Dtype::F32);
        let now = 500 * HOUR;
        let old = Owned {
            created: now - 100 * HOUR,
            last_access: now - 100 * HOUR,
            ..plain(&[1.0, 0.0])
        };
        append(&store, &[old.clone(), old.clone(), old.clone()]);
        store.touch(Agent::OWN, &[1, 1], now).unwrap();
        assert_eq!(store.snapshot().last_access(Agent::OWN, 1), now);
        match how {
            0 => store.close().unwrap(),
            1 => drop(store),
            _ => {
                store.sync().unwrap();
                std::mem::forget(Store::open_read_only(&path).unwrap());
            }
        }
        let store = Store::open_read_only(&path).unwrap();
        let snapshot = store.snapshot();
        assert_eq!(
            last_access(&snapshot),
            [now - 100 * HOUR, now, now - 100 * HOUR]
        );
        assert_eq!(snapshot.memory(1).unwrap().created, now - 100 * HOUR);
        assert_eq!(verify(&path).unwrap().damages, []);
    }
}

#[test]
fn a_touch_is_a_maximum() {
    let (_dir, _path, store) = new_store(1, Dtype::F32);
    append(&store, &[plain(&[1.0]), plain(&[1.0])]);
    store.touch(Agent::OWN, &[0], 9).unwrap();
    store.touch(Agent::OWN, &[0, 1], 7).unwrap();
    store.touch(Agent::OWN, &[1], i64::MIN).unwrap();
    assert_eq!(last_access(&store.snapshot()), [9, 7]);
}

#[test]
fn touches_survive_an_append_between_them_and_the_sync() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    append(&store, &[plain(&[1.0])]);
    store.touch(Agent::OWN, &[0], 50).unwrap();
    append(&store, &[plain(&[1.0])]);
    store.touch(Agent::OWN, &[1], 60).unwrap();
    assert_eq!(last_access(&store.snapshot()), [50, 60]);
    store.sync().unwrap();
    append(&store, &[plain(&[1.0])]);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(last_access(&store.snapshot()), [50, 60, 5]);
    assert_eq!(verify(&path).unwrap().damages, []);
}

#[test]
fn an_id_that_was_never_given_touches_nothing() {
    let (_dir, path, store) = new_store(1, Dtype::F32);
    append(&store, &[plain(&[1.0])]);
    let refused = |store: &Store| {
        let before = bytes_of(&path);
        for id in [1, u64::MAX] {
            let error = store.touch(Agent::OWN, &[0, id], 99).unwrap_err();
            assert!(matches!(error, TouchError::NoId { id: i, next: 1 } if i == id));
        }
        assert_eq!(last_access(&store.snapshot()), [5]);
        assert!(bytes_of(&path) == before);
    };
    refused(&store);
    store.close().unwrap();
    refused(&Store::open(&path).unwrap());
}

// B28
#[test]
fn a_read_only_handle_changes_no_byte() {
    let (_dir, path) = filled(20, 3, Dtype::F16);
    // What a writer would cut and sweep.
    std::fs::write(path.join("manifest.1.9.tmp"), "half").unwrap();
    let mut longer = std::fs::read(path.join("id.u64")).unwrap();
    longer.extend([7; 100]);
    std::fs::write(path.join("id.u64"), longer).unwrap();
    let before = bytes_of(&path);
    let store = Store::open_read_only(&path).unwrap();
    let snapshot = store.snapshot();
    for row in 0..snapshot.rows() {
        snapshot.memory(row).unwrap();
        snapshot.embedding(row);
    }
    snapshot.row_of_key("node_4").unwrap();
    let touched = store.touch(Agent::OWN, &[0], i64::MAX);
    let read_only = |e: &WriteError| matches!(e, WriteError::ReadOnly { .. });
    assert!(
        matches!(&touched, Err(TouchError::Write(e)) if read_only(e)),
        "{touched:?}"
    );
    assert!(store.append(&[varied(0, 3).borrowed()]).is_err());
    assert!(store.bulk().is_err());
    assert!(store.delete(&[0]).is_err());
    for done in [store.sync(), store.checkpoint(), store.compact()] {
        assert!(done.is_err_and(|e| read_only(&e)));
    }
    let snapshot = store.snapshot();
    assert_eq!(last_access(&snapshot)[0], varied(0, 3).last_access);
    store.close().unwrap();
    assert_eq!(verify(&path).unwrap().uncommitted_bytes, 100);
    assert!(bytes_of(&path) == before);
}

#[test]
fn a_sync_or_checkpoint_of_nothing_writes_nothing() {
    let (_dir, path) = filled(3, 2, Dtype::F32);
    let before = bytes_of(&path);
    let store = Store::open(&path).unwrap();
    store.sync().unwrap();
    store.checkpoint().unwrap();
    store.close().unwrap();
    assert!(bytes_of(&path) == before);
}

#[test]
fn a_reader_keeps_the_state_it_opened() {
    let (_dir, path) = filled(3, 2, Dtype::F32);
    let reader = Store::open_read_only(&path).unwrap();
    let writer = Store::open(&path).unwrap();
    for i in 3..40 {
        append(&writer, &[varied(i, 2)]);
        let time = i as i64 * 1_000_000;
        writer.touch(Agent::OWN, &[0], time).unwrap();
        if i % 2 == 0 {
            writer.checkpoint().unwrap();
        }
        let now = Store::open_read_only(&path).unwrap().snapshot();
        assert_eq!(now.len(), i as usize + 1);
        assert_eq!(now.last_access(Agent::OWN, 0), time);
    }
    assert_eq!(reader.snapshot().len(), 3);
    for row in 0..3 {
        assert_row(&reader.snapshot(), row, row as u64, &varied(row as u64, 2));
    }
    // One file of touches and one segment of the journal are left.
    let files = bytes_of(&path);
    for name in ["access.", "journal."] {
        let named = files.keys().filter(|file| file.starts_with(name));
        assert_eq!(named.count(), 1);
    }
}

/// Nobody looks between the touches.
#[test]
fn touches_count_whatever_is_done_after_them() {
    const ROWS: u64 = 200;
    let agents = [Agent::OWN, Agent(1), Agent(9)];
    for then in [
        "nothing",
        "append",
        "delete",
        "checkpoint",
        "compact",
        "close",
    ] {
        let (_dir, path, store) = new_store(2, Dtype::F32);
        append(&store, &vec![plain(&[1.0, 0.0]); ROWS as usize]);
        let mut expected = vec![vec![5; ROWS as usize]; agents.len()];
        let mut random = Random(3);
        let mut deleted = Vec::new();
        for _ in 0..40 {
            let agent = random.below(agents.len());
            let now = random.below(50) as i64;
            let ids: Vec<u64> = (0..random.below(90))
                .map(|_| random.below(ROWS as usize) as u64)
                .collect();
            store.touch(agents[agent], &ids, now).unwrap();
            for &id in &ids {
                let at = &mut expected[agent][id as usize];
                *at = now.max(*at);
            }
            match then {
                "append" => drop(append(&store, &[plain(&[0.0, 1.0])])),
                "delete" | "compact" => {
                    let id = random.below(ROWS as usize) as u64;
                    store.delete(&[id]).unwrap();
                    deleted.push(id);
                    if then == "compact" && random.below(8) == 0 {
                        store.compact().unwrap();
                    }
                }
                "checkpoint" if random.below(8) == 0 => store.checkpoint().unwrap(),
                _ => {}
            }
        }
        let snapshot = match then {
            "close" => {
                store.close().unwrap();
                Store::open(&path).unwrap().snapshot()
            }
            _ => store.snapshot(),
        };
        for (agent, expected) in agents.into_iter().zip(&expected) {
            for id in 0..ROWS {
                match snapshot.row_of_id(id) {
                    None => assert!(deleted.contains(&id), "{then}"),
                    Some(row) => {
                        let found = snapshot.last_access(agent, row);
                        assert_eq!(found, expected[id as usize], "{then}, {agent:?}, {id}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_snapshot_does_not_see_touches_after_it() {
    let (_dir, _path, store) = new_store(2, Dtype::F32);
    append(&store, &vec![plain(&[1.0, 0.0]); 3]);
    let before = store.snapshot();
    store.touch(Agent::OWN, &[0], 7).unwrap();
    store.touch(Agent::OWN, &[0, 1], 6).unwrap();
    let between = store.snapshot();
    store.touch(Agent::OWN, &[2], 8).unwrap();
    assert_eq!(last_access(&before), [5, 5, 5]);
    assert_eq!(last_access(&between), [7, 6, 5]);
    assert_eq!(last_access(&store.snapshot()), [7, 6, 8]);
}
