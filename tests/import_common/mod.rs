//! What the importers' tests share: folders to import from, and the shared data.

#![allow(dead_code)] // each test file uses its own part

#[path = "../common/mod.rs"]
pub mod common;

use memorank::import::{ImportError, NoticeKind, Options, Report};
use memorank::store::{OpenOptions, Snapshot, Store};
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// The shared data, or `None` (told) where it was not asked for.
pub fn data() -> Option<PathBuf> {
    common::shared_data()
}

pub fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A temporary folder with an archive to import and a place for the store.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::create_dir(folder.source()).unwrap();
        folder
    }

    /// An archive of `nodes.json` and `embeddings.json`.
    pub fn archive(nodes: &str, embeddings: &str) -> Folder {
        let folder = Folder::new();
        folder.write("nodes.json", nodes);
        folder.write("embeddings.json", embeddings);
        folder
    }

    /// The copy of a shared archive, with its nodes and embeddings to change.
    pub fn edited(
        from: &Path,
        edit: impl FnOnce(&mut Map<String, Value>, &mut Map<String, Value>),
    ) -> Folder {
        let mut nodes = json(&from.join("nodes.json"));
        let mut embeddings = json(&from.join("embeddings.json"));
        edit(
            nodes.as_object_mut().unwrap(),
            embeddings.as_object_mut().unwrap(),
        );
        Folder::archive(&nodes.to_string(), &embeddings.to_string())
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.source().join(name), content).unwrap();
    }

    pub fn source(&self) -> PathBuf {
        self.0.path().join("source")
    }

    pub fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    /// Everything beside the source: nothing, after an import that failed.
    pub fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| *path != self.source()).collect()
    }

    pub fn reverie(&self, options: &Options) -> Result<Report, ImportError> {
        self.checked(memorank::import::reverie(
            &self.source(),
            &self.store(),
            options,
            &mut |_, _| (),
        ))
    }

    pub fn genagents(&self, options: &Options) -> Result<Report, ImportError> {
        self.checked(memorank::import::genagents(
            &self.source(),
            &self.store(),
            options,
            &mut |_, _| (),
        ))
    }

    /// `m.npy` with `m.jsonl`.
    pub fn npy(&self, options: &Options) -> Result<Report, ImportError> {
        let source = self.source();
        let (npy, jsonl) = (source.join("m.npy"), source.join("m.jsonl"));
        self.checked(memorank::import::npy(
            &npy,
            &jsonl,
            &self.store(),
            options,
            &mut |_, _| (),
        ))
    }

    /// Every import either leaves exactly a store, or nothing.
    fn checked(&self, outcome: Result<Report, ImportError>) -> Result<Report, ImportError> {
        match &outcome {
            Ok(_) => assert_eq!(self.left(), [self.store()]),
            Err(_) => assert_eq!(self.left(), [] as [PathBuf; 0]),
        }
        outcome
    }
}

/// What is in the store of a folder, with all its checks.
pub fn open(folder: &Folder) -> Snapshot {
    let options = OpenOptions {
        read_only: true,
        verify: true,
        ..OpenOptions::default()
    };
    let store = Store::open_with(folder.store(), &options).unwrap();
    store.snapshot()
}

/// The keys a notice names, with their details.
pub fn affected(report: &Report, name: NoticeKind) -> Vec<String> {
    let notice = report.notice(name);
    let affected = notice.map_or(&[][..], |notice| &notice.affected);
    let line = |key: &str, detail: Option<&str>| match detail {
        Some(detail) => format!("{key}: {detail}"),
        None => key.to_owned(),
    };
    affected
        .iter()
        .map(|affected| line(&affected.key, affected.detail.as_deref()))
        .collect()
}

/// The names of a report's notices.
pub fn names(report: &Report) -> Vec<&'static str> {
    report
        .notices
        .iter()
        .map(|notice| notice.name.name())
        .collect()
}

/// A `.npy` file of version 1.0.
pub fn npy_bytes(descr: &str, rows: usize, dim: usize, data: &[u8]) -> Vec<u8> {
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    npy_with_header(&header, data)
}

pub fn npy_with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let padded = format!("{header:<117}\n");
    let length = u16::try_from(padded.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], padded.as_bytes(), data].concat()
}

pub fn f32_npy(dim: usize, values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    npy_bytes("<f4", values.len() / dim, dim, &data)
}
