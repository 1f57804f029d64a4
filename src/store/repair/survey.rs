//! What must be known of all rows before the first is written: which are live, their ids, and who has a key.

use super::Cause;
use super::ascending::{UNKNOWN, believe, find_between};
use super::blocks::Blocks;
use super::journal::Records;
use super::report::{Changes, LostChanges, RepairReport};
use super::rows::Reader;
use super::source::Source;
use crate::store::damage::Problem;
use crate::store::entries::{
    OVERRIDE_BYTES, SUPERSEDED_BYTES, TOUCHED_BYTES, override_in, superseded_in, touched_in,
    vector_bytes, vector_in,
};
use crate::store::files::Files;
use crate::store::format::Column;
use crate::store::live::Live;
use crate::store::manifest::Entry;
use crate::store::norms::Norms;
use std::collections::HashMap;
use std::path::Path;

/// The ids of the columns, as far as they are known, and one above all of them.
pub(super) fn ids(
    reader: &mut Reader,
    source: &Source,
    report: &mut RepairReport,
) -> (Vec<u64>, u64) {
    let end = source.checked.then_some(source.manifest.next_id);
    let ids = (0..reader.rows).map(|row| reader.id(row).unwrap_or(UNKNOWN));
    let mut ids: Vec<u64> = ids
        .map(|id| match end {
            Some(end) if id >= end => UNKNOWN,
            _ => id,
        })
        .collect();
    believe(&mut ids);
    let found = find_between(&mut ids, end);
    if found > 0 {
        report.notes.push(format!(
            "{found} ids could not be read and were told by those around them, which leave no others"
        ));
    }
    let last = ids.iter().rev().find(|&&id| id != UNKNOWN);
    let next_id = end.unwrap_or_else(|| last.map_or(0, |last| last + 1));
    (ids, next_id)
}

/// Why the id of a row is not known.
pub(super) fn unknown_id(reader: &mut Reader, ids: &[u64], row: usize, next_id: u64) -> Cause {
    let id = match reader.id(row) {
        Ok(id) => id,
        Err(cause) => return cause,
    };
    let previous = row.checked_sub(1).map(|before| ids[before]);
    let problem = Problem::Id {
        row,
        id,
        previous: previous.filter(|&id| id != UNKNOWN),
        next_id,
    };
    reader.cause(Column::Id, row as u64 * 8, problem)
}

/// The last live row with each key.
pub(super) fn owners(
    reader: &mut Reader,
    records: &Records<'_>,
    is_live: impl Fn(usize) -> bool,
) -> HashMap<String, usize> {
    let mut owners = HashMap::new();
    for row in (0..reader.rows).filter(|&row| is_live(row)) {
        if let Ok(Some(key)) = reader.key(row) {
            owners.insert(key, row);
        }
    }
    for (row, (id, memory)) in (reader.rows..).zip(&records.appended) {
        if let Some(key) = memory.key
            && !records.deletes.contains(id)
        {
            owners.insert(key.to_owned(), row);
        }
    }
    owners
}

/// The least importance of a live memory; 0 if none can be read.
pub(super) fn least_importance(
    reader: &mut Reader,
    records: &Records<'_>,
    is_live: impl Fn(usize) -> bool,
) -> f32 {
    let rows = (0..reader.rows).filter(|&row| is_live(row));
    let in_columns = rows.filter_map(|row| reader.importance(row).ok());
    let least = in_columns.fold(f32::INFINITY, f32::min);
    let in_journal = records
        .appended
        .iter()
        .filter(|(id, _)| !records.deletes.contains(id));
    let least = in_journal
        .map(|(_, memory)| memory.importance)
        .fold(least, f32::min);
    if least.is_finite() { least } else { 0.0 }
}

/// Opens a file of touches or deletes.
fn open(files: &dyn Files, dir: &Path, source: &Source, entry: &Entry) -> Blocks {
    Blocks::open(files, dir, entry, source.checked, entry.bytes)
}

/// Which rows of the columns are live, as far as can be read.
pub(super) fn deleted(
    files: &dyn Files,
    dir: &Path,
    source: &Source,
    report: &mut RepairReport,
) -> Live {
    let rows = source.manifest.rows as usize;
    let mut live = Live::new(rows);
    for entry in &source.deletes {
        let mut file = open(files, dir, source, entry);
        let (mut offsets, mut found) = (Vec::new(), Vec::new());
        file.for_each(|start, block| match block {
            Ok(bytes) => {
                let (entries, _) = bytes.as_chunks::<4>();
                offsets.extend((0..entries.len() as u64).map(|at| start + at * 4));
                found.extend(
                    entries
                        .iter()
                        .map(|&row| u64::from(u32::from_le_bytes(row))),
                );
            }
            Err((bytes, cause)) => {
                report
                    .changes
                    .push(LostChanges::new(Changes::Deletes, bytes, &cause));
            }
        });
        let mut believed: Vec<u64> = found
            .iter()
            .map(|&row| if row < rows as u64 { row } else { UNKNOWN })
            .collect();
        believe(&mut believed);
        for ((&believed, &found), &offset) in believed.iter().zip(&found).zip(&offsets) {
            if believed != UNKNOWN {
                live.delete(believed as usize);
                continue;
            }
            let row = found as usize;
            let cause = file.cause(offset, Problem::DeletedRow { row, rows });
            report
                .changes
                .push(LostChanges::new(Changes::Deletes, 4, &cause));
        }
    }
    live
}

/// Rows, agents and times of the touches that can be read, ascending.
pub(super) fn touched(
    files: &dyn Files,
    dir: &Path,
    source: &Source,
    report: &mut RepairReport,
) -> Vec<(u32, u32, i64)> {
    let rows = source.manifest.rows as usize;
    let mut touched = Vec::new();
    for entry in &source.touches {
        let mut wrong = Vec::new();
        let mut file = open(files, dir, source, entry);
        file.for_each(|start, block| match block {
            Ok(bytes) => {
                let (entries, _) = bytes.as_chunks::<TOUCHED_BYTES>();
                for (at, entry) in entries.iter().enumerate() {
                    let (agent, row, time) = touched_in(entry);
                    match row < rows {
                        true => touched.push((row as u32, agent.0, time)),
                        false => wrong.push((start + (at * TOUCHED_BYTES) as u64, row)),
                    }
                }
            }
            Err((bytes, cause)) => {
                report
                    .changes
                    .push(LostChanges::new(Changes::Touches, bytes, &cause));
            }
        });
        for (offset, row) in wrong {
            let cause = file.cause(offset, Problem::TouchedRow { row, rows });
            let bytes = TOUCHED_BYTES as u64;
            report
                .changes
                .push(LostChanges::new(Changes::Touches, bytes, &cause));
        }
    }
    touched.sort_unstable();
    touched
}

/// Rows, agents and importances of agents' own that can be read, ascending by row.
pub(super) fn overrides(
    files: &dyn Files,
    dir: &Path,
    source: &Source,
    report: &mut RepairReport,
) -> Vec<(u32, u32, f32)> {
    let rows = source.manifest.rows as usize;
    let Some(entry) = &source.overrides else {
        return Vec::new();
    };
    let (mut overrides, mut wrong) = (Vec::new(), Vec::new());
    let mut file = open(files, dir, source, entry);
    file.for_each_entry(OVERRIDE_BYTES, |offset, entry| {
        let decoded = entry.map(|bytes| override_in(&std::array::from_fn(|i| bytes[i])));
        match decoded {
            Ok((_, row, _)) if row >= rows => {
                wrong.push((offset, Problem::OverrideRow { row, rows }));
            }
            Ok((_, row, value)) if !value.is_finite() => {
                wrong.push((offset, Problem::Importance { row, value }));
            }
            // No -0: least and greatest must not depend on the order.
            Ok((agent, row, value)) => overrides.push((row as u32, agent.0, value + 0.0)),
            Err(cause) => note(report, Changes::Importances, OVERRIDE_BYTES, &cause),
        }
    });
    for (offset, problem) in wrong {
        let cause = file.cause(offset, problem);
        note(report, Changes::Importances, OVERRIDE_BYTES, &cause);
    }
    overrides.sort_by_key(|&(row, agent, _)| (row, agent));
    overrides
}

/// What corrects which rows, as far as it can be read, by row.
pub(super) fn superseded(
    files: &dyn Files,
    dir: &Path,
    source: &Source,
    report: &mut RepairReport,
) -> HashMap<usize, u64> {
    let rows = source.manifest.rows as usize;
    let Some(entry) = &source.superseded else {
        return HashMap::new();
    };
    let (mut superseded, mut wrong) = (HashMap::new(), Vec::new());
    let mut file = open(files, dir, source, entry);
    file.for_each_entry(SUPERSEDED_BYTES, |offset, entry| {
        let decoded = entry.map(|bytes| superseded_in(&std::array::from_fn(|i| bytes[i])));
        match decoded {
            Ok((row, by)) if row >= rows || superseded.contains_key(&row) => {
                wrong.push((offset, Problem::SupersededRow { row, by, rows }));
            }
            Ok((row, by)) => {
                superseded.insert(row, by);
            }
            Err(cause) => note(report, Changes::Corrections, SUPERSEDED_BYTES, &cause),
        }
    });
    for (offset, problem) in wrong {
        let cause = file.cause(offset, problem);
        note(report, Changes::Corrections, SUPERSEDED_BYTES, &cause);
    }
    superseded
}

/// Vectors that came after their rows were in the columns, with their inverse norms, as far as they can be read and
/// can be the rows'.
pub(super) fn vectors(
    files: &dyn Files,
    dir: &Path,
    source: &Source,
    report: &mut RepairReport,
) -> HashMap<usize, (Vec<u8>, f32)> {
    let manifest = &source.manifest;
    let rows = manifest.rows as usize;
    let entry_bytes = vector_bytes(manifest);
    let mut norms = Norms::new(manifest.dim, manifest.dtype);
    let (mut vectors, mut wrong) = (HashMap::new(), Vec::new());
    let mut file = source.open(files, dir, Column::Vectors);
    file.for_each_entry(entry_bytes, |offset, entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(cause) => return note(report, Changes::Vectors, entry_bytes, &cause),
        };
        let (row, vector) = vector_in(entry, entry_bytes).expect("as many bytes as were asked for");
        let stored = vector.inv_norm;
        let impossible = |what| Problem::LateVector { row, what };
        let problem = match norms.of(vector.elements) {
            _ if row >= rows => impossible("there is no such row"),
            _ if vectors.contains_key(&row) => impossible("it was given another before"),
            Ok(computed) if computed.to_bits() == stored.to_bits() && stored != 0.0 => {
                vectors.insert(row, (vector.elements.to_vec(), stored));
                return;
            }
            Ok(computed) => Problem::InvNorm {
                row,
                stored,
                computed,
            },
            Err(problem) => Problem::Elements { row, problem },
        };
        wrong.push((offset, problem));
    });
    for (offset, problem) in wrong {
        let cause = file.cause(offset, problem);
        note(report, Changes::Vectors, entry_bytes, &cause);
    }
    vectors
}

/// Takes note of an entry that is lost. Those that are lost by one damage are told as one.
fn note(report: &mut RepairReport, changes: Changes, bytes: usize, cause: &Cause) {
    let lost = LostChanges::new(changes, bytes as u64, cause);
    match report.changes.last_mut() {
        Some(last)
            if (last.changes, &last.path, last.offset) == (changes, &lost.path, lost.offset) =>
        {
            last.bytes += lost.bytes;
        }
        _ => report.changes.push(lost),
    }
}
