//! Memories, stores, and their exports.

#[path = "../common/owned.rs"]
mod owned;

pub use owned::Owned;

use memorank::Par;
use memorank::export::{ExportReport, export};
use memorank::import::{ImportError, Report, memorank};
use memorank::kernel::Dtype;
use memorank::scoring::{Preset, Ranking, Workspace};
use memorank::store::{Agent, CreateOptions, Kind, Memory, OpenOptions, Snapshot, Store};
use memorank::stream::{Ask, rank};
use std::fs;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

pub const FILES: [&str; 3] = ["embeddings.npy", "memories.jsonl", "store.json"];

/// The plainest memory of one text.
pub fn plain(text: &str, embedding: Option<&[f32]>) -> Owned {
    Owned {
        key: None,
        kind: Kind::OBSERVATION,
        text: text.into(),
        embedding: embedding.map(<[f32]>::to_vec),
        created: 1_676_246_400_000_000,
        last_access: 1_676_246_400_000_000,
        expiry: None,
        importance: 1.0,
        evidence: vec![],
        depth: 0,
        supersedes: None,
        payload: vec![],
    }
}

pub fn append(store: &Store, memories: &[Owned]) -> std::ops::Range<u64> {
    let memories: Vec<_> = memories.iter().map(Owned::borrowed).collect();
    store.append(&memories).unwrap()
}

/// A folder with a new store in it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        // Thousands of small stores are made here, and nothing is about disks.
        let in_memory = tempfile::tempdir_in("/dev/shm");
        Folder(in_memory.or_else(|_| tempfile::tempdir()).unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn create(&self, name: &str, dim: usize, dtype: Dtype) -> Store {
        let options = CreateOptions {
            dim: dim.try_into().unwrap(),
            dtype,
            model: Some("a \"model\"".into()),
        };
        Store::create(self.path(name), &options).unwrap()
    }

    pub fn export(&self, snapshot: &Snapshot, name: &str) -> ExportReport {
        let dir = self.path(name);
        let report = export(snapshot, &dir).unwrap();
        let bytes: u64 = files(&dir).iter().map(|bytes| bytes.len() as u64).sum();
        assert_eq!(report.bytes, bytes);
        report
    }

    /// Either there is a store then, or nothing.
    pub fn import(&self, name: &str, store: &str) -> Result<Report, ImportError> {
        let names = |folder: &Folder| {
            let entries = fs::read_dir(folder.0.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let mut before = names(self);
        let outcome = memorank(&self.path(name), &self.path(store), &mut |_, _| ());
        if outcome.is_ok() {
            before.push(store.into());
            before.sort();
        }
        assert_eq!(names(self), before);
        outcome
    }

    /// A store with all its checks.
    pub fn open(&self, name: &str) -> Snapshot {
        let options = OpenOptions {
            read_only: true,
            verify: true,
            ..OpenOptions::default()
        };
        let store = Store::open_with(self.path(name), &options).unwrap();
        store.snapshot()
    }

    /// The export called `from` once more, changed, and its checksums right.
    pub fn edited(&self, from: &str, to: &str, edit: impl FnOnce(&mut [String; 2], &mut Vec<u8>)) {
        let [mut npy, jsonl, json] = files(&self.path(from));
        let mut texts = [jsonl, json].map(|bytes| String::from_utf8(bytes).unwrap());
        edit(&mut texts, &mut npy);
        let [jsonl, json] = texts;
        self.write(to, &npy, &jsonl, &sealed(&json, &npy, &jsonl));
    }

    pub fn write(&self, name: &str, npy: &[u8], jsonl: &str, json: &str) {
        let dir = self.path(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        for (file, bytes) in FILES.iter().zip([npy, jsonl.as_bytes(), json.as_bytes()]) {
            fs::write(dir.join(file), bytes).unwrap();
        }
    }
}

/// A `store.json` with the checksums of these files and its own.
fn sealed(json: &str, npy: &[u8], jsonl: &str) -> String {
    let mut lines: Vec<String> = json.lines().map(str::to_owned).collect();
    for (file, bytes) in [(FILES[0], npy), (FILES[1], jsonl.as_bytes())] {
        let line = lines.iter_mut().find(|line| line.contains(file));
        if let Some(line) = line {
            let at = line.find(": \"").unwrap() + 3;
            line.replace_range(at..at + 16, &format!("{:016x}", xxh3_64(bytes)));
        }
    }
    lines.truncate(lines.len() - 2);
    let start = lines.join("\n") + "\n";
    let sum = xxh3_64(start.as_bytes());
    format!("{start}  \"xxh3\": \"{sum:016x}\"\n}}\n")
}

/// The files of an export, which has no others.
pub fn files(dir: &Path) -> [Vec<u8>; 3] {
    assert_eq!(fs::read_dir(dir).unwrap().count(), 3);
    FILES.map(|file| fs::read(dir.join(file)).unwrap())
}

pub fn rows(snapshot: &Snapshot) -> impl Iterator<Item = usize> {
    (0..snapshot.rows()).filter(|&row| snapshot.is_live(row))
}

/// Every field of every memory that is there, bit for bit, and what is said of all of them.
pub fn assert_same(a: &Snapshot, b: &Snapshot) {
    assert_eq!(
        (a.len(), a.dim(), a.dtype(), a.model(), a.next_id()),
        (b.len(), b.dim(), b.dtype(), b.model(), b.next_id())
    );
    assert_eq!(a.kinds(), b.kinds());
    let mut agents: Vec<Agent> = a.agents().collect();
    assert_eq!(agents, b.agents().collect::<Vec<_>>());
    agents.extend([Agent::OWN, Agent(3)]);
    for (row_a, row_b) in rows(a).zip(rows(b)) {
        let memories = [(a, row_a), (b, row_b)].map(|(snapshot, row)| {
            let Memory { importance, .. } = snapshot.memory(row).unwrap();
            (
                snapshot.memory(row).unwrap(),
                importance.to_bits(),
                snapshot.kind_index(row),
                snapshot.last_access_at_append(row),
                elements(snapshot, row),
            )
        });
        assert_eq!(memories[0], memories[1]);
        for &agent in &agents {
            let [of_a, of_b] = [(a, row_a), (b, row_b)].map(|(s, row)| s.last_access(agent, row));
            assert_eq!(of_a, of_b, "row {row_a}, {agent:?}");
        }
    }
    let (middle, dim) = (1_676_246_400_000_000, a.dim().get());
    let embedding: Vec<f32> = (0..dim).map(|at| 1.0 - 0.3 * at as f32).collect();
    for &agent in &agents {
        for now in [i64::MIN, middle, i64::MAX] {
            let [of_a, of_b] = [a, b].map(|s| ranked(s, agent, &embedding, now));
            assert_eq!(of_a, of_b, "{agent:?} at {now}");
        }
    }
}

/// An embedding's bits, and its inverse norm's.
fn elements(snapshot: &Snapshot, row: usize) -> (Option<Vec<u32>>, u32) {
    let bits = |elements: Vec<f32>| elements.into_iter().map(f32::to_bits).collect();
    let mut segments = snapshot.segments(Agent::OWN);
    let segment = segments.find(|segment| segment.rows().contains(&row));
    let segment = segment.unwrap();
    let inv_norm = segment.inv_norms[row - segment.first_row];
    (snapshot.embedding(row).map(bits), inv_norm.to_bits())
}

/// Ids and the bits of all that a ranking says of them.
pub fn ranked(
    snapshot: &Snapshot,
    agent: Agent,
    embedding: &[f32],
    now: i64,
) -> Vec<(u64, u64, String)> {
    let preset = Preset {
        k: usize::MAX,
        ..Preset::paper()
    };
    let ask = Ask {
        agent,
        ..Ask::new(embedding, now, &preset)
    };
    let (mut workspace, mut ranking) = (Workspace::new(), Ranking::default());
    rank(snapshot, &ask, Par::Serial, &mut workspace, &mut ranking).unwrap();
    let hits = ranking.hits.iter();
    hits.map(|hit| {
        let id = snapshot.id(hit.row);
        let components = format!("{:?}", (hit.relevance, hit.recency, hit.importance));
        (id, hit.score.to_bits(), components)
    })
    .collect()
}
