//! A matrix with its lines.

#![cfg(feature = "import")]

mod import_common;

use import_common::{Folder, affected, data, f32_npy, names, npy_bytes, npy_with_header, open};
use memorank::import::{HeaderError, ImportError, NoticeKind as N, Options, Report, TimeUnit};
use memorank::kernel::{Dtype, Rows, f16};
use memorank::store::{Agent, Reference};

const LINE: &str = r#"{"created": "2023-02-13T00:00:00Z", "last_access": "2023-02-13T00:00:00Z", "importance": 3}"#;

fn line(fields: &str) -> String {
    format!("{}, {fields}}}", &LINE[..LINE.len() - 1])
}

/// As many rows of [1, 2] as there are lines.
fn lines(lines: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.write("m.npy", f32_npy(2, &[1.0, 2.0].repeat(lines.len())));
    folder.write("m.jsonl", lines.join("\n"));
    folder
}

fn import(all: &[&str]) -> Report {
    lines(all).npy(&Options::default()).unwrap()
}

fn refused(all: &[&str]) -> String {
    lines(all).npy(&Options::default()).unwrap_err().to_string()
}

fn matrix(npy: impl AsRef<[u8]>, rows: usize, options: &Options) -> Result<Report, ImportError> {
    let folder = Folder::new();
    folder.write("m.npy", npy);
    folder.write("m.jsonl", format!("{LINE}\n").repeat(rows));
    folder.npy(options)
}

#[test]
fn shared_conversations() {
    let Some(data) = data() else { return };
    let from = data.join("data/locomo/conv-26");
    let to = Folder::new();
    let (npy, jsonl) = (from.join("memories.npy"), from.join("memories.jsonl"));
    let report = memorank::import::npy(
        &npy,
        &jsonl,
        &to.store(),
        &Options::default(),
        &mut |_, _| (),
    )
    .unwrap();
    assert_eq!(
        (report.memories, report.with_vector, report.dim),
        (419, 419, 384)
    );
    assert_eq!(names(&report), ["importance-absent", "unknown-field"]);
    assert_eq!(report.notice(N::ImportanceAbsent).unwrap().count, 419);
    assert_eq!(report.notice(N::UnknownField).unwrap().count, 2 * 419);
    let wrong = from.join("questions.npy");
    let to = Folder::new();
    let error = memorank::import::npy(
        &wrong,
        &jsonl,
        &to.store(),
        &Options::default(),
        &mut |_, _| (),
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("199 rows") && error.contains("419 lines"),
        "{error}"
    );
}

#[test]
fn the_column_type_follows_the_file() {
    let import = |npy: &[u8], dtype| {
        let options = Options {
            dtype,
            ..Options::default()
        };
        matrix(npy, 1, &options).unwrap()
    };
    let half: Vec<u8> = [1.5, -2.0]
        .iter()
        .flat_map(|&x| f16::from_f32(x).to_le_bytes())
        .collect();
    let half = npy_bytes("<f2", 1, 2, &half);
    let report = import(&half, None);
    assert_eq!(
        (report.dtype, report.dtype_reason.as_str()),
        (Dtype::F16, "the file holds <f2")
    );
    assert_eq!(import(&half, Some(Dtype::F32)).dtype, Dtype::F32);
    let single = f32_npy(2, &[0.1, 1.0]);
    assert_eq!(import(&single, None).dtype, Dtype::F32);
    let report = import(&single, Some(Dtype::F16));
    assert_eq!(
        affected(&report, N::ValuesRounded),
        ["line 1: 1 of 2 elements to f16"]
    );
    let double: Vec<u8> = [0.1f64, 1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let report = import(&npy_bytes("<f8", 1, 2, &double), None);
    assert_eq!(report.dtype, Dtype::F32);
    assert_eq!(
        affected(&report, N::ValuesRounded),
        ["line 1: 1 of 2 elements to f32"]
    );
}

/// `x` as f16 to nearest even, from its bits: a whole number of units in the last place of the f16s
/// around it, and what is left over.
fn nearest_f16(x: f64) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    let biased = (bits >> 52 & 0x7ff) as i32;
    if biased == 0 {
        return sign;
    }
    let significand = bits & ((1 << 52) - 1) | 1 << 52;
    // x = significand * 2^(biased - 1075); one unit is 2^-24, and more from 2^-13 on.
    let unit = (biased - 1023 - 10).max(-24);
    let drop = (unit - (biased - 1075)) as u32;
    if drop > 54 {
        return sign;
    }
    let (whole, left, half) = (
        significand >> drop,
        significand & ((1 << drop) - 1),
        1_u64 << (drop - 1),
    );
    let units = whole + u64::from(left > half || left == half && whole % 2 == 1);
    // 1024 units and more have an exponent; carrying into it is right.
    sign | ((((unit + 24) as u16) << 10) + units as u16)
}

// B71
#[test]
fn numbers_of_64_bits_are_rounded_once() {
    let two = |n: i32| 2.0_f64.powi(n);
    let mut given = vec![
        1.0 + two(-11) + two(-30),
        1.0 + two(-11) - two(-30),
        1.0 + two(-11),
        1.0 + 3.0 * two(-11) - two(-40),
        2047.4999999850988,
        65519.99999999999,
        // Half a unit of the subnormals, and ties further up.
        two(-25) + two(-60),
        two(-25),
        two(-25) - two(-60),
        3.0 * two(-25) - two(-50),
        1023.5 * two(-24) - two(-45),
        two(-15),
        5e-324,
    ];
    assert_eq!(nearest_f16(given[0]), 0x3c01);
    assert_eq!(nearest_f16(given[4]), 0x67ff);
    // Around the middle of two neighbours, and anywhere.
    let mut state = 1_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state >> 11
    };
    for _ in 0..20_000 {
        let low = f16::from_bits((random() % 0x7bff) as u16).to_f64();
        let high = f16::from_bits(f16::from_f64(low).to_bits() + 1).to_f64();
        let middle = (low + high) / 2.0;
        let nudge = middle * two(-23 - (random() % 30) as i32);
        given.extend([middle + nudge, middle - nudge, middle]);
        given.push(f64::from_bits(
            f64::to_bits(1e-9) + random() * 97 % (f64::to_bits(6e4) - f64::to_bits(1e-9)),
        ));
    }
    given.extend(given.clone().iter().map(|x| -x));
    // So that no row is all zeros.
    let rows: Vec<Vec<f64>> = given
        .chunks(31)
        .map(|chunk| {
            let mut row = chunk.to_vec();
            row.resize(31, 0.5);
            row.push(1.0);
            row
        })
        .collect();
    let expected: Vec<u16> = rows.iter().flatten().map(|&x| nearest_f16(x)).collect();
    let options = Options {
        dtype: Some(Dtype::F16),
        ..Options::default()
    };

    let npy = Folder::new();
    let data: Vec<u8> = rows
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    npy.write("m.npy", npy_bytes("<f8", rows.len(), 32, &data));
    npy.write("m.jsonl", format!("{LINE}\n").repeat(rows.len()));
    let report = npy.npy(&options).unwrap();
    assert_eq!(report.with_vector, rows.len() as u64);
    let first = format!(
        "line 1: {} of 32 elements to f16",
        rows[0]
            .iter()
            .filter(|&&x| f16::from_f64(x).to_f64() != x)
            .count()
    );
    assert_eq!(affected(&report, N::ValuesRounded)[0], first);

    let node = |n: usize| {
        serde_json::json!({
            "node_id": n, "node_type": "observation", "content": n.to_string(), "importance": 1,
            "created": 1, "last_retrieved": 2, "pointer_id": null,
        })
    };
    let nodes: Vec<_> = (0..rows.len()).map(node).collect();
    let vectors: serde_json::Map<_, _> = (rows.iter().enumerate())
        .map(|(n, row)| (n.to_string(), serde_json::json!(row)))
        .collect();
    let json = Folder::archive(
        &serde_json::json!(nodes).to_string(),
        &serde_json::json!(vectors).to_string(),
    );
    json.genagents(&options).unwrap();

    for folder in [npy, json] {
        let store = open(&folder);
        let [segment] = store.segments(Agent::OWN).collect::<Vec<_>>()[..] else {
            panic!("an imported store is one segment");
        };
        let Rows::F16(stored) = segment.embeddings else {
            panic!("f16 was asked for")
        };
        for ((stored, &expected), x) in stored.iter().zip(&expected).zip(rows.iter().flatten()) {
            assert_eq!(stored.to_bits(), expected, "{x:e}");
        }
    }
    // 65520 is where f16 ends, whatever f32 would make of what lies below.
    let data: Vec<u8> = [65520.0_f64, 1.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let error = matrix(npy_bytes("<f8", 1, 2, &data), 1, &options).unwrap_err();
    assert!(
        error.to_string().contains("row 0: element 0 is 65520"),
        "{error}"
    );
}

#[test]
fn rows_that_cannot_be_stored_name_row_and_element() {
    let error = |values: &[f32], dtype| {
        let options = Options {
            dtype,
            ..Options::default()
        };
        let rows = values.len() / 2;
        matrix(f32_npy(2, values), rows, &options)
            .unwrap_err()
            .to_string()
    };
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = error(&[1.0, 2.0, 1.0, bad], None);
        assert!(error.contains("m.npy, row 1: element 1: "), "{error}");
    }
    for bad in [70_000.0, 65_520.0] {
        let error = error(&[1.0, 2.0, bad, 1.0], Some(Dtype::F16));
        assert!(
            error.contains(&format!("m.npy, row 1: element 0 is {bad}")),
            "{error}"
        );
    }
    let options = Options {
        dtype: Some(Dtype::F16),
        ..Options::default()
    };
    matrix(f32_npy(2, &[65_519.9, 1.0]), 1, &options).unwrap();
    let error = error(&[1e-30, 0.0], None);
    assert!(error.contains("row 0: length 1.0000"), "{error}");
    let wide: Vec<u8> = [1.0, 1e39f64]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let error = matrix(npy_bytes("<f8", 1, 2, &wide), 1, &Options::default()).unwrap_err();
    assert!(
        error.to_string().contains("row 0: element 1: 1e39"),
        "{error}"
    );
}

#[test]
fn a_row_of_zeros_is_a_memory_without_a_vector() {
    let report = matrix(f32_npy(2, &[1.0, 2.0, 0.0, -0.0]), 2, &Options::default()).unwrap();
    assert_eq!((report.with_vector, report.without_vector), (1, 1));
    assert_eq!(affected(&report, N::VectorZero), ["line 2"]);
    let report = matrix(f32_npy(2, &[]), 0, &Options::default()).unwrap();
    assert_eq!((report.memories, report.first_created), (0, None));
}

// B48
#[test]
fn rows_are_read_wherever_the_header_ends() {
    let values = [1.0_f32, -2.5, 0.125, 3.0];
    for (descr, element) in [("<f2", 2), ("<f4", 4), ("<f8", 8)] {
        let bytes = values.iter().flat_map(|&x| match element {
            2 => f16::from_f32(x).to_le_bytes().to_vec(),
            4 => x.to_le_bytes().to_vec(),
            _ => f64::from(x).to_le_bytes().to_vec(),
        });
        let bytes: Vec<_> = bytes.collect();
        for len in 120..129 {
            let header =
                format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2, 2), }}");
            let folder = Folder::new();
            let npy = npy_with_header(&format!("{header:<len$}"), &bytes);
            assert_eq!(npy.len(), 11 + len + 4 * element);
            folder.write("m.npy", npy);
            folder.write("m.jsonl", format!("{LINE}\n").repeat(2));
            folder.npy(&Options::default()).unwrap();
            let snapshot = open(&folder);
            for row in 0..2 {
                assert_eq!(snapshot.embedding(row).unwrap(), values[2 * row..][..2]);
            }
        }
    }
}

#[test]
fn headers_that_lie_are_refused_before_anything_is_allocated() {
    let refused = |npy: Vec<u8>| match matrix(npy, 0, &Options::default()).unwrap_err() {
        ImportError::Npy { source, .. } => source,
        other => panic!("{other:?}"),
    };
    let header = |shape: &str| {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        npy_with_header(&header, &[])
    };
    assert!(matches!(
        refused(b"\x89PNG\r\n\x1a\n".to_vec()),
        HeaderError::Magic(_)
    ));
    assert!(matches!(refused(Vec::new()), HeaderError::Io(_)));
    assert!(matches!(
        refused(b"\x93NUMPY\x04\x00".to_vec()),
        HeaderError::Version(4, 0)
    ));
    let long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec();
    assert!(matches!(refused(long), HeaderError::Long(0xffff_ffff)));
    assert!(matches!(
        refused(b"\x93NUMPY\x01\x00\xff\x00{".to_vec()),
        HeaderError::Io(_)
    ));
    for shape in ["(3,)", "()", "(1, 2, 3)", "(4, 0)"] {
        assert!(
            matches!(refused(header(shape)), HeaderError::Shape(_)),
            "{shape}"
        );
    }
    for shape in [
        "(4611686018427387904, 4)",
        "(18446744073709551615, 18446744073709551615)",
    ] {
        assert!(
            matches!(refused(header(shape)), HeaderError::Size { .. }),
            "{shape}"
        );
    }
    for shape in [
        "(18446744073709551616, 2)",
        "(-1, 2)",
        "3",
        "(1 2)",
        "(1, 2",
    ] {
        assert!(
            matches!(refused(header(shape)), HeaderError::Syntax { .. }),
            "{shape}"
        );
    }
    for shape in ["(1, 2)", "(1099511627776, 2)"] {
        assert!(
            matches!(refused(header(shape)), HeaderError::Length { .. }),
            "{shape}"
        );
    }
    for descr in [">f4", "|O", "<i4", "<f16", "<c8"] {
        let error = refused(npy_bytes(descr, 0, 2, &[]));
        assert!(matches!(error, HeaderError::Descr(_)), "{descr}");
    }
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 2), }";
    assert!(matches!(
        refused(npy_with_header(fortran, &[])),
        HeaderError::FortranOrder
    ));
    for wrong in [
        "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (0, 2), }",
        "{'descr': '<f4', 'shape': (0, 2), }",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (0, 2), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': no, 'shape': (0, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2)} + 1",
        "__import__('os')",
    ] {
        refused(npy_with_header(wrong, &[]));
    }
    // A real file that was cut, and one with something behind it.
    let whole = f32_npy(2, &[1.0, 2.0]);
    assert!(matches!(
        refused(whole[..whole.len() - 1].to_vec()),
        HeaderError::Length { .. }
    ));
    assert!(matches!(
        refused([&whole[..], b"\0"].concat()),
        HeaderError::Length { .. }
    ));
    // Double quotes, another order, no trailing comma, Python 2's long: all fine.
    let other = "{\"shape\": (0L, 2), 'fortran_order':False,'descr' : '<f2'}";
    matrix(npy_with_header(other, &[]), 0, &Options::default()).unwrap();
}

#[test]
fn one_line_per_row() {
    let folder = lines(&[LINE, LINE]);
    folder.write("m.jsonl", LINE);
    let error = folder.npy(&Options::default()).unwrap_err();
    assert!(
        matches!(
            error,
            ImportError::Counts {
                rows: 2,
                lines: 1,
                ..
            }
        ),
        "{error:?}"
    );
    for (second, told) in [
        ("", "line 2: an empty line"),
        ("[]", "line 2"),
        ("3", "line 2"),
        ("{\"created\": ", "line 2: EOF"),
        (&format!("{LINE} {LINE}"), "line 2: trailing characters"),
        (
            &line("\"text\": \"a\", \"text\": \"b\""),
            "\"text\" occurs twice",
        ),
        ("\u{feff}{}", "line 2: expected value"),
    ] {
        let error = refused(&[LINE, second, LINE]);
        assert!(error.contains(told), "{error}");
    }
    // Windows line ends, and a last line end or none.
    let folder = lines(&[LINE, LINE]);
    folder.write("m.jsonl", format!("{LINE}\r\n{LINE}\r\n"));
    assert_eq!(folder.npy(&Options::default()).unwrap().memories, 2);
}

// B24, B27, B96
#[test]
fn times_say_their_zone_or_their_unit() {
    let created = |time: &str, unit| {
        let folder = lines(&[&format!("{{\"created\": {time}, \"importance\": 1}}")]);
        folder.npy(&Options {
            time_unit: unit,
            ..Options::default()
        })
    };
    let at = |time, unit| created(time, unit).unwrap().first_created.unwrap();
    let utc = at("\"2023-02-12T15:00:00Z\"", None);
    assert_eq!(at("\"2023-02-13T00:00:00+09:00\"", None), utc);
    assert_eq!(at("\"2023-02-12 15:00:00+00:00\"", None), utc);
    // A clock that was put forward or back: the moments stay an hour apart.
    let hour = 3_600_000_000;
    assert_eq!(
        at("\"2023-03-26T03:30:00+02:00\"", None) - at("\"2023-03-26T01:30:00+01:00\"", None),
        hour
    );
    let seconds = 1_758_344_479_000_000;
    assert_eq!(at("1758344479", Some(TimeUnit::Seconds)), seconds);
    assert_eq!(
        at("1758344479.5", Some(TimeUnit::Seconds)),
        seconds + 500_000
    );
    assert_eq!(at("1758344479000", Some(TimeUnit::Milliseconds)), seconds);
    assert_eq!(
        at("1758344479000000", Some(TimeUnit::Microseconds)),
        seconds
    );

    for (time, told) in [
        ("\"2023-02-12T15:00:00\"", "write date, time and zone"),
        ("\"2023-02-12\"", "write date, time and zone"),
        ("\"soon\"", "write date, time and zone"),
        ("\"2023-02-30T00:00:00Z\"", "write date, time and zone"),
        ("\"2023-02-12_15:00:00Z\"", "write date, time and zone"),
        ("\"\"", "write date, time and zone"),
        ("1758344479", "declare their unit"),
        ("1758344479.5", "declare their unit"),
        ("true", "RFC 3339"),
        ("[]", "RFC 3339"),
        ("null", "is absent"),
    ] {
        let error = created(time, None).unwrap_err().to_string();
        assert!(
            error.contains("m.jsonl, line 1: `created`") && error.contains(told),
            "{error}"
        );
    }
    for (time, unit) in [
        ("1758344479", TimeUnit::Milliseconds),
        ("1758344479000", TimeUnit::Seconds),
    ] {
        let report = created(time, Some(unit)).unwrap();
        assert_eq!(
            report.notice(N::TimeSuspicious).unwrap().count,
            1,
            "{report}"
        );
    }
    for time in ["1758344479000000", "1e300", "-1e300"] {
        let error = created(time, Some(TimeUnit::Seconds))
            .unwrap_err()
            .to_string();
        assert!(error.contains("is the declared unit right?"), "{error}");
    }
    let report = created("-1", Some(TimeUnit::Seconds)).unwrap();
    let told = ["importance-absent", "time-before-1970", "time-suspicious"];
    assert_eq!(names(&report)[1..], told[1..], "{report}");
    let report = created("\"2023-02-12T15:00:00.1234567Z\"", None).unwrap();
    assert_eq!(report.notice(N::TimeRounded).unwrap().count, 1);
    assert_eq!(report.first_created, Some(utc + 123_456));
    let report = created("\"2023-02-12T15:00:00.123456000Z\"", None).unwrap();
    assert_eq!(report.notice(N::TimeRounded), None);
}

#[test]
fn an_expiry_that_stands_for_none_names_the_line() {
    let expiry = |us: i64| {
        let folder = lines(&[LINE, &line(&format!("\"expiry\": {us}"))]);
        let outcome = folder.npy(&Options {
            time_unit: Some(TimeUnit::Microseconds),
            ..Options::default()
        });
        outcome.map(|_| open(&folder).memory(1).unwrap().expiry)
    };
    let error = expiry(i64::MAX).unwrap_err().to_string();
    assert!(
        error.contains("m.jsonl, line 2: expiry is 9223372036854775807"),
        "{error}"
    );
    assert_eq!(expiry(i64::MAX - 1).unwrap(), Some(i64::MAX - 1));
}

#[test]
fn evidence_by_key_by_id_and_by_position() {
    let report = import(&[
        &line(r#""key": "a""#),
        &line(
            r#""key": "b", "kind": "reflection", "evidence": ["a", 0, "c", "b", 99, "zz", {"missing": "a"}]"#,
        ),
        &line(r#""id": "c", "kind": "reflection", "evidence": [1]"#),
        &line(r#""evidence": "a""#),
        &line(r#""evidence": null"#),
        &line(r#""evidence": []"#),
    ]);
    assert_eq!(affected(&report, N::EvidenceDuplicate), ["b: 0"]);
    assert_eq!(affected(&report, N::EvidenceForward), ["b: c"]);
    assert_eq!(affected(&report, N::EvidenceSelf), ["b: b"]);
    assert_eq!(
        affected(&report, N::EvidenceDangling),
        ["b: 99", "b: zz", "b: a"]
    );
    assert_eq!(affected(&report, N::EvidenceString), ["line 4: a"]);
    assert_eq!(affected(&report, N::EvidenceNull), ["line 5"]);

    let report = import(&[
        &line(r#""id": 0"#),
        &line(r#""id": 5, "evidence": [0]"#),
        &line(r#""id": 7, "evidence": [5, 1]"#),
    ]);
    assert_eq!(
        affected(&report, N::IdRenumbered),
        ["5: 5 becomes 1", "7: 7 becomes 2"]
    );
    assert_eq!(affected(&report, N::EvidenceDangling), ["7: 1"]);

    for again in [r#""key": "a""#, r#""id": "a""#] {
        let error = refused(&[&line(r#""key": "a""#), LINE, &line(again)]);
        assert!(
            error.contains("line 3") && error.contains("\"a\" was already used by line 1"),
            "{error}"
        );
    }
    let error = refused(&[&line("\"id\": 4"), &line("\"id\": 4")]);
    assert!(
        error.contains("\"4\" was already used by line 1"),
        "{error}"
    );
}

#[test]
fn a_numeric_id_is_the_key_or_kept_beside_it() {
    let folder = lines(&[
        &line(r#""id": 17, "payload": [1]"#),
        &line(r#""id": 4, "key": "a""#),
        &line(r#""id": 2, "key": "b", "payload": [1]"#),
        &line(r#""id": 0, "key": "c", "mood": 1, "payload": [1]"#),
        &line(r#""id": 9, "key": "d", "payload_hex": "00""#),
        &line(r#""key": "e", "evidence": [17, "17", "a", 4, 0]"#),
    ]);
    let report = folder.npy(&Options::default()).unwrap();
    let renumbered = ["17: 17 becomes 0", "a: 4 becomes 1"];
    assert_eq!(affected(&report, N::IdRenumbered)[..2], renumbered);
    assert_eq!(report.notice(N::IdRenumbered).unwrap().count, 4);
    assert_eq!(affected(&report, N::UnknownField), ["c: mood"]);
    let store = open(&folder);
    let memory = |row| store.memory(row).unwrap();
    assert_eq!(
        (memory(0).key, memory(0).payload),
        (Some("17"), &b"[1]"[..])
    );
    assert_eq!(store.row_of_key("17").unwrap(), Some(0));
    let payloads = [1, 2, 3, 4].map(|row| memory(row).payload);
    let expected: [&[u8]; 4] = [
        br#"{"id":4}"#,
        b"[1]",
        br#"{"id":0,"mood":1,"payload":[1]}"#,
        b"\0",
    ];
    assert_eq!(payloads, expected);
    assert_eq!(memory(5).evidence, [0, 0, 1, 1, 3].map(Reference::Id));

    // Keys are one name space, whether text or number; an id beside a key is none.
    let error = refused(&[&line(r#""key": "4""#), &line("\"id\": 4")]);
    assert!(
        error.contains("line 2") && error.contains("\"4\" was already used by line 1"),
        "{error}"
    );
    import(&[&line(r#""key": "4""#), &line(r#""id": 4, "key": "5""#)]);
}

#[test]
fn depth_as_given_else_by_evidence() {
    let report = import(&[
        LINE,
        &line(r#""kind": "reflection", "evidence": [0]"#),
        &line(r#""kind": "reflection", "evidence": [1], "depth": 2"#),
        &line(r#""kind": "reflection", "evidence": [2], "depth": 9"#),
        &line(r#""kind": "plan", "depth": 0"#),
    ]);
    let told = ["line 4: 9 in the file and stored, 3 by its evidence"];
    assert_eq!(affected(&report, N::DepthDiffers), told);
    assert_eq!(report.kinds["reflection"], 3);
}

#[test]
fn defaults_are_told_and_wrong_types_name_the_line() {
    let report = import(&[
        r#"{"created": "2023-02-13T00:00:00Z", "key": null, "expiry": null, "text": null}"#,
    ]);
    assert_eq!(names(&report), ["last-access-absent", "importance-absent"]);
    assert_eq!(report.kinds["observation"], 1);
    let report = import(&[&line(r#""last_accessed": 3, "mood": {}, "payload": 1"#)]);
    let unknown = ["line 1: last_accessed", "line 1: mood"];
    assert_eq!(affected(&report, N::UnknownField), unknown);
    for (field, value) in [
        ("key", "3"),
        ("id", "-1"),
        ("id", "[]"),
        ("kind", "3"),
        ("text", "[]"),
        ("last_accessed", "{}"),
        ("expiry", "3"),
        ("importance", "\"8/10\""),
        ("importance", "1e39"),
        ("importance", "1e400"),
        ("evidence", "7"),
        ("evidence", "[null]"),
        ("evidence", "[-1]"),
        ("evidence", "[{\"missing\": \"a\", \"x\": 1}]"),
        ("depth", "-1"),
        ("depth", "4294967296"),
        ("payload_hex", "\"abc\""),
        ("payload_hex", "\"zz\""),
        ("payload_hex", "3"),
    ] {
        let fields = format!("{{\"created\": \"2023-02-13T00:00:00Z\", \"{field}\": {value}}}");
        let error = refused(&[LINE, &fields]);
        assert!(
            error.contains(&format!("m.jsonl, line 2: `{field}`")),
            "{error}"
        );
    }
    let error = refused(&[&line(r#""payload_hex": "00", "payload": 1"#)]);
    assert!(error.contains("beside it"), "{error}");
}

#[test]
fn missing_files_are_named() {
    let folder = lines(&[LINE]);
    std::fs::remove_file(folder.source().join("m.jsonl")).unwrap();
    let error = folder.npy(&Options::default()).unwrap_err().to_string();
    assert!(
        error.contains("m.jsonl") && error.contains("together with"),
        "{error}"
    );
    std::fs::remove_file(folder.source().join("m.npy")).unwrap();
    let error = folder.npy(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("m.npy"), "{error}");
}

#[test]
fn what_is_stored() {
    let folder = Folder::new();
    folder.write(
        "m.npy",
        f32_npy(2, &[1.0, 2.0, 0.0, 0.0, 0.1, 3.0, 4.0, 5.0]),
    );
    let all = [
        &line(
            r#""key": "a", "text": "\u00e9", "expiry": "2023-03-13T00:00:00Z", "payload": {"b":1, "a":[]}"#,
        ),
        &line(r#""id": "b", "kind": "plan", "payload_hex": "00fF""#),
        r#"{"created": "2023-02-13T00:00:00Z", "last_accessed": "2023-02-14T00:00:00Z", "importance": null, "z": 1, "b": {}, "payload": "p"}"#,
        &line(r#""kind": "reflection", "evidence": ["b", 0, "zz", {"missing": "a"}, 7]"#),
    ];
    folder.write("m.jsonl", all.join("\n"));
    folder.npy(&Options::default()).unwrap();
    let store = open(&folder);
    let day = 86_400_000_000;
    let memories: Vec<_> = (0..4).map(|row| store.memory(row).unwrap()).collect();
    assert_eq!((memories[0].key, memories[0].text), (Some("a"), "é"));
    assert_eq!(memories[0].expiry, Some(memories[0].created + 28 * day));
    assert_eq!(memories[0].payload, br#"{"b":1, "a":[]}"#);
    assert_eq!(
        (memories[1].key, memories[1].has_embedding),
        (Some("b"), false)
    );
    assert_eq!(
        (memories[1].kind.as_str(), memories[1].payload),
        ("plan", &[0, 255][..])
    );
    assert_eq!(memories[2].last_access, memories[2].created + day);
    assert_eq!((memories[2].key, memories[2].importance), (None, 1.0));
    assert_eq!(memories[2].payload, br#"{"b":{},"z":1,"payload":"p"}"#);
    assert_eq!(store.embedding(2), Some(vec![0.1, 3.0]));
    let missing = |text: &str| Reference::Missing(text.to_owned());
    let evidence = [
        Reference::Id(1),
        Reference::Id(0),
        missing("zz"),
        missing("a"),
        missing("7"),
    ];
    assert_eq!(memories[3].evidence, evidence);
    assert_eq!(memories[3].depth, 1);
}

#[test]
fn a_bad_last_row_leaves_nothing() {
    let mut values = [1.0, 2.0].repeat(20_000);
    values[39_999] = f32::NAN;
    let error = matrix(f32_npy(2, &values), 20_000, &Options::default()).unwrap_err();
    assert!(
        error.to_string().contains("row 19999: element 1: NaN"),
        "{error}"
    );
}

#[test]
fn progress_is_told_at_the_start_now_and_then_and_at_the_end() {
    for (rows, told) in [
        (0, vec![0]),
        (1, vec![0, 1]),
        (4096, vec![0, 4096]),
        (10_000, vec![0, 4096, 8192, 10_000]),
    ] {
        let folder = Folder::new();
        folder.write("m.npy", f32_npy(2, &[1.0, 2.0].repeat(rows)));
        folder.write("m.jsonl", format!("{LINE}\n").repeat(rows));
        let [npy, jsonl] = ["m.npy", "m.jsonl"].map(|name| folder.source().join(name));
        let mut calls = Vec::new();
        let mut progress = |done, total| {
            assert_eq!(total, rows as u64);
            calls.push(done);
        };
        let (to, options) = (folder.store(), Options::default());
        memorank::import::npy(&npy, &jsonl, &to, &options, &mut progress).unwrap();
        assert_eq!(calls, told);
    }
}

#[test]
fn a_line_may_say_whether_its_row_is_a_vector_and_must_be_right() {
    let of = |fields: &str, values: [f32; 2]| {
        let folder = Folder::new();
        folder.write("m.npy", f32_npy(2, &values));
        folder.write("m.jsonl", line(fields));
        folder.npy(&Options::default())
    };
    let (zeros, vector) = ([0.0; 2], [1.0, 2.0]);
    let report = of("\"has_embedding\": false", zeros).unwrap();
    assert_eq!(names(&report), ["vector-missing"]);
    let report = of("\"has_embedding\": true", vector).unwrap();
    assert_eq!(report.notices, []);
    for (fields, values) in [
        ("\"has_embedding\": true", zeros),
        ("\"has_embedding\": false", vector),
    ] {
        let error = of(fields, values).unwrap_err().to_string();
        assert!(error.contains("line 1: `has_embedding` is "), "{error}");
    }
    let report = of("\"has_embedding\": null", zeros).unwrap();
    assert_eq!(names(&report), ["vector-zero"]);
    // Anything else is another program's field.
    let report = of("\"has_embedding\": \"yes\"", vector).unwrap();
    assert_eq!(names(&report), ["unknown-field"]);
}

#[test]
fn no_row_is_longer_than_a_store_takes() {
    let dim = (1 << 20) + 1;
    let npy = npy_bytes("<f4", 1, dim, &vec![0; dim * 4]);
    let refused = matrix(npy, 1, &Options::default());
    assert!(
        matches!(
            refused,
            Err(ImportError::Npy {
                source: HeaderError::Dim { dim: 1_048_577 },
                ..
            })
        ),
        "{refused:?}"
    );
}
