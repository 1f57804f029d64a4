//! Whether the evidence of a store is as it should be.

use super::above;
use super::cycles::on_cycles;
use super::graph::{Citation, Graph};
use crate::store::{Kind, ReadError, Snapshot};
use crate::stream::filter::KindTable;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Which memories should cite which.
///
/// By default: reflections cite, memories of any kind. In archives of the generative agents' simulation events cite
/// chats, too: for these, observations [may](Rules::may_cite).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The kinds that are conclusions: they have evidence, and a depth above 0.
    pub conclusions: Vec<Kind>,
    /// Other kinds that may have evidence, and need none. Their depth is 0 all the same.
    pub may_cite: Vec<Kind>,
    /// The kinds that may be cited. `None`: any.
    pub cited: Option<Vec<Kind>>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            conclusions: vec![Kind::REFLECTION],
            may_cite: Vec::new(),
            cited: None,
        }
    }
}

/// What was looked at, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Integrity {
    /// Memories.
    pub memories: usize,
    /// Entries of their evidence.
    pub citations: usize,
    /// What is not as it should be: ascending by id, of one memory in the order of its evidence, and then of
    /// [`Fault`].
    pub findings: Vec<Finding>,
}

/// A fault, and the memory that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Finding {
    /// The memory's id.
    pub id: u64,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a memory's evidence. Places are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Fault {
    /// A reference to what never was a memory.
    Dangling {
        /// Its place in the evidence.
        place: usize,
        /// What it names: an id that was never given, or a text.
        named: String,
    },
    /// A reference to a memory that was deleted.
    Deleted {
        /// Its place in the evidence.
        place: usize,
        /// The memory's id.
        id: u64,
    },
    /// A reference to a memory that was corrected since.
    Superseded {
        /// Its place in the evidence.
        place: usize,
        /// The memory's id.
        id: u64,
        /// The id of what corrected it.
        by: u64,
    },
    /// The memory cites itself.
    ItSelf {
        /// Its place in the evidence.
        place: usize,
    },
    /// A reference to a memory that was stored later.
    Later {
        /// Its place in the evidence.
        place: usize,
        /// The memory's id.
        id: u64,
    },
    /// The same reference as one before.
    Duplicate {
        /// Its place in the evidence.
        place: usize,
        /// The place of the other.
        first: usize,
    },
    /// A reference to a memory of a kind that is not [to be cited](Rules::cited).
    WrongEvidence {
        /// Its place in the evidence.
        place: usize,
        /// The memory's id.
        id: u64,
    },
    /// The memory has evidence, and is of a kind that [should not](Rules).
    WrongKind,
    /// The memory lies on a cycle of citations with others.
    Cycle,
    /// The depth is not what the evidence gives. (With a deleted memory among the evidence it may be greater than
    /// what is left gives: it was right when it was stored.)
    DepthMismatch {
        /// As stored.
        stored: u32,
        /// As [it should be](super#depth), with all depths below it as they should be.
        expected: u32,
    },
    /// A conclusion without evidence.
    Empty,
}

impl Fault {
    /// A short and stable name: `depth-mismatch`.
    pub const fn name(&self) -> &'static str {
        match self {
            Fault::Dangling { .. } => "dangling",
            Fault::Deleted { .. } => "deleted",
            Fault::Superseded { .. } => "superseded",
            Fault::ItSelf { .. } => "it-self",
            Fault::Later { .. } => "later",
            Fault::Duplicate { .. } => "duplicate",
            Fault::WrongEvidence { .. } => "wrong-evidence",
            Fault::WrongKind => "wrong-kind",
            Fault::Cycle => "cycle",
            Fault::DepthMismatch { .. } => "depth-mismatch",
            Fault::Empty => "empty",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Dangling { place, named } => {
                write!(f, "evidence {place} names no memory: {named}")
            }
            Fault::Deleted { place, id } => write!(f, "evidence {place} was deleted: {id}"),
            Fault::Superseded { place, id, by } => {
                write!(f, "evidence {place} was corrected: {id} by {by}")
            }
            Fault::ItSelf { place } => write!(f, "evidence {place} is the memory itself"),
            Fault::Later { place, id } => write!(f, "evidence {place} was stored later: {id}"),
            Fault::Duplicate { place, first } => {
                write!(f, "evidence {place} is evidence {first} again")
            }
            Fault::WrongEvidence { place, id } => {
                write!(f, "evidence {place} is of a kind that is not cited: {id}")
            }
            Fault::WrongKind => f.write_str("its kind has no evidence"),
            Fault::Cycle => f.write_str("it rests on itself"),
            Fault::DepthMismatch { stored, expected } => {
                write!(f, "depth {stored} is stored, {expected} by its evidence")
            }
            Fault::Empty => f.write_str("it has no evidence"),
        }
    }
}

impl Integrity {
    /// How many findings there are of each [name](Fault::name). Names without any are not in it.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for finding in &self.findings {
            *counts.entry(finding.fault.name()).or_insert(0) += 1;
        }
        counts
    }
}

impl Graph {
    /// Looks at the evidence and the depth of every memory.
    ///
    /// # Errors
    /// If the bytes of a kind are damaged.
    pub fn integrity(&self, rules: &Rules) -> Result<Integrity, ReadError> {
        let snapshot = self.snapshot();
        let mut check = Check {
            graph: self,
            conclusions: KindTable::new(snapshot, &rules.conclusions),
            may_cite: KindTable::new(snapshot, &rules.may_cite),
            cited: (rules.cited.as_ref()).map(|kinds| KindTable::new(snapshot, kinds)),
            on_cycle: self.on_cycles(),
            depths: vec![0; snapshot.rows()],
            places: HashMap::new(),
            findings: Vec::new(),
        };
        for row in (0..snapshot.rows()).filter(|&row| snapshot.is_live(row)) {
            check.memory(snapshot, row)?;
        }
        Ok(Integrity {
            memories: snapshot.len(),
            citations: self.len(),
            findings: check.findings,
        })
    }

    /// The rows of memories that lie on a cycle with others; empty if there is none.
    fn on_cycles(&self) -> Vec<bool> {
        let snapshot = self.snapshot();
        if !self.looks_ahead() {
            return Vec::new();
        }
        on_cycles(snapshot.rows(), |row| {
            self.row_cites(row).filter_map(|citation| match citation {
                Citation::Live(id) => snapshot.row_of_id(id),
                Citation::Deleted(_) | Citation::Unknown(_) | Citation::Missing(_) => None,
            })
        })
    }
}

struct Check<'g> {
    graph: &'g Graph,
    conclusions: KindTable,
    may_cite: KindTable,
    cited: Option<KindTable>,
    on_cycle: Vec<bool>,
    /// What each row before the one that is looked at should have.
    depths: Vec<u32>,
    /// Where the memory that is looked at cites what.
    places: HashMap<Citation<'g>, usize>,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn memory(&mut self, snapshot: &Snapshot, row: usize) -> Result<(), ReadError> {
        let own = snapshot.id(row);
        let (mut below, mut any_deleted, mut is_empty) = (Vec::new(), false, true);
        self.places.clear();
        for (place, citation) in self.graph.row_cites(row).enumerate() {
            is_empty = false;
            match citation {
                Citation::Live(id) if id == own => self.find(own, Fault::ItSelf { place }),
                Citation::Live(id) => {
                    if id > own {
                        self.find(own, Fault::Later { place, id });
                    }
                    // A row that there is: the citation is live.
                    if let Some(cited) = snapshot.row_of_id(id) {
                        if cited < row {
                            below.push(self.depths[cited]);
                        }
                        if let Some(by) = snapshot.superseded_by(cited)
                            && by != own
                        {
                            self.find(own, Fault::Superseded { place, id, by });
                        }
                        if let Some(kinds) = &self.cited
                            && !kinds.has(snapshot, cited)?
                        {
                            self.find(own, Fault::WrongEvidence { place, id });
                        }
                    }
                }
                Citation::Deleted(id) => {
                    any_deleted = true;
                    self.find(own, Fault::Deleted { place, id });
                }
                Citation::Unknown(id) => {
                    let named = id.to_string();
                    self.find(own, Fault::Dangling { place, named });
                }
                Citation::Missing(text) => {
                    let named = text.to_owned();
                    self.find(own, Fault::Dangling { place, named });
                }
            }
            let first = *self.places.entry(citation).or_insert(place);
            if first != place {
                self.find(own, Fault::Duplicate { place, first });
            }
        }
        let concludes = self.conclusions.has(snapshot, row)?;
        if !is_empty && !concludes && !self.may_cite.has(snapshot, row)? {
            self.find(own, Fault::WrongKind);
        }
        if self.on_cycle.get(row) == Some(&true) {
            self.find(own, Fault::Cycle);
        }
        let stored = snapshot.depth(row);
        let mut expected = match concludes {
            true => above(below),
            false => 0,
        };
        if concludes && any_deleted {
            // What was deleted may have been deeper.
            expected = expected.max(stored);
        }
        if stored != expected {
            self.find(own, Fault::DepthMismatch { stored, expected });
        }
        if concludes && is_empty {
            self.find(own, Fault::Empty);
        }
        self.depths[row] = expected;
        Ok(())
    }

    fn find(&mut self, id: u64, fault: Fault) {
        self.findings.push(Finding { id, fault });
    }
}
