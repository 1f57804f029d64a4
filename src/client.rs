//! Models behind an HTTP endpoint that speaks OpenAI's protocol: OpenAI's own, or a llama.cpp, vLLM or Ollama of one's
//! own. A thin client that waits for each answer, for programs that have no other.
//!
//! - An [`Endpoint`] is where the models are.
//! - A [`ChatModel`] replies to prompts and rates texts: `POST /chat/completions`.
//! - An [`EmbeddingModel`] embeds texts: `POST /embeddings`.
//!
//! Nothing is asked twice: whoever calls knows whether that is worth it. What is answered is taken whole or not at all, and
//! no answer makes it read more than [`MAX_BYTES`] or wait longer than the endpoint's time limit. Redirects are not
//! followed: they could carry the key to others. The variables of the environment that name a proxy (`HTTPS_PROXY`,
//! `NO_PROXY` and the like) hold here as for other programs.
//!
//! ```no_run
//! use memorank::client::Endpoint;
//! use memorank::kernel::Dtype;
//! use memorank::store::{CreateOptions, Store};
//! use memorank::stream::{Draft, Embed, remember};
//!
//! let endpoint = Endpoint::new("http://localhost:11434/v1")?;
//! let mut chat = endpoint.chat_model("llama3.2");
//! let mut embedder = endpoint.embedding_model("all-minilm");
//! let options = CreateOptions {
//!     dim: 384.try_into()?,
//!     dtype: Dtype::F16,
//!     model: Some(embedder.model().to_owned()),
//! };
//! let store = Store::create("klaus", &options)?;
//! remember(&store, vec![Draft::new("Klaus is reading", 0)], &mut embedder, &mut chat)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::stream::reflection::Complete;
use crate::stream::{BoxError, Embed, Rate, rating};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;
use thiserror::Error;

/// Bytes of an answer at most: 64 MiB, ten times what 2,048 embeddings of 1,536 elements take as JSON.
pub const MAX_BYTES: u64 = 64 << 20;

/// Characters of an answer that an error's text shows.
const SHOWN: usize = 300;

/// Where models are, and how long to wait for them.
#[derive(Clone)]
pub struct Endpoint {
    agent: ureq::Agent,
    url: String,
    key: Option<String>,
    time_limit: Duration,
}

/// Why a model did not answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address is none of an HTTP endpoint.
    #[error("{url:?} is no address; one starts with http:// or https:// and often ends with /v1")]
    Url {
        /// As it was given.
        url: String,
    },
    /// The endpoint could not be reached, or did not answer in time or to the end.
    #[error("{url}: {source}")]
    Transport {
        /// What was asked.
        url: String,
        /// What went wrong.
        source: BoxError,
    },
    /// The endpoint refused.
    #[error("{url} answered with status {status}: {body}")]
    Status {
        /// What was asked.
        url: String,
        /// The status.
        status: u16,
        /// The beginning of what was answered.
        body: String,
    },
    /// The answer is longer than [`MAX_BYTES`].
    #[error("{url} answered with more than {MAX_BYTES} bytes")]
    TooLong {
        /// What was asked.
        url: String,
    },
    /// The answer is not what the protocol says.
    #[error("{url}: {what}: {body}")]
    Answer {
        /// What was asked.
        url: String,
        /// What is wrong with it.
        what: String,
        /// The beginning of what was answered.
        body: String,
    },
    /// The model's reply was cut at its limit of tokens.
    #[error(
        "the reply was cut after {length} bytes, at a limit of tokens; raise that limit or ask for less"
    )]
    Cut {
        /// Bytes of what came.
        length: usize,
    },
}

impl Endpoint {
    /// The endpoint whose addresses start with `url`: `https://api.openai.com/v1`. An answer may take two minutes.
    ///
    /// # Errors
    /// If that is no address of HTTP.
    pub fn new(url: &str) -> Result<Endpoint, ClientError> {
        let rest = (url.strip_prefix("http://")).or_else(|| url.strip_prefix("https://"));
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '@' | '?' | '#');
        match rest {
            Some(rest) if !rest.is_empty() && rest.chars().all(is_plain) => {}
            _ => {
                return Err(ClientError::Url {
                    url: url.to_owned(),
                });
            }
        }
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("memorank/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Endpoint {
            agent: config.into(),
            url: url.trim_end_matches('/').to_owned(),
            key: None,
            time_limit: Duration::from_secs(120),
        })
    }

    /// With the key that every question carries.
    #[must_use]
    pub fn with_key(self, key: impl Into<String>) -> Endpoint {
        let key = Some(key.into());
        Endpoint { key, ..self }
    }

    /// With another time in which an answer must be there, to its end.
    #[must_use]
    pub fn with_time_limit(self, time_limit: Duration) -> Endpoint {
        Endpoint { time_limit, ..self }
    }

    /// A model there that replies.
    pub fn chat_model(&self, name: impl Into<String>) -> ChatModel {
        ChatModel {
            endpoint: self.clone(),
            name: name.into(),
        }
    }

    /// A model there that embeds.
    pub fn embedding_model(&self, name: impl Into<String>) -> EmbeddingModel {
        EmbeddingModel {
            endpoint: self.clone(),
            name: name.into(),
        }
    }

    /// Posts a question, and reads what is made of the answer.
    fn ask<A: DeserializeOwned>(
        &self,
        path: &str,
        question: &impl Serialize,
    ) -> Result<Answer<A>, ClientError> {
        let url = format!("{}{path}", self.url);
        let failed = |source: ureq::Error| match source {
            ureq::Error::BodyExceedsLimit(_) => ClientError::TooLong { url: url.clone() },
            source => ClientError::Transport {
                url: url.clone(),
                source: source.into(),
            },
        };
        let question = serde_json::to_vec(question).expect("texts and names only");
        let mut request = (self.agent.post(&url))
            .config()
            .timeout_global(Some(self.time_limit))
            .build()
            .header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut response = request.send(&question[..]).map_err(failed)?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(MAX_BYTES);
        let body = body.read_to_vec().map_err(failed)?;
        if !status.is_success() {
            let (status, body) = (status.as_u16(), shown(&body));
            return Err(ClientError::Status { url, status, body });
        }
        match serde_json::from_slice(&body) {
            Ok(parsed) => Ok(Answer { url, body, parsed }),
            Err(error) => Err(ClientError::Answer {
                url,
                what: format!("the answer is not as expected ({error})"),
                body: shown(&body),
            }),
        }
    }
}

impl fmt::Debug for Endpoint {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .field("has_key", &self.key.is_some())
            .field("time_limit", &self.time_limit)
            .finish_non_exhaustive()
    }
}

/// What was answered, and what was made of it.
struct Answer<A> {
    url: String,
    body: Vec<u8>,
    parsed: A,
}

impl<A> Answer<A> {
    fn wrong(self, what: impl Into<String>) -> ClientError {
        ClientError::Answer {
            url: self.url,
            what: what.into(),
            body: shown(&self.body),
        }
    }
}

/// The beginning of an answer, in one line.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    let mut chars = text.trim().chars().map(one_line);
    let mut shown: String = chars.by_ref().take(SHOWN).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

/// A language model.
#[derive(Clone, Debug)]
pub struct ChatModel {
    endpoint: Endpoint,
    name: String,
}

#[derive(Serialize)]
struct Prompt<'a> {
    model: &'a str,
    messages: [Message<'a>; 1],
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Reply,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Reply {
    content: Option<String>,
}

impl ChatModel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it replies to a prompt, as it came.
    ///
    /// # Errors
    /// If there is no reply, or it was cut.
    pub fn reply(&mut self, prompt: &str) -> Result<String, ClientError> {
        let question = Prompt {
            model: &self.name,
            messages: [Message {
                role: "user",
                content: prompt,
            }],
        };
        let mut answer: Answer<Completion> = self.endpoint.ask("/chat/completions", &question)?;
        let Some(choice) = answer.parsed.choices.pop() else {
            return Err(answer.wrong("there is no choice in it"));
        };
        let Some(content) = choice.message.content else {
            return Err(answer.wrong("the reply has no text"));
        };
        match choice.finish_reason.as_deref() {
            Some("length") => Err(ClientError::Cut {
                length: content.len(),
            }),
            _ => Ok(content),
        }
    }
}

impl Complete for ChatModel {
    fn complete(&mut self, prompt: &str) -> Result<String, BoxError> {
        Ok(self.reply(prompt)?)
    }
}

impl Rate for ChatModel {
    fn rate(&mut self, text: &str, range: RangeInclusive<u8>) -> Result<String, BoxError> {
        Ok(self.reply(&rating::prompt(text, range))?)
    }
}

/// A model that embeds.
#[derive(Clone, Debug)]
pub struct EmbeddingModel {
    endpoint: Endpoint,
    name: String,
}

#[derive(Serialize)]
struct Texts<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Embeddings {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: usize,
    embedding: Vec<f32>,
}

impl EmbeddingModel {
    /// The embedding of each text, in their order, all in one question. (Endpoints have limits of their own on how many
    /// texts that may be.)
    ///
    /// # Errors
    /// If there is no answer, or not one embedding for each text.
    pub fn embeddings(&mut self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ClientError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let question = Texts {
            model: &self.name,
            input: texts,
            encoding_format: "float",
        };
        let mut answer: Answer<Embeddings> = self.endpoint.ask("/embeddings", &question)?;
        answer.parsed.data.sort_by_key(|each| each.index);
        let indices = answer.parsed.data.iter().map(|each| each.index);
        if !indices.eq(0..texts.len()) {
            let (found, expected) = (answer.parsed.data.len(), texts.len());
            let what = format!("there is not one embedding for each text ({found} for {expected})");
            return Err(answer.wrong(what));
        }
        let all = answer.parsed.data.into_iter();
        Ok(all.map(|each| each.embedding).collect())
    }
}

impl Embed for EmbeddingModel {
    fn model(&self) -> &str {
        &self.name
    }

    fn embed(&mut self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
        Ok(self.embeddings(texts)?)
    }
}
