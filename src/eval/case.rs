//! One question, and the raw components of what competes for it: computed once, whatever is tried.

use super::measure::Places;
use super::{Collection, EvalError, Judged};
use crate::Par;
use crate::scoring::{
    CandidateRule, Candidates, Components, Preset, Query, RankError, Ranking, Scoring, Ties,
    Workspace, places, rank_components, relevance_into,
};
use crate::store::{Agent, Snapshot};
use crate::stream::{self, StreamError};

/// Bytes of cosines that are in memory at a time: 64 questions about a million memories.
const RELEVANCE_BYTES: usize = 256_000_000;

/// A question, with the cosine of every row.
pub(super) struct Question<'a> {
    snapshot: &'a Snapshot,
    judged: &'a Judged<'a>,
    relevance: &'a [f32],
}

/// The raw components of a question's candidates.
pub(super) struct Case {
    /// Of each candidate, by ascending row.
    pub(super) relevance: Vec<f32>,
    pub(super) last_access: Vec<i64>,
    pub(super) importance: Vec<f32>,
    /// Indexes of the candidates in the order in which the preset's rule lists them, if that is another.
    pub(super) listed: Option<Vec<u32>>,
    pub(super) now: i64,
    /// Indexes of the candidates that answer the question, ascending.
    pub(super) answers: Vec<usize>,
    /// How many memories answer it, candidates or not.
    pub(super) relevant: usize,
}

impl Question<'_> {
    /// What competes under a preset's rule.
    pub(super) fn case(&self, rule: CandidateRule) -> Result<Case, StreamError> {
        let preset = Preset {
            candidates: rule,
            ..Preset::paper()
        };
        let Judged { agent, now, .. } = *self.judged;
        let listed = stream::candidate_rows(self.snapshot, &self.judged.ask(&preset))?;
        let has_vector = |row: &u32| !self.relevance[*row as usize].is_nan();
        let listed: Vec<u32> = listed.into_iter().filter(has_vector).collect();
        let mut rows = listed.clone();
        rows.sort_unstable();
        let index = |row: &u32| rows.binary_search(row);
        let is_listed_by_row = rows == listed;
        let by_index = listed.iter().filter_map(|row| index(row).ok());
        let listed = (!is_listed_by_row).then(|| by_index.map(|index| index as u32).collect());

        let mut case = Case {
            relevance: (rows.iter().map(|&row| self.relevance[row as usize])).collect(),
            last_access: Vec::with_capacity(rows.len()),
            importance: Vec::with_capacity(rows.len()),
            listed,
            now,
            answers: Vec::new(),
            relevant: 0,
        };
        let mut left = &rows[..];
        for segment in self.snapshot.segments(agent) {
            let end = left.partition_point(|&row| (row as usize) < segment.rows().end);
            let (here, after) = left.split_at(end);
            for &row in here {
                let (row, at) = (row as usize, row as usize - segment.first_row);
                let value = segment.importance[at];
                // Named by its row, which the columns of a case no longer have.
                if !value.is_finite() {
                    return Err(RankError::Importance { row, value }.into());
                }
                case.last_access.push(segment.last_access[at]);
                case.importance.push(value);
            }
            left = after;
        }

        let mut relevant = self.judged.relevant.to_vec();
        relevant.sort_unstable();
        relevant.dedup();
        case.relevant = relevant.len();
        let answers = relevant.iter().filter_map(|&id| {
            let row = self.snapshot.row_of_id(id)?;
            index(&(row as u32)).ok()
        });
        case.answers = answers.collect();
        // A compaction leaves rows in the order of their ids, but that is the store's business.
        case.answers.sort_unstable();
        Ok(case)
    }
}

impl Case {
    pub(super) fn candidates(&self) -> usize {
        self.relevance.len()
    }

    /// The case of some of its candidates, by their indexes, ascending. They must be listed by row.
    pub(super) fn only(&self, kept: &[usize]) -> Case {
        debug_assert!(self.listed.is_none());
        let answers = self.answers.iter();
        Case {
            relevance: kept.iter().map(|&i| self.relevance[i]).collect(),
            last_access: kept.iter().map(|&i| self.last_access[i]).collect(),
            importance: kept.iter().map(|&i| self.importance[i]).collect(),
            listed: None,
            now: self.now,
            answers: answers.filter_map(|i| kept.binary_search(i).ok()).collect(),
            relevant: self.relevant,
        }
    }

    fn components(&self) -> Components<'_> {
        let Case {
            relevance,
            last_access,
            importance,
            ..
        } = self;
        Components::new(relevance, last_access, importance).expect("columns of one length")
    }

    fn query(&self, k: usize, ties: Ties) -> Query<'_> {
        let candidates = match &self.listed {
            Some(listed) => Candidates::Rows(listed),
            None => Candidates::All,
        };
        Query {
            ties,
            ..Query::new(&[], self.now, k).of(candidates)
        }
    }

    /// The k best; rows are indexes of candidates.
    pub(super) fn top(
        &self,
        scoring: &Scoring,
        ties: Ties,
        k: usize,
        workspace: &mut Workspace,
        ranking: &mut Ranking,
    ) -> Result<(), RankError> {
        let (components, query) = ([self.components()], self.query(k, ties));
        rank_components(
            &components,
            &query,
            scoring,
            Par::Serial,
            workspace,
            ranking,
        )
    }

    /// The places of all answers.
    pub(super) fn places(
        &self,
        scoring: &Scoring,
        ties: Ties,
        workspace: &mut Workspace,
    ) -> Result<Places, RankError> {
        // Whoever is ahead of an answer is counted, which takes a pass for each. Of many all candidates are sorted.
        if self.answers.len() > 4 {
            let mut ranking = Ranking::default();
            self.top(scoring, ties, self.candidates(), workspace, &mut ranking)?;
            return Ok(self.places_in(&ranking));
        }
        let (components, query) = ([self.components()], self.query(1, ties));
        let (par, answers) = (Par::Serial, &self.answers);
        let places = places(&components, &query, scoring, par, workspace, answers)?;
        let mut found: Vec<usize> = places.into_iter().flatten().collect();
        found.sort_unstable();
        Ok(self.found(found))
    }

    /// How many of the memories that answer the question do not compete.
    pub(super) fn out_of_reach(&self) -> usize {
        self.relevant - self.answers.len()
    }

    /// The places of the answers that are among the k best of a ranking.
    pub(super) fn places_in(&self, ranking: &Ranking) -> Places {
        let places = (1..).zip(&ranking.hits);
        let found = places.filter(|(_, hit)| self.answers.binary_search(&hit.row).is_ok());
        self.found(found.map(|(place, _)| place).collect())
    }

    fn found(&self, found: Vec<usize>) -> Places {
        Places {
            relevant: self.relevant,
            found,
        }
    }
}

/// Calls `f` with every question, spread over threads, and gives what it returns in the order of the questions,
/// collection by collection.
pub(super) fn of_each<R: Send>(
    collections: &[Collection<'_>],
    par: Par,
    workspace: &mut Workspace,
    f: impl Fn(&Question<'_>, &mut Workspace) -> Result<R, StreamError> + Sync,
) -> Result<Vec<R>, EvalError> {
    let mut all = Vec::new();
    for (collection, of) in collections.iter().enumerate() {
        let Collection {
            snapshot,
            questions,
        } = *of;
        let failed = |question, error| EvalError::Question {
            collection,
            question,
            error,
        };
        let preset = Preset::paper();
        for (question, judged) in questions.iter().enumerate() {
            let checked = judged.ask(&preset).check_embedding(snapshot);
            checked.map_err(|error| failed(question, error))?;
        }
        // Relevance is the same for every agent.
        let columns = stream::columns(snapshot, Agent::OWN);
        let columns = columns.map_err(|error| failed(0, error.into()))?;
        let live = (snapshot.live()).map_or(Candidates::All, Candidates::Mask);
        let rows = snapshot.rows();
        let at_once = (RELEVANCE_BYTES / size_of::<f32>() / rows.max(1)).max(1);
        let mut relevance = Vec::new();
        for (block, questions) in questions.chunks(at_once).enumerate() {
            let first = block * at_once;
            relevance.resize(rows * questions.len(), f32::NAN);
            let embeddings: Vec<&[f32]> = questions.iter().map(|of| of.embedding).collect();
            relevance_into(&columns, &embeddings, live, par, workspace, &mut relevance)
                .map_err(|e| failed(first + e.index, e.error.into()))?;
            let mut answers: Vec<Option<Result<R, StreamError>>> = Vec::new();
            answers.resize_with(questions.len(), || None);
            let size = questions.len().div_ceil(par.parts()).max(1);
            let children = workspace.children(questions.len().div_ceil(size));
            par.for_each_chunk(children, &mut answers, size, |part, workspace, answers| {
                for (i, out) in answers.iter_mut().enumerate() {
                    let index = part * size + i;
                    let question = Question {
                        snapshot,
                        judged: &questions[index],
                        relevance: &relevance[index * rows..][..rows],
                    };
                    *out = Some(f(&question, workspace));
                }
            });
            for (index, answer) in answers.into_iter().enumerate() {
                let answer = answer.expect("every chunk was visited");
                all.push(answer.map_err(|error| failed(first + index, error))?);
            }
        }
    }
    Ok(all)
}
