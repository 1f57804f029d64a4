//! What the fuzz targets share: what they make of an input, a small store as bytes, and looking at all of one.

use memorank::Par;
use memorank::scoring::{Preset, Ranking, Workspace};
use memorank::store::files::{Files, InMemory, What};
use memorank::store::{
    Agent, CreateOptions, Kind, NewMemory, OpenOptions, Reference, Snapshot, Store, verify_on,
};
use memorank::stream::{self, Ask};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Where stores are, in their file systems.
pub const STORE: &str = "/store";

/// An embedding of the example's.
pub const EMBEDDING_BYTES: usize = 2 * size_of::<f32>();

const HEADER_BYTES: usize = 64;

static EXAMPLE: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(example);

/// The example's journal.
static JOURNAL: LazyLock<&[u8]> = LazyLock::new(|| {
    let journal = EXAMPLE.iter().find(|(path, _)| is_named(path, "journal."));
    &journal.expect("the example has one").1
});

fn is_named(path: &Path, start: &str) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(start)
}

/// The example, but for the file whose name starts so.
pub fn example_with(start: &str, bytes: Vec<u8>) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = EXAMPLE.clone();
    let file = files.iter_mut().find(|(path, _)| is_named(path, start));
    file.expect("the example has one").1 = bytes;
    files
}

/// A manifest: the first byte says whether the rest is all of it, or a body that gets the right checksum.
pub fn manifest(bytes: &[u8]) -> Option<Vec<u8>> {
    let (how, rest) = bytes.split_first()?;
    Some(match how % 2 {
        0 => rest.to_vec(),
        _ => {
            let head = format!("memorank store 1 {:016x} {}\n", xxh3_64(rest), rest.len());
            [head.as_bytes(), rest].concat()
        }
    })
}

/// A segment of the example's journal. The first byte says whether the rest comes after some of what is there, or
/// is bodies of records, that get their heads and right checksums.
pub fn journal(bytes: &[u8]) -> Option<Vec<u8>> {
    let (&how, mut rest) = bytes.split_first()?;
    let mut segment = JOURNAL.to_vec();
    if how % 2 == 0 {
        let keep = segment.len().min(HEADER_BYTES + usize::from(how) * 4);
        segment.truncate(keep);
        segment.extend_from_slice(rest);
        return Some(segment);
    }
    let u64_at =
        |bytes: &[u8], at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let (mut sequence, salt) = (u64_at(&segment, 32), u64_at(&segment, 48));
    segment.truncate(HEADER_BYTES);
    while let [durable, low, high, body @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(body.len());
        let (body, after) = body.split_at(len);
        let durable = match durable {
            0 => 0,
            1 => segment.len() as u64,
            other => u64::from(*other) * 8,
        };
        let mut head = Vec::from(*b"MRJ1");
        head.extend((body.len() as u32).to_le_bytes());
        head.extend(sequence.to_le_bytes());
        head.extend(durable.to_le_bytes());
        let mut sum = Xxh3::with_seed(salt);
        sum.update(&head);
        sum.update(body);
        head.extend(sum.digest().to_le_bytes());
        segment.extend(head);
        segment.extend_from_slice(body);
        sequence += 1;
        rest = after;
    }
    Some(segment)
}

/// Lines that fit a matrix of three rows.
pub const LINES: &[u8] = br#"{"text":"a","created":"2023-02-13T00:00:00Z","importance":1}
{"text":"a","created":"2023-02-13T00:00:00Z","importance":1}
{"text":"a","created":"2023-02-13T00:00:00Z","importance":1}
"#;

/// A `.npy` file of one row or two, of one element each.
pub fn matrix(rows: u8) -> &'static [u8] {
    static MATRICES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
        [1, 2].map(|rows| {
            let dictionary =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 1), }}");
            let padded = format!("{dictionary:<117}\n");
            let mut matrix = b"\x93NUMPY\x01\x00v\x00".to_vec();
            matrix.extend(padded.bytes());
            (0..rows).for_each(|_| matrix.extend(1.0_f32.to_le_bytes()));
            matrix
        })
    });
    &MATRICES[usize::from(rows > 1)]
}

/// The nodes and the vectors of an archive: before and after the first line break.
pub fn archive(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut parts = bytes.splitn(2, |&b| b == b'\n');
    (parts.next().unwrap_or_default(), parts.next())
}

/// A memory with some of everything.
fn memory<'a>(
    key: &'a str,
    embedding: Option<&'a [f32]>,
    evidence: &'a [Reference],
) -> NewMemory<'a> {
    NewMemory {
        key: Some(key),
        kind: Kind::OBSERVATION,
        text: "the coffee is ready",
        embedding,
        created: 1,
        last_access: 2,
        expiry: Some(3),
        importance: 4.0,
        evidence,
        depth: 0,
        supersedes: None,
        payload: b"{\"a\":1}",
    }
}

/// A store of two dimensions with two memories in its columns and one in its journal, as files.
fn example() -> Vec<(PathBuf, Vec<u8>)> {
    let files = Arc::new(InMemory::new());
    let options = CreateOptions {
        dim: 2.try_into().expect("not 0"),
        dtype: memorank::kernel::Dtype::F32,
        model: Some("model".into()),
    };
    let store = Store::create_on(files.clone(), STORE, &options).expect("a new file system");
    let evidence = [Reference::Id(0), Reference::Missing("gone".into())];
    let [one, two] = [[0.6, 0.8], [1.0, 0.0]];
    store
        .append(&[memory("a", Some(&one), &[])])
        .expect("sound");
    store
        .append(&[memory("b", None, &evidence)])
        .expect("sound");
    store.touch(Agent::OWN, &[0], 9).expect("it is there");
    store.checkpoint().expect("there is room");
    let corrects = NewMemory {
        supersedes: Some(1),
        ..memory("c", Some(&two), &[])
    };
    store.append(&[corrects]).expect("sound");
    store.touch(Agent(7), &[0, 2], 10).expect("they are there");
    let dir = Path::new(STORE);
    let names = files.list(dir).expect("it is there");
    let paths = names.iter().map(|name| dir.join(name));
    let read = paths.map(|path| {
        let file = files.open(&path).expect("it is there");
        let mut bytes = vec![0; file.bytes().expect("known") as usize];
        let mut at = 0;
        while at < bytes.len() {
            at += file
                .read_at(at as u64, &mut bytes[at..])
                .expect("in memory");
        }
        (path, bytes)
    });
    read.collect()
}

/// A file system with these files.
pub fn place(all: &[(PathBuf, Vec<u8>)]) -> Arc<InMemory> {
    let files = Arc::new(InMemory::new());
    files.create_dir(Path::new(STORE)).expect("it is new");
    for (path, bytes) in all {
        let file = files.create_new(path).expect("it is new");
        let mut at = 0;
        while at < bytes.len() {
            at += file.write_at(at as u64, &bytes[at..]).expect("in memory");
        }
    }
    files
}

/// Opens what is there as a reader and as a writer, if it can be opened, and uses all of it.
pub fn use_all(files: &Arc<InMemory>) {
    let _ = verify_on(&**files, STORE).map(|report| report.is_sound());
    let read_only = OpenOptions {
        read_only: true,
        ..OpenOptions::default()
    };
    if let Ok(store) = Store::open_on(files.clone(), STORE, &read_only) {
        look(&store.snapshot());
        go_back(&store);
        assert!(store.sync().is_err(), "a reader has nothing to sync");
    }
    if let Ok(store) = Store::open_on(files.clone(), STORE, &OpenOptions::default()) {
        let before = store.snapshot();
        let embedding = vec![1.0; before.dim().get()];
        let appended = store.append(&[memory("another", Some(&embedding), &[])]);
        look(&store.snapshot());
        go_back(&store);
        let closed = store.close();
        if appended.is_ok() && closed.is_ok() {
            let again = Store::open_on(files.clone(), STORE, &read_only);
            let again = again.expect("what was closed can be opened").snapshot();
            assert_eq!(again.len(), before.len() + 1);
            look(&again);
        }
    }
    assert!(matches!(files.what(Path::new(STORE)), Ok(What::Directory)));
}

/// Looks at the store as each touch saw it.
fn go_back(store: &Store) {
    for (sequence, touched) in store.touches().unwrap_or_default() {
        if let Ok((before, again)) = store.before(sequence) {
            assert_eq!(again, touched);
            assert!(before.sequence() < sequence);
            look(&before);
        }
    }
}

/// Reads every memory and ranks them.
fn look(snapshot: &Snapshot) {
    for row in 0..snapshot.rows() {
        let memory = snapshot.memory(row);
        if let Ok(memory) = memory {
            assert_eq!(snapshot.row_of_id(memory.id), Some(row));
            assert_eq!(memory.has_embedding, snapshot.embedding(row).is_some());
        }
    }
    let mut ranking = Ranking::default();
    let embedding = vec![0.5; snapshot.dim().get()];
    let preset = Preset::paper();
    let ask = Ask::new(&embedding, 1_000, &preset);
    let mut workspace = Workspace::new();
    if stream::rank(snapshot, &ask, Par::Serial, &mut workspace, &mut ranking).is_ok() {
        assert!(ranking.hits.iter().all(|hit| hit.score.is_finite()));
    }
}

/// Imports whose source is a folder with these files, which may be anything.
pub fn import(
    files: &[(&str, &[u8])],
    import: impl FnOnce(&Path, &Path) -> Option<memorank::import::ImportError>,
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).expect("there is room");
    }
    let store = folder.path().join("store");
    match import(folder.path(), &store) {
        Some(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!store.exists(), "an import that failed left a store");
        }
        None => {
            let report = memorank::store::verify(&store).expect("it was just made");
            assert!(report.is_sound(), "{:?}", report.damages);
            look(
                &Store::open_read_only(&store)
                    .expect("it is sound")
                    .snapshot(),
            );
        }
    }
}
