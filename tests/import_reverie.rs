//! The Reverie importer against what the authors' loader makes of real archives, and on every fault.

#![cfg(feature = "import")]

mod import_common;

use import_common::{Folder, affected, data, json, names, open};
use memorank::import::{EvidenceForm, ImportError, NoticeKind as N, Options, Report};
use memorank::kernel::Dtype;
use memorank::store::{Kind, Reference};
use serde_json::{Value, json};
use std::fs;

/// A node with `change` on top of the usual fields.
fn node(change: Value) -> Value {
    let mut node = json!({
        "node_count": 1, "type_count": 1, "type": "event", "depth": 0,
        "created": "2023-02-13 00:00:00", "expiration": null,
        "subject": "s", "predicate": "p", "object": "o", "description": "bed is idle",
        "embedding_key": "bed is idle", "poignancy": 3, "keywords": ["bed", "idle"], "filling": [],
    });
    for (key, value) in change.as_object().unwrap() {
        node[key] = value.clone();
    }
    node
}

/// An archive of `node_1`, `node_2`, ... with vectors of dimension 2.
fn archive(nodes: &[Value]) -> Folder {
    let nodes = nodes
        .iter()
        .zip(1..)
        .map(|(value, n)| (format!("node_{n}"), value.clone()));
    let nodes = Value::Object(nodes.collect());
    Folder::archive(&nodes.to_string(), r#"{"bed is idle": [0.5, 1]}"#)
}

fn import(nodes: &[Value]) -> Report {
    archive(nodes).reverie(&Options::default()).unwrap()
}

fn refused(nodes: &[Value]) -> ImportError {
    archive(nodes).reverie(&Options::default()).unwrap_err()
}

#[test]
fn reports_agree_with_the_authors_loader() {
    let Some(data) = data() else { return };
    let mut archives = 0;
    for entry in fs::read_dir(data.join("golden/loader")).unwrap() {
        let golden = json(&entry.unwrap().path());
        let Some(nodes) = golden["nodes"].as_array() else {
            continue; // the dangling case has its own test
        };
        archives += 1;
        let folder = data.join("data").join(golden["archive"].as_str().unwrap());
        let to = Folder::new();
        let report =
            memorank::import::reverie(&folder, &to.store(), &Options::default(), &mut |_, _| ())
                .unwrap();
        assert_eq!(report.traces.len(), nodes.len(), "{folder:?}");
        assert_eq!(report.memories, nodes.len() as u64);
        assert_eq!(report.dim, 1536);
        assert_eq!(report.without_vector, 0);
        let mut counts = std::collections::HashMap::new();
        for ((trace, golden), id) in report.traces.iter().zip(nodes).zip(0..) {
            assert_eq!(trace.id, id);
            assert_eq!(golden["id"], trace.key.as_str());
            assert_eq!(golden["type"], trace.type_in_file.as_str());
            let count = counts.entry(trace.type_in_file.clone()).or_insert(0);
            *count += 1;
            assert_eq!(golden["type_count"], *count);
            assert_eq!(golden["depth"], trace.depth, "{}", trace.key);
            assert_eq!(golden["depth"], trace.authors_depth.unwrap());
            assert_eq!(golden["depth_in_file"], trace.depth_in_file.unwrap());
            let form = match trace.evidence_form {
                EvidenceForm::List | EvidenceForm::Dialogue => "list",
                EvidenceForm::Null => "NoneType",
                EvidenceForm::String => "str",
                other => panic!("{other:?}"),
            };
            assert_eq!(golden["filling_kind"], form);
        }
        for kind in ["event", "thought", "chat"] {
            let newest_first = report
                .traces
                .iter()
                .rev()
                .filter(|t| t.type_in_file == kind);
            let keys: Vec<&str> = newest_first.map(|trace| trace.key.as_str()).collect();
            assert_eq!(golden[format!("seq_{kind}")], json!(keys));
        }
        // The files' own facts.
        assert_eq!(
            report.notice(N::ValuesRounded),
            None,
            "values are exactly f32"
        );
        assert_eq!(report.dtype, Dtype::F32);
        let last_access = report.notice(N::LastAccessAbsent).map_or(0, |n| n.count);
        assert_eq!(last_access, report.memories);
        assert!(report.not_imported.contains(&"kw_strength.json".to_owned()));
        let before_1970 = golden["case"] == "zh1723_guojunwang";
        assert_eq!(report.notice(N::TimeBefore1970).is_some(), before_1970);
        assert_eq!(report.notice(N::DepthDiffers), None);
        assert_eq!(report.notice(N::AuthorsDepthDiffers), None);
    }
    assert_eq!(archives, 10);
}

#[test]
fn a_dangling_reference_keeps_the_depth_and_tells_the_authors() {
    let Some(data) = data() else { return };
    let golden = json(&data.join("golden/loader/july1_dangling.json"));
    let edited = golden["edited_node"].as_str().unwrap();
    let from = data.join("data").join(golden["archive"].as_str().unwrap());
    let folder = Folder::edited(&from, |nodes, _| {
        let evidence = nodes[edited]["filling"].as_array_mut().unwrap();
        evidence.push(json!("node_9999"));
    });
    let report = folder.reverie(&Options::default()).unwrap();
    let dangling = affected(&report, N::EvidenceDangling);
    assert_eq!(dangling, [format!("{edited}: node_9999")]);
    assert_eq!(report.notice(N::DepthDiffers), None);
    let changed = golden["depth_changed"].as_object().unwrap();
    for trace in &report.traces {
        let theirs = changed.get(&trace.key).map(|depth| &depth["loaded"]);
        let theirs = theirs.map_or(u64::from(trace.depth), |depth| depth.as_u64().unwrap());
        assert_eq!(trace.authors_depth.map(u64::from), Some(theirs));
        assert_eq!(trace.depth_in_file, Some(u64::from(trace.depth)));
    }
    let told = report.notice(N::AuthorsDepthDiffers).unwrap();
    assert_eq!(told.count, changed.len() as u64);
}

#[test]
fn a_gap_a_missing_vector_and_an_unknown_type_are_imported_and_told() {
    let Some(data) = data() else { return };
    let from = data.join("data/reverie/july1_s12_maria");
    let gap = Folder::edited(&from, |nodes, _| {
        nodes.remove("node_100");
    });
    let report = gap.reverie(&Options::default()).unwrap();
    assert_eq!(affected(&report, N::NumberingGap), ["node_100"]);
    assert_eq!(report.memories, 266);
    assert_eq!(report.traces[99].key, "node_101");
    assert!(report.traces.iter().all(|t| t.authors_depth.is_none()));

    let missing = Folder::edited(&from, |nodes, embeddings| {
        let key = nodes["node_50"]["embedding_key"].as_str().unwrap();
        assert!(embeddings.remove(key).is_some());
    });
    let report = missing.reverie(&Options::default()).unwrap();
    let told = affected(&report, N::VectorMissing);
    assert!(
        told.contains(&"node_50: bed is idle".to_owned()),
        "{told:?}"
    );
    assert_eq!(report.without_vector, told.len() as u64);

    let unknown = Folder::edited(&from, |nodes, _| nodes["node_50"]["type"] = json!("dream"));
    let report = unknown.reverie(&Options::default()).unwrap();
    assert_eq!(affected(&report, N::UnknownType), ["node_50: dream"]);
    assert_eq!(report.kinds["dream"], 1);
    assert_eq!(report.traces[49].authors_depth, None);
    assert_eq!(report.traces[50].key, "node_51");

    let bad_time = Folder::edited(&from, |nodes, _| {
        nodes["node_7"]["created"] = json!("2023-02-13T05:00:00");
    });
    let error = bad_time
        .reverie(&Options::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("nodes.json, node_7: `created`"), "{error}");
    assert!(error.contains("2023-02-13T05:00:00"), "{error}");
}

#[test]
fn a_type_the_authors_do_not_know_never_becomes_an_event_or_thought() {
    let of_type = |name: &str| node(json!({"type": name}));
    let types = [
        "observation",
        "reflection",
        "plan",
        "event",
        "reverie:observation",
    ];
    let folder = archive(&types.map(of_type));
    let report = folder.reverie(&Options::default()).unwrap();
    let told = [
        "node_1: observation, stored as reverie:observation",
        "node_2: reflection, stored as reverie:reflection",
        "node_3: plan",
        "node_5: reverie:observation",
    ];
    assert_eq!(affected(&report, N::UnknownType), told);
    let store = open(&folder);
    let kinds = [0, 1, 2, 3].map(|row| store.memory(row).unwrap().kind.clone());
    let expected = [
        Kind::named("reverie:observation"),
        Kind::named("reverie:reflection"),
        Kind::PLAN,
        Kind::OBSERVATION,
    ];
    assert_eq!(kinds, expected);
    let authors: Vec<_> = report.traces.iter().map(|t| t.authors_depth).collect();
    assert_eq!(authors, [None, None, None, Some(0), None]);
}

#[test]
fn large_archives_and_another_file_of_vectors() {
    let Some(data) = data() else { return };
    let from = data.join("data/reverie_nodes_only/race2_sam");
    let options = Options {
        embeddings: Some("embeddings_minilm384.json".to_owned()),
        ..Options::default()
    };
    let to = Folder::new();
    let report = memorank::import::reverie(&from, &to.store(), &options, &mut |_, _| ()).unwrap();
    assert_eq!((report.memories, report.dim), (2486, 384));
    assert_eq!(report.notice(N::EvidenceString).unwrap().count, 64);
    assert_eq!(report.notice(N::TextPlaceholder).unwrap().count, 64);
    assert_eq!(report.without_vector, 0);

    let from = data.join("data/reverie_nodes_only/village2_isabella");
    let to = Folder::new();
    let report =
        memorank::import::reverie(&from, &to.store(), &Options::default(), &mut |_, _| ()).unwrap();
    assert_eq!((report.memories, report.without_vector), (2401, 2401));
    assert_eq!(
        affected(&report, N::EmbeddingsFileAbsent),
        ["embeddings.json"]
    );
    assert_eq!(
        affected(&report, N::DimensionAssumed),
        ["embeddings.json: 1536"]
    );
    let to = Folder::new();
    let error =
        memorank::import::reverie(&from, &to.store(), &options, &mut |_, _| ()).unwrap_err();
    assert!(
        error.to_string().contains("embeddings_minilm384.json"),
        "{error}"
    );
}

#[test]
fn a_clean_archive_has_only_the_notice_of_last_access() {
    let report = import(&[node(json!({}))]);
    assert_eq!(names(&report), ["last-access-absent"]);
    assert_eq!(report.dtype_reason, "holds every value exactly");
    let report = import(&[node(json!({"last_accessed": "2023-02-14 00:00:00"}))]);
    assert_eq!(names(&report), [] as [&str; 0]);
}

#[test]
fn evidence_is_kept_in_order_and_marked() {
    let thought = |filling| node(json!({"type": "thought", "filling": filling, "depth": 1}));
    let report = import(&[
        node(json!({})),
        thought(json!([
            "node_1", "node_3", "node_2", "node_1", "node_999", "node_999"
        ])),
        thought(json!(["node_2"])),
        thought(json!("node_1")),
        thought(json!(null)),
    ]);
    assert_eq!(affected(&report, N::EvidenceForward), ["node_2: node_3"]);
    assert_eq!(affected(&report, N::EvidenceSelf), ["node_2: node_2"]);
    let duplicates = affected(&report, N::EvidenceDuplicate);
    assert_eq!(duplicates, ["node_2: node_1", "node_2: node_999"]);
    let dangling = affected(&report, N::EvidenceDangling);
    assert_eq!(dangling, ["node_2: node_999", "node_2: node_999"]);
    assert_eq!(affected(&report, N::EvidenceString), ["node_4: node_1"]);
    assert_eq!(affected(&report, N::EvidenceNull), ["node_5"]);
    let depths: Vec<u32> = report.traces.iter().map(|trace| trace.depth).collect();
    assert_eq!(depths, [0, 1, 2, 1, 1]);
    let differs = affected(&report, N::DepthDiffers);
    assert_eq!(differs, ["node_3: 1 in the file, 2 stored"]);
}

#[test]
fn ten_thousand_references_keep_their_order() {
    let mut nodes = vec![node(json!({})); 10_000];
    let cited: Vec<String> = (1..=10_000).rev().map(|n| format!("node_{n}")).collect();
    nodes.push(node(
        json!({"type": "thought", "depth": 1, "filling": cited}),
    ));
    let report = import(&nodes);
    assert_eq!(report.traces[10_000].evidence, cited);
    assert_eq!(report.traces[10_000].depth, 1);
    assert_eq!(names(&report), ["last-access-absent"]);
    let told = report.notice(N::LastAccessAbsent).unwrap();
    assert_eq!((told.count, told.affected.len()), (10_001, 10_000));
}

#[test]
fn chats_hold_dialogues_and_cite_nothing() {
    let report = import(&[node(
        json!({"type": "chat", "filling": [["Ann", "Hello"], ["Bob", "Hi"]]}),
    )]);
    assert_eq!(report.traces[0].evidence_form, EvidenceForm::Dialogue);
    assert_eq!(names(&report), ["last-access-absent"]);
}

#[test]
fn vectors_that_are_missing_zero_unused_or_rounded_are_told() {
    let nodes =
        ["none", "zero", "null", "empty", "rounded"].map(|key| node(json!({"embedding_key": key})));
    let nodes = nodes
        .iter()
        .zip(1..)
        .map(|(value, n)| (format!("node_{n}"), value.clone()));
    let nodes = Value::Object(
        nodes
            .chain([("node_6".to_owned(), node(json!({"embedding_key": null})))])
            .collect(),
    );
    let vectors =
        r#"{"zero": [0, -0.0], "null": null, "empty": [], "rounded": [0.1, 1], "unused": [1, 2]}"#;
    let report = Folder::archive(&nodes.to_string(), vectors)
        .reverie(&Options::default())
        .unwrap();
    let missing = [
        "node_1: none",
        "node_3: null",
        "node_4: empty",
        "node_6: no embedding key",
    ];
    assert_eq!(affected(&report, N::VectorMissing), missing);
    assert_eq!(affected(&report, N::VectorZero), ["node_2: zero"]);
    assert_eq!(affected(&report, N::EmbeddingsUnused), ["unused"]);
    let rounded = affected(&report, N::ValuesRounded);
    assert_eq!(rounded, ["node_5: 1 of 2 elements to f32"]);
    assert_eq!((report.with_vector, report.without_vector), (1, 5));
    assert_eq!(
        report.dtype_reason,
        "the default; the vectors of 1 memories were rounded"
    );
}

#[test]
fn vectors_that_cannot_be_stored_stop_the_import_with_node_and_element() {
    let refused = |vectors: &str, dtype| {
        let nodes = json!({"node_1": node(json!({"embedding_key": "a"}))}).to_string();
        let options = Options {
            dtype,
            ..Options::default()
        };
        let error = Folder::archive(&nodes, vectors)
            .reverie(&options)
            .unwrap_err();
        assert!(matches!(error, ImportError::Vector { .. }), "{error:?}");
        error.to_string()
    };
    for vectors in [
        "[null, 1]",
        "[1, \"x\"]",
        "[[1], 2]",
        "[1e400, 1]",
        "[1e39, 1]",
        "[true, 1]",
    ] {
        let error = refused(&format!("{{\"a\": {vectors}}}"), None);
        assert!(
            error.contains("node_1, embedding of \"a\": element "),
            "{error}"
        );
    }
    let error = refused(r#"{"b": [1, 2, 3], "a": [1, 2]}"#, None);
    assert!(
        error.contains("node_1") && error.contains("2 elements where"),
        "{error}"
    );
    let error = refused(r#"{"a": [70000, 1]}"#, Some(Dtype::F16));
    assert!(error.contains("node_1: element 0 is 70000"), "{error}");
    let error = refused(r#"{"a": [1e-30, 0]}"#, None);
    assert!(error.contains("2^-96"), "{error}");
    let error = refused(r#"{"a": [1e-30, 0]}"#, Some(Dtype::F16));
    assert!(error.contains("all zeros"), "{error}");
}

#[test]
fn the_dimension_asked_for_must_be_that_of_the_vectors() {
    let dim = std::num::NonZeroUsize::new(3);
    let options = Options {
        dim,
        ..Options::default()
    };
    let error = archive(&[node(json!({}))]).reverie(&options).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("2 elements where the dimension asked for has 3"),
        "{error}"
    );
    let report = Folder::archive("{}", "{}").reverie(&options).unwrap();
    assert_eq!((report.dim, report.memories), (3, 0));
}

#[test]
fn f16_when_asked_for() {
    let options = Options {
        dtype: Some(Dtype::F16),
        ..Options::default()
    };
    let report = archive(&[node(json!({}))]).reverie(&options).unwrap();
    assert_eq!(report.dtype, Dtype::F16);
    assert_eq!(report.dtype_reason, "asked for; holds every value exactly");
}

#[test]
fn odd_fields_are_told_and_wrong_ones_refused() {
    let report = import(&[
        node(json!({"poignancy": 0.1, "mood": {"z": 1}, "description": "this is blank"})),
        node(json!({"created": "1723-01-01 00:00:00", "expiration": "1723-02-01 00:00:00"})),
    ]);
    assert_eq!(affected(&report, N::UnknownField), ["node_1: mood"]);
    assert_eq!(affected(&report, N::ImportanceRounded), ["node_1"]);
    assert_eq!(affected(&report, N::TextPlaceholder), ["node_1"]);
    let before = [
        "node_2: created 1723-01-01T00:00:00Z",
        "node_2: expiration 1723-02-01T00:00:00Z",
    ];
    assert_eq!(affected(&report, N::TimeBefore1970), before);

    for (field, value) in [
        ("type", json!(null)),
        ("type", json!(3)),
        ("description", json!(["x"])),
        ("created", json!(null)),
        ("created", json!(1676246400)),
        ("created", json!("2023-02-30 00:00:00")),
        ("created", json!("2023-02-13 00:00:00Z")),
        ("expiration", json!("soon")),
        ("last_accessed", json!(0)),
        ("poignancy", json!("8/10")),
        ("poignancy", json!(null)),
        ("poignancy", json!(1e39)),
        ("filling", json!(7)),
        ("filling", json!({})),
        ("filling", json!([1])),
        ("filling", json!([["Ann", "Hello"]])),
        ("depth", json!(-1)),
        ("depth", json!("1")),
        ("embedding_key", json!(5)),
    ] {
        let mut changed = node(json!({}));
        changed[field] = value;
        let error = refused(&[node(json!({})), changed]).to_string();
        assert!(
            error.contains(&format!("nodes.json, node_2: `{field}`")),
            "{error}"
        );
    }
    let error = refused(&[node(json!({"type": "chat", "filling": ["node_1"]}))]);
    assert!(
        matches!(
            error,
            ImportError::Field {
                field: "filling",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn keys_of_any_form_are_kept() {
    let huge = "node_99999999999999999999";
    let nodes = [
        huge,
        "memo",
        "node_007",
        "node_12",
        "node_2",
        "node_18446744073709551615",
    ];
    let nodes = nodes.iter().map(|key| ((*key).to_owned(), node(json!({}))));
    let nodes = Value::Object(nodes.collect()).to_string();
    let folder = Folder::archive(&nodes, r#"{"bed is idle": [0.5, 1]}"#);
    let report = folder.reverie(&Options::default()).unwrap();
    let keys: Vec<&str> = report
        .traces
        .iter()
        .map(|trace| trace.key.as_str())
        .collect();
    let last = "node_18446744073709551615";
    assert_eq!(keys, ["node_2", "node_12", last, "memo", "node_007", huge]);
    assert_eq!(
        affected(&report, N::KeyUnnumbered),
        ["memo", "node_007", huge]
    );
    let gaps = affected(&report, N::NumberingGap);
    assert_eq!(gaps[..2], ["node_1", "node_3: to node_11, 9 numbers"]);
    assert_eq!(
        report.notice(N::NumberingGap).unwrap().count,
        1 + 9 + (u64::MAX - 13)
    );
}

#[test]
fn what_json_readers_pass_over_is_refused() {
    let one = node(json!({})).to_string();
    let twice = format!(r#"{{"node_1": {one}, "node_5": {one}, "node_5": {one}}}"#);
    let field = format!(
        r#"{{"node_1": {}, "mood": 1, "mood": 2}}}}"#,
        &one[..one.len() - 1]
    );
    for (nodes, vectors, told) in [
        (twice.as_str(), "{}", "\"node_5\" occurs twice"),
        (&field, "{}", "\"mood\" occurs twice"),
        ("{}", r#"{"a": [1], "a": [1]}"#, "\"a\" occurs twice"),
        ("[]", "{}", "a JSON object"),
        (r#"{"node_1": 3}"#, "{}", "\"node_1\""),
        ("{} {}", "{}", "trailing characters"),
        ("{}", "[]", "an object of text"),
        ("{", "{}", "EOF"),
        ("", "{}", "EOF"),
        ("\u{89}PNG", "{}", "expected value"),
    ] {
        let error = Folder::archive(nodes, vectors)
            .reverie(&Options::default())
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains(told) && text.contains(".json: "), "{text}");
        assert!(matches!(error, ImportError::Json { .. }), "{error:?}");
    }
}

#[test]
fn nothing_is_imported_onto_something() {
    let folder = archive(&[node(json!({}))]);
    fs::create_dir(folder.store()).unwrap();
    let outcome = memorank::import::reverie(
        &folder.source(),
        &folder.store(),
        &Options::default(),
        &mut |_, _| (),
    );
    assert!(matches!(
        outcome,
        Err(ImportError::DestinationExists { .. })
    ));
    assert_eq!(fs::read_dir(folder.store()).unwrap().count(), 0);
    fs::remove_dir(folder.store()).unwrap();
    fs::write(folder.store(), "mine").unwrap();
    let outcome = memorank::import::reverie(
        &folder.source(),
        &folder.store(),
        &Options::default(),
        &mut |_, _| (),
    );
    assert!(matches!(
        outcome,
        Err(ImportError::DestinationExists { .. })
    ));
    assert_eq!(fs::read(folder.store()).unwrap(), b"mine");

    let nowhere = folder.source().join("a/b");
    let error = memorank::import::reverie(
        &folder.source(),
        &nowhere,
        &Options::default(),
        &mut |_, _| (),
    )
    .unwrap_err();
    assert!(error.to_string().contains("must exist"), "{error}");
    let error = memorank::import::reverie(
        &nowhere,
        &folder.source().join("c"),
        &Options::default(),
        &mut |_, _| (),
    );
    assert!(error.unwrap_err().to_string().contains("bootstrap_memory"));
}

#[test]
fn a_report_reads_well_and_is_json() {
    let mut odd = node(json!({"type": "thought", "filling": "node_1", "depth": 1}));
    odd["created"] = json!("1969-12-31 23:00:00");
    let report = import(&[node(json!({})), odd]);
    let text = report.to_string();
    assert!(
        text.contains("2 memories") && text.contains("evidence-string"),
        "{text}"
    );
    assert!(text.contains("node_2 (node_1)"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["dtype"], "f32");
    assert_eq!(json["first_created"], "1969-12-31T23:00:00Z");
    let notices = json["notices"].as_array().unwrap();
    let told = notices
        .iter()
        .find(|notice| notice["name"] == "evidence-string")
        .unwrap();
    assert_eq!(
        *told,
        json!({"name": "evidence-string", "count": 1, "affected": [{"key": "node_2", "detail": "node_1"}]})
    );
    assert!(
        notices
            .iter()
            .any(|notice| notice["name"] == "time-before-1970")
    );
    assert_eq!(json["traces"][1]["type"], "thought");
    assert_eq!(json["traces"][1]["evidence_form"], "string");
}

#[test]
fn what_is_stored() {
    let folder = archive(&[
        node(
            json!({"created": "2023-02-13 01:02:03", "zeta": 99999999999999999999u128 as f64, "alpha": {"b": 1, "a": 2}}),
        ),
        node(json!({
            "type": "chat", "description": "talk", "poignancy": 7,
            "filling": [["Ann", "Hello"]], "embedding_key": "none",
        })),
        node(json!({
            "type": "thought", "filling": ["node_2", "node_1", "node_4", "node_3", "node_9", "node_2"],
            "expiration": "2023-03-15 00:00:00", "depth": 3, "keywords": ["é"],
            "last_accessed": "2023-02-20 00:00:00",
        })),
        node(json!({"type": "thought", "filling": "node_1", "depth": 1})),
        node(json!({"type": "dream"})),
    ]);
    let options = Options {
        model: Some("ada".to_owned()),
        ..Options::default()
    };
    folder.reverie(&options).unwrap();
    let store = open(&folder);
    assert_eq!(
        (store.len(), store.dim().get(), store.model()),
        (5, 2, Some("ada"))
    );
    let at = |text| memorank::import::timestamp::parse_reverie_us(text).unwrap();
    let payload = |row| String::from_utf8(store.memory(row).unwrap().payload.to_vec()).unwrap();

    let first = store.memory(0).unwrap();
    assert_eq!(
        (first.id, first.key, first.text),
        (0, Some("node_1"), "bed is idle")
    );
    assert_eq!(
        (first.kind, first.depth, first.importance),
        (&Kind::OBSERVATION, 0, 3.0)
    );
    assert_eq!(first.created, at("2023-02-13 01:02:03"));
    assert_eq!((first.last_access, first.expiry), (first.created, None));
    assert_eq!(store.embedding(0), Some(vec![0.5, 1.0]));
    let fields = r#""subject":"s","predicate":"p","object":"o","keywords":["bed","idle"],"embedding_key":"bed is idle","node_count":1,"type_count":1"#;
    assert!(
        payload(0).starts_with(&format!("{{{fields},\"alpha\":{{")),
        "{}",
        payload(0)
    );

    let chat = store.memory(1).unwrap();
    assert_eq!(
        (chat.kind, chat.evidence.len(), chat.has_embedding),
        (&Kind::CHAT, 0, false)
    );
    assert!(
        payload(1).ends_with(r#","filling":[["Ann","Hello"]]}"#),
        "{}",
        payload(1)
    );

    let thought = store.memory(2).unwrap();
    let missing = Reference::Missing("node_9".to_owned());
    let evidence = [1, 0, 3, 2]
        .map(Reference::Id)
        .into_iter()
        .chain([missing, Reference::Id(1)]);
    assert_eq!(thought.evidence, evidence.collect::<Vec<_>>());
    assert_eq!((thought.kind, thought.depth), (&Kind::REFLECTION, 1));
    assert_eq!(thought.expiry, Some(at("2023-03-15 00:00:00")));
    assert_eq!(thought.last_access, at("2023-02-20 00:00:00"));
    assert!(payload(2).contains(r#""keywords":["é"]"#) && payload(2).contains(r#""depth":3"#));

    let string = store.memory(3).unwrap();
    assert_eq!(string.evidence, [Reference::Missing("node_1".to_owned())]);
    assert_eq!(store.memory(4).unwrap().kind.as_str(), "dream");
}

#[test]
fn payloads_keep_values_as_they_were_written() {
    let with = r#"{"node_1": {"type": "event", "created": "2023-02-13 00:00:00", "description": "", "poignancy": 1,
        "filling": [], "embedding_key": "\u0061", "z": 99999999999999999999, "y": {"b": 1e2, "a": 0.10}}}"#;
    let folder = Folder::archive(with, r#"{"a": [1]}"#);
    folder.reverie(&Options::default()).unwrap();
    let store = open(&folder);
    let payload = String::from_utf8(store.memory(0).unwrap().payload.to_vec()).unwrap();
    let kept = r#"{"embedding_key":"\u0061","y":{"b": 1e2, "a": 0.10},"z":99999999999999999999}"#;
    assert_eq!(payload, kept);
    assert!(store.memory(0).unwrap().has_embedding);
}

#[test]
fn what_the_store_refuses_names_the_node() {
    let nodes = json!({"": node(json!({}))}).to_string();
    let folder = Folder::archive(&nodes, r#"{"bed is idle": [0.5, 1]}"#);
    let error = folder.reverie(&Options::default()).unwrap_err();
    assert!(matches!(error, ImportError::Refused { .. }), "{error:?}");
}
