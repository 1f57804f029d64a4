//! Agents that share a store: last accesses and importances of their own.

use crate::stage::{HOUR, Stage, T, files, ids, run, time};
use serde_json::{Value, json};

fn importance(stage: &Stage, args: &[&str]) -> Value {
    run([&["importance", &stage.at("town"), "--json"], args].concat()).json()
}

/// The importance of `a` that every command tells for an agent.
#[track_caller]
fn everywhere(stage: &Stage, agent: &str) -> f64 {
    let (store, query) = (stage.at("town"), stage.at("q.json"));
    let agent = ["--agent", agent, "--json"];
    let shown = run([&["show", &store, "a"], &agent[..]].concat()).json()["importance"].clone();
    let listed = run([&["list", &store, "--only", "a"], &agent[..]].concat()).json();
    assert_eq!(listed["listed"][0]["importance"], shown);
    let asked = ["--vector", &query, "--now", &time(T)];
    let document = run([&["query", &store], &asked[..], &agent].concat()).json();
    let hits = document["hits"].as_array().unwrap();
    let hit = hits.iter().find(|hit| hit["id"] == 0).unwrap();
    assert_eq!(hit["importance"]["raw"], shown);
    let explained = run([&["explain", &store, "a"], &asked[..], &agent].concat()).json();
    assert_eq!(explained["standing"]["importance"], hit["importance"]);
    shown.as_f64().unwrap()
}

// B91
#[test]
fn an_importance_is_that_of_the_agent_it_was_given_for() {
    let stage = Stage::town();
    assert_eq!(
        ["0", "7"].map(|agent| everywhere(&stage, agent)),
        [2.0, 2.0]
    );
    let document = importance(&stage, &["a", "1", "--set", "-9.5", "--agent", "7"]);
    assert_eq!(
        document,
        json!({"schema": "memorank.importance/1", "store": stage.at("town"), "agent": 7, "changed": 2, "memories": [
            {"id": 0, "key": "a", "importance": -9.5, "stored": 2.0},
            {"id": 1, "key": "b", "importance": -9.5, "stored": 8.0},
        ]})
    );
    assert_eq!(
        ["0", "7", "8"].map(|agent| everywhere(&stage, agent)),
        [2.0, -9.5, 2.0]
    );
    // The store's own agent's corrects what was stored, for it alone.
    importance(&stage, &["a", "--set", "6"]);
    assert_eq!(
        ["0", "7", "8"].map(|agent| everywhere(&stage, agent)),
        [6.0, -9.5, 2.0]
    );
    // What is so already is not changed.
    assert_eq!(importance(&stage, &["a", "--set", "6"])["changed"], 0);
    run(["checkpoint", &stage.at("town")]).ok();
    run(["compact", &stage.at("town")]).ok();
    let document = importance(&stage, &["a", "--reset", "--agent", "7"]);
    assert_eq!(
        (&document["changed"], &document["memories"][0]["importance"]),
        (&json!(1), &json!(2.0))
    );
    assert_eq!(
        ["0", "7", "8"].map(|agent| everywhere(&stage, agent)),
        [6.0, 2.0, 2.0]
    );
    let text = run([
        "importance",
        &stage.at("town"),
        "b",
        "--reset",
        "--agent",
        "7",
    ])
    .ok();
    assert!(
        text.starts_with("b (id 1)  importance 8  stored 8\n"),
        "{text}"
    );

    let before = files(&stage.path("town"));
    let store = stage.at("town");
    run(["importance", &store, "a", "g", "--set", "3"]).fails(1);
    run(["importance", &store, "a", "--set", "inf"]).fails(2);
    run(["importance", &store, "a", "--set", "8/10"]).fails(2);
    assert_eq!(files(&stage.path("town")), before);
}

#[test]
fn a_touch_is_of_the_agent_that_asks() {
    let stage = Stage::town();
    let store = stage.at("town");
    let later = time(T + 100 * HOUR);
    let ask = |agent: &str, args: &[&str]| {
        let args = [&["--agent", agent, "--like", "a", "--json"], args].concat();
        stage.query("town", &args).json()
    };
    let mine = ask("0", &[]);
    let document = ask("7", &["--touch", "-k", "1", "--now", &later]);
    assert_eq!(
        (&document["agent"], &document["touched"]),
        (&json!(7), &json!(1))
    );
    let id = ids(&document)[0].to_string();
    // By default it is the newest last access of whoever asks.
    assert_eq!(ask("7", &[])["now"], later.as_str());
    assert_eq!(ask("0", &[]), mine);
    let shown = |agent: &str| run(["show", &store, &id, "--agent", agent, "--json"]).json();
    assert_eq!(shown("7")["last_access"], later.as_str());
    assert_ne!(shown("8")["last_access"], later.as_str());
    let filter = [
        "list",
        &store,
        "--accessed-from",
        &later,
        "--json",
        "--agent",
    ];
    let matching = |agent: &str| run([&filter[..], &[agent]].concat()).json()["matching"].clone();
    assert_eq!([matching("7"), matching("0")], [1, 0]);
    // Two agents in one call: each as alone.
    let file = stage.write(
        "q.jsonl",
        "{\"like\": \"a\", \"agent\": 0}\n{\"like\": \"a\", \"agent\": 7}\n",
    );
    let both = stage.query("town", &["--queries", &file, "--json"]).json();
    assert_eq!(both["answers"], json!([ask("0", &[]), ask("7", &[])]));
}
