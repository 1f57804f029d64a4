//! Writers that are killed at a certain system call, and the order of system calls, by strace.

use crate::child::{self, Child, Ended};
use crate::driver;
use crate::history::{self, Operations, assert_holds};
use crate::on_panic::OnPanic;
use crate::setting::setting;
use crate::skip;
use crate::workload::model::{Op, Setup, State};
use memorank::kernel::Dtype;
use memorank::store::Durability;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The system calls that change files or names, or say something to the parent. Not all of them are known to
/// every processor's kernel.
const CALLS: &str = "?write,?pwrite64,?fsync,?fdatasync,?ftruncate,?openat,?rename,?renameat,?renameat2,?unlink,\
                     ?unlinkat,?mkdir,?mkdirat,?rmdir";

/// strace counts the calls of each thread apart. That of the test harness makes fewer than these of any kind.
const HARNESS: usize = 40;

/// Whoever is only killed needs no disk, and thousands of syncs take long on one.
const IN_MEMORY: &str = "/dev/shm";

fn setup() -> Setup {
    Setup {
        dim: 2.try_into().expect("it is not zero"),
        dtype: Dtype::F32,
        in_memory: false,
        durability: Durability::default(),
        checkpoint_bytes: u64::MAX,
        history_bytes: 0,
    }
}

/// Every operation, in a small store.
fn operations() -> Vec<Op> {
    let (mut from, mut state) = (Operations::new(&setup(), 1), State::EMPTY);
    let mut ops = Vec::new();
    let mut add = |op: Op| {
        state = state.after(&op);
        ops.push(op);
        state.clone()
    };
    let mut given = |state: &State, count: usize| -> Vec<_> {
        (0..count).map(|_| from.next_given(state)).collect()
    };
    let touch = |agent, ids: &[u64]| Op::Touch {
        agent,
        ids: ids.into(),
        now: 3_000_000_000,
    };
    let state = add(Op::Create);
    let state = add(Op::Append(given(&state, 2)));
    add(touch(1, &[0, 1]));
    add(Op::Checkpoint);
    add(Op::Append(given(&state, 1)));
    add(Op::Delete(vec![0]));
    let state = add(touch(0, &[1, 2]));
    add(Op::Bulk {
        memories: given(&state, 3),
        commit: true,
    });
    let state = add(touch(7, &[2, 5]));
    add(Op::Compact);
    add(Op::Append(given(&state, 1)));
    add(Op::Sync);
    add(Op::Reopen);
    add(Op::Delete(vec![1]));
    add(Op::Checkpoint);
    ops
}

/// What children do who begin with nothing, or with what a process left that was killed after so many
/// operations.
#[derive(Clone, Copy)]
struct Script {
    after: usize,
}

const SCRIPTS: [Script; 2] = [Script { after: 0 }, Script { after: 6 }];

impl Script {
    /// A directory with what was left in it, and what that holds.
    fn stage(self) -> (tempfile::TempDir, PathBuf, State) {
        let dir = match Path::new(IN_MEMORY).is_dir() {
            true => tempfile::tempdir_in(IN_MEMORY),
            false => tempfile::tempdir(),
        };
        let dir = dir.expect("there is room");
        let path = dir.path().join("store");
        let (mut store, mut state) = (None, State::EMPTY);
        let left = dir.path().join("left");
        for op in &operations()[..self.after] {
            history::apply(&mut store, &left, &setup(), op, &state);
            state = state.after(op);
        }
        if store.is_some() {
            // As it is while it is open.
            std::fs::create_dir(&path).expect("it can be made");
            for entry in std::fs::read_dir(&left).expect("it is there") {
                let from = entry.expect("it can be read").path();
                let name = from.file_name().expect("it has a name");
                std::fs::copy(&from, path.join(name)).expect("it can be copied");
            }
            // What it was about to write, and had not committed.
            let add = |name: &str| {
                let file = std::fs::File::options().append(true).open(path.join(name));
                let written = file.and_then(|mut file| file.write_all(b"left over"));
                written.expect("it can be written");
            };
            add("text.bytes");
            add("journal.2");
            drop(store);
            std::fs::remove_dir_all(&left).expect("it is ours");
        }
        (dir, path, state)
    }

    /// Runs a child under strace.
    fn run(self, path: &Path, options: &[&str]) -> Ended {
        let before: Vec<_> = ["strace", "-f"].iter().chain(options).copied().collect();
        let after = self.after as u64;
        let role = "system_calls::follow_script";
        let mut command = child::command(role, &before, path, [after, 0]);
        // Cargo's is long, and the loader looks for each library in all of it.
        command.env_remove("LD_LIBRARY_PATH");
        Child::start(command).finish()
    }

    /// What the child's system calls are when it is let alone.
    fn trace(self) -> Vec<Call> {
        let (dir, path, _) = self.stage();
        let output = dir.path().join("trace");
        let output = output.to_str().expect("it is text");
        let trace = format!("trace={CALLS}");
        let ended = self.run(&path, &["-y", "-o", output, "-e", &trace]);
        assert!(ended.status.success(), "{:?}", ended.status);
        let text = std::fs::read_to_string(output).expect("strace made it");
        Call::all(&text)
    }
}

#[test]
#[ignore = "a child: it does a few things to a store"]
fn follow_script() {
    let Some((path, [after, _])) = child::task() else {
        return;
    };
    for _ in 0..HARNESS {
        drop(std::fs::File::open("/dev/null"));
        println!();
    }
    let store = (after > 0).then(|| history::open(&path, &setup(), false).expect("it opens"));
    let mut ops = operations().into_iter().skip(after as usize);
    child::work(&path, &setup(), store, |_| ops.next());
}

/// A system call.
struct Call {
    thread: String,
    name: String,
    /// The file or directory it is about, and of a rename its new name. Of a write, what is written.
    paths: Vec<String>,
    line: String,
    /// It is so many's of this name in its thread.
    count: usize,
}

impl Call {
    /// Those in an output of strace.
    fn all(text: &str) -> Vec<Call> {
        let mut counts = BTreeMap::new();
        let calls = text.lines().filter_map(|line| {
            let (thread, rest) = line.split_once(char::is_whitespace)?;
            let (name, arguments) = rest.trim_start().split_once('(')?;
            if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
                return None;
            }
            let quoted = || arguments.split('"').skip(1).step_by(2);
            let paths: Vec<_> = match name {
                "pwrite64" | "fsync" | "fdatasync" | "ftruncate" => {
                    let path = arguments.split_once('<')?.1.split_once('>')?.0;
                    vec![path.to_owned()]
                }
                _ => quoted().map(str::to_owned).collect(),
            };
            let count = counts.entry((thread, name)).or_insert(0);
            *count += 1;
            Some(Call {
                thread: thread.into(),
                name: name.into(),
                paths,
                line: line.into(),
                count: *count,
            })
        });
        calls.collect()
    }

    fn is(&self, name: &str, path: &str) -> bool {
        self.name.starts_with(name) && self.paths.first().is_some_and(|first| first == path)
    }

    /// It says to the parent that an operation begins, or is done.
    fn says(&self, word: &str) -> bool {
        self.name == "write" && self.paths.iter().any(|text| text.starts_with(word))
    }

    /// Something is different afterwards.
    fn changes(&self) -> bool {
        self.name != "openat" || self.line.contains("O_CREAT")
    }
}

/// Whether strace works here.
fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    let strace = strace.args(["-o", "/dev/null", "true"]);
    strace
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

// B53, B103
#[test]
fn a_writer_killed_at_any_system_call_loses_nothing_that_it_acknowledged() {
    if !can_trace() {
        return skip(
            "MEMORANK_REQUIRE_STRACE",
            "strace does not work here: nobody is killed at a system call",
        );
    }
    let step = setting("MEMORANK_STRACE_STEP", 10);
    let offset = setting("MEMORANK_STRACE_OFFSET", step) % step;
    let (mut calls, mut kills, mut dropped, mut unsaid) = (0, 0, 0, 0);
    let mut kinds = BTreeSet::new();
    for script in SCRIPTS {
        let traced = script.trace();
        // Under its own name, or the one it is made under.
        let is_of_store = |path: &String| path.contains("/store") || path.contains("/.store.");
        let of_store = |call: &Call| call.paths.iter().any(is_of_store);
        let first = traced
            .iter()
            .position(|call| of_store(call) && call.changes());
        let first = first.expect("it changes the store");
        let thread = &traced[first].thread;
        for (at, call) in traced.iter().enumerate().skip(first) {
            if call.thread != *thread || !call.changes() {
                // The harness counts as well, and changes nothing.
                assert!(!of_store(call) || !call.changes(), "{}", call.line);
                continue;
            }
            calls += 1;
            if calls % step != offset {
                continue;
            }
            let (_dir, path, before) = script.stage();
            let (name, count) = (&call.name, call.count);
            let others = traced.iter().filter(|other| other.thread != *thread);
            let most = others
                .filter(|other| other.name == *name)
                .map(|other| other.count);
            assert!(most.max().is_none_or(|most| most < count), "{}", call.line);
            let trace = format!("trace={name}");
            let inject = format!("inject={name}:signal=SIGKILL:when={count}");
            let ended = script.run(&path, &["-o", "/dev/null", "-e", &trace, "-e", &inject]);
            let says = |word| traced[..at].iter().filter(|call| call.says(word)).count();
            let place = format!("killed at {}", call.line);
            assert!(ended.was_killed(), "{place}: {:?}", ended.status);
            assert_eq!(
                ended.progress(),
                (says("begins"), says("has done")),
                "{place}"
            );
            let _place = OnPanic(|| place.clone());
            let found = check(&path, script, before, &ended);
            kinds.insert(name.clone());
            kills += 1;
            dropped += found.dropped;
            unsaid += usize::from(found.is_ahead);
        }
        // One more than there are.
        let (_dir, path, before) = script.stage();
        let last = traced.iter().filter(|call| call.name == "pwrite64").count();
        let inject = format!("inject=pwrite64:signal=SIGKILL:when={}", last + 1);
        let ended = script.run(
            &path,
            &["-o", "/dev/null", "-e", "trace=pwrite64", "-e", &inject],
        );
        assert!(ended.status.success(), "{:?}", ended.status);
        check(&path, script, before, &ended);
    }
    println!(
        "{kills} writers were killed at a system call, every {step} of {calls} ({}): {unsaid} operations were done but \
         not acknowledged, {dropped} dropped tails were seen",
        Vec::from_iter(kinds).join(", ")
    );
}

struct Found {
    dropped: usize,
    /// It holds an operation that was not acknowledged.
    is_ahead: bool,
}

/// Checks what a child left that began with a store that held `before`.
fn check(path: &Path, script: Script, before: State, ended: &Ended) -> Found {
    let setup = setup();
    let (begun, done) = ended.progress();
    let ops = operations();
    let mut states = vec![before];
    for op in &ops[script.after..script.after + begun] {
        states.push(states[states.len() - 1].after(op));
    }
    let more = |state: &State| Operations::new(&setup, 2).next_given(state);
    let nothing_promised = script.after + done == 0;
    if nothing_promised
        && let Err(error) = history::open(path, &setup, true)
        && driver::is_none(&error)
    {
        drop(history::create(path, &setup));
        history::go_on(path, &setup, &State::EMPTY, more(&State::EMPTY));
        // Nothing is left beside it, but what was killed before it had a lock.
        let beside = path.parent().expect("it lies in one");
        for entry in std::fs::read_dir(beside).expect("it is there") {
            let other = entry.expect("it can be read").path();
            let empty = || std::fs::read_dir(&other).is_ok_and(|mut names| names.next().is_none());
            assert!(other == path || empty(), "{} is left", other.display());
        }
        return Found {
            dropped: 0,
            is_ahead: false,
        };
    }
    let (found, dropped) = history::look(path, &setup);
    let (least, most) = (&states[done], &states[begun]);
    assert_holds(&found, &[least, most]);
    history::go_on(path, &setup, &found, more(&found));
    Found {
        dropped,
        is_ahead: found != *least,
    }
}

// B53
#[test]
fn what_a_manifest_names_is_synced_before_it_and_its_own_name_before_anything_else() {
    if !can_trace() {
        return skip(
            "MEMORANK_REQUIRE_STRACE",
            "strace does not work here: the order of system calls is not seen",
        );
    }
    let (mut published, mut writes) = (0, 0);
    for script in SCRIPTS {
        let calls = script.trace();
        for (at, rename) in calls.iter().enumerate() {
            let Some(dir) = rename
                .paths
                .get(1)
                .and_then(|to| to.strip_suffix("/manifest"))
            else {
                continue;
            };
            let (before, after) = (&calls[..at], &calls[at + 1..]);
            // Everything that was written into the store's files, the manifest among them, was synced then.
            let mut synced = 0;
            for (from, write) in before.iter().enumerate() {
                let path = &write.paths.first().map_or("", String::as_str);
                if !write.is("pwrite64", path) || Path::new(path).parent() != Some(Path::new(dir)) {
                    continue;
                }
                let rest = &before[from..];
                let removed = rest.iter().any(|call| call.is("unlink", path));
                let sync = rest.iter().position(|call| call.is("fsync", path));
                assert!(
                    removed || sync.is_some(),
                    "not synced before {}: {}",
                    rename.line,
                    write.line
                );
                synced = synced.max(sync.map_or(0, |sync| from + sync));
                writes += 1;
            }
            // Then the names of those files, then the manifest gets its own.
            let names = before[synced..].iter().any(|call| call.is("fsync", dir));
            assert!(names, "the directory was not synced before {}", rename.line);
            // That is synced before anything is removed or acknowledged.
            let durable = after.iter().position(|call| call.is("fsync", dir));
            let durable = durable.unwrap_or_else(|| panic!("not synced after {}", rename.line));
            for call in &after[..durable] {
                assert!(
                    !call.changes(),
                    "before the directory was synced: {}",
                    call.line
                );
            }
            published += 1;
        }
    }
    println!("{published} manifests were published, after {writes} writes, all in order");
}
