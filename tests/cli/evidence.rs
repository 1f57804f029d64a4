//! What memories rest on: `evidence`, `integrity`, `delete --policy`, `add --supersedes`.

use crate::import_common::data;
use crate::stage::{Stage, T_TEXT, copy, files, overwrite, run, state};
use memorank::store::Store;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `a` and `b` observed, `r` concluded from both, `top` from `r` and `a`.
fn concluded() -> (Stage, String) {
    let stage = Stage::new();
    let store = stage.at("S");
    run(["create", &store]).ok();
    let add = |key: &str, kind: &str, text: &str, evidence: &[&str]| {
        let cited = evidence.iter().flat_map(|key| ["--evidence", key]);
        let args = [
            "add",
            &store,
            text,
            "--key",
            key,
            "--kind",
            kind,
            "--created",
            T_TEXT,
        ];
        run(args.into_iter().chain(cited)).ok();
    };
    add("a", "observation", "Klaus reads", &[]);
    add("b", "observation", "Klaus takes notes", &[]);
    add("r", "reflection", "Klaus studies", &["b", "a"]);
    add("top", "reflection", "Klaus is \"diligent\"", &["r", "a"]);
    (stage, store)
}

fn json_of(args: &[&str]) -> Value {
    run([args, &["--json"]].concat()).json()
}

#[test]
fn a_tree_tells_each_memorys_evidence_once_and_in_order() {
    let (stage, store) = concluded();
    let before = files(&stage.path("S"));
    let expected = "\
top (id 3)  reflection, depth 2  Klaus is \"diligent\"
  r (id 2)  reflection, depth 1  Klaus studies
    b (id 1)  observation, depth 0  Klaus takes notes
    a (id 0)  observation, depth 0  Klaus reads
  a (id 0)  observation, depth 0  Klaus reads  (as above)
nothing rests on it
";
    assert_eq!(run(["evidence", &store, "top"]).ok(), expected);
    let expected = "\
a (id 0)  observation, depth 0  Klaus reads
2 memories rest on it:
  r (id 2)  reflection, depth 1  Klaus studies
  top (id 3)  reflection, depth 2  Klaus is \"diligent\"
";
    assert_eq!(
        run(["evidence", &store, "0", "--dependants"]).ok(),
        expected
    );
    let cut = run(["evidence", &store, "top", "--limit", "2"]).ok();
    assert!(cut.contains("... it goes on: --limit"), "{cut}");
    let document = json_of(&["evidence", &store, "top"]);
    let levels: Vec<_> = document["tree"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["level"])
        .collect();
    assert_eq!(levels, [0, 1, 2, 2, 1]);
    assert_eq!(
        (&document["id"], &document["depth"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(document["dependants"], json!([]));
    assert_eq!(files(&stage.path("S")), before);
}

#[test]
fn a_tree_is_drawn_in_two_languages() {
    let (_stage, store) = concluded();
    let dot = run(["evidence", &store, "r", "--dot"]).ok();
    let lines: Vec<_> = dot.lines().map(str::trim).collect();
    assert_eq!(lines[0], "digraph evidence {");
    for line in [
        "n2 [label=\"2 reflection: Klaus studies\"];",
        "n2 -> n1;",
        "n2 -> n0;",
        "}",
    ] {
        assert!(lines.contains(&line), "{dot}");
    }
    assert!(!dot.contains("diligent"), "{dot}");
    let cut = run(["evidence", &store, "r", "--dot", "--limit", "2"]).ok();
    assert!(cut.ends_with("}\n// it goes on: --limit\n"), "{cut}");
    let cut = run(["evidence", &store, "r", "--mermaid", "--limit", "2"]).ok();
    assert!(cut.ends_with("\n%% it goes on: --limit\n"), "{cut}");
    let all = run(["evidence", &store, "r", "--dot", "--dependants"]).ok();
    assert!(
        all.contains("Klaus is \\\"diligent\\\"") && all.contains("n3 -> n2;"),
        "{all}"
    );
    let mermaid = run(["evidence", &store, "r", "--mermaid"]).ok();
    assert!(
        mermaid.starts_with("flowchart TD\n") && mermaid.contains("n2 --> n1\n"),
        "{mermaid}"
    );
}

#[test]
fn a_deletion_goes_by_its_policy_and_lists_what_rests_on_it_first() {
    let refused = "memorank: other memories rest on these; nothing was deleted: --policy keep, or --policy cascade\n";
    let lines = "\
cites them: r (id 2)  reflection, depth 1  Klaus studies
rests on them: top (id 3)  reflection, depth 2  Klaus is \"diligent\"
";
    let (stage, store) = concluded();
    let before = state(&stage.path("S"));
    let dry = run(["delete", &store, "b", "--dry-run"]).ok();
    let none = format!("refused, as others rest on them\n{store}: 4 memories left\n");
    assert_eq!(dry, format!("{lines}{none}"));
    assert_eq!(state(&stage.path("S")), before);
    let ran = run(["delete", &store, "b"]);
    assert_eq!((ran.code, &*ran.out, &*ran.err), (Some(1), &*dry, refused));
    for (policy, would, left) in [
        ("keep", "would delete b (id 1)  Klaus takes notes\n", 3),
        (
            "cascade",
            "would delete b (id 1)  Klaus takes notes\nwould delete r (id 2)  Klaus studies\n\
             would delete top (id 3)  Klaus is \"diligent\"\n",
            1,
        ),
    ] {
        let told = run(["delete", &store, "b", "--policy", policy, "--dry-run"]).ok();
        assert_eq!(
            told,
            format!("{lines}{would}{store}: {left} memories left\n")
        );
        let planned = json_of(&["delete", &store, "b", "--policy", policy, "--dry-run"]);
        assert_eq!(state(&stage.path("S")), before);
        let (_stage, other) = concluded();
        let done = json_of(&["delete", &other, "b", "--policy", policy]);
        for field in ["policy", "dependants", "deleted", "memories"] {
            assert_eq!(done[field], planned[field], "{field}");
        }
        assert_eq!(
            (&done["dry_run"], &planned["dry_run"]),
            (&json!(false), &json!(true))
        );
        assert_eq!(json_of(&["info", &other])["memories"], left);
    }
    // With all that rests on it.
    run(["delete", &store, "b", "r", "top"]).ok();
    assert_eq!(json_of(&["info", &store])["memories"], 1);
}

#[test]
fn a_text_that_cannot_be_told_is_no_reason_to_delete() {
    let (stage, store) = concluded();
    run(["checkpoint", &store]).ok();
    // The one that is to be deleted, and one that rests on it.
    for broken in ["Klaus takes notes", "Klaus studies"] {
        let damaged = stage.at("damaged");
        copy(&stage.path("S"), &stage.path("damaged"));
        let text = stage.path("damaged/text.bytes");
        let bytes = std::fs::read(&text).unwrap();
        let at = bytes
            .windows(broken.len())
            .position(|w| w == broken.as_bytes());
        overwrite(&text, at.unwrap(), &[0xff]);
        let before = state(&stage.path("damaged"));
        for policy in ["keep", "cascade"] {
            let told = run(["delete", &damaged, "b", "--policy", policy]).fails(3);
            assert!(told.contains("is not UTF-8"), "{told}");
            assert_eq!(state(&stage.path("damaged")), before);
        }
        std::fs::remove_dir_all(stage.path("damaged")).unwrap();
    }
}

#[test]
fn what_rests_on_a_deleted_memory_says_so_and_integrity_finds_it() {
    let (_stage, store) = concluded();
    assert!(
        run(["integrity", &store])
            .ok()
            .ends_with("4 memories, 4 citations checked\nsound\n")
    );
    run(["delete", &store, "b", "--policy", "keep"]).ok();
    for _ in 0..2 {
        let tree = run(["evidence", &store, "top"]).ok();
        assert!(tree.contains("\n    id 1: DELETED\n"), "{tree}");
        assert!(tree.contains("\nit rests on a deleted memory\n"), "{tree}");
        let found = run(["integrity", &store]);
        let expected = "deleted: r: evidence 0 was deleted: 1\n1 deleted\n";
        assert!(found.out.ends_with(expected), "{}", found.out);
        found.fails(3);
        // Depths are as they were.
        assert_eq!(json_of(&["show", &store, "top"])["depth"], 2);
        run(["compact", &store]).ok();
    }
    let missing = run(["evidence", &store, "1"]).fails(1);
    assert!(missing.contains("was deleted"), "{missing}");
}

#[test]
fn what_rests_on_a_corrected_memory_says_so() {
    let (_stage, store) = concluded();
    run([
        "add",
        &store,
        "Maria takes notes",
        "--key",
        "c",
        "--supersedes",
        "b",
    ])
    .ok();
    let tree = run(["evidence", &store, "r"]).ok();
    assert!(
        tree.contains("b (id 1)  observation, depth 0  Klaus takes notes  corrected by id 4"),
        "{tree}"
    );
    let found = run(["integrity", &store]);
    assert!(
        found
            .out
            .contains("superseded: r: evidence 0 was corrected: 1 by 4\n"),
        "{}",
        found.out
    );
    found.fails(3);
}

#[test]
fn the_rules_of_integrity_can_be_others() {
    let (_stage, store) = concluded();
    let counts = |args: &[&str]| {
        let ran = run([&["integrity", &store, "--json"], args].concat());
        let document: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(
            ran.code,
            Some(if document["sound"] == true { 0 } else { 3 })
        );
        document["counts"].clone()
    };
    assert_eq!(counts(&[]), json!({}));
    assert_eq!(
        counts(&["--cited", "observation"]),
        json!({"wrong-evidence": 1})
    );
    let observations = counts(&["--conclusions", "observation"]);
    assert_eq!(
        observations,
        json!({"depth-mismatch": 4, "empty": 2, "wrong-kind": 2})
    );
    let both = ["--conclusions", "observation", "--may-cite", "reflection"];
    assert_eq!(counts(&both), json!({"depth-mismatch": 4, "empty": 2}));
}

/// What the file of an archive says of its broken citations, and of reflections without any.
fn predicted(nodes: &Value) -> BTreeMap<&'static str, u64> {
    let nodes = nodes.as_object().unwrap();
    let of = |kind: &'static str| nodes.values().filter(move |node| node["type"] == kind);
    let cites = |node: &&Value| match &node["filling"] {
        Value::String(_) => true,
        Value::Array(cited) => !cited.is_empty(),
        _ => false,
    };
    let texts = |kind| of(kind).filter(|node| node["filling"].is_string()).count() as u64;
    let counts = [
        ("dangling", texts("thought") + texts("event")),
        (
            "empty",
            of("thought").filter(|node| !cites(node)).count() as u64,
        ),
        ("wrong-kind", of("event").filter(cites).count() as u64),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn real_archives_have_the_faults_that_their_files_show() {
    let Some(data) = data() else { return };
    let stage = Stage::new();
    let (mut dangling, mut archives) = (0, 0);
    for folder in ["data/reverie", "data/reverie_nodes_only"] {
        for entry in std::fs::read_dir(data.join(folder)).unwrap() {
            let source = entry.unwrap().path();
            let Ok(nodes) = std::fs::read_to_string(source.join("nodes.json")) else {
                continue; // a licence
            };
            archives += 1;
            let store = stage.at(source.file_name().unwrap().to_str().unwrap());
            run(["import", "reverie", source.to_str().unwrap(), &store]).ok();
            let found = run(["integrity", &store, "--json"]);
            let document: Value = serde_json::from_str(&found.out).unwrap();
            let expected = predicted(&serde_json::from_str(&nodes).unwrap());
            assert_eq!(document["counts"], json!(expected), "{store}");
            assert_eq!(found.code, Some(if expected.is_empty() { 0 } else { 3 }));
            dangling += expected.get("dangling").copied().unwrap_or(0);
            let rows = Store::open_read_only(&store).unwrap().snapshot().len();
            assert_eq!(document["memories"], rows);
        }
    }
    assert_eq!((archives, dangling), (16, 141));
}
