//! A disk that is full: a small file system in memory, mounted for one process alone.

use crate::child::{self, Child};
use crate::driver::{self, Failed};
use crate::history::{self, Operations, assert_holds};
use crate::owned::Owned;
use crate::skip;
use crate::workload::model::{Op, Setup, State};
use memorank::kernel::Dtype;
use memorank::store::{Durability, Store};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Mounts a small file system at the path that follows, and runs what follows that.
const MOUNT: &str = r#"mount -t tmpfs -o size=2m tmpfs "$0" && exec "$@""#;

/// Makes a process whose mounts end with it: as root, or as if it were.
const UNSHARE: [&[&str]; 2] = [
    &["unshare", "--mount"],
    &["unshare", "--user", "--map-root-user", "--mount"],
];

/// What runs a command on a small disk at `dir`, if that is possible here.
fn on_small_disk(dir: &str) -> Option<Vec<&str>> {
    let mut ways = UNSHARE.iter().map(|unshare| {
        let mount = ["sh", "-c", MOUNT, dir];
        Vec::from_iter(unshare.iter().copied().chain(mount))
    });
    ways.find(|way| {
        let mut probe = Command::new(way[0]);
        let status = probe
            .args(&way[1..])
            .arg("true")
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    })
}

// B40
#[test]
fn a_full_disk_is_an_error_and_what_was_acknowledged_stays() {
    let dir = tempfile::tempdir().expect("there is room");
    let store = dir.path().join("store");
    let Some(before) = on_small_disk(dir.path().to_str().expect("it is text")) else {
        return skip(
            "MEMORANK_REQUIRE_TMPFS",
            "no file system can be mounted here: no disk is full",
        );
    };
    let command = child::command("full_disk::fill", &before, &store, [0, 0]);
    let ended = Child::start(command).finish();
    assert!(ended.status.success(), "{:?}", ended.status);
    let figures: Vec<_> = ended.all("figures").collect();
    assert_eq!(figures.len(), 1);
    println!("{}", figures[0]);
}

const PAGE_BYTES: u64 = 4096;

/// A store on a small disk.
struct Stage {
    path: PathBuf,
    /// A file that takes the room.
    ballast: PathBuf,
    setup: Setup,
    store: Option<Store>,
    state: State,
    ops: Operations,
    failures: Vec<(&'static str, usize)>,
}

#[test]
#[ignore = "a child: it fills its disk"]
fn fill() {
    let Some((path, _)) = child::task() else {
        return;
    };
    let setup = Setup {
        dim: 4.try_into().expect("it is not zero"),
        dtype: Dtype::F16,
        in_memory: false,
        durability: Durability::default(),
        checkpoint_bytes: u64::MAX,
        history_bytes: 0,
    };
    let mut stage = Stage {
        ballast: path.with_file_name("ballast"),
        store: Some(history::create(&path, &setup)),
        state: State::EMPTY,
        ops: Operations::new(&setup, 1),
        failures: Vec::new(),
        path,
        setup,
    };
    stage.until_it_fits("append", Stage::batch);
    stage.until_it_fails("touch", |_, n| Op::Touch {
        agent: 7,
        ids: vec![0],
        now: 3_000_000_000 + n,
    });
    stage.until_it_fails("delete", |_, n| Op::Delete(vec![n as u64]));
    stage.until_it_fits("bulk append", |stage| {
        let memories = stage.memories(40);
        Op::Bulk {
            memories,
            commit: true,
        }
    });
    stage.until_it_fits("checkpoint", |stage| {
        stage.prepare();
        Op::Checkpoint
    });
    stage.until_it_fits("compaction", |stage| {
        stage.prepare();
        Op::Compact
    });
    stage.until_it_fits("close", |stage| {
        stage.prepare();
        Op::Reopen
    });
    stage.until_it_fits("first append of a handle", |stage| {
        stage.must(&Op::Reopen);
        stage.batch()
    });
    let appends = stage.fill_with_memories();
    stage.store = None;
    let given = stage.memories(1).remove(0);
    history::go_on(&stage.path, &stage.setup, &stage.state, given);

    let failures = stage.failures.iter();
    let failures = failures.map(|(name, failures)| format!("{name} {failures}"));
    println!(
        "figures failures on a full disk: {}; {appends} appends until a disk was full",
        Vec::from_iter(failures).join(", ")
    );
}

impl Stage {
    fn memories(&mut self, count: usize) -> Vec<Owned> {
        let (ops, state) = (&mut self.ops, &self.state);
        (0..count).map(|_| ops.next_given(state)).collect()
    }

    /// An append of several pages.
    fn batch(&mut self) -> Op {
        Op::Append(self.memories(40))
    }

    /// Writes to the journal.
    fn prepare(&mut self) {
        let last = self.state.next_id;
        let batch = Op::Append(self.memories(4));
        self.must(&batch);
        self.must(&Op::Delete(vec![last]));
        self.must(&Op::Touch {
            agent: 1,
            ids: vec![last + 1, last + 2],
            now: 3_000_000_000,
        });
    }

    /// What succeeds.
    fn must(&mut self, op: &Op) {
        history::apply(&mut self.store, &self.path, &self.setup, op, &self.state);
        self.state = self.state.after(op);
        self.check();
    }

    /// What may fail.
    fn attempt(&mut self, op: &Op) -> Result<(), Failed> {
        let store = self.store.take().expect("it is open");
        let done = match op {
            Op::Reopen => {
                let closed = driver::close(store);
                self.store = Some(history::open(&self.path, &self.setup, false).expect("it opens"));
                closed
            }
            _ => {
                let done = driver::apply(&store, op).map(|_| ());
                self.store = Some(store);
                done
            }
        };
        if done.is_ok() {
            self.state = self.state.after(op);
        }
        self.check();
        done
    }

    /// This handle and another one see what was acknowledged.
    fn check(&self) {
        let found = driver::observe(self.store.as_ref().expect("it is open"));
        assert_holds(&found, &[&self.state]);
        assert_holds(&history::look(&self.path, &self.setup).0, &[&self.state]);
    }

    /// Tries with more and more room. What failed succeeds when there is room.
    fn until_it_fits(&mut self, name: &'static str, mut op: impl FnMut(&mut Stage) -> Op) {
        let mut failures = 0;
        loop {
            let op = op(self);
            self.leave(failures as u64);
            let done = self.attempt(&op);
            self.free();
            match done {
                Ok(()) => break,
                Err(Failed::Perhaps) => self.must(&op),
                Err(Failed::Poisoned) => panic!("{name}: no later operation may fail for this"),
            }
            failures += 1;
        }
        assert!(failures > 0, "{name}: there was room");
        self.failures.push((name, failures));
    }

    /// Does small things until there is no room.
    fn until_it_fails(&mut self, name: &'static str, mut op: impl FnMut(&mut Stage, i64) -> Op) {
        self.leave(0);
        let mut n = 0;
        let failed = loop {
            let op = op(self, n);
            if self.attempt(&op).is_err() {
                break op;
            }
            n += 1;
            assert!(n < 1000, "{name}: there was room");
        };
        // Again and again.
        assert!(self.attempt(&failed).is_err());
        self.free();
        self.must(&failed);
        self.failures.push((name, 2));
    }

    /// Appends until the disk is full, with checkpoints at times. Gives how often that was possible.
    fn fill_with_memories(&mut self) -> usize {
        self.setup.checkpoint_bytes = 100_000;
        self.must(&Op::Reopen);
        File::create(&self.ballast)
            .and_then(|mut file| file.write_all(&[1; 500_000]))
            .expect("there is room");
        let mut appends = 0;
        let failed = loop {
            let op = self.batch();
            if self.attempt(&op).is_err() {
                break op;
            }
            appends += 1;
        };
        // These need less, or more.
        for op in [
            Op::Checkpoint,
            Op::Compact,
            Op::Delete(vec![self.state.next_id - 1]),
            Op::Reopen,
        ] {
            let _ = self.attempt(&op);
        }
        self.free();
        self.must(&failed);
        self.must(&Op::Checkpoint);
        let half = (0..self.state.next_id).filter(|id| id % 2 == 0).collect();
        self.must(&Op::Delete(half));
        appends
    }

    /// Fills the disk but for so many pages.
    fn leave(&self, pages: u64) {
        let mut file = File::create(&self.ballast).expect("there is room for a name");
        let error = loop {
            if let Err(error) = file.write(&[1; PAGE_BYTES as usize]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let bytes = file.metadata().expect("it is open").len();
        file.set_len(bytes - pages * PAGE_BYTES)
            .expect("it can be cut");
    }

    fn free(&self) {
        std::fs::remove_file(&self.ballast).expect("it is there");
    }
}
