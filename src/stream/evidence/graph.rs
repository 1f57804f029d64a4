//! Who cites whom.

use crate::store::{ReadError, Reference, Snapshot};

/// One entry of a memory's evidence, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Citation<'g> {
    /// The memory with this id.
    Live(u64),
    /// The memory that had this id was deleted.
    Deleted(u64),
    /// No memory has had this id so far.
    Unknown(u64),
    /// It named no memory when it was imported; this is what its source wrote.
    Missing(&'g str),
}

/// All citations of a snapshot. It keeps the snapshot.
#[derive(Clone, Debug)]
pub struct Graph {
    snapshot: Snapshot,
    /// Where the citations of each row end.
    ends: Vec<usize>,
    citations: Vec<Target>,
    missing: Vec<String>,
    /// The id cited and the id that cites it, each pair once, ascending.
    backward: Vec<(u64, u64)>,
    /// Whether a memory cites a later one. A live stream refuses that, an import does not.
    looks_ahead: bool,
}

/// A [`Citation`] that owns its parts: of what is missing, the place among the texts.
#[derive(Clone, Copy, Debug)]
enum Target {
    Live(u64),
    Deleted(u64),
    Unknown(u64),
    Missing(usize),
}

impl Graph {
    /// Reads the evidence of every memory, once.
    ///
    /// # Errors
    /// If the bytes of it are damaged.
    ///
    /// ```
    /// use memorank::kernel::Dtype;
    /// use memorank::store::{CreateOptions, Kind, Reference, Store};
    /// use memorank::stream::evidence::{Citation, Graph, Rules, depth};
    /// use memorank::stream::{Draft, Embedding, Importance, Remember};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("klaus");
    /// # let (dim, dtype, model) = (2.try_into()?, Dtype::F32, None);
    /// # let store = Store::create(path, &CreateOptions { dim, dtype, model })?;
    /// # let remember = |draft| -> Result<u64, Box<dyn std::error::Error>> {
    /// #     Ok(Remember::new(&store, None, vec![draft])?.append(&store)?.start)
    /// # };
    /// # let known = |text: &str| Draft {
    /// #     importance: Importance::Given(5.0), embedding: Embedding::None, ..Draft::new(text, 0)
    /// # };
    /// let reads = remember(known("Klaus reads"))?;
    /// let writes = remember(known("Klaus writes"))?;
    /// let works = remember(Draft {
    ///     kind: Kind::REFLECTION,
    ///     evidence: vec![Reference::Id(writes), Reference::Id(reads)],
    ///     depth: depth(&store.snapshot(), &[writes, reads]),
    ///     ..known("Klaus works hard")
    /// })?;
    /// store.delete(&[writes])?;
    ///
    /// let graph = Graph::of(&store.snapshot())?;
    /// assert!(graph.cites(works).eq([Citation::Deleted(writes), Citation::Live(reads)]));
    /// assert!(graph.cited_by(reads).eq([works]));
    /// assert_eq!(graph.integrity(&Rules::default())?.counts()["deleted"], 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(snapshot: &Snapshot) -> Result<Graph, ReadError> {
        let mut graph = Graph {
            snapshot: snapshot.clone(),
            ends: Vec::with_capacity(snapshot.rows()),
            citations: Vec::new(),
            missing: Vec::new(),
            backward: Vec::new(),
            looks_ahead: false,
        };
        for row in 0..snapshot.rows() {
            if snapshot.is_live(row) {
                let own = snapshot.id(row);
                for reference in snapshot.evidence(row)? {
                    graph.add(own, reference);
                }
            }
            graph.ends.push(graph.citations.len());
        }
        graph.backward.sort_unstable();
        graph.backward.dedup();
        Ok(graph)
    }

    fn add(&mut self, own: u64, reference: Reference) {
        let target = match reference {
            Reference::Id(id) => {
                self.backward.push((id, own));
                if self.snapshot.row_of_id(id).is_some() {
                    self.looks_ahead |= id > own;
                    Target::Live(id)
                } else if id < self.snapshot.next_id() {
                    Target::Deleted(id)
                } else {
                    Target::Unknown(id)
                }
            }
            Reference::Missing(text) => {
                self.missing.push(text);
                Target::Missing(self.missing.len() - 1)
            }
        };
        self.citations.push(target);
    }

    /// The snapshot that it is of.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// How many citations there are.
    pub fn len(&self) -> usize {
        self.citations.len()
    }

    /// Whether no memory cites anything.
    pub fn is_empty(&self) -> bool {
        self.citations.is_empty()
    }

    /// What the memory with an id cites, in its order. If there is no such memory: nothing.
    pub fn cites(&self, id: u64) -> impl Iterator<Item = Citation<'_>> {
        let row = self.snapshot.row_of_id(id);
        row.into_iter().flat_map(|row| self.row_cites(row))
    }

    /// The ids of the memories that cite an id, ascending, each once. It may name no memory: then these are what was
    /// concluded from one that was deleted, or what cites a memory to come.
    pub fn cited_by(&self, id: u64) -> impl Iterator<Item = u64> {
        let from = self.backward.partition_point(|&(cited, _)| cited < id);
        let to = self.backward.partition_point(|&(cited, _)| cited <= id);
        self.backward[from..to].iter().map(|&(_, citing)| citing)
    }

    /// The ids that are cited, ascending, each once, whether they name memories or not.
    pub(super) fn cited(&self) -> impl Iterator<Item = u64> {
        let groups = self.backward.chunk_by(|a, b| a.0 == b.0);
        groups.map(|group| group[0].0)
    }

    /// What the memory in a row cites, in its order.
    pub(super) fn row_cites(&self, row: usize) -> impl Iterator<Item = Citation<'_>> {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        let targets = self.citations[start..self.ends[row]].iter();
        targets.map(|&target| match target {
            Target::Live(id) => Citation::Live(id),
            Target::Deleted(id) => Citation::Deleted(id),
            Target::Unknown(id) => Citation::Unknown(id),
            Target::Missing(at) => Citation::Missing(&self.missing[at]),
        })
    }

    pub(super) fn looks_ahead(&self) -> bool {
        self.looks_ahead
    }
}
