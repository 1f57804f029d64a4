//! Finding all damage in a store, without stopping at the first.

use super::column::{self, Columns, Hold};
use super::damage::{Damage, Problem};
use super::entries;
use super::error::OpenError;
use super::files::{Disk, Files};
use super::format::Column;
use super::history;
use super::journal::{Body, Dropped};
use super::live::Live;
use super::manifest::Manifest;
use super::map::Bytes;
use super::norms::Norms;
use super::open::read_whole;
use super::recover::{self, Found};
use crate::kernel::{Dtype, RowProblem, Rows, inv_norms};
use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// What [`verify`] found.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// All damage, file by file, then row by row.
    pub damages: Vec<Damage>,
    /// Rows the manifest commits.
    pub rows: usize,
    /// Rows without a vector.
    pub without_vector: usize,
    /// Column files read.
    pub files: usize,
    /// Blocks whose checksum was compared.
    pub blocks: usize,
    /// Committed bytes in all columns.
    pub bytes: u64,
    /// Bytes past the committed ones, which the next writer cuts.
    pub uncommitted_bytes: u64,
    /// Records of the journal that the columns do not hold yet.
    pub records: u64,
    /// Records of the journal that the columns hold, and that are [kept](super::Store::keep_history). What is
    /// damaged in them is damage, and concerns nothing that the store holds.
    pub kept_records: u64,
    /// What the journal's files hold beside whole records, which is left out: no damage (see
    /// [`Recovery`](super::Recovery)).
    pub dropped: Vec<Dropped>,
}

impl VerifyReport {
    /// Whether no damage was found.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty()
    }
}

/// Reads every committed byte of the store at `path` and reports all damage: blocks that have not the
/// checksum they were written with, spans out of order, text that is no UTF-8, kinds out of the table,
/// evidence that cannot be decoded, inverse norms that are not those of the stored elements, importances
/// that are not finite, ids out of order, keys that occur twice, deletes, touches, importances and vectors of rows
/// that cannot have them. Takes no lock and changes no byte.
///
/// # Errors
/// If there is no store, or its manifest is damaged: without it the columns say nothing.
pub fn verify(path: impl AsRef<Path>) -> Result<VerifyReport, OpenError> {
    verify_on(&Disk, path)
}

/// As [`verify`], of the store at `path` in any file system.
///
/// # Errors
/// As [`verify`].
pub fn verify_on(files: &dyn Files, path: impl AsRef<Path>) -> Result<VerifyReport, OpenError> {
    let dir = path.as_ref();
    read_whole(files, dir, |manifest| {
        let mut report = check_current(files, dir, manifest)?;
        report.kept_records = history::check(files, dir, manifest, &mut report.damages);
        Ok(report)
    })
}

/// Checks what `manifest` commits. Only a file that a writer has replaced meanwhile is an error, for
/// [`read_whole`] to start over: it is no damage. All other damage is in the report.
pub(super) fn check_current(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
) -> Result<VerifyReport, Damage> {
    let mut report = check(files, dir, manifest);
    let gone = |damage: &Damage| damage.problem == Problem::Missing;
    match report.damages.iter().position(gone) {
        Some(at)
            if Manifest::read(files, dir).is_ok_and(|new| new.sequence != manifest.sequence) =>
        {
            Err(report.damages.swap_remove(at))
        }
        _ => Ok(report),
    }
}

fn check(files: &dyn Files, dir: &Path, manifest: &Manifest) -> VerifyReport {
    let mut report = VerifyReport {
        rows: manifest.rows as usize,
        ..VerifyReport::default()
    };
    let mut columns = Columns {
        paths: Vec::new(),
        bytes: Vec::new(),
        rows: manifest.rows as usize,
    };
    // All files are opened before any is read: a writer can replace one only in this short time.
    let loaded = Column::ALL.map(|column| {
        let entry = manifest.column(column);
        column::load(files, &dir.join(&entry.file), entry, Hold::Mapped)
    });
    let mut whole = [true; Column::COUNT];
    for (column, mut loaded) in Column::ALL.into_iter().zip(loaded) {
        let mut entry = manifest.column(column).clone();
        let path = dir.join(&entry.file);
        report.bytes += entry.bytes;
        if let Err(damage) = loaded {
            whole[column as usize] = false;
            // Of a file that was cut, the whole blocks that are left can still be compared.
            if let Problem::Cut { found, .. } = damage.problem {
                let block = super::format::BLOCK_BYTES as u64;
                entry.bytes = found - found % block;
                entry.sums.truncate((found / block) as usize);
                loaded = column::load(files, &path, &entry, Hold::Mapped);
            } else {
                loaded = Ok(Bytes::EMPTY);
                entry.sums.clear();
            }
            report.damages.push(damage);
        }
        let bytes = loaded.unwrap_or(Bytes::EMPTY);
        report.files += 1;
        report.blocks += entry.sums.len();
        let found = files.open(&path).and_then(|file| file.bytes());
        let committed = manifest.column(column).bytes;
        report.uncommitted_bytes += found.unwrap_or(0).saturating_sub(committed);
        (report.damages).extend(column::check(&path, &entry.sums, bytes.as_slice()));
        columns.paths.push(path);
        columns.bytes.push(Arc::new(bytes));
    }
    // What a later record of the journal deletes has no key either.
    let mut deletes = HashSet::new();
    match journal(files, dir, manifest, &mut deletes) {
        Ok(found) => {
            report.records = found.recovery.records;
            report.dropped = found.recovery.dropped;
        }
        Err(damage) => report.damages.push(damage),
    }
    let whole = |column: Column| whole[column as usize];
    let damages = &mut report.damages;
    if whole(Column::Id) {
        ids(&columns, manifest.next_id, damages);
    }
    if whole(Column::Importance) {
        importance(&columns, damages);
    }
    if whole(Column::Kind) {
        each_row(&columns, damages, |row| {
            columns.kind(row, manifest.kinds.len())
        });
    }
    let mut live = Live::new(columns.rows);
    if whole(Column::Deleted) {
        match entries::deleted(&columns) {
            Ok(deleted) => live = Live::without(columns.rows, deleted),
            Err(damage) => damages.push(damage),
        }
    }
    if whole(Column::Access) {
        damages.extend(entries::touched(&columns).err());
    }
    if whole(Column::Override) {
        damages.extend(entries::overrides(&columns).err());
    }
    if whole(Column::Superseded) && whole(Column::Id) {
        damages.extend(entries::superseded(&columns, manifest).err());
    }
    if whole(Column::KeyEnds) && whole(Column::KeyBytes) {
        keys(&columns, &deletes, &live, damages);
    }
    if whole(Column::TextEnds) && whole(Column::TextBytes) {
        each_row(&columns, damages, |row| columns.text(row));
    }
    if whole(Column::PayloadEnds) && whole(Column::PayloadBytes) {
        each_row(&columns, damages, |row| columns.payload(row));
    }
    if whole(Column::EvidenceEnds) && whole(Column::EvidenceBytes) {
        each_row(&columns, damages, |row| columns.evidence(row));
    }
    if whole(Column::InvNorm) {
        let stored: &[f32] = columns.view(Column::InvNorm);
        report.without_vector = stored.iter().filter(|&&n| n == 0.0).count();
        if whole(Column::Embedding) {
            vectors(&columns, manifest.dim, manifest.dtype, damages);
        }
    }
    if whole(Column::Vectors) {
        let stored = match whole(Column::InvNorm) {
            true => columns.view(Column::InvNorm),
            false => &[],
        };
        let late = late_vectors(&columns, manifest, stored, damages);
        report.without_vector = report.without_vector.saturating_sub(late);
    }
    report
}

/// Reads the journal, and notes the ids it deletes.
fn journal(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    deletes: &mut HashSet<u64>,
) -> Result<Found, Damage> {
    let segments = recover::segments(files, dir, manifest)?;
    let mut next_id = manifest.next_id;
    recover::replay(files, dir, manifest, &segments, |record| {
        next_id = recover::check(record, next_id)?;
        if let Body::Delete { ids } = record.body {
            deletes.extend(ids.iter());
        }
        Ok(())
    })
}

fn each_row<T>(
    columns: &Columns,
    damages: &mut Vec<Damage>,
    read: impl Fn(usize) -> Result<T, Damage>,
) {
    damages.extend((0..columns.rows).filter_map(|row| read(row).err()));
}

fn ids(columns: &Columns, next_id: u64, damages: &mut Vec<Damage>) {
    let mut previous = None;
    for (row, &id) in columns.view::<u64>(Column::Id).iter().enumerate() {
        if previous >= Some(id) || id >= next_id {
            let problem = Problem::Id {
                row,
                id,
                previous,
                next_id,
            };
            damages.push(columns.damage(Column::Id, row as u64 * 8, problem));
        }
        previous = Some(id);
    }
}

fn importance(columns: &Columns, damages: &mut Vec<Damage>) {
    for (row, &value) in columns.view::<f32>(Column::Importance).iter().enumerate() {
        if !value.is_finite() {
            let problem = Problem::Importance { row, value };
            damages.push(columns.damage(Column::Importance, row as u64 * 4, problem));
        }
    }
}

/// No two live memories have one key.
fn keys(columns: &Columns, deletes: &HashSet<u64>, live: &Live, damages: &mut Vec<Damage>) {
    let ids: &[u64] = columns.view(Column::Id);
    let mut rows = HashMap::new();
    for row in 0..columns.rows {
        if !live.is_live(row) || ids.get(row).is_some_and(|id| deletes.contains(id)) {
            continue;
        }
        match columns.key(row) {
            Err(damage) => damages.push(damage),
            Ok(None) => {}
            Ok(Some(key)) => match rows.entry(key) {
                Slot::Vacant(slot) => {
                    slot.insert(row);
                }
                Slot::Occupied(first) => {
                    let first = *first.get();
                    let problem = Problem::DuplicateKey { row, first };
                    damages.push(columns.damage(Column::KeyEnds, row as u64 * 8, problem));
                }
            },
        }
    }
}

fn vectors(columns: &Columns, dim: NonZeroUsize, dtype: Dtype, damages: &mut Vec<Damage>) {
    let row_bytes = dim.get() * dtype.size_bytes();
    let stored: &[f32] = columns.view(Column::InvNorm);
    for (row, &stored) in stored.iter().enumerate() {
        let at = row * dim.get()..(row + 1) * dim.get();
        let elements = match dtype {
            Dtype::F32 => Rows::F32(&columns.view(Column::Embedding)[at]),
            Dtype::F16 => Rows::F16(&columns.view(Column::Embedding)[at]),
        };
        let bytes =
            &columns.bytes[Column::Embedding as usize].as_slice()[row * row_bytes..][..row_bytes];
        let mut computed = [0.0];
        let no_vector = bytes.iter().all(|&b| b == 0);
        let result = match no_vector {
            true => Ok(()),
            false => inv_norms(dim, elements, &mut computed),
        };
        match result {
            Ok(()) => {
                let computed = computed[0];
                if stored.to_bits() != computed.to_bits() {
                    let problem = Problem::InvNorm {
                        row,
                        stored,
                        computed,
                    };
                    damages.push(columns.damage(Column::InvNorm, row as u64 * 4, problem));
                }
            }
            Err(error) => {
                let element = match error.problem {
                    RowProblem::NonFinite { element, .. } => element,
                    _ => 0,
                };
                let offset = row as u64 * row_bytes as u64 + (element * dtype.size_bytes()) as u64;
                let problem = Problem::Elements {
                    row,
                    problem: error.problem,
                };
                damages.push(columns.damage(Column::Embedding, offset, problem));
            }
        }
    }
}

/// Checks the vectors that came later to rows with these inverse norms, and gives how many they are.
fn late_vectors(
    columns: &Columns,
    manifest: &Manifest,
    stored: &[f32],
    damages: &mut Vec<Damage>,
) -> usize {
    let late = match entries::vectors(columns, manifest) {
        Ok(late) => late,
        Err(damage) => {
            damages.push(damage);
            return 0;
        }
    };
    let mut norms = Norms::new(manifest.dim, manifest.dtype);
    for &(offset, row, vector) in &late {
        if stored.get(row).is_some_and(|&inv_norm| inv_norm != 0.0) {
            let what = "it was stored with another";
            let problem = Problem::LateVector { row, what };
            damages.push(columns.damage(Column::Vectors, offset, problem));
        }
        let stored = vector.inv_norm;
        let problem = match norms.of(vector.elements) {
            Ok(computed) if computed.to_bits() == stored.to_bits() => continue,
            Ok(computed) => Problem::InvNorm {
                row,
                stored,
                computed,
            },
            Err(problem) => Problem::Elements { row, problem },
        };
        damages.push(columns.damage(Column::Vectors, offset, problem));
    }
    late.len()
}
