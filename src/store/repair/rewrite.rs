//! Writing what was salvaged into a new store.

use super::Cause;
use super::ascending::UNKNOWN;
use super::error::RepairError;
use super::journal::{Journal, Records};
use super::report::{Lost, Part, Reduced, RepairReport};
use super::rows::{Reader, Salvaged};
use super::source::Source;
use super::survey::{
    deleted, ids, least_importance, overrides, owners, superseded, touched, unknown_id, vectors,
};
use crate::store::damage::Problem;
use crate::store::entries::{override_entry, superseded_entry, touched_entry};
use crate::store::error::WriteError;
use crate::store::files::Files;
use crate::store::format::{Column, NO_EXPIRY};
use crate::store::journal::{Row, Vector};
use crate::store::kinds::Kinds;
use crate::store::manifest::Manifest;
use crate::store::memory::Kind;
use crate::store::open::{CreateOptions, fill};
use crate::store::own::Agent;
use crate::store::rows::RowWriter;
use crate::store::tail::StoredRow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// What a memory has whose kind cannot be read.
const UNKNOWN_KIND: &str = "unknown";

/// Fills the directory `new` with a store of what can be salvaged of the one in `dir`.
pub(super) fn rewrite(
    files: &Arc<dyn Files>,
    dir: &Path,
    source: &Source,
    new: &Path,
    mut report: RepairReport,
) -> Result<RepairReport, RepairError> {
    let mut reader = Reader::open(&**files, dir, source);
    let live = deleted(&**files, dir, source, &mut report);
    let touched = touched(&**files, dir, source, &mut report);
    let overrides = overrides(&**files, dir, source, &mut report);
    let superseded = superseded(&**files, dir, source, &mut report);
    let late = vectors(&**files, dir, source, &mut report);
    let (ids, next_id) = ids(&mut reader, source, &mut report);
    let journal = Journal::load(&**files, dir, source)?;
    let mut records = journal.records(source, next_id, &mut report);
    records.touches.sort_unstable();
    // Those of one memory stay in the order they were given.
    records.overrides.sort_by_key(|&(id, _, _)| id);
    let is_live = |row: usize| live.is_live(row) && !records.deletes.contains(&ids[row]);

    let options = CreateOptions {
        dim: source.manifest.dim,
        dtype: source.manifest.dtype,
        model: source.manifest.model.clone(),
    };
    let mut manifest = fill(&**files, new, &options)?;
    let mut rewrite = Rewrite {
        writer: RowWriter::append(files, new, &manifest),
        kinds: Kinds::new(&source.manifest.kinds),
        source,
        zeros: vec![0; options.dim.get() * options.dtype.size_bytes()],
        owners: owners(&mut reader, &records, is_live),
        least_importance: least_importance(&mut reader, &records, is_live),
        touched: &touched,
        overrides: &overrides,
        superseded: &superseded,
        late: &late,
        records: &records,
        differences: Vec::new(),
        importances: BTreeMap::new(),
        corrected: Vec::new(),
        reader,
        report,
    };
    let mut without_id = Vec::new();
    for (row, &id) in ids.iter().enumerate() {
        match id {
            _ if !is_live(row) => rewrite.report.deleted += 1,
            UNKNOWN => without_id.push(row),
            id => rewrite.column_row(row, id, None)?,
        }
    }
    for (row, (id, memory)) in (ids.len()..).zip(&records.appended) {
        match records.deletes.contains(id) {
            true => rewrite.report.deleted += 1,
            false => rewrite.journal_row(row, *id, memory)?,
        }
    }
    if !without_id.is_empty() {
        let appended = records.appended.iter().map(|&(id, _)| id);
        let known: HashSet<u64> = ids.iter().copied().chain(appended).collect();
        let unknown = records
            .deletes
            .iter()
            .filter(|&id| !known.contains(id))
            .count();
        if unknown > 0 {
            rewrite.report.notes.push(format!(
                "{unknown} ids that the journal deletes may be of memories whose id is unknown: those are there again"
            ));
        }
    }
    let mut next_id = records.next_id;
    for row in without_id {
        let cause = unknown_id(&mut rewrite.reader, &ids, row, source.manifest.next_id);
        if next_id == UNKNOWN {
            rewrite.lost(row, None, cause);
            continue;
        }
        let kept = rewrite.report.kept;
        rewrite.column_row(row, next_id, Some(cause))?;
        next_id += u64::from(rewrite.report.kept > kept);
    }
    let report = rewrite.finish(&mut manifest, next_id)?;
    if source.checked {
        let now = Manifest::read(&**files, dir);
        if now.is_ok_and(|now| now.sequence != source.manifest.sequence) {
            let path = dir.to_owned();
            return Err(RepairError::Changed { path });
        }
    }
    manifest.publish(&**files, new)?;
    Ok(report)
}

struct Rewrite<'a> {
    reader: Reader,
    source: &'a Source,
    writer: RowWriter,
    kinds: Kinds,
    zeros: Vec<u8>,
    /// The row that has each key.
    owners: HashMap<String, usize>,
    least_importance: f32,
    /// Rows, agents and times, ascending.
    touched: &'a [(u32, u32, i64)],
    /// Rows, agents and importances, ascending by row.
    overrides: &'a [(u32, u32, f32)],
    /// The ids of what corrects rows.
    superseded: &'a HashMap<usize, u64>,
    /// Vectors that came after their rows were in the columns.
    late: &'a HashMap<usize, (Vec<u8>, f32)>,
    records: &'a Records<'a>,
    /// Of the new store.
    differences: Vec<(Agent, usize, i64)>,
    importances: BTreeMap<(Agent, usize), f32>,
    /// New rows, their ids, and the ids of what corrects them.
    corrected: Vec<(usize, u64, u64)>,
    report: RepairReport,
}

impl<'a> Rewrite<'a> {
    /// Writes a row of the columns. `no_id`: why it has a new id.
    fn column_row(&mut self, row: usize, id: u64, no_id: Option<Cause>) -> Result<(), WriteError> {
        let salvaged = match self.reader.row(row) {
            Ok(salvaged) => salvaged,
            Err(cause) => {
                self.lost(row, no_id.is_none().then_some(id), cause);
                return Ok(());
            }
        };
        let Salvaged { mut without, .. } = salvaged;
        let known_id = no_id.is_none().then_some(id);
        let late = self.late(row, known_id, &mut without);
        if late.is_some() {
            // It had none in its column, whatever can be read there.
            without.retain(|(part, _)| *part != Part::Embedding);
        }
        let vector = salvaged.vector.as_ref().map(|(elements, inv_norm)| Vector {
            inv_norm: *inv_norm,
            elements,
        });
        let vector = vector.or(late);
        without.extend(no_id.map(|cause| (Part::Id, cause)));
        let kind = match (salvaged.kind, self.source.checked) {
            (Some(kind), true) => kind,
            (Some(kind), false) => self.intern(row, &format!("kind {kind}"), &mut without),
            (None, _) => self.intern(row, UNKNOWN_KIND, &mut without),
        };
        let zeros = std::mem::take(&mut self.zeros);
        let stored = StoredRow {
            elements: vector.map_or(&zeros, |vector| vector.elements),
            inv_norm: vector.map_or(0.0, |vector| vector.inv_norm),
            id,
            created: salvaged.created,
            last_access: salvaged.last_access,
            expiry: salvaged.expiry,
            importance: salvaged.importance.unwrap_or(self.least_importance),
            kind,
            depth: salvaged.depth,
            key: salvaged.key.as_deref(),
            text: &salvaged.text,
            payload: &salvaged.payload,
            evidence: &salvaged.evidence,
        };
        let written = self.write(row, stored, without);
        self.zeros = zeros;
        written
    }

    /// Writes a memory that is in the journal only.
    fn journal_row(&mut self, row: usize, id: u64, memory: &Row<'_>) -> Result<(), WriteError> {
        let mut without = Vec::new();
        let kind = self.intern(row, memory.kind, &mut without);
        let vector = match memory.vector {
            Some(vector) => self.sound(row, vector, &mut without),
            None => self.late(row, Some(id), &mut without),
        };
        let zeros = std::mem::take(&mut self.zeros);
        let stored = StoredRow {
            elements: vector.map_or(&zeros, |vector| vector.elements),
            inv_norm: vector.map_or(0.0, |vector| vector.inv_norm),
            id,
            created: memory.created,
            last_access: memory.last_access,
            expiry: memory.expiry.unwrap_or(NO_EXPIRY),
            importance: memory.importance,
            kind,
            depth: memory.depth,
            key: memory.key,
            text: memory.text,
            payload: memory.payload,
            evidence: memory.evidence,
        };
        let written = self.write(row, stored, without);
        self.zeros = zeros;
        written
    }

    /// The vector that a row was given later, in a file or in the journal.
    fn late(
        &mut self,
        row: usize,
        id: Option<u64>,
        without: &mut Vec<(Part, Cause)>,
    ) -> Option<Vector<'a>> {
        if let Some((elements, inv_norm)) = self.late.get(&row) {
            let inv_norm = *inv_norm;
            return Some(Vector { inv_norm, elements });
        }
        let &vector = self.records.vectors.get(&id?)?;
        self.sound(row, vector, without)
    }

    /// A vector of the journal, if its inverse norm is its own.
    fn sound<'v>(
        &mut self,
        row: usize,
        vector: Vector<'v>,
        without: &mut Vec<(Part, Cause)>,
    ) -> Option<Vector<'v>> {
        let computed = self.reader.norms.of(vector.elements);
        let agrees = computed.is_ok_and(|norm| norm.to_bits() == vector.inv_norm.to_bits());
        if !agrees {
            let problem = Problem::InvNorm {
                row,
                stored: vector.inv_norm,
                computed: computed.unwrap_or(f32::NAN),
            };
            let cause = self.reader.cause(Column::InvNorm, row as u64 * 4, problem);
            without.push((Part::Embedding, cause));
        }
        agrees.then_some(vector)
    }

    fn write(
        &mut self,
        row: usize,
        mut stored: StoredRow<'_>,
        mut without: Vec<(Part, Cause)>,
    ) -> Result<(), WriteError> {
        if let Some(&owner) = stored.key.and_then(|key| self.owners.get(key))
            && owner != row
        {
            let (row, first) = (owner, row);
            let problem = Problem::DuplicateKey { row, first };
            let cause = self
                .reader
                .cause(Column::KeyEnds, first as u64 * 8, problem);
            without.push((Part::Key, cause));
            stored.key = None;
        }
        self.writer.push(&stored)?;
        self.writer.push_inv_norm(stored.inv_norm)?;
        let new_row = self.report.kept;
        self.report.kept += 1;
        let id = stored.id;
        let from_file = of(self.touched, row as u32)
            .iter()
            .map(|&(_, agent, time)| (agent, time));
        // One with a new id had another in the journal.
        let has_new_id = without.iter().any(|(part, _)| *part == Part::Id);
        let (touches, overrides) = match has_new_id {
            true => (&[][..], &[][..]),
            false => (
                of(&self.records.touches, id),
                of(&self.records.overrides, id),
            ),
        };
        let from_journal = touches.iter().map(|&(_, agent, time)| (agent, time));
        let later = from_file
            .chain(from_journal)
            .filter(|&(_, time)| time > stored.last_access);
        (self.differences).extend(later.map(|(agent, time)| (Agent(agent), new_row, time)));
        for &(_, agent, importance) in of(self.overrides, row as u32) {
            self.importances.insert((Agent(agent), new_row), importance);
        }
        for &(_, agent, importance) in overrides {
            let own = (Agent(agent), new_row);
            match importance {
                Some(importance) => self.importances.insert(own, importance),
                None => self.importances.remove(&own),
            };
        }
        let by = self.superseded.get(&row);
        let in_journal = || self.records.superseded.get(&id).filter(|_| !has_new_id);
        if let Some(&by) = by.or_else(in_journal) {
            self.corrected.push((new_row, id, by));
        }
        let reduced = without.into_iter().map(|(part, cause)| Reduced {
            row,
            id,
            part,
            cause,
        });
        self.report.reduced.extend(reduced);
        Ok(())
    }

    /// The index of a kind. If there are too many, that of the first, and the memory is without its own.
    fn intern(&mut self, row: usize, name: &str, without: &mut Vec<(Part, Cause)>) -> u16 {
        let kind = Kind::named(name);
        let known = self
            .kinds
            .index_of(&kind)
            .map_or_else(|| self.kinds.intern(&kind), Ok);
        known.unwrap_or_else(|_| {
            let kinds = self.kinds.table().len();
            let problem = Problem::Kind {
                row,
                kind: u16::MAX,
                kinds,
            };
            without.push((
                Part::Kind,
                self.reader.cause(Column::Kind, row as u64 * 2, problem),
            ));
            0
        })
    }

    fn lost(&mut self, row: usize, id: Option<u64>, cause: Cause) {
        self.report.lost.push(Lost { row, id, cause });
    }

    /// Makes the columns durable, and the manifest one that commits them.
    fn finish(mut self, manifest: &mut Manifest, next_id: u64) -> Result<RepairReport, WriteError> {
        // The latest of each agent and row.
        self.differences
            .sort_unstable_by_key(|&(agent, row, time)| (agent, row, std::cmp::Reverse(time)));
        (self.differences).dedup_by_key(|&mut (agent, row, _)| (agent, row));
        for &difference in &self.differences {
            (self.writer).bytes(Column::Access, &touched_entry(difference))?;
        }
        for (&(agent, row), &importance) in &self.importances {
            let entry = override_entry((agent, row, importance));
            (self.writer).bytes(Column::Override, &entry)?;
        }
        let mut uncorrected = 0;
        for &(row, id, by) in &self.corrected {
            match id < by && by < next_id {
                true => self
                    .writer
                    .bytes(Column::Superseded, &superseded_entry((row, by)))?,
                false => uncorrected += 1,
            }
        }
        if uncorrected > 0 {
            self.report.notes.push(format!(
                "{uncorrected} corrected memories are candidates again: nothing is known of what corrected them"
            ));
        }
        self.writer.finish(manifest)?;
        self.writer.keep();
        manifest.sequence += 1;
        manifest.rows = self.report.kept as u64;
        manifest.next_id = next_id;
        manifest.kinds = self.kinds.names();
        let mut report = self.report;
        if self.reader.computed > 0 {
            report.notes.push(format!(
                "{} inverse norms could not be read and were computed from the elements, as they were before",
                self.reader.computed
            ));
        }
        report.lost.sort_by_key(|lost| lost.row);
        report.reduced.sort_by_key(|reduced| reduced.row);
        Ok(report)
    }
}

/// The entries that begin with `first`, of sorted ones.
fn of<T: Ord + Copy, V>(sorted: &[(T, u32, V)], first: T) -> &[(T, u32, V)] {
    let start = sorted.partition_point(|(other, _, _)| *other < first);
    let len = sorted[start..].partition_point(|(other, _, _)| *other == first);
    &sorted[start..start + len]
}
