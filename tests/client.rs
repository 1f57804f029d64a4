//! `memorank::client`, against a server that says what a test has it say.

use memorank::client::{ClientError, Endpoint, MAX_BYTES};
use memorank::stream::{Embed, Rate, rating};
use serde_json::{Value, json};
use std::error::Error as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A question as it came.
struct Asked {
    line: String,
    headers: Vec<String>,
    body: Value,
}

/// Answers one connection, and gives what was asked.
fn serve(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> (Endpoint, JoinHandle<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let asked = read(&stream);
        answer(&mut stream);
        asked
    });
    let endpoint = Endpoint::new(&url).unwrap();
    (endpoint.with_time_limit(Duration::from_secs(20)), server)
}

fn read(stream: &TcpStream) -> Asked {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let length = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.expect("the length is told")];
    stream.read_exact(&mut body).unwrap();
    let line = lines.remove(0);
    Asked {
        line,
        headers: lines,
        body: serde_json::from_slice(&body).unwrap(),
    }
}

/// Says this, with a status.
fn says(status: &'static str, body: &str) -> impl FnOnce(&mut TcpStream) + Send + 'static {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
    move |stream| stream.write_all(answer.as_bytes()).unwrap()
}

fn completion(text: &str, finish_reason: &str) -> String {
    json!({"choices": [{"message": {"content": text}, "finish_reason": finish_reason}]}).to_string()
}

/// What a chat model there replies to "hello".
fn reply(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> Result<String, ClientError> {
    let (endpoint, server) = serve(answer);
    let reply = endpoint.chat_model("m").reply("hello");
    server.join().unwrap();
    reply
}

#[test]
fn a_prompt_is_posted_with_the_key_and_the_reply_comes_as_it_is() {
    let text = " 1. Klaus\nreads ☕ (because of 1)\n";
    let (endpoint, server) = serve(says("200 OK", &completion(text, "stop")));
    let endpoint = endpoint.with_key("secret key");
    assert!(!format!("{endpoint:?}").contains("secret"));
    let mut chat = endpoint.chat_model("a model");
    assert!(!format!("{chat:?}").contains("secret"));
    assert_eq!(chat.name(), "a model");
    assert_eq!(chat.reply("what \"is\" it?\n").unwrap(), text);
    let asked = server.join().unwrap();
    assert_eq!(asked.line, "POST /v1/chat/completions HTTP/1.1");
    let has = |header: &str| {
        let all = asked.headers.iter();
        all.filter(|line| line.eq_ignore_ascii_case(header)).count()
    };
    assert_eq!(has("authorization: Bearer secret key"), 1);
    assert_eq!(has("content-type: application/json"), 1);
    let message = json!({"role": "user", "content": "what \"is\" it?\n"});
    assert_eq!(
        asked.body,
        json!({"model": "a model", "messages": [message]})
    );
}

#[test]
fn a_text_is_rated_by_the_words_of_the_prompt() {
    let (endpoint, server) = serve(says("200 OK", &completion("7", "stop")));
    let mut chat = endpoint.chat_model("m");
    assert_eq!(chat.rate("Klaus reads", rating::PAPER).unwrap(), "7");
    let asked = server.join().unwrap();
    let prompt = rating::prompt("Klaus reads", rating::PAPER);
    assert_eq!(asked.body["messages"][0]["content"], prompt);
    assert!(prompt.contains("Klaus reads") && prompt.contains("10"));
    assert!(
        !asked
            .headers
            .iter()
            .any(|line| line.to_lowercase().starts_with("authorization"))
    );
}

#[test]
fn embeddings_come_in_the_order_of_the_texts() {
    let data = json!({"data": [
        {"index": 1, "embedding": [0.0, 1.0]},
        {"index": 0, "embedding": [0.1, 1e-3]},
    ]});
    let (endpoint, server) = serve(says("200 OK", &data.to_string()));
    let mut embedder = endpoint.embedding_model("small");
    assert_eq!(embedder.model(), "small");
    let embedded = embedder.embed(&["one", "two"]).unwrap();
    assert_eq!(embedded, [[0.1, 1e-3], [0.0, 1.0]]);
    let asked = server.join().unwrap();
    assert_eq!(asked.line, "POST /v1/embeddings HTTP/1.1");
    let expected = json!({"model": "small", "input": ["one", "two"], "encoding_format": "float"});
    assert_eq!(asked.body, expected);
    // Nobody is asked for nothing.
    assert!(embedder.embed(&[]).unwrap().is_empty());
}

#[test]
fn there_must_be_one_embedding_for_each_text() {
    let one = |index: u64| json!({"index": index, "embedding": [1.0]});
    for data in [
        vec![],
        vec![one(0)],
        vec![one(0), one(0)],
        vec![one(1), one(2)],
        vec![one(0), one(1), one(2)],
    ] {
        let (endpoint, server) = serve(says("200 OK", &json!({"data": data}).to_string()));
        let error = endpoint
            .embedding_model("m")
            .embeddings(&["a", "b"])
            .unwrap_err();
        server.join().unwrap();
        assert!(matches!(error, ClientError::Answer { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("not one embedding for each text"),
            "{error}"
        );
    }
}

#[test]
fn a_refusal_is_told_with_its_status_and_beginning() {
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "429 Too Many Requests",
        "500 No",
    ] {
        let told = format!("{}\n\u{1b}[31mno quota {}", "{\"error\":", "x".repeat(1000));
        let error = reply(says(status, &told)).unwrap_err();
        let ClientError::Status {
            status: found,
            body,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(found.to_string(), status[..3]);
        assert!(
            body.starts_with("{\"error\": ") && body.ends_with("x…"),
            "{body}"
        );
        assert!(
            body.chars().count() == 301 && !body.contains('\u{1b}'),
            "{body}"
        );
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let location = format!("http://{}/", other.local_addr().unwrap());
    let answer =
        format!("HTTP/1.1 307 Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    let error = reply(move |stream| stream.write_all(answer.as_bytes()).unwrap()).unwrap_err();
    assert!(
        matches!(error, ClientError::Status { status: 307, .. }),
        "{error}"
    );
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err());
}

#[test]
fn an_answer_of_another_shape_is_told_with_its_beginning() {
    for answer in [
        "",
        "not JSON",
        "{}",
        "[]",
        r#"{"choices": []}"#,
        r#"{"choices": [{}]}"#,
        r#"{"choices": [{"message": {}}]}"#,
        r#"{"choices": [{"message": {"content": null}}]}"#,
        r#"{"choices": [{"message": {"content": 7}}]}"#,
        r#"{"choices": [{"message": {"content": "\ud800"}}]}"#,
    ] {
        let error = reply(says("200 OK", answer)).unwrap_err();
        let ClientError::Answer { url, body, .. } = &error else {
            panic!("{answer}: {error}");
        };
        assert!(url.ends_with("/v1/chat/completions"), "{url}");
        assert_eq!(body, answer);
    }
}

#[test]
fn a_reply_that_was_cut_is_no_reply() {
    let error = reply(says("200 OK", &completion("1. Klaus rea", "length"))).unwrap_err();
    assert!(matches!(error, ClientError::Cut { length: 12 }), "{error}");
    // Not all endpoints say why it ended.
    let silent = json!({"choices": [{"message": {"content": "7"}}]}).to_string();
    assert_eq!(reply(says("200 OK", &silent)).unwrap(), "7");
}

#[test]
fn an_answer_that_does_not_come_to_its_end_is_none() {
    for answer in [
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\": [",
        "no HTTP at all\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let error = reply(move |stream| stream.write_all(answer.as_bytes()).unwrap()).unwrap_err();
        assert!(
            matches!(error, ClientError::Transport { .. }),
            "{answer:?}: {error}"
        );
        assert!(
            error.source().is_some() && error.to_string().contains("127.0.0.1"),
            "{error}"
        );
    }
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let endpoint = Endpoint::new(&format!("http://{nobody}")).unwrap();
    let error = endpoint.chat_model("m").reply("hello").unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error}");
}

#[test]
fn an_answer_that_is_late_is_none() {
    let (endpoint, server) = serve(|stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
            .unwrap();
        // A byte now and then, until nobody listens any more.
        while stream.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let endpoint = endpoint.with_time_limit(Duration::from_millis(300));
    let error = endpoint.chat_model("m").reply("hello").unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error}");
    server.join().unwrap();
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let error = reply(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let piece = vec![b' '; 1 << 20];
        let mut written = 0;
        while stream.write_all(&piece).is_ok() {
            written += piece.len() as u64;
            assert!(written < 2 * MAX_BYTES, "somebody reads on");
        }
    });
    assert!(
        matches!(error, Err(ClientError::TooLong { .. })),
        "{error:?}"
    );
}

#[test]
fn what_is_no_address_is_refused() {
    for url in [
        "",
        "http://",
        "localhost:8080",
        "ftp://a",
        "http://a b",
        "http://a\r\nx: y",
        "http://key@host/v1",
        "https://a/v1?x=1",
    ] {
        let error = Endpoint::new(url).unwrap_err();
        assert!(matches!(error, ClientError::Url { .. }), "{url:?}: {error}");
    }
    for url in [
        "http://localhost:8080/v1",
        "https://api.openai.com/v1/",
        "http://[::1]:80",
    ] {
        assert!(Endpoint::new(url).is_ok(), "{url}");
    }
}

#[test]
fn a_key_that_is_no_header_is_an_error_without_the_key() {
    let endpoint = Endpoint::new("http://127.0.0.1:9/v1")
        .unwrap()
        .with_key("secret\r\nx: y");
    let error = endpoint.chat_model("m").reply("hello").unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(!told.contains("secret"), "{told}");
}
