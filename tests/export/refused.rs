//! Exports that contradict themselves though their checksums are right, as another program could write them.

use crate::example::*;
use crate::hostile::exported;
use memorank::kernel::Dtype;

/// What replaces what in a file, and what must be said of it.
type Edit = (&'static str, &'static str, &'static str);

fn each(edits: &[Edit], file: usize) {
    let folder = Folder::new();
    exported(&folder);
    for &(from, to, expected) in edits {
        folder.edited("export", "edited", |texts, _| {
            assert_eq!(
                texts[file].matches(from).count(),
                1,
                "{from} in {}",
                texts[file]
            );
            texts[file] = texts[file].replace(from, to);
        });
        match folder.import("edited", "imported") {
            Ok(_) => panic!("{from} -> {to} is taken"),
            Err(error) => {
                let told = error.to_string();
                let path = folder.path("edited").join("");
                let told = told.replace(path.to_str().unwrap(), "");
                assert!(told.contains(expected), "{from} -> {to}: {told}");
            }
        }
    }
}

// B93, B96 and others.
#[test]
fn a_line_that_is_not_as_an_export_writes_it_is_told_by_its_number() {
    const FIRST: &str = "memories.jsonl, line 1: ";
    each(
        &[
            ("\"id\":0,", "", "memories.jsonl, line 1: `id` is absent"),
            (
                "\"id\":0",
                "\"id\":0.0",
                "memories.jsonl, line 1: `id` is 0.0",
            ),
            (
                "\"id\":0",
                "\"id\":-1",
                "memories.jsonl, line 1: `id` is -1",
            ),
            (
                "\"id\":0",
                "\"id\":\"0\"",
                "memories.jsonl, line 1: `id` is \"0\"",
            ),
            (
                "\"id\":0",
                "\"id\":2",
                "line 2: `id` is 2; expected one above that of the line before",
            ),
            (
                "\"id\":0",
                "\"id\":3",
                "line 1: `id` is 3; expected one below the `next_id`",
            ),
            (
                "\"id\":2",
                "\"id\":18446744073709551615",
                "line 2: `id` is 18446744073709551615",
            ),
            (
                "\"id\":2",
                "\"id\":18446744073709551616",
                "line 2: `id` is 18446744073709551616",
            ),
            ("\"key\":\"k0\",", "", "line 1: `key` is absent"),
            ("\"key\":\"k0\"", "\"key\":1", "line 1: `key` is 1"),
            ("\"key\":\"k0\"", "\"key\":\"\"", "line 1: the key is empty"),
            (
                "\"key\":null",
                "\"key\":\"k0\"",
                "line 2: key \"k0\" is taken by the memory with id 0",
            ),
            (
                "\"kind\":\"observation\"",
                "\"kind\":\"other\"",
                "line 1: `kind` is \"other\"",
            ),
            (
                "\"kind\":\"observation\"",
                "\"kind\":null",
                "line 1: `kind` is null",
            ),
            (
                "\"text\":\"zero\"",
                "\"text\":null",
                "line 1: `text` is null",
            ),
            (
                "\"text\":\"zero\"",
                "\"text\":\"\\ud800\"",
                "line 1: `text` is \"\\ud800\"",
            ),
            ("\"text\":\"zero\"", "\"text\":\"\u{1}\"", FIRST),
            (
                "\"expiry\":null",
                "\"expiry\":9223372036854775807",
                "line 1: expiry is",
            ),
            ("\"expiry\":null,", "", "line 1: `expiry` is absent"),
            (
                "\"expiry\":-9223372036854775808",
                "\"expiry\":-9223372036854775809",
                "line 2: `expiry` is -9223372036854775809",
            ),
            (
                "Z\",\"expiry\":null",
                ".000Z\",\"expiry\":null",
                "line 1: `last_access` is \"2023-02-13T00:00:00.000Z\"",
            ),
            (
                "Z\",\"expiry\":null",
                "\",\"expiry\":null",
                "line 1: `last_access` is \"2023-02-13T00:00:00\"",
            ),
            (
                "\"2023-02-13T00:00:00Z\",\"expiry\":null",
                "1676246400000000,\"expiry\":null",
                "line 1: `last_access` is 1676246400000000",
            ),
            (
                "\"2023-02-13T00:00:00Z\",\"expiry\":null",
                "1676246400.5,\"expiry\":null",
                "line 1: `last_access` is 1676246400.5",
            ),
            (
                "1.0,\"depth\":0,\"evidence\":[{",
                "null,\"depth\":0,\"evidence\":[{",
                "line 1: `importance` is null",
            ),
            (
                "1.0,\"depth\":0,\"evidence\":[{",
                "1e400,\"depth\":0,\"evidence\":[{",
                "line 1: `importance` is 1e400",
            ),
            (
                "1.0,\"depth\":0,\"evidence\":[{",
                "1e39,\"depth\":0,\"evidence\":[{",
                "line 1: `importance` is 1e39",
            ),
            (
                "1.0,\"depth\":0,\"evidence\":[{",
                "NaN,\"depth\":0,\"evidence\":[{",
                FIRST,
            ),
            (
                "1.0,\"depth\":0,\"evidence\":[{",
                "0.1,\"depth\":0,\"evidence\":[{",
                "line 1: `importance` is 0.1",
            ),
            (
                "1.0,\"depth\":0,\"evidence\":[{",
                "-0.0,\"depth\":0,\"evidence\":[{",
                "line 1: `importance` is -0.0",
            ),
            (
                "1.0,\"depth\":0,\"evidence\":[{",
                "\"1\",\"depth\":0,\"evidence\":[{",
                "line 1: `importance` is \"1\"",
            ),
            (
                "\"depth\":0,\"evidence\":[{",
                "\"depth\":4294967296,\"evidence\":[{",
                "line 1: `depth` is 4294967296",
            ),
            ("[0,1]", "null", "line 2: `evidence` is null"),
            ("[0,1]", "[0,null]", "line 2: `evidence` is [0,null]"),
            ("[0,1]", "[0,1.5]", "line 2: `evidence` is [0,1.5]"),
            ("[0,1]", "[\"k0\"]", "line 2: `evidence` is [\"k0\"]"),
            ("[0,1]", "[{\"missing\":1}]", "line 2: `evidence` is"),
            (
                "[0,1]",
                "[{\"missing\":\"a\",\"b\":1}]",
                "line 2: `evidence` is",
            ),
            (
                "\"has_embedding\":true",
                "\"has_embedding\":false",
                "line 1: `has_embedding` is false; expected true",
            ),
            (
                "\"has_embedding\":true",
                "\"has_embedding\":1",
                "line 1: `has_embedding` is 1",
            ),
            (
                "\"has_embedding\":false",
                "\"has_embedding\":true",
                "embeddings.npy, row 1: the stored embedding has length 0",
            ),
            (
                "\"payload\":{\"a\": 1}",
                "\"payload\":null",
                "line 1: `payload` is null",
            ),
            (
                "\"payload\":{\"a\": 1}",
                "\"payload\":1,\"payload_hex\":\"00\"",
                "line 1: `payload` is 1",
            ),
            ("\"payload\":{\"a\": 1}", "\"payload\":{\"a\" 1}", FIRST),
            (
                "\"payload_hex\":\"ff\"",
                "\"payload_hex\":\"f\"",
                "line 2: `payload_hex` is \"f\"",
            ),
            (
                "\"payload_hex\":\"ff\"",
                "\"payload_hex\":\"fé\"",
                "line 2: `payload_hex` is \"fé\"",
            ),
            (
                "\"payload_hex\":\"ff\"",
                "\"payload_hex\":255",
                "line 2: `payload_hex` is 255",
            ),
            (
                "\"payload_hex\":\"ff\"",
                "\"x\":1",
                "line 2: an unknown field \"x\"",
            ),
            (
                "\"payload_hex\":\"ff\"",
                "\"text\":\"two\"",
                "line 2: \"text\" occurs twice",
            ),
            ("{\"id\":0", "[{\"id\":0", FIRST),
            ("{\"id\":2", "\n{\"id\":2", "line 2: an empty line"),
            ("}\n{\"id\":2", "}{\"id\":2", FIRST),
            (
                "\"payload_hex\":\"ff\"}\n",
                "\"payload_hex\":\"ff\"}\n{}\n",
                "memories.jsonl, line 3: `id` is absent",
            ),
        ],
        0,
    );
}

#[test]
fn a_document_that_is_not_as_an_export_writes_it_is_told() {
    each(
        &[
            (
                "\"memorank export\"",
                "\"memorank\"",
                "store.json, the document: `format` is \"memorank\"",
            ),
            (
                "\"version\": 1",
                "\"version\": 2",
                "store.json, the document: `version` is 2; expected 1; use a newer memorank",
            ),
            // It may well have other fields.
            (
                "\"version\": 1",
                "\"version\": 2, \"x\": 1",
                "`version` is 2; expected 1; use a newer memorank",
            ),
            (
                "\"dim\": 2",
                "\"dim\": 0",
                "store.json, the document: `dim` is 0",
            ),
            (
                "\"dim\": 2",
                "\"dim\": 3",
                "embeddings.npy, the header: `dim` is 2, where store.json says 3",
            ),
            (
                "\"dim\": 2",
                "\"dim\": 18446744073709551615",
                "`dim` is 2, where store.json says 18446744073709551615",
            ),
            (
                "\"dim\": 2",
                "\"dim\": -2",
                "store.json: invalid value: integer `-2`, expected u64 at line 4",
            ),
            (
                "\"f16\"",
                "\"f32\"",
                "embeddings.npy, the header: `descr` is <f2, where store.json says <f4",
            ),
            (
                "\"f16\"",
                "\"f64\"",
                "store.json, the document: `dtype` is \"f64\"",
            ),
            (
                "  \"model\": \"a \\\"model\\\"\",\n",
                "",
                "store.json: missing field `model`",
            ),
            (
                "\"next_id\": 3",
                "\"next_id\": 2",
                "memories.jsonl, line 2: `id` is 2",
            ),
            (
                "\"next_id\": 3",
                "\"next_id\": null",
                "store.json: invalid type: null, expected u64 at line 7",
            ),
            (
                "\"memories\": 2",
                "\"memories\": 3",
                "embeddings.npy, the header: `rows` is 2, where store.json says 3",
            ),
            (
                "[\"observation\",",
                "[\"observation\",\"observation\",",
                "store.json, the document: `kinds` is \"observation\" twice",
            ),
            (
                "[\"observation\",",
                "[\"observation\",\"\",",
                "store.json, `kinds`: the kind has no name",
            ),
            (
                "[\"observation\",",
                "[",
                "memories.jsonl, line 1: `kind` is \"observation\"",
            ),
            (
                "\"touches\": [",
                "\"touches\": [1,",
                "store.json: invalid type: integer `1`",
            ),
            (
                "\"agent\":0,\"id\":0",
                "\"agent\":0,\"id\":1",
                "store.json, touch 0 (of memory 1 by agent 0): `id` is 1",
            ),
            (
                "\"agent\":0,\"id\":0",
                "\"agent\":0,\"id\":99",
                "store.json, touch 0 (of memory 99 by agent 0): `id` is 99",
            ),
            (
                "\"agent\":0,\"id\":0",
                "\"agent\":4294967296,\"id\":0",
                "store.json: invalid value: integer `4294967296`",
            ),
            (
                "\"agent\":0,\"id\":0",
                "\"agent\":8,\"id\":0",
                "touch 1 (of memory 0 by agent 7): `id` is 0; expected after",
            ),
            (
                "\"agent\":7,\"id\":0",
                "\"agent\":7,\"id\":2",
                "touch 2 (of memory 2 by agent 7): `id` is 2; expected after",
            ),
            (
                "00.000001Z",
                "00Z",
                "touch 0 (of memory 0 by agent 0): `last_access` is 2023-02-13T00:00:00Z; expected later",
            ),
            (
                "00.000001Z",
                "00.0000010Z",
                "store.json: invalid value: string \"2023-02-13T00:00:00.0000010Z\"",
            ),
            (
                "\"importances\": [",
                "\"importances\": [1,",
                "store.json: invalid type: integer `1`",
            ),
            (
                "\"agent\":5,\"id\":0",
                "\"agent\":5,\"id\":1",
                "store.json, importance 0 (of memory 1 for agent 5): `id` is 1",
            ),
            (
                "\"agent\":5,\"id\":0",
                "\"agent\":6,\"id\":0",
                "importance 1 (of memory 2 for agent 5): `id` is 2; expected after",
            ),
            (
                "\"importance\":2.5}",
                "\"importance\":0.1}",
                "importance 0 (of memory 0 for agent 5): `importance` is 0.1; expected a number that is exactly",
            ),
            (
                "\"importance\":2.5}",
                "\"importance\":1.0}",
                "importance 0 (of memory 0 for agent 5): `importance` is 1; expected another",
            ),
            (
                "\"embeddings.npy\"",
                "\"embeddings\"",
                "store.json: unknown field `embeddings`",
            ),
            (
                "\"files\"",
                "\"x\": 1, \"files\"",
                "store.json: unknown field `x`",
            ),
            (
                "\"files\"",
                "\"dim\": 2, \"files\"",
                "store.json: duplicate field `dim`",
            ),
        ],
        1,
    );
}

#[test]
fn a_matrix_that_is_not_as_an_export_writes_it_is_told_by_its_row() {
    let folder = Folder::new();
    exported(&folder);
    let refused = |expected: &str, edit: &dyn Fn(&mut Vec<u8>)| {
        folder.edited("export", "edited", |_, npy| edit(npy));
        let error = folder.import("edited", "imported").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused("embeddings.npy, row 0: element 1 is NaN", &|npy| {
        npy[131] = 0x7f
    });
    refused("embeddings.npy, row 0: element 0 is -inf", &|npy| {
        npy[128..130].copy_from_slice(&[0, 0xfc]);
    });
    refused("line 2: `has_embedding` is false", &|npy| npy[132] = 1);
    // -0 is not what is stored where there is no vector.
    refused("line 2: `has_embedding` is false", &|npy| npy[135] = 0x80);
    refused("the file is 137 bytes long", &|npy| npy.push(0));
    refused("embeddings.npy: not a .npy file", &|npy| npy[0] = 0);
    refused("the header: `header` is spaced", &|npy| {
        let text = String::from_utf8_lossy(&npy[10..]).into_owned();
        assert!(text.contains("'<f2', "));
        npy.splice(10..10, *b" ");
        let space = npy.iter().rposition(|&b| b == b' ').unwrap();
        npy.remove(space);
    });
    // Nothing is held of a row that is too long to be one.
    refused("rows of 1048577 elements", &|npy| {
        let text = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 1048577), }";
        npy.splice(10..128, format!("{text:<117}\n").bytes());
        npy.resize(128 + 2 * 2 * 1_048_577, 0);
    });
}

#[test]
fn a_dimension_that_no_store_takes_is_refused_without_rows_too() {
    let folder = Folder::new();
    let store = folder.create("store", 2, Dtype::F32);
    folder.export(&store.snapshot(), "export");
    folder.edited("export", "edited", |[_, json], npy| {
        *json = json.replace("\"dim\": 2", "\"dim\": 1048577");
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1048577), }";
        npy.splice(10..128, format!("{text:<117}\n").bytes());
    });
    let error = folder.import("edited", "imported").unwrap_err().to_string();
    assert!(error.contains("1048577 elements per embedding"), "{error}");
}

#[test]
fn checksums_are_compared() {
    let folder = Folder::new();
    exported(&folder);
    let [npy, jsonl, json] = files(&folder.path("export"));
    let texts = [jsonl, json].map(|bytes| String::from_utf8(bytes).unwrap());
    let [jsonl, json] = texts;
    let refused = |file: &str| {
        let error = folder.import("edited", "imported").unwrap_err().to_string();
        assert!(
            error.contains(&format!("edited/{file}: checksum is ")),
            "{error}"
        );
    };
    let mut other = npy.clone();
    other[128] ^= 1;
    folder.write("edited", &other, &jsonl, &json);
    refused("embeddings.npy");
    folder.write("edited", &npy, &jsonl.replace("zero", "ZERO"), &json);
    refused("memories.jsonl");
    folder.write("edited", &npy, &jsonl, &json.replace("a \\\"", "b \\\""));
    refused("store.json");
    folder.write("edited", &npy, &jsonl, &json);
    folder.import("edited", "imported").unwrap();
}

#[test]
fn fields_may_stand_in_any_order_and_spacing() {
    let folder = Folder::new();
    let snapshot = exported(&folder);
    folder.edited("export", "edited", |[jsonl, json], _| {
        *jsonl = jsonl.replace(
            "\"id\":0,\"key\":\"k0\"",
            "\"key\" : \"\\u006b0\", \"id\" :0",
        );
        *jsonl = jsonl.replace("}\n", "} \r\n");
        *json = json.replace("  \"dim\": 2,\n", "");
        *json = json.replace("  \"next_id\"", "\"dim\":2,\t\"next_id\"");
    });
    folder.import("edited", "imported").unwrap();
    assert_same(&snapshot, &folder.open("imported"));
}

#[test]
fn other_files_of_the_folder_are_told_and_left() {
    let folder = Folder::new();
    exported(&folder);
    std::fs::write(folder.path("export").join("notes.txt"), "x").unwrap();
    let report = folder.import("export", "imported").unwrap();
    assert_eq!(report.not_imported, ["notes.txt"]);
}
