//! Reflecting by the program: replies from a file, from a command, and from an endpoint.

use crate::stage::{HOUR, Stage, T, T_TEXT, files, run, time};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

/// A store with what was seen, an hour before `T`, of importance 60 each.
fn seen() -> (Stage, String) {
    let stage = Stage::new();
    let store = stage.at("S");
    run(["create", &store]).ok();
    let texts = [
        "Klaus reads about cities",
        "Klaus takes notes",
        "Maria plays chess",
    ];
    let made = time(T - HOUR);
    for text in texts {
        run([
            "add",
            &store,
            text,
            "--importance",
            "60",
            "--created",
            &made,
        ])
        .ok();
    }
    (stage, store)
}

const ONE: [&str; 4] = ["--now", T_TEXT, "--questions", "1"];

fn script(stage: &Stage, replies: &[&str]) -> String {
    stage.write("replies.json", json!(replies).to_string())
}

/// What was asked, in the words of the prompt: the number that a memory has there.
fn number_of(store: &str, text: &str) -> String {
    // All have one recency and importance: the order is that of relevance.
    let ask = [
        "query",
        store,
        "--text",
        "What does Klaus do?",
        "--now",
        T_TEXT,
        "--json",
    ];
    let document = run(ask).json();
    let hits = document["hits"].as_array().unwrap();
    let at = hits.iter().position(|hit| hit["text"] == text).unwrap();
    (at + 1).to_string()
}

#[test]
fn insights_that_pass_are_stored_and_what_was_retrieved_is_touched() {
    let (stage, store) = seen();
    let reads = number_of(&store, "Klaus reads about cities");
    let reply =
        format!("1. Klaus studies cities (because of {reads})\n2. Klaus is tired (because of 9)");
    let replies = script(
        &stage,
        &["1. What does Klaus do?", "I cannot.", &reply, "8"],
    );
    let args = ["reflect", &store, "--replies", &replies, "--json"];
    let document = run([&args[..], &ONE].concat()).json();
    assert_eq!(document["questions"], json!(["What does Klaus do?"]));
    assert_eq!(
        (&document["importance_since"], &document["reflected"]),
        (&json!(180.0), &json!(true))
    );
    let stored = document["stored"].as_array().unwrap();
    assert_eq!(stored.len(), 1);
    for (field, expected) in [
        ("id", json!(3)),
        ("text", json!("Klaus studies cities")),
        ("depth", json!(1)),
        ("evidence", json!([0])),
        ("support", json!("unchecked")),
        ("importance", json!(8.0)),
        ("question", json!("What does Klaus do?")),
    ] {
        assert_eq!(stored[0][field], expected, "{field}");
    }
    let taken: Vec<_> = document["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["is_taken"])
        .collect();
    assert_eq!(taken, [true, false, true, true]);
    assert_eq!(document["attempts"][2]["reply"], reply);
    let shown = run(["show", &store, "3", "--json"]).json();
    let origin = json!({"reflection": {"question": "What does Klaus do?", "support": "unchecked"}});
    assert_eq!(shown["payload"], origin);
    assert_eq!(shown["created"], T_TEXT);
    assert_eq!(
        run(["show", &store, "0", "--json"]).json()["last_access"],
        T_TEXT
    );
    run(["integrity", &store]).ok();
    // It starts the sum anew.
    let again = run(["reflect", &store, "--replies", &replies, "--json"]).json();
    assert_eq!(
        (&again["importance_since"], &again["reflected"]),
        (&json!(0.0), &json!(false))
    );
}

#[test]
fn what_is_not_due_asks_nothing_and_changes_nothing() {
    let (stage, store) = seen();
    let before = files(&stage.path("S"));
    for args in [
        &["--threshold", "180.5"][..],
        &["--counted", "chat"],
        &["--counted", "chat", "--threshold", "1"],
    ] {
        let told = run([&["reflect", &store, "--chat-command", "exit 1"], args].concat()).ok();
        assert!(
            told.contains("not yet: importances since the last reflection add up to"),
            "{told}"
        );
    }
    assert_eq!(files(&stage.path("S")), before);
    let replies = script(&stage, &["Why?", "1. So (1)", "5"]);
    let forced = [
        "reflect",
        &store,
        "--threshold",
        "999",
        "--force",
        "--replies",
        &replies,
    ];
    run([&forced[..], &ONE].concat()).ok();
}

#[test]
fn a_run_without_a_usable_reply_stores_nothing_and_tells_every_reply() {
    let (stage, store) = seen();
    let memories = || run(["list", &store, "--json"]).json();
    let before = memories();
    let replies = script(&stage, &["Why?", "no", "1. So (9)", "1. So (because of )"]);
    let args = ["reflect", &store, "--replies", &replies];
    let ran = run([&args[..], &ONE, &["--json"]].concat());
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let told = ran.fails(1);
    assert!(
        told.contains("no usable reply in 3 attempts at insights for question 0"),
        "{told}"
    );
    let kept: Vec<_> = document["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["reply"])
        .collect();
    assert_eq!(kept, ["Why?", "no", "1. So (9)", "1. So (because of )"]);
    assert_eq!(document["stored"], json!([]));
    assert!(
        told.contains(document["failure"].as_str().unwrap()),
        "{told}"
    );
    assert_eq!(memories(), before);
    // A model that fails keeps what was replied, too.
    let replies = script(&stage, &["Why?"]);
    let args = ["reflect", &store, "--replies", &replies];
    let ran = run([&args[..], &ONE].concat());
    assert!(
        ran.out.starts_with("questions: taken: Why?\n"),
        "{}",
        ran.out
    );
    assert!(ran.fails(1).contains("--replies has no more"));
    assert_eq!(memories(), before);
}

#[test]
fn every_flag_changes_what_it_names() {
    let (stage, store) = seen();
    let prompts = stage.at("prompts");
    let reflect = |args: &[&str], replies: &[&str]| {
        let replies = script(&stage, replies);
        run([
            &[
                "reflect",
                &store,
                "--force",
                "--json",
                "--replies",
                &replies,
            ],
            args,
        ]
        .concat())
    };
    let failed = |ran: crate::stage::Ran| {
        let document: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(document["stored"], json!([]));
        ran.fails(1)
    };
    let stored = |ran: crate::stage::Ran| ran.json()["stored"].as_array().unwrap().len();
    let good = ["Why?", "1. Klaus reads (1)", "5"];
    let now = ["--now", T_TEXT];
    // --attempts, --least, --insights
    let once = [&now[..], &["--questions", "1", "--attempts", "1"]].concat();
    failed(reflect(&once, &["no", "Why?"]));
    let two = [&once[..], &["--least", "2", "--insights", "2"]].concat();
    failed(reflect(&two, &good));
    assert!(
        reflect(&[&once[..], &["--least", "9"]].concat(), &good)
            .fails(1)
            .contains("`least` is 9")
    );
    // --similarity, --refuse-unchecked
    failed(reflect(
        &[
            &once[..],
            &["--refuse-unchecked", "--check-command", "echo unchecked"],
        ]
        .concat(),
        &good,
    ));
    failed(reflect(
        &[&once[..], &["--similarity", "0.99"]].concat(),
        &good,
    ));
    let similar = reflect(
        &[&once[..], &["--similarity", "-1", "--no-touch"]].concat(),
        &good,
    )
    .json();
    assert_eq!(similar["stored"][0]["support"], "supported");
    // --no-touch
    let last_access = |id: &str| run(["show", &store, id, "--json"]).json()["last_access"].clone();
    assert_eq!(last_access("0"), time(T - HOUR));
    // --shown, -k
    let shown = [&once[..], &["--shown", "reflection"]].concat();
    let document = reflect(&shown, &good).json();
    assert_eq!(document["stored"][0]["evidence"], json!([3]));
    failed(reflect(
        &[&once[..], &["-k", "1"]].concat(),
        &["Why?", "1. Klaus reads (2)", "5"],
    ));
    // --expiry, --agent, --questions
    let later = time(T + HOUR);
    let args = [
        &now[..],
        &["--questions", "2", "--expiry", &later, "--agent", "7"],
    ]
    .concat();
    assert_eq!(
        stored(reflect(
            &args,
            &["Why?\nWho?", "1. A (1)", "1. B (1)", "5", "5"]
        )),
        2
    );
    assert_eq!(run(["show", &store, "5", "--json"]).json()["expiry"], later);
    // --newest
    let command = format!("cat > {prompts}; echo no");
    let args = [
        "reflect",
        &store,
        "--force",
        "--attempts",
        "1",
        "--newest",
        "2",
        "--chat-command",
        &command,
    ];
    run([&args[..], &now].concat()).fails(1);
    let prompt = std::fs::read_to_string(&prompts).unwrap();
    let statements = prompt
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    assert_eq!(statements.count(), 2, "{prompt}");
}

#[test]
fn a_command_replies() {
    let (stage, store) = seen();
    let said = stage.at("said");
    // It is told by the prompt what to reply.
    let command = format!(
        "tee -a {said} | awk '/questions/ {{ r = \"1. What does Klaus do?\" }} /conclusions/ {{ r = \"1. Klaus studies (because of 1, 2)\" }} \
         /Rate/ {{ r = \"7\" }} END {{ print r }}'"
    );
    let args = ["reflect", &store, "--chat-command", &command];
    let told = run([&args[..], &ONE].concat()).ok();
    assert!(
        told.contains("\nadded - (id 3)  reflection, depth 1  Klaus studies\n"),
        "{told}"
    );
    assert!(
        std::fs::read_to_string(&said)
            .unwrap()
            .contains("Klaus reads about cities")
    );
    for (command, expected) in [
        ("exit 3", "ended with exit status: 3"),
        ("printf '\\377'", "invalid utf-8"),
        ("/no/such/program", "ended with exit status: 127"),
    ] {
        let args = ["reflect", &store, "--force", "--chat-command", command];
        let ran = run([&args[..], &ONE].concat());
        assert_eq!(ran.code, Some(1));
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

#[test]
fn a_command_checks() {
    let (stage, store) = seen();
    let asked = stage.at("asked");
    let two = "1. Klaus reads (because of 1)\n2. Klaus sleeps (because of 2)";
    let replies = script(&stage, &["Why?", two, "5"]);
    let command =
        format!("tee -a {asked} | awk '{{ print /sleeps/ ? \"unsupported\" : \"supported\" }}'");
    let args = [
        "reflect",
        &store,
        "--force",
        "--json",
        "--replies",
        &replies,
        "--check-command",
    ];
    let document = run([&args[..], &[&command], &ONE].concat()).json();
    let stored = document["stored"].as_array().unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(
        (&stored[0]["text"], &stored[0]["support"]),
        (&json!("Klaus reads"), &json!("supported"))
    );
    let refused = &document["attempts"][1]["verdict"]["insights"]["refused"];
    assert_eq!(refused, &json!([{"insight": 1, "refusal": "unsupported"}]));
    let asked = std::fs::read_to_string(&asked).unwrap();
    assert!(
        asked.starts_with("{\"claim\":\"Klaus reads\",\"evidence\":[\""),
        "{asked}"
    );
    let ran = run([&args[..], &["echo perhaps"], &ONE].concat());
    assert!(ran.fails(1).contains("--check-command said \"perhaps\""));
}

#[test]
fn an_endpoint_replies_and_embeds() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let mut asked = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length, mut key) = (String::new(), 0, String::new());
            loop {
                line.clear();
                reader.read_line(&mut line).unwrap();
                let lower = line.to_lowercase();
                if let Some(n) = lower.strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                if lower.starts_with("authorization:") {
                    key = line.trim().to_owned();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let answer = match body["input"].as_array() {
                Some(texts) => {
                    let each =
                        (0..texts.len()).map(|i| json!({"index": i, "embedding": [1.0, 0.5]}));
                    json!({"data": each.collect::<Vec<_>>()})
                }
                None => {
                    let prompt = body["messages"][0]["content"].as_str().unwrap();
                    let reply = match prompt {
                        _ if prompt.contains("conclusions") => "1. It rains (because of 1)",
                        _ if prompt.contains("Rate") => "6",
                        _ => "Why?",
                    };
                    json!({"choices": [{"message": {"content": reply}}]})
                }
            }
            .to_string();
            asked.push((body["model"].as_str().unwrap().to_owned(), key));
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            stream.write_all((head + &answer).as_bytes()).unwrap();
            if asked.len() == 5 {
                break;
            }
        }
        asked
    });
    let stage = Stage::new();
    let store = stage.at("S");
    run(["create", &store, "--model", "small", "--dim", "2"]).ok();
    let vector = stage.write("v.json", "[1, 0]");
    run([
        "add",
        &store,
        "it rained",
        "--vectors",
        &vector,
        "--created",
        T_TEXT,
    ])
    .ok();
    let args = [
        "reflect",
        &store,
        "--force",
        "--url",
        &url,
        "--chat-model",
        "large",
        "--embedding-model",
        "small",
    ];
    let keyed = crate::stage::program()
        .args([&args[..], &ONE, &["--key-env", "THE_KEY"]].concat())
        .env("THE_KEY", "secret")
        .output()
        .unwrap();
    let ran = crate::stage::Ran::from(keyed);
    assert!(
        ran.ok()
            .contains("added - (id 1)  reflection, depth 1  It rains")
    );
    let asked = server.join().unwrap();
    let models: Vec<_> = asked.iter().map(|(model, _)| &**model).collect();
    assert_eq!(models, ["large", "small", "large", "small", "large"]);
    assert!(asked.iter().all(|(_, key)| key.ends_with("Bearer secret")));
    // Another model's vectors do not compare.
    let other = [
        "reflect",
        &store,
        "--force",
        "--url",
        &url,
        "--chat-model",
        "a",
        "--embedding-model",
        "b",
    ];
    let told = run([&other[..], &ONE].concat()).fails(1);
    assert!(
        told.contains("\"small\"") && told.contains("\"b\""),
        "{told}"
    );
}
