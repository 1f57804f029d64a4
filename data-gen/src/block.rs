//! A block of consecutive memories, made from (seed, dimension, number of the block) alone.

use std::ops::Range;

use crate::bursts::{self, DAY};
use crate::random::{Draws, Purpose};
use crate::space::{Space, Subject};
use crate::words;
use crate::{BLOCK_ROWS, Config};

/// A reflection follows when the importance since the last one adds up to this.
const REFLECT_AT: usize = 100;
/// Evidence is taken from so many rows before the reflection.
const EVIDENCE_WINDOW: usize = 100;
/// Rows before the first reflection of a block can come.
const EVIDENCE_MOST: usize = 5;
/// A repeated memory follows the first one within so many rows.
const REPEAT_WINDOW: usize = 64;

/// Of 1000 observations, how many have importance 1, 2, ..., 10.
const IMPORTANCE: [usize; 10] = [300, 240, 160, 110, 70, 50, 30, 20, 13, 7];

/// What kind of memory a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Something seen.
    Observation,
    /// A conclusion drawn from earlier memories, its evidence.
    Reflection,
    /// Something said.
    Chat,
    /// Something intended.
    Plan,
}

impl Kind {
    /// The kind's name in files: `"observation"`, `"reflection"`, `"chat"` or `"plan"`.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Observation => "observation",
            Kind::Reflection => "reflection",
            Kind::Chat => "chat",
            Kind::Plan => "plan",
        }
    }
}

/// The key of a row: `m` and its index in at least six digits, such as `m000042`.
pub fn key(row: usize) -> String {
    format!("m{row:06}")
}

/// Consecutive memories as columns: [`BLOCK_ROWS`] of them, fewer in a stream's last block.
#[derive(Clone)]
pub struct Block {
    seed: u64,
    dim: usize,
    first_row: usize,
    embeddings: Vec<f32>,
    created: Vec<i64>,
    last_access: Vec<i64>,
    importance: Vec<f32>,
    rest: Vec<Rest>,
    evidence: Vec<usize>,
}

/// What a row has beside its columns.
#[derive(Clone)]
struct Rest {
    kind: Kind,
    subject: Subject,
    /// The row of the block this one repeats, or its own.
    origin: usize,
    evidence: Range<usize>,
    depth: u32,
}

/// One memory of a [`Block`].
#[derive(Clone, Debug)]
pub struct Memory<'a> {
    /// Its index in the stream, from 0.
    pub row: usize,
    /// Its kind.
    pub kind: Kind,
    /// When it was made, in microseconds since the Unix epoch; never before the row before.
    pub created: i64,
    /// When it was last retrieved, or made: from `created` to the stream's `now`, both included.
    pub last_access: i64,
    /// A whole number from 1 to 10, most often small.
    pub importance: f32,
    /// `dim` finite elements that are not all zero.
    pub embedding: &'a [f32],
    /// The rows it was drawn from, all earlier and different, in no particular order. Empty unless
    /// it is a reflection.
    pub evidence: &'a [usize],
    /// 0, and for a reflection one more than the deepest of its evidence.
    pub depth: u32,
    /// Its text, made when asked for.
    words: Words,
}

#[derive(Clone, Debug)]
struct Words {
    seed: u64,
    origin: usize,
    topic: u8,
    subtopic: u8,
}

impl Memory<'_> {
    /// Its unique [`key`].
    pub fn key(&self) -> String {
        key(self.row)
    }

    /// A sentence about its topic.
    pub fn text(&self) -> String {
        let Words {
            seed,
            origin,
            topic,
            subtopic,
        } = self.words;
        words::sentence(
            self.kind,
            Subject { topic, subtopic },
            Draws::new(seed, Purpose::Words, origin as u64),
        )
    }
}

impl Block {
    pub(crate) fn new(config: &Config, space: &Space, now: i64, index: usize) -> Self {
        let Config {
            memories,
            dim,
            seed,
        } = *config;
        let first_row = index * BLOCK_ROWS;
        let rows = (memories - first_row).min(BLOCK_ROWS);
        let mut block = Self {
            seed,
            dim,
            first_row,
            embeddings: vec![0.0; rows * dim],
            created: Vec::with_capacity(rows),
            last_access: Vec::with_capacity(rows),
            importance: Vec::with_capacity(rows),
            rest: Vec::with_capacity(rows),
            evidence: Vec::new(),
        };
        let mut importance_since_reflection = 0;
        let mut reflections_due = 0;
        for moment in bursts::moments(seed, index).into_iter().take(rows) {
            let mut draws = Draws::new(seed, Purpose::Memory, (first_row + block.len()) as u64);
            let reflection = reflections_due > 0 && block.len() > EVIDENCE_MOST;
            let rest = if reflection {
                block.reflection(&mut draws)
            } else {
                block.experience(&mut draws, moment.subject)
            };
            let importance = importance(rest.kind, &mut draws);
            if reflection {
                reflections_due -= 1;
            } else {
                importance_since_reflection += importance;
                if importance_since_reflection >= REFLECT_AT {
                    importance_since_reflection = 0;
                    reflections_due = 1 + draws.below(3);
                }
            }
            block.embed(space, &rest);
            block.created.push(moment.created);
            block
                .last_access
                .push(last_access(moment.created, now, &mut draws));
            block.importance.push(importance as f32);
            block.rest.push(rest);
        }
        block
    }

    /// The next row as a reflection on some of the rows before it, of one topic if enough of them
    /// are at hand.
    fn reflection(&mut self, draws: &mut Draws) -> Rest {
        let row = self.len();
        let recent = |draws: &mut Draws| row - 1 - draws.below(row.min(EVIDENCE_WINDOW));
        let wanted = 2 + draws.below(EVIDENCE_MOST - 1);
        let mut chosen = vec![recent(draws)];
        let subject = self.rest[chosen[0]].subject;
        for attempt in 0..24 {
            let row = recent(draws);
            let fits = attempt >= 12 || self.rest[row].subject.topic == subject.topic;
            if fits && !chosen.contains(&row) {
                chosen.push(row);
            }
            if chosen.len() == wanted {
                break;
            }
        }
        let depth = 1 + chosen
            .iter()
            .map(|&row| self.rest[row].depth)
            .max()
            .unwrap_or(0);
        let start = self.evidence.len();
        self.evidence
            .extend(chosen.iter().map(|row| self.first_row + row));
        Rest {
            kind: Kind::Reflection,
            subject,
            origin: row,
            evidence: start..self.evidence.len(),
            depth,
        }
    }

    /// The next row as anything else: sometimes the same observation again, mostly about its
    /// burst's topic.
    fn experience(&self, draws: &mut Draws, burst: Subject) -> Rest {
        let row = self.len();
        if row > 0 && draws.percent(4) {
            let earlier = &self.rest[row - 1 - draws.below(row.min(REPEAT_WINDOW))];
            if earlier.kind == Kind::Observation {
                return earlier.clone();
            }
        }
        let kind = match draws.below(100) {
            0..10 => Kind::Chat,
            10..15 => Kind::Plan,
            _ => Kind::Observation,
        };
        let mut subject = Subject::draw(draws);
        if draws.percent(85) {
            subject.topic = burst.topic;
            if draws.percent(40) {
                subject.subtopic = burst.subtopic;
            }
        }
        Rest {
            kind,
            subject,
            origin: row,
            evidence: 0..0,
            depth: 0,
        }
    }

    fn embed(&mut self, space: &Space, rest: &Rest) {
        let row = self.len();
        let (before, out) = self.embeddings.split_at_mut(row * self.dim);
        let out = &mut out[..self.dim];
        if rest.origin == row {
            let noise = Draws::new(self.seed, Purpose::Noise, (self.first_row + row) as u64);
            space.embed(rest.subject, noise, out);
        } else {
            out.copy_from_slice(&before[rest.origin * self.dim..][..self.dim]);
        }
    }

    /// The index in the stream of the block's first memory.
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// The number of memories.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether there are none, which no block of a stream is.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The embeddings, row after row: `len() * dim` elements.
    pub fn embeddings(&self) -> &[f32] {
        &self.embeddings
    }

    /// [`Memory::created`] of each row.
    pub fn created(&self) -> &[i64] {
        &self.created
    }

    /// [`Memory::last_access`] of each row.
    pub fn last_access(&self) -> &[i64] {
        &self.last_access
    }

    /// [`Memory::importance`] of each row.
    pub fn importance(&self) -> &[f32] {
        &self.importance
    }

    /// The memories in order.
    pub fn memories(&self) -> impl ExactSizeIterator<Item = Memory<'_>> {
        (0..self.len()).map(|at| {
            let rest = &self.rest[at];
            Memory {
                row: self.first_row + at,
                kind: rest.kind,
                created: self.created[at],
                last_access: self.last_access[at],
                importance: self.importance[at],
                embedding: &self.embeddings[at * self.dim..][..self.dim],
                evidence: &self.evidence[rest.evidence.clone()],
                depth: rest.depth,
                words: Words {
                    seed: self.seed,
                    origin: self.first_row + rest.origin,
                    topic: rest.subject.topic,
                    subtopic: rest.subject.subtopic,
                },
            }
        })
    }
}

/// Skewed towards 1; reflections weigh more.
fn importance(kind: Kind, draws: &mut Draws) -> usize {
    let mut left = draws.below(1000);
    let mut importance = 1;
    for share in IMPORTANCE {
        if left < share {
            break;
        }
        left -= share;
        importance += 1;
    }
    if kind == Kind::Reflection {
        (importance + 3).min(10)
    } else {
        importance
    }
}

/// Most memories are never retrieved; some are within a week, mostly soon; some at any time until
/// now.
fn last_access(created: i64, now: i64, draws: &mut Draws) -> i64 {
    let until_now = now - created;
    created
        + match draws.below(100) {
            0..60 => 0,
            60..85 => {
                let soon = draws.within(until_now.min(7 * DAY));
                draws.within(soon)
            }
            _ => draws.within(until_now),
        }
}
