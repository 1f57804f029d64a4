//! The questions of a case, put to an imported store.

use crate::case::{Case, Expected, Question, TOLERANCE, TOLERANCE_F16};
use crate::compare::{Report, Scored};
use crate::source::Imported;
use memorank::Par;
use memorank::kernel::Dtype;
use memorank::oracle;
use memorank::scoring::{
    Candidates, Preset, Query, RankError, Ranking, ResultOrder, Touch, Workspace,
};
use memorank::store::{Agent, Kind, Snapshot, Store};
use memorank::stream::{self, Ask, BatchError, Filter, Order, Retrieve, Retrieved, StreamError};

/// Asks the questions of a case that see one another's touches in one call, after [`Agent::OWN`] asked them one by one.
const ASKED_AT_ONCE: Agent = Agent(1);

/// Asks every question of the case, one after the other, and then looks at the last accesses.
pub fn run(case: &Case, kind: &str, filter: Option<&str>, imported: Imported, report: &mut Report) {
    let store = imported.store;
    let preset = preset(kind, case);
    // An imported memory's id is its row.
    for agent in [Agent::OWN, ASKED_AT_ONCE] {
        for (id, &time) in (0..).zip(&case.memories.last_access) {
            store.touch(agent, &[id], time).expect("a touch");
        }
        let given = last_access(&store.snapshot(), agent);
        report.expect(given == case.memories.last_access, || {
            "a touch does not give the last accesses".into()
        });
    }
    let snapshot = store.snapshot();
    let dtype = snapshot.dtype();
    let kinds = filter.map(|kind| [Kind::named(kind)]);
    let filter = Filter {
        kinds: kinds.as_ref().map(|kinds| &kinds[..]),
        // Some archives hold memories made after the moment of asking.
        future: true,
        ..Filter::default()
    };
    let mut one_by_one = Vec::new();
    for (i, question) in case.questions.iter().enumerate() {
        report.at(format!("{}, question {i}, {dtype}", case.name));
        report.questions += 1;
        let asking = Asking {
            case,
            preset: &preset,
            filter: &filter,
            question,
        };
        one_by_one.push((asking.request(&preset), asking.ask(&store, report)));
    }
    report.at(format!("{}, at the end, {dtype}", case.name));
    let at_the_end = last_access(&store.snapshot(), Agent::OWN);
    if let Some(after) = &case.last_access_after {
        report.expect(at_the_end == *after, || "the last accesses differ".into());
    }
    // A store of f16 was touched as the golden says.
    if case.sequential && dtype == Dtype::F32 {
        at_once(&store, &one_by_one, report);
        let after = last_access(&store.snapshot(), ASKED_AT_ONCE);
        report.expect(after == at_the_end, || {
            "asked at once, the last accesses differ".into()
        });
    }
    store.close().expect("a closed store");
    let store = Store::open_read_only(imported.folder.store()).expect("a store");
    let reopened = last_access(&store.snapshot(), Agent::OWN);
    report.expect(reopened == at_the_end, || {
        "closing loses last accesses".into()
    });
}

/// Asks all questions in one call as an agent that none of them touched for yet: the answers are those that they
/// had one by one. One that was refused has all refused.
fn at_once(
    store: &Store,
    one_by_one: &[(Ask<'_>, Result<Ranking, RankError>)],
    report: &mut Report,
) {
    let asks: Vec<Retrieve<'_>> = (one_by_one.iter())
        .map(|&(ask, _)| {
            Retrieve::new(Ask {
                agent: ASKED_AT_ONCE,
                ..ask
            })
        })
        .collect();
    let workspace = &mut Workspace::with_kernel(crate::common::best_kernel());
    let answers = stream::retrieve_many(store, &asks, Order::Sequential, Par::Serial, workspace);
    let answers = match answers {
        Ok(answers) => answers,
        Err(BatchError { index, error }) => {
            return report.expect(Err(refusal(error)) == one_by_one[index].1, || {
                format!("asked at once, question {index} is refused differently")
            });
        }
    };
    for (i, (answer, (_, alone))) in answers.into_iter().zip(one_by_one).enumerate() {
        report.expect(Ok(answered(answer)) == *alone, || {
            format!("asked at once, question {i} is answered differently")
        });
    }
}

/// The named preset, with the weights, the decay and the k of the case and nothing else of it.
fn preset(kind: &str, case: &Case) -> Preset {
    let mut preset = Preset::named(kind).expect("a preset");
    preset.scoring.weights = case.preset.scoring.weights;
    preset.k = case.preset.k;
    if let Some(decay) = case.preset.scoring.decay() {
        preset.scoring = preset.scoring.with_decay(decay);
    }
    preset
}

/// The last access of each row by an agent.
fn last_access(store: &Snapshot, agent: Agent) -> Vec<i64> {
    let rows = 0..store.rows();
    rows.map(|row| store.last_access(agent, row)).collect()
}

struct Asking<'a> {
    case: &'a Case,
    preset: &'a Preset,
    filter: &'a Filter<'a>,
    question: &'a Question,
}

impl<'a> Asking<'a> {
    /// Gives what was retrieved.
    fn ask(&self, store: &Store, report: &mut Report) -> Result<Ranking, RankError> {
        let snapshot = &store.snapshot();
        let before = last_access(snapshot, Agent::OWN);
        let all = Preset {
            k: usize::MAX,
            result_order: ResultOrder::Score,
            ..*self.preset
        };
        let ranked = self.rank_everywhere(snapshot, &all, report);
        let half = snapshot.dtype() == Dtype::F16;
        let retrieved = self.retrieve(store, half);
        let after = last_access(&store.snapshot(), Agent::OWN);
        match &self.question.expected {
            Expected::Refused(error) => {
                report.expect(ranked == Err(*error), || format!("not refused: {ranked:?}"));
                report.expect(retrieved == Err(*error), || {
                    format!("not refused: {retrieved:?}")
                });
                report.expect(after == before, || "a refused question touches".into());
                return retrieved;
            }
            Expected::Empty => {
                report.expect(ranked == Ok(Ranking::default()), || format!("{ranked:?}"));
                report.expect(retrieved == Ok(Ranking::default()), || {
                    format!("{retrieved:?}")
                });
                report.expect(after == before, || "nothing touches".into());
                return retrieved;
            }
            Expected::Scores(_) | Expected::LikeOracle => {}
        }
        let (ranked, retrieved) = (ranked.expect("a ranking"), retrieved.expect("a ranking"));
        let scored = Scored::all(&ranked);
        report.candidates += scored.len();
        let listed = self.case.listed.rows(&before);
        match &self.question.expected {
            Expected::Scores(golden) => {
                self.case
                    .check_candidates(golden, listed.as_deref(), &before, report);
                let (what, tolerance) = match half {
                    false => ("f32 store from golden", TOLERANCE),
                    true => ("f16 store from golden", TOLERANCE_F16),
                };
                report.agree(what, &scored, &golden.candidates, tolerance);
                if !half {
                    report.ordered(what, &scored, &golden.candidates);
                }
                if let (Some(returned), false) = (&golden.returned, half) {
                    let rows: Vec<usize> = retrieved.hits.iter().map(|hit| hit.row).collect();
                    report.expect(rows == *returned, || "the returned order differs".into());
                }
            }
            _ => report.expect(!self.case.memories.vectorless.is_empty(), || {
                "without a golden".into()
            }),
        }
        if half || matches!(self.question.expected, Expected::LikeOracle) {
            let what = match half {
                false => "f32 store from oracle, for want of a golden",
                true => "f16 store from oracle on f16",
            };
            let reference = Scored::all(&self.oracle(snapshot, listed.as_deref()));
            report.agree(what, &scored, &reference, TOLERANCE);
            report.ordered(what, &scored, &reference);
        }

        // What is retrieved are the k best, and they alone are touched.
        let mut best = ranked.hits;
        best.truncate(self.preset.k);
        if self.preset.result_order == ResultOrder::Created {
            best.sort_by_key(|hit| snapshot.created(hit.row));
        }
        report.expect(retrieved.hits == best, || "not the k best".into());
        let mut expected = before;
        if self.touches() {
            let now = self.question.now;
            let mut touch = |row: usize| expected[row] = expected[row].max(now);
            match &self.question.expected {
                Expected::Scores(golden) if half => golden.order.iter().for_each(|&row| touch(row)),
                _ => retrieved.hits.iter().for_each(|hit| touch(hit.row)),
            }
        }
        report.expect(after == expected, || {
            "not what was returned is touched".into()
        });
        Ok(retrieved)
    }

    /// Whether a question sees the touches of the one before.
    fn touches(&self) -> bool {
        self.case.sequential && self.preset.touch == Touch::Returned
    }

    fn request<'r>(&self, preset: &'r Preset) -> Ask<'r>
    where
        'a: 'r,
    {
        Ask {
            filter: self.filter,
            ..Ask::new(&self.question.embedding, self.question.now, preset)
        }
    }

    /// The one answer of all kernels, threaded or not.
    fn rank_everywhere(
        &self,
        store: &Snapshot,
        preset: &Preset,
        report: &mut Report,
    ) -> Result<Ranking, RankError> {
        let rank = |par, kernel| {
            let mut ranking = Ranking::default();
            let mut workspace = Workspace::with_kernel(kernel);
            let request = self.request(preset);
            stream::rank(store, &request, par, &mut workspace, &mut ranking)
                .map_err(refusal)
                .map(|()| ranking)
        };
        let kernels = report.kernels.clone();
        let first = rank(Par::Serial, kernels[0]);
        for &kernel in &kernels[1..] {
            let other = rank(Par::Serial, kernel);
            report.expect(first == other, || {
                format!("{} gives other bits", kernel.isa())
            });
        }
        #[cfg(feature = "rayon")]
        if let Some(&best) = kernels.last() {
            report.expect(first == rank(Par::Rayon, best), || {
                "threads give other bits".into()
            });
        }
        first
    }

    /// Retrieves as the preset says. Where the golden's questions do not see each other's touches, they
    /// are ranked only; and as the order of f16 is not quite the golden's, a store of that is touched as
    /// the golden says.
    fn retrieve(&self, store: &Store, half: bool) -> Result<Ranking, RankError> {
        let mut ranking = Ranking::default();
        let mut workspace = Workspace::with_kernel(crate::common::best_kernel());
        let request = self.request(self.preset);
        let golden = match &self.question.expected {
            Expected::Scores(golden) => Some(golden),
            _ => None,
        };
        if !self.case.sequential || (half && golden.is_some()) {
            let snapshot = store.snapshot();
            stream::rank(
                &snapshot,
                &request,
                Par::Serial,
                &mut workspace,
                &mut ranking,
            )
            .map_err(refusal)?;
            if let (true, Some(golden)) = (self.touches(), golden) {
                let ids: Vec<u64> = golden.order.iter().map(|&row| snapshot.id(row)).collect();
                let touch = store.touch(Agent::OWN, &ids, self.question.now);
                touch.expect("a touch");
            }
        } else {
            let wanted = Retrieve::new(request);
            let retrieved = stream::retrieve(store, &wanted, Par::Serial, &mut workspace);
            ranking = answered(retrieved.map_err(refusal)?);
        }
        Ok(ranking)
    }

    fn oracle(&self, store: &Snapshot, listed: Option<&[u32]>) -> Ranking {
        let columns = stream::columns(store, Agent::OWN).expect("columns");
        let query = Query {
            embedding: &self.question.embedding,
            now: self.question.now,
            k: usize::MAX,
            candidates: listed.map_or(Candidates::All, Candidates::Rows),
            ties: self.preset.ties,
        };
        oracle::rank(&columns, &query, &self.preset.scoring).expect("a ranking")
    }
}

/// What was retrieved, and touched.
fn answered(retrieved: Retrieved) -> Ranking {
    retrieved.touch.expect("a touch");
    Ranking {
        hits: (retrieved.memories.iter())
            .filter_map(|memory| memory.hit)
            .collect(),
        ranges: retrieved.ranges,
        candidates: retrieved.candidates,
    }
}

/// Why scoring refuses; nothing else may go wrong.
fn refusal(error: StreamError) -> RankError {
    match error {
        StreamError::Rank(error) => error,
        other => panic!("{other}"),
    }
}
