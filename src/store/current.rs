//! The state that readers see, and touches that it does not have yet.
//!
//! A retrieval touches what it returns while its own snapshot still shares the state: each page touched then
//! would be copied first, for 30 memories here and there 30 pages of 128 KiB, which took 170 us of the 180 of
//! a touch. So a touch waits until somebody looks, when the snapshot before is mostly gone.

use super::own::Agent;
use super::state::State;
use std::collections::HashMap;
use std::sync::Arc;

/// Last accesses that wait at most: who looks next waits for them, some 20 ns each.
const WAITING: usize = 4096;

pub(super) struct Current {
    state: Arc<State>,
    /// Later last accesses than the state has, by agent and row.
    waiting: HashMap<(Agent, usize), i64>,
}

impl Current {
    pub(super) fn new(state: State) -> Current {
        Current {
            state: Arc::new(state),
            waiting: HashMap::new(),
        }
    }

    /// The state with all that was done.
    pub(super) fn state(&mut self) -> &mut Arc<State> {
        if !self.waiting.is_empty() {
            let state = Arc::make_mut(&mut self.state);
            for ((agent, row), now) in self.waiting.drain() {
                state.touch(agent, row, now);
            }
        }
        &mut self.state
    }

    /// The state but for touches, which change neither rows nor ids nor what is live.
    pub(super) fn untouched(&self) -> &State {
        &self.state
    }

    /// Whether a touch at `now` changes an agent's last access of a row.
    pub(super) fn is_older(&self, agent: Agent, row: usize, now: i64) -> bool {
        let waiting = self.waiting.get(&(agent, row));
        let last = waiting.copied();
        last.unwrap_or_else(|| self.state.last_access(agent, row)) < now
    }

    /// Has a row touched before anybody looks, at a time for which it [is older](Current::is_older).
    pub(super) fn touch(&mut self, agent: Agent, row: usize, now: i64) {
        if self.waiting.len() == WAITING {
            self.state();
        }
        self.waiting.insert((agent, row), now);
    }
}
