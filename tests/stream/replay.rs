//! Retrievals again, on the store as it was: bit for bit what they gave then.

use super::*;
use crate::example::OTHER;
use crate::watched::{Change, watched};
use memorank::store::files::{Disk, Files, InMemory};
use memorank::store::{CreateOptions, HistoryError, OpenOptions};
use memorank::stream::{
    Budget, BytesPerFour, Contains, Decays, KindDecay, Order, Overflow, Period, ReplayError,
    retrieve_each, retrieve_many,
};
use proptest::prelude::*;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

/// All that a retrieval tells but rows, which a compaction numbers anew, and its touch.
fn told(retrieved: &Retrieved) -> String {
    let hit = |hit: &memorank::scoring::Hit| {
        let mut bits = vec![hit.score.to_bits()];
        for component in [&hit.relevance, &hit.recency, &hit.importance] {
            let parts = [component.raw, component.normalized, component.weighted];
            bits.extend(parts.map(f64::to_bits));
        }
        bits
    };
    let mut text = String::new();
    for memory in &retrieved.memories {
        let bits = memory.hit.as_ref().map(hit);
        text += &format!(
            "{} {} {} {bits:?}\n",
            memory.id, memory.pinned, memory.tokens
        );
    }
    for cut in &retrieved.cut {
        text += &format!("cut {} {} {:?}\n", cut.id, cut.tokens, hit(&cut.hit));
    }
    let Retrieved {
        missing,
        tokens,
        excess,
        ranges,
        candidates,
        ..
    } = retrieved;
    text + &format!("{missing:?} {tokens} {excess} {ranges:?} {candidates}")
}

/// A retrieval that was made.
struct Made {
    /// Which of the questions, and what it asked of them.
    question: usize,
    agent: Agent,
    now: i64,
    sequence: u64,
    told: String,
    rows: Vec<usize>,
    /// Rows were numbered anew since.
    compacted: bool,
}

/// Questions of every sort.
struct Questions {
    presets: Vec<Preset>,
    filters: Vec<Filter<'static>>,
    decays: Decays,
}

impl Questions {
    const COUNT: usize = 24;

    fn new() -> Questions {
        let named = |name| Preset {
            k: 5,
            ..Preset::named(name).unwrap()
        };
        let older = Preset {
            touch: Touch::IfOlder {
                age: 3 * HOUR as u64,
            },
            result_order: ResultOrder::LastAccess,
            ..paper(7)
        };
        let touching = Preset {
            touch: Touch::Returned,
            ..named("genagents")
        };
        let period = |from, until| Filter {
            last_access: Period { from, until },
            ..Filter::default()
        };
        Questions {
            presets: vec![named("paper"), named("reverie"), older, touching],
            filters: vec![
                Filter::default(),
                period(Some(T - 5 * HOUR), None),
                Filter {
                    text: Some(Contains::IgnoringAsciiCase("klaus")),
                    exclude: &[1, 7],
                    ..Filter::default()
                },
            ],
            decays: Decays {
                default: KindDecay {
                    decay: 0.99,
                    floor: 0.0,
                },
                kinds: vec![(
                    Kind::CHAT,
                    KindDecay {
                        decay: 0.9,
                        floor: 0.1,
                    },
                )],
            },
        }
    }

    fn wanted(&self, question: usize, agent: Agent, now: i64) -> Retrieve<'_> {
        const EMBEDDINGS: [[f32; 2]; 4] = [[1.0, 0.0], [0.3, 0.9], [1.0, 2.0], [-1.0, 0.5]];
        let budget = Budget {
            tokens: 12,
            counter: &BytesPerFour,
            overflow: Overflow::SkipOversized,
        };
        let preset = &self.presets[question % 4];
        Retrieve {
            ask: Ask {
                agent,
                filter: &self.filters[question % 3],
                decays: (question.is_multiple_of(8)).then_some(&self.decays),
                ..Ask::new(&EMBEDDINGS[question / 3 % 4], now, preset)
            },
            pinned: [&[][..], &[2, 0]][question / 12],
            budget: (question % 5 == 1).then_some(budget),
            note: b"why?",
        }
    }
}

/// The `i`th memory of a store.
fn numbered(i: u64) -> Owned {
    const KINDS: [Kind; 3] = [Kind::OBSERVATION, Kind::REFLECTION, Kind::CHAT];
    let i = i as i64;
    Owned {
        kind: KINDS[i as usize % 3].clone(),
        embedding: (i % 4 != 3).then(|| vec![1.0, (i * 37 % 100) as f32 * 0.03]),
        text: ["Klaus paints", "KLAUS sleeps", "the desk is idle", "Ürgüp"][i as usize % 4].into(),
        created: T - 300 * HOUR + i * HOUR,
        last_access: T + (i * 7 % 30 - 40) * HOUR,
        importance: (i * 31 % 11) as f32,
        ..plain(&[])
    }
}

#[derive(Clone, Debug)]
enum Op {
    Append(usize),
    Bulk(usize),
    Retrieve(usize, bool, i64),
    Many(Vec<(usize, bool, i64)>, bool),
    Each(Vec<(usize, bool, i64)>),
    Touch(bool, Vec<u64>, i64),
    Importance(bool, Vec<u64>, Option<i8>),
    Embed(Vec<u64>),
    Delete(Vec<u64>),
    Checkpoint,
    Compact,
    Reopen { killed: bool, checkpoint_bytes: u64 },
}

/// `compacts`: compactions are among them.
fn op(compacts: bool) -> impl Strategy<Value = Op> {
    let fold = if compacts {
        Op::Compact
    } else {
        Op::Checkpoint
    };
    let ids = || prop::collection::vec(0..40_u64, 0..4);
    let asked = || (0..Questions::COUNT, any::<bool>(), 0..20_i64);
    let several = || prop::collection::vec(asked(), 1..5);
    prop_oneof![
        4 => (1..8_usize).prop_map(Op::Append),
        1 => (1..8_usize).prop_map(Op::Bulk),
        6 => asked().prop_map(|(question, other, hours)| Op::Retrieve(question, other, hours)),
        4 => (several(), any::<bool>()).prop_map(|(asks, snapshot)| Op::Many(asks, snapshot)),
        1 => several().prop_map(Op::Each),
        2 => (any::<bool>(), ids(), 0..20_i64).prop_map(|(other, ids, at)| Op::Touch(other, ids, at)),
        2 => (any::<bool>(), ids(), prop::option::of(any::<i8>()))
            .prop_map(|(other, ids, importance)| Op::Importance(other, ids, importance)),
        2 => ids().prop_map(Op::Embed),
        2 => ids().prop_map(Op::Delete),
        1 => Just(Op::Checkpoint),
        2 => Just(fold),
        1 => (any::<bool>(), prop_oneof![Just(900_u64), Just(64 << 20)])
            .prop_map(|(killed, checkpoint_bytes)| Op::Reopen { killed, checkpoint_bytes }),
    ]
}

const STORE: &str = "store";

struct Run {
    files: Arc<dyn Files>,
    path: PathBuf,
    store: Option<Store>,
    made: Vec<Made>,
    questions: Questions,
}

fn agent(other: bool) -> Agent {
    if other { OTHER } else { Agent::OWN }
}

impl Run {
    fn new(files: Arc<dyn Files>, path: PathBuf) -> Run {
        let create = CreateOptions {
            dim: 2.try_into().unwrap(),
            dtype: Dtype::F16,
            model: None,
        };
        let store = Store::create_on(files.clone(), &path, &create).unwrap();
        store.keep_history(u64::MAX).unwrap();
        append(&store, &(0..6).map(numbered).collect::<Vec<_>>());
        Run {
            files,
            path,
            store: Some(store),
            made: Vec::new(),
            questions: Questions::new(),
        }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    fn wanted(&self, (question, other, hours): (usize, bool, i64)) -> Retrieve<'_> {
        let now = T + hours * HOUR;
        self.questions.wanted(question, agent(other), now)
    }

    fn note(&mut self, (question, other, hours): (usize, bool, i64), retrieved: &Retrieved) {
        assert!(retrieved.touch.is_ok(), "{:?}", retrieved.touch);
        if let Some(sequence) = retrieved.sequence {
            self.made.push(Made {
                question,
                agent: agent(other),
                now: T + hours * HOUR,
                sequence,
                told: told(retrieved),
                rows: retrieved.memories.iter().map(|memory| memory.row).collect(),
                compacted: false,
            });
        }
    }

    fn run(&mut self, op: Op) {
        let (workspace, par) = (&mut Workspace::new(), Par::Serial);
        let next = self.store().snapshot().next_id();
        let given = |ids: Vec<u64>| ids.into_iter().filter(|&id| id < next).collect::<Vec<_>>();
        match op {
            Op::Append(count) => {
                let new: Vec<_> = (next..next + count as u64).map(numbered).collect();
                append(self.store(), &new);
            }
            Op::Bulk(count) => {
                let mut bulk = self.store().bulk().unwrap();
                for id in next..next + count as u64 {
                    bulk.push(&numbered(id).borrowed()).unwrap();
                }
                bulk.commit().unwrap();
            }
            Op::Retrieve(question, other, hours) => {
                let asked = (question, other, hours);
                let wanted = self.wanted(asked);
                let retrieved = retrieve(self.store(), &wanted, par, workspace).unwrap();
                self.note(asked, &retrieved);
            }
            Op::Many(asked, snapshot) => {
                let order = [Order::Sequential, Order::Snapshot][usize::from(snapshot)];
                let asks: Vec<_> = asked.iter().map(|&asked| self.wanted(asked)).collect();
                let all = retrieve_many(self.store(), &asks, order, par, workspace).unwrap();
                for (asked, retrieved) in asked.into_iter().zip(&all) {
                    self.note(asked, retrieved);
                }
            }
            Op::Each(asked) => {
                let asks = asked.iter();
                let asks: Vec<_> = asks
                    .map(|&asked| (self.store(), self.wanted(asked)))
                    .collect();
                let all = retrieve_each(&asks, par, workspace).unwrap();
                for (asked, retrieved) in asked.into_iter().zip(&all) {
                    self.note(asked, retrieved);
                }
            }
            Op::Touch(other, ids, hours) => {
                let at = T + hours * HOUR;
                self.store().touch(agent(other), &given(ids), at).unwrap();
            }
            Op::Importance(other, ids, importance) => {
                let importance = importance.map(f32::from);
                (self
                    .store()
                    .set_importance(agent(other), &given(ids), importance))
                .unwrap();
            }
            Op::Embed(ids) => {
                for id in given(ids) {
                    // One that has a vector is refused.
                    let _ = self.store().embed(&[(id, &[0.5, -0.25])]);
                }
            }
            Op::Delete(ids) => {
                self.store().delete(&given(ids)).unwrap();
            }
            Op::Checkpoint => self.store().checkpoint().unwrap(),
            Op::Compact => {
                self.store().compact().unwrap();
                self.made.iter_mut().for_each(|made| made.compacted = true);
            }
            Op::Reopen {
                killed,
                checkpoint_bytes,
            } => {
                if killed {
                    // What it would have done at its end it can do no more.
                    std::mem::forget(self.store.take());
                    self.files = copied(&*self.files, &self.path);
                    self.path = STORE.into();
                }
                self.store = None;
                let options = OpenOptions {
                    checkpoint_bytes,
                    ..OpenOptions::default()
                };
                let opened = Store::open_on(self.files.clone(), &self.path, &options);
                self.store = Some(opened.unwrap());
            }
        }
    }

    /// Every retrieval that was made is the same again.
    fn check(&self, store: &Store) {
        let workspace = &mut Workspace::new();
        let before = told_accesses(store);
        for made in &self.made {
            let wanted = self.questions.wanted(made.question, made.agent, made.now);
            let again = match replay(store, made.sequence, &wanted, Par::Serial, workspace) {
                Ok(again) => again,
                Err(ReplayError::History(HistoryError::Compacted { id })) if made.compacted => {
                    assert_eq!(store.snapshot().row_of_id(id), None);
                    continue;
                }
                Err(error) => panic!("record {}: {error}", made.sequence),
            };
            assert_eq!(
                told(&again.retrieved),
                made.told,
                "record {}",
                made.sequence
            );
            assert!(again.is_same);
            assert_eq!(again.touched.note, b"why?");
            assert_eq!(again.retrieved.sequence, Some(made.sequence));
            if !made.compacted {
                let rows = again.retrieved.memories.iter().map(|memory| memory.row);
                assert!(rows.eq(made.rows.iter().copied()));
            }
        }
        assert_eq!(told_accesses(store), before, "a replay touches nothing");
    }
}

fn told_accesses(store: &Store) -> (u64, Vec<i64>) {
    let snapshot = store.snapshot();
    let all = (0..snapshot.rows()).flat_map(|row| [(Agent::OWN, row), (OTHER, row)]);
    let all = all.map(|(agent, row)| snapshot.last_access(agent, row));
    (snapshot.sequence(), all.collect())
}

/// The store's files, in memory: what a process that was killed now would leave.
fn copied(files: &dyn Files, path: &Path) -> Arc<dyn Files> {
    let copy = InMemory::new();
    copy.create_dir(Path::new(STORE)).unwrap();
    for name in files.list(path).unwrap() {
        let file = files.open(&path.join(&name)).unwrap();
        let mut bytes = vec![0; file.bytes().unwrap() as usize];
        assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
        let new = copy.create_new(&Path::new(STORE).join(&name)).unwrap();
        assert_eq!(new.write_at(0, &bytes).unwrap(), bytes.len());
    }
    Arc::new(copy)
}

fn run(files: Arc<dyn Files>, path: PathBuf, ops: Vec<Op>) {
    let mut run = Run::new(files, path);
    for op in ops {
        run.run(op);
    }
    run.check(run.store());
    run.store.take().unwrap().close().unwrap();
    let reader = OpenOptions {
        read_only: true,
        ..OpenOptions::default()
    };
    let reader = Store::open_on(run.files.clone(), &run.path, &reader).unwrap();
    run.check(&reader);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_retrieval_is_replayed_to_the_bit(ops in prop::collection::vec(op(false), 1..40)) {
        run(Arc::new(InMemory::new()), STORE.into(), ops);
    }

    #[test]
    fn after_compactions_a_replay_has_the_same_ids_and_scores_or_names_what_is_gone(
        ops in prop::collection::vec(op(true), 1..40),
    ) {
        run(Arc::new(InMemory::new()), STORE.into(), ops);
    }
}

proptest! {
    // Every sync takes its time.
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_retrieval_of_a_store_on_disk_is_replayed_to_the_bit(
        ops in prop::collection::vec(op(true), 1..25),
    ) {
        let dir = tempfile::tempdir().unwrap();
        run(Arc::new(Disk), dir.path().join("store"), ops);
    }
}

// B31, B52: between a ranking and its touch others write, and the touches of a batch are not one after another.
#[test]
fn retrievals_of_several_threads_are_replayed_each_as_it_was() {
    const ROUNDS: usize = 60;
    let run = Run::new(Arc::new(InMemory::new()), STORE.into());
    let store = run.store();
    append(store, &(6..40).map(numbered).collect::<Vec<_>>());
    let made = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for who in 0..4_usize {
            let (run, made) = (&run, &made);
            scope.spawn(move || {
                let workspace = &mut Workspace::new();
                for round in 0..ROUNDS {
                    let asked = (0..1 + who).map(|i| {
                        let question = (round * 5 + i * 3 + who) % Questions::COUNT;
                        (question, i % 2 == 0, (round * 7 % 20) as i64)
                    });
                    let asked: Vec<_> = asked.collect();
                    let asks: Vec<_> = asked.iter().map(|&asked| run.wanted(asked)).collect();
                    let order = Order::Sequential;
                    let all = match &asks[..] {
                        [one] => vec![retrieve(store, one, Par::Serial, workspace).unwrap()],
                        _ => retrieve_many(store, &asks, order, Par::Serial, workspace).unwrap(),
                    };
                    made.lock().unwrap().extend(asked.into_iter().zip(all));
                }
            });
        }
        scope.spawn(|| {
            for id in 40..40 + ROUNDS as u64 {
                append(store, &[numbered(id)]);
                store.delete(&[id - 30]).unwrap();
                store
                    .set_importance(OTHER, &[id - 5], Some(id as f32))
                    .unwrap();
                if id % 8 == 0 {
                    store.checkpoint().unwrap();
                }
            }
        });
    });
    let mut run = run;
    for (asked, retrieved) in made.into_inner().unwrap() {
        run.note(asked, &retrieved);
    }
    assert!(run.made.len() > 5 * ROUNDS, "{}", run.made.len());
    run.check(run.store());
}

#[test]
fn another_question_is_answered_of_the_store_as_it_was_and_said_to_be_another() {
    let run = Run::new(Arc::new(InMemory::new()), STORE.into());
    let store = run.store();
    let (preset, workspace) = (paper(2), &mut Workspace::new());
    let wanted = Retrieve::new(ask(&preset, T));
    let then = retrieve(store, &wanted, Par::Serial, workspace).unwrap();
    let sequence = then.sequence.unwrap();
    let snapshot = then.snapshot;
    append(store, &[numbered(6)]);
    store.delete(&[0]).unwrap();
    let others = [
        ask(&preset, T + 1),
        Ask {
            agent: OTHER,
            ..wanted.ask
        },
        Ask {
            filter: &without(&[4]),
            ..wanted.ask
        },
        ask(&paper(3), T),
    ]
    .map(|ask| {
        (
            ask.now,
            ask.agent,
            ask.filter.exclude.to_vec(),
            ask.preset.k,
        )
    });
    for (now, agent, exclude, k) in others {
        let (preset, filter) = (paper(k), without(&exclude));
        let filter = if exclude.is_empty() {
            Filter::default()
        } else {
            filter
        };
        let another = Ask {
            agent,
            filter: &filter,
            ..ask(&preset, now)
        };
        let again = replay(
            store,
            sequence,
            &Retrieve::new(another),
            Par::Serial,
            workspace,
        );
        let again = again.unwrap();
        let expected = ranked(&snapshot, &another).unwrap();
        assert_same_bits(&ranking(&again.retrieved), &expected);
        let same = ids(&again.retrieved)
            .iter()
            .all(|id| again.touched.ids.contains(id));
        let is_same = same && k == 2 && (now, agent) == (T, Agent::OWN);
        assert_eq!(again.is_same, is_same, "{now} {agent:?} {exclude:?} {k}");
    }
    assert!(
        replay(store, sequence, &wanted, Par::Serial, workspace)
            .unwrap()
            .is_same
    );
}

// What is asked with a touch done is not replayed without it.
#[test]
fn after_a_touch_that_fails_a_batch_in_sequence_touches_nothing() {
    let files = InMemory::new();
    drop(Run::new(Arc::new(files.clone()), STORE.into()));
    let left = Arc::new(Mutex::new(usize::MAX));
    let writes = left.clone();
    let hook = move |change, _: &Path| {
        let mut left = writes.lock().unwrap();
        match change {
            Change::Write if *left == 0 => Err(io::ErrorKind::StorageFull.into()),
            Change::Write => {
                *left -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    };
    let store = Store::open_on(watched(&files, hook), STORE, &OpenOptions::default()).unwrap();
    store.touch(Agent::OWN, &[0], T - 300 * HOUR).unwrap();
    let (preset, workspace) = (paper(1), &mut Workspace::new());
    let asks = [1, 2, 3, 4].map(|hours| Retrieve::new(ask(&preset, T + hours * HOUR)));
    for order in [Order::Sequential, Order::Snapshot] {
        let before = store.snapshot().sequence();
        // Each record is written in two halves: the second record is not.
        *left.lock().unwrap() = 3;
        let found = retrieve_many(&store, &asks, order, Par::Serial, workspace).unwrap();
        *left.lock().unwrap() = usize::MAX;
        assert_eq!(found[0].sequence, Some(before + 1));
        assert!(matches!(found[1].touch, Err(TouchError::Write(_))));
        for later in &found[2..] {
            let refused = matches!(later.touch, Err(TouchError::AfterFailed));
            assert_eq!(refused, order == Order::Sequential, "{:?}", later.touch);
        }
        assert!(found[1..].iter().all(|found| found.sequence.is_none()));
        assert_eq!(store.snapshot().sequence(), before + 1);
        let again = replay(&store, before + 1, &asks[0], Par::Serial, workspace).unwrap();
        assert_eq!(told(&again.retrieved), told(&found[0]));
    }
}

#[test]
fn what_was_not_touched_has_no_number_and_what_cannot_be_replayed_says_why() {
    let run = Run::new(Arc::new(InMemory::new()), STORE.into());
    let store = run.store();
    let workspace = &mut Workspace::new();
    for preset in [Preset::genagents(), paper(0)] {
        let wanted = Retrieve::new(ask(&preset, T));
        let found = retrieve(store, &wanted, Par::Serial, workspace).unwrap();
        assert_eq!(found.sequence, None);
    }
    let preset = paper(2);
    let wanted = Retrieve::new(ask(&preset, T));
    let mut replayed = |sequence, wanted| {
        replay(store, sequence, wanted, Par::Serial, workspace).map(|again| again.is_same)
    };
    let error = replayed(9, &wanted).unwrap_err();
    assert!(matches!(
        error,
        ReplayError::History(HistoryError::NoRecord { .. })
    ));
    let error = replayed(1, &wanted).unwrap_err();
    assert_eq!(
        error.to_string(),
        "record 1 is not a touch; `Store::touches` lists those"
    );
    let then = retrieve(store, &wanted, Par::Serial, &mut Workspace::new()).unwrap();
    let zero = Retrieve::new(Ask::new(&[0.0, 0.0], T, &preset));
    let error = replayed(then.sequence.unwrap(), &zero).unwrap_err();
    assert!(
        matches!(error, ReplayError::Stream(StreamError::Rank(_))),
        "{error}"
    );
}

// A read-only store makes no record, and has those of the writer.
#[test]
fn a_read_only_store_replays_what_a_writer_retrieved() {
    let dir = tempfile::tempdir().unwrap();
    let run = Run::new(Arc::new(Disk), dir.path().join("store"));
    let (preset, workspace) = (paper(2), &mut Workspace::new());
    let wanted = Retrieve::new(ask(&preset, T));
    let then = retrieve(run.store(), &wanted, Par::Serial, workspace).unwrap();
    run.store().delete(&[ids(&then)[0]]).unwrap();
    let reader = Store::open_read_only(&run.path).unwrap();
    let of_reader = retrieve(&reader, &wanted, Par::Serial, workspace).unwrap();
    assert_eq!(of_reader.sequence, None);
    assert!(of_reader.touch.is_err());
    let again = replay(
        &reader,
        then.sequence.unwrap(),
        &wanted,
        Par::Serial,
        workspace,
    )
    .unwrap();
    assert!(again.is_same);
    assert_eq!(told(&again.retrieved), told(&then));
}
