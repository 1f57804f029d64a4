//! B76: the program on processors that lack what this machine has, under emulation.

use crate::equality::without_isa;
use crate::stage::{Ran, Stage, ids};
use std::process::Command;

/// The emulator's version, or `None` (told) where there is none.
fn emulator() -> Option<(u32, u32)> {
    let found = Command::new("qemu-x86_64").arg("--version").output();
    let Ok(found) = found else {
        assert!(
            std::env::var_os("MEMORANK_REQUIRE_QEMU").is_none(),
            "MEMORANK_REQUIRE_QEMU is set, and qemu-x86_64 is not installed"
        );
        crate::common::say("skipped: qemu-x86_64 is not installed");
        return None;
    };
    // qemu-x86_64 version 7.2.22 (...)
    let text = String::from_utf8(found.stdout).unwrap();
    let version = text.split_whitespace().nth(2).unwrap_or_default();
    let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
    Some((numbers.next()?, numbers.next()?))
}

#[test]
#[cfg(target_arch = "x86_64")]
fn old_processors_give_the_same_hits() {
    let Some(version) = emulator() else { return };
    let stage = Stage::new();
    let mut random = crate::common::Random(76);
    let rows: Vec<[f32; 35]> = (0..40)
        .map(|_| random.vector(35).try_into().unwrap())
        .collect();
    let lines: Vec<_> = (0..40)
        .map(|i| {
            let hour = format!("2023-02-13T{:02}:00:00Z", i % 24);
            serde_json::json!({"text": format!("memory {i}"), "created": hour, "importance": i % 10})
        })
        .collect();
    for dtype in ["f32", "f16"] {
        let source = stage.matrix("source", &rows, &lines);
        let store = stage.at(dtype);
        crate::stage::run(["import", "npy", &source, &store, "--dtype", dtype]).ok();
        for preset in ["paper", "unnormalized"] {
            let args = [
                "--like",
                "7",
                "--json",
                "--threads",
                "2",
                "--preset",
                preset,
            ];
            let native = stage.query(dtype, &args).ok();
            assert_eq!(ids(&serde_json::from_str(&native).unwrap()).len(), 30);
            // AVX2 is emulated since version 7.2; before, Haswell is a processor without it.
            let haswell = if version >= (7, 2) {
                "avx2"
            } else {
                "portable"
            };
            for (processor, isa) in [("Nehalem", "portable"), ("Haswell", haswell)] {
                let mut emulated = Command::new("qemu-x86_64");
                emulated.args([
                    "-cpu",
                    processor,
                    env!("CARGO_BIN_EXE_memorank"),
                    "query",
                    &store,
                ]);
                emulated
                    .args(args)
                    .env_remove("MEMORANK_ISA")
                    .env_remove("NO_COLOR");
                // What the emulator does not know of a processor, it says.
                let ran: Ran = emulated.output().unwrap().into();
                assert_eq!(ran.code, Some(0), "{processor}: {ran:?}");
                let (found, used) = without_isa(&ran.out);
                assert_eq!(used, isa, "{processor}");
                assert!(
                    found == without_isa(&native).0,
                    "{processor} {dtype} {preset}"
                );
            }
        }
    }
}
