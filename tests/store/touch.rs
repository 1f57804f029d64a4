use crate::example::*;
use memorank::kernel::Dtype;
use memorank::store::{Store, TouchError, WriteError, verify};

const HOUR: i64 = 3_600_000_000;

// B13
#[test]
fn last_access_is_kept_when_closed_dropped_or_synced() {
    for how in 0..3 {
        let (_dir, path, mut store) = new_store(2, Dtype::F32);
        let now = 500 * HOUR;
        let old = Owned {
            created: now - 100 * HOUR,
            last_access: now - 100 * HOUR,
            ..plain(&[1.0, 0.0])
        };
        append(&mut store, &[old.clone(), old.clone(), old.clone()]);
        store.touch(&[1, 1], now).unwrap();
        assert_eq!(store.last_access()[1], now);
        match how {
            0 => store.close().unwrap(),
            1 => drop(store),
            _ => {
                store.sync().unwrap();
                std::mem::forget(Store::open_read_only(&path).unwrap());
            }
        }
        let store = Store::open_read_only(&path).unwrap();
        assert_eq!(
            store.last_access(),
            [now - 100 * HOUR, now, now - 100 * HOUR]
        );
        assert_eq!(store.memory(1).unwrap().created, now - 100 * HOUR);
        assert_eq!(verify(&path).unwrap().damages, []);
    }
}

#[test]
fn a_touch_is_a_maximum() {
    let (_dir, _path, mut store) = new_store(1, Dtype::F32);
    append(&mut store, &[plain(&[1.0]), plain(&[1.0])]);
    store.touch(&[0], 9).unwrap();
    store.touch(&[0, 1], 7).unwrap();
    store.touch(&[1], i64::MIN).unwrap();
    assert_eq!(store.last_access(), [9, 7]);
}

#[test]
fn touches_survive_an_append_between_them_and_the_sync() {
    let (_dir, path, mut store) = new_store(1, Dtype::F32);
    append(&mut store, &[plain(&[1.0])]);
    store.touch(&[0], 50).unwrap();
    append(&mut store, &[plain(&[1.0])]);
    store.touch(&[1], 60).unwrap();
    assert_eq!(store.last_access(), [50, 60]);
    store.sync().unwrap();
    append(&mut store, &[plain(&[1.0])]);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.last_access(), [50, 60, 5]);
    assert_eq!(verify(&path).unwrap().damages, []);
}

#[test]
fn a_row_that_does_not_exist_touches_nothing() {
    let (_dir, _path, mut store) = new_store(1, Dtype::F32);
    append(&mut store, &[plain(&[1.0])]);
    for row in [1, u32::MAX] {
        let error = store.touch(&[0, row], 99).unwrap_err();
        assert!(matches!(error, TouchError::NoRow { row: r, rows: 1 } if r == row));
    }
    assert_eq!(store.last_access(), [5]);
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
    let mut store = Store::open_read_only(&path).unwrap();
    for row in 0..store.len() {
        store.memory(row).unwrap();
        store.embedding(row);
    }
    store.row_of_key("node_4").unwrap();
    let touched = store.touch(&[0], i64::MAX);
    let read_only = |e: &WriteError| matches!(e, WriteError::ReadOnly { .. });
    assert!(
        matches!(&touched, Err(TouchError::Write(e)) if read_only(e)),
        "{touched:?}"
    );
    assert!(store.append(&[varied(0, 3).borrowed()]).is_err());
    assert!(store.bulk().is_err());
    store.sync().unwrap();
    assert_eq!(store.last_access()[0], varied(0, 3).last_access);
    store.close().unwrap();
    assert_eq!(verify(&path).unwrap().uncommitted_bytes, 100);
    assert!(bytes_of(&path) == before);
}

#[test]
fn a_sync_without_touches_writes_nothing() {
    let (_dir, path) = filled(3, 2, Dtype::F32);
    let before = bytes_of(&path);
    let mut store = Store::open(&path).unwrap();
    store.touch(&[0, 1, 2], i64::MIN).unwrap();
    store.sync().unwrap();
    store.close().unwrap();
    assert!(bytes_of(&path) == before);
}

#[test]
fn a_reader_keeps_the_state_it_opened() {
    let (_dir, path) = filled(3, 2, Dtype::F32);
    let reader = Store::open_read_only(&path).unwrap();
    let mut writer = Store::open(&path).unwrap();
    for i in 3..40 {
        append(&mut writer, &[varied(i, 2)]);
        writer.touch(&[0], i as i64 * 1_000_000).unwrap();
        writer.sync().unwrap();
        let now = Store::open_read_only(&path).unwrap();
        assert_eq!(now.len(), i as usize + 1);
        assert_eq!(now.last_access()[0], i as i64 * 1_000_000);
    }
    assert_eq!(reader.len(), 3);
    for row in 0..3 {
        assert_row(&reader, row, row as u64, &varied(row as u64, 2));
    }
    // One file of last accesses is left.
    let files = bytes_of(&path);
    assert_eq!(
        files
            .keys()
            .filter(|f| f.starts_with("last_access"))
            .count(),
        1
    );
}
