//! Exit codes: 0 done, 1 error, 2 wrong command line, 3 damage found.

use crate::stage::{Stage, overwrite, run};

#[test]
fn every_command_has_the_four_exit_codes() {
    let stage = Stage::g();
    let (store, none) = (stage.at("G"), stage.at("none"));
    let source = stage.at("G-source.npy");
    let new = stage.at("new");
    let broken = stage.at("broken");
    crate::stage::copy(&stage.path("G"), &stage.path("broken"));
    overwrite(&stage.path("broken/manifest"), 60, b"xxxx");

    run(["info", &store]).ok();
    run(["verify", &store]).ok();
    run(["show", &store, "g1"]).ok();
    run(["query", &store, "--like", "g1"]).ok();
    run(["explain", &store, "g0", "--like", "g1"]).ok();
    run(["list", &store]).ok();
    run(["history", &store, "--keep", "all"]).ok();
    let touched = run(["query", &store, "--like", "g1", "--touch", "--json"]).json();
    let sequence = touched["sequence"].to_string();
    run(["replay", &store, &sequence, "--like", "g1"]).ok();
    run(["importance", &store, "g1", "--set", "3"]).ok();
    run(["bench", &store, "--rounds", "1"]).ok();
    let judged = "{\"vector\": [1, 0], \"relevant\": [\"g1\"]}\n".repeat(5);
    let judged = stage.write("judged.jsonl", judged);
    run(["eval", &store, &judged]).ok();
    run(["tune", &store, &judged]).ok();
    run(["sweep", &store, &judged]).ok();
    run(["touch", &store, "g1"]).ok();
    run(["create", &stage.at("made")]).ok();
    run(["add", &stage.at("made"), "a text"]).ok();
    run(["embed", &stage.at("made")]).ok();
    run(["evidence", &store, "g0"]).ok();
    run(["integrity", &store]).ok();
    run(["reflect", &store, "--replies", &none]).ok();
    run(["delete", &store, "g0"]).ok();
    run(["checkpoint", &store]).ok();
    run(["compact", &store]).ok();
    run(["repair", &store, &stage.at("repaired")]).ok();
    run(["import", "npy", &source, &new]).ok();
    run(["export", &store, &stage.at("plain")]).ok();
    run(["import", "memorank", &stage.at("plain"), &stage.at("new1")]).ok();
    run(["demo", "--memories", "10", "--dim", "3"]).ok();
    run(["--help"]).ok();
    run(["--version"]).ok();

    for args in [
        &["info", &none][..],
        &["verify", &none],
        &["show", &none, "g1"],
        &["query", &none, "--like", "g1"],
        &["query", &store, &none, "--like", "g1"],
        &["explain", &none, "g1", "--like", "g1"],
        &["list", &none],
        &["history", &none],
        &["history", &none, "--keep", "all"],
        &["replay", &none, &sequence, "--like", "g1"],
        &["replay", &store, "0", "--like", "g1"],
        &["replay", &store, &sequence, "--like", "g9"],
        &["importance", &none, "g1", "--reset"],
        &["bench", &none],
        &["eval", &none, &judged],
        &["eval", &store, &none],
        &["tune", &none, &judged],
        &["tune", &store, &none],
        &["sweep", &none, &judged],
        &["sweep", &store, &none],
        &["evidence", &none, "g1"],
        &["evidence", &store, "g9"],
        &["integrity", &none],
        &["reflect", &none, "--replies", &none],
        &["reflect", &store, "--force", "--replies", &none],
        &["delete", &none, "g1"],
        &["touch", &none, "g1"],
        &["add", &none, "a text"],
        &["embed", &none],
        &["embed", &store, "g1"],
        &["create", &store],
        &["checkpoint", &none],
        &["compact", &none],
        &["repair", &none, &stage.at("new2")],
        &["repair", &store, &source],
        &["repair", &store, &store],
        &["import", "npy", &none, &stage.at("new2")],
        &["export", &none, &stage.at("new2")],
        &["export", &store, &new],
        &["import", "memorank", &none, &stage.at("new2")],
        &["import", "memorank", &stage.at("plain"), &new],
        &["import", "reverie", &none, &stage.at("new2")],
        &["import", "genagents", &none, &stage.at("new2")],
        &["show", &store, "g9"],
        &["query", &store, "--like", "g9"],
        &["explain", &store, "g9", "--like", "g1"],
        &["explain", &store, "g1", "--like", "g9"],
        &["importance", &store, "g1", "g9", "--set", "3"],
        &["delete", &store, "g9"],
        &["delete", &store, "g1", "3"],
    ] {
        assert!(run(args).fails(1).starts_with("memorank: "), "{args:?}");
    }
    for args in [
        &[][..],
        &["unknown"],
        &["info"],
        &["verify"],
        &["integrity"],
        &["evidence"],
        &["evidence", &store],
        &["evidence", &store, "g1", "--dot", "--mermaid"],
        &["evidence", &store, "g1", "--dot", "--json"],
        &["evidence", &store, "g1", "--limit", "x"],
        &["delete", &store, "g1", "--policy", "forget"],
        &["reflect", &store],
        &[
            "reflect",
            &store,
            "--replies",
            "a",
            "--similarity",
            "0.5",
            "--check-command",
            "b",
        ],
        &["reflect", &store, "--replies", "a", "--chat-command", "b"],
        &["reflect", &store, "--chat-model", "a"],
        &[
            "reflect",
            &store,
            "--force",
            "--chat-model",
            "a",
            "--url",
            "localhost",
        ],
        &["reflect", &store, "--replies", "a", "--decay", "chat=0.5"],
        &[
            "reflect",
            &store,
            "--replies",
            "a",
            "--expiry",
            "1970-01-01T00:00:00Z",
        ],
        &["show", &store],
        &["query", &store],
        &["query", "--like", "g1"],
        &["explain", &store, "--like", "g1"],
        &["explain", &store, "g1"],
        &["explain", &store, "g1", "--like", "g1", "--like", "g2"],
        &["explain", &store, "g1", "--like", "g1", "--touch"],
        &["list"],
        &["history"],
        &["history", &store, "--keep", "some"],
        &["history", &store, "--keep=-1"],
        &["history", &store, "--limit", "-1"],
        &["history", &store, "--agent", "x"],
        &["replay", &store, "--like", "g1"],
        &["replay", &store, &sequence],
        &["replay", &store, "x", "--like", "g1"],
        &["replay", &store, "-1", "--like", "g1"],
        &["replay", &store, "1.5", "--like", "g1"],
        &["replay", &store, &sequence, "--like", "g1", "--like", "g2"],
        &["replay", &store, &sequence, "--like", "g1", "--touch"],
        &["list", &store, "--limit", "-1"],
        &["list", &store, "--order", "score"],
        &["importance", &store, "--set", "3"],
        &["importance", &store, "g1"],
        &["importance", &store, "g1", "--set", "3", "--reset"],
        &["importance", &store, "g1", "--set", "NaN"],
        &["importance", &store, "g1", "--set", "1e39"],
        &["import"],
        &["import", "npy"],
        &["import", "other", &source, &new],
        &["import", "memorank", &store],
        &["export"],
        &["export", &store],
        &["bench"],
        &["eval"],
        &["eval", &store],
        &["eval", &store, &judged, &store],
        &["tune", &store],
        &["sweep", &store],
        &["delete"],
        &["delete", &store],
        &["checkpoint"],
        &["compact"],
        &["compact", &store, "g1"],
        &["repair", &store],
        &["repair", &store, &new, "--dim", "0"],
        &["bench", &store, "--rounds", "0"],
        &["bench", &store, "--rounds", "-1"],
        &["bench", &store, "-k", "-1"],
        &["bench", &store, "--svg"],
        &["demo", "--dim", "0"],
        &["demo", "--memories", "-1"],
        &["demo", "--memories", "18446744073709551615"],
        &["info", &store, "--unknown"],
        &["info", &store, &store],
    ] {
        assert_ne!(run(args).fails(2), "", "{args:?}");
    }
    for args in [
        &["info", &broken][..],
        &["verify", &broken],
        &["integrity", &broken],
        &["evidence", &broken, "g1"],
        &["reflect", &broken, "--replies", &none],
        &["show", &broken, "g1"],
        &["query", &broken, "--like", "g1"],
        &["query", &broken, "--like", "g1", "--touch"],
        &["explain", &broken, "g1", "--like", "g1"],
        &["list", &broken],
        &["history", &broken],
        &["replay", &broken, "1", "--like", "g1"],
        &["importance", &broken, "g1", "--reset"],
        &["bench", &broken],
        &["eval", &broken, &judged],
        &["tune", &broken, &judged],
        &["sweep", &broken, &judged],
        &["delete", &broken, "g1"],
        &["embed", &broken],
        &["checkpoint", &broken],
        &["compact", &broken],
        &["repair", &broken, &stage.at("new2")],
        &["export", &broken, &stage.at("new2")],
    ] {
        assert!(run(args).fails(3).contains("manifest"), "{args:?}");
    }
}

#[test]
fn a_demo_without_a_temporary_folder_is_an_error() {
    let mut program = crate::stage::program();
    program
        .args(["demo", "--memories", "1"])
        .env("TMPDIR", "/nonexistent/folder");
    let ran: crate::stage::Ran = program.output().unwrap().into();
    assert!(ran.fails(1).contains("no temporary folder"));
}

// B38, B65, B67: refused before anything is read, naming what the flag means.
#[test]
fn numbers_out_of_range_are_usage_errors() {
    let stage = Stage::g();
    for (args, told) in [
        (&["-k", "-1"][..], "a whole number from 0"),
        (&["-k", "abc"], "a whole number from 0"),
        (&["-k=-1"], "a whole number from 0"),
        (&["-k", "18446744073709551616"], "a whole number from 0"),
        (&["--threads", "-1"], "a whole number from 0 to 1024"),
        (&["--threads", "1025"], "a whole number from 0 to 1024"),
        (&["--relevance", "-1"], "the weight of relevance is -1"),
        (&["--relevance", "NaN"], "the weight of relevance is NaN"),
        (&["--recency", "inf"], "the weight of recency is inf"),
        (&["--recency=-0.5"], "the weight of recency is -0.5"),
        (&["--importance=-inf"], "the weight of importance is -inf"),
        (&["--importance", "nan"], "the weight of importance is NaN"),
        (&["--importance", "x"], "invalid float"),
        (
            &["--relevance", "1e308", "--recency", "1e308"],
            "the sum of the weights",
        ),
        (&["--decay", "1.5"], "the decay is 1.5"),
        (&["--decay", "-0.1"], "the decay is -0.1"),
        (&["--decay", "NaN"], "the decay is NaN"),
        (&["--decay", "x"], "\"x\" is no number"),
        (&["--decay", "0.5:"], "\"\" is no number"),
        (&["--decay", "0.5:1.5"], "the floor is 1.5"),
        (&["--decay", "chat=1.5"], "chat: the decay is 1.5"),
        (&["--decay", "chat=NaN"], "chat: the decay is NaN"),
        (&["--decay", "chat=0.5:-0.1"], "chat: the floor is -0.1"),
        (
            &["--decay", "1", "--decay", "0.5"],
            "--decay is given twice",
        ),
        (
            &["--decay", "chat=1", "--decay", "chat=0.5"],
            "the kind chat has two decays",
        ),
        (
            &["--preset", "other"],
            "paper, reverie, genagents, unnormalized",
        ),
        (&["--now", "2023-02-13T15:00:00"], "time and zone"),
        (&["--now", "yesterday"], "'--now <TIME>': \"yesterday\""),
        (&["--created-from", "5"], "'--created-from <TIME>': \"5\""),
        (&["--created-until", ""], "'--created-until <TIME>': \"\""),
        (&["--accessed-from", "x"], "'--accessed-from <TIME>': \"x\""),
        (&["--accessed-until", "x"], "'--accessed-until <TIME>'"),
        (&["--touch-if-older", "5"], "a whole number of s, m, h or d"),
        (&["--touch-if-older=-5h"], "a whole number of s, m, h or d"),
        (&["--budget", "-1"], "a whole number from 0"),
        (&["--budget", "1.5"], "a whole number from 0"),
        (&["--agent", "4294967296"], "'--agent <N>'"),
        (&["--agent=-1"], "'--agent <N>'"),
        (&["--now", "2023-02-30T00:00:00Z"], "--now"),
    ] {
        // That a store is missing is not looked at before the command line.
        for store in ["G", "none"] {
            let args = [args, &["--like", "g1"]].concat();
            let err = stage.query(store, &args).fails(2);
            assert!(err.contains(told), "{args:?}: {err}");
        }
    }
}

#[test]
fn the_query_comes_from_exactly_one_place() {
    let stage = Stage::g();
    let vector = stage.at("q.json");
    for args in [
        &[][..],
        &["-k", "1"],
        &["--vector", &vector, "--like", "g1"],
        &["--vector", &vector, "--exclude-self"],
        &["--like", "g1", "--vector-index", "0"],
        &["--like", "g1", "--text", "g2"],
        &["--like", "g1", "--queries", &vector],
        &["--queries", &vector, "--exclude-self"],
        &["--queries", &vector, "--vector-index", "0"],
    ] {
        assert!(
            stage.query("G", args).fails(2).contains("--like"),
            "{args:?}"
        );
    }
    let args = ["--vector", &vector, "--vector-index", "1"];
    assert!(stage.query("G", &args).fails(2).contains("1 vectors"));
}

// What would have no effect is refused, and not passed over.
#[test]
fn flags_that_need_another_are_usage_errors_without_it() {
    let stage = Stage::g();
    for (args, needed) in [
        (&["--ignore-case"][..], "--contains"),
        (&["--count", "bytes"], "--budget"),
        (&["--overflow", "keep-prefix"], "--budget"),
        (&["--sequential"], "--touch"),
        (&["--snapshot"], "--touch"),
        (&["--sequential", "--touch"], "several questions"),
        (&["--sequential", "--snapshot", "--touch"], "--snapshot"),
        (&["--touch", "--touch-if-older", "1h"], "--touch-if-older"),
        (&["--like", "g2", "--touch"], "--sequential"),
        (&["--like", "g2", "--touch-if-older", "1h"], "--sequential"),
        (&["--like", "g2", "--snapshot"], "--touch"),
        (
            &["--decay", "observation=0.5", "--preset", "reverie"],
            "by age",
        ),
        (&["--decay", "0.5:0.5", "--preset", "genagents"], "by age"),
    ] {
        let err = stage
            .query("G", &[args, &["--like", "g1"]].concat())
            .fails(2);
        assert!(err.contains(needed), "{args:?}: {err}");
    }
    let (store, other) = (stage.at("G"), stage.at("G"));
    let several = ["query", &store, &other, "--like", "g1", "--like", "g2"];
    assert!(
        run(several)
            .fails(2)
            .contains("several stores take one question")
    );
    let err = run(["list", &store, "--now", crate::stage::T_TEXT]).fails(2);
    assert!(err.contains("--unexpired"), "{err}");
}
