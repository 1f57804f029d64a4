//! The end of a run: insights into the store, and what was retrieved for them touched.

use super::{Reflect, Reflected, Stage, shown};
use crate::store::{Reference, Snapshot, Store};
use crate::stream::Retrieve;
use crate::stream::many::touch_in_turn;
use crate::stream::reflection::error::ReflectFinishError;
use crate::stream::reflection::need::Step;
use std::mem;

impl Reflect {
    /// Stores the insights, all or none, and then touches what was retrieved for the questions. Nothing is needed
    /// afterwards.
    ///
    /// # Errors
    /// If something is left to ask, the run is over or its insights are stored, a memory that is cited was deleted or
    /// corrected since it was shown, it is another store, or the store refuses. Nothing was written then
    /// (but see [`Store::append`] for a sync that failed), and the run is as it was.
    pub fn append(&mut self, store: &Store) -> Result<Reflected, ReflectFinishError> {
        match (self.stage, self.needs().step()) {
            (Stage::Over, _) => return Err(ReflectFinishError::Over),
            (Stage::Stored, _) => return Err(ReflectFinishError::Stored),
            (_, Step::Nothing) => {}
            (_, needed) => return Err(ReflectFinishError::Unanswered { needed }),
        }
        let exclusive = store.exclusive()?;
        self.remember.fits(store)?;
        self.still_holds(&exclusive.snapshot())?;
        let memories = self.remember.memories().expect("nothing is needed");
        let ids = exclusive.append(&memories)?;
        let texts = self.questions.iter().map(|question| question.text.clone());
        let texts: Vec<String> = texts.collect();
        let filter = shown::filter(&self.settings);
        let mut retrieved = Vec::new();
        let mut asked = Vec::new();
        for question in mem::take(&mut self.questions) {
            retrieved.extend(question.retrieved);
            asked.push((question.text, question.embedding));
        }
        let asks: Vec<Retrieve<'_>> = (asked.iter())
            .map(|(text, embedding)| {
                shown::retrieval(&self.settings, self.now, text, embedding, &filter)
            })
            .collect();
        touch_in_turn(store, &asks, &mut retrieved);
        self.stage = Stage::Stored;
        Ok(Reflected {
            ids,
            questions: texts,
            retrieved,
            attempts: mem::take(&mut self.attempts),
        })
    }

    /// Whether all that is cited is still there, and right, in a later snapshot.
    fn still_holds(&self, snapshot: &Snapshot) -> Result<(), ReflectFinishError> {
        // A store never goes back, and what is stored of a memory stays: where one of these is not so, it is another.
        let then = &self.snapshot;
        if snapshot.next_id() < then.next_id() || snapshot.sequence() < then.sequence() {
            return Err(ReflectFinishError::OtherStore);
        }
        for (insight, draft) in self.drafts().iter().enumerate() {
            for reference in &draft.evidence {
                let &Reference::Id(id) = reference else {
                    continue;
                };
                let Some(row) = snapshot.row_of_id(id) else {
                    return Err(ReflectFinishError::Deleted { insight, id });
                };
                if let Some(by) = snapshot.superseded_at(row, self.now) {
                    return Err(ReflectFinishError::Superseded { insight, id, by });
                }
                if let Some(shown) = then.row_of_id(id) {
                    let is_same = snapshot.created(row) == then.created(shown)
                        && snapshot.text(row)? == then.text(shown)?;
                    if !is_same {
                        return Err(ReflectFinishError::OtherStore);
                    }
                }
            }
        }
        Ok(())
    }
}
