//! Where a stored insight comes from, beside its evidence.

use super::Support;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a [`Reflect`](super::Reflect) stores in the payload of an insight: JSON, under `reflection`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The question that it answers.
    pub question: String,
    /// Whether its evidence was found to carry it. [`Support::Unchecked`]: nobody looked.
    pub support: Support,
}

#[derive(Serialize, Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    reflection: Fields<'a>,
}

#[derive(Serialize, Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    question: Cow<'a, str>,
    #[serde(borrow)]
    support: Cow<'a, str>,
}

impl Origin {
    /// What a memory's payload says, if it is one of these.
    ///
    /// ```
    /// use memorank::stream::reflection::{Origin, Support};
    /// let payload = br#"{"reflection":{"question":"What does Klaus study?","support":"unchecked"}}"#;
    /// assert_eq!(Origin::of(payload).map(|origin| origin.support), Some(Support::Unchecked));
    /// assert_eq!(Origin::of(b"{}"), None);
    /// ```
    pub fn of(payload: &[u8]) -> Option<Origin> {
        let Payload { reflection } = serde_json::from_slice(payload).ok()?;
        Some(Origin {
            question: reflection.question.into_owned(),
            support: Support::named(&reflection.support)?,
        })
    }

    pub(super) fn to_payload(&self) -> Vec<u8> {
        let reflection = Fields {
            question: self.question.as_str().into(),
            support: self.support.name().into(),
        };
        serde_json::to_vec(&Payload { reflection }).expect("texts only")
    }
}
