//! The columns that have not a value for each row: what was deleted, touched, given another importance, given a
//! vector or corrected since it was appended. Their entries name the rows they are of. They are read into memory when
//! a store is opened, and nothing in them is trusted.

use super::column::Columns;
use super::damage::{Damage, Problem};
use super::format::Column;
use super::journal::Vector;
use super::manifest::Manifest;
use super::own::Agent;

/// Bytes of an entry in the file of touches.
pub(super) const TOUCHED_BYTES: usize = 16;

/// Bytes of an entry in the file of agents' own importances.
pub(super) const OVERRIDE_BYTES: usize = 12;

/// Bytes of an entry in the file of vectors that came later, before the elements.
pub(super) const VECTOR_HEAD_BYTES: usize = 8;

/// Bytes of an entry in the file of what was corrected.
pub(super) const SUPERSEDED_BYTES: usize = 12;

/// The deleted rows among the columns'.
pub(super) fn deleted(columns: &Columns) -> Result<Vec<usize>, Damage> {
    let rows: &[u32] = columns.view(Column::Deleted);
    let mut deleted = Vec::with_capacity(rows.len());
    for (at, &row) in rows.iter().enumerate() {
        let row = row as usize;
        if row >= columns.rows || deleted.last().is_some_and(|&last| last >= row) {
            let problem = Problem::DeletedRow {
                row,
                rows: columns.rows,
            };
            return Err(columns.damage(Column::Deleted, at as u64 * 4, problem));
        }
        deleted.push(row);
    }
    Ok(deleted)
}

/// What was touched: an agent, a row of the columns, and when.
pub(super) fn touched(columns: &Columns) -> Result<Vec<(Agent, usize, i64)>, Damage> {
    let bytes = columns.bytes[Column::Access as usize].as_slice();
    let (entries, rest) = bytes.as_chunks::<TOUCHED_BYTES>();
    let damage = |at: usize, row: usize| {
        let problem = Problem::TouchedRow {
            row,
            rows: columns.rows,
        };
        columns.damage(Column::Access, (at * TOUCHED_BYTES) as u64, problem)
    };
    if !rest.is_empty() {
        return Err(damage(entries.len(), columns.rows));
    }
    let decoded = entries.iter().enumerate().map(|(at, entry)| {
        let (agent, row, time) = touched_in(entry);
        match row < columns.rows {
            true => Ok((agent, row, time)),
            false => Err(damage(at, row)),
        }
    });
    decoded.collect()
}

/// What an entry in the file of touches says.
pub(super) fn touched_in(entry: &[u8; TOUCHED_BYTES]) -> (Agent, usize, i64) {
    let time = i64::from_le_bytes(std::array::from_fn(|i| entry[8 + i]));
    (Agent(u32_at(entry, 0)), u32_at(entry, 4) as usize, time)
}

/// An entry in the file of touches.
pub(super) fn touched_entry((agent, row, time): (Agent, usize, i64)) -> [u8; TOUCHED_BYTES] {
    let mut entry = [0; TOUCHED_BYTES];
    entry[..4].copy_from_slice(&agent.0.to_le_bytes());
    entry[4..8].copy_from_slice(&(row as u32).to_le_bytes());
    entry[8..].copy_from_slice(&time.to_le_bytes());
    entry
}

/// Importances of agents' own: an agent, a row of the columns, and the importance.
pub(super) fn overrides(columns: &Columns) -> Result<Vec<(Agent, usize, f32)>, Damage> {
    let rows = columns.rows;
    let bytes = columns.bytes[Column::Override as usize].as_slice();
    let (entries, rest) = bytes.as_chunks::<OVERRIDE_BYTES>();
    let damage = |at: usize, problem| {
        columns.damage(Column::Override, (at * OVERRIDE_BYTES) as u64, problem)
    };
    if !rest.is_empty() {
        let row = rows;
        return Err(damage(entries.len(), Problem::OverrideRow { row, rows }));
    }
    let mut last = None;
    let decoded = entries.iter().enumerate().map(|(at, entry)| {
        let (agent, row, value) = override_in(entry);
        if row >= rows || last >= Some((agent, row)) {
            return Err(damage(at, Problem::OverrideRow { row, rows }));
        }
        last = Some((agent, row));
        match value.is_finite() {
            // No -0: least and greatest must not depend on the order.
            true => Ok((agent, row, value + 0.0)),
            false => Err(damage(at, Problem::Importance { row, value })),
        }
    });
    decoded.collect()
}

/// What an entry in the file of agents' own importances says.
pub(super) fn override_in(entry: &[u8; OVERRIDE_BYTES]) -> (Agent, usize, f32) {
    let value = f32::from_bits(u32_at(entry, 8));
    (Agent(u32_at(entry, 0)), u32_at(entry, 4) as usize, value)
}

/// An entry in the file of agents' own importances.
pub(super) fn override_entry((agent, row, value): (Agent, usize, f32)) -> [u8; OVERRIDE_BYTES] {
    let mut entry = [0; OVERRIDE_BYTES];
    entry[..4].copy_from_slice(&agent.0.to_le_bytes());
    entry[4..8].copy_from_slice(&(row as u32).to_le_bytes());
    entry[8..].copy_from_slice(&value.to_le_bytes());
    entry
}

/// Vectors that came later: where each entry starts, its row of the columns, and the vector. Ascending by row.
pub(super) fn vectors<'a>(
    columns: &'a Columns,
    manifest: &Manifest,
) -> Result<Vec<(u64, usize, Vector<'a>)>, Damage> {
    let bytes = columns.bytes[Column::Vectors as usize].as_slice();
    let entry_bytes = vector_bytes(manifest);
    let damage = |offset: u64, row: usize, what| {
        columns.damage(Column::Vectors, offset, Problem::LateVector { row, what })
    };
    let entries = bytes.chunks(entry_bytes).zip((0..).step_by(entry_bytes));
    let decoded = entries.map(|(entry, offset)| {
        let Some((row, vector)) = vector_in(entry, entry_bytes) else {
            return Err(damage(offset, columns.rows, "it is cut"));
        };
        if row >= columns.rows {
            return Err(damage(offset, row, "there is no such row"));
        }
        if !(vector.inv_norm.is_finite() && vector.inv_norm > 0.0) {
            let what = "its inverse norm is not finite and above 0";
            return Err(damage(offset, row, what));
        }
        Ok((offset, row, vector))
    });
    let mut decoded = decoded.collect::<Result<Vec<_>, _>>()?;
    decoded.sort_unstable_by_key(|&(offset, row, _)| (row, offset));
    let again = decoded.windows(2).find(|pair| pair[0].1 == pair[1].1);
    match again {
        Some(&[_, (offset, row, _)]) => Err(damage(offset, row, "it was given another before")),
        _ => Ok(decoded),
    }
}

/// Bytes of an entry in the file of vectors that came later.
pub(super) fn vector_bytes(manifest: &Manifest) -> usize {
    VECTOR_HEAD_BYTES + manifest.dim.get() * manifest.dtype.size_bytes()
}

/// What an entry in the file of vectors that came later says, if it is whole.
pub(super) fn vector_in(entry: &[u8], entry_bytes: usize) -> Option<(usize, Vector<'_>)> {
    let (head, elements) = entry.split_first_chunk::<VECTOR_HEAD_BYTES>()?;
    let vector = Vector {
        inv_norm: f32::from_bits(u32_at(head, 4)),
        elements,
    };
    (entry.len() == entry_bytes).then(|| (u32_at(head, 0) as usize, vector))
}

/// The start of an entry in the file of vectors that came later; the elements follow.
pub(super) fn vector_head(row: usize, inv_norm: f32) -> [u8; VECTOR_HEAD_BYTES] {
    let mut head = [0; VECTOR_HEAD_BYTES];
    head[..4].copy_from_slice(&(row as u32).to_le_bytes());
    head[4..].copy_from_slice(&inv_norm.to_le_bytes());
    head
}

/// What was corrected: a row of the columns, and the id of the memory that corrects it. Ascending by row.
pub(super) fn superseded(
    columns: &Columns,
    manifest: &Manifest,
) -> Result<Vec<(usize, u64)>, Damage> {
    let rows = columns.rows;
    let bytes = columns.bytes[Column::Superseded as usize].as_slice();
    let (entries, rest) = bytes.as_chunks::<SUPERSEDED_BYTES>();
    let damage = |at: usize, (row, by)| {
        let problem = Problem::SupersededRow { row, by, rows };
        columns.damage(Column::Superseded, (at * SUPERSEDED_BYTES) as u64, problem)
    };
    if !rest.is_empty() {
        return Err(damage(entries.len(), (rows, 0)));
    }
    let ids: &[u64] = columns.view(Column::Id);
    let mut last = None;
    let decoded = entries.iter().enumerate().map(|(at, entry)| {
        let (row, by) = superseded_in(entry);
        let is_later = row < rows && ids[row] < by && by < manifest.next_id;
        if !is_later || last >= Some(row) {
            return Err(damage(at, (row, by)));
        }
        last = Some(row);
        Ok((row, by))
    });
    decoded.collect()
}

/// What an entry in the file of what was corrected says.
pub(super) fn superseded_in(entry: &[u8; SUPERSEDED_BYTES]) -> (usize, u64) {
    let by = u64::from_le_bytes(std::array::from_fn(|i| entry[4 + i]));
    (u32_at(entry, 0) as usize, by)
}

/// An entry in the file of what was corrected.
pub(super) fn superseded_entry((row, by): (usize, u64)) -> [u8; SUPERSEDED_BYTES] {
    let mut entry = [0; SUPERSEDED_BYTES];
    entry[..4].copy_from_slice(&(row as u32).to_le_bytes());
    entry[4..].copy_from_slice(&by.to_le_bytes());
    entry
}

fn u32_at(entry: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| entry[at + i]))
}
