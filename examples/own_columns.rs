//! Ranking memories that a program keeps in columns of its own: no store, no files, no clock.
//!
//! ```text
//! cargo run --example own_columns
//! ```

use memorank::kernel::{RowError, Rows, inv_norms};
use memorank::scoring::{Candidates, Columns, MICROSECONDS_PER_HOUR, Preset, Query, Ranking, rank};
use std::error::Error;
use std::num::NonZeroUsize;

const HOUR: i64 = MICROSECONDS_PER_HOUR.get() as i64;

/// A game's memories, field by field. memorank borrows four of these and never sees the texts.
struct Memories {
    dim: NonZeroUsize,
    texts: Vec<&'static str>,
    /// One after another, `dim` elements each.
    embeddings: Vec<f32>,
    inv_norms: Vec<f32>,
    /// In any ticks; here microseconds, because the presets decay per hour of those.
    last_access: Vec<i64>,
    importance: Vec<f32>,
}

impl Memories {
    /// The inverse length of an embedding is computed once, when the memory is made: rankings use it again.
    fn push(
        &mut self,
        text: &'static str,
        embedding: &[f32],
        now: i64,
        importance: f32,
    ) -> Result<(), RowError> {
        let mut inv_norm = [0.0];
        inv_norms(self.dim, Rows::F32(embedding), &mut inv_norm)?; // refuses NaN, zeros, a wrong length
        self.texts.push(text);
        self.embeddings.extend(embedding);
        self.inv_norms.extend(inv_norm);
        self.last_access.push(now);
        self.importance.push(importance);
        Ok(())
    }

    /// The two memories that matter most now, of those that `compete`.
    fn best(
        &self,
        query: &[f32],
        now: i64,
        compete: Candidates<'_>,
    ) -> Result<Ranking, Box<dyn Error>> {
        let columns = Columns::new(
            self.dim,
            Rows::F32(&self.embeddings),
            &self.inv_norms,
            &self.last_access,
            &self.importance,
        )?;
        let query = Query::new(query, now, 2).of(compete);
        // Weights, decay and normalisation are plain data: `paper` is a starting point.
        Ok(rank(&[columns], &query, &Preset::paper().scoring)?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut memories = Memories {
        dim: NonZeroUsize::new(3).ok_or("a dimension")?,
        texts: vec![],
        embeddings: vec![],
        inv_norms: vec![],
        last_access: vec![],
        importance: vec![],
    };
    // The embeddings of a real program come from a model; these are about (food, danger, weather).
    memories.push("ate bread at the inn", &[0.9, 0.0, 0.1], 0, 2.0)?;
    memories.push("a wolf came close", &[0.1, 0.9, 0.1], HOUR, 9.0)?;
    memories.push("it rained all day", &[0.0, 0.1, 0.9], 30 * HOUR, 1.0)?;
    memories.push("the stew is poisoned", &[0.7, 0.6, 0.0], 31 * HOUR, 8.0)?;

    let (now, hungry) = (32 * HOUR, [1.0, 0.0, 0.0]);
    let ranking = memories.best(&hungry, now, Candidates::All)?;
    println!("hungry:");
    for hit in &ranking.hits {
        let text = memories.texts[hit.row];
        let parts = [hit.relevance, hit.recency, hit.importance].map(|part| part.weighted);
        println!(
            "  {:.3} = {:.3} + {:.3} + {:.3}  {text}",
            hit.score, parts[0], parts[1], parts[2]
        );
    }
    assert_eq!(memories.texts[ranking.hits[0].row], "the stew is poisoned");

    // What is returned was thought of: whoever wants that to count writes it down.
    for hit in &ranking.hits {
        let last_access = &mut memories.last_access[hit.row];
        *last_access = now.max(*last_access);
    }

    // Only rows 0 and 2 compete, and the scores are normalised over those two.
    let harmless = memories.best(&hungry, now + HOUR, Candidates::Rows(&[0, 2]))?;
    println!("hungry, of harmless things:");
    for hit in &harmless.hits {
        println!("  {:.3}  {}", hit.score, memories.texts[hit.row]);
    }
    assert_eq!(harmless.candidates, 2);
    Ok(())
}
