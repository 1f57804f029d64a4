//! What the simulator keeps, and what it can lose.

use super::*;
use memorank::store::files::{File, Files};
use std::collections::BTreeSet;

fn sim() -> Sim {
    let sim = Sim::new();
    sim.create_dir(Path::new("d")).unwrap();
    sim.sync_dir(Path::new("")).unwrap();
    sim
}

fn put(file: &dyn File, offset: u64, bytes: &[u8]) {
    assert_eq!(file.write_at(offset, bytes).unwrap(), bytes.len());
}

fn make(sim: &Sim, path: &str, bytes: &[u8]) -> Box<dyn File> {
    let file = sim.create_new(Path::new(path)).unwrap();
    if !bytes.is_empty() {
        put(&*file, 0, bytes);
    }
    file
}

/// A durable file under a durable name.
fn make_durable(sim: &Sim, path: &str, bytes: &[u8]) -> Box<dyn File> {
    let file = make(sim, path, bytes);
    file.sync().unwrap();
    sim.sync_dir(Path::new("d")).unwrap();
    file
}

fn get(sim: &Sim, path: &str) -> Option<Vec<u8>> {
    let file = sim.open(Path::new(path)).ok()?;
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
    Some(bytes)
}

fn names(sim: &Sim, dir: &str) -> Vec<String> {
    let names = sim.list(Path::new(dir)).unwrap();
    let names = names.into_iter().map(|name| name.into_string().unwrap());
    names.collect()
}

fn crashes(sim: &Sim) -> Crashes {
    let mut crashes = Crashes::of(sim);
    crashes.advance(sim.log_len());
    crashes
}

/// What `look` sees after power cuts now.
fn after_cuts<T: Ord>(sim: &Sim, look: impl Fn(&Sim) -> T) -> BTreeSet<T> {
    let crashes = crashes(sim);
    let some = (0..2000).map(Survivors::Some);
    let all = Survivors::EXTREMES.into_iter().chain(some);
    all.map(|survivors| look(&crashes.image(survivors)))
        .collect()
}

fn files_after_cuts(sim: &Sim, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    after_cuts(sim, |image| get(image, path))
}

fn set<T: Ord, const N: usize>(of: [T; N]) -> BTreeSet<T> {
    BTreeSet::from(of)
}

#[test]
fn what_was_synced_is_there() {
    let sim = sim();
    let file = make_durable(&sim, "d/a", b"abc");
    make_durable(&sim, "d/b", b"b");
    sim.rename(Path::new("d/b"), Path::new("d/c")).unwrap();
    put(&*file, 3, b"def");
    file.set_len(5).unwrap();
    file.sync().unwrap();
    sim.sync_dir(Path::new("d")).unwrap();
    let seen = after_cuts(&sim, |image| {
        (names(image, "d"), get(image, "d/a"), get(image, "d/c"))
    });
    let names = ["a", "c"].map(String::from).to_vec();
    assert_eq!(
        seen,
        set([(names, Some(b"abcde".to_vec()), Some(b"b".to_vec()))])
    );
}

#[test]
fn a_name_and_its_file_are_not_synced_by_each_other() {
    let sim = sim();
    make(&sim, "d/a", b"a").sync().unwrap();
    assert_eq!(
        files_after_cuts(&sim, "d/a"),
        set([None, Some(b"a".to_vec())])
    );

    let sim = self::sim();
    make(&sim, "d/a", b"a");
    sim.sync_dir(Path::new("d")).unwrap();
    let seen = files_after_cuts(&sim, "d/a");
    assert_eq!(
        seen,
        set([Some(vec![]), Some(vec![0]), Some(b"a".to_vec())])
    );
}

#[test]
fn writes_are_there_or_not_in_any_order_and_lengths_apart_from_them() {
    let sim = sim();
    let file = make_durable(&sim, "d/a", b"--");
    put(&*file, 0, b"1");
    put(&*file, 1, b"2");
    put(&*file, 2, b"34");
    let seen = files_after_cuts(&sim, "d/a");
    let mut possible = BTreeSet::new();
    for first in ["-", "1"] {
        for second in ["-", "2"] {
            for end in ["", "\0\0", "34"] {
                possible.insert(Some([first, second, end].concat().into_bytes()));
            }
        }
    }
    assert_eq!(seen, possible);

    file.sync().unwrap();
    file.set_len(1).unwrap();
    put(&*file, 1, b"x");
    let seen = files_after_cuts(&sim, "d/a");
    // Cut or not, written or not, and as long as it ever was since.
    for possible in ["1234", "1", "1x", "1x34", "12", "1\0\0\0"] {
        let possible = Some(possible.into());
        assert!(seen.contains(&possible), "{possible:?} of {seen:?}");
    }
    assert!(seen.iter().flatten().all(|bytes| bytes[0] == b'1'));
}

#[test]
fn writes_are_torn_at_sectors_and_pages() {
    for (unit, bytes) in [(512, 3 * 512), (4096, 3 * 4096)] {
        let sim = sim();
        let file = make_durable(&sim, "d/a", &vec![b'-'; bytes + 100]);
        put(&*file, 100, &vec![b'x'; bytes]);
        let seen = after_cuts(&sim, |image| {
            let bytes = get(image, "d/a").unwrap();
            assert!(bytes[..100].iter().all(|&b| b == b'-'));
            let parts = bytes[100..].chunk_by(|a, b| a == b).map(<[u8]>::len);
            let mut at = 100;
            // Where it changes.
            let ends = parts.map(|len| {
                at += len;
                at
            });
            let ends: Vec<usize> = ends.filter(|end| end % bytes.len() != 0).collect();
            assert!(ends.iter().all(|end| end % 512 == 0), "{ends:?}");
            ends.iter().all(|end| end % unit == 0).then_some(ends)
        });
        // Every end of a unit, and two of them at once.
        for end in (unit..bytes + 100).step_by(unit) {
            assert!(seen.contains(&Some(vec![end])), "{end} of {seen:?}");
        }
        assert!(seen.iter().flatten().any(|ends| ends.len() == 2));
    }
}

#[test]
fn a_rename_is_there_whole_or_not_at_all() {
    let sim = sim();
    make_durable(&sim, "d/a", b"old");
    make(&sim, "d/b", b"new").sync().unwrap();
    sim.rename(Path::new("d/b"), Path::new("d/a")).unwrap();
    let seen = after_cuts(&sim, |image| (get(image, "d/a"), get(image, "d/b")));
    let (old, new) = (Some(b"old".to_vec()), Some(b"new".to_vec()));
    // Its creation alone, with the renaming, or neither.
    assert_eq!(
        seen,
        set([(old.clone(), None), (old, new.clone()), (new, None)])
    );
}

#[test]
fn names_are_there_or_not_in_any_order_but_for_one_that_is_reused() {
    let sim = sim();
    make_durable(&sim, "d/a", b"1");
    sim.remove_file(Path::new("d/a")).unwrap();
    make(&sim, "d/a", b"2").sync().unwrap();
    make(&sim, "d/b", b"").sync().unwrap();
    let seen = after_cuts(&sim, |image| (get(image, "d/a"), get(image, "d/b")));
    let mut possible = BTreeSet::new();
    for a in [None, Some(b"1".to_vec()), Some(b"2".to_vec())] {
        for b in [None, Some(vec![])] {
            possible.insert((a.clone(), b));
        }
    }
    assert_eq!(seen, possible);
}

#[test]
fn directories_in_directories_are_lost_with_all_that_is_in_them() {
    let sim = sim();
    sim.create_dir(Path::new("d/e")).unwrap();
    make(&sim, "d/e/a", b"a").sync().unwrap();
    sim.sync_dir(Path::new("d/e")).unwrap();
    assert_eq!(
        files_after_cuts(&sim, "d/e/a"),
        set([None, Some(b"a".to_vec())])
    );
    sim.sync_dir(Path::new("d")).unwrap();
    assert_eq!(files_after_cuts(&sim, "d/e/a"), set([Some(b"a".to_vec())]));
    sim.rename(Path::new("d/e"), Path::new("d/f")).unwrap();
    let seen = after_cuts(&sim, |image| names(image, "d").concat());
    assert_eq!(seen, set(["e".into(), "f".into()]));
    sim.remove_dir_all(Path::new("d/f")).unwrap();
    let seen = after_cuts(&sim, |image| {
        names(image, "d")
            .iter()
            .map(|dir| (dir.clone(), names(image, &format!("d/{dir}"))))
            .collect::<Vec<_>>()
    });
    let a = vec!["a".to_string()];
    for possible in [
        vec![],
        vec![("e".into(), a.clone())],
        vec![("e".into(), vec![])],
        vec![("f".into(), a)],
        vec![("f".into(), vec![])],
    ] {
        assert!(seen.contains(&possible), "{possible:?}");
    }
    assert_eq!(seen.len(), 5);
}

#[test]
fn what_a_failed_sync_lost_no_later_one_writes() {
    let sim = sim();
    let file = make_durable(&sim, "d/a", b"----");
    put(&*file, 0, b"1");
    put(&*file, 1, b"2");
    sim.inject(Fault {
        kinds: &[Kind::Sync],
        nth: 1,
        how: Failure::Io,
        for_ever: false,
    });
    assert!(file.sync().is_err());
    assert_eq!(get(&sim, "d/a").unwrap(), b"12--");
    put(&*file, 1, b"x");
    put(&*file, 3, b"y");
    file.sync().unwrap();
    file.sync().unwrap();
    assert_eq!(get(&sim, "d/a").unwrap(), b"1x-y");
    let seen = files_after_cuts(&sim, "d/a");
    assert_eq!(seen, set([Some(b"1x-y".to_vec()), Some(b"-x-y".to_vec())]));
    assert_eq!(sim.heal(), 1);
}

#[test]
fn a_machine_that_boots_knows_nothing_of_the_one_before() {
    let sim = sim();
    let file = make_durable(&sim, "d/a", b"a");
    let lock = sim.lock(Path::new("d/a")).unwrap();
    assert!(lock.is_some());
    put(&*file, 0, b"b");
    let mut crashes = Crashes::of(&sim);
    // A cut in the past.
    crashes.advance(3);
    assert_eq!(names(&crashes.image(Survivors::Nothing), "d").len(), 0);
    crashes.advance(sim.log_len());
    let image = crashes.image(Survivors::Nothing);
    assert!(image.lock(Path::new("d/a")).unwrap().is_some());
    put(&*image.open_to_write(Path::new("d/a")).unwrap(), 0, b"c");
    assert_eq!(get(&sim, "d/a").unwrap(), b"b");
    assert_eq!(image.log_len(), 1);
    // It can lose power too.
    assert_eq!(
        files_after_cuts(&image, "d/a"),
        set([Some(b"a".to_vec()), Some(b"c".to_vec())])
    );
}

#[test]
fn a_killed_process_does_nothing_any_more_and_what_it_did_is_read() {
    let sim = sim();
    let file = make(&sim, "d/a", b"a");
    let lock = sim.lock(Path::new("d/lock")).unwrap().unwrap();
    assert!(lock.is_current().unwrap());
    assert!(sim.lock(Path::new("d/lock")).unwrap().is_none());
    let next = sim.kill();
    assert!(file.write_at(0, b"b").is_err() && file.sync().is_err());
    assert!(sim.create_dir(Path::new("d/e")).is_err());
    assert_eq!(get(&next, "d/a").unwrap(), b"a");
    let taken = next.lock(Path::new("d/lock")).unwrap();
    assert!(taken.is_some());
    // The dead one's end does not free the other's lock.
    drop(lock);
    assert!(next.lock(Path::new("d/lock")).unwrap().is_none());
    drop(taken);
    assert!(next.lock(Path::new("d/lock")).unwrap().is_some());
}

#[test]
fn faults_happen_when_they_should() {
    let sim = sim();
    let file = make(&sim, "d/a", b"");
    let outcomes = |how, for_ever| -> Vec<Result<usize, ErrorKind>> {
        let (kinds, nth): (&[Kind], _) = (&[Kind::Write], 2);
        sim.inject(Fault {
            kinds,
            nth,
            how,
            for_ever,
        });
        let write = |_| file.write_at(0, b"abc").map_err(|e| e.kind());
        let outcomes = (0..5).map(write).collect();
        assert_eq!(sim.count(&[Kind::Write, Kind::Sync]), 5);
        outcomes
    };
    use ErrorKind::{Interrupted, StorageFull};
    let (ok, eio) = (Ok(3), Err(io::Error::from_raw_os_error(5).kind()));
    assert_eq!(outcomes(Failure::Io, false), [ok, eio, ok, ok, ok]);
    assert_eq!(outcomes(Failure::Io, true), [ok, eio, eio, eio, eio]);
    let full = Err(StorageFull);
    assert_eq!(outcomes(Failure::Full, true), [ok, full, full, full, full]);
    let again = Err(Interrupted);
    assert_eq!(
        outcomes(Failure::Interrupted, true),
        [ok, again, ok, again, ok]
    );
    assert_eq!(outcomes(Failure::Short, false), [ok, Ok(2), ok, ok, ok]);
    assert_eq!(sim.heal(), 1);
    assert_eq!(sim.heal(), 0);
}

#[test]
fn a_full_disk_takes_what_fits_and_has_room_again() {
    let sim = sim();
    let file = make(&sim, "d/a", b"abc");
    let used = sim.used();
    sim.fill_up_at(used + 2);
    assert_eq!(file.write_at(3, b"defg").unwrap(), 2);
    let full = |result: io::Result<()>| result.map_err(|e| e.kind()) == Err(ErrorKind::StorageFull);
    assert!(full(file.write_at(5, b"f").map(drop)));
    assert!(full(file.set_len(6)));
    assert!(full(sim.create_new(Path::new("d/b")).map(drop)));
    // Over what is there already there is room.
    assert_eq!(file.write_at(1, b"BCDEF").unwrap(), 4);
    file.set_len(1).unwrap();
    assert_eq!(file.write_at(1, b"xy").unwrap(), 2);
    // A file that is open takes room until it is closed.
    sim.fill_up_at(used);
    sim.remove_file(Path::new("d/a")).unwrap();
    let other = make(&sim, "d/b", b"");
    assert!(full(other.write_at(0, b"z").map(drop)));
    drop(file);
    assert_eq!(other.write_at(0, b"zzz").unwrap(), 3);
}
