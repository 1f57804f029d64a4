//! Operations that fail.

use std::io;

/// What is asked of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Open,
    OpenToWrite,
    Create,
    CreateDir,
    Rename,
    Remove,
    RemoveDir,
    List,
    What,
    SyncDir,
    Lock,
    /// Whether a lock's file is still the one at its path.
    Current,
    Length,
    Read,
    Write,
    SetLen,
    Sync,
}

impl Kind {
    pub const ALL: [Kind; 17] = [
        Kind::Open,
        Kind::OpenToWrite,
        Kind::Create,
        Kind::CreateDir,
        Kind::Rename,
        Kind::Remove,
        Kind::RemoveDir,
        Kind::List,
        Kind::What,
        Kind::SyncDir,
        Kind::Lock,
        Kind::Current,
        Kind::Length,
        Kind::Read,
        Kind::Write,
        Kind::SetLen,
        Kind::Sync,
    ];
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// EIO. A failed [`Kind::Sync`] has more to it: see [`Crashes`](super::Crashes).
    Io,
    /// ENOSPC.
    Full,
    /// EINTR, which calls for another try. For ever: every second time, as no loop ends otherwise.
    Interrupted,
    /// Half of the bytes are read or written, and at least one. No failure of other operations.
    Short,
}

/// The `nth` operation of some kinds fails, counted from 1.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub kinds: &'static [Kind],
    pub nth: u64,
    pub how: Failure,
    /// Whether all after it fail too.
    pub for_ever: bool,
}

/// How much of a read or write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    Whole,
    Half,
}

impl Moved {
    pub fn of(self, bytes: usize) -> usize {
        match self {
            Moved::Whole => bytes,
            Moved::Half => bytes.div_ceil(2),
        }
    }
}

#[derive(Default)]
pub struct Faults {
    fault: Option<Fault>,
    counts: [u64; Kind::ALL.len()],
    /// Operations of the fault's kinds.
    seen: u64,
    happened: u64,
}

impl Faults {
    /// Starts over with `fault`. Gives how often the one before happened.
    pub fn set(&mut self, fault: Option<Fault>) -> u64 {
        let happened = self.happened;
        *self = Faults {
            fault,
            ..Faults::default()
        };
        happened
    }

    pub fn count(&self, kinds: &[Kind]) -> u64 {
        kinds.iter().map(|&kind| self.counts[kind as usize]).sum()
    }

    /// An operation.
    pub fn meet(&mut self, kind: Kind) -> io::Result<Moved> {
        self.counts[kind as usize] += 1;
        let Some(fault) = self.fault.filter(|fault| fault.kinds.contains(&kind)) else {
            return Ok(Moved::Whole);
        };
        self.seen += 1;
        let happens = match self.seen.checked_sub(fault.nth) {
            None => false,
            Some(0) => true,
            Some(_) if !fault.for_ever => false,
            Some(after) => fault.how != Failure::Interrupted || after % 2 == 0,
        };
        if !happens {
            return Ok(Moved::Whole);
        }
        self.happened += 1;
        match fault.how {
            Failure::Io => Err(io::Error::from_raw_os_error(5)),
            Failure::Full => Err(io::ErrorKind::StorageFull.into()),
            Failure::Interrupted => Err(io::ErrorKind::Interrupted.into()),
            Failure::Short => Ok(Moved::Half),
        }
    }
}
