//! What a reflection asks: a command, an endpoint, or replies in a file.

use crate::embed;
use crate::failure::Failure;
use crate::files;
use crate::output::one_line;
use memorank::client::{Endpoint, MAX_BYTES};
use memorank::store::Snapshot;
use memorank::stream::reflection::{CheckSupport, Complete, Support};
use memorank::stream::{BoxError, Embed};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// The flags' heading in `--help`.
const HEADING: &str = "Which models";

#[derive(clap::Args)]
#[command(next_help_heading = HEADING)]
pub struct Models {
    #[command(flatten)]
    chat: Chat,
    /// An endpoint that speaks OpenAI's protocol: http://localhost:11434/v1.
    #[arg(long)]
    url: Option<String>,
    /// A model that embeds, at --url; without it texts are embedded by their words, if the store's model is the built-in
    /// one.
    #[arg(long, value_name = "NAME", requires = "url")]
    embedding_model: Option<String>,
    /// A command of the shell that says whether memories carry an insight: `{"claim": text, "evidence": [texts]}` is its
    /// standard input, its standard output supported, unsupported or unchecked.
    #[arg(long, value_name = "COMMAND")]
    check_command: Option<String>,
    /// The environment variable with the endpoint's key. If there is none, none is sent.
    #[arg(long, value_name = "NAME", default_value = "OPENAI_API_KEY")]
    key_env: String,
}

/// Who replies.
#[derive(clap::Args)]
#[command(next_help_heading = HEADING)]
#[group(required = true, multiple = false)]
struct Chat {
    /// A command of the shell that replies: a prompt is its standard input, the reply its standard output.
    #[arg(long, value_name = "COMMAND")]
    chat_command: Option<String>,
    /// A model that replies, at --url.
    #[arg(long, value_name = "NAME", requires = "url")]
    chat_model: Option<String>,
    /// A file with replies, given one after another: a JSON array of texts.
    #[arg(long, value_name = "FILE")]
    replies: Option<PathBuf>,
}

impl Models {
    pub fn chat(&self) -> Result<Box<dyn Complete>, Failure> {
        if let Some(command) = &self.chat.chat_command {
            return Ok(Box::new(Shell {
                flag: "--chat-command",
                command: command.clone(),
            }));
        }
        if let Some(path) = &self.chat.replies {
            return Ok(Box::new(Script::read(path)?));
        }
        // One of the three is given.
        let name = self.chat.chat_model.as_deref().unwrap_or_default();
        Ok(Box::new(self.endpoint()?.chat_model(name)))
    }

    pub fn embedder(&self, snapshot: &Snapshot) -> Result<Box<dyn Embed>, Failure> {
        match &self.embedding_model {
            Some(name) => Ok(Box::new(self.endpoint()?.embedding_model(name))),
            None => Ok(Box::new(embed::built_in(snapshot)?)),
        }
    }

    pub fn check(&self) -> Option<Box<dyn CheckSupport>> {
        let command = self.check_command.clone()?;
        Some(Box::new(Shell {
            flag: "--check-command",
            command,
        }))
    }

    fn endpoint(&self) -> Result<Endpoint, Failure> {
        let url = self.url.as_deref().unwrap_or_default();
        let endpoint = Endpoint::new(url).map_err(|e| Failure::Usage(format!("--url: {e}")))?;
        match std::env::var(&self.key_env) {
            Ok(key) => Ok(endpoint.with_key(key)),
            Err(std::env::VarError::NotPresent) => Ok(endpoint),
            Err(e) => Err(Failure::Usage(format!("{}: {e}", self.key_env))),
        }
    }
}

/// A command that replies, and the flag that gave it.
struct Shell {
    flag: &'static str,
    command: String,
}

impl CheckSupport for Shell {
    fn check(&mut self, claim: &str, evidence: &[&str]) -> Result<Support, BoxError> {
        #[derive(Serialize)]
        struct Question<'a> {
            claim: &'a str,
            evidence: &'a [&'a str],
        }
        let reply = self.complete(&serde_json::to_string(&Question { claim, evidence })?)?;
        let said = reply.trim();
        let all = [Support::Supported, Support::Unsupported, Support::Unchecked];
        let found = all.into_iter().find(|support| support.name() == said);
        found.ok_or_else(|| {
            let (flag, said) = (self.flag, one_line(said, 60));
            format!("{flag} said {said:?}, not supported, unsupported or unchecked").into()
        })
    }
}

impl Complete for Shell {
    fn complete(&mut self, prompt: &str) -> Result<String, BoxError> {
        let Shell { flag, command } = self;
        let told = |e: std::io::Error| format!("{flag}: {e}");
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(told)?;
        let mut stdin = child.stdin.take().expect("it is piped");
        let stdout = child.stdout.take().expect("it is piped");
        let mut reply = Vec::new();
        thread::scope(|scope| {
            // A command may reply before it has read all, or not read at all.
            scope.spawn(move || drop(stdin.write_all(prompt.as_bytes())));
            stdout.take(MAX_BYTES + 1).read_to_end(&mut reply)
        })
        .map_err(told)?;
        if reply.len() as u64 > MAX_BYTES {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{flag} replied with more than {MAX_BYTES} bytes").into());
        }
        let status = child.wait().map_err(told)?;
        match status.success() {
            true => Ok(String::from_utf8(reply)?),
            false => Err(format!("{flag} ended with {status}").into()),
        }
    }
}

/// Replies of a file.
struct Script(VecDeque<String>);

impl Script {
    fn read(path: &Path) -> Result<Script, Failure> {
        let told = |what: String| Failure::Error(format!("{}: {what}", path.display()).into());
        let bytes = files::read(path, MAX_BYTES).map_err(|e| told(e.to_string()))?;
        let replies: Vec<String> = serde_json::from_slice(&bytes)
            .map_err(|e| told(format!("not an array of texts: {e}")))?;
        Ok(Script(replies.into()))
    }
}

impl Complete for Script {
    fn complete(&mut self, _: &str) -> Result<String, BoxError> {
        let reply = self.0.pop_front();
        reply.ok_or_else(|| "--replies has no more".into())
    }
}
