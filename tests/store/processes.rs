//! Writers in several handles and processes, killed and short of room. A child is this test program
//! again, told by the environment what to do.

use crate::example::*;
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::scoring::{Hit, Preset, Ranking, Workspace};
use memorank::store::{
    Agent, AppendError, CreateError, OpenError, OpenOptions, Store, WriteError, verify,
};
use memorank::stream::{Ask, Retrieve, rank, retrieve};
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CHILD: &str = "MEMORANK_TEST_CHILD_STORE";

// B50
#[test]
fn a_second_writer_is_told_so_at_once() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    let locked = |path: &Path| matches!(Store::open(path), Err(OpenError::Locked { .. }));
    assert!(locked(&path));
    Store::open_read_only(&path).unwrap();
    assert!(locked(&path));
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    assert!(locked(&path));
    drop(store);
    // The lock file stays, and blocks nobody.
    assert!(path.join("lock").exists());
    assert!(!locked(&path));
}

#[test]
fn a_writer_whose_lock_file_was_removed_commits_nothing() {
    for replace in [false, true] {
        let (_dir, path) = filled(3, 2, Dtype::F32);
        let store = Store::open(&path).unwrap();
        let mut bulk = store.bulk().unwrap();
        let before = bytes_of(&path)["manifest"].clone();
        bulk.push(&varied(3, 2).borrowed()).unwrap();
        std::fs::remove_file(path.join("lock")).unwrap();
        let other = replace.then(|| Store::open(&path).unwrap());
        let error = bulk.commit().unwrap_err();
        assert!(
            matches!(error, AppendError::Write(WriteError::LockLost { .. })),
            "{error}"
        );
        assert!(store.append(&[varied(3, 2).borrowed()]).is_err());
        drop((store, other));
        assert!(bytes_of(&path)["manifest"] == before);
        assert_eq!(verify(&path).unwrap().damages, []);
    }
}

#[test]
fn a_writer_that_lost_its_lock_does_another_no_harm() {
    type Operation = fn(&Store) -> Result<(), AppendError>;
    let operations: [Operation; 6] = [
        |store| store.append(&[varied(3, 2).borrowed()]).map(drop),
        |store| store.bulk().map(drop),
        |store| Ok(store.checkpoint()?),
        |store| Ok(store.compact()?),
        |store| Ok(store.sync()?),
        // Closing.
        |_| Err(AppendError::Full),
    ];
    for operation in operations {
        let (_dir, path) = filled(3, 2, Dtype::F32);
        let first = Store::open(&path).unwrap();
        first.touch(Agent::OWN, &[1], 1_000_000).unwrap();
        std::fs::remove_file(path.join("lock")).unwrap();
        let second = Store::open(&path).unwrap();
        let mut bulk = second.bulk().unwrap();
        for i in 3..9 {
            bulk.push(&varied(i, 2).borrowed()).unwrap();
        }
        bulk.commit().unwrap();
        append(&second, &[varied(9, 2)]);
        let before = contents(&second.snapshot());
        assert!(operation(&first).is_err());
        drop(first);
        assert_eq!(contents(&second.snapshot()), before);
        assert_eq!(verify(&path).unwrap().damages, []);
        let reader = Store::open_read_only(&path).unwrap();
        assert_eq!(contents(&reader.snapshot()), before);
        append(&second, &[varied(10, 2)]);
        second.close().unwrap();
        let again = Store::open(&path).unwrap().snapshot();
        assert_eq!(
            (again.len(), again.last_access(Agent::OWN, 1)),
            (11, 1_000_000)
        );
        assert_eq!(verify(&path).unwrap().damages, []);
    }
}

/// Starts `test` of this program in a process of its own.
fn child(test: &str, path: &Path, shell: &str) -> Child {
    let program = std::env::current_exe().unwrap();
    let script = format!("{shell} exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the child says `word`. Gives what it says later: dropped, the child could not go on.
fn wait_for(child: &mut Child, word: &str) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line.contains(word)));
    lines
}

// B50
#[test]
fn a_killed_writer_blocks_nobody_and_harms_nothing() {
    let (_dir, path) = filled(4, 2, Dtype::F32);
    for round in 0..5 {
        let mut holder = child("processes::hold_and_append", &path, "");
        let _later = wait_for(&mut holder, "holding");
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, OpenError::Locked { .. }), "{error}");
        holder.kill().unwrap();
        holder.wait().unwrap();
        let store = Store::open(&path).unwrap();
        // The child committed one and was killed with others staged.
        let snapshot = store.snapshot();
        assert_eq!(snapshot.len(), 5 + 2 * round);
        let next = snapshot.next_id();
        append(&store, &[varied(next, 2)]);
        drop(store);
        assert_eq!(verify(&path).unwrap().damages, []);
    }
    let store = Store::open(&path).unwrap();
    for row in 0..store.snapshot().rows() {
        assert_row(&store.snapshot(), row, row as u64, &varied(row as u64, 2));
    }
}

#[test]
#[ignore = "the child of a_killed_writer_blocks_nobody_and_harms_nothing"]
fn hold_and_append() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let store = Store::open(path).unwrap();
    let next = store.snapshot().next_id();
    append(&store, &[varied(next, 2)]);
    let mut bulk = store.bulk().unwrap();
    for i in next + 1..next + 150_000 {
        bulk.push(&varied(i, 2).borrowed()).unwrap();
    }
    println!("holding");
    std::thread::sleep(Duration::from_secs(60));
}

const HOUR: i64 = 3_600_000_000;

/// The moment of the first retrieval.
const T: i64 = 500 * HOUR;

/// The `k` best at `now`: their rows, and the bits of their scores.
fn best(store: &Store, k: usize, now: i64, touch: bool) -> String {
    let preset = Preset {
        k,
        ..Preset::paper()
    };
    let ask = Ask::new(&[1.0, 0.25], now, &preset);
    let (mut workspace, mut ranking) = (Workspace::default(), Ranking::default());
    let hits: Vec<Hit> = match touch {
        true => {
            let wanted = Retrieve::new(ask);
            let done = retrieve(store, &wanted, Par::Serial, &mut workspace).unwrap();
            done.touch.unwrap();
            done.memories.iter().filter_map(|of| of.hit).collect()
        }
        false => {
            let snapshot = store.snapshot();
            rank(&snapshot, &ask, Par::Serial, &mut workspace, &mut ranking).unwrap();
            ranking.hits
        }
    };
    let hits = hits
        .iter()
        .map(|hit| format!("{}:{:016x}", hit.row, hit.score.to_bits()));
    Vec::from_iter(hits).join(" ")
}

// B13
#[test]
fn another_process_scores_with_what_this_one_touched_to_the_bit() {
    let (_dir, path, store) = new_store(2, Dtype::F32);
    let memories: Vec<_> = (0..9)
        .map(|i| Owned {
            created: T - 100 * HOUR,
            last_access: T - (100 - i) * HOUR,
            ..plain(&[1.0, i as f32 / 4.0])
        })
        .collect();
    append(&store, &memories);
    let before = best(&store, 9, T + HOUR, false);
    best(&store, 3, T, true);
    let expected = best(&store, 9, T + HOUR, false);
    assert_ne!(expected, before);
    // While this one is open the touch is in the journal; later it is in the columns.
    let other = || {
        let mut child = child("processes::tell_the_best", &path, "");
        let said: Vec<_> = wait_for(&mut child, "touched:").collect();
        assert!(child.wait().unwrap().success());
        said[0].clone()
    };
    assert_eq!(other(), expected);
    store.close().unwrap();
    assert_eq!(other(), expected);
    assert_eq!(
        best(&Store::open(&path).unwrap(), 9, T + HOUR, false),
        expected
    );
}

#[test]
#[ignore = "the child of another_process_scores_with_what_this_one_touched_to_the_bit"]
fn tell_the_best() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let store = Store::open_read_only(path).unwrap();
    let times = last_access(&store.snapshot());
    let touched = times.iter().filter(|&&at| at == T).count();
    assert_eq!(touched, 3);
    println!("touched:\n{}", best(&store, 9, T + HOUR, false));
}

/// Memories that each of the processes below appends, in batches of a hundred.
const EACH: u64 = 1000;

// B50
#[test]
fn processes_that_create_and_append_at_once_make_one_store_with_all_of_it() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let mut children =
            [(); 2].map(|()| child("processes::create_or_open_and_append", &path, ""));
        let said = children.each_mut().map(|child| wait_for(child, "ready"));
        std::fs::write(path.with_extension("go"), "").unwrap();
        let said: Vec<_> = said.into_iter().flatten().collect();
        for child in &mut children {
            assert!(child.wait().unwrap().success());
        }
        let made = said.iter().filter(|line| line.contains("made it"));
        assert_eq!(made.count(), 1, "{said:?}");
        let store = Store::open(&path).unwrap();
        let snapshot = store.snapshot();
        assert_eq!(
            (snapshot.len() as u64, snapshot.next_id()),
            (2 * EACH, 2 * EACH)
        );
        for child in &children {
            for i in 0..EACH {
                let key = format!("{} {i}", child.id());
                let row = snapshot.row_of_key(&key).unwrap().unwrap();
                let expected = Owned {
                    key: Some(key),
                    ..varied(i / 3 * 3, 2)
                };
                assert_row(&snapshot, row, row as u64, &expected);
            }
        }
        assert_eq!(verify(&path).unwrap().damages, []);
        let mut left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        left.retain(|entry| entry.as_ref().unwrap().path() != path);
        assert_eq!(left.len(), 1, "only what said go: {left:?}");
    }
}

#[test]
#[ignore = "the child of processes_that_create_and_append_at_once_make_one_store_with_all_of_it"]
fn create_or_open_and_append() {
    let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    println!("ready");
    while !path.with_extension("go").exists() {
        std::thread::yield_now();
    }
    let store = match Store::create(&path, &options(2, Dtype::F32)) {
        Ok(store) => {
            println!("made it");
            store
        }
        Err(CreateError::Exists { .. }) => loop {
            match Store::open(&path) {
                Ok(store) => break store,
                Err(OpenError::Locked { .. }) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => panic!("{error}"),
            }
        },
        Err(error) => panic!("{error}"),
    };
    let own = std::process::id();
    for first in (0..EACH).step_by(100) {
        let batch = (first..first + 100).map(|i| Owned {
            key: Some(format!("{own} {i}")),
            // One that cites nothing.
            ..varied(i / 3 * 3, 2)
        });
        append(&store, &Vec::from_iter(batch));
    }
    store.close().unwrap();
}

/// A full disk, as B40 has it, by a limit on the size of files: the write fails, nothing is mapped past
/// the end, what was acknowledged stays.
#[test]
fn a_failed_write_is_an_error_and_the_handle_goes_on() {
    let (_dir, path) = filled(4, 2, Dtype::F32);
    // 64 blocks of 512 or 1024 bytes; the signal is ignored, so writing gives an error.
    let mut writer = child(
        "processes::append_until_full",
        &path,
        "trap '' XFSZ; ulimit -f 64;",
    );
    wait_for(&mut writer, "refused, readable and usable").for_each(drop);
    assert!(writer.wait().unwrap().success());
    let store = Store::open(&path).unwrap();
    assert!(store.snapshot().len() > 4);
    // All but the first, which was touched.
    for row in 1..store.snapshot().rows() {
        assert_row(&store.snapshot(), row, row as u64, &varied(row as u64, 2));
    }
    let next = store.snapshot().next_id();
    append(&store, &[varied(next, 2)]);
    drop(store);
    let report = verify(&path).unwrap();
    assert_eq!((report.damages, report.uncommitted_bytes), (vec![], 0));
}

#[test]
#[ignore = "the child of a_failed_write_is_an_error_and_the_handle_goes_on"]
fn append_until_full() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let store = Store::open(path).unwrap();
    let error = loop {
        let next = store.snapshot().next_id();
        let batch: Vec<_> = (next..next + 300).map(|i| varied(i, 2)).collect();
        let batch: Vec<_> = batch.iter().map(Owned::borrowed).collect();
        match store.append(&batch) {
            Ok(ids) => assert_eq!(ids, next..next + 300),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, AppendError::Write(WriteError::Io { .. })),
        "{error}"
    );
    store.touch(Agent::OWN, &[0], 1).unwrap();
    // All but the first, which was touched.
    for row in 1..store.snapshot().rows() {
        assert_row(&store.snapshot(), row, row as u64, &varied(row as u64, 2));
    }
    println!("refused, readable and usable");
}

/// What the writer of `a_reader_that_opens_at_any_moment_sees_one_whole_state` touches pair `i` at: later
/// than any memory says of itself, however far the writer comes before a slow reader has seen enough.
fn time(i: u64) -> i64 {
    1_000_000_000_000 + i as i64
}

// B55
#[test]
fn a_reader_that_opens_at_any_moment_sees_one_whole_state() {
    let (_dir, path) = filled(2, 2, Dtype::F16);
    let mut writer = child("processes::write_without_end", &path, "");
    let _later = wait_for(&mut writer, "writing");
    let (mut next_id, mut folds) = (0, HashSet::new());
    let mut opened = 0;
    while opened < 300 || next_id < 60 {
        let options = OpenOptions {
            read_only: true,
            verify: opened % 4 == 0,
            in_memory: opened % 4 == 1,
            ..OpenOptions::default()
        };
        let store = Store::open_with(&path, &options).unwrap();
        let snapshot = store.snapshot();
        // States follow one another, and pairs come, are touched and go together.
        assert!(snapshot.next_id() >= next_id && snapshot.next_id().is_multiple_of(2));
        next_id = snapshot.next_id();
        assert!(snapshot.len() >= 2);
        for id in (0..next_id).step_by(2) {
            let rows = [id, id + 1].map(|id| snapshot.row_of_id(id));
            let [Some(first), Some(second)] = rows else {
                assert_eq!(rows, [None, None], "of {id}");
                continue;
            };
            assert_row(&snapshot, first, id, &varied(id, 2));
            assert_row(&snapshot, second, id + 1, &varied(id + 1, 2));
            let touched = |row| snapshot.last_access(OTHER, row) == time(id / 2);
            assert_eq!(touched(first), touched(second), "of {id}");
            assert!(touched(first) || id + 2 == next_id, "{id} of {next_id}");
        }
        folds.insert(store.info().files[0].path.clone());
        opened += 1;
    }
    // It was compacted meanwhile.
    assert!(folds.len() > 1);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(Store::open(&path).unwrap().snapshot().next_id() >= next_id);
    assert_eq!(verify(&path).unwrap().damages, []);
}

#[test]
#[ignore = "the child of a_reader_that_opens_at_any_moment_sees_one_whole_state"]
fn write_without_end() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let store = Store::open(path).unwrap();
    store.touch(OTHER, &[0, 1], time(0)).unwrap();
    println!("writing");
    for i in 1.. {
        let pair = [varied(2 * i, 2), varied(2 * i + 1, 2)];
        assert_eq!(append(&store, &pair), 2 * i..2 * i + 2);
        store.touch(OTHER, &[2 * i, 2 * i + 1], time(i)).unwrap();
        if i % 3 == 0 {
            assert_eq!(store.delete(&[i / 3 * 2, i / 3 * 2 + 1]).unwrap(), 2);
        }
        if i % 5 == 0 {
            store.checkpoint().unwrap();
        }
        if i % 7 == 0 {
            store.compact().unwrap();
        }
    }
}
