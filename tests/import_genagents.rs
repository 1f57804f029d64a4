//! The importer of the later code's archives.

#![cfg(feature = "import")]

mod import_common;

use import_common::{Folder, affected, data, names, open};
use memorank::import::{EvidenceForm, ImportError, NoticeKind as N, Options, Report};
use memorank::kernel::Dtype;
use memorank::store::{Kind, Reference};
use serde_json::{Value, json};

fn node(id: u64, change: Value) -> Value {
    let mut node = json!({
        "node_id": id, "node_type": "observation", "content": "c", "importance": 85,
        "created": 1, "last_retrieved": 2, "pointer_id": null,
    });
    for (key, value) in change.as_object().unwrap() {
        node[key] = value.clone();
    }
    node
}

fn archive(nodes: &[Value]) -> Folder {
    Folder::archive(&json!(nodes).to_string(), r#"{"c": [0.5, 1]}"#)
}

fn import(nodes: &[Value]) -> Report {
    archive(nodes).genagents(&Options::default()).unwrap()
}

#[test]
fn the_shared_agent() {
    let Some(data) = data() else { return };
    let to = Folder::new();
    let from = data.join("data/genagents");
    let report =
        memorank::import::genagents(&from, &to.store(), &Options::default(), &mut |_, _| ())
            .unwrap();
    assert_eq!((report.memories, report.with_vector), (116, 116));
    assert_eq!((report.dim, report.dtype), (1536, Dtype::F32));
    assert_eq!(report.dtype_reason, "holds every value exactly");
    let hour = 3_600_000_000;
    assert_eq!(report.first_created, Some(hour));
    assert_eq!(report.last_created, Some(116 * hour));
    assert_eq!(names(&report), ["evidence-null"]);
    assert_eq!(report.traces[115].key, "115");
    assert_eq!(report.not_imported, ["LICENSE"]);
}

#[test]
fn steps_become_hours_after_step_zero() {
    let step_zero = 1_676_246_400_000_000;
    let options = Options {
        step_zero,
        ..Options::default()
    };
    let report = archive(&[node(0, json!({"created": 24}))])
        .genagents(&options)
        .unwrap();
    assert_eq!(report.first_created, Some(step_zero + 24 * 3_600_000_000));
    let report = import(&[node(0, json!({"created": -1, "last_retrieved": null}))]);
    assert_eq!(
        affected(&report, N::TimeBefore1970),
        ["0: created 1969-12-31T23:00:00Z"]
    );
    assert_eq!(affected(&report, N::LastAccessAbsent), ["0"]);
}

#[test]
fn pointers_are_evidence() {
    let reflection = |id, pointer| {
        node(
            id,
            json!({"node_type": "reflection", "pointer_id": pointer}),
        )
    };
    let report = import(&[
        node(0, json!({})),
        reflection(1, json!([0, 0, 7, 2, 1, -1])),
        reflection(2, json!(1)),
        reflection(3, json!("1")),
        reflection(4, json!([])),
    ]);
    assert_eq!(affected(&report, N::EvidenceDuplicate), ["1: 0"]);
    assert_eq!(affected(&report, N::EvidenceDangling), ["1: 7", "1: -1"]);
    assert_eq!(affected(&report, N::EvidenceForward), ["1: 2"]);
    assert_eq!(affected(&report, N::EvidenceSelf), ["1: 1"]);
    assert_eq!(affected(&report, N::EvidenceString), ["3: 1"]);
    let depths: Vec<u32> = report.traces.iter().map(|trace| trace.depth).collect();
    assert_eq!(depths, [0, 1, 2, 1, 1]);
    assert_eq!(report.traces[2].evidence_form, EvidenceForm::Number);
}

#[test]
fn numbering_types_and_unknown_fields_are_told() {
    let report = import(&[
        node(3, json!({})),
        node(1, json!({"node_type": "plan", "mood": 1})),
    ]);
    assert_eq!(affected(&report, N::NumberingOrder), ["1"]);
    assert_eq!(affected(&report, N::NumberingGap), ["0", "2"]);
    assert_eq!(affected(&report, N::UnknownType), ["1: plan"]);
    assert_eq!(affected(&report, N::UnknownField), ["1: mood"]);
    let keys: Vec<&str> = report
        .traces
        .iter()
        .map(|trace| trace.key.as_str())
        .collect();
    assert_eq!(keys, ["3", "1"]);
}

#[test]
fn wrong_fields_name_the_node() {
    for (field, value) in [
        ("node_type", json!(null)),
        ("content", json!(1)),
        ("created", json!(null)),
        ("created", json!(1.5)),
        ("created", json!("2023-02-13 00:00:00")),
        ("created", json!(i64::MAX)),
        ("last_retrieved", json!("1")),
        ("importance", json!("85")),
        ("importance", json!(null)),
        ("pointer_id", json!(1.5)),
        ("pointer_id", json!(["1"])),
        ("pointer_id", json!({})),
    ] {
        let mut changed = node(7, json!({}));
        changed[field] = value;
        let error = archive(&[changed])
            .genagents(&Options::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("nodes.json, node_id 7: `{field}`")),
            "{error}"
        );
    }
    let error = archive(&[json!({})])
        .genagents(&Options::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("entry 0: `node_id` is absent"), "{error}");
    let twice = archive(&[node(7, json!({})), node(7, json!({}))]);
    let error = twice.genagents(&Options::default()).unwrap_err();
    assert!(
        matches!(error, ImportError::DuplicateKey { .. }),
        "{error:?}"
    );
    let error = Folder::archive("{}", "{}")
        .genagents(&Options::default())
        .unwrap_err();
    assert!(matches!(error, ImportError::Json { .. }), "{error:?}");
}

#[test]
fn what_is_stored() {
    let folder = archive(&[
        node(4, json!({})),
        node(
            9,
            json!({"node_type": "reflection", "pointer_id": [9, 4, 3], "b": 1, "a": [2]}),
        ),
    ]);
    folder.genagents(&Options::default()).unwrap();
    let store = open(&folder);
    let hour = 3_600_000_000;
    let first = store.memory(0).unwrap();
    assert_eq!(
        (first.key, first.text, first.importance),
        (Some("4"), "c", 85.0)
    );
    assert_eq!((first.created, first.last_access), (hour, 2 * hour));
    assert_eq!((first.kind, first.payload), (&Kind::OBSERVATION, &b""[..]));
    assert_eq!(store.embedding(0), Some(vec![0.5, 1.0]));
    let second = store.memory(1).unwrap();
    let missing = Reference::Missing("3".to_owned());
    assert_eq!(
        second.evidence,
        [Reference::Id(1), Reference::Id(0), missing]
    );
    assert_eq!((second.kind, second.depth), (&Kind::REFLECTION, 1));
    assert_eq!(second.payload, br#"{"a":[2],"b":1}"#);
}

#[test]
fn progress_is_told_at_the_start_and_at_the_end() {
    let folder = archive(&[node(0, json!({})), node(1, json!({}))]);
    let mut calls = Vec::new();
    let mut progress = |done, total| calls.push((done, total));
    let (from, to, options) = (folder.source(), folder.store(), Options::default());
    memorank::import::genagents(&from, &to, &options, &mut progress).unwrap();
    assert_eq!(calls, [(0, 2), (2, 2)]);
}
