//! Which memories compete.
//!
//! A memory competes if every part of its [`Filter`] lets it, it was not deleted, and it has a vector. The ranges
//! that scores are normalised with are those of the memories that compete.

use super::Ask;
use super::mask::Mask;
use super::{StreamError, candidates};
use crate::scoring::check_mask;
use crate::store::{Agent, Kind, ReadError, Segment, Snapshot};
use std::fmt;

/// Which memories compete: those that pass all parts. By default, every memory that was created by the moment of
/// asking and that no other corrects.
///
/// Parts that are not asked for cost nothing, and the default one no pass over the memories. Others are
/// looked at in turn, columns of numbers first and texts last, each only of what is left by then.
///
/// ```
/// use memorank::store::Kind;
/// use memorank::stream::{Contains, Filter, Period};
///
/// # let yesterday = 1_676_300_400_000_000;
/// let filter = Filter {
///     kinds: Some(&[Kind::OBSERVATION, Kind::CHAT]),
///     created: Period { from: Some(yesterday), until: None },
///     text: Some(Contains::IgnoringAsciiCase("valentine")),
///     ..Filter::default()
/// };
/// # let _ = filter;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// Memories of these kinds. `None`: of any; an empty list: of none.
    pub kinds: Option<&'a [Kind]>,
    /// Memories created in this period.
    pub created: Period,
    /// Memories whose last access by the asking agent lies in this period.
    pub last_access: Period,
    /// Only memories that have no expiry, or one after the moment of asking.
    pub unexpired: bool,
    /// Memories whose text contains this.
    pub text: Option<Contains<'a>>,
    /// Memories with these ids, in any order. `None`: with any. An id that names no memory is passed over.
    pub ids: Option<&'a [u64]>,
    /// Not the memories with these ids, in any order. An id that names no memory is passed over.
    pub exclude: &'a [u64],
    /// Memories in these rows: bit `row % 64` of word `row / 64`, as in
    /// [`Candidates::Mask`](crate::scoring::Candidates::Mask). Rows are those of one snapshot: another one may have
    /// more, and other numbers after a compaction. Ids stay.
    pub mask: Option<&'a [u64]>,
    /// Whether memories created after the moment of asking compete too. Without it an agent that asks about a
    /// moment of the past does not see what came later.
    pub future: bool,
    /// Whether memories that were [corrected](crate::store::Memory::superseded_by) compete too. Without it they do only
    /// if the correction was created after the moment of asking, and [`future`](Filter::future) is false.
    pub superseded: bool,
}

/// A piece of time, in microseconds since the Unix epoch. By default, all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// The first moment in it. `None`: it has no beginning.
    pub from: Option<i64>,
    /// The first moment after it. `None`: it has no end.
    pub until: Option<i64>,
}

impl Period {
    /// Whether a moment lies in it.
    pub fn contains(&self, moment: i64) -> bool {
        self.from.is_none_or(|from| from <= moment) && self.until.is_none_or(|until| moment < until)
    }

    fn is_all(&self) -> bool {
        *self == Period::default()
    }
}

/// What a text must contain, somewhere in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contains<'a> {
    /// These bytes.
    Exactly(&'a str),
    /// These bytes, or ones that differ in the case of ASCII letters only. Other letters have one case here.
    IgnoringAsciiCase(&'a str),
}

impl Contains<'_> {
    /// Whether a text contains it. Every text contains the empty one.
    pub fn is_in(&self, text: &str) -> bool {
        match *self {
            Contains::Exactly(part) => text.contains(part),
            Contains::IgnoringAsciiCase("") => true,
            Contains::IgnoringAsciiCase(part) => {
                let mut places = text.as_bytes().windows(part.len());
                places.any(|place| place.eq_ignore_ascii_case(part.as_bytes()))
            }
        }
    }
}

/// The part of a filter that keeps a memory from competing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Barrier {
    /// [`Filter::mask`]
    Mask,
    /// [`Filter::ids`]
    Ids,
    /// [`Filter::exclude`]
    Excluded,
    /// It was created after the moment of asking, and [`Filter::future`] is false.
    Future,
    /// Another memory corrects it, and [`Filter::superseded`] is false.
    Superseded,
    /// [`Filter::created`]
    Created,
    /// [`Filter::last_access`]
    LastAccess,
    /// [`Filter::kinds`]
    Kind,
    /// [`Filter::unexpired`]
    Expired,
    /// [`Filter::text`]
    Text,
    /// The preset's [`CandidateRule`](crate::scoring::CandidateRule).
    Rule,
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Barrier::Mask => "the mask leaves its row out",
            Barrier::Ids => "it is not among the ids asked for",
            Barrier::Excluded => "it is excluded by its id",
            Barrier::Future => "it was created after the moment of asking",
            Barrier::Superseded => "it was corrected by another",
            Barrier::Created => "it was created outside the period asked for",
            Barrier::LastAccess => "it was last retrieved outside the period asked for",
            Barrier::Kind => "it is of another kind than those asked for",
            Barrier::Expired => "it expired",
            Barrier::Text => "its text does not contain what was asked for",
            Barrier::Rule => "the preset's rule leaves it out",
        })
    }
}

impl<'a> Filter<'a> {
    /// The default: every memory that was created by the moment of asking and that no other corrects.
    pub const PAST: Filter<'static> = Filter {
        kinds: None,
        created: ALWAYS,
        last_access: ALWAYS,
        unexpired: false,
        text: None,
        ids: None,
        exclude: &[],
        mask: None,
        future: false,
        superseded: false,
    };

    /// The first part that keeps the memory in a row from competing for `ask` (whose own filter is not looked
    /// at), in the order of [`Barrier`]; `None`: it passes. Whether it was deleted or has no vector is not asked.
    ///
    /// # Errors
    /// If the memory must be read, and was deleted or is damaged.
    ///
    /// # Panics
    /// If there is no such row, or the mask has none.
    pub fn why_not(
        &self,
        snapshot: &Snapshot,
        ask: &Ask<'_>,
        row: usize,
    ) -> Result<Option<Barrier>, ReadError> {
        let (id, created) = (snapshot.id(row), snapshot.created(row));
        let last_access = || snapshot.last_access(ask.agent, row);
        let barrier = if (self.mask).is_some_and(|words| words[row / 64] >> (row % 64) & 1 == 0) {
            Barrier::Mask
        } else if self.ids.is_some_and(|ids| !ids.contains(&id)) {
            Barrier::Ids
        } else if self.exclude.contains(&id) {
            Barrier::Excluded
        } else if !self.future && created > ask.now {
            Barrier::Future
        } else if !self.superseded && self.knows_better(snapshot, ask.now, row) {
            Barrier::Superseded
        } else if !self.created.contains(created) {
            Barrier::Created
        } else if !self.last_access.contains(last_access()) {
            Barrier::LastAccess
        } else if let Some(kinds) = self.kinds
            && !KindTable::new(snapshot, kinds).has(snapshot, row)?
        {
            Barrier::Kind
        } else if self.unexpired && expired(snapshot, ask, row) {
            Barrier::Expired
        } else if let Some(part) = self.text
            && !part.is_in(snapshot.text(row)?)
        {
            Barrier::Text
        } else if !candidates::follows(ask.preset.candidates, snapshot, row)? {
            Barrier::Rule
        } else {
            return Ok(None);
        };
        Ok(Some(barrier))
    }

    /// The live rows that pass, all parts but the preset's rule. `None`: all that are live.
    pub(super) fn passing(
        &self,
        snapshot: &Snapshot,
        ask: &Ask<'_>,
    ) -> Result<Option<Mask>, StreamError> {
        let rows = snapshot.rows();
        if let Some(words) = self.mask {
            check_mask(words, rows)?;
        }
        // Most often all are older than that, and no memory has to be looked at to know it.
        let to_come =
            !self.future && (snapshot.newest_created()).is_some_and(|newest| newest > ask.now);
        let corrected = || {
            let all = (!self.superseded).then(|| snapshot.superseded());
            let all = all.into_iter().flatten();
            all.filter(|&(row, _)| self.knows_better(snapshot, ask.now, row))
        };
        if !to_come && corrected().next().is_none() && self.takes_all() {
            return Ok(None);
        }
        // Ids and rows first, then columns of numbers, then texts.
        let mut mask = match self.ids {
            Some(ids) => {
                let mut mask = Mask::none(rows);
                let found = ids.iter().filter_map(|&id| snapshot.row_of_id(id));
                found.for_each(|row| mask.insert(row));
                mask
            }
            None => snapshot.live().map_or_else(|| Mask::all(rows), Mask::of),
        };
        if let Some(words) = self.mask {
            mask.intersect(words);
        }
        let excluded = self.exclude.iter().filter_map(|&id| snapshot.row_of_id(id));
        excluded.for_each(|row| mask.remove(row));
        corrected().for_each(|(row, _)| mask.remove(row));

        if to_come || !self.created.is_all() {
            let now = if to_come { ask.now } else { i64::MAX };
            let wanted = |created| created <= now && self.created.contains(created);
            retain_times(&mut mask, snapshot, ask.agent, |s| s.created, wanted);
        }
        if !self.last_access.is_all() {
            let wanted = |last_access| self.last_access.contains(last_access);
            retain_times(&mut mask, snapshot, ask.agent, |s| s.last_access, wanted);
        }
        if let Some(kinds) = self.kinds {
            let kinds = KindTable::new(snapshot, kinds);
            mask.retain(0..rows, |row| kinds.has(snapshot, row))?;
        }
        if self.unexpired {
            let Ok(()) = mask.retain::<std::convert::Infallible>(0..rows, |row| {
                Ok(!expired(snapshot, ask, row))
            });
        }
        if let Some(part) = self.text {
            mask.retain(0..rows, |row| {
                Ok::<_, ReadError>(part.is_in(snapshot.text(row)?))
            })?;
        }
        Ok(Some(mask))
    }

    /// Whether the memory in a row was corrected, as far as is known at the moment of asking.
    fn knows_better(&self, snapshot: &Snapshot, now: i64, row: usize) -> bool {
        let now = if self.future { i64::MAX } else { now };
        snapshot.superseded_at(row, now).is_some()
    }

    /// Whether every part but `future` and `superseded` lets every memory pass.
    fn takes_all(&self) -> bool {
        let Filter {
            kinds: None,
            created,
            last_access,
            unexpired: false,
            text: None,
            ids: None,
            exclude: [],
            mask: None,
            future: _,
            superseded: _,
        } = self
        else {
            return false;
        };
        created.is_all() && last_access.is_all()
    }
}

/// All of time.
const ALWAYS: Period = Period {
    from: None,
    until: None,
};

/// Takes out the rows whose time, in a column of an agent's segments, is not wanted.
fn retain_times(
    mask: &mut Mask,
    snapshot: &Snapshot,
    agent: Agent,
    column: impl for<'s> Fn(&Segment<'s>) -> &'s [i64],
    wanted: impl Fn(i64) -> bool,
) {
    for segment in snapshot.segments(agent) {
        let (times, first) = (column(&segment), segment.first_row);
        let Ok(()) = mask.retain::<std::convert::Infallible>(segment.rows(), |row| {
            Ok(wanted(times[row - first]))
        });
    }
}

fn expired(snapshot: &Snapshot, ask: &Ask<'_>, row: usize) -> bool {
    (snapshot.expiry(row)).is_some_and(|expiry| expiry <= ask.now)
}

/// Which of a store's kinds are wanted.
pub(super) struct KindTable(Vec<bool>);

impl KindTable {
    pub(super) fn new(snapshot: &Snapshot, kinds: &[Kind]) -> KindTable {
        let table = snapshot.kinds().iter();
        KindTable(table.map(|kind| kinds.contains(kind)).collect())
    }

    pub(super) fn has(&self, snapshot: &Snapshot, row: usize) -> Result<bool, ReadError> {
        match self.0.get(usize::from(snapshot.kind_index(row))) {
            Some(&wanted) => Ok(wanted),
            // Of no kind that there is: whoever reads the memory is told of the damage.
            None => snapshot.memory(row).map(|_| false),
        }
    }
}
