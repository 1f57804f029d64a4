//! What a power cut leaves.
//!
//! **The rules**, those of POSIX as Linux' file systems keep them, and harsher where they differ:
//!
//! - What was synced is there: a file's bytes and length by its own sync, a name by its directory's.
//!   Neither brings the other.
//! - Of every file, each write and change of length since its last sync is there, or not, or torn at
//!   sectors of 512 or pages of 4,096 bytes, whatever became of the others. The length is any that the file had
//!   since, whatever became of the bytes: if it is more than they need, zeros follow.
//! - Each change of a name since its directory's last sync is there or not, except that one which reuses a name is
//!   not there without those of that name before it. A rename is there whole or not at all.
//! - What a failed sync should have written counts as clean afterwards, as it does on Linux: it can be read
//!   until the power is cut, and no later sync writes it, unless it was written again. Maybe it reached the disk
//!   nevertheless. Names of a directory whose sync failed are left to its next one: a file system whose
//!   own journal fails takes no more changes.

use super::{Change, Id, Names, Node, ROOT, Sim, put};
use crate::random::Random;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

/// What was durable and what was not, at a point of a log, which only moves forward.
pub struct Crashes {
    sim: Sim,
    at: usize,
    nodes: BTreeMap<Id, Stored>,
    /// Changes of names that are not durable, in order.
    renames: Vec<Renamed>,
}

enum Stored {
    File(StoredFile),
    Directory(Names),
}

#[derive(Default)]
struct StoredFile {
    durable: Vec<u8>,
    /// Not all of them durable, in order.
    changes: Vec<(FileChange, State)>,
    /// That the file had since the first one was durable.
    lengths: Vec<usize>,
}

#[derive(Clone)]
enum FileChange {
    Write { offset: usize, bytes: Arc<[u8]> },
    SetLen(usize),
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Pending,
    /// A sync failed: no later one writes it.
    Lost,
    /// Behind one that was lost.
    Durable,
}

/// What names are after a change, each in its directory.
#[derive(Clone)]
struct Renamed(Vec<(Id, OsString, Option<Id>)>);

/// What survives of all that is not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    Nothing,
    All,
    /// Names and lengths, no bytes.
    Lengths,
    /// Names and bytes, no lengths.
    Bytes,
    /// Names, and nothing of the files.
    Names,
    /// Files, and no names.
    Files,
    /// Chosen by a seed.
    Some(u64),
}

impl Survivors {
    pub const EXTREMES: [Survivors; 6] = [
        Survivors::Nothing,
        Survivors::All,
        Survivors::Lengths,
        Survivors::Bytes,
        Survivors::Names,
        Survivors::Files,
    ];
}

impl Crashes {
    /// At the start of the log of `sim`'s machine.
    pub fn of(sim: &Sim) -> Crashes {
        let machine = sim.machine();
        let stored = |node: &Node| match node {
            Node::File(bytes) => Stored::File(StoredFile::new(bytes.to_vec())),
            Node::Directory(names) => Stored::Directory(names.clone()),
        };
        let nodes = machine.booted_with.iter().map(stored).enumerate().collect();
        drop(machine);
        Crashes {
            sim: sim.clone(),
            at: 0,
            nodes,
            renames: Vec::new(),
        }
    }

    /// Goes on until `to` changes have been made.
    ///
    /// # Panics
    /// If that is before where it is, or after the log's end.
    pub fn advance(&mut self, to: usize) {
        let machine = self.sim.clone();
        let machine = machine.machine();
        for change in &machine.log[self.at..to] {
            self.make(change);
        }
        self.at = to;
    }

    fn make(&mut self, change: &Change) {
        match change {
            Change::Write {
                file,
                offset,
                bytes,
            } => {
                let (offset, bytes) = (*offset, bytes.clone());
                self.file(*file).change(FileChange::Write { offset, bytes });
            }
            Change::SetLen { file, to } => self.file(*file).change(FileChange::SetLen(*to)),
            Change::Sync { file, done: true } => self.file(*file).sync(),
            Change::Sync { file, done: false } => self.file(*file).lose(),
            Change::SyncDir { dir, done: true } => self.sync_dir(*dir),
            Change::SyncDir { done: false, .. } => {}
            Change::Create {
                dir,
                name,
                id,
                directory,
            } => {
                let stored = match directory {
                    true => Stored::Directory(Names::new()),
                    false => Stored::File(StoredFile::new(Vec::new())),
                };
                self.nodes.insert(*id, stored);
                (self.renames).push(Renamed(vec![(*dir, name.clone(), Some(*id))]));
            }
            Change::Rename { id, from, to } => self.renames.push(Renamed(vec![
                (from.0, from.1.clone(), None),
                (to.0, to.1.clone(), Some(*id)),
            ])),
            Change::Remove { dir, name } => {
                (self.renames).push(Renamed(vec![(*dir, name.clone(), None)]));
            }
        }
    }

    fn file(&mut self, id: Id) -> &mut StoredFile {
        match self.nodes.get_mut(&id) {
            Some(Stored::File(file)) => file,
            _ => unreachable!("the log says that it is a file"),
        }
    }

    /// The changes in `dir` become durable, with those that they are not there without.
    fn sync_dir(&mut self, dir: Id) {
        let mut needed: Vec<(Id, OsString)> = Vec::new();
        let mut durable = vec![false; self.renames.len()];
        for (at, Renamed(names)) in self.renames.iter().enumerate().rev() {
            let is_needed = |(in_dir, name, _): &(Id, OsString, Option<Id>)| {
                *in_dir == dir || needed.iter().any(|(d, n)| d == in_dir && n == name)
            };
            if names.iter().any(is_needed) {
                durable[at] = true;
                needed.extend(names.iter().map(|(d, n, _)| (*d, n.clone())));
            }
        }
        let mut at = 0..;
        let (done, left) = std::mem::take(&mut self.renames)
            .into_iter()
            .partition(|_| durable[at.next().expect("it has no end")]);
        self.renames = left;
        let done: Vec<Renamed> = done;
        for (dir, name, id) in done.into_iter().flat_map(|Renamed(names)| names) {
            match self.nodes.get_mut(&dir) {
                Some(Stored::Directory(names)) => set(names, name, id),
                _ => unreachable!("the log says that it is a directory"),
            }
        }
    }

    /// A machine that boots with what a power cut here leaves.
    pub fn image(&self, survivors: Survivors) -> Sim {
        let mut chosen = Chosen::by(survivors, self.unsynced());
        let names = self.surviving_names(&mut chosen);
        let mut nodes = Vec::new();
        self.boot_with(ROOT, &names, &mut chosen, &mut nodes);
        Sim::boot(nodes)
    }

    /// How many changes are not durable.
    fn unsynced(&self) -> usize {
        let in_file = |stored: &Stored| match stored {
            Stored::File(file) => file.changes.len(),
            Stored::Directory(_) => 0,
        };
        self.renames.len() + self.nodes.values().map(in_file).sum::<usize>()
    }

    fn surviving_names(&self, chosen: &mut Chosen) -> BTreeMap<Id, Names> {
        let mut all = BTreeMap::new();
        for (&id, stored) in &self.nodes {
            if let Stored::Directory(names) = stored {
                all.insert(id, names.clone());
            }
        }
        let mut gone: Vec<(Id, &OsString)> = Vec::new();
        for Renamed(changes) in &self.renames {
            let reuses = |(dir, name, _): &(Id, OsString, Option<Id>)| {
                gone.iter().any(|&(d, n)| d == *dir && n == name)
            };
            if !chosen.name() || changes.iter().any(reuses) {
                gone.extend(changes.iter().map(|(dir, name, _)| (*dir, name)));
                continue;
            }
            for (dir, name, id) in changes {
                let names = all.get_mut(dir).expect("the log says that it is one");
                set(names, name.clone(), *id);
            }
        }
        all
    }

    /// Adds a node, and all below it. Gives its new number.
    fn boot_with(
        &self,
        id: Id,
        names: &BTreeMap<Id, Names>,
        chosen: &mut Chosen,
        nodes: &mut Vec<Node>,
    ) -> Id {
        let new = nodes.len();
        nodes.push(Node::File(Arc::default()));
        nodes[new] = match &self.nodes[&id] {
            Stored::File(file) => Node::File(Arc::new(file.survives(chosen))),
            Stored::Directory(_) => {
                let below = names[&id].iter();
                let below = below
                    .map(|(name, &id)| (name.clone(), self.boot_with(id, names, chosen, nodes)));
                Node::Directory(below.collect())
            }
        };
        new
    }
}

fn set(names: &mut Names, name: OsString, id: Option<Id>) {
    match id {
        Some(id) => names.insert(name, id),
        None => names.remove(&name),
    };
}

impl StoredFile {
    fn new(durable: Vec<u8>) -> StoredFile {
        StoredFile {
            lengths: vec![durable.len()],
            durable,
            changes: Vec::new(),
        }
    }

    fn change(&mut self, change: FileChange) {
        let old = *self.lengths.last().expect("there is always one");
        self.lengths.push(match &change {
            FileChange::Write { offset, bytes } => old.max(offset + bytes.len()),
            FileChange::SetLen(to) => *to,
        });
        self.changes.push((change, State::Pending));
    }

    fn sync(&mut self) {
        let any_pending = self.changes.iter().any(|c| c.1 == State::Pending);
        if self.changes.iter().any(|c| c.1 == State::Lost) {
            if any_pending {
                self.lengths.drain(..self.lengths.len() - 1);
            }
            for (_, state) in &mut self.changes {
                if *state == State::Pending {
                    *state = State::Durable;
                }
            }
        } else {
            for (change, _) in self.changes.drain(..) {
                change.make(&mut self.durable, Fate::Kept);
            }
            self.lengths.clear();
            self.lengths.push(self.durable.len());
        }
    }

    fn lose(&mut self) {
        for (_, state) in &mut self.changes {
            if *state == State::Pending {
                *state = State::Lost;
            }
        }
    }

    fn survives(&self, chosen: &mut Chosen) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for (change, state) in &self.changes {
            let fate = match state {
                State::Durable => Fate::Kept,
                State::Pending | State::Lost => chosen.change(),
            };
            change.make(&mut bytes, fate);
        }
        let len = chosen.length(&self.lengths, bytes.len());
        bytes.resize(len, 0);
        bytes
    }
}

impl FileChange {
    fn make(&self, to: &mut Vec<u8>, fate: Fate) {
        match (self, fate) {
            (_, Fate::Dropped) => {}
            (FileChange::SetLen(_), Fate::Torn { kept, .. }) if kept & 1 == 0 => {}
            (FileChange::SetLen(len), _) => to.resize(*len, 0),
            (FileChange::Write { offset, bytes }, Fate::Kept) => put(to, *offset, bytes),
            (FileChange::Write { offset, bytes }, Fate::Torn { unit, kept }) => {
                let mut start = 0;
                while start < bytes.len() {
                    // As far as the next boundary.
                    let at = offset + start;
                    let end = bytes.len().min(start + unit - at % unit);
                    let number = at / unit - offset / unit;
                    if kept >> (number % 64) & 1 == 1 {
                        put(to, at, &bytes[start..end]);
                    }
                    start = end;
                }
            }
        }
    }
}

const SECTOR: usize = 512;
const PAGE: usize = 4096;

#[derive(Clone, Copy)]
enum Fate {
    Dropped,
    Kept,
    /// Of the units of so many bytes those whose bit is set; the 65th has the first bit again.
    Torn {
        unit: usize,
        kept: u64,
    },
}

/// How what survives is chosen.
enum Chosen {
    Extreme(Survivors),
    /// Each change survives `percent` times in 100; of 100 changes, `torn` are torn.
    Each {
        random: Random,
        percent: usize,
        torn: usize,
    },
    /// The change with this number survives alone, or is the only one that does not.
    One {
        number: usize,
        alone: bool,
    },
}

impl Chosen {
    fn by(survivors: Survivors, unsynced: usize) -> Chosen {
        let Survivors::Some(seed) = survivors else {
            return Chosen::Extreme(survivors);
        };
        let mut random = Random::new(seed);
        if unsynced > 0 && random.chance(30) {
            let number = random.below(unsynced);
            let alone = random.chance(50);
            return Chosen::One { number, alone };
        }
        Chosen::Each {
            percent: random.pick(&[10, 50, 90]),
            torn: random.pick(&[0, 20, 60]),
            random,
        }
    }

    /// The next of the changes that one survives or not.
    fn next_one(number: &mut usize, alone: bool) -> bool {
        let is_it = *number == 0;
        *number = number.wrapping_sub(1);
        is_it == alone
    }

    fn name(&mut self) -> bool {
        match self {
            Chosen::Extreme(survivors) => {
                !matches!(survivors, Survivors::Nothing | Survivors::Files)
            }
            Chosen::Each {
                random, percent, ..
            } => random.chance(*percent),
            Chosen::One { number, alone } => Chosen::next_one(number, *alone),
        }
    }

    fn change(&mut self) -> Fate {
        let kept = match self {
            Chosen::Extreme(survivors) => matches!(
                survivors,
                Survivors::All | Survivors::Bytes | Survivors::Files
            ),
            Chosen::Each {
                random,
                percent,
                torn,
            } => {
                if random.chance(*torn) {
                    let unit = random.pick(&[SECTOR, PAGE]);
                    let first = u64::MAX >> random.below(64);
                    let any = random.next();
                    let kept = random.pick(&[first, !first, any]);
                    return Fate::Torn { unit, kept };
                }
                random.chance(*percent)
            }
            Chosen::One { number, alone } => Chosen::next_one(number, *alone),
        };
        match kept {
            true => Fate::Kept,
            false => Fate::Dropped,
        }
    }

    /// The length of a file that had `lengths`, whose surviving bytes end at `end`.
    fn length(&mut self, lengths: &[usize], end: usize) -> usize {
        let (first, last) = (lengths[0], lengths[lengths.len() - 1]);
        match self {
            Chosen::Extreme(Survivors::Nothing | Survivors::Bytes | Survivors::Names) => first,
            Chosen::Extreme(_) => last,
            Chosen::Each { random, .. } => {
                let any = random.pick(lengths);
                random.pick(&[end, end, first, last, any])
            }
            Chosen::One { .. } => end,
        }
    }
}
