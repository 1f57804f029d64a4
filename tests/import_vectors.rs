//! Query vectors of a file.

#![cfg(feature = "import")]

mod import_common;

use import_common::{Folder, f32_npy, npy_bytes, npy_with_header};
use memorank::import::{HeaderError, ImportError, VectorProblem, read_vectors};
use memorank::kernel::f16;
use proptest::prelude::*;

/// The vectors of `content`, in a file whose name says nothing.
fn read(content: impl AsRef<[u8]>) -> Result<Vec<Vec<f32>>, ImportError> {
    let folder = Folder::new();
    folder.write("queries", content);
    read_vectors(&folder.source().join("queries"))
}

fn refused(content: impl AsRef<[u8]>) -> String {
    let error = read(content).unwrap_err().to_string();
    assert!(error.contains("queries"), "{error}");
    error
}

fn f16_data(values: &[f32]) -> Vec<u8> {
    let halves = values.iter().map(|&x| f16::from_f32(x).to_le_bytes());
    halves.flatten().collect()
}

fn f64_data(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn f32_data(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn shaped(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    npy_with_header(&header, data)
}

#[test]
fn json_is_one_list_or_a_list_of_lists() {
    assert_eq!(read("[0.1, 0.2]").unwrap(), [[0.1, 0.2]]);
    assert_eq!(read("[[0.1, 0.2]]").unwrap(), [[0.1, 0.2]]);
    assert_eq!(
        read("[[1, -2], [3e0, 0]]").unwrap(),
        [[1.0, -2.0], [3.0, 0.0]]
    );
    assert_eq!(read("\n [\t[ 7 ] ,\r\n[8]\n]\n").unwrap(), [[7.0], [8.0]]);
    assert_eq!(read(" [ 0 ]\n").unwrap(), [[0.0]]);
}

#[test]
fn json_numbers_are_rounded_to_f32() {
    let vectors = read("[0.1, 16777217, 18446744073709551615, 3.4028235e38, 1e-400]").unwrap();
    let rounded = [
        0.1,
        16_777_216.0,
        18_446_744_073_709_551_615.0,
        f32::MAX,
        0.0,
    ];
    assert_eq!(vectors, [rounded]);
}

#[test]
fn json_elements_that_are_no_finite_f32_name_vector_and_element() {
    for (content, vector, element, told) in [
        ("[null,1]", 0, 0, "invalid type: null"),
        ("[1,null]", 0, 1, "invalid type: null"),
        ("[1e400,1]", 0, 0, "number out of range"),
        ("[1,-1e400]", 0, 1, "number out of range"),
        ("[1,1e39]", 0, 1, "1e39 is beyond f32"),
        ("[[1,2],[3,1e400]]", 1, 1, "number out of range"),
        ("[[1,2],[3,-1e39]]", 1, 1, "-1e39 is beyond f32"),
        ("[[1,2],[null,4]]", 1, 0, "invalid type: null"),
        ("[1,\"2\"]", 0, 1, "invalid type: string"),
        ("[[1],[\"NaN\"]]", 1, 0, "invalid type: string"),
        ("[1,true]", 0, 1, "invalid type: boolean"),
        ("[1,{}]", 0, 1, "invalid type: map"),
        ("[NaN]", 0, 0, "expected value"),
        ("[1,-Infinity]", 0, 1, "invalid number"),
        ("[1,[2]]", 0, 1, "invalid type: sequence"),
        ("[[[1]]]", 0, 0, "invalid type: sequence"),
        ("[[1],[2,[3]]]", 1, 1, "invalid type: sequence"),
        ("[1,2", 0, 2, "EOF"),
        ("[", 0, 0, "EOF"),
        ("[[1,2],[3", 1, 1, "EOF"),
        ("[1 2]", 0, 1, "expected `,` or `]`"),
        ("[1,]", 0, 1, "trailing comma"),
    ] {
        let error = refused(content);
        let place = format!("queries, vector {vector}: element {element}: ");
        assert!(error.contains(&place), "{content}: {error}");
        assert!(error.contains(told), "{content}: {error}");
        assert!(matches!(
            read(content),
            Err(ImportError::Vector {
                problem: VectorProblem::Element { .. },
                ..
            })
        ));
    }
    let deep = "[".repeat(1_000_000);
    assert!(refused(deep).contains("vector 0: element 0: invalid type: sequence"));
}

#[test]
fn json_that_is_no_list_of_vectors_says_where() {
    for (content, told) in [
        ("", "EOF while parsing a value"),
        (" \n", "EOF while parsing a value"),
        ("3", "expected a list of numbers, or a list of such lists"),
        (
            "null",
            "expected a list of numbers, or a list of such lists",
        ),
        (
            "\"[1]\"",
            "expected a list of numbers, or a list of such lists",
        ),
        (
            "{\"a\": [1]}",
            "expected a list of numbers, or a list of such lists",
        ),
        ("\u{feff}[1]", "expected value at line 1 column 1"),
        ("[1] [2]", "trailing characters at line 1 column 5"),
        ("[[1]]]", "trailing characters at line 1 column 6"),
        ("[1]\0", "trailing characters"),
        (
            "[[1],2]",
            "vector 1: invalid type: integer `2`, expected a list of numbers at line 1",
        ),
        (
            "[[1],null]",
            "vector 1: invalid type: null, expected a list of numbers at line 1",
        ),
        (
            "[[1],{}]",
            "vector 1: invalid type: map, expected a list of numbers at line 1",
        ),
        ("[[1]", "vector 1: EOF"),
        ("[[1] [2]]", "vector 1: expected `,` or `]`"),
    ] {
        let error = refused(content);
        assert!(error.contains(told), "{content}: {error}");
        assert!(
            matches!(read(content), Err(ImportError::Json { .. })),
            "{content}"
        );
    }
    // Bytes that are no text, and numpy's magic cut short.
    for content in [&b"\xff\xfe"[..], b"\x93NUMP"] {
        assert!(refused(content).contains("expected value"));
    }
}

#[test]
fn every_vector_has_elements_and_all_have_as_many() {
    for content in ["[]", " [ ] "] {
        let error = read(content).unwrap_err();
        assert!(matches!(error, ImportError::NoVectors { .. }), "{error:?}");
        assert!(refused(content).contains("queries holds no vector"));
    }
    assert!(refused("[[]]").contains("queries, vector 0: no elements"));
    assert!(refused("[[1],[]]").contains("queries, vector 1: no elements"));
    let told = "queries, vector 2: 1 elements where vector 0 has 2";
    assert!(refused("[[1,2],[3,4],[5],[6,7]]").contains(told));
}

#[test]
fn the_rows_of_a_matrix_and_an_array_of_one_dimension() {
    assert_eq!(
        read(f32_npy(2, &[0.1, 2.0, 0.0, -0.0])).unwrap(),
        [[0.1, 2.0], [0.0, 0.0]]
    );
    assert_eq!(
        read(npy_bytes("<f2", 2, 1, &f16_data(&[0.5, -3.0]))).unwrap(),
        [[0.5], [-3.0]]
    );
    for shape in ["(2,)", "(2)", "(1, 2)"] {
        assert_eq!(
            read(shaped("<f2", shape, &f16_data(&[0.5, -3.0]))).unwrap(),
            [[0.5, -3.0]]
        );
        assert_eq!(
            read(shaped("<f4", shape, &f32_data(&[0.1, f32::MAX]))).unwrap(),
            [[0.1, f32::MAX]]
        );
        // Rounded.
        assert_eq!(
            read(shaped("<f8", shape, &f64_data(&[0.1, 16_777_217.0]))).unwrap(),
            [[0.1, 16_777_216.0]]
        );
    }
}

#[test]
fn npy_elements_that_are_not_finite_name_row_and_element() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let values = [1.0, 2.0, 3.0, bad];
        let wide = values.map(f64::from);
        for (descr, data) in [
            ("<f2", f16_data(&values)),
            ("<f4", f32_data(&values)),
            ("<f8", f64_data(&wide)),
        ] {
            let error = refused(npy_bytes(descr, 2, 2, &data));
            let told = format!("queries, row 1: element 1: {bad};");
            assert!(error.contains(&told), "{descr}: {error}");
            let error = refused(shaped(descr, "(4,)", &data));
            let told = format!("queries, row 0: element 3: {bad};");
            assert!(error.contains(&told), "{descr}: {error}");
        }
    }
    let error = refused(npy_bytes("<f8", 2, 1, &f64_data(&[1.0, -1e39])));
    let told = "queries, row 1: element 0: -1e39 is beyond f32";
    assert!(error.contains(told), "{error}");
}

#[test]
fn npy_files_that_hold_no_vectors_are_refused() {
    for shape in ["()", "(0,)", "(1, 0)", "(1, 1, 1)"] {
        let data = [0; 4];
        let error = read(shaped("<f4", shape, &data)).unwrap_err();
        let ImportError::Npy { source, .. } = &error else {
            panic!("{shape}: {error:?}");
        };
        assert!(matches!(source, HeaderError::VectorShape(_)), "{shape}");
        assert!(error.to_string().contains("one number"), "{error}");
    }
    // No rows: the dimension is not believed.
    for dim in [2, usize::MAX / 8] {
        let error = read(npy_bytes("<f4", 0, dim, &[])).unwrap_err();
        assert!(matches!(error, ImportError::NoVectors { .. }), "{error:?}");
    }
    // Longer or shorter than they say, and other kinds of element.
    for npy in [
        shaped("<f4", "(2,)", &[0; 7]),
        shaped("<f4", "(2,)", &[0; 9]),
        shaped("<f4", "(1099511627776,)", &[0; 8]),
        shaped("<f4", "(18446744073709551615,)", &[]),
        shaped(">f4", "(2,)", &[0; 8]),
        shaped("<i4", "(2,)", &[0; 8]),
        b"\x93NUMPY".to_vec(),
        [&f32_npy(1, &[1.0])[..], b"[1]"].concat(),
    ] {
        let error = read(npy).unwrap_err();
        assert!(matches!(error, ImportError::Npy { .. }), "{error:?}");
    }
}

#[test]
fn the_content_decides_and_not_the_name() {
    let folder = Folder::new();
    folder.write("a.npy", "[1, 2]");
    folder.write("b.json", f32_npy(2, &[1.0, 2.0]));
    for name in ["a.npy", "b.json"] {
        let path = folder.source().join(name);
        assert_eq!(read_vectors(&path).unwrap(), [[1.0, 2.0]]);
    }
    for missing in [folder.source().join("c.json"), folder.source()] {
        let error = read_vectors(&missing).unwrap_err();
        assert!(matches!(error, ImportError::Io { .. }), "{error:?}");
        let named = error.to_string();
        assert!(named.contains(missing.to_str().unwrap()), "{named}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_a_file() {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    for content in [b"[1, 2]".to_vec(), f32_npy(2, &[1.0, 2.0])] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&content).unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        assert_eq!(read_vectors(path.as_ref()).unwrap(), [[1.0, 2.0]]);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        dim in 1usize..6,
        all in prop::collection::vec(any::<f32>().prop_filter("finite", |x| x.is_finite()), 0..40),
    ) {
        let rows: Vec<&[f32]> = all.chunks_exact(dim).collect();
        prop_assume!(!rows.is_empty());
        prop_assert_eq!(&read(serde_json::to_string(&rows).unwrap()).unwrap(), &rows);
        prop_assert_eq!(&read(serde_json::to_string(rows[0]).unwrap()).unwrap(), &rows[..1]);
        prop_assert_eq!(&read(f32_npy(dim, &rows.concat())).unwrap(), &rows);
    }

    #[test]
    fn whatever_is_read_is_a_matrix_of_finite_numbers(text in "[\\[\\],0-9e. nul-]{0,24}") {
        if let Ok(vectors) = read(text) {
            let dim = vectors[0].len();
            prop_assert!(dim > 0);
            prop_assert!(vectors.iter().all(|v| v.len() == dim));
            prop_assert!(vectors.iter().flatten().all(|x| x.is_finite()));
        }
    }
}
