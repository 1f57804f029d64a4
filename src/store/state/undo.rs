//! Going back: what the records of the journal did is undone, the last first.

use super::{Committed, State};
use crate::store::journal::{Body, Vector};
use crate::store::own::Agent;
use std::sync::Arc;

impl State {
    /// Undoes what a record did, after all that came later, but for appends: the rows stay until
    /// [`truncate`](State::truncate). The ids of memories that it deleted, and whose rows are no more, go to `gone`.
    /// `zeros` are the elements of a memory without an embedding.
    pub(in crate::store) fn undo(&mut self, body: &Body<'_>, zeros: &[u8], gone: &mut Vec<u64>) {
        match body {
            Body::Append { .. } => {}
            Body::Touch(touch) => {
                for (id, before) in touch.altered() {
                    if let Some(row) = self.slot_of_id(id) {
                        self.set_last_access(Agent(touch.agent), row, before);
                    }
                }
            }
            Body::Delete { ids } => {
                for id in ids.iter() {
                    match self.slot_of_id(id) {
                        Some(row) => self.live.revive(row),
                        None => gone.push(id),
                    }
                }
            }
            Body::Embed { vectors } => {
                for &(id, _) in vectors {
                    if let Some(row) = self.slot_of_id(id) {
                        self.unembed(row, zeros);
                    }
                }
            }
            Body::Importance {
                agent, ids, before, ..
            } => {
                for (id, before) in ids.iter().zip(before.iter()) {
                    if let Some(row) = self.slot_of_id(id) {
                        let own = Some(before).filter(|own| !own.is_nan());
                        self.set_importance(Agent(*agent), row, own);
                    }
                }
            }
        }
    }

    /// Leaves what was there before the memory with this id, or one after it, was appended.
    pub(in crate::store) fn truncate(&mut self, next_id: u64) {
        let in_columns = self.committed.ids().partition_point(|&id| id < next_id);
        let in_tail = match in_columns < self.committed.columns.rows {
            true => 0,
            false => self.tail.rows_below(next_id),
        };
        self.tail.truncate(in_tail);
        if in_columns < self.committed.columns.rows {
            let mut columns = (*self.committed.columns).clone();
            columns.rows = in_columns;
            self.committed = Committed {
                columns: Arc::new(columns),
                ..self.committed.clone()
            };
        }
        let rows = self.rows();
        self.live.truncate(rows);
        (self.access.values_mut()).for_each(|access| access.truncate(rows));
        (self.overrides.values_mut()).for_each(|own| own.truncate(rows));
        self.superseded.truncate(next_id);
        self.next_id = self.next_id.min(next_id);
        // A key may be that of a row that is live again.
        self.recovered();
    }

    fn set_last_access(&mut self, agent: Agent, row: usize, time: i64) {
        let rows = self.rows();
        let given = super::last_access_given(&self.committed.columns, &self.tail);
        let access = self.access.entry(agent);
        let access = access.or_insert_with(|| super::Own::new(self.sizes.page_rows));
        access.set(row, time, rows, given);
    }

    fn unembed(&mut self, row: usize, zeros: &[u8]) {
        let none = Vector {
            inv_norm: 0.0,
            elements: zeros,
        };
        match row.checked_sub(self.committed.columns.rows) {
            None => self.filled.clear(row, zeros),
            Some(row) => self.tail.embed(row, none),
        }
    }
}
