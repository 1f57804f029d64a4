//! What is done to a store, by a child that is killed and, as far as that came, by its parent in a model.

use crate::driver::{self, Answer};
use crate::owned::Owned;
use crate::random::Random;
use crate::workload::model::{Op, Setup, State, next_op};
use memorank::store::{CreateOptions, OpenError, OpenOptions, Store, verify};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

pub fn create(path: &Path, setup: &Setup) -> Store {
    let options = CreateOptions {
        dim: setup.dim,
        dtype: setup.dtype,
        model: None,
    };
    let store = Store::create(path, &options).expect("it can be created");
    if setup.history_bytes > 0 {
        let kept = store.keep_history(setup.history_bytes);
        kept.expect("it can be written to");
    }
    store.close().expect("it can be closed");
    open(path, setup, false).expect("it can be opened")
}

pub fn open(path: &Path, setup: &Setup, read_only: bool) -> Result<Store, OpenError> {
    let options = OpenOptions {
        read_only,
        verify: false,
        in_memory: setup.in_memory,
        durability: setup.durability,
        checkpoint_bytes: setup.checkpoint_bytes,
    };
    Store::open_with(path, &options)
}

/// Does one thing to the store in the hand, which may be another one then. Its answer is what the model says.
pub fn apply(store: &mut Option<Store>, path: &Path, setup: &Setup, op: &Op, before: &State) {
    let open = |store: &mut Option<Store>| *store = Some(open(path, setup, false).unwrap());
    match op {
        Op::Create => *store = Some(create(path, setup)),
        Op::Reopen => {
            let held = store.take().expect("it is open");
            driver::close(held).expect("it can be closed");
            open(store);
        }
        Op::Look => open(store),
        _ => {
            let held = store.as_ref().expect("it is open");
            let answer = driver::apply(held, op).expect("nothing fails");
            let gone = before
                .rows
                .len()
                .saturating_sub(before.after(op).rows.len());
            match answer {
                Answer::Nothing => {}
                Answer::First(id) => assert_eq!(id, before.next_id),
                Answer::Deleted(rows) => assert_eq!(rows, gone),
            }
        }
    }
}

/// Looks at the store without changing it: what it holds, and how many starts of something were dropped.
///
/// # Panics
/// If it does not open, or anything in it is damaged.
pub fn look(path: &Path, setup: &Setup) -> (State, usize) {
    let store = open(path, setup, true).expect("it opens");
    let report = verify(path).expect("it can be read");
    assert!(report.is_sound(), "{report:?}");
    let dropped = &store.recovery().dropped;
    assert_eq!(&report.dropped, dropped);
    (driver::observe(&store), dropped.len())
}

/// Appends to the store that a killed process left, and closes it: it holds that, and nothing is left over. Gives
/// what it holds.
pub fn go_on(path: &Path, setup: &Setup, state: &State, given: Owned) -> State {
    let op = Op::Append(vec![given]);
    let after = state.after(&op);
    let mut store = Some(open(path, setup, false).expect("it opens"));
    apply(&mut store, path, setup, &op, state);
    driver::close(store.expect("it is open")).expect("it can be closed");
    assert_holds(&look(path, setup).0, &[&after]);
    let report = verify(path).expect("it can be read");
    assert_eq!((report.records, report.uncommitted_bytes), (0, 0));
    let names = std::fs::read_dir(path).expect("it is there").count();
    let others = names - report.files;
    assert!(others >= 3, "manifest, lock and journal");
    assert!(others == 3 || setup.history_bytes > 0, "{others}");
    driver::go_back(&open(path, setup, true).expect("it opens"));
    after
}

/// # Panics
/// If `found` is none of the `allowed` states.
pub fn assert_holds(found: &State, allowed: &[&State]) {
    if !allowed.contains(&found) {
        let differences: Vec<_> = allowed
            .iter()
            .map(|state| found.difference(state))
            .collect();
        panic!(
            "the store holds what it should not: {}",
            differences.join("\n or ")
        );
    }
}

/// The same number for the same state, in every process of this program.
pub fn digest(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{state:?}").hash(&mut hasher);
    hasher.finish()
}

/// Operations in a random order, the same for whoever makes them of the same numbers and the same states.
pub struct Operations {
    random: Random,
    setup: Setup,
    serial: u64,
}

impl Operations {
    /// Those of the `life`th process that writes to the store of `setup`.
    pub fn new(setup: &Setup, life: u64) -> Operations {
        Operations {
            random: Random::new(!life),
            setup: setup.clone(),
            serial: life * 1_000_000,
        }
    }

    /// The next operation of a writer.
    pub fn next_op(&mut self, state: &State) -> Op {
        match next_op(&mut self.random, &self.setup, &[state], &mut self.serial) {
            Op::Kill => Op::Reopen,
            op => op,
        }
    }

    /// A memory that is not in the store.
    pub fn next_given(&mut self, state: &State) -> Owned {
        self.serial += 1;
        Owned::new(&mut self.random, &self.setup, self.serial, state.next_id)
    }
}

/// The kind of store that a seed chooses: one that is folded often.
pub fn setup(seed: u64) -> Setup {
    let mut random = Random::new(seed);
    Setup {
        checkpoint_bytes: random.pick(&[1000, 10_000, 100_000]),
        ..Setup::new(&mut random)
    }
}
