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
    /// The last record of a touch.
    touched: u64,
}

impl Current {
    pub(super) fn new(state: State) -> Current {
        Current {
            state: Arc::new(state),
            waiting: HashMap::new(),
            touched: 0,
        }
    }

    /// The state with all that was done.
    pub(super) fn state(&mut self) -> &mut Arc<State> {
        if !self.waiting.is_empty() || self.state.sequence < self.touched {
            let state = Arc::make_mut(&mut self.state);
            for ((agent, row), now) in self.waiting.drain() {
                state.touch(agent, row, now);
            }
            state.sequence = state.sequence.max(self.touched);
        }
        &mut self.state
    }

    /// The state but for touches, which change neither rows nor ids nor what is live.
    pub(super) fn untouched(&self) -> &State {
        &self.state
    }

    /// An agent's last access of a row.
    pub(super) fn last_access(&self, agent: Agent, row: usize) -> i64 {
        let waiting = self.waiting.get(&(agent, row));
        let last = waiting.copied();
        last.unwrap_or_else(|| self.state.last_access(agent, row))
    }

    /// Has rows touched before anybody looks, by the record `sequence`, at a time that is later than the agent's
    /// [last access](Current::last_access) of each.
    pub(super) fn touch(&mut self, sequence: u64, agent: Agent, rows: &[usize], now: i64) {
        for &row in rows {
            if self.waiting.len() == WAITING {
                self.state();
            }
            self.waiting.insert((agent, row), now);
        }
        self.touched = sequence;
    }
}
