//! The journal's segments, those that were folded and kept among them, read from the last record back.
//!
//! A segment that was folded keeps its name and its bytes. Where a segment holds records that a later one holds as
//! well, as a takeover does, the later one counts.

use super::HistoryError;
use crate::store::damage::{Damage, Problem};
use crate::store::files::{Bytes, Files};
use crate::store::journal::{
    Dropped, HEADER_BYTES, Header, Record, Replay, Segment, file_name, header_of, number_in,
};
use crate::store::manifest::Manifest;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// Segments of a journal.
pub(super) struct Log<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) dir: &'a Path,
    pub(super) embedding_bytes: usize,
}

/// How reading back ended.
#[derive(Debug)]
pub(super) enum End {
    /// It was told to.
    Stopped,
    /// There is nothing before this record.
    Start(u64),
    /// This record is missing, and there are older segments.
    Gap(u64),
    /// What comes before cannot be read.
    Damaged(Damage),
}

/// Why reading back has to start over or to be given up.
pub(super) enum Failed {
    /// A file that was listed is gone: a writer is at work.
    Vanished(HistoryError),
    Refused(HistoryError),
}

impl Log<'_> {
    /// Gives `visit` the record `last` and those before it, the last first, until it breaks.
    pub(super) fn back_from(
        &self,
        mut last: u64,
        mut visit: impl FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<End, Failed> {
        let numbers = segments(self.files, self.dir).map_err(Failed::Refused)?;
        let mut damage = None;
        let mut next = Next::default();
        for number in numbers.into_iter().rev() {
            let path = self.dir.join(file_name(number));
            let bytes = self.read(&path)?;
            let segment = Segment {
                path: &path,
                number,
                bytes: bytes.as_slice(),
            };
            let next = next.replace(&segment);
            let header = match header_up_to(&segment, last) {
                Ok(Some(header)) => header,
                Ok(None) => continue,
                Err(found) => {
                    damage.get_or_insert(found);
                    continue;
                }
            };
            let before = header.first_sequence - 1;
            let (records, flaw) = self.records(&segment, next.after(number), before);
            let end = records.last().map_or(before, |record| record.sequence);
            if end < last {
                let damage = damage.or(flaw);
                return Ok(damage.map_or(End::Gap(last), End::Damaged));
            }
            let wanted = records.iter().rev();
            for record in wanted.skip_while(|record| record.sequence > last) {
                if visit(record).is_break() {
                    return Ok(End::Stopped);
                }
            }
            last = before;
        }
        Ok(match damage {
            Some(damage) if last > 0 => End::Damaged(damage),
            _ => End::Start(last + 1),
        })
    }

    /// Gives `damages` what is wrong with the segments below `live`, the last of whose records is `last`. Gives how
    /// many records they hold.
    pub(super) fn check(&self, live: u64, mut last: u64, damages: &mut Vec<Damage>) -> u64 {
        let Ok(numbers) = segments(self.files, self.dir) else {
            // Whoever opens the store is told.
            return 0;
        };
        let mut count = 0;
        let mut next = Next::default();
        for number in numbers.into_iter().rev().filter(|&number| number <= live) {
            let path = self.dir.join(file_name(number));
            let bytes = match self.read(&path) {
                Ok(bytes) => bytes,
                Err(Failed::Vanished(_)) => continue,
                Err(Failed::Refused(error)) => {
                    let problem = Problem::Unreadable(error.to_string());
                    damages.push(at_start(&path, problem));
                    continue;
                }
            };
            let segment = Segment {
                path: &path,
                number,
                bytes: bytes.as_slice(),
            };
            let next = next.replace(&segment);
            match header_up_to(&segment, last) {
                _ if number == live => {}
                Ok(None) => {}
                Ok(Some(header)) => {
                    let before = header.first_sequence - 1;
                    let (records, flaw) = self.records(&segment, next.after(number), before);
                    let wanted = records.iter().filter(|record| record.sequence <= last);
                    count += wanted.count() as u64;
                    damages.extend(flaw);
                    last = before;
                }
                Err(damage) => damages.push(damage),
            }
        }
        count
    }

    /// A segment's records, the first of which comes after `before`, up to the first place that holds none, and what
    /// is wrong there. `next` is the start of the file with the next number, if there is one.
    fn records<'s>(
        &self,
        segment: &Segment<'s>,
        next: Option<&[u8]>,
        before: u64,
    ) -> (Vec<Record<'s>>, Option<Damage>) {
        let mut records = Vec::new();
        let mut replay = Replay::new(self.embedding_bytes, before, 0);
        let read = replay.read(segment, next, |record| {
            records.push(record);
            Ok(())
        });
        let dropped = |Dropped {
                           path,
                           offset,
                           problem,
                           ..
                       }| Damage {
            path,
            offset,
            problem,
        };
        let flaw = read.map_or_else(Some, |outcome| outcome.dropped.map(dropped));
        (records, flaw)
    }

    fn read(&self, path: &Path) -> Result<Bytes, Failed> {
        let read = || {
            let file = self.files.open(path)?;
            let len = usize::try_from(file.bytes()?).unwrap_or(usize::MAX);
            Bytes::read(&*file, len)
        };
        read().map_err(|error| {
            let is_gone = error.kind() == io::ErrorKind::NotFound;
            let error = HistoryError::io("reading", path)(error);
            match is_gone {
                true => Failed::Vanished(error),
                false => Failed::Refused(error),
            }
        })
    }
}

/// The segment that was read last, and the start of its file.
#[derive(Default)]
struct Next {
    number: u64,
    start: Vec<u8>,
}

impl Next {
    /// Takes note of a segment, and gives the one before.
    fn replace(&mut self, segment: &Segment<'_>) -> Next {
        let bytes = segment.bytes;
        let number = segment.number;
        let start = bytes[..bytes.len().min(HEADER_BYTES)].to_vec();
        std::mem::replace(self, Next { number, start })
    }

    /// The start of the file with the number after `number`, if it is this one.
    fn after(&self, number: u64) -> Option<&[u8]> {
        (self.number == number.saturating_add(1)).then_some(&*self.start)
    }
}

/// A segment's header, if it may hold records up to `last`: one that starts later holds what a later one holds as
/// well, or what came later.
fn header_up_to(segment: &Segment<'_>, last: u64) -> Result<Option<Header>, Damage> {
    match header_of(segment) {
        Some(header) => Ok(Some(header).filter(|header| header.first_sequence <= last)),
        // It never held a record: a crash left it.
        None if segment.bytes.len() <= HEADER_BYTES => Ok(None),
        None => {
            let what = "has a broken header";
            Err(at_start(segment.path, Problem::Segment { what }))
        }
    }
}

fn at_start(path: &Path, problem: Problem) -> Damage {
    Damage {
        path: path.to_owned(),
        offset: 0,
        problem,
    }
}

/// Removes segments below those of the journal: those without a record, and all but the newest that are no more bytes
/// together than are to be kept. As well as it goes; the next fold tries again.
pub(in crate::store) fn trim(files: &dyn Files, dir: &Path, manifest: &Manifest) {
    let (live, mut left) = (manifest.journal_segment, manifest.history_bytes);
    let numbers = segments(files, dir).unwrap_or_default();
    for number in numbers.into_iter().rev().filter(|&number| number < live) {
        let path = dir.join(file_name(number));
        let bytes = match left {
            0 => Ok(u64::MAX),
            _ => files.open(&path).and_then(|file| file.bytes()),
        };
        let is_kept = match bytes {
            Err(_) => true,
            Ok(bytes) if bytes <= HEADER_BYTES as u64 => false,
            Ok(bytes) => {
                let rest = left.checked_sub(bytes);
                // What is older than one that is removed is of no use.
                left = rest.unwrap_or(0);
                rest.is_some()
            }
        };
        if !is_kept {
            let _ = files.remove_file(&path);
        }
    }
}

/// The numbers of a journal's segments, ascending.
fn segments(files: &dyn Files, dir: &Path) -> Result<Vec<u64>, HistoryError> {
    let names = files.list(dir).map_err(HistoryError::io("listing", dir))?;
    let numbers = names.iter().filter_map(|name| number_in(name.to_str()?));
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}
