//! The store as the workload calls it: all that is to be changed when the store's face changes.

use crate::workload::model::{Given, Op, Row, Setup, State};
use memorank::store::files::Files;
use memorank::store::{
    AppendError, CreateError, CreateOptions, OpenError, OpenOptions, Store, TouchError, WriteError,
    verify_on,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Where the store is in the simulated file system.
pub const PATH: &str = "/data/store";

/// Agents that touch. The store keeps one last access yet.
pub const AGENTS: &[u32] = &[0];

/// Whether the store can do these yet.
pub const DELETES: bool = false;
pub const COMPACTS: bool = false;

/// Whether a handle goes on after a write that failed.
pub const GOES_ON: bool = false;

/// Whether a handle makes the store's own name durable before its first promise, as it must if the sync after
/// its creation failed.
pub const SYNCS_OWN_NAME: bool = false;

/// Why an operation failed.
#[derive(Debug)]
pub enum Failed {
    /// It surely did not happen, and nothing else will with this handle.
    Poisoned,
    /// It may have happened, as far as its caller can tell.
    Perhaps,
}

/// Whether the operation, once it has returned, survives a power cut, with all before it.
pub fn promises(_setup: &Setup, op: &Op) -> bool {
    match op {
        Op::Append(_) | Op::Sync | Op::Checkpoint | Op::Compact | Op::Reopen => true,
        Op::Bulk { commit, .. } => *commit,
        // A touch is synced at once: it would not come before a later append otherwise.
        Op::Touch { .. } => true,
        Op::Delete(_) => true,
        Op::Create => true,
        Op::Kill | Op::Look => false,
    }
}

pub fn create(files: Arc<dyn Files>, setup: &Setup) -> Result<Store, CreateError> {
    let options = CreateOptions {
        dim: setup.dim,
        dtype: setup.dtype,
        model: None,
    };
    Store::create_on(files, PATH, &options)
}

pub fn open(files: Arc<dyn Files>, setup: &Setup, read_only: bool) -> Result<Store, OpenError> {
    let options = OpenOptions {
        read_only,
        verify: false,
        in_memory: setup.in_memory,
    };
    Store::open_on(files, PATH, &options)
}

/// Whether there is no store at all, as before its creation.
pub fn is_none(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::Missing { .. } | OpenError::NotAStore { .. }
    )
}

/// Fails if anything in the store's files is damaged.
pub fn verify(files: &dyn Files) {
    let report = verify_on(files, Path::new(PATH)).expect("verify reads the store");
    assert!(report.is_sound(), "{report:?}");
}

/// The ids of what was appended; nothing for other operations.
pub fn apply(store: &mut Store, op: &Op) -> Result<Option<u64>, Failed> {
    match op {
        Op::Append(memories) => {
            let memories: Vec<_> = memories.iter().map(Given::borrowed).collect();
            Ok(Some(store.append(&memories)?.start))
        }
        Op::Bulk { memories, commit } => {
            let mut bulk = store.bulk()?;
            for memory in memories {
                bulk.push(&memory.borrowed())?;
            }
            match commit {
                true => Ok(Some(bulk.commit()?.start)),
                false => Ok(None),
            }
        }
        Op::Touch { ids, now, .. } => {
            let row = |&id: &u64| store.row_of_id(id).expect("nothing is deleted") as u32;
            let rows: Vec<u32> = ids.iter().map(row).collect();
            store.touch(&rows, *now)?;
            store.sync()?;
            Ok(None)
        }
        Op::Sync | Op::Checkpoint => {
            check_poison(store)?;
            store.sync()?;
            Ok(None)
        }
        Op::Delete(_) | Op::Compact => unreachable!("the store cannot yet"),
        Op::Create | Op::Reopen | Op::Kill | Op::Look => unreachable!("the workload does"),
    }
}

pub fn close(mut store: Store) -> Result<(), Failed> {
    check_poison(&mut store)?;
    Ok(store.close()?)
}

/// A sync with nothing to do says nothing of an append that failed.
fn check_poison(store: &mut Store) -> Result<(), Failed> {
    drop(store.bulk()?);
    Ok(())
}

/// All that the store holds.
pub fn observe(store: &Store) -> State {
    let mut rows = BTreeMap::new();
    for row in 0..store.len() {
        let memory = store.memory(row).expect("the row can be read");
        let given = Given {
            key: memory.key.map(str::to_owned),
            kind: memory.kind.clone(),
            text: memory.text.to_owned(),
            embedding: store.embedding(row),
            created: memory.created,
            last_access: 0,
            expiry: memory.expiry,
            importance: memory.importance,
            evidence: memory.evidence.clone(),
            depth: memory.depth,
            payload: memory.payload.to_vec(),
        };
        assert_eq!(memory.has_embedding, given.embedding.is_some());
        assert_eq!(store.row_of_id(memory.id), Some(row));
        let last_access = vec![store.last_access()[row]];
        let given = Arc::new(given);
        rows.insert(memory.id, Row { given, last_access });
    }
    for (id, row) in &rows {
        if let Some(key) = &row.given.key {
            let found = store.row_of_key(key).expect("keys can be read");
            assert_eq!(found, store.row_of_id(*id));
        }
    }
    State {
        rows,
        next_id: store.next_id(),
    }
}

impl From<WriteError> for Failed {
    fn from(error: WriteError) -> Failed {
        match error {
            WriteError::Poisoned { .. } => Failed::Poisoned,
            _ => Failed::Perhaps,
        }
    }
}

impl From<AppendError> for Failed {
    fn from(error: AppendError) -> Failed {
        match error {
            AppendError::Write(error) => error.into(),
            other => unreachable!("the workload gives only what can be stored: {other}"),
        }
    }
}

impl From<TouchError> for Failed {
    fn from(error: TouchError) -> Failed {
        match error {
            TouchError::Write(error) => error.into(),
            other => unreachable!("the workload touches only what there is: {other}"),
        }
    }
}
