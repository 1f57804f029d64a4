//! What a damaged store's journal still says.

use super::report::{Changes, LostChanges, RepairReport};
use super::source::Source;
use crate::store::damage::{Damage, Problem};
use crate::store::error::OpenError;
use crate::store::files::{self, Files};
use crate::store::format::MAX_ROWS;
use crate::store::journal::{
    Body, Dropped, Origin, Record, Replay, Row, Segment, Vector, file_name, header_of,
    is_continuation, number_in, salvage,
};
use crate::store::{column, recover};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// The segments that may hold what the columns do not.
pub(super) struct Journal {
    dir: PathBuf,
    segments: Vec<Loaded>,
    embedding_bytes: usize,
}

struct Loaded {
    path: PathBuf,
    number: u64,
    /// Those that could not be read are zeros.
    bytes: Vec<u8>,
    unreadable: Option<Problem>,
}

/// What a journal's records do.
pub(super) struct Records<'a> {
    /// Memories that the columns do not hold, and their ids, ascending.
    pub(super) appended: Vec<(u64, Row<'a>)>,
    /// Ids, agents and times.
    pub(super) touches: Vec<(u64, u32, i64)>,
    /// Ids, agents and importances, in the order they were given; `None`: the one the memory was stored with.
    pub(super) overrides: Vec<(u64, u32, Option<f32>)>,
    /// Vectors that came after their memories, by id.
    pub(super) vectors: HashMap<u64, Vector<'a>>,
    /// Ids of what was corrected, and the ids of what first corrected it.
    pub(super) superseded: HashMap<u64, u64>,
    pub(super) deletes: HashSet<u64>,
    /// Above all ids that were given, as far as is known.
    pub(super) next_id: u64,
}

/// No memory takes fewer in a record.
const MIN_ROW_BYTES: u64 = 66;

/// What cannot be read at once is read in pieces of so many bytes.
const SECTOR_BYTES: usize = 4096;

/// A segment, and a byte in it.
type Place = (usize, u64);

impl Journal {
    pub(super) fn load(
        files: &dyn Files,
        dir: &Path,
        source: &Source,
    ) -> Result<Journal, OpenError> {
        let manifest = &source.manifest;
        let names = files.list(dir).map_err(OpenError::io("listing", dir))?;
        let numbers = names.iter().filter_map(|name| number_in(name.to_str()?));
        let mut numbers: Vec<u64> = numbers
            .filter(|&number| match (source.checked, manifest.journal_segment) {
                (true, 0) => false,
                (true, first) => number >= first,
                (false, _) => true,
            })
            .collect();
        numbers.sort_unstable();
        let segments = numbers.into_iter();
        let mut segments: Vec<Loaded> = segments
            .map(|number| Loaded::read(files, dir, number))
            .collect();
        if !source.checked {
            // It holds all that those before it held and the columns did not.
            let last = segments.iter().rposition(Loaded::is_takeover);
            segments.drain(..last.unwrap_or(0));
        }
        Ok(Journal {
            dir: dir.to_owned(),
            segments,
            embedding_bytes: manifest.dim.get() * manifest.dtype.size_bytes(),
        })
    }

    /// What the journal says. `next_id` is above all ids in the columns.
    pub(super) fn records(
        &self,
        source: &Source,
        next_id: u64,
        report: &mut RepairReport,
    ) -> Records<'_> {
        if source.checked
            && let Ok((records, dropped)) = self.whole(source)
        {
            report.notes.extend(dropped.iter().map(Dropped::to_string));
            return records;
        }
        self.salvaged(source, next_id, report)
    }

    /// The records of a journal that is not damaged, as opening reads it, and what it leaves out.
    fn whole(&self, source: &Source) -> Result<(Records<'_>, Vec<Dropped>), Damage> {
        let manifest = &source.manifest;
        let unusable = |number: u64| Damage {
            path: self.dir.join(file_name(number)),
            offset: 0,
            problem: Problem::Missing,
        };
        let (folded, named) = (manifest.journal_folded, manifest.journal_bytes);
        let mut replay = Replay::new(self.embedding_bytes, folded, named);
        let (mut records, mut dropped) = (Records::new(manifest.next_id), Vec::new());
        let first = manifest.journal_segment;
        if first == 0 {
            return Ok((records, dropped));
        }
        if self.segments.first().is_none_or(|s| s.number != first) {
            return Err(unusable(first));
        }
        for (at, segment) in self.segments.iter().enumerate() {
            if segment.unreadable.is_some() {
                return Err(unusable(segment.number));
            }
            let next = self.next(at).map(|next| &*next.bytes);
            let outcome = replay.read(&segment.as_found(), next, |record| {
                recover::check(&record, records.next_id)?;
                records.apply(&record, source)
            })?;
            dropped.extend(outcome.dropped);
            if !outcome.more {
                break;
            }
            if next.is_none() {
                let mut others = self.segments[at + 1..].iter();
                match others.any(|other| is_continuation(&other.as_found())) {
                    true => return Err(unusable(segment.number + 1)),
                    false => break,
                }
            }
        }
        Ok((records, dropped))
    }

    /// What the records say that are valid by themselves, in their order. Of several with one number the first
    /// counts: a takeover that no manifest names holds anew what was there before.
    fn salvaged(&self, source: &Source, next_id: u64, report: &mut RepairReport) -> Records<'_> {
        let manifest = &source.manifest;
        let mut gaps = Vec::new();
        let mut found = BTreeMap::new();
        if source.checked {
            self.missing(manifest.journal_segment, &mut gaps);
        }
        for (at, segment) in self.segments.iter().enumerate() {
            let salvaged = salvage(&segment.as_found(), self.embedding_bytes);
            if let Some(problem) = &segment.unreadable {
                gaps.push(((at, 0), lost(&segment.path, 0, 0, problem.clone())));
            }
            gaps.extend(salvaged.gaps.into_iter().map(|gap| {
                let lost = lost(&gap.path, gap.offset, gap.bytes, gap.problem);
                ((at, gap.offset), lost)
            }));
            let named = match source.checked && segment.number == manifest.journal_segment {
                true => manifest.journal_bytes,
                false => 0,
            };
            let expected = named.max(self.continued_bytes(at));
            let len = segment.bytes.len() as u64;
            if let Some(cut) = expected.checked_sub(len).filter(|&cut| cut > 0) {
                let found = len;
                let problem = Problem::Cut { expected, found };
                gaps.push(((at, len), lost(&segment.path, len, cut, problem)));
            }
            for (offset, record) in salvaged.records {
                if record.sequence > manifest.journal_folded {
                    let place: Place = (at, offset as u64);
                    found.entry(record.sequence).or_insert((place, record));
                }
            }
        }
        let first_gap = gaps.iter().map(|&(place, _)| place).min();
        let (mut after, mut last_append) = (0, None);
        let mut records = Records::new(next_id);
        for (place, record) in found.into_values() {
            match records.apply(&record, source) {
                Ok(()) => {
                    after += usize::from(first_gap.is_some_and(|gap| gap < place));
                    if let Body::Append { .. } = record.body {
                        last_append = last_append.max(Some(place));
                    }
                }
                Err(problem) => {
                    let (segment, offset) = (&self.segments[place.0], place.1);
                    let lost = lost(&segment.path, offset, record.len_bytes(), problem);
                    gaps.push((place, lost));
                }
            }
        }
        if after > 0 {
            report.notes.push(format!(
                "{after} records after the first damage of the journal are valid by themselves and were applied"
            ));
        }
        // No id is given twice: as many memories may have been in what is lost.
        let lost = gaps.iter().filter(|&&(place, _)| Some(place) > last_append);
        let possible = lost.map(|(_, lost)| lost.bytes).sum::<u64>() / MIN_ROW_BYTES;
        if possible > 0 {
            records.next_id = records.next_id.saturating_add(possible);
            report.notes.push(format!(
                "the next id is {}, as up to {possible} may have been given in the lost part of the journal",
                records.next_id
            ));
        }
        report
            .changes
            .extend(gaps.into_iter().map(|(_, lost)| lost));
        records
    }

    /// Segments that must have been there: the one that the manifest names, and those that others follow.
    fn missing(&self, named: u64, gaps: &mut Vec<(Place, LostChanges)>) {
        let mut expected = named;
        for (at, segment) in self.segments.iter().enumerate() {
            if segment.number != expected && (at == 0 || !segment.is_takeover()) {
                gaps.push(((at, 0), self.gone(expected)));
            }
            expected = segment.number.saturating_add(1);
        }
        if self.segments.is_empty() && named > 0 {
            gaps.push(((0, 0), self.gone(named)));
        }
    }

    fn gone(&self, number: u64) -> LostChanges {
        lost(&self.dir.join(file_name(number)), 0, 0, Problem::Missing)
    }

    /// The segment with the next number.
    fn next(&self, at: usize) -> Option<&Loaded> {
        let next = self.segments.get(at + 1)?;
        (self.segments[at].number.checked_add(1) == Some(next.number)).then_some(next)
    }

    /// How many bytes of a segment the next one says it had.
    fn continued_bytes(&self, at: usize) -> u64 {
        let next = self.next(at).and_then(|next| header_of(&next.as_found()));
        match next.map(|header| header.origin) {
            Some(Origin::Continues { previous_bytes }) => previous_bytes,
            _ => 0,
        }
    }
}

fn lost(path: &Path, offset: u64, bytes: u64, problem: Problem) -> LostChanges {
    LostChanges {
        changes: Changes::Journal,
        path: path.to_owned(),
        offset,
        bytes,
        problem,
    }
}

impl Loaded {
    fn read(files: &dyn Files, dir: &Path, number: u64) -> Loaded {
        let path = dir.join(file_name(number));
        let mut bytes = Vec::new();
        let mut read = || -> io::Result<()> {
            let file = files.open(&path)?;
            let len = usize::try_from(file.bytes()?).unwrap_or(usize::MAX);
            (bytes.try_reserve_exact(len)).map_err(|_| io::ErrorKind::OutOfMemory)?;
            bytes.resize(len, 0);
            let Err(error) = files::read_exact_at(&*file, 0, &mut bytes) else {
                return Ok(());
            };
            for (at, sector) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
                let offset = (at * SECTOR_BYTES) as u64;
                if files::read_exact_at(&*file, offset, sector).is_err() {
                    sector.fill(0);
                }
            }
            Err(error)
        };
        let unreadable = read().err();
        Loaded {
            unreadable: unreadable.map(|e| column::unreadable(&path, &e).problem),
            path,
            number,
            bytes,
        }
    }

    fn as_found(&self) -> Segment<'_> {
        Segment {
            path: &self.path,
            number: self.number,
            bytes: &self.bytes,
        }
    }

    fn is_takeover(&self) -> bool {
        header_of(&self.as_found()).is_some_and(|header| header.origin == Origin::Takeover)
    }
}

impl<'a> Records<'a> {
    fn new(next_id: u64) -> Records<'a> {
        Records {
            appended: Vec::new(),
            touches: Vec::new(),
            overrides: Vec::new(),
            vectors: HashMap::new(),
            superseded: HashMap::new(),
            deletes: HashSet::new(),
            next_id,
        }
    }

    /// Does what a record says.
    fn apply(&mut self, record: &Record<'a>, source: &Source) -> Result<(), Problem> {
        let sequence = record.sequence;
        let wrong = |what| Err(Problem::RecordBody { sequence, what });
        match &record.body {
            Body::Append { first_id, .. } if source.checked && *first_id < self.next_id => {
                wrong("it gives an id that was given before")
            }
            Body::Append { first_id, rows } => {
                let all = self.appended.len() as u64 + rows.len() as u64;
                if source.manifest.rows + all > MAX_ROWS {
                    return wrong("it holds more memories than a store can");
                }
                // Without a manifest, the columns may hold some of them already.
                let new = rows.iter().zip(*first_id..);
                let new = new.filter(|&(_, id)| id >= self.next_id);
                for (row, id) in new.clone() {
                    if let Some(older) = row.supersedes {
                        self.superseded.entry(older).or_insert(id);
                    }
                }
                self.appended.extend(new.map(|(row, id)| (id, *row)));
                self.next_id = self.next_id.max(first_id + rows.len() as u64);
                Ok(())
            }
            Body::Touch(touch) => {
                let all = touch.ids.iter().map(|id| (id, touch.agent, touch.now));
                self.touches.extend(all);
                self.given(touch.ids.iter());
                self.next_id = self.next_id.max(touch.seen.next_id);
                Ok(())
            }
            Body::Delete { ids } => {
                self.deletes.extend(ids.iter());
                self.given(ids.iter());
                Ok(())
            }
            Body::Embed { vectors } => {
                for &(id, vector) in vectors {
                    // The first one stays.
                    self.vectors.entry(id).or_insert(vector);
                }
                self.given(vectors.iter().map(|&(id, _)| id));
                Ok(())
            }
            Body::Importance {
                agent,
                importance,
                ids,
                before: _,
            } => {
                let all = ids.iter().map(|id| (id, *agent, *importance));
                self.overrides.extend(all);
                self.given(ids.iter());
                Ok(())
            }
        }
    }

    fn given(&mut self, ids: impl Iterator<Item = u64>) {
        let next = ids.map(|id| id.saturating_add(1)).max();
        self.next_id = self.next_id.max(next.unwrap_or(0));
    }
}
