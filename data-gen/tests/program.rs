//! The program's files and exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use memorank_data_gen::{Config, Stream, key};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

fn run(folder: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_memorank-data-gen"))
        .current_dir(folder)
        .args(args.split_whitespace())
        .output()
        .unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The header's text and the data.
fn npy(path: &Path) -> (String, Vec<u8>) {
    let bytes = fs::read(path).unwrap();
    assert_eq!(bytes[..8], *b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (header, data) = bytes[10..].split_at(length);
    assert_eq!((10 + length) % 64, 0);
    let header = String::from_utf8(header.to_vec()).unwrap();
    assert!(header.ends_with('\n'));
    (header.trim_end().to_owned(), data.to_vec())
}

fn micros(value: &Value) -> i64 {
    let date = OffsetDateTime::parse(value.as_str().unwrap(), &Rfc3339).unwrap();
    i64::try_from(date.unix_timestamp_nanos() / 1000).unwrap()
}

#[test]
fn files_hold_the_streams_rows() {
    let folder = tempfile::tempdir().unwrap();
    let out = run(
        folder.path(),
        "--memories 5000 --dim 7 --seed 3 --dtype f32 --out a.b --queries 4",
    );
    assert!(out.status.success(), "{out:?}");
    assert!(out.stderr.is_empty(), "{out:?}");
    assert_eq!(
        names(folder.path()),
        ["a.b.jsonl", "a.b.npy", "a.b.queries.npy"]
    );
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(
        said.starts_with("wrote a.b.npy\nwrote a.b.jsonl\nwrote a.b.queries.npy\nnow 2026-"),
        "{said}"
    );

    let stream = Stream::new(Config {
        memories: 5000,
        dim: 7,
        seed: 3,
    })
    .unwrap();
    let (header, data) = npy(&folder.path().join("a.b.npy"));
    assert_eq!(
        header,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5000, 7), }"
    );
    let expected: Vec<u8> = stream
        .blocks()
        .flat_map(|block| block.embeddings().to_vec())
        .flat_map(f32::to_le_bytes)
        .collect();
    assert!(data == expected);

    let (header, data) = npy(&folder.path().join("a.b.queries.npy"));
    assert_eq!(
        header,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 7), }"
    );
    let expected: Vec<u8> = (0..4)
        .flat_map(|i| stream.query(i))
        .flat_map(f32::to_le_bytes)
        .collect();
    assert_eq!(data, expected);

    let lines = fs::read_to_string(folder.path().join("a.b.jsonl")).unwrap();
    let mut lines = lines.lines();
    for block in stream.blocks() {
        for memory in block.memories() {
            let line: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
            assert_eq!(line["key"], memory.key());
            assert_eq!(line["kind"], memory.kind.as_str());
            assert_eq!(line["text"], memory.text());
            assert_eq!(micros(&line["created"]), memory.created);
            assert_eq!(micros(&line["last_access"]), memory.last_access);
            assert_eq!(
                line["created"].as_str().unwrap().len(),
                "2026-01-05T08:13:20.000000Z".len()
            );
            assert_eq!(line["importance"].as_u64(), Some(memory.importance as u64));
            let evidence: Vec<_> = memory
                .evidence
                .iter()
                .map(|&row| Value::from(key(row)))
                .collect();
            match line.get("evidence") {
                Some(keys) => assert_eq!(*keys, Value::from(evidence)),
                None => assert!(evidence.is_empty()),
            }
            assert_eq!(
                line.get("depth").map_or(0, |depth| depth.as_u64().unwrap()),
                u64::from(memory.depth)
            );
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn f16_is_the_stream_rounded() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        run(folder.path(), "--memories 50 --dim 33 --out h")
            .status
            .success()
    );
    let (header, data) = npy(&folder.path().join("h.npy"));
    assert_eq!(
        header,
        "{'descr': '<f2', 'fortran_order': False, 'shape': (50, 33), }"
    );
    let stream = Stream::new(Config {
        memories: 50,
        dim: 33,
        seed: 1,
    })
    .unwrap();
    let block = stream.block(0);
    assert_eq!(data.len(), 2 * block.embeddings().len());
    let (halves, _) = data.as_chunks::<2>();
    for (bytes, x) in halves.iter().zip(block.embeddings()) {
        // By hand: sign, exponent and mantissa. Half of the last place is the most that rounding
        // may change.
        let bits = u16::from_le_bytes(*bytes);
        let exponent = i32::from(bits >> 10 & 31);
        let mantissa = f64::from(bits & 1023) / 1024.0 + f64::from(u8::from(exponent > 0));
        let place = 2f64.powi(exponent.max(1) - 15);
        let half = if bits >> 15 == 1 {
            -mantissa * place
        } else {
            mantissa * place
        };
        assert!((half - f64::from(*x)).abs() <= place / 2048.0, "{half} {x}");
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = None;
    for threads in [1, 2, 3, 8] {
        let args = "--memories 20000 --dim 5 --seed 11 --out t --queries 3 --threads";
        assert!(
            run(folder.path(), &format!("{args} {threads}"))
                .status
                .success()
        );
        let files = ["t.npy", "t.jsonl", "t.queries.npy"]
            .map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(
            *first.get_or_insert_with(|| files.clone()) == files,
            "{threads} threads"
        );
    }
}

#[test]
fn an_empty_stream_is_a_header_and_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = run(
        folder.path(),
        "--memories 0 --dim 3 --out empty --queries 0",
    );
    assert!(out.status.success());
    assert!(
        String::from_utf8(out.stdout)
            .unwrap()
            .ends_with("now 2026-01-05T08:00:00.000000Z\n")
    );
    let (header, data) = npy(&folder.path().join("empty.npy"));
    assert_eq!(
        header,
        "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 3), }"
    );
    assert!(data.is_empty());
    assert!(
        fs::read(folder.path().join("empty.jsonl"))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn failure_is_1_and_leaves_nothing_under_the_final_names() {
    let folder = tempfile::tempdir().unwrap();
    let out = run(folder.path(), "--memories 10 --dim 3 --out missing/x");
    assert_eq!(out.status.code(), Some(1));
    assert!(
        String::from_utf8(out.stderr)
            .unwrap()
            .starts_with("error: creating a file in missing")
    );
    assert!(names(folder.path()).is_empty());

    // A folder stands where the last file should be named: what came before is whole, nothing else
    // is left.
    fs::create_dir_all(folder.path().join("y.jsonl/full")).unwrap();
    let out = run(folder.path(), "--memories 10 --dim 3 --out y");
    assert_eq!(out.status.code(), Some(1));
    assert!(
        String::from_utf8(out.stderr)
            .unwrap()
            .starts_with("error: naming y.jsonl")
    );
    assert_eq!(names(folder.path()), ["y.jsonl", "y.npy"]);
    assert_eq!(npy(&folder.path().join("y.npy")).1.len(), 60);
}

#[test]
fn a_full_disk_is_a_failure_that_leaves_nothing() {
    // A limit on the size of files stands in for the disk. The shell ignores the signal, so that
    // writes fail.
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} --memories 20000 --dim 64 --out z --threads 3",
        env!("CARGO_BIN_EXE_memorank-data-gen")
    );
    let out = Command::new("sh")
        .current_dir(folder.path())
        .args(["-c", &script])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(
        String::from_utf8(out.stderr)
            .unwrap()
            .starts_with("error: writing z.")
    );
    assert!(names(folder.path()).is_empty());
}

#[test]
fn nonsense_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        "",
        "--memories 10 --dim 0 --out x",
        "--memories 10 --dim 65537 --out x",
        "--memories 2147483649 --dim 1 --out x",
        "--memories -1 --dim 1 --out x",
        "--memories 10 --dim 1 --out x --threads 0",
        "--memories 10 --dim 1 --out x --dtype f64",
    ] {
        assert_eq!(run(folder.path(), args).status.code(), Some(2), "{args}");
    }
    assert!(names(folder.path()).is_empty());
}
