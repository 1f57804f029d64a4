//! Writing behind: a long append's bytes go to the file on a thread of their own, and to the disk while
//! more are made. Without it the disk waits for the append, and then the append for the disk: 1,000,000
//! memories of 384 f16 took 1.5 times as long (`cargo bench --bench roofline -- --only store`).
//!
//! On Linux the threads stand back for others: on two processors the slowest of 100 rankings beside such an append took
//! 1.7 to 2.0 times as long as alone in four runs with it, and 2.3 and 2.8 times in two without (`--only journal`).

use super::error::SYNCING;
use super::files::{self, File};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Blocks that wait to be written at most: so many more are in memory.
const WAITING: usize = 2;

/// Bytes that are written between two syncs.
const SYNC_BYTES: usize = 64 << 20;

/// How far its threads stand back.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;

/// Dropped, it waits for its thread.
pub(super) struct Behind {
    blocks: Option<SyncSender<(u64, Vec<u8>)>>,
    written: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<Result<(), Failed>>>,
}

/// What could not be done, and why.
pub(super) type Failed = (&'static str, io::Error);

impl Behind {
    /// Starts a thread that writes to `file`; none if the system has no more threads.
    pub(super) fn start(file: Arc<dyn File>) -> io::Result<Behind> {
        let (blocks, waiting) = sync_channel(WAITING);
        let (done, written) = channel();
        let write = move || {
            yield_to_others();
            write_all(&file, &waiting, &done)
        };
        let thread = named("memorank append").spawn(write)?;
        Ok(Behind {
            blocks: Some(blocks),
            written,
            thread: Some(thread),
        })
    }

    /// Takes a block that belongs at `offset`, and gives an empty one to fill.
    pub(super) fn write(&mut self, offset: u64, block: Vec<u8>) -> Result<Vec<u8>, Failed> {
        let sent = self.blocks.as_ref().map(|b| b.send((offset, block)));
        match sent {
            Some(Ok(())) => Ok(self.written.try_recv().unwrap_or_default()),
            // The thread ended, which it does by itself only where something failed.
            _ => match self.finish() {
                Ok(()) => Err(("writing", io::ErrorKind::BrokenPipe.into())),
                Err(failed) => Err(failed),
            },
        }
    }

    /// Waits until all that was taken is written.
    pub(super) fn finish(&mut self) -> Result<(), Failed> {
        self.blocks = None;
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(done)) => done,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.blocks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(
    file: &Arc<dyn File>,
    waiting: &Receiver<(u64, Vec<u8>)>,
    done: &Sender<Vec<u8>>,
) -> Result<(), Failed> {
    let mut unsynced = 0;
    let mut syncing: Option<JoinHandle<io::Result<()>>> = None;
    while let Ok((offset, mut block)) = waiting.recv() {
        files::write_all_at(&**file, offset, &block).map_err(|e| ("writing", e))?;
        unsynced += block.len();
        if unsynced >= SYNC_BYTES {
            wait_for(syncing.take())?;
            let file = file.clone();
            let sync = move || {
                yield_to_others();
                file.sync()
            };
            syncing = named("memorank sync").spawn(sync).ok();
            unsynced = 0;
        }
        block.clear();
        // Nobody may want it any more.
        let _ = done.send(block);
    }
    wait_for(syncing)
}

/// A failed sync is told by no later one.
fn wait_for(syncing: Option<JoinHandle<io::Result<()>>>) -> Result<(), Failed> {
    match syncing.map(JoinHandle::join) {
        None | Some(Ok(Ok(()))) => Ok(()),
        Some(Ok(Err(error))) => Err((SYNCING, error)),
        Some(Err(panic)) => std::panic::resume_unwind(panic),
    }
}

/// Where the system takes it from a thread, this one runs when others do not want the processor.
fn yield_to_others() {
    // Refused, it takes its turns like all others.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
}

fn named(name: &str) -> Builder {
    Builder::new().name(name.into())
}
