//! A golden case in one form, whatever it was read from, and how it is run.

use crate::compare::{Report, Scored};
use memorank::Par;
use memorank::kernel::{Kernel, RowError, Rows, f16, inv_norms};
use memorank::oracle;
use memorank::scoring::{
    Candidates, Columns, Components, Preset, Query, RankError, Ranking, ResultOrder, Scoring,
    Touch, Workspace, rank_components, rank_into,
};
use std::num::NonZeroUsize;

/// How far f32 columns may be from a golden in any raw or normalised component or score, and f16
/// columns from the oracle on the stored values.
pub const TOLERANCE: f64 = 1e-5;

/// How far the score of f16 columns may be from a golden.
pub const TOLERANCE_F16: f64 = 2e-3;

/// How far the oracle may be from a golden in any component or score. (Relevances that a case gives
/// are rounded to f32 first: there it is [`TOLERANCE`].)
pub const TOLERANCE_ORACLE: f64 = 1e-9;

/// Where a golden is spoilt by NaN.
const NO_GOLDEN: &str = "f32 from oracle, for want of a golden";

pub struct Case {
    pub name: String,
    /// With the weights, the decay and the k of the case.
    pub preset: Preset,
    pub memories: Memories,
    pub listed: Listed,
    /// Whether the questions are asked in one call, each seeing the touches of the one before.
    pub sequential: bool,
    pub questions: Vec<Question>,
    /// The last accesses when all questions are answered, where the golden says them.
    pub last_access_after: Option<Vec<i64>>,
}

pub struct Memories {
    pub dim: NonZeroUsize,
    /// Row after row.
    pub vectors: Vec<f32>,
    /// Rows that are stored as having no vector.
    pub vectorless: Vec<usize>,
    pub created: Vec<i64>,
    pub last_access: Vec<i64>,
    pub importance: Vec<f32>,
}

/// Which memories compete, in which order.
pub enum Listed {
    All,
    Rows(Vec<u32>),
    /// These, sorted (stable) by ascending last access before each question.
    ByLastAccess(Vec<u32>),
}

pub struct Question {
    pub embedding: Vec<f32>,
    /// Where a case comes without vectors: the relevance of every row, NaN for one that does not compete.
    pub known_relevance: Option<Vec<f32>>,
    pub now: i64,
    pub expected: Expected,
}

pub enum Expected {
    Scores(Scores),
    /// No candidates, so no hits.
    Empty,
    Refused(RankError),
    /// The golden is spoilt by NaN: what the oracle says.
    LikeOracle,
}

pub struct Scores {
    /// All candidates, in the order that equal scores are in.
    pub candidates: Vec<Scored>,
    /// The last access of each candidate when the question is asked.
    pub last_access: Vec<i64>,
    /// Rows of the k best, best first.
    pub order: Vec<usize>,
    /// Rows of the k best as the caller gets them, where that is another order.
    pub returned: Option<Vec<usize>>,
}

impl Listed {
    /// In the order of positions and ties; `None`: all rows, in theirs.
    pub fn rows(&self, last_access: &[i64]) -> Option<Vec<u32>> {
        match self {
            Listed::All => None,
            Listed::Rows(rows) => Some(rows.clone()),
            Listed::ByLastAccess(rows) => {
                let mut rows = rows.clone();
                rows.sort_by_key(|&row| last_access[row as usize]);
                Some(rows)
            }
        }
    }
}

/// Embeddings as stored, with their inverse norms.
struct Stored<E> {
    elements: Vec<E>,
    inv_norms: Vec<f32>,
}

impl<E: Copy> Stored<E> {
    fn new(memories: &Memories, store: fn(f32) -> E, rows: fn(&[E]) -> Rows<'_>) -> Stored<E> {
        let elements: Vec<E> = memories.vectors.iter().map(|&x| store(x)).collect();
        let mut norms = vec![0.0; memories.importance.len()];
        let dim = memories.dim.get();
        for (row, (elements, norm)) in elements.chunks(dim).zip(&mut norms).enumerate() {
            if !memories.vectorless.contains(&row) {
                inv_norms(memories.dim, rows(elements), std::slice::from_mut(norm))
                    .unwrap_or_else(|e: RowError| panic!("row {row}: {e}"));
            }
        }
        Stored {
            elements,
            inv_norms: norms,
        }
    }
}

/// What a question is asked of.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Columns(Columns<'a>),
    Components(Components<'a>),
}

impl Asked<'_> {
    fn rank(
        &self,
        query: &Query<'_>,
        scoring: &Scoring,
        par: Par,
        kernel: Kernel,
    ) -> Result<Ranking, RankError> {
        let mut workspace = Workspace::with_kernel(kernel);
        let mut ranking = Ranking::default();
        match self {
            Asked::Columns(columns) => {
                let columns = std::slice::from_ref(columns);
                rank_into(columns, query, scoring, par, &mut workspace, &mut ranking)?;
            }
            Asked::Components(components) => {
                let components = std::slice::from_ref(components);
                rank_components(
                    components,
                    query,
                    scoring,
                    par,
                    &mut workspace,
                    &mut ranking,
                )?;
            }
        }
        Ok(ranking)
    }

    /// The one answer of all kernels, threaded or not.
    fn rank_everywhere(
        &self,
        query: &Query<'_>,
        scoring: &Scoring,
        kernels: &[Kernel],
    ) -> Result<Ranking, RankError> {
        let first = self.rank(query, scoring, Par::Serial, kernels[0]);
        for &kernel in &kernels[1..] {
            let other = self.rank(query, scoring, Par::Serial, kernel);
            assert_eq!(first, other, "{} gives other bits", kernel.isa());
        }
        #[cfg(feature = "rayon")]
        if let Some(&best) = kernels.last() {
            assert_eq!(first, self.rank(query, scoring, Par::Rayon, best));
        }
        first
    }

    fn oracle(&self, query: &Query<'_>, scoring: &Scoring) -> Result<Ranking, RankError> {
        match self {
            Asked::Columns(columns) => oracle::rank(std::slice::from_ref(columns), query, scoring),
            Asked::Components(components) => {
                oracle::rank_components(std::slice::from_ref(components), query, scoring)
            }
        }
    }
}

impl Case {
    /// Asks every question on every kernel and notes in the report what is not as expected.
    pub fn run(&self, report: &mut Report) {
        let memories = &self.memories;
        let single = Stored::new(memories, |x| x, |s| Rows::F32(s));
        let half = Stored::new(memories, f16::from_f32, |s| Rows::F16(s));
        let mut last_access = memories.last_access.clone();
        for (i, question) in self.questions.iter().enumerate() {
            report.at(format!("{}, question {i}", self.name));
            let rows = self.listed.rows(&last_access);
            let query = Query {
                embedding: &question.embedding,
                now: question.now,
                k: memories.importance.len(),
                candidates: rows.as_deref().map_or(Candidates::All, Candidates::Rows),
                ties: self.preset.ties,
            };
            let columns = |rows, inv_norms| {
                let importance = &memories.importance;
                Columns::new(memories.dim, rows, inv_norms, &last_access, importance)
                    .expect("columns of one length")
            };
            let top = match &question.known_relevance {
                Some(relevance) => {
                    let components = Components::new(relevance, &last_access, &memories.importance)
                        .expect("columns of one length");
                    self.ask(Asked::Components(components), &query, question, report)
                }
                None => {
                    let single = columns(Rows::F32(&single.elements), &single.inv_norms);
                    let half = columns(Rows::F16(&half.elements), &half.inv_norms);
                    self.ask_f16(Asked::Columns(half), &query, question, report);
                    self.ask(Asked::Columns(single), &query, question, report)
                }
            };
            if let Expected::Scores(scores) = &question.expected {
                self.check_candidates(scores, rows.as_deref(), &last_access, report);
            }
            if self.sequential && self.preset.touch == Touch::Returned {
                for row in top {
                    last_access[row] = last_access[row].max(question.now);
                }
            }
        }
        report.at(format!("{}, at the end", self.name));
        if let Some(after) = &self.last_access_after {
            report.expect(*after == last_access, || "the last accesses differ".into());
        }
    }

    /// The golden's candidates are ours, in our order, and were last accessed when ours were.
    pub fn check_candidates(
        &self,
        scores: &Scores,
        listed: Option<&[u32]>,
        last_access: &[i64],
        report: &mut Report,
    ) {
        let rows: Vec<usize> = scores.candidates.iter().map(|c| c.row).collect();
        let ours: Vec<usize> = match listed {
            None => (0..last_access.len()).collect(),
            Some(listed) => listed.iter().map(|&row| row as usize).collect(),
        };
        report.expect(rows == ours, || "the candidates differ".into());
        let accesses: Vec<i64> = rows.iter().map(|&row| last_access[row]).collect();
        report.expect(scores.last_access == accesses, || {
            "the last accesses of the candidates differ".into()
        });
    }

    /// Asks f32 columns (or known relevances), and gives the rows of the k best.
    fn ask(
        &self,
        asked: Asked<'_>,
        query: &Query<'_>,
        question: &Question,
        report: &mut Report,
    ) -> Vec<usize> {
        let (scoring, kernels) = (&self.preset.scoring, report.kernels.clone());
        let ours = asked.rank_everywhere(query, scoring, &kernels);
        let oracle = asked.oracle(query, scoring);
        report.questions += 1;
        let golden = match &question.expected {
            Expected::Refused(error) => {
                report.expect(ours == Err(*error), || format!("not refused: {ours:?}"));
                report.expect(oracle == Err(*error), || {
                    "the oracle does not refuse".into()
                });
                return Vec::new();
            }
            Expected::Empty => {
                report.expect(ours == Ok(Ranking::default()), || format!("{ours:?}"));
                report.expect(oracle == Ok(Ranking::default()), || format!("{oracle:?}"));
                return Vec::new();
            }
            Expected::LikeOracle => None,
            Expected::Scores(scores) => Some(scores),
        };
        let (ours, oracle) = (ours.expect("a ranking"), oracle.expect("a ranking"));
        let (all, reference) = (Scored::all(&ours), Scored::all(&oracle));
        report.candidates += all.len();
        report.expect(ours.candidates == all.len(), || "hits are missing".into());

        let cut = Query {
            k: self.preset.k,
            ..*query
        };
        let cut = asked
            .rank_everywhere(&cut, scoring, &kernels)
            .expect("a ranking");
        let k = self.preset.k.min(all.len());
        report.expect(cut.hits == ours.hits[..k], || {
            "the k best are no prefix".into()
        });
        let mut top: Vec<usize> = cut.hits.iter().map(|hit| hit.row).collect();

        let Some(golden) = golden else {
            report.agree(NO_GOLDEN, &all, &reference, TOLERANCE);
            report.ordered(NO_GOLDEN, &all, &reference);
            let vectorless = |c: &Scored| self.memories.vectorless.contains(&c.row);
            report.expect(!all.iter().any(vectorless), || {
                "a memory without a vector competes".into()
            });
            return top;
        };
        let given = question.known_relevance.is_some();
        let (what, what_oracle, tolerance_oracle) = match given {
            false => ("f32 from golden", "oracle from golden", TOLERANCE_ORACLE),
            true => (
                "given relevances from golden",
                "oracle on given relevances from golden",
                TOLERANCE,
            ),
        };
        report.agree(what, &all, &golden.candidates, TOLERANCE);
        report.ordered(what, &all, &golden.candidates);
        report.agree(
            what_oracle,
            &reference,
            &golden.candidates,
            tolerance_oracle,
        );
        report.ordered(what_oracle, &reference, &golden.candidates);
        report.reads_order(&golden.candidates, &golden.order, k);
        if self.preset.result_order == ResultOrder::Created {
            top.sort_by_key(|&row| self.memories.created[row]);
            let returned = golden.returned.as_ref();
            report.expect(returned.is_none_or(|rows| *rows == top), || {
                "the returned order differs".into()
            });
        }
        top
    }

    /// Asks f16 columns: close to the oracle on the stored values, less close to the golden.
    fn ask_f16(
        &self,
        asked: Asked<'_>,
        query: &Query<'_>,
        question: &Question,
        report: &mut Report,
    ) {
        let (scoring, kernels) = (&self.preset.scoring, report.kernels.clone());
        let ours = asked.rank_everywhere(query, scoring, &kernels);
        let oracle = asked.oracle(query, scoring);
        let (Ok(ours), Ok(oracle)) = (&ours, &oracle) else {
            report.expect(ours == oracle, || {
                format!("f16: {ours:?}, oracle: {oracle:?}")
            });
            return;
        };
        let (all, reference) = (Scored::all(ours), Scored::all(oracle));
        report.agree("f16 from oracle on f16", &all, &reference, TOLERANCE);
        report.ordered("f16 from oracle on f16", &all, &reference);
        if let Expected::Scores(golden) = &question.expected {
            report.agree("f16 from golden", &all, &golden.candidates, TOLERANCE_F16);
        }
    }
}
