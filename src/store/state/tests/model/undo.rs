//! A state gone back, step by step, against what it was.

use super::*;
use crate::store::journal::{Body, Ids, Numbers, Seen, Touch};

/// What was done to one row, as a record says it.
#[derive(Debug)]
enum Done {
    Touch(Agent, i64, i64),
    Importance(Agent, Option<f32>),
    Embed,
    Delete,
}

impl Done {
    /// What an operation does to the row it is about, if it alters it.
    fn by(op: &Op, model: &Model) -> Option<(u64, Done)> {
        let rows = model.rows.len();
        let (Op::Touch(_, row, _) | Op::Importance(_, row, _) | Op::Embed(row) | Op::Delete(row)) =
            op
        else {
            return None;
        };
        let row = (rows > 0).then(|| &model.rows[row.index(rows)])?;
        let done = match *op {
            Op::Touch(agent, _, now) => {
                let agent = AGENTS[agent];
                Done::Touch(agent, now, row.last_access(agent))
            }
            Op::Importance(agent, ..) => {
                let (agent, given) = (AGENTS[agent], row.given.importance());
                let own = Some(row.importance(agent)).filter(|&own| own != given);
                Done::Importance(agent, own)
            }
            Op::Embed(_) if row.given.embedding.is_none() => Done::Embed,
            Op::Delete(_) if row.live => Done::Delete,
            _ => return None,
        };
        Some((row.given.id, done))
    }

    fn undo(&self, id: u64, state: &mut State, zeros: &[u8]) {
        let (mut gone, ids, importance) = (Vec::new(), [id], None);
        let ids = Ids::new(&ids);
        let vector = Vector {
            inv_norm: 1.0,
            elements: zeros,
        };
        let mut undo = |body| state.undo(&body, zeros, &mut gone);
        match *self {
            Done::Touch(agent, now, before) => undo(Body::Touch(Touch {
                agent: agent.0,
                now,
                seen: Seen {
                    sequence: 0,
                    next_id: 0,
                    touch: None,
                },
                ids,
                before: Numbers::new(&[before]),
                note: b"",
            })),
            Done::Importance(agent, before) => undo(Body::Importance {
                agent: agent.0,
                importance,
                ids,
                before: Numbers::new(&[before.unwrap_or(f32::NAN)]),
            }),
            Done::Embed => undo(Body::Embed {
                vectors: vec![(id, vector)],
            }),
            Done::Delete => undo(Body::Delete { ids }),
        }
        assert!(gone.is_empty(), "no row went");
    }
}

fn go_back(dtype: Dtype, ops: &[Op]) {
    let mut run = Run {
        state: Arc::new(empty(dtype)),
        model: Model::default(),
        pending: None,
        snapshots: Vec::new(),
    };
    let mut done = Vec::new();
    for op in ops.iter().filter(|op| !matches!(op, Op::Compact(_))) {
        // What waits for its turn does not alter what is there.
        let model = run.model.clone();
        done.extend(Done::by(op, &model).map(|done| (done, model)));
        run.run(op);
    }
    run.adopt();
    run.check();
    let zeros = vec![0; DIM.get() * dtype.size_bytes()];
    let now = State::clone(&run.state);
    let mut state = now.clone();
    for ((id, done), model) in done.iter().rev() {
        done.undo(*id, &mut state, &zeros);
        let mut then = state.clone();
        then.truncate(model.next_id);
        model.assert_is(&Snapshot::new(Arc::new(then)));
    }
    state.truncate(0);
    Model::default().assert_is(&Snapshot::new(Arc::new(state)));
    run.model.assert_is(&Snapshot::new(Arc::new(now)));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_state_goes_back_to_what_it_was_before_each_change(
        ops in prop::collection::vec(op(), 0..60),
        f16 in any::<bool>(),
    ) {
        go_back(if f16 { Dtype::F16 } else { Dtype::F32 }, &ops);
    }

    // Records with the right sum can say anything.
    #[test]
    fn what_never_was_can_be_undone(
        ops in prop::collection::vec(op(), 0..40),
        undone in prop::collection::vec((0..50_u64, 0..4_u8, any::<i64>(), any::<f32>()), 0..20),
        next_id in 0..50_u64,
    ) {
        let mut run = Run {
            state: Arc::new(empty(Dtype::F32)),
            model: Model::default(),
            pending: None,
            snapshots: Vec::new(),
        };
        ops.iter().for_each(|op| run.run(op));
        let mut state = State::clone(&run.state);
        let (zeros, mut gone) = ([0; 12], Vec::new());
        for (id, kind, time, importance) in undone {
            let ids = [id, id, id + 1];
            let agent = AGENTS[id as usize % 3];
            let importance = Some(importance).filter(|x| x.is_finite());
            match kind {
                0 => {
                    let before = [time, time.wrapping_add(1), 3];
                    state.undo(&Body::Touch(Touch {
                        agent: agent.0,
                        now: i64::MAX,
                        seen: Seen { sequence: 0, next_id: 0, touch: None },
                        ids: Ids::new(&ids),
                        before: Numbers::new(&before),
                        note: b"",
                    }), &zeros, &mut gone);
                }
                1 => {
                    let before = [importance.unwrap_or(f32::NAN); 3];
                    state.undo(&Body::Importance {
                        agent: agent.0,
                        importance,
                        ids: Ids::new(&ids),
                        before: Numbers::new(&before),
                    }, &zeros, &mut gone);
                }
                2 => {
                    let none = Vector { inv_norm: 1.0, elements: &zeros };
                    let vectors = ids.map(|id| (id, none)).to_vec();
                    state.undo(&Body::Embed { vectors }, &zeros, &mut gone);
                }
                _ => state.undo(&Body::Delete { ids: Ids::new(&ids) }, &zeros, &mut gone),
            }
        }
        prop_assert!(gone.iter().all(|&id| run.state.slot_of_id(id).is_none()));
        state.truncate(next_id);
        let snapshot = Snapshot::new(Arc::new(state));
        for row in 0..snapshot.rows() {
            prop_assert!(snapshot.id(row) < next_id);
            let _ = (snapshot.memory(row), snapshot.embedding(row));
        }
        for agent in AGENTS {
            let rows: usize = snapshot.segments(agent).map(|segment| segment.rows().len()).sum();
            prop_assert_eq!(rows, snapshot.rows());
            prop_assert!(snapshot.touched(agent).all(|(row, _)| row < rows));
        }
    }
}
