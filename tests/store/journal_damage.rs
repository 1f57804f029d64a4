//! Bits that flip in, and bytes that are cut off, what is read into memory: the manifest, the journal, and the
//! columns of what was touched and deleted.

use crate::example::*;
use crate::in_memory::*;
use crate::watched::{Change, watched};
use memorank::kernel::Dtype;
use memorank::store::files::InMemory;
use memorank::store::{
    Agent, Dropped, OpenError, OpenOptions, Problem, Snapshot, Store, VerifyReport, verify_on,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A small store whose writer was killed: all columns hold something, and the journal has two segments.
struct Killed {
    files: InMemory,
    /// Its contents after each operation that the journal holds.
    states: Vec<String>,
    segments: [String; 2],
}

fn two_segments() -> Killed {
    let files = killed(&worn_in_memory(6, 2, Dtype::F16));
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    let hook = move |change, path: &Path| match change == Change::Write
        && path.ends_with("text.bytes")
        && failing.load(Ordering::Relaxed)
    {
        true => Err(io::ErrorKind::StorageFull.into()),
        false => Ok(()),
    };
    let store = Store::open_on(watched(&files, hook), STORE, &OpenOptions::default()).unwrap();
    let mut states = vec![contents(&store.snapshot())];
    let mut note = |store: &Store| states.push(contents(&store.snapshot()));
    append(&store, &[varied(6, 2), varied(7, 2)]);
    note(&store);
    store.touch(OTHER, &[0, 7], 70_000).unwrap();
    note(&store);
    store.delete(&[1]).unwrap();
    note(&store);
    // A checkpoint that fails has begun the next segment.
    fails.store(true, Ordering::Relaxed);
    assert!(store.checkpoint().is_err());
    append(&store, &[varied(8, 2)]);
    note(&store);
    store.touch(Agent::OWN, &[8], 80_000).unwrap();
    note(&store);
    let files = killed(&files);
    let mut segments = names(&files);
    segments.retain(|name| name.starts_with("journal."));
    segments.sort_by_key(|name| name.len());
    let segments = segments.try_into().unwrap();
    Killed {
        files,
        states,
        segments,
    }
}

/// What opening gives, and `verify` as well: they agree. So does, where it is asked for, every other way to
/// open.
fn found(files: &InMemory, in_every_way: bool) -> Result<(Snapshot, Vec<Dropped>), OpenError> {
    let open = |read_only, in_memory, verify| {
        let options = OpenOptions {
            read_only,
            in_memory,
            verify,
            ..OpenOptions::default()
        };
        Store::open_on(Arc::new(files.clone()), STORE, &options)
    };
    let opened = open(true, false, false);
    let report = verify_on(files, STORE);
    match &opened {
        Ok(store) => {
            let VerifyReport {
                damages, dropped, ..
            } = report.unwrap();
            assert_eq!((damages, &dropped), (vec![], &store.recovery().dropped));
        }
        Err(error) => {
            if in_every_way {
                let other = open(false, true, false).unwrap_err();
                assert_eq!(other.to_string(), error.to_string());
                assert!(open(true, false, true).is_err());
            }
            assert!(report.is_ok_and(|report| !report.is_sound()) || is_of_manifest(error));
        }
    }
    opened.map(|store| (store.snapshot(), store.recovery().dropped.clone()))
}

fn is_of_manifest(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::Foreign { .. }
            | OpenError::Newer { .. }
            | OpenError::ManifestCut { .. }
            | OpenError::ManifestChecksum { .. }
            | OpenError::ManifestDamaged { .. }
    )
}

/// The damaged file.
fn of_file(error: &OpenError) -> &Path {
    match error {
        OpenError::Damaged { first, .. } => &first.path,
        OpenError::ColumnCut { path, .. } => path,
        other => panic!("{other}"),
    }
}

/// How often there was damage, and how often something was dropped.
#[derive(Debug, Default)]
struct Count {
    damaged: usize,
    dropped: usize,
    untouched: usize,
}

impl Killed {
    /// Opening a store of which `name` was changed gives its error, or a state before and what was dropped
    /// after it, or all.
    fn check(&self, name: &str, change: &str, count: &mut Count) {
        match found(&self.files, count.damaged.is_multiple_of(8)) {
            Err(error) if name == "manifest" => {
                assert!(is_of_manifest(&error), "{change}: {error}");
                count.damaged += 1;
            }
            Err(error) => {
                // A next segment tells of damage before it, and the other way round.
                let of_journal = of_file(&error).to_str().unwrap().contains("journal.");
                assert!(of_journal, "{change}: {error}");
                assert!(error.to_string().contains(": byte "), "{error}");
                count.damaged += 1;
            }
            Ok((snapshot, dropped)) => {
                let state = self
                    .states
                    .iter()
                    .position(|state| *state == contents(&snapshot));
                let state = state.unwrap_or_else(|| panic!("{change}: {}", contents(&snapshot)));
                for dropped in &dropped {
                    assert_eq!(dropped.path, path(name), "{change}");
                }
                match dropped.is_empty() {
                    true => {
                        assert_eq!(state + 1, self.states.len(), "{change}");
                        count.untouched += 1;
                    }
                    false => count.dropped += 1,
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_manifest_and_journal_is_an_error_or_a_dropped_tail() {
    let store = two_segments();
    let [first, second] = &store.segments;
    for (name, may_drop) in [("manifest", false), (first, false), (second, true)] {
        let mut count = Count::default();
        for bit in 0..get(&store.files, name).len() * 8 {
            flip_in(&store.files, &path(name), bit);
            store.check(name, &format!("{name}, bit {bit}"), &mut count);
            flip_in(&store.files, &path(name), bit);
        }
        // Only what nothing says was durable is dropped: the last record.
        assert_eq!(
            (count.dropped > 0, count.untouched),
            (may_drop, 0),
            "{count:?}"
        );
        assert!(count.damaged > count.dropped, "{count:?}");
    }
    let (snapshot, dropped) = found(&store.files, true).unwrap();
    assert_eq!(
        (&contents(&snapshot), dropped),
        (store.states.last().unwrap(), vec![])
    );
}

#[test]
fn a_cut_journal_is_an_error_or_a_state_before() {
    let store = two_segments();
    let [first, second] = &store.segments;
    for name in [first, second] {
        let whole = get(&store.files, name);
        // How often each state was found, with and without something dropped.
        let (mut errors, mut told, mut silent) = (0, [0; 6], [0; 6]);
        for len in 0..whole.len() {
            put(&store.files, name, &whole[..len]);
            match found(&store.files, true) {
                Err(error) => {
                    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
                    errors += 1;
                }
                Ok((snapshot, dropped)) => {
                    let is = |state: &String| *state == contents(&snapshot);
                    let state = store.states.iter().position(is).unwrap();
                    match dropped.is_empty() {
                        true => silent[state] += 1,
                        false => told[state] += 1,
                    }
                }
            }
        }
        put(&store.files, name, &whole);
        match name == first {
            // All of it was durable.
            true => assert_eq!(errors, whole.len()),
            false => {
                assert!(errors == 0 && told[3] > 100 && told[4] > 50, "{told:?}");
                // At the end of a record nothing tells that there were more.
                assert_eq!(silent, [0, 0, 0, 1, 1, 0]);
            }
        }
    }
}

#[test]
fn a_missing_or_exchanged_segment_is_an_error() {
    let store = two_segments();
    let [first, second] = &store.segments;
    let bytes = [get(&store.files, first), get(&store.files, second)];
    put(&store.files, first, &bytes[1]);
    put(&store.files, second, &bytes[0]);
    let error = found(&store.files, true).err().unwrap();
    assert!(
        error.to_string().contains("the header is that of segment"),
        "{error}"
    );
    put(&store.files, second, &bytes[1]);
    memorank::store::files::Files::remove_file(&store.files, &path(first)).unwrap();
    let options = OpenOptions::default();
    let error = Store::open_on(Arc::new(store.files.clone()), STORE, &options).unwrap_err();
    assert!(
        error.to_string().contains(&format!("{first} is missing")),
        "{error}"
    );
    let report = verify_on(&store.files, STORE).unwrap();
    assert_eq!(report.damages[0].problem, Problem::Missing);
}

#[test]
fn every_flipped_bit_of_what_was_done_to_rows_is_an_error() {
    let files = worn_in_memory(9, 2, Dtype::F32);
    let store = open(&files).unwrap();
    store.touch(OTHER, &[0, 3, 5], 70_000).unwrap();
    store.delete(&[0, 4]).unwrap();
    store
        .set_importance(Agent::OWN, &[3, 5], Some(2.5))
        .unwrap();
    store.close().unwrap();
    let before = contents(&read(&files));
    for prefix in ["access.", "deleted.", "override.", "vectors."] {
        let name = only(&files, prefix);
        let len = get(&files, &name).len();
        assert!(len >= 12, "{len}");
        for bit in 0..len * 8 {
            flip_in(&files, &path(&name), bit);
            let error = found(&files, true).err().unwrap();
            assert_eq!(of_file(&error), path(&name));
            let report = verify_on(&files, STORE).unwrap();
            let first = &report.damages[0];
            assert_eq!((&first.path, first.offset), (&path(&name), 0));
            assert!(matches!(first.problem, Problem::Checksum { .. }), "{first}");
            flip_in(&files, &path(&name), bit);
        }
        let whole = get(&files, &name);
        for cut in 0..len {
            put(&files, &name, &whole[..cut]);
            let error = found(&files, true).err().unwrap();
            assert!(matches!(error, OpenError::ColumnCut { .. }), "{error}");
        }
        put(&files, &name, &whole);
    }
    assert_eq!(contents(&read(&files)), before);
}
