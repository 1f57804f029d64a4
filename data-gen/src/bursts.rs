//! When memories are made: in bursts, a few seconds apart, with quiet hours between them.
//!
//! Each block of [`BLOCK_ROWS`] rows fills a span of four days that follows the block before, so
//! that times ascend over the whole stream and yet no block has to know another. Some rows share
//! the time of the row before.

use crate::BLOCK_ROWS;
use crate::random::{Draws, Purpose};
use crate::space::Subject;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
pub const DAY: i64 = 24 * HOUR;

/// Monday, 5 January 2026, 08:00 UTC: the beginning of every stream.
pub const START: i64 = 1_767_600_000 * SECOND;
const BLOCK_SPAN: i64 = 4 * DAY;

/// When a memory was made, and what its burst was about.
pub struct Moment {
    pub created: i64,
    pub subject: Subject,
}

/// The moments of a whole block.
pub fn moments(seed: u64, block: usize) -> Vec<Moment> {
    let mut draws = Draws::new(seed, Purpose::Bursts, block as u64);
    let mut moments = Vec::with_capacity(BLOCK_ROWS);
    let mut elapsed = 0;
    while moments.len() < BLOCK_ROWS {
        elapsed += 120 * SECOND + draws.within(2 * HOUR) / 8 * (1 + draws.mostly_small(8) as i64);
        if draws.percent(2) {
            elapsed += 7 * HOUR + draws.within(2 * HOUR);
        }
        let subject = Subject::draw(&mut draws);
        for _ in 0..1 + draws.mostly_small(48) {
            moments.push(Moment {
                created: elapsed,
                subject,
            });
            if !draws.percent(8) {
                elapsed += SECOND / 5 + draws.within(15 * SECOND);
            }
        }
    }
    moments.truncate(BLOCK_ROWS);

    // Stretched or squeezed into the span. Equal times stay equal, and order stays.
    let from = START + block as i64 * BLOCK_SPAN;
    let whole = i128::from(elapsed + 60 * SECOND);
    for moment in &mut moments {
        moment.created =
            from + (i128::from(moment.created) * i128::from(BLOCK_SPAN) / whole) as i64;
    }
    moments
}

/// The moment at which a stream of `memories` rows is looked at: a minute after its last memory was
/// made.
pub fn now(seed: u64, memories: usize) -> i64 {
    match memories.checked_sub(1) {
        None => START,
        Some(last) => moments(seed, last / BLOCK_ROWS)[last % BLOCK_ROWS].created + 60 * SECOND,
    }
}
