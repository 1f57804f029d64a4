//! Stores with questions whose right answers are known: what `eval`, `tune` and `sweep` take.

mod file;

use crate::failure::Failure;
use crate::filters::Narrowed;
use crate::output::{Output, counted, escaped, grouped};
use crate::question::{Asking, Competing};
use crate::table::print_columns;
use crate::threads::on_threads;
use crate::{embed, keys, opened};
pub use file::Label;
use file::{Key, lines, matrix_beside, vectors_beside};
use memorank::Par;
use memorank::eval::{self, Collection, EvalError};
use memorank::store::{Agent, Snapshot};
use memorank::stream::Filter;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Judged {
    /// A store's folder, and a file of questions about it; several such pairs are taken together.
    ///
    /// The file has a JSON object in each line: "relevant", a list of the memories that answer the question, by their keys,
    /// or else their ids, as texts or numbers ("evidence" is the same); "vector" or "text" (if the store's model is the built-in one), or neither in any
    /// line if a matrix lies beside the file, of the same name and with the ending .npy, a row for each line; and, if
    /// wanted, "category" and "fold" (texts or numbers), "now" (RFC 3339) and "agent". Other fields are not looked at, and
    /// named. No byte of a store changes.
    #[arg(required = true, num_args = 2.., value_names = ["STORE", "QUERIES"])]
    pairs: Vec<PathBuf>,
    #[command(flatten)]
    pub asking: Asking,
    #[command(flatten)]
    competing: Competing,
}

/// Whether questions without a right answer are of use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    Needed,
    NotNeeded,
}

/// A store and its questions.
pub struct Subject<'a> {
    competing: &'a Competing,
    snapshot: Snapshot,
    narrowed: Narrowed<'a>,
    pub questions: Vec<Question>,
    pub told: Told,
}

/// What documents say of a store and its questions.
#[derive(Serialize)]
pub struct Told {
    store: String,
    queries: String,
    memories: usize,
    questions: usize,
    /// Questions that were left out, as they have no relevant memory.
    unjudged: usize,
    /// Keys that are given as relevant and that no memory has: they count as missed.
    missing: usize,
    /// Fields of the file that are not looked at.
    ignored: BTreeSet<String>,
}

pub struct Question {
    /// Of the file, counted from 1.
    line: usize,
    embedding: Vec<f32>,
    agent: Agent,
    now: i64,
    relevant: Vec<u64>,
    pub category: Option<Label>,
    pub fold: Option<Label>,
}

impl Judged {
    /// What nothing may be written over or into: the stores, the files of questions and what lies beside these.
    pub fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        let files = self.pairs.iter().skip(1).step_by(2);
        let matrices = files.map(|file| matrix_beside(file));
        let mask = self.competing.filters.mask().map(Path::to_owned);
        self.pairs.iter().cloned().chain(matrices).chain(mask)
    }

    /// Opens the stores and reads the files.
    pub fn subjects(&self, answers: Answers) -> Result<Vec<Subject<'_>>, Failure> {
        if !self.pairs.len().is_multiple_of(2) {
            return Err(Failure::Usage(
                "each STORE needs a file of QUERIES after it: the last has none".to_owned(),
            ));
        }
        self.check_pairs()?;
        let subjects = self.pairs.chunks(2).map(|pair| {
            let snapshot = opened::to_read(&pair[0])?.snapshot();
            let (store, file) = (pair[0].display().to_string(), &pair[1]);
            self.subject(snapshot, store.clone(), file, answers)
                .map_err(|failure| match self.pairs.len() {
                    2 => failure,
                    _ => failure.about(store),
                })
        });
        let subjects = subjects.collect::<Result<Vec<_>, Failure>>()?;
        if subjects.iter().all(|subject| subject.questions.is_empty()) {
            let none = match answers {
                Answers::Needed => "no question has a relevant memory",
                Answers::NotNeeded => "there is no question",
            };
            return Err(Failure::Error(none.into()));
        }
        Ok(subjects)
    }

    /// Questions that are asked twice would count twice.
    fn check_pairs(&self) -> Result<(), Failure> {
        let found = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let mut seen = BTreeSet::new();
        for pair in self.pairs.chunks(2) {
            if !seen.insert((found(&pair[0]), found(&pair[1]))) {
                let [store, file] = [&pair[0], &pair[1]].map(|path| path.display());
                return Err(Failure::Usage(format!("{store} {file} is given twice")));
            }
        }
        Ok(())
    }

    fn subject(
        &self,
        snapshot: Snapshot,
        store: String,
        path: &Path,
        answers: Answers,
    ) -> Result<Subject<'_>, Failure> {
        let narrowed = self.competing.filters.narrowed(&snapshot)?;
        let file = path.display().to_string();
        let lines = lines(path)?;
        let mut told = Told {
            store,
            queries: file.clone(),
            memories: snapshot.len(),
            questions: 0,
            unjudged: 0,
            missing: 0,
            ignored: BTreeSet::new(),
        };
        let mut beside = vectors_beside(path, &lines)?;
        let mut questions: Vec<Question> = Vec::new();
        for (number, line) in lines {
            let wrong =
                |what: String| Failure::Error(format!("{file}, line {number}: {what}").into());
            told.ignored.extend(line.ignored.into_keys());
            let beside = beside.as_mut().and_then(Iterator::next);
            if answers == Answers::Needed && line.relevant.is_empty() {
                told.unjudged += 1;
                continue;
            }
            let embedding = match (line.vector, line.text, beside) {
                (Some(vector), None, None) | (None, None, Some(vector)) => vector,
                (None, Some(text), None) => embed::text(&snapshot, &text)
                    .map_err(|failure| failure.about(format!("{file}, line {number}")))?,
                (None, None, None) => {
                    return Err(wrong(
                        "one of \"vector\" and \"text\" is expected".to_owned(),
                    ));
                }
                (Some(_), Some(_), _) | (_, _, Some(_)) => {
                    return Err(wrong("\"vector\" or \"text\", and not both".to_owned()));
                }
            };
            let agent = self.asking.agent(line.agent);
            let (now, _) = self.asking.moment(line.now, &snapshot, agent);
            questions.push(Question {
                line: number,
                embedding,
                agent,
                now,
                relevant: match answers {
                    Answers::Needed => told.resolve(&snapshot, line.relevant)?,
                    Answers::NotNeeded => Vec::new(),
                },
                category: line.category,
                fold: line.fold,
            });
        }
        let named: usize = questions.iter().map(|of| of.relevant.len()).sum();
        if named > 0 && told.missing == named {
            return Err(Failure::Error(
                format!(
                    "{file}: no memory of {} has any of the keys that are given as relevant; are the questions about this \
                     store?",
                    told.store
                )
                .into(),
            ));
        }
        told.questions = questions.len();
        Ok(Subject {
            competing: &self.competing,
            snapshot,
            narrowed,
            questions,
            told,
        })
    }
}

impl Told {
    /// The ids of the memories with these keys, and for each key that no memory has an id that no memory has.
    fn resolve(&mut self, snapshot: &Snapshot, relevant: Vec<Key>) -> Result<Vec<u64>, Failure> {
        let (mut ids, mut missing) = (Vec::with_capacity(relevant.len()), BTreeSet::new());
        for key in relevant {
            let key = key.to_string();
            match keys::find(snapshot, &key)? {
                Some(row) => ids.push(snapshot.id(row)),
                None => drop(missing.insert(key)),
            }
        }
        self.missing += missing.len();
        // Ids are given from 0 on.
        ids.extend(missing.iter().zip(0..).map(|(_, n)| u64::MAX - n));
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}

/// What the library measures on all stores and their questions, on as many threads as are wanted.
pub fn measured<T: Send>(
    subjects: &[Subject<'_>],
    asking: &Asking,
    f: impl FnOnce(&[Collection<'_>], Par) -> Result<T, EvalError> + Send,
) -> Result<T, Failure> {
    let model = asking.model.as_deref();
    let measured = on_threads(asking.threads, |par| {
        with_collections(subjects, model, |collections| f(collections, par))
    })?;
    measured.map_err(|e| failed(subjects, e))
}

/// Calls `f` with all stores and their questions, for the library.
fn with_collections<T>(
    subjects: &[Subject<'_>],
    model: Option<&str>,
    f: impl FnOnce(&[Collection<'_>]) -> T,
) -> T {
    let filters: Vec<Filter<'_>> = (subjects.iter())
        .map(|of| of.competing.filter(&of.narrowed, &of.narrowed.exclude))
        .collect();
    let judged = subjects.iter().zip(&filters).map(|(of, filter)| {
        let judged = of.questions.iter().map(|question| eval::Judged {
            embedding: &question.embedding,
            model,
            now: question.now,
            agent: question.agent,
            filter,
            relevant: &question.relevant,
        });
        judged.collect()
    });
    let judged: Vec<Vec<eval::Judged<'_>>> = judged.collect();
    let collections = subjects
        .iter()
        .zip(&judged)
        .map(|(of, questions)| Collection {
            snapshot: &of.snapshot,
            questions,
        });
    f(&collections.collect::<Vec<_>>())
}

/// What an error of the library is called: by the line of its question.
fn failed(subjects: &[Subject<'_>], e: EvalError) -> Failure {
    match e {
        EvalError::Question {
            collection,
            question,
            error,
        } => {
            let Subject {
                told, questions, ..
            } = &subjects[collection];
            let line = questions.get(question).map_or(0, |question| question.line);
            Failure::from(error).about(format!("{}, line {line}", told.queries))
        }
        // Scorings come from the command line.
        EvalError::Setting { error, .. } => Failure::Usage(error.to_string()),
        _ => Failure::Error(e.into()),
    }
}

/// What is said of the stores and their questions as text.
pub fn print(
    subjects: &[Subject<'_>],
    warning: Option<&str>,
    out: &mut Output,
) -> Result<(), Failure> {
    let told = || subjects.iter().map(|of| &of.told);
    let lines = told().map(|told| {
        [
            escaped(&told.store),
            grouped(told.memories),
            escaped(&told.queries),
            grouped(told.questions),
        ]
    });
    print_columns(["store", "memories", "queries", "questions"], lines, out)?;
    let unjudged: usize = told().map(|told| told.unjudged).sum();
    let missing: usize = told().map(|told| told.missing).sum();
    let ignored: BTreeSet<&String> = told().flat_map(|told| &told.ignored).collect();
    let mut note = |told: String| out.line(format_args!("note: {told}"));
    if unjudged > 0 {
        note(format!(
            "{} without a relevant memory left out",
            counted(unjudged, "question")
        ))?;
    }
    if missing > 0 {
        note(format!(
            "{} given as relevant and no memory's: counted as missed",
            counted(missing, "key")
        ))?;
    }
    if !ignored.is_empty() {
        let names: Vec<_> = ignored.iter().map(|name| escaped(name)).collect();
        note(format!("fields not looked at: {}", names.join(", ")))?;
    }
    if let Some(warning) = warning {
        out.line(format_args!("warning: {warning}"))?;
    }
    Ok(())
}

/// A warning where right answers do not compete, and an error if none does: nothing would be measured.
pub fn check_reach(
    subjects: &[Subject<'_>],
    out_of_reach: usize,
) -> Result<Option<String>, Failure> {
    let relevant = subjects.iter().map(Subject::relevant).sum();
    let why = "they are filtered out, have no vector, are later than the question, or no memory's";
    match out_of_reach {
        0 => Ok(None),
        all if all == relevant => Err(Failure::Error(
            format!("no relevant memory competes for its question: {why}").into(),
        )),
        some => Ok(Some(format!(
            "{} of {} relevant memories do not compete for their questions: {why}",
            grouped(some),
            grouped(relevant)
        ))),
    }
}

/// What a chart of several stores is called.
pub fn name(subjects: &[Subject<'_>]) -> String {
    let names: Vec<_> = subjects.iter().map(Subject::name).collect();
    names.join(", ")
}

impl Subject<'_> {
    /// The store's folder, however it was given.
    pub fn folder(&self) -> PathBuf {
        let path = PathBuf::from(&self.told.store);
        path.canonicalize().unwrap_or(path)
    }

    /// How many memories answer its questions, each counted for each.
    pub fn relevant(&self) -> usize {
        self.questions.iter().map(|of| of.relevant.len()).sum()
    }

    /// The name of the store's folder.
    pub fn name(&self) -> String {
        let path = Path::new(&self.told.store);
        let name = path.file_name().and_then(|name| name.to_str());
        name.unwrap_or(&self.told.store).to_owned()
    }
}
