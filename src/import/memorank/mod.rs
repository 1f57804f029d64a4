//! An [export](crate::export) back into a store.

mod document;
pub(super) mod memories;
mod vectors;

use super::archive::others;
use super::destination::{self, Rows};
use super::report::{Report, Tally, shortened};
use super::{ImportError, Place, Plan, Sink};
use crate::export::{EMBEDDINGS, Importance, MEMORIES, STORE, Summed, Touch};
use crate::kernel::Dtype;
use crate::store::{
    Agent, AppendError, ImportanceError, Kind, MemoryProblem, NewMemory, Snapshot, Store,
    TouchError,
};
use document::Document;
use memories::Memories;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::path::Path;
use vectors::Vectors;

/// Imports what [`export`](crate::export::export()) wrote to `dir` into a new store at `destination`: the same
/// memories under the same ids, with the same vectors, bit for bit, the same touches
/// and importances of every agent, kinds
/// in the same order and the same next id.
///
/// See [progress](crate::import#progress).
///
/// # Errors
/// Whatever in the [three files](crate::export#the-files) is not as they are written, naming the file and the
/// line or row; a checksum that is wrong though all else could be read, naming the file. Then there is no store.
///
/// ```
/// use memorank::kernel::Dtype;
/// use memorank::store::{CreateOptions, Store};
/// use memorank::{export::export, import};
///
/// let temporary = tempfile::tempdir()?;
/// let [first, plain, second] = ["first", "plain", "second"].map(|name| temporary.path().join(name));
/// let options = CreateOptions { dim: 2.try_into()?, dtype: Dtype::F16, model: None };
/// let store = Store::create(&first, &options)?;
/// export(&store.snapshot(), &plain)?;
/// let report = import::memorank(&plain, &second, &mut |_, _| ())?;
/// assert_eq!(report.memories, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn memorank(
    dir: &Path,
    destination: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, ImportError> {
    destination::check(destination)?;
    let export = Export::open(dir)?;
    let options = export.plan.store();
    destination::create(destination, &options, |store| {
        export.fill(dir, store, progress)
    })
}

struct Export {
    plan: Plan,
    document: Document,
    kinds: Vec<Kind>,
    vectors: Vectors,
    memories: Memories<BufReader<Summed<File>>>,
    not_imported: Vec<String>,
}

impl Export {
    fn open(dir: &Path) -> Result<Export, ImportError> {
        let path = dir.join(STORE);
        let document = Document::read(&path)?;
        let wrong = |field, found: String, expected| ImportError::Field {
            place: Place {
                path: path.clone(),
                item: "the document".to_owned(),
            },
            field,
            found,
            expected,
        };
        let dim = usize::try_from(document.dim).ok();
        let Some(dim) = dim.and_then(NonZeroUsize::new) else {
            let found = document.dim.to_string();
            return Err(wrong("dim", found, "a number above 0"));
        };
        let dtype = match document.dtype.as_str() {
            "f16" => Dtype::F16,
            "f32" => Dtype::F32,
            other => {
                let found = format!("{:?}", shortened(other));
                return Err(wrong("dtype", found, "\"f16\" or \"f32\""));
            }
        };
        let mut distinct = HashSet::new();
        if let Some(again) = (document.kinds.iter()).find(|kind| !distinct.insert(kind.as_str())) {
            let found = format!("{:?} twice", shortened(again));
            return Err(wrong("kinds", found, "names that differ"));
        }
        let kinds: Vec<Kind> = document.kinds.iter().map(Kind::named).collect();
        let plan = Plan {
            dim,
            dtype,
            dtype_reason: "as in the store that was exported".to_owned(),
            model: document.model.clone(),
        };
        Ok(Export {
            vectors: Vectors::open(&dir.join(EMBEDDINGS), &plan, document.memories)?,
            memories: Memories::open(&dir.join(MEMORIES), &kinds)?,
            not_imported: others(dir, &[EMBEDDINGS, MEMORIES, STORE])?,
            plan,
            document,
            kinds,
        })
    }

    fn fill(
        mut self,
        dir: &Path,
        store: &Store,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Report, ImportError> {
        let mut tally = Tally::default();
        let mut rows = Rows::new(store, self.document.memories, progress)?;
        self.name_kinds(dir, &mut rows)?;
        self.feed(&mut rows, &mut tally)?;
        self.vectors.finish(self.document.files.embeddings)?;
        self.memories.finish(self.document.files.memories)?;
        rows.bulk.commit()?;
        touch(store, &dir.join(STORE), &self.document.touches)?;
        set_importances(store, &dir.join(STORE), &self.document.importances)?;
        Ok(tally.report("memorank", dir, self.not_imported, &self.plan))
    }

    fn name_kinds(&self, dir: &Path, rows: &mut Rows<'_, '_>) -> Result<(), ImportError> {
        match rows.bulk.name_kinds(&self.kinds) {
            Ok(_) => Ok(()),
            Err(AppendError::Refused { problem, .. }) => Err(ImportError::Refused {
                place: Place {
                    path: dir.join(STORE),
                    item: "`kinds`".to_owned(),
                },
                problem,
            }),
            Err(other) => Err(other.into()),
        }
    }

    fn feed(&mut self, rows: &mut Rows<'_, '_>, tally: &mut Tally) -> Result<(), ImportError> {
        let next_id = self.document.next_id;
        let (mut row, mut superseded) = (0, Vec::new());
        while let Some(line) = self.memories.next()? {
            if row == self.vectors.rows() {
                let lines = self.memories.count_all()?;
                return Err(self.counts(lines));
            }
            self.vectors.advance()?;
            skip_to(line.id, next_id, &line.place, rows)?;
            let memory = NewMemory {
                key: line.key.as_deref(),
                kind: line.kind,
                text: &line.text,
                embedding: embedding(line.has_embedding, self.vectors.values(), &line.place)?,
                created: line.created,
                last_access: line.last_access,
                expiry: line.expiry,
                importance: line.importance,
                evidence: &line.evidence,
                depth: line.depth,
                supersedes: None,
                payload: &line.payload,
            };
            rows.push(&line.place, &memory)
                .map_err(|error| match error {
                    ImportError::Refused { problem, .. } if is_of_vector(&problem) => {
                        let place = self.vectors.place(row);
                        ImportError::Refused { place, problem }
                    }
                    other => other,
                })?;
            tally.count(&memory);
            let by = line.superseded_by;
            superseded.extend(by.map(|by| (line.place, line.id, by)));
            row += 1;
        }
        if row != self.vectors.rows() {
            return Err(self.counts(row));
        }
        rows.bulk.skip_ids_to(next_id)?;
        for (place, id, by) in superseded {
            supersede(id, by, place, rows)?;
        }
        Ok(())
    }

    fn counts(&self, lines: u64) -> ImportError {
        ImportError::Counts {
            npy: self.vectors.path().to_owned(),
            rows: self.vectors.rows(),
            jsonl: self.memories.path().to_owned(),
            lines,
        }
    }
}

/// Gives the next memory the id of its line.
fn skip_to(
    id: u64,
    next_id: u64,
    place: &Place,
    rows: &mut Rows<'_, '_>,
) -> Result<(), ImportError> {
    let wrong = |expected| {
        Err(ImportError::Field {
            place: place.clone(),
            field: "id",
            found: id.to_string(),
            expected,
        })
    };
    if id >= next_id {
        return wrong("one below the `next_id` of store.json");
    }
    match rows.bulk.skip_ids_to(id) {
        Ok(_) => Ok(()),
        Err(AppendError::IdsGoBack { .. }) => wrong("one above that of the line before"),
        Err(other) => Err(other.into()),
    }
}

/// Takes note of what corrects a memory.
fn supersede(id: u64, by: u64, place: Place, rows: &mut Rows<'_, '_>) -> Result<(), ImportError> {
    match rows.bulk.supersede(id, by) {
        Ok(_) => Ok(()),
        Err(AppendError::Refused { problem, .. }) => Err(ImportError::Refused { place, problem }),
        Err(other) => Err(other.into()),
    }
}

/// The row of a memory, if it has a vector.
fn embedding<'a>(
    has_embedding: bool,
    values: &'a [f32],
    place: &Place,
) -> Result<Option<&'a [f32]>, ImportError> {
    match has_embedding {
        true => Ok(Some(values)),
        false if values.iter().all(|value| value.to_bits() == 0) => Ok(None),
        false => Err(ImportError::Field {
            place: place.clone(),
            field: "has_embedding",
            found: "false".to_owned(),
            expected: "true, for the row of embeddings.npy is not all zeros",
        }),
    }
}

/// Whether a memory is refused for its vector.
fn is_of_vector(problem: &MemoryProblem) -> bool {
    matches!(
        problem,
        MemoryProblem::NonFinite { .. }
            | MemoryProblem::F16Overflow { .. }
            | MemoryProblem::Length { .. }
    )
}

/// Touches the memories of a new store.
fn touch(store: &Store, path: &Path, touches: &[Touch]) -> Result<(), ImportError> {
    let snapshot = store.snapshot();
    let mut order = Order::new(&snapshot);
    for (at, touch) in touches.iter().enumerate() {
        let &Touch {
            agent,
            id,
            last_access,
        } = touch;
        let item = || format!("touch {at} (of memory {id} by agent {agent})");
        let wrong = |field, found, expected| wrong_item(path, item(), field, found, expected);
        let row =
            (order.row(agent, id)).map_err(|expected| wrong("id", id.to_string(), expected))?;
        if last_access.0 <= snapshot.last_access_at_append(row) {
            let found = super::timestamp::format_us(last_access.0);
            let expected = "later than the one that the memory was stored with";
            return Err(wrong("last_access", found, expected));
        }
    }
    // What one agent retrieved at one moment is one record.
    let mut touches: Vec<_> = (touches.iter())
        .map(|touch| (touch.agent, touch.last_access.0, touch.id))
        .collect();
    touches.sort_unstable();
    for together in touches.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (agent, now, _) = together[0];
        let ids: Vec<u64> = together.iter().map(|&(_, _, id)| id).collect();
        store
            .touch(Agent(agent), &ids, now)
            .map_err(|error| match error {
                TouchError::Write(error) => AppendError::from(error),
                other => unreachable!("every id was found: {other}"),
            })?;
    }
    Ok(())
}

/// Gives the memories of a new store the importances that agents have of their own.
fn set_importances(
    store: &Store,
    path: &Path,
    importances: &[Importance],
) -> Result<(), ImportError> {
    let snapshot = store.snapshot();
    let mut order = Order::new(&snapshot);
    let mut together: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for (at, own) in importances.iter().enumerate() {
        let &Importance {
            agent,
            id,
            importance,
        } = own;
        let item = || format!("importance {at} (of memory {id} for agent {agent})");
        let wrong = |field, found, expected| wrong_item(path, item(), field, found, expected);
        let row =
            (order.row(agent, id)).map_err(|expected| wrong("id", id.to_string(), expected))?;
        let found = importance.to_string();
        let Some(importance) = memories::exact(importance) else {
            return Err(wrong("importance", found, memories::IMPORTANCE));
        };
        if importance == snapshot.importance(row) {
            let expected = "another than the one that the memory was stored with";
            return Err(wrong("importance", found, expected));
        }
        let ids = together.entry((agent, importance.to_bits())).or_default();
        ids.push(id);
    }
    // What is the same importance for one agent is one record.
    for ((agent, importance), ids) in together {
        let importance = Some(f32::from_bits(importance));
        store
            .set_importance(Agent(agent), &ids, importance)
            .map_err(|error| match error {
                ImportanceError::Write(error) => AppendError::from(error),
                other => unreachable!("every id was found, every importance is finite: {other}"),
            })?;
    }
    Ok(())
}

/// Finds the rows of a list that ascends by agent and id.
struct Order<'a> {
    snapshot: &'a Snapshot,
    before: Option<(u32, u64)>,
}

impl Order<'_> {
    fn new(snapshot: &Snapshot) -> Order<'_> {
        Order {
            snapshot,
            before: None,
        }
    }

    /// The row of the next item's memory, or what its id should be.
    fn row(&mut self, agent: u32, id: u64) -> Result<usize, &'static str> {
        let row = self.snapshot.row_of_id(id).ok_or("the id of a memory")?;
        let before = self.before.replace((agent, id));
        match before < Some((agent, id)) {
            true => Ok(row),
            false => Err("after the item before, by agent and id"),
        }
    }
}

fn wrong_item(
    path: &Path,
    item: String,
    field: &'static str,
    found: String,
    expected: &'static str,
) -> ImportError {
    let path = path.to_owned();
    ImportError::Field {
        place: Place { path, item },
        field,
        found,
        expected,
    }
}
