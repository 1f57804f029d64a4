//! A look at what a power cut left.

use super::model::{Op, Setup, State};
use crate::driver;
use crate::owned::Owned;
use crate::random::Random;
use crate::sim::{Crashes, Sim, Survivors};
use memorank::store::Store;
use memorank::store::files::Files;
use std::path::Path;
use std::sync::Arc;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    NoStore,
    /// As little as the promises demand.
    Least,
    More,
}

/// Opens what a power cut left, demands one of the `allowed` states, the least first, and that the store takes
/// another memory and keeps it, even if the power is cut again.
///
/// # Panics
/// If the store breaks any promise.
pub fn check(image: &Sim, setup: &Setup, allowed: &[&Option<State>], random: &mut Random) -> Found {
    if random.chance(15)
        && let Ok(reader) = driver::open(Arc::new(image.clone()), setup, true)
    {
        demand(allowed, Some(driver::observe(&reader)));
        driver::go_back(&reader);
    }
    let (store, state) = open(image, setup, allowed);
    let found = state.clone();
    let state = state.unwrap_or(State::EMPTY);
    driver::verify(image);
    driver::go_back(&store);

    let given = Owned::new(random, setup, 1_000_000, state.next_id);
    let op = Op::Append(vec![given]);
    let more = state.after(&op);
    driver::apply(&store, &op).expect("it takes more");
    driver::apply(&store, &Op::Sync).expect("it syncs");
    let acknowledged = image.log_len();
    assert_eq!(driver::observe(&store), more, "with one more");

    // Closed, dropped or killed.
    let process = match random.below(3) {
        0 => {
            driver::close(store).expect("it closes");
            // Nothing is left over of what was not finished.
            let names = image.list(Path::new(driver::PATH)).expect("it is there");
            let columns = driver::verify(image);
            let others = names.len() - columns;
            assert!(others >= 3, "manifest, lock and journal: {names:?}");
            assert!(others == 3 || setup.history_bytes > 0, "{names:?}");
            image.clone()
        }
        1 => {
            drop(store);
            image.clone()
        }
        _ => {
            let process = image.kill();
            drop(store);
            process
        }
    };
    let (store, again) = open(&process, setup, &[&Some(more.clone())]);
    assert!(again.is_some());
    driver::go_back(&store);
    drop(store);

    if random.chance(15) {
        let at = random.below(image.log_len() + 1);
        let mut crashes = Crashes::of(image);
        crashes.advance(at);
        let image = crashes.image(Survivors::Some(random.next()));
        let (old, more, created) = (found.clone(), Some(more), Some(State::EMPTY));
        let allowed: &[_] = match &found {
            _ if at >= acknowledged => &[&more],
            Some(_) => &[&old, &more],
            None => &[&old, &created, &more],
        };
        open(&image, setup, allowed);
    }
    match found {
        None => Found::NoStore,
        found if found == *allowed[0] => Found::Least,
        _ => Found::More,
    }
}

/// Opens or creates the store. Gives what was in it, one of the `allowed` states.
fn open(files: &Sim, setup: &Setup, allowed: &[&Option<State>]) -> (Store, Option<State>) {
    match driver::open(Arc::new(files.clone()), setup, false) {
        Ok(store) => {
            let state = Some(driver::observe(&store));
            demand(allowed, state.clone());
            (store, state)
        }
        Err(error) => {
            assert!(driver::is_none(&error), "the store does not open: {error}");
            demand(allowed, None);
            let store = driver::create(Arc::new(files.clone()), setup);
            (store.expect("a store can be created where none is"), None)
        }
    }
}

fn demand(allowed: &[&Option<State>], found: Option<State>) {
    if allowed.contains(&&found) {
        return;
    }
    let Some(found) = found else {
        panic!("there is no store, but one was promised");
    };
    let known = allowed.iter().copied().flatten();
    let differences: Vec<_> = known.map(|state| found.difference(state)).collect();
    panic!(
        "{} states are allowed, not this: {}",
        allowed.len(),
        differences.join("\n or ")
    );
}
