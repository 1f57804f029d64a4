//! The store as the workload calls it: all that is to be changed when the store's face changes.

use crate::owned::Owned;
use crate::workload::model::{Op, Row, Setup, State};
use memorank::store::files::Files;
use memorank::store::{
    Agent, AppendError, CreateOptions, DeleteError, EmbedError, HistoryError, ImportanceError,
    OpenError, OpenOptions, Promise, ReadError, Store, TouchError, WriteError, verify_on,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Where the store is in the simulated file system.
pub const PATH: &str = "/data/store";

/// Agents that touch.
pub const AGENTS: &[u32] = &[0, 1, 7];

/// Why an operation failed.
#[derive(Debug)]
pub enum Failed {
    /// It surely did not happen, and nothing else will with this handle.
    Poisoned,
    /// It may have happened, as far as its caller can tell.
    Perhaps,
}

/// What an operation gave.
#[derive(Debug)]
pub enum Answer {
    Nothing,
    /// The first id of an append.
    First(u64),
    /// How many memories were there to be deleted.
    Deleted(usize),
}

/// Whether the operation, once it has returned and if it did anything, survives a power cut, with all
/// before it.
pub fn promises(setup: &Setup, op: &Op) -> bool {
    let on_disk = |promise| promise == Promise::OnDisk;
    match op {
        Op::Append(_) | Op::Delete(_) | Op::Importance { .. } | Op::Embed(_) => {
            on_disk(setup.durability.appends)
        }
        Op::Touch { .. } => on_disk(setup.durability.touches),
        Op::Bulk { commit, .. } => *commit,
        Op::Create | Op::Sync | Op::Checkpoint | Op::Compact | Op::Reopen => true,
        Op::Kill | Op::Look => false,
    }
}

pub fn create(files: Arc<dyn Files>, setup: &Setup) -> Result<Store, String> {
    let options = CreateOptions {
        dim: setup.dim,
        dtype: setup.dtype,
        model: None,
    };
    let store = Store::create_on(files.clone(), PATH, &options).map_err(|e| e.to_string())?;
    if setup.history_bytes > 0 {
        let kept = store.keep_history(setup.history_bytes);
        kept.map_err(|e| e.to_string())?;
    }
    store.close().map_err(|e| e.to_string())?;
    // With the options of the setup.
    open(files, setup, false).map_err(|e| e.to_string())
}

pub fn open(files: Arc<dyn Files>, setup: &Setup, read_only: bool) -> Result<Store, OpenError> {
    let options = OpenOptions {
        read_only,
        verify: false,
        in_memory: setup.in_memory,
        durability: setup.durability,
        checkpoint_bytes: setup.checkpoint_bytes,
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

/// Fails if anything in the store's files is damaged. Gives the number of column files.
pub fn verify(files: &dyn Files) -> usize {
    let report = verify_on(files, Path::new(PATH)).expect("verify reads the store");
    assert!(report.is_sound(), "{report:?}");
    report.files
}

pub fn apply(store: &Store, op: &Op) -> Result<Answer, Failed> {
    match op {
        Op::Append(memories) => {
            let memories: Vec<_> = memories.iter().map(Owned::borrowed).collect();
            return Ok(Answer::First(store.append(&memories)?.start));
        }
        Op::Bulk { memories, commit } => {
            let mut bulk = store.bulk()?;
            for memory in memories {
                bulk.push(&memory.borrowed())?;
            }
            if *commit {
                return Ok(Answer::First(bulk.commit()?.start));
            }
        }
        Op::Touch { agent, ids, now } => store.touch(Agent(*agent), ids, *now)?,
        Op::Importance {
            agent,
            ids,
            importance,
        } => {
            store.set_importance(Agent(*agent), ids, *importance)?;
        }
        Op::Embed(vectors) => {
            let vectors: Vec<_> = vectors.iter().map(|(id, v)| (*id, &v[..])).collect();
            store.embed(&vectors)?;
        }
        Op::Delete(ids) => return Ok(Answer::Deleted(store.delete(ids)?)),
        Op::Sync => store.sync()?,
        Op::Checkpoint => store.checkpoint()?,
        Op::Compact => store.compact()?,
        Op::Create | Op::Reopen | Op::Kill | Op::Look => unreachable!("the workload does"),
    }
    Ok(Answer::Nothing)
}

pub fn close(store: Store) -> Result<(), Failed> {
    Ok(store.close()?)
}

/// All that the store holds.
pub fn observe(store: &Store) -> State {
    let store = store.snapshot();
    let mut rows = BTreeMap::new();
    for at in 0..store.rows() {
        let memory = match store.memory(at) {
            Ok(memory) => memory,
            Err(ReadError::Deleted { .. }) => {
                assert!(!store.is_live(at));
                assert_eq!(store.row_of_id(store.id(at)), None);
                continue;
            }
            Err(error) => panic!("row {at} cannot be read: {error}"),
        };
        let given = Owned {
            key: memory.key.map(str::to_owned),
            kind: memory.kind.clone(),
            text: memory.text.to_owned(),
            embedding: store.embedding(at),
            created: memory.created,
            last_access: 0,
            expiry: memory.expiry,
            importance: store.importance(at),
            evidence: memory.evidence.clone(),
            depth: memory.depth,
            supersedes: None,
            payload: memory.payload.to_vec(),
        };
        if let Some(older) = memory.supersedes {
            let older = store.row_of_id(older).expect("it is there");
            assert_eq!(store.superseded_by(older), Some(memory.id));
        }
        assert_eq!(memory.has_embedding, given.embedding.is_some());
        assert_eq!(store.row_of_id(memory.id), Some(at));
        if let Some(key) = memory.key {
            let found = store.row_of_key(key).expect("keys can be read");
            assert_eq!(found, Some(at));
        }
        let last_access = AGENTS
            .iter()
            .map(|&agent| store.last_access(Agent(agent), at));
        let importance = AGENTS.iter().map(|&agent| {
            let importance = store.importance_of(Agent(agent), at);
            Some(importance).filter(|&importance| importance != given.importance)
        });
        let row = Row {
            last_access: last_access.collect(),
            importance: importance.collect(),
            superseded_by: memory.superseded_by,
            given: Arc::new(given),
        };
        rows.insert(memory.id, row);
    }
    assert_eq!(store.len(), rows.len());
    State {
        rows,
        next_id: store.next_id(),
    }
}

/// Fails if the store cannot go back to what each touch saw that its journal holds, unless that is for a reason that
/// may be.
pub fn go_back(store: &Store) {
    let touches = store.touches().expect("no segment is damaged");
    for (sequence, touched) in touches {
        match store.before(sequence) {
            Ok((before, again)) => {
                assert!(before.sequence() < sequence);
                assert_eq!(again, touched);
            }
            Err(
                HistoryError::NotKept { .. }
                | HistoryError::Gap { .. }
                | HistoryError::Compacted { .. },
            ) => {}
            Err(error) => panic!("no way back to record {sequence}: {error}"),
        }
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

impl From<EmbedError> for Failed {
    fn from(error: EmbedError) -> Failed {
        match error {
            EmbedError::Write(error) => error.into(),
            other => unreachable!("the workload embeds only what can be: {other}"),
        }
    }
}

impl From<ImportanceError> for Failed {
    fn from(error: ImportanceError) -> Failed {
        match error {
            ImportanceError::Write(error) => error.into(),
            other => unreachable!("the workload rates only what there is: {other}"),
        }
    }
}

impl From<DeleteError> for Failed {
    fn from(error: DeleteError) -> Failed {
        match error {
            DeleteError::Write(error) => error.into(),
            other => unreachable!("the workload deletes only what there was: {other}"),
        }
    }
}
