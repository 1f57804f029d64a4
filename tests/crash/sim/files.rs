//! The simulated file system as a store sees it.

use super::fault::{Kind, Moved};
use super::{Change, Id, Machine, Names, Node, Sim, normal, put};
use memorank::store::files::{File, FileLock, Files, What};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

impl Sim {
    fn handle(&self, machine: &mut Machine, id: Id, writable: bool) -> Box<dyn File> {
        machine.inodes[id].open += 1;
        Box::new(SimFile {
            sim: self.clone(),
            id,
            writable,
        })
    }

    fn open_file(&self, kind: Kind, path: &Path) -> io::Result<Box<dyn File>> {
        let (mut machine, _) = self.enter(kind)?;
        let id = machine.find(path)?;
        match machine.inodes[id].node {
            Node::File(_) => Ok(self.handle(&mut machine, id, kind == Kind::OpenToWrite)),
            Node::Directory(_) => Err(ErrorKind::InvalidInput.into()),
        }
    }
}

impl Files for Sim {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_file(Kind::Open, path)
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open_file(Kind::OpenToWrite, path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let (mut machine, _) = self.enter(Kind::Create)?;
        let id = machine.create(path, Node::File(Arc::default()))?;
        Ok(self.handle(&mut machine, id, true))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Kind::CreateDir)?;
        machine.create(path, Node::Directory(Names::new()))?;
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Kind::Rename)?;
        let (from_dir, from_name, id) = machine.place(from)?;
        let id = id.ok_or(ErrorKind::NotFound)?;
        let (to_dir, to_name, replaced) = machine.place(to)?;
        if replaced == Some(id) {
            return Ok(());
        }
        if normal(to).starts_with(normal(from)) {
            return Err(ErrorKind::InvalidInput.into());
        }
        match replaced.map(|other| (&machine.inodes[id].node, &machine.inodes[other].node)) {
            Some((Node::File(_), Node::Directory(_))) => {
                return Err(ErrorKind::IsADirectory.into());
            }
            Some((Node::Directory(_), Node::File(_))) => {
                return Err(ErrorKind::NotADirectory.into());
            }
            Some((_, Node::Directory(names))) if !names.is_empty() => {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
        if let Some(other) = replaced {
            machine.inodes[other].named = false;
        }
        machine.names_mut(from_dir).remove(&from_name);
        machine.names_mut(to_dir).insert(to_name.clone(), id);
        machine.log.push(Change::Rename {
            id,
            from: (from_dir, from_name),
            to: (to_dir, to_name),
        });
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Kind::Remove)?;
        let (dir, name, found) = machine.place(path)?;
        match machine.inodes[found.ok_or(ErrorKind::NotFound)?].node {
            Node::File(_) => machine.remove(dir, &name),
            Node::Directory(_) => return Err(ErrorKind::IsADirectory.into()),
        }
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Kind::RemoveDir)?;
        let (dir, name, _) = machine.place(path)?;
        let id = machine.find_dir(path)?;
        machine.empty(id);
        machine.remove(dir, &name);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let (machine, _) = self.enter(Kind::List)?;
        let names = machine.names(machine.find(dir)?)?;
        Ok(names.keys().cloned().collect())
    }

    fn what(&self, path: &Path) -> io::Result<What> {
        let (machine, _) = self.enter(Kind::What)?;
        Ok(match machine.inodes[machine.find(path)?].node {
            Node::File(_) => What::File,
            Node::Directory(_) => What::Directory,
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = self.machine().find_dir(dir)?;
        self.sync_logged(Kind::SyncDir, |done| Change::SyncDir { dir, done })
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let (mut machine, _) = self.enter(Kind::Lock)?;
        let id = match machine.place(path)? {
            (_, _, Some(id)) => id,
            (_, _, None) => machine.create(path, Node::File(Arc::default()))?,
        };
        if let Node::Directory(_) = machine.inodes[id].node {
            return Err(ErrorKind::IsADirectory.into());
        }
        if machine.inodes[id].locked.is_some() {
            return Ok(None);
        }
        machine.inodes[id].locked = Some(self.process);
        Ok(Some(Box::new(SimLock {
            sim: self.clone(),
            id,
            path: path.to_owned(),
        })))
    }
}

#[derive(Debug)]
struct SimFile {
    sim: Sim,
    id: Id,
    writable: bool,
}

impl SimFile {
    fn enter_to_write(&self, kind: Kind) -> io::Result<(MutexGuard<'_, Machine>, Moved)> {
        match self.writable {
            true => self.sim.enter(kind),
            false => Err(ErrorKind::PermissionDenied.into()),
        }
    }
}

impl File for SimFile {
    fn bytes(&self) -> io::Result<u64> {
        let (machine, _) = self.sim.enter(Kind::Length)?;
        Ok(machine.bytes(self.id).len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (machine, moved) = self.sim.enter(Kind::Read)?;
        let rest = machine.bytes(self.id).get(offset as usize..);
        let rest = rest.unwrap_or_default();
        let read = moved.of(rest.len().min(buffer.len()));
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let (mut machine, moved) = self.enter_to_write(Kind::Write)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let offset = usize::try_from(offset).map_err(|_| ErrorKind::FileTooLarge)?;
        let old_end = machine.bytes(self.id).len();
        let end_of_room = (old_end as u64).saturating_add(machine.left());
        let fits = end_of_room
            .saturating_sub(offset as u64)
            .min(usize::MAX as u64) as usize;
        let written = moved.of(bytes.len()).min(fits);
        if written == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        let bytes = &bytes[..written];
        put(machine.bytes_mut(self.id), offset, bytes);
        machine.log.push(Change::Write {
            file: self.id,
            offset,
            bytes: bytes.into(),
        });
        Ok(written)
    }

    fn set_len(&self, to: u64) -> io::Result<()> {
        let (mut machine, _) = self.enter_to_write(Kind::SetLen)?;
        let to = usize::try_from(to).map_err(|_| ErrorKind::FileTooLarge)?;
        let more = to.saturating_sub(machine.bytes(self.id).len());
        if more as u64 > machine.left() {
            return Err(ErrorKind::StorageFull.into());
        }
        machine.bytes_mut(self.id).resize(to, 0);
        machine.log.push(Change::SetLen { file: self.id, to });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let file = self.id;
        (self.sim).sync_logged(Kind::Sync, |done| Change::Sync { file, done })
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.sim.machine().inodes[self.id].open -= 1;
    }
}

#[derive(Debug)]
struct SimLock {
    sim: Sim,
    id: Id,
    path: PathBuf,
}

impl FileLock for SimLock {
    fn is_current(&self) -> io::Result<bool> {
        let (machine, _) = self.sim.enter(Kind::Current)?;
        Ok(machine.find(&self.path).is_ok_and(|id| id == self.id))
    }

    fn moved(&mut self, path: &Path) {
        self.path = path.to_owned();
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut machine = self.sim.machine();
        let locked = &mut machine.inodes[self.id].locked;
        if *locked == Some(self.sim.process) {
            *locked = None;
        }
    }
}
