//! Running the program, and places to run it on.

use crate::import_common::f32_npy;
use memorank::store::{Kind, NewMemory, Store};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

/// The program, without what the environment of the tests could change.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memorank"));
    command
        .env_remove("MEMORANK_ISA")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// What was printed by a run that went well. Progress is for terminals: there is no other output.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!((self.code, &*self.err), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// The document of a run that went well.
    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// What was said of a run that did not go well. It says it once, in one line, unless it is usage.
    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        if code != 2 {
            assert!(self.err.lines().count() <= 1, "{}", self.err);
        }
        self.err
    }
}

pub fn run<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    program().args(args).output().unwrap().into()
}

/// A temporary folder.
pub struct Stage(tempfile::TempDir);

/// Set G is asked at this moment: 2023-02-13T15:00:00Z.
pub const T: i64 = 1_676_300_400_000_000;
pub const T_TEXT: &str = "2023-02-13T15:00:00Z";
pub const HOUR: i64 = 3_600_000_000;

impl Stage {
    pub fn new() -> Stage {
        Stage(tempfile::tempdir().unwrap())
    }

    /// A stage with [`g_lines`] imported into `G`, and the query `q.json`.
    pub fn g() -> Stage {
        let stage = Stage::new();
        stage.import("G", &[[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], &g_lines());
        stage.write("q.json", "[1, 0]");
        stage
    }

    /// A stage with [`town_lines`] imported into `town`, and the query `q.json`.
    pub fn town() -> Stage {
        let stage = Stage::new();
        let rows = [
            [1.0, 0.0],
            [0.6, 0.8],
            [0.0, 1.0],
            [0.8, 0.6],
            [0.96, 0.28],
            [0.0, 0.0],
        ];
        stage.import("town", &rows, &town_lines());
        stage.write("q.json", "[1, 0]");
        stage
    }

    /// `memorank query town --vector q.json --now T --json ...`
    pub fn ask_town(&self, args: &[&str]) -> Value {
        let (query, now) = (self.at("q.json"), time(T));
        let args = [&["--vector", &query, "--now", &now, "--json"], args].concat();
        self.query("town", &args).json()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path as text.
    pub fn at(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        self.at(name)
    }

    /// Writes `NAME.npy` and `NAME.jsonl`.
    pub fn matrix<const D: usize>(&self, name: &str, rows: &[[f32; D]], lines: &[Value]) -> String {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.write(&format!("{name}.jsonl"), lines);
        self.write(&format!("{name}.npy"), f32_npy(D, rows.as_flattened()))
    }

    /// Imports a matrix into the store `name`.
    pub fn import<const D: usize>(&self, name: &str, rows: &[[f32; D]], lines: &[Value]) {
        let source = self.matrix(&format!("{name}-source"), rows, lines);
        run(["import", "npy", &source, &self.at(name)]).ok();
    }

    /// `memorank query NAME ...`
    pub fn query(&self, name: &str, args: &[&str]) -> Ran {
        let store = self.at(name);
        run(["query", &store].iter().chain(args))
    }

    /// `memorank query G --vector q.json --json ...`
    pub fn ask_g(&self, args: &[&str]) -> Value {
        let query = self.at("q.json");
        let args = [&["--vector", &query, "--json"], args].concat();
        self.query("G", &args).json()
    }
}

/// Set G of the trials.
pub fn g_lines() -> Vec<Value> {
    let line = |i: usize, hours, importance| {
        json!({
            "key": format!("g{i}"),
            "text": format!("memory {i}"),
            "created": "2023-02-01T00:00:00Z",
            "last_access": time(T - hours * HOUR),
            "importance": importance,
        })
    };
    vec![line(0, 10, 2), line(1, 0, 8), line(2, 100, 5)]
}

/// Six memories that every filter tells apart. The fifth is made after T, the last has no vector.
pub fn town_lines() -> Vec<Value> {
    let line = |key: &str, kind: &str, created: i64, accessed: i64, importance: f64, text: &str| {
        json!({
            "key": key, "kind": kind, "text": text, "importance": importance,
            "created": time(T + created * HOUR), "last_access": time(T + accessed * HOUR),
        })
    };
    let mut lines = vec![
        line("a", "observation", -50, -10, 2.0, "Isabella plans a PARTY"),
        line("b", "chat", -40, 0, 8.0, "a party at the cafe"),
        line("c", "plan", -30, -30, 5.0, "buy flour"),
        line("d", "reflection", -20, -5, 4.0, "the cafe is busy"),
        line("e", "observation", 5, 5, 1.0, "it rains"),
        line("f", "diary", -60, -60, 3.0, "dear diary"),
    ];
    lines[1]["expiry"] = time(T - HOUR).into();
    lines[2]["expiry"] = time(T + HOUR).into();
    lines
}

/// Appends one memory like [`g_lines`]' first.
pub fn append(store: &Store, key: &str, embedding: &[f32]) {
    let memory = NewMemory {
        key: Some(key),
        kind: Kind::OBSERVATION,
        text: "memory 0",
        embedding: Some(embedding),
        created: T - 300 * HOUR,
        last_access: T - 10 * HOUR,
        expiry: None,
        importance: 2.0,
        evidence: &[],
        depth: 0,
        supersedes: None,
        payload: b"",
    };
    store.append(&[memory]).unwrap();
}

/// A moment as text.
pub fn time(us: i64) -> String {
    memorank::import::timestamp::format_us(us)
}

/// What a query's document says, but for what was asked with.
pub fn answer(mut document: Value) -> Value {
    let query = document.as_object_mut().unwrap().remove("query");
    assert!(query.is_some());
    document
}

/// The ids of a query's hits.
pub fn ids(document: &Value) -> Vec<u64> {
    let hits = document["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["id"].as_u64().unwrap()).collect()
}

pub fn scores(document: &Value) -> Vec<f64> {
    let hits = document["hits"].as_array().unwrap();
    let scores = hits.iter().map(|hit| hit["score"].as_f64());
    scores.collect::<Option<_>>().unwrap()
}

/// Everything of a folder that a program could change: names, bytes and times.
pub fn state(folder: &Path) -> Vec<(String, Vec<u8>, SystemTime)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .map(|entry| {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let modified = entry.metadata().unwrap().modified().unwrap();
            (entry.file_name().into_string().unwrap(), bytes, modified)
        })
        .collect();
    files.push((
        ".".into(),
        vec![],
        fs::metadata(folder).unwrap().modified().unwrap(),
    ));
    files.sort();
    files
}

/// The files of a folder: names and bytes.
pub fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = state(folder).into_iter().filter(|(name, ..)| name != ".");
    files.map(|(name, bytes, _)| (name, bytes)).collect()
}

/// Copies a store.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Overwrites bytes of a file in place.
pub fn overwrite(path: &Path, offset: usize, bytes: &[u8]) {
    let mut content = fs::read(path).unwrap();
    content[offset..][..bytes.len()].copy_from_slice(bytes);
    fs::write(path, content).unwrap();
}
