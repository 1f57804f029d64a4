//! Reading a store: what its manifest commits, and over it what its journal holds.

use super::column::{self, Columns, Hold};
use super::damage::{Damage, Problem};
use super::entries;
use super::files::{Files, What};
use super::format::{MAX_ROWS, NO_EXPIRY};
use super::journal::{
    Body, Dropped, Ids, Record, Replay, Row, Segment, file_name, is_continuation, number_in,
};
use super::live::Live;
use super::manifest::Manifest;
use super::map::Bytes;
use super::memory::Kind;
use super::own::Agent;
use super::state::{Committed, State};
use super::tail::StoredRow;
use std::path::Path;

/// What was found in the journal when the store was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Recovery {
    /// Records that the columns did not hold yet.
    pub records: u64,
    /// What the journal's files hold beside whole records, which is left out: what a writer was about to write
    /// when it was stopped, or, if one is at work, is about to write. None of it was acknowledged as
    /// durable.
    pub dropped: Vec<Dropped>,
}

/// A store as it was found.
pub(super) struct Loaded {
    pub(super) state: State,
    pub(super) journal: Found,
}

/// A journal as it was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) recovery: Recovery,
    /// The last record, in the journal or in the columns.
    pub(super) last_sequence: u64,
    /// The segments that were read.
    pub(super) segments: Vec<u64>,
    /// The bytes of the records that the columns do not hold.
    pub(super) unfolded_bytes: u64,
}

/// Loads what `manifest` commits and what follows it.
pub(super) fn load(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    hold: Hold,
) -> Result<Loaded, Damage> {
    // Before the first is read: one that has a successor is whole, and stays so.
    let segments = segments(files, dir, manifest)?;
    let columns = Columns::load(files, dir, manifest, hold)?;
    let live = Live::without(columns.rows, entries::deleted(&columns)?);
    let mut state = State::new(Committed::new(manifest.clone(), columns, live));
    let columns = state.committed.columns.clone();
    for (agent, row, time) in entries::touched(&columns)? {
        state.touch(agent, row, time);
    }
    for (agent, row, importance) in entries::overrides(&columns)? {
        state.set_importance(agent, row, Some(importance));
    }
    for (_, row, vector) in entries::vectors(&columns, manifest)? {
        state.filled.insert(row, vector, true);
    }
    let zeros = vec![0; manifest.dim.get() * manifest.dtype.size_bytes()];
    state.superseded = entries::superseded(&columns, manifest)?
        .into_iter()
        .collect();
    let journal = replay(files, dir, manifest, &segments, |record| {
        apply(&mut state, record, &zeros)
    })?;
    state.recovered();
    Ok(Loaded { state, journal })
}

/// The numbers of the segments that recovery reads.
pub(super) fn segments(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
) -> Result<Vec<u64>, Damage> {
    let mut numbers = Vec::new();
    let first = manifest.journal_segment;
    if first == 0 {
        return Ok(numbers);
    }
    let mut last = first;
    for number in first..=u64::MAX {
        last = number;
        let path = dir.join(file_name(number));
        match files.what(&path) {
            Ok(What::File) => numbers.push(number),
            Ok(_) => {
                let offset = 0;
                let problem = Problem::Unreadable("not a regular file".into());
                return Err(Damage {
                    path,
                    offset,
                    problem,
                });
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && number > first => break,
            Err(e) => return Err(column::unreadable(&path, &e)),
        }
    }
    // A leftover continues nothing. If a segment continues one that is not there, that one was lost.
    let names = files.list(dir).map_err(|e| column::unreadable(dir, &e))?;
    for number in names.iter().filter_map(|name| number_in(name.to_str()?)) {
        if number > last && read(files, dir, number).is_ok_and(|bytes| continues(number, &bytes)) {
            return Err(Damage {
                path: dir.join(file_name(last)),
                offset: 0,
                problem: Problem::Missing,
            });
        }
    }
    Ok(numbers)
}

fn continues(number: u64, bytes: &Bytes) -> bool {
    let segment = Segment {
        path: Path::new(""),
        number,
        bytes: bytes.as_slice(),
    };
    is_continuation(&segment)
}

/// Reads segments, and gives `apply` the records that the columns do not hold.
pub(super) fn replay(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    segments: &[u64],
    mut apply: impl FnMut(&Record<'_>) -> Result<(), Problem>,
) -> Result<Found, Damage> {
    let embedding_bytes = manifest.dim.get() * manifest.dtype.size_bytes();
    let (folded, named) = (manifest.journal_folded, manifest.journal_bytes);
    let mut replay = Replay::new(embedding_bytes, folded, named);
    let mut found = Found::default();
    let mut bytes = match segments.first() {
        None => Bytes::EMPTY,
        Some(&number) => read(files, dir, number)?,
    };
    for (at, &number) in segments.iter().enumerate() {
        let next = match segments.get(at + 1) {
            None => None,
            Some(&next) => Some(read(files, dir, next)?),
        };
        let path = dir.join(file_name(number));
        let segment = Segment {
            path: &path,
            number,
            bytes: bytes.as_slice(),
        };
        let outcome = replay.read(&segment, next.as_ref().map(Bytes::as_slice), |record| {
            found.recovery.records += 1;
            found.unfolded_bytes += record.len_bytes();
            apply(&record)
        })?;
        found.segments.push(number);
        found.recovery.dropped.extend(outcome.dropped);
        match next {
            Some(next) if outcome.more => bytes = next,
            _ => break,
        }
    }
    found.last_sequence = replay.last_sequence();
    Ok(found)
}

fn read(files: &dyn Files, dir: &Path, number: u64) -> Result<Bytes, Damage> {
    let path = dir.join(file_name(number));
    let read = || {
        let file = files.open(&path)?;
        let len = usize::try_from(file.bytes()?).unwrap_or(usize::MAX);
        Bytes::read(&*file, len)
    };
    read().map_err(|e| column::unreadable(&path, &e))
}

/// Does to a state what a record says. `zeros` are the elements of a memory without an embedding.
pub(super) fn apply(state: &mut State, record: &Record<'_>, zeros: &[u8]) -> Result<(), Problem> {
    let sequence = record.sequence;
    let wrong = |what| Problem::RecordBody { sequence, what };
    check(record, state.next_id)?;
    match &record.body {
        Body::Append { first_id, rows } => {
            if state.rows() as u64 + rows.len() as u64 > MAX_ROWS {
                return Err(wrong("it holds more memories than a store can"));
            }
            for (row, id) in rows.iter().zip(*first_id..) {
                push(state, row, id, zeros)
                    .map_err(|_| wrong("it names more kinds than a store can"))?;
            }
            if state.tail.is_joinable() {
                state.tail.join();
            }
        }
        Body::Touch(touch) => {
            // Of one that was deleted by then nothing was touched, and if that is undone nothing must have been.
            for row in slots(state, touch.altered().map(|(id, _)| id)) {
                state.touch(Agent(touch.agent), row, touch.now);
            }
        }
        Body::Delete { ids } => {
            for row in slots(state, ids.iter()) {
                state.delete(row);
            }
        }
        Body::Embed { vectors } => {
            for &(id, vector) in vectors {
                if let Some(row) = state.slot_of_id(id) {
                    state.embed(row, vector);
                }
            }
        }
        Body::Importance {
            agent,
            importance,
            ids,
            before: _,
        } => {
            for row in slots(state, ids.iter()) {
                state.set_importance(Agent(*agent), row, *importance);
            }
        }
    }
    state.sequence = sequence;
    Ok(())
}

/// A record is about ids as it should be, `next_id` being the next that is given. Gives the next one after it.
pub(super) fn check(record: &Record<'_>, next_id: u64) -> Result<u64, Problem> {
    let sequence = record.sequence;
    let wrong = |what| Err(Problem::RecordBody { sequence, what });
    let given = |ids: &Ids<'_>| ids.iter().all(|id| id < next_id);
    let are_given = match &record.body {
        Body::Append { first_id, .. } if *first_id < next_id => {
            return wrong("it gives an id that was given before");
        }
        Body::Append { first_id, rows } => {
            let mut given = rows.iter().zip(*first_id..);
            match given.all(|(row, id)| row.supersedes.is_none_or(|older| older < id)) {
                true => return Ok(first_id + rows.len() as u64),
                false => false,
            }
        }
        Body::Touch(touch) => touch.seen.next_id <= next_id && given(&touch.ids),
        Body::Delete { ids } | Body::Importance { ids, .. } => given(ids),
        Body::Embed { vectors } => vectors.iter().all(|&(id, _)| id < next_id),
    };
    match are_given {
        true => Ok(next_id),
        false => wrong("it is about a memory that never was"),
    }
}

/// The rows with these ids. A compaction took away those of memories that had been deleted.
fn slots(state: &State, ids: impl Iterator<Item = u64>) -> Vec<usize> {
    ids.filter_map(|id| state.slot_of_id(id)).collect()
}

/// Adds a journal's memory to a state.
pub(super) fn push(
    state: &mut State,
    row: &Row<'_>,
    id: u64,
    zeros: &[u8],
) -> Result<(), super::error::MemoryProblem> {
    let kind = state.intern(&Kind::named(row.kind))?;
    state.push(&StoredRow {
        elements: row.vector.map_or(zeros, |vector| vector.elements),
        inv_norm: row.vector.map_or(0.0, |vector| vector.inv_norm),
        id,
        created: row.created,
        last_access: row.last_access,
        expiry: row.expiry.unwrap_or(NO_EXPIRY),
        importance: row.importance,
        kind,
        depth: row.depth,
        key: row.key,
        text: row.text,
        payload: row.payload,
        evidence: row.evidence,
    });
    if let Some(older) = row.supersedes {
        state.supersede(older, id);
    }
    Ok(())
}
