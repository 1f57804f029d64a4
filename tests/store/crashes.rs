//! Processes that are killed at any moment. What they wrote is there, as far as they came.

use crate::example::*;
use crate::in_memory::*;
use crate::life::{LIFE, states};
use crate::watched::watched;
use memorank::kernel::Dtype;
use memorank::store::files::InMemory;
use memorank::store::{Agent, OpenOptions, Store};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// What a process leaves that is killed somewhere while it does something to a store, and how much it had
/// done by then.
struct Left {
    files: InMemory,
    done: usize,
}

/// Opens the store and does `steps` to it. Gives what would be left at each moment of that.
fn leaving(files: &InMemory, steps: &[&dyn Fn(&Store)]) -> Vec<Left> {
    let files = killed(files);
    let (left, done) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
    let (of, to, by) = (files.clone(), left.clone(), done.clone());
    let watched = watched(&files, move |_, _| {
        let (files, done) = (killed(&of), *by.lock().unwrap());
        to.lock().unwrap().push(Left { files, done });
        Ok(())
    });
    let store = Store::open_on(watched, STORE, &OpenOptions::default()).unwrap();
    for step in steps {
        step(&store);
        *done.lock().unwrap() += 1;
    }
    // What closing does is the last step.
    drop(store);
    std::mem::take(&mut *left.lock().unwrap())
}

/// All bytes of the files.
fn bytes(files: &InMemory) -> Vec<(String, Vec<u8>)> {
    let names = names(files).into_iter();
    names
        .map(|name| (name.clone(), get(files, &name)))
        .collect()
}

#[test]
fn a_process_killed_at_any_moment_leaves_a_store_before_or_after_what_it_did() {
    let (files, store) = new_in_memory(2, Dtype::F32);
    drop(store);
    let states = states();
    let steps = LIFE.map(|step| move |store: &Store| step(store).unwrap());
    let steps: Vec<&dyn Fn(&Store)> = steps.iter().map(|step| step as &dyn Fn(&Store)).collect();
    let left = leaving(&files, &steps);
    assert!(left.len() > 400, "{}", left.len());
    let mut seen = HashSet::new();
    for Left { files, done } in left {
        let possible = &states[done..states.len().min(done + 2)];
        let found = contents(&read(&files));
        assert!(possible.contains(&found), "{done}: {found}");
        seen.insert((done, possible[0] == found));
        // The next writer finds the same, and can go on.
        let store = open(&files).unwrap();
        assert_eq!(contents(&store.snapshot()), found);
        let next = store.snapshot().next_id();
        assert_eq!(append(&store, &[plain(&[1.0, 1.0])]), next..next + 1);
        let with_it = contents(&store.snapshot());
        let memories = |text: &str| Vec::from_iter(text.lines().skip(1).map(str::to_owned));
        assert!(memories(&with_it).starts_with(&memories(&found)));
        assert_eq!(contents(&read(&files)), with_it);
        store.close().unwrap();
        assert_eq!(contents(&read(&files)), with_it);
        // Columns, manifest, lock and one segment.
        assert_eq!(names(&files).len(), 22 + 3);
    }
    // Each step was interrupted before it was done, and appends and the like after, too.
    assert!(seen.len() > LIFE.len() + 5, "{}", seen.len());
}

/// A store whose writer was killed: rows in the columns, and in the journal an append, a touch, a delete
/// and the start of another record.
fn unrecovered() -> (InMemory, String) {
    let (files, store) = new_in_memory(2, Dtype::F32);
    append(&store, &[varied(0, 2), varied(1, 2)]);
    store.checkpoint().unwrap();
    append(&store, &[varied(2, 2)]);
    store.touch(OTHER, &[0, 2], 70_000).unwrap();
    store.delete(&[1]).unwrap();
    let files = killed(&files);
    let journal = only(&files, "journal.");
    let whole = get(&files, &journal);
    put(&files, &journal, &[&whole[..], &whole[64..100]].concat());
    (files, contents(&store.snapshot()))
}

// B103
#[test]
fn recovery_can_be_interrupted_again_and_again() {
    let (files, acknowledged) = unrecovered();
    let found = open_read_only(&files).unwrap();
    assert_eq!(found.recovery().dropped.len(), 1);
    assert_eq!(contents(&found.snapshot()), acknowledged);
    let new = 900_000;
    let touch = |store: &Store| store.touch(Agent::OWN, &[2], new).unwrap();
    let mut moments = vec![files];
    let mut seen = HashSet::new();
    let mut left = 0;
    for _ in 0..3 {
        let mut next = Vec::new();
        for files in &moments {
            for Left { files, .. } in leaving(files, &[&touch]) {
                left += 1;
                // Salts are random: what differs in nothing else is not looked at twice.
                let sizes: Vec<_> = bytes(&files)
                    .into_iter()
                    .map(|(n, b)| (n, b.len()))
                    .collect();
                if seen.insert(sizes) {
                    next.push(files);
                }
            }
        }
        for files in &next {
            let snapshot = read(files);
            let touched = snapshot.last_access(Agent::OWN, 2) == new;
            if !touched {
                assert_eq!(contents(&snapshot), acknowledged);
            }
            assert_eq!((snapshot.len(), snapshot.next_id()), (2, 3));
            let store = open(files).unwrap();
            assert_eq!(contents(&store.snapshot()), contents(&snapshot));
        }
        moments = next;
    }
    assert!(left > 1000, "{left}");
}
