//! Processes of this program that do one thing to a store, and say on their standard output what they do.

use crate::driver;
use crate::history::{self, Operations, digest};
use crate::workload::model::{Op, Setup, State};
use memorank::store::Store;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::Duration;

/// The store's path, and two numbers that only the child's role knows.
const STORE: &str = "MEMORANK_KILL_STORE";
const FIRST: &str = "MEMORANK_KILL_FIRST";
const SECOND: &str = "MEMORANK_KILL_SECOND";

/// Who says nothing for so long hangs.
const LONG: Duration = Duration::from_secs(100);

/// A running child. Dropped, it is killed.
pub struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

/// How a child ended.
pub struct Ended {
    pub status: ExitStatus,
    said: Vec<String>,
}

/// A command that starts the child of a role, an ignored test of this program, below `before`: a command that takes
/// another one, with its arguments.
pub fn command(role: &str, before: &[&str], store: &Path, numbers: [u64; 2]) -> Command {
    let program = std::env::current_exe().expect("this program is a file");
    let program = program.to_str().expect("its name is text");
    let mut words = before.iter().copied().chain([program]);
    let mut command = Command::new(words.next().expect("there is one"));
    command
        .args(words)
        .args([
            "--exact",
            role,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(STORE, store)
        .env(FIRST, numbers[0].to_string())
        .env(SECOND, numbers[1].to_string());
    command
}

impl Child {
    pub fn start(mut command: Command) -> Child {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let output = process.stdout.take().expect("it is a pipe");
        let (to, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Nobody may want it any more.
                let _ = to.send(line);
            }
        });
        Child {
            process,
            lines,
            said: Vec::new(),
        }
    }

    /// Waits until so many of its lines began with `word`.
    ///
    /// # Panics
    /// If it ends before, or says nothing for long.
    pub fn wait_for(&mut self, word: &str, times: usize) {
        while said(&self.said, word).count() < times {
            let line = self.lines.recv_timeout(LONG);
            self.said.push(line.expect("the child comes that far"));
        }
    }

    /// Kills it, or finds that it has ended.
    pub fn kill(mut self) -> Ended {
        self.process.kill().expect("it is our child");
        self.end()
    }

    /// Waits until it ends.
    pub fn finish(mut self) -> Ended {
        self.end()
    }

    fn end(&mut self) -> Ended {
        let mut said = std::mem::take(&mut self.said);
        said.extend(self.lines.iter());
        let status = self.process.wait().expect("it is our child");
        Ended { status, said }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Ended {
    /// It was killed, by nothing but SIGKILL.
    pub fn was_killed(&self) -> bool {
        const SIGKILL: i32 = 9;
        self.status.signal() == Some(SIGKILL)
    }

    /// What followed `word` in all lines that began with it.
    pub fn all(&self, word: &str) -> impl Iterator<Item = &str> {
        said(&self.said, word)
    }

    /// How many operations it began, and how many of them were done.
    pub fn progress(&self) -> (usize, usize) {
        (self.all("begins").count(), self.all("has done").count())
    }
}

fn said<'a>(lines: &'a [String], word: &str) -> impl Iterator<Item = &'a str> {
    let rest = move |line: &'a String| line.strip_prefix(word).map(str::trim);
    lines.iter().filter_map(rest)
}

/// What the child has to do it to, if this is one.
pub fn task() -> Option<(PathBuf, [u64; 2])> {
    let path = std::env::var_os(STORE)?;
    let number = |name| {
        let value = std::env::var(name).expect("the parent gives it");
        value.parse().expect("it is a number")
    };
    // The test harness leaves a line begun.
    println!();
    Some((path.into(), [FIRST, SECOND].map(number)))
}

/// Does operations until there are no more, telling the parent of each before and after, and closes the store. `next`
/// gets what the store holds.
pub fn work(
    path: &Path,
    setup: &Setup,
    mut store: Option<Store>,
    mut next: impl FnMut(&State) -> Option<Op>,
) {
    let mut state = store.as_ref().map_or(State::EMPTY, driver::observe);
    while let Some(op) = next(&state) {
        println!("begins {}", op.name());
        history::apply(&mut store, path, setup, &op, &state);
        println!("has done {}", op.name());
        state = state.after(&op);
    }
    driver::close(store.expect("it is open")).expect("it can be closed");
    println!("has closed");
}

/// Opens the store, telling the parent what it holds.
fn opened(path: &Path, setup: &Setup) -> Store {
    println!("opens");
    let store = history::open(path, setup, false).expect("it opens");
    println!("found {}", digest(&driver::observe(&store)));
    store
}

#[test]
#[ignore = "a child: it writes until it is killed"]
fn write() {
    if let Some((path, [seed, life])) = task() {
        let setup = history::setup(seed);
        let store = opened(&path, &setup);
        let mut ops = Operations::new(&setup, life);
        work(&path, &setup, Some(store), |state| Some(ops.next_op(state)));
    }
}

#[test]
#[ignore = "a child: it recovers a store, appends one memory and closes it"]
fn recover() {
    if let Some((path, [seed, life])) = task() {
        let setup = history::setup(seed);
        let store = opened(&path, &setup);
        let mut ops = Operations::new(&setup, life);
        let mut one = Some(());
        work(&path, &setup, Some(store), |state| {
            one.take().map(|()| Op::Append(vec![ops.next_given(state)]))
        });
    }
}

#[test]
#[ignore = "a child: it opens a store for reading until it is killed"]
fn read() {
    let Some((path, [seed, _])) = task() else {
        return;
    };
    let setup = history::setup(seed);
    loop {
        let store = history::open(&path, &setup, true).expect("a reader can always open it");
        println!("saw {}", digest(&driver::observe(&store)));
        drop(store);
        sleep(Duration::from_millis(1));
    }
}
