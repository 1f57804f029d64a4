//! From replies to drafts: questions and what is retrieved for them, insights and the gates.

use super::{Pending, Question, Reflect, Stage, shown};
use crate::scoring::Workspace;
use crate::store::Reference;
use crate::stream::evidence::above;
use crate::stream::many::answer_all;
use crate::stream::reflection::attempt::{Attempt, Purpose, Refusal, Refused, Verdict};
use crate::stream::reflection::error::ReflectAnswerError;
use crate::stream::reflection::origin::Origin;
use crate::stream::reflection::parse::{parse, parse_questions};
use crate::stream::reflection::settings::Checking;
use crate::stream::reflection::{Base, Shown, Support, resolve};
use crate::stream::{Draft, Embedding, Order, Retrieve, Retrieved};
use std::mem;

impl Reflect {
    /// What the model asks.
    pub(super) fn questions_replied(&mut self, reply: &str) -> Result<(), ReflectAnswerError> {
        let found = parse_questions(reply, self.settings.questions);
        let questions = found.taken.iter().map(|text| Question {
            text: text.clone(),
            embedding: Vec::new(),
            retrieved: None,
            shown: Vec::new(),
        });
        let questions: Vec<Question> = questions.collect();
        let is_taken = !questions.is_empty();
        self.note(
            Purpose::Questions,
            reply,
            Verdict::Questions(found),
            is_taken,
        )?;
        if is_taken {
            self.questions = questions;
            self.stage = Stage::EmbedQuestions;
        }
        Ok(())
    }

    /// Asks with the embeddings of the questions.
    pub(super) fn retrieve(&mut self, embeddings: Vec<Vec<f32>>) -> Result<(), ReflectAnswerError> {
        let filter = shown::filter(&self.settings);
        let asks: Vec<Retrieve<'_>> = (self.questions.iter().zip(&embeddings))
            .map(|(question, embedding)| {
                shown::retrieval(&self.settings, self.now, &question.text, embedding, &filter)
            })
            .collect();
        let all = answer_all(
            self.snapshot.clone(),
            &asks,
            Order::Sequential,
            self.settings.par,
            &mut Workspace::new(),
        )?;
        let texts_of = |retrieved: &Retrieved| {
            let rows = retrieved.memories.iter().map(|memory| memory.row);
            shown::texts(&self.snapshot, rows)
        };
        let shown: Vec<Vec<(u64, String)>> = all.iter().map(texts_of).collect::<Result<_, _>>()?;
        if let Some(question) = shown.iter().position(Vec::is_empty) {
            return Err(ReflectAnswerError::NothingToShow { question });
        }
        let answers = embeddings.into_iter().zip(all).zip(shown);
        for (question, ((embedding, retrieved), shown)) in self.questions.iter_mut().zip(answers) {
            question.embedding = embedding;
            question.retrieved = Some(retrieved);
            question.shown = shown;
        }
        self.stage = Stage::Insights;
        Ok(())
    }

    /// Gates 1 and 2.
    pub(super) fn insights_replied(&mut self, reply: &str) -> Result<(), ReflectAnswerError> {
        let parsed = parse(reply, self.settings.insights);
        let retrieved = self.questions[self.at].retrieved.iter();
        let ids = retrieved.flat_map(|retrieved| &retrieved.memories);
        let ids: Vec<u64> = ids.map(|memory| memory.id).collect();
        let shown = Shown {
            ids: &ids,
            base: Base::One,
            now: self.now,
        };
        let (mut pending, mut refused) = (Vec::new(), Vec::new());
        for (place, insight) in parsed.insights.iter().enumerate() {
            match resolve(&self.snapshot, &shown, &insight.citations) {
                // Each costs an embedding, perhaps a check, and a rating.
                Ok(_) if pending.len() == self.settings.insights => refused.push(Refused {
                    insight: place,
                    refusal: Refusal::MoreThanAsked,
                }),
                Ok(evidence) => {
                    let rows = evidence
                        .iter()
                        .filter_map(|&id| self.snapshot.row_of_id(id));
                    pending.push(Pending {
                        place,
                        insight: insight.clone(),
                        evidence: shown::texts(&self.snapshot, rows)?,
                        embedding: Embedding::None,
                        support: Support::Unchecked,
                    });
                }
                Err(problems) => refused.push(Refused {
                    insight: place,
                    refusal: Refusal::Citations(problems),
                }),
            }
        }
        // Whether it is taken, the last gate says.
        self.attempts.push(Attempt {
            purpose: Purpose::Insights { question: self.at },
            reply: reply.to_owned(),
            verdict: Verdict::Insights { parsed, refused },
            is_taken: false,
        });
        if pending.len() < self.settings.least {
            // Nobody is asked about those that there are.
            return self.judge();
        }
        self.pending = pending;
        self.stage = Stage::EmbedInsights;
        Ok(())
    }

    /// Gate 3, for insights that have the embeddings they get.
    pub(super) fn support(&mut self) -> Result<(), ReflectAnswerError> {
        match self.settings.checking {
            Checking::Nobody => self.judge(),
            Checking::Caller => {
                self.stage = Stage::Check(0);
                Ok(())
            }
            Checking::Similarity(similarity) => {
                for pending in &mut self.pending {
                    if let Embedding::Given(claim) = &pending.embedding {
                        let evidence: Vec<u64> = pending.ids().collect();
                        pending.support = similarity.check(&self.snapshot, claim, &evidence)?;
                    }
                }
                self.judge()
            }
        }
    }

    /// Takes the reply, or refuses it, when all is known of its insights.
    pub(super) fn judge(&mut self) -> Result<(), ReflectAnswerError> {
        let (mut passed, mut refused) = (Vec::new(), Vec::new());
        for pending in mem::take(&mut self.pending) {
            let refusal = match pending.support {
                Support::Unsupported => Refusal::Unsupported,
                Support::Unchecked if self.settings.refuse_unchecked => Refusal::Unchecked,
                Support::Supported | Support::Unchecked => {
                    passed.push(pending);
                    continue;
                }
            };
            refused.push(Refused {
                insight: pending.place,
                refusal,
            });
        }
        let is_taken = passed.len() >= self.settings.least;
        let attempt = self.attempts.last_mut().expect("a reply is judged");
        attempt.is_taken = is_taken;
        if let Verdict::Insights { refused: all, .. } = &mut attempt.verdict {
            all.extend(refused);
        }
        if !is_taken {
            self.stage = Stage::Insights;
            return self.refuse(Purpose::Insights { question: self.at });
        }
        self.left = self.settings.attempts;
        for pending in passed {
            let draft = self.draft(pending);
            self.remember.push(draft);
        }
        self.at += 1;
        self.stage = match self.at == self.questions.len() {
            true => Stage::Rate,
            false => Stage::Insights,
        };
        Ok(())
    }

    fn draft(&self, pending: Pending) -> Draft {
        let rows = pending.ids().filter_map(|id| self.snapshot.row_of_id(id));
        let depths: Vec<u32> = rows.map(|row| self.snapshot.depth(row)).collect();
        let origin = Origin {
            question: self.questions[self.at].text.clone(),
            support: pending.support,
        };
        Draft {
            kind: self.settings.kind.clone(),
            expiry: self.settings.expiry,
            depth: above(depths),
            evidence: pending.ids().map(Reference::Id).collect(),
            embedding: pending.embedding,
            payload: origin.to_payload(),
            ..Draft::new(pending.insight.text, self.now)
        }
    }
}
