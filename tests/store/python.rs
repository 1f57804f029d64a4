//! A store read by another program, as the description of the format says.

use crate::example::*;
use memorank::kernel::Dtype;
use memorank::store::{Agent, Snapshot, Store};
use std::path::Path;
use std::process::{Command, Output};

/// Whether there is a Python with numpy. If not, it is told; and an error, where it is required.
fn has_numpy() -> bool {
    let found = Command::new("python3")
        .args(["-c", "import numpy"])
        .output();
    if found.is_ok_and(|output| output.status.success()) {
        return true;
    }
    assert!(
        std::env::var_os("MEMORANK_REQUIRE_PYTHON").is_none(),
        "MEMORANK_REQUIRE_PYTHON is set, and there is no python3 with numpy"
    );
    crate::common::say("skipped: there is no python3 with numpy");
    false
}

fn run(store: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/read_store.py");
    Command::new("python3")
        .arg(script)
        .arg(store)
        .output()
        .unwrap()
}

/// The script's lines say what the snapshot does.
fn assert_reads(store: &Path, snapshot: &Snapshot) {
    let output = run(store);
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut lines = lines.lines();
    for row in (0..snapshot.rows()).filter(|&row| snapshot.is_live(row)) {
        let found: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        let memory = snapshot.memory(row).unwrap();
        let vector = snapshot.embedding(row);
        let expected = serde_json::json!({
            "id": memory.id,
            "text": memory.text,
            "last_access": memory.last_access,
            "importance": memory.importance,
            "embedding": vector.unwrap_or(vec![0.0; snapshot.dim().get()]),
        });
        assert_eq!(found, expected);
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn a_short_script_reads_a_store_from_its_description() {
    if !has_numpy() {
        return;
    }
    for dtype in [Dtype::F32, Dtype::F16] {
        let (_dir, path, store) = new_store(3, dtype);
        assert_reads(&path, &store.snapshot());
        append(&store, &(0..30).map(|i| varied(i, 3)).collect::<Vec<_>>());
        store.touch(Agent::OWN, &[0, 7, 29], 1_000_000).unwrap();
        store.touch(OTHER, &[0, 8], 2_000_000).unwrap();
        store.delete(&[0, 5, 28]).unwrap();
        store.embed(&[(4, &[0.5, 1.0, -2.0])]).unwrap();
        store
            .set_importance(Agent::OWN, &[2, 3], Some(9.5))
            .unwrap();
        store.set_importance(OTHER, &[6], Some(0.25)).unwrap();
        let refused = run(&path);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(
            !refused.status.success() && told.contains("close the store first"),
            "{told}"
        );
        store.checkpoint().unwrap();
        assert_reads(&path, &store.snapshot());
        store.embed(&[(7, &[3.0; 3]), (1, &[-1.0; 3])]).unwrap();
        store.set_importance(Agent::OWN, &[2], None).unwrap();
        store.checkpoint().unwrap();
        assert_reads(&path, &store.snapshot());
        store.compact().unwrap();
        assert_reads(&path, &store.snapshot());
        store.delete(&[1]).unwrap();
        store.close().unwrap();
        assert_reads(&path, &Store::open_read_only(&path).unwrap().snapshot());
    }
}
