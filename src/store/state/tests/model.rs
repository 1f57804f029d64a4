//! A state against a list of what was done to it.

use super::super::super::error::ReadError;
use super::*;
use proptest::prelude::*;

mod undo;

const AGENTS: [Agent; 3] = [Agent::OWN, Agent(1), Agent(u32::MAX)];

/// What a state should be, as plainly as it can be said.
#[derive(Clone, Debug, Default)]
struct Model {
    rows: Vec<ModelRow>,
    next_id: u64,
}

#[derive(Clone, Debug)]
struct ModelRow {
    given: Given,
    live: bool,
    touched: BTreeMap<Agent, i64>,
    importances: BTreeMap<Agent, f32>,
}

impl ModelRow {
    fn last_access(&self, agent: Agent) -> i64 {
        self.touched.get(&agent).copied().unwrap_or(self.given.time)
    }

    fn importance(&self, agent: Agent) -> f32 {
        let own = self.importances.get(&agent).copied();
        own.unwrap_or(self.given.importance())
    }
}

impl Model {
    fn row_of_key(&self, key: &str) -> Option<usize> {
        let has = |row: &ModelRow| row.live && row.given.key.as_deref() == Some(key);
        self.rows.iter().position(has)
    }

    /// The snapshot gives every field of every row as the model has it.
    fn assert_is(&self, snapshot: &Snapshot) {
        let live = |row: usize| self.rows[row].live;
        assert_eq!(snapshot.rows(), self.rows.len());
        assert_eq!(
            snapshot.len(),
            self.rows.iter().filter(|row| row.live).count()
        );
        assert_eq!(snapshot.is_empty(), !self.rows.iter().any(|row| row.live));
        assert_eq!(snapshot.next_id(), self.next_id);
        for (at, row) in self.rows.iter().enumerate() {
            let given = &row.given;
            let kind = usize::from(snapshot.kind_index(at));
            assert_eq!(snapshot.kinds()[kind], given.kind);
            assert_eq!(snapshot.id(at), given.id);
            assert_eq!(snapshot.created(at), given.time + 1);
            assert_eq!(snapshot.expiry(at), given.expiry);
            assert_eq!(snapshot.importance(at), given.importance());
            assert_eq!(snapshot.depth(at), given.id as u32);
            assert_eq!(snapshot.has_embedding(at), given.embedding.is_some());
            for agent in AGENTS {
                assert_eq!(snapshot.last_access(agent, at), row.last_access(agent));
                assert_eq!(snapshot.importance_of(agent, at), row.importance(agent));
            }
            assert_eq!(snapshot.is_live(at), row.live);
            if row.live {
                let memory = Memory {
                    importance: row.importance(Agent::OWN),
                    ..given.memory(row.last_access(Agent::OWN))
                };
                assert_eq!(snapshot.memory(at), Ok(memory));
                assert_eq!(snapshot.embedding(at), given.embedding);
                assert_eq!(snapshot.row_of_id(given.id), Some(at));
            } else {
                assert_eq!(snapshot.memory(at), Err(ReadError::Deleted { row: at }));
                assert_eq!(snapshot.embedding(at), None);
                assert_eq!(snapshot.row_of_id(given.id), None);
            }
        }
        let rows = self.rows.len();
        assert_eq!(
            snapshot.memory(rows),
            Err(ReadError::NoRow { row: rows, rows })
        );
        assert_eq!(snapshot.embedding(rows), None);
        assert!(!snapshot.is_live(rows));
        assert_eq!(snapshot.row_of_id(self.next_id), None);
        for key in 0..8 {
            let key = format!("key {key}");
            assert_eq!(snapshot.row_of_key(&key), Ok(self.row_of_key(&key)));
        }
        assert_eq!(snapshot.row_of_key(""), Ok(None));
        match snapshot.live() {
            None => assert!((0..rows).all(live)),
            Some(words) => {
                assert_eq!(words.len(), rows.div_ceil(64));
                let bits = words.len() * 64;
                assert!(
                    (0..bits)
                        .all(|i| (words[i / 64] >> (i % 64) & 1 == 1) == (i < rows && live(i)))
                );
            }
        }
        for agent in AGENTS {
            self.assert_segments(snapshot, agent);
        }
    }

    fn assert_segments(&self, snapshot: &Snapshot, agent: Agent) {
        let mut next = 0;
        for segment in snapshot.segments(agent) {
            assert_eq!(segment.first_row, next);
            assert!(!segment.rows().is_empty());
            assert_eq!(segment.embeddings.count(DIM), Some(segment.rows().len()));
            for (i, row) in segment.rows().enumerate() {
                let model = &self.rows[row];
                assert_eq!(segment.last_access[i], model.last_access(agent));
                assert_eq!(segment.importance[i], model.importance(agent));
                assert_eq!(segment.created[i], model.given.time + 1);
                assert_eq!(segment.inv_norms[i] == 0.0, model.given.embedding.is_none());
                let zeros = vec![0.0; DIM.get()];
                let embedding = model.given.embedding.as_ref().unwrap_or(&zeros);
                assert_eq!(segment.embeddings.widen(DIM, i), *embedding);
            }
            next = segment.rows().end;
        }
        assert_eq!(next, self.rows.len());
    }
}

#[derive(Clone, Debug)]
enum Op {
    Push(Option<u8>),
    /// Ids are left out.
    Gap(u64),
    Touch(usize, prop::sample::Index, i64),
    /// `None`: the one that was given.
    Importance(usize, prop::sample::Index, Option<u8>),
    Embed(prop::sample::Index),
    Delete(prop::sample::Index),
    Snapshot,
    /// Columns are written from now on, and adopted after so many operations.
    Fold(usize),
    /// Rows are written into the columns at once.
    Bulk(usize),
    Compact(usize),
    /// The state is opened anew from its columns and its lists.
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    use prop::sample::Index;
    prop_oneof![
        12 => prop::option::of(0..8_u8).prop_map(Op::Push),
        1 => (1..4_u64).prop_map(Op::Gap),
        10 => (0..AGENTS.len(), any::<Index>(), 0..1000_i64).prop_map(|(a, i, t)| Op::Touch(a, i, t)),
        6 => (0..AGENTS.len(), any::<Index>(), prop::option::of(any::<u8>()))
            .prop_map(|(a, i, x)| Op::Importance(a, i, x)),
        6 => any::<Index>().prop_map(Op::Embed),
        6 => any::<Index>().prop_map(Op::Delete),
        3 => Just(Op::Snapshot),
        2 => (0..6_usize).prop_map(Op::Fold),
        1 => (1..6_usize).prop_map(Op::Bulk),
        1 => (0..6_usize).prop_map(Op::Compact),
        1 => Just(Op::Reopen),
    ]
}

/// What is being written while others go on.
enum Pending {
    Extended(Committed),
    Compaction(Box<(Kept, Manifest, Columns)>),
}

struct Run {
    state: Arc<State>,
    model: Model,
    /// Until it is adopted, and after how many operations.
    pending: Option<(usize, Pending)>,
    snapshots: Vec<(Snapshot, Model)>,
}

impl Run {
    fn push(&mut self, key: Option<u8>) {
        let key = key.filter(|key| self.model.row_of_key(&format!("key {key}")).is_none());
        let given = Given::new(self.model.next_id, key);
        given.push(Arc::make_mut(&mut self.state));
        self.model.next_id += 1;
        self.model.rows.push(ModelRow {
            given,
            live: true,
            touched: BTreeMap::new(),
            importances: BTreeMap::new(),
        });
    }

    fn adopt(&mut self) {
        match self.pending.take() {
            None => {}
            Some((_, Pending::Extended(committed))) => {
                Arc::make_mut(&mut self.state).adopt(committed);
            }
            Some((_, Pending::Compaction(compaction))) => {
                let (kept, manifest, columns) = *compaction;
                self.state = Arc::new(self.state.compacted(&kept, manifest, columns));
                let rows = std::mem::take(&mut self.model.rows);
                let rows = rows.into_iter().enumerate();
                let stay = rows.filter(|(row, _)| kept.new_row(*row).is_some());
                self.model.rows = stay.map(|(_, row)| row).collect();
            }
        }
    }

    fn run(&mut self, op: &Op) {
        // What waits for its turn.
        if let Op::Fold(_) | Op::Bulk(_) | Op::Compact(_) | Op::Embed(_) | Op::Reopen = op {
            self.adopt();
        }
        let rows = self.model.rows.len();
        match *op {
            Op::Push(key) => self.push(key),
            Op::Gap(ids) => {
                Arc::make_mut(&mut self.state).next_id += ids;
                self.model.next_id += ids;
            }
            Op::Touch(agent, row, now) if rows > 0 => {
                let (agent, row) = (AGENTS[agent], row.index(rows));
                let model = &mut self.model.rows[row];
                let old = model.last_access(agent);
                model.touched.insert(agent, old.max(now));
                let changed = Arc::make_mut(&mut self.state).touch(agent, row, now);
                assert_eq!(changed, now > old);
            }
            Op::Delete(row) if rows > 0 => {
                let row = row.index(rows);
                let was = std::mem::replace(&mut self.model.rows[row].live, false);
                assert_eq!(Arc::make_mut(&mut self.state).delete(row), was);
            }
            Op::Importance(agent, row, value) if rows > 0 => {
                let (agent, row) = (AGENTS[agent], row.index(rows));
                let value = value.map(|value| f32::from(value) / 8.0);
                let model = &mut self.model.rows[row];
                let old = model.importance(agent);
                match value {
                    Some(value) => model.importances.insert(agent, value),
                    None => model.importances.remove(&agent),
                };
                let changed = Arc::make_mut(&mut self.state).set_importance(agent, row, value);
                assert_eq!(changed, model.importance(agent) != old);
            }
            Op::Embed(row) if rows > 0 => {
                let row = row.index(rows);
                let given = &mut self.model.rows[row].given;
                let had = given.embedding.is_some();
                let embedding = [row as f32 + 0.5, 1.0, given.id as f32];
                let mut elements = Elements::new(DIM, self.state.committed.manifest.dtype);
                elements.set(&embedding).unwrap();
                let bytes = elements.keep().to_vec();
                let vector = Vector {
                    inv_norm: elements.take_inv_norms().next().unwrap(),
                    elements: &bytes,
                };
                let embedded = Arc::make_mut(&mut self.state).embed(row, vector);
                assert_eq!(embedded, !had);
                given.embedding.get_or_insert(embedding.to_vec());
            }
            Op::Touch(..) | Op::Importance(..) | Op::Embed(_) | Op::Delete(_) => {}
            Op::Snapshot => {
                let snapshot = Snapshot::new(self.state.clone());
                self.snapshots.push((snapshot, self.model.clone()));
            }
            Op::Fold(after) => {
                let (manifest, columns) = written(&self.state, 0..rows);
                let extended = self.state.extended(manifest, columns);
                self.pending = Some((after, Pending::Extended(extended)));
            }
            Op::Bulk(count) => {
                // The rows are made in a state of their own; the real one has the columns only.
                let before = self.state.clone();
                (0..count).for_each(|i| self.push((i % 2 == 0).then_some(i as u8)));
                let (manifest, columns) = written(&self.state, 0..rows + count);
                self.state = before;
                let extended = self.state.extended(manifest, columns);
                Arc::make_mut(&mut self.state).adopt(extended);
            }
            Op::Compact(after) => {
                let kept = Kept::new(&self.state.live);
                let (manifest, columns) = written(&self.state, kept.old_rows());
                let compaction = Box::new((kept, manifest, columns));
                self.pending = Some((after, Pending::Compaction(compaction)));
            }
            Op::Reopen => {
                let (manifest, columns) = written(&self.state, 0..rows);
                let live = Live::without(rows, self.state.live.deleted());
                let overrides = self.state.overrides();
                let mut state = State::with_sizes(Committed::new(manifest, columns, live), SIZES);
                for (agent, row, time) in self.state.differences() {
                    state.touch(agent, row, time);
                }
                for (agent, row, importance) in overrides {
                    state.set_importance(agent, row, Some(importance));
                }
                assert!(state.differences().eq(self.state.differences()));
                assert!(state.overrides().eq(self.state.overrides()));
                self.state = Arc::new(state);
            }
        }
        match &mut self.pending {
            Some((0, _)) => self.adopt(),
            Some((after, _)) => *after -= 1,
            None => {}
        }
    }

    fn check(&self) {
        self.model.assert_is(&Snapshot::new(self.state.clone()));
        for (snapshot, model) in &self.snapshots {
            model.assert_is(snapshot);
        }
        let differences: Vec<_> = self.state.differences().collect();
        assert!(differences.is_sorted());
        let expected = AGENTS.into_iter().flat_map(|agent| {
            let rows = self.model.rows.iter().enumerate();
            rows.filter(move |(_, row)| row.last_access(agent) != row.given.time)
                .map(move |(at, row)| (agent, at, row.last_access(agent)))
        });
        assert_eq!(differences, expected.collect::<Vec<_>>());
        let expected = AGENTS.into_iter().flat_map(|agent| {
            let rows = self.model.rows.iter().enumerate();
            rows.filter(move |(_, row)| row.importance(agent) != row.given.importance())
                .map(move |(at, row)| (agent, at, row.importance(agent)))
        });
        assert!(self.state.overrides().eq(expected));
    }
}

fn run(dtype: Dtype, ops: &[Op]) {
    let mut run = Run {
        state: Arc::new(empty(dtype)),
        model: Model::default(),
        pending: None,
        snapshots: Vec::new(),
    };
    for (at, op) in ops.iter().enumerate() {
        run.run(op);
        // Not always: a key index that is built late sees more than one that was built early.
        if at % 3 == 0 || at + 1 == ops.len() {
            run.check();
        }
    }
    run.adopt();
    run.check();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_state_is_what_was_done_and_a_snapshot_what_was_done_before(
        ops in prop::collection::vec(op(), 0..60),
        f16 in any::<bool>(),
    ) {
        run(if f16 { Dtype::F16 } else { Dtype::F32 }, &ops);
    }
}
