//! Writers that are killed at random, and those who recover what they left, while others read.

use crate::child::{self, Child, Ended};
use crate::history::{self, Operations, assert_holds, digest};
use crate::on_panic::OnPanic;
use crate::random::Random;
use crate::setting::setting;
use crate::workload::model::{Op, Setup, State};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// A store has so many writers, one after the other.
const WRITERS: usize = 10;

const READERS: usize = 2;

/// Of a segment of the journal.
const HEADER_BYTES: usize = 64;

#[derive(Default)]
struct Figures {
    /// Operations that were begun.
    operations: usize,
    /// Of them those that were acknowledged.
    acknowledged: usize,
    /// Writers that were killed.
    writers: usize,
    /// Processes that were killed before an operation was acknowledged: while they opened the store or took it over.
    recoveries: usize,
    /// How often something torn was left for those who recover.
    torn: usize,
    /// Starts of records or segments that were left out.
    dropped: usize,
    /// Operations that were not acknowledged, but done.
    unsaid: usize,
    opened: usize,
}

/// A store in whose files processes write until they are killed.
struct Stage {
    _dir: tempfile::TempDir,
    path: PathBuf,
    seed: u64,
    setup: Setup,
    /// What the store held, from its creation on.
    states: Vec<State>,
    lives: u64,
}

impl Stage {
    fn new(seed: u64) -> Stage {
        let dir = tempfile::tempdir().expect("there is room");
        let path = dir.path().join("store");
        let setup = history::setup(seed);
        drop(history::create(&path, &setup));
        Stage {
            _dir: dir,
            path,
            seed,
            setup,
            states: vec![State::EMPTY],
            lives: 0,
        }
    }

    fn child(&self, role: &str, number: u64) -> Child {
        let numbers = [self.seed, number];
        Child::start(child::command(role, &[], &self.path, numbers))
    }

    /// Kills a child some time after it has begun an operation, or to open the store, and checks what it left.
    fn live_and_die(
        &mut self,
        role: &str,
        operations: usize,
        after: Duration,
        figures: &mut Figures,
    ) {
        self.lives += 1;
        let (seed, life) = (self.seed, self.lives);
        let _place = OnPanic(|| {
            format!("{role}, the {life}th process of store {seed}, after {operations} operations")
        });
        let mut child = self.child(role, self.lives);
        child.wait_for("opens", 1);
        child.wait_for("begins", operations);
        sleep(after);
        let ended = child.kill();
        let closed = ended.all("has closed").count() == 1;
        assert!(ended.was_killed() || closed, "{:?}", ended.status);
        let (begun, done) = ended.progress();
        figures.operations += begun;
        figures.acknowledged += done;
        figures.recoveries += usize::from(done == 0);

        let mut state = self.states.last().expect("there is one").clone();
        for found in ended.all("found") {
            assert_eq!(found, digest(&state).to_string());
        }
        let (found, dropped) = history::look(&self.path, &self.setup);
        figures.dropped += dropped;
        let mut ops = Operations::new(&self.setup, self.lives);
        for at in 0..begun {
            let op = match role {
                "child::recover" => Op::Append(vec![ops.next_given(&state)]),
                _ => ops.next_op(&state),
            };
            let after = state.after(&op);
            if at == done {
                // Killed while it was at it.
                assert_holds(&found, &[&state, &after]);
                if found == state {
                    break;
                }
                figures.unsaid += usize::from(after != state);
            }
            self.states.push(after.clone());
            state = after;
        }
        assert_holds(&found, &[&state]);
    }

    /// Leaves what a crash of the system may have left as well: bytes behind the last record of the journal, a segment
    /// after it with a torn header, and torn files under the names that whoever recovers writes under.
    fn tear(&self, random: &mut Random) {
        let names = fs::read_dir(&self.path).expect("it is there");
        let names = names.map(|entry| entry.expect("it can be read").file_name());
        let number = |name: OsString| name.to_str()?.strip_prefix("journal.")?.parse::<u64>().ok();
        let Some(last) = names.filter_map(number).max() else {
            return;
        };
        let path_of = |name: String| self.path.join(name);
        let read = |name| fs::read(path_of(name)).expect("it is there");
        let segment = read(format!("journal.{last}"));
        let manifest = read("manifest".into());
        let mut torn = |whole: &[u8]| {
            let mut bytes = whole[..1 + random.below(whole.len())].to_vec();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 + random.below(255) as u8;
            bytes
        };
        let put = |name, bytes: &[u8]| {
            let file = fs::File::options()
                .create(true)
                .append(true)
                .open(path_of(name));
            let written = file.and_then(|mut file| file.write_all(bytes));
            written.expect("it can be written");
        };
        put("manifest.1.1.tmp".into(), &torn(&manifest));
        let Some((header, records)) = segment.split_at_checked(HEADER_BYTES) else {
            return;
        };
        put(format!("journal.{}.tmp", last + 1), &torn(&segment));
        // One without records may be torn itself.
        if !records.is_empty() {
            put(format!("journal.{last}"), &torn(records));
            put(format!("journal.{}", last + 1), &torn(header));
        }
    }

    /// Checks what a reader saw: states of the store, none older than one before.
    fn check_reader(&self, reader: &Ended) -> usize {
        assert!(reader.was_killed(), "a reader failed: {:?}", reader.status);
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, state) in self.states.iter().enumerate() {
            places
                .entry(digest(state).to_string())
                .or_default()
                .push(at);
        }
        let (mut last, mut opened) = (0, 0);
        for saw in reader.all("saw") {
            let at = places.get(saw).map(|at| at.iter().find(|&&at| at >= last));
            let at = at.expect("it saw a state of the store");
            last = *at.expect("it saw none that was older");
            opened += 1;
        }
        opened
    }
}

// B50, B53, B55, B103
#[test]
fn a_killed_writer_loses_nothing_that_it_acknowledged() {
    let kills = setting("MEMORANK_KILLS", 50);
    let mut figures = Figures::default();
    let mut random = Random::new(kills as u64);
    let micros = |random: &mut Random| {
        let most = random.pick(&[300, 3_000, 30_000]);
        Duration::from_micros(random.below(most) as u64)
    };
    for seed in 0.. {
        if figures.writers == kills {
            break;
        }
        let mut stage = Stage::new(seed);
        let mut readers = [(); READERS].map(|()| stage.child("child::read", 0));
        for reader in &mut readers {
            reader.wait_for("saw", 1);
        }
        for _ in 0..WRITERS.min(kills - figures.writers) {
            let most = random.pick(&[1, 10, 40]);
            let operations = random.below(most);
            let after = micros(&mut random);
            stage.live_and_die("child::write", operations, after, &mut figures);
            figures.writers += 1;
            while random.chance(40) {
                if random.chance(50) {
                    stage.tear(&mut random);
                    figures.torn += 1;
                }
                let after = micros(&mut random);
                stage.live_and_die("child::recover", 0, after, &mut figures);
            }
        }
        for reader in readers {
            figures.opened += stage.check_reader(&reader.kill());
        }
        let mut ops = Operations::new(&stage.setup, stage.lives + 1);
        let last = stage.states.last().expect("there is one");
        let given = ops.next_given(last);
        history::go_on(&stage.path, &stage.setup, last, given);
    }
    println!(
        "{} writers were killed at random: {} operations, {} of them acknowledged, {} done but not acknowledged; {} \
         processes were killed while they recovered it, {} times beside something torn, {} dropped tails were seen, readers opened the store {} times",
        figures.writers,
        figures.operations,
        figures.acknowledged,
        figures.unsaid,
        figures.recoveries,
        figures.torn,
        figures.dropped,
        figures.opened
    );
}
