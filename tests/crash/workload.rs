//! Operations on a store, what they promised, and what a store may hold after a power cut.

pub mod check;
pub mod model;
pub mod sequence;

use crate::driver::{self, Answer, Failed};
use crate::on_panic::OnPanic;
use crate::random::Random;
use crate::sim::{Crashes, Sim, Survivors};
use memorank::store::Store;
use memorank::store::files::Files;
use model::{Op, Setup, State, next_op};
use std::path::Path;
use std::sync::Arc;

/// An operation that was called.
#[derive(Debug)]
pub struct Step {
    pub op: Op,
    /// The log's length before and after.
    pub from: usize,
    pub to: usize,
    /// It was acknowledged as durable, with all before it.
    pub promised: bool,
    pub failed: bool,
    /// What the store may hold afterwards; `None`: there is none. More than one if something failed.
    pub after: Vec<Option<State>>,
}

pub struct Workload {
    pub sim: Sim,
    pub setup: Setup,
    pub steps: Vec<Step>,
    /// Operations that failed.
    pub failures: usize,
    /// Opening may fail as well.
    pub faulty: bool,
    store: Option<Store>,
    random: Random,
    serial: u64,
}

impl Step {
    /// What a machine has before anything was called.
    fn first(to: usize, after: Vec<Option<State>>) -> Step {
        Step {
            op: Op::Look,
            from: 0,
            to,
            promised: true,
            failed: false,
            after,
        }
    }
}

impl Workload {
    /// On a new machine, with no store yet.
    pub fn new(seed: u64) -> Workload {
        Workload::of(Random::new(seed))
    }

    /// As `random` chooses.
    pub fn of(mut random: Random) -> Workload {
        let sim = Sim::new();
        let dir = Path::new(driver::PATH).parent().expect("it lies in one");
        sim.create_dir(dir).expect("the machine is new");
        sim.sync_dir(Path::new("/")).expect("nothing fails yet");
        Workload {
            setup: Setup::new(&mut random),
            steps: vec![Step::first(sim.log_len(), vec![None])],
            sim,
            failures: 0,
            faulty: false,
            store: None,
            random,
            serial: 0,
        }
    }

    pub fn run(&mut self, operations: usize) {
        for _ in 0..operations {
            self.step();
        }
    }

    /// Calls the next operation, opening or creating the store if need be.
    pub fn step(&mut self) {
        if self.store.is_none() {
            self.look();
        }
        if self.store.is_some() {
            let last = self.steps.last().expect("there is always one");
            let states: Vec<_> = last.after.iter().flatten().collect();
            let op = next_op(&mut self.random, &self.setup, &states, &mut self.serial);
            self.call(op);
        }
    }

    /// Calls an operation on the open store.
    pub fn call(&mut self, op: Op) {
        let from = self.sim.log_len();
        let store = self.store.take().expect("it is open");
        let result = match op {
            Op::Reopen => driver::close(store).map(|()| Answer::Nothing),
            Op::Kill => {
                self.kill(store);
                Ok(Answer::Nothing)
            }
            _ => {
                let result = driver::apply(&store, &op);
                self.store = Some(store);
                result
            }
        };
        let to = self.sim.log_len();
        let mut after = Vec::new();
        for before in self.last().iter().flatten() {
            let happened = before.after(&op);
            match &result {
                Ok(Answer::First(id)) if *id != before.next_id => {}
                Ok(Answer::Deleted(rows)) if before.rows.len() - happened.rows.len() != *rows => {}
                Ok(_) => after.push(Some(happened)),
                Err(Failed::Poisoned) => after.push(Some(before.clone())),
                Err(Failed::Perhaps) => {
                    after.push(Some(before.clone()));
                    after.push(Some(happened));
                }
            }
        }
        after = distinct(after);
        if result.is_err() {
            self.failures += 1;
        } else if let Some(store) = &self.store {
            after = vec![Some(seen(&after, driver::observe(store)))];
        }
        let promised = result.is_ok() && driver::promises(&self.setup, &op);
        self.steps.push(Step {
            op,
            from,
            to,
            promised,
            failed: result.is_err(),
            after,
        });
        match result {
            Err(Failed::Poisoned) => self.let_go(),
            // Whoever sees an error may go on or give up.
            Err(Failed::Perhaps) if self.random.chance(50) => self.let_go(),
            _ => {}
        }
        if self.store.is_none() {
            self.look();
        }
    }

    /// What follows is chosen by `random`.
    pub fn choose_by(&mut self, random: Random) {
        self.random = random;
    }

    /// The power is cut when the log was `at` long. The machine boots with what survives, and the store is
    /// opened: it must be in a state that is allowed then.
    pub fn cut_power(&mut self, at: usize, survivors: Survivors) {
        let mut crashes = Crashes::of(&self.sim);
        crashes.advance(at);
        let allowed = distinct(self.allowed(at).into_iter().cloned().collect());
        if let Some(store) = self.store.take() {
            self.kill(store);
        }
        let before = Workload {
            sim: std::mem::replace(&mut self.sim, crashes.image(survivors)),
            setup: self.setup.clone(),
            steps: std::mem::replace(&mut self.steps, vec![Step::first(0, allowed)]),
            failures: self.failures,
            faulty: self.faulty,
            store: None,
            random: Random::new(0),
            serial: self.serial,
        };
        let _place = OnPanic(|| format!("{}power cut, {survivors:?} survive", before.describe(at)));
        self.look();
        // No later power cut takes what was found on a disk that had just been booted.
        let found = self.steps.last().expect("there is always one");
        self.steps[0].after = match found.op {
            Op::Create => vec![None],
            _ => found.after.clone(),
        };
    }

    /// Whether the store is open for writing.
    pub fn is_open(&self) -> bool {
        self.store.is_some()
    }

    /// Gives up the handle: by its end or that of its process.
    pub fn let_go(&mut self) {
        match self.store.take() {
            Some(store) if self.random.chance(50) => self.kill(store),
            other => drop(other),
        }
    }

    fn kill(&mut self, store: Store) {
        self.sim = self.sim.kill();
        // It can do nothing any more but free its memory.
        drop(store);
    }

    /// Opens the store, or creates it if that may be needed, and looks what is in it.
    pub fn look(&mut self) {
        let from = self.sim.log_len();
        match driver::open(Arc::new(self.sim.clone()), &self.setup, false) {
            Ok(store) => {
                let found = seen(self.last(), driver::observe(&store));
                self.store = Some(store);
                self.steps.push(Step {
                    op: Op::Look,
                    from,
                    to: self.sim.log_len(),
                    promised: false,
                    failed: false,
                    after: vec![Some(found)],
                });
            }
            Err(error) if driver::is_none(&error) && self.last().contains(&None) => self.create(),
            Err(error) => {
                assert!(self.faulty, "the store does not open: {error}");
                self.failures += 1;
            }
        }
    }

    fn create(&mut self) {
        let from = self.sim.log_len();
        let created = driver::create(Arc::new(self.sim.clone()), &self.setup);
        let mut after = vec![Some(State::EMPTY)];
        if let Err(error) = &created {
            assert!(self.faulty, "the store is not created: {error}");
            self.failures += 1;
            after.push(None);
        }
        self.steps.push(Step {
            op: Op::Create,
            from,
            to: self.sim.log_len(),
            promised: created.is_ok(),
            failed: created.is_err(),
            after,
        });
        self.store = created.ok();
    }

    /// What the store may hold now.
    fn last(&self) -> &[Option<State>] {
        &self.steps.last().expect("there is always one").after
    }

    /// What the store may hold after a power cut when the log was `at` long: the state after some
    /// of the operations that were called, with all that were promised.
    pub fn allowed(&self, at: usize) -> Vec<&Option<State>> {
        let must = self.steps.iter().rposition(|s| s.promised && s.to <= at);
        let may = self.steps.iter().rposition(|s| s.from <= at);
        let steps = &self.steps[must.expect("the first is")..=may.expect("the first is")];
        steps.iter().flat_map(|step| &step.after).collect()
    }

    /// The operations around a place in the log, a line each.
    pub fn describe(&self, at: usize) -> String {
        let lines = self.steps.iter().map(|step| {
            let here = if step.from <= at && at < step.to {
                ">"
            } else {
                " "
            };
            let promised = match step {
                Step { failed: true, .. } => ", failed",
                Step { promised: true, .. } => ", promised",
                _ => "",
            };
            let (from, to, op) = (step.from, step.to, step.op.describe());
            format!("{here} {from}..{to} {op:.80}{promised}\n")
        });
        let log = self.sim.describe(at.saturating_sub(60), at);
        format!("{}{log}", lines.collect::<String>())
    }
}

/// The state that was seen, if it is one of the possible ones.
fn seen(possible: &[Option<State>], found: State) -> State {
    let of = possible.iter().flatten();
    if !of.clone().any(|state| *state == found) {
        let differences: Vec<_> = of.map(|state| found.difference(state)).collect();
        panic!(
            "the store holds what it should not: {}",
            differences.join("\n or ")
        );
    }
    found
}

fn distinct(states: Vec<Option<State>>) -> Vec<Option<State>> {
    let mut distinct: Vec<Option<State>> = Vec::new();
    for state in states {
        if !distinct.contains(&state) {
            distinct.push(state);
        }
    }
    distinct
}
