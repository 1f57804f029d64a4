//! The manifest: read with every field distrusted, written so that the old or the new one is there
//! whole after any crash.

use super::error::{OpenError, REPLACING, SYNCING, WriteError};
use super::files::{self, File, Files, What};
use super::format::{BLOCK_BYTES, Column, MANIFEST, MAX_DIM, MAX_KINDS, MAX_ROWS, VERSION};
use super::header::{HEADER_MAX, Header, parse_sum};
use crate::kernel::Dtype;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// What is committed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Manifest {
    pub(super) sequence: u64,
    pub(super) rows: u64,
    pub(super) dtype: Dtype,
    pub(super) dim: NonZeroUsize,
    pub(super) model: Option<String>,
    pub(super) next_id: u64,
    pub(super) kinds: Vec<String>,
    /// The last record of the journal that the columns hold.
    pub(super) journal_folded: u64,
    /// The segment that recovery starts at; 0: none.
    pub(super) journal_segment: u64,
    /// How much of it was durable when this was published.
    pub(super) journal_bytes: u64,
    /// How much of the journal is kept once it is folded.
    pub(super) history_bytes: u64,
    /// In the order of [`Column::ALL`].
    pub(super) columns: Vec<Entry>,
}

/// A column's file, its committed length and the checksum of each block.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) file: String,
    pub(super) bytes: u64,
    pub(super) sums: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    sequence: u64,
    rows: u64,
    dtype: String,
    dim: u64,
    model: Option<String>,
    next_id: u64,
    kinds: Vec<String>,
    journal_folded: u64,
    journal_segment: u64,
    journal_bytes: u64,
    history_bytes: u64,
    block_bytes: u64,
    columns: BTreeMap<String, BodyColumn>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyColumn {
    file: String,
    bytes: u64,
    sums: Vec<String>,
}

impl Manifest {
    /// The manifest of a store without rows.
    pub(super) fn new(dim: NonZeroUsize, dtype: Dtype, model: Option<String>) -> Manifest {
        let entry = |column: Column| Entry {
            file: column.file(dtype, column.is_written_anew().then_some(0)),
            bytes: 0,
            sums: Vec::new(),
        };
        Manifest {
            sequence: 0,
            rows: 0,
            dtype,
            dim,
            model,
            next_id: 0,
            kinds: Vec::new(),
            journal_folded: 0,
            journal_segment: 0,
            journal_bytes: 0,
            history_bytes: 0,
            columns: Column::ALL.into_iter().map(entry).collect(),
        }
    }

    pub(super) fn column(&self, column: Column) -> &Entry {
        &self.columns[column as usize]
    }

    /// Reads and checks the manifest in `dir`.
    pub(super) fn read(files: &dyn Files, dir: &Path) -> Result<Manifest, OpenError> {
        let path = dir.join(MANIFEST);
        let failed = |source: io::Error| match (source.kind(), is_directory(files, dir)) {
            (io::ErrorKind::NotFound, Ok(true)) => OpenError::NotAStore { path: dir.into() },
            (_, Err(e)) if e.kind() == io::ErrorKind::NotFound => {
                OpenError::Missing { path: dir.into() }
            }
            (_, Ok(false)) => OpenError::NotADirectory { path: dir.into() },
            _ => OpenError::io("opening", &path)(source),
        };
        let file = files.open(&path).map_err(failed)?;
        let len = (file.bytes()).map_err(OpenError::io("examining", &path))?;
        // Only a manifest is read whole, however large a foreign file may be.
        let mut bytes = Vec::new();
        read_up_to(&*file, HEADER_MAX, &mut bytes).map_err(OpenError::io("reading", &path))?;
        let header = Header::parse(&bytes, &path)?;
        let expected = header.bytes.saturating_add(header.body_bytes);
        let cut = |found: u64| OpenError::ManifestCut {
            path: path.clone(),
            expected,
            found,
        };
        if len < expected {
            return Err(cut(len));
        }
        read_up_to(&*file, expected, &mut bytes).map_err(OpenError::io("reading", &path))?;
        let Some(committed) = bytes.get(..expected as usize) else {
            return Err(cut(bytes.len() as u64));
        };
        let body = &committed[header.bytes as usize..];
        let found = xxh3_64(body);
        if found != header.sum {
            return Err(OpenError::ManifestChecksum {
                path,
                offset: header.bytes,
                expected: header.sum,
                found,
            });
        }
        let damaged = |offset: u64, what: String| OpenError::ManifestDamaged {
            path: path.clone(),
            offset,
            what,
        };
        let other = first_not_zero(&*file, expected).map_err(OpenError::io("reading", &path))?;
        if let Some(at) = other {
            let what = format!("neither zero nor part of the {expected} bytes of its first line");
            return Err(damaged(at, what));
        }
        let body: Body = serde_json::from_slice(body)
            .map_err(|e| damaged(header.bytes + offset_of(&e, body), e.to_string()))?;
        Manifest::check(body).map_err(|what| damaged(header.bytes, what))
    }

    /// A body that contradicts nothing, or what it contradicts.
    fn check(body: Body) -> Result<Manifest, String> {
        let dtype = match body.dtype.as_str() {
            "f16" => Dtype::F16,
            "f32" => Dtype::F32,
            other => return Err(format!("element type {other:?} is unknown")),
        };
        let dim = usize::try_from(body.dim).unwrap_or(usize::MAX);
        let dim = match NonZeroUsize::new(dim) {
            Some(dim) if dim.get() <= MAX_DIM => dim,
            _ => return Err(format!("dimension {} is not 1 to {MAX_DIM}", body.dim)),
        };
        let rows = body.rows;
        if rows > MAX_ROWS {
            return Err(format!("{rows} rows, at most {MAX_ROWS} are possible"));
        }
        if body.next_id < rows {
            return Err(format!("{rows} rows but next id {}", body.next_id));
        }
        if body.block_bytes != BLOCK_BYTES as u64 {
            return Err(format!("blocks of {} bytes", body.block_bytes));
        }
        let kinds = body.kinds.len();
        let distinct: HashSet<&str> = body.kinds.iter().map(String::as_str).collect();
        if kinds > MAX_KINDS || distinct.len() != kinds || distinct.contains("") {
            return Err(format!(
                "{kinds} kinds, {} of them distinct: at most {MAX_KINDS}, all distinct and named, \
                 are possible",
                distinct.len()
            ));
        }
        let mut found = body.columns;
        let mut columns = Vec::with_capacity(Column::COUNT);
        for column in Column::ALL {
            let name = column.name();
            let Some(BodyColumn { file, bytes, sums }) = found.remove(name) else {
                return Err(format!("column {name} is missing"));
            };
            if column.sequence_in(dtype, &file).is_none() {
                return Err(format!("column {name} in a file called {file:?}"));
            }
            if let Some(expected) = column.bytes_of(rows, dtype, dim)
                && expected != Some(bytes)
            {
                return Err(format!("column {name} has {bytes} bytes for {rows} rows"));
            }
            if isize::try_from(bytes).is_err() {
                return Err(format!(
                    "column {name} has {bytes} bytes: beyond this machine"
                ));
            }
            if sums.len() as u64 != bytes.div_ceil(BLOCK_BYTES as u64) {
                let sums = sums.len();
                return Err(format!("column {name}: {sums} checksums for {bytes} bytes"));
            }
            let sums: Option<Vec<u64>> = sums.iter().map(|sum| parse_sum(sum)).collect();
            let Some(sums) = sums else {
                return Err(format!("column {name}: a checksum that is none"));
            };
            columns.push(Entry { file, bytes, sums });
        }
        if let Some(name) = found.keys().next() {
            return Err(format!("column {name:?} is unknown"));
        }
        Ok(Manifest {
            sequence: body.sequence,
            rows,
            dtype,
            dim,
            model: body.model,
            next_id: body.next_id,
            kinds: body.kinds,
            journal_folded: body.journal_folded,
            journal_segment: body.journal_segment,
            journal_bytes: body.journal_bytes,
            history_bytes: body.history_bytes,
            columns,
        })
    }

    /// The sequence of the manifest after this one in the store at `dir`.
    pub(super) fn next_sequence(&self, dir: &Path) -> Result<u64, WriteError> {
        let next = self.sequence.checked_add(1);
        next.ok_or_else(|| WriteError::Exhausted { path: dir.into() })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let columns = Column::ALL.into_iter().zip(&self.columns);
        let columns = columns.map(|(column, entry)| {
            let sums = entry.sums.iter().map(|sum| format!("{sum:016x}"));
            let column_body = BodyColumn {
                file: entry.file.clone(),
                bytes: entry.bytes,
                sums: sums.collect(),
            };
            (column.name().to_owned(), column_body)
        });
        let body = Body {
            sequence: self.sequence,
            rows: self.rows,
            dtype: self.dtype.name().to_owned(),
            dim: self.dim.get() as u64,
            model: self.model.clone(),
            next_id: self.next_id,
            kinds: self.kinds.clone(),
            journal_folded: self.journal_folded,
            journal_segment: self.journal_segment,
            journal_bytes: self.journal_bytes,
            history_bytes: self.history_bytes,
            block_bytes: BLOCK_BYTES as u64,
            columns: columns.collect(),
        };
        let body = serde_json::to_vec(&body).expect("numbers, strings and string keys only");
        let header = Header::render(VERSION, xxh3_64(&body), body.len() as u64);
        [header.into_bytes(), body].concat()
    }

    /// Makes this the store's manifest. Everything it names has been synced. An error that does not
    /// [poison](WriteError::poisons) leaves the one before.
    pub(super) fn publish(&self, files: &dyn Files, dir: &Path) -> Result<(), WriteError> {
        let (pid, sequence) = (std::process::id(), self.sequence);
        let temporary = dir.join(format!("{MANIFEST}.{pid}.{sequence}.tmp"));
        let written = self.write(files, &temporary).and_then(|()| {
            // The files it names have their names for good, too.
            sync_directory(files, dir)
        });
        if let Err(error) = written {
            let _ = files.remove_file(&temporary);
            return Err(error);
        }
        let path = dir.join(MANIFEST);
        (files.rename(&temporary, &path)).map_err(WriteError::io(REPLACING, &path))?;
        sync_directory(files, dir)
    }

    fn write(&self, files: &dyn Files, path: &Path) -> Result<(), WriteError> {
        let file = create_anew(files, path)?;
        files::write_all_at(&*file, 0, &self.to_bytes())
            .map_err(WriteError::io("writing", path))?;
        file.sync().map_err(WriteError::io(SYNCING, path))
    }

    /// Whether `file` is a manifest that was being written.
    pub(super) fn is_temporary(file: &str) -> bool {
        let middle = file
            .strip_prefix("manifest.")
            .and_then(|f| f.strip_suffix(".tmp"));
        middle.is_some_and(|m| m.split('.').all(|n| n.bytes().all(|b| b.is_ascii_digit())))
    }
}

/// Whether what is at `path` is a directory, or a symbolic link to one.
fn is_directory(files: &dyn Files, path: &Path) -> io::Result<bool> {
    match files.what(path)? {
        What::Directory => Ok(true),
        What::File => Ok(false),
        What::Other => match files.list(path).map_err(|e| (e.kind(), e)) {
            Err((io::ErrorKind::NotADirectory, _)) => Ok(false),
            Err((io::ErrorKind::NotFound, e)) => Err(e),
            // One that may not be listed is one too.
            Ok(_) | Err(_) => Ok(true),
        },
    }
}

/// Bytes are read in pieces of so many.
const PIECE_BYTES: usize = 1 << 16;

/// Adds to the first bytes of a file those after them, until there are `len` or the file ends.
fn read_up_to(file: &dyn File, len: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    while (bytes.len() as u64) < len {
        let start = bytes.len();
        let piece = (len - start as u64).min(PIECE_BYTES as u64) as usize;
        bytes
            .try_reserve(piece)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(start + piece, 0);
        let read = files::read_some_at(file, start as u64, &mut bytes[start..])?;
        bytes.truncate(start + read);
        if read == 0 {
            break;
        }
    }
    Ok(())
}

/// Where the first byte other than zero is, from `offset` on. (A file system that gave a file room before its
/// length was known can leave zeros after a crash.)
fn first_not_zero(file: &dyn File, mut offset: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let read = files::read_some_at(file, offset, &mut buffer)?;
        if read == 0 {
            return Ok(None);
        }
        if let Some(at) = buffer[..read].iter().position(|&b| b != 0) {
            return Ok(Some(offset + at as u64));
        }
        offset += read as u64;
    }
}

/// The byte of `json` at which reading it failed.
fn offset_of(error: &serde_json::Error, json: &[u8]) -> u64 {
    let lines = json.split_inclusive(|&b| b == b'\n');
    let before: usize = lines
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    (before + error.column().saturating_sub(1)) as u64
}

/// Makes a file that the holder of the lock writes: one that is there already is what a writer left that
/// was stopped.
pub(super) fn create_anew(files: &dyn Files, path: &Path) -> Result<Box<dyn File>, WriteError> {
    let created = match files.create_new(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => files
            .remove_file(path)
            .and_then(|()| files.create_new(path)),
        created => created,
    };
    created.map_err(WriteError::io("creating", path))
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(files: &dyn Files, dir: &Path) -> Result<(), WriteError> {
    files.sync_dir(dir).map_err(WriteError::io(SYNCING, dir))
}

#[cfg(test)]
mod tests {
    use super::super::format::MAGIC;
    use super::*;
    use crate::store::files::Disk;
    use std::fs;

    fn write(dir: &Path, bytes: &[u8]) {
        fs::write(dir.join(MANIFEST), bytes).unwrap();
    }

    fn example() -> Manifest {
        let dim = NonZeroUsize::new(4).unwrap();
        let mut manifest = Manifest::new(dim, Dtype::F32, Some("model \"A\"".into()));
        manifest.kinds = vec!["observation".into(), "ünusual".into()];
        manifest.rows = 2;
        manifest.next_id = 7;
        for column in Column::ALL {
            let bytes = column
                .bytes_of(2, Dtype::F32, dim)
                .unwrap_or(Some(5))
                .unwrap();
            manifest.columns[column as usize].bytes = bytes;
            manifest.columns[column as usize].sums = vec![u64::MAX - column as u64];
        }
        manifest
    }

    #[test]
    fn a_manifest_is_read_as_it_was_published() {
        let dir = tempfile::tempdir().unwrap();
        example().publish(&Disk, dir.path()).unwrap();
        assert_eq!(Manifest::read(&Disk, dir.path()).unwrap(), example());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    // B44: sealed with a right checksum, as a broken writer would.
    #[test]
    fn a_manifest_that_contradicts_itself_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = example().to_bytes();
        let start = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
        let body = String::from_utf8(bytes[start..].to_vec()).unwrap();
        let edits = [
            ("\"rows\":2", "\"rows\":4611686018427387904"),
            ("\"rows\":2", "\"rows\":3"),
            ("\"rows\":2", "\"rows\":1"),
            ("\"rows\":2", "\"rows\":-1"),
            ("\"dim\":4", "\"dim\":0"),
            ("\"dim\":4", "\"dim\":5"),
            ("\"dim\":4", "\"dim\":4294967295"),
            ("\"dim\":4", "\"dim\":18446744073709551615"),
            ("\"next_id\":7", "\"next_id\":1"),
            ("\"dtype\":\"f32\"", "\"dtype\":\"f16\""),
            ("\"dtype\":\"f32\"", "\"dtype\":\"f64\""),
            ("\"block_bytes\":1048576", "\"block_bytes\":0"),
            ("[\"observation\",", "[\"\","),
            ("[\"observation\",", "[\"ünusual\","),
            ("\"file\":\"id.u64\"", "\"file\":\"../id.u64\""),
            ("\"file\":\"id.u64\"", "\"file\":\"depth.u32\""),
            ("\"bytes\":5", "\"bytes\":18446744073709551615"),
            ("\"bytes\":5", "\"bytes\":1048577"),
            ("\"sums\":[\"f", "\"sums\":[\"F"),
            ("\"depth\":", "\"breadth\":"),
            ("\"kinds\":", "\"extra\":0,\"kinds\":"),
            ("\"journal_folded\":0,", ""),
            ("{", ""),
        ];
        for (from, to) in edits {
            assert!(body.contains(from), "{from}");
            let body = body.replacen(from, to, 1);
            let header = Header::render(VERSION, xxh3_64(body.as_bytes()), body.len() as u64);
            write(dir.path(), (header + &body).as_bytes());
            let read = Manifest::read(&Disk, dir.path());
            let Err(OpenError::ManifestDamaged { offset, .. }) = read else {
                panic!("{from} to {to}: {read:?}");
            };
            assert!(offset >= start as u64, "{from} to {to}: {offset}");
        }
        // dim = u32::MAX is refused without rows too, and so is a row count that wraps n * dim.
        let mut wide = Manifest::new(NonZeroUsize::MIN, Dtype::F32, None);
        wide.dim = NonZeroUsize::new(u32::MAX as usize).unwrap();
        write(dir.path(), &wide.to_bytes());
        let read = Manifest::read(&Disk, dir.path());
        assert!(
            matches!(read, Err(OpenError::ManifestDamaged { .. })),
            "{read:?}"
        );
    }

    #[test]
    fn bodies_that_are_no_json_are_damaged_where_they_stop_being_it() {
        let dir = tempfile::tempdir().unwrap();
        for (body, at) in [("{\"rows\":2]", 9), ("{\"rows\":2,\n\n \"dim\":x}", 19)] {
            let header = Header::render(VERSION, xxh3_64(body.as_bytes()), body.len() as u64);
            let expected = header.len() as u64 + at;
            write(dir.path(), (header + body).as_bytes());
            let read = Manifest::read(&Disk, dir.path());
            let Err(OpenError::ManifestDamaged { offset, .. }) = read else {
                panic!("{body}: {read:?}");
            };
            assert_eq!(offset, expected, "{body}");
        }
    }

    #[test]
    fn the_last_sequence_can_be_read_and_nothing_more_be_published() {
        use crate::store::{Agent, CreateOptions, Store};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let (dim, dtype, model) = (NonZeroUsize::MIN, Dtype::F32, None);
        let store = Store::create(&path, &CreateOptions { dim, dtype, model }).unwrap();
        drop(store);
        let memory = crate::store::NewMemory {
            key: None,
            kind: crate::store::Kind::OBSERVATION,
            text: "",
            embedding: None,
            created: 0,
            last_access: 0,
            expiry: None,
            importance: 0.0,
            evidence: &[],
            depth: 0,
            supersedes: None,
            payload: b"",
        };
        let mut manifest = Manifest::read(&Disk, &path).unwrap();
        manifest.sequence = u64::MAX - 1;
        manifest.publish(&Disk, &path).unwrap();
        let store = Store::open(&path).unwrap();
        store.append(std::slice::from_ref(&memory)).unwrap();
        // The journal needs no more manifests.
        store.append(std::slice::from_ref(&memory)).unwrap();
        let exhausted = |error: WriteError| matches!(error, WriteError::Exhausted { .. });
        assert!(store.checkpoint().is_err_and(exhausted));
        assert!(store.close().is_err_and(exhausted));
        let store = Store::open(&path).unwrap();
        assert_eq!(store.snapshot().len(), 2);
        let error = store.append(&[memory]).unwrap_err();
        assert!(error.to_string().contains("as often as"), "{error}");
        let touched = store.touch(Agent::OWN, &[0], 1);
        assert!(touched.is_err_and(|e| e.to_string().contains("as often as")));
        drop(store);
        let left = Store::open_read_only(&path).unwrap().snapshot();
        assert_eq!((left.len(), left.last_access(Agent::OWN, 0)), (2, 0));
    }

    #[test]
    fn a_later_version_is_newer_whatever_follows() {
        let dir = tempfile::tempdir().unwrap();
        for rest in ["2 \n", "2 anything at all", "18446744073709551615 x\n{}"] {
            write(dir.path(), format!("{MAGIC}{rest}").as_bytes());
            let read = Manifest::read(&Disk, dir.path());
            assert!(matches!(read, Err(OpenError::Newer { .. })), "{read:?}");
        }
        write(dir.path(), format!("{MAGIC}0 {:016x} 0\n", 0).as_bytes());
        let read = Manifest::read(&Disk, dir.path());
        assert!(
            matches!(read, Err(OpenError::ManifestDamaged { .. })),
            "{read:?}"
        );
    }

    #[test]
    fn only_numbered_temporaries_are_swept() {
        assert!(Manifest::is_temporary("manifest.123.4.tmp"));
        for other in [
            "manifest",
            "manifest.old.tmp",
            "manifest.1.2",
            "x.manifest.1.2.tmp",
        ] {
            assert!(!Manifest::is_temporary(other), "{other}");
        }
    }
}
