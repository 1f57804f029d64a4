//! What a model is shown: the newest memories, and those that are retrieved for a question.

use crate::store::{ReadError, Snapshot};
use crate::stream::reflection::settings::Settings;
use crate::stream::{Ask, Filter, Retrieve};
use std::cmp::Reverse;

/// What may be shown.
pub(super) fn filter(settings: &Settings) -> Filter<'_> {
    Filter {
        kinds: settings.kinds.as_deref(),
        unexpired: true,
        ..Filter::PAST
    }
}

/// How memories are retrieved for a question.
pub(super) fn retrieval<'a>(
    settings: &'a Settings,
    now: i64,
    text: &'a str,
    embedding: &'a [f32],
    filter: &'a Filter<'a>,
) -> Retrieve<'a> {
    let ask = Ask {
        agent: settings.agent,
        filter,
        ..Ask::new(embedding, now, &settings.preset)
    };
    Retrieve {
        note: noted(text).as_bytes(),
        ..Retrieve::new(ask)
    }
}

/// Bytes of a question that the record of its touch keeps.
const NOTE_BYTES: usize = 1024;

fn noted(text: &str) -> &str {
    let ends = (0..=text.len().min(NOTE_BYTES)).rev();
    let end = { ends }.find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// The ids and texts of the newest memories, the newest last.
pub(super) fn newest(
    snapshot: &Snapshot,
    settings: &Settings,
    now: i64,
) -> Result<Vec<(u64, String)>, ReadError> {
    let filter = filter(settings);
    let ask = Ask {
        agent: settings.agent,
        ..Ask::new(&[], now, &settings.preset)
    };
    let live = (0..snapshot.rows()).filter(|&row| snapshot.is_live(row));
    let mut newest_first: Vec<usize> = live.collect();
    newest_first.sort_unstable_by_key(|&row| Reverse((snapshot.created(row), row)));
    let mut rows = Vec::new();
    for row in newest_first {
        if rows.len() == settings.newest {
            break;
        }
        if filter.why_not(snapshot, &ask, row)?.is_none() {
            rows.push(row);
        }
    }
    texts(snapshot, rows.into_iter().rev())
}

/// The ids and texts of rows.
pub(super) fn texts(
    snapshot: &Snapshot,
    rows: impl Iterator<Item = usize>,
) -> Result<Vec<(u64, String)>, ReadError> {
    rows.map(|row| Ok((snapshot.id(row), snapshot.text(row)?.to_owned())))
        .collect()
}
