//! The log for a reader.

use super::{Change, Id, Machine, ROOT};
use std::collections::BTreeMap;

impl Machine {
    pub(super) fn describe(&self, from: usize, to: usize) -> String {
        // The names that inodes had, for the reader.
        let mut names: BTreeMap<Id, String> = BTreeMap::from([(ROOT, "/".into())]);
        let mut lines = String::new();
        for (at, change) in self.log.iter().enumerate().take(to) {
            let called = |id: &Id| names.get(id).cloned().unwrap_or_else(|| format!("#{id}"));
            let line = match change {
                Change::Write {
                    file,
                    offset,
                    bytes,
                } => format!("write {} at {offset}: {} bytes", called(file), bytes.len()),
                Change::SetLen { file, to } => format!("set_len {} to {to}", called(file)),
                Change::Sync { file, done: true } => format!("sync {}", called(file)),
                Change::Sync { file, done: false } => format!("sync {}: EIO", called(file)),
                Change::SyncDir { dir, done: true } => format!("sync_dir {}", called(dir)),
                Change::SyncDir { dir, done: false } => format!("sync_dir {}: EIO", called(dir)),
                Change::Create { dir, name, id, .. } => {
                    let name = format!("{} (#{id})", name.display());
                    let line = format!("create {name} in {}", called(dir));
                    names.insert(*id, name);
                    line
                }
                Change::Rename { id, to, .. } => {
                    let name = format!("{} (#{id})", to.1.display());
                    let line = format!("rename {} to {name}", called(id));
                    names.insert(*id, name);
                    line
                }
                Change::Remove { dir, name } => {
                    format!("remove {} in {}", name.display(), called(dir))
                }
            };
            if at >= from {
                lines += &format!("{at:5} {line}\n");
            }
        }
        lines
    }
}
