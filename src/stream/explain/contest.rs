//! What competes for the first places of one question, in columns of its own, of which one row can be
//! changed and ranked again.

use super::super::candidates::CandidateSet;
use super::super::decay::{self, ByKind};
use super::super::{Ask, Period, StreamError, columns};
use crate::Par;
use crate::scoring::{
    CandidateRule, Components, Hit, Located, Query, RankError, Ranking, Recency, Scoring, Ties,
    Workspace, for_each_hit, locate, places, rank_components, relevance_into,
};
use crate::store::Snapshot;

pub(super) struct Contest<'a> {
    relevance: Vec<f32>,
    last_access: Vec<i64>,
    importance: Vec<f32>,
    /// In place of last accesses, where they decay by kind.
    recencies: Option<(ByKind<'a>, Vec<f64>)>,
    query: Query<'a>,
    scoring: Scoring,
    /// Whether a row's last access says nothing but its recency.
    access_is_age: bool,
    par: Par,
    workspace: &'a mut Workspace,
}

impl<'a> Contest<'a> {
    /// The only time that embeddings are read.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        ask: &Ask<'a>,
        candidates: &'a CandidateSet<'_>,
        par: Par,
        workspace: &'a mut Workspace,
    ) -> Result<Contest<'a>, StreamError> {
        let by_kind = ByKind::new(snapshot, ask)?;
        let candidates = candidates.borrowed();
        let columns = columns(snapshot, ask.agent)?;
        let mut relevance = vec![0.0; snapshot.rows()];
        let embeddings = [ask.embedding];
        relevance_into(
            &columns,
            &embeddings,
            candidates,
            par,
            workspace,
            &mut relevance,
        )
        .map_err(|e| e.error)?;
        let segments = || snapshot.segments(ask.agent);
        // A filter that looks at it, too.
        let filtered_by_access = ask.filter.last_access != Period::default();
        let listed_by_access = match ask.preset.candidates {
            CandidateRule::All => false,
            CandidateRule::Reverie => ask.preset.ties == Ties::Listed,
        };
        let by_age = match ask.preset.scoring.recency {
            Recency::Age { .. } => true,
            Recency::Position { .. } | Recency::Given => false,
        };
        Ok(Contest {
            relevance,
            last_access: segments().flat_map(|s| s.last_access).copied().collect(),
            importance: segments().flat_map(|s| s.importance).copied().collect(),
            recencies: by_kind.map(|by_kind| {
                let recencies = by_kind.recencies(ask.agent);
                (by_kind, recencies)
            }),
            query: ask.query(candidates),
            scoring: decay::scoring(ask),
            access_is_age: by_age && !listed_by_access && !filtered_by_access,
            par,
            workspace,
        })
    }

    pub(super) fn k(&self) -> usize {
        self.query.k
    }

    pub(super) fn now(&self) -> i64 {
        self.query.now
    }

    pub(super) fn ties(&self) -> Ties {
        self.query.ties
    }

    pub(super) fn scoring(&self) -> &Scoring {
        &self.scoring
    }

    /// The last access of a row, where a change of it changes nothing but the row's age.
    pub(super) fn last_access(&self, row: usize) -> Option<i64> {
        self.access_is_age.then(|| self.last_access[row])
    }

    pub(super) fn importance(&self, row: usize) -> f32 {
        self.importance[row]
    }

    /// The ranking without its hits.
    pub(super) fn overview(&mut self) -> Result<Ranking, RankError> {
        let query = Query { k: 0, ..self.query };
        let scoring = self.scoring;
        let mut ranking = Ranking::default();
        self.with_components(|components, _, par, workspace| {
            rank_components(components, &query, &scoring, par, workspace, &mut ranking)
        })?;
        Ok(ranking)
    }

    pub(super) fn locate(&mut self, row: usize) -> Result<Option<Located>, RankError> {
        let scoring = self.scoring;
        self.with_components(|components, query, par, workspace| {
            locate(components, query, &scoring, par, workspace, row)
        })
    }

    pub(super) fn for_each_hit(&mut self, f: impl FnMut(&Hit)) -> Result<(), RankError> {
        let scoring = self.scoring;
        self.with_components(|components, query, par, workspace| {
            for_each_hit(components, query, &scoring, par, workspace, f)
        })
    }

    /// Whether a row is among the k best with a scoring.
    pub(super) fn is_in(&mut self, row: usize, scoring: &Scoring) -> Result<bool, RankError> {
        let places = self.with_components(|components, query, par, workspace| {
            places(components, query, scoring, par, workspace, &[row])
        })?;
        let k = self.query.k;
        Ok(places.iter().flatten().any(|&place| place <= k))
    }

    /// Whether a row is among the k best with another importance.
    pub(super) fn is_in_with_importance(
        &mut self,
        row: usize,
        importance: f32,
    ) -> Result<bool, RankError> {
        let scoring = self.scoring;
        let old = std::mem::replace(&mut self.importance[row], importance);
        let is_in = self.is_in(row, &scoring);
        self.importance[row] = old;
        is_in
    }

    /// Whether a row is among the k best with another last access.
    pub(super) fn is_in_with_access(&mut self, row: usize, access: i64) -> Result<bool, RankError> {
        let scoring = self.scoring;
        let old = self.set_access(row, access);
        let is_in = self.is_in(row, &scoring);
        self.set_access(row, old);
        is_in
    }

    /// Gives the old one.
    fn set_access(&mut self, row: usize, access: i64) -> i64 {
        if let Some((by_kind, recencies)) = &mut self.recencies {
            recencies[row] = by_kind.recency(row, access);
        }
        std::mem::replace(&mut self.last_access[row], access)
    }

    fn with_components<T>(
        &mut self,
        f: impl FnOnce(&[Components<'_>], &Query<'_>, Par, &mut Workspace) -> T,
    ) -> T {
        let (relevance, importance) = (&self.relevance, &self.importance);
        let components = match &self.recencies {
            None => Components::new(relevance, &self.last_access, importance),
            Some((_, recencies)) => Components::with_recency(relevance, recencies, importance),
        };
        let components = components.expect("the columns of one snapshot are of one length");
        f(&[components], &self.query, self.par, self.workspace)
    }
}
